//! Reports on what a model saw and what it cost.

mod across;
mod assert;
mod ends;
mod fields;
mod grep;
mod linear;
mod money;
mod prefix;
mod prices;
mod reports;
mod runs;
mod share;
mod sums;
#[cfg(feature = "tokens")]
mod tokenizer;
mod waste;
mod wording;

use pactql::Session;
use pactql::logs::{ImportOptions, import};

/// The requests of a synthetic agent that books trains: five calls, four tools, one model.
const TRAVEL: &[u8] = include_bytes!("../../../fixtures/travel.openai.json");

/// The session of a log.
fn imported(log: &[u8]) -> Session {
    let imported = import(log, &ImportOptions::default()).unwrap();
    let mut lines = Vec::new();
    imported.sessions[0]
        .recording
        .write_jsonl(&mut lines, false)
        .unwrap();
    Session::from_slice(&lines).unwrap()
}

fn travel() -> Session {
    imported(TRAVEL)
}

fn greenhouse() -> Session {
    Session::open("fixtures/greenhouse.jsonl").unwrap()
}
