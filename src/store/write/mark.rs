//! Marks of logs: what an import notes of a log with each of its sessions, so that the same log is not read again.
//!
//! A mark is in the member `log` of a session's `meta` (STORE §2), beside the hash of its newest snapshot then, and holds
//! while the session ends there and no context has written it. Pruning a session and taking a text out of it remove the
//! marks. What a mark says is JSON of the caller; this file does not read it. The member `named` says that a person chose
//! the session's name. The member `erased` has the ids of the nodes whose texts were taken out of snapshots that a prune
//! has removed, or of another session of the same log, or of the session that it is a copy of: without it an import of the
//! log would bring them back.

use crate::json::{Member, canonical, elements, get, members, quoted, string};
use crate::store::Store;
use crate::store::database::sql::{Database, first, ints, texts};
use crate::store::error::Result;
use crate::store::layout::sums::update_session_sum;
use crate::store::read::catalog;
use crate::store::read::source;
use crate::support::diag::Error;
use crate::tree::hash::hex;
use std::collections::BTreeSet;
use {
    crate::store::database::sql::{collect, int, text},
    std::collections::HashSet,
};

/// A session of a log with a mark that holds.
#[derive(Debug)]
pub(crate) struct MarkedSession {
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) mark: String,
}

const LOG: &str = "log";
const NAMED: &str = "named";
const ERASED: &str = "erased";

/// The hash of the newest snapshot of a session, of a working state too, in hexadecimal digits.
fn end(database: &mut dyn Database, session: i64) -> Result<String> {
    let newest = "select hash from snapshot where session_id = ?1 order by seq desc limit 1";
    let hash = first(database, newest, &[session.into()], |row| {
        Ok(row.bytes(0)?.map(hex))
    })?;
    Ok(hash.flatten().unwrap_or_default())
}

/// Replaces a member of a session's `meta`, or removes it.
pub(crate) fn set_member(
    database: &mut dyn Database,
    session: i64,
    member: &str,
    json: Option<&str>,
) -> Result<()> {
    let before = meta(database, session)?;
    let others = before.as_deref().map(members).unwrap_or_default();
    let others = others.into_iter().filter(|(name, _)| name != member);
    let all = others.map(|(name, json)| format!("\"{name}\":{json}"));
    let all: Vec<String> = all
        .chain(json.map(|json| format!("\"{member}\":{json}")))
        .collect();
    let after = (!all.is_empty()).then(|| canonical(&format!("{{{}}}", all.join(","))));
    if before == after {
        return Ok(());
    }
    let update = "update session set meta = ?2 where session_id = ?1";
    database.execute(update, &[session.into(), after.as_deref().into()])?;
    update_session_sum(database, session)
}

fn meta(database: &mut dyn Database, session: i64) -> Result<Option<String>> {
    let meta = "select meta from session where session_id = ?1";
    let meta = first(database, meta, &[session.into()], |row| {
        Ok(row.text(0)?.map(str::to_owned))
    })?;
    Ok(meta.flatten())
}

/// Notes that a person chose the name of a session, so that no import of its log changes it.
pub(crate) fn set_chosen_name(database: &mut dyn Database, session: i64) -> Result<()> {
    set_member(database, session, NAMED, Some("true"))
}

pub(crate) fn has_chosen_name(database: &mut dyn Database, session: i64) -> Result<bool> {
    let meta = meta(database, session)?;
    Ok(meta.is_some_and(|meta| get(&members(&meta), NAMED).is_some()))
}

/// The ids of the nodes whose texts were taken out of a session, by the notes of its snapshots and of those that were
/// pruned; `None` if no text was.
pub(crate) fn erased(database: &mut dyn Database, session: i64) -> Result<Option<Vec<String>>> {
    let notes = "select note from snapshot where session_id = ?1 and note is not null";
    let notes = texts(database, notes, &[session.into()])?;
    let mut ids = erased_before(database, session)?;
    ids.extend(notes.iter().flat_map(|note| ids_of_note(note)));
    let is_erased = !notes.is_empty() || !ids.is_empty();
    Ok(is_erased.then(|| ids.into_iter().collect()))
}

fn ids_of_note(note: &str) -> impl Iterator<Item = String> {
    let erasures = elements(note).into_iter();
    erasures.flat_map(|erasure| ids_of(&members(erasure)))
}

