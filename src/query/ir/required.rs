//! What a text must contain for a pattern to match in it: what an index of texts is asked for.
//!
//! Letters are folded, so that one index serves patterns that tell capital and small letters apart and
//! patterns that do not. What is required is never too much: a text without it has no match. It may be too
//! little, so a text that has it must still be searched. The module must not know how texts are indexed.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind};

/// A text that is required has at least so many characters: an index of texts knows no shorter ones.
const LEAST: usize = 3;

/// The most texts that one place of a pattern may stand for, such as the ten of `[0-9]`.
const CHOICES: usize = 16;

/// The most characters of a text that is required.
const LONGEST: usize = 200;

/// The most texts in all: with more, asking an index costs more than it saves.
const TEXTS: usize = 64;

/// The deepest nesting: the parser of an index has a stack of its own.
const DEPTH: usize = 16;

/// The most times that what is repeated is written out.
const REPEATED: u32 = 8;

/// What a folded text must contain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Required {
    /// This text, folded, of at least three characters.
    Text(String),
    /// All of these, of which there is at least one.
    All(Vec<Required>),
    /// One of these, of which there is at least one.
    Any(Vec<Required>),
}

impl Required {
    /// What every match of a pattern contains; `None` if nothing is known, or if it is no pattern. Linear in
    /// the pattern.
    #[must_use]
    pub fn of(pattern: &str) -> Option<Self> {
        let parsed = regex_syntax::parse(pattern).ok()?;
        let required = Found::of(&parsed).required();
        required.filter(|required| required.texts() <= TEXTS && required.depth() <= DEPTH)
    }

    /// How deep it is nested.
    fn depth(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::All(each) | Self::Any(each) => {
                1 + each.iter().map(Self::depth).max().unwrap_or(0)
            }
        }
    }

    /// Number of texts.
    fn texts(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::All(each) | Self::Any(each) => each.iter().map(Self::texts).sum(),
        }
    }

    /// Whether a folded text has what is required.
    #[must_use]
    pub fn holds(&self, folded: &str) -> bool {
        match self {
            Self::Text(text) => folded.contains(&**text),
            Self::All(all) => all.iter().all(|each| each.holds(folded)),
            Self::Any(any) => any.iter().any(|each| each.holds(folded)),
        }
    }
}

/// A text in which letters that differ only in case are the same letter, and U+0000 is another character.
/// Linear.
#[must_use]
pub fn fold(text: &str) -> String {
    text.chars().map(fold_char).collect()
}

/// Characters that a pattern without regard to case takes as the same become the same.
fn fold_char(letter: char) -> char {
    if letter.is_ascii() {
        return match letter {
            // Databases end a text there.
            '\0' => char::REPLACEMENT_CHARACTER,
            letter => letter.to_ascii_lowercase(),
        };
    }
    match letter {
        // SQLite reads these two as that.
        '\u{FFFE}' | '\u{FFFF}' => char::REPLACEMENT_CHARACTER,
        '\u{1E9E}' => 'ß',
        // Pairs whose capital letters are several characters.
        '\u{1FD3}' => '\u{0390}',
        '\u{1FE3}' => '\u{03B0}',
        '\u{FB05}' => '\u{FB06}',
        letter => lower(upper(letter)),
    }
}

