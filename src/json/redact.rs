//! Secrets are taken out of texts.
//!
//! What a pattern matches is replaced by `[redacted]`, in decoded strings and innermost first: a string of JSON
//! that is the text of a string of JSON is decoded before it is searched, so that no escape hides a match and
//! none is cut in two. Of a log, the values of headers and members that authorize a request go as well, always.
//! A text of JSON stays JSON. This file must not know log formats or sessions.

use super::members::string;
use super::reader::Reader;
use super::value::quoted;
use crate::support::cancel::ensure;
use regex_automata::meta::Regex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// What replaces a secret.
const REDACTED: &str = "[redacted]";

/// How deep JSON in strings of JSON is read.
const LEVELS: u32 = 8;

/// The most bytes of a compiled pattern.
const PATTERN_BYTES: usize = 4 << 20;

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

/// A pattern whose matches are replaced by `[redacted]`.
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
    text: String,
    regex: Regex,
}

/// Keys that providers and services give out, by how they begin: of OpenAI and Anthropic, AWS, GitHub, Google, Slack,
/// Stripe, and private keys in PEM, whole or cut off, also where their line feeds are spelled with a backslash.
const KEYS: [&str; 7] = [
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{22,}",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,.-]*)",
];

impl Redaction {
    /// Reads a pattern, a regular expression without look-around, of linear time.
    ///
    /// # Errors
    /// Not a regular expression; one that matches the empty text; one that is too large when compiled.
    pub fn parse(pattern: &str) -> Result<Self, BadPattern> {
        let bad = |reason: String, help| BadPattern {
            pattern: pattern.to_owned(),
            reason,
            help,
        };
        let config = Regex::config().nfa_size_limit(Some(PATTERN_BYTES));
        let built = Regex::builder().configure(config).build(pattern);
        let regex = built.map_err(|error| match error.syntax_error() {
            Some(syntax) => bad(
                syntax.to_string(),
                "a `\\` before a sign takes its meaning away; there are no look-around and no back-references",
            ),
            None => bad(
                format!("it is larger than {} MB when compiled", PATTERN_BYTES >> 20),
                "repeat less, or smaller parts: `\\w+` instead of `\\w{1,200}`",
            ),
        })?;
        if regex.is_match("") {
            let help = "ask for one character at least: `x+` instead of `x*`";
            return Err(bad(
                "it matches the empty text, so it would match everywhere".to_owned(),
                help,
            ));
        }
        Ok(Self {
            text: pattern.to_owned(),
            regex,
        })
    }

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
        redact_log(json, patterns, &mut Redacted::default()).into_owned()
    }

    /// Any text without what the patterns match, also where it has JSON in it. Linear.
    #[must_use]
    pub fn apply_text(patterns: &[Self], text: &str) -> String {
        let mut counts = Redacted::default();
        let mut pass = RedactionPass::new(patterns, &mut counts, false);
        pass.text(text, LEVELS).unwrap_or_else(|| text.to_owned())
    }
}

/// How much was taken out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redacted {
    pub(crate) matches: Vec<u64>,
    /// Values that authorize a request.
    pub(crate) authorizing: u64,
}

/// Replaces the matches of patterns by `[redacted]`, and counts them.
///
/// ```
/// use pactql::inspect::share::Redactor;
/// let mut redactor = Redactor::new(["sk-[a-z0-9]+"])?;
/// assert_eq!(redactor.redact("the key is sk-abc123."), "the key is [redacted].");
/// assert_eq!(redactor.count(), 1);
/// # Ok::<(), pactql::logs::BadPattern>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    patterns: Vec<Redaction>,
    counts: Redacted,
}

impl Redactor {
    /// Replaces what matches one of `patterns`. Without any, nothing is replaced.
    /// Errors as [`Redaction::parse`].
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, BadPattern> {
        let patterns = patterns.into_iter();
        let patterns = patterns.map(|text| Redaction::parse(text.as_ref()));
        Ok(Self {
            patterns: patterns.collect::<Result<_, _>>()?,
            counts: Redacted::default(),
        })
    }

    /// How many matches were replaced so far.
    pub fn count(&self) -> u64 {
        self.counts.matches.iter().sum()
    }

    /// The patterns that matched nothing so far.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        let count = |at: usize| self.counts.matches.get(at).copied().unwrap_or(0);
        let patterns = self.patterns.iter().enumerate();
        let unmatched = patterns.filter(move |(at, _)| count(*at) == 0);
        unmatched.map(|(_, pattern)| &*pattern.text)
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The text without what matches, also in JSON that it is or has in it. Linear in the text for each pattern.
    pub fn redact<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let mut pass = RedactionPass::new(&self.patterns, &mut self.counts, false);
        pass.text(text, LEVELS)
            .map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

/// The text of a log, JSON or lines of it, without what the patterns match and without what authorizes a
/// request. Text that is not valid stays so. Linear.
pub(crate) fn redact_log<'a>(
    text: &'a str,
    patterns: &[Redaction],
    counts: &mut Redacted,
) -> Cow<'a, str> {
    let mut pass = RedactionPass::new(patterns, counts, true);
    if patterns.is_empty() && !may_authorize(text) {
        return Cow::Borrowed(text);
    }
    JsonScan::new(text, &mut pass, LEVELS)
        .run()
        .map_or(Cow::Borrowed(text), Cow::Owned)
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

