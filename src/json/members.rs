//! One level of a JSON value at a time: an object as names and raw values, an array as raw values.
//!
//! For callers that need a few members of a text that [`Reader::skip_value`] has accepted, and keep the rest as
//! text. A log is checked once, line by line, and then looked into level by level: a line, its message, the parts
//! of that. The check notes where long values end ([`Jumps`]), and [`Accepted`] goes from one to the next.

use std::borrow::Cow;
use std::ops::Range;

use super::reader::{Halt, Marks, Reader};
use super::text::Text;

/// A member of an object: decoded name, raw value.
pub(crate) type Member<'a> = (Cow<'a, str>, &'a str);

/// Values of fewer bytes are passed over byte by byte.
const LONG: usize = 32;

/// Where the long values of a text end, by where they begin; ascending, outer ones before inner ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jumps {
    spans: Vec<(u32, u32)>,
    /// The indexes of those whose end is not known yet.
    open: Vec<usize>,
}

impl Jumps {
    /// Checks the next value of a text with [`Reader::skip_value`], and notes the long ones in it after those
    /// of other texts. Returns the value, and which ones are its own.
    /// Errors: as [`Reader::skip_value`]; nothing is noted then.
    pub(crate) fn check<'a>(
        &mut self,
        reader: &mut Reader<'a>,
    ) -> Result<(&'a str, Range<usize>), Halt> {
        let first = self.spans.len();
        self.open.clear();
        match reader.skip_marking(self) {
            Ok(value) => Ok((value, first..self.spans.len())),
            Err(halt) => {
                self.spans.truncate(first);
                Err(halt)
            }
        }
    }

    /// Looks into the text that a checked reader began with.
    pub(crate) fn accepted<'a>(&'a self, text: &'a str, own: Range<usize>) -> Accepted<'a> {
        Accepted {
            text,
            jumps: self.spans.get(own).unwrap_or_default(),
        }
    }

    /// Forgets all texts.
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
    }
}

impl Marks for Jumps {
    #[inline(always)]
    fn string(&mut self, start: usize, end: usize) {
        // Beyond 4 GiB nothing is noted, and everything is passed over byte by byte.
        if end - start >= LONG
            && let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end))
        {
            self.spans.push((start, end));
        }
    }

    #[inline(always)]
    fn open(&mut self, start: usize) {
        self.open.push(self.spans.len());
        self.spans
            .push((u32::try_from(start).unwrap_or(u32::MAX), 0));
    }

    #[inline(always)]
    fn close(&mut self, end: usize) {
        let Some(at) = self.open.pop() else { return };
        let Some(span) = self.spans.get_mut(at) else {
            return;
        };
        match u32::try_from(end) {
            Ok(end) if end - span.0 >= LONG as u32 => span.1 = end,
            // Short, and so is all that is in it.
            _ => self.spans.truncate(at),
        }
    }
}

/// A text that was accepted, and where its long values end. Other text may be looked into as well: then
/// everything is passed over byte by byte, and of text that is not JSON some pieces are returned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accepted<'t> {
    text: &'t str,
    jumps: &'t [(u32, u32)],
}

impl Accepted<'_> {
    /// The members of an object in the order of the text; empty for any other value. Linear in their
    /// number and names.
    pub(crate) fn members(self, raw: &str) -> Vec<Member<'_>> {
        let mut scan = self.scan(raw);
        let mut found = Vec::new();
        if !scan.take(b'{') || scan.take(b'}') {
            return found;
        }
        // Space for most records: growing from nothing takes longer than finding the members.
        found.reserve(16);
        while let Some(key) = scan.value() {
            if !key.starts_with('"') || !scan.take(b':') {
                break;
            }
            let raw = key.get(1..key.len() - 1).unwrap_or_default();
            let Some(value) = scan.value() else { break };
            let escaped = memchr::memchr(b'\\', raw.as_bytes()).is_some();
            found.push((Text { raw, escaped }.decode(), value));
            if !scan.take(b',') {
                break;
            }
        }
        found
    }

    /// The raw elements of an array; empty for any other value. Linear in their number.
    pub(crate) fn elements(self, raw: &str) -> Vec<&str> {
        let mut scan = self.scan(raw);
        let mut found = Vec::new();
        if !scan.take(b'[') || scan.take(b']') {
            return found;
        }
        while let Some(value) = scan.value() {
            found.push(value);
            if !scan.take(b',') {
                break;
            }
        }
        found
    }

    /// The members of the member `name`; empty if there is none.
    pub(crate) fn inside<'a>(self, found: &[Member<'a>], name: &str) -> Vec<Member<'a>> {
        get(found, name).map_or_else(Vec::new, |raw| self.members(raw))
    }

    /// A place at the start of `raw`, with the jumps inside it if it is a piece of the text.
    fn scan<'a>(&self, raw: &'a str) -> MemberScan<'a, '_> {
        let inside = (raw.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
        let inside = inside.filter(|at| at + raw.len() <= self.text.len());
        let base = inside.and_then(|at| u32::try_from(at).ok());
        let jumps = match base {
            // The first is that of `raw` itself.
            Some(base) => {
                let first = self.jumps.partition_point(|(start, _)| *start <= base);
                self.jumps.get(first..).unwrap_or_default()
            }
            None => &[],
        };
        MemberScan {
            text: raw,
            at: 0,
            base: base.unwrap_or(0),
            jumps,
        }
    }
}

