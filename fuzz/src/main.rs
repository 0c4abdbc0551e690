//! Every fuzz target, chosen by `PACTQL_FUZZ_TARGET`. Each takes any bytes, and panics where something does not hold that must.

#![no_main]

mod ctrace;
mod document;
mod gzip;
mod logs;
mod mcp;
mod parquet;
mod patch;
mod redact;
mod selector;
mod share;
mod store;
mod write;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 11] = [
    ("ctrace", ctrace::run),
    ("document", document::run),
    ("gzip", gzip::run),
    ("logs", logs::run),
    ("mcp", mcp::run),
    ("parquet", parquet::run),
    ("redact", redact::run),
    ("selector", selector::run),
    ("share", share::run),
    ("store", store::run),
    ("write", write::run),
];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("PACTQL_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| {
            panic!(
                "PACTQL_FUZZ_TARGET is one of {:?}",
                TARGETS.map(|(name, _)| name)
            )
        })
        .1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));

/// The bytes up to the first line feed as text, and the rest.
fn head(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(bytes.len());
    let rest = bytes.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), rest)
}
