//! Commands, options and values that other tools have, and what they are called here.

use super::options::Format;
use super::typed::Typed;
use super::words::{exists, in_quotes, is_file, is_selector, joined, quoted};
use crate::app::present::Failure;
use crate::app::present::stores::Address;
use crate::support::diag::nearest;
use clap::Command;

/// What a command of another tool is here.
#[derive(Clone, Copy)]
enum Here {
    /// `select`, with the words that were typed.
    Select,
    /// `select` with a pattern.
    Search,
    /// `select` of everything, in a format.
    All(&'static str),
    /// `select --count`.
    Count,
    /// A command that takes the same words.
    Same(&'static str),
    /// A command or an option without words.
    Alone(&'static str),
}

/// Commands that people try, by what they are here.
const COMMANDS: &[(&[&str], Here)] = &[
    (
        &[
            "query", "find", "get", "filter", "q", "jq", "eval", "run", "exec", "match", "where",
            "sel", "fetch", "ask",
        ],
        Here::Select,
    ),
    (&["grep", "search", "rg"], Here::Search),
    (
        &[
            "cat", "view", "print", "open", "tree", "dump", "display", "less",
        ],
        Here::All("tree"),
    ),
    (&["ls", "list", "ids", "nodes", "dir"], Here::All("table")),
    (&["count", "wc"], Here::Count),
    (
        &["info", "stat", "summary", "size", "describe", "status"],
        Here::Same("stats"),
    ),
    (
        &[
            "history",
            "changes",
            "commits",
            "snapshots",
            "timeline",
            "steps",
        ],
        Here::Same("log"),
    ),
    (&["compare", "delta"], Here::Same("diff")),
    (&["annotate", "trace", "track"], Here::Same("blame")),
    (&["validate"], Here::Same("verify")),
    (&["lint", "parse"], Here::Same("check")),
    (&["plan", "analyze", "profile"], Here::Same("explain")),
    (&["benchmark", "perf"], Here::Same("bench")),
    (&["format", "normalize", "translate"], Here::Same("fmt")),
    (&["load", "read", "ingest", "convert"], Here::Same("import")),
    (&["create", "init"], Here::Same("new")),
    (
        &["append", "insert", "push", "put", "attach"],
        Here::Same("add"),
    ),
    (
        &["edit", "set", "modify", "change", "patch"],
        Here::Same("update"),
    ),
    (&["rm", "del", "drop", "expire"], Here::Same("remove")),
    (&["mv", "relocate", "reorder"], Here::Same("move")),
    (&["swap", "supersede"], Here::Same("replace")),
    (&["summarize", "squash"], Here::Same("compact")),
    (&["seal", "snapshot"], Here::Same("commit")),
    (
        &["reset", "revert", "undo", "rollback"],
        Here::Same("discard"),
    ),
    (&["branch", "clone", "copy", "cp"], Here::Same("fork")),
    (&["pin", "pins", "unpin", "references"], Here::Same("refs")),
    (&["calls", "requests"], Here::Same("attempts")),
    (&["save", "write"], Here::Same("export")),
    (
        &["messages", "chat", "prompt", "thread"],
        Here::Same("render"),
    ),
    (&["serve", "server", "mcp"], Here::Same("context serve")),
    (&["build", "resolve", "inspect"], Here::Same("context")),
    (&["completion"], Here::Same("completions")),
    (&["manual"], Here::Same("man")),
    (&["version"], Here::Alone("--version")),
    (&["usage"], Here::Alone("--help")),
];

/// What people try to see the sessions of a store with.
const STORES: [&str; 8] = [
    "ls", "list", "dir", "show", "info", "status", "tables", "session",
];

/// A word where a command was expected.
pub(super) fn command(word: &str, typed: &Typed<'_>, program: &Command) -> Failure {
    let rest = typed.rest.get(1..).unwrap_or_default();
    if typed.names != ["help"] && !typed.names.is_empty() {
        let group = typed.name();
        let failure = Failure::usage(format!("`{group}` has no command `{word}`"));
        let group = program.find_subcommand(&group);
        let known = group.into_iter().flat_map(Command::get_subcommands);
        let known: Vec<&str> = known.map(Command::get_name).collect();
        if known.is_empty() {
            let group = typed.name().replace("help ", "");
            return Failure::usage(format!("`{group}` has no commands"))
                .with_help(format!("pactql help {group}"));
        }
        return match nearest(word, known.iter().copied()) {
            Some(near) => failure.with_help(format!("did you mean `{near}`?")),
            None => failure.with_help(format!("it has {}", known.join(", "))),
        };
    }
    if is_file(word) || is_selector(word) {
        let failure = Failure::usage("the first word is a command, such as `select`");
        return failure.with_help(select(typed.rest, "*", ""));
    }
    let lower = word.to_lowercase();
    if let [store] = rest
        && STORES.contains(&&*lower)
        && Address::of(store).is_some_and(Address::is_several)
    {
        return Failure::usage(format!("there is no command `{word}`"))
            .with_help(format!("pactql sessions {}", quoted(store)));
    }
    let habit = COMMANDS.iter().find(|(words, _)| words.contains(&&*lower));
    let failure = Failure::usage(format!("there is no command `{word}`"));
    if let Some((_, here)) = habit {
        return failure.with_help(match *here {
            Here::Select => select(rest, "*", ""),
            Here::Search => search(rest),
            Here::All(format) => select(rest, "*", &format!(" --format {format}")),
            Here::Count => select(rest, "*", " --count"),
            Here::Same("context") => ["pactql context", &lower, &joined(rest)]
                .join(" ")
                .trim()
                .to_owned(),
            Here::Same("refs") => refs(&lower, rest),
            Here::Same("add") => add(rest),
            Here::Same(name) => ["pactql", name, &joined(rest)].join(" ").trim().to_owned(),
            Here::Alone(option) => format!("pactql {option}"),
        });
    }
    let known = program.get_subcommands().map(Command::get_name);
    match nearest(&lower, known) {
        Some(near) => failure.with_help(["did you mean `pactql ", near, "`?"].concat()),
        None => failure.with_help("`pactql --help` lists the commands"),
    }
}

/// The node that words are which the shell took apart: JSON, or a type with properties and a content.
pub(super) fn node(words: &[String]) -> String {
    if let Some(json) = words.first().filter(|word| word.starts_with("{\"")) {
        return json.clone();
    }
    let whole = words.join(" ");
    let is_type = |word: &str| word.contains(':') || matches!(word, "block" | "cb" | "mc");
    let word = whole.split([' ', '{']).next().unwrap_or_default();
    if !is_type(word) {
        return format!("block:text {}", serde_json::Value::from(whole));
    }
    let rest = &whole[word.len()..];
    let end = if rest.trim_start().starts_with('{') {
        rest.find('}').map_or(rest.len(), |at| at + 1)
    } else {
        0
    };
    let (head, content) = whole.split_at(word.len() + end);
    match content.trim() {
        "" => whole,
        quoted if quoted.starts_with('"') => whole.clone(),
        content => format!("{head} {}", serde_json::Value::from(content)),
    }
}

/// An `add` of words that may be a role and a text.
fn add(words: &[String]) -> String {
    let place = |region: &str, node: String| {
        let words = [words[0].clone(), region.to_owned(), node];
        format!("pactql add {}", joined(&words))
    };
    match words {
        _ if words.iter().any(|word| word.starts_with('-')) => {}
        [_, role, text @ ..]
            if matches!(&**role, "user" | "assistant" | "system") && !text.is_empty() =>
        {
            let text = serde_json::Value::from(text.join(" "));
            let region = if role == "system" { "^sys" } else { "^ah" };
            return place(region, format!("block:text {{ role={role} }} {text}"));
        }
        [_, position, text @ ..] if is_selector(position) && !text.is_empty() => {
            return place(position, node(text));
        }
        [_, text @ ..] if !text.is_empty() && !is_selector(&text[0]) => {
            return place("^ah", node(text));
        }
        _ => {}
    }
    format!("pactql add {}", joined(words)).trim().to_owned()
}

/// A `refs` of the words of `pin` or `unpin`.
fn refs(word: &str, words: &[String]) -> String {
    let line = match (word, words) {
        ("pin", [session]) => format!("{} add NAME SELECTOR", quoted(session)),
        ("pin", [session, selector]) => {
            format!("{} add NAME {}", quoted(session), quoted(selector))
        }
        ("pin", [session, rest @ ..]) => format!("{} add {}", quoted(session), joined(rest)),
        ("unpin", [session]) => format!("{} drop NAME", quoted(session)),
        ("unpin", [session, rest @ ..]) => format!("{} drop {}", quoted(session), joined(rest)),
        _ => joined(words),
    };
    format!("pactql refs {line}").trim().to_owned()
}

/// A `select` of these words: the files first, then the selector in quotes, then options.
fn select(words: &[String], all: &str, more: &str) -> String {
    let options = words.iter().position(|word| word.starts_with("--"));
    let (words, options) = words.split_at(options.unwrap_or(words.len()));
    let (pieces, files): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| is_selector(word));
    // An id such as `cb:u3` is neither a file nor a selector.
    let is_id = |word: &&&String| !is_file(word) && word.contains(':');
    let id = files.iter().find(is_id).map(|id| id.as_str());
    let files: Vec<&String> = files.into_iter().filter(|word| !is_id(&word)).collect();
    let files = match &files[..] {
        [] => "SESSION".to_owned(),
        files => joined(files.iter().copied()),
    };
    let pieces: Vec<&str> = pieces.into_iter().map(String::as_str).collect();
    let (selector, more) = match (&pieces[..], id) {
        ([], Some(id)) => (in_quotes(&format!("[id='{id}']")), " --format nodes"),
        ([], None) => (in_quotes(all), more),
        (pieces, _) => (in_quotes(&pieces.join(" ")), more),
    };
    let options = match options {
        [] => String::new(),
        options => format!(" {}", joined(options)),
    };
    format!("pactql select {files} {selector}{options}{more}")
}

/// A `select` by a pattern: the first word that is no file is the pattern.
fn search(words: &[String]) -> String {
    let is_pattern = |word: &&String| !exists(word) && !word.starts_with('-') && !is_file(word);
    let pattern = words.iter().find(is_pattern);
    let files: Vec<&String> = words.iter().filter(|word| is_file(word)).collect();
    let files = match &files[..] {
        [] => "SESSION".to_owned(),
        files => joined(files.iter().copied()),
    };
    let pattern = pattern.map_or("PATTERN", String::as_str);
    let selector = format!(".cb[content~{}]", crate::app::present::literal(pattern));
    format!("pactql select {files} {}", in_quotes(&selector))
}

/// An option of another tool: what to say, and what to type.
pub(super) fn option(option: &str, typed: &Typed<'_>) -> Option<(String, String)> {
    let at = typed.position(option)?;
    let (before, after) = typed.rest.split_at(at);
    let (first, after) = after.split_first()?;
    let own = first.split_once('=').map(|(_, value)| value);
    let next = after.first().filter(|word| !word.starts_with('-'));
    let value = own.or(next.map(|word| word.as_str()));
    // The words with the option replaced; `taken` says whether its value goes too.
    let with = |words: &[&str], taken: bool| {
        let after = if taken && own.is_none() && value.is_some() {
            &after[1..]
        } else {
            after
        };
        let words = words.iter().map(|word| (*word).to_owned());
        let words: Vec<String> = before
            .iter()
            .cloned()
            .chain(words)
            .chain(after.iter().cloned())
            .collect();
        typed.with(&words)
    };
    let name = option.trim_start_matches('-');
    let no_option =
        |instead: &str| format!("`{}` has no option `{option}`; {instead}", typed.name());
    if typed.has("yes") && matches!(name, "y" | "f" | "force" | "confirm") {
        return Some((no_option("`--yes` confirms"), with(&["--yes"], false)));
    }
    if is_format(name) && typed.has("format") {
        let help = with(&["--format", name], false);
        return Some((no_option("the format is the value of `--format`"), help));
    }
    if option == "-f" && typed.has("format") {
        let meant = match value {
            Some(value) if is_format(value) => with(&["--format"], false),
            Some(value) if typed.has("file") && exists(value) => with(&["--file"], false),
            _ if typed.has("file") => {
                "`--format FORMAT` chooses the output, `--file FILE` reads selectors".to_owned()
            }
            _ => "`--format FORMAT` chooses the output".to_owned(),
        };
        return Some((format!("`{}` has no option `-f`", typed.name()), meant));
    }
    if let Some(format) = value.filter(|value| is_format(value))
        && matches!(name, "o" | "out" | "output" | "fmt" | "out-format")
        && typed.has("format")
    {
        let help = with(&["--format", format], true);
        return Some((no_option("the format is the value of `--format`"), help));
    }
    if let Some(file) = value.filter(|value| is_session(name, value)) {
        let rest = &after[usize::from(own.is_none())..];
        let words = [&[file.to_owned()], before, rest].concat();
        return Some((no_option("the session is an argument"), typed.with(&words)));
    }
    if matches!(name, "o" | "out" | "output") && !typed.names.is_empty() {
        let file = value.unwrap_or("FILE");
        let help = format!("{} > {}", with(&[], true), quoted(file));
        return Some((no_option("the result goes to standard output"), help));
    }
    if !typed.has("edition") {
        return None;
    }
    let part = in_selector(name, value)?;
    let with_part = selector_with(before, after, value.filter(|_| own.is_none()), &part);
    let (instead, help) = said_in_selector(typed, &part, with_part, || with(&[], true));
    Some((no_option(&instead), help))
}

/// What to say where a part of a selector does what an option does elsewhere. `with_part` are the words with
/// the part, if there is a selector among them; `without` is the command without the option.
fn said_in_selector(
    typed: &Typed<'_>,
    part: &str,
    with_part: Option<Vec<String>>,
    without: impl Fn() -> String,
) -> (String, String) {
    let is_log = typed.names == ["log"];
    if is_log && part.starts_with('@') {
        let (instead, help) = of_log(part, without());
        return (instead.to_owned(), help);
    }
    let help = match with_part {
        Some(words) => typed.with(&words),
        None if is_log => format!("{} {}", without(), in_quotes(&format!("*{part}"))),
        None => format!("write {part} in the selector"),
    };
    (format!("`{part}` in the selector does that"), help)
}

/// Whether a word names a format; `text` is one of some commands.
fn is_format(word: &str) -> bool {
    word == "text" || Format::is_name(word)
}

/// Whether an option of another tool gives the session.
fn is_session(name: &str, value: &str) -> bool {
    name == "session" || (matches!(name, "input" | "in" | "i" | "s") && is_file(value))
}

/// What `log` does instead of a control or a time, and what to type; `line` has neither.
fn of_log(part: &str, line: String) -> (&'static str, String) {
    match part.strip_prefix("@limit=") {
        Some(number) => (
            "each line is one snapshot, the newest first",
            format!("{line} --format text | head -n {number}"),
        ),
        None => ("it lists all snapshots", line),
    }
}

/// The part of a selector that an option of another tool means.
fn in_selector(name: &str, value: Option<&str>) -> Option<String> {
    let number = value.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    let literal = |value: Option<&str>| crate::app::present::literal(value.unwrap_or("…"));
    Some(match name {
        "limit" | "n" | "l" | "head" | "top" | "max" | "max-count" | "take" => {
            format!("@limit={}", number.unwrap_or("10"))
        }
        "first" => "@first".to_owned(),
        "page" => format!("@p={}", number.unwrap_or("1")),
        "unique" | "uniq" => "@unique".to_owned(),
        "role" | "kind" | "key" | "id" | "tag" | "status" => format!("[{name}={}]", literal(value)),
        "type" | "node-type" => format!("[nodeType={}]", literal(value)),
        "grep" | "search" | "contains" | "text" | "match" | "pattern" | "regex" => {
            format!("[content~{}]", literal(value))
        }
        "at" | "time" | "snapshot" => {
            let time = value.unwrap_or("@t-1");
            format!("@{}", time.trim_start_matches('@'))
        }
        "cycle" => format!("@c{}", number.unwrap_or("1")),
        "order" | "sort" | "order-by" | "sort-by" => format!("@order={}", order(value)),
        "mode" => format!("@mode={}", value.unwrap_or("union")),
        "depth" => format!(":depth({})", value.unwrap_or("1")),
        "where" | "filter" => test(value),
        _ => return None,
    })
}

/// The order that is meant by a word; `pre`, which is that of the document, if none is known.
fn order(value: Option<&str>) -> &str {
    match value {
        Some(word @ ("pre" | "post" | "bfs" | "path")) => word,
        Some(word) if word.starts_with("turn:") => word,
        Some("time" | "newest" | "desc" | "recent" | "latest" | "turn") => "turn:desc,pre",
        Some("oldest" | "asc") => "turn:asc,pre",
        _ => "pre",
    }
}

/// The test that is meant by words such as `role=user`.
fn test(words: Option<&str>) -> String {
    let words = words.unwrap_or("…").trim_matches(['[', ']']);
    let operator = words.find(['=', '~', '<', '>', '!']);
    let Some((name, rest)) = operator.map(|at| words.split_at(at)) else {
        return format!("[{words}]");
    };
    let value = rest.trim_start_matches(['=', '~', '<', '>', '!', '^', '$', '*']);
    let sign = match &rest[..rest.len() - value.len()] {
        "==" => "=",
        sign => sign,
    };
    let quote = ["'", "\""]
        .iter()
        .any(|quote| value.trim().starts_with(quote));
    let value = if quote {
        value.trim().to_owned()
    } else {
        crate::app::present::literal(value.trim())
    };
    format!("[{}{sign}{value}]", name.trim())
}

/// The words around an option, with a part added to the selector among them. A time goes in front,
/// a test to the last step, a control to the end.
fn selector_with(
    before: &[String],
    after: &[String],
    taken: Option<&str>,
    part: &str,
) -> Option<Vec<String>> {
    let after = match taken {
        Some(_) => after.get(1..).unwrap_or_default(),
        None => after,
    };
    let mut words: Vec<String> = before.iter().chain(after).cloned().collect();
    // The shell may have cut it into words.
    let first = words.iter().position(|word| is_selector(word))?;
    let pieces = words[first..].iter().take_while(|word| is_selector(word));
    let last = first + pieces.count();
    let whole = words[first..last].join(" ");
    words.splice(first..last, [whole]);
    let selector = words.get_mut(first)?;
    let is_time = part.starts_with("@t") || part.starts_with("@c");
    let (time, rest) = match selector.split_once(' ') {
        Some((time, rest)) if time.starts_with('@') => (time, rest),
        _ => ("", &**selector),
    };
    let body = match (part.starts_with(['[', ':']), rest.split_once(" @")) {
        // Before the controls.
        (true, Some((steps, controls))) => format!("{steps}{part} @{controls}"),
        (true, None) => format!("{rest}{part}"),
        (false, _) if is_time => rest.to_owned(),
        (false, _) => format!("{rest} {part}"),
    };
    let time = if is_time { part } else { time };
    *selector = format!("{time} {body}").trim().to_owned();
    Some(words)
}

/// A value of another tool's option.
pub(super) fn value(argument: &str, value: &str, typed: &Typed<'_>) -> Option<String> {
    let lower = value.to_lowercase();
    let select = typed.names == ["select"];
    Some(match (argument, &*lower) {
        ("`--format`", "text" | "plain" | "pretty" | "human") if select => {
            "`--format table` is for people".to_owned()
        }
        ("`--format`", "jsonl" | "ndjson" | "jsonlines" | "full") if select => {
            "`--format nodes` prints one JSON object a line".to_owned()
        }
        ("`--format`", "table" | "pretty" | "plain" | "human") => "did you mean `text`?".to_owned(),
        ("`--format`", "csv" | "tsv" | "yaml" | "xml" | "markdown" | "md") if select => {
            "`--format nodes` prints one JSON object a line, from which others can be made"
                .to_owned()
        }
        ("`--format`", "openai" | "openai-responses" | "anthropic" | "thread")
            if typed.has("as") =>
        {
            let words = typed.rest.iter();
            let words = words.map(|word| word.replacen("--format", "--as", 1));
            typed.with(&words.collect::<Vec<_>>())
        }
        ("`--edition`", "v1" | "0.1" | "v0" | "1" | "old") => "did you mean `v0.1`?".to_owned(),
        _ => return None,
    })
}
