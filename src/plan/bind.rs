//! Filling a plan's slots: from a plan and values to tests that can be asked.

use std::sync::Arc;

use super::compare::{Compare, NumberSet, TextTest, Unfit, ValueTest};
use super::value::Source;
use super::{FilterPlan, Plan, Predicate, Slot, StepOperator, TailPlan, Value};
use crate::ir::{Attr, Axis, DepthSet, Kind, Op, Order, Patterns, TypeTest, Zone, normal_type};

/// Depths, beyond the first of each range, that a plan may look at and still count as local.
const LOCAL_DEPTHS: u64 = 8;

/// A plan with its values in place; still without a snapshot. Immutable and shared.
#[derive(Debug)]
pub struct Bound {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The groups.
    pub chains: Box<[BoundChain]>,
    /// Tests of the final set.
    pub filters: Box<[BoundTest]>,
    /// Whether the result comes in key order.
    pub key_order: bool,
    /// The first row of the window and how many rows it has; the page is worked in.
    pub window: Option<(u64, u64)>,
    local: bool,
    interval: Option<(i64, i64)>,
    pattern_bytes: usize,
}

/// A group with its values in place.
#[derive(Debug)]
pub struct BoundChain {
    /// The steps, as in the plan.
    pub steps: Box<[BoundStep]>,
}

impl BoundChain {
    /// Whether a step names an id.
    #[must_use]
    pub fn names_id(&self) -> bool {
        let names = |step: &BoundStep| matches!(step, BoundStep::Filter { id: Some(_), .. });
        self.steps.iter().any(names)
    }
}

/// A step with its values in place.
#[derive(Debug)]
pub enum BoundStep {
    /// Keeps nodes.
    Filter {
        /// How it hangs from the step before.
        axis: Axis,
        /// Conditions, all of which hold.
        tests: Box<[BoundTest]>,
        /// Picks and what stands behind them.
        tail: Box<[BoundTail]>,
        /// Whether picks go by key order.
        key_order: bool,
        /// The id the step names, if it does: at most one node can match.
        id: Option<Box<str>>,
    },
    /// Gathers a zone.
    Zone {
        /// How it hangs from the step before.
        axis: Axis,
        /// The sign of the offsets.
        zone: Zone,
    },
}

/// What follows a step's tests, with values in place.
#[derive(Debug)]
pub enum BoundTail {
    /// The first of each group.
    First,
    /// The last of each group.
    Last,
    /// The n-th of each group, from 1.
    Nth(u64),
    /// Narrows what was picked.
    Test(BoundTest),
}

/// One condition with its value in place.
#[derive(Debug)]
pub enum BoundTest {
    /// On what the node is.
    Type(TypeTest),
    /// On its depth.
    Depth(DepthSet),
    /// On an attribute.
    Attr(Condition),
}

impl Bound {
    /// Whether it looks at a handful of turns at most, so that running it costs no more than
    /// putting it off.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// The neighbouring depths, both included, that are all it looks at, if it is no more than
    /// tests along one chain: no id, no pick, no order, no window. They are those of turns, or
    /// the one of `^ah` or `^sys`.
    #[inline]
    #[must_use]
    pub fn interval(&self) -> Option<(i64, i64)> {
        self.interval
    }

    /// Whether rows come out in document order (LANGUAGE §6), as they are found.
    #[must_use]
    pub fn in_document_order(&self) -> bool {
        match self.plan.order {
            Order::Default => !self.key_order,
            Order::Pre => true,
            Order::Post | Order::Bfs | Order::Path | Order::TurnDesc | Order::TurnAsc => false,
        }
    }

    /// What its patterns take, in bytes; at most [`crate::ir::MAX_PATTERN_BYTES`].
    #[must_use]
    pub fn pattern_bytes(&self) -> usize {
        self.pattern_bytes
    }
}

/// A comparison of an attribute with its value in place.
#[derive(Debug)]
pub struct Condition {
    /// The attribute.
    pub attr: Attr,
    /// What is asked of it.
    pub compare: Compare,
}

/// Why a value cannot stand where it was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindError {
    /// The parameter, without the dollar sign; none for a literal.
    pub param: Option<Box<str>>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<&'static str>,
    /// Whether it is a limit that the value breaks (`E_LIMIT`).
    pub limit: bool,
}

