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
use crate::store::layout::encode::{AttrColumns, EncodedUnit, NodeColumns, body_hash, encode};
use crate::store::layout::present;
use crate::store::layout::rows::{attr_row, node_row};
use crate::store::layout::schema::{self, StoreTable, list, table};
use crate::store::layout::sums::{Finding, check_sums, holds, is_closed};
use crate::store::manage::whole::{SnapshotLink, add_units, base_hash, links, unit_changes};
use crate::store::read::catalog::{self, SessionEntry};
use crate::store::read::load::{Placement, changed_places, places, restore_unit};
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
            Ok(Some(entry)) => drop(session(database, &entry, found)?),
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
    // Stores of earlier versions have tags of any spelling in rows, and their spelling in this number alone.
    let has_tags = |node: &NodeColumns| node.present & present::TAGS != 0;
    let is_spelled = spelling == Some(encoded.spelling)
        || spelling.is_some() && encoded.nodes.iter().any(has_tags);
    if hash != Some(&encoded.hash[..]) || !is_spelled {
        return Ok(Some(format!("unit {name:?} is not what its hash says")));
    }
    let rows = stored_rows(database, unit)?;
    let wanted = rows_of(&encoded);
    if rows != wanted {
        let at = rows.iter().zip(&wanted).position(|(a, b)| a != b);
        let at = at.unwrap_or(rows.len().min(wanted.len()));
        let row = rows.get(at).or(wanted.get(at)).map_or("", |row| row);
        // After these, the values as they are compared.
        let mut words = row.split(' ');
        let (table, pre) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        return Ok(Some(format!(
            "unit {name:?} has columns that differ from its nodes: table {table}, pre {pre}"
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
    for value in &mut values {
        // SQLite keeps no negative zero: it returns zero.
        if let SqlValue::Real(value) = value {
            *value += 0.0;
        }
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

/// Returns the rows of its snapshots besides.
pub(crate) fn session(
    database: &mut dyn Database,
    entry: &SessionEntry,
    found: &mut Vec<Finding>,
) -> Result<Vec<SnapshotLink>> {
    let mut wrong = SessionFaults::new();
    let mut note = |part: Result<SessionFaults>| {
        match part {
            Err(StoreError::Damaged(what)) => wrong.push((None, what)),
            part => wrong.extend(part?),
        }
        Ok::<(), StoreError>(())
    };
    let session = entry.session;
    let (mut all, mut rows) = (Vec::new(), Vec::new());
    note(places(database, session, (0, IN_FORCE)).map(|places| {
        all = places;
        SessionFaults::new()
    }))?;
    note(closing(database, entry, &all))?;
    note(
        chain(database, session, i64::MIN, &all).map(|(faults, links)| {
            rows = links;
            faults
        }),
    )?;
    note(misplaced(database, session))?;
    note(records::attempts(database, session).map(|_| SessionFaults::new()))?;
    let runtime = entry.runtime.as_deref().unwrap_or("{}");
    if let Err(error) = serde_json::from_str::<serde_json::Map<_, _>>(runtime) {
        let what = format!("what a context kept is unreadable: {error}");
        wrong.push((None, what));
    }
    let name = || Some(entry.name.clone());
    found.extend(wrong.into_iter().map(|(cycle, what)| (name(), cycle, what)));
    Ok(rows)
}

/// Whether the row of the session is what its sum says, which the newest snapshot is part of; whether its snapshots are
/// those that were found by their ends; and where no placement may be. Linear in its history.
fn closing(
    database: &mut dyn Database,
    entry: &SessionEntry,
    places: &[Placement],
) -> Result<SessionFaults> {
    let mut wrong = closed(database, entry.session)?;
    let seqs = "select count(*), min(seq), max(seq) from snapshot \
         where session_id = ?1 and not working";
    let seqs = first(database, seqs, &[entry.session.into()], |row| {
        Ok((int(row, 0)?, row.int(1)?.zip(row.int(2)?)))
    })?;
    if seqs != Some((entry.snapshots() as i64, entry.seqs)) {
        wrong.push((None, "snapshots are missing".to_owned()));
    }
    wrong.extend(overlap(places).map(|what| (None, what)));
    let (first, last) = entry.seqs.unwrap_or((1, 0));
    let last = last + i64::from(entry.working);
    for place in places {
        let begins = (first..=last).contains(&place.first_seq);
        let ended = place.last_seq == IN_FORCE || place.last_seq < last;
        if !begins || !ended {
            let id = &place.order.id;
            let what = format!("unit {id:?} is in force where no snapshot is");
            wrong.push((None, what));
        }
    }
    Ok(wrong)
}

fn closed(database: &mut dyn Database, session: i64) -> Result<SessionFaults> {
    let what =
        "the row of the session is not what its sum says, or the newest snapshots are missing";
    let is_sound = holds(is_closed(database, session))?;
    let wrong = (!is_sound).then(|| (None, what.to_owned()));
    Ok(wrong.into_iter().collect())
}

/// What a part of the newest snapshot is read by: the row of the session, the newest commit with the working state after it,
/// and the two indexes of what is in force, which must have the same. Linear in those units, in the indexes alone, and in
/// what the newest commit changed. Returns the rows of the newest snapshots besides.
pub(crate) fn ends(
    database: &mut dyn Database,
    entry: &SessionEntry,
) -> Result<(SessionFaults, Vec<SnapshotLink>)> {
    let mut wrong = closed(database, entry.session)?;
    let from = entry.seqs.map_or(i64::MIN, |(_, last)| last);
    let places = changed_places(database, entry.session, from)?;
    let (faults, links) = chain(database, entry.session, from, &places)?;
    wrong.extend(faults);
    // They were found by another way through the table.
    let newest = links.iter().rfind(|link| !link.working);
    let texts = newest.and_then(|link| link.texts.as_ref().ok());
    if newest.map(|link| (Some(link.seq), link.cycle))
        != entry.seqs.map(|(_, last)| (Some(last), entry.cycle))
        || texts.map(|(meta, _)| meta) != entry.meta.as_ref()
    {
        wrong.push((entry.cycle, "the newest snapshots are missing".to_owned()));
    }
    if database.dialect() == Backend::Sqlite {
        let sums = "select count(*), sum(unit_id), sum(first_seq) from placement indexed by";
        let here = format!("where session_id = ?1 and last_seq = {IN_FORCE}");
        let sql = format!(
            "{sums} placement_in_force {here} and rank in (0, 1, 2, 3) \
             union all {sums} placement_by_end {here}"
        );
        let found = collect(database, &sql, &[entry.session.into()], |row| {
            Ok((int(row, 0)?, row.int(1)?, row.int(2)?))
        })?;
        if found.first() != found.last() {
            let what = "the indexes of what is in force differ";
            wrong.push((None, what.to_owned()));
        }
    }
    Ok((wrong, links))
}

/// Returns the cycles from a seq on where the chain of hashes differs, and how; and the rows of those snapshots, with the one
/// before. `places` are those of [`changed_places`].
fn chain(
    database: &mut dyn Database,
    session: i64,
    from: i64,
    places: &[Placement],
) -> Result<(SessionFaults, Vec<SnapshotLink>)> {
    let changes = unit_changes(places);
    let mut wrong = SessionFaults::new();
    let mut before: Option<&SnapshotLink> = None;
    let links = links(database, session, from.saturating_sub(1))?;
    for link in &links {
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
            // Of the snapshot before the first, the hash alone is used.
            _ if link.seq < from => true,
            (None, Some(base)) => {
                let found = base_hash(database, session, link.seq);
                holds(found.map(|hash| hash.is_some_and(|hash| hash[..] == base[..])))?
            }
            (before, _) => {
                let parent = before.and_then(SnapshotLink::hash);
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
    Ok((wrong, links))
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
