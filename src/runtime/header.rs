//! Checks the members of a node to be added or updated, and gives them their types (source 002
//! chapter 02 §3).

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashSet;

use super::node::NewNode;
use super::overlay::NodeBody;
use super::refusal::{Refusal, header, input, region};
use super::slot::Mover;
use super::word::{Word, word};
use crate::json::{JsonValue, StoredValue, elements, string};
use crate::support::diag::nearest_at;
use crate::tree::alias::{CADENCE, TAGS};
use crate::tree::{
    NodeClass,
    header::{NUMBERS, TEXTS},
    text_list,
};

type PayloadField = (Word, StoredValue);

#[derive(Clone, Debug, Default)]
pub(super) struct DraftNode {
    /// What it is; the id is empty until one is made.
    pub(super) body: NodeBody,
    pub(super) offset: Option<i64>,
    /// `created_at_iso` as given, and its time.
    pub(super) created: Option<(Box<str>, i64)>,
    /// The index of its parent in the draft.
    pub(super) above: Option<usize>,
}

impl DraftNode {
    pub(super) fn new(id: Arc<str>, class: NodeClass) -> Self {
        let body = NodeBody {
            id,
            node_type: class.as_str().into(),
            ..NodeBody::default()
        };
        Self {
            body,
            ..Self::default()
        }
    }

    /// The node as it is put at a place, which `moving` nodes leave.
    pub(super) fn mover<'m>(&'m self, moving: Option<&'m HashSet<Arc<str>>>) -> Mover<'m> {
        Mover {
            id: &self.body.id,
            moving,
            times: (i64::MAX, i64::MAX),
            offset: self.offset,
            is_container: self.body.class() == NodeClass::Container,
        }
    }
}

/// The members that an update gives: `Some(None)` takes a member away.
#[derive(Clone, Debug, Default)]
pub(super) struct Update {
    pub(super) ttl: Option<Option<i64>>,
    pub(super) priority: Option<i64>,
    pub(super) role: Option<Option<Word>>,
    pub(super) kind: Option<Option<Word>>,
    pub(super) key: Option<Option<Word>>,
    pub(super) fields: Vec<(Word, Option<StoredValue>)>,
}

impl Update {
    pub(super) fn is_lifecycle(&self) -> bool {
        self.role.is_none() && self.kind.is_none() && self.key.is_none() && self.fields.is_empty()
    }
}

/// Headers that are not fields of a payload record: an explicit null of one is as if it were absent.
pub(super) fn is_column(name: &str) -> bool {
    let is_place = matches!(name, "id" | "parent_id");
    is_place || TEXTS.contains(&name) || NUMBERS.contains(&name)
}

const FILLED: [&str; 3] = ["cycle", "created_at_ns", "creation_index"];

pub(super) fn read(node: &NewNode) -> Result<DraftNode, Refusal> {
    let name = Name::Node(node);
    name.check_json(node)?;
    let mut draft = DraftNode::new(Arc::default(), NodeClass::Block);
    let body = &mut draft.body;
    body.fields.reserve(node.members.len());
    for (member, json) in &node.members {
        match &**member {
            "id" => {
                let id = name.text(member, json)?.filter(|id| !id.is_empty());
                let wrong = || header("the id must be a text that is not empty");
                body.id = Arc::from(&*id.ok_or_else(wrong)?);
            }
            "nodeType" => {
                let given = name.text(member, json)?;
                body.node_type = given.map_or(Cow::Borrowed("cb"), |given| word(&given));
            }
            "offset" => draft.offset = name.integer(member, json)?,
            "ttl" => body.ttl = name.ttl(json)?,
            "priority" => body.priority = name.integer(member, json)?.unwrap_or(0),
            "role" => body.role = name.word(member, json)?,
            "kind" => body.kind = name.word(member, json)?,
            "key" => body.key = name.word(member, json)?,
            "created_at_iso" => draft.created = name.time(json)?,
            "removable" => {
                body.removable = name.flag(json)?;
                body.fields
                    .push((member.clone(), StoredValue::of_json(json)));
            }
            _ => body.fields.extend(name.field(member, json)?),
        }
    }
    name.check_class(body)?;
    if body.removable && body.class() != NodeClass::Container {
        let message = format!("{name} is not a container; only a container can be removable");
        return Err(header(message));
    }
    name.both_spellings(&body.fields)?;
    body.fields.sort_unstable();
    check_hash(&name, body)?;
    Ok(draft)
}

