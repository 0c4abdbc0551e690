//! The MCP server, as a child process that is sent lines of JSON. The tests do not use the SDK:
//! they check the messages themselves.

mod caches;
mod finding;
mod parts;
mod stopping;
mod wire;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest wait for an answer or for the end. A server that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory to serve: a session, a log, caches, and a file outside that must stay unseen.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-{name}"));
        let _ = fs::remove_dir_all(&path);
        let scratch = Self(path);
        for dir in ["root/caches/not-one", "root/docs/sub", "root/many"] {
            fs::create_dir_all(scratch.path(dir)).expect("a directory");
        }
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        for (from, to) in [
            ("support-agent.jsonl", "root/agent.jsonl"),
            ("support-agent.jsonl", "outside.jsonl"),
            ("support-agent.jsonl", "root/many/1.jsonl"),
            ("chat.openai.json", "root/chat.json"),
        ] {
            fs::copy(fixtures.join(from), scratch.path(to)).expect("a copy");
        }
        for (name, text) in [
            ("deploy.md", "Deployment deployment guide"),
            ("sub/other.md", "Nothing of interest."),
            ("umlaut.md", "Grüße vom Deployment"),
        ] {
            fs::write(scratch.path("root/docs").join(name), text).expect("a file");
        }
        fs::write(scratch.path("root/broken.jsonl"), "{\"root\":{}}\n{nope\n").expect("a file");
        for cache in ["root/caches/good", "root/caches/damaged", "outside-cache"] {
            let cache = scratch.path(cache).display().to_string();
            let arguments = ["context", "build", "--sources", "docs", "--cache", &cache];
            assert_eq!(scratch.command(&arguments).0, 0, "{cache}");
        }
        let manifest = scratch.path("root/caches/damaged/manifest.json");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        fs::write(manifest, text.replace("deploy.md", "deplox.md")).expect("a manifest");
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs the command line in the served directory: exit code, output, messages.
    fn command(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_pactql"))
            .args(arguments)
            .current_dir(self.path("root"))
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let code = output.status.code().expect("an exit code");
        (code, text(output.stdout), text(output.stderr))
    }

    fn client(&self) -> Client {
        Client::start(&self.path("root"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A client and its server.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
    unread: Option<ChildStderr>,
    last_id: u64,
}

impl Client {
    /// Starts a server without a handshake.
    fn silent(root: &Path) -> Self {
        Self::listening(Self::spawn(root))
    }

    /// Reads the standard error of its server.
    fn listening(mut client: Self) -> Self {
        let mut errors = client.unread.take().expect("a pipe");
        client.errors = Some(std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        }));
        client
    }

    /// Starts a server whose standard error is not read.
    fn spawn(root: &Path) -> Self {
        Self::spawn_with(root, &[])
    }

    /// Starts a server with options, whose standard error is not read.
    fn spawn_with(root: &Path, options: &[&str]) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_pactql"))
            .args(["context", "serve", "--root"])
            .arg(root)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().expect("a pipe"));
        let unread = server.stderr.take();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                if sender.send(line.expect("UTF-8")).is_err() {
                    break;
                }
            }
        });
        Self {
            server,
            input,
            lines,
            errors: None,
            unread,
            last_id: 0,
        }
    }

    /// Starts a server and does the handshake.
    fn start(root: &Path) -> Self {
        Self::silent(root).greeted()
    }

    /// Does the handshake.
    fn greeted(mut self) -> Self {
        let answer = self.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "0"},
            }),
        );
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], "2025-06-18");
        assert_eq!(result["serverInfo"]["name"], "pactql");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        self
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{line}").expect("the server reads");
        input.flush().expect("the server reads");
    }

    /// The next line of the server, which must be a message.
    #[track_caller]
    fn receive(&mut self) -> Value {
        let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
            let _ = self.server.kill();
            let errors = self.errors.take().map(|errors| errors.join());
            unreachable!("no answer; the server said {errors:?}");
        };
        let message: Value = serde_json::from_str(&line).expect("nothing but the protocol");
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message.to_string());
        id
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool. Returns whether it failed, and the texts of its answer.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: Value) -> (bool, Vec<String>) {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        texts(&answer)
    }

    /// The answer of a tool that must succeed without notes.
    #[track_caller]
    fn answer(&mut self, tool: &str, arguments: Value) -> String {
        let (failed, mut texts) = self.call(tool, arguments);
        assert!(!failed && texts.len() == 1, "{texts:?}");
        texts.remove(0)
    }

    /// The error of a tool that must fail.
    #[track_caller]
    fn error(&mut self, tool: &str, arguments: Value) -> Value {
        let (failed, texts) = self.call(tool, arguments.clone());
        assert!(failed && texts.len() == 1, "{tool} {arguments}: {texts:?}");
        let error: Value = serde_json::from_str(&texts[0]).expect("JSON");
        error["error"].clone()
    }

    /// Closes the input and waits for the server. Returns its exit code and its standard error.
    /// All remaining output must be messages.
    fn end(mut self) -> (i32, String) {
        drop(self.input.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.server.try_wait().expect("a child") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                let _ = self.server.kill();
                unreachable!("the server does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        for line in self.lines.iter() {
            let message: Value = serde_json::from_str(&line).expect("nothing but the protocol");
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
        let errors = self.errors.take().expect("a thread").join();
        let errors = errors.expect("the thread ends");
        assert!(!errors.contains("panicked"), "{errors}");
        (status.code().expect("an exit code"), errors)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // No effect on a process that has ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Whether a call failed, and its texts.
#[track_caller]
fn texts(answer: &Value) -> (bool, Vec<String>) {
    let result = &answer["result"];
    let content = result["content"].as_array().expect("content");
    let texts = content.iter().map(|block| {
        assert_eq!(block["type"], "text", "{answer}");
        block["text"].as_str().expect("a text").to_owned()
    });
    (result["isError"] == true, texts.collect())
}

const SESSION_TOOLS: [&str; 3] = ["pact_select", "pact_explain", "pact_diff"];

/// Arguments with which every tool over sessions reads `session`.
fn reading(session: &str) -> impl Fn(&str) -> Value {
    move |tool| match tool {
        "pact_diff" => json!({"session": session, "a": "@t0", "b": "@t-1"}),
        _ => json!({"session": session, "selector": "@t0 .cb"}),
    }
}

#[test]
fn a_conversation_from_the_handshake_to_the_end() {
    let scratch = Scratch::new("conversation");
    let mut client = scratch.client();
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));

    let tools = client.ask("tools/list", json!({}));
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "pact_list_sessions",
            "pact_help",
            "context_resolve",
            "context_list_caches",
            "context_inspect_cache",
            "pact_select",
            "pact_explain",
            "pact_diff",
            "pact_sessions",
            "pact_show",
            "pact_steps",
            "pact_tokens",
            "pact_prefix",
            "pact_grep"
        ]
    );

    assert_eq!(
        client.answer("context_list_caches", json!({"root": "caches"})),
        "{\"caches\":[{\"path\":\"caches/damaged\",\"has_manifest\":true},\
         {\"path\":\"caches/good\",\"has_manifest\":true},\
         {\"path\":\"caches/not-one\",\"has_manifest\":false}]}"
    );
    assert_eq!(
        client.answer("context_list_caches", json!({})),
        "{\"caches\":[{\"path\":\"caches\",\"has_manifest\":false},\
         {\"path\":\"docs\",\"has_manifest\":false},{\"path\":\"many\",\"has_manifest\":false}]}"
    );
    let resolved = client.answer(
        "context_resolve",
        json!({"cache": "caches/good", "query": "GRÜSSE deployment", "budget": 12}),
    );
    let resolved: Value = serde_json::from_str(&resolved).expect("JSON");
    assert_eq!(resolved["documents"][0]["id"], "deploy.md");
    assert_eq!(resolved["selection"]["tokens_used"], 12);
    assert_eq!(
        client.answer(
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t0 ^seq .mt:depth(1-3) .cb[kind='call']"})
        ),
        "[\"cb:c4\",\"cb:c5\"]"
    );

    // An unknown tool is a mistake of the client, reported as a protocol error.
    let unknown = client.ask("tools/call", json!({"name": "pact_selec", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(
        unknown["error"]["message"],
        "unknown tool: pact_selec, did you mean pact_select?"
    );
    let shapeless = client.ask(
        "tools/call",
        json!({"name": "pact_select", "arguments": [1]}),
    );
    assert_eq!(shapeless["error"]["code"], -32602);
    let method = client.ask("nothing/known", json!({}));
    assert_eq!(method["error"]["code"], -32601);

    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));

    let (code, errors) = client.end();
    assert_eq!((code, &*errors), (0, ""));
}

