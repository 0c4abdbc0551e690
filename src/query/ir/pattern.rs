//! The patterns of `~`: regular expressions of bounded compiled size.
//!
//! They have the dialect and size limit of the `regex` crate. `regex-automata`, which that crate
//! is built on, also tells the size of a compiled pattern. The patterns of one selector are
//! bounded together, because a few letters can compile to megabytes. The module must not know
//! selectors.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;
use regex_automata::dfa::{StartKind, dense};
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::nfa::thompson::NFA;
use regex_automata::{Input, MatchKind};
use regex_syntax::hir::Hir;

use super::form::{literal, simplified};
use super::places::{Places, Program};
use super::positions::Positions;
use super::quick::{LONG, MAX_AUTOMATON_BYTES, Quick, nfa_config};
use crate::support::cancel::stopped;

/// The size limit of all patterns of one selector, literal or bound, in bytes when compiled. Any
/// single pattern that compiles is smaller.
pub const MAX_PATTERN_BYTES: usize = 32 * 1024 * 1024;

/// The least that a pattern counts for, in bytes, because small ones grow when they run.
const LEAST_BYTES: usize = 64 * 1024;

/// Patterns of up to this many positions are run as they are: no text makes them slow.
const FEW_POSITIONS: usize = 8;

/// The size of an automaton that is made as a whole, in bytes, and of the work of making it.
const WHOLE_BYTES: usize = 256 * 1024;

/// So many matches of a text are searched for without counting what is read for them.
const UNCOUNTED: usize = 32;

/// Automata may read so many times the text, and so many bytes, for its matches.
const READ: usize = 4;
const LEAST_READ: usize = 64 * 1024;

/// A compiled pattern. Searching is linear in the text, within a factor that no pattern and no text exceed
/// (see `docs/limits.md`): for whether it matches, for the first match, and for all matches together.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// A text that every match contains; none if it is empty.
    literal: Arc<Finder<'static>>,
    /// How matches are found where a text could make the automata of `regex` slow.
    guarded: Option<Arc<Guarded>>,
}

/// Two ways to search: a quick one that gives up on some texts, and one whose cost is bounded.
#[derive(Debug)]
struct Guarded {
    /// Whether no text is slow, only long.
    harmless: bool,
    hir: Hir,
    quick: OnceLock<Option<Quick>>,
    positions: Positions,
    program: OnceLock<Program>,
}

/// The matches of a pattern in a text, in order. See [`Pattern::find_all`].
#[derive(Debug)]
struct Matches<'p, 't> {
    pattern: &'p Pattern,
    text: &'t str,
    /// Where the next match begins at the earliest; behind the text if there is none.
    from: usize,
    /// Where the last one ended.
    last: Option<usize>,
    /// How many were found, and the bytes that were read for them where that is counted.
    found: usize,
    read: usize,
    /// The way whose cost is bounded, once it is in use.
    places: Option<Places<'p, 't>>,
}

impl Pattern {
    /// Whether the pattern matches anywhere in `text`. False where the work is cancelled.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        if !self.literal.needle().is_empty() && self.literal.find(text.as_bytes()).is_none() {
            return false;
        }
        match &self.guarded {
            None => self.regex.is_match(text),
            Some(guarded) if guarded.harmless && text.len() < LONG => self.regex.is_match(text),
            Some(guarded) => guarded.is_match(text),
        }
    }

    /// The first match in `text`, as a range of bytes. None where the work is cancelled.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.find_all(text).next()
    }

    /// The matches in `text` that do not overlap, in order, as ranges of bytes. An empty match where the one
    /// before ended is left out. No more come where the work is cancelled.
    pub fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = Range<usize>> + use<'_, 't> {
        let literal = self.literal.needle();
        let none = !literal.is_empty() && self.literal.find(text.as_bytes()).is_none();
        Matches {
            pattern: self,
            text,
            from: if none { text.len() + 1 } else { 0 },
            last: None,
            found: 0,
            read: 0,
            places: None,
        }
    }
}

