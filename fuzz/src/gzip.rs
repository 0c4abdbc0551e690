//! Packed inputs: any bytes, a session packed once or more often, and a packed one with patches. What is unpacked has the size
//! that the limit allows at most.

use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use pactql::Session;
use pactql::internals::tree::Limits;
use pactql::internals::tree::source::read_all;

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

static GOOD: LazyLock<Vec<u8>> =
    LazyLock::new(|| packed(include_bytes!("../../fixtures/greenhouse.jsonl")));

const MOST: usize = 1 << 20;

pub fn run(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let file = match choice % 8 {
        0 => rest.to_vec(),
        1 => packed(rest),
        2 => packed(&packed(rest)),
        // Many times the same bytes, which are small when packed.
        3 => packed(&rest.repeat(1 + (4 << 20) / rest.len().max(64))),
        4 => [packed(rest), rest.to_vec()].concat(),
        _ => super::patch::patched(&GOOD, rest),
    };
    let limits = Limits {
        max_input: MOST as u64,
    };
    if let Ok(unpacked) = read_all(&file[..], Path::new("input"), limits) {
        assert!(unpacked.len() <= MOST, "{} bytes", unpacked.len());
        let _ = Session::from_slice(&unpacked);
    }
}
