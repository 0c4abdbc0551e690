//! Finds an equivalent query that an edition can express.
//!
//! The result is normalized again and differs only where the edition requires it. Each rule here,
//! in `attrs` and in `depths` keeps the results over every session:
//!
//! - a filter of the final set is a test of each group's last step, if that step has no pick;
//! - a step with two alternatives is a union of two chains, if no pick follows, which would pick
//!   from each;
//! - `^seq` is always a child of the root.

use super::attrs;
use super::construct::Construct;
use super::depths::{self, Way};
use crate::query::ir::edition::Edition;
use crate::query::ir::lower::{MAX_GROUPS, MAX_STEPS};
use crate::query::ir::normal::{Draft, DraftChain, normalize};
use crate::query::ir::query::{
    Axis, Chain, Controls, Mode, NodeStep, Order, Query, Step, Tail, Test, Time, TypeTest,
};
use crate::query::syntax::Span;

/// A query that is equivalent to `query` and that `edition` can express.
pub(super) fn express(query: &Query, edition: Edition) -> Result<Query, Construct> {
    if edition == Edition::V01 && query.time == Time::Working {
        return Err(Construct::WorkingState);
    }
    let controls = controls(query, edition)?;
    let (chains, filters) = move_filters(query, edition)?;
    let mut drafts = Vec::with_capacity(chains.len());
    for chain in &chains {
        for chain in unfold(chain, edition)? {
            if drafts.len() == MAX_GROUPS {
                return Err(Construct::Size);
            }
            let span = Span::default();
            drafts.push(DraftChain { chain, span });
        }
    }
    let draft = Draft {
        time: query.time,
        chains: drafts.into(),
        filters: filters.into(),
        controls,
    };
    let expressed = normalize(draft, &mut Vec::new(), None);
    let ordered = matches!(query.controls.order, Order::Default | Order::Pre);
    // A change of form may have changed whether rows come in key order.
    if ordered && !query.is_none() && in_key_order(query) != in_key_order(&expressed) {
        return Err(Construct::Order);
    }
    Ok(expressed)
}

/// The key the rows are ordered by, as text.
fn in_key_order(query: &Query) -> Option<String> {
    if query.controls.order != Order::Default {
        return None;
    }
    query.pinned_key().map(ToString::to_string)
}

fn controls(query: &Query, edition: Edition) -> Result<Controls, Construct> {
    let Controls {
        order,
        unique,
        limit,
        page,
        mode,
    } = &query.controls;
    if edition == Edition::V01 && *mode != Mode::Pairwise {
        return Err(Construct::Control("mode"));
    }
    match order {
        Order::Default => {}
        // Without a pinned key this is the default order.
        Order::Pre if query.pinned_key().is_none() => {}
        _ => return Err(Construct::Control("order")),
    }
    let mut missing = [
        ("unique", *unique),
        ("limit", limit.is_some()),
        ("p", page.is_some()),
    ]
    .into_iter()
    .filter(|(_, written)| *written);
    if let Some((name, _)) = missing.next() {
        return Err(Construct::Control(name));
    }
    Ok(Controls {
        mode: *mode,
        ..Controls::default()
    })
}

/// The chains with the filters in their last steps, and the filters that remain. In `depth`
/// brackets after `@mode` are filters, so there they can remain.
fn move_filters(query: &Query, edition: Edition) -> Result<(Vec<Chain>, Vec<Test>), Construct> {
    let mut chains = query.chains.to_vec();
    if query.filters.is_empty() {
        return Ok((chains, Vec::new()));
    }
    if edition == Edition::Depth
        && query.controls.mode != Mode::Pairwise
        && let [only] = attrs::alternatives(&query.filters, edition)?.as_slice()
    {
        return Ok((chains, only.clone()));
    }
    for chain in &mut chains {
        let mut steps = std::mem::take(&mut chain.steps).into_vec();
        match steps.last_mut() {
            Some((_, Step::Node(last))) if last.tail.is_empty() => {
                last.tests.extend(query.filters.iter().cloned());
            }
            // A zone finds its members, which are its children.
            Some((_, Step::Zone(_))) => steps.push((Axis::Child, Step::of(query.filters.to_vec()))),
            _ => return Err(Construct::Filter),
        }
        chain.steps = steps.into();
    }
    Ok((chains, Vec::new()))
}

/// The chains whose union is `chain`.
fn unfold(chain: &Chain, edition: Edition) -> Result<Vec<Chain>, Construct> {
    let mut unfolded: Vec<Vec<(Axis, Step)>> = vec![Vec::with_capacity(chain.steps.len())];
    for (index, (axis, step)) in chain.steps.iter().enumerate() {
        let Step::Node(node) = step else {
            for steps in &mut unfolded {
                steps.push((*axis, step.clone()));
            }
            continue;
        };
        let before = index.checked_sub(1).and_then(|at| chain.steps.get(at));
        let ways = alternatives(*axis, node, before, edition)?;
        if ways.len() > 1 && chain.steps.iter().skip(index).any(picks) {
            return Err(Construct::Pick);
        }
        unfolded = attrs::joined(&unfolded, &ways)?;
    }
    let chains = unfolded.into_iter().map(|mut steps| {
        // As the only step `^seq` means the turns in this edition.
        if edition == Edition::Depth
            && let [(_, Step::Node(node))] = steps.as_mut_slice()
            && node.tests.contains(&Test::Type(TypeTest::Seq))
        {
            let root = Step::of([Test::Type(TypeTest::Root)]);
            let seq = Step::Node(std::mem::take(node));
            steps = vec![(Axis::Descendant, root), (Axis::Child, seq)];
        }
        if steps.len() > MAX_STEPS {
            return Err(Construct::Size);
        }
        Ok(Chain {
            steps: steps.into(),
        })
    });
    chains.collect()
}

/// The ways to express `step`, which follows `before` by `axis`. Their union is the step.
fn alternatives(
    axis: Axis,
    step: &NodeStep,
    before: Option<&(Axis, Step)>,
    edition: Edition,
) -> Result<Vec<Way>, Construct> {
    let mut ways = Vec::new();
    for tests in attrs::alternatives(&step.tests, edition)? {
        if edition == Edition::V01 {
            ways.extend(depths::ways(axis, tests, &step.tail, before)?);
        } else {
            let (tests, tail) = (tests.into(), step.tail.clone());
            ways.push(vec![(axis, Step::Node(NodeStep { tests, tail }))]);
        }
    }
    Ok(ways)
}

fn picks((_, step): &(Axis, Step)) -> bool {
    match step {
        Step::Node(node) => node.tail.iter().any(|item| matches!(item, Tail::Pick(_))),
        Step::Zone(_) => false,
    }
}
