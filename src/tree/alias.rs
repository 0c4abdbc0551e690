//! Headers with two spellings (RUNTIME §1): `tags` and `tag`, `cadence` and `cad`.
//!
//! All readers of these headers use this module, so that they agree: the header's own name wins
//! over its alias, and null counts as absent under either.

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

    /// The header's value among a node's fields, as JSON text; `None` if absent or null. Linear in
    /// the fields.
    pub fn of<'a>(&self, fields: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
        let mut other = None;
        for (field, json) in fields.filter(|(_, json)| *json != "null") {
            if field == self.name {
                return Some(json);
            }
            if field == self.alias {
                other = Some(json);
            }
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use super::{CADENCE, TAGS};

    #[test]
    fn the_name_wins_over_the_alias_and_null_is_absent() {
        let tags = |fields: &[(&'static str, &'static str)]| TAGS.of(fields.iter().copied());
        assert_eq!(tags(&[("tag", "1"), ("tags", "2")]), Some("2"));
        assert_eq!(tags(&[("tag", "1"), ("tags", "null")]), Some("1"));
        assert_eq!(tags(&[("tag", "null"), ("tags", "2")]), Some("2"));
        assert_eq!(tags(&[("tag", "null"), ("x", "2")]), None);
        assert!(CADENCE.is("cad") && CADENCE.is("cadence") && !CADENCE.is("tag"));
    }
}
