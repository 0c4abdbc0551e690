//! Reads the documents of files, directories and streams, plain, gzip or Zstandard, one document or one a line (RUNTIME §1).
//!
//! An input is unpacked into memory, up to a limit, and then read. Errors name the file.
//! [`super::sequence`] puts the documents in order.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::document::{Document, read_document, read_lines};
use super::fault::InputError;
use super::seal::{Ending, ending};
use crate::json::Reader;
use crate::support::cancel::{Cancelled, stopped};

/// How much input is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file, after unpacking.
    pub max_input: u64,
}

impl Default for Limits {
    /// 1 GiB (RUNTIME §1).
    fn default() -> Self {
        Self { max_input: 1 << 30 }
    }
}

/// Why a session could not be read. See the example of [`Session`](crate::Session).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// There is no such file or directory (exit code 4).
    #[error("{}: no such file or directory", .0.display())]
    Missing(PathBuf),
    /// The documents are not a valid session (exit code 5): the faults of each file, in file order.
    #[error(fmt = list_faults)]
    Invalid(Vec<(PathBuf, InputError)>),
    /// A directory in which each of these files is a session (RUNTIME §7).
    #[error("{}: expected one session, found a directory of {}", .0.display(), .1.len())]
    Several(PathBuf, Vec<PathBuf>),
    /// The operating system failed (exit code 6). The message has the cause, so it is not a source.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
}

