//! The steps of a chain as common table expressions, one a step (STORE §5).
//!
//! A step's rows are (`session_id`, `seq`, `unit_id`, `pre`) with the interval of the node, and what the
//! step after it asks for. A descendant is an interval test inside a unit. Only the root and `^seq` reach
//! other units; where a step may have matched one of them, a column `wide` says so and one join gives the
//! units that lie below. Each step reads the step before once.

use crate::query::ir::{
    Axis, Chain, Class, CompareOp, InnerTest, NodeStep, PickOrTest, QueryStep, TypeTest, Zone,
    names_container,
};

use super::dialect::Dialect;
use super::error::Refused;
use super::order::key_order;
use super::predicate::{NeededRows, Predicates, StepConditions};
use super::tables::{Tables, UNIT_ORDER};
use super::words::{CommonTables, SelectQuery, all, any};

/// What a step may have matched besides nodes inside a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OutsideUnits {
    root: bool,
    seq: bool,
}

impl OutsideUnits {
    fn is_any(self) -> bool {
        self.root || self.seq
    }
}

#[derive(Clone, Debug)]
pub(super) enum LeftSide {
    /// None: the step may match anywhere.
    None,
    /// The `^seq` node alone, which needs no rows of its own: it is what has units of rank 1 below it.
    Seq,
    Rows(StepRows),
}

#[derive(Clone, Debug)]
pub(super) struct StepRows {
    name: String,
    /// Whether each is a member of a zone, and not a node that others lie below.
    zone: bool,
    /// Whether they say which node of the left context each member of a zone belongs to.
    grouped: bool,
    /// Whether implicit cores may be among them.
    core: bool,
    wide: OutsideUnits,
    /// Of a chain inside a condition: the columns of the node that has the condition.
    origin: Option<[&'static str; 2]>,
}

impl LeftSide {
    /// The same rows, as nodes that have a condition.
    pub(super) fn into_origin(self) -> Self {
        match self {
            Self::Rows(rows) => Self::Rows(StepRows {
                origin: Some(["q.unit_id", "q.pre"]),
                ..rows
            }),
            other => other,
        }
    }

    /// The columns in which the next steps have the node that has the condition.
    fn origin(&self) -> Option<[&'static str; 2]> {
        match self {
            Self::Rows(rows) => rows.origin,
            Self::None | Self::Seq => None,
        }
    }
}

/// The names of the columns of the node that has the condition.
const ORIGIN: [&str; 2] = ["o_unit", "o_pre"];

pub(super) struct StepsWriter<'s> {
    pub(super) tables: &'s Tables,
    pub(super) with: &'s mut CommonTables,
    /// What all steps together read.
    pub(super) needs: &'s mut NeededRows,
    /// Before the name of each step: which group of a union, or which condition, it is in.
    pub(super) prefix: String,
}

