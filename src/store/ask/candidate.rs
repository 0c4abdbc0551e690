//! What a session must have for any of its nodes to match a selector, and the sessions that have it: only these are
//! opened.

use crate::query::ir::{Attr, Required, SelectorQuery};
use crate::query::plan::{Bound, BoundChain, BoundTest, Compare, TextTest};
use crate::query::sql::{Dialect, required_text};
use crate::store::database::sql::{Database, ints};
use crate::store::error::Result;
use crate::store::layout::schema::{ATTR_BY_TEXT, equals};
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::store::texts::build::with_text;

/// What a selector requires of the units of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionCandidate {
    /// One of the units that a query finds.
    Units(String),
    /// A text in one of its contents.
    Text(Required),
}

/// One for each chain, any of which must hold; `None` if a chain requires nothing that is indexed.
pub(crate) fn candidate(bound: &Bound, dialect: Dialect) -> Option<Vec<SessionCandidate>> {
    let chains = bound.chains.iter();
    chains.map(|chain| of_chain(chain, dialect)).collect()
}

/// The most selective requirement of a chain: a node of an id, a text of a custom attribute, a key, what a pattern must
/// find in a content.
fn of_chain(chain: &BoundChain, dialect: Dialect) -> Option<SessionCandidate> {
    let units = |table: &str, condition: &str| {
        SessionCandidate::Units(format!("select unit_id from {table} where {condition}"))
    };
    // No statement has a text with U+0000.
    let literal = |text: &str| (!text.contains('\0')).then(|| dialect.text(text));
    let node = |column: &str, text: &str| {
        let equal = equals(column, text).replace("?1", &literal(text)?);
        Some(units("node", &equal))
    };
    let ids = chain.filters().filter_map(|filter| filter.id.as_deref());
    if let Some(id) = ids.last() {
        return node("id", id);
    }
    let tests = || {
        let tests = chain.filters().flat_map(|filter| &filter.tests);
        tests.filter_map(|test| match test {
            BoundTest::Attr(condition) => Some((&condition.attr, &condition.compare)),
            _ => None,
        })
    };
    let value = tests().find_map(|test| match test {
        (Attr::Custom(name), Compare::Value(test)) => {
            let text = test
                .only()
                .filter(|text| is_indexed(text) && name.len() <= 200)?;
            let (name, text) = (literal(name)?, literal(text)?);
            let equal = format!("name = {name} and text = {text} and {ATTR_BY_TEXT}");
            Some(units("attr", &equal))
        }
        _ => None,
    });
    let key = || {
        tests().find_map(|test| match test {
            (
                Attr::Key,
                Compare::Text(TextTest::In {
                    texts,
                    null: false,
                    negated: false,
                }),
            ) => {
                let [key] = &texts[..] else { return None };
                node("key", key)
            }
            _ => None,
        })
    };
    let text = || {
        let mut patterns = tests().filter_map(|test| match test {
            (Attr::Content, Compare::Value(test)) => test.pattern_text(),
            _ => None,
        });
        let found = patterns.find_map(|pattern| Required::from_pattern(&pattern));
        found.map(SessionCandidate::Text)
    };
    value.or_else(key).or_else(text)
}

/// Whether a header that is missing, or differs from a text, can match. A column is null also where a header has U+0000,
/// which no column holds, so a statement would take it for a missing one.
pub(crate) fn reads_missing(bound: &Bound) -> bool {
    let filters = bound.chains.iter().flat_map(BoundChain::filters);
    let mut tests = filters.flat_map(|filter| &filter.tests);
    tests.any(|test| match test {
        BoundTest::Attr(condition) => matches!(
            &condition.compare,
            Compare::Text(TextTest::In { null, negated, .. }) if *null || *negated
        ),
        _ => false,
    })
}

/// Whether an index has this text, and only texts of nodes equal it: not a number, not a truth value, not long.
fn is_indexed(text: &str) -> bool {
    let number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    !number && !matches!(text, "true" | "false" | "null") && text.len() <= 200
}

/// The sessions that have what is required, at any time, in byte order of names; `None` if that takes a text index, and there
/// is none. Linear in the nodes that have it, in all sessions, and in the units that the text index does not have.
pub(crate) fn candidates(
    database: &mut dyn Database,
    wanted: &[SessionCandidate],
    glob: &Glob,
) -> Result<Option<Vec<ListedSession>>> {
    let mut units = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        match wanted {
            SessionCandidate::Units(query) => units.push(format!("in ({query})")),
            SessionCandidate::Text(required) => match with_text(database, required)? {
                Some(found) => units.extend(found),
                None => return Ok(None),
            },
        }
    }
    catalog::placing(database, &units, glob).map(Some)
}

