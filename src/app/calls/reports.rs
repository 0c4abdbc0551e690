//! Reports and selections of one session, as the command line prints them with `--json`.

use super::arguments::Arguments;
use super::{CallAnswer, SessionSource};
use crate::app::present::answer::{FittedAnswer, RunPair, SnapshotChanges, TokenBudget, node_json};
use crate::app::present::{Failure, Result, answer, sessions};
use crate::budget::Query;
use crate::engine::{EmptyAnswer, Engine, ExplainOptions, Node};
use crate::history::{ContentMode, ContentOptions, DiffOptions, Material, RangeOptions};
use crate::inspect::{
    By, Call, GrepReport, Part, PrefixReport, PrefixStep, Report, ReportOptions, Run, Search,
    ShowReport, StepReport, TokenReport, Tokenizer,
};
use crate::query::ir::Edition;
use crate::render::Provider;
use crate::support::cancel::ensure;
use crate::support::diag::ColorChoice;
use std::str::FromStr;
use {
    crate::app::present::answer::snapshot_label,
    crate::engine::sent,
    crate::inspect::share::{Redactor, page},
    crate::inspect::{Counts, Fields, Prices, Usage, UsageBy, came_in_as},
    crate::render::{Source, request as request_of},
    serde_json::Value,
};

/// `pact_help`: the language on one page. Its examples are run by the tests.
pub(crate) fn help(_: &impl SessionSource, _: &Arguments) -> Result<CallAnswer> {
    Ok(include_str!("help.md").trim_end().to_owned().into())
}