/// Writes a line for each fault, with its file.
fn list_faults(files: &[(PathBuf, InputError)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut separator = "";
    for (path, error) in files {
        let path = path.display();
        for fault in &error.faults {
            write!(f, "{separator}{path}:{fault}")?;
            separator = "\n";
        }
        if error.more > 0 {
            write!(f, "{separator}{path}: and {} more", error.more)?;
            separator = "\n";
        }
    }
    Ok(())
}

/// Reads the documents of a session file, or of every file of a directory of documents in byte
/// order of their names, except names that begin with a dot.
///
/// # Errors
/// See [`SourceError`]; the faults of all files of a directory are in one report.
pub fn read_source(path: &Path, limits: Limits) -> Result<Vec<Document>, SourceError> {
    let metadata = std::fs::metadata(path).map_err(|error| io_error(path, error))?;
    let with_bytes = |file: PathBuf| (read_file(&file, limits), file);
    if !metadata.is_dir() {
        return read_files([with_bytes(path.to_owned())]);
    }
    let files = files_in(path)?;
    if is_several(&files) {
        return Err(SourceError::Several(path.to_owned(), files));
    }
    read_files(files.into_iter().map(with_bytes))
}

/// The files of a directory in which each file is a session; `None` for any other path, which is
/// one session (RUNTIME §7).
///
/// # Errors
/// The directory cannot be read.
pub fn sessions_in(path: &Path) -> Result<Option<Vec<PathBuf>>, SourceError> {
    if !path.is_dir() {
        return Ok(None);
    }
    let files = files_in(path)?;
    Ok(is_several(&files).then_some(files))
}

/// Whether each of the files of a directory is a session: there are several, and one of them is JSON Lines by its name.
pub fn is_several(files: &[PathBuf]) -> bool {
    files.len() > 1 && files.iter().any(|file| is_lines_by_name(file))
}

/// The files of a directory in byte order of their names, except names that begin with a dot.
///
/// # Errors
/// The directory cannot be read.
pub fn files_in(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    entries_of(path).map(|entries| entries.files)
}

/// What is in a directory, by name.
#[derive(Default)]
struct Entries {
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    /// Links to directories and to nothing, and what is neither a file nor a directory.
    others: Vec<PathBuf>,
}

/// The entries of a directory, except names that begin with a dot.
fn entries_of(path: &Path) -> Result<Entries, SourceError> {
    let mut entries = Entries::default();
    for entry in std::fs::read_dir(path).map_err(|error| io_error(path, error))? {
        let entry = entry.map_err(|error| io_error(path, error))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // Follows links, unlike the type of the entry.
        let of_kind = if entry.path().is_file() {
            &mut entries.files
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            &mut entries.directories
        } else {
            &mut entries.others
        };
        of_kind.push(entry.path());
    }
    entries.files.sort_unstable();
    Ok(entries)
}

/// What is in a directory and in the directories below it, in order of their paths: files, and what [`check_listed`]
/// refuses. Linear in all entries.
pub(crate) fn files_below(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let mut found = Vec::new();
    let mut left = vec![entries_of(path)?];
    while let Some(entries) = left.pop() {
        found.extend(entries.files);
        found.extend(entries.others);
        for directory in entries.directories {
            match entries_of(&directory) {
                Ok(entries) => left.push(entries),
                // It says why when it is checked.
                Err(_) => found.push(directory),
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// What a link is whose target is missing.
pub(crate) const NO_TARGET: &str = "a link to nothing";

/// Refuses what a directory lists that cannot be read, or that never ends, without opening it.
pub(crate) fn check_listed(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        std::fs::read_dir(path)?;
    }
    let kind = match path.metadata() {
        Ok(about) if about.is_file() => return Ok(()),
        Ok(about) if about.is_dir() => "a link to a directory, which is not followed",
        Ok(_) => "neither a file nor a directory",
        Err(error) if error.kind() == io::ErrorKind::NotFound => NO_TARGET,
        Err(error) => return Err(error),
    };
    Err(io::Error::other(kind))
}

/// Whether a file is JSON Lines by its name.
pub(crate) fn is_lines_by_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let packed = [&b".gz"[..], b".zst"]
        .iter()
        .find_map(|ending| name.strip_suffix(*ending));
    let name = packed.unwrap_or(name);
    name.ends_with(b".jsonl") || name.ends_with(b".ndjson")
}

/// Reads the documents of files that together are one session, in this order. Each is given by
/// its unpacked bytes and the path that messages call it; they are taken one at a time.
///
/// # Errors
/// See [`SourceError`]; the faults of all files come in one report.
pub fn read_files(
    files: impl IntoIterator<Item = (Result<Vec<u8>, SourceError>, PathBuf)>,
) -> Result<Vec<Document>, SourceError> {
    let mut documents = Vec::new();
    let mut invalid = Vec::new();
    for (bytes, file) in files {
        match bytes.and_then(|bytes| read_bytes(&bytes, &file)) {
            Ok(found) if invalid.is_empty() => documents.extend(found),
            Ok(_) => {}
            Err(SourceError::Invalid(more)) => {
                invalid.extend(more);
                documents = Vec::new();
            }
            Err(error) => return Err(error),
        }
    }
    if invalid.is_empty() {
        Ok(documents)
    } else {
        Err(SourceError::Invalid(invalid))
    }
}

/// The bytes of a file, unpacked if it is gzip or Zstandard. Errors: see [`SourceError`].
pub fn read_file(path: &Path, limits: Limits) -> Result<Vec<u8>, SourceError> {
    let file = File::open(path).map_err(|error| io_error(path, error))?;
    read_open(&file, path, limits)
}

/// As [`read_file`], of a file that is open at its start. Errors: see [`SourceError`].
pub fn read_open(file: &File, path: &Path, limits: Limits) -> Result<Vec<u8>, SourceError> {
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    read(file, path, limits, size)
}

/// The bytes of a reader such as standard input, which messages call `name`, unpacked if they are gzip or Zstandard.
/// Errors: see [`SourceError`].
pub fn read_all(reader: impl Read, name: &Path, limits: Limits) -> Result<Vec<u8>, SourceError> {
    read(reader, name, limits, 0)
}

/// How a file of lines ends.
pub(crate) fn ending_of(path: &Path) -> Result<Ending, SourceError> {
    let read = || ending(unpacked(File::open(path)?)?.0);
    read().map_err(|error| io_error(path, error))
}

/// What a file is packed with, and whether this build reads it: by the name of the feature.
#[derive(Clone, Copy)]
pub(super) struct Packing(&'static str, bool);

const PACKINGS: [(&[u8], Packing); 2] = [
    (&[0x1f, 0x8b], Packing("gzip", cfg!(feature = "gzip"))),
    (
        &[0x28, 0xb5, 0x2f, 0xfd],
        Packing("zstd", cfg!(feature = "zstd")),
    ),
];

/// Reads what a reader has, unpacked if it is packed, which its first bytes show; and with what it is.
pub(super) fn unpacked<'r>(
    mut reader: impl Read + 'r,
) -> io::Result<(Box<dyn Read + 'r>, Option<Packing>)> {
    let mut magic = Vec::new();
    (&mut reader).take(4).read_to_end(&mut magic)?;
    let packing = PACKINGS.iter().find(|(start, _)| magic.starts_with(start));
    let packing = packing.map(|(_, packing)| *packing);
    let whole = io::Cursor::new(magic).chain(reader);
    let reader: Box<dyn Read + 'r> = match packing {
        #[cfg(feature = "gzip")]
        Some(Packing("gzip", _)) => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        #[cfg(feature = "zstd")]
        Some(Packing("zstd", _)) => Box::new(Frames::new(whole)),
        _ => Box::new(whole),
    };
    Ok((reader, packing))
}

/// Unpacks Zstandard: one frame after another, as programs write that add to a file.
#[cfg(feature = "zstd")]
struct Frames<R: Read> {
    packed: io::BufReader<R>,
    frame: ruzstd::decoding::FrameDecoder,
    begun: bool,
}

#[cfg(feature = "zstd")]
impl<R: Read> Frames<R> {
    fn new(packed: R) -> Self {
        Self {
            packed: io::BufReader::new(packed),
            frame: ruzstd::decoding::FrameDecoder::new(),
            begun: false,
        }
    }
}

#[cfg(feature = "zstd")]
impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
        let broken = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            if self.frame.can_collect() > 0 {
                return self.frame.read(into);
            }
            if self.begun && !self.frame.is_finished() {
                let decoded = self.frame.decode_blocks(&mut self.packed, UptoBlocks(1));
                decoded.map_err(broken)?;
            } else if io::BufRead::fill_buf(&mut self.packed)?.is_empty() {
                return Ok(0);
            } else {
                self.frame.reset(&mut self.packed).map_err(broken)?;
                self.begun = true;
            }
        }
    }
}

