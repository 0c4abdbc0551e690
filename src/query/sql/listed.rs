//! The rows of a result as lists: filtered, in order, each id or key once, and those of the window.

use crate::query::ir::{QueryTime, RangeAnswer, SelectorQuery};

use super::error::Refused;
use super::order::{Arrangement, OrderKeys, add_paths, window};
use super::predicate::{NeededRows, PARENT, Predicates, ttl};
use super::tables::{Tables, Wanted};
use super::words::{CommonTables, SelectQuery};

/// Which snapshots of a session share one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedLists {
    /// The rows of one snapshot.
    One,
    /// The rows of several, each id once, at its newest match.
    Merged,
    /// As merged, of the ids whose newest version matches.
    Latest,
    /// The rows of each snapshot by itself, to compare.
    Each,
}

impl SharedLists {
    pub(super) fn from_query(query: &SelectorQuery) -> Self {
        match (query.time, query.controls.mode) {
            (QueryTime::Working | QueryTime::At(_), _) => Self::One,
            (QueryTime::All, _) | (_, RangeAnswer::Union) => Self::Merged,
            (_, RangeAnswer::Latest) => Self::Latest,
            (_, RangeAnswer::Pairwise | RangeAnswer::Reduce) => Self::Each,
        }
    }

    /// What a list belongs to, of rows at `m`.
    fn key(self) -> &'static str {
        match self {
            Self::Each => "m.session_id, m.seq",
            Self::One | Self::Merged | Self::Latest => "m.session_id",
        }
    }

    fn is_merged(self) -> bool {
        matches!(self, Self::Merged | Self::Latest)
    }
}

pub(super) struct Lister<'l> {
    pub(super) query: &'l SelectorQuery,
    pub(super) tables: &'l Tables,
    pub(super) lists: SharedLists,
    /// What all of the statement reads.
    pub(super) needs: &'l mut NeededRows,
    pub(super) with: &'l mut CommonTables,
}

