//! Plans as text, one label per operator.

use std::fmt::Write;

use super::steps::{FilterPlan, GroupStep, InnerPlan, Plan, Predicate, SlotTest};
use super::value::Value;
use crate::query::ir::{
    Axis, Class, DepthSet, InnerKind, Operand, PickStep, RowOrder, TypeTest, Zone,
};

/// One operator of a plan. See the example of [`Explain`](crate::explain::Explain).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct PlanLine {
    /// The group, from 0; none for what acts on the union.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    /// The step of the group, from 0; none for its scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// What it does.
    pub operator: String,
    /// The steps of the selectors inside of its conditions, the last to run first; indented where conditions are
    /// inside each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
    /// Rows an index promises at most, where it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_rows: Option<u64>,
    /// Rows it kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual_rows: Option<u64>,
    /// What it took, if the plan was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<StepWork>,
}

/// What an operator took, all runs of it together. See the example of [`Explain`](crate::explain::Explain).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct StepWork {
    /// Time in nanoseconds, without that of reading the clock: of all threads together for a step; for what acts on
    /// the union the rest of the whole. Conditions with selectors inside are found before the steps, so their time is
    /// in that rest.
    pub time_ns: u64,
    /// Pieces of snapshots that it went through; each counts once a run.
    pub pieces: u64,
    /// Bytes of the texts in which its patterns were searched for, those inside of its conditions included.
    pub text_bytes: u64,
    /// Rows whose ttl it compared: with a value, there or inside of its conditions, or between two snapshots.
    pub ttl_rows: u64,
}

impl Plan {
    /// The operators, the last to run first: final set, then each group's steps from right to
    /// left, then the group's scope.
    pub fn operators(&self) -> Vec<PlanLine> {
        let line = |group: Option<usize>, step: Option<usize>, operator: String| PlanLine {
            group,
            step,
            operator,
            inside: Vec::new(),
            estimated_rows: None,
            actual_rows: None,
            work: None,
        };
        let mut operators = vec![line(None, None, self.final_label())];
        for (index, chain) in self.chains.iter().enumerate() {
            let group = Some(index);
            // Data flows upwards, as in other plans: what runs first is printed last.
            for (at, step) in chain.steps.iter().enumerate().rev() {
                let mut line = line(group, Some(at), step.label(at == 0));
                step.add_inside(0, &mut line.inside);
                operators.push(line);
            }
            let mut scope = match &chain.scope {
                None => "scope  every segment".to_owned(),
                Some(depths) => format!("scope  depth {}", depths_label(depths)),
            };
            if !chain.separable {
                scope.push_str(", not in chunks");
            }
            operators.push(line(group, None, scope));
        }
        operators
    }

    fn final_label(&self) -> String {
        let mut label = match self.chains.len() {
            0 => "nothing".to_owned(),
            1 => "answer".to_owned(),
            groups => format!("union of {groups} groups"),
        };
        for filter in &self.filters {
            let _ = write!(label, ", keep {}", predicate_label(filter));
        }
        label.push_str(match self.order {
            RowOrder::Default if !self.key_slots.is_empty() => ", key order",
            RowOrder::Default | RowOrder::Pre => ", document order",
            RowOrder::Post => ", post order",
            RowOrder::Bfs => ", breadth first",
            RowOrder::Path => ", by path",
            RowOrder::TurnDesc => ", newest turn first",
            RowOrder::TurnAsc => ", oldest turn first",
        });
        if self.unique {
            label.push_str(", one row a key");
        }
        if let Some(slot) = self.limit {
            let _ = write!(label, ", limit ?{}", slot + 1);
        }
        if let Some(slot) = self.page {
            let _ = write!(label, ", page ?{}", slot + 1);
        }
        label
    }
}

impl GroupStep<FilterPlan> {
    pub fn label(&self, first: bool) -> String {
        let axis = |axis: Axis| match axis {
            _ if first => "anywhere",
            Axis::Descendant => "below",
            Axis::Child => "child",
        };
        match self {
            Self::Zone { axis: of, zone } => format!("zone   {}: {}", axis(*of), zone_label(*zone)),
            Self::Filter(filter) => format!("match  {}: {}", axis(filter.axis), filter.label()),
        }
    }
}

