//! Any bytes as a log: an error, or sessions that are written and read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pactql::interop::{ImportOptions, import};

fuzz_target!(|bytes: &[u8]| {
    for lenient in [false, true] {
        let options = ImportOptions {
            lenient,
            ..ImportOptions::default()
        };
        let _ = import(bytes, &options);
    }
});
