//! The tables of the layout, and the common table expressions that every statement begins with: which
//! snapshots are queried, which units are in force in them, and what some tests read besides (STORE §2, §5).

use crate::query::ir::{Address, QueryTime, RangeAnswer, RangeEnd, SelectorQuery};

use super::dialect::Dialect;
use super::predicate::{NeededRows, begin};
use super::words::{CommonTables, SelectQuery};

pub(super) const UNIT_ORDER: [&str; 5] = [
    "rank",
    "sibling_offset",
    "created_at_ns",
    "creation_index",
    "top",
];

/// The place of a unit in document order, from 1, and how many units are inside the root up to the last of `^seq`.
const PLACES: [&str; 2] = ["place", "inside_root"];

/// The tables that [`Tables::chosen`] replaces. All but `snapshot` are partitioned.
const CHOSEN: [&str; 4] = ["snapshot", "placement", "node", "attr"];

/// What is selected of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Every column of [`Shape`](super::Shape).
    Rows,
    /// The name of the session and the id.
    #[cfg_attr(not(feature = "store"), expect(dead_code, reason = "a store asks so"))]
    Ids,
    /// The name of the session and how many nodes there are, of the sessions with any.
    #[cfg_attr(not(feature = "store"), expect(dead_code, reason = "a store asks so"))]
    Counts,
    /// The name of the session and what sizes and groups are made of: of the blocks that lie in what is found, and of
    /// the root and `^seq` in it.
    Blocks,
}

/// The sessions that a statement answers for, by a query of their numbers, or by one of the numbers of the others.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "store"), expect(dead_code, reason = "a store asks so"))]
pub(crate) enum Among {
    /// Each number once.
    Only(String),
    AllBut(String),
}

#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) dialect: Dialect,
    /// The quoted name of their schema and a dot, or nothing.
    pub(super) schema: String,
    /// The pattern of the names of the sessions; an empty one is all.
    pub(super) pattern: String,
    /// The sessions that it answers for; all if that is not known.
    pub(super) among: Option<Among>,
    pub(super) wanted: Wanted,
    /// Whether the lists of snapshots are compared.
    pub(super) compares: bool,
    /// Whether conditions compare where nodes begin and end, so that units have their places in document order.
    pub(super) places: bool,
    /// Whether each version of a unit is queried once, at the newest of the snapshots that has it.
    pub(super) once: bool,
}

impl Tables {
    /// Whether one session of partitioned files is queried, so that [`Tables::chosen`] says which files.
    pub(super) fn is_one(&self) -> bool {
        self.dialect.is_parquet() && self.pattern().is_some_and(|pattern| !pattern.contains('*'))
    }

    /// Whether rows have the name of their session from the start. Then the sessions are read in the order of the
    /// result, and a database that joins from left to right has nothing to sort but the rows of one session.
    pub(super) fn are_named(&self) -> bool {
        self.wanted != Wanted::Rows
    }

    /// The name of the session among the columns of rows at an alias, if they have it.
    pub(super) fn name(&self, alias: &str) -> String {
        if self.are_named() {
            format!(", {alias}.name")
        } else {
            String::new()
        }
    }

    /// The pattern that names of sessions match, if not all do.
    fn pattern(&self) -> Option<&str> {
        Some(&*self.pattern).filter(|pattern| !pattern.is_empty())
    }

    /// What steps pass on of a node's unit: its order, its first snapshot if units are queried once, the name of its
    /// session if rows have that, and its place.
    pub(super) fn of_unit(&self) -> impl Iterator<Item = &'static str> + use<> {
        let first = self.once.then_some("first_seq");
        let name = self.are_named().then_some("name");
        let places: &[&'static str] = if self.places { &PLACES } else { &[] };
        let more = first.into_iter().chain(name).chain(places.iter().copied());
        UNIT_ORDER.into_iter().chain(more)
    }

