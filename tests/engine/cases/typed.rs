//! Selectors as people type them (LANGUAGE §11): what they are answered, and that the answer helps.

use std::cell::RefCell;

use pactql::{ColorChoice, Edition, Engine, Session};

use super::{block, file, ir};
use crate::support::advised::compile;
use crate::support::engine;

/// What follows this in the title of a case is a selector that means what was meant.
const MEANS: &str = "means: ";

fn ids(edition: Edition, session: &Session, text: &str) -> Vec<String> {
    let engine = Engine::builder().edition(edition).build();
    match engine.select(session, text) {
        Ok(pactql::Answer::Rows(rows)) => rows.ids().map(str::to_owned).collect(),
        Ok(pactql::Answer::Range(range)) => vec![serde_json::to_string(&range.diffs).unwrap()],
        Err(error) => panic!("`{text}`: {error}"),
    }
}

/// Each text gives the rendered error of its case: at most two for one slip. A correction is a
/// selector, and gives the rows of the one that the case says was meant.
#[test]
fn what_people_type() {
    let mut count = 0;
    for file in file::files("typed") {
        count += file
            .cases
            .iter()
            .map(|case| case.selectors.len())
            .sum::<usize>();
    }
    assert!(count >= 150, "only {count} texts");
    let wrong = RefCell::new(Vec::new());
    file::check("typed", |file, case, edition, text| {
        let edition = ir(edition);
        let error = match compile(text, edition) {
            Ok(lowered) => {
                if lowered.warnings.is_empty() {
                    wrong
                        .borrow_mut()
                        .push(format!("`{text}` is accepted without a warning"));
                }
                let warnings = lowered.warnings.iter();
                return block(
                    &warnings
                        .map(|one| one.to_text(text, ColorChoice::Never))
                        .collect::<String>(),
                );
            }
            Err(error) => error,
        };
        let shown = error.to_text(ColorChoice::Never);
        let fail = |what: String| wrong.borrow_mut().push(format!("`{text}` {what}\n{shown}"));
        if error.diagnostics().count() > 2 {
            fail("gives more than two errors".to_owned());
        }
        let correction = error.first().correction();
        if let Some(again) = correction.and_then(|text| compile(text, edition).err()) {
            fail(format!("has a correction that is refused: {again}"));
        } else if let Some((_, meant)) = case.title.split_once(MEANS) {
            let session = engine::open(&file.session(case).join("\n"));
            let meant = ids(edition, &session, meant);
            assert!(!meant.is_empty(), "`{}` selects nothing", case.title);
            match correction.map(|text| ids(edition, &session, text)) {
                None => fail("has no correction".to_owned()),
                Some(found) if found != meant => fail(format!("gives {found:?}, not {meant:?}")),
                Some(_) => {}
            }
        }
        block(&shown)
    });
    let wrong = wrong.into_inner();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
