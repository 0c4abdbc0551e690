//! Mutations, commits and references.

use std::sync::Arc;

use super::Context;
use super::node::{IntoNode, short_form};
use crate::history::{History, Position};
use crate::index::Snapshot;
use crate::query::ir::{Address, InsertionPoint};
use crate::runtime::{
    Commit, Destination, Insertion, NewNode, PreparedCommit, Reference, Refusal, Workspace, strings,
};
use crate::support::diag::{Code, Error};
use crate::tree::NodeClass;

impl Context {
    /// Adds a node, and all below it, where `position` says: a selector of its parent, or a position
    /// with an insertion point such as `(d0, end)`. A text is a JSON object or the short form
    /// `block:text { key='hero' } "content"`. Returns the id.
    ///
    /// ```
    /// use pactql::{Code, Context, NewNode};
    /// let mut context = Context::new();
    /// context.add("^ah", r#"block:text { key='hero', role=user } "Hello""#)?;
    /// let late = context.add("(d0, end)", NewNode::text("after the core").offset(1))?;
    /// assert_eq!(context.select("^ah > .cb:post")?.to_ids(), [&*late]);
    /// let refused = context.add("^root", NewNode::text("x")).unwrap_err();
    /// assert_eq!(refused.code(), Code::Region);
    /// # Ok::<(), pactql::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the selector; `E_PLACEMENT`, `E_SEALED`, `E_REGION`, `E_HEADER`, `E_DUPLICATE_ID`,
    /// `E_INPUT`. Nothing has changed then.
    pub fn add(&mut self, position: &str, node: impl IntoNode) -> Result<String, Error> {
        let node = self.node(node)?;
        let target = self.target(position)?;
        let added = self.workspace.add(&target, &node);
        if let Ok(id) = &added {
            self.workspace.note_added(id);
        }
        self.finish(position, added.map(|id| id.to_string()))
    }

    /// Gives the matched nodes other members; null takes one away. Returns the ids.
    ///
    /// Nodes made in this cycle may get everything but a new id, nodeType, offset, time or place;
    /// committed ones outside sealed cores another ttl, which counts from this cycle, or priority.
    ///
    /// # Errors
    /// Those of the selector; `E_SEALED`, `E_REGION`, `E_HEADER`, `E_INPUT`. Nothing has changed then.
    pub fn update(&mut self, selector: &str, fields: impl IntoNode) -> Result<Vec<String>, Error> {
        let fields = self.node(fields)?;
        let ids = self.ids(selector)?;
        let updated = self.workspace.update(&strs(&ids), &fields);
        self.finish(selector, updated.map(strings))
    }

    /// Removes the matched nodes with all below them. Returns the ids of the topmost ones.
    ///
    /// # Errors
    /// Those of the selector; `E_SEALED`, `E_REGION`, `E_PINNED`. Nothing has changed then.
    pub fn remove(&mut self, selector: &str) -> Result<Vec<String>, Error> {
        let ids = self.ids(selector)?;
        let removed = self.workspace.remove(&strs(&ids));
        self.finish(selector, removed.map(strings))
    }

    /// Moves the matched nodes with all below them, one after the other. Returns their ids: a
    /// committed node that changes its region is replaced by a successor with a new one.
    ///
    /// # Errors
    /// Those of the selectors; `E_PLACEMENT`, `E_SEALED`, `E_REGION`, `E_HEADER`, `E_PINNED`. Nothing
    /// has changed then.
    pub fn move_to(&mut self, selector: &str, position: &str) -> Result<Vec<String>, Error> {
        let ids = self.ids(selector)?;
        let target = self.target(position)?;
        let moved = self.workspace.relocate(&strs(&ids), &target);
        self.finish(selector, moved.map(strings))
    }

    /// Puts a node in the place of the one matched node, with a time of its own and, unless `node` has one, its key.
    ///
    /// Where committed siblings with the same offset follow, only the time of the old node keeps the place, and the new one
    /// gets it. Returns the id.
    ///
    /// # Errors
    /// Those of the selector and of [`Context::remove`] and [`Context::add`]; `E_PLACEMENT` unless it
    /// matches one node. Nothing has changed then.
    pub fn replace(&mut self, selector: &str, node: impl IntoNode) -> Result<String, Error> {
        let node = self.node(node)?;
        let id = self.one(selector)?;
        let replaced = self.workspace.replace(&id, &node);
        self.finish(selector, replaced.map(|id| id.to_string()))
    }

