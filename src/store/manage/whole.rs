//! Sessions as wholes: importing, forking, renaming, deleting, pruning.
//!
//! Everything here happens inside a transaction that the caller has begun.

use sha2::Digest;

use crate::index::Snapshot;
use crate::store::database::sql::{Database, Value, collect, digest, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::encode::Hash;
use crate::store::layout::sums::{put_retired, seal_attempts, seal_session};
use crate::store::read::catalog::{self, Entry, touch};
use crate::store::write::change::{Change, IN_FORCE, SessionRows, chained};
use crate::store::write::garbage;
use crate::store::write::lease::{check_free, is_idle};
use crate::store::write::records::{self, AttemptRow};
use crate::store::write::writer::note_unwritten;

/// What a session has beside its snapshots, for an import.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// What a context keeps, as JSON text; `None` if no context has written the session.
    pub(crate) runtime: Option<String>,
    pub(crate) retired: Vec<String>,
    pub(crate) attempts: Vec<AttemptRow>,
    pub(crate) pins: Vec<(String, String)>,
}

/// A session that is being imported, snapshot by snapshot.
#[derive(Debug)]
pub(crate) struct Import {
    rows: SessionRows,
}

impl Import {
    /// Begins a session of a new name.
    pub(crate) fn begin(
        database: &mut dyn Database,
        name: &str,
        source: Option<&str>,
    ) -> Result<Self, StoreError> {
        let session = catalog::create(database, name, source, None)?;
        let rows = SessionRows::read(database, session)?;
        Ok(Self { rows })
    }

    /// Goes on with a session after its newest commit. One that someone writes is refused.
    pub(crate) fn resume(database: &mut dyn Database, entry: &Entry) -> Result<Self, StoreError> {
        check_free(database, entry.session, &entry.name)?;
        let rows = SessionRows::read(database, entry.session)?;
        Ok(Self { rows })
    }

    /// Takes a saved working state back.
    pub(crate) fn undo_working(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        let loose = self.rows.undo_working(database)?;
        garbage::units(database, &loose)?;
        Ok(())
    }

    /// Takes the newest commit back, and a working state after it. There must be a commit before it, or it
    /// is the first that the session ever had. Linear in the units of the newest commit.
    pub(crate) fn undo_newest(&mut self, database: &mut dyn Database) -> Result<(), StoreError> {
        self.undo_working(database)?;
        let Some((seq, _)) = self.rows.newest else {
            return Ok(());
        };
        let session = Value::Int(self.rows.session);
        let placed = [session, seq.into()];
        let loose = collect(
            database,
            "select unit_id from placement where session_id = ?1 and first_seq = ?2",
            &placed,
            |row| int(row, 0),
        )?;
        database.execute(
            "delete from placement where session_id = ?1 and first_seq = ?2",
            &placed,
        )?;
        database.execute(
            "update placement set last_seq = ?3 where session_id = ?1 and last_seq = ?2",
            &[session, (seq - 1).into(), IN_FORCE.into()],
        )?;
        database.execute(
            "delete from snapshot where session_id = ?1 and seq = ?2",
            &placed,
        )?;
        garbage::units(database, &loose)?;
        self.rows = SessionRows::read(database, self.rows.session)?;
        Ok(())
    }

    /// Adds a snapshot after the one before, or the working state as the last of all.
    pub(crate) fn add(
        &mut self,
        database: &mut dyn Database,
        older: Option<&Snapshot>,
        newer: &Snapshot,
    ) -> Result<(), StoreError> {
        let now = database.now_ns()?;
        let change = Change::between(older, newer);
        let written = self.rows.write(database, &change, now)?;
        self.rows.note(written);
        Ok(())
    }

    /// Ends the work on a session, of which the first `settled` attempts are there already.
    pub(crate) fn end(
        self,
        database: &mut dyn Database,
        settled: usize,
        attempts: &[AttemptRow],
    ) -> Result<(), StoreError> {
        records::put_attempts(database, self.rows.session, settled, attempts)?;
        touch(database, self.rows.session, None)
    }

    /// Adds what is beside the snapshots.
    pub(crate) fn finish(
        self,
        database: &mut dyn Database,
        beside: &Beside,
    ) -> Result<(), StoreError> {
        let session = self.rows.session;
        put_retired(database, session, beside.retired.iter().map(|id| &**id))?;
        records::put_attempts(database, session, 0, &beside.attempts)?;
        records::put_pins(database, session, &beside.pins)?;
        touch(database, session, beside.runtime.as_deref())
    }
}

