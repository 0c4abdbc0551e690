//! Patterns of names. This file knows no database.

/// A pattern of names: `*` is any text without `/`.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    parts: Vec<String>,
}

impl Glob {
    /// An empty pattern matches every name.
    pub(crate) fn new(pattern: &str) -> Self {
        let parts = match pattern {
            "" => Vec::new(),
            pattern => pattern.split('*').map(ToOwned::to_owned).collect(),
        };
        Self { parts }
    }

    /// Whether a name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let [first, rest @ ..] = &self.parts[..] else {
            return true;
        };
        let Some(mut left) = name.strip_prefix(&**first) else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return left.is_empty();
        };
        // The leftmost place for each part leaves the most to those after it.
        for part in middle {
            match left.find(&**part) {
                Some(at) if !left[..at].contains('/') => left = &left[at + part.len()..],
                _ => return false,
            }
        }
        left.strip_suffix(&**last)
            .is_some_and(|between| !between.contains('/'))
    }

    /// The text that every match begins with.
    pub(crate) fn prefix(&self) -> &str {
        self.parts.first().map_or("", |first| first)
    }

    /// Whether every name matches.
    pub(crate) fn is_all(&self) -> bool {
        self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn a_star_is_any_text_without_a_slash() {
        for (glob, name, matches) in [
            ("", "anything/at/all", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("support-*", "support-42", true),
            ("support-*", "support-", true),
            ("support-*", "support-4/2", false),
            ("*/x", "a/x", true),
            ("*/x", "a/b/x", false),
            ("*a*b*", "xaybz", true),
            ("*a*b*", "xbya", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
            ("é*", "élan", true),
        ] {
            assert_eq!(Glob::new(glob).matches(name), matches, "{glob} {name}");
        }
    }
}
