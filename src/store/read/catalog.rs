//! The sessions of a store: rows of `session`, by names and patterns of names.

use crate::store::database::sql::{
    Database, ResultRow, SqlValue, collect, first, int, ints, one_int, parameters, text, texts,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{RECORDED, sum};
use crate::store::layout::sums::{sum_without_snapshots, update_session_sum, update_session_sums};
use crate::store::read::source;
use crate::support::diag::Code;
use std::collections::BTreeSet;

/// A row of `session`, and what its snapshots span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionEntry {
    pub(crate) session: i64,
    pub(crate) name: String,
    pub(crate) created_at_ns: i64,
    pub(crate) source: Option<String>,
    /// The session it was forked from, by name, and the seq.
    pub(crate) parent: Option<(String, i64)>,
    /// What a context keeps, as JSON text.
    pub(crate) runtime: Option<String>,
    pub(crate) changed: i64,
    /// The seqs of the oldest and the newest commit.
    pub(crate) seqs: Option<(i64, i64)>,
    pub(crate) cycle: Option<i64>,
    /// The column `meta` of the newest commit.
    pub(crate) meta: Option<String>,
    pub(crate) committed_at_ns: Option<i64>,
    pub(crate) working: bool,
}

impl SessionEntry {
    pub(crate) fn snapshots(&self) -> usize {
        self.seqs
            .and_then(|(first, last)| last.checked_sub(first)?.checked_add(1))
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(0)
    }
}

/// Every part is a lookup at one end of the key of `snapshot`.
const SELECT: &str = "select s.session_id, s.name, s.created_at_ns, s.source, p.name, s.parent_seq, \
     s.runtime, s.changed, \
     (select seq from snapshot where session_id = s.session_id and not working order by seq limit 1), \
     n.seq, n.cycle, n.committed_at_ns, \
     (select working from snapshot where session_id = s.session_id order by seq desc limit 1), \
     n.meta, s.parent_id, s.meta, s.check_sum from session s left join session p on p.session_id = s.parent_id \
     left join snapshot n on n.session_id = s.session_id and n.seq = \
     (select seq from snapshot where session_id = s.session_id and not working order by seq desc limit 1)";

fn entry(row: &dyn ResultRow) -> Result<SessionEntry> {
    let owned = |at| Ok::<_, StoreError>(row.text(at)?.map(ToOwned::to_owned));
    let made = SessionEntry {
        session: int(row, 0)?,
        name: text(row, 1)?.to_owned(),
        created_at_ns: int(row, 2)?,
        source: owned(3)?,
        parent: owned(4)?.zip(row.int(5)?),
        runtime: owned(6)?,
        changed: int(row, 7)?,
        seqs: row.int(8)?.zip(row.int(9)?),
        cycle: row.int(10)?,
        committed_at_ns: row.int(11)?,
        working: row.bool(12)?.unwrap_or(false),
        meta: owned(13)?,
    };
    // Nothing else is read of a session without snapshots, so that they are not missing is seen here.
    if made.seqs.is_none() && !made.working {
        let sum = sum_without_snapshots(row, [1, 2, 3, 14, 5, 15])?;
        if row.int(16)? != Some(sum) {
            let what = format!("`{}`: its snapshots are missing", made.name);
            return Err(StoreError::Damaged(what));
        }
    }
    Ok(made)
}

pub(crate) fn find(database: &mut dyn Database, name: &str) -> Result<Option<SessionEntry>> {
    let sql = format!("{SELECT} where s.name = ?1");
    first(database, &sql, &[name.into()], entry)
}

pub(crate) fn get(database: &mut dyn Database, name: &str) -> Result<SessionEntry> {
    find(database, name)?.ok_or_else(|| StoreError::NoSession(name.to_owned()))
}

pub(crate) fn by_id(database: &mut dyn Database, session: i64) -> Result<Option<SessionEntry>> {
    let sql = format!("{SELECT} where s.session_id = ?1");
    first(database, &sql, &[session.into()], entry)
}

/// The sessions of a recorder that no context writes or has written, in byte order of names. Logarithmic in the sessions
/// of the store.
pub(crate) fn of_source(database: &mut dyn Database, source: &str) -> Result<Vec<SessionEntry>> {
    let now = database.now_ns()?;
    let recorded = RECORDED.replace("source", "s.source");
    let sql = format!("{SELECT} where s.source = ?1 and {recorded} and {FREE} order by s.name");
    collect(database, &sql, &[source.into(), now.into()], entry)
}