/// A `content_hash` that is given must be right.
pub(super) fn check_hash(name: &dyn std::fmt::Display, body: &NodeBody) -> Result<(), Refusal> {
    let Some(given) = body.field("content_hash").and_then(JsonValue::text) else {
        return Ok(());
    };
    let right = body.content_hash();
    if given == right {
        return Ok(());
    }
    let message = format!("{name}: content_hash is not the hash of the content");
    Err(header(message).help(format!("leave it out, or give {right}")))
}

pub(super) fn read_update(node: &NewNode) -> Result<Update, Refusal> {
    let name = Name::Update;
    name.check_json(node)?;
    if !node.children.is_empty() {
        return Err(header(
            "an update cannot give children; add them to the node",
        ));
    }
    let mut update = Update::default();
    for (member, json) in &node.members {
        match &**member {
            "id" | "nodeType" | "created_at_iso" | "removable" => {
                let message = format!("{member} never changes after a node is made");
                return Err(header(message).help("replace the node instead"));
            }
            "offset" => {
                let help = "move the node instead";
                return Err(header("the offset is where a node was put").help(help));
            }
            "ttl" => update.ttl = Some(name.ttl(json)?),
            "priority" => {
                let wrong = || name.wrong(member, "an integer of 64 bits", json);
                update.priority = Some(name.integer(member, json)?.ok_or_else(wrong)?);
            }
            "role" => update.role = Some(name.word(member, json)?),
            "kind" => update.kind = Some(name.word(member, json)?),
            "key" => update.key = Some(name.word(member, json)?),
            _ if &**json == "null" => {
                name.known(member)?;
                update.fields.push((member.clone(), None));
            }
            _ => {
                let field = name.field(member, json)?;
                let given = field.map(|(member, value)| (member, Some(value)));
                update.fields.extend(given);
            }
        }
    }
    Ok(update)
}

/// Members that a node can be given, for suggestions.
fn given() -> impl Iterator<Item = &'static str> {
    let others = ["id", "content", "tags", "cadence", "removable"].into_iter();
    let others = others.chain(["provenance", "created_at_iso"]);
    let headers = TEXTS.into_iter().chain(NUMBERS);
    others.chain(headers.filter(|name| !FILLED.contains(name)))
}

/// What to write instead of a member that no node has. Messages of providers have some of them.
fn instead_of(member: &str) -> String {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let word = plain(member);
    if let Some(known) = given().find(|known| plain(known) == word) {
        return format!("did you mean `{known}`?");
    }
    let meant = match &*word {
        "text" | "message" | "value" => "did you mean `content`?",
        "type" => "did you mean `nodeType` or `kind`?",
        "toolcall" | "toolcalls" => "a call is a block of kind `call` with `data_call_id`",
        "toolcallid" | "callid" => "did you mean `data_call_id`?",
        _ => {
            // One letter is wrong; in shorter words that says nothing.
            let length = member.chars().count();
            let one_edit = 1.0 - 1.0 / length as f64;
            let near = (length > 2).then(|| nearest_at(one_edit, member, given()));
            return match near.flatten() {
                Some(near) => format!("did you mean `{near}`? if not, name it `data_{member}`"),
                None => format!("name it `data_{member}`"),
            };
        }
    };
    meant.to_owned()
}

/// What messages call the node, or what is done to it.
enum Name<'a> {
    Node(&'a NewNode),
    Update,
}

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Update => f.write_str("the update"),
            Self::Node(node) => match node.member("id").and_then(string) {
                Some(id) => write!(f, "`{id}`"),
                None => f.write_str("the new node"),
            },
        }
    }
}

