//! `pactql log`: what each snapshot brought.

use super::options::{Color, EditionName, Limits, Paint, TextOrJson, Tint};
use super::{output, sessions};
use crate::engine::{Log as Entries, LogEntry};
use crate::present::{Exit, Failure};
use clap::Args;
use std::fmt::Write as _;
use std::io::Write as _;

/// How many signs the longest bar has.
const BAR: usize = 40;

/// List the committed snapshots, newest first, with what each added, removed and changed.
///
/// The nodes counted are a selector's matches, all nodes unless one is given. Beside the counts
/// stands a bar, as long as the change is large among those listed: `+` for what came, `-` for
/// what went, `~` for what changed. Of the oldest snapshot everything counts as added.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql log session.jsonl
  pactql log session.jsonl \".cb[kind='result']\"
  pactql log session.jsonl \"^sys .cb\" --format json")]
pub(super) struct Log {
    /// The session: a file, a directory, or `-`.
    session: String,
    /// Which nodes to count, as a selector without a time.
    #[arg(default_value = "*")]
    selector: String,
    /// Text or JSON.
    #[arg(long, value_enum, default_value_t)]
    format: TextOrJson,
    #[command(flatten)]
    edition: EditionName,
    #[command(flatten)]
    limits: Limits,
}

impl Log {
    /// Whether errors are asked for as JSON.
    pub(super) fn json_errors(&self) -> bool {
        self.format == TextOrJson::Json
    }

    /// Runs the command.
    pub(super) fn run(self, color: Color) -> Result<Exit, Failure> {
        let engine = self.edition.engine();
        let session = sessions::open(&self.session, &self.limits)?;
        let log = engine.log(&session, &self.selector)?;
        let text = if self.format.is_json() {
            output::json_line(&log)?
        } else {
            text(&log, color.for_results())
        };
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    }
}

/// The snapshots in words, one a line.
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

/// Signs in proportion to the largest change; at least one for each kind of change there is.
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
