//! Any bytes as a log: an error, or sessions, and never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pactql::logs::{ImportOptions, import};

fuzz_target!(|bytes: &[u8]| {
    for lenient in [false, true] {
        let options = ImportOptions {
            lenient,
            ..ImportOptions::default()
        };
        let _ = import(bytes, &options);
    }
});
