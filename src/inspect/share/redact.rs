//! Matches of patterns, taken out of texts before anything is written (INSPECT §1).
//!
//! A secret can be spelled with escapes, in JSON that is the text of a string in JSON. So the strings
//! of a text that are JSON literals are read as well, four levels deep. This file must not know
//! sessions.

use crate::json::string;
use crate::query::ir::{Pattern, PatternError, Patterns};
use std::borrow::Cow;

/// What is written for a match.
const MARK: &str = "[redacted]";

/// How deep JSON in strings of JSON is read.
const LEVELS: u32 = 4;

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern `{pattern}` cannot be used: {reason}")]
pub struct BadPattern {
    /// The pattern.
    pub pattern: String,
    /// Why.
    pub reason: String,
    /// What to write instead.
    pub help: &'static str,
}

/// Replaces the matches of patterns by `[redacted]`, and counts them.
///
/// ```
/// use pactql::inspect::share::Redactor;
/// let mut redactor = Redactor::new(["sk-[a-z0-9]+"])?;
/// assert_eq!(redactor.redact("the key is sk-abc123."), "the key is [redacted].");
/// assert_eq!(redactor.count(), 1);
/// # Ok::<(), pactql::inspect::share::BadPattern>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    patterns: Vec<Compiled>,
}

/// A pattern, its text, and how many matches of it were replaced.
#[derive(Clone, Debug)]
struct Compiled {
    text: String,
    pattern: Pattern,
    count: u64,
}

impl Redactor {
    /// Replaces what matches one of `patterns`, regular expressions as in selectors. Without any,
    /// nothing is replaced.
    ///
    /// # Errors
    /// Not a regular expression; one that matches the empty text; patterns that are too large when
    /// compiled, as in a selector.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, BadPattern> {
        let mut compiler = Patterns::new();
        let mut compiled = Vec::new();
        for text in patterns {
            let text = text.as_ref();
            let bad = |reason: String, help| BadPattern {
                pattern: text.to_owned(),
                reason,
                help,
            };
            let pattern = compiler.compile(text).map_err(|error| {
                let reason = match &error {
                    PatternError::Invalid(reason) => reason.clone(),
                    limit => limit.to_string(),
                };
                bad(reason, error.help())
            })?;
            if pattern.is_match("") {
                let help = "ask for one character at least: `x+` instead of `x*`";
                return Err(bad("it matches the empty text".to_owned(), help));
            }
            compiled.push(Compiled {
                text: text.to_owned(),
                pattern,
                count: 0,
            });
        }
        Ok(Self { patterns: compiled })
    }

    /// How many matches were replaced so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.patterns.iter().map(|pattern| pattern.count).sum()
    }

    /// The patterns that matched nothing so far.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        let unmatched = self.patterns.iter().filter(|pattern| pattern.count == 0);
        unmatched.map(|pattern| &*pattern.text)
    }

    /// Whether there is no pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The text without what matches. Linear in the text for each pattern.
    pub fn redact<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if self.patterns.is_empty() {
            Cow::Borrowed(text)
        } else {
            self.level(text, LEVELS)
        }
    }

    fn level<'a>(&mut self, text: &'a str, levels: u32) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for at in 0..self.patterns.len() {
            if let Some(without) = self.without(at, &text) {
                text = Cow::Owned(without);
            }
        }
        match levels.checked_sub(1) {
            Some(levels) if text.contains('\\') => match self.literals(&text, levels) {
                Some(without) => Cow::Owned(without),
                None => text,
            },
            _ => text,
        }
    }

    /// The text without the matches of one pattern; `None` if it has none.
    fn without(&mut self, at: usize, text: &str) -> Option<String> {
        let Compiled { pattern, count, .. } = self.patterns.get_mut(at)?;
        let mut out = String::new();
        let mut end = 0;
        for found in pattern.find_all(text).filter(|found| !found.is_empty()) {
            out.push_str(&text[end..found.start]);
            out.push_str(MARK);
            end = found.end;
            *count += 1;
        }
        if end == 0 {
            return None;
        }
        out.push_str(&text[end..]);
        Some(out)
    }

    /// The text with its string literals that have escapes read, redacted and written again; `None` if
    /// that changes none. Text that is no JSON has quotes as well, so each quote may begin a literal.
    fn literals(&mut self, text: &str, levels: u32) -> Option<String> {
        let mut out = String::new();
        let mut done = 0;
        let mut from = 0;
        while let Some(start) = text[from..].find('"').map(|at| from + at) {
            from = start + 1;
            let Some(length) = literal(&text[start..]) else {
                continue;
            };
            let end = start + length;
            // The quote at the end may begin the next one.
            from = end - 1;
            let raw = &text[start..end];
            let Some(decoded) = string(raw).filter(|_| raw.contains('\\')) else {
                continue;
            };
            let before = self.count();
            let redacted = self.level(&decoded, levels);
            if self.count() > before
                && let Ok(encoded) = serde_json::to_string(&*redacted)
            {
                out.push_str(&text[done..start]);
                out.push_str(&encoded);
                (done, from) = (end, end);
            }
        }
        if done == 0 {
            return None;
        }
        out.push_str(&text[done..]);
        Some(out)
    }
}

/// The length of the literal that a text begins with, quotes included; `None` if it does not end, or
/// not on its line.
fn literal(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            0..=0x1f => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Redactor;

    #[test]
    fn matches_are_replaced_also_where_they_are_spelled_with_escapes() {
        for (pattern, text, expected, count) in [
            (
                "Bergen",
                "Rain in Bergen? Bergen!",
                "Rain in [redacted]? [redacted]!",
                2,
            ),
            ("^a", "aa", "[redacted]a", 1),
            ("\\bcat\\b", "concat cat", "concat [redacted]", 1),
            ("é+", "caféé", "caf[redacted]", 1),
            // In JSON, and in JSON in a string of JSON.
            (
                "é",
                r#"{"city":"caf\u00e9"}"#,
                r#"{"city":"caf[redacted]"}"#,
                1,
            ),
            (
                "a\nb",
                r#"{"x":"a\nb","y":"q"}"#,
                r#"{"x":"[redacted]","y":"q"}"#,
                1,
            ),
            (
                "é",
                r#"{"x":"{\"y\":\"\\u00e9\"}"}"#,
                r#"{"x":"{\"y\":\"[redacted]\"}"}"#,
                1,
            ),
            // A quote before the JSON.
            (
                "é",
                r#"say " then {"x":"\u00e9"}"#,
                r#"say " then {"x":"[redacted]"}"#,
                1,
            ),
            ("zzz", r#"{"x":"\u00e9"}"#, r#"{"x":"\u00e9"}"#, 0),
        ] {
            let mut redactor = Redactor::new([pattern]).unwrap();
            assert_eq!(redactor.redact(text), expected, "{pattern}");
            assert_eq!(redactor.count(), count, "{pattern}");
        }
    }

    #[test]
    fn patterns_are_refused() {
        for (pattern, reason) in [
            ("(", "unclosed"),
            ("x*", "empty text"),
            ("(?:[\\w]{1,200}){1,200}", "larger than"),
        ] {
            let error = Redactor::new([pattern]).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert!(!error.help.is_empty());
        }
        assert!(Redactor::new(Vec::<&str>::new()).unwrap().is_empty());
    }
}
