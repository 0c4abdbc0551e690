//! `pactql blame`: the history of one node.

use super::command::{Invocation, Run, print_as};
use super::options::{Paint, Tint};
use super::output;
use super::sessions;
use super::words::{is_selector, quoted};
use crate::app::present::{Exit, Failure};
use crate::engine::Engine;
use crate::history::{Blame as Life, BlameKind, Session, blame};
use crate::support::diag::nearest_at;
use clap::Args;
use std::fmt::Write as _;

/// When was a node added, changed and removed?
///
/// Prints one event a line, oldest first: the headers and fields that changed and, if they are
/// short, their values before and after. The working state comes last.
#[derive(Args, Debug)]
pub(super) struct Blame {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input.
    session: String,
    /// The id of the node.
    #[arg(allow_hyphen_values = true)]
    id: String,
}

impl Run for Blame {
    fn run(&self, with: &Invocation) -> Result<Exit, Failure> {
        let session = sessions::open(&self.session, with.limits)?;
        session.moment().fetch_all()?;
        let of = |id: &str| blame(&session.moment(), id);
        // As in a selector of the edition v0.1, an id may have a `#`.
        let plain = || self.id.strip_prefix('#').and_then(of);
        let life = of(&self.id).or_else(plain);
        let life = life.ok_or_else(|| self.unknown(&session))?;
        print_as(with.is_json_in_pipe(), &life, || text(&life, with.paint()))
    }
}

impl Blame {
    fn unknown(&self, session: &Session) -> Failure {
        let name = quoted(&self.session);
        let found = Engine::new().rows(session, "@* *").ok();
        let ids = found.iter().flat_map(|found| found.nodes());
        let ids: Vec<&str> = ids.take(MOST_IDS).map(|node| node.id()).collect();
        let failure = if is_selector(&self.id) {
            Failure::usage("`blame` takes the id of a node, not a selector")
        } else {
            let id = output::printable(&self.id);
            Failure::value(format!("no snapshot has a node with the id `{id}`"))
        };
        let ending = format!(":{}", self.id);
        let ends = ids.iter().find(|id| id.ends_with(&ending)).copied();
        match ends.or_else(|| nearest_at(LIKENESS, &self.id, ids)) {
            Some(near) => failure.with_help(format!("did you mean `{near}`?")),
            None => failure.with_help(format!("pactql select {name} \"@* *\" --format ids")),
        }
    }
}

const MOST_IDS: usize = 10_000;

/// How like an id a mistyped one is: short ids are alike by chance.
const LIKENESS: f64 = 0.6;

fn text(life: &Life, paint: Paint) -> String {
    let mut out = String::new();
    let widths = life.events.iter().map(|event| event.snapshot.len());
    let width = widths.max().unwrap_or(0);
    for event in &life.events {
        let place = paint.tint(Tint::Place, &format!("{:width$}", event.snapshot));
        let _ = write!(out, "{place}  ");
        match &event.kind {
            BlameKind::Appeared { parent } => {
                let mut words = "appeared".to_owned();
                if let Some(parent) = parent {
                    let _ = write!(words, " under {}", output::printable(parent));
                }
                let _ = writeln!(out, "{}", paint.tint(Tint::Added, &words));
            }
            BlameKind::Went => {
                let _ = writeln!(out, "{}", paint.tint(Tint::Removed, "went"));
            }
            BlameKind::Changed { fields, delta } => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|field| output::printable(field))
                    .collect();
                let words = format!("changed {}", fields.join(", "));
                let _ = writeln!(out, "{}", paint.tint(Tint::Changed, &words));
                output::values(delta, &mut out);
            }
        }
    }
    out
}
