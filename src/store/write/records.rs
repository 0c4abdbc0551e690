//! What is beside the snapshots of a session: what a context keeps, attempts, references, and ids that are in use no
//! more.

use crate::engine::Beside;
use crate::history::{Attempt, AttemptEntry, AttemptStatus, Attempts};
use crate::json::{get, members};
use crate::store::database::sql::{Database, SqlValue, collect, first, int, one_int, text, texts};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::insert;
use crate::store::layout::sums::put_retired;
use crate::store::read::catalog::{SessionEntry, touch_all};
use crate::store::write::change::IN_FORCE;
use crate::store::write::mark;

impl Beside {
    /// What there is but the attempts, of a session that a context has written.
    pub(crate) fn read(database: &mut dyn Database, entry: &SessionEntry) -> Result<Self> {
        Ok(Self {
            runtime: entry.runtime.clone(),
            retired: retired(database, entry.session, entry.runtime.is_some())?,
            pins: Some(pins(database, entry.session)?),
            ..Self::default()
        })
    }

    pub(crate) fn put(&self, database: &mut dyn Database, session: i64) -> Result<()> {
        Self::put_all(database, &[(self, session)])
    }

    /// As [`Self::put`], of several sessions. A server gets a few messages, however many they are.
    pub(crate) fn put_all(database: &mut dyn Database, all: &[(&Self, i64)]) -> Result<()> {
        let growing = all
            .iter()
            .filter(|(one, _)| one.attempts.len() > one.settled);
        let from = |settled| SqlValue::Int(i64::try_from(settled).unwrap_or(i64::MAX));
        let attempts = growing.map(|(one, session)| vec![(*session).into(), from(one.settled)]);
        let attempts: Vec<Vec<SqlValue<'_>>> = attempts.collect();
        let delete = "delete from attempt where session_id = ?1 and number >= ?2";
        database.query_all(delete, &attempts, &mut |_, _| Ok(()))?;
        let pins = all.iter().filter(|(one, _)| one.pins.is_some());
        let pins: Vec<Vec<SqlValue<'_>>> = pins.map(|(_, id)| vec![(*id).into()]).collect();
        let delete = "delete from pin where session_id = ?1";
        database.query_all(delete, &pins, &mut |_, _| Ok(()))?;
        for (one, session) in all {
            put_retired(database, *session, one.retired.iter().map(|id| &**id))?;
            put_attempts(database, *session, one.settled, &one.attempts)?;
            put_pins(database, *session, one.pins.iter().flatten())?;
        }
        let touched = all.iter().map(|(one, id)| (*id, one.runtime.as_deref()));
        touch_all(database, &touched.collect::<Vec<_>>())
    }

    /// How many attempts, with those before, change no more. The newest may get its counts after its reply.
    pub(crate) fn ended(&self) -> usize {
        let has_ended = |entry: &&AttemptEntry| entry.attempt.status != AttemptStatus::Running;
        let unsettled = self.attempts.after(self.settled);
        let ended = self.settled + unsettled.take_while(has_ended).count();
        match self.attempts.iter().next() {
            Some(newest) if ended == self.attempts.len() && newest.is_uncounted() => {
                self.settled.max(ended - 1)
            }
            _ => ended,
        }
    }
}

/// How many attempts of a session change no more, from the first on.
pub(crate) fn settled(database: &mut dyn Database, session: i64) -> Result<usize> {
    let sql = "select coalesce(min(case when status = 'running' then number end), \
         max(case when status = 'completed' and coalesce(token_in, token_out) is null then number \
         else number + 1 end), 0) from attempt where session_id = ?1";
    let running = one_int(database, sql, &[session.into()])?;
    Ok(usize::try_from(running.unwrap_or(0)).unwrap_or(0))
}

/// Adds the attempts after the first `settled`.
fn put_attempts(
    database: &mut dyn Database,
    session: i64,
    settled: usize,
    attempts: &Attempts,
) -> Result<()> {
    let from = i64::try_from(settled).unwrap_or(i64::MAX);
    for (number, entry) in (from..).zip(attempts.after(settled)) {
        let attempt = &entry.attempt;
        let request = serde_json::to_string(&entry.sent).unwrap_or_default();
        let tokens = |tokens: Option<u64>| tokens.and_then(|tokens| i64::try_from(tokens).ok());
        let values: [SqlValue<'_>; 14] = [
            session.into(),
            attempt.attempt_id.as_str().into(),
            number.into(),
            attempt.cycle_id.into(),
            attempt.status.as_str().into(),
            attempt.started_at.as_str().into(),
            attempt.ended_at.as_deref().into(),
            attempt.provider.as_str().into(),
            attempt.model.as_deref().into(),
            attempt.params.as_str().into(),
            tokens(attempt.token_in).into(),
            tokens(attempt.token_out).into(),
            attempt.error.as_deref().into(),
            request.as_str().into(),
        ];
        insert(database, "attempt", &values)?;
    }
    Ok(())
}

