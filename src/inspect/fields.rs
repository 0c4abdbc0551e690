//! The vocabulary of sessions: which attributes their nodes have, with which values, and which tools there are
//! (INSPECT §4, `fields`).

use super::groups::call_name;
use crate::history::Session;
use crate::index::{NodeRef, Snapshot};
use crate::json::{JsonValue, elements};
use crate::query::ir::{Attr, InnerKind, headers, normal_type};
#[cfg(feature = "store")]
use crate::store::{Store, Word};
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use crate::support::table::{Paint, TextTable, Tint};
use crate::support::text::{amount, clean, counted, printable};
use hashbrown::HashSet;
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The headers whose values are words, in the order of a report.
const WORDS: [&str; 5] = ["nodeType", "kind", "role", "key", "tags"];

/// What the nodes of any number of sessions have. A node of several snapshots counts once a session, with every
/// value that it had.
///
/// ```
/// use pactql::Session;
/// use pactql::inspect::Fields;
/// let mut fields = Fields::default();
/// fields.add(&Session::open("fixtures/greenhouse.jsonl")?)?;
/// let report = fields.report();
/// let role = report.fields.iter().find(|field| field.name == "role").expect("roles");
/// assert!(role.values.iter().any(|value| value.value == "user"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fields {
    sessions: u64,
    nodes: u64,
    fields: BTreeMap<String, Counted>,
    tools: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    nodes: u64,
    values: BTreeMap<String, u64>,
}

/// The vocabulary of sessions, from [`Fields::report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldsReport {
    /// How many sessions were read.
    pub sessions: u64,
    /// How many nodes they have, each once a session.
    pub nodes: u64,
    /// `nodeType`, `kind`, `role`, `key`, `tags`, as far as a node has one, then custom attributes by name.
    pub fields: Vec<Field>,
    /// The tools that were defined or called, each with the number of its calls; most calls first, then by name.
    pub tools: Vec<FieldValue>,
    /// Further attributes that a selector can ask for.
    pub headers: Vec<&'static str>,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Field {
    /// Its name in selectors.
    pub name: String,
    /// How many nodes have it.
    pub nodes: u64,
    /// Its values: texts of up to 100 characters, numbers, booleans and the elements of lists; most nodes first, then in
    /// order of their text.
    pub values: Vec<FieldValue>,
}

/// A value of an attribute, or a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldValue {
    /// The value: a text as it is, in quotes if it reads as a number; a number or boolean as in JSON.
    pub value: String,
    /// How many nodes have it, or call the tool.
    pub nodes: u64,
}

impl Fields {
    /// Adds all snapshots of a session, and its working state. Linear in the versions of its units.
    ///
    /// # Errors
    /// A snapshot of a store cannot be loaded.
    pub fn add(&mut self, session: &Session) -> Result<(), Error> {
        let history = session.history();
        history.fetch_all()?;
        let mut seen = Seen::default();
        for snapshot in history.committed().iter().chain(history.working()) {
            seen.read(snapshot, self);
        }
        self.sessions += 1;
        Ok(())
    }

    /// Adds a snapshot alone, as a session. Linear in it.
    pub fn add_snapshot(&mut self, snapshot: &Snapshot) {
        Seen::default().read(snapshot, self);
        self.sessions += 1;
    }

    /// Adds the sessions of a store whose name matches `glob`, in which `*` is any text; an empty one matches all. Asks
    /// the database, and loads no session but those with a word with U+0000. Returns how many they are.
    ///
    /// # Errors
    /// Those of the database.
    #[cfg(feature = "store")]
    pub fn add_store(&mut self, store: &Store, glob: &str) -> Result<usize, Error> {
        let (sessions, others) = store.words(glob, |word| match word {
            Word::Nodes(count) => {
                self.nodes += count;
                self.field("nodeType").nodes += count;
            }
            Word::Type(name, count) => self.field("nodeType").add(&normal_type(name), count),
            Word::Field(name, count) if is_listed(name) => self.field(name).nodes += count,
            Word::Text(name, text, count) if is_listed(name) => {
                self.field(name).add(&written(text), count);
            }
            Word::Value(name, value, count) if is_listed(name) => {
                self.field(name).add(value, count);
            }
            Word::Field(..) | Word::Text(..) | Word::Value(..) => {}
            Word::Tool(name, calls) => *self.tools.entry(name.to_owned()).or_default() += calls,
        })?;
        self.sessions += sessions as u64;
        for name in &others {
            self.add(&*store.session(name)?)?;
        }
        Ok(sessions + others.len())
    }

