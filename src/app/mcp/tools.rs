//! The tools: their names and arguments, and the function of each.

use super::arguments::{Arguments, Kind, Parameter};
use super::parameters::{
    AS, AT, CACHE, CONTEXT_LINES, EDITION, MODES, OVER, PLACE, SELECTOR, SESSION, TOKENIZER, WHERE,
    WHERE_COUNTED,
};
use super::refusal::Refusal;
use super::state::{Answer, ServerState};
use super::{context, inspect, pact, sessions};
use crate::app::present::Failure;
use serde_json::{Map, Value};

/// One tool.
#[derive(Debug)]
pub(super) struct Tool {
    /// Its name, of letters and underscores alone: hosts of agents refuse others, and some then drop the whole
    /// list. What is before the first underscore is its group.
    pub(super) name: &'static str,
    /// What it does, for the client that chooses among tools.
    pub(super) about: &'static str,
    /// What it takes.
    pub(super) parameters: &'static [Parameter],
    run: fn(&ServerState, &Arguments) -> Result<Answer, Failure>,
    /// Whether its errors are those of the interface of caches.
    frozen: bool,
}

/// The tools in the order in which they are listed.
pub(super) const TOOLS: [Tool; 14] = [
    Tool {
        name: "pact_list_sessions",
        about: "Begin here: list the sessions below the directory served, the longest first, in files, in directories of \
                documents and in stores; a log of one session counts as one. Returns {\"sessions\": [{session, bytes, \
                snapshots, first_cycle, last_cycle, working, turns, nodes, roles, kinds, tools}], \"attributes\": {name: \
                {nodes, values}}, \"not_opened\", \"no_session\"}. Give a `session` to the other pact tools; counts of nodes are \
                those of the newest snapshot; `attributes` are what selectors can test besides the headers, with their \
                values if these are few.",
        parameters: &[
            Parameter::new(
                "root",
                Kind::Text,
                r#""conversations""#,
                "The directory to search, with those below it, relative to the one served (which is the default).",
            ),
            Parameter::new(
                "limit",
                Kind::Count(1),
                r#"100"#,
                "Describe at most this many sessions; others are named in `not_opened`. Default: 50.",
            ),
        ],
        run: sessions::list,
        frozen: false,
    },
    Tool {
        name: "pact_help",
        about: "The selector language on one page, with ten examples, and which tool answers what. Read it before the first \
                selector.",
        parameters: &[],
        run: pact::help,
        frozen: false,
    },

    Tool {
        name: "context_resolve",
        about: "Choose documents of a cache that fit a budget of tokens, best first and each whole \
                or not at all. A document's score is the share of its words that occur in the \
                query. Returns {\"documents\": [{id, version, content, score, tokens, why}], \
                \"selection\": {…}}.",
        parameters: &[
            CACHE,
            Parameter::new(
                "query",
                Kind::Text, r#""refund policy""#,
                "The words to look for, separated by white space; \"\" scores every document 0.",
            )
            .required(),
            Parameter::new(
                "budget",
                Kind::Count(0), r#"4000"#,
                "The number of tokens to fit: a document counts a quarter of its bytes, rounded \
                 up.",
            )
            .required(),
        ],
        run: context::resolve,
        frozen: true,
    },
    Tool {
        name: "context_list_caches",
        about: "List the directories that may be caches of documents, by name; those with a \
                manifest are. Returns {\"caches\": [{path, has_manifest}]}; give a `path` to the \
                other context tools as `cache`.",
        parameters: &[Parameter::new(
            "root",
            Kind::Text, r#""caches""#,
            "The directory to list, relative to the one served (which is the default).",
        )],
        run: context::list_caches,
        frozen: true,
    },
    Tool {
        name: "context_inspect_cache",
        about: "Describe a cache of documents. Returns {cache_version, document_count, \
                total_bytes, valid}; `valid` says whether every file agrees with the manifest, `total_bytes` counts the plain files directly \
                in the cache.",
        parameters: &[CACHE],
        run: context::inspect_cache,
        frozen: true,
    },
    Tool {
        name: "pact_select",
        about: "Find nodes of a session (the tree of a conversation's context, with a snapshot \
                for each cycle) with a selector. Returns a list of ids, or for a range of \
                snapshots the differences between neighbours. Examples: \
                \"@t0 ^seq .mt:depth(1) .cb[role='assistant']\" is the newest reply, \
                \"@t0 .cb[kind='call']\" every tool call, \"@t-3..@t0 .cb[kind='result']\" how \
                tool results changed over the last three cycles.",
        parameters: &[
            SESSION,
            SELECTOR,
            EDITION,
            Parameter::new(
                "format",
                Kind::Word(&["json", "nodes"]), r#""nodes""#,
                "json: ids, or the differences of a range. nodes: one JSON object a line, the \
                 node with its content, parent_id, depth and snapshot. Default: json.",
            ),
            Parameter::new("count", Kind::Flag, r#"true"#, "Return only the number of nodes."),
            Parameter::new(
                "budget",
                Kind::Count(0), r#"4000"#,
                "Choose blocks that fit this many tokens, each whole or not at all, and return them \
                 in the form of context_resolve.",
            ),
            Parameter::new(
                "query",
                Kind::Text, r#""refund policy""#,
                "With a budget: prefer blocks with these words.",
            ),
            Parameter::new(
                "include_content",
                Kind::Flag, r#"true"#,
                "Ranges: also show the differences of changed contents.",
            ),
            Parameter::new(
                "content_mode",
                Kind::Word(MODES), r#""unified""#,
                "Ranges: how to show the differences of contents. Default: unified.",
            ),
            CONTEXT_LINES,
            Parameter::new(
                "materialize",
                Kind::Words(&["content", "mime", "encoding", "content_hash"]), r#"["content"]"#,
                "Ranges: also show these fields of each changed node, before and after.",
            ),
            Parameter::new(
                "max_snapshots",
                Kind::Count(1), r#"10"#,
                "Ranges: take at most this many snapshots, the newest ones.",
            ),
            Parameter::new(
                "max_changes",
                Kind::Count(0), r#"20"#,
                "Ranges: show at most this many changes of each pair.",
            ),
            Parameter::new(
                "stats",
                Kind::Flag, r#"true"#,
                "Ranges: also count the changes of each pair, including those not shown.",
            ),
        ],
        run: pact::select,
        frozen: false,
    },
    Tool {
        name: "pact_explain",
        about: "Show how a selector is read and run: its normalized text and fingerprint, what \
                its abbreviations mean, and its plan. With a session, the snapshots it names are \
                looked up there.",
        parameters: &[
            SELECTOR,
            Parameter::new(
                "session",
                Kind::Text, r#""agent.jsonl""#,
                "The session: a path relative to the directory served, or \"STORE#NAME\".",
            ),
            EDITION,
            Parameter::new(
                "analyze",
                Kind::Flag, r#"true"#,
                "Run the plan, and show the rows of each step; needs a session.",
            ),
            Parameter::new(
                "verbose",
                Kind::Flag, r#"true"#,
                "Show the normalized form after each pass.",
            ),
        ],
        run: pact::explain,
        frozen: false,
    },
    Tool {
        name: "pact_diff",
        about: "Compare two snapshots of a session, in whatever order they are named. Returns \
                {\"added\": [id], \"removed\": [id], \"changed\": [{id, fields}]}: the changes \
                from the older to the newer one.",
        parameters: &[
            SESSION,
            Parameter::new("a", Kind::Text, r#""@t-1""#, PLACE).required(),
            Parameter::new("b", Kind::Text, r#""@t0""#, PLACE).required(),
            Parameter::new(
                "selector",
                Kind::Text, r#"".cb[role=user]""#,
                "Which nodes to compare: a selector without a time. Default: all nodes.",
            ),
            EDITION,
            Parameter::new(
                "moves",
                Kind::Flag, r#"true"#,
                "Also list moved nodes, and the children that each parent gained and lost.",
            ),
            Parameter::new(
                "content",
                Kind::Word(MODES), r#""unified""#,
                "Also show the differences of changed contents, in this form.",
            ),
            CONTEXT_LINES,
        ],
        run: pact::diff,
        frozen: false,
    },
    Tool {
        name: "pact_sessions",
        about: "List the sessions of one store (a .db file with many sessions), in order of names, with their dates and where they \
                come from (pact_list_sessions says what they have): one JSON \
                object a line, {name, snapshots, cycle, working, created, committed, source, parent}. Give \
                \"STORE#NAME\" to the other pact tools as `session`.",
        parameters: &[Parameter::new(
            "store",
            Kind::Text, r#""agents.db""#,
            "The store: the path of a .db file, relative to the directory served; \"STORE#support-*\" \
             lists the sessions whose names match, in which * is any text without /.",
        )
        .required()],
        run: pact::list,
        frozen: false,
    },
    Tool {
        name: "pact_show",
        about: "Show what the model saw: the blocks of a snapshot in the order in which they were sent, with \
                region, turn, depth, role, kind, tool, tokens, text and `news` (same, added or changed since \
                the snapshot before). One JSON object for each snapshot.",
        parameters: &[
            SESSION,
            AT,
            OVER,
            WHERE,
            Parameter::new(
                "before_reply",
                Kind::Flag, r#"true"#,
                "Leave out the reply of the cycle: what was sent.",
            ),
            Parameter::new(
                "max_bytes",
                Kind::Count(0), r#"2000"#,
                "Cut each text to this many bytes. Default: 2000.",
            ),
            TOKENIZER,
        ],
        run: inspect::shown,
        frozen: false,
    },
    Tool {
        name: "pact_steps",
        about: "List the cycles of a session, oldest first: time, model, tokens of the request, what the \
                provider counted and cached, blocks added, removed and changed, what happened (reply, calls, \
                compaction, failed calls, tool errors), and how much a prompt cache can reuse. The first \
                tool to ask of one session.",
        parameters: &[SESSION, AT, OVER, WHERE_COUNTED, AS, TOKENIZER],
        run: inspect::stepped,
        frozen: false,
    },
    Tool {
        name: "pact_tokens",
        about: "Count the tokens of a snapshot, or of each snapshot of a range, in groups, largest first, \
                with the provider's own count and the cost beside them.",
        parameters: &[
            SESSION,
            AT,
            OVER,
            WHERE,
            Parameter::new(
                "by",
                Kind::Word(&["region", "role", "kind", "turn", "tool", "key"]), r#""role""#,
                "What the blocks are grouped by. Default: region.",
            ),
            TOKENIZER,
        ],
        run: inspect::counted,
        frozen: false,
    },
    Tool {
        name: "pact_prefix",
        about: "Show what broke the prompt cache: for each request that is not the one before with more at its \
                end, the first byte that differs, its block, the cause (timestamp, tool order, a rewritten \
                message, compaction, …), what would keep the prefix, and the tokens that could not be reused.",
        parameters: &[
            SESSION,
            AT,
            OVER,
            Parameter::new(
                "where",
                Kind::Text, r#"".cb[kind=result]""#,
                "Only breaks in blocks that a selector without a time matches.",
            ),
            AS,
            Parameter::new("all", Kind::Flag, r#"true"#, "Also list the requests that break nothing."),
            TOKENIZER,
        ],
        run: inspect::prefixed,
        frozen: false,
    },
    Tool {
        name: "pact_grep",
        about: "Search the texts of a session with a regular expression: each block with the lines that \
                match, and the first and the last snapshot that has it. All snapshots, unless one or a \
                range is named.",
        parameters: &[
            SESSION,
            Parameter::new("pattern", Kind::Text, r#""time ?out""#, "The regular expression.").required(),
            Parameter::new("ignore_case", Kind::Flag, r#"true"#, "Upper and lower case are the same."),
            Parameter::new(
                "context_lines",
                Kind::Count(0), r#"3"#,
                "Lines around each match. Default: 0.",
            ),
            AT,
            OVER,
            WHERE,
        ],
        run: inspect::searched,
        frozen: false,
    },
];

impl Tool {
    /// The tool with a name, which may have a dot behind its group.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        const TABLE: &[Tool] = &TOOLS;
        let plain = name.replacen('.', "_", 1);
        TABLE.iter().find(|tool| tool.name == plain)
    }

    /// Its name in the list, `context_resolve`; or with a dot behind its group, `context.resolve`.
    pub(super) fn shown(&self, dotted: bool) -> String {
        if dotted {
            self.name.replacen('_', ".", 1)
        } else {
            self.name.to_owned()
        }
    }

    /// A failure of a call, as its clients know it.
    pub(super) fn refused(&self, failure: Failure) -> Refusal {
        if self.frozen {
            Refusal::frozen(failure)
        } else {
            Refusal::plain(failure)
        }
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
    ) -> Result<Answer, Refusal> {
        let arguments = Arguments::check(called, self.parameters, sent);
        let arguments = arguments.map_err(|wrong| match wrong.value_of {
            Some(name) if self.frozen => Refusal::of_argument(wrong.failure, name),
            _ => Refusal::plain(wrong.failure),
        })?;
        let answer = (self.run)(state, &arguments);
        let mut answer = answer.map_err(|failure| self.refused(failure))?;
        if let Some(session) = arguments.text("session") {
            let said = state.kept.said(&state.root, session);
            answer.said.insert_str(0, &said);
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::{TOOLS, Tool};
    use crate::app::mcp::arguments::{Arguments, schema};
    use crate::app::mcp::pact::edition;
    use crate::app::mcp::parameters::EDITION;
    use crate::app::mcp::root::Root;
    use crate::app::mcp::state::ServerState;
    use crate::query::ir::Edition;
    use crate::support::cancel::{Cancel, Cancelled};
    use crate::tree::Limits;
    use serde_json::{Value, json};

    #[test]
    fn every_tool_is_found_by_its_name() {
        for tool in &TOOLS {
            for name in [tool.shown(false), tool.shown(true)] {
                let found = Tool::named(&name).map(|found| found.name);
                assert_eq!(found, Some(tool.name), "{name}");
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
            assert!(Tool::named(name).is_none(), "{name}");
        }
    }

    /// What a description gives as an example is allowed.
    #[test]
    fn every_argument_has_a_good_example() {
        for tool in &TOOLS {
            for parameter in tool.parameters {
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
        let words = schema(&[EDITION])["properties"]["edition"]["enum"].clone();
        assert_eq!(words, json!(names));
        for wanted in Edition::ALL {
            let sent = json!({"edition": wanted.as_str()});
            let sent = sent.as_object().cloned().unwrap_or_default();
            let read = Arguments::check("tool", &[EDITION], sent).expect("good arguments");
            assert_eq!(edition(&read).expect("an edition"), wanted);
        }
    }

    /// A session of many snapshots and blocks.
    fn session() -> String {
        let lines = (1..=30).map(|cycle| {
            let blocks: Vec<Value> = (0..300)
                .map(|block| json!({"nodeType": "cb", "id": format!("b{block}"), "content": format!("text {block} {cycle}")}))
                .collect();
            let sys = json!({"nodeType": "^sys", "id": "^sys", "children": blocks});
            json!({"cycle": cycle, "root": {"children": [sys]}}).to_string() + "\n"
        });
        lines.collect()
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
            let found = Tool::named(tool).expect(tool);
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