    /// The columns that the last step of a group passes on.
    pub(super) fn handed_on(&self) -> String {
        let of_unit: Vec<&str> = self.of_unit().collect();
        let of_unit = of_unit.join(", ");
        format!("session_id, seq, {of_unit}, unit_id, pre, pre_end, id")
    }

    pub(super) fn table(&self, name: &str) -> String {
        if self.is_one() && CHOSEN.contains(&name) {
            name.to_owned()
        } else {
            format!("{}{name}", self.schema)
        }
    }

    /// If one session is queried, replaces the tables by its rows, before the rest. Engines then know its bucket before
    /// they read the tables, and open no file of another bucket; in Spark a join alone does not do that.
    pub(super) fn chosen(&self, needs: NeededRows, rest: CommonTables) -> CommonTables {
        let Some(pattern) = self.pattern().filter(|_| self.is_one()) else {
            return rest;
        };
        let mut with = CommonTables::default();
        let session = self.table("session");
        let chosen = SelectQuery::new("z.session_id, z.bucket").from(format!("{session} z"));
        let named = self.dialect.name_matches("z.name", pattern);
        with.add("chosen", chosen.only(named));
        for name in CHOSEN {
            if name == "attr" && !needs.attr {
                continue;
            }
            let mut rows = SelectQuery::new("*").from(format!("{}{name}", self.schema));
            if name != "snapshot" {
                rows.add_filter("bucket in (select bucket from chosen)");
            }
            with.add(
                name,
                rows.only("session_id in (select session_id from chosen)"),
            );
        }
        with.append(rest);
        with
    }

    /// `join node ALIAS on …`: the nodes of a unit for which a condition holds.
    pub(super) fn join_node(&self, alias: &str, rows: &str, unit: &str, condition: &str) -> String {
        let node = self.table("node");
        let mut join = format!("join {node} {alias} on {alias}.unit_id = {unit}");
        if self.dialect.is_parquet() {
            join.push_str(&format!(" and {alias}.session_id = {rows}.session_id"));
        }
        if !condition.is_empty() {
            join.push_str(&format!(" and {condition}"));
        }
        join
    }

    /// A join that the planner does not move before those to its left; only SQLite has a word for that.
    pub(super) fn ordered(&self, join: &str) -> String {
        match self.dialect {
            Dialect::Sqlite => format!("cross {join}"),
            _ => join.to_owned(),
        }
    }

    /// The joins of what some conditions read, for rows at `rows` and a node at `n`.
    pub(super) fn joins(&self, needs: NeededRows, rows: &str) -> Vec<String> {
        let snapshot = |alias: &str| {
            format!("{alias}.session_id = {rows}.session_id and {alias}.seq = {rows}.seq")
        };
        let mut joins = Vec::new();
        if needs.depth {
            let on = snapshot("d");
            let join = format!("join turns d on {on} and d.unit_id = n.unit_id");
            joins.push(if needs.turns {
                join
            } else {
                format!("left {join}")
            });
        }
        if needs.cycle {
            joins.push(self.ordered(&format!("join asked c on {}", snapshot("c"))));
        }
        if needs.body && !self.dialect.is_parquet() {
            let body = self.table("body");
            joins.push(format!("left join {body} b on b.body_id = n.body_id"));
        }
        if needs.parent {
            let join = self.join_node("np", rows, "n.unit_id", "np.pre = n.parent_pre");
            joins.push(format!("left {join}"));
            let on = snapshot("t");
            joins.push(format!(
                "left join parents t on {on} and t.unit_id = n.unit_id"
            ));
        }
        if needs.born {
            joins.push(format!(
                "left join born y on y.session_id = {rows}.session_id and y.id = n.id"
            ));
        }
        joins
    }

