//! Nodes of a snapshot, as callers see them.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::history::text_of;
use crate::index::NodeRef;
use crate::json::JsonValue;
use crate::tree::timestamp::is_position;
use crate::tree::{is_header, text_list};

/// A node of an immutable snapshot. Small and `Copy`; borrows from the [`Selection`] it is from.
///
/// Headers are O(1). Content, tags, cadence and attributes are one pass over the node's fields.
///
/// ```
/// let session = pactql::Session::open("fixtures/support-agent.jsonl")?;
/// for node in &pactql::Engine::new().rows(&session, "@t0 .cb[role='user']")? {
///     println!("{} {:?}: {}", node.id(), node.role(), node.text());
///     assert!(node.tags().count() <= 9 && node.headers().priority == node.priority());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Selection`]: crate::Selection
#[derive(Clone, Copy, PartialEq)]
pub struct Node<'a>(NodeRef<'a>);

/// The headers of nodes, by name: a method of [`Node`] for each, and the type that has all of them.
macro_rules! headers {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $read:ident;)*) => {
        /// The headers of a [`Node`] (RUNTIME §1), with the defaults that absent ones read as.
        ///
        /// ```
        /// let session = pactql::Session::open("fixtures/greenhouse.jsonl")?;
        /// let rules = pactql::Engine::new().rows(&session, "@t0 .cb[id='rules']")?;
        /// let headers = rules.nodes().next().expect("one node").headers();
        /// assert_eq!((headers.role, headers.priority, headers.ttl), (Some("system"), 9, None));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Headers<'a> {
            $($(#[$doc])* pub $name: $type,)*
            /// The tags, in the order stored.
            pub tags: Vec<String>,
        }

        impl<'a> Node<'a> {
            $($(#[$doc])*
            pub fn $name(self) -> $type {
                self.0.$read()
            })*

            /// All headers at once.
            pub fn headers(self) -> Headers<'a> {
                Headers {
                    $($name: self.$name(),)*
                    tags: self.tags().collect(),
                }
            }
        }
    };
}

headers! {
    /// The id, unique in its snapshot.
    id: &'a str = id;
    /// The nodeType as stored; a node without one reads as `mt`, `mc`, `cb` or `^root`.
    node_type: &'a str = type_or_class;
    /// The role.
    role: Option<&'a str> = role;
    /// The kind.
    kind: Option<&'a str> = kind;
    /// The key.
    key: Option<&'a str> = key;
    /// The offset among its siblings; 0 if absent.
    offset: i64 = offset;
    /// Cycles left to live, as seen from its snapshot.
    ttl: Option<i64> = ttl;
    /// The priority; 0 if absent.
    priority: i64 = priority;
    /// The cadence.
    cadence: Option<i64> = cadence;
    /// The cycle that introduced the node.
    cycle: Option<i64> = cycle;
    /// Creation time in nanoseconds; 0 if absent.
    created_at_ns: i64 = created_at_ns;
    /// The tie-breaker of equal creation times; 0 if absent.
    creation_index: i64 = creation_index;
}

impl<'a> Node<'a> {
    pub(crate) fn new(node: NodeRef<'a>) -> Self {
        Self(node)
    }