/// A condition for the units that may have a text with what is required, for a store without a text index. It searches
/// the columns that texts are sent from. `None` if no word that is required is in a column as it is sent. Linear in all
/// texts.
pub(crate) fn written(required: &Required, dialect: Dialect) -> Option<String> {
    let mut parts = words(required)?;
    // Other letters that fold to one of ASCII.
    for (letter, others) in [('i', "ı"), ('k', "\u{212A}"), ('s', "ſ")] {
        if parts.iter().any(|part| part.contains(letter)) {
            parts.push(others);
        }
    }
    let any = |column: &str, parts: &[&str]| {
        let like = match dialect {
            Dialect::Sqlite => "like",
            // Of ASCII alone, whatever the language of the server.
            _ => "collate \"C\" ilike",
        };
        let each = parts.iter().map(|part| {
            let pattern = dialect.text(&format!("%{part}%"));
            format!("{column} {like} {pattern} escape '!'")
        });
        each.collect::<Vec<String>>().join(" or ")
    };
    let [text, key, extra] = ["text", "key", "extra"].map(|column| any(column, &parts));
    // JSON may spell any letter by its number.
    let [text_escapes, extra_escapes] = ["text", "extra"].map(|column| any(column, &[r"\u"]));
    Some(format!(
        "in (select unit_id from node where body_id in \
         (select body_id from body where {text} or json and {text_escapes}) \
         or {key} or {extra} or {extra_escapes} union all select unit_id from attr where {text})"
    ))
}

/// Words of ASCII letters and digits: each text with what is required has one of them. `None` if what is required has no
/// word of three letters or more.
fn words(required: &Required) -> Option<Vec<&str>> {
    match required {
        Required::Text(text) => {
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
            // A number is sent in canonical spelling, and a call without a name as `unknown`.
            let is_stored = |word: &&str| {
                word.contains(|letter: char| letter.is_ascii_lowercase() && letter != 'e')
                    && !"unknown".contains(word)
            };
            let longest = words.filter(is_stored).max_by_key(|word| word.len());
            longest
                .filter(|word| word.len() >= 3)
                .map(|word| vec![word])
        }
        Required::Any(any) => {
            let all: Option<Vec<Vec<&str>>> = any.iter().map(words).collect();
            all.map(|all| all.concat())
        }
        Required::All(all) => {
            let each = all.iter().filter_map(words);
            each.max_by_key(|words| words.iter().map(|word| word.len()).min())
        }
    }
}

/// At most this many sessions are named in a statement.
const NAMED: usize = 512;

/// A query of the numbers of the sessions that can match at all, for the statement of a selector: those that an index
/// finds, or, of a test of texts, those that have such a text, if they are few. The text index leads to them if there is
/// one. Where they are not known, the statement reads every session. Linear in what the index finds, or in the texts.
pub(crate) fn among(
    database: &mut dyn Database,
    bound: &Bound,
    query: &SelectorQuery,
    dialect: Dialect,
) -> Result<Option<String>> {
    if let Some(wanted) = candidate(bound, dialect) {
        let placed = wanted.iter().map(|wanted| match wanted {
            SessionCandidate::Units(query) => Some(format!(
                "select distinct p.session_id from placement p where p.unit_id in ({query})"
            )),
            SessionCandidate::Text(_) => None,
        });
        if let Some(placed) = placed.collect::<Option<Vec<_>>>() {
            return Ok(Some(placed.join(" union ")));
        }
        if let Some(found) = candidates(database, &wanted, &Glob::new(""))? {
            return Ok(named(found.iter().map(|listed| listed.session)));
        }
    }
    let Some(condition) = required_text(query, dialect) else {
        return Ok(None);
    };
    // The texts come first, wherever they are: most are in one place.
    let cross = if dialect == Dialect::Sqlite {
        "cross join"
    } else {
        "join"
    };
    let sql = format!(
        "select distinct p.session_id from body b {cross} node n on n.body_id = b.body_id \
         {cross} placement p on p.unit_id = n.unit_id where {condition} limit {}",
        NAMED + 1
    );
    Ok(named(ints(database, &sql, &[])?.into_iter()))
}

/// A query of these sessions; `None` if they are too many.
fn named(sessions: impl ExactSizeIterator<Item = i64>) -> Option<String> {
    if sessions.len() > NAMED {
        return None;
    }
    let numbers: Vec<String> = sessions.map(|number| number.to_string()).collect();
    Some(match &*numbers.join(", ") {
        "" => "select session_id from session where false".to_owned(),
        numbers => format!("select session_id from session where session_id in ({numbers})"),
    })
}