fn io_error(path: &Path, error: io::Error) -> SourceError {
    match error.kind() {
        io::ErrorKind::NotFound => SourceError::Missing(path.to_owned()),
        _ => SourceError::Io(path.to_owned(), error),
    }
}

fn invalid(path: &Path, message: String) -> SourceError {
    let error = InputError::at_document(message);
    SourceError::Invalid(vec![(path.to_owned(), error)])
}

/// The bytes of a reader, which has about `size` of them; 0 if that is not known.
fn read(reader: impl Read, path: &Path, limits: Limits, size: u64) -> Result<Vec<u8>, SourceError> {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};

    let failed = |error| io_error(path, error);
    let (reader, packing) = unpacked(reader).map_err(failed)?;
    if let Some(Packing(name, false)) = packing {
        let message = format!("{name} data, which this build does not read (feature `{name}`)");
        return Err(invalid(path, message));
    }
    match (
        take(
            reader,
            path,
            limits,
            if packing.is_some() { 0 } else { size },
        ),
        packing,
    ) {
        // The decoder reports broken input by these kinds; others come from the system.
        (Err(error), Some(Packing(name, _)))
            if matches!(error.kind(), InvalidInput | InvalidData | UnexpectedEof) =>
        {
            Err(invalid(path, format!("broken {name} data: {error}")))
        }
        (outcome, _) => {
            let bytes = outcome.map_err(failed)??;
            let inside = PACKINGS.iter().find(|(start, _)| bytes.starts_with(start));
            if let Some((_, Packing(name, _))) = inside {
                let message = format!("packed twice: it has {name} data inside; unpack it once");
                return Err(invalid(path, message));
            }
            Ok(bytes)
        }
    }
}

/// Bytes that are read between two looks at the token of the work.
const PIECE: u64 = 1 << 20;

/// What no input has a megabyte of: such a stream may have no end.
fn is_blank(byte: &u8) -> bool {
    matches!(byte, 0 | b' ' | b'\t' | b'\n' | b'\r')
}

fn take(
    reader: impl Read,
    path: &Path,
    limits: Limits,
    size: u64,
) -> io::Result<Result<Vec<u8>, SourceError>> {
    let size = usize::try_from(size.min(limits.max_input)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(size + 1);
    let cut = limits.max_input.saturating_add(1);
    let mut reader = reader.take(cut);
    // By pieces, to look in between whether the work is cancelled.
    while (&mut reader).take(PIECE).read_to_end(&mut bytes)? == PIECE as usize {
        if bytes.len() as u64 == PIECE && bytes.iter().all(is_blank) {
            let blank = "the first megabyte is white space or zeros";
            return Ok(Err(invalid(path, blank.to_owned())));
        }
        if stopped() {
            return Ok(Err(invalid(path, Cancelled.to_string())));
        }
    }
    if bytes.len() as u64 > limits.max_input {
        let limit = limits.max_input;
        return Ok(Err(invalid(
            path,
            format!("the input is larger than {limit} bytes, the limit set by --max-input"),
        )));
    }
    Ok(Ok(bytes))
}

/// Reads the documents of an input in memory, which is not unpacked. It is JSON Lines if its first
/// line is a whole JSON value and more follows, else one document.
///
/// # Errors
/// Every fault of the input.
pub fn read_slice(bytes: &[u8]) -> Result<Vec<Document>, InputError> {
    read_as(bytes, is_lines(bytes))
}

fn read_as(bytes: &[u8], lines: bool) -> Result<Vec<Document>, InputError> {
    if lines {
        read_lines(bytes)
    } else {
        read_document(bytes).map(|document| vec![document])
    }
}

/// As [`read_slice`], but a file whose name ends in `.jsonl` or `.ndjson`, or in one of them and `.gz` or `.zst`, is JSON Lines.
fn read_bytes(bytes: &[u8], path: &Path) -> Result<Vec<Document>, SourceError> {
    let mut documents = read_as(bytes, is_lines_by_name(path) || is_lines(bytes))
        .map_err(|error| SourceError::Invalid(vec![(path.to_owned(), error)]))?;
    let file: Arc<Path> = path.into();
    for document in &mut documents {
        document.origin.file = Some(Arc::clone(&file));
    }
    Ok(documents)
}

pub(super) fn is_lines(bytes: &[u8]) -> bool {
    let bytes = bytes
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(bytes)
        .trim_ascii();
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return false;
    };
    // One document never looks like this; a broken first line must not hide the others.
    let (first, rest) = (
        bytes[..end].trim_ascii_end(),
        bytes[end..].trim_ascii_start(),
    );
    if first.ends_with(b"}") && rest.starts_with(b"{") {
        return true;
    }
    let Ok(line) = std::str::from_utf8(first) else {
        return false;
    };
    let mut reader = Reader::new(line);
    reader.skip_value().and_then(|_| reader.end()).is_ok()
}
