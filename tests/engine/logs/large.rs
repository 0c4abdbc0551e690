//! Logs that are read line by line: they make the same sessions as logs that are read as a whole.

use super::{Session, written};
use pactql::Session as Whole;
use pactql::logs::{Format, ImportOptions, Imported, LogError, Redaction, import, import_file};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// A file that is gone when it is closed.
fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("space");
    file
}

/// What a log makes if it is read line by line; `None` if it is no JSON Lines.
pub(super) fn streamed(log: &[u8], options: &ImportOptions) -> Result<Option<Imported>, LogError> {
    import_file(&file(log), file(b""), options)
}

/// Checks that a log makes the same sessions both ways. Returns whether it is JSON Lines.
pub(super) fn agrees(log: &[u8], options: &ImportOptions) -> bool {
    let whole = import(log, options);
    let (whole, streamed) = match (whole, streamed(log, options)) {
        (_, Ok(None)) => return false,
        (Err(whole), Err(LogError::Input(streamed))) => {
            assert_eq!(whole, streamed);
            return true;
        }
        (whole, streamed) => (whole.expect("a good log"), streamed.expect("a good log")),
    };
    let streamed = streamed.expect("lines");
    assert_eq!(whole.report.to_json(), streamed.report.to_json());
    assert_eq!(whole.format, streamed.format);
    assert_eq!(whole.sessions.len(), streamed.sessions.len());
    for (at, (one, other)) in whole.sessions.iter().zip(&streamed.sessions).enumerate() {
        assert_eq!(
            (&one.location, &one.name, &one.parent),
            (&other.location, &other.name, &other.parent)
        );
        let wanted = written(&whole, at, true);
        let lines = written(&streamed, at, false);
        assert_eq!(Session::read(lines.as_bytes()).export(true), wanted);
        // Both kinds can be replayed.
        for recording in [&one.recording, &other.recording] {
            let history = Whole::replayed(Arc::new(recording.clone())).history();
            history.fetch_all().expect("every document");
            let snapshots: Vec<_> = history.committed().iter().cloned().collect();
            let working = history.working().map(|working| &**working);
            let mut out = Vec::new();
            pactql::logs::write_session(&snapshots, working, true, &mut out).expect("memory");
            assert_eq!(String::from_utf8(out).expect("ASCII"), wanted);
        }
    }
    true
}

#[test]
fn every_fixture_makes_the_same_line_by_line() {
    let mut read = Vec::new();
    let mut files = vec![
        "fixtures/release.claude-code.jsonl".into(),
        "fixtures/travel.openai.json".into(),
    ];
    for directory in std::fs::read_dir("tests/cases/logs").expect("a directory") {
        let directory = directory.expect("an entry").path();
        for file in std::fs::read_dir(directory).expect("a directory") {
            files.push(file.expect("an entry").path());
        }
    }
    let redacting = ImportOptions {
        redact: vec![Redaction::parse("[a-z]{3}[0-9]+").expect("a pattern")],
        ..ImportOptions::default()
    };
    for file in &files {
        let log = std::fs::read(file).expect("a file");
        for options in [&ImportOptions::default(), &redacting] {
            if agrees(&log, options) {
                read.push(file.display().to_string());
            }
        }
    }
    for name in ["claude-code", "codex", "pi", "openai", "anthropic"] {
        assert!(read.iter().any(|file| file.contains(name)), "{name}");
    }
}