/// Whether a text is the name of a span's attribute that is a secret header.
fn is_of_span(name: &str) -> bool {
    let header = ["http.request.header.", "http.response.header."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    header.is_some_and(is_secret)
}

/// Bytes that are passed over between two looks at the token of the work.
const PIECE: usize = 1 << 16;

/// More bytes than a mark of secrets has.
const OVERLAP: usize = 32;

/// Whether a text can have members that authorize a request. Most logs have none, and are not read closely.
fn may_authorize(text: &str) -> bool {
    // A name is a whole string, or the end of a span's attribute. Strings inside strings end with backslashes first. Or the
    // letters of a name are escapes.
    static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let names = SECRETS.join("|");
        Regex::new(&format!(r#"(?i-u)[".](?:{names})["\\]|\\u00(?:[4-7]|2d)"#)).ok()
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

/// One pass with some patterns.
struct RedactionPass<'p> {
    patterns: &'p [Redaction],
    counts: &'p mut Redacted,
    /// Whether what authorizes a request goes as well.
    is_log: bool,
}

impl<'p> RedactionPass<'p> {
    fn new(patterns: &'p [Redaction], counts: &'p mut Redacted, is_log: bool) -> Self {
        counts.matches.resize(patterns.len(), 0);
        Self {
            patterns,
            counts,
            is_log,
        }
    }

    /// A decoded text without what matches; `None` if that is all of it. First the strings in it, then the
    /// text itself.
    fn text(&mut self, text: &str, levels: u32) -> Option<String> {
        if self.patterns.is_empty() && !(self.is_log && may_authorize(text)) {
            return None;
        }
        let inner = levels.checked_sub(1).and_then(|levels| {
            if is_json(text) {
                JsonScan::new(text, self, levels).run()
            } else if text.contains('\\') {
                self.literals(text, levels)
            } else {
                None
            }
        });
        let mut found = inner;
        for at in 0..self.patterns.len() {
            let text = found.as_deref().unwrap_or(text);
            found = self.without(at, text).or(found);
        }
        found
    }

    /// A text without the matches of one pattern; `None` if it has none.
    fn without(&mut self, at: usize, text: &str) -> Option<String> {
        let pattern = self.patterns.get(at)?;
        let mut marks = memchr::memmem::find_iter(text.as_bytes(), REDACTED).peekable();
        let mut is_mark = |found: Range<usize>| {
            while marks
                .next_if(|mark| mark + REDACTED.len() <= found.start)
                .is_some()
            {}
            let mark = marks.peek();
            mark.is_some_and(|mark| *mark <= found.start && found.end <= mark + REDACTED.len())
        };
        let mut out = String::new();
        let (mut end, mut count) = (0, 0);
        for found in pattern.regex.find_iter(text) {
            // The mark of another pattern is not a secret.
            if is_mark(found.range()) {
                continue;
            }
            out.push_str(text.get(end..found.start())?);
            out.push_str(REDACTED);
            end = found.end();
            count += 1;
        }
        if count == 0 {
            return None;
        }
        out.push_str(text.get(end..)?);
        if let Some(all) = self.counts.matches.get_mut(at) {
            *all += count;
        }
        Some(out)
    }

    /// A text that is not JSON, without what matches in its string literals; `None` if they have nothing. A
    /// literal without escapes is as its text. Any quote may begin one.
    fn literals(&mut self, text: &str, levels: u32) -> Option<String> {
        let mut out = String::new();
        let (mut done, mut from) = (0, 0);
        while let Some(start) = memchr::memchr(b'"', text.as_bytes().get(from..)?) {
            let start = from + start;
            let end = match literal(text.as_bytes(), start) {
                Ok(end) => end,
                // Every quote up to there was escaped, and begins a literal that ends there as well.
                Err(end) => {
                    from = end;
                    continue;
                }
            };
            let raw = text.get(start..end).unwrap_or_default();
            // The quote at the end may begin the next one.
            from = end - 1;
            let decoded = Some(raw).filter(|raw| raw.contains('\\')).and_then(string);
            if let Some(redacted) = decoded.and_then(|decoded| self.text(&decoded, levels)) {
                out.push_str(text.get(done..start)?);
                out.push_str(&quoted(&redacted));
                (done, from) = (end, end);
            }
        }
        if done == 0 {
            return None;
        }
        out.push_str(text.get(done..)?);
        Some(out)
    }
}

/// Whether a text is one object, list or string of JSON.
fn is_json(text: &str) -> bool {
    if !text.trim_start().starts_with(['{', '[', '"']) {
        return false;
    }
    let mut reader = Reader::new(text);
    reader.skip_value().is_ok() && reader.end().is_ok()
}

/// Where the literal that begins at `start` ends, quotes included, or what breaks it off.
fn literal(text: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start + 1;
    loop {
        match text.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return Ok(at + 1),
            Some(0..=0x1f) => return Err(at),
            Some(_) => at += 1,
            None => return Err(text.len()),
        }
    }
}

/// An open list or object.
#[derive(Clone, Copy)]
struct OpenLevel {
    is_object: bool,
    /// Whether it is, or is in, what has headers.
    headers: bool,
    /// How many names of its members were replaced.
    renamed: u32,
}

/// The strings of a text of JSON, which need not be valid.
struct JsonScan<'a, 's, 'p> {
    text: &'a str,
    pass: &'s mut RedactionPass<'p>,
    levels: u32,
    open: Vec<OpenLevel>,
    /// The name of the member whose value comes next.
    key: Option<Cow<'a, str>>,
    /// Whether the next string is a secret.
    waiting: bool,
    out: String,
    /// Up to where the text is in `out`.
    copied: usize,
}

impl<'a, 's, 'p> JsonScan<'a, 's, 'p> {
    fn new(text: &'a str, pass: &'s mut RedactionPass<'p>, levels: u32) -> Self {
        Self {
            text,
            pass,
            levels,
            open: Vec::new(),
            key: None,
            waiting: false,
            out: String::new(),
            copied: 0,
        }
    }

    /// The text without secrets; `None` if it has none.
    fn run(mut self) -> Option<String> {
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
                    self.open.push(OpenLevel {
                        is_object: *byte == b'{',
                        headers: within || key.is_some_and(|key| has_headers(&key)),
                        renamed: 0,
                    });
                    at + 1
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.waiting = false;
                    at + 1
                }
                b'-' | b'0'..=b'9' if !self.pass.patterns.is_empty() => self.number(at),
                _ => at + 1,
            };
        }
        if self.copied == 0 {
            return None;
        }
        self.out.push_str(self.text.get(self.copied..)?);
        Some(self.out)
    }

    fn replace(&mut self, from: usize, to: usize, text: &str) {
        self.out
            .push_str(self.text.get(self.copied..from).unwrap_or_default());
        self.out.push_str(&quoted(text));
        self.copied = to;
    }

    /// Reads a string. Returns where it ends.
    fn string(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let end = match literal(bytes, start) {
            Ok(end) => end,
            // The next line is another record.
            Err(end) => {
                self.open.clear();
                return end.max(start + 1);
            }
        };
        let raw = self.text.get(start..end).unwrap_or_default();
        let decoded: Cow<'a, str> = if raw.contains('\\') {
            string(raw).unwrap_or_default()
        } else {
            Cow::Borrowed(raw.get(1..raw.len() - 1).unwrap_or_default())
        };
        let rest = bytes.get(end..).unwrap_or_default();
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        let is_object = self.open.last().is_some_and(|open| open.is_object);
        if is_object && next == Some(&b':') {
            self.waiting = self.waiting || self.is_secret_member(&decoded);
            self.rename(start, end, &decoded);
            self.key = Some(decoded);
            return end;
        }
        self.key = None;
        if std::mem::take(&mut self.waiting) {
            self.pass.counts.authorizing += 1;
            self.replace(start, end, REDACTED);
            return end;
        }
        if self.pass.is_log {
            let headers = self.open.last().is_some_and(|open| open.headers);
            self.waiting = (headers && is_secret(&decoded)) || is_of_span(&decoded);
        }
        if let Some(text) = self.pass.text(&decoded, self.levels) {
            self.replace(start, end, &text);
        }
        end
    }

    /// Replaces what matches in the name of a member. Names of letters, `_`, `-` and `.` alone say what a value
    /// is, and stay.
    fn rename(&mut self, start: usize, end: usize, name: &str) {
        let is_plain = |byte: u8| byte.is_ascii_alphabetic() || b"_-.".contains(&byte);
        if name.bytes().all(is_plain) {
            return;
        }
        if let Some(mut text) = self.pass.text(name, self.levels)
            && let Some(open) = self.open.last_mut()
        {
            open.renamed += 1;
            // No name is twice in an object.
            if open.renamed > 1 {
                text = format!("{text} {}", open.renamed);
            }
            self.replace(start, end, &text);
        }
    }

    /// Whether the value of a member authorizes a request: among headers, and near the top of a record.
    fn is_secret_member(&self, name: &str) -> bool {
        if !self.pass.is_log {
            return false;
        }
        if is_of_span(name) {
            return true;
        }
        let headers = self.open.last().is_some_and(|open| open.headers);
        // A list of records has them one deeper.
        let inner = match self.open.split_first() {
            Some((first, rest)) if !first.is_object => rest,
            _ => &self.open,
        };
        let is_record = self.levels == LEVELS;
        let near = is_record && inner.len() <= 3 && inner.iter().all(|open| open.is_object);
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
        if let Some(text) = self.pass.text(raw, 0) {
            self.replace(start, end, &text);
        }
        end
    }
}
