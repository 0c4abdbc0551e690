//! A log that is imported while it grows: the store has what one import of the whole log gives, byte for
//! byte, however often the log was imported on the way and wherever it ended then.

use crate::support::random::{self, Rng};
use pactql::internals::json::JsonValue;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pactql::inspect::{Prices, Usage, UsageBy};
use pactql::logs::{
    FollowedLog, Format, ImportOptions, Imported, import, import_file, session_names, write_session,
};
use pactql::{Code, Context, Message, Session, Store};
use serde_json::{Value, json};

use super::place::{Folder, sound};

#[path = "../../support/rows.rs"]
mod rows;

/// How the sessions of a log are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// From their documents, as another program has them.
    Documents,
    /// From the log in memory.
    Whole,
    /// Line by line, as of a large file; from memory where the log is not of such a form.
    Lines,
}

/// The sessions of a log, named as the command line does it; why it is refused, if it is.
fn sessions(log: &[u8], name: &str, reading: Reading) -> Result<Vec<(String, Session)>, String> {
    let options = ImportOptions::default();
    let whole = || import(log, &options).map_err(|error| error.to_string());
    let imported: Imported = match reading {
        Reading::Lines => {
            let file = || tempfile::tempfile_in(Folder::memory()).expect("a file");
            let mut bytes = file();
            std::io::Write::write_all(&mut bytes, log).expect("memory");
            match import_file(&bytes, file(), &options) {
                Ok(Some(imported)) => imported,
                Ok(None) => whole()?,
                Err(error) => return Err(error.to_string()),
            }
        }
        _ => whole()?,
    };
    let names = session_names(name, &imported.sessions);
    let read = |session: pactql::logs::ImportedSession| {
        let recording = session.recording;
        if reading != Reading::Documents {
            return Session::replayed(Arc::new(recording));
        }
        let mut bytes = Vec::new();
        recording.write_jsonl(&mut bytes, false).expect("memory");
        Session::from_slice(&bytes).expect("a session")
    };
    let sessions = imported.sessions.into_iter().map(read);
    Ok(names.into_iter().zip(sessions).collect())
}

/// A log in a file that is written on, and read on after each time.
struct Follower {
    file: std::fs::File,
    path: PathBuf,
    written: usize,
    log: Option<FollowedLog>,
}

impl Follower {
    fn new(folder: &Folder) -> Self {
        let path = PathBuf::from(folder.file("followed.jsonl"));
        Self {
            file: std::fs::File::create(&path).expect("a file"),
            path,
            written: 0,
            log: None,
        }
    }

    /// Writes the log up to what it is now.
    fn append(&mut self, log: &[u8]) {
        std::io::Write::write_all(&mut self.file, &log[self.written..]).expect("memory");
        self.written = log.len();
    }

    /// Writes the log up to what it is now. What is read on says what one import of the whole says. Returns whether the log is
    /// one that is read on.
    fn grow(&mut self, what: &str, log: &[u8]) -> bool {
        self.append(log);
        let options = ImportOptions::default();
        let mut found = match &mut self.log {
            Some(log) => log.look(&self.path),
            None => Ok(None),
        };
        if matches!(found, Ok(None)) {
            self.log = FollowedLog::open(&self.path, &options).expect("a file");
            let Some(log) = &mut self.log else {
                return false;
            };
            found = log.look(&self.path);
        }
        let wanted = import(log, &options);
        let (found, wanted) = match (found, wanted) {
            (Ok(found), Ok(wanted)) => (found.expect("it was just opened"), wanted),
            (found, wanted) => {
                self.log = None;
                let (found, wanted) = (found.map(|_| ()), wanted.map(|_| ()));
                assert!(
                    found.is_err() && wanted.is_err(),
                    "{what}: {found:?} {wanted:?}"
                );
                return true;
            }
        };
        assert_eq!(found.report, wanted.report, "{what}");
        assert_eq!(found.sessions.len(), wanted.sessions.len(), "{what}");
        for (found, wanted) in found.sessions.iter().zip(&wanted.sessions) {
            assert_eq!(
                (&found.name, &found.parent, &found.location),
                (&wanted.name, &wanted.parent, &wanted.location),
                "{what}"
            );
            let mut lines = Vec::new();
            let recording = &wanted.recording;
            recording.write_jsonl(&mut lines, false).expect("memory");
            let lines = String::from_utf8(lines).expect("ASCII");
            let mut recorded = Vec::new();
            let recording = &found.recording;
            recording.write_jsonl(&mut recorded, false).expect("memory");
            assert_eq!(String::from_utf8_lossy(&recorded), lines, "{what}");
            let history = found.made().expect("it is made").history();
            let mut made = Vec::new();
            let working = history.working().map(|working| &**working);
            write_session(history.committed(), working, false, &mut made).expect("memory");
            assert_eq!(String::from_utf8_lossy(&made), lines, "{what}");
        }
        true
    }
}

/// All that a store says: what `export` prints of each session, and the rows of all tables.
fn said(store: &Store, path: &str) -> Vec<String> {
    let mut said = Vec::new();
    for info in store.sessions("").expect("a list") {
        let session = store.session(&info.name).expect("a session");
        let history = session.history();
        history.fetch_all().expect("snapshots");
        let mut text = Vec::new();
        let working = history.working().map(|working| &**working);
        write_session(history.committed(), working, false, &mut text).expect("memory");
        let text = String::from_utf8(text).expect("ASCII");
        said.extend(text.lines().map(|line| format!("{}: {line}", info.name)));
    }
    said.append(&mut rows::rows(path));
    said
}

/// Fails with the first thing that one of two stores says and the other does not.
fn same(what: &str, found: &[String], wanted: &[String]) {
    let only = |a: &[String], b: &[String]| {
        let b: std::collections::HashSet<&String> = b.iter().collect();
        let only: Vec<&String> = a.iter().filter(|line| !b.contains(line)).collect();
        let first = only
            .first()
            .map(|line| line.chars().take(2_000).collect::<String>());
        (only.len(), first)
    };
    assert!(
        found == wanted,
        "{what}\ngrown alone: {:?}\nonce alone: {:?}",
        only(found, wanted),
        only(wanted, found)
    );
}

/// A log as it is written: a store is brought up to what it says whenever it is cut.
struct Grown {
    /// How often it was imported.
    imports: usize,
    /// How often it could not be, as too little was there.
    refused: usize,
    /// How often the store was compared with one import of what was there.
    compared: usize,
    snapshots: usize,
    /// How often what was appended was read on.
    followed: usize,
}

