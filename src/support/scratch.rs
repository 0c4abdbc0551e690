//! Files and directories that are written beside their target and get its name when they are whole.
//!
//! Each is in a list while it is written, so that a program that is interrupted can remove it ([`end`]),
//! and locked, so that the next program that writes to the same target knows those that a killed one left
//! behind, and removes them. This module must not know what is in them.

use super::lock;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What is being written in this process.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Tells several parts of one process for one target apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The ending of the name of what is not whole.
const PART: &str = ".part";

/// Something that is being written: it is removed when this is dropped, unless it was renamed.
#[derive(Debug)]
pub(crate) struct PartialFile {
    path: PathBuf,
    /// With a lock while it is written.
    file: File,
}

impl PartialFile {
    /// A new file beside `target`, with the mode of `like`, or else for its owner alone. Removes what killed processes left there for
    /// the same target. Errors: the file system's.
    pub(crate) fn file(target: &Path, like: Option<&Metadata>) -> io::Result<Self> {
        clean(target, |part| part.is_file());
        let mut options = private();
        #[cfg(unix)]
        if let Some(like) = like {
            use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
            // Before anything is in it: the file may be private.
            options.mode(like.mode() & 0o777);
        }
        #[cfg(not(unix))]
        let _ = like;
        Self::make(target, |path| options.open(path))
    }

    /// A new directory beside `target`. Removes those that killed processes left there for the same target,
    /// if `is_ours` says so of what is in them. Errors: the file system's.
    pub(crate) fn directory(target: &Path, is_ours: impl Fn(&Path) -> bool) -> io::Result<Self> {
        clean(target, |part| part.is_dir() && is_ours(part));
        Self::make(target, |path| {
            private_directory(path, false)?;
            File::open(path)
        })
    }

    fn make(target: &Path, create: impl Fn(&Path) -> io::Result<File>) -> io::Result<Self> {
        loop {
            let path = named(target, NEXT.fetch_add(1, Ordering::Relaxed));
            let mut open = self::open();
            let file = match create(&path) {
                // Of a process of the same number, on another machine.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            open.push(path.clone());
            drop(open);
            let made = Self { path, file };
            match made.file.try_lock() {
                // Another process takes it for a left one, and removes it.
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                    return Err(error);
                }
                _ => {}
            }
            // Another process may have taken it for a left one before it was locked.
            if made.path.exists() {
                return Ok(made);
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open(&self) -> &File {
        &self.file
    }

    /// Gives it the name `target`, and returns the file, still locked.
    /// Errors: the file system's; it is removed then.
    pub(crate) fn rename(self, target: &Path) -> io::Result<File> {
        fs::rename(&self.path, target)?;
        self.file.try_clone()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        let mut open = self::open();
        remove(&self.path);
        open.retain(|path| *path != self.path);
    }
}

/// How a new file is made that its owner alone may read: what sessions say is private.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a directory that its owner alone may read, with those above it if they may be missing.
pub(crate) fn private_directory(path: &Path, above: bool) -> io::Result<()> {
    let mut made = fs::DirBuilder::new();
    made.recursive(above);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut made, 0o700);
    made.create(path)
}

/// Removes all that is being written, and keeps other threads from starting again: the program ends now.
pub(crate) fn end() {
    let open = open();
    open.iter().for_each(|path| remove(path));
    std::mem::forget(open);
}

fn open() -> MutexGuard<'static, Vec<PathBuf>> {
    lock(&OPEN)
}

fn remove(path: &Path) {
    // There is nowhere to report a failure, and the next program tries again.
    let _ = match path.symlink_metadata() {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
}

/// The path of a part: hidden, in the same directory.
fn named(target: &Path, number: u64) -> PathBuf {
    let mut name = stem(target);
    name.push(format!("{}-{number}{PART}", std::process::id()));
    target.with_file_name(name)
}

/// What the names of all parts for a target begin with.
fn stem(target: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".");
    name
}

/// Whether a file of this name is one that was being written, of any target.
#[cfg(feature = "parquet")]
pub(crate) fn is_part(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let inside = name
        .strip_prefix(b".")
        .and_then(|name| name.strip_suffix(PART.as_bytes()));
    let mut ends = inside
        .into_iter()
        .flat_map(|name| name.rsplitn(2, |byte| *byte == b'.'));
    ends.next().is_some_and(is_number) && ends.next().is_some_and(|target| !target.is_empty())
}

/// What [`named`] puts between the name of the target and [`PART`].
fn is_number(middle: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    !middle.is_empty() && middle.iter().all(is_digit)
}

/// Removes the parts that no process is writing, and that are of this program. Costs a listing of the directory.
fn clean(target: &Path, is_ours: impl Fn(&Path) -> bool) {
    let parent = target.parent().filter(|parent| *parent != Path::new(""));
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else {
        return;
    };
    let stem = stem(target);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let middle = name.as_encoded_bytes();
        let middle = middle.strip_prefix(stem.as_encoded_bytes());
        let middle = middle.and_then(|name| name.strip_suffix(PART.as_bytes()));
        if !middle.is_some_and(is_number) {
            continue;
        }
        if is_ours(&entry.path())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            remove(&entry.path());
            // It was locked until now, so that no other process took it for theirs.
            drop(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("pactql-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    fn names(place: &Path) -> Vec<String> {
        let entries = fs::read_dir(place).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_part_is_removed_unless_it_gets_its_name() {
        let place = place("part");
        let target = place.join("out");
        drop(PartialFile::file(&target, None).unwrap());
        drop(PartialFile::directory(&target, |_| true).unwrap());
        assert!(names(&place).is_empty());
        PartialFile::file(&target, None)
            .unwrap()
            .rename(&target)
            .unwrap();
        assert_eq!(names(&place), ["out"]);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn only_what_nobody_writes_is_cleaned() {
        let place = place("clean");
        let target = place.join("out");
        // Of killed processes: a file and a directory. Of others: what only looks alike.
        fs::write(place.join(".out.77-0.part"), "left").unwrap();
        fs::create_dir(place.join(".out.78-3.part")).unwrap();
        fs::write(place.join(".out.78-3.part").join("inside"), "left").unwrap();
        fs::write(place.join(".out.mine.part"), "").unwrap();
        fs::write(place.join(".other.77-0.part"), "").unwrap();
        let first = PartialFile::file(&target, None).unwrap();
        let second = PartialFile::file(&target, None).unwrap();
        assert!(first.path().exists() && second.path().exists());
        #[cfg(feature = "parquet")]
        {
            let all = names(&place).into_iter();
            let parts: Vec<String> = all.filter(|name| is_part(name.as_ref())).collect();
            let own = |part: &PartialFile| {
                part.path()
                    .file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            };
            let mut wanted = vec![".other.77-0.part".to_owned(), ".out.78-3.part".to_owned()];
            wanted.extend([own(&first), own(&second)]);
            wanted.sort_unstable();
            assert_eq!(parts, wanted);
        }
        drop((first, second));
        let kept = [".other.77-0.part", ".out.78-3.part", ".out.mine.part"];
        assert_eq!(names(&place), kept);
        drop(PartialFile::directory(&target, |_| false).unwrap());
        assert_eq!(names(&place), kept);
        drop(PartialFile::directory(&target, |_| true).unwrap());
        assert_eq!(names(&place), [kept[0], kept[2]]);
        fs::remove_dir_all(place).unwrap();
    }
}
