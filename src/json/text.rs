//! JSON strings: scanning and decoding them.

use std::borrow::Cow;

/// A string as written.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The text between the quotes, with its escapes.
    pub raw: &'a str,
    /// Whether there are escapes.
    pub escaped: bool,
}

impl<'a> Text<'a> {
    /// The decoded string, borrowed if there are no escapes. A lone surrogate, which was reported
    /// when it was read, becomes U+FFFD.
    #[inline(always)]
    pub fn decode(self) -> Cow<'a, str> {
        if self.escaped {
            Cow::Owned(unescape(self.raw))
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    /// As [`Text::decode`], in place of what is in `out`.
    pub(crate) fn decode_into(self, out: &mut String) {
        out.clear();
        unescape_into(self.raw, out);
    }
}

/// Decodes the text between the quotes of a JSON string. Escapes must be well-formed; a lone
/// surrogate becomes U+FFFD.
pub fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    unescape_into(raw, &mut out);
    out
}

/// As [`unescape`], at the end of a text.
pub(super) fn unescape_into(raw: &str, out: &mut String) {
    out.reserve(raw.len());
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
                let (letter, length) = unicode(bytes, at);
                out.push(letter);
                next = at + length;
            }
            other => out.push(char::from(other)),
        }
        rest = rest.get(next..).unwrap_or("");
    }
    out.push_str(rest);
}

/// The character that the escape `\u` at `at` stands for, and the length of the escape: two for a pair.
/// Half a pair is U+FFFD.
pub(super) fn unicode(bytes: &[u8], at: usize) -> (char, usize) {
    let unit = |at: usize| hex4(bytes, at).map(u32::from);
    let mut scalar = unit(at + 2).unwrap_or(0xFFFD);
    let mut length = 6;
    if (0xD800..0xDC00).contains(&scalar)
        && bytes.get(at + 6..at + 8) == Some(b"\\u")
        && let Some(low @ 0xDC00..0xE000) = unit(at + 8)
    {
        scalar = 0x10000 + ((scalar - 0xD800) << 10) + low - 0xDC00;
        length = 12;
    }
    let letter = char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER);
    (letter, length)
}

/// The number of four hex digits.
pub(super) fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 4)?;
    let mut unit = 0u16;
    for &digit in digits {
        unit = unit << 4 | char::from(digit).to_digit(16)? as u16;
    }
    Some(unit)
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Index of the first byte at or after `at` that `is_special`, or the length of `bytes`. Tests eight bytes at
/// a time: of the flags that `flags` gives, one in the high bit of each byte, the lowest is exact.
#[inline(always)]
fn find(
    bytes: &[u8],
    mut at: usize,
    flags: impl Fn(u64) -> u64,
    is_special: impl Fn(u8) -> bool,
) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    while let Some(Ok(chunk)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let flags = flags(u64::from_le_bytes(chunk)) & HIGH;
        if flags != 0 {
            return at + (flags.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !is_special(*byte)) {
        at += 1;
    }
    at
}

/// Index of the first quote, backslash or control character at or after `at`, or the length of
/// `bytes`.
#[inline]
pub(super) fn find_special(bytes: &[u8], at: usize) -> usize {
    let flags = |word: u64| {
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        (word.wrapping_sub(ONES * 0x20) & !word)
            | (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
    };
    find(bytes, at, flags, |byte| {
        byte < 0x20 || byte == b'"' || byte == b'\\'
    })
}

/// Index of the first byte at or after `at` that canonical JSON escapes, or that begins an escape, or the
/// length of `bytes`: all but space to `~`, and of those the quote and the backslash.
#[inline]
pub(super) fn find_not_plain(bytes: &[u8], at: usize) -> usize {
    // Bytes with the high bit are odd anyway.
    let flags = |word: u64| {
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        let delete = word ^ (ONES * 0x7F);
        word | word.wrapping_sub(ONES * 0x20)
            | quote.wrapping_sub(ONES)
            | slash.wrapping_sub(ONES)
            | delete.wrapping_sub(ONES)
    };
    find(bytes, at, flags, |byte| {
        !(0x20..0x7F).contains(&byte) || byte == b'"' || byte == b'\\'
    })
}

/// A name for a message, cut if it is long: messages must not repeat a megabyte of input.
pub(crate) fn shorten(name: &str) -> String {
    const KEPT: usize = 60;
    match name.char_indices().nth(KEPT) {
        None => name.to_owned(),
        Some((cut, _)) => format!("{}…", &name[..cut]),
    }
}

/// A JSON value as messages name it: a list and an object by their type, others as written.
pub(crate) fn named(value: &str) -> String {
    match value.as_bytes().first() {
        Some(b'[') => "a list".to_owned(),
        Some(b'{') => "an object".to_owned(),
        _ => shorten(value),
    }
}

/// What is wrong with a value, as JSON text, of an integer header.
pub(crate) fn not_integer(name: &str, value: &str) -> String {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{name} must be an integer of 64 bits, not {}", named(value));
    }
    let meant = value.strip_suffix(".0").unwrap_or(value.trim_matches('"'));
    match meant.parse::<i64>() {
        Ok(meant) => format!("{name} must be an integer or null, not {value}: write {meant}"),
        Err(_) => format!("{name} must be an integer or null, not {}", named(value)),
    }
}
