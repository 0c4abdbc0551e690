//! From calls to snapshots and attempts.

use super::call::{ProviderCall, Recorded};
use super::choice::{SessionFit, fit, has_last_reply, is_of, source, together};
use crate::history::{Attempt, AttemptStatus};
use crate::index::{Snapshot, SnapshotBuilder};
use crate::json::canonical;
use crate::logs::{LiveCall, Numbers, Print, Redaction, prints_after};
use crate::render::{Contents, Thread};
use crate::store::{Ledger, SessionEntry};
use crate::support::diag::{Code, Diagnostic, Error};
use crate::tree::hash::{hex, text_hash};
use crate::tree::timestamp::rfc3339_of_nanos;
use std::collections::HashMap;
use std::sync::Arc;

const KEPT: usize = 256;

/// What is known of sessions, so that the next call of one need not read it.
#[derive(Debug, Default)]
pub(super) struct KnownSessions {
    known: HashMap<i64, KnownSession>,
    touched: Option<i64>,
    clock: u64,
    /// The largest number given after a name.
    numbers: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct KnownSession {
    changed: i64,
    newest: Option<Arc<Snapshot>>,
    numbers: Numbers,
    /// What was sent last, and the reply.
    prints: Vec<Print>,
    used: u64,
}

struct NextSnapshot {
    snapshot: Arc<Snapshot>,
    numbers: Numbers,
    prints: Vec<Print>,
}

impl KnownSessions {
    pub(super) fn write(
        &mut self,
        ledger: &mut Ledger<'_>,
        call: &ProviderCall,
        patterns: &[Redaction],
    ) -> Result<Recorded, Error> {
        let call = call.redacted(patterns);
        let mut live = read(&call)?;
        let row = self.row_of(ledger, &call, &live)?;
        self.touched = Some(row.session);
        let status = match (&call.error, call.canceled) {
            (_, true) => AttemptStatus::Canceled,
            (Some(_), _) => AttemptStatus::Error,
            (None, _) => AttemptStatus::Completed,
        };
        let failed = status != AttemptStatus::Completed;
        let has_reply = live.has_reply() || (!failed && call.response.is_some());
        if failed {
            live.set_stop(status.as_str());
        }
        let mut attempts = ledger.attempts(&row)?;
        let newest = self.newest(&row);
        let cycle = newest.map_or(1, |newest| newest.cycle().saturating_add(1));
        let mut said: Vec<String> = attempts.of_cycle(cycle).map(self::said).collect();
        said.reverse();
        let mut attempt = attempt(&call, &live, status, cycle, said.len());
        if failed {
            said.push(self::said(&attempt));
        }
        if !has_reply {
            live.clear_reply();
        }
        let next = self.next(&row, live, said)?;
        // If a call of a cycle failed, the cycle notes what each of its calls was sent.
        let notes = failed || attempts.of_cycle(cycle).next().is_some();
        let settled = attempts.len();
        if notes {
            attempt.params = params(&next.snapshot);
            let thread = Thread::from_snapshot(&next.snapshot, Contents::Request);
            attempts = attempts.begun(attempt.clone(), thread.records().collect());
        }
        let commits = has_reply || !failed;
        let older = self.newest(&row).cloned();
        let written = commits.then_some((older.as_deref(), &*next.snapshot));
        let row = ledger.add(&row, written, (settled, attempts))?;
        self.note(&row, next, commits);
        Ok(Recorded {
            session: row.name,
            cycle,
            attempt: failed.then_some(attempt.attempt_id),
        })
    }

