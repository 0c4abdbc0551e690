//! The tools that inspect sessions: what the commands of the same names print as JSON.

use super::arguments::Arguments;
use super::state::{Answer, ServerState};
use crate::app::present::{Failure, answer};
use crate::engine::Engine;
use crate::inspect::{
    By, GrepReport, Part, PrefixReport, Report, ReportOptions, Search, ShowReport, StepReport,
    TokenReport, Tokenizer,
};
use crate::render::Provider;

/// How many bytes of a text are shown, unless the client says otherwise.
const SHOWN: usize = 2000;

/// The report that a call asks for; `default` is the time without `at` and `over`.
fn report<R: Report>(
    state: &ServerState,
    arguments: &Arguments,
    default: &str,
    options: ReportOptions,
) -> Result<R, Failure> {
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
        .provider(provider(arguments));
    let session = state.kept.open(&state.root, arguments.needed("session"))?;
    let report = R::of(&Engine::new(), &session, &options)?;
    Ok(report)
}

fn json(report: &impl Report) -> Result<Answer, Failure> {
    Ok(answer::json(report)?.into())
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

fn provider(arguments: &Arguments) -> Option<Provider> {
    Provider::parse(arguments.text("as")?)
}

/// `pact_show`: the snapshots, with long texts cut.
pub(super) fn shown(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let options = ReportOptions::default().before_reply(arguments.flag("before_reply"));
    let mut found: ShowReport = report(state, arguments, "", options)?;
    let limit = arguments.size("max_bytes").unwrap_or(SHOWN);
    let blocks = found
        .snapshots
        .iter_mut()
        .flat_map(|shown| &mut shown.blocks);
    for text in blocks.map(|block| &mut block.text) {
        if text.len() > limit {
            let end = text.floor_char_boundary(limit);
            let rest = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("… {rest} more bytes"));
        }
    }
    let lines: Result<Vec<String>, Failure> = found.snapshots.iter().map(answer::json).collect();
    Ok(lines?.join("\n").into())
}

/// `pact_steps`: one object for each cycle.
pub(super) fn stepped(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let found: StepReport = report(state, arguments, "", ReportOptions::default())?;
    json(&found)
}

/// `pact_tokens`: the tokens of snapshots in groups.
pub(super) fn counted(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let by = arguments.text("by").unwrap_or("region");
    let by = By::parse(by).ok_or_else(|| Failure::value(format!("there is no group `{by}`")))?;
    let options = ReportOptions::default().by(by);
    let found: TokenReport = report(state, arguments, "", options)?;
    json(&found)
}

/// `pact_prefix`: what a prompt cache can reuse, with the requests that break it, or all.
pub(super) fn prefixed(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let mut found: PrefixReport = report(state, arguments, "", ReportOptions::default())?;
    if !arguments.flag("all") {
        found.steps.retain(|step| step.difference.is_some());
    }
    json(&found)
}

/// `pact_grep`: the lines of texts that a pattern matches, of all snapshots unless one is named.
pub(super) fn searched(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    // An invalid pattern is reported before anything is read.
    let pattern = arguments.needed("pattern");
    let search = Search::new(pattern, arguments.flag("ignore_case"))?;
    let search = search.context(arguments.size("context_lines").unwrap_or(0));
    let options = ReportOptions::default().search(search);
    let found: GrepReport = report(state, arguments, "@history", options)?;
    json(&found)
}
