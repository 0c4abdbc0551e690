//! What a text must contain for a pattern to match in it: what to look up in an index of texts.
//!
//! Letters are folded, so that one index serves patterns that tell capital and small letters apart and
//! patterns that do not. What is required is never too much: a text without it has no match. It may be too
//! little, so a text that has it must still be searched. The module must not know how texts are indexed.

use regex_syntax::hir::literal::{Extractor, Literal, Seq};
use regex_syntax::hir::{Hir, HirKind};

/// A text that is required has at least this many characters: an index of texts knows no shorter ones.
const LEAST: usize = 3;

/// The most texts that a run of parts may stand for, such as the ten of `[0-9]`.
const CHOICES: usize = 16;

/// The most bytes of a text that is required.
const LONGEST: usize = 200;

/// The most texts in all: with more, asking an index costs more than it saves.
const TEXTS: usize = 64;

/// The deepest nesting: the parser of an index has a stack of its own.
const DEPTH: usize = 16;

/// What a folded text must contain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Required {
    /// This text, folded, of at least three characters.
    Text(String),
    /// All of these; never empty.
    All(Vec<Required>),
    /// One of these; never empty.
    Any(Vec<Required>),
}

impl Required {
    /// What every match of a pattern contains; `None` if nothing is known, or if it is not a pattern. Linear in
    /// the pattern.
    pub fn from_pattern(pattern: &str) -> Option<Self> {
        let parsed = regex_syntax::parse(pattern).ok()?;
        required(&parsed).filter(|required| {
            let (texts, depth) = required.size();
            texts <= TEXTS && depth <= DEPTH
        })
    }

    /// How many texts there are, and how deep they are nested.
    fn size(&self) -> (usize, usize) {
        match self {
            Self::Text(_) => (1, 1),
            Self::All(each) | Self::Any(each) => {
                let sizes = each.iter().map(Self::size);
                sizes.fold((0, 1), |all, one| (all.0 + one.0, all.1.max(one.1 + 1)))
            }
        }
    }

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
        letter => {
            let upper = only(letter, letter.to_uppercase());
            only(upper, upper.to_lowercase())
        }
    }
}

/// The other case of a letter, if it is one character.
fn only(letter: char, mut all: impl Iterator<Item = char>) -> char {
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

/// What the matches of a part contain, if anything is known.
fn required(part: &Hir) -> Option<Required> {
    match part.kind() {
        HirKind::Capture(group) => required(&group.sub),
        HirKind::Concat(parts) => required_of_run(parts),
        HirKind::Alternation(parts) => {
            let each: Option<Vec<_>> = parts.iter().map(required).collect();
            each.map(Required::Any)
        }
        HirKind::Repetition(repeated) if repeated.min > 0 => {
            one_of(&literals(part)).or_else(|| required(&repeated.sub))
        }
        _ => one_of(&literals(part)),
    }
}

/// What the matches of parts that follow each other contain.
fn required_of_run(parts: &[Hir]) -> Option<Required> {
    let empty = || Seq::singleton(Literal::exact(Vec::new()));
    let mut all = Vec::new();
    // The texts of the parts since the last one that is more than a few texts.
    let mut run = empty();
    for part in parts {
        let mut texts = literals(part);
        if !texts.is_exact() {
            all.extend(one_of(&std::mem::replace(&mut run, empty())));
            all.extend(required(part));
            continue;
        }
        let length = run.max_literal_len().unwrap_or(0) + texts.max_literal_len().unwrap_or(0);
        let choices = run.max_cross_len(&texts).unwrap_or(usize::MAX);
        if length > LONGEST || choices > CHOICES {
            all.extend(one_of(&std::mem::replace(&mut run, texts)));
        } else {
            run.cross_forward(&mut texts);
            run.sort();
            run.dedup();
        }
    }
    all.extend(one_of(&run));
    match all.len() {
        0 | 1 => all.pop(),
        _ => Some(Required::All(all)),
    }
}

/// The folded texts that matches of a part begin with. Both cases of a letter become one text, so they are
/// folded part by part: a word in any case would otherwise be too many texts.
fn literals(part: &Hir) -> Seq {
    let found = Extractor::new().extract(part);
    let Some(literals) = found.literals() else {
        return found;
    };
    let folded = literals.iter().map(|literal| {
        // The extractor may cut a long text inside a character.
        let whole = literal.as_bytes().utf8_chunks().next();
        let text = whole.map_or("", |chunk| chunk.valid());
        if literal.is_exact() && text.len() == literal.len() {
            Literal::exact(fold(text))
        } else {
            Literal::inexact(fold(text))
        }
    });
    let mut folded: Seq = folded.collect();
    folded.sort();
    folded.dedup();
    folded
}

/// Requires one of the texts, if all of them are long enough for an index.
fn one_of(texts: &Seq) -> Option<Required> {
    let texts = texts.literals().filter(|texts| !texts.is_empty())?;
    let texts = texts.iter().map(|text| {
        let text = std::str::from_utf8(text.as_bytes()).ok()?;
        let is_long = text.chars().nth(LEAST - 1).is_some();
        is_long.then(|| Required::Text(text.to_owned()))
    });
    let mut texts: Vec<Required> = texts.collect::<Option<_>>()?;
    match texts.len() {
        1 => texts.pop(),
        _ => Some(Required::Any(texts)),
    }
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
            ("a{20}", Some("aaaaaaaaaa")),
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
            let found = Required::from_pattern(pattern);
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
