//! Conditions with selectors inside (LANGUAGE §13): what a step looks up, as common table expressions before it.
//!
//! `:is` and `:not` are conditions on the row itself. The others look up rows that their selectors match: `:has`
//! those below a node, `:after` and `:before` the first end or the last beginning of a match in document order, `:has-result` and
//! `:has-call` pairs of a call and its result.

use crate::query::ir::{
    Axis, Chain, Class, InnerKind, InnerTest, NodeStep, QueryStep, Test, TypeTest, names_container,
    tests_of,
};

use super::error::Refused;
use super::predicate::{DEPTH, NeededRows, Predicates, begin};
use super::steps::{LeftSide, StepsWriter};
use super::words::{SelectQuery, all, any, complement};

/// Where a node ends; nothing is behind the root.
fn end(place: &str, rows: &str) -> String {
    format!(
        "case n.class when '^root' then null when '^seq' then ({rows}.inside_root + 1) * 2147483648 \
         else {place} * 2147483648 + n.pre_end end"
    )
}

/// Whether a condition in a chain asks where nodes begin and end.
pub(super) fn reads_order(chain: &Chain) -> bool {
    let nodes = chain.steps.iter().filter_map(|(_, step)| step.node());
    let mut inner = nodes.flat_map(NodeStep::all_tests).filter_map(Test::inner);
    inner.any(|test| test.kind.reads_outside() || test.any.iter().any(reads_order))
}

/// More turns than there are.
const MOST: i64 = 1 << 40;

impl Predicates<'_> {
    pub(super) fn inner(&mut self, test: &InnerTest<Chain>) -> Result<String, Refused> {
        match test.kind {
            InnerKind::Is => return self.one_of(&test.any),
            InnerKind::Not => return Ok(complement(&self.one_of(&test.any)?)),
            _ => {}
        }
        let rows = self.rows;
        let place = if self.wide {
            format!("coalesce(w.place, {rows}.place)")
        } else {
            format!("{rows}.place")
        };
        let mut on = match test.kind {
            InnerKind::Is | InnerKind::Not | InnerKind::Has => {
                "h.o_unit = n.unit_id and h.o_pre = n.pre".to_owned()
            }
            InnerKind::After => format!("h.edge <= {}", begin(&place)),
            InnerKind::Before => format!("h.edge >= {}", end(&place, rows)),
            InnerKind::HasResult => format!("h.call_at = {}", begin(&place)),
            InnerKind::HasCall => format!("h.result_at = {}", begin(&place)),
        };
        if let Some(within) = test.within {
            self.needs.depth = true;
            let within = within.min(MOST);
            on.push_str(&format!(
                " and h.depth between {DEPTH} - {within} and {DEPTH} + {within}"
            ));
        }
        let Some(step) = &mut self.step else {
            return Err(Refused::new(test, "only steps have conditions"));
        };
        let tables = step.looked_up(test, self.core)?;
        Ok(any(tables.into_iter().map(|table| {
            format!(
                "exists (select 1 from {table} h where h.session_id = {rows}.session_id \
                 and h.seq = {rows}.seq and {on})"
            )
        })))
    }

    /// Whether the tests of one of some steps hold.
    fn one_of(&mut self, steps: &[Chain]) -> Result<String, Refused> {
        let outer = std::mem::replace(&mut self.optional, true);
        let each = steps
            .iter()
            .map(|step| Ok(all(self.tests(tests_of(step))?)));
        let each = each.collect::<Result<Vec<_>, _>>();
        self.optional = outer;
        Ok(any(each?))
    }

    /// Whether a test of the class of containers is among those that hold: only then is an implicit core kept.
    pub(super) fn names_core(&mut self, tests: &[Test]) -> Result<String, Refused> {
        let mut named = Vec::new();
        for test in tests {
            match test {
                Test::Type(TypeTest::Class(Class::Container)) => return Ok("true".to_owned()),
                Test::Inner(inner) if inner.kind == InnerKind::Is => {
                    for step in inner
                        .any
                        .iter()
                        .filter(|step| names_container(tests_of(step)))
                    {
                        let holds = self.one_of(std::slice::from_ref(step))?;
                        named.push(all([holds, self.names_core(tests_of(step))?]));
                    }
                }
                _ => {}
            }
        }
        Ok(any(named))
    }
}

