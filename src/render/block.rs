//! One block of a request, read from a node.

use super::json::compact;
use crate::index::NodeRef;
use crate::json::string;
use std::borrow::Cow;

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
        Self {
            parent: node.parent().map_or("", NodeRef::id).into(),
            ..Self::apart(node, system)
        }
    }

    /// As [`ThreadBlock::from_node`], without what it is in: only the node is read.
    pub(super) fn apart(node: NodeRef<'_>, system: bool) -> Self {
        let default = if system { "system" } else { "user" };
        let kind = node.kind();
        let mut content = None;
        let mut data = Vec::new();
        for (name, value) in node.fields() {
            if name == "content" {
                content = Some(if system && kind == Some("tool") {
                    compact(&value.json()).into()
                } else {
                    value.canonical().into()
                });
            } else if name.starts_with("data_") {
                data.push((name.into(), value.canonical().into()));
            }
        }
        Self {
            id: node.id().into(),
            role: node.role().unwrap_or(default).into(),
            kind: kind.map(Into::into),
            key: node.key().map(Into::into),
            content,
            data,
            parent: "".into(),
            system,
        }
    }
}
