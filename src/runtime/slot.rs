//! The offset of a node that is put between siblings (RUNTIME §3).
//!
//! Siblings are sorted by offset, then time, then creation index, then id. A node gets an offset that
//! puts it where a position says; where none does, new siblings get other offsets.

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::refusal::{Refusal, placement, sealed};
use super::state::{Seal, State, StateNode, Zero};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// Where its own offset says.
    Into,
    Start,
    End,
    /// After the n-th child, from 1.
    After(usize),
    /// Before the n-th child, from 1.
    Before(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    pub parent: Arc<str>,
    /// Whether the place is among the children at offset 0 of a turn or head without a core
    /// container (LANGUAGE §1, implicit core).
    pub in_core: bool,
    pub insertion: Insertion,
}

impl Destination {
    pub(crate) fn new(parent: impl Into<Arc<str>>, insertion: Insertion) -> Self {
        Self {
            parent: parent.into(),
            in_core: false,
            insertion,
        }
    }
}

/// The node to be put, as far as its place depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mover<'m> {
    pub(super) id: &'m str,
    /// Nodes that are about to be moved, itself among them: the slot is not between them.
    pub(super) moving: Option<&'m HashSet<Arc<str>>>,
    /// Creation time and index; the largest ones for a node that is being made.
    pub(super) times: (i64, i64),
    /// The offset it was given, or has.
    pub(super) offset: Option<i64>,
    pub(super) is_container: bool,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) parent: Arc<str>,
    pub(super) offset: i64,
    pub(super) renumbered: Vec<(u32, i64)>,
}

/// The parent of a slot, and which offsets its children may have.
struct SlotParent<'a> {
    node: StateNode<'a>,
    /// Whether the sign of an offset means pre, core and post.
    is_turn: bool,
    is_sealed: bool,
    core: Option<StateNode<'a>>,
    /// Whether a child at offset 0 is not the core.
    has_loose: bool,
    only_core: bool,
    /// The children, those about to be moved among them.
    siblings: SmallVec<[StateNode<'a>; 4]>,
}

impl Mover<'_> {
    fn moves(self, node: StateNode<'_>) -> bool {
        node.id() == self.id || self.moving.is_some_and(|moving| moving.contains(node.id()))
    }
}

/// Finds the offset of `mover` at `target`. Linear in the children of a turn or head, and with
/// [`Insertion::After`] and [`Insertion::Before`]; else in the committed children.
pub(super) fn find_slot(
    state: State<'_>,
    target: &Destination,
    mover: Mover<'_>,
) -> Result<Slot, Refusal> {
    let parent = SlotParent::new(state, state.get(&target.parent)?, target, mover);
    match (target.insertion, mover.offset) {
        (Insertion::Into, Some(offset)) => {
            parent.check_offset(offset, mover)?;
            Ok(parent.slot(offset, Vec::new()))
        }
        // Among the others by its time.
        (Insertion::Into, None) if target.in_core => {
            parent.check_offset(0, mover)?;
            Ok(parent.slot(0, Vec::new()))
        }
        (Insertion::Into, None) => parent.natural(state, mover),
        (insertion, offset) => parent.between(insertion, offset, mover),
    }
}

