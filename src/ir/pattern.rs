//! The patterns of `~`: regular expressions whose compiled size is known and bounded.
//!
//! They are those of the `regex` crate, dialect, limit and all, made from the parts it is made
//! of, because those say how large a compiled pattern is. That is what a selector's patterns
//! are bounded by, all together: four letters of text can stand for megabytes. Knows texts, and
//! no selector.

use regex_automata::MatchKind;
use regex_automata::meta::{BuildError, Config, Regex};

/// The most bytes one automaton of a pattern may take: the default of the `regex` crate.
const MAX_AUTOMATON_BYTES: usize = 10 * 1024 * 1024;

/// The most bytes that the patterns of one selector, literal or bound, may take together when
/// compiled. Any one pattern that compiles is below it.
pub const MAX_PATTERN_BYTES: usize = 32 * 1024 * 1024;

/// What a pattern counts for at least: those that are small when compiled grow when they run.
const LEAST_BYTES: usize = 64 * 1024;

/// A compiled pattern. Finding it takes time linear in the text.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Whether it is found anywhere in `text`.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// Why a text is no pattern, or one too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It is no regular expression; why, in one line.
    Invalid(String),
    /// Compiled, it alone is larger than this many bytes.
    TooLarge(usize),
    /// Compiled, the patterns of the selector are larger than [`MAX_PATTERN_BYTES`].
    TooMany,
}

impl PatternError {
    /// The error in one line, lower case, no full stop.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Invalid(reason) => format!("invalid pattern: {reason}"),
            Self::TooLarge(limit) => {
                format!("the pattern is larger than {limit} bytes when compiled")
            }
            Self::TooMany => format!(
                "the patterns are larger than {MAX_PATTERN_BYTES} bytes together when compiled"
            ),
        }
    }

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

    /// Whether a limit is what the pattern breaks, and not the grammar.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        !matches!(self, Self::Invalid(_))
    }
}

/// The patterns of one selector: compiles them, and counts what they take.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    bytes: usize,
}

impl Patterns {
    /// None so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the patterns compiled so far take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether they take all they may: no further one is compiled.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.bytes > MAX_PATTERN_BYTES
    }

    /// Compiles one more pattern. In time and memory bounded by [`MAX_PATTERN_BYTES`] for all
    /// calls together: once there have been too many, no further one is compiled.
    ///
    /// # Errors
    /// No regular expression, or a limit; a pattern that fails on one counts in full.
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
    // The parser draws the pattern; its last line says what is wrong.
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
            assert!(error.message().contains(reason), "{}", error.message());
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
        // Those that fail cost as much as those that do not, and are not tried for ever.
        let mut patterns = Patterns::new();
        let tried = (0..2_000)
            .take_while(|_| patterns.compile(r"\w{999}").err() != Some(PatternError::TooMany))
            .count();
        assert!(tried < 10, "{tried}");
    }
}
