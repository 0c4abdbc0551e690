//! Names and values of a selector that no node has, and what may have been meant.

use super::inventory::{Inventory, Values};
use super::reason::EmptyReason;
use crate::history::History;
use crate::query::ir::{
    Attr, AttrTest, Chain, Class, CompareOp, Edition, InnerKind, Literal, NodeStep, Operand,
    SelectorQuery, Test, TypeTest,
};
use crate::query::syntax::quote;
use crate::query::syntax::words::tag_text;
use crate::support::diag::{nearest, nearest_at};
use crate::tree::NodeClass;

/// The most values among which the nearest is looked for: each is compared letter by letter.
const MOST_COMPARED: usize = 10_000;

/// The most values that a reason lists.
const MOST_LISTED: usize = 1_000;

/// The similarity from which a value is suggested. Values are arbitrary words, so one that shares
/// half of its letters is not a likely mistake.
const LIKE: f64 = 0.6;

/// Names of attributes in chat formats, and in documents.
const NAMES: [(&str, &str); 17] = [
    ("text", "content"),
    ("body", "content"),
    ("message", "content"),
    ("tool", "data_call_name"),
    ("tool_name", "data_call_name"),
    ("function", "data_call_name"),
    ("name", "data_call_name"),
    ("created_at", "created_at_iso"),
    ("timestamp", "created_at_iso"),
    ("tool_call_id", "data_call_id"),
    ("error", "data_is_error"),
    ("is_error", "data_is_error"),
    ("failed", "data_is_error"),
    ("len", "bytes"),
    ("length", "bytes"),
    ("size", "bytes"),
    ("token_count", "tokens"),
];

/// Attributes of other formats that say whether a call failed, and their values if it did.
const FAILED: [(&str, &str); 12] = [
    ("status", "error"),
    ("status", "failed"),
    ("status", "failure"),
    ("state", "error"),
    ("state", "failed"),
    ("kind", "error"),
    ("level", "error"),
    ("error", "true"),
    ("is_error", "true"),
    ("failed", "true"),
    ("success", "false"),
    ("ok", "false"),
];

/// The attribute that says it here.
const IS_ERROR: &str = "data_is_error";

fn is_failed(name: &str, value: &str) -> bool {
    let is = |(known, failed): &(&str, &str)| {
        known.eq_ignore_ascii_case(name) && failed.eq_ignore_ascii_case(value)
    };
    FAILED.iter().any(is)
}

/// Roles and kinds in chat formats, and in documents.
const VALUES: [(&str, &str); 12] = [
    ("human", "user"),
    ("ai", "assistant"),
    ("bot", "assistant"),
    ("model", "assistant"),
    ("agent", "assistant"),
    ("function", "tool"),
    ("tool_call", "call"),
    ("tool_use", "call"),
    ("function_call", "call"),
    ("tool_result", "result"),
    ("tool_output", "result"),
    ("message", "text"),
];

/// The word that `word` stands for in other formats, if it is known here.
fn other_word<'a>(
    words: &'a [(&str, &str)],
    word: &str,
    known: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let found = words
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(word));
    found.map(|(_, ours)| *ours).find(|ours| known(ours))
}

/// The newest snapshots in which an empty answer is searched elsewhere. A store may have to read each.
pub(super) const SEARCHED: usize = 256;

/// The nodes that were read, and the session around them.
pub(super) struct Unknown<'a> {
    pub(super) here: Inventory<'a>,
    pub(super) edition: Edition,
    pub(super) history: &'a History,
}