/// The sessions of a source, however it is spelled, in byte order of names. Linear in the sessions of the store.
pub(crate) fn of_log(database: &mut dyn Database, source: &str) -> Result<Vec<SessionEntry>> {
    let sql = format!("{SELECT} where s.source = ?1");
    let mut found = Vec::new();
    for spelled in source::spellings(database, source)? {
        found.extend(collect(database, &sql, &[spelled.as_str().into()], entry)?);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// A session by its number, if no context writes or has written it.
pub(crate) fn free(database: &mut dyn Database, session: i64) -> Result<Option<SessionEntry>> {
    let now = database.now_ns()?;
    let sql = format!("{SELECT} where s.session_id = ?1 and {FREE}");
    first(database, &sql, &[session.into(), now.into()], entry)
}

/// No context writes the session, at the time of the second parameter, or has written it.
const FREE: &str = "s.runtime is null and not exists (select 1 from lease l \
     where l.session_id = s.session_id and l.expires_at_ns > ?2)";

/// The numbers of the sessions whose name is `name`, or `name/` and more, and that have a block of a response in
/// their newest state. Linear in the nodes of those.
pub(crate) fn of_response(
    database: &mut dyn Database,
    name: &str,
    response: &str,
) -> Result<Vec<i64>> {
    let (from, to) = (format!("{name}/"), format!("{name}0"));
    let sql = format!(
        "select distinct s.session_id from session s join placement p on p.session_id = s.session_id \
         and p.last_seq = {} join attr a on a.unit_id = p.unit_id and a.name = 'data_response' \
         and a.ordinal = -1 and a.text = ?4 where s.name = ?1 or (s.name >= ?2 and s.name < ?3) \
         order by s.session_id",
        i64::MAX
    );
    let values = [
        name.into(),
        from.as_str().into(),
        to.as_str().into(),
        response.into(),
    ];
    ints(database, &sql, &values)
}

/// The largest number after `name/` in the name of a session; 1 if there is none. Linear in the names that begin so.
pub(crate) fn last_number(database: &mut dyn Database, name: &str) -> Result<u64> {
    let prefix = format!("{name}/");
    let number =
        |row: &dyn ResultRow| Ok(text(row, 1)?.strip_prefix(&prefix).map(str::parse::<u64>));
    let glob = Glob::new(&format!("{prefix}*"));
    let numbers = matching_rows(database, LIST, &glob, number)?;
    Ok(numbers.into_iter().flatten().flatten().fold(1, u64::max))
}

/// Some sessions by their numbers, at least one, in no order.
pub(crate) fn some(database: &mut dyn Database, sessions: &[i64]) -> Result<Vec<SessionEntry>> {
    let (list, values) = parameters(sessions);
    let sql = format!("{SELECT} where s.session_id in ({list})");
    collect(database, &sql, &values, entry)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedSession {
    pub(crate) session: i64,
    pub(crate) name: String,
    pub(crate) changed: i64,
}

const LIST: &str = "select s.session_id, s.name, s.changed from session s";

fn listed(row: &dyn ResultRow) -> Result<ListedSession> {
    Ok(ListedSession {
        session: int(row, 0)?,
        name: text(row, 1)?.to_owned(),
        changed: int(row, 2)?,
    })
}

/// The sessions whose name matches, in byte order of names. Linear in those with the same beginning.
pub(crate) fn matching(database: &mut dyn Database, glob: &Glob) -> Result<Vec<SessionEntry>> {
    page(database, glob, "", usize::MAX)
}

/// The first sessions whose name matches and is after another, in byte order of names. Linear in those, if a beginning of
/// only the name is read.
pub(crate) fn page(
    database: &mut dyn Database,
    glob: &Glob,
    after: &str,
    limit: usize,
) -> Result<Vec<SessionEntry>> {
    page_rows(database, SELECT, glob, after, limit, entry)
}

pub(crate) fn list(database: &mut dyn Database, glob: &Glob) -> Result<Vec<ListedSession>> {
    matching_rows(database, LIST, glob, listed)
}

/// The names of a store that may be damaged, in byte order: what can be read of them from both ends of the table and of the
/// index. Errors: that of the database, if it has none.
pub(crate) fn readable_names(database: &mut dyn Database) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut failed = None;
    for (order, by) in [
        ("name", ""),
        ("name desc", ""),
        ("session_id", " not indexed"),
        ("session_id desc", " not indexed"),
    ] {
        let all = format!("select name from session{by} order by {order}");
        let done = database.query(&all, &[], &mut |row| {
            names.insert(text(row, 0)?.to_owned());
            Ok(())
        });
        match done {
            Ok(()) => return Ok(names),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if names.is_empty() => Err(error),
        _ => Ok(names),
    }
}

/// The sessions that place, at any time, a unit for which one of the conditions holds.
pub(crate) fn placing(
    database: &mut dyn Database,
    units: &[String],
    glob: &Glob,
) -> Result<Vec<ListedSession>> {
    let mut found = Vec::new();
    for units in units {
        let placed = format!("select p.session_id from placement p where p.unit_id {units}");
        let sql = format!("{LIST} where s.session_id in ({placed})");
        found.extend(collect(database, &sql, &[], listed)?);
    }
    found.retain(|session: &ListedSession| glob.matches(&session.name));
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    found.dedup();
    Ok(found)
}

pub(crate) fn count(database: &mut dyn Database, glob: &Glob) -> Result<usize> {
    if !glob.is_prefix() {
        return Ok(matching_rows(database, LIST, glob, |_| Ok(()))?.len());
    }
    let mut values: Vec<SqlValue<'_>> = vec![glob.prefix().into()];
    let end = glob.end();
    values.extend(end.as_deref().map(SqlValue::from));
    let below = end.as_ref().map_or("", |_| " and name < ?2");
    let sql = format!("select count(*) from session where name >= ?1{below}");
    let count = one_int(database, &sql, &values)?;
    Ok(usize::try_from(count.unwrap_or(0)).unwrap_or(0))
}

const NAMES: i64 = 1_000;

/// Names that begin with the same character, sorted.
pub(crate) fn near(database: &mut dyn Database, name: &str) -> Result<Vec<String>> {
    let first: String = name.chars().take(1).collect();
    let after = after(&first).unwrap_or_default();
    let values = [first.as_str().into(), after.as_str().into(), NAMES.into()];
    let sql = "select name from session where name >= ?1 and name < ?2 order by name limit ?3";
    texts(database, sql, &values)
}

/// The names and sources of the sessions whose name matches, one after the other.
pub(crate) fn origins(
    database: &mut dyn Database,
    glob: &Glob,
    mut each: impl FnMut(&str, Option<&str>),
) -> Result<()> {
    let origins = "select s.session_id, s.name, s.source from session s";
    matching_rows(database, origins, glob, |row| {
        each(text(row, 1)?, row.text(2)?);
        Ok(())
    })?;
    Ok(())
}

/// What `read` makes of the sessions whose name, the second column, matches, in byte order of names.
pub(crate) fn matching_rows<T>(
    database: &mut dyn Database,
    select: &str,
    glob: &Glob,
    read: impl FnMut(&dyn ResultRow) -> Result<T>,
) -> Result<Vec<T>> {
    page_rows(database, select, glob, "", usize::MAX, read)
}

/// As [`matching_rows`], of the first ones whose name is after another.
fn page_rows<T>(
    database: &mut dyn Database,
    select: &str,
    glob: &Glob,
    after: &str,
    limit: usize,
    mut read: impl FnMut(&dyn ResultRow) -> Result<T>,
) -> Result<Vec<T>> {
    let end = glob.end();
    let below = end.as_ref().map_or("", |_| " and s.name < ?3");
    let sql = format!("{select} where s.name >= ?1{below} order by s.name limit ?2");
    // The least name after that one: no name has a control character.
    let mut from = format!("{after}\u{1}").max(glob.prefix().to_owned());
    let mut found = Vec::new();
    loop {
        let batch = match limit - found.len() {
            wanted if glob.is_prefix() => wanted,
            // Few of them may match.
            wanted => wanted.max(NAMES as usize),
        };
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        let mut values: Vec<SqlValue<'_>> = vec![from.as_str().into(), batch.into()];
        values.extend(end.as_deref().map(SqlValue::from));
        let (mut rows, mut last) = (0, String::new());
        database.query(&sql, &values, &mut |row| {
            let name = text(row, 1)?;
            rows += 1;
            last.clear();
            last.push_str(name);
            if found.len() < limit && glob.matches(name) {
                found.push(read(row)?);
            }
            Ok(())
        })?;
        if rows < batch || found.len() >= limit {
            return Ok(found);
        }
        from = last + "\u{1}";
    }
}

/// The least text after all that begin with `prefix`.
fn after(prefix: &str) -> Option<String> {
    let mut end: Vec<char> = prefix.chars().collect();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            end.push(next);
            return Some(end.into_iter().collect());
        }
    }
    None
}

/// Makes a session. Runs inside a transaction that writes.
pub(crate) fn create(
    database: &mut dyn Database,
    name: &str,
    source: Option<&str>,
    parent: Option<(i64, i64)>,
) -> Result<i64> {
    check_name(name)?;
    let now = database.now_ns()?;
    let (parent_id, parent_seq) = parent.unzip();
    let made = first(
        database,
        "insert into session (name, created_at_ns, source, parent_id, parent_seq, changed) \
         values (?1, ?2, ?3, ?4, ?5, 0) on conflict (name) do nothing returning session_id",
        &[
            name.into(),
            now.into(),
            source.into(),
            parent_id.into(),
            parent_seq.into(),
        ],
        |row| int(row, 0),
    )?;
    let session = made.ok_or_else(|| StoreError::Exists(name.to_owned()))?;
    update_session_sum(database, session)?;
    Ok(session)
}

/// Refuses names that no address could say.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let wrong = |why: &str| {
        let name = crate::json::shorten(name);
        let what = format!("the name {name:?} {why}");
        Err(StoreError::Coded(Code::Input, what))
    };
    match name {
        "" => wrong("is empty; a session needs a name, such as `support-42`"),
        _ if name.len() > 1_000 => wrong("has more than 1,000 bytes; give a shorter one"),
        _ if name.chars().any(char::is_control) => wrong("has a control character"),
        _ if name.contains('*') => {
            wrong("has `*`, which means any text in addresses; use another character")
        }
        _ => Ok(()),
    }
}

