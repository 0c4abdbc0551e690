//! Any text as a selector: an error with a place in the text, or a selector whose canonical text
//! is its own canonical text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pactql::Engine;

fuzz_target!(|text: &str| {
    let engine = Engine::new();
    if let Ok(report) = engine.check(text) {
        let again = engine.check(&report.canonical).expect("canonical text is a selector");
        assert_eq!(again.canonical, report.canonical);
    }
});