    /// Has the next commit take the matched nodes, turns and blocks of sealed cores included, and put
    /// `summary` where the first of them was. Returns the id of the summary.
    ///
    /// What a reference keeps stays, and the commit says so: [`Commit::kept`], and [`Commit::voided`] if nothing of it
    /// could go.
    ///
    /// # Errors
    /// Those of the selector; `E_PLACEMENT` if it matches nothing; `E_PINNED` if references keep all of it; `E_SEALED`,
    /// `E_REGION`, `E_HEADER`, `E_DUPLICATE_ID`, `E_INPUT`. Nothing has changed then.
    pub fn compact(&mut self, selector: &str, summary: impl IntoNode) -> Result<String, Error> {
        let summary = self.node(summary)?;
        let ids = self.ids(selector)?;
        let noted = self.workspace.compact(&strs(&ids), &summary);
        self.finish(selector, noted.map(|id| id.to_string()))
    }

    /// Drops every change since the last commit. Ids that were used since are not given again.
    pub fn discard(&mut self) {
        self.workspace.discard();
        self.fed_at = None;
        let workspace = &self.workspace;
        self.named.retain(|_, pin| workspace.has(pin.id()));
        self.changed();
    }

    /// Pins the one matched node until the reference is dropped.
    ///
    /// # Errors
    /// Those of the selector; `E_PLACEMENT` unless it matches one node.
    pub fn pin(&self, selector: &str) -> Result<Reference, Error> {
        let id = self.one(selector)?;
        Ok(self.workspace.pins.pin(&id))
    }

    /// The ids that references pin, sorted.
    pub fn pinned(&self) -> Vec<String> {
        let ids = self.workspace.pins.ids();
        ids.into_iter().map(String::from).collect()
    }

    /// Commits the cycle in progress: expires, compacts, prunes, seals `^ah` as a turn, and publishes
    /// the snapshot. All or nothing.
    ///
    /// Linear in what was changed, what expires and the turns concerned, and with a policy in the
    /// nodes of its scopes; logarithmic in the session.
    ///
    /// # Errors
    /// No later cycle or time is left. In a store also its errors: the commit is not durable then, and the
    /// working state is as it was.
    pub fn commit(&mut self) -> Result<Commit, Error> {
        let prepared = self.prepare_commit()?;
        #[cfg(feature = "store")]
        if self.keeper.is_some() {
            let beside = self.beside_commit(&prepared);
            let kept = self.keep(prepared.older.as_deref(), Some(&prepared.snapshot), beside);
            return self.end_commit(prepared, kept);
        }
        self.end_commit(prepared, Ok(()))
    }

    /// The first half of a commit: readers see nothing of it, and it can be taken back.
    pub(crate) fn prepare_commit(&mut self) -> Result<PreparedCommit, Error> {
        self.complete_fed();
        let prepared = self.workspace.prepare(self.counted());
        prepared.map_err(|refusal| refusal.about(""))
    }

    /// The second half of a commit: shows it to readers, or takes it back if it was not kept.
    pub(crate) fn end_commit(
        &mut self,
        prepared: PreparedCommit,
        kept: Result<(), Error>,
    ) -> Result<Commit, Error> {
        if let Err(error) = kept {
            self.workspace.restore(prepared.before);
            return Err(error);
        }
        let (commit, snapshot, merges) = self.workspace.finish(prepared);
        let history = self.session.history();
        self.session.publish(history.appended(snapshot, &merges));
        *self.published.get_mut() = true;
        Ok(commit)
    }

    /// Begins another session at a snapshot: `@t0`, `@t-2`, `@c7`; without a time, the working state.
    /// The snapshots up to there are shared. References stay with this session.
    ///
    /// # Errors
    /// An address that is none, or that no snapshot has.
    pub fn fork(&self, address: &str) -> Result<Self, Error> {
        self.publish();
        let history = self.session.history();
        let position = self.position(&history, address)?;
        let (shared, attempts, workspace) = match position {
            Position::Working => {
                let shared = history.first_n(history.committed().len());
                (shared, history.attempts().clone(), self.workspace.fork())
            }
            Position::Committed(index) => {
                let shared = history.first_n(index + 1);
                let last = shared.cycles().next_back().unwrap_or(0);
                let (policy, clock) = (self.workspace.policy.clone(), Arc::clone(&self.clock));
                shared.fetch_all()?;
                let committed: Vec<Arc<Snapshot>> = shared.committed().iter().cloned().collect();
                let workspace = Workspace::resume(&committed, None, clock, policy);
                (shared, history.attempts().up_to(last), workspace)
            }
        };
        let (engine, clock) = (Arc::clone(&self.engine), Arc::clone(&self.clock));
        let history = shared.with_attempts(attempts);
        Ok(Self::over(engine, clock, workspace, history))
    }

    fn position(&self, history: &History, address: &str) -> Result<Position, Error> {
        match address.trim() {
            "" | "working" => Ok(Position::Working),
            _ => index_at(history, address).map(Position::Committed),
        }
    }