impl Matches<'_, '_> {
    /// The first match that begins at byte `from` or later, `from` being a place between letters.
    fn first(&mut self, from: usize) -> Option<Range<usize>> {
        let Some(guarded) = self.pattern.guarded.as_deref() else {
            return self.plain(from);
        };
        if self.places.is_none() {
            // An automaton may read all of the text for a short match, so few searches go uncounted.
            let counted = self.found >= UNCOUNTED || self.text.len() >= LONG;
            let quick = if !counted && guarded.harmless {
                return self.plain(from);
            } else {
                guarded.quick()
            };
            let most = READ * self.text.len() + LEAST_READ;
            let found = match quick {
                Some(_) if self.read > most => None,
                Some(quick) if counted => {
                    quick.find_counted(&guarded.hir, self.text, from, &mut self.read)
                }
                Some(quick) => quick.find(&guarded.hir, self.text, from),
                None => None,
            };
            if let Some(found) = found {
                return found;
            }
        }
        let places = self.places.get_or_insert_with(|| {
            let program = guarded.program.get_or_init(|| Program::new(&guarded.hir));
            Places::new(&guarded.positions, program, self.text, from)
        });
        places.first(from)
    }

    fn plain(&self, from: usize) -> Option<Range<usize>> {
        let found = self.pattern.regex.find(Input::new(self.text).range(from..));
        found.map(|found| found.range())
    }
}

impl Iterator for Matches<'_, '_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while self.from <= self.text.len() && !stopped() {
            let Some(found) = self.first(self.from) else {
                break;
            };
            self.found += 1;
            if found.is_empty() && self.last == Some(found.end) {
                let rest = self.text.get(found.end..).unwrap_or_default();
                self.from = found.end + rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            self.from = found.end;
            self.last = Some(found.end);
            return Some(found);
        }
        self.from = self.text.len() + 1;
        None
    }
}

impl Guarded {
    fn is_match(&self, text: &str) -> bool {
        let found = self.quick().and_then(|quick| quick.is_match(text));
        found.unwrap_or_else(|| self.positions.is_match(text))
    }

    fn quick(&self) -> Option<&Quick> {
        let quick = self.quick.get_or_init(|| Quick::new(&self.hir));
        quick.as_ref()
    }
}

/// Why a pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is not a regular expression, for this reason.
    #[error("invalid pattern: {0}")]
    Invalid(String),
    /// It is larger than this many bytes when compiled.
    #[error("the pattern is larger than {0} bytes when compiled")]
    TooLarge(usize),
    /// It has so many repetitions inside repetitions that no way to search for it is quick on every text.
    #[error("the pattern is too costly to search for")]
    TooCostly,
    /// The patterns of the selector are larger than [`MAX_PATTERN_BYTES`] when compiled.
    #[error("the patterns are larger than {max} bytes together when compiled", max = MAX_PATTERN_BYTES)]
    TooMany,
}

impl PatternError {
    /// What to write instead.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Invalid(_) => {
                "backslashes stay as written; escape a sign to take it as itself: `\\.`"
            }
            Self::TooLarge(_) => "repeat less: `{1,100}` of a class counts a hundred times",
            Self::TooCostly => {
                "repeat less: parts like `.*` or `x{1,100}` that follow each other multiply"
            }
            Self::TooMany => "use fewer patterns, or smaller ones: `(?-u)` makes classes ASCII",
        }
    }

    /// Whether the pattern exceeds a limit.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        !matches!(self, Self::Invalid(_))
    }
}

/// Compiles the patterns of one selector and adds up their sizes.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    bytes: usize,
}

impl Patterns {
    /// Without patterns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The size of the patterns compiled so far, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the limit is exceeded, so that no further pattern compiles.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.bytes > MAX_PATTERN_BYTES
    }

    /// Compiles one more pattern. [`MAX_PATTERN_BYTES`] bounds the time and memory of all calls
    /// together.
    ///
    /// # Errors
    /// Not a regular expression, or a limit. A pattern that exceeds a limit still counts.
    pub fn compile(&mut self, text: &str) -> Result<Pattern, PatternError> {
        if self.is_exhausted() {
            return Err(PatternError::TooMany);
        }
        let config = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(true)
            .nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
        let hir = match regex_syntax::parse(text) {
            Ok(hir) => simplified(hir),
            Err(error) => {
                self.bytes += LEAST_BYTES;
                return Err(invalid(&error.to_string()));
            }
        };
        let built = Regex::builder().configure(config).build_from_hir(&hir);
        let mut bytes = match &built {
            Ok(regex) => regex.memory_usage(),
            Err(error) => error.size_limit().unwrap_or_default(),
        };
        let guarded = built.is_ok().then(|| Guarded::of(&hir));
        if let Some(Ok(Some(guarded))) = &guarded {
            bytes += guarded.positions.bytes();
        }
        self.bytes += bytes.max(LEAST_BYTES);
        match built {
            Ok(_) if self.is_exhausted() => Err(PatternError::TooMany),
            Ok(regex) => Ok(Pattern {
                regex,
                literal: Arc::new(Finder::new(&literal(&hir)).into_owned()),
                guarded: guarded.transpose()?.flatten().map(Arc::new),
            }),
            Err(error) => Err(refused(&error)),
        }
    }
}

