//! The tools: their names and arguments, which `calls/tools.json` has, and the function of each.

use super::pages::{ANSWER, WholeAnswer, WholeCall};
use super::state::ServerState;
use super::{context, sessions};
pub(super) use crate::app::calls::CallEntry as McpTool;
use crate::app::calls::arguments::Arguments;
use crate::app::calls::{CallAnswer, FROZEN, TABLE, reports};
use crate::app::present::answer::with_notes_as_json;
use crate::app::present::{Exit, Failure, Result};
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

type ToolFunction = fn(&ServerState, &Arguments) -> Result<CallAnswer>;

const RUN: [(&str, ToolFunction); 14] = [
    ("pact_list_sessions", sessions::list),
    ("pact_help", reports::help),
    ("context_resolve", context::resolve),
    ("context_list_caches", context::list_caches),
    ("context_inspect_cache", context::inspect_cache),
    ("pact_select", reports::select),
    ("pact_explain", reports::explain),
    ("pact_diff", reports::diff),
    ("pact_sessions", sessions::stored),
    ("pact_show", reports::shown),
    ("pact_steps", reports::stepped),
    ("pact_tokens", reports::counted),
    ("pact_prefix", reports::prefixed),
    ("pact_grep", reports::searched),
];

/// The tools in the order in which they are listed.
pub(super) static TOOLS: LazyLock<&[McpTool]> = LazyLock::new(|| &TABLE[0]);

impl McpTool {
    /// The tool with a name, which may have a dot behind its group.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        let plain = name.replacen('.', "_", 1);
        TOOLS.iter().find(|tool| tool.name == plain)
    }

    /// Its name in the list, `context_resolve`; or with a dot behind its group, `context.resolve`.
    pub(super) fn shown(&self, dotted: bool) -> String {
        if dotted {
            self.name.replacen('_', ".", 1)
        } else {
            self.name.clone()
        }
    }

    fn is_frozen(&self) -> bool {
        self.name.starts_with(FROZEN)
    }

    /// How a failure is sent of a call whose arguments are right. A path that is not allowed is none that exists.
    pub(super) fn refused(&self, failure: Failure) -> ToolRefusal {
        let code = match failure.exit() {
            _ if !self.is_frozen() => None,
            Exit::Missing | Exit::Value => Some(CACHE_MISSING),
            Exit::Input => Some(CACHE_INVALID),
            Exit::Io => Some(IO_ERROR),
            _ => Some(INTERNAL_ERROR),
        };
        ToolRefusal { failure, code }
    }

    /// Runs a call; messages name the tool as it was `called`. It may read files and take a while.
    ///
    /// # Errors
    /// Arguments that the tool does not take; the errors of the command, or those of the interface of caches.
    pub(super) fn call(
        &self,
        called: &str,
        state: &ServerState,
        sent: Map<String, Value>,
    ) -> Result<CallAnswer, ToolRefusal> {
        let arguments = Arguments::check(called, &self.parameters, sent);
        let arguments = arguments.map_err(|(failure, value_of)| {
            let code = match value_of.as_deref() {
                _ if !self.is_frozen() => None,
                Some("budget") => Some(INVALID_BUDGET),
                Some("query") => Some(INVALID_QUERY),
                Some("cache" | "root") => Some(CACHE_MISSING),
                _ => None,
            };
            ToolRefusal { failure, code }
        })?;
        if self.is_frozen() {
            return self.run(state, &arguments);
        }
        let call = WholeCall::new(&self.name, &arguments);
        // Who asks for the second part will ask for the others: from then on the answer is kept while its sessions are as
        // they were before it was made.
        let before = arguments.text("cursor").and_then(|_| call.of(state).ok());
        let kept = before.as_ref();
        let kept = kept.and_then(|before| state.answers.get(&call, before));
        let whole = match kept {
            Some(whole) => whole,
            None => {
                let whole = WholeAnswer::new(self.run(state, &arguments)?);
                let whole = Arc::new(whole);
                if let Some(before) = before {
                    state.answers.keep(&call, before, &whole);
                }
                whole
            }
        };
        let page = whole.page(&call, &arguments);
        page.map_err(|failure| self.refused(failure))
    }

    /// The whole answer of a call.
    fn run(&self, state: &ServerState, arguments: &Arguments) -> Result<CallAnswer, ToolRefusal> {
        let run = RUN.iter().find(|(name, _)| *name == self.name);
        let answer = match run {
            Some((_, run)) => run(state, arguments),
            None => Err(Failure::internal("the tool has no function")),
        };
        let mut answer = answer.map_err(|failure| self.refused(failure))?;
        if let Some(session) = arguments.text("session") {
            let said = state.loaded.said(&state.root, session);
            answer.said.insert_str(0, &said);
        }
        if !arguments.asks_for_nodes() {
            answer.said = with_notes_as_json(&answer.said);
        }
        Ok(answer)
    }
}