impl Name<'_> {
    fn check_json(&self, node: &NewNode) -> Result<(), Refusal> {
        match &node.broken {
            Some(member) => Err(input(format!(
                "{self}: the value of {member} is not JSON, has a key twice or a number that is too large, or nests too deep"
            ))),
            None => Ok(()),
        }
    }

    fn wrong(&self, member: &str, wanted: &str, json: &str) -> Refusal {
        let shown: String = json.chars().take(40).collect();
        header(format!("{self}: {member} must be {wanted}, not {shown}"))
    }

    fn text<'j>(&self, member: &str, json: &'j str) -> Result<Option<Cow<'j, str>>, Refusal> {
        if json == "null" {
            return Ok(None);
        }
        let text = string(json).ok_or_else(|| self.wrong(member, "a text or null", json))?;
        Ok(Some(text))
    }

    fn word(&self, member: &str, json: &str) -> Result<Option<Word>, Refusal> {
        let text = self.text(member, json)?;
        Ok(text.map(|text| word(&text)))
    }

    fn integer(&self, member: &str, json: &str) -> Result<Option<i64>, Refusal> {
        if json == "null" {
            return Ok(None);
        }
        let wrong = |_| self.wrong(member, "an integer of 64 bits", json);
        json.parse().map(Some).map_err(wrong)
    }

    fn ttl(&self, json: &str) -> Result<Option<i64>, Refusal> {
        let ttl = self.integer("ttl", json)?;
        if ttl.is_some_and(|ttl| ttl < 0) {
            return Err(self.wrong("ttl", "0 or more, or null for no limit", json));
        }
        Ok(ttl)
    }

    fn flag(&self, json: &str) -> Result<bool, Refusal> {
        match json {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong("removable", "true or false", json)),
        }
    }

    fn time(&self, json: &str) -> Result<Option<(Box<str>, i64)>, Refusal> {
        let Some(text) = self.text("created_at_iso", json)? else {
            return Ok(None);
        };
        let nanos = crate::tree::timestamp::nanos_of_rfc3339(&text);
        let wanted = "a time such as 2026-01-31T08:00:00Z";
        let nanos = nanos.ok_or_else(|| self.wrong("created_at_iso", wanted, json))?;
        Ok(Some((text.into(), nanos)))
    }

    fn known(&self, member: &str) -> Result<(), Refusal> {
        let custom = member.starts_with("data_") || member.starts_with("content_");
        if custom || member.contains(':') || TAGS.is(member) || CADENCE.is(member) {
            return Ok(());
        }
        match member {
            "content" | "provenance" => Ok(()),
            "parent_id" => {
                let message = format!("{self}: the parent is where the position puts the node");
                Err(header(message))
            }
            "children" => Err(header(format!("{self}: children must be a list of nodes"))),
            _ if FILLED.contains(&member) => {
                let message = format!("{self}: {member} is filled when the node is made");
                let refusal = header(message);
                Err(if matches!(self, Self::Update) {
                    refusal
                } else {
                    refusal.help("give `created_at_iso` to keep the time of a log")
                })
            }
            _ => {
                let message = format!("{self}: unknown member {member}");
                Err(header(message).help(instead_of(member)))
            }
        }
    }

    /// A member of the payload record; `None` for a header that is null.
    fn field(&self, member: &str, json: &str) -> Result<Option<PayloadField>, Refusal> {
        self.known(member)?;
        let optional = TAGS.is(member) || CADENCE.is(member);
        if json == "null" && (optional || matches!(member, "content_hash" | "provenance")) {
            return Ok(None);
        }
        let value = StoredValue::of_json(json);
        if TAGS.is(member) {
            let texts = match value.get() {
                JsonValue::List(json) => text_list(value.get()).len() == elements(json).len(),
                value => value.is_text(),
            };
            if !texts {
                return Err(self.wrong(member, "a list of texts", json));
            }
        } else if CADENCE.is(member) {
            self.integer(member, json)?;
        } else if member == "content_hash" {
            self.text(member, json)?;
        }
        Ok(Some((word(member), value)))
    }

    fn both_spellings(&self, fields: &[PayloadField]) -> Result<(), Refusal> {
        for header_names in [TAGS, CADENCE] {
            let given = fields.iter().filter(|(name, _)| header_names.is(name));
            if given.count() > 1 {
                let (name, alias) = (header_names.name, header_names.alias);
                return Err(header(format!(
                    "{self}: {name} and {alias} are one header; give one of them"
                )));
            }
        }
        Ok(())
    }

    fn check_class(&self, body: &NodeBody) -> Result<(), Refusal> {
        let node_type = &*body.node_type;
        match body.class() {
            NodeClass::Block | NodeClass::Container => {
                if node_type.is_empty() || node_type.starts_with('^') {
                    let message = format!("{self}: `{node_type}` is not the nodeType of a block");
                    return Err(header(message).help("such as `cb`, `mc` or `cb:summary`"));
                }
                Ok(())
            }
            NodeClass::Turn => {
                let message = format!("{self} cannot be a turn: turns enter `^seq` by sealing");
                Err(region(message).help("add blocks to `^ah` and commit"))
            }
            _ => Err(region(format!(
                "{self} cannot be a region: every session has one of each"
            ))),
        }
    }
}