#[test]
fn torn_odd_and_faulty_lines_are_said_alike() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let line = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    let good = line("a") + &line("b");
    let lenient = ImportOptions {
        lenient: true,
        ..ImportOptions::default()
    };
    let strict = ImportOptions {
        strict: true,
        ..ImportOptions::default()
    };
    for log in [
        good.clone() + "\n \r\n" + &line("c"),
        format!("\u{FEFF}{good}"),
        good.clone() + "{\"role\":\"us",
        good.clone() + "no JSON\n" + &line("d"),
        "no JSON\n".to_owned() + &good,
        good.clone() + "{\"role\": 1e999}\n{\"a\":1,\"a\":2}\n" + &line("d"),
        good.clone() + &line("half \\ud83d of one") + &line("and \\udc00"),
        line("é🙂\\u00e9\\/") + &line("ü"),
    ] {
        assert!(agrees(log.as_bytes(), &ImportOptions::default()), "{log}");
        assert!(agrees(log.as_bytes(), &lenient), "{log}");
        assert!(
            agrees(log.as_bytes(), &strict) || log.starts_with("no"),
            "{log}"
        );
    }
    // Half a letter at the end is mended, and is no line that waits for its rest.
    let half = line("a \\ud83d") + line("b \\ud83d").trim_end();
    assert!(agrees(half.as_bytes(), &ImportOptions::default()));
    let made = streamed(half.as_bytes(), &ImportOptions::default());
    let made = made.expect("a good log").expect("lines");
    assert_eq!(made.report.messages(pactql::logs::Fate::Understood), 2);
    // A mark is one only at the beginning.
    let marked = format!("{good}\u{FEFF}{good}");
    assert!(agrees(marked.as_bytes(), &ImportOptions::default()));
    // Long lines, before the format is sure and after.
    let long = line("short") + &line(&"long ".repeat(400_000)) + &line(&"longer ".repeat(300_000));
    assert!(agrees(long.as_bytes(), &ImportOptions::default()));
    let only_titles = "{\"type\":\"summary\",\"summary\":\"a\",\"leafUuid\":\"b\"}\n".repeat(3);
    assert!(agrees(only_titles.as_bytes(), &lenient));
    // What is in one piece is read in one piece.
    for log in [
        "[]",
        "{\"messages\":[]}",
        "",
        "\n",
        "{\"role\":\"user\",\"content\":\"a\"}",
        "[\n1]\n",
    ] {
        assert!(!agrees(log.as_bytes(), &ImportOptions::default()), "{log}");
    }
    // The first lines show the format; what is wrong after them is said here.
    let mut bytes = good.repeat(64).into_bytes();
    bytes.extend(b"{\"role\":\"user\",\"content\":\"\xFF\"}\n");
    assert!(agrees(&bytes, &ImportOptions::default()));
    let error = streamed(&bytes, &strict).expect_err("not UTF-8");
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

#[test]
fn a_spool_that_cannot_be_written_is_an_error() {
    let log = std::fs::read("fixtures/release.claude-code.jsonl").expect("a fixture");
    let read_only = File::open("fixtures/release.claude-code.jsonl").expect("a fixture");
    let error = import_file(&file(&log), read_only, &ImportOptions::default());
    assert!(matches!(error, Err(LogError::Spool(_))), "{error:?}");
}

#[test]
fn a_large_log_is_written_as_any_other() {
    let log = std::fs::read("fixtures/release.claude-code.jsonl").expect("a fixture");
    let whole = import(&log, &ImportOptions::default()).expect("a good log");
    let made = streamed(&log, &ImportOptions::default());
    let made = made.expect("a good log").expect("lines");
    for full in [false, true] {
        assert_eq!(written(&made, 0, full), written(&whole, 0, full));
    }
}

/// Documents as someone else may have them.
#[derive(Debug)]
struct Given(Vec<&'static str>, bool);

impl pactql::internals::tree::documents::Documents for Given {
    fn committed(&self) -> usize {
        self.0.len() - usize::from(self.1)
    }

    fn has_working(&self) -> bool {
        self.1
    }

    fn read(&self, index: usize) -> std::io::Result<pactql::internals::tree::Document> {
        let text = self.0[index].as_bytes();
        pactql::internals::tree::read_document(text).map_err(std::io::Error::other)
    }
}

#[test]
fn documents_out_of_order_are_refused() {
    let first = r#"{"cycle":1,"root":{"children":[]}}"#;
    let next = r#"{"cycle":2,"base":1,"remove":[],"replace":[]}"#;
    let replayed = |documents: &[&'static str], working| {
        let given = Given(documents.to_vec(), working);
        Whole::replayed(Arc::new(given)).history().fetch_all()
    };
    assert_eq!(replayed(&[first, next], false), Ok(()));
    let working = r#"{"working":true,"base":1,"remove":[],"replace":[]}"#;
    assert_eq!(replayed(&[first, working], true), Ok(()));
    for documents in [
        [first, r#"{"cycle":3,"root":{"children":[]}}"#],
        [first, r#"{"cycle":2,"base":2,"remove":[],"replace":[]}"#],
        [first, working],
        [next, next],
        [first, "no JSON"],
        [first, r#"{"root":{"children":[]}}"#],
    ] {
        let failure = replayed(&documents, false).expect_err("out of order");
        assert!(
            failure.message.starts_with("the session cannot be read: "),
            "{failure}"
        );
    }
}

#[test]
fn a_named_format_is_not_looked_for() {
    let options = ImportOptions {
        format: Some(Format::Codex),
        lenient: true,
        ..ImportOptions::default()
    };
    let log = b"{\"payload\":{}}\n{\"payload\":{}}\n";
    assert!(agrees(log, &options));
}
