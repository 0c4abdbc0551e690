//! Which sessions of a store a selector can match at all, and sessions by name.

use crate::store::database::sql::{Database, Row, Value, collect, first, int, text};
use crate::store::error::StoreError;
use crate::store::layout::schema::{ATTR_BY_TEXT, equals};
use crate::store::read::catalog::{self, Entry, LIST, Listed};
use crate::tree::NodeClass;

/// What a session needs to have for a selector to match in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// A node of this id.
    Id(String),
    /// A node with this text as the value of a custom attribute, or as a member of it.
    Attr(String, String),
    /// A node of this key.
    Key(String),
}

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

/// The sessions with a matching name that have what one of the candidates asks for, at any time, in byte
/// order of names. Linear in the nodes that have it, in all sessions.
pub(crate) fn candidates(
    database: &mut dyn Database,
    wanted: &[Candidate],
    glob: &Glob,
) -> Result<Vec<Listed>, StoreError> {
    let mut found = Vec::new();
    for candidate in wanted {
        let (units, values): (_, Vec<Value<'_>>) = match candidate {
            Candidate::Id(id) => (
                format!("select unit_id from node where {}", equals("id", id)),
                vec![id.as_str().into()],
            ),
            Candidate::Key(key) => (
                format!("select unit_id from node where {}", equals("key", key)),
                vec![key.as_str().into()],
            ),
            Candidate::Attr(name, value) => (
                format!(
                    "select unit_id from attr where name = ?1 and text = ?2 and {ATTR_BY_TEXT}"
                ),
                vec![name.as_str().into(), value.as_str().into()],
            ),
        };
        let placed = "select p.session_id from placement p where p.unit_id in";
        let sql = format!("{LIST} where s.session_id in ({placed} ({units}))");
        found.extend(collect(database, &sql, &values, catalog::listed)?);
    }
    found.retain(|session| glob.matches(&session.name));
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    found.dedup();
    Ok(found)
}

/// A node that has what a [`Candidate`] asks for, in a snapshot of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit<'r> {
    /// The number of the session.
    pub(crate) session: i64,
    /// The name of the session.
    pub(crate) name: &'r str,
    /// As [`Entry::changed`].
    pub(crate) changed: i64,
    /// The unit that it is in.
    pub(crate) unit: i64,
    pub(crate) id: &'r str,
    pub(crate) class: NodeClass,
    pub(crate) role: Option<&'r str>,
    pub(crate) key: Option<&'r str>,
    /// Whether what was asked for is a member of the value of an attribute.
    pub(crate) is_member: bool,
    /// Whether it has what no column holds.
    has_extra: bool,
}

impl<'r> Hit<'r> {
    /// A header that is a text, of its column; `None` if that does not say what it is.
    pub(crate) fn header(&self, column: Option<&'r str>) -> Option<Option<&'r str>> {
        (column.is_some() || !self.has_extra).then_some(column)
    }
}

/// Calls `each` with the nodes that have what a candidate asks for in the newest commit of their session or,
/// with `working`, in its working state if there is one: in byte order of the names of sessions, then in
/// document order. One statement, linear in the nodes that have it in all sessions, at any time.
pub(crate) fn hits(
    database: &mut dyn Database,
    wanted: &Candidate,
    working: bool,
    each: &mut dyn FnMut(Hit<'_>),
) -> Result<(), StoreError> {
    let (nodes, values): (_, Vec<Value<'_>>) = match wanted {
        Candidate::Id(id) => (
            format!(
                "select unit_id, pre, -1 as ordinal from node where {}",
                equals("id", id)
            ),
            vec![id.as_str().into()],
        ),
        Candidate::Key(key) => (
            format!(
                "select unit_id, pre, -1 as ordinal from node where {}",
                equals("key", key)
            ),
            vec![key.as_str().into()],
        ),
        Candidate::Attr(name, value) => (
            format!(
                "select unit_id, pre, ordinal from attr where name = ?1 and text = ?2 and {ATTR_BY_TEXT}"
            ),
            vec![name.as_str().into(), value.as_str().into()],
        ),
    };
    let committed = if working { "" } else { "and not c.working" };
    let sql = format!(
        "select s.session_id, s.name, s.changed, n.id, n.class, n.role, n.key, a.ordinal, \
         n.extra is not null, a.unit_id from ({nodes}) a \
         cross join placement p cross join session s cross join node n \
         where p.unit_id = a.unit_id and s.session_id = p.session_id and n.unit_id = a.unit_id \
         and n.pre = a.pre and n.id is not null \
         and (select c.seq from snapshot c where c.session_id = p.session_id {committed} \
         order by c.seq desc limit 1) between p.first_seq and p.last_seq \
         order by s.name, p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id, n.pre"
    );
    database.query(&sql, &values, &mut |row| {
        each(Hit {
            session: int(row, 0)?,
            name: text(row, 1)?,
            changed: int(row, 2)?,
            id: text(row, 3)?,
            class: NodeClass::parse(text(row, 4)?)
                .ok_or_else(|| StoreError::Damaged("a node has an unknown class".to_owned()))?,
            role: row.text(5)?,
            key: row.text(6)?,
            is_member: int(row, 7)? >= 0,
            has_extra: row.bool(8)?.unwrap_or(false),
            unit: int(row, 9)?,
        });
        Ok(())
    })
}

/// The greatest number that a session has; 0 if there is none.
pub(crate) fn last(database: &mut dyn Database) -> Result<i64, StoreError> {
    let sql = "select session_id from session order by session_id desc limit 1";
    Ok(first(database, sql, &[], |row| int(row, 0))?.unwrap_or(0))
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
