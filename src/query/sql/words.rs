//! Conditions, and the text of a statement as it is put together. It must not know selectors.

use std::fmt::{self, Display, Formatter};

use hashbrown::HashMap;

/// More conditions than this are put in groups: an expression may be only so deep.
const WIDE: usize = 100;

/// More tables in a union than this are put in groups.
const MANY: usize = 30;

pub(super) fn all(conditions: impl IntoIterator<Item = String>) -> String {
    settled(conditions, "and", ["true", "false"])
}

pub(super) fn any(conditions: impl IntoIterator<Item = String>) -> String {
    settled(conditions, "or", ["false", "true"])
}

/// Joins conditions: `neutral` changes nothing, and one that is `decisive` is the whole.
fn settled(
    conditions: impl IntoIterator<Item = String>,
    word: &str,
    [neutral, decisive]: [&str; 2],
) -> String {
    let mut conditions: Vec<String> = conditions.into_iter().collect();
    if conditions.iter().any(|condition| condition == decisive) {
        return decisive.to_owned();
    }
    conditions.retain(|condition| condition != neutral);
    join(conditions, word, neutral)
}

fn join(conditions: Vec<String>, word: &str, none: &str) -> String {
    if let [one] = &conditions[..] {
        return one.clone();
    }
    if conditions.is_empty() {
        return none.to_owned();
    }
    if conditions.len() > WIDE {
        // `is true` keeps an engine from taking the groups apart again.
        let groups = conditions.chunks(WIDE);
        let groups = groups.map(|group| format!("{} is true", join(group.to_vec(), word, none)));
        return join(groups.collect(), word, none);
    }
    format!("({})", conditions.join(&format!(" {word} ")))
}

/// The complement of a condition that may be unknown, which counts as false.
pub(super) fn complement(condition: &str) -> String {
    match condition {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        condition => format!("not coalesce({condition}, false)"),
    }
}

/// One `select`.
#[derive(Clone, Debug, Default)]
pub(super) struct SelectQuery {
    pub(super) distinct: bool,
    pub(super) columns: Vec<String>,
    /// The first table, and the joins after it, each a line.
    pub(super) from: Vec<String>,
    pub(super) filters: Vec<String>,
    /// What ends it: `group by …`, `order by …`.
    end: Vec<String>,
}

impl SelectQuery {
    pub(super) fn new(columns: impl Into<String>) -> Self {
        Self {
            columns: vec![columns.into()],
            ..Self::default()
        }
    }

    pub(super) fn and(mut self, columns: impl Into<String>) -> Self {
        self.columns.push(columns.into());
        self
    }

    /// Adds a table, or a join to those before it.
    pub(super) fn from(mut self, table: impl Into<String>) -> Self {
        self.from.push(table.into());
        self
    }

    pub(super) fn only(mut self, condition: impl Into<String>) -> Self {
        self.add_filter(condition);
        self
    }

    pub(super) fn end(mut self, end: impl Into<String>) -> Self {
        self.end.push(end.into());
        self
    }

    pub(super) fn add_filter(&mut self, condition: impl Into<String>) {
        let condition = condition.into();
        if condition != "true" {
            self.filters.push(condition);
        }
    }

    /// Writes it, each line after the first with this before it. A literal may have lines of its own, which
    /// stay as they are.
    fn write(&self, f: &mut Formatter<'_>, indent: &str) -> fmt::Result {
        let distinct = if self.distinct { "distinct " } else { "" };
        write!(f, "select {distinct}{}", self.columns.join(", "))?;
        for (index, line) in self.from.iter().enumerate() {
            let before = if index == 0 { "from" } else { " " };
            write!(f, "\n{indent}{before} {line}")?;
        }
        let grouped = (self.filters.len() > WIDE).then(|| vec![all(self.filters.clone())]);
        let filters = grouped.as_ref().unwrap_or(&self.filters);
        for (index, line) in filters.iter().enumerate() {
            let before = if index == 0 { "where" } else { "  and" };
            write!(f, "\n{indent}{before} {line}")?;
        }
        for line in &self.end {
            write!(f, "\n{indent}{line}")?;
        }
        Ok(())
    }
}

impl Display for SelectQuery {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, "")
    }
}

/// Common table expressions, in order: each reads only those before it.
#[derive(Debug, Default)]
pub(super) struct CommonTables {
    all: Vec<(String, Vec<SelectQuery>)>,
    numbers: usize,
}

impl CommonTables {
    pub(super) fn add(&mut self, name: &str, select: SelectQuery) {
        self.add_union(name, vec![select]);
    }

    /// Adds one of the rows of several, each once. Of many, some are put together before.
    pub(super) fn add_union(&mut self, name: &str, selects: Vec<SelectQuery>) {
        if selects.len() <= MANY {
            self.all.push((name.to_owned(), selects));
            return;
        }
        let mut parts = Vec::new();
        for (index, part) in selects.chunks(MANY).enumerate() {
            let own = format!("{name}_{}", index + 1);
            self.all.push((own.clone(), part.to_vec()));
            parts.push(SelectQuery::new("*").from(own));
        }
        self.add_union(name, parts);
    }

    /// A number for names, another one with each call.
    pub(super) fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn append(&mut self, other: Self) {
        self.all.extend(other.all);
    }

    /// How many tables a statement with these and an end joins, where every name is replaced by what it
    /// is for.
    pub(super) fn tables(&self, end: &SelectQuery) -> usize {
        let mut known: HashMap<&str, usize> = HashMap::new();
        let count = |known: &HashMap<&str, usize>, select: &SelectQuery| {
            let text = select.to_string();
            let words: Vec<&str> = text.split_whitespace().collect();
            let tables = words
                .windows(2)
                .filter(|pair| ["from", "join"].contains(&pair[0]));
            // A name may end an inner `select`.
            let tables = tables.map(|pair| pair[1].trim_end_matches(')'));
            let tables = tables.map(|name| 1 + known.get(name).copied().unwrap_or(0));
            tables.fold(0, usize::saturating_add)
        };
        for (name, selects) in &self.all {
            let all = selects.iter().map(|select| count(&known, select));
            let all = all.fold(0, usize::saturating_add);
            known.insert(name, all);
        }
        count(&known, end)
    }
}

impl Display for CommonTables {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, (name, selects)) in self.all.iter().enumerate() {
            let before = if index == 0 { "with " } else { ",\n" };
            write!(f, "{before}{name} as (\n  ")?;
            for (index, select) in selects.iter().enumerate() {
                if index > 0 {
                    f.write_str("\n  union\n  ")?;
                }
                select.write(f, "  ")?;
            }
            f.write_str("\n)")?;
        }
        Ok(())
    }
}
