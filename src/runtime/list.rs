//! Lists that are set as a whole: the blocks of one kind directly below `^sys`.

use std::sync::Arc;

use super::node::NewNode;
use super::refusal::{Refusal, placement};
use super::slot::{Destination, Insertion};
use super::state::StateNode;
use super::workspace::Workspace;
use crate::json::{JsonValue, string};
use crate::support::edits::{TokenEdit, edits};
use crate::tree::NodeClass;

impl Workspace {
    /// Makes the blocks of `kind` directly below `^sys` (of texts: those of role `system` without a
    /// key) equal `wanted` in key and content. The longest common run of equal ones stays; the others
    /// go, and new ones come where they belong. Returns the ids in order.
    pub(crate) fn set_list(
        &mut self,
        kind: &str,
        wanted: &[NewNode],
    ) -> Result<Vec<String>, Refusal> {
        let is_tools = kind == "tool";
        self.all_or_nothing(|workspace| {
            let ids = workspace.replace_list(kind, wanted)?;
            for id in &ids {
                let slot = workspace.overlay.find(id);
                let record = &mut workspace.overlay.record;
                let known = record.add.iter().chain(&record.append);
                let known = known.chain(&record.set_system).chain(&record.set_tools);
                // Those of earlier cycles, and of earlier calls, stay.
                if slot.is_none() || known.into_iter().any(|known| **known == **id) {
                    continue;
                }
                let set = if is_tools {
                    &mut record.set_tools
                } else {
                    &mut record.set_system
                };
                set.push(id.as_str().into());
            }
            Ok(ids)
        })
    }

    fn replace_list(&mut self, kind: &str, wanted: &[NewNode]) -> Result<Vec<String>, Refusal> {
        let state = self.state();
        let sys = state.region(NodeClass::Sys);
        let sys = sys.ok_or_else(|| placement("the session has no region `^sys`"))?;
        let managed = |node: &StateNode<'_>| {
            let (own_kind, role) = match *node {
                StateNode::Old(old) => (old.kind(), old.role()),
                StateNode::New(_, fresh) => (fresh.kind.as_deref(), fresh.role.as_deref()),
            };
            let prompt = kind != "text" || (node.key().is_none() && role == Some("system"));
            own_kind == Some(kind) && prompt && node.class() == NodeClass::Block
        };
        let present: Vec<StateNode<'_>> = state.children(sys).into_iter().filter(managed).collect();
        let equals = |key: Option<&str>, content: Option<&str>| format!("{key:?} {content:?}");
        let is = present
            .iter()
            .map(|node| node.with_content(|own| equals(node.key(), own.and_then(JsonValue::text))));
        let to_be = wanted.iter().map(|node| {
            let member = |name| node.member(name).and_then(string);
            equals(member("key").as_deref(), member("content").as_deref())
        });
        let kept = common(&is.collect::<Vec<_>>(), &to_be.collect::<Vec<_>>());
        let present: Vec<Arc<str>> = present.iter().map(|node| Arc::from(node.id())).collect();
        let sys: Box<str> = sys.id().into();
        let mut ids: Vec<String> = Vec::with_capacity(wanted.len());
        let (mut next, mut kept) = (0, kept.into_iter().peekable());
        for (index, node) in wanted.iter().enumerate() {
            // Present ones before the next kept one go; the first of them give their places.
            let stop = kept.peek().map_or(present.len(), |(old, _)| *old);
            if kept.next_if(|(_, new)| *new == index).is_some() {
                for gone in &present[next..stop] {
                    self.remove(&[&**gone])?;
                }
                ids.push(present[stop].to_string());
                next = stop + 1;
            } else if next < stop {
                ids.push(self.replace(&present[next], node)?.to_string());
                next += 1;
            } else {
                let insertion = match (ids.last(), present.first()) {
                    (Some(last), _) => self.beside(&sys, last, Insertion::After),
                    (None, Some(first)) => self.beside(&sys, first, Insertion::Before),
                    (None, None) => Insertion::End,
                };
                match self.add(&Destination::new(&*sys, insertion), node) {
                    Ok(id) => ids.push(id.to_string()),
                    // Committed siblings leave no place there: what comes after is put again.
                    Err(_) => return self.put_again(&sys, &present[next..], &wanted[index..], ids),
                }
            }
        }
        for gone in &present[next..] {
            self.remove(&[&**gone])?;
        }
        Ok(ids)
    }

    /// The place before or after a child; the end if it is gone.
    fn beside(&self, parent: &str, id: &str, side: fn(usize) -> Insertion) -> Insertion {
        let state = self.state();
        let parent = state.find(parent);
        let children = parent.map_or_else(Vec::new, |parent| state.children(parent));
        let at = children.iter().position(|child| child.id() == id);
        at.map_or(Insertion::End, |at| side(at + 1))
    }

    fn put_again(
        &mut self,
        sys: &str,
        present: &[Arc<str>],
        wanted: &[NewNode],
        mut ids: Vec<String>,
    ) -> Result<Vec<String>, Refusal> {
        for gone in present {
            self.remove(&[&**gone])?;
        }
        for node in wanted {
            let id = self.add(&Destination::new(sys, Insertion::End), node)?;
            ids.push(id.to_string());
        }
        Ok(ids)
    }
}

/// The longest common subsequence of two lists, as pairs of indexes.
fn common(a: &[String], b: &[String]) -> Vec<(usize, usize)> {
    let [older, newer] = [a, b].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    let end = TokenEdit {
        older: a.len()..a.len(),
        newer: b.len()..b.len(),
    };
    for edit in edits(&older, &newer).into_iter().chain([end]) {
        pairs.extend((i..edit.older.start).zip(j..edit.newer.start));
        (i, j) = (edit.older.end, edit.newer.end);
    }
    pairs
}
