//! A node as its maker describes it, before any rule is checked.
//!
//! The members are JSON texts by name, in the order given. [`super::header`] checks them.

use super::refusal::{Refusal, input};
use super::word::{Word, quoted_word, word};
use crate::json::{Halt, MAX_NESTING, Problem, ProblemKind, Reader, quoted};
use crate::support::cancel::Cancelled;

/// A node to be added: its members as JSON, and the nodes below it. Headers that are not given are
/// filled when it is added (RUNTIME §3).
///
/// ```
/// use pactql::{Context, NewNode};
/// let mut context = Context::new();
/// let banner = NewNode::text("Be brief.").role("system").key("banner").ttl(3);
/// context.add("^sys", banner)?;
/// context.add("^ah", NewNode::json(r#"{"role":"user","content":"Hello"}"#)?)?;
/// context.add("^ah", r#"block:note { data_source='wiki', offset=1 } "A page.""#)?;
/// assert_eq!(context.select(".cb")?.count(), 3);
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewNode {
    pub(super) members: Vec<(Word, Word)>,
    pub(super) children: Vec<NewNode>,
    /// Whether a list of children was given, even an empty one.
    pub(super) lists_children: bool,
    /// Levels below it.
    height: usize,
    /// The first member whose value cannot be: no JSON, or children that nest too deep.
    pub(super) broken: Option<Box<str>>,
}

/// Functions that set one member each, from its name.
macro_rules! members {
    ($($(#[$doc:meta])* $name:ident: $member:literal, $type:ty, $json:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, value: $type) -> Self {
            let json: fn($type) -> Word = $json;
            self.put($member, json(value));
            self
        }
    )*};
}

impl NewNode {
    /// A block without members: nodeType `cb`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A block of kind `text` with this content.
    pub fn text(content: &str) -> Self {
        Self::new().kind("text").content(content)
    }

    /// A container (nodeType `mc`).
    pub fn container() -> Self {
        Self::new().node_type("mc")
    }

    /// Reads a JSON object. Linear in the text.
    ///
    /// # Errors
    /// `E_INPUT`: text that is not JSON or not an object, a key given twice, half a surrogate pair, a number
    /// outside the range of a double, children that are not a list of objects.
    pub fn json(text: &str) -> Result<Self, crate::support::diag::Error> {
        Self::read_json(text).map_err(|refusal| refusal.about(text))
    }

    pub(crate) fn read_json(text: &str) -> Result<Self, Refusal> {
        let mut reader = Reader::new(text);
        let node = Self::read_nodes(&mut reader);
        let node = node.and_then(|node| reader.end().map(|()| node));
        if let Some(problem) = reader.problems().first() {
            return Err(problem_text(problem));
        }
        node.map_err(|_| input("the text of a node must be a JSON object"))
    }

    fn read_nodes(reader: &mut Reader<'_>) -> Result<Self, Halt> {
        reader.peek();
        reader.begin_object()?;
        // The open nodes, each with whether a member was read.
        let mut open = vec![(Self::default(), false)];
        while let Some((node, started)) = open.last_mut() {
            let first = !std::mem::replace(started, true);
            if let Some((key, at)) = reader.next_key(first)? {
                let name = key.decode();
                let children = name == "children" && node.lists_children;
                if children || node.members.iter().any(|(known, _)| *known == name) {
                    reader.note(at, ProblemKind::DuplicateKey(name.clone().into_owned()));
                }
                if name != "children" {
                    let value = reader.skip_value()?.to_owned();
                    node.members.push((word(&name), value.into()));
                    continue;
                }
                match reader.peek() {
                    Some(b'[') => reader.take(b'['),
                    _ if reader.skip_value()? == "null" => continue,
                    _ => return Err(reader.expected("a list of nodes, or null")),
                };
                node.lists_children = true;
                if reader.next_element(true)? {
                    begin(reader, &mut open)?;
                }
                continue;
            }
            let Some((closed, _)) = open.pop() else { break };
            let Some((parent, _)) = open.last_mut() else {
                return Ok(closed);
            };
            parent.push(closed);
            if reader.next_element(false)? {
                begin(reader, &mut open)?;
            }
        }
        Err(reader.expected("a node"))
    }

    /// Adds a child, unless the tree would be too high, which is noted.
    fn push(&mut self, node: Self) {
        self.lists_children = true;
        if node.height + 1 >= MAX_NESTING {
            self.broken.get_or_insert_with(|| "children".into());
            return;
        }
        self.height = self.height.max(node.height + 1);
        self.children.push(node);
    }

