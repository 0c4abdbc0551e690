//! Logs that are read line by line: they make the same sessions as logs that are read as a whole.

use super::{Session, written};
use pactql::Session as Whole;
use pactql::interop::{Format, ImportOptions, Imported, LogError, Redaction, import, import_file};
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
            pactql::interop::write_session(&snapshots, working, true, &mut out).expect("memory");
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
    let line = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    let good = line("a") + &line("b");
    let lenient = ImportOptions {
        lenient: true,
        ..ImportOptions::default()
    };
    for log in [
        good.clone() + "\n \r\n" + &line("c"),
        format!("\u{FEFF}{good}"),
        good.clone() + "{\"role\":\"us",
        good.clone() + "no JSON\n" + &line("d"),
        good.clone() + "{\"role\": 1e999}\n{\"a\":1,\"a\":2}\n" + &line("d"),
        good.clone() + &line("half \\ud83d of one") + &line("and \\udc00"),
        line("é🙂\\u00e9\\/") + &line("ü"),
    ] {
        assert!(agrees(log.as_bytes(), &ImportOptions::default()), "{log}");
        assert!(agrees(log.as_bytes(), &lenient), "{log}");
    }
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
    let error = streamed(&bytes, &ImportOptions::default()).expect_err("not UTF-8");
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

#[test]
fn a_spool_that_cannot_be_written_is_an_error() {
    let log = std::fs::read("fixtures/release.claude-code.jsonl").expect("a fixture");
    let read_only = File::open("fixtures/release.claude-code.jsonl").expect("a fixture");
    let error = import_file(&file(&log), read_only, &ImportOptions::default());
    assert!(matches!(error, Err(LogError::Io(_))), "{error:?}");
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
