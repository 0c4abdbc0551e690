//! Trigrams, runs of three characters: what the text index of each database is made of, and how it is queried.
//!
//! This file must not know tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::query::ir::Required;
use crate::store::database::sql::Backend;

const LENGTH: usize = 3;

/// The most trigrams of a text that are looked up; more would hardly leave fewer candidates.
const ASKED: usize = 24;

/// The most bytes of a `tsvector` in PostgreSQL, roughly.
const VECTOR: usize = 1_000_000;

/// The trigrams of a folded text, sorted, each once. Linear except for the sorting.
pub(crate) fn grams(folded: &str) -> BTreeSet<&str> {
    let starts = folded.char_indices().map(|(at, _)| at);
    let ends = starts.clone().skip(LENGTH).chain([folded.len()]);
    let runs = starts.zip(ends);
    let runs = runs.filter_map(|(start, end)| folded.get(start..end));
    runs.filter(|run| run.chars().nth(LENGTH - 1).is_some())
        .collect()
}

/// The `tsvector` of a folded text, in its own spelling; `None` if it has too many trigrams for one.
pub(crate) fn vector(folded: &str) -> Option<String> {
    let grams = grams(folded);
    let bytes: usize = grams.iter().map(|gram| gram.len()).sum();
    if bytes > VECTOR {
        return None;
    }
    let mut vector = String::with_capacity(bytes * 3);
    for gram in grams {
        quote(gram, Backend::Postgres, &mut vector);
        vector.push(' ');
    }
    Some(vector)
}

pub(crate) fn expression(required: &Required, dialect: Backend) -> String {
    let (and, or) = match dialect {
        Backend::Sqlite => (" AND ", " OR "),
        Backend::Postgres => (" & ", " | "),
    };
    let each = |all: &[Required]| all.iter().map(|part| expression(part, dialect)).collect();
    let (parts, sign): (Vec<String>, _) = match required {
        Required::Text(text) => {
            let all = grams(text);
            let step = all.len().div_ceil(ASKED).max(1);
            let asked = all.into_iter().step_by(step).map(|gram| {
                let mut quoted = String::new();
                quote(gram, dialect, &mut quoted);
                quoted
            });
            (asked.collect(), and)
        }
        Required::All(all) => (each(all), and),
        Required::Any(all) => (each(all), or),
    };
    format!("({})", parts.join(sign))
}

fn quote(gram: &str, dialect: Backend, sql: &mut String) {
    let mark = match dialect {
        Backend::Sqlite => '"',
        Backend::Postgres => '\'',
    };
    sql.push(mark);
    for letter in gram.chars() {
        if letter == mark || (letter == '\\' && dialect == Backend::Postgres) {
            sql.push(letter);
        }
        let _ = write!(sql, "{letter}");
    }
    sql.push(mark);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_three_characters() {
        for (text, expected) in [
            ("", &[][..]),
            ("ab", &[]),
            ("abc", &["abc"]),
            ("größe", &["grö", "röß", "öße"]),
            ("aaaa", &["aaa"]),
        ] {
            let found: Vec<&str> = grams(text).into_iter().collect();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn expressions_are_quoted() {
        let required = Required::Any(vec![
            Required::Text("a\"b".to_owned()),
            Required::All(vec![
                Required::Text("it's".to_owned()),
                Required::Text("x\\y".to_owned()),
            ]),
        ]);
        assert_eq!(
            expression(&required, Backend::Sqlite),
            r#"(("a""b") OR (("it'" AND "t's") AND ("x\y")))"#
        );
        assert_eq!(
            expression(&required, Backend::Postgres),
            r#"(('a"b') | (('it''' & 't''s') & ('x\\y')))"#
        );
        assert_eq!(vector("it's").as_deref(), Some("'it''' 't''s' "));
        let long: String = (0..2_000_000)
            .map(|at| char::from_u32(0x1_0000 + at % 70_000).unwrap_or('x'))
            .collect();
        assert_eq!(vector(&long).is_some(), grams(&long).len() * 12 <= VECTOR);
    }
}
