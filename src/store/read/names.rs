//! Sessions by patterns of names.

use crate::store::database::sql::{Database, Row, collect, int, text};
use crate::store::error::StoreError;
use crate::store::read::catalog::{self, Entry, Listed};

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

/// The sessions with a matching name, in byte order of names. Linear in those with the same beginning.
pub(crate) fn matching(database: &mut dyn Database, glob: &Glob) -> Result<Vec<Entry>, StoreError> {
    let mut found = catalog::all(database, glob.prefix())?;
    found.retain(|entry| glob.matches(&entry.name));
    Ok(found)
}

/// The names that match, each with the column `meta` of the newest commit, as [`matching`].
#[cfg(feature = "cli")]
pub(crate) fn metas(
    database: &mut dyn Database,
    glob: &Glob,
) -> Result<Vec<(String, Option<String>)>, StoreError> {
    let mut found = catalog::metas(database, glob.prefix())?;
    found.retain(|(name, _)| glob.matches(name));
    Ok(found)
}

/// The number of sessions with a matching name.
pub(crate) fn count(database: &mut dyn Database, glob: &Glob) -> Result<usize, StoreError> {
    if glob.is_all() {
        let count = collect(database, "select count(*) from session", &[], |row| {
            int(row, 0)
        })?;
        return Ok(count
            .first()
            .map_or(0, |count| usize::try_from(*count).unwrap_or(0)));
    }
    let names = names(database, glob.prefix())?;
    Ok(names.iter().filter(|name| glob.matches(name)).count())
}

/// Most names that [`names`] gives of those that begin with no more than one character.
const NAMES: i64 = 1_000;

/// The names that begin with a text, sorted. Linear in them.
fn names(database: &mut dyn Database, prefix: &str) -> Result<Vec<String>, StoreError> {
    let name = |row: &dyn Row| Ok(text(row, 0)?.to_owned());
    match catalog::after(prefix).filter(|_| !prefix.is_empty()) {
        Some(after) => collect(
            database,
            "select name from session where name >= ?1 and name < ?2 order by name",
            &[prefix.into(), after.as_str().into()],
            name,
        ),
        None => collect(
            database,
            "select name from session where name >= ?1 order by name",
            &[prefix.into()],
            name,
        ),
    }
}

/// Names of sessions that could be meant by a name that no session has: some that begin with the same
/// character, sorted.
pub(crate) fn near(database: &mut dyn Database, name: &str) -> Result<Vec<String>, StoreError> {
    let first: String = name.chars().take(1).collect();
    let after = catalog::after(&first).unwrap_or_default();
    collect(
        database,
        "select name from session where name >= ?1 and name < ?2 order by name limit ?3",
        &[first.as_str().into(), after.as_str().into(), NAMES.into()],
        |row| Ok(text(row, 0)?.to_owned()),
    )
}

/// As [`matching`], only the list of them.
pub(crate) fn listed(database: &mut dyn Database, glob: &Glob) -> Result<Vec<Listed>, StoreError> {
    let mut found = catalog::list(database, glob.prefix())?;
    found.retain(|session| glob.matches(&session.name));
    Ok(found)
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