impl Lister<'_> {
    /// Adds the lists of some matches. Returns their name, and what their rows are in order by.
    pub(super) fn list(mut self, found: &str) -> Result<(String, String), Refused> {
        let order = self.matched(found)?;
        let controls = &self.query.controls;
        let is_whole = !controls.unique && window(controls)?.is_none();
        if self.tables.are_named() && self.lists == SharedLists::One && is_whole {
            // No caller asks for the place of a row in the list.
            return Ok(("matched".to_owned(), order.by("r")));
        }
        let mut order = order.by("m");
        if self.lists.is_merged() {
            order.insert_str(0, "m.seq desc, ");
        }
        self.ranked(&order);
        let mut name = "listed";
        if self.query.controls.unique {
            name = self.unique(name);
        }
        if let Some((first, kept)) = window(&self.query.controls)? {
            name = self.page(name, first, kept);
        }
        Ok((name.to_owned(), "r.ord".to_owned()))
    }

    /// Adds `matched`: the matches that pass the filters, with the keys of their order, which are returned.
    fn matched(&mut self, found: &str) -> Result<OrderKeys, Refused> {
        let arrangement = Arrangement::from_query(self.query);
        let mut predicates =
            Predicates::new(self.tables.dialect, self.tables.table("attr"), false, "f");
        predicates.needs = arrangement.needs();
        // The steps hand on the order of their nodes, and their ids.
        let light = arrangement.is_light()
            && self.query.filters.is_empty()
            && !self.query.controls.unique
            && self.lists != SharedLists::Each;
        let columns = format!("f.session_id, f.seq, f.id{}", self.tables.name("f"));
        let select = SelectQuery::new(columns).from(format!("{found} f"));
        let mut select = select.only("f.id is not null");
        if !light {
            let node = self
                .tables
                .join_node("n", "f", "f.unit_id", "n.pre = f.pre");
            select.from.push(self.tables.ordered(&node));
        }
        if self.query.controls.unique {
            select.columns.push("n.key".to_owned());
        }
        if self.tables.wanted == Wanted::Blocks {
            let place = "f.rank, f.top, f.unit_id, f.pre, f.pre_end";
            select.columns.push(place.to_owned());
        }
        for test in &self.query.filters {
            let condition = predicates.test(test)?;
            select.add_filter(condition);
        }
        if arrangement.is_by_path() {
            add_paths(self.tables, found, self.with);
            select.from.push(
                "join paths x on x.session_id = f.session_id and x.seq = f.seq \
                 and x.unit_id = f.unit_id and x.pre = f.pre"
                    .to_owned(),
            );
        }
        if self.lists == SharedLists::Each {
            predicates.needs.parent = true;
            predicates.needs.cycle = true;
            select.columns.extend([
                "n.version".to_owned(),
                format!("{PARENT} as parent"),
                format!("{} as ttl", ttl("n", "c")),
            ]);
        }
        let order = OrderKeys::add(arrangement, &mut select);
        if self.lists.is_merged() {
            let newest =
                "row_number() over (partition by f.session_id, f.id order by f.seq desc) as age";
            select.columns.push(newest.to_owned());
        }
        select.from.extend(self.tables.joins(predicates.needs, "f"));
        self.needs.add(predicates.needs);
        self.with.add("matched", select);
        Ok(order)
    }

    /// Adds `listed`: the matches with their place in the list, `ord`.
    fn ranked(&mut self, order: &str) {
        let mut select = self.handed_on("matched").and(self.numbered(order));
        if self.lists.is_merged() {
            select.add_filter("m.age = 1");
        }
        if self.lists == SharedLists::Latest {
            add_present(self.tables, self.with);
            select.from.push(
                "join present r on r.session_id = m.session_id and r.id = m.id and r.seq = m.seq"
                    .to_owned(),
            );
        }
        self.with.add("listed", select);
    }

    /// Adds `uniques`: the first row of each key, and of each id that has none.
    fn unique(&mut self, listed: &str) -> &'static str {
        let copy = format!(
            "row_number() over (partition by {}, case when m.key is null then 0 else 1 end, \
             coalesce(m.key, m.id) order by m.ord) as copy",
            self.lists.key()
        );
        let copies = self.handed_on(listed).and("m.ord").and(copy);
        self.with.add("copies", copies);
        let uniques = self.handed_on("copies").and(self.numbered("m.ord"));
        self.with.add("uniques", uniques.only("m.copy = 1"));
        "uniques"
    }

    /// Adds `page`: the rows of the window, counted from 1 again.
    fn page(&mut self, listed: &str, first: i64, kept: String) -> &'static str {
        let place = match first {
            1 => "m.ord".to_owned(),
            first => format!("m.ord - {} as ord", first - 1),
        };
        let page = self.handed_on(listed).and(place).only(kept);
        self.with.add("page", page);
        "page"
    }

    /// The rows of a list at `m`, with what every list hands on.
    fn handed_on(&self, list: &str) -> SelectQuery {
        let columns = format!("m.session_id, m.seq, m.id{}", self.tables.name("m"));
        let mut select = SelectQuery::new(columns).from(format!("{list} m"));
        if self.query.controls.unique {
            select = select.and("m.key");
        }
        if self.lists == SharedLists::Each {
            select = select.and("m.version, m.parent, m.ttl");
        }
        select
    }

    fn numbered(&self, order: &str) -> String {
        let key = self.lists.key();
        format!("row_number() over (partition by {key} order by {order}) as ord")
    }
}

/// Adds `present`: the newest of the snapshots that has each id.
fn add_present(tables: &Tables, with: &mut CommonTables) {
    let node = tables.join_node("n", "o", "o.unit_id", "n.id is not null");
    let present = SelectQuery::new("o.session_id, n.id, max(o.seq) as seq").from("placed o");
    let present = present.from(tables.ordered(&node));
    with.add("present", present.end("group by o.session_id, n.id"));
}
