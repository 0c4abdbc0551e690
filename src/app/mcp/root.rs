//! The directory that clients may name files in.
//!
//! [`Root::resolve`] finds which file a name means, links resolved, and refuses names that lead
//! out. Files are then opened through a handle on the directory (cap-std), and the operating
//! system follows no path and no link out of it: a link that is changed between the two steps can
//! lead to another file inside, never to one outside.

use crate::app::present::{Failure, Result};
use crate::budget::files::{FileKind, Files, is_missing};
use cap_std::fs::{Dir, DirEntry, Metadata};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

#[derive(Debug)]
pub(super) struct Root {
    pub(super) handle: Dir,
    /// Absolute and without links, so that every file inside begins with it.
    pub(super) path: PathBuf,
}

impl Root {
    /// Opens the directory at `path`, which may be a link.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |error: io::Error| Failure::file(&name, &error);
        let path = path.canonicalize().map_err(failed)?;
        if !path.is_dir() {
            return Err(Failure::value(format!("{name} is not a directory")));
        }
        let handle = Dir::open_ambient_dir(&path, cap_std::ambient_authority()).map_err(failed)?;
        Ok(Self { handle, path })
    }

    /// The path below the root that a client's name means, without links.
    ///
    /// A name with `..` is refused even where it leads back inside. Links are followed as long as
    /// they end inside; one that ends outside is refused whatever is there. `None` if nothing has the name.
    ///
    /// # Errors
    /// The name is empty or absolute, has `..`, or leads out; the file system failed.
    pub(super) fn resolve(&self, name: &str) -> Result<Option<PathBuf>> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(plain) {
            return Err(outside(name));
        }
        self.without_links(Path::new(name), name)
    }

    /// As [`Root::resolve`], of a path below the root, which messages call `name`.
    pub(super) fn without_links(&self, path: &Path, name: &str) -> Result<Option<PathBuf>> {
        let found = match self.path.join(path).canonicalize() {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(Failure::file(name, &error)),
        };
        match found.strip_prefix(&self.path) {
            Ok(inside) if inside.as_os_str().is_empty() => Ok(Some(PathBuf::from("."))),
            Ok(inside) => Ok(Some(inside.to_owned())),
            Err(_) => Err(outside(name)),
        }
    }
}

/// A name below the root as results write it, without `.` and with forward slashes; empty for the root.
pub(super) fn plain(name: &str) -> String {
    let parts = Path::new(name).components();
    let parts = parts.filter(|part| matches!(part, Component::Normal(_)));
    let parts: Vec<&str> = parts.filter_map(|part| part.as_os_str().to_str()).collect();
    parts.join("/")
}

fn outside(name: &str) -> Failure {
    let name = crate::app::present::clean(name, 200);
    Failure::value(format!("`{name}` is not inside the directory served"))
        .with_help("paths are relative to it, without `..`, and no link leads out of it")
}

/// The directory of a cache, opened through [`Root::handle`](Root).
#[derive(Debug)]
pub(super) struct CacheDir {
    dir: Dir,
    /// The handle of the root, and where the directory is in it, without links.
    root: Dir,
    place: PathBuf,
}

impl CacheDir {
    pub(super) fn open(root: &Dir, place: PathBuf) -> io::Result<Self> {
        Ok(Self {
            dir: root.open_dir(&place)?,
            root: root.try_clone()?,
            place,
        })
    }
}

impl Files for CacheDir {
    /// A cache that is rebuilt is another directory of the same name.
    fn again(&self) -> Option<Box<dyn Files>> {
        let again = Self::open(&self.root, self.place.clone()).ok()?;
        Some(Box::new(again))
    }

    fn open(&self, path: &str) -> io::Result<File> {
        self.dir.open(path).map(cap_std::fs::File::into_std)
    }

    fn stat(&self, path: &str) -> io::Result<(FileKind, u64)> {
        let kind = |data: Metadata| (FileKind::new(data.is_file(), data.is_dir()), data.len());
        self.dir.symlink_metadata(path).map(kind)
    }

    fn names(&self, path: &str) -> io::Result<Vec<OsString>> {
        let name = |entry: io::Result<DirEntry>| Ok(entry?.file_name());
        self.dir.read_dir(path)?.map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Root;
    use crate::app::present::Exit;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A directory to serve with a neighbour that must stay unseen, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let id = std::process::id();
            let path = std::env::temp_dir().join(format!("pactql-root-{name}-{id}"));
            let _ = fs::remove_dir_all(&path);
            for dir in ["root/sub/deep", "root-not", "secret"] {
                fs::create_dir_all(path.join(dir)).expect("a directory");
            }
            for file in [
                "root/a.json",
                "root/sub/b.json",
                "root-not/c.json",
                "secret/d.json",
            ] {
                fs::write(path.join(file), "{}").expect("a file");
            }
            Self(path)
        }

