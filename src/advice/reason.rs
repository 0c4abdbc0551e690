//! Why an answer is empty: the reasons, and how they read.

use std::fmt;

use serde::Serialize;

use crate::query::syntax::quote;

/// A reason why a selection is empty, from [`Selection::why_empty`](crate::Selection::why_empty).
/// Displays as one line without a full stop.
///
/// ```
/// use pactql::{Engine, Session, selection::EmptyReason};
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let rows = Engine::new().rows(&session, "@t0 .cb[rol='user']")?;
/// let reasons = rows.why_empty();
/// assert!(matches!(&reasons[0], EmptyReason::UnknownAttribute { name, .. } if name == "rol"));
/// assert_eq!(reasons[0].to_string(), "no node has `rol`; did you mean `role`?");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EmptyReason {
    /// The selector reads committed snapshots, and there are none.
    NothingCommitted,
    /// An attribute that no node has.
    UnknownAttribute {
        /// The name in the selector.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
        /// The custom attributes that exist; empty if there is a nearest name.
        here: Vec<String>,
    },
    /// A value that no node has.
    UnknownValue {
        /// The attribute.
        attribute: String,
        /// The value in the selector.
        value: String,
        /// What finds nodes instead, as a part of a selector.
        instead: Option<String>,
        /// The values that exist, with their numbers of nodes, sorted by value.
        here: Vec<(String, u64)>,
    },
    /// A key that is the id of a node.
    KeyIsAnId {
        /// The word.
        key: String,
        /// Where that id is, if not in the snapshots read: nothing for the working state, else the
        /// newest snapshot that has it.
        time: Option<String>,
    },
    /// An id that is the key of a node.
    IdIsAKey {
        /// The word.
        id: String,
    },
    /// A class that no node has.
    UnknownClass {
        /// `turn`, `container` or `block`.
        class: &'static str,
    },
    /// A region that the snapshot does not have.
    UnknownRegion {
        /// `^sys` or `^ah`.
        region: &'static str,
    },
    /// All containers are implicit cores, which are never in a result (LANGUAGE §1).
    ImplicitContainers,
    /// Depths that no node has.
    Depths {
        /// How many turns there are: depths 1 to this.
        turns: u32,
    },
    /// The step of a chain after which nothing was left.
    Step {
        /// The steps before it, in canonical text.
        after: String,
        /// How many nodes these match.
        rows: u64,
        /// The step.
        step: String,
    },
    /// No node satisfies all tests of the first step.
    Tests {
        /// Each test, and how many nodes satisfy it alone.
        tests: Vec<(String, u64)>,
        /// Whether picks, or tests after them, follow.
        picks: bool,
    },
    /// A condition of a step that leaves nothing has no match inside (LANGUAGE §13).
    Condition {
        /// The condition, in canonical text.
        condition: String,
        /// Why it has none.
        why: Box<EmptyReason>,
    },
    /// Filters over the final set leave nothing of these many nodes.
    Filters {
        /// The nodes before the filters.
        rows: u64,
    },
    /// With `@mode=latest`: these many nodes match in older snapshots of the range, and their newer
    /// versions do not.
    Superseded {
        /// The nodes, once for each snapshot.
        rows: u64,
    },
    /// A window such as `@limit=0` or a page past the end leaves nothing of these many nodes.
    Window {
        /// The nodes before the window.
        rows: u64,
    },
    /// `skip`, `limit` or `filter` of the selection left nothing.
    Narrowed,
    /// A range compares neighbours, and none of the nodes that match differs, or there is one snapshot only.
    Unchanged {
        /// The distinct nodes that match in its snapshots.
        rows: u64,
        /// How many snapshots it has.
        snapshots: usize,
    },
    /// These many nodes match, and what a report is about, the blocks that are sent, is not among them or below them.
    NoBlock {
        /// The distinct nodes.
        rows: u64,
    },
    /// Matches in the working state or in another snapshot.
    Elsewhere {
        /// What to write instead of the time: `@t-2`, or nothing for the working state.
        time: String,
        /// The cycle of the snapshot; `None` for the working state.
        cycle: Option<i64>,
        /// How many nodes match there.
        rows: u64,
        /// Whether the time can be left out to read the working state.
        omit: bool,
    },
}

/// How many values a message lists.
const LISTED: usize = 12;

