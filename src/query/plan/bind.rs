//! Binding: fills the slots of a plan with checked values.

use smallvec::SmallVec;

use super::bound::{
    AttrCondition, Bound, BoundChain, BoundFilter, BoundInner, BoundPick, BoundStep, BoundTest,
    BoundTests, NearestEnd, NearestRows,
};
use super::predicate::Compare;
use super::steps::{
    FilterPlan, GroupStep, Plan, PlannedGroup, Predicate, RootOrSeq, SlotNumber, SlotTest,
};
use super::text_test::UnfitValue;
use super::value::Value;
use crate::query::ir::{Attr, InnerTest, Literal, Operand, Patterns, PickStep, RowOrder};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BindError {
    /// The parameter, without the dollar sign; `None` for a literal.
    pub param: Option<Box<str>>,
    #[source]
    pub reason: UnfitValue,
}

impl BindError {
    /// The error of a parameter, or of a literal where `param` is `None`.
    pub fn new(param: Option<Box<str>>, reason: impl Into<UnfitValue>) -> Self {
        let reason = reason.into();
        Self { param, reason }
    }
}

/// Fills the slots of `plan` from `sources`, looking up parameters in `params`.
///
/// # Errors
/// A parameter without a value, or a value that a literal in its place could not have
/// (LANGUAGE §5). Missing values are reported first.
pub fn bind(
    plan: &Plan,
    sources: &[&Operand],
    params: &[(&str, Value)],
) -> Result<Bound, BindError> {
    // A missing parameter is reported before any value is checked, as the first thing to mend.
    for source in sources {
        check(source, params)?;
    }
    let mut binder = Binder {
        sources,
        params,
        patterns: Patterns::new(),
        inner: 0,
    };
    let mut chains = SmallVec::with_capacity(plan.chains.len());
    for chain in &plan.chains {
        chains.push(binder.chain(chain)?);
    }
    let page = binder.page(plan)?;
    let filters = try_map(&plan.filters, |test| binder.test(test))?;
    let order = binder.order(plan)?;
    Ok(Bound {
        interval: interval(&chains, &filters),
        in_word: binder.inner == 0 && chains.iter().all(BoundChain::in_word),
        picks_cores: chains.iter().any(BoundChain::picks_cores),
        sees_cores: chains.iter().any(BoundChain::sees_cores),
        in_words: in_words(&chains),
        breadth: breadth(&chains),
        nearest: nearest(&chains, &filters, order, plan.unique, page),
        requires_ids: requires_ids(&chains),
        inner: binder.inner,
        inner_in_units: binder.inner > 0 && in_units(plan),
        pattern_bytes: binder.patterns.bytes(),
        is_bare: order == RowOrder::Pre && !plan.unique && page.is_none(),
        unique: plan.unique,
        mode: plan.mode,
        chains,
        filters,
        order,
        page,
    })
}

/// Whether the conditions of each step depend on the unit of its node alone.
fn in_units(plan: &Plan) -> bool {
    let steps = plan.chains.iter().flat_map(|chain| &chain.steps);
    steps.into_iter().all(|step| match step {
        GroupStep::Filter(filter) => !filter.reads_units(),
        GroupStep::Zone { .. } => true,
    })
}

fn interval(chains: &[BoundChain], filters: &[BoundTest]) -> Option<(i64, i64)> {
    // A filter of the final set would need the rows of the union.
    let ([chain], []) = (chains, filters) else {
        return None;
    };
    let ranges = chain.scope.as_ref()?.ranges();
    let ((low, _), (_, high)) = (*ranges.first()?, *ranges.last()?);
    // `^sys`, `^ah` and the turns are apart in document order, so an interval over several of them
    // is not one row range.
    let one_kind = low > 0 || low == high;
    (one_kind && chain.in_words()).then_some((low, high))
}

fn in_words(chains: &[BoundChain]) -> bool {
    // A pass or two over all rows cost less than windows over all units.
    let is_short = |chain: &BoundChain| chain.scope.is_none() && chain.steps.len() < 3;
    !chains.is_empty() && chains.iter().all(BoundChain::in_words) && !chains.iter().any(is_short)
}

fn requires_ids(chains: &[BoundChain]) -> bool {
    // A chain that is not separable sees the whole tree, whatever ids it names.
    let by_id = |chain: &BoundChain| chain.separable && chain.names_id();
    !chains.is_empty() && chains.iter().all(by_id)
}

