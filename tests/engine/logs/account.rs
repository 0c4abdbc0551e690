//! An account of every log: what is in its file is printed by `show`, or named in the report for a reason that is
//! true (INSPECT §1).
//!
//! The file is read a second time by its public shape ([`raw`]), which shares nothing with the importers.

mod raw;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use pactql::inspect::{Part, Report as _, ReportOptions, ShowReport, Tokenizer};
use pactql::internals::index::NodeRef;
use pactql::internals::json::JsonValue;
use pactql::logs::{Fate, ImportOptions, Imported, import};
use pactql::{Engine, Session};
use serde_json::Value;

use crate::support::random::left_to_ci;
use raw::{RawLog, RawRecord, Shown};

/// Something that is wrong with the import of a file, and how often.
type Faults = BTreeMap<String, usize>;

/// What is in the sessions of a log.
#[derive(Debug, Default)]
struct Printed {
    shown: Shown,
    /// What the snapshots say besides their nodes.
    meta: Shown,
    /// Blocks of text without a token, by session and id.
    empty: BTreeSet<(usize, String)>,
    /// The blocks that are raw JSON, each once.
    verbatim: BTreeSet<String>,
}

impl Printed {
    fn of(imported: &Imported, faults: &mut Faults) -> Self {
        let mut printed = Self::default();
        for (number, session) in imported.sessions.iter().enumerate() {
            let session = session.session().expect("a session");
            let history = session.history();
            history.fetch_all().expect("in memory");
            let committed: Vec<_> = history.committed().into_iter().cloned().collect();
            let all: Vec<_> = committed.iter().chain(history.working()).collect();
            for (at, snapshot) in all.iter().enumerate() {
                for (_, value) in &snapshot.meta().extra {
                    printed.meta.add(value);
                }
                let next = all.get(at + 1);
                let next: HashSet<_> = next
                    .into_iter()
                    .flat_map(|next| next.nodes())
                    .map(version)
                    .collect();
                // Together these have every version of every block.
                if !snapshot.nodes().all(|node| next.contains(&version(node))) {
                    let time = if at < committed.len() {
                        format!("@c{}", snapshot.cycle())
                    } else {
                        String::new()
                    };
                    printed.snapshot(number, &session, &time, faults);
                }
                let is_raw = |node: &NodeRef<'_>| node.field("data_verbatim").is_some();
                for node in snapshot.nodes().filter(is_raw) {
                    let content = node.field("content").map(JsonValue::canonical);
                    printed.verbatim.insert(content.unwrap_or_default());
                }
            }
        }
        printed
    }

    fn snapshot(&mut self, number: usize, session: &Session, time: &str, faults: &mut Faults) {
        let mut options = ReportOptions::new(Part::default().at(time)).tokenizer(Tokenizer::Bytes4);
        options.full = true;
        let report = ShowReport::new(&Engine::new(), session, &options).expect("a snapshot");
        let text = report.to_text(&options);
        let mut rest = &*text;
        for shown in &report.snapshots {
            for said in [&shown.parameters, &shown.call.error, &shown.call.model] {
                said.iter().for_each(|text| self.shown.add(text));
            }
            for block in &shown.blocks {
                let lines: String = block.text.lines().map(printed_line).collect();
                match rest.find(&lines) {
                    Some(at) => rest = &rest[at + lines.len()..],
                    None => fault(faults, format!("not printed: {}", block.id)),
                }
                self.shown.add(&block.text);
                block.tool.iter().for_each(|tool| self.shown.add(tool));
                let is_media = matches!(block.kind.as_deref(), Some("image" | "document"));
                if block.tokens == 0 && !is_media {
                    let text: String = block.text.chars().take(60).collect();
                    let kind = block.kind.as_deref().unwrap_or("block");
                    self.empty
                        .insert((number, format!("{} {kind} {text}", block.id)));
                }
            }
        }
    }
}

fn version(node: NodeRef<'_>) -> (String, (u64, u32)) {
    (node.id().to_owned(), node.version())
}

/// A line of a text as `show` prints it.
fn printed_line(line: &str) -> String {
    let clean = |letter: char| match letter {
        '\r' => "\\r".to_owned(),
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            format!("\\u{:04x}", u32::from(letter))
        }
        _ if letter.is_control() && letter != '\t' => format!("\\u{:04x}", u32::from(letter)),
        _ => letter.to_string(),
    };
    let line: String = line.chars().map(clean).collect();
    format!("    {line}").trim_end().to_owned() + "\n"
}

fn fault(faults: &mut Faults, what: String) {
    *faults.entry(what).or_default() += 1;
}

/// What a report names: what it counts, how often, and why.
struct Named(Vec<(String, String, u64)>);