/// Imports a log into one store at each cut. After 1, 4, 16 … of them, and after the last, the store is compared with one
/// that a single import makes of what is there then.
fn grows(what: &str, log: &[u8], cuts: &[usize], readings: &[Reading]) -> Grown {
    let source = Some("log.jsonl");
    let (folder, once) = (Folder::quick(), Folder::quick());
    let path = folder.file("grown.db");
    let store = Store::open(&path).expect("a store");
    let mut grown = Grown {
        imports: 0,
        refused: 0,
        compared: 0,
        snapshots: 0,
        followed: 0,
    };
    let mut follower = Follower::new(&folder);
    for (at, &end) in cuts.iter().enumerate() {
        let what = format!("{what} to byte {end} of {}", log.len());
        grown.followed += usize::from(follower.grow(&what, &log[..end]));
        let reading = readings[at % readings.len()];
        let read = match sessions(&log[..end], "log", reading) {
            Ok(read) => read,
            Err(_) => {
                grown.refused += 1;
                continue;
            }
        };
        let done = store.import_log(&read, source);
        let done = done.unwrap_or_else(|error| panic!("{what}: {error}"));
        grown.imports += 1;
        grown.snapshots += done.snapshots;
        let is_compared = (at + 1).is_power_of_two() && (at + 1).trailing_zeros() % 2 == 0;
        if !is_compared && at + 1 < cuts.len() {
            continue;
        }
        grown.compared += 1;
        let again = store.import_log(&read, source).expect("again");
        assert_eq!(again.same, read.len(), "{what}: {again:?}");
        assert_eq!(
            (again.snapshots, again.grown, again.new),
            (0, 0, 0),
            "{what}"
        );
        for (number, &reading) in readings.iter().enumerate() {
            let path = once.file(&format!("{at}-{number}.db"));
            let other = Store::open(&path).expect("a store");
            let read = sessions(&log[..end], "log", reading).expect("a log");
            let named = read
                .into_iter()
                .map(|(name, session)| (name, session, source.map(str::to_owned)));
            other.import_all(named).expect("imported");
            let what = format!("{what}, {reading:?}");
            same(
                &what,
                &said(&store, &folder.file("grown.db")),
                &said(&other, &path),
            );
        }
        sound(&store).expect("a sound store");
    }
    grown
}

/// Where a log is cut: inside of each line, also inside of a letter, and at its end.
fn cuts(log: &[u8], rng: &mut Rng) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut start = 0;
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let letters: Vec<usize> = (1..line.len())
            .filter(|at| line[*at] & 0xC0 == 0x80)
            .collect();
        let inside = match (&letters[..], line.len()) {
            (_, 0 | 1) => None,
            ([], length) => Some(1 + rng.below(length - 1)),
            (_, length) if rng.chance(50) => Some(1 + rng.below(length - 1)),
            (letters, _) => Some(*rng.pick(letters)),
        };
        cuts.extend(inside.map(|at| start + at));
        start += line.len();
        cuts.push(start);
    }
    cuts
}

const WHOLE: &[Reading] = &[Reading::Whole];
const EVERY: &[Reading] = &[Reading::Lines, Reading::Whole, Reading::Documents];

/// Every log of the repository with its name.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folders = ["fixtures", "tests/cases/logs"].map(Path::new);
    let paths = folders.into_iter().flat_map(crate::real_data::below);
    contents(paths)
}

fn contents(paths: impl IntoIterator<Item = PathBuf>) -> Vec<(String, Vec<u8>)> {
    let read = |path: PathBuf| {
        (
            path.display().to_string(),
            crate::real_data::contents(&path),
        )
    };
    paths.into_iter().map(read).collect()
}

/// Whether most lines of a file are JSON objects: then it can be cut after each.
fn is_lines(log: &[u8]) -> bool {
    let lines = log.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    let is_object = |line: &&[u8]| {
        line.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
    };
    let (good, bad): (Vec<&[u8]>, Vec<&[u8]>) = lines.partition(is_object);
    good.len() > bad.len()
}

#[test]
fn a_log_read_line_by_line_gives_what_the_whole_log_gives() {
    if random::left_to_ci() {
        return;
    }
    for (name, log) in fixtures() {
        if is_lines(&log) && import(&log, &ImportOptions::default()).is_ok() {
            let cuts = cuts(&log, &mut Rng::new(log.len() as u64));
            let grown = grows(&name, &log, &cuts, EVERY);
            assert!(grown.imports > 0, "{name}");
        }
    }
}

/// A session whose calls are said in odd ways: times of other types and in other spellings, numbers of replies that are
/// none, a compaction, a call that failed, nodes beside turns, a working state.
const ODD: &str = r#"{"cycle":1,"meta":{"source":"transcript","project":"p"},"root":{"children":[{"children":[{"children":[{"children":[{"content":"a","created_at_iso":null,"created_at_ns":1700000000000000000,"id":"c1","nodeType":"cb"}],"id":"k1","nodeType":"mc:user"}],"created_at_iso":"2024-01-01T00:00:00Z","id":"m1","nodeType":"mt"}],"id":"q","nodeType":"^seq"}]}}
{"cycle":2,"meta":{"source":"transcript"},"usage":{"input_tokens":5,"output_tokens":2},"root":{"children":[{"children":[{"children":[{"children":[{"content":"b","created_at_iso":"2024-02-01T10:00:00.5Z","data_reply":2,"id":"c2","nodeType":"cb"},{"content":"c","created_at_iso":"2024-02-02T10:00:00Z","data_reply":"2","id":"c3","nodeType":"cb"}],"data_reply":2,"id":"k2","nodeType":"mc:assistant"}],"id":"m2","nodeType":"mt"},{"content":"loose","created_at_iso":"2024-02-09T00:00:00Z","data_reply":2,"id":"l","nodeType":"cb"}],"id":"q","nodeType":"^seq"},{"children":[{"content":"d","created_at_iso":"2024-02-03T10:00:00\u005a","data_reply":2,"id":"c4","nodeType":"cb"}],"id":"h","nodeType":"^ah"}]}}
{"cycle":3,"meta":{"compaction":{"before":2},"source":"transcript"},"root":{"children":[{"children":[{"children":[{"content":"e","created_at_iso":"1970-01-01T00:00:00Z","data_reply":3.0,"id":"c5","nodeType":"cb"}],"id":"m3","nodeType":"mt"}],"id":"q","nodeType":"^seq"}]}}
{"cycle":4,"meta":{"attempts":[{"error":"busy"}],"request":{"model":"gpt-4o"},"source":"transcript"},"root":{"children":[{"children":[{"children":[{"content":"f","created_at_iso":"1970-01-01T00:00:00Z","id":"c6","nodeType":"cb"}],"id":"m4","nodeType":"mt"}],"id":"q","nodeType":"^seq"}]}}
{"cycle":5,"meta":{"agent":"x","source":"transcript"},"root":{"children":[{"children":[{"children":[{"content":"g","created_at_ns":1700000000000000000,"data_reply":5,"id":"c7","nodeType":"cb"}],"id":"m4","nodeType":"mt"}],"id":"q","nodeType":"^seq"}]}}
{"cycle":6,"usage":{"input_tokens":1},"root":{"children":[{"children":[{"children":[{"content":"g","created_at_iso":"2023-11-14T22:13:20Z","created_at_ns":1700000000000000000,"data_reply":6,"id":"c8","nodeType":"cb"}],"id":"m5","nodeType":"mt"}],"id":"q","nodeType":"^seq"}]}}
{"working":true,"root":{"children":[{"children":[],"id":"q","nodeType":"^seq"}]}}
"#;

