//! Any text as a selector: an error with a place in the text, or a selector whose canonical text
//! is its own canonical text.

use pactql::Engine;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let engine = Engine::new();
    if let Ok(report) = engine.check(text) {
        let again = engine
            .check(&report.canonical)
            .expect("canonical text is a selector");
        assert_eq!(again.canonical, report.canonical);
    }
}
