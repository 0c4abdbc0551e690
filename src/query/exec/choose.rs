//! The choice of a strategy, once for each run. Only runs over changed units need none.

use super::access::node_class;
use super::nearest;
use super::stats::RunInput;
use super::strategy::{NotChosen, RunGoal, Strategy};
use super::word::{WordSpans, WordWindow, span_of};
use crate::index::SnapshotPiece;
use crate::query::ir::TypeTest;
use crate::query::plan::{Bound, BoundChain, BoundStep, BoundTest, NearestRows, RootOrSeq};
use crate::tree::NodeClass;

pub(super) enum StrategyChoice<'a> {
    Count(u64),
    /// The id, if it is the whole selector.
    ById(Option<&'a str>),
    /// One window, of the whole snapshot or of some depths; `None` if the snapshot has no rows at the depths.
    Word(Option<WordWindow<'a>>),
    /// Several windows, all in these rows.
    Words(WordSpans),
    Chunks,
    /// Chunks from one end.
    Nearest(&'a BoundChain, NearestRows),
    Windows,
}

impl StrategyChoice<'_> {
    /// Whether it finds the result, rather than matches in document order before order and tail.
    #[inline]
    pub(super) fn finds_result(&self) -> bool {
        matches!(self, Self::Nearest(_, nearest) if !nearest.is_pick)
    }

    #[inline]
    pub(super) fn strategy(&self) -> Strategy {
        match self {
            Self::Count(_) => Strategy::Count,
            Self::ById(_) => Strategy::ById,
            Self::Word(_) | Self::Words(_) => Strategy::Word,
            Self::Chunks | Self::Nearest(..) => Strategy::Chunks,
            Self::Windows => Strategy::Windows,
        }
    }
}

/// Chooses the cheapest strategy that fits. Costs a few comparisons, and for words a look-up of
/// the depths.
///
/// Inlined by force, as is what runs the choice: small results cost about as much as passing it through memory.
#[inline(always)]
pub(super) fn choose<'a>(
    bound: &'a Bound,
    input: RunInput<'a>,
    want: RunGoal,
) -> StrategyChoice<'a> {
    // From the cheapest to the dearest. Each check is exact: a strategy that fits gives the rows
    // that windows would give.
    if want == RunGoal::Count
        && let Ok(count) = count(bound, input)
    {
        return StrategyChoice::Count(count);
    }
    if let Ok(only) = by_id(bound) {
        return StrategyChoice::ById(only);
    }
    // A window at the depths costs less than a look-up of depths in all rows.
    if bound.interval.is_none()
        && let Some(window) = WordWindow::whole(bound, input)
    {
        return StrategyChoice::Word(Some(window));
    }
    if let Some(nearest) = bound.nearest
        && let [chain] = &*bound.chains
        && (nearest.is_pick || want != RunGoal::Matches)
        && nearest::fits(chain, nearest, input.snapshot)
    {
        return StrategyChoice::Nearest(chain, nearest);
    }
    if let Ok(window) = one_word(bound, input) {
        return StrategyChoice::Word(window);
    }
    choose_wide(bound, input, want)
}

/// [`choose`] for what neither an id, nor an end, nor one word finds.
#[inline(never)]
fn choose_wide<'a>(bound: &'a Bound, input: RunInput<'a>, want: RunGoal) -> StrategyChoice<'a> {
    if let Some(window) = WordWindow::whole(bound, input) {
        return StrategyChoice::Word(Some(window));
    }
    if let Ok(spans) = words(bound, input) {
        return StrategyChoice::Words(spans);
    }
    match chunks(bound, want) {
        Ok(()) => StrategyChoice::Chunks,
        Err(_) => StrategyChoice::Windows,
    }
}

