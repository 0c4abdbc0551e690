//! Reads case files and, on request, rewrites their results.
//!
//! A file is a list of paragraphs separated by blank lines:
//!
//! - `// …` is a comment.
//! - `== title` opens a section. The lines below it are settings such as `editions: depth
//!   canonical`; they apply to the cases that follow.
//! - `== session NAME` defines a session: an outline (`support::outline`) or lines of JSON.
//! - Anything else is a case: optional `# …` lines that say what it shows and which sentence of
//!   the specification rules it, one or more selectors, then the result. All selectors of a case
//!   must give that result, in every edition of the section.
//!
//! A result line starts with one of [`RESULTS`]. A selector that is empty, begins or ends with
//! white space, holds control characters, or could be mistaken for something else is written as
//! a JSON string.
//!
//! `PACTQL_BLESS=1` writes the results that the tests find into the files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::support::outline;
use crate::support::selector::Edition;

/// What a result line starts with.
const RESULTS: [&str; 7] = ["= ", "error ", "warning: ", "at ", "label ", "help ", "| "];

/// A file of cases.
pub(super) struct File {
    path: PathBuf,
    lines: Vec<String>,
    pub(super) cases: Vec<Case>,
    sessions: BTreeMap<String, Vec<String>>,
}

/// Selectors and the result they must give.
pub(super) struct Case {
    pub(super) title: String,
    pub(super) selectors: Vec<String>,
    pub(super) settings: BTreeMap<String, String>,
    /// Lines of the file that hold the result.
    result: std::ops::Range<usize>,
}

impl Case {
    /// A setting of the section.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// The editions in which the case must hold.
    pub(super) fn editions(&self) -> Vec<Edition> {
        let editions = self.setting("editions").expect("a section names editions");
        editions.split(' ').map(edition).collect()
    }
}

pub(super) fn edition(name: &str) -> Edition {
    match name {
        "v0.1" => Edition::V01,
        "depth" => Edition::Depth,
        "canonical" => Edition::Canonical,
        _ => panic!("there is no edition `{name}`"),
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// The case files of one kind, in the order of their names.
pub(super) fn files(kind: &str) -> Vec<File> {
    let entries = std::fs::read_dir(directory().join(kind)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(File::read).collect()
}

/// Compares every case of one kind with what `answer` gives, or blesses the files.
pub(super) fn check(kind: &str, answer: impl Fn(&File, &Case, Edition, &str) -> String) {
    let mut wrong = String::new();
    for mut file in files(kind) {
        let found: Vec<Vec<String>> = file
            .cases
            .iter()
            .map(|case| {
                let mut found: Vec<String> = case
                    .editions()
                    .into_iter()
                    .flat_map(|edition| case.selectors.iter().map(move |text| (edition, text)))
                    .map(|(edition, text)| answer(&file, case, edition, text))
                    .collect();
                found.dedup();
                found
            })
            .collect();
        file.compare(found, &mut wrong);
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

impl File {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut file = Self {
            lines: text.lines().map(str::to_owned).collect(),
            path,
            cases: Vec::new(),
            sessions: BTreeMap::new(),
        };
        let mut settings = BTreeMap::new();
        let mut at = 0;
        while at < file.lines.len() {
            let blank = |line: &String| line.is_empty();
            let length = file.lines[at..].iter().position(blank);
            let end = length.map_or(file.lines.len(), |length| at + length);
            if end > at {
                file.paragraph(at, end, &mut settings);
            }
            at = end + 1;
        }
        file
    }

    fn paragraph(&mut self, at: usize, end: usize, settings: &mut BTreeMap<String, String>) {
        let lines = &self.lines[at..end];
        if lines[0].starts_with("//") {
            return;
        }
        if let Some(name) = lines[0].strip_prefix("== session ") {
            self.sessions.insert(name.to_owned(), session(&lines[1..]));
            return;
        }
        if lines[0].starts_with("== ") {
            settings.clear();
            for line in &lines[1..] {
                let (name, value) = line.split_once(": ").unwrap_or_else(|| {
                    panic!("{}:{}: no setting: {line}", self.path.display(), at + 1)
                });
                settings.insert(name.to_owned(), value.to_owned());
            }
            return;
        }
        let titles = lines.iter().take_while(|line| line.starts_with("# "));
        let title: Vec<&str> = titles.map(|line| &line[2..]).collect();
        let is_result = |line: &&String| {
            let whole = |start: &str| line.starts_with(start) || *line == start.trim_end();
            RESULTS.into_iter().any(whole)
        };
        let selectors: Vec<&String> = lines[title.len()..]
            .iter()
            .take_while(|line| !is_result(line))
            .collect();
        assert!(
            !selectors.is_empty(),
            "{}:{}: a case without a selector",
            self.path.display(),
            at + 1
        );
        let case = Case {
            selectors: selectors.iter().map(|line| unquoted(line)).collect(),
            result: at + title.len() + selectors.len()..end,
            title: title.join(" "),
            settings: settings.clone(),
        };
        self.cases.push(case);
    }

    /// The session a case is over, as lines of JSON: the one its section names, or the only one
    /// of the file.
    pub(super) fn session(&self, case: &Case) -> Vec<String> {
        let Some(name) = case.setting("session") else {
            let mut sessions = self.sessions.values();
            return sessions.next().expect("a session").clone();
        };
        if let Some(lines) = self.sessions.get(name) {
            return lines.clone();
        }
        let text = std::fs::read_to_string(directory().join(name)).unwrap();
        if name.ends_with(".json") {
            vec![text]
        } else {
            session(&text.lines().map(str::to_owned).collect::<Vec<_>>())
        }
    }

    /// Notes the cases whose result is another, or writes the results into the file.
    fn compare(&mut self, found: Vec<Vec<String>>, wrong: &mut String) {
        let bless = std::env::var_os("PACTQL_BLESS").is_some();
        assert!(
            !bless || std::env::var_os("CI").is_none(),
            "blessing in CI would pass every case"
        );
        let mut changes = Vec::new();
        for (case, found) in self.cases.iter().zip(&found) {
            let expected = self.lines[case.result.clone()].join("\n");
            if let [found] = found.as_slice()
                && *found == expected
            {
                continue;
            }
            if let ([found], true) = (found.as_slice(), bless) {
                changes.push((case.result.clone(), found.clone()));
                continue;
            }
            let _ = writeln!(
                wrong,
                "{}:{}: {}\n{}\n{expected}\n-- found:\n{}\n",
                self.path.display(),
                case.result.start,
                case.title,
                case.selectors.join("\n"),
                found.join("\n-- and in another spelling or edition:\n"),
            );
        }
        if changes.is_empty() {
            return;
        }
        for (lines, found) in changes.into_iter().rev() {
            self.lines.splice(lines, found.lines().map(str::to_owned));
        }
        std::fs::write(&self.path, self.lines.join("\n") + "\n").unwrap();
    }
}

/// A session as lines of JSON.
fn session(lines: &[String]) -> Vec<String> {
    match lines.first() {
        Some(first) if first.starts_with('{') => lines.to_vec(),
        _ => outline::lines(&lines.join("\n")),
    }
}

fn unquoted(line: &str) -> String {
    if line.starts_with('"') {
        serde_json::from_str(line).unwrap()
    } else {
        line.to_owned()
    }
}

/// A text as one line of a result: as it is, or as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let odd = |c: char| c.is_control() || (c.is_whitespace() && c != ' ');
    let plain = !text.is_empty() && text.trim() == text && !text.starts_with('"');
    if plain && !text.contains(odd) {
        text.to_owned()
    } else {
        serde_json::to_string(text).unwrap()
    }
}
