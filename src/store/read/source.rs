//! Which sources of sessions are the same log: two spellings of a path are.

use crate::store::database::sql::Database;
use crate::store::error::Result;
use std::collections::BTreeSet;
use std::env;
use std::path::{Component, Path, PathBuf};

/// Gives the sources of sessions one form, in which two spellings of a path are equal.
pub(crate) struct SourceForm {
    /// Where relative paths begin.
    directory: PathBuf,
}

impl SourceForm {
    pub(crate) fn new() -> Self {
        Self {
            directory: env::current_dir().unwrap_or_default(),
        }
    }

    /// A path is absolute and without `.` and `..`; the address of a server is as it was written. No file is looked at, so a
    /// link is another path.
    pub(crate) fn of(&self, source: &str) -> PathBuf {
        if source.contains("://") {
            return source.into();
        }
        let mut form = PathBuf::new();
        for part in self.directory.join(source).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    form.pop();
                }
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => form.push(part),
            }
        }
        form
    }
}

/// A source that others are compared with.
pub(crate) struct KnownSource<'a> {
    source: &'a str,
    forms: SourceForm,
    form: PathBuf,
}

impl<'a> KnownSource<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        let forms = SourceForm::new();
        let form = forms.of(source);
        Self {
            source,
            forms,
            form,
        }
    }

    pub(crate) fn is(&self, other: &str) -> bool {
        if other == self.source {
            return true;
        }
        // Most others have another name, which is seen at once.
        let name = Path::new(other).file_name();
        let may_be = name.is_none_or(|name| self.form.file_name() == Some(name));
        may_be && self.forms.of(other) == self.form
    }
}

/// How the sessions of a store spell a source, each spelling once. Linear in the sessions of the store.
pub(crate) fn spellings(database: &mut dyn Database, source: &str) -> Result<BTreeSet<String>> {
    let known = KnownSource::new(source);
    let mut found = BTreeSet::new();
    let sources = "select source from session where source is not null";
    database.query(sources, &[], &mut |row| {
        if let Some(other) = row.text(0)?.filter(|other| known.is(other)) {
            found.insert(other.to_owned());
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_path_are_one_source() {
        let here = env::current_dir().expect("a directory");
        let absolute = here.join("logs/a.jsonl");
        let absolute = absolute.to_str().expect("a path in UTF-8");
        let known = KnownSource::new("logs/a.jsonl");
        for same in [
            "logs/a.jsonl",
            "./logs/a.jsonl",
            "logs//x/../a.jsonl",
            absolute,
        ] {
            assert!(known.is(same), "{same}");
        }
        for other in [
            "a.jsonl",
            "logs/b.jsonl",
            "logs",
            "..",
            "",
            "http://logs/a.jsonl",
        ] {
            assert!(!known.is(other), "{other}");
        }
        let server = KnownSource::new("postgres://host/a");
        assert!(server.is("postgres://host/a") && !server.is("postgres://host/b/../a"));
        assert!(KnownSource::new(".").is(here.to_str().expect("a path in UTF-8")));
    }
}
