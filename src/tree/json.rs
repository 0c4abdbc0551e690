//! A pull reader over JSON text, for documents that are read once and kept as text.
//!
//! The reader borrows everything: numbers and skipped values come back as the slices they were
//! written as, strings stay escaped until asked for. It keeps an explicit stack (no recursion on
//! input depth) and checks what a general parser lets pass: a key given twice in one object,
//! lone surrogates, numbers outside the range of a double, nesting beyond [`MAX_NESTING`].
//! It knows JSON and nothing of trees.
//!
//! Problems come in two sorts. Where the text stops being JSON (or nests too deep) reading halts:
//! methods answer [`Halt`] and the place is in [`Reader::problems`]. The other three are noted
//! there too, and reading goes on, so that one pass finds them all.

use std::borrow::Cow;

/// How many arrays and objects may stand inside one another in one value.
pub const MAX_NESTING: usize = 1_000;

/// How many problems are kept; further ones are only counted, so memory stays linear in the
/// input.
pub const MAX_PROBLEMS: usize = 100;

/// Reading cannot go on. The reason is the last entry of [`Reader::problems`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Not JSON: what was expected instead.
    Syntax(&'static str),
    /// More than [`MAX_NESTING`] levels.
    TooDeep,
    /// A key that the same object already has.
    DuplicateKey(String),
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// A number that is no finite double, such as `1e400`.
    NumberRange,
}

/// A problem and the byte where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Byte offset in the text.
    pub offset: usize,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// A string as written: the text between the quotes.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The text between the quotes, escapes as written.
    pub raw: &'a str,
    /// Whether it holds escapes.
    pub escaped: bool,
}

impl<'a> Text<'a> {
    /// The string meant. Borrowed unless there are escapes; a lone surrogate (reported when it
    /// was read) becomes U+FFFD.
    #[must_use]
    pub fn decode(self) -> Cow<'a, str> {
        if self.escaped {
            Cow::Owned(unescape(self.raw))
        } else {
            Cow::Borrowed(self.raw)
        }
    }
}

/// A number as written.
#[derive(Clone, Copy, Debug)]
pub struct Number<'a> {
    /// Its text.
    pub raw: &'a str,
    /// Whether it has neither fraction nor exponent.
    pub integer: bool,
}

/// The string a raw JSON string body means. Escapes must be well-formed; a lone surrogate becomes
/// U+FFFD.
#[must_use]
pub fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let bytes = rest.as_bytes();
        let letter = bytes.get(at + 1).copied().unwrap_or(b'\\');
        let mut next = at + 2;
        match letter {
            b'n' => out.push('\n'),
            b't' => out.push('\t'),
            b'r' => out.push('\r'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'u' => {
                let unit = hex4(bytes, at + 2).unwrap_or(0xFFFD);
                next = at + 6;
                let mut scalar = u32::from(unit);
                if (0xD800..0xDC00).contains(&unit)
                    && bytes.get(at + 6..at + 8) == Some(b"\\u")
                    && let Some(low) = hex4(bytes, at + 8)
                    && (0xDC00..0xE000).contains(&low)
                {
                    scalar = 0x10000 + ((u32::from(unit) - 0xD800) << 10) + u32::from(low) - 0xDC00;
                    next = at + 12;
                }
                out.push(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => out.push(char::from(other)),
        }
        rest = rest.get(next..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 4)?;
    let mut unit = 0u16;
    for &digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return None,
        };
        unit = unit << 4 | u16::from(value);
    }
    Some(unit)
}

/// The first byte at or after `at` that is a quote, a backslash or a control character; the
/// length of `bytes` where there is none. Eight bytes at a time: in a word, the lowest flagged
/// byte is exact, and only that one is used.
#[inline]
pub(crate) fn find_special(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const fn special(word: u64) -> u64 {
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        ((word.wrapping_sub(ONES * 0x20) & !word)
            | (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash))
            & HIGH
    }
    while let Some(Ok(chunk)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let flags = special(u64::from_le_bytes(chunk));
        if flags != 0 {
            return at + (flags.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            return at;
        }
        at += 1;
    }
    at
}

/// A key of an object that is being read, for finding the second of two equal ones.
struct Key<'a> {
    name: Cow<'a, str>,
    at: usize,
}

/// Objects with more keys than this are sorted to find duplicates instead of compared pairwise.
const PAIRWISE_KEYS: usize = 8;

/// Marks an open array on the stack of [`Reader::skip_value`]; objects keep where their keys
/// start.
const ARRAY: usize = usize::MAX;