fn nearest(
    chains: &[BoundChain],
    filters: &[BoundTest],
    order: RowOrder,
    unique: bool,
    page: Option<(u64, u64)>,
) -> Option<NearestRows> {
    let ([chain], []) = (chains, filters) else {
        return None;
    };
    // Picks count implicit cores.
    let step = chain.step_of_rows().filter(|step| !step.cores)?;
    // Further steps read the unit of the one row that is picked.
    if chain.steps.len() > 1 && (step.picks.is_empty() || step.ambient != RootOrSeq::Never) {
        return None;
    }
    let by_key = |newest: bool| {
        if newest {
            NearestEnd::Newest
        } else {
            NearestEnd::First
        }
    };
    let (from, (skip, take)) = match (&*step.picks, page) {
        // A count applies the page once more, which changes nothing if no row is skipped.
        ([], Some((0, take))) if !unique => match order {
            RowOrder::Pre => (NearestEnd::First, (0, take)),
            RowOrder::Default => (NearestEnd::Newest, (0, take)),
            _ => return None,
        },
        ([BoundPick::First], _) => (by_key(step.key_order), (0, 1)),
        ([BoundPick::Nth(n)], _) => (by_key(step.key_order), (n.saturating_sub(1), 1)),
        ([BoundPick::Last], _) if !step.key_order => (NearestEnd::Last, (0, 1)),
        _ => return None,
    };
    Some(NearestRows {
        from,
        skip,
        take,
        is_pick: !step.picks.is_empty(),
    })
}

fn breadth(chains: &[BoundChain]) -> u64 {
    // How much a run reads at most, for the choice between running at once and deferring. Unions
    // and chains without a scope may read everything.
    match chains {
        [_] if requires_ids(chains) => 0,
        [
            BoundChain {
                separable: true,
                scope: Some(depths),
                ..
            },
        ] => {
            let ranges = depths.ranges().iter();
            // A depth is one turn or one region, so their number says how much a run reads.
            let widths = ranges.map(|(low, high)| high.abs_diff(*low));
            widths.fold(0, u64::saturating_add)
        }
        _ => u64::MAX,
    }
}

fn try_map<T, U, E>(items: &[T], map: impl FnMut(&T) -> Result<U, E>) -> Result<Box<[U]>, E> {
    // One allocation of the exact size. Collecting `Result`s takes several, because their iterator
    // does not know how many values it will have.
    let mut mapped = Vec::with_capacity(items.len());
    for item in items.iter().map(map) {
        mapped.push(item?);
    }
    Ok(mapped.into())
}

/// Checks that every parameter of a source has a value, and that no list is inside a list.
fn check(source: &Operand, params: &[(&str, Value)]) -> Result<(), BindError> {
    match source {
        Operand::Literal(_) => Ok(()),
        Operand::Param(name) => value_of(name, params).map(|_| ()),
        Operand::List(items) => items.iter().try_for_each(|item| match item {
            // A list of one element means that element, which may be a list then.
            Operand::Param(name) if items.len() > 1 => match value_of(name, params)? {
                Value::List(_) => Err(BindError::new(
                    Some(name.clone()),
                    "a list cannot be inside a list",
                )),
                _ => Ok(()),
            },
            item => check(item, params),
        }),
    }
}

fn resolve(source: &Operand, params: &[(&str, Value)]) -> Result<Value, BindError> {
    Ok(match source {
        Operand::Literal(literal) => literal.into(),
        Operand::Param(name) => value_of(name, params)?.clone(),
        // A list of one element means that element (LANGUAGE §5).
        Operand::List(items) if items.len() == 1 => resolve(&items[0], params)?,
        Operand::List(items) => Value::List(try_map(items, |item| resolve(item, params))?),
    })
}

fn value_of<'a>(name: &str, params: &'a [(&'a str, Value)]) -> Result<&'a Value, BindError> {
    match params.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(value),
        None => Err(BindError::new(
            Some(name.into()),
            format!("`${name}` has no value"),
        )),
    }
}

fn param(source: &Operand) -> Option<&str> {
    match source {
        Operand::Literal(_) => None,
        Operand::Param(name) => Some(name),
        Operand::List(items) => items.iter().find_map(param),
    }
}

struct Binder<'a> {
    sources: &'a [&'a Operand],
    params: &'a [(&'a str, Value)],
    patterns: Patterns,
    /// The number of conditions with selectors inside that are bound.
    inner: usize,
}

