//! Diagnostics as JSON and in colour, and how long and how many they may be. The rendered text of
//! typical mistakes is in `tests/cases/diagnostics`.

use crate::support::advised::compile;
use pactql::{ColorChoice, Edition, Error};

#[track_caller]
fn error(text: &str, edition: Edition) -> Error {
    match compile(text, edition) {
        Ok(lowered) => panic!("`{text}` is accepted as `{}`", lowered.query),
        Err(error) => error,
    }
}

#[track_caller]
fn rendered(text: &str, edition: Edition) -> String {
    error(text, edition).to_text(ColorChoice::Never)
}

#[test]
fn a_limit() {
    let text = vec!["*"; 65].join(" ");
    let error = error(&text, Edition::Canonical);
    assert_eq!(
        error.to_string(),
        "E_LIMIT: a group has at most 64 steps, this one has 65"
    );
    assert_eq!(error.first().labels[0].span, 128..129);
}

/// RUNTIME §7: the members and their order.
#[test]
fn json() {
    let error = error("^sek [x", Edition::Canonical);
    assert_eq!(
        serde_json::to_string(&error).unwrap_or_default(),
        concat!(
            r#"{"error":{"code":"E_SELECTOR_INVALID","message":"unknown root `^sek`","#,
            r#""spans":[{"start":0,"end":4,"label":"no such root"}],"help":"write `^seq [x]`","#,
            r#""correction":"^seq [x]","more":[{"code":"E_SELECTOR_INVALID","#,
            r#""message":"the closing `]` is missing","spans":[{"start":7,"end":7,"#,
            r#""label":"it belongs here"},{"start":5,"end":6,"label":"opened here"}]}]}}"#,
        )
    );
    assert_eq!(error.to_json()["error"]["spans"][0]["end"], 4);
}

#[test]
fn colour_is_a_choice() {
    let error = error("^sek", Edition::V01);
    assert!(error.to_text(ColorChoice::Always).contains("\u{1b}["));
    assert!(!error.to_text(ColorChoice::Never).contains("\u{1b}["));
    assert_eq!(error.to_string(), "E_SELECTOR_INVALID: unknown root `^sek`");
}

/// Diagnostics are short even if the selector is long.
#[test]
fn diagnostics_stay_short() {
    for text in [
        format!("[a={}.b]", "x".repeat(60_000)),
        format!("[{}=1][ttl=x]", "1".repeat(60_000)),
        format!("*:{}", "x".repeat(60_000)),
        format!(".cb @{}", "x".repeat(60_000)),
        format!(".mt({})", "a,".repeat(30_000)),
    ] {
        for edition in Edition::ALL {
            let shown = error(&text, edition).to_text(ColorChoice::Never);
            assert!(shown.len() < 10_000, "{}", shown.len());
        }
    }
}

/// At most 64 mistakes are reported; patterns are compiled up to a limit.
#[test]
fn the_number_of_reported_mistakes_is_bounded() {
    let many = |piece: &str, count: usize| piece.repeat(count);
    for (text, edition, code, count) in [
        (
            format!("@t0 .cb {}", many("+a", 10_000)),
            Edition::V01,
            "E_EDITION",
            64,
        ),
        (
            format!("@t0 .cb {}", many("@limit=1 ", 7_000)),
            Edition::Canonical,
            "E_SELECTOR_INVALID",
            64,
        ),
        (
            format!("@t0 .cb{}", many("[ttl=x]", 5_000)),
            Edition::V01,
            "E_SELECTOR_INVALID",
            64,
        ),
        (
            format!("@t0 .cb{}", many(r"[content~'\w{100}']", 3_000)),
            Edition::Canonical,
            "E_LIMIT",
            1,
        ),
        (
            format!("@t0 .cb{}", many(r"[content~'\w{999}']", 3_000)),
            Edition::Canonical,
            "E_LIMIT",
            4,
        ),
        (
            format!("@t0 .cb{} ]", many(r" [content~'\w{100}']", 3_000)),
            Edition::Canonical,
            "E_LIMIT",
            64,
        ),
    ] {
        let error = error(&text, edition);
        assert_eq!(error.code().as_str(), code, "{}", &text[..30]);
        let told = error.diagnostics().count();
        assert!((1..=count).contains(&told), "{}: {told}", &text[..30]);
    }
}

/// LANGUAGE §10: the help names a value that is accepted.
#[test]
fn a_number_that_is_too_large() {
    for (text, help) in [
        (
            "[ttl=99999999999999999999]",
            "the nearest is `9223372036854775807`",
        ),
        (
            "[offset>-99999999999999999999]",
            "the nearest is `-9223372036854775808`",
        ),
        (
            ".cb @limit=99999999999999999999",
            "the nearest is `9223372036854775807`",
        ),
        (
            "[n=99999999999999999999]",
            "quote it to compare it as a text: `'99999999999999999999'`",
        ),
    ] {
        let error = error(text, Edition::Canonical);
        assert_eq!(error.first().help.as_deref(), Some(help), "{text}");
    }
}

/// Of a long text only a part is shown, with the place where it begins.
#[test]
fn places_in_long_texts() {
    let text = format!("@t0 {}.cb[x==1]", "[a='ä'] ".repeat(2_000));
    let shown = rendered(&text, Edition::Canonical);
    assert!(
        shown.contains("selector, from character 15956 on:1:55"),
        "{shown}"
    );
}
