//! The patterns of `~`: regular expressions of bounded compiled size, in the dialect of the `regex` crate.
//!
//! They are run by `regex-automata`'s meta engine (literal search, lazy DFA, NFA), which that crate is built on,
//! and which also tells the size of a compiled pattern. The patterns of one selector are bounded together, because a few letters can compile
//! to megabytes. The module must not know selectors.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem::Finder;
use regex_automata::MatchKind;
use regex_automata::meta::{BuildError, Config, Regex};
use regex_syntax::hir::HirKind;

/// The size limit of all patterns of one selector, literal or bound, in bytes when compiled. Any
/// single pattern that compiles is smaller.
pub const MAX_PATTERN_BYTES: usize = 32 * 1024 * 1024;

/// The size limit of the automaton of one pattern, in bytes: the default of the `regex` crate.
const MAX_AUTOMATON_BYTES: usize = 10 * 1024 * 1024;

/// The least that a pattern counts for, in bytes, because small ones grow when they run.
const LEAST_BYTES: usize = 64 * 1024;

/// A compiled pattern. Whether it matches, and the first match, are found in time linear in the text; all
/// matches of one text may take as long for each match, as in the `regex` crate.
#[derive(Clone, Debug)]
pub struct Pattern(Matcher);

#[derive(Clone, Debug)]
enum Matcher {
    /// A pattern without special characters.
    Literal(Arc<Finder<'static>>),
    Regex(Regex),
    /// A pattern, and the bytes of the texts that it was searched for in.
    Counted(Arc<(Pattern, AtomicU64)>),
}

impl Pattern {
    pub fn is_match(&self, text: &str) -> bool {
        self.is_in(text.as_bytes())
    }

    /// As [`Pattern::is_match`], of the bytes of a text.
    #[inline]
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        match &self.0 {
            Matcher::Literal(finder) => finder.find(text).is_some(),
            Matcher::Regex(regex) => regex.is_match(text),
            Matcher::Counted(counted) => {
                let (pattern, bytes) = &**counted;
                bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
                pattern.is_in(text)
            }
        }
    }

    /// The same pattern, counting from 0 the bytes that [`Pattern::is_match`] is given.
    pub fn counted(&self) -> Self {
        Self(Matcher::Counted(Arc::new((
            self.clone(),
            AtomicU64::new(0),
        ))))
    }

    /// The bytes of the texts that a [counted](Self::counted) pattern was searched for in; 0 of others.
    pub fn searched_bytes(&self) -> u64 {
        match &self.0 {
            Matcher::Counted(counted) => counted.1.load(Ordering::Relaxed),
            Matcher::Literal(_) | Matcher::Regex(_) => 0,
        }
    }

    /// The first match in `text`, as a range of bytes.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.find_all(text).next()
    }

    /// The matches in `text` that do not overlap, in order, as ranges of bytes. An empty match where the one
    /// before ended is left out.
    pub fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = Range<usize>> + use<'_, 't> {
        let mut matcher = &self.0;
        while let Matcher::Counted(counted) = matcher {
            matcher = &counted.0.0;
        }
        let (finder, regex) = match matcher {
            Matcher::Literal(finder) => (Some(finder), None),
            Matcher::Regex(regex) => (None, Some(regex)),
            Matcher::Counted(_) => (None, None),
        };
        let literals = finder.into_iter().flat_map(move |finder| {
            let length = finder.needle().len();
            let starts = finder.find_iter(text.as_bytes());
            starts.map(move |start| start..start + length)
        });
        let matches = regex
            .into_iter()
            .flat_map(move |regex| regex.find_iter(text));
        literals.chain(matches.map(|found| found.range()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is not a regular expression, for this reason.
    #[error("invalid pattern: {0}")]
    Invalid(String),
    /// It is larger than this many bytes when compiled.
    #[error("the pattern is larger than {0} bytes when compiled")]
    TooLarge(usize),
    /// The patterns of the selector are larger than [`MAX_PATTERN_BYTES`] when compiled.
    #[error("the patterns are larger than {max} bytes together when compiled", max = MAX_PATTERN_BYTES)]
    TooMany,
}

impl PatternError {
    /// What to write instead.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Invalid(_) => {
                "backslashes stay as written; escape a sign to take it as itself: `\\.`"
            }
            Self::TooLarge(_) => "repeat less: `{1,100}` of a class counts a hundred times",
            Self::TooMany => "use fewer patterns, or smaller ones: `(?-u)` makes classes ASCII",
        }
    }

    /// Whether the pattern exceeds a limit.
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
    pub fn new() -> Self {
        Self::default()
    }

    /// The size of the patterns compiled so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the limit is exceeded, so that no further pattern compiles.
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
        let matcher = matcher(text);
        // A pattern that was refused for its size counts with the limit: compiling it went that far.
        let bytes = match &matcher {
            Ok(Matcher::Regex(regex)) => regex.memory_usage(),
            Err(PatternError::TooLarge(limit)) => *limit,
            Ok(Matcher::Literal(_) | Matcher::Counted(_)) | Err(_) => 0,
        };
        self.bytes += bytes.max(LEAST_BYTES);
        let matcher = matcher?;
        if self.is_exhausted() {
            return Err(PatternError::TooMany);
        }
        Ok(Pattern(matcher))
    }
}

fn matcher(text: &str) -> Result<Matcher, PatternError> {
    let hir = regex_syntax::parse(text).map_err(|error| invalid(&error.to_string()))?;
    if let HirKind::Literal(literal) = hir.kind() {
        let finder = Finder::new(&literal.0).into_owned();
        return Ok(Matcher::Literal(Arc::new(finder)));
    }
    let config = Config::new()
        .match_kind(MatchKind::LeftmostFirst)
        .utf8_empty(true)
        .nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
    let built = Regex::builder().configure(config).build_from_hir(&hir);
    built.map(Matcher::Regex).map_err(|error| refused(&error))
}

fn refused(error: &BuildError) -> PatternError {
    match error.size_limit() {
        Some(limit) => PatternError::TooLarge(limit),
        None => invalid(&error.to_string()),
    }
}

fn invalid(text: &str) -> PatternError {
    // The parser prints the pattern first; the last line is the reason.
    let reason = text.lines().last().unwrap_or_default();
    PatternError::Invalid(reason.strip_prefix("error: ").unwrap_or(reason).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{MAX_PATTERN_BYTES, PatternError, Patterns};

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

    /// Literals are searched for in another way than patterns, with the same answers.
    #[test]
    fn finds_what_the_regex_crate_finds() {
        let texts = ["", "aa.aaab", "aaé.aa", "x"];
        for pattern in ["aa", r"\.", "a*", "(aa)", "é", "(?i)AA", "b?"] {
            let compiled = Patterns::new().compile(pattern).expect(pattern);
            let regex = regex::Regex::new(pattern).expect(pattern);
            for text in texts {
                let found: Vec<_> = compiled.find_all(text).collect();
                let expected: Vec<_> = regex.find_iter(text).map(|found| found.range()).collect();
                assert_eq!(found, expected, "{pattern} in {text:?}");
                assert_eq!(compiled.is_match(text), !expected.is_empty());
                assert_eq!(compiled.find(text), expected.first().cloned());
            }
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