/// A place in a text.
struct MemberScan<'a, 't> {
    text: &'a str,
    at: usize,
    /// Where the text begins in that of the jumps.
    base: u32,
    /// Those that begin here or later.
    jumps: &'t [(u32, u32)],
}

impl<'a> MemberScan<'a, '_> {
    /// Skips white space and returns the next byte.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Takes `byte` if it is next.
    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes the next value.
    fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let bytes = self.text.as_bytes();
        let start = self.at;
        let end = match first {
            b'"' => match short_string(bytes, start).or_else(|| self.jump(start)) {
                Some(end) => end,
                None => after_string(bytes, start)?,
            },
            b'{' | b'[' => match self.jump(start) {
                Some(end) => end,
                None => after_nested(bytes, start)?,
            },
            b',' | b':' | b'}' | b']' => return None,
            _ => {
                let rest = bytes.get(start..)?;
                let ends =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                start + rest.iter().position(ends).unwrap_or(rest.len())
            }
        };
        self.at = end;
        self.text.get(start..end)
    }

    /// The offset after the value at `start`, if it was noted.
    fn jump(&mut self, start: usize) -> Option<usize> {
        let wanted = self.base.checked_add(u32::try_from(start).ok()?)?;
        while let Some(((at, end), rest)) = self.jumps.split_first() {
            if *at > wanted {
                return None;
            }
            self.jumps = rest;
            if *at == wanted {
                return Some((end - self.base) as usize);
            }
        }
        None
    }
}

/// The offset after the string at `start`, if it is a short one without escapes.
#[inline]
fn short_string(bytes: &[u8], start: usize) -> Option<usize> {
    let some = bytes.get(start + 1..)?;
    let some = some.get(..LONG).unwrap_or(some);
    let at = some.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    (some.get(at) == Some(&b'"')).then_some(start + at + 2)
}

/// The offset after the string at `start`.
pub(crate) fn after_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let end = at + memchr::memchr(b'"', bytes.get(at..)?)?;
        // It is escaped if an odd number of backslashes is before it.
        let before = bytes.get(start + 1..end)?;
        let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
        at = end + 1;
        if slashes.count() % 2 == 0 {
            return Some(at);
        }
    }
}

/// The offset after the object or array at `start`.
fn after_nested(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = after_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

pub(crate) fn members(raw: &str) -> Vec<Member<'_>> {
    Accepted::default().members(raw)
}

pub(crate) fn elements(raw: &str) -> Vec<&str> {
    Accepted::default().elements(raw)
}

/// The decoded string, if the value is one.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.starts_with('"') {
        return None;
    }
    Reader::new(raw).string().ok().map(Text::decode)
}

/// The value of the first member `name`.
pub(crate) fn get<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    let found = members.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| *value)
}

/// The type of a JSON value, as far as its first byte shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Null,
    String,
    Array,
    Object,
    /// A number or a boolean.
    Other,
}

/// The type of `raw`, which has no white space around it.
pub(crate) fn value_type(raw: &str) -> ValueType {
    match raw.as_bytes().first() {
        Some(b'n') => ValueType::Null,
        Some(b'"') => ValueType::String,
        Some(b'[') => ValueType::Array,
        Some(b'{') => ValueType::Object,
        _ => ValueType::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found with the notes of a check is what is found without them.
    #[test]
    fn jumps_change_nothing() {
        let long = "x\\\"y\\\\".repeat(20);
        let texts = [
            "{}".to_owned(),
            " { } ".to_owned(),
            "[]".to_owned(),
            "{\"a\":1}".to_owned(),
            format!(
                "{{\"a\" : \"{long}\" , \"b\\u0022\":[1, \"{long}\",{{\"c\":\"{long}\"}}],\"d\":null}}"
            ),
            format!("[\"{long}\",[[\"{long}\"]], {{\"k\":[ ]}} ,true , -1.5e3]"),
            format!(
                "{{\"short\":{{\"a\":[1,2]}},\"long\":{{\"a\":[{}1]}},\"e\":\"\\\\\"}}",
                "1,".repeat(40)
            ),
            format!("\"{long}\""),
        ];
        for text in &texts {
            let mut jumps = Jumps::default();
            let (value, own) = jumps.check(&mut Reader::new(text)).expect("JSON");
            let json = jumps.accepted(text, own);
            let mut waiting = vec![value];
            let mut seen = 0;
            while let Some(raw) = waiting.pop() {
                seen += 1;
                assert_eq!(json.members(raw), members(raw), "{text}");
                assert_eq!(json.elements(raw), elements(raw), "{text}");
                waiting.extend(json.members(raw).into_iter().map(|(_, value)| value));
                waiting.extend(json.elements(raw));
            }
            assert!(seen >= 1);
            // The jumps are those of `text`, so a copy of it is searched without them.
            let copy = value.to_owned();
            assert_eq!(json.members(&copy), members(&copy));
        }
    }

    #[test]
    fn other_text_is_no_panic() {
        for text in [
            "",
            "{",
            "[",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "[,]",
            "{:}",
            "[}",
            "\"\\",
            "{\"a\":\"\\\"}",
            "]",
            "{\"",
            "{1:2}",
        ] {
            members(text);
            elements(text);
        }
    }
}
