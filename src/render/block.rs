//! One block of a request, read from a node.

use super::json::compact;
use crate::index::{NodeRef, UnitRef};
use crate::json::{JsonValue, string};
use std::borrow::Cow;

/// What is read of a block to size it and to name its groups, wherever it is kept.
pub(crate) trait BlockFields<'a>: Copy {
    /// Its id.
    fn id(self) -> &'a str;
    /// Its role; `None` if absent or null.
    fn role(self) -> Option<&'a str>;
    /// Its kind; `None` if absent or null.
    fn kind(self) -> Option<&'a str>;
    /// Its key; `None` if absent or null.
    fn key(self) -> Option<&'a str>;
    /// The id of the top node of its unit.
    fn top(self) -> &'a str;
    /// Its content, one of [`FIELDS`] or `data_call_id`.
    fn field(self, name: &str) -> Option<JsonValue<'a>>;
}

/// The custom fields that say what is sent of a block.
const FIELDS: [&str; 2] = ["data_call_name", "data_verbatim"];

impl<'a> BlockFields<'a> for NodeRef<'a> {
    fn id(self) -> &'a str {
        self.id()
    }

    fn role(self) -> Option<&'a str> {
        self.role()
    }

    fn kind(self) -> Option<&'a str> {
        self.kind()
    }

    fn key(self) -> Option<&'a str> {
        self.key()
    }

    fn top(self) -> &'a str {
        UnitRef::containing(self).top().id()
    }

    fn field(self, name: &str) -> Option<JsonValue<'a>> {
        self.field(name)
    }
}

/// One block of a request. It owns its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadBlock {
    pub(super) id: Box<str>,
    pub(super) role: Box<str>,
    pub(super) kind: Option<Box<str>>,
    pub(super) key: Option<Box<str>>,
    pub(super) content: Option<Box<str>>,
    pub(super) data: Vec<(Box<str>, Box<str>)>,
    pub(super) parent: Box<str>,
    pub(super) system: bool,
}

impl ThreadBlock {
    /// The node's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The role, or the default of the region: `system` under `^sys`, `user` elsewhere.
    #[must_use]
    pub fn role(&self) -> &str {
        &self.role
    }

    /// The kind; `None` if absent or null.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// The key; `None` if absent or null.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The content as canonical JSON. A tool definition keeps its order and spelling.
    #[must_use]
    pub fn content(&self) -> Option<&str> {
        self.content.as_deref()
    }

    /// The custom field `name`, such as `data_call_id`, as canonical JSON.
    #[must_use]
    pub fn data(&self, name: &str) -> Option<&str> {
        let found = self.data.iter().find(|(known, _)| &**known == name);
        found.map(|(_, value)| &**value)
    }

    /// The custom fields `data_*`, sorted by name, values as canonical JSON.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.data.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The id of the node that the block is in; the turn's, if the turn spells out no core.
    #[must_use]
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// Whether it is under `^sys`.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.system
    }

    /// Whether it defines a tool: under `^sys`, with the kind `tool`.
    #[must_use]
    pub fn is_tool(&self) -> bool {
        self.system && self.kind() == Some("tool")
    }

    /// The definition of a tool as the JSON text it came in; of other blocks, the content.
    pub(super) fn definition(&self) -> Option<Cow<'_, str>> {
        let content = self.content()?;
        Some(string(content).unwrap_or(Cow::Borrowed(content)))
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.data(name).and_then(string)
    }

    /// Adds a custom field, unless there is one of its name.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        let at = self.data.binary_search_by(|(known, _)| (**known).cmp(name));
        if let Err(at) = at {
            self.data.insert(at, (name.into(), value.into()));
        }
    }

    /// A block of an imported message outside `^sys`, which is the only one of its request. Values are canonical
    /// JSON.
    #[cfg(feature = "store")]
    pub(crate) fn imported<'a>(
        role: Option<&str>,
        kind: Option<&str>,
        content: Option<&str>,
        data: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let number = ("data_message", "1");
        let data = data.chain([number]);
        let mut data: Vec<(Box<str>, Box<str>)> = data
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        data.sort_unstable();
        Self {
            id: "".into(),
            role: role.unwrap_or("user").into(),
            kind: kind.map(Into::into),
            key: None,
            content: content.map(Into::into),
            data,
            parent: "".into(),
            system: false,
        }
    }

    /// The block of a node; `system` says whether it is under `^sys`.
    pub(crate) fn from_node(node: NodeRef<'_>, system: bool) -> Self {
        let fields = node.fields().filter(|(name, _)| name.starts_with("data_"));
        let data = fields.map(|(name, value)| (name.into(), value.canonical().into()));
        Self {
            data: data.collect(),
            parent: node.parent().map_or("", NodeRef::id).into(),
            ..Self::without_fields(node, system)
        }
    }

    /// As [`ThreadBlock::from_node`], of any block, without what it is in, and with no custom fields but those that say
    /// what is sent.
    pub(super) fn apart<'a>(block: impl BlockFields<'a>, system: bool) -> Self {
        let value = |name: &str| Some(block.field(name)?.canonical());
        let data = FIELDS.iter();
        let data = data.filter_map(|name| Some(((*name).into(), value(name)?.into())));
        Self {
            data: data.collect(),
            ..Self::without_fields(block, system)
        }
    }

    fn without_fields<'a>(block: impl BlockFields<'a>, system: bool) -> Self {
        let default = if system { "system" } else { "user" };
        let is_tool = system && block.kind() == Some("tool");
        let content = block.field("content").map(|content| {
            if is_tool {
                compact(&content.json()).into()
            } else {
                content.canonical().into()
            }
        });
        Self {
            id: block.id().into(),
            role: block.role().unwrap_or(default).into(),
            kind: block.kind().map(Into::into),
            key: block.key().map(Into::into),
            content,
            data: Vec::new(),
            parent: "".into(),
            system,
        }
    }
}