/// What the calls of a stored session used is read without its snapshots, and is what they say.
#[test]
fn usage_is_that_of_the_snapshots() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("usage.db")).unwrap();
    let mut logs = fixtures();
    if !random::few() {
        logs.extend(contents(crate::real_data::logs()));
    }
    logs.push(("odd".to_owned(), ODD.as_bytes().to_vec()));
    let mut names = Vec::new();
    for (number, (name, log)) in logs.into_iter().enumerate() {
        let found = match sessions(&log, &number.to_string(), Reading::Whole) {
            Ok(found) => found,
            // A session, or what is none.
            Err(_) => match Session::from_slice(&log) {
                Ok(session) => vec![(number.to_string(), session)],
                Err(_) => continue,
            },
        };
        for (one, session) in found {
            store.import(&one, &session, None).unwrap();
            names.push((one, name.clone()));
        }
    }
    assert!(names.len() > 30 && names.iter().any(|(_, log)| log == "odd"));
    let again = Store::open(folder.file("usage.db")).unwrap();
    let mut requests = 0;
    for (name, log) in &names {
        let loaded = again.session(name).unwrap();
        loaded.history().fetch_all().unwrap();
        for by in UsageBy::ALL {
            let usage = |session: &Session| {
                let mut usage = Usage::new(by, Prices::default());
                usage.add(name, session).unwrap();
                usage
            };
            let read = usage(&store.session(name).unwrap());
            let expected = json!(usage(&loaded));
            assert_eq!(json!(read), expected, "{log} by {}", by.as_str());
            requests += read.total.requests;
        }
    }
    assert!(requests > 100, "{requests}");
}

/// The formats of which a log is a single document. All others are lines, which grow.
const DOCUMENTS: &[Format] = &[
    Format::Vcr,
    Format::Har,
    Format::SweAgent,
    Format::Opencode,
    Format::OpenHands,
    Format::Atif,
    Format::InspectAi,
    Format::Letta,
    Format::Egregore,
    Format::Ctrace,
];

#[test]
fn a_fixture_of_every_format_of_lines_grows() {
    let mut grown = Vec::new();
    for (_, log) in fixtures() {
        if is_lines(&log) && log.trim_ascii().contains(&b'\n') {
            let imported = import(&log, &ImportOptions::default());
            grown.extend(imported.ok().and_then(|imported| imported.format));
        }
    }
    for format in Format::ALL {
        let name = format.name();
        assert!(
            grown.contains(&format) != DOCUMENTS.contains(&format),
            "`{name}`: either it has a log of several lines at tests/cases/logs/{name}/synthetic-*.jsonl, which is cut \
             here, or a log of it is one document, and DOCUMENTS names it"
        );
    }
}

/// A part of a document is not taken for something else, such as lines.
#[test]
fn a_document_that_is_cut_is_refused() {
    let mut logs = fixtures();
    if !random::few() {
        logs.extend(contents(crate::real_data::logs()));
    }
    let mut archives = 0;
    for (name, log) in logs {
        if is_lines(&log) || sessions(&log, "log", Reading::Whole).is_err() {
            continue;
        }
        let mut rng = Rng::new(log.len() as u64);
        let is_yaml = name.contains(".yaml");
        let mut whole = log.trim_ascii_end().len();
        if is_yaml {
            // A part of YAML is YAML: a cassette is whole when its last member has begun.
            whole -= "version: 1".len();
        }
        let many = if log.len() > 1 << 20 {
            3
        } else {
            random::share(400).max(12)
        };
        let cuts = (0..many).map(|_| 1 + rng.below(whole - 1));
        for end in cuts.chain([whole - 1]) {
            let what = format!("{name} to byte {end} of {whole}");
            let is_archive = log.starts_with(b"PK") && end >= 4;
            archives += usize::from(is_archive);
            for reading in [Reading::Whole, Reading::Lines] {
                let error = sessions(&log[..end], "log", reading).map(|read| read.len());
                let error = error.expect_err(&what);
                let said: &[&str] = if is_archive {
                    &["ZIP archive is cut off"]
                } else if is_yaml {
                    &["malformed YAML", "ends before its `version`", "not a log"]
                } else {
                    &["malformed JSON"]
                };
                let is_said = said.iter().any(|said| error.contains(said));
                assert!(is_said, "{what}: {error}");
            }
        }
    }
    assert!(random::few() || archives > 30 || crate::real_data::logs().is_empty());
}

/// Makes the lines of a log.
type Maker = fn(&mut Rng) -> Vec<Value>;

/// Random logs of the formats whose reading of a line can depend on lines that come later.
#[test]
fn random_logs_grow() {
    let makers: [(&str, Maker); 7] = [
        ("claude", claude_code),
        ("pi", pi),
        ("codex", codex),
        ("gemini-cli", gemini_cli),
        ("copilot-cli", copilot_cli),
        ("messages", messages),
        ("requests", requests),
    ];
    let seeds = u64::from(random::share(100));
    for (name, make) in makers {
        let mut followed = 0;
        for seed in 0..seeds {
            let mut rng = Rng::new(seed);
            let lines = make(&mut rng).into_iter().map(|line| format!("{line}\n"));
            let log = lines.collect::<String>();
            let cuts = cuts(log.as_bytes(), &mut rng);
            let what = format!("{name} {seed}\n{log}\n");
            let grown = grows(&what, log.as_bytes(), &cuts, &EVERY[..2]);
            followed += grown.followed;
        }
        // Some are read as a whole.
        assert!(followed > 0, "{name}");
    }
}