impl BindError {
    /// The error of a parameter, or of a literal where `param` is none.
    #[must_use]
    pub fn new(param: Option<Box<str>>, unfit: impl Into<Unfit>) -> Self {
        let Unfit {
            message,
            help,
            limit,
        } = unfit.into();
        Self {
            param,
            message,
            help,
            limit,
        }
    }
}

/// Fills the slots of `plan` from `sources`, looking up parameters in `params`.
///
/// # Errors
/// A parameter without a value, or a value that the rules for a literal in its place forbid
/// (LANGUAGE §5).
pub fn bind(
    plan: &Arc<Plan>,
    sources: &[Source],
    params: &[(Box<str>, Value)],
) -> Result<Bound, BindError> {
    let values = try_map(sources, |source| resolve(source, params))?;
    let mut binder = Binder {
        values: &values,
        patterns: Patterns::new(),
    };
    let chains = try_map(&plan.chains, |chain| {
        let steps = try_map(&chain.steps, |step| match &step.operator {
            StepOperator::Zone(zone) => Ok(BoundStep::Zone {
                axis: step.axis,
                zone: *zone,
            }),
            StepOperator::Filter(filter) => binder.filter(step.axis, filter),
        })?;
        Ok(BoundChain { steps })
    })?;
    let limit = plan
        .limit
        .map(|slot| binder.count(slot, 0, "a limit"))
        .transpose()?;
    let page = plan
        .page
        .map(|slot| binder.count(slot, 1, "a page"))
        .transpose()?;
    let filters = binder.tests(&plan.filters)?;
    let key_order = binder.one_key(&plan.key_slots);
    let window = limit.map(|limit| ((page.unwrap_or(1) - 1).saturating_mul(limit), limit));
    let mut bound = Bound {
        plan: Arc::clone(plan),
        filters,
        key_order,
        local: is_local(plan, &chains),
        interval: None,
        pattern_bytes: binder.patterns.bytes(),
        chains,
        window,
    };
    bound.interval = interval(&bound);
    Ok(bound)
}

/// The one interval of depths that a lone chain of tests without an id looks at.
fn interval(bound: &Bound) -> Option<(i64, i64)> {
    let ([plain], [chain], []) = (&*bound.plan.chains, &*bound.chains, &*bound.filters) else {
        return None;
    };
    if !bound.in_document_order() || bound.window.is_some() || bound.plan.unique {
        return None;
    }
    let &[(low, high)] = plain.scope.as_ref()?.ranges() else {
        return None;
    };
    let of_one_kind = low > 0 || low == high;
    let fits = plain.plain && plain.separable && of_one_kind && !chain.names_id();
    fits.then_some((low, high))
}

/// Whether a chain looks at a few units at most: that of an id, or those of a few depths.
fn is_local(plan: &Plan, chains: &[BoundChain]) -> bool {
    let ([plan], [chain]) = (&*plan.chains, chains) else {
        return false;
    };
    let few = plan.scope.as_ref().is_some_and(|depths| {
        let widths = depths
            .ranges()
            .iter()
            .map(|(low, high)| high.abs_diff(*low));
        widths.fold(0, u64::saturating_add) < LOCAL_DEPTHS
    });
    plan.separable && (few || chain.names_id())
}

/// Maps every item, in one allocation of just the size, where collecting results takes several.
fn try_map<T, U, E>(items: &[T], map: impl FnMut(&T) -> Result<U, E>) -> Result<Box<[U]>, E> {
    let mut mapped = Vec::with_capacity(items.len());
    for item in items.iter().map(map) {
        mapped.push(item?);
    }
    Ok(mapped.into())
}

/// The value of a slot and the parameter it came from.
struct Slotted {
    value: Value,
    param: Option<Box<str>>,
}

fn resolve(source: &Source, params: &[(Box<str>, Value)]) -> Result<Slotted, BindError> {
    match source {
        Source::Value(value) => Ok(Slotted {
            value: value.clone(),
            param: None,
        }),
        Source::Param(name) => match params.iter().find(|(known, _)| known == name) {
            Some((_, value)) => Ok(Slotted {
                value: value.clone(),
                param: Some(name.clone()),
            }),
            None => Err(BindError::new(
                Some(name.clone()),
                &*format!("`${name}` has no value"),
            )),
        },
        Source::List(items) => {
            let mut param = None;
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                let item = resolve(item, params)?;
                if matches!(item.value, Value::List(_)) {
                    return Err(BindError::new(
                        item.param,
                        "a list cannot stand inside a list",
                    ));
                }
                param = param.or(item.param);
                values.push(item.value);
            }
            Ok(Slotted {
                value: Value::List(values.into()),
                param,
            })
        }
    }
}

