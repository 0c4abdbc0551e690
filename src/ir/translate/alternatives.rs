//! The ways to say one step: usually one, several where a union has to take its place.

use super::super::{Axis, Edition, NodeStep, Step};
use super::{Construct, attrs, depths};

/// Steps that stand where one step stood.
pub(super) type Way = Vec<(Axis, Step)>;

/// The ways to say `step`, which hangs by `axis` from `before`. Their union is the step.
pub(super) fn alternatives(
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
            let step = NodeStep {
                tests: tests.into(),
                tail: step.tail.clone(),
            };
            ways.push(vec![(axis, Step::Node(step))]);
        }
    }
    Ok(ways)
}
