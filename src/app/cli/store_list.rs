//! `pactql sessions`: the sessions of a store.

use super::command::{Run, print, say};
use super::options::{Color, Paint, TextFirst, Tint};
use super::output::{counted, printable};
use super::sessions::open_store;
use super::store_words::several;
use crate::app::present::stores::{Access, none_of, session_json};
use crate::app::present::{Exit, Failure};
use crate::store::{SessionInfo, TextIndex};
use crate::tree::timestamp::rfc3339_of_nanos;
use clap::Args;

/// List the sessions of a store, in byte order of their names.
///
/// One line each: the name, the number of snapshots, the cycle of the newest one, whether there is a
/// working state, when the newest snapshot was committed, the file it was imported from, and the session
/// it was forked from. No session is opened. A note says whether the store has a text index.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql sessions agents.db
  pactql sessions \"agents.db#support-*\" --json")]
pub(super) struct Sessions {
    /// The store, such as `agents.db`, or some of its sessions, such as `agents.db#support-*`.
    store: String,
    /// How the sessions are printed.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
    /// As `--format json`: one JSON object a line.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Exit with code 8 if there are none.
    #[arg(long)]
    fail_if_empty: bool,
}

impl Run for Sessions {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let address = several("sessions", &self.store)?;
        let store = open_store(address.store, Access::Read)?;
        let found = store.sessions(address.glob())?;
        if found.is_empty() {
            say(&format!("note: {}\n", none_of(address)));
            return Ok(Exit::of_empty(self.fail_if_empty));
        }
        if let Some(index) = store.text_index()? {
            say(&format!("note: {}\n", index_words(index)));
        }
        print(&if self.json || self.format == TextFirst::Json {
            found
                .iter()
                .map(|info| format!("{}\n", session_json(info)))
                .collect()
        } else {
            table(&found, color.for_results())
        })
    }
}

/// What is said of a text index.
fn index_words(index: TextIndex) -> String {
    match index.behind {
        0 => "the store has a text index, which is up to date".to_owned(),
        behind => format!(
            "the store has a text index; {} came later, and `pactql index-text` adds them",
            counted(behind, "unit")
        ),
    }
}

/// The sessions as a table. A column in which nothing is said is left out.
fn table(found: &[SessionInfo], paint: Paint) -> String {
    let header = [
        "name",
        "snapshots",
        "cycle",
        "working",
        "committed",
        "source",
        "parent",
    ];
    let text = |text: &Option<String>| text.as_deref().map(printable).unwrap_or_default();
    let rows: Vec<[String; 7]> = found
        .iter()
        .map(|info| {
            [
                printable(&info.name),
                info.snapshots.to_string(),
                info.cycle
                    .map(|cycle| format!("@c{cycle}"))
                    .unwrap_or_default(),
                if info.working { "yes" } else { "" }.to_owned(),
                info.committed_at_ns.map(seconds).unwrap_or_default(),
                text(&info.source),
                text(&info.parent),
            ]
        })
        .collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        let widest = cells.max().filter(|widest| *widest > 0)?;
        Some(widest.max(header[at].len()))
    };
    let widths: Vec<Option<usize>> = (0..header.len()).map(width).collect();
    let mut out = String::new();
    let header = header.map(str::to_owned);
    for (number, row) in std::iter::once(&header).chain(&rows).enumerate() {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let Some(width) = *width else { continue };
            let padded = match at {
                1 => format!("{cell:>width$}"),
                _ => format!("{cell:width$}"),
            };
            let tinted = if number == 0 || at == 0 {
                paint.tint(Tint::Name, &padded)
            } else {
                padded
            };
            line.push_str(&tinted);
            line.push_str("  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A time to the second.
fn seconds(nanos: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    let text = rfc3339_of_nanos(nanos - nanos.rem_euclid(SECOND));
    text.split_once('.')
        .map_or_else(|| text.clone(), |(whole, _)| format!("{whole}Z"))
}
