//! Takes texts out of all history of a session (STORE §3).

use std::collections::BTreeSet;

use sha2::Digest;

use crate::json::{Appended, write_string};
use crate::store::database::sql::{Database, collect, digest, int, one_int, text, texts};
use crate::store::error::{Result, StoreError};
use crate::store::layout::decode::{Units, Wanted};
use crate::store::layout::encode::{Hash, Ttl, encode};
use crate::store::layout::rows::put_unit;
use crate::store::manage::whole::{add_units, put_base, unit_changes};
use crate::store::read::catalog::{self, touch};
use crate::store::read::load::{Place, places, restore_unit};
use crate::store::texts::tables;
use crate::store::write::change::{IN_FORCE, chained};
use crate::store::write::garbage;
use crate::store::write::lease::{check_free, end};
use crate::tree::hash::hex;

/// Erases the contents and the custom attributes of nodes in every snapshot of a session, and computes the
/// chain of hashes again from the first snapshot concerned, which gets a note. Returns the names of other
/// sessions that have the same units, sorted. Linear in the units concerned and in the later snapshots.
pub(crate) fn erase(database: &mut dyn Database, name: &str, ids: &[&str]) -> Result<Vec<String>> {
    let entry = catalog::get(database, name)?;
    check_free(database, entry.session, name)?;
    // A writer whose lease has run out could go on with what it has in memory.
    end(database, entry.session)?;
    let now = database.now_ns()?;
    let all = places(database, entry.session, (0, IN_FORCE))?;
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut units: Vec<&Place> = Vec::new();
    let here = "select 1 from node where unit_id = ?1 and id = ?2";
    for place in &all {
        for id in ids {
            if one_int(database, here, &[place.unit.into(), (*id).into()])?.is_some() {
                known.insert(id);
                if units.last().is_none_or(|last| last.unit != place.unit) {
                    units.push(place);
                }
            }
        }
    }
    if let Some(unknown) = ids.iter().find(|id| !known.contains(**id)) {
        let what = format!("no snapshot of `{name}` has a node `{unknown}`");
        return Err(StoreError::NoNode(what));
    }
    let Some(from) = units.iter().map(|place| place.first_seq).min() else {
        return Ok(Vec::new());
    };
    let mut others: BTreeSet<String> = BTreeSet::new();
    let mut old = Vec::new();
    for place in &units {
        let mut read = Units::erasing(ids);
        read.read(database, Wanted::Units(&[place.unit]))?;
        let made = restore_unit(read, place.kind)?;
        let nodes = made.nodes().map(|node| (node, Ttl::of(node)));
        let unit = put_unit(database, &encode(place.kind, nodes))?;
        if unit == place.unit {
            continue;
        }
        let update = "update placement set unit_id = ?3 where session_id = ?1 and unit_id = ?2";
        let values = [entry.session.into(), place.unit.into(), unit.into()];
        database.execute(update, &values)?;
        old.push(place.unit);
        let names = "select distinct s.name from placement p join session s \
             on s.session_id = p.session_id where p.unit_id = ?1";
        others.extend(texts(database, names, &[place.unit.into()])?);
    }
    garbage::units(database, &old)?;
    tables::scrub(database)?;
    // What was sent has the texts, too.
    let delete = "delete from attempt where session_id = ?1";
    database.execute(delete, &[entry.session.into()])?;
    rehash(database, entry.session, from, &note(ids, now))?;
    touch(database, entry.session, None)?;
    Ok(others.into_iter().collect())
}

/// What the chain says of an erasure.
fn note(ids: &[&str], now: i64) -> impl Fn(Option<&str>, Hash) -> String {
    let mut list = String::new();
    for id in ids {
        list.push(if list.is_empty() { '[' } else { ',' });
        // Appending to a string does not fail.
        let _ = write_string(&mut Appended(&mut list), id);
    }
    let ids = list + "]";
    move |before, hash| {
        let before = before.and_then(|note| note.strip_suffix(']'));
        let before = before.map_or("[".to_owned(), |notes| format!("{notes},"));
        let hash = hex(&hash);
        format!("{before}{{\"erased\":{ids},\"at_ns\":{now},\"hash_before\":\"{hash}\"}}]")
    }
}

/// Computes the hashes of a session's snapshots again, from a seq on.
fn rehash(
    database: &mut dyn Database,
    session: i64,
    from: i64,
    note: &dyn Fn(Option<&str>, Hash) -> String,
) -> Result<()> {
    let links = "select seq, cycle, meta, note, hash, base from snapshot where session_id = ?1 \
         and seq >= ?2 - 1 order by seq";
    let links = collect(database, links, &[session.into(), from.into()], |row| {
        Ok((
            int(row, 0)?,
            row.int(1)?,
            text(row, 2)?.to_owned(),
            row.text(3)?.map(ToOwned::to_owned),
            digest(row, 4)?,
            row.bytes(5)?.is_some(),
        ))
    })?;
    let places = places(database, session, (0, IN_FORCE))?;
    let changes = unit_changes(database, session, &places)?;
    let mut parent: Option<Hash> = None;
    for (seq, cycle, meta, mut said, old, pruned) in links {
        if seq < from {
            parent = Some(old);
            continue;
        }
        if seq == from {
            said = Some(note(said.as_deref(), old));
        }
        let mut hash = chained(parent, cycle, &meta, said.as_deref());
        add_units(&mut hash, changes.get(&seq));
        let hash: Hash = hash.finalize().into();
        let update = "update snapshot set hash = ?3, note = ?4 where session_id = ?1 and seq = ?2";
        let said = said.as_deref();
        let values = [session.into(), seq.into(), (&hash).into(), said.into()];
        database.execute(update, &values)?;
        if pruned {
            put_base(database, session, seq)?;
        }
        parent = Some(hash);
    }
    Ok(())
}
