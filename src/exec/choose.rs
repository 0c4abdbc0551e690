//! The choice of a strategy, once for each run. Only runs over changed units need none.

use super::access::node_class;
use super::stats::Input;
use super::strategy::{Reason, Strategy, Want};
use super::word::WordWindow;
use crate::index::{Piece, Segment};
use crate::ir::TypeTest;
use crate::plan::{Ambient, Bound, BoundChain, BoundStep, BoundTest};

/// A strategy with what choosing it found out.
pub(super) enum Choice<'a> {
    Count(u64),
    /// The id, if it is the whole selector.
    ById(Option<&'a str>),
    /// `None` if the snapshot has no rows at the depths.
    Word(Option<WordWindow<'a>>),
    Chunks,
    Windows,
}

impl Choice<'_> {
    pub(super) fn strategy(&self) -> Strategy {
        match self {
            Self::Count(_) => Strategy::Count,
            Self::ById(_) => Strategy::ById,
            Self::Word(_) => Strategy::Word,
            Self::Chunks => Strategy::Chunks,
            Self::Windows => Strategy::Windows,
        }
    }
}

/// Chooses the cheapest strategy that fits. Costs a few comparisons, and for words a look-up of
/// the depths.
#[inline(always)]
pub(super) fn choose<'a>(bound: &'a Bound, input: Input<'a>, want: Want) -> Choice<'a> {
    if want == Want::Count
        && let Ok(count) = count(bound, input)
    {
        return Choice::Count(count);
    }
    if let Ok(only) = by_id(bound) {
        return Choice::ById(only);
    }
    if let Ok(window) = WordWindow::of(bound, input) {
        return Choice::Word(window);
    }
    match chunks(bound, want) {
        Ok(()) => Choice::Chunks,
        Err(_) => Choice::Windows,
    }
}

/// The strategy that [`choose`] takes, and why each cheaper one that could give what is wanted
/// does not fit.
pub(super) fn explain(bound: &Bound, input: Input<'_>, want: Want) -> (Strategy, Vec<Reason>) {
    if want == Want::Changes && bound.compares_by_unit() {
        return (Strategy::Chunks, Vec::new());
    }
    let chosen = choose(bound, input, want).strategy();
    let counted = count(bound, input).err().filter(|_| want == Want::Count);
    let all_name_ids = !bound.chains.is_empty() && bound.chains.iter().all(BoundChain::names_id);
    let named = by_id(bound).map_err(|reason| match all_name_ids {
        true => "a pick spans the tree",
        false => reason,
    });
    let all = [
        (Strategy::Count, counted),
        (Strategy::ById, named.err()),
        (Strategy::Word, WordWindow::of(bound, input).err()),
        (Strategy::Chunks, chunks(bound, want).err()),
    ];
    let cheaper = all.into_iter().take_while(|(other, _)| *other != chosen);
    let reasons = cheaper.filter_map(|(strategy, reason)| {
        Some(Reason {
            strategy,
            reason: reason?,
        })
    });
    (chosen, reasons.collect())
}

/// The number of matches, if they are one class in whole segments.
fn count(bound: &Bound, input: Input<'_>) -> Result<u64, &'static str> {
    const NOT_A_CLASS: &str = "not one test of a class";
    let ([chain], [], false) = (&*bound.chains, &*bound.filters, bound.has_tail()) else {
        return Err(NOT_A_CLASS);
    };
    let ([BoundStep::Filter(filter)], None) = (&*chain.steps, &chain.scope) else {
        return Err(NOT_A_CLASS);
    };
    let ([BoundTest::Type(TypeTest::Class(class))], [], Ambient::Never) =
        (&*filter.tests, &*filter.picks, filter.ambient)
    else {
        return Err(NOT_A_CLASS);
    };
    let pieces = input.snapshot.pieces();
    if !pieces.iter().all(Piece::is_whole) {
        return Err("part of a segment is not in the snapshot");
    }
    let of_class = |segment: &Segment| u64::from(segment.of_class(node_class(*class)).len());
    Ok(pieces.iter().map(|piece| of_class(piece.segment())).sum())
}

/// Whether every group requires an id; and the id, if it is the whole selector.
#[inline]
fn by_id(bound: &Bound) -> Result<Option<&str>, &'static str> {
    if !bound.requires_ids {
        return Err("not every group names an id");
    }
    let ([chain], []) = (&*bound.chains, &*bound.filters) else {
        return Ok(None);
    };
    Ok(match &*chain.steps {
        [BoundStep::Filter(step)] if step.tests.len() == 1 && step.picks.is_empty() => {
            step.id.as_deref()
        }
        _ => None,
    })
}

/// Whether chunks fit: part of the rows is wanted, and they come in order.
fn chunks(bound: &Bound, want: Want) -> Result<(), &'static str> {
    if want == Want::Matches || want != Want::First && bound.page.is_none() {
        return Err("every row is wanted");
    }
    match bound.runs_in_chunks() {
        true => Ok(()),
        false => {
            Err("rows are not found in result order, a pick spans the tree, or a group names an id")
        }
    }
}