/// The reader. Small methods are inlined by force: they are called a dozen times a node, and
/// what they answer should stay in registers. Methods for structure (`begin_…`, `next_…`) leave the keeping of open objects and
/// arrays to the caller; [`Reader::skip_value`] keeps its own.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    keys: Vec<Key<'a>>,
    open: Vec<usize>,
    problems: Vec<Problem>,
    uncounted: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            keys: Vec::new(),
            open: Vec::new(),
            problems: Vec::new(),
            uncounted: 0,
        }
    }

    /// The whole text.
    #[must_use]
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// Goes on at `offset`, which must be at a character's start.
    pub(crate) fn go_to(&mut self, offset: usize) {
        self.at = offset;
    }

    /// The byte reading has come to.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Problems so far, in the order found; at most [`MAX_PROBLEMS`] and a halt.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many problems were found beyond those kept.
    #[must_use]
    pub fn uncounted(&self) -> usize {
        self.uncounted
    }

    /// Notes a problem that does not stop reading.
    #[cold]
    pub(crate) fn note(&mut self, offset: usize, kind: ProblemKind) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { offset, kind });
        } else {
            self.uncounted += 1;
        }
    }

    /// Stops reading at `offset`. (It answers no `Result`: one that is passed through memory here
    /// would keep the caller's results out of registers.)
    #[cold]
    fn halt(&mut self, offset: usize, kind: ProblemKind) -> Halt {
        self.problems.push(Problem { offset, kind });
        Halt
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

    /// The next byte that is not white space, without taking it; `None` at the end.
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

    /// Takes `byte` if it comes next.
    #[inline(always)]
    pub fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes `{`.
    ///
    /// # Errors
    /// [`Halt`] when something else comes next.
    pub fn begin_object(&mut self) -> Result<(), Halt> {
        if self.take(b'{') {
            return Ok(());
        }
        Err(self.expected("an object"))
    }

    /// In an object: the next key and the offset of its quote, with the colon taken; `None` when
    /// the object ended (and its brace was taken). `first` says that no member was read yet.
    ///
    /// # Errors
    /// [`Halt`] when neither comes next.
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
            _ if first => return Err(self.expected("a key or `}`")),
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

    /// In an array: whether another element follows (the comma before it is taken), or the array
    /// ended (its bracket is taken). `first` says that no element was read yet.
    ///
    /// # Errors
    /// [`Halt`] when neither comes next.
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
    /// [`Halt`] when the next value is no well-formed string.
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

    /// Where a string ends whose first special byte, at `at`, is not its end. (The answer fits
    /// registers; a whole [`Text`] would go through memory, also for strings without escapes.)
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

    /// Checks the escape at `at`; answers where it ends.
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

    /// Takes a number.
    ///
    /// # Errors
    /// [`Halt`] when the next value is no well-formed number.
    #[inline]
    pub fn number(&mut self) -> Result<Number<'a>, Halt> {
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
        Ok(Number { raw, integer })
    }

    /// Takes an integer of at most 18 digits if one comes next; else takes nothing, and what comes
    /// may be anything.
    #[inline(always)]
    pub fn short_integer(&mut self) -> Option<i64> {
        self.peek();
        let rest = self.text.as_bytes().get(self.at..)?;
        let negative = rest.first() == Some(&b'-');
        let digits = rest.get(usize::from(negative)..)?;
        let (mut value, mut length) = (0i64, 0usize);
        while let Some(digit @ b'0'..=b'9') = digits.get(length) {
            if length == 18 {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
            length += 1;
        }
        let leading_zero = length > 1 && digits.first() == Some(&b'0');
        if length == 0 || leading_zero || matches!(digits.get(length), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.at += usize::from(negative) + length;
        Some(if negative { -value } else { value })
    }

    /// Takes `true`, `false` or `null`, and answers it.
    ///
    /// # Errors
    /// [`Halt`] when none of them comes next.
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

    /// Takes a whole value with every check, and answers it as written. Linear time (with a
    /// logarithmic factor for objects of many keys); memory for the keys of the open objects.
    ///
    /// # Errors
    /// [`Halt`] where it is not JSON or nests too deep.
    #[inline(always)]
    pub fn skip_value(&mut self) -> Result<&'a str, Halt> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => drop(self.string()?),
            Some(b'-' | b'0'..=b'9') => drop(self.number()?),
            Some(b'{' | b'[') => {
                let base = self.keys.len();
                let outcome = self.skip_nested();
                self.keys.truncate(base);
                self.open.clear();
                outcome?;
            }
            _ => drop(self.literal()?),
        }
        Ok(&self.text[start..self.at])
    }

    fn skip_nested(&mut self) -> Result<(), Halt> {
        loop {
            // A value comes next.
            match self.peek() {
                Some(b'"') => drop(self.string()?),
                Some(b'-' | b'0'..=b'9') => drop(self.number()?),
                Some(open @ (b'{' | b'[')) => {
                    if self.open.len() == MAX_NESTING {
                        return Err(self.too_deep(self.at));
                    }
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
                    self.open.pop();
                }
                _ => drop(self.literal()?),
            }
            // A value has ended; so have the containers it was the last of.
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
                self.open.pop();
            }
        }
    }

    /// Reads a key of a skipped object and remembers it; false at the object's end.
    fn push_key(&mut self, first: bool) -> Result<bool, Halt> {
        let Some((key, at)) = self.next_key(first)? else {
            return Ok(false);
        };
        self.keys.push(Key {
            name: key.decode(),
            at,
        });
        Ok(true)
    }

    /// Notes every key since `base` that stands twice, and forgets them.
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

    /// Makes sure nothing but white space is left.
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

/// A name for a message, cut where it is long: messages must not repeat a megabyte of input.
pub(crate) fn shorten(name: &str) -> String {
    const KEPT: usize = 60;
    match name.char_indices().nth(KEPT) {
        None => name.to_owned(),
        Some((cut, _)) => format!("{}…", &name[..cut]),
    }
}