impl StepsWriter<'_> {
    fn dialect(&self) -> Dialect {
        self.tables.dialect
    }

    /// Adds the steps of a chain. Returns the name of the last one, which has the chain's matches.
    pub(super) fn chain(&mut self, chain: &Chain) -> Result<String, Refused> {
        self.chain_from(LeftSide::None, chain)
    }

    pub(super) fn chain_from(&mut self, left: LeftSide, chain: &Chain) -> Result<String, Refused> {
        let anywhere = matches!(left, LeftSide::None);
        let mut left = left;
        for (index, (axis, step)) in chain.steps.iter().enumerate() {
            let rest = chain.steps.get(index + 1..).unwrap_or_default();
            let name = format!("{}{}_{}", self.prefix, index + 1, label(step));
            left = match step {
                QueryStep::Node(step)
                    if is_seq(step) && anywhere && index == 0 && !rest.is_empty() =>
                {
                    LeftSide::Seq
                }
                QueryStep::Node(step) => self.node(&left, *axis, step, &name, rest, false)?,
                QueryStep::Zone(zone) => self.zone(&left, *axis, *zone, &name, rest),
            };
        }
        match left {
            LeftSide::Rows(rows) => Ok(rows.name),
            // A chain has a last step with rows.
            LeftSide::None | LeftSide::Seq => Err(Refused::new("", "the chain is empty")),
        }
    }

    /// The start of a step: `n` joined to the rows of its left context, with the columns of every step. Returns
    /// the alias of the rows that have `session_id` and `seq`.
    fn start(&mut self, left: &LeftSide, axis: Axis, last: bool) -> (SelectQuery, &'static str) {
        let (mut select, rows) = self.reach(left, axis);
        let wide = is_joined_wide(&select);
        self.needs.crossed |= wide;
        let unit = self.tables.of_unit().map(|name| {
            if wide {
                format!("coalesce(w.{name}, {rows}.{name}) as {name}")
            } else {
                format!("{rows}.{name}")
            }
        });
        select.columns = vec![format!("{rows}.session_id"), format!("{rows}.seq")];
        select.columns.extend(unit);
        let node = ["n.unit_id", "n.pre", "n.pre_end"];
        select.columns.extend(node.map(str::to_owned));
        if let Some(origin) = left.origin() {
            let origin = origin.iter().zip(ORIGIN);
            let origin = origin.map(|(column, name)| format!("{column} as {name}"));
            select.columns.extend(origin);
        }
        if last {
            select.columns.push("n.id".to_owned());
        }
        (select, rows)
    }

    /// The tables and joins of a step.
    fn reach(&self, left: &LeftSide, axis: Axis) -> (SelectQuery, &'static str) {
        let mut select = SelectQuery::default();
        let tables = self.tables;
        let rows = match left {
            LeftSide::None | LeftSide::Seq => {
                let node = tables.join_node("n", "p", "p.unit_id", "");
                select = select.from("placed p").from(node);
                if matches!(left, LeftSide::Seq) {
                    select.add_filter("p.rank = 1");
                    if axis == Axis::Child {
                        select.add_filter("n.pre = 0");
                    }
                }
                return (select, "p");
            }
            LeftSide::Rows(rows) => rows,
        };
        select.from.push(format!("{} q", rows.name));
        let (mut low, mut high) = if rows.zone {
            ("n.pre >= q.pre".to_owned(), "n.pre < q.pre_end".to_owned())
        } else {
            ("n.pre > q.pre".to_owned(), "n.pre < q.pre_end".to_owned())
        };
        if rows.core && axis == Axis::Descendant {
            // Below an implicit core are its blocks and their subtrees.
            let blocks = "h.core_pre = q.pre and h.class = 'cb' and q.core = 1";
            let join = tables.join_node("h", "q", "q.unit_id", blocks);
            select.from.push(format!("left {join}"));
            low = "n.pre >= case when q.core = 1 then h.pre else q.pre + 1 end".to_owned();
            high = "n.pre < case when q.core = 1 then h.pre_end else q.pre_end end".to_owned();
        }
        let inside = match (axis, rows.zone) {
            (Axis::Descendant, _) => all([low, high]),
            (Axis::Child, true) => "n.pre = q.pre".to_owned(),
            (Axis::Child, false) if rows.core => all([
                "n.pre > q.pre".to_owned(),
                "(n.parent_pre = q.pre or n.core_pre = q.pre and n.class = 'cb')".to_owned(),
            ]),
            (Axis::Child, false) => all([low, high, "n.parent_pre = q.pre".to_owned()]),
        };
        if !rows.wide.is_any() || axis == Axis::Child && rows.zone {
            let join = tables.join_node("n", "q", "q.unit_id", &inside);
            select.from.push(tables.ordered(&join));
            return (select, "q");
        }
        // One row for a node inside a unit, and one for each unit that the root or `^seq` reaches.
        select.from.push(format!(
            "{WIDE_JOIN} on w.session_id = q.session_id and w.seq = case when q.wide > 0 then q.seq end"
        ));
        let join = tables.join_node("n", "q", "coalesce(w.unit_id, q.unit_id)", "");
        select.from.push(tables.ordered(&join));
        let below_seq = match (axis, rows.zone) {
            (Axis::Child, _) => "q.wide = 1 and w.rank = 1 and n.pre = 0",
            (Axis::Descendant, false) => "q.wide = 1 and w.rank = 1",
            (Axis::Descendant, true) => {
                "q.wide = 1 and (w.rank = 1 or w.unit_id = q.unit_id and n.pre = q.pre)"
            }
        };
        let below_root = match (axis, rows.zone) {
            (Axis::Child, _) => {
                "q.wide = 2 and (w.rank = 0 and n.parent_pre = 0 or w.rank > 1 and n.pre = 0)"
            }
            (Axis::Descendant, false) => "q.wide = 2 and n.class <> '^root'",
            (Axis::Descendant, true) => "q.wide = 2",
        };
        select.add_filter(format!(
            "(q.wide = 0 and {inside} or {below_seq} or {below_root})"
        ));
        (select, "q")
    }

    /// What a step may match besides nodes inside a unit.
    fn wide(left: &LeftSide, step: &QueryStep) -> OutsideUnits {
        let (root, seq) = match left {
            LeftSide::None => (true, true),
            LeftSide::Seq => (false, false),
            // A zone has its members, which may be the root or `^seq`; else only the root has `^seq` below.
            LeftSide::Rows(rows) => (
                rows.zone && rows.wide.root,
                rows.wide.root || rows.zone && rows.wide.seq,
            ),
        };
        let QueryStep::Node(step) = step else {
            return OutsideUnits { root, seq };
        };
        let has_depth = step.tests.iter().any(|test| test.depth().is_some());
        match step.type_test() {
            Some(TypeTest::Root) => OutsideUnits { root, seq: false },
            Some(TypeTest::Seq) => OutsideUnits { root: false, seq },
            Some(_) => OutsideUnits::default(),
            None if has_depth => OutsideUnits::default(),
            None => OutsideUnits { root, seq },
        }
    }

    /// The joins of what some conditions read, after the rows of a step at `rows`.
    fn add_joins(&mut self, select: &mut SelectQuery, needs: NeededRows, rows: &str) {
        if needs.turns_placed {
            // Which turns they are is known before their nodes are read.
            let node = self.tables.join_node("n", "p", "p.unit_id", "");
            select.from = vec!["turns p".to_owned(), self.tables.ordered(&node)];
        }
        select.from.extend(self.tables.joins(needs, rows));
        self.needs.add(needs);
    }

    fn zone(
        &mut self,
        left: &LeftSide,
        axis: Axis,
        zone: Zone,
        name: &str,
        rest: Rest<'_>,
    ) -> LeftSide {
        let (mut select, _) = self.start(left, axis, rest.is_empty());
        let grouped = wants_groups(rest);
        let wide = Self::wide(left, &QueryStep::Zone(zone));
        select.distinct = matches!(left, LeftSide::Rows(_));
        if wide.is_any() {
            select.columns.push(WIDE_COLUMN.to_owned());
        }
        if grouped {
            let (height, [unit, pre]) = match left {
                LeftSide::None => ("-1 as height", ["-1", "-1"]),
                LeftSide::Seq => ("2 as height", ["-1", "-1"]),
                LeftSide::Rows(left) => ("q.height", group_of(left)),
            };
            let group = format!("{height}, {unit} as g_unit, {pre} as g_pre");
            select.columns.push(group);
        }
        select.add_filter("n.id is not null");
        select.add_filter(match zone.offsets() {
            CompareOp::Lt => "n.sibling_offset < 0",
            CompareOp::Gt => "n.sibling_offset > 0",
            _ => "n.sibling_offset = 0",
        });
        self.with.add(name, select);
        LeftSide::Rows(StepRows {
            name: name.to_owned(),
            zone: true,
            grouped,
            core: false,
            wide,
            origin: left.origin().map(|_| HANDED_ON),
        })
    }

    /// Adds a step that matches nodes. `cores`: whether every implicit core on which its tests hold is among them.
    pub(super) fn node(
        &mut self,
        left: &LeftSide,
        axis: Axis,
        step: &NodeStep,
        name: &str,
        rest: Rest<'_>,
        cores: bool,
    ) -> Result<LeftSide, Refused> {
        let core = cores || names_container(&step.tests);
        let wide = Self::wide(left, &QueryStep::Node(step.clone()));
        let (mut select, rows) = self.start(left, axis, rest.is_empty());
        if wants_groups(rest) {
            select.columns.push(HEIGHT_COLUMN.to_owned());
        }
        if core {
            select
                .columns
                .push("case when n.id is null then 1 else 0 end as core".to_owned());
        }
        if wide.is_any() {
            select.columns.push(WIDE_COLUMN.to_owned());
        }
        let wide_rows = is_joined_wide(&select);
        let mut predicates = self.predicates(step, core, rows);
        predicates.wide = wide_rows;
        for condition in predicates.tests(&step.tests)? {
            select.add_filter(condition);
        }
        if step.type_test().is_none() && !cores {
            let named = predicates.names_core(&step.tests)?;
            select.add_filter(any(["n.id is not null".to_owned(), named]));
        }
        let needs = predicates.needs;
        drop(predicates);
        if !step.picks() {
            self.add_joins(&mut select, needs, rows);
            select.distinct = matches!(left, LeftSide::Rows(_));
            self.with.add(name, select);
        } else {
            self.picked(left, rows, select, needs, step, name)?;
        }
        Ok(LeftSide::Rows(StepRows {
            name: name.to_owned(),
            zone: false,
            grouped: true,
            core,
            wide,
            origin: left.origin().map(|_| HANDED_ON),
        }))
    }

    fn predicates<'p>(
        &'p mut self,
        step: &'p NodeStep,
        core: bool,
        rows: &'static str,
    ) -> Predicates<'p> {
        let attr = self.tables.table("attr");
        let mut predicates = Predicates::new(self.dialect(), attr, core, rows);
        let writer = StepsWriter {
            tables: self.tables,
            with: self.with,
            needs: self.needs,
            prefix: String::new(),
        };
        predicates.step = Some(Box::new((writer, step)));
        predicates
    }

    /// The rows of a step with picks: each with its group and its place in the order of the pick.
    // long: one query, and the columns that its parts hand on
    #[allow(clippy::too_many_arguments)]
    fn picked(
        &mut self,
        left: &LeftSide,
        rows: &'static str,
        mut select: SelectQuery,
        mut needs: NeededRows,
        step: &NodeStep,
        name: &str,
    ) -> Result<(), Refused> {
        let core = names_container(&step.tests);
        // The step hands on what it has so far, and nothing of its picks.
        let out: Vec<String> = select.columns.iter().map(|column| named(column)).collect();
        let by_key = step.pinned_key().is_some();
        let order: Vec<String> = if by_key {
            needs.depth = true;
            let keys = key_order().into_iter().enumerate().map(|(at, (key, way))| {
                select.columns.push(format!("{key} as k_{at}"));
                format!("k_{at}{way}")
            });
            keys.collect()
        } else {
            let unit = UNIT_ORDER.into_iter().chain(["pre"]);
            unit.map(str::to_owned).collect()
        };
        self.add_joins(&mut select, needs, rows);
        let mut group = "session_id, seq".to_owned();
        let mut from = format!("{name}_all");
        let mut nearest = None;
        if let LeftSide::Rows(left) = left {
            let [unit, pre] = group_of(left);
            select.columns.push(format!("{unit} as in_unit"));
            select.columns.push(format!("{pre} as in_pre"));
            // Of the nodes of the left context that reach a node the nearest one has it.
            let mut one = format!("{rows}.session_id, {rows}.seq, n.unit_id, n.pre");
            for (column, name) in left.origin.iter().flatten().zip(ORIGIN) {
                one.push_str(&format!(", {column}"));
                group.push_str(&format!(", {name}"));
            }
            select.columns.push(format!(
                "row_number() over (partition by {one} order by q.height desc, {unit}, {pre}) as near"
            ));
            group.push_str(", in_unit, in_pre");
            nearest = Some("near = 1".to_owned());
        }
        self.with.add(&from, select);
        let mut at = 0;
        let mut keep = nearest;
        for (index, tail) in step.tail.iter().enumerate() {
            let rows = format!("{from} s");
            let (next, select) = if let PickOrTest::Test(test) = tail {
                let mut predicates = self.predicates(step, core, "s");
                let condition = predicates.test(test)?;
                let needs = predicates.needs;
                drop(predicates);
                let node = (self.tables).join_node("n", "s", "s.unit_id", "n.pre = s.pre");
                let mut select = SelectQuery::new("s.*").from(rows).from(node);
                self.add_joins(&mut select, needs, "s");
                select.filters.extend(keep.take());
                (format!("{name}_test{}", index + 1), select.only(condition))
            } else {
                at += 1;
                let (order, place) = self.place(tail, &order)?;
                let mut select = SelectQuery::new(format!(
                    "s.*, row_number() over (partition by {group} order by {order}) as place{at}"
                ))
                .from(rows);
                select
                    .filters
                    .extend(keep.replace(format!("place{at} = {place}")));
                (format!("{name}_pick{at}"), select)
            };
            self.with.add(&next, select);
            from = next;
        }
        let kept = SelectQuery::new(out.join(", ")).from(from);
        let keep = keep.unwrap_or_else(|| "true".to_owned());
        self.with.add(name, kept.only(keep));
        Ok(())
    }

    fn place(&self, pick: &PickOrTest, order: &[String]) -> Result<(String, i64), Refused> {
        let reversed = || {
            let keys = order.iter().map(|key| match key.strip_suffix(" desc") {
                Some(key) => key.to_owned(),
                None => format!("{key} desc"),
            });
            keys.collect::<Vec<_>>().join(", ")
        };
        Ok(match pick {
            PickOrTest::Last => (reversed(), 1),
            PickOrTest::Nth(operand) => (order.join(", "), super::whole(operand)?),
            PickOrTest::First | PickOrTest::Test(_) => (order.join(", "), 1),
        })
    }
}