/// `pact_select`: what `pactql select --format json` prints, or `nodes`.
pub(crate) fn select(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let engine = source.engine(edition(arguments)?)?;
    let selector = arguments.needed("selector");
    if arguments.text("query").is_some() && arguments.count("budget").is_none() {
        return Err(Failure::usage("`query` needs a budget"));
    }
    let (count, as_nodes) = (arguments.flag("count"), arguments.asks_for_nodes());
    if count && as_nodes {
        return Err(
            Failure::usage("`count` answers with a number, and not with nodes")
                .with_help("give one of them"),
        );
    }
    // An invalid selector is reported before anything is read.
    let mut prepared = engine.prepare(selector)?;
    if let Some(at) = arguments.text("at") {
        engine.prepare_timeless(selector)?;
        // Another word is refused with a place in it.
        let time = sessions::time(at).unwrap_or_else(|| at.to_owned());
        if !time.is_empty() {
            prepared = engine.prepare(&format!("{time} {selector}"))?;
        }
    }
    let session = source.session(arguments.needed("session"))?;
    let options = range_options(arguments);
    let answer = prepared.select_with(&session, &options)?;
    let budget = arguments.count("budget").map(|tokens| TokenBudget {
        query: Query::new(arguments.text("query").unwrap_or_default()),
        tokens,
    });
    let found = FittedAnswer::new(&answer, budget.as_ref())?.with_options(&options);
    let result = if as_nodes {
        let nodes = found.nodes().ok_or_else(|| {
            Failure::value("a range has differences, not nodes")
                .with_help("`format` json answers with them")
        })?;
        lines(nodes)
    } else {
        found.json(count)?
    };
    let said = found.remarks(
        &prepared,
        Some(&session),
        None,
        !as_nodes,
        ColorChoice::Never,
    );
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
pub(crate) fn explain(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
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
pub(crate) fn diff(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let words = ["a", "b", "other"].map(|name| arguments.text(name));
    let (a, b) = match words {
        [Some(a), Some(b), None] => (sessions::place(a)?, sessions::place(b)?),
        [None, None, Some(other)] => return divergence(source, arguments, other),
        _ => {
            return Err(
                Failure::usage("a difference needs `a` and `b`, or `other` alone").with_help(
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
    let is_reconstructed = Call::from_snapshot(&diff.newer.0).reconstructed;
    let nothing = EmptyAnswer::of_diff(engine, &session, selector, &diff);
    Ok(CallAnswer {
        result: answer::json(&SnapshotChanges::from(diff))?,
        said: answer::report_notes(is_reconstructed, nothing.as_ref()),
    })
}

/// Where another session parts from the first.
fn divergence(
    source: &impl SessionSource,
    arguments: &Arguments,
    other: &str,
) -> Result<CallAnswer> {
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

pub(crate) fn edition(arguments: &Arguments) -> Result<Edition> {
    match arguments.text("edition") {
        Some(name) => Edition::from_str(name).map_err(|error| Failure::value(error.to_string())),
        None => Ok(Edition::default()),
    }
}

/// Cuts a text that is longer, and says how many bytes went.
fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = text.floor_char_boundary(limit);
        let rest = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("… {rest} more bytes"));
    }
}

/// How many bytes of a text are shown, unless the client says otherwise.
const SHOWN: usize = 2000;

/// The report that a call asks for, as `print` writes it; the part of `options` is that without `at` and `over`.
fn report<R: Report>(
    source: &impl SessionSource,
    arguments: &Arguments,
    options: ReportOptions,
    print: impl FnOnce(R) -> Result<String>,
) -> Result<CallAnswer> {
    if arguments.text("at").is_some() && arguments.text("over").is_some() {
        return Err(Failure::usage(
            "`at` is one snapshot and `over` is a range: give one of them",
        ));
    }
    let time = arguments.text("at").or_else(|| arguments.text("over"));
    // Another word is refused with a place in it.
    let time = time.map(|time| sessions::time(time).unwrap_or_else(|| time.to_owned()));
    let part = time.map_or(options.part.clone(), |time| Part::default().at(time));
    let part = match arguments.text("where") {
        Some(selector) => part.only(selector),
        None => part,
    };
    let options = ReportOptions { part, ..options }
        .tokenizer(tokenizer(arguments)?)
        .provider(arguments.text("as").and_then(Provider::parse));
    let session = source.session(arguments.needed("session"))?;
    let engine = Engine::new();
    let report = R::new(&engine, &session, &options)?;
    let nothing = R::part(&options).nothing(&engine, &session);
    let nothing = nothing.ok().flatten();
    let said = answer::report_notes(report.is_reconstructed(), nothing.as_ref());
    let result = print(report)?;
    Ok(CallAnswer { result, said })
}

fn json<R: Report>(report: R) -> Result<String> {
    answer::json(&report)
}

fn tokenizer(arguments: &Arguments) -> Result<Option<Tokenizer>> {
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
pub(crate) fn shown(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let options = ReportOptions::default().before_reply(arguments.flag("before_reply"));
    let limit = arguments.size("max_bytes").unwrap_or(SHOWN);
    report(source, arguments, options, |mut found: ShowReport| {
        let snapshots = found.snapshots.iter_mut();
        for block in snapshots.flat_map(|shown| &mut shown.blocks) {
            cut(&mut block.text, limit);
        }
        let lines = found.snapshots.iter().map(answer::json);
        Ok(lines.collect::<Result<Vec<String>>>()?.join("\n"))
    })
}

/// `pact_steps`: one object for each cycle.
pub(crate) fn stepped(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    report(
        source,
        arguments,
        ReportOptions::default(),
        json::<StepReport>,
    )
}

/// `pact_tokens`: the tokens of snapshots in groups.
pub(crate) fn counted(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let by = arguments.text("by").unwrap_or("region");
    let by = By::parse(by).ok_or_else(|| Failure::value(format!("there is no group `{by}`")))?;
    let options = ReportOptions::default().by(by);
    report(source, arguments, options, json::<TokenReport>)
}

/// `pact_prefix`: what a prompt cache can reuse, with the requests that break it or of which the provider read less than it could
/// have, or all.
pub(crate) fn prefixed(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let all = arguments.flag("all");
    report(
        source,
        arguments,
        ReportOptions::default(),
        |mut found: PrefixReport| {
            let is_shown = |step: &PrefixStep| step.difference.is_some() || step.missed.is_some();
            found.steps.retain(|step| all || is_shown(step));
            json(found)
        },
    )
}

/// `pact_grep`: the lines of texts that a pattern matches, of all snapshots unless one is named.
pub(crate) fn searched(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    // An invalid pattern is reported before anything is read.
    let pattern = arguments.needed("pattern");
    let search = Search::new(pattern, arguments.flag("ignore_case"))?;
    let search = search.context(arguments.size("context_lines").unwrap_or(0));
    let options = ReportOptions::new(Part::all()).search(search);
    report(source, arguments, options, json::<GrepReport>)
}

/// The request of a snapshot as it was sent, as `pactql render --request` prints it.
pub(crate) fn request(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let session = source.session(arguments.needed("session"))?;
    let snapshot = sessions::at(&session, arguments.text("at"))?;
    let history = session.history();
    history.fetch_attempts()?;
    let thread = sent(&history, &snapshot);
    let provider = arguments.text("to").and_then(Provider::parse);
    let provider = provider.or_else(|| came_in_as(&snapshot));
    let text = request_of(Source::from(&thread), provider.unwrap_or_default())?;
    Ok(text.trim_end().to_owned().into())
}

/// What the provider counted of the session, and its price.
pub(crate) fn used(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let by = arguments.text("by").unwrap_or("day");
    let by =
        UsageBy::parse(by).ok_or_else(|| Failure::value(format!("there is no group `{by}`")))?;
    let name = arguments.needed("session");
    let mut usage = Usage::new(by, Prices::default());
    for (name, session) in source.sessions(name)? {
        usage.add(&name, &session)?;
    }
    Ok(answer::json(&usage)?.into())
}

/// What a selector can ask for in the session.
pub(crate) fn fields(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let mut fields = Fields::default();
    fields.add(&*source.session(arguments.needed("session"))?)?;
    Ok(answer::json(&fields.report())?.into())
}

/// The session as the page reads it.
pub(crate) fn paged(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let name = arguments.needed("session");
    let session = source.session(name)?;
    let history = session.history();
    history.fetch_all()?;
    let title = session.name().unwrap_or(name);
    let mut counts = Counts::new(Tokenizer::fitting(history.committed().iter(), None));
    let mut nothing =
        Redactor::new([""; 0]).map_err(|error| Failure::internal(error.to_string()))?;
    let page = page(
        &history,
        title,
        &mut nothing,
        &mut counts,
        &Prices::default(),
    );
    Ok(page.data().to_owned().into())
}

/// Whether the value of a member of a node is never cut: the next request may have it (an id, a label, a name), or it is a time.
fn is_whole(name: &str) -> bool {
    let names = "id parent_id snapshot created_at_iso nodeType role kind key content_hash \
                 data_call_id data_call_name data_child_session";
    names.split(' ').any(|whole| whole == name)
}

/// The nodes of one snapshot in document order, one JSON object a line; with `max_bytes`, long texts cut.
pub(crate) fn tree(source: &impl SessionSource, arguments: &Arguments) -> Result<CallAnswer> {
    let session = source.session(arguments.needed("session"))?;
    let snapshot = sessions::at(&session, arguments.text("at"))?;
    let time = snapshot_label(&snapshot);
    let engine = source.engine(Edition::default())?;
    let rows = match &*time {
        "working" => engine.rows(&session, "*")?,
        time => engine.rows(&session, &format!("{time} *"))?,
    };
    let lines = lines(rows.nodes());
    let Some(limit) = arguments.size("max_bytes") else {
        return Ok(lines.into());
    };
    let cut = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(mut node) if line.len() > limit => {
            let texts = node.as_object_mut().into_iter().flatten();
            for (name, value) in texts {
                if let Value::String(text) = value
                    && !is_whole(name)
                {
                    cut(text, limit);
                }
            }
            node.to_string()
        }
        _ => line.to_owned(),
    };
    let lines: Vec<String> = lines.lines().map(cut).collect();
    Ok(lines.join("\n").into())
}