/// Makes a session of another's snapshots up to an index, which share all units. Linear in placements and
/// snapshots; copies no node. The working state and the references stay with the other one.
pub(crate) fn fork(
    database: &mut dyn Database,
    from: &Entry,
    index: usize,
    to: &str,
) -> Result<(), StoreError> {
    let (first_seq, _) = from.seqs.unwrap_or((1, 0));
    let seq = first_seq.saturating_add(i64::try_from(index).unwrap_or(i64::MAX));
    let there = first(
        database,
        "select 1 from snapshot where session_id = ?1 and seq = ?2 and not working",
        &[from.session.into(), seq.into()],
        |row| int(row, 0),
    )?;
    if there.is_none() {
        return Err(StoreError::Gone(format!(
            "the snapshot of `{}` was removed a moment ago",
            from.name
        )));
    }
    let session = catalog::create(database, to, None, Some((from.session, seq)))?;
    let values: [Value<'_>; 3] = [session.into(), from.session.into(), seq.into()];
    database.execute(
        "insert into snapshot (session_id, seq, cycle, working, committed_at_ns, meta, hash, usage, note, \
         base, parent_hash, check_sum) select ?1, seq, cycle, working, committed_at_ns, meta, hash, usage, note, \
         base, parent_hash, check_sum from snapshot where session_id = ?2 and seq <= ?3",
        &values,
    )?;
    database.execute(
        &format!(
            "insert into placement (session_id, unit_id, first_seq, last_seq, sibling_offset, \
             created_at_ns, creation_index, id, rank, turn) select ?1, unit_id, first_seq, \
             case when last_seq >= ?3 then {IN_FORCE} else last_seq end, sibling_offset, created_at_ns, \
             creation_index, id, rank, turn from placement where session_id = ?2 and first_seq <= ?3"
        ),
        &values,
    )?;
    // A request is a difference to the one before, so attempts are copied from the first on.
    database.execute(
        "insert into attempt (session_id, attempt_id, number, cycle_id, status, started_at, ended_at, \
         provider, model, params, token_in, token_out, error, request, check_sum) select ?1, attempt_id, number, \
         cycle_id, status, started_at, ended_at, provider, model, params, token_in, token_out, error, \
         request, check_sum from attempt where session_id = ?2 and cycle_id <= \
         (select cycle from snapshot where session_id = ?2 and seq = ?3)",
        &values,
    )?;
    seal_attempts(database, session)?;
    touch(database, session, None)
}

/// Gives a session another name.
pub(crate) fn rename(database: &mut dyn Database, from: &str, to: &str) -> Result<(), StoreError> {
    let entry = catalog::get(database, from)?;
    catalog::check_name(to)?;
    check_free(database, entry.session, from)?;
    if catalog::find(database, to)?.is_some() {
        return Err(StoreError::Exists(to.to_owned()));
    }
    database.execute(
        "update session set name = ?2, changed = changed + 1 where session_id = ?1",
        &[entry.session.into(), to.into()],
    )?;
    seal_session(database, entry.session)
}

/// Removes a session, and what only it had. Forks of it stay whole.
pub(crate) fn delete(database: &mut dyn Database, name: &str) -> Result<(), StoreError> {
    let entry = catalog::get(database, name)?;
    check_free(database, entry.session, name)?;
    let session = [Value::Int(entry.session)];
    let units = collect(
        database,
        "select distinct unit_id from placement where session_id = ?1",
        &session,
        |row| int(row, 0),
    )?;
    let forks = collect(
        database,
        "select session_id from session where parent_id = ?1",
        &session,
        |row| int(row, 0),
    )?;
    for sql in [
        "delete from placement where session_id = ?1",
        "delete from snapshot where session_id = ?1",
        "delete from attempt where session_id = ?1",
        "delete from pin where session_id = ?1",
        "delete from lease where session_id = ?1",
        "delete from retired where session_id = ?1",
        "update session set parent_id = null, parent_seq = null where parent_id = ?1",
        "delete from session where session_id = ?1",
    ] {
        database.execute(sql, &session)?;
    }
    for fork in forks {
        seal_session(database, fork)?;
    }
    garbage::units(database, &units)?;
    Ok(())
}

/// Which snapshots of a session are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keep {
    /// At least this many of the newest.
    pub(crate) newest: Option<u64>,
    /// All that were committed at or after this time.
    pub(crate) since_ns: Option<i64>,
}

/// What a prune removed, or would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) snapshots: u64,
    pub(crate) placements: u64,
    pub(crate) units: u64,
    pub(crate) bodies: u64,
}