    /// What was found so far.
    #[must_use]
    pub fn report(&self) -> FieldsReport {
        let place = |name: &str| WORDS.iter().position(|known| *known == name);
        let mut fields: Vec<Field> = self
            .fields
            .iter()
            .map(|(name, counted)| Field {
                name: name.clone(),
                nodes: counted.nodes,
                values: sorted(&counted.values),
            })
            .collect();
        fields.sort_by_key(|field| place(&field.name).unwrap_or(WORDS.len()));
        FieldsReport {
            sessions: self.sessions,
            nodes: self.nodes,
            fields,
            tools: sorted(&self.tools),
            headers: headers()
                .chain(["depth", "age"])
                .filter(|name| place(name).is_none() && Attr::from_name(name).name() == *name)
                .collect(),
        }
    }

    fn field(&mut self, name: &str) -> &mut Counted {
        self.fields.entry(name.to_owned()).or_default()
    }
}

impl Counted {
    fn add(&mut self, value: &str, nodes: u64) {
        *self.values.entry(value.to_owned()).or_default() += nodes;
    }
}

/// The longest text that counts as a value, in characters. Longer ones are counted as present alone.
const LONGEST: usize = 100;

/// A text as a selector would write it: as it is, unless that would be read as a number or as null.
fn written(text: &str) -> Cow<'_, str> {
    if text.parse::<f64>().is_ok() || text == "null" {
        format!("'{text}'").into()
    } else {
        text.into()
    }
}

/// Whether a report lists an attribute of this name: a header with words, or a custom attribute.
#[cfg(feature = "store")]
fn is_listed(name: &str) -> bool {
    WORDS.contains(&name) || matches!(Attr::from_name(name), Attr::Custom(_))
}

fn sorted(values: &BTreeMap<String, u64>) -> Vec<FieldValue> {
    let values = values.iter().map(|(value, nodes)| FieldValue {
        value: value.clone(),
        nodes: *nodes,
    });
    let mut values: Vec<FieldValue> = values.collect();
    values.sort_by_key(|value| Reverse(value.nodes));
    values
}

