//! Operations on the rows of a selection, one row at a time: skip, limit, filter.

use std::sync::Arc;

use super::statement::BoundSelector;
use crate::history::Moment;
use crate::index::NodeRef;
use crate::query::exec::{Counters, InsideRows, ResultTail, RunInput};
use crate::query::plan::Bound;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Skip(usize),
    Limit(usize),
    /// Keeps rows that are, or are inside, a match.
    Filter(Arc<BoundSelector>),
}

pub(super) struct Pipeline<'a> {
    stages: Vec<PipelineStage<'a>>,
    history: &'a Moment,
    done: bool,
    /// The work of filters over snapshots that are finished.
    counters: Counters,
}

enum PipelineStage<'a> {
    Tail(ResultTail<'a>),
    Filter(&'a Bound, Option<InsideRows<'a>>),
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(ops: &'a [Op], history: &'a Moment) -> Self {
        let stage = |op: &'a Op| match op {
            Op::Skip(count) => PipelineStage::Tail(ResultTail::page(*count as u64, u64::MAX)),
            Op::Limit(count) => PipelineStage::Tail(ResultTail::page(0, *count as u64)),
            Op::Filter(bound) => PipelineStage::Filter(bound, None),
        };
        Self {
            done: ops.iter().any(|op| matches!(op, Op::Limit(0))),
            stages: ops.iter().map(stage).collect(),
            history,
            counters: Counters::default(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for stage in &self.stages {
            if let PipelineStage::Filter(_, Some(inside)) = stage {
                counters += inside.counters();
            }
        }
        counters
    }

    pub(super) fn admits(&mut self, node: NodeRef<'a>) -> bool {
        for stage in &mut self.stages {
            let passes = match stage {
                PipelineStage::Tail(tail) => {
                    let passes = tail.admits(|| node);
                    self.done |= tail.is_done();
                    passes
                }
                PipelineStage::Filter(bound, inside) => {
                    let snapshot = node.snapshot();
                    if let Some(old) = inside.take_if(|old| !std::ptr::eq(old.snapshot(), snapshot))
                    {
                        self.counters += old.counters();
                    }
                    inside
                        .get_or_insert_with(|| {
                            InsideRows::new(bound, RunInput::new(snapshot, &**self.history))
                        })
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
