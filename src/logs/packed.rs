//! Numbers, texts and values of JSON as one text, from which they are read without a copy. This file must not know
//! sessions or log formats.

use crate::json::JsonValue;
use std::io;

/// Numbers and texts, one after the other; a text comes after its length.
#[derive(Default)]
pub(super) struct Packed {
    out: String,
    decoded: String,
}

/// The length of a text that is missing.
const MISSING: i64 = -1;

impl Packed {
    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn number(&mut self, number: i64) {
        // Digits to the base of 64, the lowest first, each marked if another one follows. The sign is the lowest bit.
        let mut rest = ((number << 1) ^ (number >> 63)) as u64;
        while rest >= 1 << 6 {
            self.out.push(char::from((rest as u8 & 0x3F) | 0x40));
            rest >>= 6;
        }
        self.out.push(char::from(rest as u8));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as i64);
        self.out.push_str(text);
    }

    pub(super) fn some_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.number(MISSING),
        }
    }

    /// A value of accepted JSON text.
    pub(super) fn value(&mut self, json: &str) {
        let mut decoded = std::mem::take(&mut self.decoded);
        let value = JsonValue::read(json, &mut decoded);
        self.number(value.stored_len() as i64);
        value.store(&mut self.out);
        self.decoded = decoded;
    }
}

/// Reads what [`Packed`] wrote.
pub(super) struct Unpacked<'a>(pub(super) &'a str);

impl<'a> Unpacked<'a> {
    pub(super) fn number(&mut self) -> io::Result<i64> {
        let (mut number, mut shift) = (0_u64, 0);
        for (at, byte) in self.0.bytes().enumerate() {
            number |= u64::from(byte & 0x3F) << shift;
            if byte < 0x40 {
                self.0 = self.0.get(at + 1..).ok_or_else(broken)?;
                let sign = -((number & 1) as i64);
                return Ok((number >> 1) as i64 ^ sign);
            }
            shift = (shift + 6).min(u64::BITS - 1);
        }
        Err(broken())
    }

    pub(super) fn text(&mut self) -> io::Result<&'a str> {
        self.some_text()?.ok_or_else(broken)
    }

    pub(super) fn some_text(&mut self) -> io::Result<Option<&'a str>> {
        let length = self.number()?;
        if length == MISSING {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| broken())?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(broken)?;
        self.0 = rest;
        Ok(Some(text))
    }

    pub(super) fn value(&mut self) -> io::Result<JsonValue<'a>> {
        self.text().map(JsonValue::stored)
    }
}

fn broken() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use super::{Packed, Unpacked};
    use crate::json::JsonValue;
    use std::io;

    const NUMBERS: [i64; 10] = [0, 1, -1, 31, 32, -32, -33, 1 << 40, i64::MAX, i64::MIN];
    const TEXTS: [Option<&str>; 4] = [None, Some(""), Some("für\n"), Some("a\0\u{10FFFF}")];

    fn read(packed: &str) -> io::Result<()> {
        let mut read = Unpacked(packed);
        for number in NUMBERS {
            assert_eq!(read.number()?, number);
        }
        for text in TEXTS {
            assert_eq!(read.some_text()?, text);
        }
        assert_eq!(read.value()?, JsonValue::Text("a\"ü"));
        assert_eq!(read.value()?, JsonValue::List("[1, 2]"));
        assert!(read.number().is_err());
        Ok(())
    }

    #[test]
    fn what_is_packed_comes_back() {
        let mut packed = Packed::default();
        NUMBERS.iter().for_each(|number| packed.number(*number));
        TEXTS.iter().for_each(|text| packed.some_text(*text));
        packed.value("\"a\\\"\\u00fc\"");
        packed.value("[1, 2]");
        let packed = packed.finish();
        read(&packed).expect("all of it");
        let cuts = (0..packed.len()).filter_map(|end| packed.get(..end));
        assert!(cuts.map(read).all(|read| read.is_err()));
    }
}
