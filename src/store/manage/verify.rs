//! Reads a whole store and compares it with its hashes (STORE §2, §3).
//!
//! Every unit is read, encoded again and compared row by row, so that a value that only SQL uses is checked
//! as well; every chain of hashes is computed again; and no row may be left over.

use sha2::Digest;

use crate::index::{UnitKind, UnitRef};
use crate::store::database::sql::{
    Backend, Database, SqlValue, collect, first, int, ints, one_int, text, texts,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::encode::{AttrColumns, EncodedUnit, body_hash, encode};
use crate::store::layout::rows::{attr_row, node_row};
use crate::store::layout::schema::{self, StoreTable, list, table};
use crate::store::layout::sums::{Finding, check_sums, holds, is_closed};
use crate::store::manage::whole::{SnapshotLink, add_units, base_hash, links, unit_changes};
use crate::store::read::catalog::{self, SessionEntry};
use crate::store::read::load::{Placement, places, restore_unit};
use crate::store::texts::tables;
use crate::store::write::change::{IN_FORCE, chained};
use crate::store::write::records;

type CheckPart = fn(&mut dyn Database, &mut Vec<Finding>) -> Result<()>;

pub(crate) fn verify(database: &mut dyn Database) -> Result<Vec<Finding>> {
    let mut found: Vec<Finding> = Vec::new();
    let parts: [CheckPart; 7] = [
        layout, pages, bodies, units, left_over, check_sums, sessions,
    ];
    let mut strange = None;
    for part in parts {
        // What cannot be read is damage too, and the other parts are still worth reading.
        match part(database, &mut found) {
            Err(StoreError::Damaged(what)) => found.push((None, None, what)),
            // A statement that the layout as it is does not allow.
            Err(StoreError::Database(what)) if strange == Some(true) => {
                found.push((None, None, what))
            }
            done => done?,
        }
        // The first part has looked at the layout.
        strange.get_or_insert(!found.is_empty());
    }
    Ok(found)
}

fn layout(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<()> {
    if database.dialect() == Backend::Sqlite {
        let different = schema::differences(database)?.into_iter();
        found.extend(different.map(|what| {
            let what = format!("{what} is not as the layout says");
            (None, None, what)
        }));
    }
    Ok(())
}

/// What the database itself finds wrong in its file.
fn pages(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<()> {
    if database.dialect() == Backend::Sqlite {
        tables::refresh(database)?;
        let said = texts(database, "pragma integrity_check", &[])?;
        let wrong = said.into_iter().filter(|line| line != "ok");
        found.extend(wrong.map(|what| (None, None, what)));
    }
    Ok(())
}

fn sessions(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<()> {
    let list = "select session_id from session order by name";
    for number in ints(database, list, &[])? {
        match catalog::by_id(database, number) {
            Ok(Some(entry)) => session(database, &entry, found)?,
            Ok(None) => {}
            Err(StoreError::Damaged(what)) => {
                found.push((None, None, format!("the row of session {number}: {what}")));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// Notes a contradiction in a unit for every session that places it.
fn in_unit(
    database: &mut dyn Database,
    unit: i64,
    what: &str,
    found: &mut Vec<Finding>,
) -> Result<()> {
    let placed = "select s.name, min(n.cycle) from placement p join session s \
         on s.session_id = p.session_id left join snapshot n on n.session_id = p.session_id \
         and n.seq >= p.first_seq and n.seq <= p.last_seq where p.unit_id = ?1 \
         group by s.name order by s.name";
    database.query(placed, &[unit.into()], &mut |row| {
        let name = row.text(0).ok().flatten().map(ToOwned::to_owned);
        found.push((name, row.int(1)?, what.to_owned()));
        Ok(())
    })
}

fn bodies(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<()> {
    let mut wrong = Vec::new();
    let all = "select body_id, hash, json, text from body order by body_id";
    database.query(all, &[], &mut |row| {
        let sound = || {
            let json = row.bool(2)?.unwrap_or(false);
            Ok(row.bytes(1)? == Some(&body_hash(json, text(row, 3)?)[..]))
        };
        if !holds(sound())? {
            wrong.push(int(row, 0)?);
        }
        Ok(())
    })?;
    for body in wrong {
        let units = "select distinct unit_id from node where body_id = ?1 order by unit_id";
        let units = ints(database, units, &[body.into()])?;
        if units.is_empty() {
            found.push((None, None, format!("body {body} is not what its hash says")));
        }
        for unit in units {
            in_unit(database, unit, "a content is not what its hash says", found)?;
        }
    }
    Ok(())
}

fn units(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<()> {
    for (unit, what) in unit_faults(database, "", &[])? {
        in_unit(database, unit, &what, found)?;
    }
    Ok(())
}

/// Compares units with their hashes, and every row with what it is made of. Returns those that differ, and how.
pub(crate) fn unit_faults(
    database: &mut dyn Database,
    rows: &str,
    values: &[SqlValue<'_>],
) -> Result<Vec<(i64, String)>> {
    let sql = format!("select unit_id, kind, hash, spelling from unit {rows} order by unit_id");
    let all = collect(database, &sql, values, |row| {
        let hash = row.bytes(2)?.map(<[u8]>::to_vec);
        let kind = row.text(1).ok().flatten().unwrap_or("?").to_owned();
        Ok((int(row, 0)?, kind, hash, row.int(3)?))
    })?;
    let mut faults = Vec::new();
    for (unit, kind, hash, spelling) in all {
        let what = match UnitKind::parse(&kind) {
            None => Some(format!("a unit has the unknown kind {kind:?}")),
            Some(kind) => match unit_fault(database, unit, kind, (hash.as_deref(), spelling)) {
                Err(StoreError::Damaged(what)) => Some(what),
                fault => fault?,
            },
        };
        faults.extend(what.map(|what| (unit, what)));
    }
    Ok(faults)
}

fn unit_fault(
    database: &mut dyn Database,
    unit: i64,
    kind: UnitKind,
    (hash, spelling): (Option<&[u8]>, Option<i64>),
) -> Result<Option<String>> {
    let made = restore_unit(database, unit, kind, &[])?;
    let encoded = encode(UnitRef::containing(made.root()));
    let name = &encoded.order.id;
    if hash != Some(&encoded.hash[..]) || spelling != Some(encoded.spelling) {
        return Ok(Some(format!("unit {name:?} is not what its hash says")));
    }
    let rows = stored_rows(database, unit)?;
    let wanted = rows_of(&encoded);
    if rows != wanted {
        let at = rows.iter().zip(&wanted).position(|(a, b)| a != b);
        let at = at.unwrap_or(rows.len().min(wanted.len()));
        let row = rows.get(at).or(wanted.get(at)).map_or("", |row| row);
        return Ok(Some(format!(
            "unit {name:?} has columns that differ from its nodes: {row}"
        )));
    }
    Ok(None)
}

/// A row of a unit as text: the number of its node, its values, and the hash of the content in the place of its number.
fn row_text(table: &StoreTable, mut values: Vec<SqlValue<'_>>, hash: Option<&[u8]>) -> String {
    let SqlValue::Int(pre) = values[1] else {
        return String::new();
    };
    if let Some(body) = table.columns().position(|column| column.name == "body_id") {
        values.remove(body);
    }
    format!("{} {pre} {:?} {hash:?}", table.name, &values[2..])
}

fn rows_of(unit: &EncodedUnit) -> Vec<String> {
    let (node_table, attr_table) = (table("node"), table("attr"));
    let (mut nodes, mut attrs) = (Vec::new(), Vec::new());
    for (pre, node) in (0..).zip(&unit.nodes) {
        let hash = node.body.as_ref().map(|body| &body.hash[..]);
        let row = node_row(node, 0, pre, None);
        nodes.push(row_text(node_table, row.to_vec(), hash));
        let mut own: Vec<&AttrColumns> = node.attrs.iter().collect();
        own.sort_unstable_by_key(|attr| (&attr.name, attr.ordinal));
        let rows = own.into_iter().map(|attr| attr_row(attr, 0, pre).to_vec());
        attrs.extend(rows.map(|row| row_text(attr_table, row, None)));
    }
    nodes.append(&mut attrs);
    nodes
}

fn stored_rows(database: &mut dyn Database, unit: i64) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    for (name, hash, more, order) in [
        (
            "node",
            "b.hash",
            "left join body b on b.body_id = t.body_id",
            "",
        ),
        ("attr", "null", "", ", t.name, t.ordinal"),
    ] {
        let table = table(name);
        let columns = list(table.columns(), "t.", &[]);
        let sql = format!(
            "select {hash}, {columns} from {name} t {more} where t.unit_id = ?1 order by t.pre{order}"
        );
        database.query(&sql, &[unit.into()], &mut |row| {
            let hash = if more.is_empty() { None } else { row.bytes(0)? };
            rows.push(row_text(table, table.values(row, 1)?, hash));
            Ok(())
        })?;
    }
    Ok(rows)
}

/// What rows are, their table, and the table and the columns by which each must have a row there.
const LEFT_OVER: &[&str] = &[
    "units that no session places: unit, placement, unit_id",
    "nodes of a unit that does not exist: node, unit, unit_id",
    "attributes of a node that does not exist: attr, node, unit_id pre",
    "contents that no node has: body, node, body_id",
    "snapshots of a session that does not exist: snapshot, session, session_id",
    "attempts of a session that does not exist: attempt, session, session_id",
    "references of a session that does not exist: pin, session, session_id",
    "ids of a session that does not exist: retired, session, session_id",
    "leases of a session that does not exist: lease, session, session_id",
];

fn left_over(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<()> {
    let mut all = Vec::new();
    for line in LEFT_OVER {
        let words: Vec<&str> = line.split(&[':', ',']).map(str::trim).collect();
        let [what, from, other, columns] = words[..] else {
            continue;
        };
        let on = columns
            .split(' ')
            .map(|column| format!("o.{column} = t.{column}"));
        let on = on.collect::<Vec<_>>().join(" and ");
        let rows = format!("from {from} t where not exists (select 1 from {other} o where {on})");
        all.push((what, rows));
    }
    let both = "from placement t where not exists (select 1 from session o \
         where o.session_id = t.session_id) or not exists \
         (select 1 from unit o where o.unit_id = t.unit_id)";
    let what = "placements of a session or a unit that does not exist";
    all.push((what, both.to_owned()));
    let forks = "from session t where t.parent_id is not null and not exists \
         (select 1 from session o where o.session_id = t.parent_id)";
    all.push(("forks of a session that does not exist", forks.to_owned()));
    for (what, rows) in all {
        let count = one_int(database, &format!("select count(*) {rows}"), &[])?.unwrap_or(0);
        if count > 0 {
            found.push((None, None, format!("there are {count} {what}")));
        }
    }
    Ok(())
}

/// What contradicts itself in a session: the cycle of the first snapshot concerned, and what.
type SessionFaults = Vec<(Option<i64>, String)>;

pub(crate) fn session(
    database: &mut dyn Database,
    entry: &SessionEntry,
    found: &mut Vec<Finding>,
) -> Result<()> {
    let mut wrong = SessionFaults::new();
    let mut note = |part: Result<SessionFaults>| {
        match part {
            Err(StoreError::Damaged(what)) => wrong.push((None, what)),
            part => wrong.extend(part?),
        }
        Ok::<(), StoreError>(())
    };
    let session = entry.session;
    note(closing(database, entry))?;
    note(chain(database, session))?;
    note(misplaced(database, session))?;
    note(records::attempts(database, session).map(|_| SessionFaults::new()))?;
    let runtime = entry.runtime.as_deref().unwrap_or("{}");
    if let Err(error) = serde_json::from_str::<serde_json::Map<_, _>>(runtime) {
        let what = format!("what a context kept is unreadable: {error}");
        wrong.push((None, what));
    }
    let name = || Some(entry.name.clone());
    found.extend(wrong.into_iter().map(|(cycle, what)| (name(), cycle, what)));
    Ok(())
}

/// Whether the row of the session is what its sum says, which the newest snapshot is part of.
/// And whether its snapshots are those that were found by their ends. Linear in them, in the index.
pub(crate) fn closing(database: &mut dyn Database, entry: &SessionEntry) -> Result<SessionFaults> {
    let what =
        "the row of the session is not what its sum says, or the newest snapshots are missing";
    let commits = "select count(*), min(seq), max(seq) from snapshot \
         where session_id = ?1 and not working";
    let commits = first(database, commits, &[entry.session.into()], |row| {
        Ok((int(row, 0)?, row.int(1)?.zip(row.int(2)?)))
    });
    let found = |(count, ends)| count == entry.snapshots() as i64 && ends == entry.seqs;
    let is_sound = holds(commits.map(|commits| commits.is_some_and(found)))?
        && holds(is_closed(database, entry.session))?;
    Ok((!is_sound)
        .then(|| (None, what.to_owned()))
        .into_iter()
        .collect())
}

/// Returns the cycles where the chain of hashes differs, and how.
fn chain(database: &mut dyn Database, session: i64) -> Result<SessionFaults> {
    let places = places(database, session, (0, IN_FORCE))?;
    let mut wrong: SessionFaults = overlap(&places)
        .map(|what| (None, what))
        .into_iter()
        .collect();
    let changes = unit_changes(database, session, &places)?;
    let mut before: Option<SnapshotLink> = None;
    let links = links(database, session, i64::MIN)?;
    let ends = links.first().zip(links.last());
    let ends = ends.map_or((1, 0), |(first, last)| (first.seq, last.seq));
    for place in &places {
        let begins = (ends.0..=ends.1).contains(&place.first_seq);
        let ended = place.last_seq == IN_FORCE || place.last_seq < ends.1;
        if !begins || !ended {
            let id = &place.order.id;
            let what = format!("unit {id:?} is in force where no snapshot is");
            wrong.push((None, what));
        }
    }
    for link in links {
        if let Some(before) = &before
            && (before.seq + 1 != link.seq || before.working)
        {
            let what = "the snapshots are not numbered one after the other";
            wrong.push((link.cycle, what.to_owned()));
        }
        if link.working != link.cycle.is_none() {
            let what = "a commit has a cycle, and a working state has none";
            wrong.push((link.cycle, what.to_owned()));
        }
        let is_sound = match (&before, &link.base) {
            (None, Some(base)) => {
                let found = base_hash(database, session, link.seq);
                holds(found.map(|hash| hash.is_some_and(|hash| hash[..] == base[..])))?
            }
            (before, _) => {
                let parent = before.as_ref().and_then(SnapshotLink::hash);
                let sum = link.texts.as_ref().ok().map(|(meta, note)| {
                    let mut hash = chained(parent, link.cycle, meta, note.as_deref());
                    add_units(&mut hash, changes.get(&link.seq));
                    hash.finalize()
                });
                sum.is_some_and(|sum| link.hash.as_deref() == Some(&sum[..]))
            }
        };
        if !is_sound {
            let what = "the snapshot is not what its hash says";
            wrong.push((link.cycle, what.to_owned()));
        }
        if let Err(unreadable) = &link.texts {
            wrong.push((link.cycle, unreadable.to_string()));
        }
        before = Some(link);
    }
    Ok(wrong)
}

fn misplaced(database: &mut dyn Database, session: i64) -> Result<SessionFaults> {
    collect(
        database,
        "select n.id, s.cycle from placement p join unit u on u.unit_id = p.unit_id \
         join node n on n.unit_id = p.unit_id and n.pre = 0 left join snapshot s \
         on s.session_id = p.session_id and s.seq = p.first_seq where p.session_id = ?1 \
         and (p.id <> n.id or p.sibling_offset <> n.sibling_offset \
         or p.created_at_ns <> n.created_at_ns or p.creation_index <> n.creation_index \
         or p.turn <> (u.kind = 'turn') or p.rank <> case u.kind when 'preamble' then 0 when 'head' then 2 when 'other' then 3 else 1 end) \
         order by p.first_seq, n.id",
        &[session.into()],
        |row| {
            let id = row.text(0).ok().flatten().unwrap_or_default();
            let what = format!("unit {id:?} is not placed where its top node says");
            Ok((row.int(1)?, what))
        },
    )
}

fn overlap(places: &[Placement]) -> Option<String> {
    let spans = places
        .iter()
        .map(|place| (&*place.order.id, place.first_seq, place.last_seq));
    let mut spans: Vec<(&str, i64, i64)> = spans.collect();
    spans.sort_unstable();
    let mut pairs = spans
        .iter()
        .zip(spans.iter().skip(1).map(Some).chain([None]));
    let overlapping = pairs.find(|((id, first, last), next)| {
        let meets = next.is_some_and(|(next, begins, _)| next == id && last >= begins);
        first > last || meets
    });
    let ((id, ..), _) = overlapping?;
    Some(format!("two versions of unit {id:?} are in force at once"))
}
