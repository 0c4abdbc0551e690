//! `pactql prune`: the oldest snapshots of a store go.

use super::command::{Run, print, say};
use super::options::{Color, TextFirst};
use super::output::{counted, printable};
use super::sessions::open_store;
use super::store_words::several;
use super::words::quoted;
use crate::app::present::stores::{Access, Which, none_of};
use crate::app::present::{Exit, Failure};
use crate::store::{Pruned, Retention};
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;

/// Remove the oldest snapshots of the sessions of a store.
///
/// `--keep` leaves the newest N of each session, `--older-than` those that are younger; with both a
/// snapshot goes if neither keeps it. The newest snapshot of a session always stays. What stays answers as
/// before. `--dry-run` counts what would go. Commits of the runtime have limits of their own: `pactql
/// commit --prune`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql prune agents.db --keep 10 --dry-run
  pactql prune agents.db --older-than 30d
  pactql prune \"agents.db#support-*\" --keep 10 --older-than 12h --format json")]
pub(super) struct Prune {
    /// The store, such as `agents.db`, or some of its sessions, such as `agents.db#support-*`.
    store: String,
    /// Keep the newest N snapshots of each session, at least 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// Remove only snapshots that were committed longer ago: a number and a unit, of s, m, h, d or w,
    /// such as `30d`.
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Count what would go, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// How the numbers are printed.
    #[arg(long, value_enum, default_value_t)]
    format: TextFirst,
}

/// Reads `30d`.
fn age(text: &str) -> Result<Duration, String> {
    let read = || {
        let (at, unit) = text.char_indices().last()?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let count: u64 = text[..at].parse().ok()?;
        Some(Duration::from_secs(count.checked_mul(seconds)?))
    };
    read().ok_or_else(|| "expected an age such as 30d, 12h or 90m".to_owned())
}

impl Run for Prune {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        let address = several("prune", &self.store)?;
        if self.keep.is_none() && self.older_than.is_none() {
            return Err(
                Failure::usage("`prune` needs `--keep` or `--older-than`").with_help(format!(
                    "pactql prune {} --keep 10 --dry-run",
                    quoted(&self.store)
                )),
            );
        }
        let store = open_store(address.store, Access::Write)?;
        if let Which::One(name) = address.which {
            // Says which names are near.
            store.session(name)?;
        }
        let mut retention = Retention::default().sessions(address.glob());
        if let Some(newest) = self.keep {
            retention = retention.keep(newest);
        }
        if let Some(age) = self.older_than {
            retention = retention.older_than(age);
        }
        if self.dry_run {
            retention = retention.dry_run();
        }
        let pruned = store.prune(&retention)?;
        if pruned.snapshots == 0
            && address.is_several()
            && store.sessions(address.glob())?.is_empty()
        {
            say(&format!("note: {}\n", none_of(address)));
        }
        print(&if self.format == TextFirst::Json {
            self.json(&pruned)
        } else {
            self.text(&pruned)
        })
    }
}

impl Prune {
    fn json(&self, pruned: &Pruned) -> String {
        let sessions = pruned.sessions.iter();
        let sessions = sessions.map(|(name, count)| json!({"name": name, "snapshots": count}));
        let json = json!({
            "dry_run": self.dry_run,
            "sessions": sessions.collect::<Vec<_>>(),
            "snapshots": pruned.snapshots,
            "units": pruned.units,
            "bodies": pruned.bodies,
        });
        format!("{json}\n")
    }

    fn text(&self, pruned: &Pruned) -> String {
        if pruned.sessions.is_empty() {
            return "nothing to remove\n".to_owned();
        }
        let names = pruned.sessions.iter();
        let names: Vec<(String, u64)> = names.map(|(name, n)| (printable(name), *n)).collect();
        let width = names.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0);
        let mut text = String::new();
        for (name, count) in &names {
            let _ = writeln!(text, "{name:width$}  {}", counted(*count, "snapshot"));
        }
        let verb = if self.dry_run { "would go" } else { "went" };
        let _ = writeln!(
            text,
            "{} of {} {verb}, with {} and {} that nothing else has",
            counted(pruned.snapshots, "snapshot"),
            counted(pruned.sessions.len() as u64, "session"),
            counted(pruned.units, "unit"),
            match pruned.bodies {
                1 => "1 content".to_owned(),
                more => format!("{more} contents"),
            },
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::age;
    use std::time::Duration;

    #[test]
    fn ages() {
        for (text, seconds) in [
            ("90s", 90),
            ("2m", 120),
            ("1h", 3600),
            ("30d", 2_592_000),
            ("1w", 604_800),
        ] {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "-1d",
            "1.5d",
            "30 days",
            "99999999999999999999d",
            "18446744073709551615w",
            "1ä",
        ] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
