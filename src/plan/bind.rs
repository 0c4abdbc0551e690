//! Filling a plan's slots: from a plan and values to tests that can be asked.

use std::sync::Arc;

use smallvec::SmallVec;

use super::compare::{Compare, NumberSet, TextTest, Unfit, ValueTest};
use super::{FilterPlan, Plan, Predicate, Slot, StepOperator, TailPlan, Value};
use crate::ir::{
    Attr, Axis, DepthSet, Kind, Literal, Op, Operand, Order, Patterns, TypeTest, Zone, normal_type,
};

/// Depths, beyond the first of each range, that a plan may look at and still count as local.
const LOCAL_DEPTHS: u64 = 8;

/// A plan with its values in place; still without a snapshot. Immutable and shared.
#[derive(Debug)]
pub struct Bound {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The groups.
    pub chains: SmallVec<[BoundChain; 1]>,
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
        tests: BoundTests,
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

/// The tests of a step. Most steps have one, which then stands in the step itself.
pub type BoundTests = SmallVec<[BoundTest; 1]>;

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
    sources: &[&Operand],
    params: &[(Box<str>, Value)],
) -> Result<Bound, BindError> {
    // What is missing is told before what does not fit.
    for source in sources {
        check(source, params)?;
    }
    let mut binder = Binder {
        sources,
        params,
        patterns: Patterns::new(),
    };
    let mut chains = SmallVec::with_capacity(plan.chains.len());
    for chain in &plan.chains {
        let steps = try_map(&chain.steps, |step| match &step.operator {
            StepOperator::Zone(zone) => Ok(BoundStep::Zone {
                axis: step.axis,
                zone: *zone,
            }),
            StepOperator::Filter(filter) => binder.filter(step.axis, filter),
        })?;
        chains.push(BoundChain { steps });
    }
    let limit = plan
        .limit
        .map(|slot| binder.count(slot, 0, "a limit"))
        .transpose()?;
    let page = plan
        .page
        .map(|slot| binder.count(slot, 1, "a page"))
        .transpose()?;
    let filters = try_map(&plan.filters, |test| binder.test(test))?;
    let key_order = binder.one_key(&plan.key_slots)?;
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

/// Whether every parameter of a source has a value that can stand there.
fn check(source: &Operand, params: &[(Box<str>, Value)]) -> Result<(), BindError> {
    match source {
        Operand::Literal(_) => Ok(()),
        Operand::Param(name) => value_of(name, params).map(|_| ()),
        Operand::List(items) => items.iter().try_for_each(|item| match item {
            Operand::Param(name) if items.len() > 1 => match value_of(name, params)? {
                Value::List(_) => Err(BindError::new(
                    Some(name.clone()),
                    "a list cannot stand inside a list",
                )),
                _ => Ok(()),
            },
            item => check(item, params),
        }),
    }
}

/// What a source comes to.
fn resolve(source: &Operand, params: &[(Box<str>, Value)]) -> Result<Value, BindError> {
    Ok(match source {
        Operand::Literal(literal) => literal.into(),
        Operand::Param(name) => value_of(name, params)?.clone(),
        // A list of one means what its element means, everywhere.
        Operand::List(items) if items.len() == 1 => resolve(&items[0], params)?,
        Operand::List(items) => Value::List(try_map(items, |item| resolve(item, params))?),
    })
}

/// The value of a parameter.
fn value_of<'a>(name: &str, params: &'a [(Box<str>, Value)]) -> Result<&'a Value, BindError> {
    match params.iter().find(|(known, _)| **known == *name) {
        Some((_, value)) => Ok(value),
        None => Err(BindError::new(
            Some(name.into()),
            &*format!("`${name}` has no value"),
        )),
    }
}

/// The first parameter of a source.
fn param(source: &Operand) -> Option<&str> {
    match source {
        Operand::Literal(_) => None,
        Operand::Param(name) => Some(name),
        Operand::List(items) => items.iter().find_map(param),
    }
}