    /// A node of these members, which are JSON texts by name.
    pub(crate) fn of_members(members: impl Iterator<Item = (String, String)>) -> Self {
        let members = members.map(|(name, json)| (name.into(), json.into()));
        Self {
            members: members.collect(),
            ..Self::default()
        }
    }

    /// Sets a member to a JSON value; replaces an earlier one of the name.
    #[must_use]
    pub fn set(self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        match value.into() {
            serde_json::Value::String(text) => self.set_text(name, &text),
            // These may nest too deep.
            value @ (serde_json::Value::Array(_) | serde_json::Value::Object(_)) => {
                self.set_json(name, &value.to_string())
            }
            scalar => self.set_word(name, scalar.to_string().into()),
        }
    }

    /// As [`NewNode::set`], with a text.
    #[must_use]
    pub(crate) fn set_text(self, name: &str, text: &str) -> Self {
        self.set_word(name, quoted(text).into())
    }

    fn set_word(mut self, name: &str, json: Word) -> Self {
        self.put(name, json);
        self
    }

    /// As [`NewNode::set`], with JSON text, whose spelling is kept.
    #[must_use]
    pub fn set_json(mut self, name: &str, json: &str) -> Self {
        let json = json.trim();
        let mut reader = Reader::new(json);
        let read = reader.skip_value().and_then(|_| reader.end());
        if read.is_err() || !reader.problems().is_empty() {
            self.broken.get_or_insert_with(|| name.into());
        }
        self.put(name, json.to_owned().into());
        self
    }

    fn put(&mut self, name: &str, json: Word) {
        match self.members.iter_mut().find(|(known, _)| known == name) {
            Some((_, value)) => *value = json,
            None => self.members.push((word(name), json)),
        }
    }

    members! {
        /// Sets the id.
        id: "id", &str, |text| quoted(text).into();
        /// Sets the nodeType.
        node_type: "nodeType", &str, quoted_word;
        /// Sets the role.
        role: "role", &str, quoted_word;
        /// Sets the kind.
        kind: "kind", &str, quoted_word;
        /// Sets the key.
        key: "key", &str, |text| quoted(text).into();
        /// Sets the content to a text.
        content: "content", &str, |text| quoted(text).into();
        /// Sets the cycles the node lives on for; 0 is gone at the next commit.
        ttl: "ttl", i64, |value| value.to_string().into();
        /// Sets the priority: lower ones are pruned first.
        priority: "priority", i64, |value| value.to_string().into();
        /// Sets the offset.
        offset: "offset", i64, |value| value.to_string().into();
    }

    /// Sets the tags.
    #[must_use]
    pub fn tags<'t>(self, tags: impl IntoIterator<Item = &'t str>) -> Self {
        let tags: Vec<&str> = tags.into_iter().collect();
        self.set("tags", tags)
    }

    /// Marks a container as removable: it goes when it has lost its last child.
    #[must_use]
    pub fn removable(self) -> Self {
        self.set("removable", true)
    }

    /// Adds a node below, after those there are.
    #[must_use]
    pub fn child(mut self, node: Self) -> Self {
        self.push(node);
        self
    }

    /// The value of a member, as JSON text.
    pub fn member(&self, name: &str) -> Option<&str> {
        let found = self.members.iter().find(|(known, _)| known == name);
        found.map(|(_, json)| &**json)
    }
}

fn begin(reader: &mut Reader<'_>, open: &mut Vec<(NewNode, bool)>) -> Result<(), Halt> {
    reader.peek();
    let at = reader.offset();
    if open.len() >= MAX_NESTING {
        return Err(reader.too_deep(at));
    }
    reader.begin_object()?;
    open.push((NewNode::default(), false));
    Ok(())
}

/// What is wrong with a text that was to be JSON, and where.
pub(crate) fn problem_text(problem: &Problem) -> Refusal {
    let at = problem.offset;
    let mut refusal = input(match &problem.kind {
        ProblemKind::Syntax(expected) => format!("expected {expected}"),
        ProblemKind::TooDeep => "values must nest at most 1,000 levels deep".into(),
        ProblemKind::DuplicateKey(key) => format!("the key `{key}` is given twice"),
        ProblemKind::LoneSurrogate => "half of a surrogate pair".into(),
        ProblemKind::NumberRange => "the number is outside the range of a double".into(),
        ProblemKind::Cancelled => Cancelled.to_string(),
    });
    refusal.at = Some(at);
    refusal
}