impl Named {
    fn of(report: &Value) -> Self {
        let mut all = Vec::new();
        let mut take = |counts: &Value| {
            for (name, count) in counts.as_object().into_iter().flatten() {
                let (name, reason) = name.split_once(" (").unwrap_or((name, ""));
                all.push((
                    name.to_owned(),
                    reason.to_owned(),
                    count.as_u64().unwrap_or(0),
                ));
            }
        };
        for counted in ["lines", "messages", "parts"] {
            take(&report[counted]["skipped"]);
            take(&report[counted]["kept_verbatim"]);
        }
        for members in [
            "members_kept",
            "record_members_kept",
            "record_members_skipped",
        ] {
            take(&report[members]);
        }
        // `21 steps repeat messages of the history`
        for note in report["notes"].as_array().into_iter().flatten() {
            let note = note.as_str().unwrap_or_default();
            if let Some((count, "steps repeat messages of the history")) = note.split_once(' ') {
                let count = count.parse().expect("a number");
                all.push(("trajectory".to_owned(), "repeats".to_owned(), count));
            }
        }
        Self(all)
    }

    /// The entry that names what is at a place of a record: its kind, or else a member around it.
    /// Of several the one that says it repeats something, if it does.
    fn entry(&self, record: &RawRecord, path: &[String], is_there: bool) -> Option<usize> {
        let last = |name: &str| {
            name.rsplit(['.', ' '])
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let is_kind = |name: &str| {
            record
                .kinds
                .iter()
                .any(|kind| *kind == name || *kind == last(name))
        };
        let is_member = |name: &str| {
            let place = match name {
                "another choice" => "gen_ai.output.messages",
                name => name,
            };
            path.iter()
                .any(|member| member == place || *member == last(name))
        };
        let position = |is: &dyn Fn(&str) -> bool| {
            let all = || self.0.iter().enumerate().filter(|(_, (name, ..))| is(name));
            let repeats = |(_, (_, reason, _)): &(usize, &(String, String, u64))| {
                reason.contains("repeats") == is_there
            };
            let found = all().find(repeats).or_else(|| all().next());
            found.map(|(at, _)| at)
        };
        position(&is_kind).or_else(|| position(&is_member))
    }
}

/// What is wrong with the import of a file.
fn faults(bytes: &[u8]) -> Faults {
    let mut faults = Faults::new();
    let text = raw::text_of(bytes);
    let log = RawLog::new(&text);
    // Sessions are no logs.
    if log
        .records
        .iter()
        .any(|record| record.value["root"].is_object())
    {
        return faults;
    }
    let known = raw::known_by_name(&log);
    let lenient = ImportOptions {
        lenient: true,
        ..ImportOptions::default()
    };
    let imported = import(bytes, &ImportOptions::default()).or_else(|error| {
        let error = error.to_string();
        match known {
            Some(name) if error.contains(name) => {}
            Some(name) => fault(&mut faults, format!("refused, and not by the name {name}")),
            None => fault(&mut faults, "refused".to_owned()),
        }
        import(bytes, &lenient)
    });
    let Ok(imported) = imported else {
        return faults;
    };
    let printed = Printed::of(&imported, &mut faults);
    if known.is_some() && !faults.is_empty() && !printed.verbatim.is_empty() {
        fault(&mut faults, "raw JSON with --lenient".to_owned());
        return faults;
    }
    lines(&log, &imported, &mut faults);
    texts(&log, &imported, &printed, &mut faults);
    let empty: usize = log.records.iter().map(|record| record.empty).sum();
    for (_, id) in printed.empty.iter().skip(empty) {
        fault(
            &mut faults,
            format!("0 tokens, and not empty in the log: {id}"),
        );
    }
    let report = &imported.report;
    let verbatim = report.lines(Fate::Verbatim)
        + report.messages(Fate::Verbatim)
        + report.parts(Fate::Verbatim);
    if printed.verbatim.len() as u64 > verbatim {
        let count = printed.verbatim.len();
        fault(
            &mut faults,
            format!("{count} blocks of raw JSON, {verbatim} in the report"),
        );
    }
    faults
}

/// Every text is printed, or named with a reason that is true, and as often as that.
fn texts(log: &RawLog, imported: &Imported, printed: &Printed, faults: &mut Faults) {
    let named = Named::of(&imported.report.to_json());
    let mut records = vec![0; named.0.len()];
    for record in &log.records {
        let kinds = record.kinds.join(" ");
        let mut entries = BTreeSet::new();
        let mut is_shown = record.texts.is_empty();
        for (path, text) in &record.texts {
            let is_said = is_about(path) && printed.meta.has(text);
            if printed.shown.has(text) || is_said {
                is_shown = true;
                continue;
            }
            let place = format!("{kinds} {}", path.join("/"));
            let Some(entry) = named.entry(record, path, printed.shown.has_lines(text)) else {
                fault(faults, format!("lost: {place}"));
                is_shown = true;
                continue;
            };
            entries.insert(entry);
            let (name, reason, _) = &named.0[entry];
            is_shown |= record.kinds.iter().any(|kind| name.ends_with(&**kind));
            if reason.contains("repeats") && !printed.shown.has_lines(text) {
                fault(faults, format!("untrue: {place} ({reason}"));
            }
        }
        if !is_shown {
            fault(
                faults,
                format!("understood, and nothing of it shown: {kinds}"),
            );
        }
        for entry in entries {
            records[entry] += 1;
        }
    }
    for ((name, _, count), records) in named.0.iter().zip(records) {
        if records > *count {
            fault(
                faults,
                format!("{records} records without what the report has {count} of: {name}"),
            );
        }
    }
}

/// Whether what is at a path is about a session or a call, and no part of a message, call, result or tool: `meta`
/// and `usage` may hold that.
fn is_about(path: &[String]) -> bool {
    let said = [
        "message",
        "messages",
        "content",
        "input",
        "output",
        "tools",
        "dynamic_tools",
        "toolUseResult",
        "arguments",
        "steps",
        "conversations",
        "history",
        "trajectory",
        "request",
        "response",
    ];
    path.last().is_some_and(|last| last == "errorMessage")
        || !path.iter().any(|member| said.contains(&&**member))
}

/// The report accounts for exactly the records of the log.
fn lines(log: &RawLog, imported: &Imported, faults: &mut Faults) {
    let report = &imported.report;
    let all = |count: &dyn Fn(Fate) -> u64| -> u64 {
        [Fate::Understood, Fate::Verbatim, Fate::Skipped]
            .into_iter()
            .map(count)
            .sum()
    };
    let mut lines = all(&|fate| report.lines(fate)) as usize;
    let messages = all(&|fate| report.messages(fate)) as usize;
    for note in report.notes() {
        // `21 steps repeat messages of the history`, `found lists of messages at /*/traj (200)`
        let steps = note.split_once(" steps repeat").map(|(count, _)| count);
        let lists = note
            .strip_prefix("found lists")
            .and_then(|rest| rest.split(['(', ')']).nth(1));
        let count = steps
            .or(lists)
            .map(|count| count.parse::<usize>().expect("a number"));
        lines += count.unwrap_or(0);
    }
    let expected = log.expected();
    // Single messages are counted as such.
    let single = log.bare().min(messages);
    if lines != expected && lines + single != expected {
        let single = if single > 0 {
            format!(" and {single} messages")
        } else {
            String::new()
        };
        fault(
            faults,
            format!("{lines} lines{single} in the report, {expected} in the file"),
        );
    }
}

pub(super) fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("a file");
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(&*bytes)
        .read_to_end(&mut unpacked)
        .expect("gzip");
    unpacked
}

