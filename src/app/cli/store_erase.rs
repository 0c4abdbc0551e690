//! `pactql erase`: texts out of all history of a session.

use super::command::{Run, say};
use super::options::Color;
use super::output::printable;
use super::sessions::open_store;
use super::store_words::one;
use super::wait::Wait;
use super::words::{in_quotes, is_selector, joined, quoted};
use super::write::HowArgs;
use crate::app::present::stores::{Access, Address, intact};
use crate::app::present::{Exit, Failure, literal};
use crate::engine::Answer;
use crate::store::Store;
use crate::support::diag::Code;
use clap::Args;

/// Take the contents of nodes out of every snapshot of a session.
///
/// Their contents read `[erased]` from then on, and their custom attributes are gone; the calls of models,
/// which had the texts, go too. The chain of hashes says that this was done, and still verifies. Prints
/// the ids. Forks are sessions of their own: those that still have the texts are named on standard error.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql erase [OPTIONS] <SESSION> <ID>...
       pactql erase [OPTIONS] <SESSION> <SELECTOR>")]
#[command(after_help = "\
Examples:
  pactql erase agents.db#support-42 cb:u1 cb:u2
  pactql erase agents.db#support-42 \"@* .cb[content~'4111 1111']\"")]
pub(super) struct Erase {
    /// The session, such as `agents.db#support-42`.
    session: String,
    /// The ids of the nodes, such as `cb:u1`, or one selector of them, such as `@* .cb[role='user']`;
    /// `@*` looks in every snapshot.
    #[arg(value_name = "ID", required = true)]
    nodes: Vec<String>,
    /// Exit with code 8 if the selector finds nothing.
    #[arg(long)]
    fail_if_empty: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    how: HowArgs,
}

impl Run for Erase {
    fn run(&self, _: Color) -> Result<Exit, Failure> {
        if let [.., last] = &self.nodes[..]
            && Address::of(&self.session).is_none()
            && Address::of(last).is_some()
        {
            let nodes = [
                std::slice::from_ref(last),
                std::slice::from_ref(&self.session),
            ];
            let rest = &self.nodes[..self.nodes.len() - 1];
            let words = [nodes.concat(), rest.to_vec()].concat();
            return Err(Failure::usage("the session comes first, then the nodes")
                .with_help(format!("pactql erase {}", joined(&words))));
        }
        let (store, name) = one("erase", &self.session)?;
        let opened = open_store(store, Access::Write)?;
        // What another writer adds while this one waits is looked for too.
        let erased = self.wait.until_free(|| {
            let ids = self.ids(&opened, name)?;
            let others = if ids.is_empty() {
                Vec::new()
            } else {
                opened.erase(name, ids.iter().map(String::as_str))?
            };
            Ok((ids, others))
        });
        let (ids, others) = erased.map_err(|failure| self.explain(failure))?;
        if ids.is_empty() {
            say("note: the selector finds nothing, and nothing was erased\n");
        }
        for other in others {
            let other = printable(&other);
            say(&format!(
                "warning: the session {store}#{other} still has the texts\n"
            ));
        }
        self.how.print_ids(&ids)?;
        Ok(Exit::of_empty(self.fail_if_empty && ids.is_empty()))
    }
}

impl Erase {
    /// Adds to the failure for an id that no snapshot has how to find the nodes.
    fn explain(&self, failure: Failure) -> Failure {
        match &failure {
            Failure::Selector(error, _) if error.code() == Code::Placement => {}
            _ => return failure,
        }
        let session = quoted(&self.session);
        let text = self
            .nodes
            .iter()
            .find(|node| node.contains(char::is_whitespace));
        failure.advised(match text {
            Some(text) => {
                let selector = format!("@* .cb[content~{}]", literal(text));
                format!("pactql erase {session} {}", in_quotes(&selector))
            }
            None => format!("`pactql select {session} \"@* *\" --format ids` lists the ids"),
        })
    }

    /// The ids that were given, or those of the nodes that the selector finds.
    fn ids(&self, store: &Store, name: &str) -> Result<Vec<String>, Failure> {
        match &self.nodes[..] {
            [selector] if is_selector(selector) => self.found(store, name, selector),
            ids => match ids.iter().find(|id| is_selector(id)) {
                Some(selector) => {
                    let message = format!("expected the ids of nodes, found `{selector}`");
                    Err(Failure::usage(message).with_help(
                        "a selector is one argument, in quotes, and takes no ids beside it",
                    ))
                }
                None => Ok(ids.to_vec()),
            },
        }
    }

    /// The ids of the nodes that a selector finds, each once.
    fn found(&self, store: &Store, name: &str, selector: &str) -> Result<Vec<String>, Failure> {
        let session = store.session(name)?;
        let answer = self.how.edition.engine().select(&session, selector)?;
        let Answer::Rows(rows) = &answer else {
            return Err(Failure::value("a range has differences, not nodes")
                .with_help("`@*` finds the nodes of every snapshot"));
        };
        let mut ids: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for id in rows.ids() {
            if seen.insert(id.to_owned()) {
                ids.push(id.to_owned());
            }
        }
        intact(&session)?;
        Ok(ids)
    }
}
