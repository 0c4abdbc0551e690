//! Taking secrets out of the text of a log, before anything of it is read.
//!
//! Two kinds go: the values of headers and members that authorize a request, always; and what matches
//! a pattern of the caller, in every string and number, names of members aside. The text stays JSON.
//! This file must not know log formats.

use super::json::quoted;
use super::report::Report;
use crate::json::string;
use crate::support::cancel::ensure;
use regex_automata::meta::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What replaces a secret.
const REDACTED: &str = "[redacted]";

/// A pattern whose matches are replaced in a log before it is read, by `[redacted]`.
///
/// ```
/// use pactql::logs::{ImportOptions, Redaction, import};
/// let options = ImportOptions {
///     redact: vec![Redaction::parse("sk-[a-z0-9]+")?],
///     ..ImportOptions::default()
/// };
/// let log = br#"[{"role":"user","content":"my key is sk-123abc"}]"#;
/// let imported = import(log, &options)?;
/// let mut out = Vec::new();
/// imported.sessions[0].recording.write_jsonl(&mut out, false)?;
/// assert!(String::from_utf8(out)?.contains("my key is [redacted]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Redaction {
    regex: Regex,
}

impl Redaction {
    /// Reads a pattern, a regular expression without look-around, of linear time.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("the pattern is not valid: {error}");
        let regex = Regex::new(pattern).map_err(|error| match error.syntax_error() {
            Some(syntax) => wrong(syntax),
            None => wrong(&error),
        })?;
        if regex.is_match("") {
            Err("the pattern matches the empty text, so it would match everywhere".into())
        } else {
            Ok(Self { regex })
        }
    }

    /// A text without the matches, and how many there were; `None` if there are none.
    fn replaced(&self, text: &str) -> Option<(String, u64)> {
        let mut out = String::new();
        let (mut end, mut count) = (0, 0);
        for found in self.regex.find_iter(text) {
            out.push_str(text.get(end..found.start())?);
            out.push_str(REDACTED);
            end = found.end();
            count += 1;
        }
        out.push_str(text.get(end..)?);
        (count > 0).then_some((out, count))
    }
}

/// Headers and members that authorize a request.
const SECRETS: [&str; 10] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "api-key",
    "api_key",
    "apikey",
    "x-api-key",
    "x-goog-api-key",
    "x-amz-security-token",
];

fn is_secret(name: &str) -> bool {
    SECRETS
        .iter()
        .any(|secret| name.eq_ignore_ascii_case(secret))
}

/// Whether a member has headers.
fn has_headers(name: &str) -> bool {
    let ending = name.len().checked_sub("headers".len());
    let ending = ending.and_then(|at| name.get(at..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("headers"))
}

/// Attributes of spans that are headers begin so.
const OF_SPAN: [&str; 2] = ["http.request.header.", "http.response.header."];

/// Whether a text names a secret header of a span.
fn is_of_span(name: &str) -> bool {
    let header = OF_SPAN.iter().find_map(|prefix| name.strip_prefix(prefix));
    header.is_some_and(is_secret)
}

/// Bytes that are passed over between two looks at the token.
const PIECE: usize = 1 << 16;

/// More bytes than a mark of secrets has.
const OVERLAP: usize = 32;

/// Whether a text can have secrets of its own. Most logs have not, and are not looked at closely.
fn may_have_secrets(text: &str) -> bool {
    static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let marks = "uthorization|eaders\"|EADERS\"|http\\.re|pi_key|pi-key|pikey";
        Regex::new(marks).ok()
    });
    // By pieces that overlap by more than a mark has, to look in between whether the work is cancelled.
    let mut pieces = (0..text.len()).step_by(PIECE);
    MARKS.as_ref().is_none_or(|marks| {
        pieces.any(|start| {
            let start = text.floor_char_boundary(start);
            let end = text.ceil_char_boundary(start + PIECE + OVERLAP);
            let piece = text.get(start..end).unwrap_or_default();
            ensure();
            marks.is_match(piece)
        })
    })
}

/// Keys that providers and services give out, by how they begin: of OpenAI and Anthropic, AWS, GitHub, Google, Slack,
/// Stripe, and private keys in PEM.
const KEYS: [&str; 7] = [
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{22,}",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
];

impl Redaction {
    /// Patterns of the keys that providers and well-known services give out, by how they begin.
    ///
    /// ```
    /// use pactql::logs::Redaction;
    /// let text = r#"{"content":"my key is sk-proj-0123456789abcdefghij, my name is Ada"}"#;
    /// let clean = Redaction::apply(&Redaction::keys(), text);
    /// assert_eq!(clean, r#"{"content":"my key is [redacted], my name is Ada"}"#);
    /// ```
    #[must_use]
    pub fn keys() -> Vec<Self> {
        // A test reads all of them.
        KEYS.iter()
            .filter_map(|pattern| Self::parse(pattern).ok())
            .collect()
    }

    /// A JSON text without what the patterns match, and without members that authorize a request. Linear.
    #[must_use]
    pub fn apply(patterns: &[Self], json: &str) -> String {
        redact(json, patterns, &mut Report::default()).into_owned()
    }
}

/// The text without secrets. What was taken out is counted. Linear.
pub(super) fn redact<'a>(
    text: &'a str,
    patterns: &[Redaction],
    report: &mut Report,
) -> Cow<'a, str> {
    for number in 1..=patterns.len() {
        report.redacted(&format!("pattern {number}"), 0);
    }
    if patterns.is_empty() && !may_have_secrets(text) {
        return Cow::Borrowed(text);
    }
    let mut scan = Scan {
        text,
        patterns,
        report,
        open: Vec::new(),
        key: None,
        waiting: false,
        out: String::new(),
        copied: 0,
    };
    scan.run();
    let (mut out, copied) = (scan.out, scan.copied);
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// An open list or object.
#[derive(Clone, Copy)]
struct Open {
    is_object: bool,
    /// Whether it is, or is in, what has headers.
    headers: bool,
}

