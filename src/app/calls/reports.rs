//! Reports and selections of one session, as the command line prints them with `--json`.

use super::arguments::Arguments;
use super::{CallAnswer, SessionSource};
use crate::app::present::answer::{FittedAnswer, RunPair, TokenBudget, node_json};
use crate::app::present::{Failure, answer, sessions};
use crate::budget::Query;
use crate::engine::{Engine, ExplainOptions, Node};
use crate::history::{ContentMode, ContentOptions, DiffOptions, Material, RangeOptions};
use crate::inspect::{
    By, GrepReport, Part, PrefixReport, Report, ReportOptions, Run, Search, ShowReport, StepReport,
    TokenReport, Tokenizer,
};
use crate::query::ir::Edition;
use crate::render::Provider;
use crate::support::cancel::ensure;
use crate::support::diag::ColorChoice;
use std::str::FromStr;

/// `pact_help`: the language on one page. Its examples are run by the tests.
pub(crate) fn help(_: &impl SessionSource, _: &Arguments) -> Result<CallAnswer, Failure> {
    Ok(include_str!("help.md").trim_end().to_owned().into())
}

/// `pact_select`: what `pactql select --format json` prints, or `nodes`.
pub(crate) fn select(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
    let engine = source.engine(edition(arguments)?)?;
    let selector = arguments.needed("selector");
    if arguments.text("query").is_some() && arguments.count("budget").is_none() {
        return Err(Failure::usage("`query` needs a budget"));
    }
    // An invalid selector is reported before anything is read.
    let prepared = engine.prepare(selector)?;
    let session = source.session(arguments.needed("session"))?;
    let answer = prepared.select_with(&session, &range_options(arguments))?;
    let budget = arguments.count("budget").map(|tokens| TokenBudget {
        query: Query::new(arguments.text("query").unwrap_or_default()),
        tokens,
    });
    let found = FittedAnswer::new(&answer, budget.as_ref())?;
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
    Ok(CallAnswer { result, said })
}

fn range_options(arguments: &Arguments) -> RangeOptions {
    let mode = arguments.text("content_mode").unwrap_or("unified");
    RangeOptions {
        content: arguments
            .flag("include_content")
            .then(|| content(mode, arguments)),
        materialize: arguments
            .words("materialize")
            .filter_map(Material::parse)
            .collect(),
        max_snapshots: arguments.size("max_snapshots"),
        max_changes: arguments.size("max_changes"),
        stats: arguments.flag("stats"),
    }
}

/// `pact_explain`: what `pactql explain --format json` prints.
pub(crate) fn explain(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
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
    source.engine(edition)?.prepare(selector)?;
    let session = session.map(|name| source.session(name)).transpose()?;
    // A new engine, so that an explanation does not depend on earlier calls.
    let engine = Engine::builder().edition(edition).build();
    let explain = engine.explain(session.as_deref(), selector, options)?;
    Ok(explain.to_json().to_string().into())
}

/// `pact_diff`: what `pactql diff --format json` prints.
pub(crate) fn diff(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
    let words = ["a", "b", "other"].map(|name| arguments.text(name));
    let (a, b) = match words {
        [Some(a), Some(b), None] => (sessions::place(a)?, sessions::place(b)?),
        [None, None, Some(other)] => return divergence(source, arguments, other),
        _ => {
            return Err(
                Failure::usage("pact_diff needs `a` and `b`, or `other` alone").with_help(
                    "`a` and `b` are snapshots of the session, `other` is another session",
                ),
            );
        }
    };
    let engine = source.engine(edition(arguments)?)?;
    let selector = arguments.text("selector");
    if let Some(selector) = selector {
        // An invalid selector is reported before anything is read.
        engine.prepare(selector)?;
    }
    let session = source.session(arguments.needed("session"))?;
    let options = DiffOptions {
        moves: arguments.flag("moves"),
        content: arguments
            .text("content")
            .map(|mode| content(mode, arguments)),
    };
    let diff = engine.diff(&session, a, b, selector, &options)?;
    Ok(answer::json(&diff)?.into())
}

/// Where another session parts from the first.
fn divergence(
    source: &impl SessionSource,
    arguments: &Arguments,
    other: &str,
) -> Result<CallAnswer, Failure> {
    if arguments.text("selector").is_some() || arguments.flag("moves") {
        return Err(
            Failure::usage("`selector` and `moves` are about two snapshots")
                .with_help("leave them out, or give `a` and `b`"),
        );
    }
    let open = |name: &str| Run::new(&*source.session(name)?).map_err(Failure::from);
    let name = arguments.needed("session");
    let (first, second) = (open(name)?, open(other)?);
    let mode = arguments.text("content").unwrap_or("unified");
    let divergence = first.divergence(&second, &content(mode, arguments));
    let sessions = [name, other];
    Ok(answer::json(&RunPair {
        sessions,
        divergence,
    })?
    .into())
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
        mode: ContentMode::parse(mode).unwrap_or_default(),
        context_lines: arguments
            .size("context_lines")
            .unwrap_or(defaults.context_lines),
        ..defaults
    }
}