impl StepsWriter<'_> {
    /// Adds what a condition on the nodes of a step looks up. Returns the names, of which one is enough.
    pub(super) fn looked_up(
        &mut self,
        test: &InnerTest<Chain>,
        step: &NodeStep,
        cores: bool,
    ) -> Result<Vec<String>, Refused> {
        if matches!(test.kind, InnerKind::HasResult | InnerKind::HasCall) {
            self.needs.answers = true;
            self.needs.attr = true;
        }
        if test.any.is_empty() {
            return Ok(vec!["answered".to_owned()]);
        }
        let mut names = Vec::with_capacity(test.any.len());
        for chain in &test.any {
            let word = test.kind.name().replace('-', "_");
            let prefix = format!("{word}_{}_", self.with.number());
            let mut inside = StepsWriter {
                tables: self.tables,
                with: self.with,
                needs: self.needs,
                prefix,
            };
            names.push(match test.kind {
                InnerKind::After | InnerKind::Before => inside.edge(test, chain)?,
                InnerKind::HasResult | InnerKind::HasCall => inside.answer(test.kind, chain)?,
                InnerKind::Has | InnerKind::Is | InnerKind::Not => {
                    inside.below(step, cores, chain)?
                }
            });
        }
        Ok(names)
    }

    /// What a chain matches below each node of a step, with that node.
    fn below(&mut self, step: &NodeStep, cores: bool, chain: &Chain) -> Result<String, Refused> {
        // The other tests of the step say which nodes that can be.
        let tests = step.tests.iter().filter(|test| test.inner().is_none());
        let nodes = NodeStep {
            tests: tests.cloned().collect(),
            tail: Box::default(),
        };
        let name = format!("{}nodes", self.prefix);
        let first = LeftSide::None;
        let nodes = self.node(&first, Axis::Descendant, &nodes, &name, &chain.steps, cores)?;
        self.chain_from(nodes.into_origin(), chain)
    }

    /// The first end of the matches of a chain, or where the last one begins; of each depth, where that counts.
    fn edge(&mut self, test: &InnerTest<Chain>, chain: &Chain) -> Result<String, Refused> {
        let found = self.chain(chain)?;
        let node = self
            .tables
            .join_node("n", "f", "f.unit_id", "n.pre = f.pre");
        let edge = match test.kind {
            InnerKind::After => format!("min({}) as edge", end("f.place", "f")),
            _ => format!("max({}) as edge", begin("f.place")),
        };
        let needs = NeededRows {
            depth: test.within.is_some(),
            ..NeededRows::default()
        };
        let mut edges = SelectQuery::new("f.session_id, f.seq")
            .and(edge)
            .from(format!("{found} f"))
            .from(self.tables.ordered(&node))
            .only("f.id is not null");
        edges.from.extend(self.tables.joins(needs, "f"));
        let mut group = "group by f.session_id, f.seq".to_owned();
        if test.within.is_some() {
            edges = edges.and(format!("{DEPTH} as depth"));
            edges.add_filter(format!("{DEPTH} is not null"));
            group.push_str(&format!(", {DEPTH}"));
        }
        self.needs.add(needs);
        let name = format!("{}edge", self.prefix);
        self.with.add(&name, edges.end(group));
        Ok(name)
    }

    /// The pairs of a call and its result of which the other one passes a test.
    fn answer(&mut self, kind: InnerKind, test: &Chain) -> Result<String, Refused> {
        let Some((axis, QueryStep::Node(step))) = test.steps.first() else {
            return Ok("answered".to_owned());
        };
        let name = format!("{}tested", self.prefix);
        self.node(&LeftSide::None, *axis, step, &name, &[], false)?;
        let other = if kind == InnerKind::HasResult {
            "result_at"
        } else {
            "call_at"
        };
        let pairs = SelectQuery::new("h.*").from(format!("{name} n")).from(format!(
            "join answered h on h.session_id = n.session_id and h.seq = n.seq and h.{other} = {}",
            begin("n.place")
        ));
        let name = format!("{}pairs", self.prefix);
        self.with.add(&name, pairs);
        Ok(name)
    }
}