impl Unknown<'_> {
    pub(super) fn find(&self, query: &SelectorQuery, reasons: &mut Vec<EmptyReason>) {
        for test in tests(query) {
            let reason = match test {
                Test::Attr(test) => self.of_test(test),
                Test::Type(TypeTest::Class(class)) => self.of_class(*class),
                Test::Type(_) | Test::Depth(_) | Test::Inner(_) => None,
            };
            reasons.extend(reason.filter(|reason| !reasons.contains(reason)));
        }
    }

    fn of_class(&self, class: Class) -> Option<EmptyReason> {
        let (class, name) = match class {
            Class::Turn => (NodeClass::Turn, "turn"),
            // Implicit cores are containers, too.
            Class::Container => return None,
            Class::Block => (NodeClass::Block, "block"),
        };
        (!self.here.has_class(class)).then_some(EmptyReason::UnknownClass { class: name })
    }

    /// The reason that a test finds nothing, if no node has what it asks for.
    fn of_test(&self, test: &AttrTest) -> Option<EmptyReason> {
        let AttrTest { attr, op, operand } = test;
        if let Attr::Custom(name) = attr
            && !self.here.has_name(name)
        {
            // What a missing attribute satisfies is not the reason.
            let null = matches!(operand, Operand::Literal(Literal::Null));
            if null != (*op == CompareOp::Ne) && op.is_equality() {
                return None;
            }
            let value = text_of(operand).filter(|_| *op == CompareOp::Eq);
            let failed = value.and_then(|value| self.failed(name, value));
            return Some(failed.unwrap_or_else(|| match value {
                // Also where no call failed: it is the word to ask with.
                Some(value) if is_failed(name, value) => EmptyReason::UnknownAttribute {
                    name: name.to_string(),
                    nearest: Some(IS_ERROR.to_owned()),
                    here: Vec::new(),
                },
                _ => self.unknown_name(name),
            }));
        }
        let wanted: Vec<&str> = match (op, operand) {
            (CompareOp::Eq, Operand::Literal(Literal::Text(text))) => vec![text],
            (CompareOp::Eq, Operand::List(items)) => {
                items.iter().map(text_of).collect::<Option<_>>()?
            }
            _ => return None,
        };
        if *attr == Attr::Content {
            return self.of_content(&wanted);
        }
        let values = self.here.values(attr)?;
        // A list of a scalar needs one of its values, a list of tags all of them.
        let missing = *wanted.iter().find(|text| !values.contains_key(**text))?;
        if *attr != Attr::Tags && wanted.iter().any(|text| values.contains_key(*text)) {
            return None;
        }
        let one_in = |time: Option<String>| match attr {
            Attr::Key => EmptyReason::KeyIsAnId {
                key: missing.to_owned(),
                time,
            },
            _ => EmptyReason::IdIsAKey {
                id: missing.to_owned(),
            },
        };
        if let Some(reason) = self.failed(spelled(attr), missing) {
            return Some(reason);
        }
        Some(match attr {
            // The class part of a type also finds its subtypes.
            Attr::NodeType if values.keys().any(|known| head_of(known) == missing) => return None,
            Attr::Key if self.here.has_id(missing) => one_in(None),
            Attr::Id if self.has(&Attr::Key, missing) => one_in(None),
            Attr::Key if let Some(time) = self.id_elsewhere(missing) => one_in(Some(time)),
            _ => self.unknown_value(attr, missing, values),
        })
    }

    /// The time at which a node has the id: nothing for the working state, else the newest
    /// snapshot of those searched.
    fn id_elsewhere(&self, id: &str) -> Option<String> {
        let working = self.history.working();
        if self.edition != Edition::V01 && working.is_some_and(|tree| tree.find(id).is_some()) {
            return Some(String::new());
        }
        let committed = self.history.committed();
        let newest = committed.len().saturating_sub(SEARCHED)..committed.len();
        let at = newest.rev().find(|&at| committed[at].find(id).is_some())?;
        Some(time_of(committed.len() - 1 - at))
    }

    /// `=` compares the whole content; a search for the text may be what was meant.
    fn of_content(&self, wanted: &[&str]) -> Option<EmptyReason> {
        let [text] = wanted else { return None };
        let searches = self.edition == Edition::Canonical;
        let found = searches && !text.is_empty() && self.here.has_in_content(text);
        found.then(|| EmptyReason::UnknownValue {
            attribute: "content".to_owned(),
            value: (*text).to_owned(),
            instead: Some(format!("[content~{}]", quote(&regex_syntax::escape(text)))),
            here: Vec::new(),
        })
    }

    fn has(&self, attr: &Attr, value: &str) -> bool {
        let values = self.here.values(attr);
        values.is_some_and(|values| values.contains_key(value))
    }

    /// The test for failed calls, where `name` and `value` are one in another format.
    fn failed(&self, name: &str, value: &str) -> Option<EmptyReason> {
        let found = is_failed(name, value) && self.here.has_name(IS_ERROR);
        found.then(|| EmptyReason::UnknownValue {
            attribute: name.to_owned(),
            value: value.to_owned(),
            instead: Some(format!("[{IS_ERROR}=true]")),
            here: Vec::new(),
        })
    }

    fn unknown_name(&self, name: &str) -> EmptyReason {
        let names = self.here.names();
        let others = || names.iter().copied().filter(|other| *other != name);
        let nearest = || {
            let near = nearest(own(name), others().map(own))?;
            others().find(|other| own(other) == near)
        };
        // A name of documents may be absent, and is not misspelled.
        let is_known = NAMES.iter().any(|(_, ours)| *ours == name);
        let near = other_word(&NAMES, name, |ours| names.contains(ours));
        let near = near
            .or_else(|| nearest().filter(|_| !is_known))
            .map(str::to_owned);
        let own = |name: &&&str| matches!(Attr::from_name(name), Attr::Custom(_));
        let listed = names.iter().filter(own).map(|&name| name.to_owned());
        EmptyReason::UnknownAttribute {
            name: name.to_owned(),
            here: match near {
                Some(_) => Vec::new(),
                None => listed.take(MOST_LISTED).collect(),
            },
            nearest: near,
        }
    }

    /// A value that no node has: it may be misspelled, be a number, or be the value of another
    /// attribute.
    fn unknown_value(&self, attr: &Attr, value: &str, values: Values) -> EmptyReason {
        let near = other_word(&VALUES, value, |ours| values.contains_key(ours));
        let near = near.or_else(|| {
            let few = values.len() <= MOST_COMPARED;
            let known = values.keys().map(String::as_str).filter(|_| few);
            nearest_at(LIKE, value, known)
        });
        let instead = match (attr, near) {
            (Attr::Custom(name), _) if self.here.has_number(name, value) => {
                Some(format!("[{attr}={value}]"))
            }
            (_, Some(near)) if near.eq_ignore_ascii_case(value) => Some(self.written(attr, near)),
            _ => self
                .of_another(attr, value)
                .or_else(|| self.end_of_id(attr, value))
                .or_else(|| near.map(|near| self.written(attr, near))),
        };
        // Ids and keys are too many to list.
        let listed = !matches!(attr, Attr::Id | Attr::Key);
        EmptyReason::UnknownValue {
            attribute: match attr {
                Attr::NodeType | Attr::StoredType => "type".to_owned(),
                Attr::Tags => "tag".to_owned(),
                _ => spelled(attr).to_owned(),
            },
            value: value.to_owned(),
            instead,
            here: if listed {
                values.into_iter().take(MOST_LISTED).collect()
            } else {
                Vec::new()
            },
        }
    }

    fn of_another(&self, attr: &Attr, value: &str) -> Option<String> {
        let kind = match self.edition {
            Edition::V01 => Attr::StoredKind,
            Edition::Depth | Edition::Canonical => Attr::Kind,
        };
        let others = [Attr::Role, kind, Attr::Key, Attr::Tags, Attr::Id];
        let mut others = others.into_iter().filter(|other| other != attr);
        others.find_map(|other| {
            let values = self.here.values(&other)?;
            let known = |word: &str| values.contains_key(word);
            let word = if known(value) {
                value
            } else {
                other_word(&VALUES, value, known)?
            };
            Some(self.written(&other, word))
        })
    }

    /// The test for the only id that ends in `value` after a sign, as `cb:u3` does in `u3`; of keys and ids alone.
    fn end_of_id(&self, attr: &Attr, value: &str) -> Option<String> {
        if !matches!(attr, Attr::Key | Attr::Id) {
            return None;
        }
        let ids = self.here.values(&Attr::Id)?;
        let mut ending = ids.keys().filter(|id| {
            let before = id.strip_suffix(value);
            before.is_some_and(|before| before.ends_with([':', '-', '/', '.']))
        });
        let id = ending.next().filter(|_| ending.next().is_none())?;
        Some(self.written(&Attr::Id, id))
    }

    fn written(&self, attr: &Attr, value: &str) -> String {
        match (attr, self.edition) {
            (Attr::Tags, Edition::Canonical) => tag_text(value),
            (Attr::Custom(_), _) => format!("[{attr}={}]", quote(value)),
            _ => format!("[{}={}]", spelled(attr), quote(value)),
        }
    }
}

