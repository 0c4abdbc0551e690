//! Options that many commands share.

use crate::engine::Engine;
use crate::history::{ContentMode, ContentOptions, Material, RangeOptions};
use crate::inspect::Tokenizer;
use crate::query::ir::Edition;
use crate::render::Provider;
use crate::support::diag;
pub(super) use crate::support::table::{Paint, RowOrder, Tint};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, ColorChoice, ValueEnum};
use std::io::IsTerminal;

/// Whether output to a stream is coloured: by default on a terminal, unless NO_COLOR is set or TERM is `dumb`.
pub(super) fn is_colored(color: ColorChoice, stream: &impl IsTerminal) -> bool {
    let no_color = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match color {
        ColorChoice::Auto => stream.is_terminal() && !is_dumb() && !no_color(),
        ColorChoice::Always => true,
        ColorChoice::Never => false,
    }
}

pub(super) fn error_colors(color: ColorChoice) -> diag::ColorChoice {
    if is_colored(color, &std::io::stderr()) {
        diag::ColorChoice::Always
    } else {
        diag::ColorChoice::Never
    }
}

/// The columns of the terminal that results go to; `None` if they go elsewhere.
pub(super) fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width.0))
}

/// Whether the terminal says that it has neither colours nor a cursor to move.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// The options of a command that prints a table with these columns. The first one of `--by` has the name of the group.
pub(super) fn rows<const N: usize>(columns: [&'static str; N]) -> [Arg; 3] {
    let number = Arg::new("number").short('n').value_name("N");
    let number = number.value_parser(clap::value_parser!(usize));
    let sort = Arg::new("sort").long("sort").value_name("COLUMN");
    let sort = sort.value_parser(columns);
    let reverse = Arg::new("reverse").long("reverse");
    let all = [
        number.help("Only the first N rows"),
        sort.help("Sort by a column: numbers from the largest, words from the first"),
        reverse
            .action(ArgAction::SetTrue)
            .help("Reverse the order of the rows"),
    ];
    all.map(|arg| arg.conflicts_with("json").help_heading("Rows"))
}

/// What `--by` groups by: the title of the first column.
const GROUPS: [&str; 13] = [
    "day", "month", "model", "project", "session", "agent", "region", "role", "kind", "turn",
    "tool", "key", "block",
];

/// The rows that the options of [`rows`] ask for, of whichever command was typed.
pub(super) fn order(matches: &ArgMatches) -> clap::error::Result<RowOrder> {
    if let Some((_, below)) = matches.subcommand() {
        return order(below);
    }
    // A name is needed as long as the program runs.
    let leak = |name: &String| &*Box::leak(name.clone().into_boxed_str());
    let sort: Option<&String> = matches.try_get_one("sort").ok().flatten();
    let reverse = matches.try_get_one("reverse").ok().flatten();
    let group = matches.try_get_raw("by").ok().flatten();
    let group = group.and_then(|mut group| group.next()?.to_str());
    if let (Some(sort), Some(group)) = (sort, group)
        && GROUPS.contains(&&**sort)
        && sort != group
    {
        let message = format!(
            "the rows are by {group}, and have no column `{sort}`; `--by {sort}` makes them by {sort}"
        );
        return Err(clap::Error::raw(ErrorKind::ValueValidation, message));
    }
    Ok(RowOrder {
        by: sort.map(leak),
        is_reversed: reverse.copied().unwrap_or_default(),
        most: matches.try_get_one("number").ok().flatten().copied(),
    })
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PrintAs {
    /// Text for people.
    Text,
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
    /// Markdown.
    Markdown,
    /// JSON with indents.
    Pretty,
}

impl PrintAs {
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Reads the names of a list: its values, and what each is called.
pub(super) fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|value| name(*value)));
    names.try_map(move |typed| {
        let mut all = all.iter().copied();
        all.find(|value| name(*value) == typed)
            .ok_or("no such name")
    })
}

/// A number with the unit that ends it, times what the unit is.
pub(super) fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let mut units = units.iter();
    let (_, factor) = units.find(|(unit, _)| *unit == &text[digits.len()..])?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let count = scaled(
        &text.to_uppercase(),
        &[("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)],
    );
    count.ok_or_else(|| "expected a number of bytes, such as 500M".to_owned())
}

/// The edition of the selectors.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct EditionArgs {
    /// The edition that the selectors are written in.
    #[arg(long, default_value = "canonical", value_parser = named(&Edition::ALL, Edition::as_str))]
    pub(super) edition: Edition,
}

impl EditionArgs {
    pub(super) fn engine(self) -> Engine {
        let engine = Engine::builder().edition(self.edition);
        engine.cached_texts(SELECTORS).build()
    }
}

/// A command names a few selectors; room for thousands takes longer to make than a small answer.
const SELECTORS: usize = 64;

/// The form of requests.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct FormArgs {
    /// The form of the requests [default: that in which they were imported or sent].
    #[arg(long = "as", value_name = "FORM", value_parser = named(&Provider::ALL, Provider::name))]
    pub(super) provider: Option<Provider>,
}

/// How tokens are counted.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct TokenizerArgs {
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    pub(super) tokenizer: Option<Tokenizer>,
}

/// Reads the name of a tokenizer; not all names are listed.
fn tokenizer(name: &str) -> Result<Tokenizer, String> {
    name.parse().map_err(|_| {
        let names: Vec<&str> = Tokenizer::ALL.iter().map(|known| known.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// What to show of a range; selectors without a range ignore it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Ranges")]
pub(super) struct RangeArgs {
    /// Also show the differences of changed contents, from older to newer.
    #[arg(long)]
    include_content: bool,
    /// How to show the differences of contents.
    #[arg(long, value_name = "MODE", default_value = "unified", value_parser = named(&ContentMode::ALL, ContentMode::name))]
    content_mode: ContentMode,
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
        let content = ContentOptions::default().mode(self.content_mode);
        let content = content.context_lines(self.context_lines);
        let most = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        RangeOptions {
            content: self.include_content.then_some(content),
            materialize: (self.materialize.iter())
                .filter_map(|name| Material::parse(name))
                .collect(),
            max_snapshots: self.max_snapshots.map(most),
            max_changes: self.max_changes,
            stats: self.stats,
        }
    }
}