/// A pass over a text, which need not be valid JSON.
struct Scan<'a, 'p, 'r> {
    text: &'a str,
    patterns: &'p [Redaction],
    report: &'r mut Report,
    open: Vec<Open>,
    /// The name of the member whose value comes next.
    key: Option<Cow<'a, str>>,
    /// Whether the next string is a secret.
    waiting: bool,
    out: String,
    /// Up to where the text is in `out`.
    copied: usize,
}

impl<'a> Scan<'a, '_, '_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut at, mut look) = (0, PIECE);
        while let Some(byte) = bytes.get(at) {
            if at >= look {
                ensure();
                look = at + PIECE;
            }
            at = match byte {
                b'"' => self.string(at),
                b'{' | b'[' => {
                    let within = self.open.last().is_some_and(|open| open.headers);
                    let key = self.key.take();
                    self.open.push(Open {
                        is_object: *byte == b'{',
                        headers: within || key.is_some_and(|key| has_headers(&key)),
                    });
                    at + 1
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.waiting = false;
                    at + 1
                }
                b'-' | b'0'..=b'9' if !self.patterns.is_empty() => self.number(at),
                _ => at + 1,
            };
        }
    }

    fn replace(&mut self, from: usize, to: usize, value: &str) {
        self.out
            .push_str(self.text.get(self.copied..from).unwrap_or_default());
        self.out.push_str(value);
        self.copied = to;
    }

    /// Reads a string. Returns where it ends. One with a line feed in it is broken off.
    fn string(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        let mut escaped = false;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(b'\n') | None => {
                    // The next line starts again.
                    self.open.clear();
                    return end;
                }
                Some(_) => end += 1,
            }
        }
        end += 1;
        let raw = self.text.get(start..end).unwrap_or_default();
        let decoded: Cow<'a, str> = if escaped {
            string(raw).unwrap_or_default()
        } else {
            Cow::Borrowed(raw.get(1..raw.len() - 1).unwrap_or_default())
        };
        let rest = bytes.get(end..).unwrap_or_default();
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        let is_object = self.open.last().is_some_and(|open| open.is_object);
        if is_object && next == Some(&b':') {
            self.waiting = self.waiting || self.is_secret_member(&decoded);
            self.key = Some(decoded);
            return end;
        }
        self.key = None;
        if std::mem::take(&mut self.waiting) {
            self.report.redacted("headers and keys", 1);
            self.replace(start, end, &quoted(REDACTED));
            return end;
        }
        let headers = self.open.last().is_some_and(|open| open.headers);
        self.waiting = (headers && is_secret(&decoded)) || is_of_span(&decoded);
        if let Some(text) = self.without_matches(&decoded) {
            self.replace(start, end, &quoted(&text));
        }
        end
    }

    /// Whether the value of a member is a secret: among headers, and near the top of a record.
    fn is_secret_member(&self, name: &str) -> bool {
        if is_of_span(name) {
            return true;
        }
        let headers = self.open.last().is_some_and(|open| open.headers);
        // A list of records has them one deeper.
        let inner = match self.open.split_first() {
            Some((first, rest)) if !first.is_object => rest,
            _ => &self.open,
        };
        let near = inner.len() <= 3 && inner.iter().all(|open| open.is_object);
        (headers || near) && is_secret(name)
    }

    /// Reads a number. Returns where it ends.
    fn number(&mut self, start: usize) -> usize {
        self.key = None;
        let rest = self.text.get(start..).unwrap_or_default();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let end = start + length.max(1);
        let raw = self.text.get(start..end).unwrap_or_default();
        if let Some(text) = self.without_matches(raw) {
            self.replace(start, end, &quoted(&text));
        }
        end
    }

    /// A text without what the patterns match; `None` if they match nothing.
    fn without_matches(&mut self, text: &str) -> Option<String> {
        let mut found: Option<String> = None;
        for (at, pattern) in self.patterns.iter().enumerate() {
            if let Some((text, count)) = pattern.replaced(found.as_deref().unwrap_or(text)) {
                self.report.redacted(&format!("pattern {}", at + 1), count);
                found = Some(text);
            }
        }
        found
    }
}

/// The text with U+FFFD in the place of halves of surrogate pairs, and the lines that have them, from 1;
/// `None` if there are none.
pub(super) fn mend_surrogates(text: &str) -> Option<(String, Vec<usize>)> {
    let unit = |at: usize| {
        let escape = text.get(at..at.checked_add(6)?)?;
        let digits = escape.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut copied) = (String::new(), 0);
    let mut lines: Vec<usize> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    let mut next = memchr::memchr(b'\\', text.as_bytes());
    while let Some(at) = next {
        let length = match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(text.get(copied..at)?);
                out.push_str("\\ufffd");
                copied = at + 6;
                let passed = text.as_bytes().get(counted..at).unwrap_or_default();
                line += memchr::memchr_iter(b'\n', passed).count();
                counted = at;
                if lines.last() != Some(&line) {
                    lines.push(line);
                }
                6
            }
            // The other escapes have one letter, of which the code of a letter needs no care.
            _ => 2,
        };
        let after = at + length;
        let rest = text.as_bytes().get(after..).unwrap_or_default();
        next = memchr::memchr(b'\\', rest).map(|found| after + found);
    }
    if copied == 0 {
        return None;
    }
    out.push_str(text.get(copied..)?);
    Some((out, lines))
}