impl EmptyReason {
    /// Whether it says what finds nodes instead of an unknown name or value, and that is likely what was meant. The nearest
    /// name may be far: an attribute that no node has yet need not be misspelled.
    pub(crate) fn is_corrected(&self) -> bool {
        match self {
            Self::UnknownAttribute { name, nearest, .. } => {
                let nearest = nearest.as_deref();
                nearest.is_some_and(|nearest| is_misspelled(name, nearest))
            }
            Self::UnknownValue { instead, .. } => instead.is_some(),
            other => matches!(other, Self::KeyIsAnId { .. } | Self::IdIsAKey { .. }),
        }
    }
}

/// Whether a name was likely to be one that nodes have: it is that in other formats, or is written almost like it.
fn is_misspelled(name: &str, nearest: &str) -> bool {
    other_word(&NAMES, name, |ours| ours == nearest).is_some()
        || is_error_elsewhere(name, nearest)
        || nearest_at(LIKE, own(name), [own(nearest)]).is_some()
}

/// Whether a name says in other formats whether a call failed, as `ours` does here.
fn is_error_elsewhere(name: &str, ours: &str) -> bool {
    let mut failed = FAILED.iter();
    ours == IS_ERROR && failed.any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// A name without what many names share, as that makes none of them more like another.
fn own(name: &str) -> &str {
    name.strip_prefix("data_").unwrap_or(name)
}

/// The name of an attribute in selectors: what `v0.1` tests over stored fields has the ordinary name.
fn spelled(attr: &Attr) -> &str {
    match attr {
        Attr::StoredKind => "kind",
        Attr::StoredType => "nodeType",
        _ => attr.name(),
    }
}

/// The address of the snapshot `back` commits before the newest.
pub(super) fn time_of(back: usize) -> String {
    match back {
        0 => "@t0".to_owned(),
        back => format!("@t-{back}"),
    }
}

/// The tests that a match must pass, also those of the only selector in a condition.
fn tests(query: &SelectorQuery) -> Vec<&Test> {
    let mut found = Vec::new();
    query
        .chains
        .iter()
        .for_each(|chain| of_chain(chain, &mut found));
    found.extend(&query.filters);
    found
}

// Recursion is as deep as conditions are inside each other, which is bounded.
fn of_chain<'q>(chain: &'q Chain, found: &mut Vec<&'q Test>) {
    let nodes = chain.steps.iter().filter_map(|(_, step)| step.node());
    for test in nodes.flat_map(NodeStep::all_tests) {
        found.push(test);
        if let Test::Inner(inner) = test
            && inner.kind != InnerKind::Not
            && let [chain] = &*inner.any
        {
            of_chain(chain, found);
        }
    }
}

fn text_of(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

fn head_of(node_type: &str) -> &str {
    node_type.split(':').next().unwrap_or_default()
}