#[test]
fn every_revision_of_the_protocol_is_spoken() {
    let scratch = Scratch::new("revisions");
    let call = json!({"name": "pact_select", "arguments": reading("agent.jsonl")("pact_select")});
    let mut answers = Vec::new();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::silent(&scratch.path("root"));
        let hello = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        });
        let answer = client.ask("initialize", hello);
        assert_eq!(answer["result"]["protocolVersion"], revision);
        answers.push(texts(&client.ask("tools/call", call.clone())));
        assert_eq!(client.end().0, 0);
    }
    // The newest protocol has no handshake: each request names the client.
    let mut client = Client::silent(&scratch.path("root"));
    let mut call = call;
    call["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    answers.push(texts(&client.ask("tools/call", call)));
    assert_eq!(client.end().0, 0);
    assert!(!answers[0].0);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn documented_calls_over_sessions_are_answered_as_documented() {
    let text = include_str!("../../docs/mcp.md");
    let blocks: Vec<&str> = text
        .split("```json\n")
        .skip(1)
        .filter_map(|block| block.split("```").next())
        .collect();
    let scratch = Scratch::new("documented");
    let (from, to) = ("root/agent.jsonl", "root/support-agent.jsonl");
    fs::rename(scratch.path(from), scratch.path(to)).expect("a file");
    fs::create_dir(scratch.path("root/runs")).expect("a directory");
    fs::copy(scratch.path(to), scratch.path("root/runs/agent.jsonl")).expect("a file");
    let made = scratch.command(&["import", "support-agent.jsonl", "-o", "agents.db"]);
    assert_eq!(made.0, 0, "{made:?}");
    let mut client = scratch.client();
    let mut run = 0;
    for pair in blocks.windows(2) {
        let call: Value = match serde_json::from_str(pair[0]) {
            Ok(call) => call,
            // A result that is shortened in the document.
            Err(_) => continue,
        };
        let Some(tool) = call["name"]
            .as_str()
            .filter(|tool| tool.starts_with("pact_"))
        else {
            continue;
        };
        let answer = client.answer(tool, call["arguments"].clone());
        // The omitted part is not compared. A long line is broken in the document.
        let mut rest = &*answer;
        for part in pair[1].replace('\n', "").split('…') {
            let at = rest.find(part);
            assert!(at.is_some(), "{tool}: {part} in {answer}");
            rest = &rest[at.unwrap_or_default() + part.len()..];
        }
        assert_eq!(rest, "", "{tool}");
        run += 1;
    }
    assert_eq!(run, 5);
    assert_eq!(client.end().0, 0);
}

#[test]
fn inspecting_answers_as_the_command_line_does() {
    let scratch = Scratch::new("inspect");
    let mut client = scratch.client();
    let session = "agent.jsonl";
    let path = "agent.jsonl";
    for (tool, arguments, command) in [
        ("pact_steps", json!({}), &["steps"][..]),
        (
            "pact_steps",
            json!({"over": "@t-2..@t0", "where": ".cb[kind='call']"}),
            &[
                "steps",
                "--over",
                "@t-2..@t0",
                "--where",
                ".cb[kind='call']",
            ],
        ),
        (
            "pact_steps",
            json!({"over": "2..4"}),
            &["steps", "--over", "@c2..@c4"],
        ),
        (
            "pact_tokens",
            json!({"by": "role", "at": "@t-1"}),
            &["tokens", "--by", "role", "--at", "@t-1"],
        ),
        (
            "pact_tokens",
            json!({"over": "@history", "tokenizer": "o200k"}),
            &["tokens", "--over", "@history", "--tokenizer", "o200k"],
        ),
        (
            "pact_prefix",
            json!({"all": true, "as": "anthropic"}),
            &["prefix", "--as", "anthropic"],
        ),
        (
            "pact_grep",
            json!({"pattern": "RETURN", "ignore_case": true, "over": "@history"}),
            &["grep", "RETURN", "-i", "--over", "@history"][..],
        ),
        (
            "pact_show",
            json!({"at": "@t0", "before_reply": true}),
            &["show", "--at", "@t0", "--before-reply"],
        ),
    ] {
        let mut arguments = arguments;
        arguments["session"] = json!(session);
        let answer = client.answer(tool, arguments);
        let mut line: Vec<&str> = command.to_vec();
        line.extend([path, "--format", "json"]);
        let (exit, out, _) = scratch.command(&line);
        assert_eq!(exit, 0, "{tool}");
        assert_eq!(answer, out.trim_end(), "{tool}");
    }
    // Only what breaks a prefix, unless all is asked for; long texts are cut.
    let all: Value = serde_json::from_str(
        &client.answer("pact_prefix", json!({"session": session, "all": true})),
    )
    .expect("JSON");
    let breaks: Value =
        serde_json::from_str(&client.answer("pact_prefix", json!({"session": session})))
            .expect("JSON");
    let count = |found: &Value| found["steps"].as_array().map_or(0, Vec::len);
    assert!(count(&breaks) > 0 && count(&breaks) < count(&all));
    let cut = client.answer("pact_show", json!({"session": session, "max_bytes": 10}));
    assert!(cut.contains("more bytes"), "{cut}");
    for (arguments, wrong) in [
        (
            json!({"session": session, "at": "@t0", "over": "@history"}),
            "give one of them",
        ),
        (json!({"session": session, "at": "@t-99"}), "E_SNAPSHOT"),
        (
            json!({"session": session, "tokenizer": "words"}),
            "no tokenizer `words`",
        ),
        (json!({"session": session, "where": ".cb["}), "E_SELECTOR"),
    ] {
        let answer = client.ask(
            "tools/call",
            json!({"name": "pact_show", "arguments": arguments}),
        );
        let (failed, said) = texts(&answer);
        assert!(failed && said.concat().contains(wrong), "{wrong}: {said:?}");
    }
    assert_eq!(client.end().0, 0);
}

#[test]
fn the_list_of_tools_says_what_they_take() {
    let scratch = Scratch::new("list");
    let mut client = scratch.client();
    let tools = client.ask("tools/list", json!({}));
    insta::assert_json_snapshot!("tools", tools["result"]);
    // Every request gets the same bytes.
    assert_eq!(
        tools["result"],
        client.ask("tools/list", json!({}))["result"]
    );
}

#[test]
fn answers_are_those_of_the_command_line_to_the_byte() {
    let scratch = Scratch::new("answers");
    let worn = scratch.path("root/caches/worn").display().to_string();
    let build = ["context", "build", "--sources", "docs", "--cache", &worn];
    assert_eq!(scratch.command(&build).0, 0);
    let mut client = scratch.client();
    let call = "@t0 .cb[kind='call']";
    let mistaken = "@t0 [key='cb:persona']";
    let history = "@t-3..@t0 .cb";
    for (tool, arguments, command) in [
        (
            "context_resolve",
            json!({"cache": "caches/good", "query": "deployment grüße", "budget": 4000}),
            &[
                "context",
                "resolve",
                "--cache",
                "caches/good",
                "--query",
                "deployment grüße",
                "--budget",
                "4000",
            ][..],
        ),
        (
            "context_resolve",
            json!({"cache": "caches/good", "query": "", "budget": 0}),
            &[
                "context",
                "resolve",
                "--cache",
                "caches/good",
                "--query",
                "",
                "--budget",
                "0",
            ],
        ),
        (
            "context_resolve",
            json!({"cache": "caches/worn", "query": "deployment", "budget": 9}),
            &[
                "context",
                "resolve",
                "--cache",
                "caches/worn",
                "--query",
                "deployment",
                "--budget",
                "9",
            ],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": call}),
            &["select", "agent.jsonl", call, "--format", "json"],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": call, "format": "nodes"}),
            &["select", "agent.jsonl", call, "--format", "nodes"],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": call, "count": true}),
            &["select", "agent.jsonl", call, "--count", "--format", "json"],
        ),
        (
            "pact_select",
            json!({"session": "many", "selector": "@t0 .cb", "edition": "v0.1"}),
            &[
                "select",
                "many",
                "@t0 .cb",
                "--edition",
                "v0.1",
                "--format",
                "json",
            ],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": history}),
            &["select", "agent.jsonl", history, "--format", "json"],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": history, "include_content": true, "content_mode": "tokens",
                "context_lines": 1, "materialize": ["content", "mime"], "max_snapshots": 3, "stats": true}),
            &[
                "select",
                "agent.jsonl",
                history,
                "--include-content",
                "--content-mode",
                "tokens",
                "--context-lines",
                "1",
                "--materialize",
                "content,mime",
                "--max-snapshots",
                "3",
                "--stats",
                "--format",
                "json",
            ],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t0 .cb", "budget": 60, "query": "refund return"}),
            &[
                "select",
                "agent.jsonl",
                "@t0 .cb",
                "--budget",
                "60",
                "--query",
                "refund return",
                "--format",
                "json",
            ],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t0 .cb", "budget": 60, "format": "nodes"}),
            &[
                "select",
                "agent.jsonl",
                "@t0 .cb",
                "--budget",
                "60",
                "--format",
                "nodes",
            ],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t0 .cb", "budget": 60, "count": true}),
            &[
                "select",
                "agent.jsonl",
                "@t0 .cb",
                "--budget",
                "60",
                "--count",
                "--format",
                "json",
            ],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": mistaken}),
            &["select", "agent.jsonl", mistaken, "--format", "json"],
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": mistaken, "format": "nodes"}),
            &["select", "agent.jsonl", mistaken, "--format", "nodes"],
        ),
        (
            "pact_explain",
            json!({"selector": ".cb #hero", "edition": "v0.1"}),
            &[
                "explain",
                ".cb #hero",
                "--edition",
                "v0.1",
                "--format",
                "json",
            ],
        ),
        (
            "pact_explain",
            json!({"session": "agent.jsonl", "selector": call, "analyze": true, "verbose": true}),
            &[
                "explain",
                "agent.jsonl",
                call,
                "--analyze",
                "--verbose",
                "--format",
                "json",
            ],
        ),
        (
            "pact_diff",
            json!({"session": "agent.jsonl", "a": "@t-2", "b": "@t0"}),
            &["diff", "agent.jsonl", "@t-2", "@t0", "--format", "json"],
        ),
        (
            "pact_diff",
            json!({"session": "agent.jsonl", "other": "agent.jsonl"}),
            &["diff", "agent.jsonl", "agent.jsonl", "--format", "json"],
        ),
        (
            "pact_diff",
            json!({"session": "agent.jsonl", "a": "@t0", "b": "c1", "selector": ".cb", "moves": true,
                "content": "unified", "context_lines": 0}),
            &[
                "diff",
                "agent.jsonl",
                "@t0",
                "c1",
                ".cb",
                "--moves",
                "--content",
                "unified",
                "--context-lines",
                "0",
                "--format",
                "json",
            ],
        ),
    ] {
        let (code, out, err) = scratch.command(command);
        assert_eq!(code, 0, "{command:?}: {err}");
        // The notes of a command are a second block.
        let said = Some(err).filter(|err| !err.is_empty());
        let expected: Vec<String> = std::iter::once(out.trim_end().to_owned())
            .chain(said)
            .collect();
        // Twice: what is cached between calls does not change the answers.
        for _ in 0..2 {
            let answer = client.call(tool, arguments.clone());
            assert_eq!(
                timeless(answer),
                timeless((false, expected.clone())),
                "{command:?}"
            );
        }
    }
    assert_eq!(client.end().0, 0);
}