/// The capital letter, if it is one character.
fn upper(letter: char) -> char {
    let mut all = letter.to_uppercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

fn lower(letter: char) -> char {
    let mut all = letter.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

/// What is known of the matches of a part of a pattern.
enum Found {
    /// They are these texts, folded.
    Exact(BTreeSet<String>),
    /// They contain this, if anything is known.
    Holds(Option<Required>),
}

impl Found {
    fn of(part: &Hir) -> Self {
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::empty(),
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => Self::Exact(BTreeSet::from([fold(text)])),
                Err(_) => Self::Holds(None),
            },
            HirKind::Class(class) => letters(class).map_or(Self::Holds(None), Self::Exact),
            HirKind::Repetition(repeated) => {
                let once = Self::of(&repeated.sub);
                let (least, most) = (repeated.min, repeated.max);
                if (least, most) == (0, Some(1)) {
                    return once.or(Self::empty());
                }
                let times = least.min(REPEATED);
                let mut run = Run::default();
                match once {
                    _ if times == 0 => {}
                    Self::Exact(texts) => {
                        (0..times).for_each(|_| run.add(Self::Exact(texts.clone())));
                    }
                    holds => run.add(holds),
                }
                if most != Some(times) {
                    run.add(Self::Holds(None));
                }
                run.finish()
            }
            HirKind::Capture(group) => Self::of(&group.sub),
            HirKind::Concat(parts) => {
                let mut run = Run::default();
                parts.iter().for_each(|part| run.add(Self::of(part)));
                run.finish()
            }
            HirKind::Alternation(parts) => {
                let mut parts = parts.iter().map(Self::of);
                let first = parts.next().unwrap_or(Self::Holds(None));
                parts.fold(first, Self::or)
            }
        }
    }

    /// The empty text.
    fn empty() -> Self {
        Self::Exact(BTreeSet::from([String::new()]))
    }

    /// One or the other.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Exact(mut one), Self::Exact(other)) => {
                one.extend(other);
                if one.len() <= CHOICES {
                    Self::Exact(one)
                } else {
                    Self::Holds(Self::Exact(one).required())
                }
            }
            (one, other) => Self::Holds(match (one.required(), other.required()) {
                (Some(Required::Any(mut one)), Some(other)) => {
                    one.push(other);
                    Some(Required::Any(one))
                }
                (Some(one), Some(other)) => Some(Required::Any(vec![one, other])),
                _ => None,
            }),
        }
    }

    fn required(self) -> Option<Required> {
        match self {
            Self::Holds(required) => required,
            Self::Exact(texts) => {
                let known = |text: &String| text.chars().nth(LEAST - 1).is_some();
                if texts.is_empty() || !texts.iter().all(known) {
                    return None;
                }
                let mut texts: Vec<Required> = texts.into_iter().map(Required::Text).collect();
                match texts.len() {
                    1 => texts.pop(),
                    _ => Some(Required::Any(texts)),
                }
            }
        }
    }
}

/// Parts that follow each other.
struct Run {
    /// The texts of the last parts, from the last one of which the texts are not known.
    exact: BTreeSet<String>,
    /// What came before.
    required: Vec<Required>,
    is_exact: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            exact: BTreeSet::from([String::new()]),
            required: Vec::new(),
            is_exact: true,
        }
    }
}

impl Run {
    fn add(&mut self, part: Found) {
        match part {
            Found::Exact(texts) => {
                let longest = |texts: &BTreeSet<String>| texts.iter().map(String::len).max();
                let length = longest(&self.exact).unwrap_or(0) + longest(&texts).unwrap_or(0);
                if self.exact.len() * texts.len() <= CHOICES && length <= LONGEST {
                    let both = self.exact.iter().flat_map(|one| {
                        let joined = texts.iter().map(move |other| format!("{one}{other}"));
                        joined.collect::<Vec<_>>()
                    });
                    self.exact = both.collect();
                } else {
                    self.break_off();
                    self.exact = texts;
                }
            }
            Found::Holds(required) => {
                self.break_off();
                self.required.extend(required);
            }
        }
    }

    /// What comes next is not joined to what came before.
    fn break_off(&mut self) {
        let exact = std::mem::replace(&mut self.exact, BTreeSet::from([String::new()]));
        self.required.extend(Found::Exact(exact).required());
        self.is_exact = false;
    }

    fn finish(mut self) -> Found {
        if self.is_exact {
            return Found::Exact(self.exact);
        }
        self.break_off();
        Found::Holds(match self.required.len() {
            0 | 1 => self.required.pop(),
            _ => Some(Required::All(self.required)),
        })
    }
}

