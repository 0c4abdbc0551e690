//! The rows of a result as lists: filtered, in order, each id or key once, and those of the window.

use crate::query::ir::{Query, QueryTime, RangeAnswer};

use super::error::Refused;
use super::order::{Arrangement, add_paths, window};
use super::predicate::{NeededRows, PARENT, Predicates, ttl};
use super::tables::Tables;
use super::words::{CommonTables, SelectQuery, names};

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
    pub(super) fn of(query: &Query) -> Self {
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

    /// Whether the rows of several snapshots are one list.
    fn is_merged(self) -> bool {
        matches!(self, Self::Merged | Self::Latest)
    }
}

/// Adds the lists of a statement.
pub(super) struct Lister<'l> {
    pub(super) query: &'l Query,
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
        if self.tables.has_ids_only() && self.lists == SharedLists::One && is_whole {
            // No caller asks for the place of a row in the list.
            let keys: Vec<&str> = order
                .iter()
                .map(|key| key.trim_start_matches("m."))
                .collect();
            let keys = keys.iter().map(|key| format!("r.{key}"));
            return Ok(("matched".to_owned(), keys.collect::<Vec<_>>().join(", ")));
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
    fn matched(&mut self, found: &str) -> Result<Vec<String>, Refused> {
        let arrangement = Arrangement::of(self.query);
        let mut predicates = Predicates::new(self.tables.dialect, self.tables.table("attr"), false);
        predicates.needs = arrangement.needs();
        // The steps hand on the order of their nodes, and their ids.
        let light = arrangement.is_light()
            && self.query.filters.is_empty()
            && !self.query.controls.unique
            && self.lists != SharedLists::Each;
        let mut select = SelectQuery {
            columns: names(&["f.session_id", "f.seq", "f.id"]),
            from: vec![format!("{found} f")],
            filters: names(&["f.id is not null"]),
            ..SelectQuery::default()
        };
        if !light {
            let node = self
                .tables
                .join_node("n", "f", "f.unit_id", "n.pre = f.pre");
            select.from.push(self.tables.ordered(&node));
        }
        if self.query.controls.unique {
            select.columns.push("n.key".to_owned());
        }
        for test in &self.query.filters {
            let condition = predicates.test(test)?;
            select.add_filter(condition);
        }
        if arrangement == Arrangement::Path {
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
        let mut order = Vec::new();
        for (number, key) in (1..).zip(arrangement.keys()) {
            let (key, back) = match key.strip_suffix(" desc") {
                Some(key) => (key, " desc"),
                None => (&*key, ""),
            };
            select.columns.push(format!("{key} as k{number}"));
            order.push(format!("m.k{number}{back}"));
        }
        if self.lists.is_merged() {
            let newest =
                "row_number() over (partition by f.session_id, f.id order by f.seq desc) as age";
            select.columns.push(newest.to_owned());
            order.insert(0, "m.seq desc".to_owned());
        }
        select.from.extend(self.tables.joins(predicates.needs, "f"));
        self.needs.add(predicates.needs);
        self.with.add("matched", select);
        Ok(order)
    }

    /// Adds `listed`: the matches with their place in the list, `ord`.
    fn ranked(&mut self, order: &[String]) {
        let mut columns = self.columns();
        columns.push(self.numbered(&order.join(", ")));
        let mut select = SelectQuery {
            columns,
            from: names(&["matched m"]),
            ..SelectQuery::default()
        };
        if self.lists.is_merged() {
            select.add_filter("m.age = 1".to_owned());
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
        let mut columns = self.columns();
        columns.push("m.ord".to_owned());
        columns.push(format!(
            "row_number() over (partition by {}, case when m.key is null then 0 else 1 end, \
             coalesce(m.key, m.id) order by m.ord) as copy",
            self.lists.key()
        ));
        self.with.add(
            "copies",
            SelectQuery {
                columns,
                from: vec![format!("{listed} m")],
                ..SelectQuery::default()
            },
        );
        let mut columns = self.columns();
        columns.push(self.numbered("m.ord"));
        self.with.add(
            "uniques",
            SelectQuery {
                columns,
                from: names(&["copies m"]),
                filters: names(&["m.copy = 1"]),
                ..SelectQuery::default()
            },
        );
        "uniques"
    }

    /// Adds `page`: the rows of the window, counted from 1 again.
    fn page(&mut self, listed: &str, first: i64, kept: String) -> &'static str {
        let mut columns = self.columns();
        columns.push(match first {
            1 => "m.ord".to_owned(),
            first => format!("m.ord - {} as ord", first - 1),
        });
        self.with.add(
            "page",
            SelectQuery {
                columns,
                from: vec![format!("{listed} m")],
                filters: vec![kept],
                ..SelectQuery::default()
            },
        );
        "page"
    }

    /// What every list hands on.
    fn columns(&self) -> Vec<String> {
        let mut columns = names(&["m.session_id", "m.seq", "m.id"]);
        if self.query.controls.unique {
            columns.push("m.key".to_owned());
        }
        if self.lists == SharedLists::Each {
            columns.extend(names(&["m.version", "m.parent", "m.ttl"]));
        }
        columns
    }

    fn numbered(&self, order: &str) -> String {
        let key = self.lists.key();
        format!("row_number() over (partition by {key} order by {order}) as ord")
    }
}

/// Adds `present`: the newest of the snapshots that has each id.
fn add_present(tables: &Tables, with: &mut CommonTables) {
    let node = tables.join_node("n", "o", "o.unit_id", "n.id is not null");
    with.add(
        "present",
        SelectQuery {
            columns: names(&["o.session_id", "n.id", "max(o.seq) as seq"]),
            from: vec!["placed o".to_owned(), tables.ordered(&node)],
            end: names(&["group by o.session_id, n.id"]),
            ..SelectQuery::default()
        },
    );
}
