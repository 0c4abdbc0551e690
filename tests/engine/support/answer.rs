//! Answers of every kind as one line of text.
//!
//! A list is its ids, separated by blanks. A diff is its pairs, separated by `; `: the newer
//! snapshot (of a reduced range `newest since oldest`), then `+` ids that only it has, `-` ids
//! that only the older one has, `~` ids that changed, with the changed headers; `=` where nothing
//! did. Requested counts follow in parentheses; the codes of errors come last.

use std::fmt::Write as _;

use pactql::{Answer, Session};

use super::engine::Engine;
use super::json::{self, Json};
use super::selector::{Edition, Mode, Sel, Time};
use super::{eval, range, tree};

/// The answer of a range of a single snapshot, which has no neighbour to compare with.
pub(crate) const NO_PAIR: &str = "no pair";

/// The answer of the engine, or the code of its error.
pub(crate) fn asked(engine: &Engine, session: &Session, text: &str) -> Result<String, String> {
    match engine.0.select(session, text) {
        Ok(selection) => Ok(of(&selection)),
        Err(error) => Err(error.code().to_string()),
    }
}

/// An answer of the engine as a line.
pub(crate) fn of(answer: &Answer) -> String {
    match answer {
        Answer::Range(diff) => line(&json::parse(&serde_json::to_string(diff).unwrap())),
        Answer::Rows(rows) => rows.to_ids().join(" "),
    }
}

/// The answer of the reference interpreter, or the code of its error.
pub(crate) fn walked(
    session: &tree::Session,
    edition: Edition,
    sel: &Sel,
    text: &str,
) -> Result<String, &'static str> {
    match (sel.time, sel.controls.mode) {
        (Time::BackRange(..) | Time::CycleRange(..), Some(Mode::Union | Mode::Latest)) => {
            range::list(session, edition, sel).map(|ids| ids.join(" "))
        }
        (Time::BackRange(..) | Time::CycleRange(..), None | Some(Mode::Reduce)) => {
            range::diff(session, edition, sel, text).map(|diff| line(&json::parse(&diff)))
        }
        _ => eval::ids(session, edition, sel).map(|ids| ids.join(" ")),
    }
}

/// The diffs of a range as a line.
pub(crate) fn line(diff: &Json) -> String {
    let reduced = diff.get("mode").and_then(Json::as_str) == Some("reduce");
    let mut parts: Vec<String> = list(diff, "diffs")
        .iter()
        .map(|pair| block(pair, reduced))
        .collect();
    if parts.is_empty() {
        parts.push(NO_PAIR.to_owned());
    }
    let errors = list(diff, "errors");
    parts.extend(errors.iter().map(|error| member(error, "code").to_owned()));
    parts.join("; ")
}

fn block(pair: &Json, reduced: bool) -> String {
    let label = |end: &str| member(pair.get(end).unwrap(), "label").to_owned();
    let mut shown = if reduced {
        format!("{} since {}:", label("from"), label("to"))
    } else {
        format!("{}:", label("from"))
    };
    let named = shown.len();
    for (sign, name) in [('+', "added_ids"), ('-', "removed_ids")] {
        for id in list(pair, name) {
            let _ = write!(shown, " {sign}{}", id.as_str().unwrap());
        }
    }
    for change in list(pair, "changed") {
        let fields = list(change, "fields").iter().map(|f| f.as_str().unwrap());
        let fields: Vec<&str> = fields.collect();
        let _ = write!(shown, " ~{}({})", member(change, "id"), fields.join(","));
    }
    if shown.len() == named {
        shown.push_str(" =");
    }
    if let Some(stats) = pair.get("stats") {
        let count = |name| stats.get(name).and_then(Json::as_int).unwrap();
        let (added, removed, changed) = (count("added"), count("removed"), count("changed"));
        let _ = write!(shown, " (+{added} -{removed} ~{changed})");
    }
    shown
}

fn list<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    match json.get(name) {
        Some(Json::List(items)) => items,
        _ => &[],
    }
}

fn member<'a>(json: &'a Json, name: &str) -> &'a str {
    json.get(name).and_then(Json::as_str).unwrap()
}

/// The JSON of a range's diffs without the selector text, which differs between spellings.
pub(crate) fn without_query(diff: &str) -> String {
    let Json::Obj(mut members) = json::parse(diff) else {
        panic!("an object")
    };
    members.retain(|(name, _)| name != "query");
    Json::Obj(members).write()
}
