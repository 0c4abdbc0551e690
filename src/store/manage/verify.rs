//! Reads a whole store and compares it with its hashes (STORE §2, §3).
//!
//! Every unit is read, encoded again and compared row by row, so that a value that only SQL uses is checked
//! as well; every chain of hashes is computed again; and no row may be left over.

use hashbrown::HashMap;
use sha2::Digest;

use crate::index::UnitKind;
use crate::store::database::sql::{Database, Dialect, Row, collect, digest, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::decode::{Units, Wanted};
use crate::store::layout::encode::{Hash, Ttl, Unit, body_hash, encode};
use crate::store::layout::rows::{ATTR_COLUMNS, NODE_COLUMNS, attr_values, node_values};
use crate::store::layout::schema::{self, Type};
use crate::store::layout::sums::{self, holds};
use crate::store::manage::whole::base_hash;
use crate::store::read::catalog::{self, Entry};
use crate::store::read::load::{Place, restore_unit};
use crate::store::read::stored::check_text;
use crate::store::texts::tables;
use crate::store::write::change::{IN_FORCE, chained};
use crate::store::write::records;

/// Something that contradicts itself: the session and the cycle of the first snapshot concerned, and what.
pub(crate) type Finding = (Option<String>, Option<i64>, String);

/// A part of the check, which notes what it finds.
type Part = fn(&mut dyn Database, &mut Vec<Finding>) -> Result<(), StoreError>;

/// All contradictions of a store. Linear in it.
pub(crate) fn verify(database: &mut dyn Database) -> Result<Vec<Finding>, StoreError> {
    let mut found: Vec<Finding> = Vec::new();
    let parts: [Part; 7] = [layout, pages, bodies, units, left_over, sums, sessions];
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

/// Tables that are not as this program makes them.
fn layout(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<(), StoreError> {
    if database.dialect() == Dialect::Sqlite {
        let different = schema::differences(database)?.into_iter();
        found.extend(different.map(|what| {
            let what = format!("{what} is not as the layout says");
            (None, None, what)
        }));
    }
    Ok(())
}

/// What the database itself finds wrong in its file.
fn pages(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<(), StoreError> {
    if database.dialect() == Dialect::Sqlite {
        tables::refresh(database)?;
        let said = collect(database, "pragma integrity_check", &[], |row| {
            Ok(text(row, 0)?.to_owned())
        })?;
        let wrong = said.into_iter().filter(|line| line != "ok");
        found.extend(wrong.map(|what| (None, None, what)));
    }
    Ok(())
}

fn sums(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<(), StoreError> {
    let wrong = sums::wrong(database)?.into_iter();
    found.extend(wrong.map(|(name, what)| (name, None, what)));
    Ok(())
}

fn sessions(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<(), StoreError> {
    let list = "select session_id from session order by name";
    for number in collect(database, list, &[], |row| int(row, 0))? {
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
) -> Result<(), StoreError> {
    let placed = collect(
        database,
        "select s.name, min(n.cycle) from placement p join session s on s.session_id = p.session_id \
         left join snapshot n on n.session_id = p.session_id and n.seq >= p.first_seq \
         and n.seq <= p.last_seq where p.unit_id = ?1 group by s.name order by s.name",
        &[unit.into()],
        |row| {
            Ok((
                row.text(0).ok().flatten().map(ToOwned::to_owned),
                row.int(1)?,
            ))
        },
    )?;
    for (name, cycle) in placed {
        found.push((name, cycle, what.to_owned()));
    }
    Ok(())
}

fn bodies(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<(), StoreError> {
    let mut wrong = Vec::new();
    database.query(
        "select body_id, hash, json, text from body order by body_id",
        &[],
        &mut |row| {
            let sound = || {
                let json = row.bool(2)?.unwrap_or(false);
                Ok(row.bytes(1)? == Some(&body_hash(json, text(row, 3)?)[..]))
            };
            if !holds(sound())? {
                wrong.push(int(row, 0)?);
            }
            Ok(())
        },
    )?;
    for body in wrong {
        let units = collect(
            database,
            "select distinct unit_id from node where body_id = ?1 order by unit_id",
            &[body.into()],
            |row| int(row, 0),
        )?;
        if units.is_empty() {
            found.push((None, None, format!("body {body} is not what its hash says")));
        }
        for unit in units {
            in_unit(database, unit, "a content is not what its hash says", found)?;
        }
    }
    Ok(())
}

/// Compares every unit with its hash, and every row with what it is made of.
fn units(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<(), StoreError> {
    let all = collect(
        database,
        "select unit_id, kind, hash, spelling from unit order by unit_id",
        &[],
        |row| {
            let hash = row.bytes(2)?.map(<[u8]>::to_vec);
            let kind = row.text(1).ok().flatten().unwrap_or("?").to_owned();
            Ok((int(row, 0)?, kind, hash, row.int(3)?))
        },
    )?;
    for (unit, kind, hash, spelling) in all {
        let what = match UnitKind::parse(&kind) {
            None => Some(format!("a unit has the unknown kind {kind:?}")),
            Some(kind) => match unit_fault(database, unit, kind, (hash.as_deref(), spelling)) {
                Ok(fault) => fault,
                Err(StoreError::Damaged(what)) => Some(what),
                Err(other) => return Err(other),
            },
        };
        if let Some(what) = what {
            in_unit(database, unit, &what, found)?;
        }
    }
    Ok(())
}

/// What is wrong with a unit.
pub(crate) fn unit_fault(
    database: &mut dyn Database,
    unit: i64,
    kind: UnitKind,
    (hash, spelling): (Option<&[u8]>, Option<i64>),
) -> Result<Option<String>, StoreError> {
    let mut read = Units::default();
    read.read(database, Wanted::Units(&[unit]))?;
    if read.starts.is_empty() {
        return Ok(Some("a unit has no nodes".to_owned()));
    }
    let made = restore_unit(read, kind)?;
    let nodes = made.nodes().map(|node| (node, Ttl::of(node)));
    let encoded = encode(kind, nodes);
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

/// The rows of `node` and `attr` of an encoded unit, as text.
fn rows_of(unit: &Unit) -> Vec<String> {
    let mut nodes = Vec::new();
    let mut attrs = Vec::new();
    for (pre, node) in (0..).zip(&unit.nodes) {
        let hash = node.body.as_ref().map(|body| body.hash);
        nodes.push(format!("node {pre} {:?} {hash:?}", node_values(node)));
        let mut own: Vec<(&str, i64, String)> = node
            .attrs
            .iter()
            .map(|attr| {
                let text = format!("attr {pre} {:?}", attr_values(attr));
                (attr.name.as_str(), attr.ordinal, text)
            })
            .collect();
        own.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        attrs.extend(own.into_iter().map(|(_, _, text)| text));
    }
    nodes.extend(attrs);
    nodes
}

/// The same of the rows that are stored.
fn stored_rows(database: &mut dyn Database, unit: i64) -> Result<Vec<String>, StoreError> {
    let mut rows = collect(
        database,
        &format!(
            "select pre, b.hash, {} from node n left join body b on b.body_id = n.body_id \
             where n.unit_id = ?1 order by n.pre",
            NODE_COLUMNS
                .iter()
                .map(|(name, _)| format!("n.{name}"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        &[unit.into()],
        |row| {
            let hash: Option<Hash> = match row.bytes(1)? {
                Some(_) => Some(digest(row, 1)?),
                None => None,
            };
            let values = values(row, 2, NODE_COLUMNS)?;
            Ok(format!("node {} {values} {hash:?}", int(row, 0)?))
        },
    )?;
    rows.extend(collect(
        database,
        &format!(
            "select pre, {} from attr where unit_id = ?1 order by pre, name, ordinal",
            ATTR_COLUMNS
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        ),
        &[unit.into()],
        |row| {
            let values = values(row, 1, ATTR_COLUMNS)?;
            Ok(format!("attr {} {values}", int(row, 0)?))
        },
    )?);
    Ok(rows)
}

fn values(row: &dyn Row, from: usize, columns: &[(&str, Type)]) -> Result<String, StoreError> {
    use crate::store::database::sql::Value;
    let mut all = Vec::with_capacity(columns.len());
    for (at, (_, is)) in (from..).zip(columns) {
        all.push(match is {
            Type::Int => Value::from(row.int(at)?),
            Type::Real => row.real(at)?.map_or(Value::Null, Value::Real),
            _ => Value::from(row.text(at)?),
        });
    }
    Ok(format!("{all:?}"))
}

/// Rows that nothing refers to, and references to nothing.
fn left_over(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<(), StoreError> {
    for (what, sql) in [
        (
            "units that no session places",
            "select count(*) from unit u where not exists \
             (select 1 from placement p where p.unit_id = u.unit_id)",
        ),
        (
            "nodes of a unit that does not exist",
            "select count(*) from node n where not exists \
             (select 1 from unit u where u.unit_id = n.unit_id)",
        ),
        (
            "attributes of a node that does not exist",
            "select count(*) from attr a where not exists \
             (select 1 from node n where n.unit_id = a.unit_id and n.pre = a.pre)",
        ),
        (
            "contents that no node has",
            "select count(*) from body b where not exists \
             (select 1 from node n where n.body_id = b.body_id)",
        ),
        (
            "placements of a session or a unit that does not exist",
            "select count(*) from placement p where not exists \
             (select 1 from session s where s.session_id = p.session_id) or not exists \
             (select 1 from unit u where u.unit_id = p.unit_id)",
        ),
        (
            "forks of a session that does not exist",
            "select count(*) from session f where parent_id is not null and not exists \
             (select 1 from session s where s.session_id = f.parent_id)",
        ),
    ] {
        counted(database, what, sql, found)?;
    }
    for (what, table) in [
        ("snapshots", "snapshot"),
        ("attempts", "attempt"),
        ("references", "pin"),
        ("ids", "retired"),
        ("leases", "lease"),
    ] {
        let sql = format!(
            "select count(*) from {table} t where not exists \
             (select 1 from session s where s.session_id = t.session_id)"
        );
        let what = format!("{what} of a session that does not exist");
        counted(database, &what, &sql, found)?;
    }
    Ok(())
}

/// Notes rows that a statement counts, if there are any.
fn counted(
    database: &mut dyn Database,
    what: &str,
    sql: &str,
    found: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let count = first(database, sql, &[], |row| int(row, 0))?.unwrap_or(0);
    if count > 0 {
        found.push((None, None, format!("there are {count} {what}")));
    }
    Ok(())
}

/// A row of `snapshot`, for the chain.
struct Link {
    seq: i64,
    cycle: Option<i64>,
    working: bool,
    /// With the note.
    texts: Result<(String, Option<String>), StoreError>,
    hash: Option<Vec<u8>>,
    base: Option<Vec<u8>>,
}

/// What contradicts itself in a session: the cycle of the first snapshot concerned, and what.
type Wrong = Vec<(Option<i64>, String)>;

/// A check of the session with a number.
type Check = fn(&mut dyn Database, i64, &mut Wrong) -> Result<(), StoreError>;

/// Checks a session: its chain, its placements, and what is beside them.
pub(crate) fn session(
    database: &mut dyn Database,
    entry: &Entry,
    found: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let mut wrong = Vec::new();
    let parts: [Check; 3] = [
        |database, session, wrong| {
            let places = crate::store::read::load::places(database, session, (0, IN_FORCE))?;
            wrong.extend(overlap(&places).map(|what| (None, what)));
            wrong.extend(chain(database, session, &places)?);
            Ok(())
        },
        |database, session, wrong| {
            wrong.extend(misplaced(database, session)?);
            Ok(())
        },
        |database, session, _| records::attempts(database, session).map(|_| ()),
    ];
    for part in parts {
        match part(database, entry.session, &mut wrong) {
            Err(StoreError::Damaged(what)) => wrong.push((None, what)),
            done => done?,
        }
    }
    wrong.extend(check_text(entry).map(|what| (None, what)));
    let name = || Some(entry.name.clone());
    found.extend(wrong.into_iter().map(|(cycle, what)| (name(), cycle, what)));
    Ok(())
}

/// The snapshots of a session, oldest first.
fn links(database: &mut dyn Database, session: i64) -> Result<Vec<Link>, StoreError> {
    collect(
        database,
        "select seq, cycle, working, meta, note, hash, base from snapshot where session_id = ?1 \
         order by seq",
        &[session.into()],
        |row| {
            Ok(Link {
                seq: int(row, 0)?,
                cycle: row.int(1)?,
                working: row.bool(2)?.unwrap_or(false),
                texts: (|| {
                    let note = row.text(4)?.map(ToOwned::to_owned);
                    Ok((text(row, 3)?.to_owned(), note))
                })(),
                hash: row.bytes(5)?.map(<[u8]>::to_vec),
                base: row.bytes(6)?.map(<[u8]>::to_vec),
            })
        },
    )
}

/// Computes the chain of hashes again. Returns the cycles where it differs, and how.
fn chain(database: &mut dyn Database, session: i64, places: &[Place]) -> Result<Wrong, StoreError> {
    let mut wrong = Wrong::new();
    let hashes = collect(
        database,
        "select u.unit_id, u.hash from placement p join unit u on u.unit_id = p.unit_id \
         where p.session_id = ?1",
        &[session.into()],
        // One of another length is of no unit, so the snapshots of that unit are not what they say.
        |row| {
            let hash = row.bytes(1)?.and_then(|hash| hash.try_into().ok());
            Ok((int(row, 0)?, hash.unwrap_or_default()))
        },
    )?;
    let hashes: HashMap<i64, Hash> = hashes.into_iter().collect();
    let (mut came, mut gone) = (HashMap::new(), HashMap::new());
    for place in places {
        let hash = hashes.get(&place.unit).copied().unwrap_or_default();
        let units: &mut Vec<Hash> = came.entry(place.first_seq).or_default();
        units.push(hash);
        if place.last_seq != IN_FORCE {
            let units: &mut Vec<Hash> = gone.entry(place.last_seq + 1).or_default();
            units.push(hash);
        }
    }
    let mut before: Option<Link> = None;
    let links = links(database, session)?;
    let ends = links.first().zip(links.last());
    let ends = ends.map_or((1, 0), |(first, last)| (first.seq, last.seq));
    for place in places {
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
                let parent = before.as_ref().and_then(|before| before.hash.as_deref());
                let parent = parent.and_then(|hash| hash.try_into().ok());
                let sum = link.texts.as_ref().ok().map(|(meta, note)| {
                    let mut hash = chained(parent, link.cycle, meta, note.as_deref());
                    for (sign, units) in [(b"-", &gone), (b"+", &came)] {
                        for unit in units.get(&link.seq).into_iter().flatten() {
                            hash.update(sign);
                            hash.update(unit);
                        }
                    }
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

/// Placements in another order than their top nodes say.
fn misplaced(database: &mut dyn Database, session: i64) -> Result<Wrong, StoreError> {
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

/// Whether two placements of one top node are in force at the same time.
fn overlap(places: &[Place]) -> Option<String> {
    let mut by_id: HashMap<&str, Vec<(i64, i64)>> = HashMap::new();
    for place in places {
        let spans = by_id.entry(&place.order.id).or_default();
        spans.push((place.first_seq, place.last_seq));
    }
    let mut wrong: Vec<&str> = Vec::new();
    for (id, mut spans) in by_id {
        spans.sort_unstable();
        if spans.windows(2).any(|pair| pair[0].1 >= pair[1].0) || spans.iter().any(|(a, b)| a > b) {
            wrong.push(id);
        }
    }
    wrong.sort_unstable();
    let id = wrong.first()?;
    Some(format!("two versions of unit {id:?} are in force at once"))
}
