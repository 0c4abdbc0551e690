//! The closing line of a file of lines: how many lines come before it, and the hash of their bytes.
//!
//! A file that was cut where a line ends looks whole. With a closing line it does not: the line is missing, or it
//! does not fit. The reader checks it wherever it reads lines. It must not know what the other lines say.

use super::fault::InputError;
use super::hash::hex;
use crate::support::macros::names;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, BufReader, Read, Write};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Closing {
    seal: SealMembers,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealMembers {
    /// The lines before it that are not blank.
    lines: u64,
    /// SHA-256 of all bytes before it, in lower-case hex digits.
    sha256: String,
}

names! {
    /// How a file of lines ends.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Ending: as_str {
        /// With a closing line that fits.
        Sealed = "sealed",
        /// With a line feed: whether lines are missing cannot be said.
        LineFeed = "line feed",
        /// Without a line feed.
        NoLineFeed = "no line feed",
    }
}

const START: &[u8] = b"{\"seal\":";

/// The lines before the closing line, which is checked; all bytes if there is none. Hashes the bytes if there is.
/// Errors: the closing line does not fit what is before it.
pub(super) fn unsealed(bytes: &[u8]) -> Result<&[u8], InputError> {
    let Some((before, seal)) = closing(bytes) else {
        return Ok(bytes);
    };
    let lines = before.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty()).count() as u64;
    let message = if lines != seal.lines {
        let sealed = if seal.lines == 1 { "line" } else { "lines" };
        let are = if lines == 1 { "is" } else { "are" };
        format!(
            "the file was sealed with {} {sealed}, and {lines} {are} before the closing line",
            seal.lines
        )
    } else if hex(&Sha256::digest(before)) != seal.sha256 {
        "the file was changed after it was sealed: its bytes have another hash".to_owned()
    } else {
        return Ok(before);
    };
    let error = InputError::at_document(message);
    let number = before.iter().filter(|byte| **byte == b'\n').count();
    Err(error.shifted(number as u64, before.len() as u64))
}

/// How a file of lines, unpacked, ends. Linear, with memory for a line. Errors: those of the reader.
pub fn ending(reader: impl Read) -> io::Result<Ending> {
    // Far longer than a closing line.
    const MOST: u64 = 1 << 12;
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let (mut last, mut part) = (Vec::new(), Vec::new());
    let (mut end, mut begins) = (Ending::NoLineFeed, true);
    while (&mut reader).take(MOST).read_until(b'\n', &mut part)? > 0 {
        let ends = part.last() == Some(&b'\n');
        end = if ends {
            Ending::LineFeed
        } else {
            Ending::NoLineFeed
        };
        // White space after the closing line changes nothing. Other text does, also on its line.
        if !part.trim_ascii().is_empty() {
            last.clear();
            if begins {
                last.extend_from_slice(&part);
            }
        }
        begins = ends;
        part.clear();
    }
    Ok(seal_of(&last).map_or(end, |_| Ending::Sealed))
}

/// Whether a line is the closing one, if it is the last.
pub(super) fn is_closing(line: &[u8]) -> bool {
    line.trim_ascii().starts_with(START)
}

/// Whether a closing line fits what is before it.
pub(super) fn fits(line: &[u8], mut before: impl Read) -> io::Result<bool> {
    let Some(seal) = seal_of(line) else {
        return Ok(false);
    };
    let mut sealing = Sealing::new(io::sink());
    io::copy(&mut before, &mut sealing)?;
    let hash = hex(&sealing.hash.finalize());
    Ok((sealing.lines, hash) == (seal.lines, seal.sha256))
}

fn seal_of(line: &[u8]) -> Option<SealMembers> {
    let line = line.trim_ascii();
    let closing: Option<Closing> = line
        .starts_with(START)
        .then(|| serde_json::from_slice(line).ok())?;
    Some(closing?.seal)
}

/// What is before the closing line, and what that says.
fn closing(bytes: &[u8]) -> Option<(&[u8], SealMembers)> {
    let text = bytes.trim_ascii_end();
    let start = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
    let seal = seal_of(text.get(start..)?)?;
    Some((bytes.get(..start)?, seal))
}

