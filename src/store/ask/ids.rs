//! The ids that a selector finds in a session.

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
