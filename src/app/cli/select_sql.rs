//! `pactql select --via sql`: the database answers a selector by itself.

use super::command::{print, say};
use super::options::{Color, Format};
use super::output::{counted, printable};
use super::sessions;
use crate::app::present::stores::{Access, Address, none_of, without_passwords};
use crate::app::present::{Exit, Failure};
use crate::engine::Engine;
use crate::store::SqlRow;
use clap::ValueEnum;
use serde_json::json;
use std::fmt::Write as _;

/// Who answers a selector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Via {
    /// The engine, which opens the sessions.
    #[default]
    Engine,
    /// The database, by one statement; for comparison, and for stores too large to load.
    Sql,
}

/// How the rows are printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) format: Format,
    pub(super) count: bool,
    pub(super) fail_if_empty: bool,
}

/// Asks the sessions of a store. JSON has one object a row.
pub(super) fn select(
    engine: &Engine,
    source: &str,
    selector: &str,
    rows: Rows,
    color: Color,
) -> Result<Exit, Failure> {
    let Some(address) = Address::of(source) else {
        return Err(
            Failure::usage(format!("`--via sql` asks a store, and `{source}` is none"))
                .with_help("pactql import SESSION -o agents.db"),
        );
    };
    if !matches!(rows.format, Format::Auto | Format::Json | Format::Ids) {
        return Err(Failure::value("`--via sql` has ids, and no contents")
            .with_help("--format json or ids"));
    }
    let store = sessions::open_store(address.store, Access::Read)?;
    let prepared = engine.prepare(selector)?;
    for warning in prepared.warnings() {
        say(&warning.to_text(prepared.text(), color.for_errors()));
    }
    let asked = if address.is_several() {
        store.count(address.glob())?
    } else {
        store.session(address.glob()).map(|_| 1)?
    };
    let selection = store.select_prepared(&prepared).sessions(address.glob());
    let name = without_passwords(address.store);
    let mut out = String::new();
    let mut found = 0_u64;
    let mut failed = None;
    selection.rows(|row| {
        found += 1;
        if failed.is_some() || rows.count {
            return;
        }
        append(&mut out, &row, rows.format, &name);
        if out.len() > 1 << 16 {
            failed = print(&std::mem::take(&mut out)).err();
        }
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    if rows.count {
        let _ = writeln!(out, "{found}");
    }
    print(&out)?;
    if found == 0 {
        say(&match asked {
            0 => format!("note: {}\n", none_of(address)),
            asked => format!(
                "note: nothing was found in {}\n",
                counted(asked as u64, "session")
            ),
        });
    }
    if found == 0 && rows.fail_if_empty {
        Ok(Exit::Empty)
    } else {
        Ok(Exit::Ok)
    }
}

fn append(out: &mut String, row: &SqlRow, format: Format, store: &str) {
    // Writing to a string cannot fail.
    let _ = match (format, row) {
        (Format::Ids, SqlRow::Node { session, id, .. }) => {
            writeln!(out, "{}\t{id}", printable(&format!("{store}#{session}")))
        }
        (
            Format::Ids,
            SqlRow::Change {
                session,
                change,
                id,
                ..
            },
        ) => writeln!(
            out,
            "{}\t{change}\t{id}",
            printable(&format!("{store}#{session}"))
        ),
        (
            _,
            SqlRow::Node {
                session,
                seq,
                snapshot,
                id,
                ord,
            },
        ) => writeln!(
            out,
            "{}",
            json!({"session": session, "seq": seq, "snapshot": snapshot, "id": id, "ord": ord})
        ),
        (
            _,
            SqlRow::Change {
                session,
                newer,
                older,
                change,
                id,
                ord,
            },
        ) => writeln!(
            out,
            "{}",
            json!({"session": session, "newer": newer, "older": older, "change": change,
                   "id": id, "ord": ord})
        ),
    };
}