/// The attempts of a session, oldest first.
pub(crate) fn attempts(database: &mut dyn Database, session: i64) -> Result<Vec<AttemptEntry>> {
    let unreadable = |error: serde_json::Error| {
        StoreError::Damaged(format!("an attempt is unreadable: {error}"))
    };
    let sql = "select attempt_id, cycle_id, status, started_at, ended_at, provider, model, params, token_in, \
         token_out, error, request from attempt where session_id = ?1 order by number";
    let tokens = |tokens: Option<i64>| {
        let tokens = tokens.map(u64::try_from).transpose();
        tokens.map_err(|_| StoreError::Damaged("an attempt is unreadable: tokens".to_owned()))
    };
    collect(database, sql, &[session.into()], |row| {
        let owned = |at| Ok::<_, StoreError>(row.text(at)?.map(ToOwned::to_owned));
        let attempt = Attempt {
            attempt_id: text(row, 0)?.to_owned(),
            cycle_id: int(row, 1)?,
            status: serde_json::from_value(text(row, 2)?.into()).map_err(unreadable)?,
            started_at: text(row, 3)?.to_owned(),
            ended_at: owned(4)?,
            provider: text(row, 5)?.to_owned(),
            model: owned(6)?,
            params: text(row, 7)?.to_owned(),
            token_in: tokens(row.int(8)?)?,
            token_out: tokens(row.int(9)?)?,
            error: owned(10)?,
        };
        let sent = serde_json::from_str(text(row, 11)?).map_err(unreadable)?;
        Ok(AttemptEntry { attempt, sent })
    })
}

pub(crate) fn all_attempts(database: &mut dyn Database, session: i64) -> Result<Attempts> {
    Ok(Attempts::from_entries(attempts(database, session)?))
}

/// Removes the attempts before a cycle. Later ones keep what they were sent.
pub(crate) fn prune_attempts(database: &mut dyn Database, session: i64, cycle: i64) -> Result<()> {
    let all = all_attempts(database, session)?;
    let kept = all.since(cycle);
    if kept.len() == all.len() {
        return Ok(());
    }
    let delete = "delete from attempt where session_id = ?1";
    database.execute(delete, &[session.into()])?;
    put_attempts(database, session, 0, &kept)
}

pub(crate) fn pins(database: &mut dyn Database, session: i64) -> Result<Vec<(String, String)>> {
    let sql = "select pin_id, id from pin where session_id = ?1 order by pin_id";
    collect(database, sql, &[session.into()], |row| {
        Ok((text(row, 0)?.to_owned(), text(row, 1)?.to_owned()))
    })
}

fn put_pins<'p>(
    database: &mut dyn Database,
    session: i64,
    pins: impl IntoIterator<Item = &'p (String, String)>,
) -> Result<()> {
    for (name, id) in pins {
        let values = [
            session.into(),
            SqlValue::Text(name),
            SqlValue::Text(id),
            SqlValue::Null,
            SqlValue::Null,
        ];
        insert(database, "pin", &values)?;
    }
    Ok(())
}

/// The ids that a session used and that are in no unit of its newest commit. If no context has `written` the
/// session yet, only those that a prune met are noted; the others are read from its closed placements, once.
pub(crate) fn retired(
    database: &mut dyn Database,
    session: i64,
    written: bool,
) -> Result<Vec<String>> {
    let noted = "select id from retired where session_id = ?1 order by id";
    if written {
        return texts(database, noted, &[session.into()]);
    }
    let closed = "select distinct n.id from placement p join node n on n.unit_id = p.unit_id \
         where p.session_id = ?1 and p.last_seq < ?2 and n.id is not null \
         union select id from retired where session_id = ?1 order by 1";
    texts(database, closed, &[session.into(), IN_FORCE.into()])
}

/// The largest creation time of a session's nodes, those that were pruned included. Linear in the others.
pub(crate) fn last_time(database: &mut dyn Database, session: i64) -> Result<i64> {
    let last = "select coalesce(max(n.created_at_ns), 0) from placement p join node n \
         on n.unit_id = p.unit_id where p.session_id = ?1";
    let last = one_int(database, last, &[session.into()])?;
    let meta = "select meta from session where session_id = ?1";
    let noted = first(database, meta, &[session.into()], |row| {
        let meta = row.text(0)?.map(members);
        Ok(meta.and_then(|meta| get(&meta, "last_ns")?.parse().ok()))
    })?;
    Ok(last.unwrap_or(0).max(noted.flatten().unwrap_or(0)))
}

/// Notes what a writer to come needs to know of snapshots that go, of a session that no context has
/// written yet: ids that were used, and the last time.
pub(crate) fn note_unwritten(database: &mut dyn Database, session: i64) -> Result<()> {
    let ids = retired(database, session, false)?;
    put_retired(database, session, ids.iter().map(|id| &**id))?;
    let last = last_time(database, session)?.to_string();
    mark::set_member(database, session, "last_ns", Some(&last))
}