/// Lines of a session of Claude Code, of pi, and of messages: questions and answers of about a kilobyte each.
fn long_logs(lines: usize) -> [(&'static str, Vec<String>); 3] {
    let text = |at: usize| format!("{at} {}", "words of a conversation ".repeat(40));
    let role = |at: usize| ["user", "assistant"][at % 2];
    let claude = (0..lines).map(|at| {
        let parent = at.checked_sub(1).map(|at| format!("u{at}"));
        let line = line(
            &format!("u{at}"),
            parent.as_deref(),
            role(at),
            &text(at),
            at % 60,
        );
        line.trim_end().to_owned()
    });
    let pi = (0..lines).map(|at| {
        let parent = at.checked_sub(1).map(|at| format!("u{at}"));
        let content = json!([{"type": "text", "text": text(at)}]);
        let message = json!({"role": role(at), "content": content});
        let said = json!({"type": "message", "id": format!("u{at}"), "parentId": parent, "timestamp": time(at), "message": message});
        said.to_string()
    });
    let header =
        json!({"type": "session", "version": 3, "id": "s", "timestamp": time(0), "cwd": "/tmp"});
    let chat = (0..lines).map(|at| json!({"role": role(at), "content": text(at)}).to_string());
    [
        ("claude-code", claude.collect()),
        (
            "pi",
            std::iter::once(header.to_string()).chain(pi).collect(),
        ),
        ("openai", chat.collect()),
    ]
}

#[test]
fn a_log_that_grows_costs_what_is_appended() {
    /// What is looked at again each time: the end of what was read, and the last reply, which may go on.
    const EACH: u64 = 12 << 10;
    for (name, lines) in long_logs(400) {
        let folder = Folder::quick();
        let mut follower = Follower::new(&folder);
        let mut log = String::new();
        for (at, line) in lines.iter().enumerate() {
            log.push_str(line);
            log.push('\n');
            if at < 100 {
                continue;
            }
            if at == 100 {
                assert!(follower.grow(name, log.as_bytes()), "{name}");
                continue;
            }
            follower.append(log.as_bytes());
            let followed = follower.log.as_mut().expect("it is followed");
            let before = followed.work();
            let found = followed.look(&follower.path).expect("a log");
            assert!(found.is_some(), "{name}: line {at}: it is read on");
            let now = followed.work();
            let (bytes, count) = (now.0 - before.0, now.1 - before.1);
            let own = line.len() as u64 + 1;
            assert!(
                bytes <= 4 * own + EACH,
                "{name}: line {at}: {bytes} bytes were read for {own}"
            );
            assert!(
                count <= 8,
                "{name}: line {at}: {count} lines were read for one"
            );
        }
        assert!(follower.grow(name, log.as_bytes()), "{name}");
    }
}

#[test]
fn a_log_that_is_cut_off_or_replaced_is_begun_anew() {
    for (name, lines) in long_logs(24) {
        let text = |lines: &[String]| {
            lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        let folder = Folder::quick();
        let whole = text(&lines);
        let options = ImportOptions::default();
        type Change<'c> = &'c dyn Fn(&Path);
        let shorter = text(&lines[..12]);
        let cut: Change<'_> = &|path| std::fs::write(path, &shorter).expect("memory");
        // As long as it was, and more: only its end says that it is another.
        let other = whole.replace("conversation", "konversation") + &lines[23] + "\n";
        let rewritten: Change<'_> = &|path| std::fs::write(path, &other).expect("memory");
        let replaced: Change<'_> = &|path| {
            let beside = path.with_extension("new");
            std::fs::write(&beside, &other).expect("memory");
            std::fs::rename(&beside, path).expect("memory");
        };
        for (what, change) in [
            ("cut", cut),
            ("rewritten", rewritten),
            ("replaced", replaced),
        ] {
            let path = PathBuf::from(folder.file(&format!("{name}-{what}.jsonl")));
            std::fs::write(&path, &whole).expect("memory");
            let mut log = FollowedLog::open(&path, &options)
                .expect("a file")
                .expect("a log");
            assert!(log.look(&path).expect("a log").is_some(), "{name} {what}");
            change(&path);
            let again = log.look(&path).expect("a log");
            assert!(again.is_none(), "{name} {what}: it is begun anew");
            let mut log = FollowedLog::open(&path, &options)
                .expect("a file")
                .expect("a log");
            let found = log.look(&path).expect("a log").expect("it is new");
            let wanted = import(&std::fs::read(&path).expect("a file"), &options).expect("a log");
            assert_eq!(found.report, wanted.report, "{name} {what}");
        }
    }
}

/// A text, of which a few are long and some not ASCII.
fn words(rng: &mut Rng) -> String {
    let word = *rng.pick(&["go", "Grüße — los", "ja \u{1f600}", "«да»", "x"]);
    format!("{word} {}", rng.below(1_000))
}

fn time(at: usize) -> String {
    format!("2026-03-02T09:{:02}:{:02}Z", at / 60 % 60, at % 60)
}

/// Lines of Claude Code: branches, responses of several lines, calls side by side, compactions, subagents.
fn claude_code(rng: &mut Rng) -> Vec<Value> {
    let mut lines: Vec<Value> = Vec::new();
    let (mut main, mut side): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut calls: Vec<(String, String)> = Vec::new();
    let (mut response, mut was_side) = (String::new(), false);
    for at in 0..6 + rng.below(24) {
        let id = format!("u{at}");
        let is_side = rng.chance(12);
        let known = if is_side { &mut side } else { &mut main };
        let mut parent = known.last().cloned();
        // A response has several lines, between which are results of its calls and nothing else.
        let is_elsewhere = rng.chance(12) && !known.is_empty();
        if is_elsewhere {
            parent = Some(rng.pick(known).clone());
        }
        if is_elsewhere || is_side != was_side || response.is_empty() || rng.chance(25) {
            response = format!("msg_{at}");
            calls.clear();
        }
        was_side = is_side;
        let text = words(rng);
        let said = |part: Value| {
            json!({"role": "assistant", "id": response, "model": "m", "content": [part],
            "usage": {"input_tokens": at, "output_tokens": 1}})
        };
        let mut more = json!({});
        let (kind, message) = match rng.below(13) {
            0..3 => ("user", json!({"role": "user", "content": text})),
            3..6 => ("assistant", said(json!({"type": "text", "text": text}))),
            6..8 => {
                let call = format!("toolu_{at}");
                calls.push((call.clone(), id.clone()));
                let input = json!({"prompt": "Check.", "text": text});
                (
                    "assistant",
                    said(json!({"type": "tool_use", "id": call, "name": "Task", "input": input})),
                )
            }
            8..10 if !calls.is_empty() => {
                let (call, line) = calls.remove(rng.below(calls.len()));
                parent = Some(line);
                if rng.chance(30) {
                    more = json!({"toolUseResult": {"agentId": "a1"}});
                }
                let part = json!({"type": "tool_result", "tool_use_id": call, "content": text});
                ("user", json!({"role": "user", "content": [part]}))
            }
            10 => {
                more = json!({"subtype": "compact_boundary", "logicalParentUuid": parent,
                    "compactMetadata": {"trigger": "auto", "preTokens": at}});
                ("system", Value::Null)
            }
            11 => {
                more = json!({"isCompactSummary": true});
                ("user", json!({"role": "user", "content": text}))
            }
            12 => {
                more = json!({"subtype": "api_error", "error": {"status": 529}, "retryAttempt": 1});
                ("system", Value::Null)
            }
            _ => {
                let kind = *rng.pick(&["summary", "queue-operation", "file-history-snapshot"]);
                lines.push(json!({"type": kind, "summary": text, "leafUuid": parent}));
                continue;
            }
        };
        let mut line = json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s",
            "isSidechain": is_side, "timestamp": time(at), "message": message});
        if kind != "assistant" && !message["content"].is_array() {
            response.clear();
        }
        if is_side {
            line["agentId"] = json!("a1");
        }
        if message.is_null() {
            line.as_object_mut().expect("an object").remove("message");
        }
        for (name, value) in more.as_object().expect("an object") {
            line[name] = value.clone();
        }
        if is_side { &mut side } else { &mut main }.push(id);
        if rng.chance(4) {
            lines.push(line.clone());
        }
        lines.push(line);
    }
    lines
}

