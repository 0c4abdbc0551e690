//! The statements that give the files of a copy the names of STORE §2, for engines that scan Parquet.
//!
//! Files are named by patterns, so a view shows what later exports add. This file must not open anything.

use std::fmt::Write;

use super::layout::{Place, TABLES, Table};
use crate::diag::Error;
use crate::store::error::StoreError;

/// An engine that reads the files of `pactql export STORE --parquet DIR`. See [`parquet_views`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParquetEngine {
    /// DuckDB.
    DuckDb,
    /// Spark SQL, and what understands its statements.
    Spark,
}

/// The statements that make a view for each table of STORE §2 over the files of a copy: of `directory`, which
/// may be a path or a URL such as `s3://archive/agents`, in `schema`, which must exist, or else as
/// temporary views. The statements are in an order in which they run, and can be run again. Nothing is
/// read.
///
/// The views have the columns of the tables, and besides:
///
/// - `bucket` in each but `format` and `body`: the session's number modulo the number of buckets. Files are
///   partitioned by it, so a condition on it leaves the other files unread.
/// - `session_id` in each. A `unit_id` is that of one session, so a join by `unit_id` alone is right, and one
///   that says `session_id` and `bucket` too may skip more.
/// - `content` and `content_json` in `node`: the text and the `json` of the body, so that a scan needs no join.
///
/// ```
/// use pactql::{ParquetEngine, parquet_views};
/// let views = parquet_views(ParquetEngine::DuckDb, "fleet", None)?;
/// assert!(views[1].starts_with("create or replace temporary view session as"));
/// # Ok::<(), pactql::Error>(())
/// ```
///
/// # Errors
/// The directory has a character that the engines read as a pattern, or a control character; the schema is empty
/// or has a control character.
pub fn parquet_views(
    engine: ParquetEngine,
    directory: &str,
    schema: Option<&str>,
) -> Result<Vec<String>, Error> {
    let directory = match directory.trim_end_matches('/') {
        "" if directory.starts_with('/') => "/.",
        "" => ".",
        other => other,
    };
    if let Some(strange) = directory.chars().find(|c| is_strange(*c)) {
        return Err(StoreError::Refused(format!(
            "the directory `{}` has {strange:?}, which engines read as a pattern; rename it",
            printable(directory)
        ))
        .into());
    }
    if schema.is_some_and(|schema| schema.is_empty() || schema.chars().any(char::is_control)) {
        return Err(StoreError::Refused(format!(
            "`{}` cannot be the name of a schema",
            printable(schema.unwrap_or_default())
        ))
        .into());
    }
    let view = |name: &str, select: &str| match schema {
        None => format!("create or replace temporary view {name} as\n{select}"),
        Some(schema) => {
            let schema = engine.quoted(schema);
            format!("create or replace view {schema}.{name} as\n{select}")
        }
    };
    let mut all = Vec::with_capacity(TABLES.len() + 1);
    for Table { name, place } in TABLES {
        let files = match (engine, place) {
            (ParquetEngine::DuckDb, Place::Whole) => {
                let path = literal(&format!("{directory}/{name}/*.parquet"));
                format!("read_parquet({path}, hive_partitioning = false)")
            }
            (ParquetEngine::DuckDb, Place::Added | Place::Replaced) => {
                let path = literal(&format!("{directory}/{name}/*/*.parquet"));
                format!(
                    "read_parquet({path}, hive_partitioning = true, hive_types = {{'bucket': bigint}})"
                )
            }
            (ParquetEngine::Spark, _) => {
                format!("parquet.{}", engine.quoted(&format!("{directory}/{name}")))
            }
        };
        all.push(view(name, &format!("select * from {files}")));
    }
    let node = match schema {
        None => "node".to_owned(),
        Some(schema) => format!("{}.node", engine.quoted(schema)),
    };
    let digest = match engine {
        ParquetEngine::DuckDb => "sha256({})",
        ParquetEngine::Spark => "sha2({}, 256)",
    };
    // As `encode::body_hash` computes it.
    let line = "concat(case when max(content_json) then '1' else '0' end, chr(10), max(content))";
    let hash = digest.replace("{}", line);
    let mut select = String::new();
    // Writing to memory does not fail.
    let _ = write!(
        select,
        "select body_id, unhex({hash}) as hash, max(content_json) as json, max(content) as text\n\
         from {node} where body_id is not null group by body_id"
    );
    all.push(view("body", &select));
    Ok(all)
}

fn is_strange(c: char) -> bool {
    c.is_control() || "*?[]{}\\`".contains(c)
}

/// A text without the characters that a terminal acts on.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect()
}

/// A literal of SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl ParquetEngine {
    /// A name.
    fn quoted(self, name: &str) -> String {
        match self {
            Self::DuckDb => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Spark => format!("`{}`", name.replace('`', "``")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ParquetEngine, parquet_views};

    #[test]
    fn names_are_quoted_and_patterns_refused() {
        let spark = parquet_views(ParquetEngine::Spark, "a/it's", Some("x`y")).unwrap();
        assert_eq!(
            spark[5],
            "create or replace view `x``y`.node as\nselect * from parquet.`a/it's/node`"
        );
        assert!(spark[10].contains("from `x``y`.node"), "{}", spark[10]);
        let duck = parquet_views(ParquetEngine::DuckDb, "s3://it's/b/", Some("a\"b")).unwrap();
        assert_eq!(
            duck[2],
            "create or replace view \"a\"\"b\".snapshot as\n\
             select * from read_parquet('s3://it''s/b/snapshot/*.parquet', hive_partitioning = false)"
        );
        for (directory, path) in [
            ("", "'./node/"),
            ("/", "'/./node/"),
            ("é/ü//", "'é/ü/node/"),
        ] {
            let views = parquet_views(ParquetEngine::DuckDb, directory, None).unwrap();
            assert!(views[5].contains(path), "{}", views[5]);
        }
        for strange in ["a*", "a?", "[a]", "{a,b}", "a\\b", "a`b", "a\nb", "\0"] {
            for engine in [ParquetEngine::DuckDb, ParquetEngine::Spark] {
                let error = parquet_views(engine, strange, None)
                    .unwrap_err()
                    .to_string();
                assert!(error.contains("engines read as a pattern"), "{error}");
            }
        }
        for strange in ["", "a\nb"] {
            assert!(parquet_views(ParquetEngine::DuckDb, "d", Some(strange)).is_err());
        }
    }
}
