//! What an import notes of a log, so that the same log is not read again: which bytes it read, with which options, what
//! it said of them, and what the log calls its sessions.
//!
//! A log is known by its length and an XXH3 hash of 128 bits over all its bytes. Times of files are not looked at. The hash
//! shows changes that come by chance and edits. A log can be crafted to have the hash of another: nothing here protects against
//! that. This file must not know where marks are kept.

use super::sqlite::log_of;
use super::{ImportReport, Imported, ImportedSession, KnownNames};
use crate::tree::source::files_below;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// The program that read a log: what another one makes of it may differ.
const IMPORTER: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("PACTQL_SOURCES"));

/// Fits into the second cache of a processor.
const BUFFER: usize = 256 << 10;

/// The bytes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogBytes {
    length: u64,
    hash: u128,
}

#[derive(Clone, Default)]
pub(crate) struct LogHasher {
    length: u64,
    hash: XxHash3_128,
}

impl LogHasher {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.hash.write(bytes);
    }

    pub(crate) fn finish(&self) -> LogBytes {
        LogBytes {
            length: self.length,
            hash: self.hash.finish_128(),
        }
    }

    fn add_file(&mut self, file: &Path, buffer: &mut [u8]) -> io::Result<()> {
        let mut file = File::open(file)?;
        loop {
            match file.read(buffer)? {
                0 => return Ok(()),
                read => self.add(buffer.get(..read).unwrap_or_default()),
            }
        }
    }
}

impl LogBytes {
    /// The bytes of the log at a path: a file; a database with its write-ahead log, or a folder, with the names and lengths
    /// of all files. Linear in them.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let mut hasher = LogHasher::default();
        let mut buffer = vec![0; BUFFER];
        let files = files_of(path)?;
        let is_one = files.len() == 1 && !path.is_dir();
        for file in files {
            if !is_one {
                let name = file.as_os_str().as_encoded_bytes();
                for number in [name.len() as u64, file.metadata()?.len()] {
                    hasher.add(&number.to_le_bytes());
                }
                hasher.add(name);
            }
            hasher.add_file(&file, &mut buffer)?;
        }
        Ok(hasher.finish())
    }

    /// Whether the log at a path has these bytes. A file of another length is not read.
    fn is_at(self, path: &Path) -> io::Result<bool> {
        if path.is_file() && path.metadata()?.len() > self.length {
            return Ok(false);
        }
        Ok(Self::at(path)? == self)
    }
}

fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_dir() {
        return files_below(path).map_err(io::Error::other);
    }
    let log = log_of(path);
    let has_log = log.metadata().is_ok_and(|log| log.len() > 0);
    Ok([path.to_owned()]
        .into_iter()
        .chain(has_log.then_some(log))
        .collect())
}

/// What an import notes of a log.
#[derive(Debug)]
pub(crate) struct LogMark {
    bytes: LogBytes,
    /// The options that decide what is made of the log, as they are given to the program.
    options: Vec<String>,
    pub(crate) report: ImportReport,
    /// Of each session the name and the owner that the log gives it.
    sessions: Vec<(Option<String>, Option<String>)>,
}

impl LogMark {
    pub(crate) fn new(bytes: LogBytes, options: Vec<String>, imported: &Imported) -> Self {
        let known = |session: &ImportedSession| (session.name.clone(), session.parent.clone());
        Self {
            bytes,
            options,
            report: imported.report.clone(),
            sessions: imported.sessions.iter().map(known).collect(),
        }
    }

    /// The mark as JSON, to be kept with a session of the log, by its number from 0. The first has the report.
    pub(crate) fn with_session(&self, number: usize) -> String {
        let (name, parent) = self.sessions.get(number).cloned().unwrap_or_default();
        let mut mark = json!({
            "hash": format!("{:032x}", self.bytes.hash),
            "importer": IMPORTER,
            "length": self.bytes.length,
            "name": name,
            "number": number,
            "of": self.sessions.len(),
            "options": self.options,
            "parent": parent,
        });
        if number == 0 {
            mark["report"] = self.report.to_json();
        }
        mark.to_string()
    }

    /// The marks of logs of which every session is there, each with the names that its sessions are kept under.
    pub(crate) fn whole(kept: Vec<(String, String)>) -> Vec<(Self, Vec<String>)> {
        let mut logs: BTreeMap<String, Vec<Option<(String, Value)>>> = BTreeMap::new();
        // A damaged mark may say any number of sessions.
        let most = kept.len();
        for (name, mark) in kept {
            let Ok(mark) = serde_json::from_str::<Value>(&mark) else {
                continue;
            };
            let at = |member: &str| usize::try_from(mark[member].as_u64()?).ok();
            let is_one = |number: &usize| at("of").is_some_and(|of| *number < of && of <= most);
            let number = at("number").filter(is_one);
            let Some(number) = number else {
                continue;
            };
            let log = ["hash", "importer", "length", "of", "options"].map(|name| &mark[name]);
            let sessions = logs.entry(json!(log).to_string()).or_default();
            if sessions.len() <= number {
                sessions.resize_with(number + 1, || None);
            }
            sessions[number] = Some((name, mark));
        }
        logs.into_values().filter_map(Self::read).collect()
    }

    fn read(sessions: Vec<Option<(String, Value)>>) -> Option<(Self, Vec<String>)> {
        let sessions: Option<Vec<(String, Value)>> = sessions.into_iter().collect();
        let (names, marks): (Vec<String>, Vec<Value>) = sessions?.into_iter().unzip();
        let first = marks.first()?;
        if first["importer"] != IMPORTER || first["of"].as_u64() != u64::try_from(marks.len()).ok()
        {
            return None;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mark = Self {
            bytes: LogBytes {
                length: first["length"].as_u64()?,
                hash: u128::from_str_radix(first["hash"].as_str()?, 16).ok()?,
            },
            options: first["options"]
                .as_array()?
                .iter()
                .filter_map(text)
                .collect(),
            report: ImportReport::from_json(&first["report"])?,
            sessions: marks
                .iter()
                .map(|mark| (text(&mark["name"]), text(&mark["parent"])))
                .collect(),
        };
        Some((mark, names))
    }

    /// Whether the log at a path is the one that was read, and would be read with the same options. Linear in the log
    /// if its length is the same.
    pub(crate) fn holds(&self, path: &Path, options: &[String]) -> bool {
        self.options == options && self.bytes.is_at(path).unwrap_or(false)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = KnownNames<'_>> {
        let known = self.sessions.iter();
        known.map(|(name, parent)| KnownNames::new(name.as_deref(), parent.as_deref()))
    }
}
