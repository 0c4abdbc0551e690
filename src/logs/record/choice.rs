//! Which session a call goes on with.
//!
//! Messages are compared as they are said ([`Print`]), the system prompt aside: one with a time in it would begin a
//! session a call.

use crate::logs::Print;
use crate::store::SessionEntry;
use crate::tree::hash::{hex, text_hash};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionFit {
    /// How many messages both begin with.
    shared: usize,
    whole: bool,
    /// When the session was written last.
    pub(super) at: i64,
}

/// How well a request goes on with what was sent and replied last in a session. `None` if it does not:
///
/// - they share no first message;
/// - the request has no reply in it yet, and has fewer messages than were sent last, or another system prompt: a
///   conversation that begins alike;
/// - the request has replies, and shares neither one of them nor all that was sent last.
pub(super) fn fit(request: &[Print], session: &[Print], at: i64) -> Option<SessionFit> {
    let said = |prints: &[Print]| -> Vec<Print> {
        prints
            .iter()
            .filter(|print| !print.system)
            .copied()
            .collect()
    };
    let (new, old) = (said(request), said(session));
    let sent = old.iter().take_while(|print| !print.last).count();
    let pairs = new.iter().zip(&old);
    let shared = pairs
        .take_while(|(new, old)| new.number() == old.number())
        .count();
    let same_system = || {
        let system = |prints: &[Print]| -> Vec<u64> {
            let system = prints.iter().filter(|print| print.system);
            system.map(|print| print.number()).collect()
        };
        system(request) == system(session)
    };
    let is_fresh = !new.iter().any(|print| print.reply);
    let goes_on = if session.is_empty() {
        // All that is known is what it begins with, which is why it was found.
        true
    } else if new.is_empty() || old.is_empty() {
        new.is_empty() == old.is_empty() && same_system()
    } else if is_fresh {
        shared > 0 && new.len() >= sent && same_system()
    } else {
        let has_reply = new.iter().take(shared).any(|print| print.reply);
        shared > 0 && (has_reply || shared >= sent)
    };
    goes_on.then_some(SessionFit {
        shared,
        whole: shared == old.len(),
        at,
    })
}

/// Whether a request has the last reply of a session in it, so goes on with it after dropping what came before.
pub(super) fn has_last_reply(request: &[Print], session: &[Print]) -> bool {
    let last = session.iter().rev().find(|print| print.reply);
    last.is_some_and(|last| {
        let same = |print: &&Print| print.reply && print.number() == last.number();
        request.iter().any(|print| same(&print))
    })
}

/// Whether a session may go on with calls of a name: its name is that, or has a number put after it, and no calls of
/// another name have begun it. A name that a caller gives may look like one with a number.
pub(super) fn is_of(session: &SessionEntry, base: &str) -> bool {
    let Some(rest) = session.name.strip_prefix(base) else {
        return false;
    };
    let source = session.source.as_deref().unwrap_or_default();
    let digits = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let is_named = rest.is_empty() || rest.strip_prefix('/').is_some_and(digits);
    is_named && (!source.starts_with(RECORDING) || source.starts_with(&origin(base)))
}

const RECORDING: &str = "recording ";

fn origin(base: &str) -> String {
    let hash = text_hash(base);
    let half = hash.first_chunk::<8>().map_or(&hash[..], |half| half);
    format!("{RECORDING}{} ", hex(half))
}

/// Where a session comes from that calls of a name have begun with these messages: what finds it again in a store.
pub(super) fn source(base: &str, request: &[Print]) -> String {
    let first = request.iter().find(|print| !print.system);
    let first = first.map_or(0, |first| first.number());
    format!("{}{first:016x}", origin(base))
}

/// Where the one session of all calls of a name comes from.
pub(super) fn together(base: &str) -> String {
    format!("{}together", origin(base))
}
