//! A copy as Parquet files, one of them damaged: an error, or a store that can be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pactql::store::ParquetExport;
use pactql::{Session, Store};

/// The files of a good copy with their bytes, manifests among them.
static GOOD: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(|| {
    let place = super::patch::place();
    let store = Store::open(place.join("copied.db")).expect("a store");
    let session =
        Session::from_slice(include_bytes!("../../fixtures/greenhouse.jsonl")).expect("a session");
    store.import("talk", &session, None).expect("an import");
    let copy = copy();
    store
        .export_parquet(&copy, &ParquetExport::default().buckets(1))
        .expect("a copy");
    let mut found = Vec::new();
    below(&copy, &mut found);
    found.sort();
    found
});

fn copy() -> PathBuf {
    super::patch::place().join("copy")
}

fn below(directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            below(&path, found)
        } else {
            found.push((path.clone(), fs::read(&path).expect("a file")))
        }
    }
}

pub fn run(bytes: &[u8]) {
    let [which, how, rest @ ..] = bytes else {
        return;
    };
    let good = &*GOOD;
    let (path, original) = &good[usize::from(*which) % good.len()];
    let file = match how % 4 {
        0 => rest.to_vec(),
        // The end of a Parquet file says where everything is.
        1 if original.len() > 512 => {
            let start = original.len() - 512;
            [
                original[..start].to_vec(),
                super::patch::patched(&original[start..], rest),
            ]
            .concat()
        }
        _ => super::patch::patched(original, rest),
    };
    fs::write(path, file).expect("a file");
    let target = super::patch::place().join("imported.db");
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", target.display()));
    }
    let store = Store::open(&target).expect("a store");
    if store.import_parquet(copy()).is_ok() {
        super::store::ask(&store);
    }
    drop(store);
    fs::write(path, original).expect("a file");
}
