//! Rules of the language that need no data and more than a selector and its canonical text. The
//! others are cases in `tests/cases/language`.

use pactql::Edition::{self, Canonical, Depth, V01};
use pactql::internals::ir::Lowered;
use pactql::{ColorChoice, Error};

use crate::support::advised::compile;

/// The canonical text of a valid selector.
#[track_caller]
fn canonical(text: &str, edition: Edition) -> String {
    lowered(text, edition).query.to_string()
}

#[track_caller]
fn lowered(text: &str, edition: Edition) -> Lowered {
    match compile(text, edition) {
        Ok(lowered) => lowered,
        Err(error) => panic!("{edition}: {}", error.to_text(ColorChoice::Never)),
    }
}

#[track_caller]
fn refused(text: &str, edition: Edition) -> Error {
    match compile(text, edition) {
        Ok(lowered) => panic!("{edition}: `{text}` is accepted as `{}`", lowered.query),
        Err(error) => error,
    }
}

/// The selector is refused with `E_LIMIT` at the text given, and the message names the limit.
#[track_caller]
fn limited(edition: Edition, text: &str, underlined: &str, limit: &str) {
    let error = refused(text, edition);
    assert_eq!(error.code().as_str(), "E_LIMIT");
    assert_eq!(&text[error.first().labels[0].span.clone()], underlined);
    assert!(error.message().contains(limit), "{}", error.message());
}

/// LANGUAGE §10: several mistakes at once, the leftmost first.
#[test]
fn several_mistakes() {
    let text = "@t0 ^sek .cb[role=] .mt:depth(3-1) > [x=1.2.3] *:frist";
    let error = refused(text, V01);
    let underlined: Vec<&str> = error
        .diagnostics()
        .map(|diagnostic| &text[diagnostic.labels[0].span.clone()])
        .collect();
    assert_eq!(underlined, ["^sek", "]", "3-1", "1.2.3", ":frist"]);
}

/// LANGUAGE §10, `E_LIMIT`.
#[test]
fn limits() {
    let groups = vec![".cb"; 256].join(",");
    assert_eq!(canonical(&groups, V01), "@t0 .cb");
    let groups = vec![".cb"; 257].join(",");
    limited(V01, &groups, ".cb", "256 groups");

    let steps = vec!["*"; 64].join(" ");
    lowered(&steps, V01);
    let steps = vec!["*"; 65].join(" ");
    limited(V01, &steps, "*", "64 steps");

    let depths: Vec<String> = (1..=1_024).map(|depth| depth.to_string()).collect();
    let fits = format!(".mt:depth({})", depths.join(","));
    assert_eq!(canonical(&fits, V01), "@t0 .mt:depth(1..1024)");
    let over = format!(".mt:depth({},7)", depths.join(","));
    assert_eq!(refused(&over, V01).code().as_str(), "E_LIMIT");

    let fits = format!("#{}", "a".repeat(64 * 1024 - 1));
    lowered(&fits, V01);
    let over = format!("#{}", "a".repeat(64 * 1024));
    assert_eq!(refused(&over, V01).code().as_str(), "E_LIMIT");
}

/// LANGUAGE §10, `E_LIMIT`, in the constructs of the later editions.
#[test]
fn limits_of_the_later_editions() {
    let depths: Vec<String> = (1..=1_025).map(|depth| depth.to_string()).collect();
    let depths = depths.join(",");
    let anchor = format!("depth({depths}) > .cb");
    let set = format!(".cb:depth({{{depths}}})");
    let steps = format!("{}.cb", "^ah > ".repeat(64));
    let groups = format!("{}.mc", ".cb,".repeat(256));
    limited(Depth, &anchor, &anchor[..anchor.len() - 6], "1024");
    limited(Depth, &set, &set[3..], "1024");
    limited(Depth, &steps, ".cb", "64 steps");
    limited(Depth, &groups, ".mc", "256 groups");
}

/// LANGUAGE §10, `E_LIMIT`: the values of a list.
#[test]
fn limits_of_lists() {
    let values = vec!["x"; 1_024].join(",");
    lowered(&format!("[role=[{values}]]"), Canonical);
    let over = format!("[role=[{values},y]]");
    limited(Canonical, &over, &over[6..over.len() - 1], "1024 values");
}

/// LANGUAGE §6: which selectors come in key order.
#[test]
fn pinned_keys() {
    for (text, pinned) in [
        ("[key='K']", Some("'K'")),
        (".mt .cb[key=K][x]", Some("'K'")),
        (".cb[key=K], [key='K']", Some("'K'")),
        (".cb[key=$k]", Some("$k")),
        ("[key=K]:first", Some("'K'")),
        (".cb[key=K], .mt", None),
        (".cb[key=K], .mt[key=L]", None),
        ("[key=K] .cb", None),
        ("[key!=K]", None),
        ("[key=null]", None),
        ("[key]", None),
        ("[key=K] :pre", None),
        ("#K", None),
    ] {
        let query = lowered(text, V01).query;
        let found = query.pinned_key().map(ToString::to_string);
        assert_eq!(found.as_deref(), pinned, "`{text}`");
    }
}

/// LANGUAGE §5: a parameter takes the place of a whole literal.
#[test]
fn parameters() {
    let query = lowered("#$id.cb[a=$x][b<$y]:nth($n), .mt[a=$x]", V01).query;
    assert_eq!(query.params(), ["id", "n", "x", "y"]);
    assert_eq!(lowered(".cb", V01).query.params(), [] as [&str; 0]);
}

/// An omitted time is `@t0` in `v0.1` and the working state in later editions; the rest of such
/// selectors has one canonical text.
#[test]
fn editions_meet_in_one_form() {
    for text in [
        ".cb[role=user]",
        "^sys .cb",
        ".mt:depth(1) > .mc:core",
        "^ah :pre",
    ] {
        let old = canonical(text, V01);
        assert_eq!(old, format!("@t0 {}", canonical(text, Canonical)));
    }
}

/// LANGUAGE §9: the fingerprint is the SHA-256 of the canonical text.
#[test]
fn fingerprint() {
    let query = lowered("@t0 .block", Canonical).query;
    assert_eq!(query.canonical_text(), "@t0 .cb");
    // printf '@t0 .cb' | sha256sum
    assert_eq!(
        query.fingerprint().to_string(),
        "4b29d12ff8277ce31c110af248abbe15850bb269d985d727c1d2d80fc94f68dc"
    );
}
