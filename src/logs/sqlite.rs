//! SQLite files of other programs, opened to be read and never changed. This file must not know what is in them.

#[cfg(feature = "store")]
use percent_encoding::{AsciiSet, percent_encode};
#[cfg(feature = "store")]
use rusqlite::OpenFlags;
#[cfg(feature = "store")]
use rusqlite::{Connection, MAIN_DB, Result};
#[cfg(feature = "store")]
use std::path::Path;

pub(super) fn is_database(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SQLite format 3\0")
}

/// Whether the first bytes of a database say which program's it is (`pragma application_id`), as those of a store do. Those of
/// agents do not, so it is not opened to find out whether it is one.
pub(super) fn names_program(bytes: &[u8]) -> bool {
    bytes.get(68..72).is_some_and(|id| id != [0; 4])
}

/// The database of a file without what is beside it.
#[cfg(feature = "store")]
pub(super) fn of_bytes(bytes: &[u8]) -> Result<Connection> {
    let mut bytes = bytes.to_vec();
    // A database in memory has no write-ahead log.
    for version in bytes.iter_mut().skip(18).take(2) {
        *version = 1;
    }
    let mut database = Connection::open_in_memory()?;
    database.deserialize_read_exact(MAIN_DB, &bytes[..], bytes.len(), true)?;
    Ok(database)
}

/// The database of a file with its write-ahead log, as it is now. Without a log no file is made beside it.
#[cfg(feature = "store")]
pub(super) fn of_file(path: &Path) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let has_log = log_of(path).metadata().is_ok_and(|log| log.len() > 0);
    let database = if has_log {
        Connection::open_with_flags(path, flags)?
    } else {
        const SIGNS: &AsciiSet = &AsciiSet::EMPTY.add(b'%').add(b'?').add(b'#');
        flags |= OpenFlags::SQLITE_OPEN_URI;
        let path = path.as_os_str().as_encoded_bytes();
        let mut path = percent_encode(path, SIGNS).to_string();
        if cfg!(windows) {
            path = path.replace('\\', "/");
        }
        Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?
    };
    // All is read of one moment.
    database.execute_batch("begin")?;
    Ok(database)
}

/// Where the write-ahead log of a file is.
#[cfg(feature = "store")]
pub(crate) fn log_of(path: &Path) -> std::path::PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}