/// The strategy that a run takes, and why each cheaper one that could give what is wanted does not
/// fit. Runs nothing.
pub fn strategy(bound: &Bound, input: RunInput<'_>, want: RunGoal) -> (Strategy, Vec<NotChosen>) {
    if want == RunGoal::Changes && bound.compares_by_unit() {
        return (Strategy::Chunks, Vec::new());
    }
    // The checks are those of a run, so what is explained is what happens.
    let chosen = choose(bound, input, want).strategy();
    let counted = count(bound, input).err().filter(|_| want == RunGoal::Count);
    let all_name_ids = !bound.chains.is_empty() && bound.chains.iter().all(BoundChain::names_id);
    let named = by_id(bound).map_err(|reason| {
        if all_name_ids {
            "a pick spans the tree"
        } else {
            reason
        }
    });
    let in_words = match one_word(bound, input) {
        Ok(_) => None,
        Err(_) => words(bound, input).err(),
    };
    let all = [
        (Strategy::Count, counted),
        (Strategy::ById, named.err()),
        (Strategy::Word, in_words),
        (Strategy::Chunks, chunks(bound, want).err()),
    ];
    let cheaper = all.into_iter().take_while(|(other, _)| *other != chosen);
    let reasons = cheaper.filter_map(|(strategy, reason)| {
        let name = strategy.name();
        reason.map(|reason| NotChosen { name, reason })
    });
    (chosen, reasons.collect())
}

/// The number of matches, if they are one class in whole segments.
fn count(bound: &Bound, input: RunInput<'_>) -> Result<u64, &'static str> {
    let class = one_class(bound).ok_or("not one test of a class")?;
    let pieces = input.snapshot.pieces();
    if !pieces.iter().all(SnapshotPiece::is_whole) {
        return Err("part of a segment is not in the snapshot");
    }
    // The list of a class has its nodes and no implicit core. Removed rows stay in lists, which is
    // why every piece must be whole.
    let of_class = |piece: &SnapshotPiece| u64::from(piece.segment().of_class(class).len());
    Ok(pieces.iter().map(of_class).sum())
}

fn one_class(bound: &Bound) -> Option<NodeClass> {
    let ([chain], [], false) = (&*bound.chains, &*bound.filters, bound.has_tail()) else {
        return None;
    };
    let ([BoundStep::Filter(filter)], None) = (&*chain.steps, &chain.scope) else {
        return None;
    };
    match (&*filter.tests, &*filter.picks, filter.ambient) {
        ([BoundTest::Type(TypeTest::Class(class))], [], RootOrSeq::Never) => {
            Some(node_class(*class))
        }
        _ => None,
    }
}

/// An error unless every group requires an id; and the id, if it is the whole selector.
#[inline]
fn by_id(bound: &Bound) -> Result<Option<&str>, &'static str> {
    if !bound.requires_ids {
        return Err("some groups have no id");
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

/// The only window, if it fits one word; `Ok(None)` if the snapshot has no rows at the depths.
#[inline(always)]
fn one_word<'a>(
    bound: &Bound,
    input: RunInput<'a>,
) -> Result<Option<WordWindow<'a>>, &'static str> {
    let depths = bound
        .interval
        .ok_or("not one chain at an interval of depths")?;
    WordWindow::at(bound, depths, input)
}

/// The rows of the windows, if words fit each group.
fn words(bound: &Bound, input: RunInput<'_>) -> Result<WordSpans, &'static str> {
    if bound.inner > 0 {
        return Err("a condition has selectors inside");
    }
    if !bound.in_words {
        return Err(
            "a group is short and anywhere, picks across levels, gathers a zone or names an id",
        );
    }
    span_of(bound, input)
}

/// Whether chunks fit: part of the rows is wanted, and they come in order.
fn chunks(bound: &Bound, want: RunGoal) -> Result<(), &'static str> {
    if want == RunGoal::Matches || want != RunGoal::First && bound.page.is_none() {
        return Err("every row is wanted");
    }
    // A row found in one chunk must not depend on another, and must not come before rows of an
    // earlier chunk.
    if bound.runs_in_chunks() {
        Ok(())
    } else {
        Err("rows are not found in result order, a pick spans the tree, or a group names an id")
    }
}