    /// The snapshots that are queried: `asked`, with the cycle that a ttl counts from.
    pub(super) fn asked(&self, query: &SelectorQuery, with: &mut CommonTables) {
        let snapshot = self.table("snapshot");
        let ends = self.ends(query.time);
        let back = |back: u64| match back {
            0 => format!("s.seq = {}", ends.newest),
            back => format!("s.seq = {} - {}", ends.newest, clipped(back)),
        };
        let mut cycle = "s.cycle";
        let mut before = None;
        let (on, filter) = match query.time {
            QueryTime::Working => {
                // A working state without a cycle counts from that of the newest snapshot.
                cycle = "coalesce(s.cycle, o.cycle, 0) as cycle";
                before = Some(format!(
                    "left join {snapshot} o on o.session_id = s.session_id and o.seq = s.seq - 1"
                ));
                (Some(back(0)), None)
            }
            QueryTime::At(Address::Back(commits)) => (Some(back(commits)), None),
            QueryTime::At(Address::Cycle(cycle)) => {
                let cycle = format!("s.cycle = {}", self.dialect.int(cycle));
                (None, Some(cycle))
            }
            QueryTime::All => (None, None),
            QueryTime::Range(RangeEnd::Cycle(newer), RangeEnd::Cycle(older)) => {
                let (newer, older) = (self.dialect.int(newer), self.dialect.int(older));
                let cycle = format!("s.cycle between {older} and {newer}");
                (None, Some(cycle))
            }
            QueryTime::Range(newer, older) => (Some(between(&ends, newer, older)), None),
        };
        let columns = format!("s.session_id, s.seq, {cycle}{}", self.name("z"));
        let mut select = SelectQuery::new(columns);
        let session = self.table("session");
        if self.are_named() {
            select = self.answered_for(select);
            let on = on.map(|on| format!(" and {on}")).unwrap_or_default();
            let join = format!("join {snapshot} s on s.session_id = z.session_id{on}");
            select.from.push(self.ordered(&join));
        } else if let Some(on) = on {
            self.newest(query.time, with);
            let join = format!("join {snapshot} s on s.session_id = m.session_id and {on}");
            select = select.from("newest m").from(join);
        } else {
            select = select.from(format!("{snapshot} s"));
        }
        select.from.extend(before);
        if self.dialect == Dialect::Postgres && self.compares {
            // It takes what several tests leave for one row, and then compares two lists row by row: a list of
            // a history for each of its rows. Of this join, which is of one row, it knows nothing and takes it
            // for a thousand, so lists are large and are joined by hashes.
            select
                .from
                .push("cross join generate_series(1, (select 1)) g".to_owned());
        }
        if let Some(filter) = filter.or((query.time == QueryTime::All).then(String::new)) {
            select.add_filter("not s.working");
            if !filter.is_empty() {
                select.add_filter(filter);
            }
        }
        if let Some(pattern) = self.pattern().filter(|_| !self.is_one()) {
            if !self.are_named() {
                select = select.from(format!("join {session} z on z.session_id = s.session_id"));
            }
            select.add_filter(self.dialect.name_matches("z.name", pattern));
        }
        if matches!(query.time, QueryTime::Range(..)) && query.controls.mode == RangeAnswer::Reduce
        {
            with.add("ranged", select);
            select = ends_of_range();
        }
        with.add("asked", select);
    }

    /// Adds the sessions that the statement answers for, at `z`.
    fn answered_for(&self, select: SelectQuery) -> SelectQuery {
        let session = self.table("session");
        match &self.among {
            Some(Among::Only(among)) => select
                .from(format!("({among}) i"))
                .from(self.ordered(&format!("join {session} z on z.session_id = i.session_id"))),
            Some(Among::AllBut(others)) => select
                .from(format!("{session} z"))
                .only(format!("z.session_id not in ({others})")),
            None => select.from(format!("{session} z")),
        }
    }

