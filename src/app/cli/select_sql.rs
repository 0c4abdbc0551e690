//! `pactql select --via sql`: the database answers a selector by itself.

use super::answers::How;
use super::command::{print, say};
use super::options::Format;
use super::output::{counted, printable};
use super::sessions;
use crate::app::present::stores::{Access, Address, none_of, without_passwords};
use crate::app::present::{Exit, Failure};
use crate::store::SqlRow;
use clap::ValueEnum;
use serde_json::json;

/// Who answers a selector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Via {
    /// The engine, which opens the sessions.
    #[default]
    Engine,
    /// The database, by one statement; for comparison, and for stores too large to load.
    Sql,
}

/// Asks the sessions of a store. JSON has one object a row.
pub(super) fn select(
    how: &How,
    source: &str,
    selector: &str,
    fail_if_empty: bool,
) -> Result<Exit, Failure> {
    let Some(address) = Address::of(source) else {
        return Err(
            Failure::usage(format!("`--via sql` asks a store, and `{source}` is none"))
                .with_help("pactql import SESSION -o agents.db"),
        );
    };
    if !matches!(how.format, Format::Json | Format::Ids) {
        return Err(Failure::value("`--via sql` has ids, and no contents")
            .with_help("--format json or ids"));
    }
    let store = sessions::open_store(address.store, Access::Read)?;
    let prepared = how.engine.prepare(selector)?;
    for warning in prepared.warnings() {
        say(&warning.to_text(prepared.text(), how.color.for_errors()));
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
        if failed.is_some() || how.count {
            return;
        }
        let label = |session: &str| printable(&format!("{name}#{session}"));
        out.push_str(&match &row {
            _ if how.format == Format::Json => json!(row).to_string(),
            SqlRow::Node { session, id, .. } => format!("{}\t{id}", label(session)),
            SqlRow::Change {
                session,
                change,
                id,
                ..
            } => format!("{}\t{change}\t{id}", label(session)),
        });
        out.push('\n');
        if out.len() > 1 << 16 {
            failed = print(&std::mem::take(&mut out)).err();
        }
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    if how.count {
        out = format!("{found}\n");
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
    Ok(Exit::of_empty(found == 0 && fail_if_empty))
}