impl Guarded {
    /// How a pattern is searched for if some text could make it slow; `None` if none can.
    ///
    /// # Errors
    /// A text could, and there is no way that is bounded.
    fn of(hir: &Hir) -> Result<Option<Self>, PatternError> {
        let properties = hir.properties();
        // These are searched for as such.
        if properties.is_alternation_literal() {
            return Ok(None);
        }
        // Automata know words of ASCII texts only.
        let gives_up = properties.look_set().contains_word_unicode();
        match Positions::new(hir) {
            Some(positions) => Ok(Some(Self {
                harmless: positions.count() <= FEW_POSITIONS && !gives_up,
                hir: hir.clone(),
                quick: OnceLock::new(),
                positions,
                program: OnceLock::new(),
            })),
            None if is_small_as_a_whole(hir) => Ok(None),
            None => Err(PatternError::TooCostly),
        }
    }
}

/// Whether the automaton of a pattern is small with all the states that it can have, so that no text can
/// make it large.
fn is_small_as_a_whole(hir: &Hir) -> bool {
    let nfa = NFA::compiler().configure(nfa_config()).build_from_hir(hir);
    let config = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(WHOLE_BYTES))
        .determinize_size_limit(Some(WHOLE_BYTES));
    // One with Unicode's word boundaries is refused here, as it gives up on texts that are not ASCII.
    nfa.is_ok_and(|nfa| {
        dense::Builder::new()
            .configure(config)
            .build_from_nfa(&nfa)
            .is_ok()
    })
}

fn refused(error: &BuildError) -> PatternError {
    if let Some(limit) = error.size_limit() {
        return PatternError::TooLarge(limit);
    }
    let text = error
        .syntax_error()
        .map_or_else(|| error.to_string(), ToString::to_string);
    invalid(&text)
}

