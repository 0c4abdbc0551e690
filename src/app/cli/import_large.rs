//! Logs that are too large to be read as a whole: into a store they go line by line.

use super::import_read::{Inputs, Made, OfFile};
use super::input;
use crate::app::present::Failure;
use crate::logs::{LogError, import_file, is_lines_of_a_log};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// Files of more bytes than this are read line by line, if they are JSON Lines.
const LARGE: u64 = 8 << 20;

/// How a file that is packed with gzip begins. It is unpacked into memory.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// A log in a large file, opened.
fn opened(path: &str) -> io::Result<Option<File>> {
    let data = match Path::new(path).metadata() {
        Ok(data) if data.is_file() && data.len() > LARGE => data,
        // The caller that reads it as a whole says what is wrong with it.
        _ => return Ok(None),
    };
    let mut file = File::open(path)?;
    let mut head = [0; 2];
    if data.len() >= 2 {
        file.read_exact(&mut head)?;
    }
    file.rewind()?;
    Ok((head != GZIP).then_some(file))
}

impl Inputs<'_> {
    /// The sessions of a log that is large; `None` if it is not, or no JSON Lines.
    pub(super) fn read_large(&self, path: &str) -> Result<Option<OfFile>, Failure> {
        // What is not of the named format may be a session, which is read as a whole.
        if path == input::STDIN || self.options.format.is_some() {
            return Ok(None);
        }
        let failed = |error| Failure::file(path, &error);
        let (Some(directory), Some(log)) = (&self.spools, opened(path).map_err(failed)?) else {
            return Ok(None);
        };
        if !is_lines_of_a_log(&log, &self.options).map_err(failed)? {
            return Ok(None);
        }
        let spool = tempfile::tempfile_in(directory)
            .map_err(|error| Failure::output(&directory.display().to_string(), &error))?;
        match import_file(&log, spool, &self.options) {
            Ok(imported) => Ok(imported.map(|imported| {
                let made = imported
                    .sessions
                    .into_iter()
                    .map(|log| Made::Log(Box::new(log)));
                (made.collect(), Some(imported.report))
            })),
            Err(LogError::Input(error)) => {
                Err(Failure::Input(vec![(input::name(path), error)], None))
            }
            Err(LogError::Io(error)) => Err(failed(error)),
            Err(LogError::Spool(error)) => {
                Err(Failure::output(&directory.display().to_string(), &error))
            }
        }
    }

    /// Whether a large file is a log; `None` if it is not large, or no JSON Lines.
    pub(super) fn is_large_log(&self, path: &Path) -> Option<bool> {
        self.spools.as_ref()?;
        let log = opened(path.to_str()?).ok()??;
        is_lines_of_a_log(&log, &self.options)
            .ok()
            .filter(|is_log| *is_log)
    }
}
