//! Any session or log as a page and as a receipt: the data of a page is JSON without a `<`, and without what was redacted.

use pactql::Session;
use pactql::inspect::share::{Redactor, page, receipt};
use pactql::inspect::{Counts, Prices, Tokenizer};
use pactql::logs::{ImportOptions, import};
use serde_json::Value;

pub fn run(bytes: &[u8]) {
    let sessions = match Session::from_slice(bytes) {
        Ok(session) => vec![session],
        Err(_) => import(bytes, &ImportOptions::default())
            .map(|imported| {
                imported
                    .sessions
                    .iter()
                    .filter_map(|session| session.session().ok())
                    .collect()
            })
            .unwrap_or_default(),
    };
    for session in sessions.iter().take(4) {
        let history = session.history();
        let mut counts = Counts::new(Tokenizer::Bytes4);
        let mut redactor = Redactor::new(["secret[0-9]"]).expect("a pattern");
        let page = page(
            &history,
            "secret1 <title>",
            &mut redactor,
            &mut counts,
            &Prices::default(),
        );
        assert!(!page.data().contains('<'));
        let _: Value = serde_json::from_str(page.data()).expect("JSON");
        assert!(!page.data().contains("secret1"), "{}", page.data());
        let _ = receipt(&history, &mut counts);
    }
}