impl StepConditions for (StepsWriter<'_>, &NodeStep) {
    fn looked_up(&mut self, test: &InnerTest<Chain>, cores: bool) -> Result<Vec<String>, Refused> {
        let (writer, step) = self;
        writer.looked_up(test, step, cores)
    }
}

/// The units that the root or `^seq` reaches.
const WIDE_JOIN: &str = "left join placed w";

/// Those columns as the next step reads them.
const HANDED_ON: [&str; 2] = ["q.o_unit", "q.o_pre"];

type Rest<'r> = &'r [(Axis, QueryStep)];

/// Levels, in which an implicit core is between its turn and its blocks.
const HEIGHT_COLUMN: &str =
    "case when n.id is null then 2 * n.level - 1 else 2 * n.level end as height";

/// Which units a node reaches besides its own: those of the sequence, or all.
const WIDE_COLUMN: &str = "case n.class when '^root' then 2 when '^seq' then 1 else 0 end as wide";

fn is_joined_wide(select: &SelectQuery) -> bool {
    select.from.iter().any(|line| line.starts_with(WIDE_JOIN))
}

fn named(column: &str) -> String {
    let name = column.rsplit(" as ").next().unwrap_or(column);
    name.rsplit('.').next().unwrap_or(name).to_owned()
}

