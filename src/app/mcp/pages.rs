//! Answers in parts. The answers that were gone on with last are kept, so that each part is not another computation.

use crate::app::calls::arguments::Arguments;
use crate::app::calls::{CallAnswer, SessionSource};
use crate::app::present::{Failure, Result};
use crate::history::History;
use crate::support::lock;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, OnceLock};

/// The most bytes of an answer, unless the client says otherwise, and of what is said beside it.
pub(super) const ANSWER: usize = 64 << 10;

/// The most bytes of answers that are kept; a longer one is made again for each part.
const KEPT: usize = 64 << 20;

/// The sessions that a call is about, as they were.
type SessionStates = Vec<Arc<History>>;

/// A call but for the part that it asks for.
pub(super) struct WholeCall<'a> {
    arguments: &'a Arguments,
    /// The tool and the other arguments.
    text: String,
}

impl<'a> WholeCall<'a> {
    pub(super) fn new(tool: &str, arguments: &'a Arguments) -> Self {
        let text = format!("{tool} {}", arguments.without(&["limit", "cursor"]));
        Self { arguments, text }
    }

    /// The sessions that it names, as they are now; none if it names none.
    ///
    /// # Errors
    /// One cannot be read.
    pub(super) fn of(&self, source: &impl SessionSource) -> Result<SessionStates> {
        let names = ["session", "other"];
        let named = names
            .iter()
            .filter_map(|name| self.arguments.text(name))
            .map(|name| Ok(source.session(name)?.history()));
        named.collect()
    }
}

/// An answer of which parts are sent.
#[derive(Debug)]
pub(super) struct WholeAnswer {
    answer: CallAnswer,
    hash: OnceLock<String>,
}

impl WholeAnswer {
    pub(super) fn new(answer: CallAnswer) -> Self {
        Self {
            answer,
            hash: OnceLock::new(),
        }
    }

    /// What a cursor knows of the call and the answer, so that none goes on with another.
    fn hash(&self, call: &WholeCall<'_>) -> &str {
        self.hash.get_or_init(|| {
            let hash = Sha256::new()
                .chain_update(&call.text)
                .chain_update(&self.answer.result);
            let hash = hash.finalize();
            hash.iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect()
        })
    }

    /// The part of an answer that a call asks for, of at most `limit` bytes. If there is more, what is said ends in a
    /// line with the cursor for the rest: all parts one behind the other are the whole. A part ends with a line if it can.
    ///
    /// # Errors
    /// The cursor is not of this answer.
    pub(super) fn page(&self, call: &WholeCall<'_>, arguments: &Arguments) -> Result<CallAnswer> {
        let whole = &self.answer.result;
        let from = match arguments.text("cursor") {
            None => 0,
            Some(cursor) => {
                let foreign = || {
                    Failure::value("the cursor is not of this answer").with_help(
                        "give the cursor that the same call returned; if the session has changed since, call without one",
                    )
                };
                let (at, of) = cursor.split_once('-').ok_or_else(foreign)?;
                let at = at.parse().ok().filter(|at| whole.is_char_boundary(*at));
                at.filter(|_| of == self.hash(call)).ok_or_else(foreign)?
            }
        };
        let limit = arguments.size("limit").unwrap_or(ANSWER);
        let said = &self.answer.said;
        let mut said = said[..said.floor_char_boundary(ANSWER)].to_owned();
        let rest = whole.get(from..).unwrap_or_default();
        let mut end = rest.len();
        if end > limit {
            end = rest.floor_char_boundary(limit);
            end = rest[..end].rfind('\n').map_or(end, |line| line + 1);
            let to = from + end;
            let cursor = format!("{to}-{}", self.hash(call));
            let next =
                json!({"next": {"cursor": cursor, "from": from, "to": to, "of": whole.len()}});
            said.push_str(&format!("{next}\n"));
        }
        Ok(CallAnswer {
            result: rest[..end].to_owned(),
            said,
        })
    }
}

/// The answers that were gone on with last, the newest at the end.
#[derive(Debug, Default)]
pub(super) struct KeptAnswers(Mutex<Vec<KeptAnswer>>);

#[derive(Debug)]
struct KeptAnswer {
    call: String,
    of: SessionStates,
    whole: Arc<WholeAnswer>,
}

impl KeptAnswers {
    /// The answer that a call had, if its sessions are as they were.
    pub(super) fn get(&self, call: &WholeCall<'_>, of: &SessionStates) -> Option<Arc<WholeAnswer>> {
        let mut kept = lock(&self.0);
        let at = kept.iter().position(|one| one.call == call.text)?;
        let one = kept.remove(at);
        let same = |(a, b): (&Arc<History>, &Arc<History>)| Arc::ptr_eq(a, b);
        let is_same = one.of.len() == of.len() && one.of.iter().zip(of).all(same);
        let whole = Arc::clone(&one.whole);
        kept.extend(is_same.then_some(one));
        is_same.then_some(whole)
    }

    /// Keeps an answer about sessions in the states that they had before it was made. One of a call about no session may have
    /// changed with every file, and is not kept.
    pub(super) fn keep(&self, call: &WholeCall<'_>, of: SessionStates, whole: &Arc<WholeAnswer>) {
        let bytes = |one: &KeptAnswer| one.whole.answer.result.len();
        if of.is_empty() || whole.answer.result.len() > KEPT {
            return;
        }
        let mut kept = lock(&self.0);
        kept.retain(|one| one.call != call.text);
        kept.push(KeptAnswer {
            call: call.text.clone(),
            of,
            whole: Arc::clone(whole),
        });
        while kept.iter().map(bytes).sum::<usize>() > KEPT {
            kept.remove(0);
        }
    }
}