    /// The session that a call goes on with, which is known then.
    fn row_of(
        &mut self,
        ledger: &mut Ledger<'_>,
        call: &ProviderCall,
        live: &LiveCall,
    ) -> Result<SessionEntry, Error> {
        let base = &*call.session;
        if call.together {
            return self.together_row(ledger, base);
        }
        let prints = live.prints();
        if let Some(response) = live.previous() {
            for row in ledger.of_response(base, response)? {
                if is_of(&row, base) && self.know(ledger, &row)? {
                    return Ok(row);
                }
            }
        }
        let source = source(base, &prints);
        let mut best: Option<(SessionFit, SessionEntry)> = None;
        for row in ledger.of_source(&source)? {
            if !is_of(&row, base) || !self.know(ledger, &row)? {
                continue;
            }
            let known = self.known.get(&row.session);
            let said = known.map(|known| &*known.prints).unwrap_or_default();
            let found = fit(&prints, said, row.committed_at_ns.unwrap_or(0));
            if let Some(found) = found
                && best.as_ref().is_none_or(|(best, _)| *best <= found)
            {
                best = Some((found, row));
            }
        }
        if let Some((_, row)) = best {
            return Ok(row);
        }
        if let Some(row) = self.with_last_reply(ledger, base, &prints)? {
            return Ok(row);
        }
        let row = self.begin(ledger, base, &source)?;
        self.know(ledger, &row)?;
        Ok(row)
    }

    /// The one session of all calls of a name.
    fn together_row(&mut self, ledger: &mut Ledger<'_>, base: &str) -> Result<SessionEntry, Error> {
        let source = together(base);
        for row in ledger.of_source(&source)? {
            if is_of(&row, base) && self.know(ledger, &row)? {
                return Ok(row);
            }
        }
        // A fork that was given this name, so that calls go on there.
        if let Some(row) = ledger.by_name(base)?
            && row.parent.is_some()
            && is_of(&row, base)
            && self.know(ledger, &row)?
        {
            return Ok(row);
        }
        let row = self.begin(ledger, base, &source)?;
        self.know(ledger, &row)?;
        Ok(row)
    }

