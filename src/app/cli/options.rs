//! Options that many commands share.

use crate::engine::Engine;
use crate::history::{ContentMode, ContentOptions, Material, RangeOptions};
use crate::query::ir::Edition;
use crate::support::diag::ColorChoice;
pub(super) use crate::support::table::{Paint, Tint};
use clap::{Args, ValueEnum};
use std::io::IsTerminal;

/// When to colour the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Whether output to a stream is coloured.
    fn on(self, stream: &impl IsTerminal) -> bool {
        match self {
            Self::Auto => {
                stream.is_terminal()
                    && !is_dumb()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
            Self::Always => true,
            Self::Never => false,
        }
    }

    /// Whether results on standard output are coloured.
    pub(super) fn for_results(self) -> Paint {
        Paint::new(self.on(&std::io::stdout()))
    }

    /// Whether messages on standard error are coloured.
    pub(super) fn for_errors(self) -> ColorChoice {
        if self.on(&std::io::stderr()) {
            ColorChoice::Always
        } else {
            ColorChoice::Never
        }
    }
}

/// Whether the terminal says that it has neither colours nor a cursor to move.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table with content previews on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// JSON, for errors on standard error too.
    Json,
    /// One id a line.
    Ids,
    /// One JSON object a line: the node without children, with `parent_id`, `depth`, `snapshot`.
    Nodes,
    /// A table with content previews.
    Table,
    /// The nodes found as an outline below their ancestors.
    Tree,
}

impl Format {
    /// Whether a word is the name of a format; `auto` names none.
    pub(super) fn is_name(word: &str) -> bool {
        <Self as ValueEnum>::from_str(word, false).is_ok_and(|format| format != Self::Auto)
    }

    /// The format to use: `auto` resolved.
    pub(super) fn resolve(self) -> Self {
        match self {
            Self::Auto if std::io::stdout().is_terminal() => Self::Table,
            Self::Auto => Self::Json,
            other => other,
        }
    }
}

/// Text or JSON; JSON unless the output is a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TextOrJson {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text.
    Text,
    /// JSON, for errors on standard error too.
    Json,
}

/// Text or JSON; text by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TextFirst {
    /// Text.
    #[default]
    Auto,
    /// Text.
    Text,
    /// JSON, for errors on standard error too.
    Json,
}

impl TextOrJson {
    /// Whether to print JSON.
    pub(super) fn is_json(self) -> bool {
        match self {
            Self::Auto => !std::io::stdout().is_terminal(),
            Self::Text => false,
            Self::Json => true,
        }
    }
}

/// The format of messages, for commands whose result has one format only.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Messages {
    /// How errors and reports on standard error are printed.
    #[arg(long, value_enum, default_value_t)]
    format: MessageFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum MessageFormat {
    /// Text.
    #[default]
    Auto,
    /// JSON.
    Json,
}

impl Messages {
    /// Whether messages are JSON.
    pub(super) fn json(self) -> bool {
        self.format == MessageFormat::Json
    }
}

/// The largest input that is read.
#[derive(Args, Clone, Debug)]
pub(super) struct Limits {
    /// Refuse inputs of more than this many bytes after unpacking. K, M and G are factors of 1024,
    /// 1024² and 1024³.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes, global = true)]
    max_input: u64,
}

impl Limits {
    /// The same for the library.
    pub(super) fn source(&self) -> crate::tree::Limits {
        crate::tree::Limits {
            max_input: self.max_input,
        }
    }
}

/// Parses a number of bytes with an optional unit.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1_u64),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(unit))
        .ok_or_else(|| "expected a number of bytes, such as 500M".to_owned())
}

/// The edition of the selectors.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct EditionName {
    /// The edition the selectors are written in.
    #[arg(long, value_enum, default_value_t)]
    edition: EditionWord,
}

/// Editions by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum EditionWord {
    /// Chains, unions, ranges; `#x` is an id, and no time means @t0.
    #[value(name = "v0.1")]
    V01,
    /// Depth selectors and groups; no time means the working state.
    Depth,
    /// Everything; `#x` is a key.
    #[default]
    Canonical,
}

impl EditionName {
    /// An engine for this edition.
    pub(super) fn engine(self) -> Engine {
        Engine::builder().edition(self.edition()).build()
    }

    /// The edition.
    pub(super) fn edition(self) -> Edition {
        self.edition.into()
    }
}

impl From<EditionWord> for Edition {
    fn from(word: EditionWord) -> Self {
        match word {
            EditionWord::V01 => Self::V01,
            EditionWord::Depth => Self::Depth,
            EditionWord::Canonical => Self::Canonical,
        }
    }
}

/// Ways to show the difference of two contents, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ContentModeName {
    /// Lines, as `diff -u` prints them.
    #[default]
    Unified,
    /// A JSON Patch (RFC 6902) if both contents are JSON.
    Jsonpatch,
    /// Words.
    Tokens,
}

impl From<ContentModeName> for ContentMode {
    fn from(name: ContentModeName) -> Self {
        match name {
            ContentModeName::Unified => Self::Unified,
            ContentModeName::Jsonpatch => Self::JsonPatch,
            ContentModeName::Tokens => Self::Tokens,
        }
    }
}

/// What to show of a range; selectors without a range ignore it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Ranges")]
pub(super) struct RangeArgs {
    /// Also show the differences of changed contents, from older to newer.
    #[arg(long)]
    include_content: bool,
    /// How to show the differences of contents.
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    content_mode: ContentModeName,
    /// Lines around each change of a unified diff.
    #[arg(long, value_name = "N", default_value_t = 3)]
    context_lines: usize,
    /// Also show these fields of each changed node, before and after.
    #[arg(long, value_name = "FIELD", value_delimiter = ',', value_parser = ["content", "mime", "encoding", "content_hash"])]
    materialize: Vec<String>,
    /// Take only the newest N snapshots of the range.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_snapshots: Option<u64>,
    /// Show at most N changes of each pair: added nodes first, then removed, then changed.
    #[arg(long, value_name = "N", visible_alias = "max-changes-per-snapshot")]
    max_changes: Option<usize>,
    /// Also count the changes of each pair, including those not shown.
    #[arg(long)]
    stats: bool,
}

impl RangeArgs {
    /// Whether any of them is given that changes what is shown.
    pub(super) fn are_given(&self) -> bool {
        self.include_content
            || self.stats
            || !self.materialize.is_empty()
            || self.max_snapshots.is_some()
            || self.max_changes.is_some()
    }

    /// The same for the library.
    pub(super) fn options(&self) -> RangeOptions {
        let content = ContentOptions {
            mode: self.content_mode.into(),
            context_lines: self.context_lines,
            ..ContentOptions::default()
        };
        let most = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        RangeOptions {
            content: self.include_content.then_some(content),
            materialize: self
                .materialize
                .iter()
                .filter_map(|name| Material::named(name))
                .collect(),
            max_snapshots: self.max_snapshots.map(most),
            max_changes: self.max_changes,
            stats: self.stats,
        }
    }
}
