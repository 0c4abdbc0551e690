//! The ids that a selector finds in a session, and the statement that finds those of a group of sessions.

use crate::store::error::StoreError;
use crate::store::read::catalog::Listed;
use crate::store::write::core::Core;

/// Sessions that one statement asks.
pub(super) const SESSIONS_OF_A_STATEMENT: usize = 32;

/// The ids of what a selector finds in one session: at least one. See [`StoreSelection::ids`](crate::store::StoreSelection::ids).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionIds {
    session: String,
    /// All ids, one after the other.
    text: String,
    /// Where each ends in the text.
    ends: Vec<usize>,
}

impl SessionIds {
    pub(super) fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, id: &str) {
        self.text.push_str(id);
        self.ends.push(self.text.len());
    }

    /// The name of the session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The ids, in result order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let id = self.text.get(start..*end);
            start = *end;
            id.unwrap_or_default()
        })
    }
}

/// The statement of a selector for a group of sessions.
#[derive(Debug)]
pub(super) struct GroupStatement {
    text: String,
}

impl GroupStatement {
    pub(super) fn new(text: String) -> Self {
        Self { text }
    }

    /// The ids of a group of sessions. `None` if one of them has another name meanwhile: what was found
    /// cannot be told apart then.
    ///
    /// # Errors
    /// Those of the database.
    pub(super) fn run(
        &self,
        core: &Core,
        group: &[Listed],
    ) -> Result<Option<Vec<SessionIds>>, StoreError> {
        let Some(last) = group
            .last()
            .filter(|_| group.len() <= SESSIONS_OF_A_STATEMENT)
        else {
            return Ok(None);
        };
        // The parameters that are left over name the last session again.
        let numbers = group.iter().chain(std::iter::repeat(last));
        let numbers = numbers.take(SESSIONS_OF_A_STATEMENT);
        let numbers: Vec<_> = numbers.map(|listed| listed.session.into()).collect();
        let mut found: Vec<SessionIds> = Vec::new();
        let (mut at, mut is_known) = (0, true);
        core.read_once(|database| {
            database.query(&self.text, &numbers, &mut |row| {
                let name = row.text(0)?.unwrap_or_default();
                // Both are in byte order of names.
                let passed = group.iter().skip(at).position(|listed| listed.name == name);
                match passed {
                    Some(passed) => at += passed,
                    None => is_known = false,
                }
                if found.last().is_none_or(|last| last.session != name) {
                    found.push(SessionIds::new(name));
                }
                if let Some(last) = found.last_mut() {
                    last.push(row.text(1)?.unwrap_or_default());
                }
                Ok(())
            })
        })?;
        Ok(is_known.then_some(found))
    }
}