/// What was counted of one session.
#[derive(Default)]
struct Seen<'a> {
    units: HashSet<u64>,
    nodes: HashSet<&'a str>,
    fields: HashSet<(&'a str, &'a str)>,
    values: HashSet<(&'a str, &'a str, Cow<'a, str>)>,
    calls: HashSet<(&'a str, String)>,
}

impl<'a> Seen<'a> {
    fn read(&mut self, snapshot: &'a Snapshot, into: &mut Fields) {
        for unit in snapshot.units().inspect(|_| ensure()) {
            // Of a unit that lost rows, what it has left is read again if those were not.
            if unit.dead_rows().next().is_none() && !self.units.insert(unit.version()) {
                continue;
            }
            unit.nodes().for_each(|node| self.node(node, into));
        }
    }

    fn node(&mut self, node: NodeRef<'a>, into: &mut Fields) {
        let id = node.id();
        into.nodes += u64::from(self.nodes.insert(id));
        self.value(
            id,
            "nodeType",
            Some(normal_type(node.type_or_class())),
            into,
        );
        let sub = || node.node_type()?.split_once(':').map(|(_, sub)| sub);
        let texts = [
            ("kind", node.kind().or_else(sub)),
            ("role", node.role()),
            ("key", node.key()),
        ];
        for (name, text) in texts {
            if text.is_some() {
                self.value(id, name, text.map(written), into);
            }
        }
        if let Some(tags) = node.tags() {
            self.all(id, "tags", tags, into);
        }
        for (name, value) in node.fields() {
            if matches!(Attr::from_name(name), Attr::Custom(_)) && !value.is_null() {
                self.all(id, name, value, into);
            }
        }
        let tool = match node.kind() {
            Some("call") => call_name(node).map(|name| (name, 1)),
            Some("tool") => node.key().map(|name| (name.to_owned(), 0)),
            _ => None,
        };
        if let Some((name, calls)) = tool
            && self.calls.insert((id, name.clone()))
        {
            *into.tools.entry(name).or_default() += calls;
        }
    }

    fn all(&mut self, id: &'a str, name: &'a str, value: JsonValue<'a>, into: &mut Fields) {
        let JsonValue::List(items) = value else {
            return self.value(id, name, text_of(value), into);
        };
        self.value(id, name, None, into);
        let mut decoded = String::new();
        for item in elements(items) {
            let text = text_of(JsonValue::read(item, &mut decoded)).map(Cow::into_owned);
            if let Some(text) = text {
                self.value(id, name, Some(text.into()), into);
            }
        }
    }

    fn value(
        &mut self,
        id: &'a str,
        name: &'a str,
        value: Option<Cow<'a, str>>,
        into: &mut Fields,
    ) {
        let is_new = self.fields.insert((id, name));
        let known = into.field(name);
        known.nodes += u64::from(is_new);
        if let Some(value) = value
            && value.chars().nth(LONGEST).is_none()
            && self.values.insert((id, name, value.clone()))
        {
            known.add(&value, 1);
        }
    }
}

/// A text, number or boolean as it is listed.
fn text_of(value: JsonValue<'_>) -> Option<Cow<'_, str>> {
    match value {
        JsonValue::Text(text) => Some(written(text)),
        JsonValue::Number(number) => Some(number.into()),
        JsonValue::Bool(flag) => Some(if flag { "true" } else { "false" }.into()),
        _ => None,
    }
}

/// How many values of an attribute are shown, and how much of each.
const SHOWN: usize = 6;
const BEGINNING: usize = 30;

impl FieldsReport {
    /// The report as a table. Every line ends in a line feed.
    #[must_use]
    pub fn text(&self, paint: Paint) -> String {
        let title = format!(
            "{}, {}",
            counted(self.sessions, "session"),
            counted(self.nodes, "node")
        );
        let mut out = paint.tint(Tint::Place, &title) + "\n";
        let mut table = TextTable::new(["attribute", "nodes", "values"]).words([0, 2]);
        for field in &self.fields {
            let cells = [
                printable(&field.name),
                amount(field.nodes),
                listed(&field.values),
            ];
            table.add(cells);
        }
        if !self.tools.is_empty() {
            let calls = self.tools.iter().map(|tool| tool.nodes).sum();
            table.add(["(tools)".to_owned(), amount(calls), listed(&self.tools)]);
        }
        out.push_str(&table.text(paint));
        let _ = writeln!(out, "and {}", self.headers.join(" "));
        out
    }
}

/// The first values with their numbers of nodes, and how many more there are.
fn listed(values: &[FieldValue]) -> String {
    let shown = values.iter().take(SHOWN);
    let shown = shown.map(|one| {
        let (value, nodes) = (clean(&one.value, BEGINNING), amount(one.nodes));
        format!("{value} {nodes}×")
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = values.len().checked_sub(SHOWN) {
        let _ = write!(text, " and {} more", amount(more as u64));
    }
    text
}

/// The roots, and the classes with their other names.
const ROOTS: [&str; 4] = ["^sys", "^seq", "^ah", "^root"];
const CLASSES: [&str; 6] = ["cb", "mt", "mc", "block", "seg", "cont"];

/// How many completions are proposed.
const PROPOSED: usize = 200;

impl FieldsReport {
    /// What the beginning of a selector can go on with: each proposal is all of the text up to there. Attributes after
    /// `[`, `{` and a comma in brackets, values behind a comparison, roots after `^`, types after `.`, keys after `#`, tags
    /// after `+`; nothing elsewhere. The values of most nodes come first, at most 200.
    #[must_use]
    pub fn complete(&self, typed: &str) -> Vec<String> {
        let Some((from, found)) = self.proposals(typed) else {
            return Vec::new();
        };
        let (before, begun) = typed.split_at(from);
        // A quote that is open was meant for any text.
        let plain = begun.trim_start_matches(['\'', '"']);
        let fits = |word: &&String| {
            word.starts_with(begun) || word.trim_start_matches('\'').starts_with(plain)
        };
        let fitting = found.iter().filter(fits).take(PROPOSED);
        fitting.map(|word| format!("{before}{word}")).collect()
    }

    /// Where the word at the end of `typed` begins, and which may stand there.
    fn proposals(&self, typed: &str) -> Option<(usize, Vec<String>)> {
        let place = Place::at_end(typed);
        let begun = typed.get(place.from..)?;
        let prefixed = |sign: &str, words: &mut dyn Iterator<Item = &str>| {
            words.map(|word| format!("{sign}{word}")).collect()
        };
        let values = |name: &str| {
            let field = self.fields.iter().find(|field| field.name == name);
            field.map_or(&[][..], |field| &field.values)
        };
        let words = |name: &str, sign: &str| {
            let values = values(name)
                .iter()
                .map(|value| value.value.trim_matches('\''));
            values
                .map(|value| format!("{sign}{}", bare(value)))
                .collect()
        };
        let found = match (place.closing, begun.chars().next()) {
            (Some(closing), _) if let Some(name) = place.name => {
                let values = values(header(name)).iter();
                let values = values.map(|value| literal(&value.value) + closing);
                values.collect()
            }
            (Some(closing), _) => {
                let known = self.fields.iter().map(|field| &*field.name);
                let others = WORDS.iter().chain(&self.headers).copied();
                let others = others.filter(|name| values(name).is_empty());
                // Two for each, so that a shell does not end the word.
                let both = known
                    .chain(others)
                    .flat_map(|name| ["=", closing].map(|end| format!("{name}{end}")));
                both.collect()
            }
            (None, Some('^')) => prefixed("", &mut ROOTS.into_iter()),
            (None, Some('.')) => {
                let is_word = |value: &&str| value.starts_with(|first: char| first.is_alphabetic());
                let stored = values("nodeType").iter().map(|value| &*value.value);
                let stored = stored
                    .filter(is_word)
                    .filter(|value| !CLASSES.contains(value));
                prefixed(".", &mut CLASSES.into_iter().chain(stored))
            }
            (None, Some('#')) => words("key", "#"),
            (None, Some('+')) => words("tags", "+"),
            _ => return None,
        };
        Some((place.from, found))
    }
}

/// The name under which the values of an attribute are listed.
fn header(name: &str) -> &str {
    match name {
        "type" => "nodeType",
        "tag" => "tags",
        _ => name,
    }
}

/// A word after `#` or `+`, in quotes where it needs them.
fn bare(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", escaped(word))
    }
}

/// A listed value as a literal in single quotes, a number as it is.
fn literal(value: &str) -> String {
    if value.parse::<f64>().is_ok() {
        return value.to_owned();
    }
    let quoted = value
        .strip_prefix('\'')
        .and_then(|value| value.strip_suffix('\''));
    format!("'{}'", escaped(quoted.unwrap_or(value)))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// Where in a selector a text ends.
struct Place<'t> {
    /// Where the word begins that is being typed.
    from: usize,
    /// What closes the properties around it, nothing for a list of values; `None` outside of properties.
    closing: Option<&'static str>,
    /// The attribute that the word is compared with.
    name: Option<&'t str>,
}

impl<'t> Place<'t> {
    fn at_end(typed: &'t str) -> Self {
        let mut place = Self {
            from: 0,
            closing: None,
            name: None,
        };
        // What closes each open bracket, as in `closing`.
        let mut open: Vec<Option<&'static str>> = Vec::new();
        let (mut quote, mut name_from) = (None, 0);
        for (at, letter) in typed.char_indices() {
            let next = at + letter.len_utf8();
            let before = typed.get(..at).unwrap_or_default();
            match (quote, letter) {
                (Some(mark), _) => quote = Some(mark).filter(|mark| *mark != letter),
                (None, '\'' | '"') => quote = Some(letter),
                (None, '[' | '{' | '(') => {
                    let word = before.rsplit(':').next().unwrap_or_default();
                    let is_condition = before.contains(':') && InnerKind::parse(word).is_some();
                    open.push(match letter {
                        // A list of values is compared with the same name.
                        _ if place.name.is_some() => Some(""),
                        '(' if is_condition => None,
                        '(' => Some(")"),
                        '{' => Some("}"),
                        _ => Some("]"),
                    });
                    (place.from, name_from) = (next, next);
                }
                (None, ']' | '}' | ')') => {
                    open.pop();
                    (place.from, place.name) = (next, None);
                }
                (None, '=' | '<' | '>' | '~' | '!') if place.closing.is_some() => {
                    let typed = typed.get(name_from..at).unwrap_or_default().trim();
                    let typed = Some(typed).filter(|typed| !typed.is_empty());
                    place.name = place.name.or(typed);
                    place.from = next;
                }
                (None, ',' | ' ') => {
                    place.from = next;
                    if place.closing != Some("") && letter == ',' {
                        (place.name, name_from) = (None, next);
                    }
                }
                (None, '.' | '#' | '+' | '^') if place.closing.is_none() => place.from = at,
                _ => {}
            }
            place.closing = open.last().copied().flatten();
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use crate::history::Session;

    #[test]
    fn the_beginning_of_a_selector_goes_on_with_the_words_of_the_session() {
        let mut fields = Fields::default();
        for line in [
            r#"{"root":{"id":"r","children":[{"id":"a","nodeType":"cb","role":"user","kind":"text","key":"first ask","tags":["hot","new"],"data_n":5,"data_t":"5"}]}}"#,
            r#"{"root":{"id":"r","children":[{"id":"a","nodeType":"cb:note","role":"assistant","key":"ask","data_ok":true}]}}"#,
        ] {
            let session = Session::from_slice(line.as_bytes()).expect("a session");
            fields.add(&session).expect("memory");
        }
        let report = fields.report();
        for (typed, expected) in [
            ("@t0 .cb[ro", "@t0 .cb[role=|@t0 .cb[role]"),
            (
                "@t0 .cb[role=",
                "@t0 .cb[role='assistant']|@t0 .cb[role='user']",
            ),
            ("@t0 .cb[role='u", "@t0 .cb[role='user']"),
            ("[role!=as", "[role!='assistant']"),
            ("[role=[user, a", "[role=[user, 'assistant'"),
            (
                "[role=user, data_n",
                "[role=user, data_n=|[role=user, data_n]",
            ),
            ("[data_n=", "[data_n=5]"),
            ("[data_t=", "[data_t='5']"),
            ("[data_ok=t", "[data_ok='true']"),
            (
                "[role='user'][key=",
                "[role='user'][key='ask']|[role='user'][key='first ask']",
            ),
            (".cb {tags=h", ".cb {tags='hot'}"),
            (".cb(role=u", ".cb(role='user')"),
            ("#", "#ask|#'first ask'"),
            ("^seq .cb +n", "^seq .cb +new"),
            ("^se", "^seq"),
            (".cb:n", ".cb:note"),
            (".mt:has(.cb:n", ".mt:has(.cb:note"),
            (".mt:has(.cb[kind='n", ".mt:has(.cb[kind='note']"),
            (".mt:not([rol", ".mt:not([role=|.mt:not([role]"),
            ("[content~'a[", ""),
            ("[nothing=", ""),
            ("@t0 ", ""),
            ("", ""),
        ] {
            let found: Vec<String> = report.complete(typed).into_iter().take(6).collect();
            assert_eq!(found.join("|"), expected, "{typed}");
        }
    }
}