struct Binder<'a> {
    sources: &'a [&'a Operand],
    params: &'a [(Box<str>, Value)],
    patterns: Patterns,
}

impl Binder<'_> {
    fn filter(&mut self, axis: Axis, filter: &FilterPlan) -> Result<BoundStep, BindError> {
        let mut tests = BoundTests::with_capacity(filter.tests.len());
        for test in &filter.tests {
            tests.push(self.test(test)?);
        }
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
        let key_order = match filter.key_slot {
            Some(slot) => self.is_key(slot)?,
            None => false,
        };
        Ok(BoundStep::Filter {
            axis,
            tests,
            tail,
            key_order,
            id,
        })
    }

    fn test(&mut self, test: &Predicate) -> Result<BoundTest, BindError> {
        Ok(match test {
            Predicate::Type(test) => BoundTest::Type(*test),
            Predicate::Depth(depths) => BoundTest::Depth(depths.clone()),
            Predicate::Attr { attr, op, slot } => {
                let value = self.value(*slot)?;
                let compare = compare(attr, *op, value, &mut self.patterns)
                    .map_err(|unfit| self.unfit(*slot, unfit))?;
                BoundTest::Attr(Condition {
                    attr: attr.clone(),
                    compare,
                })
            }
        })
    }

    fn source(&self, slot: Slot) -> &Operand {
        self.sources[slot as usize]
    }

    fn value(&self, slot: Slot) -> Result<Value, BindError> {
        resolve(self.source(slot), self.params)
    }

    fn unfit(&self, slot: Slot, unfit: impl Into<Unfit>) -> BindError {
        BindError::new(param(self.source(slot)).map(Into::into), unfit)
    }

    /// Whether the slots hold one and the same key.
    fn one_key(&self, slots: &[Slot]) -> Result<bool, BindError> {
        let Some((&first, more)) = slots.split_first() else {
            return Ok(false);
        };
        if !self.is_key(first)? {
            return Ok(false);
        }
        for &slot in more {
            if self.value(slot)?.alone() != self.value(first)?.alone() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the slot holds one key.
    fn is_key(&self, slot: Slot) -> Result<bool, BindError> {
        Ok(match self.source(slot) {
            Operand::Literal(literal) => !matches!(literal, Literal::Null),
            source => matches!(
                resolve(source, self.params)?.alone(),
                Value::Text(_) | Value::Int(_) | Value::Decimal(_)
            ),
        })
    }

    fn count(&self, slot: Slot, least: i64, what: &str) -> Result<u64, BindError> {
        match self.value(slot)? {
            Value::Int(number) if number >= least => Ok(number as u64),
            _ => Err(self.unfit(
                slot,
                &*format!("{what} takes an integer of at least {least}"),
            )),
        }
    }
}

/// The comparison of an attribute with a value.
fn compare(attr: &Attr, op: Op, value: Value, patterns: &mut Patterns) -> Result<Compare, Unfit> {
    if matches!(&value, Value::List(items) if items.is_empty()) {
        return Err("a list needs at least one value".into());
    }
    if matches!(value, Value::List(_)) && !matches!(op, Op::Eq | Op::Ne) {
        return Err("a list goes with `=` and `!=` only".into());
    }
    let value = value.into_alone();
    Ok(match (attr, attr.kind()) {
        (_, Kind::Number) => Compare::Number(NumberSet::new(op, &value).ok_or(match op {
            Op::Matches => "`~` does not go with a number",
            _ => "a number is compared with a number or null",
        })?),
        (Attr::Content, _) => Compare::Value(Box::new(ValueTest::new(op, value, true, patterns)?)),
        (Attr::StoredType | Attr::NodeType, _) if op != Op::Matches => Compare::Text(
            TextTest::new(op, value, |text| normal_type(&text).into(), patterns)?,
        ),
        (_, Kind::Text) => Compare::Text(TextTest::new(op, value, |text| text, patterns)?),
        (_, Kind::Tags | Kind::Dynamic) => {
            Compare::Value(Box::new(ValueTest::new(op, value, false, patterns)?))
        }
    })
}