/// An answer with every time as 0: those of `--analyze` are never the same twice.
fn timeless((failed, texts): (bool, Vec<String>)) -> (bool, Vec<String>) {
    let time = regex::Regex::new(r#""time_ns":\d+"#).expect("a pattern");
    let without = |text: &String| time.replace_all(text, r#""time_ns":0"#).into_owned();
    (failed, texts.iter().map(without).collect())
}

#[test]
fn errors_are_those_of_the_command_line() {
    let scratch = Scratch::new("errors");
    fs::create_dir(scratch.path("root/two")).expect("a directory");
    for copy in ["root/two/a.jsonl", "root/two/b.jsonl"] {
        fs::copy(scratch.path("root/agent.jsonl"), scratch.path(copy)).expect("a copy");
    }
    let mut client = scratch.client();
    let select = |selector: &str| json!({"session": "agent.jsonl", "selector": selector});
    for (tool, arguments, command) in [
        (
            "pact_select",
            select("@t0 .cb[nope"),
            &["select", "agent.jsonl", "@t0 .cb[nope"][..],
        ),
        (
            "pact_select",
            select("@c99 .cb"),
            &["select", "agent.jsonl", "@c99 .cb"],
        ),
        (
            "pact_select",
            json!({"session": "none.jsonl", "selector": "@t0 .cb"}),
            &["select", "none.jsonl", "@t0 .cb"],
        ),
        (
            "pact_select",
            json!({"session": "broken.jsonl", "selector": "@t0 .cb"}),
            &["select", "broken.jsonl", "@t0 .cb"],
        ),
        (
            "pact_diff",
            json!({"session": "two", "a": "@t-1", "b": "@t0"}),
            &["diff", "two", "@t-1", "@t0"],
        ),
        (
            "pact_explain",
            json!({"selector": "@t0 .cb:nth("}),
            &["explain", "@t0 .cb:nth("],
        ),
        (
            "pact_diff",
            json!({"session": "agent.jsonl", "a": "@t0", "b": "yesterday"}),
            &["diff", "agent.jsonl", "@t0", "yesterday"],
        ),
        (
            "pact_diff",
            json!({"session": "agent.jsonl", "a": "@t0", "b": "@t-99"}),
            &["diff", "agent.jsonl", "@t0", "@t-99"],
        ),
    ] {
        let command = [command, &["--format", "json"]].concat();
        let (code, out, err) = scratch.command(&command);
        assert!(code != 0 && out.is_empty(), "{command:?}: {out}");
        let (failed, texts) = client.call(tool, arguments);
        assert!(failed, "{command:?}: {texts:?}");
        // Each says how it lists sessions.
        let err = err.replace(
            "`pactql sessions two` lists those in it",
            "`pact_list_sessions` lists what is in it",
        );
        assert_eq!(texts, [err.trim_end()], "{command:?}");
    }
    // A failed call is also reported on standard error, as text.
    let (code, errors) = client.end();
    assert_eq!(code, 0);
    let told = "pact_select: error[E_SELECTOR_INVALID]: ";
    assert!(errors.starts_with(told), "{errors}");
}

#[test]
fn unknown_arguments_of_a_tool_are_reported() {
    let scratch = Scratch::new("arguments");
    let mut client = scratch.client();
    for (tool, arguments, code, message) in [
        (
            "context_resolve",
            json!({}),
            "E_USAGE",
            "context_resolve needs the argument `cache`",
        ),
        (
            "context_inspect_cache",
            json!({"cach": "caches/good"}),
            "E_USAGE",
            "context_inspect_cache has no argument `cach`",
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t0 .cb", "edition": "v9"}),
            "E_VALUE",
            "`edition` must be one of v0.1, depth, canonical, not \"v9\"",
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t0 .cb", "query": "x"}),
            "E_USAGE",
            "`query` needs a budget",
        ),
        (
            "pact_select",
            json!({"session": "agent.jsonl", "selector": "@t-1..@t0 .cb", "format": "nodes"}),
            "E_VALUE",
            "a range has differences, not nodes",
        ),
        (
            "pact_explain",
            json!({"selector": "@t0 .cb", "analyze": true}),
            "E_USAGE",
            "`analyze` needs a session",
        ),
        (
            "pact_diff",
            json!({"session": "agent.jsonl", "a": "@t0"}),
            "E_USAGE",
            "a difference needs `a` and `b`, or `other` alone",
        ),
    ] {
        let error = client.error(tool, arguments.clone());
        assert_eq!(error["code"], code, "{tool} {arguments}");
        assert_eq!(error["message"], message, "{tool} {arguments}");
    }
    assert_eq!(client.end().0, 0);
}

#[test]
fn nothing_outside_of_the_root_is_read() {
    let scratch = Scratch::new("outside");
    let absolute = scratch.path("outside.jsonl").display().to_string();
    let inside = scratch.path("root/agent.jsonl").display().to_string();
    let mut names = vec![
        "../outside.jsonl".to_owned(),
        "many/../../outside.jsonl".to_owned(),
        "many/../agent.jsonl".to_owned(),
        "..".to_owned(),
        "/".to_owned(),
        String::new(),
        "a\0b".to_owned(),
        absolute,
        inside,
    ];
    let mut stores = vec!["/tmp/a.db".to_owned(), "many/../a.db".to_owned()];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        for (target, name) in [
            ("../outside.jsonl", "root/link.jsonl"),
            ("..", "root/up"),
            ("../../outside.jsonl", "root/many/2.jsonl"),
            ("../outside-cache", "root/cache-link"),
            ("agent.jsonl", "root/good-link.jsonl"),
            ("../outside.db", "root/link.db"),
        ] {
            symlink(target, scratch.path(name)).expect("a link");
        }
        for store in ["../outside.db", "wal.db"] {
            let made = scratch.command(&["import", "agent.jsonl", "-o", store]);
            assert_eq!(made.0, 0, "{made:?}");
        }
        // The newest commits of a store are in this file.
        symlink("../outside.jsonl", scratch.path("root/wal.db-wal")).expect("a link");
        names.extend(
            ["link.jsonl", "up/outside.jsonl", "up", "many", "cache-link"].map(String::from),
        );
        stores.extend(["../outside.db", "link.db", "up/outside.db", "wal.db"].map(String::from));
    }
    let mut client = scratch.client();
    for name in &names {
        for tool in SESSION_TOOLS {
            let error = client.error(tool, reading(name)(tool));
            assert_eq!(error["code"], "E_VALUE", "{tool} {name:?}");
            let message = error["message"].as_str().unwrap_or_default();
            assert!(
                message.ends_with("is not inside the directory served"),
                "{tool}: {message}"
            );
        }
        // A directory of links to outside is refused as a session and not listed as a cache.
        if name == "many" {
            continue;
        }
        for (tool, arguments) in [
            (
                "context_resolve",
                json!({"cache": name, "query": "x", "budget": 1}),
            ),
            ("context_inspect_cache", json!({"cache": name})),
            ("context_list_caches", json!({"root": name})),
        ] {
            let error = client.error(tool, arguments);
            assert_eq!(error["code"], "cache_missing", "{tool} {name:?}");
        }
    }
    #[cfg(unix)]
    {
        let good = reading("good-link.jsonl");
        let same = reading("agent.jsonl");
        let tool = "pact_select";
        let answer = client.answer(tool, good(tool));
        assert_eq!(answer, client.answer(tool, same(tool)));
        // Links are not listed as caches.
        let listed = client.answer("context_list_caches", json!({}));
        assert!(!listed.contains("cache-link"), "{listed}");
    }
    for store in &stores {
        let session = format!("{store}#agent");
        for (tool, arguments) in SESSION_TOOLS
            .map(|tool| (tool, reading(&session)(tool)))
            .into_iter()
            .chain([("pact_sessions", json!({"store": store}))])
        {
            let error = client.error(tool, arguments);
            let message = error["message"].as_str().unwrap_or_default();
            assert!(
                error["code"] == "E_VALUE"
                    && message.ends_with("is not inside the directory served"),
                "{tool} {store}: {error}"
            );
        }
    }
    // `-` is an ordinary name here: standard input belongs to the client.
    let error = client.error("pact_select", reading("-")("pact_select"));
    assert_eq!(error["code"], "E_MISSING");
    assert_eq!(client.end().0, 0);
}

/// A session of a store answers as on the command line, and as it is at the time of the call.
#[test]
fn sessions_of_stores_are_read() {
    let scratch = Scratch::new("stores");
    let make = |arguments: &[&str]| assert_eq!(scratch.command(arguments).0, 0, "{arguments:?}");
    make(&["import", "agent.jsonl", "chat.json", "-o", "sub.db"]);
    fs::create_dir(scratch.path("root/runs")).expect("a directory");
    make(&["store", "backup", "sub.db", "-o", "runs/agents.db"]);
    let mut client = scratch.client();
    let call = "@t0 .cb[kind='call']";
    let session = "runs/agents.db#agent";
    for (tool, arguments, command) in [
        (
            "pact_sessions",
            json!({"store": "sub.db"}),
            &["sessions", "sub.db", "--json"][..],
        ),
        (
            "pact_sessions",
            json!({"store": "runs/agents.db#a*"}),
            &["sessions", "runs/agents.db#a*", "--json"],
        ),
        (
            "pact_sessions",
            json!({"store": "sub.db#x*"}),
            &["sessions", "sub.db#x*", "--json"],
        ),
        (
            "pact_select",
            json!({"session": session, "selector": call}),
            &["select", session, call, "--format", "json"],
        ),
        (
            "pact_select",
            json!({"session": session, "selector": "@t0 #nothing"}),
            &["select", session, "@t0 #nothing", "--format", "json"],
        ),
        (
            "pact_explain",
            json!({"session": session, "selector": call, "analyze": true}),
            &["explain", session, call, "--analyze", "--format", "json"],
        ),
        (
            "pact_diff",
            json!({"session": session, "a": "@t-2", "b": "@t0"}),
            &["diff", session, "@t-2", "@t0", "--format", "json"],
        ),
    ] {
        let (code, out, err) = scratch.command(command);
        assert_eq!(code, 0, "{command:?}: {err}");
        let said = Some(err).filter(|err| !err.is_empty());
        let expected: Vec<String> = std::iter::once(out.trim_end().to_owned())
            .chain(said)
            .collect();
        for _ in 0..2 {
            let answer = client.call(tool, arguments.clone());
            assert_eq!(
                timeless(answer),
                timeless((false, expected.clone())),
                "{command:?}"
            );
        }
    }
    // A commit of another process is seen, and so is another file in the place of the store.
    let chat = json!({"session": "runs/agents.db#chat", "selector": "@t0 #new", "count": true});
    assert_eq!(client.call("pact_select", chat.clone()).1[0], "0");
    let node = "block { id=x, key=new }";
    make(&["edit", "add", "runs/agents.db#chat", "^ah", node]);
    make(&["edit", "commit", "runs/agents.db#chat"]);
    assert_eq!(client.answer("pact_select", chat.clone()), "1");
    make(&["store", "backup", "sub.db", "-o", "other.db"]);
    let moved = |from: &str, to: &str| {
        fs::rename(scratch.path(from), scratch.path(to)).expect("a file");
    };
    for ending in ["", "-wal", "-shm"] {
        let path = scratch.path(&format!("root/runs/agents.db{ending}"));
        assert!(fs::remove_file(path).is_ok() || !ending.is_empty());
    }
    moved("root/other.db", "root/runs/agents.db");
    assert_eq!(client.call("pact_select", chat).1[0], "0");
    for (session, code, message) in [
        ("sub.db", "E_USAGE", "is a store of 2 sessions"),
        ("sub.db#a*", "E_USAGE", "is a pattern, of 1 session"),
        ("sub.db#", "E_USAGE", "expected the name of a session"),
        ("sub.db#agnet", "E_SESSION_NOT_FOUND", "no session `agnet`"),
        ("none.db#a", "E_MISSING", "there is no store none.db"),
        ("postgres://h/d#a", "E_VALUE", "no database server"),
    ] {
        for tool in SESSION_TOOLS {
            let error = client.error(tool, reading(session)(tool));
            assert_eq!(error["code"], code, "{tool} {session}");
            let said = error["message"].as_str().unwrap_or_default();
            assert!(said.contains(message), "{tool} {session}: {said}");
        }
    }
    fs::write(scratch.path("root/text.db"), "no store").expect("a file");
    let error = client.error("pact_sessions", json!({"store": "text.db"}));
    assert_eq!(error["message"], "text.db is not a store of sessions");
    let error = client.error("pact_steps", json!({"session": "sub.db#none"}));
    let help = "`pact_sessions` lists the sessions of a store";
    assert_eq!(error["help"], help, "{error}");
    for (word, code) in [("agent.jsonl", "E_VALUE"), ("sub.db#", "E_USAGE")] {
        let error = client.error("pact_sessions", json!({"store": word}));
        assert_eq!(error["code"], code, "{word}");
    }
    assert_eq!(client.end().0, 0);
}

#[test]
fn a_session_that_changed_is_read_again() {
    let scratch = Scratch::new("changed");
    let mut client = scratch.client();
    let path = scratch.path("root/grows.jsonl");
    let text = fs::read_to_string(scratch.path("outside.jsonl")).expect("a session");
    let lines: Vec<&str> = text.lines().collect();
    for count in 1..=lines.len() {
        fs::write(&path, lines[..count].join("\n")).expect("a file");
        let (_, out, _) =
            scratch.command(&["select", "grows.jsonl", "@t0 .cb", "--format", "json"]);
        for _ in 0..2 {
            let answer = client.answer("pact_select", reading("grows.jsonl")("pact_select"));
            assert_eq!(answer, out.trim_end(), "{count} lines");
        }
    }
    // A file of a session in a directory.
    let many = reading("many");
    let before = client.answer("pact_select", many("pact_select"));
    fs::write(scratch.path("root/many/1.jsonl"), lines[0]).expect("a file");
    assert_ne!(before, client.answer("pact_select", many("pact_select")));
    fs::remove_file(&path).expect("a file");
    let error = client.error("pact_select", reading("grows.jsonl")("pact_select"));
    assert_eq!(error["code"], "E_MISSING");
    assert_eq!(client.end().0, 0);
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let scratch = Scratch::new("many");
    let mut client = scratch.client();
    let mut expected = BTreeMap::new();
    for round in 0..40_u64 {
        let (tool, arguments) = match round % 4 {
            0 => ("pact_select", reading("agent.jsonl")("pact_select")),
            1 => ("pact_diff", reading("many")("pact_diff")),
            2 => (
                "context_resolve",
                json!({"cache": "caches/good", "query": "deployment", "budget": 100}),
            ),
            _ => ("pact_select", reading("none.jsonl")("pact_select")),
        };
        let id = client.request("tools/call", json!({"name": tool, "arguments": arguments}));
        expected.insert(id, round % 4);
    }
    let mut by_kind: BTreeMap<u64, Value> = BTreeMap::new();
    while !expected.is_empty() {
        let answer = client.receive();
        let id = answer["id"].as_u64().expect("an id");
        let kind = expected.remove(&id).expect("one answer for each call");
        let result = answer["result"].clone();
        assert_eq!(result["isError"] == true, kind == 3);
        assert_eq!(
            by_kind.entry(kind).or_insert_with(|| result.clone()),
            &result
        );
    }
    // A cancelled call has no answer unless it came before; the next call has one.
    let arguments = reading("agent.jsonl")("pact_select");
    let call = json!({"name": "pact_select", "arguments": arguments});
    let cancelled = client.request("tools/call", call);
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}})
            .to_string(),
    );
    let next = client.request("ping", json!({}));
    while client.receive()["id"] != next {}
    // Calls that are running when the input ends are answered first; their number may vary.
    for _ in 0..4 {
        let arguments = reading("agent.jsonl")("pact_select");
        client.request(
            "tools/call",
            json!({"name": "pact_select", "arguments": arguments}),
        );
    }
    assert_eq!(client.end().0, 0);
}