/// The logs below a folder, by name.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !name.ends_with(".md") && !name.starts_with("LICENSE") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A fault that is known: in which files, by a part of their names; how it begins; how often it is there; and
/// what mends it. One that is mended has to go.
type Gap = (&'static str, &'static str, usize, &'static str);

/// Accounts for files, and compares what is wrong with what is known to be.
fn check(files: &[PathBuf], gaps: &[Gap]) {
    let mut wrong = Vec::new();
    let mut known = vec![0; gaps.len()];
    for path in files {
        let name = path.display().to_string().replace('\\', "/");
        for (fault, count) in faults(&unpacked(path)) {
            let gap = gaps
                .iter()
                .position(|(file, start, ..)| name.contains(file) && fault.starts_with(start));
            match gap {
                Some(gap) => known[gap] += count,
                None => wrong.push(format!("{name}: {fault}, {count} times")),
            }
        }
    }
    for ((file, start, count, _), found) in gaps.iter().zip(known) {
        if found != *count {
            wrong.push(format!(
                "{file}: {start}: {found} times, and the table has {count}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_log_of_the_repository_is_accounted_for() {
    let mut files = below(Path::new("tests/cases/logs"));
    files.extend(below(Path::new("fixtures")));
    check(&files, OF_THE_REPOSITORY);
}

/// The logs are not part of the repository; see [`crate::real_data`].
#[test]
fn every_recorded_log_is_accounted_for() {
    let Some(root) = crate::real_data::data() else {
        println!("SKIPPED: no recorded logs");
        return;
    };
    if !left_to_ci() {
        check(&below(&root), RECORDED);
    }
}

const OF_THE_REPOSITORY: &[Gap] = &[(
    "otel/synthetic-attributes",
    "0 tokens, and not empty in the log",
    1,
    "a video by the id of its file: nobody knows how many tokens it is, as of images",
)];

const RECORDED: &[Gap] = &[];