/// Notes that a session was written, and how it ends.
pub(crate) fn touch(database: &mut dyn Database, session: i64) -> Result<()> {
    touch_all(database, &[(session, None)])
}

/// As [`touch`], of several sessions. A text replaces what a context keeps.
pub(crate) fn touch_all(
    database: &mut dyn Database,
    sessions: &[(i64, Option<&str>)],
) -> Result<()> {
    let update = "update session set changed = changed + 1, runtime = coalesce(?2, runtime), \
         runtime_sum = coalesce(?3, runtime_sum) where session_id = ?1";
    let values = sessions.iter().map(|(session, runtime)| {
        let sum = runtime.map(|runtime| sum(&[runtime.into()]));
        vec![(*session).into(), (*runtime).into(), sum.into()]
    });
    let values: Vec<Vec<SqlValue<'_>>> = values.collect();
    database.query_all(update, &values, &mut |_, _| Ok(()))?;
    let sessions: Vec<i64> = sessions.iter().map(|(session, _)| *session).collect();
    update_session_sums(database, &sessions)
}

/// A pattern of names: `*` is any text, also with `/` (STORE §4).
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
                Some(at) => left = &left[at + part.len()..],
                None => return false,
            }
        }
        left.ends_with(&**last)
    }

    pub(crate) fn prefix(&self) -> &str {
        self.parts.first().map_or("", |first| first)
    }

    /// Whether the beginning of a name decides.
    fn is_prefix(&self) -> bool {
        match &self.parts[..] {
            [] => true,
            [_, rest] => rest.is_empty(),
            _ => false,
        }
    }

    /// The least text after all names that can match, if there is one.
    fn end(&self) -> Option<String> {
        match &self.parts[..] {
            [name] => Some(format!("{name}\u{1}")),
            _ => after(self.prefix()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn a_star_is_any_text() {
        for (glob, name, matches) in [
            ("", "anything/at/all", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("support-*", "support-42", true),
            ("support-*", "support-", true),
            ("support-*", "support-4/2", true),
            ("*/x", "a/x", true),
            ("*/x", "a/b/x", true),
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