/// Writes lines and then their closing line.
#[derive(Debug)]
pub struct Sealing<W> {
    out: W,
    hash: Sha256,
    lines: u64,
    /// Whether the line that is being written has something in it.
    filled: bool,
}

impl<W: Write> Sealing<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            hash: Sha256::new(),
            lines: 0,
            filled: false,
        }
    }

    /// Writes the closing line. What was written before must end in a line feed.
    /// Errors: those of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        let (lines, hash) = (self.lines, hex(&self.hash.finalize()));
        writeln!(
            self.out,
            "{{\"seal\":{{\"lines\":{lines},\"sha256\":\"{hash}\"}}}}"
        )
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        for byte in bytes.iter().take(written) {
            if *byte == b'\n' {
                self.lines += u64::from(self.filled);
                self.filled = false;
            } else {
                self.filled |= !byte.is_ascii_whitespace();
            }
        }
        self.hash.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::{Ending, Sealing, ending, unsealed};
    use std::io::{self, Read, Write};

    fn sealed(text: &str) -> String {
        let mut out = Vec::new();
        let mut sealing = Sealing::new(&mut out);
        sealing.write_all(text.as_bytes()).expect("memory");
        sealing.finish().expect("memory");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn a_closing_line_fits_what_it_was_written_for() {
        for text in ["{\"a\":1}\n{\"b\":2}\n", "", "x\n\n \ny\r\n", "one\n"] {
            let file = sealed(text);
            assert_eq!(unsealed(file.as_bytes()), Ok(text.as_bytes()), "{text:?}");
            assert_eq!(ending(file.as_bytes()).ok(), Some(Ending::Sealed));
            // Without a line feed, or with blank lines after it, it is the last line too.
            assert_eq!(unsealed(file.trim_end().as_bytes()), Ok(text.as_bytes()));
            let longer = format!("{file}\r\n\n");
            assert_eq!(unsealed(longer.as_bytes()), Ok(text.as_bytes()));
        }
    }

    /// Hands out some bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(into.len());
            self.0.read(into.get_mut(..most).unwrap_or_default())
        }
    }

    #[test]
    fn the_end_of_a_stream_is_that_of_its_bytes() {
        let line = sealed("{}\n").replace("{}\n", "");
        let long = "x".repeat(9_000);
        for (text, end) in [
            (format!("{long}\n{line}"), Ending::Sealed),
            (
                format!(
                    "{long}\n{line}\r\n{}{}",
                    " ".repeat(9_000),
                    "\n".repeat(9_000)
                ),
                Ending::Sealed,
            ),
            (format!("{long}{line}"), Ending::LineFeed),
            (format!("{long}{}", line.trim_end()), Ending::NoLineFeed),
            (format!("{line}{long}"), Ending::NoLineFeed),
        ] {
            for pieces in [1, 100, 4_096, 1 << 20] {
                let found = ending(Slowly(text.as_bytes(), pieces));
                assert_eq!(found.ok(), Some(end), "{} by {pieces}", text.len());
            }
        }
    }

    #[test]
    fn whatever_was_changed_is_noticed() {
        let file = sealed("{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
        for (changed, message) in [
            (
                file.replacen("{\"b\":2}\n", "", 1),
                "sealed with 3 lines, and 2 are",
            ),
            (file.replacen("{\"a\":1}\n", "\n", 1), "and 2 are"),
            (format!("{{}}\n{file}"), "and 4 are"),
            (file.replacen("2", "9", 1), "another hash"),
            (file.replacen("\n", "\r\n", 1), "another hash"),
        ] {
            let error = unsealed(changed.as_bytes()).expect_err(message).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn other_lines_are_no_closing_lines() {
        for (text, end) in [
            ("", Ending::NoLineFeed),
            ("{}\n", Ending::LineFeed),
            ("{}\n{}", Ending::NoLineFeed),
            ("{\"seal\":{\"lines\":1}}\n", Ending::LineFeed),
            (
                "{\"seal\":{\"lines\":1,\"sha256\":\"\"},\"root\":{}}\n",
                Ending::LineFeed,
            ),
            ("{\"seal\":7}", Ending::NoLineFeed),
        ] {
            assert_eq!(unsealed(text.as_bytes()), Ok(text.as_bytes()), "{text}");
            assert_eq!(ending(text.as_bytes()).ok(), Some(end), "{text}");
        }
    }
}
