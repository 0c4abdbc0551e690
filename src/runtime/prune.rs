//! Removes nodes until the limits of a policy hold.

use std::sync::Arc;

use hashbrown::HashSet;

use super::policy::{Measure, Scope};
use super::state::{State, StateNode};
use super::workspace::Workspace;
use crate::json::JsonValue;
use crate::tree::NodeClass;

/// A block that may be removed: priority, time, id. Blocks are removed in this order.
type PruneCandidate = (i64, i64, Arc<str>);

impl Workspace {
    pub(super) fn prune(&mut self, kept: &HashSet<Arc<str>>) -> (Vec<Arc<str>>, u64) {
        let (mut pruned, mut over) = (self.before_window(kept), 0_u64);
        self.take_all(&pruned);
        for limit in self.policy.limits.clone() {
            let mut total = self.total(limit.scope, limit.measure);
            if total <= limit.most {
                continue;
            }
            for (.., id) in self.candidates(limit.scope, kept) {
                if total <= limit.most {
                    break;
                }
                let Some(node) = self.state().find(&id) else {
                    continue; // It was below one that went.
                };
                let freed = self.measure(self.state().subtree(node), limit.measure);
                self.take(&id);
                total = total.saturating_sub(freed);
                pruned.push(id);
            }
            over = over.saturating_add(total.saturating_sub(limit.most));
        }
        (pruned, over)
    }

    /// The turns that the window has passed, oldest first.
    fn before_window(&self, kept: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        let Some(window) = self.policy.window else {
            return Vec::new();
        };
        let turns = self.sealed_turns().into_iter().rev();
        let passed = turns.skip(window.saturating_sub(1) as usize);
        let passed = passed.filter(|turn| !kept.contains(turn.id()));
        let mut passed: Vec<Arc<str>> = passed.map(|turn| turn.id().into()).collect();
        passed.reverse();
        passed
    }

    fn sealed_turns(&self) -> Vec<StateNode<'_>> {
        let state = self.state();
        let seq = state.region(NodeClass::Seq);
        let children = seq.map_or_else(Vec::new, |seq| state.children(seq));
        let turns = children.into_iter();
        turns
            .filter(|turn| turn.class() == NodeClass::Turn)
            .collect()
    }

    fn regions(&self, scope: Scope) -> Vec<StateNode<'_>> {
        let classes: &[NodeClass] = match scope {
            Scope::Whole => &[NodeClass::Sys, NodeClass::Seq, NodeClass::Head],
            Scope::Sys => &[NodeClass::Sys],
            Scope::Seq => &[NodeClass::Seq],
            Scope::Head => &[NodeClass::Head],
        };
        let regions = classes
            .iter()
            .filter_map(|class| self.state().region(*class));
        regions.collect()
    }

    fn total(&self, scope: Scope, measure: Measure) -> u64 {
        let state = self.state();
        let regions = self.regions(scope).into_iter();
        let below = regions.flat_map(|region| state.subtree(region).into_iter().skip(1));
        self.measure(below, measure)
    }

    fn measure<'a>(&self, nodes: impl IntoIterator<Item = StateNode<'a>>, measure: Measure) -> u64 {
        let cost = |node: StateNode<'_>| match measure {
            Measure::Nodes => 1,
            Measure::Tokens if node.class() == NodeClass::Block => self.tokens(node),
            Measure::Tokens => 0,
        };
        nodes.into_iter().map(cost).fold(0, u64::saturating_add)
    }

    fn tokens(&self, node: StateNode<'_>) -> u64 {
        node.with_content(|content| match content {
            None | Some(JsonValue::Null) => 0,
            Some(content) => self.policy.count(&content.plain()),
        })
    }

    fn candidates(&self, scope: Scope, kept: &HashSet<Arc<str>>) -> Vec<PruneCandidate> {
        let state = self.state();
        let protected = self.protected();
        let mut found = Vec::new();
        for region in self.regions(scope) {
            let mut open = vec![region];
            while let Some(node) = open.pop() {
                if protected.contains(node.id()) {
                    continue;
                }
                if node.class() == NodeClass::Block && !kept.contains(node.id()) {
                    found.push(self.candidate(node));
                }
                open.extend(state.children(node));
            }
        }
        found.sort_unstable();
        found
    }

    fn candidate(&self, node: StateNode<'_>) -> PruneCandidate {
        let priority = match node {
            StateNode::Old(old) => {
                let change = self.overlay.changed.get(old.id());
                let changed = change.and_then(|change| change.priority);
                changed.unwrap_or_else(|| old.priority())
            }
            StateNode::New(_, fresh) => fresh.priority,
        };
        (priority, node.sort_key().1, node.id().into())
    }

    /// The ids of the newest turns that the policy protects; `^ah` is the newest.
    fn protected(&self) -> HashSet<Arc<str>> {
        let state: State<'_> = self.state();
        let mut left = self.policy.protected as usize;
        let mut found = HashSet::new();
        if left > 0 {
            let head = state.region(NodeClass::Head);
            found.extend(head.map(|head| Arc::from(head.id())));
            left -= 1;
        }
        if left > 0 {
            let turns = self.sealed_turns().into_iter().rev();
            found.extend(turns.take(left).map(|turn| Arc::from(turn.id())));
        }
        found
    }
}