#[test]
fn a_client_that_does_not_read_messages_is_answered() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("unread");
    let mut client = Client::spawn(&scratch.path("root")).greeted();
    // More than the buffer of a pipe.
    let selector = format!("@t0 {}", ".cb[nope".repeat(40));
    for _ in 0..300 {
        let arguments = json!({"session": "agent.jsonl", "selector": selector});
        assert_eq!(
            client.error("pact_select", arguments)["code"],
            "E_SELECTOR_INVALID"
        );
    }
    let good = reading("agent.jsonl")("pact_select");
    assert!(!client.call("pact_select", good).0);
    drop(client.input.take());
    let start = Instant::now();
    while client.server.try_wait().expect("a child").is_none() {
        assert!(start.elapsed() < PATIENCE, "the server does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_end_of_the_input_is_the_end() {
    let scratch = Scratch::new("end");
    let silent = Client::silent(&scratch.path("root"));
    assert_eq!(silent.end(), (0, String::new()));
    // A client that speaks another protocol.
    let mut other = Client::silent(&scratch.path("root"));
    other.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    let (code, errors) = other.end();
    assert_eq!(code, 5);
    assert!(
        errors.starts_with("error[E_INPUT]: the client did not begin"),
        "{errors}"
    );
    // A root that is not a directory.
    for (root, code, told) in [
        (
            "none",
            4,
            "error[E_MISSING]: none: no such file or directory\n",
        ),
        (
            "agent.jsonl",
            3,
            "error[E_VALUE]: agent.jsonl is not a directory\n",
        ),
    ] {
        let ran = scratch.command(&["context", "serve", "--root", root]);
        assert_eq!(ran, (code, String::new(), told.to_owned()));
    }
}
