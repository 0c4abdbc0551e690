//! What has changed in a store since a copy of it was written.
//!
//! A session that only grew has the units it had, under the numbers they had. This file must not know how files are
//! written.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::manifest::{Copy, Exported};
use crate::store::catalog;
use crate::store::database::sql::{Database, int, text};
use crate::store::error::{Result, StoreError};
use crate::store::read::names::Glob;
use crate::tree::hash::hex;

/// The sessions that are copied, by bucket, in order of their numbers. One statement.
pub(crate) fn by_bucket(
    database: &mut dyn Database,
    copy: &Copy,
) -> Result<BTreeMap<i64, Vec<Exported>>> {
    // The first bucket has a file of every table, so that an engine finds one.
    let mut all: BTreeMap<i64, Vec<Exported>> = BTreeMap::from([(0, Vec::new())]);
    let glob = Glob::new(&copy.sessions);
    for session in catalog::spans(database, &glob)? {
        // The newest snapshot is the last that was committed, whatever the clock said of others.
        let time = session.committed_at_ns;
        if copy
            .since_ns
            .is_some_and(|since| time.is_none_or(|time| time < since))
        {
            continue;
        }
        let id = session.session;
        let (first, last) = session.seqs.unwrap_or((1, 0));
        number(0, id, 0)?;
        all.entry(id % copy.buckets).or_default().push(Exported {
            id,
            changed: session.changed,
            first,
            last,
            hash: session.hash.as_deref().map(hex).unwrap_or_default(),
            placed: String::new(),
        });
    }
    for sessions in all.values_mut() {
        sessions.sort_unstable_by_key(|session| session.id);
    }
    Ok(all)
}

/// Bits of the number of a unit in a copy, from the lowest: the store's number, and the generation. The rest is
/// the session.
const UNIT_BITS: u32 = 32;
const GENERATION_BITS: u32 = 7;

/// What is added to the store's number of a unit: in a copy, each session and each generation of its bucket
/// has units of its own.
pub(crate) fn number(generation: i64, session: i64, unit: i64) -> Result<i64> {
    let sessions = 1_i64 << (63 - UNIT_BITS - GENERATION_BITS);
    let generation = generation % (1 << GENERATION_BITS);
    if !(0..sessions).contains(&session) || !(0..1_i64 << UNIT_BITS).contains(&unit) {
        return Err(StoreError::Refused(format!(
            "session {session} or unit {unit} has a number that a copy cannot have; copy the store with `pactql import` first"
        )));
    }
    Ok((session << (UNIT_BITS + GENERATION_BITS)) | (generation << UNIT_BITS))
}

/// The session of a number among some that are in order of numbers.
pub(crate) fn of(sessions: &[Exported], id: i64) -> Option<&Exported> {
    let at = sessions.binary_search_by_key(&id, |session| session.id);
    at.ok().and_then(|at| sessions.get(at))
}

/// Whether a bucket has these sessions, as they are now.
pub(crate) fn is_as(known: &[Exported], sessions: &[Exported]) -> bool {
    let mut pairs = known.iter().zip(sessions);
    known.len() == sessions.len() && pairs.all(|(old, new)| old.is_as(new))
}

/// The sessions with the digests of their placements, and whether what a bucket has of them was altered: a session is
/// gone, or its units are others, or have other numbers. Linear in the placements.
pub(crate) fn placed(
    database: &mut dyn Database,
    known: &[Exported],
    sessions: &[Exported],
) -> Result<(Vec<Exported>, bool)> {
    let mut altered = known.iter().any(|old| of(sessions, old.id).is_none());
    let mut all = Vec::with_capacity(sessions.len());
    for session in sessions {
        let old = of(known, session.id);
        let seqs = (old.map_or(0, |old| old.last), session.last);
        let (then, now) = digests(database, session.id, seqs)?;
        altered |= old.is_some_and(|old| old.placed != then);
        all.push(Exported {
            placed: now,
            ..session.clone()
        });
    }
    Ok((all, altered))
}

/// The digests of the placements of a session that begin up to each of two seqs, of which the first is not the greater
/// one unless history was cut.
fn digests(
    database: &mut dyn Database,
    session: i64,
    (then, now): (i64, i64),
) -> Result<(String, String)> {
    let (mut hash, mut before) = (Sha256::new(), None);
    database.query(
        "select p.unit_id, p.first_seq, u.kind, u.hash, u.spelling from placement p \
         join unit u on u.unit_id = p.unit_id where p.session_id = ?1 and p.first_seq <= ?2 \
         order by p.first_seq, p.unit_id",
        &[session.into(), now.into()],
        &mut |row| {
            let (unit, seq) = (int(row, 0)?, int(row, 1)?);
            if seq > then && before.is_none() {
                before = Some(hash.clone());
            }
            for number in [unit, seq, int(row, 4)?] {
                hash.update(number.to_be_bytes());
            }
            for part in [text(row, 2)?.as_bytes(), row.bytes(3)?.unwrap_or_default()] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            Ok(())
        },
    )?;
    let digest = |hash: Sha256| hex(&hash.finalize());
    let now = digest(hash);
    Ok((before.map_or_else(|| now.clone(), digest), now))
}
