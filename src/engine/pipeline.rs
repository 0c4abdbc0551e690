//! What is done with rows one by one on their way out of a selection: skip, limit, filter.

use std::sync::Arc;

use crate::exec::Inside;
use crate::history::Moment;
use crate::index::NodeRef;
use crate::plan::Bound;

/// Something to do with rows.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Leave out the first ones.
    Skip(usize),
    /// Take no more than so many.
    Limit(usize),
    /// Take those that are, or lie inside, a match.
    Filter(Arc<Bound>),
}

/// Operations on their way.
pub(super) struct Pipeline<'a> {
    stages: Vec<Stage<'a>>,
    history: &'a Moment,
    done: bool,
}

enum Stage<'a> {
    /// How many are still left out.
    Skip(usize),
    /// How many are still taken.
    Limit(usize),
    /// The filter, and what is known of it in the snapshot asked last.
    Filter(&'a Bound, Option<Inside<'a>>),
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(ops: &'a [Op], history: &'a Moment) -> Self {
        let stages: Vec<Stage<'_>> = ops
            .iter()
            .map(|op| match op {
                Op::Skip(count) => Stage::Skip(*count),
                Op::Limit(count) => Stage::Limit(*count),
                Op::Filter(bound) => Stage::Filter(bound, None),
            })
            .collect();
        Self {
            done: stages.iter().any(|stage| matches!(stage, Stage::Limit(0))),
            stages,
            history,
        }
    }

    /// Whether no further row can pass.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the next row passes.
    pub(super) fn admits(&mut self, node: NodeRef<'a>) -> bool {
        for stage in &mut self.stages {
            let passes = match stage {
                Stage::Skip(0) => true,
                Stage::Skip(left) => {
                    *left -= 1;
                    false
                }
                Stage::Limit(left) => {
                    *left = left.saturating_sub(1);
                    self.done |= *left == 0;
                    true
                }
                Stage::Filter(bound, inside) => {
                    let snapshot = node.snapshot();
                    let known = inside
                        .take()
                        .filter(|inside| std::ptr::eq(inside.snapshot(), snapshot));
                    inside
                        .insert(
                            known.unwrap_or_else(|| Inside::new(bound, snapshot, &**self.history)),
                        )
                        .contains(node.row())
                }
            };
            if !passes {
                return false;
            }
        }
        true
    }
}