/// Entries of pi, as a list or as a tree.
fn pi(rng: &mut Rng) -> Vec<Value> {
    let is_tree = rng.chance(70);
    let mut lines =
        vec![json!({"type": "session", "id": "s", "timestamp": time(0), "cwd": "/srv"})];
    if is_tree {
        lines[0]["version"] = json!(3);
    }
    let mut ids: Vec<String> = Vec::new();
    for at in 1..4 + rng.below(20) {
        let text = json!([{"type": "text", "text": words(rng)}]);
        let message = |message: Value| json!({"type": "message", "message": message});
        let mut line = match rng.below(8) {
            0..2 => message(json!({"role": "user", "content": text})),
            2..4 => message(
                json!({"role": "assistant", "content": text, "model": "m", "stopReason": "stop",
                "usage": {"input": at, "output": 1}}),
            ),
            4 => message(
                json!({"role": "assistant", "content": [{"type": "toolCall", "id": format!("c{at}"),
                "name": "bash", "arguments": {"a": 1}}], "model": *rng.pick(&["m", "n"]), "stopReason": "toolUse"}),
            ),
            5 => message(
                json!({"role": "toolResult", "toolCallId": format!("c{}", at - 1), "toolName": "bash",
                "isError": false, "content": text}),
            ),
            6 if rng.chance(50) => {
                message(json!({"role": "assistant", "content": [], "stopReason": "aborted"}))
            }
            6 => json!({"type": "model_change", "modelId": "n"}),
            _ => json!({"type": "compaction", "summary": words(rng), "tokensBefore": at,
                "firstKeptEntryIndex": rng.below(at), "firstKeptEntryId": ids.last()}),
        };
        line["timestamp"] = json!(time(at));
        if is_tree {
            line["id"] = json!(format!("e{at}"));
            line["parentId"] = match ids.len() {
                0 => Value::Null,
                _ if rng.chance(15) => json!(rng.pick(&ids)),
                _ => json!(ids.last()),
            };
            ids.push(format!("e{at}"));
        }
        lines.push(line);
    }
    lines
}

/// Lines of Codex.
fn codex(rng: &mut Rng) -> Vec<Value> {
    let base = json!({"text": "Be brief."});
    let mut lines = vec![
        json!({"timestamp": time(0), "type": "session_meta", "payload": {"id": "s", "cwd": "/srv",
        "base_instructions": base}}),
    ];
    for at in 1..4 + rng.below(24) {
        let of = |role: &str, kind: &str, text: String| {
            json!({"type": "message", "role": role,
            "content": [{"type": kind, "text": text}]})
        };
        let text = words(rng);
        let (kind, payload) = match rng.below(9) {
            0..2 => ("response_item", of("user", "input_text", text)),
            2..4 => ("response_item", of("assistant", "output_text", text)),
            4 => (
                "response_item",
                json!({"type": "function_call", "call_id": format!("c{at}"), "name": "shell",
                "arguments": "{\"a\":1}"}),
            ),
            5 => (
                "response_item",
                json!({"type": "function_call_output", "call_id": format!("c{}", at - 1),
                "output": text}),
            ),
            6 => (
                "event_msg",
                json!({"type": "token_count", "info": {"last_token_usage": {"input_tokens": at}}}),
            ),
            7 => (
                "turn_context",
                json!({"model": *rng.pick(&["m", "n"]), "effort": "high"}),
            ),
            _ if rng.chance(50) => ("event_msg", json!({"type": "error", "message": text})),
            _ => (
                "compacted",
                json!({"message": text, "replacement_history": [of("user", "input_text", words(rng))]}),
            ),
        };
        lines.push(json!({"timestamp": time(at), "type": kind, "payload": payload}));
    }
    lines
}

/// Records of Gemini CLI, with those that change earlier ones.
fn gemini_cli(rng: &mut Rng) -> Vec<Value> {
    let mut lines = vec![json!({"sessionId": "s", "projectHash": "h", "startTime": time(0)})];
    let mut records: Vec<Value> = Vec::new();
    for at in 1..4 + rng.below(24) {
        let text = words(rng);
        let record = |kind: &str, content: Value| json!({"id": format!("m{at}"), "timestamp": time(at), "type": kind, "content": content});
        let call = json!({"functionResponse": {"id": format!("c{}", at - 1), "name": "f", "response": {"output": text}}});
        let mut line = match rng.below(12) {
            0..2 => record("user", json!([{"text": text}])),
            2..4 => record("gemini", json!(text)),
            4..6 if !records.is_empty() => {
                let mut line = if rng.chance(70) {
                    records[records.len() - 1].clone()
                } else {
                    rng.pick(&records).clone()
                };
                if line["type"] == "gemini" {
                    let result = rng.chance(70).then(|| json!([call]));
                    line["toolCalls"] = json!([{"id": format!("c{}", at - 1), "name": "f", "args": {"a": 1}, "result": result}]);
                    line["tokens"] = json!({"input": at, "output": 1});
                }
                if rng.chance(30) {
                    line["content"] = json!(words(rng));
                }
                line
            }
            6 => record("user", json!([call])),
            7 => {
                let kind: &&str = rng.pick(&["info", "error", "warning"]);
                record(kind, json!(format!("[API Error: {text}]")))
            }
            8 => {
                let id = records
                    .get(rng.below(records.len() + 1))
                    .map_or(json!("x"), |one| one["id"].clone());
                lines.push(json!({"$rewindTo": id}));
                continue;
            }
            9 => {
                let from = rng.below(records.len() + 1);
                let text = *rng.pick(&["<state_snapshot>so far", "so far"]);
                let mut kept = vec![record("user", json!([{"text": text}]))];
                kept.extend_from_slice(&records[from..]);
                lines.push(
                    json!({"$set": {"messages": kept[rng.below(2)..], "lastUpdated": time(at)}}),
                );
                continue;
            }
            10 => {
                lines.push(json!({"$set": {"lastUpdated": time(at)}}));
                continue;
            }
            _ => {
                lines.push(json!({"$set": {"summary": text}}));
                continue;
            }
        };
        if line["type"] == "gemini" && rng.chance(80) {
            line["model"] = json!(*rng.pick(&["m", "n"]));
        }
        records.push(line.clone());
        lines.push(line);
    }
    lines
}