impl GroupStep<FilterPlan> {
    /// The steps inside of the conditions of a step, below it and indented, the last to run first.
    fn add_inside(&self, level: usize, lines: &mut Vec<String>) {
        let Self::Filter(filter) = self else {
            return;
        };
        let after = filter.picks.iter().filter_map(PickStep::test);
        for inner in filter
            .tests
            .iter()
            .chain(after)
            .filter_map(Predicate::inner)
        {
            let first = matches!(inner.kind, InnerKind::After | InnerKind::Before);
            for group in &inner.any {
                for (at, step) in group.steps.iter().enumerate().rev() {
                    let label = match step {
                        Self::Filter(test) if inner.kind.takes_tests() => {
                            format!("test   {}", test.label())
                        }
                        step => step.label(first && at == 0),
                    };
                    let name = inner.kind.name();
                    lines.push(format!("{:width$}:{name} {label}", "", width = 2 * level));
                    step.add_inside(level + 1, lines);
                }
            }
        }
    }
}

impl FilterPlan {
    fn label(&self) -> String {
        let mut parts: Vec<String> = self.tests.iter().map(predicate_label).collect();
        if parts.is_empty() {
            parts.push("any node".to_owned());
        }
        let mut label = parts.join(", ");
        for pick in &self.picks {
            let _ = match pick {
                PickStep::First => write!(label, "; first of each group"),
                PickStep::Last => write!(label, "; last of each group"),
                PickStep::Nth(slot) => write!(label, "; number ?{} of each group", slot + 1),
                PickStep::Test(test) => write!(label, "; then {}", predicate_label(test)),
            };
        }
        label
    }
}

fn zone_label(zone: Zone) -> &'static str {
    match zone {
        Zone::Pre => "pre-context",
        Zone::Core => "core",
        Zone::Post => "post-context",
    }
}

fn predicate_label(predicate: &Predicate) -> String {
    match predicate {
        Predicate::Type(test) => match test {
            TypeTest::Root => "the root",
            TypeTest::Seq => "^seq",
            TypeTest::Anchor => "region or turn",
            TypeTest::TurnOrAnchor => "turn or region",
            TypeTest::Class(Class::Turn) => "turn",
            TypeTest::Class(Class::Container) => "container",
            TypeTest::Class(Class::Block) => "block",
        }
        .to_owned(),
        Predicate::Depth(depths) => format!("depth {}", depths_label(depths)),
        Predicate::Inner(test) => inner_label(test),
        Predicate::Attr(SlotTest { attr, op, slot }) => {
            format!("{} {op} ?{}", attr.name(), slot + 1)
        }
    }
}

/// A condition with selectors inside, whose plans are listed below its step.
fn inner_label(test: &InnerPlan) -> String {
    let what = match test.kind {
        InnerKind::Has => "has one below",
        InnerKind::Not => "is none of",
        InnerKind::Is => "is one of",
        InnerKind::After => "comes after one",
        InnerKind::Before => "comes before one",
        InnerKind::HasResult if test.any.is_empty() => "a call with a result",
        InnerKind::HasResult => "a call whose result is one of",
        InnerKind::HasCall if test.any.is_empty() => "a result with a call",
        InnerKind::HasCall => "a result whose call is one of",
    };
    match test.within {
        Some(within) => format!("{what}, at most {within} depths away"),
        None => what.to_owned(),
    }
}

fn depths_label(depths: &DepthSet) -> String {
    if depths.is_empty() {
        return "none".to_owned();
    }
    depths.to_string()
}

/// What fills a slot, as `explain` shows it.
pub fn operand_label(operand: &Operand) -> String {
    match operand {
        // A list of one element means that element (LANGUAGE §5).
        Operand::List(items) if items.len() == 1 => operand_label(&items[0]),
        operand => operand.to_string(),
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // As a selector spells it.
        Operand::from(self).fmt(f)
    }
}