/// A failure, and how it is sent. The tools over caches follow another program's interface (RUNTIME §6), whose errors
/// have six codes, fixed messages and nothing else. All other tools answer with the errors of the command line.
#[derive(Debug)]
pub(super) struct ToolRefusal {
    pub(super) failure: Failure,
    code: Option<Frozen>,
}

type Frozen = &'static (&'static str, &'static str);

const CACHE_MISSING: Frozen = &("cache_missing", "Cache does not exist");
const CACHE_INVALID: Frozen = &("cache_invalid", "Cache exists but is invalid");
const INVALID_QUERY: Frozen = &("invalid_query", "Query is invalid");
const INVALID_BUDGET: Frozen = &("invalid_budget", "Budget is invalid");
const IO_ERROR: Frozen = &("io_error", "I/O error occurred");
const INTERNAL_ERROR: Frozen = &("internal_error", "Internal error");

impl ToolRefusal {
    pub(super) fn json(&self) -> Value {
        match self.code {
            None => bounded(self.failure.json()),
            Some((code, message)) => json!({"error": {"code": code, "message": message}}),
        }
    }
}

/// An error of at most about as many bytes as an answer: of a longer one, the texts are cut and the faults left out.
fn bounded(mut error: Value) -> Value {
    if error.to_string().len() <= ANSWER {
        return error;
    }
    let body = error["error"].as_object_mut();
    for (_, member) in body.into_iter().flatten() {
        match member {
            Value::String(text) => text.truncate(text.floor_char_boundary(ANSWER / 8)),
            Value::Array(_) => *member = json!([]),
            _ => {}
        }
    }
    error["error"]["cut"] = true.into();
    error
}

#[cfg(test)]
mod tests {
    use super::{FROZEN, McpTool, RUN, TOOLS};
    use crate::app::calls::arguments::{Arguments, schema};
    use crate::app::calls::reports::edition;
    use crate::app::mcp::root::Root;
    use crate::app::mcp::state::ServerState;
    use crate::query::ir::Edition;
    use crate::support::cancel::{Cancel, Cancelled};
    use crate::tree::Limits;
    use serde_json::{Value, json};

    #[test]
    fn every_tool_is_found_by_its_name() {
        assert_eq!(TOOLS.len(), RUN.len());
        for tool in TOOLS.iter() {
            assert!(RUN.iter().any(|(name, _)| *name == tool.name));
            for name in [tool.shown(false), tool.shown(true)] {
                let found = McpTool::named(&name).map(|found| &found.name);
                assert_eq!(found, Some(&tool.name), "{name}");
            }
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            assert!(tool.name.len() <= 64 && tool.name.bytes().all(plain));
        }
        for name in [
            "context.build",
            "pact.",
            "",
            "context.list.caches",
            ".",
            "pact",
        ] {
            assert!(McpTool::named(name).is_none(), "{name}");
        }
    }

    /// What a description gives as an example is allowed.
    #[test]
    fn every_argument_has_a_good_example() {
        let text = include_str!("../calls/tools.json");
        let file: Value = serde_json::from_str(text).expect("JSON");
        for (tool, described) in TOOLS.iter().zip(file["tools"].as_array().expect("a list")) {
            let parameters = described["parameters"].as_array().expect("a list").len();
            let bounds = if tool.name.starts_with(FROZEN) { 0 } else { 2 };
            assert_eq!(tool.parameters.len(), parameters + bounds, "{}", tool.name);
            assert!(!tool.title.is_empty(), "{}", tool.name);
            for parameter in &tool.parameters {
                assert!(
                    parameter.takes_its_example(),
                    "{}: {parameter:?}",
                    tool.name
                );
            }
            assert!(tool.about.len() > 60, "{}", tool.name);
        }
    }

    #[test]
    fn every_edition_can_be_named() {
        let names: Vec<_> = Edition::ALL
            .iter()
            .map(|edition| edition.as_str())
            .collect();
        let tool = McpTool::named("pact_explain").expect("a tool");
        let words = schema(&tool.parameters)["properties"]["edition"]["enum"].clone();
        assert_eq!(words, json!(names));
        for wanted in Edition::ALL {
            let sent = json!({"selector": ".cb", "edition": wanted.as_str()});
            let sent = sent.as_object().cloned().unwrap_or_default();
            let read = Arguments::check("tool", &tool.parameters, sent).expect("good arguments");
            assert_eq!(edition(&read).expect("an edition"), wanted);
        }
    }

