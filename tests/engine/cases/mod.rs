//! Golden cases, read from `tests/cases` when the tests run: a new case compiles nothing.
//!
//! [`file`] says how a case is written and how results are blessed. There is one test for each
//! directory of cases.

mod damaged;
mod file;
mod typed;

use std::fmt::Write as _;

use pactql::internals::ir::{self, Edition as IrEdition};
use pactql::{
    ColorChoice, Engine as Inner, Error,
    error::{Label, Warning},
    explain::ExplainOptions,
};

use crate::support::advised::compile;
use crate::support::engine::{self, Engine};
use crate::support::selector::Edition;
use crate::support::tree::Session as Reference;
use crate::support::{answer, parse};

use file::quoted;

fn ir(edition: Edition) -> IrEdition {
    match edition {
        Edition::V01 => IrEdition::V01,
        Edition::Depth => IrEdition::Depth,
        Edition::Canonical => IrEdition::Canonical,
    }
}

/// The parts of a diagnostic that a case pins: code, message, the first label with the
/// text under it, help.
fn pinned(kind: &str, text: &str, message: &str, labels: &[Label], help: Option<&str>) -> String {
    let mut pinned = format!("{kind}: {message}");
    if let Some(label) = labels.first() {
        let _ = write!(pinned, "\nat {}", quoted(&text[label.span.clone()]));
        let _ = write!(pinned, "\nlabel {}", quoted(&label.message));
    }
    if let Some(help) = help {
        let _ = write!(pinned, "\nhelp {}", quoted(help));
    }
    pinned
}

fn pinned_error(error: &Error) -> String {
    let first = error.first();
    let (kind, help) = (format!("error {}", error.code()), first.help.as_deref());
    pinned(&kind, error.text(), &first.message, &first.labels, help)
}

fn pinned_warning(text: &str, warning: &Warning) -> String {
    let help = warning.help.as_deref();
    pinned("warning", text, &warning.message, &warning.labels, help)
}

/// What selectors give over a session: the ids or the diffs (`support::answer`), or the code of
/// the error and the text it points at. The reference interpreter must give the same, save the
/// errors that are found before there is a session.
#[test]
fn answers() {
    let engines = [Edition::V01, Edition::Depth, Edition::Canonical].map(Engine::new);
    file::check("answers", |file, case, edition, text| {
        let lines = file.session(case);
        let session = engine::open(&lines.join("\n"));
        let asked = answer::asked(&engines[edition as usize], &session, text);
        let code = asked.as_deref().err();
        if code.is_none_or(|code| code == "E_SNAPSHOT_NOT_FOUND") {
            let (reference, sel) = (Reference::from_lines(&lines), parse::parse(text, edition));
            let walked = answer::walked(&reference, edition, &sel, text);
            assert_eq!(walked.map_err(str::to_owned), asked, "walked: {text}");
        }
        match (asked, compile(text, ir(edition))) {
            (Ok(answer), _) => format!("= {answer}").trim_end().to_owned(),
            (Err(code), Ok(_)) => format!("error {code}"),
            (Err(code), Err(error)) => {
                let span = error.first().labels[0].span.clone();
                format!("error {code}\nat {}", quoted(&text[span]))
            }
        }
    });
}

/// What selectors normalize to and which warnings they get, or how they are refused.
#[test]
fn language() {
    file::check("language", |_, _, edition, text| {
        let lowered = match compile(text, ir(edition)) {
            Ok(lowered) => lowered,
            Err(error) => return pinned_error(&error),
        };
        let canonical = lowered.query.to_string();
        let again = compile(&canonical, IrEdition::Canonical).unwrap();
        assert_eq!(again.query, lowered.query, "`{canonical}` is not canonical");
        assert_eq!(again.query.fingerprint(), lowered.query.fingerprint());
        let mut shown = format!("= {canonical}");
        for warning in &lowered.warnings {
            let _ = write!(shown, "\n{}", pinned_warning(text, warning));
        }
        shown
    });
}

/// Where mutations act in the working state: the parents of a place and where among their children;
/// with the setting `purpose: target`, the nodes of a selector.
#[test]
fn places() {
    file::check("places", |file, case, edition, text| {
        let engine = Inner::builder().edition(ir(edition)).build();
        let session = engine::open(&file.session(case).join("\n"));
        let history = session.history();
        let working = history.working().expect("a working state");
        let (shown, warnings) = match case.setting("purpose") {
            Some(_) => match engine.targets(working, text) {
                Err(error) => return pinned_error(&error),
                Ok(targets) => {
                    let ids: Vec<&str> = targets.nodes.iter().map(|node| node.id()).collect();
                    (ids.join(" "), targets.warnings().to_vec())
                }
            },
            None => match engine.spot(working, text) {
                Err(error) => return pinned_error(&error),
                Ok(spot) => {
                    let parents = spot.parents.iter().map(|parent| {
                        if parent.core {
                            format!("core of {}", parent.node.id())
                        } else {
                            parent.node.id().to_owned()
                        }
                    });
                    let parents: Vec<String> = parents.collect();
                    let shown = format!("{}: {:?}", parents.join(", "), spot.insertion);
                    (shown, spot.warnings().to_vec())
                }
            },
        };
        let mut shown = format!("= {shown}").trim_end().to_owned();
        for warning in &warnings {
            let _ = write!(shown, "\n{}", pinned_warning(text, warning));
        }
        shown
    });
}

/// The members that the short form of a node gives, or how it is refused.
#[test]
fn nodes() {
    file::check("nodes", |_, _, edition, text| {
        let members = match ir::short_node(text, ir(edition)) {
            Ok(members) => members,
            Err(error) => return pinned_error(&error),
        };
        let members = members.iter().map(|member| {
            assert!(serde_json::from_str::<serde_json::Value>(&member.json).is_ok());
            format!("{}={}", member.name, member.json)
        });
        format!("= {}", members.collect::<Vec<_>>().join(" "))
    });
}

/// Each edition refuses at least 60 different selectors.
#[test]
fn every_edition_refuses_enough() {
    for edition in [Edition::V01, Edition::Depth, Edition::Canonical] {
        let files = file::files("language");
        let cases = files.iter().flat_map(|file| &file.cases);
        let cases = cases.filter(|case| case.editions() == [edition]);
        let mut texts: Vec<&str> = cases
            .flat_map(|case| &case.selectors)
            .map(String::as_str)
            .filter(|text| compile(text, ir(edition)).is_err())
            .collect();
        let written = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(
            texts.len(),
            written,
            "{edition:?}: a selector is there twice"
        );
        assert!(texts.len() >= 60, "{edition:?}: only {}", texts.len());
    }
}

/// Diagnostics as a reader sees them.
#[test]
fn diagnostics() {
    file::check("diagnostics", |_, _, edition, text| {
        let shown = match compile(text, ir(edition)) {
            Ok(lowered) => lowered
                .warnings
                .iter()
                .map(|warning| warning.to_text(text, ColorChoice::Never))
                .collect(),
            Err(error) => error.to_text(ColorChoice::Never),
        };
        block(&shown)
    });
}

/// `explain` without a session, up to the plan.
#[test]
fn explained() {
    file::check("explain", |_, _, edition, text| {
        let engine = Inner::builder().edition(ir(edition)).build();
        let explain = engine.explain(None, text, ExplainOptions::default());
        let shown = explain.unwrap().to_string();
        block(shown.split_once("\nplan\n").unwrap().0)
    });
}

/// Text of several lines as a result.
fn block(text: &str) -> String {
    let lines = text.trim_end().lines();
    let lines: Vec<String> = lines
        .map(|line| format!("| {line}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}
