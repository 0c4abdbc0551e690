//! Commands, options and values that other tools have, and what they are called here: one table for each.

use super::options::Format;
use super::typed::Typed;
use super::words::{exists, in_quotes, is_file, is_selector, joined, quoted};
use crate::app::present::stores::Address;
use crate::app::present::{Failure, literal};
use crate::engine::Engine;
use crate::support::diag::nearest_at;
use clap::Command;

/// Commands of other tools, with the command line here; `{}` is the words that were typed. A word that reads
/// elsewhere never becomes a command that writes.
const COMMANDS: &[(&str, &str)] = &[
    (
        "query find get filter q jq eval run exec match where sel fetch ask read",
        "select {}",
    ),
    ("search rg ack", "grep {}"),
    (
        "cat view print open tree dump display less",
        "select {} \"*\" --format tree",
    ),
    ("ls list ids nodes dir", "select {} \"*\" --format table"),
    ("count wc", "select {} --count"),
    (
        "info stat summary size describe status summarize",
        "stats {}",
    ),
    ("cost costs price prices spend usage", "tokens {}"),
    ("history changes commits snapshots timeline", "log {}"),
    ("compare delta", "diff {}"),
    ("annotate trace track", "blame {}"),
    ("validate", "verify {}"),
    ("lint parse", "check {}"),
    ("plan analyze profile", "explain {}"),
    ("benchmark perf", "bench {}"),
    ("format normalize translate", "fmt {}"),
    ("load ingest convert", "import {}"),
    ("create init", "new {}"),
    ("append insert push put attach", "add {}"),
    ("edit set modify change patch", "update {}"),
    ("rm del drop expire", "remove {}"),
    ("mv relocate reorder", "move {}"),
    ("swap supersede", "replace {}"),
    ("squash", "compact {}"),
    ("seal", "commit {}"),
    ("reset revert undo rollback", "discard {}"),
    ("branch clone copy cp", "fork {}"),
    ("pin unpin", "help refs"),
    ("pins references", "refs {}"),
    ("calls requests", "attempts {}"),
    ("save write", "export {}"),
    ("messages chat prompt thread", "render {}"),
    ("serve server mcp", "context serve {}"),
    ("build resolve inspect", "context {word} {}"),
    ("completion", "completions {}"),
    ("manual", "man {}"),
    ("version", "--version"),
    ("help", "--help"),
];

/// Commands that only read: these are suggested for a word that is somewhat like them.
const READERS: &[&str] = &[
    "select",
    "explain",
    "sql",
    "check",
    "fmt",
    "diff",
    "log",
    "blame",
    "render",
    "verify",
    "stats",
    "show",
    "steps",
    "prefix",
    "tokens",
    "assert",
    "top",
    "unused",
    "duplicates",
    "grep",
    "bench",
    "sessions",
    "completions",
    "man",
];

/// How like a command that only reads a word must be, and how like one that may write: only one that was
/// evidently typed is suggested. `price` is not `prune`.
const LIKE_READER: f64 = 0.5;
const LIKE_WRITER: f64 = 0.75;

/// How like a known option an unknown one must be: one letter of four is wrong, or two of seven.
const MISTYPED: f64 = 0.7;

/// Options of other tools that are a part of a selector here, with the value that stands for a missing or
/// unknown one.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("limit n l head top max max-count take", "@limit={}", "10"),
    ("first", "@first", ""),
    ("page", "@p={}", "1"),
    ("unique uniq", "@unique", ""),
    ("order sort order-by sort-by", "@order={}", "turn:desc,pre"),
    ("mode", "@mode={}", "union"),
    ("role kind key id tag status", "[{name}={}]", "…"),
    ("type node-type", "[nodeType={}]", "…"),
    (
        "grep search contains text match pattern regex",
        "[content~{}]",
        "…",
    ),
    ("where filter", "[{}]", "…"),
    ("at time snapshot", "@{}", "t-1"),
    ("cycle", "@c{}", "1"),
    ("depth", ":depth({})", "1"),
];

/// Values of `--format` that other tools have: in `select`, and elsewhere.
const FORMATS: &[(&str, &str, &str)] = &[
    (
        "text plain pretty human",
        "`--format table` is for people",
        "did you mean `text`?",
    ),
    ("table", "", "did you mean `text`?"),
    (
        "jsonl ndjson jsonlines full",
        "`--format nodes` prints one JSON object a line",
        "",
    ),
    (
        "csv tsv yaml xml markdown md",
        "`--format nodes` prints one JSON object a line, from which others can be made",
        "",
    ),
];

fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// A word where a command was expected.
pub(super) fn command(word: &str, typed: &Typed<'_>, program: &Command) -> Failure {
    let rest = typed.rest.get(1..).unwrap_or_default();
    if typed.names != ["help"] && !typed.names.is_empty() {
        return of_group(word, typed, program);
    }
    if is_file(word) || is_selector(word) {
        let failure = Failure::usage("the first word is a command, such as `select`");
        return failure.with_help(line("select {}", "", typed.rest));
    }
    let lower = word.to_lowercase();
    let failure = Failure::usage(format!("there is no command `{word}`"));
    if let [store] = rest
        && Address::of(store).is_some_and(Address::is_several)
        && has("ls list dir show info status tables session", &lower)
    {
        return failure.with_help(format!("pactql sessions {}", quoted(store)));
    }
    if let Some((_, here)) = COMMANDS.iter().find(|(words, _)| has(words, &lower)) {
        return failure.with_help(line(here, &lower, rest));
    }
    let known = || program.get_subcommands().map(Command::get_name);
    let near = nearest_at(LIKE_WRITER, &lower, known()).or_else(|| {
        let readers = known().filter(|name| READERS.contains(name));
        nearest_at(LIKE_READER, &lower, readers)
    });
    failure.with_help(match near {
        Some(near) => format!("did you mean `pactql {near}`?"),
        None => "`pactql --help` lists the commands".to_owned(),
    })
}

/// A word where a command of a group, such as `context`, was expected.
fn of_group(word: &str, typed: &Typed<'_>, program: &Command) -> Failure {
    let name = typed.name();
    let group = program.find_subcommand(&name);
    let known = group.into_iter().flat_map(Command::get_subcommands);
    let known: Vec<&str> = known.map(Command::get_name).collect();
    if known.is_empty() {
        let group = name.replace("help ", "");
        return Failure::usage(format!("`{group}` has no commands"))
            .with_help(format!("pactql help {group}"));
    }
    let failure = Failure::usage(format!("`{name}` has no command `{word}`"));
    match nearest_at(LIKE_READER, word, known.iter().copied()) {
        Some(near) => failure.with_help(format!("did you mean `{near}`?")),
        None => failure.with_help(format!("it has {}", known.join(", "))),
    }
}

/// A command line of the table with the words that were typed: the files first, then the selector in quotes,
/// then the options. A selector in the words takes the place of the table's.
fn line(here: &str, word: &str, words: &[String]) -> String {
    let selects = here.starts_with("select");
    let options = words
        .iter()
        .position(|word| word.starts_with('-') && word.len() > 1);
    let (plain, options) = words.split_at(options.unwrap_or(words.len()));
    // An id such as `cb:u3` is neither a file nor a selector.
    let is_id = |word: &str| selects && word.contains(':') && !is_file(word);
    let plain = plain.iter().map(|word| {
        if is_selector(word) || !is_id(word) {
            word.clone()
        } else {
            format!("[id={}]", literal(word))
        }
    });
    let (pieces, others): (Vec<String>, Vec<String>) = plain.partition(|word| is_selector(word));
    let mut typed = joined(&others);
    if typed.is_empty() && selects {
        typed = "SESSION".to_owned();
    }
    let selector = in_quotes(&pieces.join(" "));
    let here = here.replace("{word}", word);
    let mut line = match (pieces.is_empty(), here.contains("\"*\"")) {
        (true, true) => here.replace("{}", &typed),
        (true, false) if selects => here.replace("{}", &format!("{typed} \"*\"")),
        (true, false) => here.replace("{}", &typed),
        (false, true) => here.replace("{}", &typed).replace("\"*\"", &selector),
        (false, false) => here.replace("{}", format!("{typed} {selector}").trim()),
    };
    line = line.trim().to_owned();
    if !options.is_empty() {
        line.extend([" ", &joined(options)]);
    }
    format!("pactql {line}")
}

/// An option that the command does not have.
pub(super) fn option(option: &str, typed: &Typed<'_>) -> Failure {
    let no_option = |instead: &str| {
        Failure::usage(format!(
            "`{}` has no option `{option}`{instead}",
            typed.name()
        ))
    };
    if let Some((instead, help)) = other_option(option, typed) {
        return no_option(&format!("; {instead}")).with_help(help);
    }
    let known = typed.command.get_arguments();
    let known: Vec<&str> = known.filter_map(clap::Arg::get_long).collect();
    match nearest_at(MISTYPED, option.trim_start_matches('-'), known) {
        Some(near) if option.starts_with("--") => {
            no_option("").with_help(format!("did you mean `--{near}`?"))
        }
        _ => no_option("").with_help(format!("`{} --help` lists the options", typed.with(&[]))),
    }
}

