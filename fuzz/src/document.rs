//! Any bytes as a session: an error, or a session that comes back byte for byte.

use pactql::Session;
use pactql::logs::write_session;

/// The lines of a session.
pub fn exported(session: &Session) -> Vec<u8> {
    let history = session.history();
    let mut out = Vec::new();
    let working = history.working().map(|snapshot| &**snapshot);
    write_session(history.committed(), working, false, &mut out).expect("memory");
    out
}

pub fn run(bytes: &[u8]) {
    if let Ok(session) = Session::from_slice(bytes) {
        let first = exported(&session);
        let again = Session::from_slice(&first).expect("an export is a session");
        assert_eq!(exported(&again), first);
    }
}