    /// A session in memory whose last reply a request has in it, the one that was used last.
    fn with_last_reply(
        &mut self,
        ledger: &mut Ledger<'_>,
        base: &str,
        prints: &[Print],
    ) -> Result<Option<SessionEntry>, Error> {
        let known = self.known.iter();
        let mut found: Vec<(u64, i64)> = known
            .filter(|(_, known)| has_last_reply(prints, &known.prints))
            .map(|(id, known)| (known.used, *id))
            .collect();
        found.sort_unstable();
        for (_, id) in found.into_iter().rev() {
            if let Some(row) = ledger.by_id(id)?
                && is_of(&row, base)
                && self.know(ledger, &row)?
            {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn begin(
        &mut self,
        ledger: &mut Ledger<'_>,
        base: &str,
        source: &str,
    ) -> Result<SessionEntry, Error> {
        if !ledger.has(base)? {
            return ledger.begin(base, source);
        }
        let mut number = match self.numbers.get(base) {
            Some(number) => *number,
            None => ledger.last_number(base)?,
        };
        loop {
            number = number.saturating_add(1);
            let name = format!("{base}/{number}");
            if !ledger.has(&name)? {
                self.numbers.insert(base.to_owned(), number);
                return ledger.begin(&name, source);
            }
        }
    }

    /// Reads a session, unless it is known as it is. Returns false if it was not made of calls.
    fn know(&mut self, ledger: &mut Ledger<'_>, row: &SessionEntry) -> Result<bool, Error> {
        self.clock += 1;
        if let Some(known) = self.known.get_mut(&row.session)
            && known.changed == row.changed
        {
            known.used = self.clock;
            return Ok(true);
        }
        let newest = ledger.newest(row)?;
        let mut numbers = Numbers::default();
        for id in ledger.used(row)? {
            numbers.note(&id);
        }
        let mut known = KnownSession {
            changed: row.changed,
            numbers,
            newest,
            used: self.clock,
            ..KnownSession::default()
        };
        if let Some(snapshot) = &known.newest {
            let Some(prints) = prints_after(snapshot, numbers) else {
                return Ok(false);
            };
            known.prints = prints;
        }
        self.known.insert(row.session, known);
        Ok(true)
    }

    fn newest(&self, row: &SessionEntry) -> Option<&Arc<Snapshot>> {
        self.known.get(&row.session)?.newest.as_ref()
    }

    fn next(
        &self,
        row: &SessionEntry,
        live: LiveCall,
        attempts: Vec<String>,
    ) -> Result<NextSnapshot, Error> {
        let known = self.known.get(&row.session);
        let newest = known.and_then(|known| known.newest.clone());
        let numbers = known.map(|known| known.numbers).unwrap_or_default();
        let after = newest.as_deref().map(|newest| (newest, numbers));
        let made = live.document(after, attempts);
        let (document, numbers, prints) = made.ok_or_else(|| {
            // Something else has written it meanwhile.
            refused(format!("the session `{}` was not made of calls", row.name))
        })?;
        let snapshot = SnapshotBuilder::after(newest).next(document);
        let snapshot = snapshot.map_err(refused)?;
        Ok(NextSnapshot {
            snapshot,
            numbers,
            prints,
        })
    }

    fn note(&mut self, row: &SessionEntry, next: NextSnapshot, commits: bool) {
        self.clock += 1;
        let known = self.known.entry(row.session).or_default();
        known.changed = row.changed;
        known.used = self.clock;
        if commits {
            known.newest = Some(next.snapshot);
            known.numbers = next.numbers;
            known.prints = next.prints;
        } else if known.newest.is_none() {
            // The session has no snapshot yet: the failed call alone says how it begins.
            known.prints = next.prints;
        }
    }

    /// Ends the work on a call; what is known of its session holds if it was written.
    pub(super) fn settle(&mut self, written: bool) {
        if let Some(id) = self.touched.take()
            && !written
        {
            self.known.remove(&id);
            self.numbers.clear();
        }
    }

    /// Ends a transaction; what is known of sessions holds if it was committed.
    pub(super) fn end(&mut self, committed: bool) {
        self.touched = None;
        if !committed {
            self.known.clear();
            self.numbers.clear();
        }
        let Some(more) = self.known.len().checked_sub(KEPT) else {
            return;
        };
        let known = self.known.iter();
        let mut used: Vec<(u64, i64)> = known.map(|(id, known)| (known.used, *id)).collect();
        used.sort_unstable();
        for (_, id) in used.iter().take(more) {
            self.known.remove(id);
        }
    }
}

fn read(call: &ProviderCall) -> Result<LiveCall, Error> {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let latency = call
        .latency_ms
        .map(|latency| ("latency_ms", latency.to_string()));
    let id = call
        .request_id
        .as_deref()
        .map(|id| ("request_id", text(id)));
    let usage = latency.into_iter().chain(id).collect();
    let times = (call.started_at_ns, call.ended_at_ns);
    let response = call.response.as_deref();
    let live = LiveCall::read(call.provider, &call.request, response, times, usage);
    let live = live.map_err(refused)?;
    Ok(if call.made { live } else { live.not_made() })
}

fn attempt(
    call: &ProviderCall,
    live: &LiveCall,
    status: AttemptStatus,
    cycle: i64,
    before: usize,
) -> Attempt {
    Attempt {
        attempt_id: format!("a{cycle}-{}", before + 1),
        cycle_id: cycle,
        status,
        started_at: rfc3339_of_nanos(call.started_at_ns),
        ended_at: Some(rfc3339_of_nanos(call.ended_at_ns)),
        provider: call.provider.name().to_owned(),
        model: live.parameter("model"),
        params: String::new(),
        token_in: live.counted("input_tokens"),
        token_out: live.counted("output_tokens"),
        error: call.error.clone(),
    }
}

/// What `meta.attempts` of the cycle's snapshot says of an attempt.
fn said(attempt: &Attempt) -> String {
    let mut said = serde_json::json!({
        "status": attempt.status.as_str(),
        "started_at": attempt.started_at,
    });
    if let (Some(error), Some(said)) = (&attempt.error, said.as_object_mut()) {
        said.insert("error".to_owned(), error.as_str().into());
    }
    canonical(&said.to_string())
}

fn params(snapshot: &Snapshot) -> String {
    let thread = Thread::from_snapshot(snapshot, Contents::Request);
    hex(&text_hash(&canonical(thread.parameters().unwrap_or("{}"))))
}

fn refused(message: impl Into<String>) -> Error {
    Error::new("", Diagnostic::error(Code::Input, message))
}
