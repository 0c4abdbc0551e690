//! The files of folders of logs, and what their sessions are called. It must not know what is done with them.

use crate::app::present::{Exit, Failure};
use crate::logs::{self, is_opencode, is_storage};
use crate::tree::source::{check_listed, files_below};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A file, and what its sessions are named after.
#[derive(Clone)]
pub(super) struct LogSource {
    pub(super) path: String,
    pub(super) stem: String,
    /// Whether a directory lists it, and no argument names it.
    pub(super) is_listed: bool,
}

impl LogSource {
    /// A file whose sessions are named after it.
    pub(super) fn new(path: &str) -> Self {
        let name = Path::new(path).file_name().filter(|name| *name != "-");
        let name = name.map(|name| name.to_string_lossy().into_owned());
        let stem = name.as_deref().map_or("session", logs::stem);
        Self {
            path: path.to_owned(),
            stem: stem.to_owned(),
            is_listed: false,
        }
    }

    /// Whether the others are read without it. What was named and is not there, or cannot be what was asked for, is a
    /// mistake in the command.
    pub(super) fn is_left_out(&self, failure: &Failure) -> bool {
        match failure.exit() {
            Exit::Input | Exit::Io => true,
            Exit::Missing | Exit::Usage => self.is_listed,
            _ => false,
        }
    }

    /// Refuses what a directory lists and cannot be read, without opening it.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.is_listed {
            return Ok(());
        }
        check_listed(Path::new(&self.path)).map_err(|error| Failure::file(&self.path, &error))
    }

    /// The files below a folder, whose sessions are named after their paths in it. A folder in which opencode keeps its
    /// sessions is one, unless the database that has them since is beside it.
    pub(super) fn below(folder: &Path) -> Result<Vec<Self>, Failure> {
        if is_storage(folder) {
            return Ok(vec![Self::new(&folder.to_string_lossy())]);
        }
        let mut storages: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
        let mut files = Vec::new();
        for file in files_below(folder)? {
            let above = file.parent().unwrap_or(folder);
            let storage = storages.entry(above.to_owned()).or_insert_with(|| {
                let above = above.ancestors().take_while(|above| *above != folder);
                let found = above.filter(|above| is_storage(above)).last();
                found.map(Path::to_owned)
            });
            files.push(storage.clone().unwrap_or(file));
        }
        files.dedup();
        let files = files.into_iter();
        let files = files.filter(|file| !is_beside_log(file) && !is_moved(file));
        let files = files.map(|file| {
            let inside = file.strip_prefix(folder).unwrap_or(&file);
            let parts = inside.iter().map(|part| part.to_string_lossy());
            let inside = parts.collect::<Vec<_>>().join("/");
            Self {
                stem: logs::stem(&inside).to_owned(),
                path: file.display().to_string(),
                is_listed: !is_storage(&file),
            }
        });
        Ok(files.collect())
    }
}

/// Whether a folder of opencode has a database beside it that has its sessions since.
pub(super) fn is_moved(folder: &Path) -> bool {
    is_storage(folder) && is_opencode(&folder.with_file_name("opencode.db"))
}

/// Whether a file is not a log but belongs to one: of Claude Code, what is known of a subagent, or the output of
/// a tool that was too long for the log; the log and the index of a database.
fn is_beside_log(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let database = ["-wal", "-shm"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    if let Some(database) = database.filter(|name| name.ends_with(".db")) {
        return file.with_file_name(database).exists();
    }
    let about = name.strip_suffix(".meta.json");
    if let Some(agent) = about {
        return file.with_file_name(format!("{agent}.jsonl")).exists();
    }
    let above = file
        .parent()
        .filter(|above| above.ends_with("tool-results"));
    let session = above.and_then(Path::parent);
    session.is_some_and(|session| session.with_extension("jsonl").exists())
}
