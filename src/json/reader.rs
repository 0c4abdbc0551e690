//! A pull reader over JSON text, for documents that are read once and kept as text.
//!
//! It borrows everything: numbers and skipped values are slices of the text, strings stay
//! escaped until decoded. It does not recurse, and it checks what a general parser accepts: a
//! key given twice in one object, lone surrogates, numbers outside the range of a double, and
//! nesting beyond [`MAX_NESTING`]. It knows JSON and nothing of trees.
//!
//! Problems are of two kinds, both listed in [`Reader::problems`]. Where the text is not JSON, or
//! nests too deep, methods return [`Halt`]. Others are noted and reading goes on, so that one pass
//! finds them all.

use std::borrow::Cow;

use super::text::{Text, find_special, hex4, shorten};
use crate::support::cancel::stopped;

/// How deep arrays and objects may nest in one value.
pub const MAX_NESTING: usize = 1_000;

/// How many problems are kept. Further ones are counted, so memory stays linear in the input.
pub const MAX_PROBLEMS: usize = 100;

/// Reading cannot go on. The reason is the last entry of [`Reader::problems`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is not JSON, or nests too deep")]
pub struct Halt;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Not JSON; what was expected.
    Syntax(&'static str),
    /// More than [`MAX_NESTING`] levels.
    TooDeep,
    /// A key the object already has.
    DuplicateKey(String),
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// A number that is not a finite double, such as `1e400`.
    NumberRange,
    /// None: the reading was cancelled.
    Cancelled,
}

/// A problem and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Byte offset in the text.
    pub offset: usize,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// Receives the places of strings, arrays and objects from [`Reader::skip_marking`], in the order of the text.
/// Offsets count from the start of the reader's text. Keys are left out.
pub(crate) trait Marks {
    /// A string, with its quotes.
    fn string(&mut self, start: usize, end: usize);

    /// An array or object begins.
    fn open(&mut self, start: usize);

    /// The innermost open one ends before `end`.
    fn close(&mut self, end: usize);
}

impl Marks for () {
    #[inline(always)]
    fn string(&mut self, _: usize, _: usize) {}

    #[inline(always)]
    fn open(&mut self, _: usize) {}

    #[inline(always)]
    fn close(&mut self, _: usize) {}
}

/// A key of an open object, kept to find duplicates.
struct OpenKey<'a> {
    name: Cow<'a, str>,
    at: usize,
}

/// Bytes that are read between two looks at the token of the work.
const LOOK: usize = 1 << 16;

/// Objects with at most this many keys are checked for duplicates pairwise, others by sorting.
const PAIRWISE_KEYS: usize = 8;

/// An open array on the stack of [`Reader::skip_value`]; an object is the index of its first key.
const ARRAY: usize = usize::MAX;

