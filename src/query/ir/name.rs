//! The names of attributes and classes, and the one vocabulary of types.

use std::borrow::Cow;

use super::query::{Attr, Class, Facet, RangeAnswer, RowOrder};

/// The values of `@mode`; the default has no word.
pub(super) const MODES: [(&str, RangeAnswer); 3] = [
    ("union", RangeAnswer::Union),
    ("latest", RangeAnswer::Latest),
    ("reduce", RangeAnswer::Reduce),
];

/// The values of `@order`; the default has no word.
pub(super) const ORDERS: [(&str, RowOrder); 6] = [
    ("pre", RowOrder::Pre),
    ("post", RowOrder::Post),
    ("bfs", RowOrder::Bfs),
    ("path", RowOrder::Path),
    ("turn:desc,pre", RowOrder::TurnDesc),
    ("turn:asc,pre", RowOrder::TurnAsc),
];

/// The names that [`Attr::from_name`] does not read as a custom attribute, for those that are written
/// in another way. The facets `depth` and `age` are ordinary words, and are left out.
pub(crate) const HEADERS: [&str; 23] = [
    "id",
    "nodeType",
    "type",
    "kind",
    "role",
    "key",
    "created_at_iso",
    "content_hash",
    "parent",
    "parent_id",
    "content",
    "tags",
    "tag",
    "offset",
    "ttl",
    "priority",
    "cycle",
    "created_at_ns",
    "creation_index",
    "cadence",
    "cad",
    "sdepth",
    "born_turn",
];

impl Attr {
    /// The header, facet or custom attribute that a bare name means (LANGUAGE §5), with `nodeType`
    /// and `kind` as the later editions read them.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "id" => Self::Id,
            "nodeType" | "type" => Self::NodeType,
            "stored_type" => Self::StoredType,
            "kind" => Self::Kind,
            "stored_kind" => Self::StoredKind,
            "role" => Self::Role,
            "key" => Self::Key,
            "created_at_iso" => Self::CreatedAtIso,
            "content_hash" => Self::ContentHash,
            "parent" | "parent_id" => Self::Parent,
            "content" => Self::Content,
            "tags" | "tag" => Self::Tags,
            "offset" => Self::Offset,
            "ttl" => Self::Ttl,
            "priority" => Self::Priority,
            "cycle" => Self::Cycle,
            "created_at_ns" => Self::CreatedAtNs,
            "creation_index" => Self::CreationIndex,
            "cadence" | "cad" => Self::Cadence,
            "depth" => Self::Facet(Facet::Depth),
            "sdepth" => Self::Facet(Facet::Sdepth),
            "born_turn" => Self::Facet(Facet::BornTurn),
            "age" => Self::Facet(Facet::Age),
            _ => Self::Custom(name.into()),
        }
    }

    /// The stored field that a quoted name means, never an alias, facet or sugar (LANGUAGE §2).
    #[must_use]
    pub fn from_quoted_name(name: &str) -> Self {
        match Self::from_name(name) {
            Self::Facet(_) | Self::StoredType | Self::StoredKind => Self::Custom(name.into()),
            attr if attr.name() == name => attr,
            Self::Parent => Self::Parent,
            _ => Self::Custom(name.into()),
        }
    }

    /// The name in canonical text. A custom attribute may need quotes.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Id => "id",
            Self::NodeType => "nodeType",
            Self::StoredType => "stored_type",
            Self::Kind => "kind",
            Self::StoredKind => "stored_kind",
            Self::Role => "role",
            Self::Key => "key",
            Self::CreatedAtIso => "created_at_iso",
            Self::ContentHash => "content_hash",
            Self::Parent => "parent",
            Self::Content => "content",
            Self::Tags => "tags",
            Self::Offset => "offset",
            Self::Ttl => "ttl",
            Self::Priority => "priority",
            Self::Cycle => "cycle",
            Self::CreatedAtNs => "created_at_ns",
            Self::CreationIndex => "creation_index",
            Self::Cadence => "cadence",
            Self::Facet(Facet::Depth) => "depth",
            Self::Facet(Facet::Sdepth) => "sdepth",
            Self::Facet(Facet::BornTurn) => "born_turn",
            Self::Facet(Facet::Age) => "age",
            Self::Custom(name) => name,
        }
    }

    /// Whether an absent value reads as 0, so that it is never null (LANGUAGE §1).
    #[must_use]
    pub fn is_never_null(&self) -> bool {
        matches!(
            self,
            Self::Offset | Self::Priority | Self::CreatedAtNs | Self::CreationIndex
        )
    }
}

impl Class {
    /// The class named by `mt`, `seg`, `mc`, `cont`, `cb` or `block`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "mt" | "seg" => Some(Self::Turn),
            "mc" | "cont" => Some(Self::Container),
            "cb" | "block" => Some(Self::Block),
            _ => None,
        }
    }

    /// The word in the normalized vocabulary.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Turn => "mt",
            Self::Container => "mc",
            Self::Block => "cb",
        }
    }
}

/// A nodeType in the `mt mc cb` vocabulary: `seg:x` is `mt:x`, `block` is `cb` (LANGUAGE §1).
#[must_use]
pub fn normal_type(node_type: &str) -> Cow<'_, str> {
    let (head, sub) = split_type(node_type);
    match (Class::from_word(head), sub) {
        (Some(class), _) if class.word() == head => Cow::Borrowed(node_type),
        (Some(class), Some(sub)) => Cow::Owned(format!("{}:{sub}", class.word())),
        (Some(class), None) => Cow::Borrowed(class.word()),
        (None, _) => Cow::Borrowed(node_type),
    }
}

/// A type, and the text after its first colon.
pub(super) fn split_type(word: &str) -> (&str, Option<&str>) {
    match word.split_once(':') {
        Some((head, sub)) => (head, Some(sub)),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::{HEADERS, normal_type};
    use crate::query::ir::Attr;

    #[test]
    fn headers_are_no_custom_attributes() {
        for name in HEADERS {
            let attr = Attr::from_name(name);
            assert!(!matches!(attr, Attr::Custom(_)), "{name}");
        }
    }

    #[test]
    fn types_have_one_vocabulary() {
        for (stored, normal) in [
            ("block", "cb"),
            ("seg:x", "mt:x"),
            ("cont:a:b", "mc:a:b"),
            ("cb:x", "cb:x"),
            ("foo:block", "foo:block"),
            ("^seq", "^seq"),
        ] {
            assert_eq!(normal_type(stored), normal);
        }
    }

    #[test]
    fn quoted_names_are_the_field_of_that_name() {
        assert_eq!(Attr::from_quoted_name("role"), Attr::Role);
        for name in ["type", "tag", "cad", "age", "stored_type", "my key"] {
            assert_eq!(Attr::from_quoted_name(name), Attr::Custom(name.into()));
        }
    }
}
