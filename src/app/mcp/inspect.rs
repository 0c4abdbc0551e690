//! The tools that inspect sessions: what the commands of the same names print as JSON.

use super::arguments::Arguments;
use super::state::{Answer, ServerState};
use crate::app::present::stores::intact;
use crate::app::present::{Failure, answer};
use crate::engine::Engine;
use crate::history::Session;
use crate::inspect::{
    By, Part, PrefixOptions, Search, ShowOptions, TokenOptions, Tokenizer, grep, prefixes, show,
    steps, tokens,
};
use crate::render::Provider;
use std::sync::Arc;

/// How many bytes of a text are shown, unless the client says otherwise.
const SHOWN: usize = 2000;

/// The session, and the part of it that is asked for.
fn asked(state: &ServerState, arguments: &Arguments) -> Result<(Arc<Session>, Part), Failure> {
    if arguments.text("at").is_some() && arguments.text("over").is_some() {
        return Err(Failure::usage(
            "`at` is one snapshot and `over` is a range: give one of them",
        ));
    }
    let time = arguments.text("at").or_else(|| arguments.text("over"));
    let part = Part::default().at(time.unwrap_or_default());
    let part = match arguments.text("where") {
        Some(selector) => part.only(selector),
        None => part,
    };
    let session = state.kept.open(&state.root, arguments.needed("session"))?;
    Ok((session, part))
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
    let name = arguments.text("as")?;
    Provider::ALL.into_iter().find(|known| known.name() == name)
}

/// `pact_show`: the snapshots, with long texts cut.
pub(super) fn shown(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let (session, part) = asked(state, arguments)?;
    let options = ShowOptions::default().before_reply(arguments.flag("before_reply"));
    let mut found = show(
        &Engine::new(),
        &session,
        &part,
        options,
        tokenizer(arguments)?,
    )?;
    intact(&session)?;
    let limit = arguments.size("max_bytes").unwrap_or(SHOWN);
    for block in found.iter_mut().flat_map(|shown| &mut shown.blocks) {
        if block.text.len() > limit {
            let end = block.text.floor_char_boundary(limit);
            let rest = block.text.len() - end;
            block.text.truncate(end);
            block.text.push_str(&format!("… {rest} more bytes"));
        }
    }
    lines(&found)
}

/// `pact_steps`: one object for each cycle.
pub(super) fn stepped(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let (session, part) = asked(state, arguments)?;
    let provider = provider(arguments);
    let found = steps(
        &Engine::new(),
        &session,
        &part,
        provider,
        tokenizer(arguments)?,
    )?;
    intact(&session)?;
    Ok(answer::json(&found)?.into())
}

/// `pact_tokens`: the tokens of snapshots in groups.
pub(super) fn counted(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let (session, part) = asked(state, arguments)?;
    let by = arguments.text("by").unwrap_or("region");
    let by: By = by
        .parse()
        .map_err(|_| Failure::value(format!("there is no group `{by}`")))?;
    let options = TokenOptions::by(by).tokenizer(tokenizer(arguments)?);
    let found = tokens(&Engine::new(), &session, &part, &options)?;
    intact(&session)?;
    Ok(answer::json(&found)?.into())
}

/// `pact_prefix`: what a prompt cache can reuse, with the requests that break it, or all.
pub(super) fn prefixed(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    let (session, part) = asked(state, arguments)?;
    let options = PrefixOptions::default()
        .provider(provider(arguments))
        .tokenizer(tokenizer(arguments)?);
    let mut found = prefixes(&Engine::new(), &session, &part, &options)?;
    intact(&session)?;
    if !arguments.flag("all") {
        found.steps.retain(|step| step.difference.is_some());
    }
    Ok(answer::json(&found)?.into())
}

/// `pact_grep`: the lines of texts that a pattern matches, of all snapshots unless one is named.
pub(super) fn searched(state: &ServerState, arguments: &Arguments) -> Result<Answer, Failure> {
    // An invalid pattern is reported before anything is read.
    let pattern = arguments.needed("pattern");
    let search = Search::new(pattern, arguments.flag("ignore_case"))?;
    let search = search.context(arguments.size("context_lines").unwrap_or(0));
    let (session, part) = asked(state, arguments)?;
    let part = match part.time() {
        "" => part.at("@history"),
        _ => part,
    };
    let found = grep(&Engine::new(), &session, &part, &search)?;
    intact(&session)?;
    Ok(answer::json(&found)?.into())
}

/// Reports, one line of JSON each.
fn lines(found: &[impl serde::Serialize]) -> Result<Answer, Failure> {
    let lines: Result<Vec<String>, Failure> = found.iter().map(answer::json).collect();
    Ok(lines?.join("\n").into())
}
