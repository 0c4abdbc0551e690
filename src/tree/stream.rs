//! Reads the documents of a large file some at a time, so that its text is never in memory as a whole.
//!
//! Lines are read by batches, a long line or a single document by windows ([`super::large`]). Only what has no fault is read
//! here: at anything wrong or unusual there is [`NextDocuments::Whole`], and the caller reads the file with [`super::source`], which
//! gives the same documents where there are any, and says what is wrong. This file must not know what the documents say.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::document::{Document, DocumentLine, lines, read_document};
use super::large::Large;
use super::seal;
use super::source::{Limits, is_lines, is_lines_by_name, unpacked};
use crate::support::cancel;

/// Files of fewer bytes are read as a whole.
const LARGE: u64 = 1 << 20;

/// How much of a text is in memory at a time.
#[derive(Clone, Copy, Debug)]
struct ReadSizes {
    /// Bytes of lines that are read together.
    batch: usize,
    /// Bytes of a window.
    window: usize,
    /// A window is read up to the first member with fewer bytes after it.
    margin: usize,
}

impl ReadSizes {
    /// Of a file of this many bytes.
    fn for_bytes(bytes: u64) -> Self {
        let part = |part: u64, least: usize, most: usize| {
            usize::try_from(bytes / part).map_or(most, |bytes| bytes.clamp(least, most))
        };
        Self {
            batch: part(16, 1 << 20, 8 << 20),
            window: part(4, 1 << 20, 64 << 20),
            margin: part(8, 1 << 19, 32 << 20),
        }
    }
}

pub(crate) struct DocumentStream {
    file: Arc<Path>,
    text: TextWindow,
    sizes: ReadSizes,
    /// Bytes to reserve for a document.
    size: usize,
    /// Whether it is JSON Lines; otherwise it is one document.
    lines: bool,
    /// Whether there are no more documents.
    over: bool,
}

#[derive(Debug)]
pub(crate) enum NextDocuments {
    /// Some documents, in the order of the file.
    Documents(Vec<Document>),
    /// Nothing: all documents were given.
    End,
    /// The file has to be read as a whole, and what was given is void.
    Whole,
}

/// The text of a reader, from which a part at its front is taken again and again.
struct TextWindow {
    reader: Box<dyn Read>,
    bytes: Vec<u8>,
    /// How many of `bytes` were taken.
    taken: usize,
    /// Whether the reader has no more.
    ended: bool,
    /// Bytes that may still be read.
    left: u64,
    offset: u64,
    /// Line feeds before it.
    feeds: u64,
}

impl TextWindow {
    fn new(reader: Box<dyn Read>, most: u64) -> Self {
        Self {
            reader,
            bytes: Vec::new(),
            taken: 0,
            ended: false,
            left: most,
            offset: 0,
            feeds: 0,
        }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Reads until this many bytes are there, or the reader ends. Returns false if it has more than it may.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        let missing = wanted.saturating_sub(self.rest().len());
        if missing == 0 || self.ended {
            return Ok(true);
        }
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.reserve_exact(missing);
        let missing = missing as u64;
        let read = (&mut self.reader)
            .take(missing)
            .read_to_end(&mut self.bytes)? as u64;
        self.ended = read < missing;
        let fits = read <= self.left;
        self.left = self.left.saturating_sub(read);
        Ok(fits)
    }

    fn take(&mut self, bytes: usize) {
        let passed = self.rest().get(..bytes).unwrap_or_default();
        self.feeds += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.offset += bytes as u64;
        self.taken += bytes;
    }
}

impl DocumentStream {
    /// Opens a file; `None` if it is to be read as a whole.
    pub(crate) fn open(path: &Path, limits: Limits) -> io::Result<Option<Self>> {
        // A pipe is not opened: what is read of it is gone.
        let data = path.metadata()?;
        if !data.is_file() || data.len() < LARGE {
            return Ok(None);
        }
        let file = File::open(path)?;
        let (reader, packed) = unpacked(file)?;
        let size = if packed.is_some() { 0 } else { data.len() };
        let sizes = ReadSizes::for_bytes(data.len());
        Self::from_reader(reader, path, limits, size, sizes)
    }

    /// A reader of a text of about `size` bytes; 0 if that is not known.
    fn from_reader(
        reader: Box<dyn Read>,
        path: &Path,
        limits: Limits,
        size: u64,
        sizes: ReadSizes,
    ) -> io::Result<Option<Self>> {
        let mut text = TextWindow::new(reader, limits.max_input);
        // The first line of lines is mostly in a batch, which is less than a window.
        let mut fits = text.fill(sizes.batch)?;
        let lines = is_lines_by_name(path) || is_lines(text.rest());
        if !lines {
            fits = fits && text.fill(sizes.window)?;
        }
        let start = text.rest();
        if !fits || start.trim_ascii().is_empty() || start.starts_with(b"\xEF\xBB\xBF") {
            return Ok(None);
        }
        Ok(Some(Self {
            file: path.into(),
            lines: lines || is_lines(start),
            text,
            sizes,
            size: usize::try_from(size).unwrap_or(0),
            over: false,
        }))
    }