fn invalid(text: &str) -> PatternError {
    // The parser prints the pattern first; the last line is the reason.
    let reason = text.lines().last().unwrap_or_default();
    PatternError::Invalid(reason.strip_prefix("error: ").unwrap_or(reason).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::quick::LONG;
    use super::{MAX_PATTERN_BYTES, PatternError, Patterns};
    use crate::support::cancel::{Cancel, Cancelled};

    #[test]
    fn speaks_the_dialect_of_the_regex_crate() {
        for (pattern, text, found) in [
            ("(?i)^rain", "Rain today", true),
            (r"\d{2}$", "no 42", true),
            (r"^\w+$", "größe", true),
            (r"(?-u)^\w+$", "größe", false),
            ("", "", true),
            ("a.c", "a\nc", false),
        ] {
            let compiled = Patterns::new().compile(pattern).expect("a pattern");
            assert_eq!(compiled.is_match(text), found, "{pattern} in {text:?}");
        }
        for (pattern, reason) in [("(", "unclosed group"), ("a**b(?<n", "unclosed")] {
            let error = Patterns::new().compile(pattern).expect_err(pattern);
            assert!(!error.is_limit(), "{pattern}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn any_one_pattern_that_compiles_fits() {
        let mut largest = 0;
        for pattern in [r"\w", r"(\W|\d\s)", r".*\wa"] {
            // The most repetitions that are not too large.
            let (mut low, mut high) = (1_u32, 1_000);
            while low < high {
                let middle = (low + high).div_ceil(2);
                match Patterns::new().compile(&format!("({pattern}){{{middle}}}")) {
                    Ok(_) => low = middle,
                    Err(error) => {
                        assert!(error.is_limit(), "{error:?}");
                        high = middle - 1;
                    }
                }
            }
            let mut patterns = Patterns::new();
            patterns
                .compile(&format!("({pattern}){{{low}}}"))
                .expect("it fits");
            largest = largest.max(patterns.bytes());
        }
        println!("the largest takes {largest} bytes");
        assert!(largest <= MAX_PATTERN_BYTES, "{largest}");
    }

    /// Patterns that make some text slow for automata: each has a bounded way to be searched for, or is
    /// refused.
    #[test]
    fn no_pattern_is_without_a_bound() {
        let jumps = vec!["a.?.?b"; 45].join(".?") + "[xy]";
        let alternatives = "(a.{0,40}|b.{0,50}|c.{0,60}){12}[xy]";
        for (pattern, bounded) in [
            (&*(".*".repeat(3_000) + "[yz]'"), true),
            ("a[ab]{15}[xy]", true),
            ("a[ab]{1000}[xy]", true),
            (r"\Ba[ab]{100}\B[xy]", true),
            ("(a?){200}a{200}[xy]", true),
            (r"(?i)refund.{0,80}declined", true),
            (r"(\w+\s+){0,50}[xy]", true),
            (r"\b(error|warning|failed)\b", true),
            ("(?:.*a?){30}[xy]", true),
            (&jumps, false),
            (alternatives, false),
            ("((a{0,100}){0,100}){0,100}[xy]", false),
        ] {
            let compiled = Patterns::new().compile(pattern);
            match &compiled {
                Ok(_) => assert!(bounded, "{pattern}"),
                Err(error) => assert!(!bounded && error.is_limit(), "{pattern}: {error}"),
            }
        }
    }

    /// Each way to search gives the same answer, also on long texts and where the quick way gives up.
    #[test]
    fn all_ways_to_search_agree() {
        let mut texts = vec![String::new(), "ab".repeat(LONG / 2 + 5)];
        let mut random = 88_172_645_463_325_252_u64;
        let mut noise = String::new();
        for _ in 0..30_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            noise.push(if random & 1 == 0 { 'a' } else { 'b' });
        }
        texts.extend([noise.clone() + "y", noise.clone() + " é y", noise]);
        for pattern in [
            "a[ab]{40}[xy]",
            "a[ab]{15} é",
            r"\ba[ab]+\b é",
            "[xy]$",
            "(?i)A.{0,20}Y",
            "^[ab]*$",
            "b{3}",
            r"a\B[ab]{9}y",
        ] {
            let compiled = Patterns::new().compile(pattern).expect(pattern);
            let regex = regex::Regex::new(pattern).expect(pattern);
            for text in &texts {
                // One of the patterns is enough for a long text.
                if text.len() > LONG && !pattern.starts_with("a[ab]{40}") {
                    continue;
                }
                let (found, length) = (regex.is_match(text), text.len());
                assert_eq!(
                    compiled.is_match(text),
                    found,
                    "{pattern} in {length} bytes"
                );
                if let Some(guarded) = &compiled.guarded {
                    assert_eq!(guarded.is_match(text), found, "{pattern} in {length} bytes");
                    assert_eq!(
                        guarded.positions.is_match(text),
                        found,
                        "{pattern} in {length}"
                    );
                }
            }
        }
    }

    /// A search in one long text ends soon after the token is set.
    #[test]
    fn a_search_stops() {
        let text = "ab".repeat(LONG);
        for pattern in ["[ab]y?[cd]", "a[ab]{30}[cd]", r"\Ba[ab]{30}[cd]"] {
            let pattern = Patterns::new().compile(pattern).expect("a pattern");
            let cancel = Cancel::at_check(20);
            assert_eq!(cancel.run(|| pattern.is_match(&text)), Err(Cancelled));
            assert!(cancel.checks().1 <= 3);
            let cancel = Cancel::at_check(20);
            assert_eq!(cancel.run(|| pattern.find(&text)), Err(Cancelled));
            assert!(cancel.checks().1 <= 3);
        }
    }

    #[test]
    fn patterns_are_bounded_together() {
        for (pattern, least, most) in [
            ("a", 100, 1_000),
            (r"\w{100}", 2, 20),
            (r"\w{999}", 0, 3_usize),
        ] {
            let mut patterns = Patterns::new();
            let compiled = (0..2_000)
                .take_while(|_| patterns.compile(pattern).is_ok())
                .count();
            assert!((least..=most).contains(&compiled), "{pattern}: {compiled}");
        }
        // Patterns that fail count too, so that the attempts are bounded.
        let mut patterns = Patterns::new();
        let tried = (0..2_000)
            .take_while(|_| patterns.compile(r"\w{999}").err() != Some(PatternError::TooMany))
            .count();
        assert!(tried < 10, "{tried}");
    }
}