/// The list in the member `erased`.
fn ids_of(members: &[Member<'_>]) -> Vec<String> {
    let ids = get(members, ERASED).map(elements).unwrap_or_default();
    ids.into_iter().filter_map(string).map(Into::into).collect()
}

/// The ids of the nodes whose texts were taken out of snapshots that were pruned, or of another session of the same log.
fn erased_before(database: &mut dyn Database, session: i64) -> Result<BTreeSet<String>> {
    let meta = meta(database, session)?;
    let ids = meta.map(|meta| ids_of(&members(&meta)));
    Ok(ids.into_iter().flatten().collect())
}

/// Notes nodes whose texts were erased, though no snapshot of the session says so.
pub(crate) fn set_erased(
    database: &mut dyn Database,
    session: i64,
    ids: &BTreeSet<String>,
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = ids.iter().map(|id| quoted(id)).collect();
    let list = format!("[{}]", ids.join(","));
    set_member(database, session, ERASED, Some(&list))
}

/// Keeps what the notes of the snapshots before one say was erased, as those are about to be pruned.
pub(crate) fn keep_erased(database: &mut dyn Database, session: i64, seq: i64) -> Result<()> {
    let notes = "select note from snapshot where session_id = ?1 and seq < ?2 and note is not null";
    let notes = texts(database, notes, &[session.into(), seq.into()])?;
    let mut ids = erased_before(database, session)?;
    ids.extend(notes.iter().flat_map(|note| ids_of_note(note)));
    set_erased(database, session, &ids)
}

/// Notes with a fork what was erased from snapshots that were pruned.
pub(crate) fn copy_erased(database: &mut dyn Database, from: i64, to: i64) -> Result<()> {
    let ids = erased_before(database, from)?;
    set_erased(database, to, &ids)
}

/// Keeps the marks of all sessions of a log, unless a text was taken out of one: a hash of the log would help to guess it.
pub(crate) fn put_all(database: &mut dyn Database, sessions: &[(i64, &str)]) -> Result<()> {
    for (session, _) in sessions {
        if erased(database, *session)?.is_some() {
            return Ok(());
        }
    }
    for (session, mark) in sessions {
        let end = end(database, *session)?;
        let mark = format!("{{\"end\":\"{end}\",\"mark\":{mark}}}");
        set_member(database, *session, LOG, Some(&mark))?;
    }
    Ok(())
}

pub(crate) fn remove(database: &mut dyn Database, session: i64) -> Result<()> {
    set_member(database, session, LOG, None)
}

/// Removes the marks of all sessions that were made of one log. Linear in the sessions of the store.
pub(crate) fn remove_of(database: &mut dyn Database, source: &str) -> Result<()> {
    let marked = "select session_id from session where source = ?1 and meta is not null";
    for spelled in source::spellings(database, source)? {
        for session in ints(database, marked, &[spelled.as_str().into()])? {
            remove(database, session)?;
        }
    }
    Ok(())
}

impl Store {
    /// Notes that a person chose the name of a session.
    pub(crate) fn keep_name(&self, name: &str) -> Result<(), Error> {
        let kept = self.core.write(|database| {
            let entry = catalog::get(database, name)?;
            set_chosen_name(database, entry.session)
        });
        Ok(kept?)
    }

    /// The sessions of these logs with marks that hold, in byte order of names. Linear in the sessions of the store.
    pub(crate) fn marks(&self, sources: &HashSet<&str>) -> Result<Vec<MarkedSession>, Error> {
        let found = self.core.read(|database| {
            let marked = "select session_id, name, source, meta from session \
                 where meta is not null and source is not null and runtime is null order by name";
            let found = collect(database, marked, &[], |row| {
                let source = text(row, 2)?;
                if !sources.contains(source) {
                    return Ok(None);
                }
                let meta = members(text(row, 3)?);
                let log = get(&meta, LOG).map(members).unwrap_or_default();
                let end = get(&log, "end").and_then(string);
                let Some((end, mark)) = end.zip(get(&log, "mark")) else {
                    return Ok(None);
                };
                let marked = MarkedSession {
                    source: source.to_owned(),
                    name: text(row, 1)?.to_owned(),
                    mark: mark.to_owned(),
                };
                Ok(Some((int(row, 0)?, end.into_owned(), marked)))
            })?;
            let mut holding = Vec::new();
            for (session, then, marked) in found.into_iter().flatten() {
                if end(database, session)? == then {
                    holding.push(marked);
                }
            }
            Ok(holding)
        })?;
        Ok(found)
    }
}