        fn root(&self) -> Root {
            Root::open(&self.0.join("root")).expect("a directory")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[track_caller]
    fn resolved(root: &Root, name: &str) -> PathBuf {
        let found = root.resolve(name).expect(name);
        found.expect(name)
    }

    #[track_caller]
    fn refused(root: &Root, name: &str) {
        match root.resolve(name) {
            Err(failure) => {
                assert_eq!(failure.exit(), Exit::Value, "{name:?}");
                let text = failure.to_string();
                assert!(text.contains("is not inside"), "{name:?}: {text}");
            }
            other => unreachable!("{name:?}: {other:?}"),
        }
    }

    #[test]
    fn names_inside_are_found() {
        let scratch = Scratch::new("inside");
        let root = scratch.root();
        for (name, place) in [
            (".", "."),
            ("a.json", "a.json"),
            ("./sub//b.json", "sub/b.json"),
            ("sub/.", "sub"),
            ("sub/deep/", "sub/deep"),
        ] {
            let found = resolved(&root, name);
            assert_eq!(found, Path::new(place), "{name}");
            assert!(root.handle.metadata(&found).is_ok(), "{name}");
        }
        for name in ["b.json", "a.json/x", "sub/..hidden"] {
            assert!(matches!(root.resolve(name), Ok(None)), "{name}");
        }
    }

    #[test]
    fn names_that_lead_upwards_or_start_elsewhere_are_refused() {
        let scratch = Scratch::new("upwards");
        let root = scratch.root();
        let absolute = scratch.0.join("secret/d.json").display().to_string();
        let inside = root.path.join("a.json").display().to_string();
        for name in [
            "",
            "..",
            "../secret/d.json",
            "sub/../a.json",
            "sub/deep/../../../secret/d.json",
            "./../root/a.json",
            "../root-not/c.json",
            "/",
            "/etc/passwd",
            &absolute,
            &inside,
            "a.json\0",
        ] {
            refused(&root, name);
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_inside_and_refused_where_they_leave() {
        use std::os::unix::fs::symlink;
        let scratch = Scratch::new("links");
        let root = scratch.root();
        for (target, name) in [
            ("../secret/d.json", "file"),
            ("../secret", "dir"),
            ("../../secret", "sub/up"),
            ("dir", "again"),
            ("..", "parent"),
            ("../root-not", "sibling"),
            ("sub/b.json", "good"),
            ("../root/sub", "round"),
            ("nothing", "dangling"),
            ("loop", "loop"),
        ] {
            symlink(target, root.path.join(name)).expect("a link");
        }
        let elsewhere: &Path = &scratch.0.join("secret");
        symlink(elsewhere, root.path.join("absolute")).expect("a link");
        for name in [
            "file",
            "dir",
            "dir/d.json",
            "sub/up/d.json",
            "again/d.json",
            "parent",
            "parent/secret/d.json",
            "sibling/c.json",
            "absolute/d.json",
        ] {
            refused(&root, name);
        }
        for name in ["good", "round/b.json", "parent/root/a.json"] {
            let found = resolved(&root, name);
            assert!(root.handle.open(found).is_ok(), "{name}");
        }
        assert!(matches!(root.resolve("dangling"), Ok(None)));
        assert!(root.resolve("loop").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_is_changed_after_it_was_resolved_leads_nowhere_outside() {
        use std::os::unix::fs::symlink;
        let scratch = Scratch::new("changed");
        let root = scratch.root();
        let (file, deep) = ["a.json", "sub/b.json"]
            .map(|name| resolved(&root, name))
            .into();
        fs::remove_file(root.path.join("a.json")).expect("a file");
        symlink("../secret/d.json", root.path.join("a.json")).expect("a link");
        assert!(root.handle.open(file).is_err());
        fs::rename(root.path.join("sub"), root.path.join("old")).expect("a directory");
        symlink("../secret", root.path.join("sub")).expect("a link");
        fs::write(scratch.0.join("secret/b.json"), "{}").expect("a file");
        assert!(root.handle.open(deep).is_err());
        assert!(root.handle.open_dir("sub").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_root_that_is_a_link_is_the_directory_it_leads_to() {
        let scratch = Scratch::new("linked");
        let link = scratch.0.join("link");
        std::os::unix::fs::symlink("root", &link).expect("a link");
        let root = Root::open(&link).expect("a directory");
        assert!(matches!(root.resolve("sub/b.json"), Ok(Some(_))));
        assert!(Root::open(&scratch.0.join("none")).is_err());
        assert!(Root::open(&scratch.0.join("root/a.json")).is_err());
    }

    /// A cache that was opened and then rebuilt is read in its new state.
    #[test]
    fn a_replaced_cache_is_opened_again() {
        use super::CacheDir;
        use crate::budget::{BuildOptions, Cache, Query, build};
        let scratch = Scratch::new("again");
        let sources = scratch.0.join("sources");
        fs::create_dir(&sources).expect("a directory");
        let cache = scratch.0.join("root/cache");
        let build = |text: &str| {
            fs::write(sources.join("a.md"), text).expect("a file");
            let options = BuildOptions {
                force: true,
                created_at: std::time::UNIX_EPOCH,
            };
            build(&sources, &cache, options).expect("a cache");
        };
        build("the first refund");
        let root = scratch.root();
        let place = resolved(&root, "cache");
        let dir = CacheDir::open(&root.handle, place).expect("a directory");
        let opened = Cache::open_in(PathBuf::from("cache"), Box::new(dir)).expect("a cache");
        build("the second refund");
        let answer = opened
            .resolve(&Query::new("refund"), 100)
            .expect("an answer");
        assert_eq!(answer.documents[0].content, "the second refund");
    }
}