    pub(super) fn ids(&self, selector: &str) -> Result<Vec<String>, Error> {
        let working = self.working();
        let mut targets = self.engine.targets(&working, selector)?;
        targets.nodes.sort_unstable_by_key(|node| node.row());
        Ok(targets
            .nodes
            .iter()
            .map(|node| node.id().to_owned())
            .collect())
    }

    fn one(&self, selector: &str) -> Result<String, Error> {
        let mut ids = self.ids(selector)?;
        match (ids.len(), ids.pop()) {
            (1, Some(id)) => Ok(id),
            (count, last) => Err(self.not_one(selector, count, "node", last.as_deref())),
        }
    }

    pub(super) fn target(&self, position: &str) -> Result<Destination, Error> {
        // The two most frequent positions name their parent in every edition and need no snapshot, which
        // would have to be made of a working state that has just changed.
        let region = match position.trim() {
            "^ah" => Some(NodeClass::Head),
            "^sys" => Some(NodeClass::Sys),
            "^seq" => {
                let message = "turns enter `^seq` by sealing, and nothing else does";
                let help = "add to `^ah` and commit, or attach to a turn: `(d1, end)`";
                return Err(Error::whole(Code::Region, position, message).with_help(help));
            }
            _ => None,
        };
        if let Some(parent) = region.and_then(|class| self.workspace.region_id(class).ok()) {
            return Ok(Destination::new(parent, Insertion::Into));
        }
        let working = self.working();
        let spot = self.engine.spot(&working, position)?;
        let [parent] = spot.parents[..] else {
            let last = spot.parents.last().map(|parent| parent.node.id());
            return Err(self.not_one(position, spot.parents.len(), "parent", last));
        };
        let child = |child: u32| usize::try_from(child).unwrap_or(usize::MAX);
        let insertion = match spot.insertion {
            InsertionPoint::Into => Insertion::Into,
            InsertionPoint::Start => Insertion::Start,
            InsertionPoint::End => Insertion::End,
            InsertionPoint::After(at) => Insertion::After(child(at)),
            InsertionPoint::Before(at) => Insertion::Before(child(at)),
        };
        Ok(Destination {
            in_core: parent.core,
            ..Destination::new(parent.node.id(), insertion)
        })
    }

    /// The working state as a snapshot: the newest one if nothing was changed.
    pub(super) fn working(&self) -> Arc<Snapshot> {
        self.publish();
        let history = self.session.history();
        history
            .latest()
            .map_or_else(|| Arc::clone(&self.workspace.base), Arc::clone)
    }

    pub(super) fn node(&self, node: impl IntoNode) -> Result<NewNode, Error> {
        node.into_node(&|text| short_form(text, self.engine.edition(), true))
    }

    /// Notes a mutation, or says what was wrong with `text`.
    pub(super) fn finish<T>(&mut self, text: &str, done: Result<T, Refusal>) -> Result<T, Error> {
        match done {
            Ok(done) => {
                self.changed();
                Ok(done)
            }
            Err(refusal) => Err(refusal.about(text)),
        }
    }

    /// `last` is one of those that were found.
    fn not_one(&self, selector: &str, count: usize, what: &str, last: Option<&str>) -> Error {
        let message = match count {
            0 => format!("no {what}: the selector matches nothing in the working state"),
            _ => format!("not one {what}: the selector matches {count} nodes"),
        };
        let help = match (count, what) {
            (0, "parent") => "`^ah` and `^sys` are always there; turns, as in `(d1, end)`, after \
                              the first commit"
                .to_owned(),
            (0, _) => {
                let working = self.working();
                let newest = working.nodes().max_by_key(|node| node.created_at_ns());
                let newest = newest.map_or("^ah", |node| node.id());
                format!("name a node of the working state, by its id, such as `{{id='{newest}'}}`")
            }
            _ => {
                let last = last.unwrap_or("^ah");
                format!("name one, such as `{{id='{last}'}}`, or with `:first` or `:last`")
            }
        };
        Error::whole(Code::Placement, selector, message).with_help(help)
    }
}

fn strs(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

pub(crate) fn index_at(history: &History, address: &str) -> Result<usize, Error> {
    let wrong = |code, message: String| Error::whole(code, address, message);
    let parsed = address.trim().parse::<Address>();
    let parsed = parsed.map_err(|error| {
        wrong(Code::SelectorInvalid, error.to_string()).with_help("such as `@t0`, `@t-2` or `@c7`")
    })?;
    history.fetch_cycles()?;
    let found = history.index_of(parsed);
    found.map_err(|error| wrong(Code::SnapshotNotFound, error.to_string()))
}
