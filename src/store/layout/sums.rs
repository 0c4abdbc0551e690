//! Sums of rows that no hash covers, so that `verify` finds whatever was altered.

use crate::store::database::sql::{Database, ResultRow, SqlValue, Type, collect, first, int};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{StoreColumn, insert, list, sum, summed, table};

/// The tables whose rows have a sum besides `session`: what a row is, for messages.
const ROWS: &[(&str, &str)] = &[
    ("snapshot", "the time or the usage of a snapshot"),
    ("attempt", "an attempt"),
    ("pin", "a reference"),
    ("retired", "an id that is in use no more"),
];

/// Something that contradicts itself: the session and the cycle of the first snapshot concerned, and what.
pub(crate) type Finding = (Option<String>, Option<i64>, String);

pub(crate) fn put_retired<'a>(
    database: &mut dyn Database,
    session: i64,
    ids: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    let mut ids = ids.into_iter();
    ids.try_for_each(|id| insert(database, "retired", &[session.into(), id.into()]))
}

/// What the sum of a row of `session t` is over, and what closes the session: the number of its snapshots and the hash of
/// the last one, so that snapshots that are missing at its end are noticed.
const SESSION: &str = "t.name, t.created_at_ns, t.source, t.parent_id, t.parent_seq, t.meta, \
     (select max(seq) from snapshot where session_id = t.session_id), \
     (select hash from snapshot where session_id = t.session_id order by seq desc limit 1)";

const SESSION_KINDS: [Type; 8] = {
    use Type::{Bytes, Int, Text};
    [Text, Int, Text, Int, Int, Text, Int, Bytes]
};

fn sum_at(row: &dyn ResultRow, from: usize, kinds: impl IntoIterator<Item = Type>) -> Result<i64> {
    let values = (from..).zip(kinds).map(|(at, kind)| row.value(at, kind));
    Ok(sum(&values.collect::<Result<Vec<SqlValue<'_>>, _>>()?))
}

/// The sum of a row of `session` that has no snapshots. Its columns are at these places, in the order of the sum.
pub(crate) fn sum_without_snapshots(row: &dyn ResultRow, at: [usize; 6]) -> Result<i64> {
    let values = at.into_iter().zip(SESSION_KINDS);
    let values = values.map(|(at, kind)| row.value(at, kind));
    let mut values = values.collect::<Result<Vec<SqlValue<'_>>, _>>()?;
    values.extend([SqlValue::Null, SqlValue::Null]);
    Ok(sum(&values))
}

/// Whether the sum of a row of `session` is that of the row and of its newest snapshot.
pub(crate) fn is_closed(database: &mut dyn Database, session: i64) -> Result<bool> {
    let select = format!("select t.check_sum, {SESSION} from session t where session_id = ?1");
    let sound = first(database, &select, &[session.into()], |row| {
        Ok(row.int(0)? == Some(sum_at(row, 1, SESSION_KINDS)?))
    })?;
    Ok(sound.unwrap_or(true))
}

/// Computes the sum of a row of `session` again, after it or the session's snapshots were changed.
pub(crate) fn update_session_sum(database: &mut dyn Database, session: i64) -> Result<()> {
    update_session_sums(database, &[session])
}

/// As [`update_session_sum`], of several sessions.
pub(crate) fn update_session_sums(database: &mut dyn Database, sessions: &[i64]) -> Result<()> {
    let select = format!("select {SESSION} from session t where session_id = ?1");
    let keys: Vec<Vec<SqlValue<'_>>> = sessions.iter().map(|id| vec![(*id).into()]).collect();
    let mut sums = vec![None; sessions.len()];
    database.query_all(&select, &keys, &mut |at, row| {
        sums[at] = Some(sum_at(row, 0, SESSION_KINDS)?);
        Ok(())
    })?;
    let update = "update session set check_sum = ?2 where session_id = ?1";
    let values = sessions.iter().zip(sums);
    let values = values.map(|(session, sum)| vec![(*session).into(), sum.into()]);
    let values: Vec<Vec<SqlValue<'_>>> = values.collect();
    database.query_all(update, &values, &mut |_, _| Ok(()))
}

/// Computes the sums of a session's attempts again, after they were copied from another session.
pub(crate) fn update_attempt_sums(database: &mut dyn Database, session: i64) -> Result<()> {
    let columns: Vec<StoreColumn> = summed(table("attempt")).collect();
    let select = list(columns.iter().copied(), "", &[]);
    let select = format!("select number, {select} from attempt where session_id = ?1");
    let sums = collect(database, &select, &[session.into()], |row| {
        let sum = sum_at(row, 1, columns.iter().map(|column| column.kind))?;
        Ok((int(row, 0)?, sum))
    })?;
    let update = "update attempt set check_sum = ?3 where session_id = ?1 and number = ?2";
    for (number, sum) in sums {
        database.execute(update, &[session.into(), number.into(), sum.into()])?;
    }
    Ok(())
}

/// Whether something holds; what cannot be read does not.
pub(crate) fn holds(found: Result<bool>) -> Result<bool> {
    match found {
        Err(StoreError::Damaged(_)) => Ok(false),
        other => other,
    }
}

pub(crate) fn check_sums(database: &mut dyn Database, found: &mut Vec<Finding>) -> Result<()> {
    let mut check = |sql: &str, kinds: &[Type], what: &str| {
        let mut rows = 0;
        database.query(sql, &[], &mut |row| {
            rows += 1;
            let is_sound = || Ok(row.int(1)? == Some(sum_at(row, 2, kinds.iter().copied())?));
            if !holds(is_sound())? {
                let name = row.text(0).ok().flatten().map(ToOwned::to_owned);
                found.push((name, None, what.to_owned()));
            }
            Ok(())
        })?;
        Ok::<usize, StoreError>(rows)
    };
    let what = "the row of the layout is not what its sum says";
    let formats = "select cast(null as text), check_sum, version, written_by from format";
    let rows = check(formats, &[Type::Int, Type::Text], what)?;
    let what = "what a context kept of the session is not what its sum says";
    // Without a runtime there is nothing to sum.
    let runtimes = "select name, runtime_sum, runtime from session \
         where runtime is not null or runtime_sum is not null order by name";
    check(runtimes, &[Type::Text], what)?;
    for (name, what) in ROWS {
        let columns: Vec<StoreColumn> = summed(table(name)).collect();
        let select = format!(
            "select s.name, t.check_sum, {} from {name} t join session s \
             on s.session_id = t.session_id order by s.name",
            list(columns.iter().copied(), "t.", &[])
        );
        let kinds: Vec<Type> = columns.iter().map(|column| column.kind).collect();
        check(&select, &kinds, &format!("{what} is not what its sum says"))?;
    }
    if rows != 1 {
        let what = "the row of the layout is not what its sum says";
        found.push((None, None, what.to_owned()));
    }
    Ok(())
}
