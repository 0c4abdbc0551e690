//! What was sent and replied in a cycle, block by block.

use super::call::{cycle_of, is_reply};
use super::groups::Counts;
use super::part::Region;
use crate::index::{NodeRef, Snapshot};
use crate::support::cancel::ensure;

/// The blocks of a request in the order in which a provider caches them, with their tokens, and the reply.
pub(super) struct Sent<'a> {
    pub(super) blocks: Vec<(NodeRef<'a>, u64)>,
    pub(super) replied: Vec<(NodeRef<'a>, u64)>,
    /// The tokens of the request.
    pub(super) request: u64,
    pub(super) reply: u64,
}

impl<'a> Sent<'a> {
    pub(super) fn from_snapshot(snapshot: &'a Snapshot, counts: &mut Counts) -> Self {
        let cycle = cycle_of(snapshot).to_string();
        let mut parts: [Vec<(NodeRef<'a>, u64)>; 4] = Default::default();
        for node in snapshot.nodes().inspect(|_| ensure()) {
            let Some(region) = Region::containing(node) else {
                continue;
            };
            let is_system = region == Region::Sys;
            let part = match node.kind() {
                _ if is_reply(node, &cycle) => 3,
                Some("tool") if is_system => 0,
                _ if is_system => 1,
                _ => 2,
            };
            parts[part].push((node, counts.node(node, is_system).tokens));
        }
        let [tools, system, messages, replied] = parts;
        let blocks = [tools, system, messages].concat();
        let sum = |blocks: &[(NodeRef<'_>, u64)]| blocks.iter().map(|(_, tokens)| tokens).sum();
        Self {
            request: sum(&blocks),
            reply: sum(&replied),
            blocks,
            replied,
        }
    }
}

/// `tokens` of `ours` in the measure of a provider that counted `theirs`.
pub(super) fn scaled(tokens: u64, ours: u64, theirs: u64) -> u64 {
    let scaled = u128::from(tokens) * u128::from(theirs) / u128::from(ours.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
