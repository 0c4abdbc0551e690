//! Any bytes as a log: an error, or sessions that are read back as they were written.

use pactql::Session;
use pactql::logs::{ImportOptions, Imported, import};

use super::document::exported;

/// Reads back what an import writes, in both forms, and writes it again.
pub fn read_back(imported: &Imported) {
    for session in &imported.sessions {
        for whole in [false, true] {
            let mut written = Vec::new();
            session
                .recording
                .write_jsonl(&mut written, whole)
                .expect("memory");
            let read = Session::from_slice(&written);
            let read = read.unwrap_or_else(|error| {
                panic!(
                    "an import is a session: {error}\n{}",
                    String::from_utf8_lossy(&written)
                )
            });
            if !whole {
                assert_eq!(
                    String::from_utf8(exported(&read)),
                    String::from_utf8(written)
                );
            }
        }
    }
}

pub fn run(bytes: &[u8]) {
    for lenient in [false, true] {
        let options = ImportOptions {
            lenient,
            ..ImportOptions::default()
        };
        if let Ok(imported) = import(bytes, &options) {
            read_back(&imported);
        }
    }
}
