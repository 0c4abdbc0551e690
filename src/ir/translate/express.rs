//! Looks for an equal meaning that an edition has words for.
//!
//! The outcome is a normalized query again, and differs from the one that went in only where
//! the edition has other words. Each rule here and in the rooms beside it keeps the meaning over
//! every session:
//!
//! - a filter of the final set is a test of each group's last step, where nothing is picked there;
//! - steps join over unions: a step that may be one of two is a union of two chains, as long as
//!   no pick comes behind it, which would take from each;
//! - `^seq` is a child of the root, always.

use crate::syntax::Span;

use super::super::lower::{MAX_GROUPS, MAX_STEPS};
use super::super::normal::{self, Draft, DraftChain};
use super::super::{
    Axis, Chain, Controls, Edition, Mode, NodeStep, Order, Query, Step, Tail, Test, Time, TypeTest,
};
use super::Construct;
use super::alternatives::alternatives;

/// A query that means the same as `query` and that `edition` has words for.
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
            drafts.push(DraftChain {
                chain,
                span: Span::default(),
            });
        }
    }
    let draft = Draft {
        time: query.time,
        chains: drafts.into(),
        filters: filters.into(),
        controls,
    };
    let expressed = normal::normalize(draft, &mut Vec::new(), None);
    let ordered = matches!(query.controls.order, Order::Default | Order::Pre);
    // Key order follows from the form, which may have changed.
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
        // That is the order in any case.
        Order::Pre if query.pinned_key().is_none() => {}
        _ => return Err(Construct::Control("order")),
    }
    if *unique {
        return Err(Construct::Control("unique"));
    }
    if limit.is_some() {
        return Err(Construct::Control("limit"));
    }
    if page.is_some() {
        return Err(Construct::Control("p"));
    }
    Ok(Controls {
        mode: *mode,
        ..Controls::default()
    })
}

/// The chains with the filters in their last steps. In `depth` brackets behind `@mode` filter,
/// so there they stay.
fn move_filters(query: &Query, edition: Edition) -> Result<(Vec<Chain>, Vec<Test>), Construct> {
    let mut chains = query.chains.to_vec();
    if query.filters.is_empty() {
        return Ok((chains, Vec::new()));
    }
    if edition == Edition::Depth && query.controls.mode != Mode::Pairwise {
        let filter = NodeStep {
            tests: query.filters.iter().cloned().collect(),
            tail: Box::default(),
        };
        if let [only] = super::attrs::alternatives(&filter.tests, edition)?.as_slice() {
            return Ok((chains, only.clone()));
        }
    }
    for chain in &mut chains {
        let mut steps = std::mem::take(&mut chain.steps).into_vec();
        match steps.last_mut() {
            Some((_, Step::Node(last))) if last.tail.is_empty() => {
                let mut tests = std::mem::take(&mut last.tests).into_vec();
                tests.extend(query.filters.iter().cloned());
                last.tests = tests.into();
            }
            // What a zone finds are its members, which hang from it.
            Some((_, Step::Zone(_))) => steps.push((
                Axis::Child,
                Step::Node(NodeStep {
                    tests: query.filters.iter().cloned().collect(),
                    tail: Box::default(),
                }),
            )),
            _ => return Err(Construct::Filter),
        }
        chain.steps = steps.into();
    }
    Ok((chains, Vec::new()))
}

/// The chains that find together what `chain` finds.
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
        if unfolded.len().saturating_mul(ways.len()) > MAX_GROUPS {
            return Err(Construct::Size);
        }
        let mut longer = Vec::with_capacity(unfolded.len() * ways.len());
        for steps in &unfolded {
            for way in &ways {
                longer.push([steps.as_slice(), way.as_slice()].concat());
            }
        }
        unfolded = longer;
    }
    let chains = unfolded.into_iter().map(|mut steps| {
        // Alone, `^seq` is the turns in this edition.
        if edition == Edition::Depth
            && let [(_, Step::Node(node))] = steps.as_mut_slice()
            && node.tests.contains(&Test::Type(TypeTest::Seq))
        {
            let root = NodeStep {
                tests: [Test::Type(TypeTest::Root)].into(),
                tail: Box::default(),
            };
            let seq = std::mem::take(node);
            steps = vec![
                (Axis::Descendant, Step::Node(root)),
                (Axis::Child, Step::Node(seq)),
            ];
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

fn picks((_, step): &(Axis, Step)) -> bool {
    match step {
        Step::Node(node) => node.tail.iter().any(|item| matches!(item, Tail::Pick(_))),
        Step::Zone(_) => false,
    }
}
