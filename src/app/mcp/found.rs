//! What may be sessions below a directory, by the names of files alone.

use crate::budget::manifest::MANIFEST;
use cap_std::fs::Dir;
use std::io;

/// How deep directories are searched, and how many entries are looked at.
const LEVELS: usize = 8;
const ENTRIES: usize = 20_000;

/// What may be a session, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FoundCandidate {
    File(FoundFile),
    /// A directory of documents, and its files.
    Directory(String, Vec<FoundFile>),
    Store(FoundFile),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) path: String,
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct FileSearch {
    /// In the order of their paths, directories after the files beside them.
    pub(super) candidates: Vec<FoundCandidate>,
    /// Whether it ended before everything was seen.
    pub(super) cut: bool,
    /// How many files have a name that is not UTF-8.
    pub(super) unnamed: usize,
    entries: usize,
}

/// Whether a name is that of a file of documents or a log, and whether of one with many lines.
fn is_text(name: &str) -> Option<bool> {
    let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst"));
    match plain.unwrap_or(name).rsplit_once('.')?.1 {
        "jsonl" | "ndjson" => Some(true),
        "json" | "traj" | "yaml" | "yml" | "eval" | "har" => Some(false),
        _ => None,
    }
}

impl FileSearch {
    /// Searches a directory, which is called `name` ("" for the root), and those below it. Hidden names, links, names that
    /// are not UTF-8 and caches of documents are left out; files with such names are counted.
    pub(super) fn below(dir: &Dir, name: &str) -> io::Result<Self> {
        let mut found = Self::default();
        found.search(dir, name, LEVELS)?;
        Ok(found)
    }

    fn search(&mut self, dir: &Dir, name: &str, levels: usize) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in dir.entries()? {
            if self.entries >= ENTRIES {
                self.cut = true;
                break;
            }
            self.entries += 1;
            let entry = entry?;
            let kind = entry.file_type()?;
            match entry.file_name().into_string() {
                Ok(last) if last.starts_with('.') => {}
                Ok(last) if kind.is_dir() || kind.is_file() => names.push((last, kind.is_dir())),
                Ok(_) => {}
                Err(_) => self.unnamed += usize::from(kind.is_file()),
            }
        }
        names.sort_unstable();
        let has = |wanted: &str| names.iter().any(|(name, _)| name == wanted);
        if has(MANIFEST) && has("documents") {
            return Ok(());
        }
        self.files(dir, name, &names);
        for (last, _) in names.iter().filter(|(_, is_dir)| *is_dir) {
            match levels {
                0 => self.cut = true,
                _ => {
                    let below = dir.open_dir(last);
                    let place = joined(name, last);
                    let _ = below.and_then(|below| self.search(&below, &place, levels - 1));
                }
            }
        }
        Ok(())
    }

    /// Adds the files of a directory: each, or all as one if they can only be documents of one session.
    fn files(&mut self, dir: &Dir, name: &str, names: &[(String, bool)]) {
        let mut documents = Vec::new();
        let mut lines = false;
        for (last, _) in names.iter().filter(|(_, is_dir)| !is_dir) {
            let part = || FoundFile {
                path: joined(name, last),
                bytes: dir.symlink_metadata(last).map_or(0, |data| data.len()),
            };
            match is_text(last) {
                Some(is_lines) => {
                    lines |= is_lines;
                    documents.push(part());
                }
                None if last.ends_with(".db") => {
                    self.candidates.push(FoundCandidate::Store(part()))
                }
                None => {}
            }
        }
        if documents.len() > 1 && !lines {
            let name = if name.is_empty() { "." } else { name };
            self.candidates
                .push(FoundCandidate::Directory(name.to_owned(), documents));
        } else {
            self.candidates
                .extend(documents.into_iter().map(FoundCandidate::File));
        }
    }
}

pub(super) fn joined(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        _ => format!("{directory}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{FileSearch, FoundCandidate};
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    #[test]
    fn candidates_are_found_by_their_names() {
        let place = std::env::temp_dir().join(format!("pactql-found-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).expect("a directory");
        let dir = Dir::open_ambient_dir(&place, ambient_authority()).expect("a directory");
        for name in [
            "b.jsonl",
            "a.json",
            "store.db",
            "store.db-wal",
            "notes.md",
            ".hidden.json",
            "logs/2/x.ndjson.gz",
            "run/1.json",
            "run/2.json.gz",
            "one/1.json",
            "cache/manifest.json",
            "cache/index.json",
            "cache/documents/0.json",
            ".git/x.json",
        ] {
            if let Some((parent, _)) = name.rsplit_once('/') {
                dir.create_dir_all(parent).expect("a directory");
            }
            dir.write(name, name).expect("a file");
        }
        #[cfg(target_os = "linux")]
        {
            let name: std::ffi::OsString =
                std::os::unix::ffi::OsStringExt::from_vec(b"b\xff.json".to_vec());
            dir.write(name, "").expect("a file");
        }
        let found = FileSearch::below(&dir, "").expect("a directory");
        assert_eq!(found.unnamed, usize::from(cfg!(target_os = "linux")));
        let names: Vec<String> = found
            .candidates
            .iter()
            .map(|candidate| match candidate {
                FoundCandidate::File(part) => format!("{} {}", part.path, part.bytes),
                FoundCandidate::Store(part) => format!("store {} {}", part.path, part.bytes),
                FoundCandidate::Directory(name, parts) => format!("{name} of {}", parts.len()),
            })
            .collect();
        let expected = [
            "store store.db 8",
            "a.json 6",
            "b.jsonl 7",
            "logs/2/x.ndjson.gz 18",
            "one/1.json 10",
            "run of 2",
        ];
        assert_eq!(names, expected);
        assert!(!found.cut);
        let _ = std::fs::remove_dir_all(&place);
    }
}