    fn session() -> String {
        let lines = (1..=30).map(|cycle| {
            let blocks: Vec<Value> = (0..300)
                .map(|block| json!({"nodeType": "cb", "id": format!("b{block}"), "content": format!("text {block} {cycle}")}))
                .collect();
            let sys = json!({"nodeType": "^sys", "id": "^sys", "children": blocks});
            let meta = json!({"source": "request"});
            json!({"cycle": cycle, "meta": meta, "root": {"children": [sys]}}).to_string() + "\n"
        });
        lines.collect()
    }

    /// From the second part on an answer is kept while its session is as it was.
    #[test]
    fn parts_of_an_answer_are_of_one_computation() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |text: &str| std::fs::write(directory.path().join("s.jsonl"), text);
        write(&session()).expect("a file");
        let root = Root::open(directory.path()).expect("a directory");
        let state = ServerState::new(root, Limits::default());
        let tool = McpTool::named("pact_tokens").expect("a tool");
        let sent = json!({"session": "s.jsonl", "over": "@history", "limit": 1000});
        let part = |cursor: Option<&str>| {
            let mut sent = sent.as_object().expect("an object").clone();
            sent.insert("cursor".to_owned(), cursor.into());
            let cancel = Cancel::at_check(0);
            let answer = cancel.run(|| tool.call("pact_tokens", &state, sent).ok());
            let answer = answer.expect("not cancelled");
            let next = answer.and_then(|answer| {
                let last = answer.said.lines().last().map(str::to_owned)?;
                let last: Value = serde_json::from_str(&last).ok()?;
                Some(last["next"]["cursor"].as_str()?.to_owned())
            });
            (next, cancel.checks().0)
        };
        let (second, _) = part(None);
        let (third, made) = part(second.as_deref());
        let (fourth, kept) = part(third.as_deref());
        assert!(fourth.is_some() && made > 10 * (kept + 1), "{made} {kept}");
        // Of another session it is made again, and the cursor is not of it.
        write(&session().replace("text", "texts")).expect("a file");
        assert_eq!(part(fourth.as_deref()).0, None);
    }

    /// A call looks at its token while it works, and hardly more after the token was set: a look is at most a
    /// node, a snapshot, or 64 KiB of text.
    #[test]
    fn a_cancelled_call_does_little_more() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("s.jsonl"), session()).expect("a file");
        let root = || Root::open(directory.path()).expect("a directory");
        for (tool, looks, arguments) in [
            (
                "pact_select",
                300,
                json!({"selector": "@history .cb[content~'(a|e)+x.*9$']"}),
            ),
            (
                "pact_select",
                300,
                json!({"selector": "@t0..@t-29 .cb", "include_content": true}),
            ),
            (
                "pact_grep",
                300,
                json!({"pattern": "t.*9$", "over": "@history"}),
            ),
            ("pact_steps", 300, json!({})),
            ("pact_tokens", 300, json!({"over": "@history"})),
            ("pact_show", 300, json!({"over": "@history"})),
            ("pact_prefix", 300, json!({})),
        ] {
            let found = McpTool::named(tool).expect(tool);
            let mut sent = arguments.as_object().expect("an object").clone();
            sent.insert("session".to_owned(), "s.jsonl".into());
            let call = |cancel: &Cancel| {
                // Without the session that another call loaded.
                let state = ServerState::new(root(), Limits::default());
                cancel.run(|| found.call(tool, &state, sent.clone()).is_ok())
            };
            let free = Cancel::at_check(0);
            assert_eq!(call(&free), Ok(true), "{tool}");
            let (all, _) = free.checks();
            assert!(all >= looks, "{tool} looks {all} times only");
            let moments = if std::env::var_os("CI").is_some() {
                12
            } else {
                3
            };
            for at in (1..=all).step_by((all as usize).div_ceil(moments)) {
                let cancel = Cancel::at_check(at);
                let outcome = call(&cancel);
                let (seen, late) = cancel.checks();
                assert!(outcome == Err(Cancelled) || seen < at, "{tool} at {at}");
                assert!(late <= 320, "{tool}: {late} looks after look {at} of {all}");
            }
        }
    }
}
