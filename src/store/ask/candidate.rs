//! What a session must have for any of its nodes to match a selector, and the sessions that have it: only these are
//! opened.

use crate::query::ir::{
    Attr, AttrTest, Chain, CompareOp, InnerKind, Literal, NodeStep, Operand, Required,
    SelectorQuery, Test,
};
use crate::query::plan::{Bound, BoundChain, BoundTest, Compare, TextTest};
use crate::query::sql::{Among, Dialect, required_text};
use crate::store::database::sql::{Database, ints};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{ATTR_BY_TEXT, BODY_WITH_NUL, NODE_WITH_NUL, equals};
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::store::texts::build::with_text;
use crate::support::diag::Code;

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

/// Which texts a selector compares otherwise than a column with one of U+0000 allows. No column has such a text: a header
/// or an attribute with one is null, and a tag is missing; only `extra` has it. In a content it is as JSON spells it.
#[derive(Debug, Default)]
struct ComparedTexts {
    contents: bool,
    headers: bool,
    /// Whether a kind is a text, which the type says where no kind is stored.
    kinds: bool,
}

impl ComparedTexts {
    fn from_query(query: &SelectorQuery) -> Self {
        let mut texts = Self::default();
        query.chains.iter().for_each(|chain| texts.add_chain(chain));
        query.filters.iter().for_each(|test| texts.add(test));
        texts
    }

    fn add_chain(&mut self, chain: &Chain) {
        let nodes = chain.steps.iter().filter_map(|(_, step)| step.node());
        nodes
            .flat_map(NodeStep::all_tests)
            .for_each(|test| self.add(test));
    }

    fn add(&mut self, test: &Test) {
        if let Some(inner) = test.inner() {
            // A call and its result have the same text.
            self.headers |= matches!(inner.kind, InnerKind::HasCall | InnerKind::HasResult);
            inner.any.iter().for_each(|chain| self.add_chain(chain));
        }
        let Some(test) = test.attr() else { return };
        match &test.attr {
            Attr::Content => self.contents = true,
            Attr::Kind if is_text(test) => self.kinds = true,
            // A null column is not the text.
            Attr::Role | Attr::Key | Attr::StoredKind | Attr::CreatedAtIso | Attr::Tags => {
                self.headers |= !is_text(test);
            }
            Attr::Kind | Attr::NodeType | Attr::StoredType => self.headers = true,
            Attr::Custom(_) => self.headers |= !matches!(test.op, CompareOp::Eq | CompareOp::Ne),
            _ => {}
        }
    }
}

/// Whether a test holds for one text, or some.
fn is_text(test: &AttrTest) -> bool {
    let is_null = |operand: &Operand| *operand == Operand::Literal(Literal::Null);
    let has_null = match &test.operand {
        Operand::List(operands) => operands.iter().any(is_null),
        operand => is_null(operand),
    };
    test.op == CompareOp::Eq && !has_null
}

/// The sessions for which the statement of a selector does not answer.
#[derive(Debug)]
pub(crate) struct Misread {
    /// In byte order of names.
    pub(crate) sessions: Vec<ListedSession>,
    /// A query of their numbers, and of some that the pattern of names leaves out.
    numbers: String,
}

impl Misread {
    /// The statement is for the others.
    pub(crate) fn leave_out(&self, among: Option<String>) -> Among {
        let others = &self.numbers;
        match among {
            Some(among) => Among::Only(format!(
                "select m.session_id from ({among}) m where m.session_id not in ({others})"
            )),
            None => Among::AllBut(others.clone()),
        }
    }

    /// Why a statement alone does not answer.
    pub(crate) fn refused(&self) -> StoreError {
        let (first, more) = match &self.sessions[..] {
            [] => ("", 0),
            [first, more @ ..] => (&*first.name, more.len()),
        };
        let mut what = format!("the session `{first}`");
        if more > 0 {
            what.push_str(&format!(" and {more} more"));
        }
        what.push_str(" has a text with U+0000, which no statement reads");
        StoreError::Coded(Code::Sql, what)
    }
}

/// The sessions that have, at any time, a text with U+0000 where a selector compares one: a statement would take it for
/// another text, or for none. `None` if no session has. Linear in the rows with such a text, which indexes find.
pub(crate) fn misread(
    database: &mut dyn Database,
    query: &SelectorQuery,
    dialect: Dialect,
    glob: &Glob,
) -> Result<Option<Misread>> {
    misread_texts(database, &ComparedTexts::from_query(query), dialect, glob)
}

/// The sessions that have, at any time, a header, a tag or an attribute with U+0000, in byte order of names.
pub(crate) fn misread_headers(
    database: &mut dyn Database,
    dialect: Dialect,
    glob: &Glob,
) -> Result<Vec<ListedSession>> {
    let headers = ComparedTexts {
        headers: true,
        ..ComparedTexts::default()
    };
    let misread = misread_texts(database, &headers, dialect, glob)?;
    Ok(misread.map(|misread| misread.sessions).unwrap_or_default())
}

fn misread_texts(
    database: &mut dyn Database,
    compared: &ComparedTexts,
    dialect: Dialect,
    glob: &Glob,
) -> Result<Option<Misread>> {
    let mut units = Vec::new();
    if compared.headers || compared.kinds {
        let column = dialect.has_nul("extra");
        let mut condition = format!("{NODE_WITH_NUL} and {column}");
        if !compared.headers {
            condition.push_str(" and kind is null and type_sub is not null");
        }
        units.extend(numbers(database, "unit_id", "node", &condition)?);
    }
    if compared.contents {
        let condition = format!("{BODY_WITH_NUL} and {}", dialect.has_nul("text"));
        let bodies = numbers(database, "body_id", "body", &condition)?;
        units.extend(
            bodies.map(|bodies| format!("select unit_id from node where body_id in ({bodies})")),
        );
    }
    if units.is_empty() {
        return Ok(None);
    }
    let conditions: Vec<String> = units.iter().map(|units| format!("in ({units})")).collect();
    let sessions = catalog::placing(database, &conditions, glob)?;
    let conditions = conditions.iter().map(|units| format!("p.unit_id {units}"));
    let conditions: Vec<String> = conditions.collect();
    let numbers = format!(
        "select p.session_id from placement p where {}",
        conditions.join(" or ")
    );
    Ok((!sessions.is_empty()).then_some(Misread { sessions, numbers }))
}

/// The numbers in a column of some rows, or the query of them if they are too many; `None` if there is no row.
fn numbers(
    database: &mut dyn Database,
    column: &str,
    table: &str,
    condition: &str,
) -> Result<Option<String>> {
    let query = format!("select {column} from {table} where {condition}");
    let found = ints(database, &format!("{query} limit {}", NAMED + 1), &[])?;
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    Ok(match found.len() {
        0 => None,
        1..=NAMED => Some(found.join(", ")),
        _ => Some(query),
    })
}

/// At most this many rows are named in a statement.
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