    /// The newest and the oldest of the snapshots that an address counts from: columns of `newest`. Where
    /// sessions are read in the order of their names, two subqueries find them by the key of `snapshot`.
    fn ends(&self, time: QueryTime) -> SnapshotEnds {
        if !self.are_named() {
            return SnapshotEnds {
                newest: "m.seq".to_owned(),
                oldest: "m.oldest".to_owned(),
            };
        }
        let snapshot = self.table("snapshot");
        let only = match time {
            QueryTime::Working => "",
            _ => " and not x.working",
        };
        let end = |which: &str| {
            format!(
                "(select {which}(x.seq) from {snapshot} x where x.session_id = z.session_id{only})"
            )
        };
        SnapshotEnds {
            newest: end("max"),
            oldest: end("min"),
        }
    }

    /// Adds `newest`: the newest and the oldest of the snapshots that an address counts from.
    fn newest(&self, time: QueryTime, with: &mut CommonTables) {
        let condition = match time {
            QueryTime::Working => "true",
            _ => "not working",
        };
        let select = SelectQuery::new("session_id, max(seq) as seq, min(seq) as oldest")
            .from(self.table("snapshot"))
            .only(condition)
            .end("group by session_id");
        with.add("newest", select);
    }

    /// The units in force in the snapshots: `placed`. Where each version is queried once, `seq` is the newest of
    /// the snapshots that has it, and `first_seq` the oldest.
    pub(super) fn placed(&self, with: &mut CommonTables) {
        let placement = self.table("placement");
        let (seq, asked, on) = if self.once {
            let name = if self.are_named() { ", name" } else { "" };
            let bounds = format!("session_id{name}, min(seq) as oldest, max(seq) as newest");
            let bounds = SelectQuery::new(bounds).from("asked");
            let bounds = bounds.end(format!("group by session_id{name}"));
            with.add("bounds", bounds);
            (
                "case when p.last_seq < a.newest then p.last_seq else a.newest end as seq, \
                 case when p.first_seq > a.oldest then p.first_seq else a.oldest end as first_seq",
                "bounds a",
                "p.first_seq <= a.newest and p.last_seq >= a.oldest",
            )
        } else {
            (
                "a.seq",
                "asked a",
                "p.first_seq <= a.seq and p.last_seq >= a.seq",
            )
        };
        let join = format!("join {placement} p on p.session_id = a.session_id and {on}");
        let mut placed = SelectQuery::new(format!(
            "a.session_id, {seq}, p.unit_id, p.rank, p.turn, p.sibling_offset, p.created_at_ns, \
             p.creation_index, p.id as top{}",
            self.name("a")
        ));
        if self.places {
            placed = placed
                .and(
                    "row_number() over (partition by a.session_id, a.seq order by p.rank, \
                     p.sibling_offset, p.created_at_ns, p.creation_index, p.id) as place",
                )
                .and(
                    "sum(case when p.rank <= 1 then 1 else 0 end) \
                     over (partition by a.session_id, a.seq) as inside_root",
                );
        }
        with.add("placed", placed.from(asked).from(self.ordered(&join)));
    }

    /// What the steps read besides, as they need it: `turns` with the depths of turns, `parents` with the
    /// parents of the top nodes of units, `born` with the first cycle of each id.
    pub(super) fn extras(&self, needs: NeededRows, with: &mut CommonTables) {
        if needs.reads_turns() {
            let turns = SelectQuery::new(
                "p.*, row_number() over (partition by session_id, seq order by sibling_offset desc, \
                 created_at_ns desc, creation_index desc, top desc) as depth",
            );
            with.add("turns", turns.from("placed p").only("turn"));
        }
        if needs.answers {
            self.answers(with);
        }
        if needs.parent {
            let tops = "n.class = case p.rank when 1 then '^seq' else '^root' end";
            let parents = SelectQuery::new("p.session_id, p.seq, p.unit_id, n.id as parent")
                .from("placed p")
                .from(
                    "join placed r on r.session_id = p.session_id and r.seq = p.seq and r.rank = 0",
                )
                .from(self.join_node("n", "r", "r.unit_id", tops))
                .only("p.rank > 0");
            with.add("parents", parents);
        }
        if needs.born {
            let (placement, snapshot) = (self.table("placement"), self.table("snapshot"));
            // Later snapshots have greater cycles.
            let began =
                format!("join {snapshot} s on s.session_id = p.session_id and s.seq = p.first_seq");
            let born = SelectQuery::new("p.session_id, n.id, min(s.cycle) as cycle")
                .from("(select distinct session_id from asked) a")
                .from(format!("join {placement} p on p.session_id = a.session_id"))
                .from(began)
                .from(self.join_node("n", "p", "p.unit_id", "n.id is not null"))
                .end("group by p.session_id, n.id");
            with.add("born", born);
        }
    }
}

