//! The rules of the language that are settled before any data is seen, as tables: what a
//! selector normalizes to, and where and how a wrong one is refused. Cases that need a tree
//! stand with the engine's tests.

mod canonical;
mod depth;
mod translation;
mod v01;

use pactql::diag::{ColorChoice, Error};
use pactql::ir::{Edition, Lowered, compile};

/// The canonical text of a valid selector.
#[track_caller]
fn canonical(text: &str, edition: Edition) -> String {
    lowered(text, edition).query.to_string()
}

#[track_caller]
fn lowered(text: &str, edition: Edition) -> Lowered {
    match compile(text, edition) {
        Ok(lowered) => lowered,
        Err(error) => panic!("{edition}: {}", error.render(ColorChoice::Never)),
    }
}

#[track_caller]
fn refused(text: &str, edition: Edition) -> Error {
    match compile(text, edition) {
        Ok(lowered) => panic!("{edition}: `{text}` is accepted as `{}`", lowered.query),
        Err(error) => error,
    }
}

/// Each selector normalizes to the text beside it, without warnings, and that text is canonical.
#[track_caller]
fn normalizes(edition: Edition, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let found = lowered(text, edition);
        assert_eq!(found.query.to_string(), *expected, "{edition}: `{text}`");
        assert_eq!(found.warnings, [], "{edition}: `{text}`");
        let again = lowered(expected, Edition::Canonical);
        assert_eq!(again.query, found.query, "`{expected}` is not canonical");
        assert_eq!(again.query.fingerprint(), found.query.fingerprint());
    }
}

/// All selectors of a row mean the same: one query, one fingerprint.
#[track_caller]
fn equal(edition: Edition, rows: &[&[&str]]) {
    for row in rows {
        let first = lowered(row[0], edition).query;
        for text in &row[1..] {
            let query = lowered(text, edition).query;
            assert_eq!(query, first, "`{}` and `{text}`", row[0]);
            assert_eq!(query.fingerprint(), first.fingerprint());
        }
    }
}

/// Each selector is accepted with a warning about the text beside it, that says so.
#[track_caller]
fn warns(edition: Edition, cases: &[(&str, &str, &str)]) {
    for (text, underlined, says) in cases {
        let warnings = lowered(text, edition).warnings;
        assert_eq!(warnings.len(), 1, "`{text}`: {warnings:?}");
        let span = warnings[0].labels[0].span.clone();
        assert_eq!(&text[span], *underlined, "`{text}`");
        let whole = format!("{} {:?}", warnings[0].message, warnings[0].help);
        assert!(whole.contains(says), "`{text}`: {whole}");
    }
}

/// A selector that is refused, its code, the text under the first label (empty where something is
/// missing), and words of the message or the help.
type Refused<'a> = (&'a str, &'a str, &'a str, &'a str);

#[track_caller]
fn refuses(edition: Edition, cases: &[Refused<'_>]) {
    let mut wrong = Vec::new();
    for (text, code, underlined, says) in cases {
        let error = refused(text, edition);
        let span = error.first().labels[0].span.clone();
        let whole = format!("{} {:?}", error.message(), error.first().help);
        let found = (error.code().as_str(), &text[span]);
        if found != (*code, *underlined) || !whole.contains(says) {
            let shown = error.render(ColorChoice::Never);
            wrong.push(format!(
                "{edition}: `{text}` {code} `{underlined}` {says}\n{shown}"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Each edition has its own tables of what it refuses, of at least 60 different selectors.
#[test]
fn every_edition_refuses_enough() {
    for (edition, tables) in [
        (Edition::V01, v01::REFUSED),
        (Edition::Depth, depth::REFUSED),
        (Edition::Canonical, canonical::REFUSED),
    ] {
        let cases = tables.iter().copied().flatten();
        let mut texts: Vec<&str> = cases.map(|(text, ..)| *text).collect();
        let written = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), written, "{edition}: a selector stands twice");
        assert!(
            texts.len() >= 60,
            "{edition}: only {} selectors",
            texts.len()
        );
    }
}