/// Removes the oldest snapshots of a session, as far as `keep` allows; the newest always stays. Linear in
/// what goes and in the units in force at the first snapshot that stays.
pub(crate) fn prune(
    database: &mut dyn Database,
    entry: &Entry,
    keep: Keep,
) -> Result<Removed, StoreError> {
    let mut removed = Removed::default();
    let Some((oldest, newest)) = entry.seqs else {
        return Ok(removed);
    };
    let mut kept = newest;
    if let Some(count) = keep.newest {
        let count = i64::try_from(count.max(1)).unwrap_or(i64::MAX);
        kept = kept.min(newest.saturating_sub(count - 1));
    }
    if let Some(since) = keep.since_ns {
        let young = first(
            database,
            "select min(seq) from snapshot where session_id = ?1 and not working \
             and committed_at_ns >= ?2",
            &[entry.session.into(), since.into()],
            |row| row.int(0),
        )?;
        kept = kept.min(young.flatten().unwrap_or(newest));
    }
    if keep.newest.is_none() && keep.since_ns.is_none() || kept <= oldest {
        return Ok(removed);
    }
    if entry.runtime.is_none() {
        note_unwritten(database, entry.session)?;
    }
    let ends: [Value<'_>; 2] = [entry.session.into(), kept.into()];
    let hash_of = |database: &mut dyn Database, seq: i64| {
        let found = first(
            database,
            "select hash from snapshot where session_id = ?1 and seq = ?2",
            &[entry.session.into(), seq.into()],
            |row| digest(row, 0),
        )?;
        found.ok_or_else(|| StoreError::Damaged(format!("`{}` lacks a snapshot", entry.name)))
    };
    let parent = hash_of(database, kept - 1)?;
    let units = collect(
        database,
        "select unit_id from placement where session_id = ?1 and last_seq < ?2",
        &ends,
        |row| int(row, 0),
    )?;
    removed.placements = database.execute(
        "delete from placement where session_id = ?1 and last_seq < ?2",
        &ends,
    )?;
    database.execute(
        "update placement set first_seq = ?2 where session_id = ?1 and first_seq < ?2",
        &ends,
    )?;
    removed.snapshots = database.execute(
        "delete from snapshot where session_id = ?1 and seq < ?2",
        &ends,
    )?;
    database.execute(
        "update snapshot set parent_hash = ?3 where session_id = ?1 and seq = ?2",
        &[ends[0], ends[1], (&parent).into()],
    )?;
    put_base(database, entry.session, kept)?;
    (removed.units, removed.bodies) = garbage::units(database, &units)?;
    // What was sent in cycles that are gone goes too, unless a writer may go on after it.
    let idle = is_idle(database, entry.session)?;
    let cycle = first(
        database,
        "select cycle from snapshot where session_id = ?1 and seq = ?2",
        &ends,
        |row| int(row, 0),
    )?;
    if let Some(cycle) = cycle.filter(|_| idle) {
        records::prune_attempts(database, entry.session, cycle)?;
    }
    touch(database, entry.session, None)?;
    Ok(removed)
}

/// The hashes of the units in force at a seq, in document order.
fn hashes_in_force(
    database: &mut dyn Database,
    session: i64,
    seq: i64,
) -> Result<Vec<Hash>, StoreError> {
    collect(
        database,
        "select u.hash from placement p join unit u on u.unit_id = p.unit_id \
         where p.session_id = ?1 and p.first_seq <= ?2 and p.last_seq >= ?2 \
         order by p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id",
        &[session.into(), seq.into()],
        |row| digest(row, 0),
    )
}

/// What the first snapshot after a prune is verified by: a hash over all that its own hash is over, as far
/// as that is there, over its own hash, and over the units in force. `None` if there is no such snapshot.
pub(crate) fn base_hash(
    database: &mut dyn Database,
    session: i64,
    seq: i64,
) -> Result<Option<Hash>, StoreError> {
    let begun = first(
        database,
        "select parent_hash, cycle, meta, note, hash from snapshot where session_id = ?1 and seq = ?2",
        &[session.into(), seq.into()],
        |row| {
            let parent = match row.bytes(0)? {
                Some(_) => Some(digest(row, 0)?),
                None => None,
            };
            let mut hash = chained(parent, row.int(1)?, text(row, 2)?, row.text(3)?);
            hash.update(digest(row, 4)?);
            Ok(hash)
        },
    )?;
    let Some(mut hash) = begun else {
        return Ok(None);
    };
    for unit in hashes_in_force(database, session, seq)? {
        hash.update(unit);
    }
    Ok(Some(hash.finalize().into()))
}

/// Writes that hash of a snapshot.
pub(crate) fn put_base(
    database: &mut dyn Database,
    session: i64,
    seq: i64,
) -> Result<(), StoreError> {
    if let Some(base) = base_hash(database, session, seq)? {
        database.execute(
            "update snapshot set base = ?3 where session_id = ?1 and seq = ?2",
            &[session.into(), seq.into(), (&base).into()],
        )?;
    }
    Ok(())
}
