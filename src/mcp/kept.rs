//! Sessions that stay loaded between calls.

use super::root::{Refusal, Root};
use crate::history::Session;
use crate::present::{Failure, sessions};
use crate::tree::{Limits, SourceError};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes of files whose sessions are kept at most; a larger one is loaded for each call.
const KEPT_BYTES: u64 = 1 << 30;

/// What a session counts for at least, so that no more than 64 are kept.
const LEAST_BYTES: u64 = KEPT_BYTES / 64;

/// How often a session that changes while it is looked up is looked up again.
const TRIES: usize = 3;

/// Sessions by their place, each with the state of the files it was read from.
#[derive(Debug)]
pub(super) struct Kept {
    cache: Cache<PathBuf, Loaded, BySize>,
    limits: Limits,
}

/// A session and the state of its files just before they were read: what changes them later
/// shows as another state.
#[derive(Clone, Debug)]
struct Loaded {
    stamp: Stamp,
    session: Arc<Session>,
}

/// The names, lengths and times of a session's files, by name; a file is one with no name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp(Arc<[(OsString, u64, Option<SystemTime>)]>);

#[derive(Clone, Copy, Debug)]
struct BySize;

impl Weighter<PathBuf, Loaded> for BySize {
    fn weight(&self, _: &PathBuf, loaded: &Loaded) -> u64 {
        loaded.stamp.bytes().max(LEAST_BYTES)
    }
}

impl Kept {
    /// An empty store; `limits` are those of every session.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            cache: Cache::with_weighter(64, KEPT_BYTES, BySize),
            limits,
        }
    }

    /// The session named `name`, from memory while its files have the lengths and times they had.
    ///
    /// Calls for one session at one time load it once. The current directory must be the root's:
    /// the session is read by its name, so that messages call it what the client does.
    ///
    /// # Errors
    /// A name that leads out of the root, there or by a link in a directory; what reading a
    /// session fails with.
    pub(super) fn open(&self, root: &Root, name: &str) -> Result<Arc<Session>, Failure> {
        let place = root.resolve(name).map_err(|refusal| {
            refusal.or_missing(|| SourceError::Missing(PathBuf::from(name)).into())
        })?;
        let load = || sessions::open(Path::new(name), self.limits).map(Arc::new);
        for _ in 0..TRIES {
            let stamp = Stamp::of(root, &place, name)?;
            self.cache.remove_if(&place, |loaded| loaded.stamp != stamp);
            let loaded = self.cache.get_or_insert_with(&place, || {
                Ok::<_, Failure>(Loaded {
                    stamp: stamp.clone(),
                    session: load()?,
                })
            })?;
            // Another call may have loaded it meanwhile, from files that are others now.
            if loaded.stamp == stamp {
                return Ok(loaded.session);
            }
        }
        load()
    }
}

impl Stamp {
    /// The state of the session at `place`, which clients call `name`.
    ///
    /// # Errors
    /// What is there is neither file nor directory, or a file of the directory is really
    /// elsewhere, outside of the root; failures of the file system.
    fn of(root: &Root, place: &Path, name: &str) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::file(name, &error);
        let data = fs::metadata(place).map_err(failed)?;
        if data.is_file() {
            return Ok(Self([entry(OsString::new(), &data)].into()));
        }
        if !data.is_dir() {
            let message = format!("{name} is neither a file nor a directory");
            return Err(Failure::value(message));
        }
        let mut files = Vec::new();
        for file in fs::read_dir(place).map_err(failed)? {
            let file = file.map_err(failed)?;
            let file_name = file.file_name();
            // What a session of a directory is made of: no hidden files and no directories.
            if file_name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let called = format!("{name}/{}", file_name.to_string_lossy());
            match root.place_of(&file.path(), &called) {
                // Gone meanwhile, or a link to nothing.
                Err(Refusal::Missing) => {}
                Err(Refusal::Failure(failure)) => return Err(failure),
                Ok(place) => {
                    let data = fs::metadata(place).map_err(failed)?;
                    if data.is_file() {
                        files.push(entry(file_name, &data));
                    }
                }
            }
        }
        files.sort_unstable();
        Ok(Self(files.into()))
    }

    /// The bytes of all files.
    fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, bytes, _)| bytes).sum()
    }
}

fn entry(name: OsString, data: &Metadata) -> (OsString, u64, Option<SystemTime>) {
    (name, data.len(), data.modified().ok())
}

#[cfg(test)]
mod tests {
    use super::{Kept, Stamp};
    use crate::mcp::root::Root;
    use crate::tree::Limits;
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_session_is_read_once_by_all_calls() {
        // Tests run in the package's directory.
        let root = Root::open(Path::new(".")).expect("a directory");
        let kept = Kept::new(Limits::default());
        let open = |name: &str| kept.open(&root, name).expect("a session");
        let first = open("fixtures/support-agent.jsonl");
        std::thread::scope(|scope| {
            for name in [
                "fixtures/support-agent.jsonl",
                "./fixtures//support-agent.jsonl",
            ] {
                let (first, open) = (&first, &open);
                scope.spawn(move || assert!(Arc::ptr_eq(first, &open(name)), "{name}"));
            }
        });
        assert!(!Arc::ptr_eq(&first, &open("fixtures/greenhouse.jsonl")));
        // Failures are not kept: each call has its own.
        for _ in 0..2 {
            assert!(kept.open(&root, "fixtures/chat.openai.json").is_err());
        }
    }

    #[test]
    fn a_state_is_that_of_names_lengths_and_times() {
        let dir = std::env::temp_dir().join(format!("pactql-kept-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("session/below")).expect("a directory");
        let root = Root::open(&dir).expect("a directory");
        let place = root.dir().join("session");
        let stamp = || Stamp::of(&root, &place, "session").expect("a state");
        let write = |name: &str, text: &str| fs::write(place.join(name), text).expect("a file");
        write("a.json", "{}");
        let one = stamp();
        assert_eq!(one, stamp());
        // Hidden files and directories are no part of a session.
        write(".hidden", "x");
        write("below/c.json", "x");
        assert_eq!(one, stamp());
        write("b.json", "{}");
        let two = stamp();
        assert_ne!(one, two);
        write("b.json", "{} ");
        let longer = stamp();
        assert_ne!(two, longer);
        let file = fs::File::options().append(true).open(place.join("b.json"));
        let before = SystemTime::now() - Duration::from_secs(60);
        file.and_then(|file| file.set_modified(before))
            .expect("a file");
        assert_ne!(longer, stamp());
        #[cfg(unix)]
        {
            // A file of the session that is really elsewhere.
            std::os::unix::fs::symlink(std::env::current_exe().expect("us"), place.join("z.json"))
                .expect("a link");
            let refusal = Stamp::of(&root, &place, "session").expect_err("a file outside");
            assert!(
                refusal
                    .to_string()
                    .contains("`session/z.json` is not inside"),
                "{refusal}"
            );
        }
        let _ = fs::remove_dir_all(&dir);
    }
}
