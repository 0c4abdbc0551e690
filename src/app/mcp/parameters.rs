//! Arguments that several tools take.

use super::arguments::{Kind, Parameter};

pub(super) const AT: Parameter = Parameter::new(
    "at",
    Kind::Text,
    r#""@t-1""#,
    "One snapshot: @t0 is the newest, @t-2 two commits back, @c12 that of cycle 12.",
);

pub(super) const OVER: Parameter = Parameter::new(
    "over",
    Kind::Text,
    r#""@t-9..@t0""#,
    "A range of snapshots, such as \"@t-9..@t0\" or \"@history\" (all).",
);

pub(super) const WHERE: Parameter = Parameter::new(
    "where",
    Kind::Text,
    r#"".cb[kind=result]""#,
    "Only the nodes that a selector without a time matches, and what is below them, such as \
     \".cb[kind='result']\".",
);

pub(super) const WHERE_COUNTED: Parameter = Parameter::new(
    "where",
    Kind::Text,
    r#"".cb[kind=result]""#,
    "Count the changes of the nodes that a selector without a time matches. Default: blocks.",
);

pub(super) const AS: Parameter = Parameter::new(
    "as",
    Kind::Word(&["thread", "openai", "openai-responses", "anthropic"]),
    r#""anthropic""#,
    "The form of the requests. Default: that in which they were imported or sent.",
);

pub(super) const TOKENIZER: Parameter = Parameter::new(
    "tokenizer",
    Kind::Text,
    r#""o200k""#,
    "How tokens are counted: o200k, cl100k or bytes/4. Default: the one that fits the model.",
);

pub(super) const CACHE: Parameter = Parameter::new(
    "cache",
    Kind::Text,
    r#""caches/handbook""#,
    "The directory of the cache, relative to the one served.",
)
.required();

pub(super) const SESSION: Parameter = Parameter::new(
    "session",
    Kind::Text,
    r#""agent.jsonl""#,
    "The session: a path relative to the directory served, of a file or of a directory of \
     snapshots; or \"STORE#NAME\", a session of a store (a .db file).",
)
.required();

pub(super) const SELECTOR: Parameter = Parameter::new(
    "selector",
    Kind::Text,
    r#""@t0 .cb[kind=call]""#,
    "The selector.",
)
.required();

pub(super) const EDITION: Parameter = Parameter::new(
    "edition",
    Kind::Word(&["v0.1", "depth", "canonical"]),
    r#""canonical""#,
    "The edition the selector is written in. Default: canonical.",
);

pub(super) const MODES: &[&str] = &["unified", "jsonpatch", "tokens"];

pub(super) const CONTEXT_LINES: Parameter = Parameter::new(
    "context_lines",
    Kind::Count(0),
    r#"3"#,
    "Lines around each change of a unified diff. Default: 3.",
);

pub(super) const PLACE: &str = "A snapshot: @t0 is the newest, @t-2 two commits back, @c12 that of cycle 12, \
                     `working` the working state.";