/// Events of Copilot CLI, of which some are a subagent's.
fn copilot_cli(rng: &mut Rng) -> Vec<Value> {
    let mut lines = vec![
        json!({"id": "e0", "type": "session.start", "timestamp": time(0),
        "data": {"sessionId": "s", "context": {"cwd": "/srv"}}}),
    ];
    for at in 1..4 + rng.below(24) {
        let text = words(rng);
        let call = format!("c{}", at - usize::from(rng.chance(80)));
        let (kind, data) = match rng.below(11) {
            0..2 => (
                "user.message",
                json!({"content": text, "transformedContent": format!("<now_at>{at}</now_at> {text}")}),
            ),
            2..4 => (
                "assistant.message",
                json!({"content": text, "apiCallId": format!("a{}", at / 2), "outputTokens": at,
                "reasoningText": "so"}),
            ),
            4 => (
                "assistant.message",
                json!({"content": "", "model": *rng.pick(&["m", "n"]),
                "toolRequests": [{"toolCallId": format!("c{at}"), "name": "f", "arguments": {"a": 1}}]}),
            ),
            5 => (
                "tool.execution_start",
                json!({"toolCallId": call, "toolName": "f", "arguments": {"a": 1}, "model": "o"}),
            ),
            6 => (
                "tool.execution_complete",
                json!({"toolCallId": call, "success": true, "result": {"content": text}}),
            ),
            7 => (
                "hook.start",
                json!({"hookType": "userPromptSubmitted", "input": {"prompt": *rng.pick(&["go", "x"])}}),
            ),
            8 => ("assistant.reasoning", json!({"content": "so"})),
            9 => (
                *rng.pick(&["session.error", "subagent.started", "assistant.usage"]),
                json!({"message": text, "toolCallId": call, "inputTokens": at}),
            ),
            _ => (
                *rng.pick(&[
                    "session.compaction_complete",
                    "session.context_cleared",
                    "system.message",
                ]),
                json!({"content": "Be brief.", "role": "system", "summaryContent": text}),
            ),
        };
        let mut line =
            json!({"id": format!("e{at}"), "type": kind, "timestamp": time(at), "data": data});
        if rng.chance(20) || kind == "subagent.started" {
            line["agentId"] = json!("a1");
        }
        lines.push(line);
    }
    lines
}

/// Messages of OpenAI, one a line.
fn messages(rng: &mut Rng) -> Vec<Value> {
    let mut lines = vec![json!({"role": "system", "content": "Be brief."})];
    for at in 1..4 + rng.below(20) {
        let text = words(rng);
        lines.push(match rng.below(4) {
            0 => json!({"role": "user", "content": text}),
            1 => json!({"role": "assistant", "content": text}),
            2 => json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("c{at}"), "type": "function",
                "function": {"name": "f", "arguments": "{}"}}]}),
            _ => json!({"role": "tool", "tool_call_id": format!("c{}", at - 1), "content": text}),
        });
    }
    lines
}

/// Recorded requests of several conversations, with and without their responses, in a random API.
fn requests(rng: &mut Rng) -> Vec<Value> {
    // Of one API, or each conversation of another: then what shows the API, the response, is beside its request.
    let (own, is_mixed) = (rng.below(5), rng.chance(30));
    // What a message is called, what its content is.
    let said = |api: usize, role: &str, text: &str| match (api, role) {
        (3, "assistant") => json!({"role": "model", "parts": [{"text": text}]}),
        (3, _) => json!({"role": role, "parts": [{"text": text}]}),
        (4, _) => json!({"role": role, "content": [{"text": text}]}),
        _ => json!({"role": role, "content": text}),
    };
    let mut lines = Vec::new();
    let mut open: Vec<(usize, Vec<Value>)> = Vec::new();
    for at in 0..3 + rng.below(14) {
        let which = rng.below(open.len() + 1);
        if which == open.len() || rng.chance(10) {
            let api = if is_mixed && !open.is_empty() {
                rng.below(5)
            } else {
                own
            };
            open.push((api, Vec::new()));
        }
        let which = which.min(open.len() - 1);
        let (api, sent) = &mut open[which];
        let api = *api;
        if rng.chance(10) && sent.len() > 2 {
            sent.drain(..2);
        }
        sent.push(said(api, "user", &words(rng)));
        let list = ["messages", "messages", "input", "contents", "messages"][api];
        let mut request = match api {
            3 => json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}}),
            4 => {
                json!({"modelId": "m", "system": [{"text": "Be brief."}], "inferenceConfig": {"maxTokens": 10}})
            }
            1 => json!({"model": "m", "max_tokens": 10, "system": "Be brief."}),
            _ => json!({"model": "m"}),
        };
        request[list] = json!(sent);
        let text = words(rng);
        let response = match api {
            _ if rng.chance(15) && !(is_mixed && lines.is_empty()) => {
                json!({"error": {"message": text}})
            }
            0 => {
                json!({"choices": [{"message": {"role": "assistant", "content": text}}], "usage": {"prompt_tokens": at}})
            }
            1 => {
                json!({"role": "assistant", "type": "message", "content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": at}})
            }
            2 => json!({"id": format!("r{at}"), "output": [{"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": text}]}]}),
            3 => {
                json!({"candidates": [{"content": said(api, "assistant", &text), "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": at}, "modelVersion": "m"})
            }
            _ => {
                json!({"output": {"message": said(api, "assistant", &text)}, "stopReason": "end_turn",
                "usage": {"inputTokens": at}})
            }
        };
        if response.get("error").is_none() {
            sent.push(said(api, "assistant", &text));
        }
        match rng.below(if is_mixed { 2 } else { 4 }) {
            0 => lines.push(json!({"request": request, "response": response})),
            1 => lines.push(json!({"request": request, "response": response.to_string()})),
            2 => lines.extend([request, response]),
            _ => lines.push(request),
        }
    }
    lines
}

