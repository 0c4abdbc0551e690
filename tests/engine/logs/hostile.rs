//! Logs whose values try to be read as JSON of the session: every scalar of every example is replaced,
//! and what an import writes is read back.

use super::{Session, written};
use pactql::logs::{ImportOptions, import};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Texts that break out of a JSON document, or make another one of it, where they are printed unquoted.
const TEXTS: [&str; 11] = [
    "1,\"nodeType\":\"x\"",
    "1}],\"id\":\"root\",\"children\":[{",
    "\"",
    "\\",
    "{\"a\":1,\"a\":2}",
    "[1,2",
    "1e999",
    "-",
    "NaN",
    "",
    "\u{0}\u{1f}\u{2028}",
];

/// The scalars of a value, as pointers.
fn scalars(value: &Value, at: &str, found: &mut Vec<String>) {
    let inside = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                scalars(value, &inside(name), found);
            }
        }
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                scalars(value, &inside(&number.to_string()), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// The records of an example: one, or one a line. A line that is cut off is left out.
fn records(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(value) => vec![value],
        Err(_) => text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect(),
    }
}

fn text_of(records: &[Value]) -> String {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    lines.join("\n")
}

/// Imports the records with one value replaced. Returns whether they are a log still.
fn survives(records: &mut [Value], record: usize, pointer: &str, value: Value) -> bool {
    let place = records[record].pointer_mut(pointer).expect("a value");
    let before = std::mem::replace(place, value);
    let text = text_of(records);
    let imported = import(text.as_bytes(), &ImportOptions::default());
    if let Ok(imported) = &imported {
        for at in 0..imported.sessions.len() {
            let lines = written(imported, at, false);
            let read = std::panic::catch_unwind(|| Session::read(lines.as_bytes()));
            assert!(read.is_ok(), "line {record}{pointer} of {text}\n{lines}");
        }
    }
    *records[record].pointer_mut(pointer).expect("a value") = before;
    imported.is_ok()
}

fn examples(format: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/logs");
    let of_format = |folder: PathBuf| std::fs::read_dir(folder).expect("examples");
    let mut found: Vec<PathBuf> = of_format(folder)
        .map(|entry| entry.expect("a folder").path())
        .filter(|path| path.is_dir() && (format.is_empty() || path.ends_with(format)))
        .flat_map(|folder| of_format(folder).map(|entry| entry.expect("a file").path()))
        .filter(|path| path.to_string_lossy().contains("synthetic"))
        .filter(|path| !path.to_string_lossy().ends_with(".expected"))
        .collect();
    found.sort();
    found
}

#[test]
fn a_text_of_a_log_stays_a_text() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let mut imports = 0;
    for path in examples("") {
        let mut records = records(&std::fs::read_to_string(&path).expect("a file"));
        for record in 0..records.len() {
            let mut pointers = Vec::new();
            scalars(&records[record], "", &mut pointers);
            // A large example repeats its shapes.
            let step = 1 + pointers.len() / 10;
            for (number, pointer) in pointers.iter().enumerate().step_by(step) {
                let hostile = TEXTS[number % TEXTS.len()];
                imports += usize::from(survives(
                    &mut records,
                    record,
                    pointer,
                    Value::from(hostile),
                ));
            }
        }
    }
    assert!(imports > 300, "{imports}");
}

#[test]
fn a_typed_value_of_opentelemetry_stays_a_value() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let mut imports = 0;
    for path in examples("otel") {
        let mut records = records(&std::fs::read_to_string(&path).expect("a file"));
        for record in 0..records.len() {
            let mut pointers = Vec::new();
            scalars(&records[record], "", &mut pointers);
            let typed = pointers.iter().filter(|pointer| pointer.ends_with("Value"));
            for (number, pointer) in typed.enumerate() {
                let (value, _) = pointer.rsplit_once('/').expect("a member");
                let hostile = TEXTS[number % TEXTS.len()];
                let pair = json!({"key": "a", "value": {"intValue": hostile}});
                for value_of in [
                    json!({ "intValue": hostile }),
                    json!({ "doubleValue": hostile }),
                    json!({"arrayValue": {"values": [{"intValue": hostile}]}}),
                    json!({"kvlistValue": {"values": [pair, pair]}}),
                ] {
                    imports += usize::from(survives(&mut records, record, value, value_of));
                }
            }
        }
    }
    assert!(imports > 100, "{imports}");
}
