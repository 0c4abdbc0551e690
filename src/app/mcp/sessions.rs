//! `pact_list_sessions`: which sessions there are, and what they have.

use super::found::{FileSearch, FoundCandidate, FoundFile};
use super::root::plain;
use super::state::ServerState;
use crate::app::calls::CallAnswer;
use crate::app::calls::arguments::Arguments;
use crate::app::present::stores::{OfLog, StoreAddress, Which, about_of, none_of, session_json};
use crate::app::present::{Failure, Result, answer, clean};
use crate::history::{Position, Session};
use crate::inspect::{Field, FieldValue, Fields, FieldsReport};
use crate::store::ListedInfo;
use crate::support::cancel;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many sessions are described, unless the client says otherwise.
const DESCRIBED: usize = 50;

/// How many bytes of files one call opens.
const OPENED_BYTES: u64 = 256 << 20;

/// After this many files that are not sessions, no further one is opened: the directory is not one of sessions.
const OTHERS: usize = 500;

const SHOWN: usize = 5;

/// The names of how many sessions that were not opened are shown.
const NAMED: usize = 100;

#[derive(Debug, Default, Serialize)]
struct SessionListing {
    /// The longest first: by snapshots, turns, then name.
    sessions: Vec<Described>,
    /// What the nodes of these sessions have besides types, roles and kinds.
    attributes: BTreeMap<String, Attribute>,
    /// Sessions, or what may be some, that were not opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_opened: Vec<Unopened>,
    /// How many there are besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_opened_more: Option<usize>,
    /// Files that are neither sessions nor logs of one.
    no_session: OtherFiles,
    /// How many files have a name that is not UTF-8, so that no call can name them.
    #[serde(skip_serializing_if = "Option::is_none")]
    unnamed: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

#[derive(Debug, Serialize)]
struct Unopened {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
struct OtherFiles {
    files: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    some: Vec<String>,
}

struct ListingMaker<'a> {
    state: &'a ServerState,
    listing: SessionListing,
    fields: Fields,
    limit: usize,
    bytes: u64,
}

/// `pact_list_sessions`: the sessions below a directory, each opened and described, until enough are.
pub(super) fn list(state: &ServerState, arguments: &Arguments) -> Result<CallAnswer> {
    let name = arguments.text("root").unwrap_or(".");
    let missing = || {
        let message = format!("{name} is not a directory");
        Failure::plain(crate::app::present::Exit::Missing, message)
    };
    let place = state.root.resolve(name)?.ok_or_else(missing)?;
    let dir = state.root.handle.open_dir(&place).map_err(|_| missing())?;
    let found = FileSearch::below(&dir, &plain(name));
    let found = found.map_err(|error| Failure::file(name, &error))?;
    let mut maker = ListingMaker {
        state,
        listing: SessionListing {
            cut: found.cut,
            unnamed: (found.unnamed > 0).then_some(found.unnamed),
            ..SessionListing::default()
        },
        fields: Fields::default(),
        limit: arguments.size("describe").unwrap_or(DESCRIBED),
        bytes: OPENED_BYTES,
    };
    for candidate in found.candidates {
        cancel::check()?;
        maker.add(candidate)?;
    }
    let mut listing = maker.listing;
    listing.attributes = attributes(maker.fields.report());
    listing.sessions.sort_by(|a, b| {
        let length = |one: &Described| (one.snapshots, one.turns);
        (length(b), &a.session).cmp(&(length(a), &b.session))
    });
    Ok(answer::json(&listing)?.into())
}

impl ListingMaker<'_> {
    fn add(&mut self, candidate: FoundCandidate) -> Result<()> {
        match candidate {
            FoundCandidate::File(part) => self.file(part),
            FoundCandidate::Store(part) => {
                let store = self.state.loaded.stores.open(&self.state.root, &part.path);
                let Ok(infos) = store.and_then(|store| Ok(store.sessions("")?)) else {
                    cancel::check()?;
                    self.other(part.path);
                    return Ok(());
                };
                for info in infos {
                    cancel::check()?;
                    let name = format!("{}#{}", part.path, info.name);
                    if !self.describe(name.clone(), None) {
                        self.other(name);
                    }
                }
            }
            FoundCandidate::Directory(name, parts) => {
                let bytes = parts.iter().map(|part| part.bytes).sum();
                if !self.describe(name, Some(bytes)) {
                    // Each may be a log.
                    parts.into_iter().for_each(|part| self.file(part));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, part: FoundFile) {
        let state = self.state;
        if self.describe(part.path.clone(), Some(part.bytes))
            && !state.loaded.has_others(&state.root, &part.path)
        {
            return;
        }
        // It may be a log of several sessions, or have branches and subagents.
        let sessions = state.loaded.in_log(&state.root, &part.path);
        let mut sessions = sessions
            .iter()
            .flat_map(|sessions| sessions.iter())
            .peekable();
        if sessions.peek().is_none() {
            self.other(part.path.clone());
        }
        for part_name in sessions.filter_map(|one| one.part.as_ref()) {
            self.describe(format!("{}#{part_name}", part.path), None);
        }
    }

    fn other(&mut self, name: String) {
        let others = &mut self.listing.no_session;
        others.files += 1;
        if others.some.len() < SHOWN {
            others.some.push(name);
        }
    }

    /// Describes a session, or notes that it was not opened; false if it is none.
    fn describe(&mut self, session: String, bytes: Option<u64>) -> bool {
        let size = bytes.unwrap_or(0);
        let enough = self.listing.sessions.len() >= self.limit
            || self.listing.no_session.files >= OTHERS
            || size > self.bytes;
        if enough {
            if self.listing.not_opened.len() < NAMED {
                self.listing.not_opened.push(Unopened { session, bytes })
            } else {
                *self.listing.not_opened_more.get_or_insert(0) += 1
            }
            return true;
        }
        self.bytes -= size;
        let Ok(opened) = self.state.loaded.open(&self.state.root, &session) else {
            return false;
        };
        let described = describe(session, bytes, &opened, &mut self.fields);
        let is_session = described.is_ok();
        self.listing.sessions.extend(described);
        is_session
    }
}

/// An attribute whose values are listed has at most this many, none longer than this many bytes.
const VALUES: usize = 12;
const VALUE_BYTES: usize = 40;

/// A session. Members are in the order in which they are printed; those that count nodes are of the newest snapshot.
#[derive(Debug, Default, Serialize)]
struct Described {
    /// The word that names it in other calls.
    session: String,
    /// The bytes of its files; a session of a store has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    snapshots: usize,
    first_cycle: Option<i64>,
    last_cycle: Option<i64>,
    working: bool,
    turns: i64,
    nodes: u64,
    roles: CountedValues,
    kinds: CountedValues,
    /// The names of the tools that were called, with the number of calls.
    tools: CountedValues,
}

/// Values with their numbers of nodes.
type CountedValues = BTreeMap<String, u64>;

/// An attribute: how many nodes have it, and with which values if these are few and short.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Attribute {
    nodes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<CountedValues>,
}

fn counted(values: Vec<FieldValue>) -> CountedValues {
    let values = values.into_iter().filter(|value| value.nodes > 0);
    values.map(|value| (value.value, value.nodes)).collect()
}

/// The attributes of a report that are not described for each session.
fn attributes(report: FieldsReport) -> BTreeMap<String, Attribute> {
    let others = report.fields.into_iter();
    let others = others.filter(|field| !["nodeType", "role", "kind"].contains(&&*field.name));
    let attribute = |field: Field| {
        let listed: u64 = field.values.iter().map(|value| value.nodes).sum();
        let is_short = |value: &FieldValue| value.value.len() <= VALUE_BYTES;
        // A long text is not among the values.
        let all = field.values.len() <= VALUES && listed >= field.nodes;
        let values = all && field.values.iter().all(is_short);
        let attribute = Attribute {
            nodes: field.nodes,
            values: values.then(|| counted(field.values)),
        };
        (field.name, attribute)
    };
    others.map(attribute).collect()
}

/// Describes a session, and adds the words of its newest snapshot to `fields`. Linear in that snapshot; of a stored
/// session nothing else is loaded.
fn describe(
    name: String,
    bytes: Option<u64>,
    session: &Session,
    fields: &mut Fields,
) -> Result<Described> {
    let history = session.history();
    history.fetch_cycles()?;
    let mut described = Described {
        session: name,
        bytes,
        snapshots: history.committed().len(),
        first_cycle: history.cycles().min(),
        last_cycle: history.cycles().max(),
        working: history.has_working(),
        ..Described::default()
    };
    let newest = match history.committed().len().checked_sub(1) {
        Some(newest) => history.load(Position::Committed(newest))?,
        None => history.load(Position::Working)?,
    };
    if let Some(newest) = newest {
        described.turns = i64::from(newest.turns());
        fields.add_snapshot(newest);
        let mut own = Fields::default();
        own.add_snapshot(newest);
        let report = own.report();
        described.nodes = report.nodes;
        for field in report.fields {
            match &*field.name {
                "role" => described.roles = counted(field.values),
                "kind" => described.kinds = counted(field.values),
                _ => {}
            }
        }
        described.tools = counted(report.tools);
    }
    Ok(described)
}

/// `pact_sessions`: what `pactql sessions --json` prints.
pub(super) fn stored(state: &ServerState, arguments: &Arguments) -> Result<CallAnswer> {
    let word = arguments.needed("store");
    let address = StoreAddress::spelled(word).ok_or_else(|| {
        let message = format!("expected a store, found `{}`", clean(word, 200));
        Failure::value(message).with_help("a store is a file whose name ends in .db")
    })?;
    let store = state.loaded.stores.open(&state.root, address.store)?;
    if address.which == Which::One("") {
        address.one_in(|| Ok(Arc::clone(&store)))?;
    }
    let found = store.page(address.glob(), "", usize::MAX)?;
    let line = |one: &ListedInfo| {
        let about = about_of(one.meta.as_deref());
        session_json(&one.info, about, OfLog::default()).to_string()
    };
    let lines: Vec<String> = found.iter().map(line).collect();
    Ok(CallAnswer {
        result: lines.join("\n"),
        said: if found.is_empty() {
            format!("note: {}\n", none_of(address))
        } else {
            String::new()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{attributes, describe};
    use crate::history::Session;
    use crate::inspect::Fields;

    #[test]
    fn values_are_listed_while_they_are_few_and_short() {
        let counted = |values: &[&str]| {
            let nodes = values
                .iter()
                .enumerate()
                .map(|(at, value)| format!(r#"{{"id":"n{at}","nodeType":"cb","data_x":{value}}}"#));
            let nodes: Vec<String> = nodes.collect();
            let text = format!(
                r#"{{"root":{{"id":"r","children":[{}]}}}}"#,
                nodes.join(",")
            );
            let session = Session::from_slice(text.as_bytes()).expect("a session");
            let mut fields = Fields::default();
            describe("x".to_owned(), None, &session, &mut fields).expect("a description");
            let found = attributes(fields.report())
                .remove("data_x")
                .expect("the attribute");
            (found.nodes, found.values.map(|values| values.len()))
        };
        assert_eq!(counted(&["true", "false", "true"]), (3, Some(2)));
        assert_eq!(counted(&["1", "{}", "1"]), (3, None));
        for length in [60, 600] {
            let long = format!("\"{}\"", "x".repeat(length));
            assert_eq!(counted(&["1", &long, "1"]), (3, None));
        }
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(counted(&many), (20, None));
    }

    #[test]
    fn a_session_is_described_by_its_newest_snapshot() {
        let text = std::fs::read("fixtures/support-agent.jsonl").expect("a fixture");
        let session = Session::from_slice(&text).expect("a session");
        let mut fields = Fields::default();
        let found = describe("x".to_owned(), Some(7), &session, &mut fields);
        let found = found.expect("a description");
        let cycles = (found.first_cycle, found.last_cycle);
        assert_eq!(
            (found.snapshots, found.turns, cycles),
            (6, 4, (Some(1), Some(6)))
        );
        assert_eq!(found.tools.get("book_pickup"), Some(&2));
        let attributes = attributes(fields.report());
        let status = serde_json::to_string(&attributes["status"]).expect("JSON");
        assert_eq!(status, r#"{"nodes":3,"values":{"failed":1,"ok":2}}"#);
        assert!(attributes.contains_key("key") && !attributes.contains_key("content"));
    }
}