/// A reply of which more comes, in letters that a store spells otherwise than a log.
#[test]
fn a_reply_beyond_ascii_grows() {
    let log = [
        line("1", None, "user", "Grüße — los", 1),
        line("2", Some("1"), "assistant", "Ja — \u{1f600}", 2),
        line("3", Some("2"), "assistant", "«mehr»", 3).replace("msg_3", "msg_2"),
        line("4", Some("3"), "user", "да", 4),
    ];
    let log = log.concat();
    // At every byte.
    let cuts: Vec<usize> = (1..=log.len()).collect();
    let grown = grows("a growing reply", log.as_bytes(), &cuts, WHOLE);
    assert!(grown.snapshots > 0);
}

/// Every recorded log, as it grew: imported after each line, and in the middle of each. The logs are not part of the
/// repository.
#[test]
fn recorded_logs_grow() {
    if random::left_to_ci() {
        return;
    }
    for (name, log) in contents(crate::real_data::logs()) {
        // Documents, and kinds of logs that are refused by their names.
        if !is_lines(&log) || import(&log, &ImportOptions::default()).is_err() {
            continue;
        }
        let mut cuts = cuts(&log, &mut Rng::new(log.len() as u64));
        // All cuts of a long log take a quarter of an hour: they are for `PACTQL_CASES=20000`.
        let some = if log.len() > 400_000 { 1 } else { 3 };
        let (last, apart) = (cuts.len() - 1, cuts.len() / some + 1);
        if random::cases() < 20_000 {
            let mut at = 0..;
            cuts.retain(|_| {
                at.next()
                    .is_some_and(|at| at < some || at % apart < 2 || at == last)
            });
        }
        let began = std::time::Instant::now();
        let grown = grows(&name, &log, &cuts, &EVERY[..2]);
        println!(
            "{name}: {} cuts, {} imports, {} too early, {} compared, {} snapshots, {:?}",
            cuts.len(),
            grown.imports,
            grown.refused,
            grown.compared,
            grown.snapshots,
            began.elapsed()
        );
    }
}

/// One line of Claude Code.
fn line(id: &str, parent: Option<&str>, role: &str, text: &str, at: usize) -> String {
    let content = match role {
        "assistant" => json!([{"type": "text", "text": text}]),
        _ => json!(text),
    };
    let mut message = json!({"role": role, "content": content});
    if role == "assistant" {
        message["id"] = json!(format!("msg_{id}"));
        message["model"] = json!("m");
    }
    let line = json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s",
        "isSidechain": false, "timestamp": format!("2026-03-02T09:00:{at:02}Z"), "message": message});
    format!("{line}\n")
}

#[test]
fn the_name_follows_the_newest_branch_and_the_old_path_becomes_a_fork() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let mut log = String::new();
    let bring = |log: &str| {
        let sessions = sessions(log.as_bytes(), "log", Reading::Whole).expect("a log");
        store
            .import_log(&sessions, Some("log.jsonl"))
            .expect("imported")
    };
    let texts = |name: &str| {
        let session = store.session(name).expect("a session");
        let history = session.history();
        let newest = history.latest().expect("a snapshot");
        let replies = newest
            .nodes()
            .filter(|node| node.role() == Some("assistant"));
        let texts: Vec<String> = replies
            .map(|node| {
                node.field("content")
                    .map(JsonValue::canonical)
                    .unwrap_or_default()
                    .replace('"', "")
            })
            .collect();
        texts.join(" ")
    };
    log += &line("1", None, "user", "go", 1);
    log += &line("2", Some("1"), "assistant", "A", 2);
    log += &line("3", Some("2"), "user", "on", 3);
    log += &line("4", Some("3"), "assistant", "B", 4);
    assert_eq!(bring(&log).new, 1);
    assert_eq!(texts("log"), "A B");
    // Another branch from A.
    log += &line("5", Some("2"), "user", "another way", 5);
    log += &line("6", Some("5"), "assistant", "C", 6);
    let done = bring(&log);
    assert_eq!(done.renamed, [("log".to_owned(), "log~2".to_owned())]);
    assert_eq!((texts("log"), texts("log~2")), ("A C".into(), "A B".into()));
    // The first one goes on.
    log += &line("7", Some("4"), "user", "on", 7);
    log += &line("8", Some("7"), "assistant", "D", 8);
    let done = bring(&log);
    assert_eq!((done.new, done.grown, done.snapshots), (0, 1, 1));
    assert_eq!(
        (texts("log"), texts("log~2")),
        ("A B D".into(), "A C".into())
    );
    sound(&store).expect("a sound store");
}

#[test]
fn a_renamed_session_keeps_its_name() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let bring = |log: &str| {
        let sessions = sessions(log.as_bytes(), "log", Reading::Whole).expect("a log");
        let done = store.import_log(&sessions, Some("log.jsonl"));
        done.expect("imported")
    };
    let mut log = line("1", None, "user", "go", 1) + &line("2", Some("1"), "assistant", "A", 2);
    bring(&log);
    store.rename("log", "mine").expect("renamed");
    let kept = [("log".to_owned(), "mine".to_owned())];
    assert_eq!(
        (bring(&log).kept_names, bring(&log).same),
        (kept.to_vec(), 1)
    );
    // It goes on, and then another branch is the newest.
    log += &line("3", Some("2"), "user", "on", 3);
    log += &line("4", Some("3"), "assistant", "B", 4);
    assert_eq!(bring(&log).grown, 1);
    log += &line("5", Some("2"), "user", "another way", 5);
    log += &line("6", Some("5"), "assistant", "C", 6);
    let done = bring(&log);
    let kept = [("log~2".to_owned(), "mine".to_owned())];
    assert_eq!(
        (done.new, done.same, done.kept_names),
        (1, 1, kept.to_vec())
    );
    let names = store.sessions("*").expect("a list");
    let names: Vec<&str> = names.iter().map(|entry| &*entry.name).collect();
    assert_eq!(names, ["log", "mine"]);
    sound(&store).expect("a sound store");
}

#[test]
fn a_renamed_session_is_found_where_another_has_its_name() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let bring = |log: &str, source: &str| {
        let sessions = sessions(log.as_bytes(), "log", Reading::Whole).expect("a log");
        store.import_log(&sessions, Some(source)).expect("imported")
    };
    let mut log = line("1", None, "user", "go", 1) + &line("2", Some("1"), "assistant", "A", 2);
    bring(&log, "x/log.jsonl");
    store.rename("log", "mine").expect("renamed");
    let other = line("1", None, "user", "else", 1) + &line("2", Some("1"), "assistant", "Z", 2);
    assert_eq!(bring(&other, "y/log.jsonl").new, 1);
    log += &line("3", Some("2"), "user", "on", 3);
    log += &line("4", Some("3"), "assistant", "B", 4);
    let done = bring(&log, "x/log.jsonl");
    assert_eq!((done.new, done.grown), (0, 1));
    sound(&store).expect("a sound store");
}