/// What an option of another tool is here: what to say, and what to type.
fn other_option(option: &str, typed: &Typed<'_>) -> Option<(String, String)> {
    let at = typed.position(option)?;
    let (before, after) = typed.rest.split_at(at);
    let (first, after) = after.split_first()?;
    let own = first.split_once('=').map(|(_, value)| value);
    let next = after.first().filter(|word| !word.starts_with('-'));
    let value = own.or(next.map(String::as_str));
    // The words with the option replaced; `taken` says whether its value goes too.
    let with = |words: &[&str], taken: bool| {
        let skipped = usize::from(taken && own.is_none() && value.is_some());
        let words = words.iter().map(|word| (*word).to_owned());
        let words = before.iter().cloned().chain(words);
        words
            .chain(after.iter().skip(skipped).cloned())
            .collect::<Vec<String>>()
    };
    let name = option.trim_start_matches('-');
    if typed.has("yes") && has("y f force confirm", name) {
        return Some((
            "`--yes` confirms".to_owned(),
            typed.with(&with(&["--yes"], false)),
        ));
    }
    let is_format = |word: &str| word == "text" || Format::is_name(word);
    if typed.has("format") {
        let meant = value.filter(|value| is_format(value) && has("f o out output fmt", name));
        let words = match (meant, is_format(name)) {
            (Some(format), _) => Some(with(&["--format", format], true)),
            (None, true) => Some(with(&["--format", name], false)),
            (None, false) => None,
        };
        if let Some(words) = words {
            return Some((
                "the format is the value of `--format`".to_owned(),
                typed.with(&words),
            ));
        }
    }
    let is_session = |value: &str| name == "session" || is_file(value);
    if let Some(session) =
        value.filter(|value| has("session input in i s", name) && is_session(value))
    {
        let words = [vec![session.to_owned()], with(&[], true)].concat();
        return Some(("the session is an argument".to_owned(), typed.with(&words)));
    }
    if has("o out output", name) && !typed.names.is_empty() {
        let help = format!(
            "{} > {}",
            typed.with(&with(&[], true)),
            quoted(value.unwrap_or("FILE"))
        );
        return Some(("the result goes to standard output".to_owned(), help));
    }
    if !typed.has("edition") || typed.names == ["log"] {
        return None;
    }
    let (_, part, default) = OPTIONS.iter().find(|(names, ..)| has(names, name))?;
    let flag = !part.contains("{}");
    let value = value.filter(|value| !flag && !is_selector(value) && !exists(value));
    let part = part.replace("{name}", name);
    let part = part.replace("{}", &written(&part, value.unwrap_or(default)));
    let said = format!("`{part}` in the selector does that");
    let words = selector_with(with(&[], value.is_some()), &part);
    let help = words.map_or_else(
        || format!("write {part} in the selector"),
        |words| typed.with(&words),
    );
    Some((said, help))
}

/// The value of an option as a part of a selector has it.
fn written(part: &str, value: &str) -> String {
    if part.starts_with("@order") && !["pre", "post", "bfs", "path"].contains(&value) {
        return "turn:desc,pre".to_owned();
    }
    match part.as_bytes() {
        [b'[', b'{', ..] => value.trim_matches(['[', ']']).to_owned(),
        [b'[', ..] => literal(value),
        _ => value.trim_start_matches('@').to_owned(),
    }
}

/// The words with a part added to the selector among them, which the shell may have cut into words; nothing if
/// it would not compile. A time goes in front, a test to the last step, a control to the end.
fn selector_with(mut words: Vec<String>, part: &str) -> Option<Vec<String>> {
    let first = words.iter().position(|word| is_selector(word))?;
    let pieces = words[first..].iter().take_while(|word| is_selector(word));
    let last = first + pieces.count();
    let whole = words[first..last].join(" ");
    let is_time = part.starts_with("@t") || part.starts_with("@c");
    let (time, rest) = match whole.split_once(' ') {
        Some((time, rest)) if time.starts_with('@') => (time, rest),
        _ => ("", &*whole),
    };
    let with = match (part.starts_with(['[', ':']), rest.split_once(" @")) {
        _ if is_time => format!("{part} {rest}"),
        (true, Some((steps, controls))) => format!("{time} {steps}{part} @{controls}"),
        (true, None) => format!("{time} {rest}{part}"),
        (false, _) => format!("{time} {rest} {part}"),
    };
    let selector = with.trim().to_owned();
    Engine::new().check(&selector).ok()?;
    words.splice(first..last, [selector]);
    Some(words)
}

/// What to write for a value of another tool's option.
pub(super) fn value(argument: &str, value: &str, typed: &Typed<'_>) -> Option<String> {
    let lower = value.to_lowercase();
    match argument {
        "`--format`"
            if typed.has("as") && has("openai openai-responses anthropic thread", &lower) =>
        {
            let words = typed.rest.iter();
            let words = words.map(|word| word.replacen("--format", "--as", 1));
            Some(typed.with(&words.collect::<Vec<_>>()))
        }
        "`--format`" => {
            let (_, select, other) = FORMATS.iter().find(|(words, ..)| has(words, &lower))?;
            let help = if typed.names == ["select"] {
                select
            } else {
                other
            };
            Some((*help).to_owned()).filter(|help| !help.is_empty())
        }
        "`--edition`" => has("v1 0.1 v0 1 old", &lower).then(|| "did you mean `v0.1`?".to_owned()),
        _ => None,
    }
}
