//! Reports cost what a session has, not its square: work is counted as looks at the token of a cancellable call, of which there
//! is one at least for each node, unit and message that is touched.

use super::imported;
use pactql::inspect::share::{Redactor, page, receipt};
use pactql::inspect::{
    Counts, PrefixReport, Prices, Report, ReportOptions, Run, StepReport, Tokenizer,
};
use pactql::{Cancel, Engine, Session};
use serde_json::json;

/// A chat of so many replies of one letter.
fn chat(replies: usize) -> Session {
    let messages = (0..replies).flat_map(|_| ["user", "assistant"]);
    let messages: Vec<_> = messages
        .map(|role| json!({"role": role, "content": "a"}))
        .collect();
    imported(json!(messages).to_string().as_bytes())
}

fn looks(work: impl FnOnce()) -> u64 {
    let cancel = Cancel::at_check(0);
    cancel.run(work).expect("nothing is cancelled");
    cancel.checks().0
}

#[test]
fn reports_are_linear_in_messages() {
    let replies = crate::support::random::share(40_000).clamp(200, 10_000) as usize;
    let (small, large) = (chat(replies), chat(2 * replies));
    let options = ReportOptions::default().tokenizer(Some(Tokenizer::Bytes4));
    type Work<'a> = (&'a str, &'a dyn Fn(&Session));
    let reports: [Work<'_>; 5] = [
        ("steps", &|session| {
            drop(StepReport::new(&Engine::new(), session, &options).expect("a report"))
        }),
        ("prefix", &|session| {
            drop(PrefixReport::new(&Engine::new(), session, &options).expect("a report"))
        }),
        ("receipt", &|session| {
            drop(receipt(
                &session.history(),
                &mut Counts::new(Tokenizer::Bytes4),
            ))
        }),
        ("page", &|session| {
            let mut counts = Counts::new(Tokenizer::Bytes4);
            drop(page(
                &session.history(),
                "title",
                &mut Redactor::default(),
                &mut counts,
                &Prices::default(),
            ));
        }),
        ("run", &|session| drop(Run::new(session).expect("a run"))),
    ];
    for (name, report) in reports {
        let [once, twice] = [&small, &large].map(|session| looks(|| report(session)));
        assert!(once >= replies as u64 / 2, "{name}: {once} looks");
        // Pieces of snapshots, of which there are log n, are a part of it.
        assert!(twice * 10 < once * 26, "{name}: {once}, then {twice} looks");
    }
}
