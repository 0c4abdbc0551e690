//! Who writes a session: leases with fences (STORE §3).

use crate::store::database::sql::{Database, SqlValue, first, int, one_int, text};
use crate::store::error::{Result, StoreError};
use crate::store::write::process;
use crate::support::cancel;
use crate::support::diag::Code;
use crate::tree::timestamp::rfc3339_of_nanos;
use {crate::store::Store, crate::support::diag::Error};

#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) session: i64,
    owner: String,
    fence: i64,
    /// How long it lasts without use, in nanoseconds.
    lasts: i64,
}

/// The holder, and until when; a dead process of this machine holds nothing.
fn held(database: &mut dyn Database, session: i64) -> Result<Option<(String, i64)>> {
    let sql = "select owner, expires_at_ns, process from lease where session_id = ?1";
    first(database, sql, &[session.into()], |row| {
        let is_dead = row.text(2)?.is_some_and(process::is_dead);
        let until = if is_dead { 0 } else { int(row, 1)? };
        Ok((text(row, 0)?.to_owned(), until))
    })
}

/// Refuses what another writer holds a lease on. Runs inside a transaction.
pub(crate) fn check_free(database: &mut dyn Database, session: i64, name: &str) -> Result<()> {
    let now = database.now_ns()?;
    match held(database, session)? {
        Some((holder, until)) if until > now => {
            let until = rfc3339_of_nanos(until);
            let what = format!("the session `{name}` is being written by {holder} until {until}");
            Err(StoreError::Coded(Code::SessionBusy, what))
        }
        _ => Ok(()),
    }
}

/// Whether no process can go on writing a session: there is no lease, or it was given back.
pub(crate) fn is_idle(database: &mut dyn Database, session: i64) -> Result<bool> {
    Ok(held(database, session)?.is_none_or(|(_, until)| until == 0))
}

/// Its holder, if it goes on, is refused. Runs inside a transaction that writes.
pub(crate) fn end(database: &mut dyn Database, session: i64) -> Result<()> {
    database.execute(
        "update lease set owner = ?2, fence = fence + 1, expires_at_ns = 0 where session_id = ?1",
        &[session.into(), "an erasure".into()],
    )?;
    Ok(())
}

impl Store {
    /// How often a session was opened to be written: a number that says of a writer whether another came between.
    pub(crate) fn fence(&self, name: &str) -> std::result::Result<i64, Error> {
        let fence = self.core.read_once(|database| {
            let sql = "select fence from lease where session_id = (select session_id from session where name = ?1)";
            one_int(database, sql, &[name.into()])
        })?;
        Ok(fence.unwrap_or(0))
    }
}

/// Sets when a lease runs out, if it is still held.
const SET: &str =
    "update lease set expires_at_ns = ?4 where session_id = ?1 and owner = ?2 and fence = ?3";

impl Lease {
    /// No process may hold it at the moment. Runs inside a transaction that writes.
    pub(crate) fn take(
        database: &mut dyn Database,
        session: i64,
        name: &str,
        owner: &str,
        lasts: i64,
    ) -> Result<Self> {
        let now = database.now_ns()?;
        if let Some((dead, 0)) = held(database, session)? {
            let end = "update lease set expires_at_ns = 0 where session_id = ?1 and owner = ?2";
            database.execute(end, &[session.into(), dead.as_str().into()])?;
        }
        // One statement decides, so that of two writers at once one gets it.
        let take = "insert into lease (session_id, owner, fence, expires_at_ns, process) \
             values (?1, ?2, 1, ?3, ?5) on conflict (session_id) do update set owner = excluded.owner, \
             fence = lease.fence + 1, expires_at_ns = excluded.expires_at_ns, process = excluded.process \
             where lease.expires_at_ns <= ?4 returning fence";
        let until = now.saturating_add(lasts);
        let process = process::own();
        let process = process.as_deref();
        let values = [
            session.into(),
            owner.into(),
            until.into(),
            now.into(),
            process.into(),
        ];
        let fence = one_int(database, take, &values)?;
        let Some(fence) = fence else {
            check_free(database, session, name)?;
            let what = format!("the lease of `{name}` was given back a moment ago; try again");
            return Err(StoreError::Conflict(what));
        };
        Ok(Self {
            session,
            owner: owner.to_owned(),
            fence,
            lasts,
        })
    }

    /// Renews leases, each of a session with a name. One that has run out is still good if no process has taken it since.
    /// Returns the time, and which are held no more. Runs inside a transaction that writes.
    pub(crate) fn renew_all(
        database: &mut dyn Database,
        leases: &[(&Self, &str)],
    ) -> Result<(i64, Vec<Result<()>>)> {
        let now = database.now_ns()?;
        let values = leases.iter().map(|(lease, _)| {
            let until = now.saturating_add(lease.lasts);
            lease.values(until).to_vec()
        });
        let values: Vec<Vec<SqlValue<'_>>> = values.collect();
        let mut held = vec![false; leases.len()];
        database.query_all(&format!("{SET} returning fence"), &values, &mut |at, _| {
            held[at] = true;
            Ok(())
        })?;
        let mut renewed = Vec::with_capacity(leases.len());
        for ((lease, name), held) in leases.iter().zip(held) {
            renewed.push(if held {
                Ok(())
            } else {
                Err(lease.lost(database, name)?)
            });
        }
        Ok((now, renewed))
    }

    /// Why a lease could not be renewed.
    fn lost(&self, database: &mut dyn Database, name: &str) -> Result<StoreError> {
        // A session that was deleted has no lease.
        Ok(match held(database, self.session)? {
            Some((holder, _)) => {
                let what =
                    format!("the lease on the session `{name}` ran out and {holder} has taken it");
                StoreError::Coded(Code::LeaseLost, what)
            }
            None => StoreError::NoSession(name.to_owned()),
        })
    }

    /// The values of [`SET`].
    fn values(&self, until: i64) -> [SqlValue<'_>; 4] {
        let owner = SqlValue::Text(&self.owner);
        [self.session.into(), owner, self.fence.into(), until.into()]
    }

    pub(crate) fn give_back(&self, database: &mut dyn Database) -> Result<()> {
        // Also by work that is cancelled: others wait for it.
        cancel::free(|| database.execute(SET, &self.values(0))).map(|_| ())
    }
}
