//! The directory that clients may name files in, and no others.

use crate::present::Failure;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A directory, and everything that is really inside it.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// Without links, so that what is inside begins with it.
    dir: PathBuf,
}

/// Why a name leads to nothing that may be read.
#[derive(Debug)]
pub(super) enum Refusal {
    /// There is nothing of this name.
    Missing,
    /// The name is none that is allowed, or leads out.
    Failure(Failure),
}

impl Root {
    /// The directory at `path`, by its place without links.
    ///
    /// # Errors
    /// There is no such directory.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let dir = path
            .canonicalize()
            .map_err(|error| Failure::file(&name, &error))?;
        if dir.is_dir() {
            Ok(Self { dir })
        } else {
            Err(Failure::value(format!("{name} is not a directory")))
        }
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The place that a relative name stands for, without links.
    ///
    /// A name never leads upwards, not even on its way to something inside, so what it means can
    /// be read off it; and where links lead is looked up, so one that leaves the directory is
    /// refused whatever stands behind it. Links that lead from one place inside to another are
    /// followed. Whoever can change the directory while it is served can change a link between
    /// this look and the reading: the rule keeps clients in, not those who write the files.
    ///
    /// # Errors
    /// An empty or absolute name, one with `..` in it, one that leads out, one of nothing.
    pub(super) fn resolve(&self, name: &str) -> Result<PathBuf, Refusal> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(plain) {
            return Err(outside(name));
        }
        self.place_of(&self.dir.join(name), name)
    }

    /// The place of a file that a client did not name itself, without links; `name` is what
    /// messages call it.
    ///
    /// # Errors
    /// It is not inside, or there is none.
    pub(super) fn place_of(&self, path: &Path, name: &str) -> Result<PathBuf, Refusal> {
        match path.canonicalize() {
            Ok(place) if place.starts_with(&self.dir) => Ok(place),
            Ok(_) => Err(outside(name)),
            Err(error) if is_missing(&error) => Err(Refusal::Missing),
            Err(error) => Err(Refusal::Failure(Failure::file(name, &error))),
        }
    }
}

impl Refusal {
    /// The failure, with `missing` for a name of nothing.
    pub(super) fn or_missing(self, missing: impl FnOnce() -> Failure) -> Failure {
        match self {
            Self::Missing => missing(),
            Self::Failure(failure) => failure,
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

fn outside(name: &str) -> Refusal {
    let name = crate::present::clean(name, 200);
    Refusal::Failure(
        Failure::value(format!("`{name}` is not inside the directory served"))
            .with_help("paths are relative to it, without `..`, and no link leads out of it"),
    )
}

#[cfg(test)]
mod tests {
    use super::{Refusal, Root};
    use crate::present::Exit;
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
    fn refused(root: &Root, name: &str) {
        match root.resolve(name) {
            Err(Refusal::Failure(failure)) => {
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
            (".", ""),
            ("a.json", "a.json"),
            ("./sub//b.json", "sub/b.json"),
            ("sub/.", "sub"),
            ("sub/deep/", "sub/deep"),
        ] {
            let found = root.resolve(name).expect(name);
            assert_eq!(found, root.dir().join(place), "{name}");
        }
        for name in ["b.json", "a.json/x", "sub/..hidden"] {
            assert!(
                matches!(root.resolve(name), Err(Refusal::Missing)),
                "{name}"
            );
        }
    }

    #[test]
    fn names_that_lead_upwards_or_start_elsewhere_are_refused() {
        let scratch = Scratch::new("upwards");
        let root = scratch.root();
        let absolute = scratch.0.join("secret/d.json").display().to_string();
        let inside = root.dir().join("a.json").display().to_string();
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
            symlink(target, root.dir().join(name)).expect("a link");
        }
        let elsewhere: &Path = &scratch.0.join("secret");
        symlink(elsewhere, root.dir().join("absolute")).expect("a link");
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
            assert!(root.resolve(name).is_ok(), "{name}");
        }
        assert!(matches!(root.resolve("dangling"), Err(Refusal::Missing)));
        assert!(matches!(root.resolve("loop"), Err(Refusal::Failure(_))));
    }

    #[cfg(unix)]
    #[test]
    fn a_root_that_is_a_link_is_the_directory_behind_it() {
        let scratch = Scratch::new("linked");
        let link = scratch.0.join("link");
        std::os::unix::fs::symlink("root", &link).expect("a link");
        let root = Root::open(&link).expect("a directory");
        assert!(root.resolve("sub/b.json").is_ok());
        assert!(Root::open(&scratch.0.join("none")).is_err());
        assert!(Root::open(&scratch.0.join("root/a.json")).is_err());
    }
}
