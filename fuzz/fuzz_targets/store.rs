//! Any bytes as the file of a store, or a good file with patches: an answer or an error, never a panic.
//!
//! The first byte chooses: if it is even, the rest is the file. Otherwise the rest patches a good file, three
//! bytes of offset and one of value at a time.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pactql::{Engine, Session, Store};

/// Where the store is, and a good one.
fn good() -> &'static (PathBuf, Vec<u8>) {
    static STORE: OnceLock<(PathBuf, Vec<u8>)> = OnceLock::new();
    STORE.get_or_init(|| {
        let place = std::env::temp_dir().join(format!("pactql-fuzz-{}", std::process::id()));
        fs::create_dir_all(&place).expect("a temporary directory");
        let path = place.join("store.db");
        let lines = include_bytes!("../../fixtures/greenhouse.jsonl");
        let session = Session::from_slice(lines).expect("a session");
        let store = Store::open(path.to_str().expect("UTF-8")).expect("a store");
        store.import("talk", &session, None).expect("an import");
        drop(store);
        let bytes = fs::read(&path).expect("the store");
        (path, bytes)
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let (path, good) = good();
    let file = match choice % 2 {
        0 => rest.to_vec(),
        _ => {
            let mut file = good.clone();
            for patch in rest.chunks_exact(4) {
                let at = u32::from_le_bytes([patch[0], patch[1], patch[2], 0]) as usize;
                let at = at % file.len();
                file[at] = patch[3];
            }
            file
        }
    };
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", path.display()));
    }
    fs::write(path, file).expect("the file");
    let Ok(store) = Store::open(path.to_str().expect("UTF-8")) else {
        return;
    };
    if let Ok(session) = store.session("talk") {
        let _ = Engine::new().rows(&session, "@t0 .cb").map(|rows| rows.count());
    }
    let _ = store.verify();
});