impl<'a> SlotParent<'a> {
    fn new(state: State<'a>, node: StateNode<'a>, target: &Destination, mover: Mover<'_>) -> Self {
        let is_turn = node.is_turn();
        let lists = target.in_core || !matches!(target.insertion, Insertion::Into | Insertion::End);
        let mut siblings: SmallVec<[StateNode<'a>; 4]> = if lists {
            state.children(node).into()
        } else {
            // Only the end is needed, unless the node to move is there itself.
            match state.last_child(node) {
                Some(last) if mover.moves(last) => state.children(node).into(),
                last => last.into_iter().collect(),
            }
        };
        let (core, has_loose) = match is_turn.then(|| state.zero_of(node, mover.id)) {
            Some(Zero::Core(core)) => (Some(core), false),
            Some(Zero::Loose) => (None, true),
            Some(Zero::Free) | None => (None, false),
        };
        if target.in_core {
            siblings.retain(|sibling: &mut StateNode<'_>| sibling.offset() == 0);
        }
        Self {
            node,
            is_turn,
            is_sealed: is_turn && state.location(node).seal == Seal::Turn,
            core,
            has_loose,
            only_core: target.in_core,
            siblings,
        }
    }

    fn slot(&self, offset: i64, renumbered: Vec<(u32, i64)>) -> Slot {
        Slot {
            parent: self.node.id().into(),
            offset,
            renumbered,
        }
    }

    fn allows(&self, offset: i64, mover: Mover<'_>) -> bool {
        let core_taken = self.core.is_some() || (mover.is_container && self.has_loose);
        if self.only_core {
            return offset == 0 && !self.is_sealed && !core_taken;
        }
        !(self.is_turn && offset == 0 && (self.is_sealed || core_taken))
    }

    fn check_offset(&self, offset: i64, mover: Mover<'_>) -> Result<(), Refusal> {
        if self.allows(offset, mover) {
            return Ok(());
        }
        let (parent, id) = (self.node.id(), mover.id);
        if self.is_sealed {
            let message =
                format!("nothing can be put into the core of `{parent}`, which is sealed");
            let help = "give it an offset below 0 (before the core) or above 0 (after it)";
            return Err(sealed(message).help(help));
        }
        Err(match self.core {
            Some(core) => placement(format!(
                "`{id}` cannot have offset {offset} below `{parent}`: the core `{}` has it",
                core.id()
            ))
            .help(format!(
                "add it into the core: `{{id='{}'}}`, or give another offset",
                core.id()
            )),
            None => placement(format!(
                "`{id}` cannot be the core of `{parent}`, which has blocks at offset 0"
            ))
            .help("move the blocks into the container after adding it at another offset"),
        })
    }

    /// The place of a node that says nothing of it: the core of an open turn, after a sealed one, the
    /// end of the offset 0 elsewhere.
    fn natural(&self, state: State<'_>, mover: Mover<'_>) -> Result<Slot, Refusal> {
        if self.is_sealed {
            let others = self
                .siblings
                .iter()
                .rev()
                .find(|other| other.id() != mover.id);
            let last = others.map_or(0, |last| last.offset());
            return Ok(self.slot(last.max(1), Vec::new()));
        }
        if let Some(core) = self.core {
            return find_slot(state, &Destination::new(core.id(), Insertion::End), mover);
        }
        self.check_offset(0, mover)?;
        Ok(self.slot(0, Vec::new()))
    }

    fn count_before(&self, insertion: Insertion) -> Result<usize, Refusal> {
        let count = self.siblings.len();
        match insertion {
            Insertion::Start => Ok(0),
            Insertion::Into | Insertion::End => Ok(count),
            Insertion::After(child) if (1..=count).contains(&child) => Ok(child),
            Insertion::Before(child) if (1..=count).contains(&child) => Ok(child - 1),
            Insertion::After(child) | Insertion::Before(child) => {
                let parent = self.node.id();
                let message =
                    format!("`{parent}` has {count} children, so there is no child {child}");
                let help = "children are counted from 1; `end` is after the last";
                Err(placement(message).help(help))
            }
        }
    }

    fn between(
        &self,
        insertion: Insertion,
        given: Option<i64>,
        mover: Mover<'_>,
    ) -> Result<Slot, Refusal> {
        let (left, right) = self.siblings.split_at(self.count_before(insertion)?);
        let staying = |part: &[StateNode<'a>]| -> SmallVec<[StateNode<'a>; 4]> {
            let staying = part.iter().copied().filter(|node| !mover.moves(*node));
            staying.collect()
        };
        let (left, right) = (&staying(left)[..], &staying(right)[..]);
        if let Some(offset) = given {
            self.check_offset(offset, mover)?;
            if !after(left.last(), offset, mover) || !before(right.first(), offset, mover) {
                let message = format!(
                    "with offset {offset} the node would not come between {} in `{}`",
                    neighbours(left, right),
                    self.node.id()
                );
                return Err(placement(message).help("leave out the offset, or the insertion point"));
            }
            return Ok(self.slot(offset, Vec::new()));
        }
        let Some(nearest) = left.last() else {
            return self.first(right, mover);
        };
        // One step past the sibling's offset, and one more where that is the core's.
        let steps = 0..3;
        let upwards = steps
            .clone()
            .filter_map(|step| nearest.offset().checked_add(step));
        let fits_after =
            |&offset: &i64| after(Some(nearest), offset, mover) && self.allows(offset, mover);
        let upward = upwards.filter(fits_after).min();
        if let Some(offset) = upward.filter(|&offset| before(right.first(), offset, mover)) {
            return Ok(self.slot(offset, Vec::new()));
        }
        let up = upward.and_then(|offset| Some((offset, self.shift(right, offset, mover, true)?)));
        let down = || {
            let first = right.first()?;
            let downwards = steps.filter_map(|step| first.offset().checked_sub(step));
            let fits_before =
                |&offset: &i64| before(Some(first), offset, mover) && self.allows(offset, mover);
            let offset = downwards.filter(fits_before).max()?;
            Some((offset, self.shift(left, offset, mover, false)?))
        };
        match up.or_else(down) {
            Some((offset, renumbered)) => Ok(self.slot(offset, renumbered)),
            None => Err(self.no_room(left, right)),
        }
    }

    fn first(&self, right: &[StateNode<'_>], mover: Mover<'_>) -> Result<Slot, Refusal> {
        let Some(first) = right.first() else {
            let offset = if self.allows(0, mover) { 0 } else { 1 };
            self.check_offset(offset, mover)?;
            return Ok(self.slot(offset, Vec::new()));
        };
        let downwards = (1..3).filter_map(|step| first.offset().checked_sub(step));
        let offset = downwards.filter(|&offset| self.allows(offset, mover)).max();
        let offset = offset.ok_or_else(|| self.no_room(&[], right))?;
        Ok(self.slot(offset, Vec::new()))
    }

    fn no_room(&self, left: &[StateNode<'_>], right: &[StateNode<'_>]) -> Refusal {
        let (parent, between) = (self.node.id(), neighbours(left, right));
        let at_zero = |node: Option<&StateNode<'_>>| node.is_some_and(|node| node.offset() == 0);
        if self.is_turn && at_zero(left.last()) && at_zero(right.first()) {
            return placement(format!(
                "the node cannot come between {between} in `{parent}`: what has offset 0 is the core and \
                 stays in the order it was made"
            ))
            .help("put the blocks into a container, `(d0, cont, +1)` is a place in it");
        }
        placement(format!(
            "no offset puts the node between {between} in `{parent}`, and they cannot get others"
        ))
        .help(
            "nodes of earlier cycles keep their offsets; put it at the end, or replace one of them",
        )
    }

    fn may_get(&self, sibling: StateNode<'_>, offset: i64) -> Option<u32> {
        let keeps = !self.is_turn || offset.signum() == sibling.offset().signum();
        let keeps = keeps && (!self.only_core || offset == 0);
        sibling.slot().filter(|_| keeps)
    }

    /// New offsets for the siblings right of a node, which goes `up`, or left of it, until one is where
    /// it has to be. `None` if one of them must keep its offset.
    fn shift(
        &self,
        siblings: &[StateNode<'_>],
        offset: i64,
        mover: Mover<'_>,
        up: bool,
    ) -> Option<Vec<(u32, i64)>> {
        let (step, beyond) = if up {
            (1, Ordering::Greater)
        } else {
            (-1, Ordering::Less)
        };
        let mut shifted = Vec::new();
        let mut last = key(offset, mover);
        for at in 0..siblings.len() {
            // The nearest one first.
            let sibling = siblings[if up { at } else { siblings.len() - 1 - at }];
            let own = sibling.sort_key();
            if own.cmp(&last) == beyond {
                break;
            }
            // Where its time puts it past the one before, both may have the same offset.
            let later = (own.1, own.2, own.3).cmp(&(last.1, last.2, last.3)) == beyond;
            let next = last.0.checked_add(if later { 0 } else { step })?;
            shifted.push((self.may_get(sibling, next)?, next));
            last = (next, own.1, own.2, own.3);
        }
        Some(shifted)
    }
}

fn neighbours(left: &[StateNode<'_>], right: &[StateNode<'_>]) -> String {
    let name = |node: Option<&StateNode<'_>>, end: &str| match node {
        Some(node) => format!("`{}` (offset {})", node.id(), node.offset()),
        None => end.to_owned(),
    };
    let (left, right) = (
        name(left.last(), "the start"),
        name(right.first(), "the end"),
    );
    format!("{left} and {right}")
}

fn key<'k>(offset: i64, mover: Mover<'k>) -> (i64, i64, i64, &'k str) {
    (offset, mover.times.0, mover.times.1, mover.id)
}

fn after(left: Option<&StateNode<'_>>, offset: i64, mover: Mover<'_>) -> bool {
    left.is_none_or(|left| left.sort_key() < key(offset, mover))
}

fn before(right: Option<&StateNode<'_>>, offset: i64, mover: Mover<'_>) -> bool {
    right.is_none_or(|right| key(offset, mover) < right.sort_key())
}
