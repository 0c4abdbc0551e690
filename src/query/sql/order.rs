//! The rows of a result: which nodes they are, in which order, and the window over them (LANGUAGE §6).

use crate::query::ir::{Controls, RowOrder, SelectorQuery};

use super::error::Refused;
use super::predicate::{DEPTH, NeededRows};
use super::tables::{Tables, UNIT_ORDER};
use super::words::{CommonTables, SelectQuery};

/// The order of rows inside one snapshot: [`RowOrder::Default`] is key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrangement(RowOrder);

/// The keys of key order, of a node at `n`, each with its way (LANGUAGE §6).
pub(super) fn key_order() -> [(String, &'static str); 5] {
    // Depth 0, 1, 2, …, then negative, then none.
    let group = format!("case when {DEPTH} >= 0 then 0 when {DEPTH} < 0 then 1 else 2 end");
    [
        (group, ""),
        (format!("coalesce({DEPTH}, 0)"), ""),
        ("n.created_at_ns".to_owned(), " desc"),
        ("n.creation_index".to_owned(), " desc"),
        ("n.id".to_owned(), ""),
    ]
}

impl Arrangement {
    pub(super) fn from_query(query: &SelectorQuery) -> Self {
        Self(match query.controls.order {
            RowOrder::Default if query.pinned_key().is_none() => RowOrder::Pre,
            order => order,
        })
    }

    /// Whether it does not depend on the snapshot.
    pub(super) fn is_fixed(self) -> bool {
        matches!(self.0, RowOrder::Pre | RowOrder::Post | RowOrder::Bfs)
    }

    pub(super) fn is_by_path(self) -> bool {
        self.0 == RowOrder::Path
    }

    /// Whether it reads nothing of the node but what the steps hand on.
    pub(super) fn is_light(self) -> bool {
        matches!(self.0, RowOrder::Pre | RowOrder::Path)
    }

    pub(super) fn needs(self) -> NeededRows {
        NeededRows {
            depth: !self.is_fixed() && !self.is_by_path(),
            ..NeededRows::default()
        }
    }

    /// The keys of the order, of a match at `f` and its node at `n`.
    pub(super) fn keys(self) -> Vec<String> {
        let unit = UNIT_ORDER.map(|column| format!("f.{column}"));
        let document = unit.iter().cloned().chain(["f.pre".to_owned()]);
        let [(group, _), (depth, _), ..] = key_order();
        match self.0 {
            RowOrder::Pre => document.collect(),
            RowOrder::Default => key_order().map(|(key, way)| format!("{key}{way}")).to_vec(),
            RowOrder::Post => {
                // `^seq` comes after its turns, the root after everything.
                let rank = "case n.class when '^root' then 9 when '^seq' then 1 else f.rank end"
                    .to_owned();
                let last = "case n.class when '^seq' then 1 else 0 end".to_owned();
                let rest = unit.into_iter().skip(1);
                let inside = ["n.pre_end".to_owned(), "n.pre desc".to_owned()];
                [rank, last].into_iter().chain(rest).chain(inside).collect()
            }
            RowOrder::Bfs => ["n.level".to_owned()].into_iter().chain(document).collect(),
            RowOrder::Path => vec!["x.path".to_owned()],
            RowOrder::TurnDesc | RowOrder::TurnAsc => {
                let ascending = self.0 == RowOrder::TurnAsc;
                let back = if ascending { " desc" } else { "" };
                [format!("{group}{back}"), format!("{depth}{back}")]
                    .into_iter()
                    .chain(document)
                    .collect()
            }
        }
    }
}

/// The columns of an order, `k1`, `k2`, …, each with its way.
pub(super) struct OrderKeys(Vec<&'static str>);

impl OrderKeys {
    /// Adds the columns to those of a query of matches at `f` and their nodes at `n`.
    pub(super) fn add(arrangement: Arrangement, select: &mut SelectQuery) -> Self {
        let keys = arrangement.keys();
        let ways = keys.iter().zip(1..).map(|(key, number)| {
            let column = key.strip_suffix(" desc");
            let way = if column.is_some() { " desc" } else { "" };
            let column = format!("{} as k{number}", column.unwrap_or(key));
            select.columns.push(column);
            way
        });
        Self(ways.collect())
    }

    pub(super) fn columns(&self, alias: &str) -> String {
        let columns = (1..=self.0.len()).map(|number| format!("{alias}.k{number}"));
        columns.collect::<Vec<_>>().join(", ")
    }

    /// What rows at an alias are in order by.
    pub(super) fn by(&self, alias: &str) -> String {
        let keys = self.0.iter().zip(1..);
        let keys = keys.map(|(way, number)| format!("{alias}.k{number}{way}"));
        keys.collect::<Vec<_>>().join(", ")
    }
}

/// Adds `path`: for each match the ids from the root to it, in one text whose order is that of the lists.
pub(super) fn add_paths(tables: &Tables, found: &str, with: &mut CommonTables) {
    let dialect = tables.dialect;
    // An id ends with two letters below all others, and has no such pair.
    let (one, two) = (dialect.letter(1), dialect.letter(2));
    let part = format!("replace(m.id, {one}, {one} || {two}) || {one} || {one}");
    let above = |unit: &str, filter: &str| tables.join_node("m", "f", unit, filter);
    let joined = dialect.joined(&part, "m.pre");
    let part_of = || {
        let columns = format!("f.session_id, f.seq, f.unit_id, f.pre, {joined} as path");
        let part = SelectQuery::new(columns).from(format!("{found} f"));
        part.end("group by f.session_id, f.seq, f.unit_id, f.pre")
    };
    let up_to = "m.pre <= f.pre and m.pre_end > f.pre and m.id is not null";
    with.add("inside", part_of().from(above("f.unit_id", up_to)));
    // Above a unit there is the root, and for those of the sequence `^seq`.
    let over = "(m.class = '^root' and f.rank > 0 or m.class = '^seq' and f.rank = 1)";
    let tops = "join placed r on r.session_id = f.session_id and r.seq = f.seq and r.rank = 0";
    let tops = part_of().from(tops).from(above("r.unit_id", over));
    with.add("above", tops);
    let columns = "i.session_id, i.seq, i.unit_id, i.pre, coalesce(u.path, '') || i.path as path";
    let paths = SelectQuery::new(columns).from("inside i").from(
        "left join above u on u.session_id = i.session_id and u.seq = i.seq \
         and u.unit_id = i.unit_id and u.pre = i.pre",
    );
    with.add("paths", paths);
}

/// The window over numbered rows: the number of the first one, and which are kept.
pub(super) fn window(controls: &Controls) -> Result<Option<(i64, String)>, Refused> {
    let Some(limit) = &controls.limit else {
        return Ok(None);
    };
    let size = i128::from(super::whole(limit)?);
    let page = match &controls.page {
        Some(page) => i128::from(super::whole(page)?),
        None => 1,
    };
    let clip = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    let (first, last) = (clip(size * (page - 1) + 1), clip(size * page));
    Ok(Some((first, format!("m.ord between {first} and {last}"))))
}
