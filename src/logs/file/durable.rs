//! Files that are replaced as a whole, and locks on them.
//!
//! The lock is on the session file itself. Saving renames a new file over it, which is locked before it
//! gets the name; so a process that opens the file by its name finds a lock, and after locking checks that the
//! name is still that of the locked file.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::FileError;
use crate::history::LoadError;
use crate::support::cancel::check;
use crate::support::scratch::PartialFile;
use crate::tree::SourceError;

/// A file with a lock, which is given back when this is dropped. Closing the file is not enough: a process that
/// another thread is just starting has it open too for a moment, and the lock with it.
#[derive(Debug)]
pub(super) struct Locked(File);

impl std::ops::Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A file system without locks has none to give back.
        let _ = self.0.unlock();
    }
}

/// Opens a file to be written in place, and locks it. Returns it and its path without links.
pub(super) fn open(path: &Path) -> Result<(Locked, PathBuf), FileError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::from(SourceError::Missing(path.to_owned())).into(),
        _ => FileError::Io(path.to_owned(), error),
    };
    let refused = |why| FileError::NotInPlace(path.to_owned(), why);
    loop {
        let target = path.canonicalize().map_err(failed)?;
        let data = target.metadata().map_err(failed)?;
        if data.is_dir() {
            return Err(refused("a directory cannot be written in place"));
        }
        if !data.is_file() {
            return Err(refused("only a file can be written in place"));
        }
        if data.permissions().readonly() {
            return Err(refused("the file is read-only"));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&target)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FileError::Busy(path.to_owned())),
            // Of a file system without locks: the user takes care.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let file = Locked(file);
        if !is_named(&file, &target).map_err(failed)? {
            // Another process has saved meanwhile.
            continue;
        }
        return Ok((file, target));
    }
}

/// Refuses a file that is compressed: it would not be any more.
pub(super) fn check_plain(mut file: &File, path: &Path) -> Result<(), FileError> {
    let mut magic = [0_u8; 2];
    let read = file.read(&mut magic).and_then(|read| {
        file.seek(SeekFrom::Start(0))?;
        Ok(read)
    });
    let read = read.map_err(|error| FileError::Io(path.to_owned(), error))?;
    if magic[..read] == [0x1f, 0x8b] {
        Err(FileError::NotInPlace(
            path.to_owned(),
            "a compressed file cannot be written in place",
        ))
    } else {
        Ok(())
    }
}

#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (open, named) = (file.metadata()?, path.metadata()?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

type Produce<'p> = &'p mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

pub(super) fn create(
    path: &Path,
    mut produce: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Locked> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let part = written(path, None, &mut produce)?;
    part.open().sync_all()?;
    // Unlike a rename, a link does not replace a file that was made meanwhile.
    let file = match std::fs::hard_link(part.path(), path) {
        // A file system without links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => part.rename(path)?,
        linked => linked.and_then(|()| part.open().try_clone())?,
    };
    sync_directory(path)?;
    Ok(Locked(file))
}

/// Replaces a file that is `locked`, and keeps its mode. Returns the new one, locked.
pub(super) fn replace(
    path: &Path,
    locked: &File,
    mut produce: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Locked> {
    let part = written(path, Some(&locked.metadata()?), &mut produce)?;
    part.open().sync_all()?;
    let file = part.rename(path)?;
    sync_directory(path)?;
    Ok(Locked(file))
}

/// Writes a file as a whole: it is replaced if it exists, and keeps its mode and owner; links are followed to
/// it. A device or a pipe is written in place. Does not wait for the disk.
///
/// # Errors
/// The file is read-only; the work is cancelled; those of `produce` and of the file system. The file is
/// as it was then.
pub(crate) fn output(
    path: &Path,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A rename would replace it by a file; links to it, as /dev/stdout is one, need not lead to a name.
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        let mut file = BufWriter::new(File::create(path)?);
        return produce(&mut file).and_then(|()| file.flush());
    }
    let path = target(path)?;
    let like = match path.metadata() {
        Ok(data) if data.permissions().readonly() => {
            return Err(io::Error::other("the file is read-only"));
        }
        Ok(data) => Some(data),
        Err(_) => None,
    };
    let mut produce = Some(produce);
    let once = &mut |out: &mut dyn Write| produce.take().map_or(Ok(()), |produce| produce(out));
    written(&path, like.as_ref(), once)?.rename(&path)?;
    Ok(())
}

/// The path that a link leads to, which need not exist; any other path is itself.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many as Linux follows.
    for _ in 0..40 {
        match std::fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

fn written(path: &Path, like: Option<&Metadata>, produce: Produce<'_>) -> io::Result<PartialFile> {
    let part = PartialFile::file(path, like)?;
    let mut out = BufWriter::with_capacity(1 << 16, part.open());
    produce(&mut out)?;
    out.flush()?;
    drop(out);
    // What was written under a set token may be a part of it.
    check().map_err(io::Error::other)?;
    if let Some(like) = like {
        copy_owner(like, part.open())?;
        part.open().set_permissions(like.permissions())?;
    }
    Ok(part)
}

/// Gives a file the owner of another one, where that is allowed.
#[cfg(unix)]
fn copy_owner(like: &Metadata, file: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let (wanted, own) = (like, file.metadata()?);
    if (wanted.uid(), wanted.gid()) != (own.uid(), own.gid()) {
        // Only root may give files away, and everyone to a group of theirs; the mode is kept in any case.
        if fchown(file, Some(wanted.uid()), Some(wanted.gid())).is_err() {
            let _ = fchown(file, None, Some(wanted.gid()));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn copy_owner(_: &Metadata, _: &File) -> io::Result<()> {
    Ok(())
}

/// Waits until the new name of a file is on the disk.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As of a process that was just started and has not yet closed what it inherited.
    #[test]
    fn a_lock_goes_where_the_file_stays_open() {
        let name = format!("pactql-lock-{}.jsonl", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "{}").unwrap();
        let (locked, _) = open(&path).unwrap();
        assert!(matches!(open(&path), Err(FileError::Busy(_))));
        let inherited = locked.try_clone().unwrap();
        drop(locked);
        assert!(open(&path).is_ok());
        drop(inherited);
        std::fs::remove_file(&path).unwrap();
    }
}