impl Tables {
    /// Adds `answered`: where each result begins, and the call that it belongs to, which is the last one before it
    /// with its id (LANGUAGE §13).
    fn answers(&self, with: &mut CommonTables) {
        let call = "coalesce(n.kind, n.type_sub) = 'call'";
        let blocks = "n.class = 'cb' and coalesce(n.kind, n.type_sub) in ('call', 'result')";
        let node = self.join_node("n", "p", "p.unit_id", blocks);
        let session = if self.dialect.is_parquet() {
            "a.session_id = n.session_id and "
        } else {
            ""
        };
        let attr = format!(
            "join {} a on {session}a.unit_id = n.unit_id and a.pre = n.pre and a.name = 'data_call_id' \
             and a.ordinal = -1 and a.type = 'text'",
            self.table("attr")
        );
        let begin = begin("p.place");
        let answers = SelectQuery::new("p.session_id, p.seq")
            .and(format!("{begin} as result_at"))
            .and(format!("case when {call} then 1 else 0 end as is_call"))
            .and(format!(
                "max(case when {call} then {begin} end) over (partition by p.session_id, p.seq, a.text \
                 order by {begin}) as call_at"
            ))
            .from("placed p")
            .from(self.ordered(&node))
            .from(self.ordered(&attr));
        with.add("answers", answers);
        let answered = SelectQuery::new("session_id, seq, result_at, call_at").from("answers");
        with.add(
            "answered",
            answered.only("is_call = 0").only("call_at is not null"),
        );
    }
}

/// Expressions for the newest and the oldest snapshot of a session.
struct SnapshotEnds {
    newest: String,
    oldest: String,
}

/// Which snapshots are between two ends, not both of which are cycles, as a condition.
fn between(ends: &SnapshotEnds, newer: RangeEnd, older: RangeEnd) -> String {
    let SnapshotEnds { newest, oldest } = ends;
    let mut on = "not s.working".to_owned();
    match (newer, older) {
        // The oldest one is the newer end if the other one reaches past it.
        (RangeEnd::Back(back), RangeEnd::Oldest) => {
            let newest = format!("s.seq <= {newest} - {}", clipped(back));
            on.push_str(&format!(" and ({newest} or s.seq = {oldest})"));
        }
        (RangeEnd::Back(back), _) => {
            on.push_str(&format!(" and s.seq <= {newest} - {}", clipped(back)));
        }
        (RangeEnd::Oldest, _) => on.push_str(&format!(" and s.seq = {oldest}")),
        (RangeEnd::Cycle(_), _) => {}
    }
    if let RangeEnd::Back(back) = older {
        on.push_str(&format!(" and s.seq >= {newest} - {}", clipped(back)));
    }
    on
}

/// How many commits back, as a number that no seq reaches.
fn clipped(back: u64) -> i64 {
    i64::try_from(back).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// The two ends of a range: nothing between them is read.
fn ends_of_range() -> SelectQuery {
    let bounds = "(select session_id, min(seq) as oldest, max(seq) as newest from ranged \
                  group by session_id) m";
    let ends = "m.session_id = s.session_id and (s.seq = m.oldest or s.seq = m.newest)";
    SelectQuery::new("s.session_id, s.seq, s.cycle")
        .from("ranged s")
        .from(format!("join {bounds} on {ends}"))
}