    pub(crate) fn next(&mut self) -> io::Result<NextDocuments> {
        if self.over {
            return Ok(NextDocuments::End);
        }
        let found = if self.lines {
            self.batch()?
        } else {
            self.over = true;
            self.document()?.map(|document| vec![document])
        };
        let Some(mut documents) = found else {
            return Ok(NextDocuments::Whole);
        };
        if documents.is_empty() && self.over {
            return Ok(NextDocuments::End);
        }
        for document in &mut documents {
            document.origin.file = Some(Arc::clone(&self.file));
        }
        Ok(NextDocuments::Documents(documents))
    }

    /// The documents of the next lines, which may be none.
    fn batch(&mut self) -> io::Result<Option<Vec<Document>>> {
        if !self.text.fill(self.sizes.batch)? {
            return Ok(None);
        }
        let rest = self.text.rest();
        let end = match memchr::memrchr(b'\n', rest) {
            _ if self.text.ended => rest.len(),
            Some(feed) => feed + 1,
            None => {
                let (line, start) = (self.text.feeds + 1, self.text.offset);
                let document = self.document()?;
                return Ok(document.map(|mut document| {
                    document.origin.line = line;
                    document.origin.start += start;
                    vec![document]
                }));
            }
        };
        self.over = self.text.ended;
        let mut some: Vec<DocumentLine<'_>> = lines(rest.get(..end).unwrap_or_default()).collect();
        let closing = some.iter().position(|line| seal::is_closing(line.bytes));
        if let Some(at) = closing {
            let last = at + 1 == some.len() && self.over;
            let line = some.pop().map(|line| line.bytes);
            if !last || !self.is_sealed(line.unwrap_or_default())? {
                return Ok(None);
            }
        }
        let tokens = cancel::here();
        let read = |line: &DocumentLine<'_>| {
            let mut document = tokens.within(|| read_document(line.bytes)).ok()?;
            document.origin.line = self.text.feeds + line.number;
            document.origin.start += self.text.offset + line.start as u64;
            Some(document)
        };
        let documents: Option<Vec<Document>> = some.par_iter().map(read).collect();
        self.text.take(end);
        Ok(documents)
    }

    /// Whether the closing line fits. Reads the file again.
    fn is_sealed(&self, line: &[u8]) -> io::Result<bool> {
        let (reader, _) = unpacked(File::open(&self.file)?)?;
        let rest = self.text.rest();
        let start = line.as_ptr() as usize - rest.as_ptr() as usize;
        seal::fits(line, reader.take(self.text.offset + start as u64))
    }

    /// A single document: the rest of the text or, of lines, that of the line.
    fn document(&mut self) -> io::Result<Option<Document>> {
        let mut large = Large::new(self.size);
        loop {
            cancel::ensure();
            if !self.text.fill(self.sizes.window)? {
                return Ok(None);
            }
            let rest = self.text.rest();
            let feed = if self.lines {
                memchr::memchr(b'\n', rest)
            } else {
                None
            };
            let last = feed.is_some() || self.text.ended;
            let rest = rest.get(..feed.unwrap_or(rest.len())).unwrap_or_default();
            let text = match simdutf8::compat::from_utf8(rest) {
                Ok(text) => text,
                // A letter may be cut.
                Err(error) if !last && error.error_len().is_none() => {
                    let whole = rest.get(..error.valid_up_to()).unwrap_or_default();
                    std::str::from_utf8(whole).unwrap_or_default()
                }
                Err(_) => return Ok(None),
            };
            let stop = if last {
                usize::MAX
            } else {
                text.len().saturating_sub(self.sizes.margin)
            };
            let Some(read) = large.read(text, stop) else {
                return Ok(None);
            };
            // What ends with the window may go on after it.
            let cut = !last && !read.done && (read.bytes == 0 || read.bytes == text.len());
            if cut || (last && !read.done) {
                return Ok(None);
            }
            self.text.take(read.bytes);
            if last {
                return Ok(large.finish());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::read_slice;
    use std::io::Cursor;

    /// The documents of a text, read with windows of this many bytes; `None` if it is to be read as a whole.
    fn streamed(text: &str, name: &str, window: usize) -> Option<Vec<Document>> {
        let sizes = ReadSizes {
            batch: window,
            window,
            margin: window / 2,
        };
        let reader = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let size = text.len() as u64;
        let stream =
            DocumentStream::from_reader(reader, Path::new(name), Limits::default(), size, sizes);
        let mut stream = stream.expect("memory")?;
        let mut all = Vec::new();
        loop {
            match stream.next().expect("memory") {
                NextDocuments::Documents(some) => all.extend(some),
                NextDocuments::End => return Some(all),
                NextDocuments::Whole => return None,
            }
        }
    }

    fn whole(text: &str, name: &str) -> Option<Vec<Document>> {
        let mut documents = read_slice(text.as_bytes()).ok()?;
        for document in &mut documents {
            document.origin.file = Some(Path::new(name).into());
        }
        Some(documents)
    }

    /// A document with everything that a member can be, in several orders. Its longest member has 40 bytes.
    fn document() -> String {
        let block = |id: usize| {
            let content = ["plain", "a \\\"b\\\" \\u00e9", "Größe – 水", ""][id % 4];
            let (id, at) = (format!("\"id\":\"b{id}\""), id * 7);
            match at % 3 {
                0 => format!(
                    "{{{id},\"content\":\"{content}\",\"parent_id\":\"s\\u0079s\",\"ttl\":{at}}}"
                ),
                1 => format!(
                    "{{ \"data\" : {{\"x\":[{at},-1.5e3,null]}},\n{id}, \"role\":\"user\"}}"
                ),
                _ => format!(
                    "{{\"children\":[],\"tags\":[\"a\",\"b\"],{id},\"nodeType\":\"cb\",\"z\":true}}"
                ),
            }
        };
        let blocks: Vec<String> = (0..40).map(block).collect();
        format!(
            "{{\"meta\":{{\"a\":1}},\"cycle\":7,\"root\":{{\"z\":1,\"content\":\"top\",\"children\":[\
             {{\"id\":\"sys\",\"note\":\"before\",\"nodeType\":\"^sys\",\"children\":[{}],\"after\":[1,2]}},\
             {{\"id\":\"seq\",\"nodeType\":\"^seq\",\"children\":[{{\"id\":\"t\",\"nodeType\":\"mt\",\"created_at_ns\":5,\
             \"children\":[{{\"id\":\"x\",\"offset\":-3}},{{\"id\":\"y\",\"offset\":-4}}]}}]}}],\"id\":\"r\"}},\
             \"spec_version\":\"PACT/0.1\",\"é\":[\"ü\"]}}",
            blocks.join(" ,\t")
        )
    }

    #[test]
    fn windows_give_what_the_whole_text_gives() {
        let document = document();
        let pretty = document.replace("},", "},\n").replace(":[", ":\n  [");
        for text in [&document, &pretty] {
            let wanted = format!("{:?}", whole(text, "a.json").expect("it is valid"));
            let mut read = 0;
            for window in (8..text.len() + 20).step_by(7) {
                if let Some(found) = streamed(text, "a.json", window) {
                    assert_eq!(format!("{found:?}"), wanted, "{window}");
                    read += 1;
                } else {
                    // Half a window has every member and the white space around it.
                    assert!(window < 160, "{window}");
                }
            }
            assert!(read > 100, "{read}");
        }
    }

    #[test]
    fn lines_give_what_the_whole_text_gives() {
        let delta =
            "{\"base\":7,\"remove\":[\"b3\"],\"replace\":[{\"id\":\"n\",\"parent_id\":\"sys\"}]}";
        let runtime = "{\"runtime\":{\"a\":1}}";
        let working = "{\"working\":true,\"base\":8,\"remove\":[],\"replace\":[]}";
        let long = document().replace('\n', " ");
        let lines = [&*long, "", delta, " ", runtime, "{\"root\":{}}", working].join("\r\n");
        let line = "{\"root\":{}}\n";
        for text in [lines.clone(), lines + "\n", format!("\n\n{line}{line}")] {
            let wanted = format!("{:?}", whole(&text, "a.jsonl").expect("they are valid"));
            for window in (160..text.len() + 20).chain(8..60).step_by(11) {
                match streamed(&text, "a.jsonl", window) {
                    Some(found) => assert_eq!(format!("{found:?}"), wanted, "{window}"),
                    None => assert!(window < 160, "{window}"),
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_or_unusual_is_read_as_a_whole() {
        let document = document();
        for (name, text) in [
            ("a.json", document.replace("s\\u0079s", "seq")),
            ("a.json", document.replacen("\"b9\"", "\"b8\"", 1)),
            (
                "a.json",
                document.replacen("\"cycle\":7", "\"cycle\":7,\"cycle\":7", 1),
            ),
            ("a.json", document.replacen("\"id\":\"b5\"", "\"id\":5", 1)),
            ("a.json", document.replacen("-1.5e3", "1e999", 1)),
            ("a.json", document.replacen("null", "nul", 1)),
            ("a.json", format!("{document}{{}}")),
            ("a.json", document.replace("^seq", "^sys")),
            ("a.json", document.trim_end_matches('}').to_owned()),
            ("a.json", document.replacen("\"root\":", "\"rooted\":", 1)),
            ("a.jsonl", "{\"root\":{}}\n{\"root\":[]}\n".repeat(9)),
            ("a.jsonl", "{\"root\":{}}\n{\"seal\":{}}\n".repeat(9)),
            ("a.json", "\u{feff}".to_owned() + &document),
            ("a.json", " ".repeat(999)),
        ] {
            for window in [160, 300, 1_000, 10_000] {
                assert!(streamed(&text, name, window).is_none(), "{window}: {text}");
            }
        }
    }

    #[test]
    fn no_more_is_read_than_may_be() {
        let text = document();
        let sizes = ReadSizes::for_bytes(0);
        let limits = Limits {
            max_input: text.len() as u64 - 1,
        };
        let reader = Box::new(Cursor::new(text.into_bytes()));
        let stream = DocumentStream::from_reader(reader, Path::new("a.json"), limits, 0, sizes);
        assert!(stream.expect("memory").is_none());
    }
}
