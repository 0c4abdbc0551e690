//! The names of attributes and classes, and the one vocabulary of types.

use std::borrow::Cow;

use super::query::{Attr, Class, NAMES, RangeAnswer, RowOrder};

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
pub(crate) fn headers() -> impl Iterator<Item = &'static str> {
    let stored = NAMES.iter().filter(|name| !name.starts_with("stored_"));
    stored.copied().chain(["sdepth", "born_turn"])
}

impl Attr {
    /// The stored field that a quoted name means, never an alias, facet or sugar (LANGUAGE §2).
    pub fn from_quoted_name(name: &str) -> Self {
        match Self::from_name(name) {
            Self::Facet(_) | Self::StoredType | Self::StoredKind | Self::Bytes | Self::Tokens => {
                Self::Custom(name.into())
            }
            attr if attr.name() == name => attr,
            Self::Parent => Self::Parent,
            _ => Self::Custom(name.into()),
        }
    }

    /// Whether an absent value reads as 0, so that it is never null (LANGUAGE §1).
    pub fn is_never_null(&self) -> bool {
        matches!(
            self,
            Self::Offset
                | Self::Priority
                | Self::CreatedAtNs
                | Self::CreationIndex
                | Self::Bytes
                | Self::Tokens
        )
    }
}

impl Class {
    /// The class named by `mt`, `seg`, `mc`, `cont`, `cb` or `block`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "mt" | "seg" => Some(Self::Turn),
            "mc" | "cont" => Some(Self::Container),
            "cb" | "block" => Some(Self::Block),
            _ => None,
        }
    }

    /// The word in the normalized vocabulary.
    pub fn word(self) -> &'static str {
        match self {
            Self::Turn => "mt",
            Self::Container => "mc",
            Self::Block => "cb",
        }
    }
}

/// A nodeType in the `mt mc cb` vocabulary: `seg:x` is `mt:x`, `block` is `cb` (LANGUAGE §1).
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
    use super::{headers, normal_type};
    use crate::query::ir::Attr;

    #[test]
    fn headers_are_no_custom_attributes() {
        for name in headers() {
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
        for name in [
            "type",
            "tag",
            "cad",
            "age",
            "stored_type",
            "bytes",
            "my key",
        ] {
            assert_eq!(Attr::from_quoted_name(name), Attr::Custom(name.into()));
        }
    }
}