    pub(crate) fn row(self) -> NodeRef<'a> {
        self.0
    }

    /// The content as text, as a provider thread has it (RUNTIME §5): a string as it is, any other
    /// value as canonical JSON, empty if absent or null. Borrowed if it has no escapes.
    pub fn text(self) -> Cow<'a, str> {
        text_of(self.0.field("content").filter(|content| !content.is_null()))
    }

    /// The content as a JSON value. Numbers beyond 64 bits are rounded. `None` if it is absent, or
    /// nested in more than 127 levels; [`Node::content_json`] has every digit and level.
    pub fn content(self) -> Option<Value> {
        self.0.field("content").and_then(serde_value)
    }

    /// The content as JSON text: a text with the escapes it needs, any other value as it was written. `None`
    /// if it is absent.
    pub fn content_json(self) -> Option<Cow<'a, str>> {
        self.0.field("content").map(JsonValue::json)
    }

    /// The tags, in the order stored.
    pub fn tags(self) -> impl Iterator<Item = String> {
        let tags = self.0.tags().map(text_list).unwrap_or_default();
        tags.into_iter().map(Cow::into_owned)
    }

    /// A custom attribute: a field that is not a header (LANGUAGE §5). Values as in
    /// [`Node::content`].
    pub fn attribute(self, name: &str) -> Option<Value> {
        self.custom(name).and_then(serde_value)
    }

    /// The custom attributes, sorted by name, without those nested in more than 127 levels.
    pub fn attributes(self) -> impl Iterator<Item = (&'a str, Value)> {
        let custom = self.custom_fields();
        custom.filter_map(|(name, value)| Some((name, serde_value(value)?)))
    }

    /// A custom attribute as JSON text, as [`Node::content_json`]: with every digit, and of any depth.
    ///
    /// ```
    /// let document = r#"{"root":{"id":"r","children":[{"id":"^ah","children":[
    ///     {"id":"b","offset":1,"data_n":123456789012345678901234567890}]}]}}"#;
    /// let session = pactql::Session::from_slice(document.as_bytes())?;
    /// let blocks = pactql::Engine::new().rows(&session, ".cb")?;
    /// let block = blocks.nodes().next().unwrap();
    /// let digits = block.attribute_json("data_n");
    /// assert_eq!(digits.as_deref(), Some("123456789012345678901234567890"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attribute_json(self, name: &str) -> Option<Cow<'a, str>> {
        self.custom(name).map(JsonValue::json)
    }

    /// The custom attributes as [`Node::attribute_json`] gives them, sorted by name.
    pub fn attributes_json(self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let custom = self.custom_fields();
        custom.map(|(name, value)| (name, value.json()))
    }

    fn custom(self, name: &str) -> Option<JsonValue<'a>> {
        let custom = !is_header(name);
        custom.then(|| self.0.field(name)).flatten()
    }

    fn custom_fields(self) -> impl Iterator<Item = (&'a str, JsonValue<'a>)> {
        self.0.fields().filter(|(name, _)| !is_header(name))
    }

    /// The parent; `None` for the root.
    pub fn parent(self) -> Option<Self> {
        self.0.parent().map(Self)
    }

    /// The children, in canonical order. In a session of a store the root and `^seq` have those that were
    /// loaded for the answer, unless the answer itself has them.
    pub fn children(self) -> impl Iterator<Item = Self> {
        self.0.children().map(Self)
    }

    /// When it was made, as it is written: RFC 3339. `None` if it is absent, and of a log without times, in which
    /// [`Node::created_at_ns`] is a position.
    pub fn created_at_iso(self) -> Option<&'a str> {
        let time = self.0.field("created_at_iso").and_then(JsonValue::text);
        time.filter(|time| !is_position(time))
    }

    /// The depth: -1 in `^sys`, 0 in `^ah`, 1, 2, … in turns from the newest, `None` elsewhere.
    /// O(log turns).
    pub fn depth(self) -> Option<i64> {
        self.0.depth()
    }

    /// SHA-256 of the content (RUNTIME §2), in lower-case hex digits. O(content).
    pub fn content_hash(self) -> String {
        self.0.content_hash()
    }

    /// The cycle of the snapshot that it is from; of the working state, the newest commit's.
    pub fn snapshot_cycle(self) -> i64 {
        self.0.snapshot_cycle()
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.id()).finish()
    }
}

fn serde_value(value: JsonValue<'_>) -> Option<Value> {
    match value {
        JsonValue::Text(text) => Some(Value::from(text)),
        value => serde_json::from_str(&value.json()).ok(),
    }
}
