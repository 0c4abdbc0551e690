//! Generates the selector parser from `grammar/selector.lalrpop` into `OUT_DIR`, and names the sources.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=grammar/selector.lalrpop");
    let outcome = lalrpop::Configuration::new()
        .set_in_dir("grammar")
        .set_out_dir(std::env::var("OUT_DIR").unwrap_or_default())
        .process();
    if let Err(error) = outcome {
        eprintln!("grammar/selector.lalrpop: {error}");
        std::process::exit(1);
    }
    // What an import makes of a log is only the same where the sources are.
    println!("cargo:rerun-if-changed=src");
    let mut files = Vec::new();
    let mut hasher = DefaultHasher::new();
    if let Err(error) = list(Path::new("src"), &mut files) {
        eprintln!("src: {error}");
        std::process::exit(1);
    }
    files.sort();
    for file in files {
        let text = std::fs::read(&file).unwrap_or_default();
        (file, text).hash(&mut hasher);
    }
    println!("cargo:rustc-env=PACTQL_SOURCES={:016x}", hasher.finish());
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
