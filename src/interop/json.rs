//! Writing canonical JSON into strings.

use crate::tree::canonical::write_string;
use std::io;

pub(super) use crate::tree::canonical::canonical;

/// Appends `text` as a canonical JSON string.
pub(super) fn json_text(text: &str, out: &mut String) {
    // Appending to a string cannot fail.
    let _ = write_string(&mut Appender(out), text);
}

/// `text` as a canonical JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    json_text(text, &mut out);
    out
}

/// Appends `,"name":value`; `value` is JSON.
pub(super) fn push_member(name: &str, value: &str, out: &mut String) {
    out.push(',');
    json_text(name, out);
    out.push(':');
    out.push_str(value);
}

/// Appends canonical JSON, which is ASCII, to a string.
struct Appender<'a>(&'a mut String);

impl io::Write for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.push_str(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
