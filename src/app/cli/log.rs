//! `pactql log`: the changes of each snapshot.

use super::command::Run;
use super::options::{Color, EditionName, Paint, TextOrJson, Tint};
use super::sessions::SessionArgs;
use super::typed::options;
use super::words::{in_quotes, quoted};
use super::{operands, output};
use crate::app::present::stores::intact;
use crate::app::present::{Exit, Failure};
use crate::engine::{Log as Entries, LogEntry};
use crate::support::diag::{Code, Diagnostic, Error};
use clap::Args;
use std::fmt::Write as _;

/// The length of the longest bar, in signs.
const BAR: usize = 40;

/// What did each snapshot add, remove and change? Newest first.
///
/// Only the matches of the selector are counted. After the counts comes a bar whose length shows
/// the size of the change, relative to the largest one listed: `+` for added nodes, `-` for removed
/// and `~` for changed ones. In the oldest snapshot every node counts as added.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql log session.jsonl
  pactql log session.jsonl \".cb[kind='result']\"
  pactql log session.jsonl \"^sys .cb\" --format json")]
pub(super) struct Log {
    #[command(flatten)]
    session: SessionArgs,
    /// Which nodes to count: a selector without a time.
    #[arg(default_value = "*")]
    selector: String,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
    #[command(flatten)]
    edition: EditionName,
}

impl Run for Log {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        operands::check_pair("log", self.session.name(), &self.selector)?;
        self.check_selector()?;
        let session = self.session.open()?;
        let log = engine.log(&session, &self.selector)?;
        intact(&session)?;
        output::print_as(self.format.is_json(), &log, || {
            text(&log, color.for_results())
        })
    }
}

impl Log {
    /// Refuses a time, and a limit without anything to count.
    fn check_selector(&self) -> Result<(), Failure> {
        let mut words = self.selector.split_whitespace();
        let Some(first) = words.next().filter(|word| word.starts_with('@')) else {
            return Ok(());
        };
        let rest: Vec<&str> = words.collect();
        let is_time = first[1..].starts_with(['t', 'c', '*', 'h']);
        let line = format!("pactql log {}", quoted(self.session.name()));
        let options = options();
        let (message, here, help) = match (is_time, first.strip_prefix("@limit="), &rest[..]) {
            (true, _, []) => (LISTS_ALL, "this time", format!("{line}{options}")),
            (true, _, rest) => {
                let rest = in_quotes(&rest.join(" "));
                (LISTS_ALL, "this time", format!("{line} {rest}{options}"))
            }
            (false, Some(number), []) => (
                "each line of a log is one snapshot, the newest first",
                "limits the nodes of a selector, and there is none",
                format!("{line} --format text | head -n {number}"),
            ),
            _ => return Ok(()),
        };
        let start = self.selector.len() - self.selector.trim_start().len();
        let mistake = Diagnostic::error(Code::SelectorInvalid, message)
            .at(start..start + first.len(), here)
            .with_help(help);
        Err(Error::new(&self.selector, mistake).into())
    }
}

/// Why a log refuses a time.
const LISTS_ALL: &str = "`log` lists all snapshots and takes no time";

/// One line for each snapshot.
fn text(log: &Entries, paint: Paint) -> String {
    let entries = &log.snapshots;
    let width = |text: &dyn Fn(&LogEntry) -> String| {
        let lengths = entries.iter().map(|entry| text(entry).chars().count());
        lengths.max().unwrap_or(0)
    };
    let columns: [&dyn Fn(&LogEntry) -> String; 6] = [
        &|entry| entry.label.clone(),
        &|entry| format!("@c{}", entry.cycle),
        &|entry| entry.matches.to_string(),
        &|entry| format!("+{}", entry.added),
        &|entry| format!("-{}", entry.removed),
        &|entry| format!("~{}", entry.changed),
    ];
    let widths = columns.map(|column| width(column));
    let largest = entries.iter().map(size).max().unwrap_or(0);
    let mut out = String::new();
    for entry in entries {
        let mut line = String::new();
        for (at, (column, width)) in columns.iter().zip(widths).enumerate() {
            let cell = column(entry);
            let _ = match at {
                0 | 1 => write!(line, "{cell:width$}  "),
                2 => write!(line, "{cell:>width$} matches  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        line.push_str(&bar(entry, largest, paint));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn size(entry: &LogEntry) -> usize {
    entry.added + entry.removed + entry.changed
}

/// Signs in proportion to the largest change; at least one for each kind of change that occurs.
fn bar(entry: &LogEntry, largest: usize, paint: Paint) -> String {
    let mut bar = String::new();
    for (count, sign, tint) in [
        (entry.added, "+", Tint::Added),
        (entry.removed, "-", Tint::Removed),
        (entry.changed, "~", Tint::Changed),
    ] {
        let signs = if largest <= BAR {
            count
        } else {
            // Bounded by BAR, rounded up.
            ((count as u128 * BAR as u128).div_ceil(largest as u128)) as usize
        };
        bar.push_str(&paint.tint(tint, &sign.repeat(signs)));
    }
    bar
}
