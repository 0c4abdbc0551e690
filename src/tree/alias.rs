//! Headers with two spellings (RUNTIME §1): `tags` and `tag`, `cadence` and `cad`.
//!
//! All readers of these headers use this module, so that they agree: the header's own name wins
//! over its alias, and null counts as absent under either.

use crate::json::JsonValue;

/// A header with an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aliased {
    /// The header's name, which wins.
    pub name: &'static str,
    /// The other spelling.
    pub alias: &'static str,
}

/// A node's tags: a list of strings, or a plain string as a list of one (LANGUAGE §5).
pub const TAGS: Aliased = Aliased {
    name: "tags",
    alias: "tag",
};

/// How often a node recurs: an integer.
pub const CADENCE: Aliased = Aliased {
    name: "cadence",
    alias: "cad",
};

impl Aliased {
    /// Whether a field is one of the two spellings.
    pub fn is(&self, field: &str) -> bool {
        field == self.name || field == self.alias
    }

    /// The header's value among a node's fields; `None` if absent or null. Linear in the fields.
    pub fn find<'a>(
        &self,
        fields: impl Iterator<Item = (&'a str, JsonValue<'a>)>,
    ) -> Option<JsonValue<'a>> {
        self.find_as(fields, |value| value)
    }

    /// As [`Aliased::find`], among values in a form that `read` makes JSON of.
    pub(crate) fn find_as<'a, V: Copy>(
        &self,
        fields: impl Iterator<Item = (&'a str, V)>,
        read: impl Fn(V) -> JsonValue<'a>,
    ) -> Option<V> {
        let mut other = None;
        for (field, value) in fields.filter(|(_, value)| !read(*value).is_null()) {
            if field == self.name {
                return Some(value);
            }
            if field == self.alias {
                other = Some(value);
            }
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use super::{CADENCE, TAGS};
    use crate::json::JsonValue;

    #[test]
    fn the_name_wins_over_the_alias_and_null_is_absent() {
        let tags = |fields: &[(&'static str, &'static str)]| {
            let fields = fields.iter();
            let found = TAGS.find(fields.map(|(name, json)| (*name, JsonValue::stored(json))));
            found.map(JsonValue::canonical)
        };
        assert_eq!(tags(&[("tag", "1"), ("tags", "2")]), Some("2".to_owned()));
        assert_eq!(
            tags(&[("tag", "1"), ("tags", "null")]),
            Some("1".to_owned())
        );
        assert_eq!(
            tags(&[("tag", "null"), ("tags", "2")]),
            Some("2".to_owned())
        );
        assert_eq!(tags(&[("tag", "null"), ("x", "2")]), None);
        assert!(CADENCE.is("cad") && CADENCE.is("cadence") && !CADENCE.is("tag"));
    }
}
