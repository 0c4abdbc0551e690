//! `logs`: logs are imported, documents and threads are exported.

mod account;
mod bridges;
#[path = "../../support/ctrace.rs"]
mod ctrace;
mod formats;
mod hostile;
mod import;
mod large;
mod links;
mod odd;
mod otel;
mod recordings;
mod redact;
mod render;
mod requests;
mod sent;
mod shapes;
mod transcripts;
mod used;

use pactql::Provider;
use pactql::internals::index::{Snapshot, Writer};
use pactql::internals::tree::{read_document, read_lines, whole_trees};
use pactql::logs::{ImportOptions, Imported, MessageLocation, Pointer, import, write_session};
use serde_json::Value;
use std::sync::Arc;

/// A session read back: committed snapshots, and the working state.
struct Session {
    committed: Vec<Arc<Snapshot>>,
    working: Option<Arc<Snapshot>>,
}

impl Session {
    fn read(text: &[u8]) -> Self {
        let documents = match read_document(text) {
            Ok(document) => vec![document],
            Err(_) => read_lines(text).expect("a valid session"),
        };
        let mut writer = Writer::new();
        let mut session = Self {
            committed: Vec::new(),
            working: None,
        };
        for item in whole_trees(documents) {
            let (mut meta, tree) = item.expect("a valid session");
            let previous = session.committed.last().cloned();
            let working = meta.working;
            if working {
                meta.cycle = previous.as_ref().map_or(0, |previous| previous.cycle());
            }
            let (snapshot, merges) = writer.append(previous.as_deref(), &tree, meta);
            for older in &mut session.committed {
                if let Some(moved) = older.moved(&merges) {
                    *older = Arc::new(moved);
                }
            }
            if working {
                session.working = Some(Arc::new(snapshot));
            } else {
                session.committed.push(Arc::new(snapshot));
            }
        }
        session
    }

    /// The working state, or the newest snapshot if there is none.
    fn current(&self) -> &Snapshot {
        let newest = self.working.as_ref().or_else(|| self.committed.last());
        newest.expect("a snapshot")
    }

    fn export(&self, full: bool) -> String {
        let mut out = Vec::new();
        write_session(&self.committed, self.working.as_deref(), full, &mut out).expect("memory");
        String::from_utf8(out).expect("ASCII")
    }
}

fn rendered(snapshot: &Snapshot, provider: Provider) -> String {
    pactql::render::request(snapshot, provider).expect("a request")
}

fn openai(snapshot: &Snapshot) -> Value {
    serde_json::from_str(&rendered(snapshot, Provider::OpenAi)).expect("JSON")
}

fn thread(snapshot: &Snapshot) -> String {
    rendered(snapshot, Provider::Thread)
}

fn imported(text: &[u8], place: MessageLocation) -> Imported {
    let options = ImportOptions {
        location: place,
        ..ImportOptions::default()
    };
    import(text, &options).expect("a good log")
}

fn written(imported: &Imported, session: usize, full: bool) -> String {
    let mut out = Vec::new();
    let recording = &imported.sessions[session].recording;
    recording.write_jsonl(&mut out, full).expect("memory");
    String::from_utf8(out).expect("ASCII")
}

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).expect("a pointer")
}

/// Checks that what an import writes reads back as itself, in both forms.
fn holds_together(imported: &Imported) -> Vec<Session> {
    (0..imported.sessions.len())
        .map(|at| {
            let (lines, whole) = (written(imported, at, false), written(imported, at, true));
            let session = Session::read(lines.as_bytes());
            assert!(session.export(true) == whole, "{lines}");
            assert!(
                session.export(false) == lines,
                "{lines}\n{}",
                session.export(false)
            );
            assert!(Session::read(whole.as_bytes()).export(false) == lines);
            session
        })
        .collect()
}