/// A list of what exists, after a sign that ends what is before it.
fn hint(f: &mut fmt::Formatter<'_>, before: &str, what: &str, here: &[String]) -> fmt::Result {
    if here.is_empty() {
        return Ok(());
    }
    let listed: Vec<&str> = here.iter().take(LISTED).map(String::as_str).collect();
    write!(f, "{before} {what} here: {}", listed.join(", "))?;
    match here.len().saturating_sub(LISTED) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

impl fmt::Display for EmptyReason {
    // long: one sentence for each reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = |rows: u64| match rows {
            1 => "1 node".to_owned(),
            rows => format!("{rows} nodes"),
        };
        match self {
            Self::NothingCommitted => write!(f, "nothing is committed in this session"),
            Self::UnknownAttribute {
                name,
                nearest,
                here,
            } => {
                write!(f, "no node has `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => hint(f, ";", "attributes", here),
                }
            }
            Self::UnknownValue {
                attribute,
                value,
                instead,
                here,
            } => {
                write!(f, "no node has the {attribute} `{value}`")?;
                if let Some(instead) = instead {
                    write!(f, "; did you mean `{instead}`?")?;
                }
                let before = if instead.is_some() { "" } else { ";" };
                let counted = |(value, count): &(String, u64)| format!("{value} {count}");
                let here: Vec<String> = here.iter().map(counted).collect();
                match &**attribute {
                    "role" | "kind" | "type" | "tag" => {
                        hint(f, before, &format!("{attribute}s"), &here)
                    }
                    _ => hint(f, before, "values", &here),
                }
            }
            Self::KeyIsAnId { key, time } => {
                let (place, time) = match time.as_deref() {
                    None => (String::new(), String::new()),
                    Some("") => (" in the working state".to_owned(), String::new()),
                    Some(time) => (format!(" in {time}"), format!("{time} ")),
                };
                let found = format!("`{time}[id={}]` finds it", quote(key));
                write!(
                    f,
                    "no node has the key `{key}`, but one{place} has that id: {found}"
                )
            }
            Self::IdIsAKey { id } => {
                let word = quote(id);
                write!(
                    f,
                    "no node has the id `{id}`, but one has that key: `[key={word}]` finds it"
                )
            }
            Self::UnknownClass { class } => write!(f, "there is no {class} here"),
            Self::UnknownRegion { region } => write!(f, "there is no {region} here"),
            Self::ImplicitContainers => write!(
                f,
                "the containers here are implicit: they have no id and are in no result; their blocks are found by `.mt .mc > .cb`"
            ),
            Self::Depths { turns } => {
                write!(f, "no node has such a depth: ")?;
                match turns {
                    0 => write!(f, "there are no turns"),
                    1 => write!(f, "there is 1 turn, depth 1"),
                    _ => write!(f, "there are {turns} turns, depth 1 (newest) to {turns}"),
                }
            }
            Self::Step { after, rows, step } => {
                let before = format!("`{after}` matches {}", nodes(*rows));
                write!(f, "{before}; `{step}` after it matches nothing")
            }
            Self::Tests { tests, picks } => match tests.iter().find(|(_, rows)| *rows == 0) {
                Some((test, _)) => write!(f, "no node matches `{test}`"),
                None => {
                    let alone =
                        |(test, rows): &(String, u64)| format!("`{test}` matches {}", nodes(*rows));
                    let alone: Vec<String> = tests.iter().map(alone).collect();
                    write!(f, "{}; ", alone.join(", "))?;
                    match (picks, tests.len()) {
                        (true, 1) => write!(f, "what follows it in the step leaves none"),
                        (true, _) => write!(f, "together with the rest of the step, none"),
                        (false, _) => write!(f, "none matches all of them"),
                    }
                }
            },
            Self::Condition { condition, why } => write!(f, "inside `{condition}`: {why}"),
            Self::Filters { rows } => {
                let before = format!("before the filters at the end there are {}", nodes(*rows));
                write!(f, "{before}, after them none")
            }
            Self::Superseded { rows } => {
                let older = format!("older snapshots of the range have {}", nodes(*rows));
                write!(f, "{older} that match, but not in their newest version")
            }
            Self::Window { rows } => {
                let there = format!("there are {}", nodes(*rows));
                write!(f, "{there}, and the limit or page leaves none of them")
            }
            Self::Narrowed => write!(f, "`skip`, `limit` or `filter` left no row"),
            Self::Unchanged { rows, snapshots } => {
                let verb = if *rows == 1 { "matches" } else { "match" };
                write!(f, "{} {verb}, and ", nodes(*rows))?;
                match snapshots {
                    1 => write!(f, "a range of one snapshot compares none")?,
                    _ => write!(f, "none of {snapshots} snapshots changes any")?,
                }
                write!(f, "; `@mode=union` lists them")
            }
            Self::NoBlock { rows: 1 } => {
                write!(f, "1 node matches, and it has no block that is sent")
            }
            Self::NoBlock { rows } => {
                write!(
                    f,
                    "{rows} nodes match, and none of them has a block that is sent"
                )
            }
            Self::Elsewhere {
                time,
                cycle,
                rows,
                omit,
            } => {
                let nodes = nodes(*rows);
                let verb = if *rows == 1 { "matches" } else { "match" };
                match cycle {
                    Some(cycle) => write!(f, "{nodes} {verb} in {time} (@c{cycle})"),
                    None => {
                        write!(f, "{nodes} {verb} in the working state")?;
                        let help = ": leave out the time to read it";
                        f.write_str(if *omit { help } else { "" })
                    }
                }
            }
        }
    }
}