/// What was pruned does not come back, and its session is still found when another branch is the newest.
#[test]
fn a_pruned_session_follows_its_branch() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let bring = |log: &str| {
        let sessions = sessions(log.as_bytes(), "log", Reading::Whole).expect("a log");
        store
            .import_log(&sessions, Some("log.jsonl"))
            .expect("imported")
    };
    let mut log = line("1", None, "user", "go", 1)
        + &line("2", Some("1"), "assistant", "A", 2)
        + &line("3", Some("2"), "user", "on", 3)
        + &line("4", Some("3"), "assistant", "B", 4);
    assert_eq!(bring(&log).snapshots, 2);
    let keep = pactql::store::Retention::default().keep(1);
    store.prune(&keep).expect("pruned");
    log += &line("5", Some("2"), "user", "another way", 5);
    log += &line("6", Some("5"), "assistant", "C", 6);
    let done = bring(&log);
    assert_eq!(done.renamed, [("log".to_owned(), "log~2".to_owned())]);
    assert_eq!((done.new, done.same), (1, 1));
    log += &line("7", Some("4"), "user", "on", 7);
    log += &line("8", Some("7"), "assistant", "D", 8);
    let done = bring(&log);
    assert_eq!((done.new, done.grown, done.snapshots), (0, 1, 1));
    assert_eq!(store.sessions("log").expect("a list")[0].snapshots, 2);
    sound(&store).expect("a sound store");
}

#[test]
fn other_sessions_of_a_name_and_those_that_were_written_are_left_alone() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).expect("a store");
    let one = |text: &str| {
        let log = line("1", None, "user", "go", 1) + &line("2", Some("1"), "assistant", text, 2);
        sessions(log.as_bytes(), "log", Reading::Documents).expect("a log")
    };
    store
        .import_log(&one("A"), Some("log.jsonl"))
        .expect("imported");
    let error = store
        .import_log(&one("B"), Some("log.jsonl"))
        .expect_err("another");
    assert_eq!(error.code(), Code::SessionExists);
    // A shorter log takes nothing away.
    let longer = line("1", None, "user", "go", 1)
        + &line("2", Some("1"), "assistant", "A", 2)
        + &line("3", Some("2"), "user", "on", 3)
        + &line("4", Some("3"), "assistant", "B", 4);
    let longer = sessions(longer.as_bytes(), "log", Reading::Whole).expect("a log");
    assert_eq!(
        store
            .import_log(&longer, Some("log.jsonl"))
            .expect("more")
            .snapshots,
        1
    );
    let done = store
        .import_log(&one("A"), Some("log.jsonl"))
        .expect("less");
    assert_eq!(done.same, 1);
    assert_eq!(store.sessions("log").expect("a list")[0].snapshots, 2);
    // A context has gone on with it.
    let mut context: Context = store.write("log").expect("a context");
    context.append(Message::user("more")).expect("a message");
    context.commit().expect("a commit");
    drop(context);
    let error = store
        .import_log(&longer, Some("log.jsonl"))
        .expect_err("written");
    assert_eq!(error.code(), Code::SessionExists);
    sound(&store).expect("a sound store");
}

/// A session with a snapshot for each list of blocks.
fn windows(snapshots: &[&[Value]]) -> Vec<(String, Session)> {
    let documents = snapshots.iter().zip(1..).map(|(blocks, cycle)| {
        let turn = json!({"id": "mt:1", "nodeType": "mt", "children": blocks});
        let seq = json!({"id": "seq", "nodeType": "^seq", "children": [turn]});
        json!({"cycle": cycle, "root": {"id": "root", "nodeType": "^root", "children": [seq]}})
    });
    let text: String = documents.map(|document| format!("{document}\n")).collect();
    let session = Session::from_slice(text.as_bytes()).expect("a session");
    vec![("log".to_owned(), session)]
}

fn block(id: &str, content: &str) -> Value {
    json!({"id": id, "nodeType": "cb", "role": "user", "content": content})
}

#[test]
fn another_log_that_ends_alike_takes_nothing_back() {
    let folder = Folder::quick();
    let path = folder.file("a.db");
    let store = Store::open(&path).expect("a store");
    let blocks =
        |names: &[&str]| -> Vec<Value> { names.iter().map(|name| block(name, name)).collect() };
    let one = windows(&[&blocks(&["a"]), &blocks(&["a", "b"]), &blocks(&["d"])]);
    let other = windows(&[&blocks(&["c"]), &blocks(&["b", "c"]), &blocks(&["d", "c"])]);
    store.import_log(&one, Some("one.jsonl")).expect("imported");
    let before = said(&store, &path);
    let error = store
        .import_log(&other, Some("other.jsonl"))
        .expect_err("another log");
    assert_eq!(error.code(), Code::SessionExists);
    same("a refused log", &said(&store, &path), &before);
}

#[test]
fn an_erased_node_does_not_come_back() {
    let folder = Folder::quick();
    let path = folder.file("a.db");
    let store = Store::open(&path).expect("a store");
    let first = [block("a", "go")];
    let secret = json!({"id": "b", "nodeType": "cb", "role": "user", "data_secret": "hunter2"});
    let second = [block("a", "go"), secret.clone()];
    let third = [block("a", "go"), secret, block("c", "more")];
    let bring = |log: &[(String, Session)]| store.import_log(log, Some("log.jsonl"));
    bring(&windows(&[&first, &second])).expect("imported");
    store.erase("log", ["b"]).expect("erased");
    // The log has gone on in its last snapshot; what it says of the node is not taken over.
    let error = bring(&windows(&[&first, &third])).expect_err("a node that was erased");
    assert_eq!(error.code(), Code::SessionExists);
    let told = "a text was erased from `log`, and the log still has it";
    assert_eq!(error.message(), told);
    // Nor where it has gone from the newest snapshot, and comes again later.
    store.delete("log").expect("deleted");
    let last = [block("d", "last")];
    bring(&windows(&[&first, &second, &last])).expect("imported");
    store.erase("log", ["b"]).expect("erased");
    let error = bring(&windows(&[&first, &second, &last, &second])).expect_err("it comes again");
    assert_eq!(error.message(), told);
    let done = bring(&windows(&[&first, &second, &last, &first])).expect("it goes on");
    assert_eq!((done.grown, done.snapshots), (1, 1));
    let all = said(&store, &path).concat();
    assert!(!all.contains("hunter2"));
}