/// The reader. Its callers keep track of the objects and arrays they open with `begin_…` and
/// `next_…`; [`Reader::skip_value`] keeps its own stack.
///
/// Small methods are always inlined: they run a dozen times a node, and their results should
/// stay in registers.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    keys: Vec<OpenKey<'a>>,
    open: Vec<usize>,
    problems: Vec<Problem>,
    uncounted: usize,
    /// Where to look next whether the work is cancelled.
    look: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            keys: Vec::new(),
            open: Vec::new(),
            problems: Vec::new(),
            uncounted: 0,
            look: LOOK,
        }
    }

    pub fn offset(&self) -> usize {
        self.at
    }

    /// The problems in the order found; at most [`MAX_PROBLEMS`] and a halt.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub fn uncounted(&self) -> usize {
        self.uncounted
    }

    #[cold]
    pub(crate) fn note(&mut self, offset: usize, kind: ProblemKind) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { offset, kind });
        } else {
            self.uncounted += 1;
        }
    }

    /// Stops reading at `offset`. It does not return a `Result`, as one that goes through memory
    /// would keep those of the callers out of registers.
    #[cold]
    fn halt(&mut self, offset: usize, kind: ProblemKind) -> Halt {
        self.problems.push(Problem { offset, kind });
        Halt
    }

    /// Looks from time to time whether the work is cancelled. Errors: [`Halt`] if it is.
    #[inline(always)]
    pub(crate) fn go_on(&mut self) -> Result<(), Halt> {
        if self.at < self.look {
            Ok(())
        } else {
            self.look()
        }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Halt> {
        self.look = self.at + LOOK;
        if stopped() {
            Err(self.halt(self.at, ProblemKind::Cancelled))
        } else {
            Ok(())
        }
    }

    /// Stops reading here.
    #[cold]
    pub(crate) fn expected(&mut self, what: &'static str) -> Halt {
        self.halt(self.at, ProblemKind::Syntax(what))
    }

    /// Stops reading at `offset` because nesting went too deep.
    #[cold]
    pub(crate) fn too_deep(&mut self, offset: usize) -> Halt {
        self.halt(offset, ProblemKind::TooDeep)
    }

    /// Skips white space and returns the next byte without taking it; `None` at the end.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Takes `byte` if it is next.
    #[inline(always)]
    pub fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes `{`.
    ///
    /// # Errors
    /// [`Halt`] if something else is next.
    pub fn begin_object(&mut self) -> Result<(), Halt> {
        if self.take(b'{') {
            return Ok(());
        }
        Err(self.expected("an object"))
    }

    /// In an object: takes the next key and its colon and returns the key and the offset of its
    /// quote, or takes the brace and returns `None`. `first` is true before the first member.
    ///
    /// # Errors
    /// [`Halt`] if neither is next.
    #[inline(always)]
    pub fn next_key(&mut self, first: bool) -> Result<Option<(Text<'a>, usize)>, Halt> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.peek();
            }
            Some(b'"') if first => {}
            _ if first => return Err(self.expected("a key in double quotes or `}`")),
            _ => return Err(self.expected("`,` or `}`")),
        }
        let at = self.at;
        if self.text.as_bytes().get(at) != Some(&b'"') {
            return Err(self.expected("a key in double quotes"));
        }
        let key = self.string()?;
        if !self.take(b':') {
            return Err(self.expected("`:`"));
        }
        Ok(Some((key, at)))
    }

    /// In an array: returns true before another element, whose comma is taken, or takes the
    /// bracket and returns false. `first` is true before the first element.
    ///
    /// # Errors
    /// [`Halt`] if neither is next.
    #[inline(always)]
    pub fn next_element(&mut self, first: bool) -> Result<bool, Halt> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                if self.peek() == Some(b']') {
                    return Err(self.expected("a value"));
                }
                Ok(true)
            }
            Some(_) if first => Ok(true),
            _ if first => Err(self.expected("a value or `]`")),
            _ => Err(self.expected("`,` or `]`")),
        }
    }

    /// Takes a string.
    ///
    /// # Errors
    /// [`Halt`] if the next value is not a well-formed string.
    #[inline(always)]
    pub fn string(&mut self) -> Result<Text<'a>, Halt> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = find_special(bytes, start);
        let escaped = bytes.get(end) != Some(&b'"');
        if escaped {
            end = self.long_string(end)?;
        }
        self.at = end + 1;
        Ok(Text {
            raw: &self.text[start..end],
            escaped,
        })
    }

    /// The end of a string whose first special byte, at `at`, is not its end. It does not return a
    /// [`Text`], which would go through memory also for strings without escapes.
    fn long_string(&mut self, mut at: usize) -> Result<usize, Halt> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at) {
                Some(b'"') => return Ok(at),
                Some(b'\\') => at = self.escape(at)?,
                Some(_) => {
                    let what = "no control character inside a string";
                    return Err(self.halt(at, ProblemKind::Syntax(what)));
                }
                None => return Err(self.halt(at, ProblemKind::Syntax("the end of the string"))),
            }
            at = find_special(bytes, at);
        }
    }

    /// Checks the escape at `at` and returns its end.
    #[inline]
    fn escape(&mut self, at: usize) -> Result<usize, Halt> {
        let bytes = self.text.as_bytes();
        match bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => {
                let Some(unit) = hex4(bytes, at + 2) else {
                    return Err(self.halt(at, ProblemKind::Syntax("four hex digits after `\\u`")));
                };
                if !(0xD800..0xE000).contains(&unit) {
                    return Ok(at + 6);
                }
                if unit < 0xDC00
                    && bytes.get(at + 6..at + 8) == Some(b"\\u")
                    && hex4(bytes, at + 8).is_some_and(|low| (0xDC00..0xE000).contains(&low))
                {
                    return Ok(at + 12);
                }
                self.note(at, ProblemKind::LoneSurrogate);
                Ok(at + 6)
            }
            _ => Err(self.halt(at, ProblemKind::Syntax("a valid escape"))),
        }
    }

    /// Takes a number, and returns it as written.
    ///
    /// # Errors
    /// [`Halt`] if the next value is not a well-formed number.
    #[inline]
    pub fn number(&mut self) -> Result<&'a str, Halt> {
        self.peek();
        let bytes = self.text.as_bytes();
        let start = self.at;
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
        match bytes.get(at) {
            Some(b'0') => at += 1,
            Some(b'1'..=b'9') => at = digits(at + 1),
            _ => return Err(self.halt(at, ProblemKind::Syntax("a digit"))),
        }
        let mut integer = true;
        if bytes.get(at) == Some(&b'.') {
            integer = false;
            let end = digits(at + 1);
            if end == at + 1 {
                return Err(self.halt(end, ProblemKind::Syntax("a digit after the point")));
            }
            at = end;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            integer = false;
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            let end = digits(at);
            if end == at {
                return Err(self.halt(end, ProblemKind::Syntax("a digit in the exponent")));
            }
            at = end;
        }
        self.at = at;
        let raw = &self.text[start..at];
        if !integer && !raw.parse::<f64>().is_ok_and(f64::is_finite) {
            self.note(start, ProblemKind::NumberRange);
        }
        Ok(raw)
    }

    /// Takes an integer that an `i64` holds. Returns `None` and takes nothing but white space if
    /// something else is next.
    #[inline(always)]
    pub fn integer(&mut self) -> Option<i64> {
        self.peek();
        let rest = self.text.as_bytes().get(self.at..)?;
        let negative = rest.first() == Some(&b'-');
        let digits = rest.get(usize::from(negative)..)?;
        let (mut value, mut length) = (0u64, 0usize);
        while let Some(digit @ b'0'..=b'9') = digits.get(length) {
            // A `u64` holds every number of 19 digits, as nanoseconds since 1970 have.
            if length == 19 {
                return None;
            }
            value = value * 10 + u64::from(digit - b'0');
            length += 1;
        }
        let leading_zero = length > 1 && digits.first() == Some(&b'0');
        if length == 0 || leading_zero || matches!(digits.get(length), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        let value = if negative {
            0i64.checked_sub_unsigned(value)?
        } else {
            i64::try_from(value).ok()?
        };
        self.at += usize::from(negative) + length;
        Some(value)
    }

    /// Takes `true`, `false` or `null` and returns it.
    ///
    /// # Errors
    /// [`Halt`] if none of them is next.
    pub fn literal(&mut self) -> Result<&'a str, Halt> {
        self.peek();
        let rest = &self.text.as_bytes()[self.at..];
        for word in ["null", "true", "false"] {
            if rest.starts_with(word.as_bytes()) {
                let raw = &self.text[self.at..self.at + word.len()];
                self.at += word.len();
                return Ok(raw);
            }
        }
        Err(self.expected("a value"))
    }

    /// Takes a whole value with every check and returns it as written. Linear time, plus sorting
    /// of the keys of large objects; memory for the keys of the open objects.
    ///
    /// # Errors
    /// [`Halt`] if it is not JSON or nests too deep.
    #[inline(always)]
    pub fn skip_value(&mut self) -> Result<&'a str, Halt> {
        self.skip_marking(&mut ())
    }

    /// As [`Reader::skip_value`], and says where in the text its strings, arrays and objects are.
    #[inline(always)]
    pub(crate) fn skip_marking(&mut self, marks: &mut impl Marks) -> Result<&'a str, Halt> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => {
                self.string()?;
                marks.string(start, self.at);
            }
            Some(b'-' | b'0'..=b'9') => _ = self.number()?,
            Some(b'{' | b'[') => {
                let base = self.keys.len();
                let outcome = self.skip_nested(marks);
                self.keys.truncate(base);
                self.open.clear();
                outcome?;
            }
            _ => drop(self.literal()?),
        }
        Ok(&self.text[start..self.at])
    }

    fn skip_nested(&mut self, marks: &mut impl Marks) -> Result<(), Halt> {
        loop {
            self.go_on()?;
            // A value comes next.
            match self.peek() {
                Some(b'"') => {
                    let start = self.at;
                    self.string()?;
                    marks.string(start, self.at);
                }
                Some(b'-' | b'0'..=b'9') => _ = self.number()?,
                Some(open @ (b'{' | b'[')) => {
                    if self.open.len() == MAX_NESTING {
                        return Err(self.too_deep(self.at));
                    }
                    marks.open(self.at);
                    self.at += 1;
                    if open == b'{' {
                        self.open.push(self.keys.len());
                        if self.push_key(true)? {
                            continue;
                        }
                    } else {
                        self.open.push(ARRAY);
                        if self.next_element(true)? {
                            continue;
                        }
                    }
                    marks.close(self.at);
                    self.open.pop();
                }
                _ => drop(self.literal()?),
            }
            // A value has ended, and with it the containers it was the last of.
            loop {
                let Some(&keys) = self.open.last() else {
                    return Ok(());
                };
                let more = if keys == ARRAY {
                    self.next_element(false)?
                } else {
                    self.push_key(false)?
                };
                if more {
                    break;
                }
                if keys != ARRAY {
                    self.check_keys(keys);
                }
                marks.close(self.at);
                self.open.pop();
            }
        }
    }

    /// Reads a key of a skipped object and keeps it. Returns false at the end of the object.
    fn push_key(&mut self, first: bool) -> Result<bool, Halt> {
        let Some((key, at)) = self.next_key(first)? else {
            return Ok(false);
        };
        self.keys.push(OpenKey {
            name: key.decode(),
            at,
        });
        Ok(true)
    }

    /// Notes the duplicates among the keys from `base` on and drops these keys.
    fn check_keys(&mut self, base: usize) {
        let keys = &mut self.keys[base..];
        let mut twice = Vec::new();
        if keys.len() <= PAIRWISE_KEYS {
            for (index, key) in keys.iter().enumerate() {
                if keys[..index].iter().any(|other| other.name == key.name) {
                    twice.push(index);
                }
            }
        } else {
            keys.sort_unstable_by(|a, b| a.name.cmp(&b.name).then(a.at.cmp(&b.at)));
            twice.extend((1..keys.len()).filter(|&i| keys[i].name == keys[i - 1].name));
        }
        for index in twice {
            let key = &self.keys[base + index];
            let (at, name) = (key.at, shorten(&key.name));
            self.note(at, ProblemKind::DuplicateKey(name));
        }
        self.keys.truncate(base);
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    /// [`Halt`] otherwise.
    pub fn end(&mut self) -> Result<(), Halt> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the document")),
        }
    }
}