pub(crate) fn edition(arguments: &Arguments) -> Result<Edition, Failure> {
    match arguments.text("edition") {
        Some(name) => Edition::from_str(name).map_err(|error| Failure::value(error.to_string())),
        None => Ok(Edition::default()),
    }
}

/// How many bytes of a text are shown, unless the client says otherwise.
const SHOWN: usize = 2000;

/// The report that a call asks for, as `print` writes it; `default` is the time without `at` and `over`.
fn report<R: Report>(
    source: &impl SessionSource,
    arguments: &Arguments,
    default: &str,
    options: ReportOptions,
    print: impl FnOnce(R) -> Result<String, Failure>,
) -> Result<CallAnswer, Failure> {
    if arguments.text("at").is_some() && arguments.text("over").is_some() {
        return Err(Failure::usage(
            "`at` is one snapshot and `over` is a range: give one of them",
        ));
    }
    let time = arguments.text("at").or_else(|| arguments.text("over"));
    let part = Part::default().at(time.unwrap_or(default));
    let part = match arguments.text("where") {
        Some(selector) => part.only(selector),
        None => part,
    };
    let options = ReportOptions { part, ..options }
        .tokenizer(tokenizer(arguments)?)
        .provider(arguments.text("as").and_then(Provider::parse));
    let session = source.session(arguments.needed("session"))?;
    let report = R::new(&Engine::new(), &session, &options)?;
    Ok(print(report)?.into())
}

fn json<R: Report>(report: R) -> Result<String, Failure> {
    answer::json(&report)
}

fn tokenizer(arguments: &Arguments) -> Result<Option<Tokenizer>, Failure> {
    let Some(name) = arguments.text("tokenizer") else {
        return Ok(None);
    };
    let names: Vec<&str> = Tokenizer::ALL.iter().map(|known| known.name()).collect();
    let found = name.parse();
    found.map(Some).map_err(|_| {
        Failure::value(format!("there is no tokenizer `{name}`"))
            .with_help(format!("one of {}", names.join(", ")))
    })
}

/// `pact_show`: the snapshots, with long texts cut.
pub(crate) fn shown(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
    let options = ReportOptions::default().before_reply(arguments.flag("before_reply"));
    let limit = arguments.size("max_bytes").unwrap_or(SHOWN);
    report(source, arguments, "", options, |mut found: ShowReport| {
        let snapshots = found.snapshots.iter_mut();
        for block in snapshots.flat_map(|shown| &mut shown.blocks) {
            let text = &mut block.text;
            if text.len() > limit {
                let end = text.floor_char_boundary(limit);
                let rest = text.len() - end;
                text.truncate(end);
                text.push_str(&format!("… {rest} more bytes"));
            }
        }
        let lines = found.snapshots.iter().map(answer::json);
        Ok(lines.collect::<Result<Vec<String>, Failure>>()?.join("\n"))
    })
}

/// `pact_steps`: one object for each cycle.
pub(crate) fn stepped(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
    report(
        source,
        arguments,
        "",
        ReportOptions::default(),
        json::<StepReport>,
    )
}

/// `pact_tokens`: the tokens of snapshots in groups.
pub(crate) fn counted(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
    let by = arguments.text("by").unwrap_or("region");
    let by = By::parse(by).ok_or_else(|| Failure::value(format!("there is no group `{by}`")))?;
    let options = ReportOptions::default().by(by);
    report(source, arguments, "", options, json::<TokenReport>)
}

/// `pact_prefix`: what a prompt cache can reuse, with the requests that break it, or all.
pub(crate) fn prefixed(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
    let all = arguments.flag("all");
    report(
        source,
        arguments,
        "",
        ReportOptions::default(),
        |mut found: PrefixReport| {
            found.steps.retain(|step| all || step.difference.is_some());
            json(found)
        },
    )
}

/// `pact_grep`: the lines of texts that a pattern matches, of all snapshots unless one is named.
pub(crate) fn searched(
    source: &impl SessionSource,
    arguments: &Arguments,
) -> Result<CallAnswer, Failure> {
    // An invalid pattern is reported before anything is read.
    let pattern = arguments.needed("pattern");
    let search = Search::new(pattern, arguments.flag("ignore_case"))?;
    let search = search.context(arguments.size("context_lines").unwrap_or(0));
    let options = ReportOptions::default().search(search);
    report(source, arguments, "@history", options, json::<GrepReport>)
}