/// The characters of a class, folded, if they are few.
fn letters(class: &Class) -> Option<BTreeSet<String>> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => {
            let ranges = class.ranges().iter();
            ranges.map(|range| (range.start(), range.end())).collect()
        }
        Class::Bytes(class) => {
            let ranges = class.ranges().iter();
            let ascii = ranges.map(|range| {
                let is_ascii = range.end().is_ascii();
                is_ascii.then(|| (char::from(range.start()), char::from(range.end())))
            });
            ascii.collect::<Option<_>>()?
        }
    };
    let sizes = ranges.iter().map(|(first, last)| {
        let size = u32::from(*last) - u32::from(*first);
        size as usize + 1
    });
    // A letter and its other cases count as one.
    if sizes.sum::<usize>() > 4 * CHOICES {
        return None;
    }
    let all = ranges.into_iter().flat_map(|(first, last)| first..=last);
    let all: BTreeSet<String> = all.map(|letter| fold_char(letter).to_string()).collect();
    (!all.is_empty() && all.len() <= CHOICES).then_some(all)
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    use super::*;

    /// As short text: `&` and `|` with brackets.
    fn shown(required: &Required) -> String {
        let all = |all: &[Required], sign: &str| {
            let all: Vec<String> = all.iter().map(shown).collect();
            format!("({})", all.join(sign))
        };
        match required {
            Required::Text(text) => text.clone(),
            Required::All(each) => all(each, "&"),
            Required::Any(each) => all(each, "|"),
        }
    }

    #[test]
    fn what_patterns_require() {
        for (pattern, required) in [
            ("refund", Some("refund")),
            ("Refund", Some("refund")),
            ("(?i:Kelvin)", Some("kelvin")),
            ("(?i)straße", Some("straße")),
            ("ab", None),
            ("", None),
            (".*", None),
            (r"\w+ failed", Some(" failed")),
            (r"error \d+ in", Some("(error & in)")),
            ("error|failure", Some("(error|failure)")),
            ("error|ab", None),
            ("(foo|bar)baz", Some("(barbaz|foobaz)")),
            ("(foo)?bar", Some("(bar|foobar)")),
            ("(foo)*bar", Some("bar")),
            ("(foo)+", Some("foo")),
            ("(ab){2}", Some("abab")),
            ("(ab){2,}", Some("abab")),
            ("a{20}", Some("aaaaaaaa")),
            ("gr[ae]y", Some("(gray|grey)")),
            ("^start.*end$", Some("(start&end)")),
            (r"\bword\b", Some("word")),
            ("[a-z]bcd", Some("bcd")),
            ("[0-3]xy", Some("(0xy|1xy|2xy|3xy)")),
            ("(", None),
            ("[^a]bcd[^e]fgh", Some("(bcd&fgh)")),
            ("(foo.*bar|baz)", Some("((foo&bar)|baz)")),
            ("rm -rf", Some("rm -rf")),
        ] {
            let found = Required::of(pattern);
            let found = found.as_ref().map(shown);
            assert_eq!(found.as_deref(), required, "{pattern}");
        }
    }

    /// What a pattern takes as the same letter is folded to the same letter.
    #[test]
    fn letters_are_folded_as_patterns_fold_them() {
        let mut pairs = 0;
        for letter in
            ('\0'..='\u{2FFFF}').filter(|letter| letter.is_alphabetic() || letter.is_ascii())
        {
            let mut same = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
            same.case_fold_simple();
            for range in same.ranges() {
                for other in range.start()..=range.end() {
                    pairs += usize::from(other != letter);
                    assert_eq!(fold_char(other), fold_char(letter), "{letter:?} {other:?}");
                }
            }
        }
        assert!(pairs > 2_000, "{pairs}");
    }
}
