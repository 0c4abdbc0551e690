//! The content hash of a node (RUNTIME §2, source 002 chapter 08).

use std::io::{self, BufWriter, Write};

use sha2::{Digest, Sha256};

use crate::json::{JsonValue, write_string};

pub type ContentHash = [u8; 32];

/// Whether the content hash covers a field (RUNTIME §1).
pub(crate) fn is_hashed(name: &str) -> bool {
    name == "content" || name.starts_with("data_") || name.starts_with("content_")
}

/// SHA-256 over the canonical JSON object of `content`, `kind`, `role` and every `content_*` and
/// `data_*` field except `content_hash`.
///
/// `role` and `kind` are the stored strings. `fields` are the node's other fields as in its
/// payload record: sorted by name in byte order, among them an explicit null role or kind. Absent counts as the empty string, an explicit null as null. Linear; the hashed
/// bytes are not built in memory.
pub fn content_hash<'a>(
    role: Option<&str>,
    kind: Option<&str>,
    fields: impl IntoIterator<Item = (&'a str, JsonValue<'a>)>,
) -> ContentHash {
    let mut digest = Digesting(Sha256::new());
    // Canonical text comes in small pieces.
    let mut out = BufWriter::with_capacity(1024, &mut digest);
    let outcome = write_hashed(&mut out, role, kind, fields.into_iter());
    let outcome = outcome.and_then(|()| out.flush());
    debug_assert!(outcome.is_ok(), "values are JSON text");
    drop(out);
    digest.0.finalize().into()
}

fn write_hashed<'a>(
    out: &mut impl Write,
    role: Option<&str>,
    kind: Option<&str>,
    fields: impl Iterator<Item = (&'a str, JsonValue<'a>)>,
) -> io::Result<()> {
    // The names sort as content, content_*, data_*, kind, role: one pass over sorted fields.
    let (mut null_role, mut null_kind) = (false, false);
    out.write_all(b"{\"content\":")?;
    let mut content = false;
    for (name, value) in fields {
        match name {
            "content" => {
                content = true;
                value.write_canonical(out)?;
                continue;
            }
            "role" => null_role = true,
            "kind" => null_kind = true,
            _ => {}
        }
        if name != "content_hash" && is_hashed(name) {
            if !std::mem::replace(&mut content, true) {
                out.write_all(b"\"\"")?;
            }
            out.write_all(b",")?;
            write_string(out, name)?;
            out.write_all(b":")?;
            value.write_canonical(out)?;
        }
    }
    if !content {
        out.write_all(b"\"\"")?;
    }
    for (name, value, null) in [
        (",\"kind\":", kind, null_kind),
        (",\"role\":", role, null_role),
    ] {
        out.write_all(name.as_bytes())?;
        match value {
            Some(value) => write_string(out, value)?,
            None if null => out.write_all(b"null")?,
            None => out.write_all(b"\"\"")?,
        }
    }
    out.write_all(b"}")
}

pub fn text_hash(text: &str) -> ContentHash {
    Sha256::digest(text.as_bytes()).into()
}

/// Lower-case hex digits of a digest.
pub fn hex(hash: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    hash.iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

struct Digesting(Sha256);

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