struct Binder<'a> {
    values: &'a [Slotted],
    patterns: Patterns,
}

impl Binder<'_> {
    fn filter(&mut self, axis: Axis, filter: &FilterPlan) -> Result<BoundStep, BindError> {
        let tests = self.tests(&filter.tests)?;
        let tail = try_map(&filter.tail, |tail| {
            Ok(match tail {
                TailPlan::First => BoundTail::First,
                TailPlan::Last => BoundTail::Last,
                TailPlan::Nth(slot) => BoundTail::Nth(self.count(*slot, 1, "`:nth`")?),
                TailPlan::Test(test) => BoundTail::Test(self.test(test)?),
            })
        })?;
        let id = tests.iter().find_map(|test| match test {
            BoundTest::Attr(Condition {
                attr: Attr::Id,
                compare: Compare::Text(test),
            }) => test.only().map(Into::into),
            _ => None,
        });
        let key_order = filter.key_slot.is_some_and(|slot| self.is_key(slot));
        Ok(BoundStep::Filter {
            axis,
            tests,
            tail,
            key_order,
            id,
        })
    }

    fn tests(&mut self, tests: &[Predicate]) -> Result<Box<[BoundTest]>, BindError> {
        try_map(tests, |test| self.test(test))
    }

    fn test(&mut self, test: &Predicate) -> Result<BoundTest, BindError> {
        Ok(match test {
            Predicate::Type(test) => BoundTest::Type(*test),
            Predicate::Depth(depths) => BoundTest::Depth(depths.clone()),
            Predicate::Attr { attr, op, slot } => {
                let values = self.values;
                let slotted = &values[*slot as usize];
                let compare = compare(attr, *op, &slotted.value, &mut self.patterns)
                    .map_err(|unfit| BindError::new(slotted.param.clone(), unfit))?;
                BoundTest::Attr(Condition {
                    attr: attr.clone(),
                    compare,
                })
            }
        })
    }

    fn slotted(&self, slot: Slot) -> &Slotted {
        &self.values[slot as usize]
    }

    /// Whether the slots hold one and the same key.
    fn one_key(&self, slots: &[Slot]) -> bool {
        let value = |slot: Slot| self.slotted(slot).value.alone();
        slots.first().is_some_and(|&first| {
            self.is_key(first) && slots.iter().all(|&slot| value(slot) == value(first))
        })
    }

    /// Whether the slot holds one key.
    fn is_key(&self, slot: Slot) -> bool {
        matches!(
            self.slotted(slot).value.alone(),
            Value::Text(_) | Value::Int(_) | Value::Decimal(_)
        )
    }

    fn count(&self, slot: Slot, least: i64, what: &str) -> Result<u64, BindError> {
        let slotted = self.slotted(slot);
        match slotted.value {
            Value::Int(number) if number >= least => Ok(number as u64),
            _ => Err(BindError::new(
                slotted.param.clone(),
                &*format!("{what} takes an integer of at least {least}"),
            )),
        }
    }
}

/// The comparison of an attribute with a value.
fn compare(attr: &Attr, op: Op, value: &Value, patterns: &mut Patterns) -> Result<Compare, Unfit> {
    if matches!(value, Value::List(items) if items.is_empty()) {
        return Err("a list needs at least one value".into());
    }
    if matches!(value, Value::List(_)) && !matches!(op, Op::Eq | Op::Ne) {
        return Err("a list goes with `=` and `!=` only".into());
    }
    let value = value.alone();
    Ok(match (attr, attr.kind()) {
        (_, Kind::Number) => Compare::Number(NumberSet::new(op, value).ok_or(match op {
            Op::Matches => "`~` does not go with a number",
            _ => "a number is compared with a number or null",
        })?),
        (Attr::Content, _) => Compare::Value(ValueTest::new(op, value, true, patterns)?),
        (Attr::StoredType | Attr::NodeType, _) if op != Op::Matches => Compare::Text(
            TextTest::new(op, value, |text| normal_type(&text).into(), patterns)?,
        ),
        (_, Kind::Text) => Compare::Text(TextTest::new(op, value, |text| text, patterns)?),
        (_, Kind::Tags | Kind::Dynamic) => {
            Compare::Value(ValueTest::new(op, value, false, patterns)?)
        }
    })
}
