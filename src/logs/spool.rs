//! Changes that do not fit into memory: a file that is appended to, and read piece by piece.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file for the changes of the sessions of one log. It is the caller's, who removes it.
#[derive(Clone, Debug)]
pub(super) struct Spool(Arc<Mutex<SpoolFile>>);

#[derive(Debug)]
struct SpoolFile {
    file: File,
    written: u64,
    pending: Vec<u8>,
    failure: Option<io::Error>,
    failed: bool,
}

const PENDING: usize = 1 << 20;

impl Spool {
    pub(super) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(SpoolFile {
            file,
            written: 0,
            pending: Vec::new(),
            failure: None,
            failed: false,
        })))
    }

    fn contents(&self) -> MutexGuard<'_, SpoolFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.contents().failed
    }

    /// Writes what is not written yet, or returns the first error of a write.
    pub(super) fn check(&self) -> io::Result<()> {
        self.contents().flush()
    }
}

impl SpoolFile {
    /// Appends a piece and returns where it begins.
    fn append(&mut self, piece: &[u8]) -> u64 {
        let start = self.written + self.pending.len() as u64;
        if self.failed {
            return start;
        }
        self.pending.extend_from_slice(piece);
        if self.pending.len() >= PENDING {
            self.failure = self.flush().err();
        }
        start
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed {
            let known = self.failure.take();
            return Err(known.unwrap_or_else(|| io::ErrorKind::Other.into()));
        }
        let place = self.file.seek(SeekFrom::Start(self.written));
        let done = place.and_then(|_| self.file.write_all(&self.pending));
        self.written += self.pending.len() as u64;
        self.pending.clear();
        self.failed = done.is_err();
        done
    }

    fn read(&mut self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        if start + length as u64 > self.written {
            self.flush()?;
        }
        let mut bytes = vec![0; length];
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Spooled {
    spool: Spool,
    places: Vec<(u64, usize)>,
}

impl Spooled {
    pub(super) fn new(spool: Spool) -> Self {
        Self {
            spool,
            places: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn push(&mut self, packed: &str) {
        let start = self.spool.contents().append(packed.as_bytes());
        self.places.push((start, packed.len()));
    }

    pub(super) fn read(&self, index: usize) -> io::Result<String> {
        let (start, length) = *self.places.get(index).ok_or(io::ErrorKind::NotFound)?;
        let piece = self.spool.contents().read(start, length)?;
        String::from_utf8(piece).map_err(io::Error::other)
    }
}
