//! What is beside the snapshots of a session: attempts and references.

use crate::history::{AttemptEntry, AttemptStatus, Attempts};
use crate::store::database::sql::{Database, Value, collect, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::sums::sum;

/// A row of `attempt`: its number in the session, and the entry.
#[derive(Clone, Debug)]
pub(crate) struct AttemptRow {
    pub(crate) number: i64,
    pub(crate) entry: AttemptEntry,
}

impl AttemptRow {
    /// Whether it changes no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.entry.attempt.status != AttemptStatus::Running
    }
}

/// How many attempts of a session have ended, from the first on.
pub(crate) fn settled(database: &mut dyn Database, session: i64) -> Result<usize, StoreError> {
    let running = first(
        database,
        "select coalesce(min(case when status = 'running' then number end), max(number) + 1, 0) \
         from attempt where session_id = ?1",
        &[session.into()],
        |row| int(row, 0),
    )?;
    Ok(usize::try_from(running.unwrap_or(0)).unwrap_or(0))
}

/// Replaces the attempts from a number on.
pub(crate) fn put_attempts(
    database: &mut dyn Database,
    session: i64,
    from: usize,
    rows: &[AttemptRow],
) -> Result<(), StoreError> {
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    if !rows.is_empty() {
        database.execute(
            "delete from attempt where session_id = ?1 and number >= ?2",
            &[session.into(), from.into()],
        )?;
    }
    for AttemptRow { number, entry } in rows {
        let attempt = &entry.attempt;
        let request = serde_json::to_string(&entry.sent).unwrap_or_default();
        let tokens = |tokens: Option<u64>| tokens.and_then(|tokens| i64::try_from(tokens).ok());
        let values: [Value<'_>; 14] = [
            session.into(),
            attempt.attempt_id.as_str().into(),
            (*number).into(),
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
        let mut row = vec![sum(&values).into()];
        row.extend(values);
        database.execute(
            "insert into attempt (check_sum, session_id, attempt_id, number, cycle_id, status, started_at, \
             ended_at, provider, model, params, token_in, token_out, error, request) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            &row,
        )?;
    }
    Ok(())
}

/// The attempts of a session, oldest first, as the JSON of entries.
pub(crate) fn attempts(
    database: &mut dyn Database,
    session: i64,
) -> Result<Vec<AttemptEntry>, StoreError> {
    let unreadable = |error: serde_json::Error| {
        StoreError::Damaged(format!("an attempt is unreadable: {error}"))
    };
    collect(
        database,
        "select attempt_id, cycle_id, status, started_at, ended_at, provider, model, params, token_in, \
         token_out, error, request from attempt where session_id = ?1 order by number",
        &[session.into()],
        |row| {
            let sent: serde_json::Value =
                serde_json::from_str(text(row, 11)?).map_err(unreadable)?;
            let mut entry = serde_json::json!({
                "attempt_id": text(row, 0)?,
                "cycle_id": int(row, 1)?,
                "status": text(row, 2)?,
                "started_at": text(row, 3)?,
                "ended_at": row.text(4)?,
                "provider": text(row, 5)?,
                "model": row.text(6)?,
                "params": text(row, 7)?,
                "token_in": row.int(8)?,
                "token_out": row.int(9)?,
                "sent": sent,
            });
            if let (Some(error), Some(entry)) = (row.text(10)?, entry.as_object_mut()) {
                entry.insert("error".to_owned(), error.into());
            }
            serde_json::from_value(entry).map_err(unreadable)
        },
    )
}

/// Removes the attempts before a cycle. Later ones keep what they were sent.
pub(crate) fn prune_attempts(
    database: &mut dyn Database,
    session: i64,
    cycle: i64,
) -> Result<(), StoreError> {
    let entries = attempts(database, session)?.into_iter();
    let all = entries.fold(Attempts::default(), |all, entry| all.with(entry));
    let kept = all.since(cycle);
    if kept.len() == all.len() {
        return Ok(());
    }
    database.execute(
        "delete from attempt where session_id = ?1",
        &[session.into()],
    )?;
    let rows: Vec<AttemptRow> = (0..)
        .zip(kept)
        .map(|(number, entry)| AttemptRow { number, entry })
        .collect();
    put_attempts(database, session, 0, &rows)
}

/// The references of a session: names and ids, sorted by name.
pub(crate) fn pins(
    database: &mut dyn Database,
    session: i64,
) -> Result<Vec<(String, String)>, StoreError> {
    collect(
        database,
        "select pin_id, id from pin where session_id = ?1 order by pin_id",
        &[session.into()],
        |row| Ok((text(row, 0)?.to_owned(), text(row, 1)?.to_owned())),
    )
}

/// Replaces the references of a session.
pub(crate) fn put_pins(
    database: &mut dyn Database,
    session: i64,
    pins: &[(String, String)],
) -> Result<(), StoreError> {
    database.execute("delete from pin where session_id = ?1", &[session.into()])?;
    for (name, id) in pins {
        database.execute(
            "insert into pin (session_id, pin_id, id, owner, expires_at_ns, check_sum) \
             values (?1, ?2, ?3, null, null, ?4)",
            &[
                session.into(),
                Value::Text(name),
                Value::Text(id),
                sum(&[
                    session.into(),
                    Value::Text(name),
                    Value::Text(id),
                    Value::Null,
                    Value::Null,
                ])
                .into(),
            ],
        )?;
    }
    Ok(())
}
