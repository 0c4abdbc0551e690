//! The engine, reduced to the calls that tests compare.

use pactql::{Answer, Engine as Inner, EngineBuilder, Session};

use super::json;
use super::selector::Edition;

/// An engine for one edition.
pub(crate) struct Engine(pub(crate) Inner);

impl Engine {
    pub(crate) fn new(edition: Edition) -> Self {
        Self(builder(edition).build())
    }

    /// An engine without a plan cache: it compiles every text again.
    pub(crate) fn without_cache(edition: Edition) -> Self {
        Self(builder(edition).cached_texts(0).build())
    }

    /// The ids of a selector, or the code of its error. A range gives its JSON instead.
    pub(crate) fn ids(&self, session: &Session, text: &str) -> Result<Vec<String>, String> {
        match self.0.select(session, text) {
            Err(error) => Err(error.code().to_string()),
            Ok(Answer::Range(diff)) => {
                let diff = serde_json::to_string(&diff).unwrap();
                Ok(vec![json::parse(&diff).write()])
            }
            Ok(Answer::Rows(rows)) => Ok(rows.ids().map(str::to_owned).collect()),
        }
    }

    /// The JSON of a range's diffs, or the code of its error. It is parsed and written again, so
    /// that escapes do not matter; the order of members and the text of numbers are kept.
    pub(crate) fn range(&self, session: &Session, text: &str) -> Result<String, String> {
        match self.0.range(session, text) {
            Err(error) => Err(error.code().to_string()),
            Ok(diff) => Ok(json::parse(&serde_json::to_string(&diff).unwrap()).write()),
        }
    }
}

fn builder(edition: Edition) -> EngineBuilder {
    Inner::builder().edition(match edition {
        Edition::V01 => pactql::Edition::V01,
        Edition::Depth => pactql::Edition::Depth,
        Edition::Canonical => pactql::Edition::Canonical,
    })
}

/// Reads a session: one document or JSON lines.
pub(crate) fn open(text: &str) -> Session {
    Session::from_slice(text.as_bytes()).unwrap()
}