/// The node of the left context that a row of it belongs to in a pick.
fn group_of(left: &StepRows) -> [&'static str; 2] {
    if left.zone && left.grouped {
        ["q.g_unit", "q.g_pre"]
    } else {
        ["q.unit_id", "q.pre"]
    }
}

/// Whether the steps after a step pick, and so ask which of its nodes is the nearest, and of a zone which
/// one a node is in.
fn wants_groups(rest: Rest<'_>) -> bool {
    match rest.first() {
        Some((_, QueryStep::Node(step))) => step.picks(),
        Some((_, QueryStep::Zone(_))) => wants_groups(rest.get(1..).unwrap_or_default()),
        None => false,
    }
}

/// Whether a step is `^seq` and nothing else.
fn is_seq(step: &NodeStep) -> bool {
    step.tail.is_empty() && step.tests.len() == 1 && step.type_test() == Some(TypeTest::Seq)
}

/// A word for a step, in the name of its rows.
fn label(step: &QueryStep) -> &'static str {
    let step = match step {
        QueryStep::Zone(zone) => return zone.as_str(),
        QueryStep::Node(step) => step,
    };
    match step.type_test() {
        Some(TypeTest::Root) => "root",
        Some(TypeTest::Seq) => "seq",
        Some(TypeTest::Anchor) => "anchor",
        Some(TypeTest::TurnOrAnchor) => Class::Turn.word(),
        Some(TypeTest::Class(class)) => class.word(),
        None => "node",
    }
}
