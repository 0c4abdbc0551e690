//! The tools over sessions.

use super::arguments::Arguments;
use super::state::{Answer, ServerState};
use crate::app::present::answer::{Budget, Found, node_json};
use crate::app::present::stores::{Address, Which, none_of, session_json};
use crate::app::present::{Failure, answer, clean, sessions};
use crate::budget::Query;
use crate::engine::{Engine, ExplainOptions, Node};
use crate::history::{ContentMode, ContentOptions, DiffOptions, Material, RangeOptions};
use crate::query::ir::Edition;
use crate::support::cancel::ensure;
use crate::support::diag::ColorChoice;
use std::str::FromStr;
use std::sync::Arc;

/// `pact_help`: the language on one page. Its examples are run by the tests.
pub(super) fn help(_: &ServerState, _: &Arguments) -> Result<Answer, Failure> {
    Ok(include_str!("help.md").trim_end().to_owned().into())
}

/// `pact_select`: what `pactql select --format json` prints, or `nodes`.
pub(super) fn select(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let engine = state.engine(edition(arguments)?)?;
    let selector = arguments.needed("selector");
    if arguments.text("query").is_some() && arguments.count("budget").is_none() {
        return Err(Failure::usage("`query` needs a budget"));
    }
    // An invalid selector is reported before anything is read.
    let prepared = engine.prepare(selector)?;
    let session = state.kept.open(&state.root, arguments.needed("session"))?;
    let answer = prepared.select_with(&session, &range_options(arguments))?;
    let budget = arguments.count("budget").map(|tokens| Budget {
        query: Query::new(arguments.text("query").unwrap_or_default()),
        tokens,
    });
    let found = Found::new(&answer, budget.as_ref())?;
    let count = arguments.flag("count");
    let as_nodes = arguments.text("format") == Some("nodes");
    let result = if as_nodes && !count {
        let nodes = found.nodes().ok_or_else(|| {
            Failure::value("a range has differences, not nodes")
                .with_help("`format` json answers with them")
        })?;
        lines(nodes)
    } else {
        found.json(count)?
    };
    let said = found.remarks(&prepared, Some(&session), !as_nodes, ColorChoice::Never);
    Ok(Answer { result, said })
}

fn range_options(arguments: &Arguments) -> RangeOptions {
    let mode = arguments.text("content_mode").unwrap_or("unified");
    RangeOptions {
        content: arguments
            .flag("include_content")
            .then(|| content(mode, arguments)),
        materialize: arguments
            .words("materialize")
            .filter_map(Material::named)
            .collect(),
        max_snapshots: arguments.size("max_snapshots"),
        max_changes: arguments.size("max_changes"),
        stats: arguments.flag("stats"),
    }
}

/// `pact_explain`: what `pactql explain --format json` prints.
pub(super) fn explain(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let options = ExplainOptions {
        analyze: arguments.flag("analyze"),
        verbose: arguments.flag("verbose"),
    };
    let session = arguments.text("session");
    if options.analyze && session.is_none() {
        return Err(Failure::usage("`analyze` needs a session"));
    }
    let edition = edition(arguments)?;
    let selector = arguments.needed("selector");
    // An invalid selector is reported before anything is read.
    state.engine(edition)?.prepare(selector)?;
    let session = session
        .map(|name| state.kept.open(&state.root, name))
        .transpose()?;
    // A new engine, so that an explanation does not depend on earlier calls.
    let engine = Engine::builder().edition(edition).build();
    let explain = engine.explain(session.as_deref(), selector, options)?;
    Ok(explain.to_json().to_string().into())
}

/// `pact_diff`: what `pactql diff --format json` prints.
pub(super) fn diff(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let a = sessions::place(arguments.needed("a"))?;
    let b = sessions::place(arguments.needed("b"))?;
    let engine = state.engine(edition(arguments)?)?;
    let selector = arguments.text("selector");
    if let Some(selector) = selector {
        // An invalid selector is reported before anything is read.
        engine.prepare(selector)?;
    }
    let session = state.kept.open(&state.root, arguments.needed("session"))?;
    let options = DiffOptions {
        moves: arguments.flag("moves"),
        content: arguments
            .text("content")
            .map(|mode| content(mode, arguments)),
    };
    let diff = engine.diff(&session, a, b, selector, &options)?;
    Ok(answer::json(&diff)?.into())
}

/// `pact_sessions`: what `pactql sessions --json` prints.
pub(super) fn list(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let word = arguments.needed("store");
    let address = Address::spelled(word).ok_or_else(|| {
        let message = format!("expected a store, found `{}`", clean(word, 200));
        Failure::value(message).with_help("a store is a file whose name ends in .db")
    })?;
    let store = state.kept.stores().open(&state.root, address.store)?;
    if address.which == Which::One("") {
        address.one_in(|| Ok(Arc::clone(&store)))?;
    }
    let found = store.sessions(address.glob())?;
    let lines: Vec<String> = found
        .iter()
        .map(|info| session_json(info).to_string())
        .collect();
    Ok(Answer {
        result: lines.join("\n"),
        said: if found.is_empty() {
            format!("note: {}\n", none_of(address))
        } else {
            String::new()
        },
    })
}

/// Nodes, one JSON object a line, without the last line feed.
fn lines<'a>(nodes: impl Iterator<Item = Node<'a>>) -> String {
    let mut lines = String::new();
    for node in nodes.inspect(|_| ensure()) {
        node_json(node, &[], &mut lines);
    }
    lines.truncate(lines.trim_end().len());
    lines
}

fn content(mode: &str, arguments: &Arguments) -> ContentOptions {
    let defaults = ContentOptions::default();
    ContentOptions {
        mode: ContentMode::named(mode).unwrap_or_default(),
        context_lines: arguments
            .size("context_lines")
            .unwrap_or(defaults.context_lines),
        ..defaults
    }
}

pub(super) fn edition(arguments: &Arguments) -> Result<Edition, Failure> {
    match arguments.text("edition") {
        Some(name) => Edition::from_str(name).map_err(|error| Failure::value(error.to_string())),
        None => Ok(Edition::default()),
    }
}