impl Binder<'_> {
    fn chain(&mut self, chain: &PlannedGroup<FilterPlan>) -> Result<BoundChain, BindError> {
        let steps = try_map(&chain.steps, |step| {
            Ok(match step {
                GroupStep::Filter(filter) => BoundStep::Filter(self.filter(filter)?),
                &GroupStep::Zone { axis, zone } => BoundStep::Zone { axis, zone },
            })
        })?;
        Ok(BoundChain {
            scope: chain.scope.clone(),
            separable: chain.separable,
            plain: chain.plain,
            steps,
        })
    }

    fn filter(&mut self, filter: &FilterPlan) -> Result<BoundFilter, BindError> {
        let mut tests = BoundTests::with_capacity(filter.tests.len());
        for test in &filter.tests {
            tests.push(self.test(test)?);
        }
        // A stable sort: conditions with selectors inside stay in the order of their numbers.
        tests.sort_by_key(BoundTest::reads_nodes);
        let picks = try_map(&filter.picks, |pick| {
            Ok(match pick {
                PickStep::First => BoundPick::First,
                PickStep::Last => BoundPick::Last,
                PickStep::Nth(slot) => BoundPick::Nth(self.count(*slot, 1, "`:nth`")?),
                PickStep::Test(test) => BoundPick::Test(self.test(test)?),
            })
        })?;
        // Ids are equal in no two nodes, so one equality bounds the step to one node.
        let id = tests.iter().find_map(|test| match test {
            BoundTest::Attr(AttrCondition {
                attr: Attr::Id,
                compare: Compare::Text(test),
            }) => test.only().map(Into::into),
            _ => None,
        });
        let key_order = match filter.key_slot {
            Some(slot) => self.is_key(slot)?,
            None => false,
        };
        Ok(BoundFilter {
            axis: filter.axis,
            tests,
            picks,
            key_order,
            ambient: filter.ambient,
            cores: filter.cores,
            level: filter.level,
            id,
        })
    }

    fn test(&mut self, test: &Predicate) -> Result<BoundTest, BindError> {
        Ok(match test {
            Predicate::Type(test) => BoundTest::Type(*test),
            Predicate::Depth(depths) => BoundTest::Depth(depths.clone()),
            Predicate::Inner(test) => {
                let any = try_map(&test.any, |chain| self.chain(chain))?;
                let number = self.inner;
                self.inner += 1;
                let (kind, within) = (test.kind, test.within);
                let test = InnerTest { kind, within, any };
                BoundTest::Inner(Box::new(BoundInner { number, test }))
            }
            Predicate::Attr(SlotTest { attr, op, slot }) => {
                let value = self.value(*slot)?;
                let compare = Compare::new(attr, *op, value, &mut self.patterns)
                    .map_err(|unfit| self.unfit(*slot, unfit))?;
                BoundTest::Attr(AttrCondition {
                    attr: attr.clone(),
                    compare,
                })
            }
        })
    }

    fn order(&self, plan: &Plan) -> Result<RowOrder, BindError> {
        Ok(match plan.order {
            // Key order holds only if all groups pin the same key (LANGUAGE §6).
            RowOrder::Default if !self.is_one_key(&plan.key_slots)? => RowOrder::Pre,
            order => order,
        })
    }

    fn page(&self, plan: &Plan) -> Result<Option<(u64, u64)>, BindError> {
        let count = |slot: Option<SlotNumber>, least, what| {
            slot.map(|slot| self.count(slot, least, what)).transpose()
        };
        let limit = count(plan.limit, 0, "a limit")?;
        let page = count(plan.page, 1, "a page")?.unwrap_or(1);
        // Saturates, because a page that far is empty anyway.
        Ok(limit.map(|limit| ((page - 1).saturating_mul(limit), limit)))
    }

    fn source(&self, slot: SlotNumber) -> &Operand {
        self.sources[slot as usize]
    }

    fn value(&self, slot: SlotNumber) -> Result<Value, BindError> {
        resolve(self.source(slot), self.params)
    }

    fn unfit(&self, slot: SlotNumber, unfit: impl Into<UnfitValue>) -> BindError {
        BindError::new(param(self.source(slot)).map(Into::into), unfit)
    }

    fn is_one_key(&self, slots: &[SlotNumber]) -> Result<bool, BindError> {
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

    fn is_key(&self, slot: SlotNumber) -> Result<bool, BindError> {
        Ok(match self.source(slot) {
            // Null pins nothing: nodes without a key have nothing in common.
            Operand::Literal(literal) => !matches!(literal, Literal::Null),
            source => matches!(
                resolve(source, self.params)?.alone(),
                Value::Text(_) | Value::Int(_) | Value::Decimal(_) | Value::Spelled(_)
            ),
        })
    }

    fn count(&self, slot: SlotNumber, least: i64, what: &str) -> Result<u64, BindError> {
        match self.value(slot)? {
            // At least 0, so the cast keeps the number.
            Value::Int(number) if number >= least => Ok(number as u64),
            _ => Err(self.unfit(slot, format!("{what} takes an integer of at least {least}"))),
        }
    }
}
