//! The patterns of `~`: regular expressions of bounded compiled size.
//!
//! They have the dialect and size limit of the `regex` crate. `regex-automata`, which that crate
//! is built on, also tells the size of a compiled pattern. The patterns of one selector are
//! bounded together, because a few letters can compile to megabytes. The module must not know
//! selectors.

use std::ops::Range;

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::{Input, MatchKind};

/// The size limit of one automaton of a pattern, in bytes: the default of the `regex` crate.
const MAX_AUTOMATON_BYTES: usize = 10 * 1024 * 1024;

/// The size limit of all patterns of one selector, literal or bound, in bytes when compiled. Any
/// single pattern that compiles is smaller.
pub const MAX_PATTERN_BYTES: usize = 32 * 1024 * 1024;

/// The least that a pattern counts for, in bytes, because small ones grow when they run.
const LEAST_BYTES: usize = 64 * 1024;

/// A compiled pattern. Searching is linear in the text.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Whether the pattern matches anywhere in `text`.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The first match in `text` that begins at byte `from` or later.
    #[must_use]
    pub fn find_at(&self, text: &str, from: usize) -> Option<Range<usize>> {
        if from > text.len() {
            return None;
        }
        let found = self.regex.find(Input::new(text).range(from..));
        found.map(|found| found.range())
    }

    /// The first match in `text`, as a range of bytes.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.regex.find(text).map(|found| found.range())
    }

    /// The matches in `text` that do not overlap, as ranges of bytes.
    pub fn find_all(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        self.regex.find_iter(text).map(|found| found.range())
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
        let built = Regex::builder().configure(config).build(text);
        let bytes = match &built {
            Ok(regex) => regex.memory_usage(),
            Err(error) => error.size_limit().unwrap_or_default(),
        };
        self.bytes += bytes.max(LEAST_BYTES);
        match built {
            Ok(_) if self.is_exhausted() => Err(PatternError::TooMany),
            Ok(regex) => Ok(Pattern { regex }),
            Err(error) => Err(refused(&error)),
        }
    }
}

fn refused(error: &BuildError) -> PatternError {
    if let Some(limit) = error.size_limit() {
        return PatternError::TooLarge(limit);
    }
    let text = error
        .syntax_error()
        .map_or_else(|| error.to_string(), ToString::to_string);
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
                        assert!(matches!(error, PatternError::TooLarge(_)), "{error:?}");
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
