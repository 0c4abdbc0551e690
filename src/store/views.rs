//! The statements that give the files of a copy the names of STORE §2, for engines that scan Parquet.
//!
//! Files are named by patterns, so a view shows what later exports add. This file must not open anything.

use std::fmt::Write;

use crate::query::sql::Dialect;
use crate::store::error::StoreError;
use crate::store::layout::schema::{CopyFiles, TABLES};
use crate::store::layout::views as people;
use crate::support::diag::Error;

/// The statements that make a view for each table and view of STORE §2 over the files of a copy: of `directory`, which
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
/// use pactql::store::parquet_views;
/// use pactql::sql::Dialect;
/// let views = parquet_views(Dialect::DuckDb, "fleet", None)?;
/// assert!(views[1].starts_with("create or replace temporary view session as"));
/// # Ok::<(), pactql::Error>(())
/// ```
///
/// # Errors
/// The dialect is not that of an engine that reads Parquet: [`Dialect::DuckDb`] and [`Dialect::Spark`] are. The
/// directory has a character that the engines read as a pattern, a control character, or, for DuckDB, a part
/// `name=value`, which it reads as a column. The schema is empty, or has a control character, or, for Spark, `${`.
pub fn parquet_views(
    dialect: Dialect,
    directory: &str,
    schema: Option<&str>,
) -> Result<Vec<String>, Error> {
    check(dialect, directory, schema)?;
    let directory = match directory.trim_end_matches('/') {
        "" if directory.starts_with('/') => "/.",
        "" => ".",
        other => other,
    };
    let view = |name: &str, select: &str| match schema {
        None => format!("create or replace temporary view {name} as\n{select}"),
        Some(schema) => {
            let schema = dialect.name_of(schema);
            format!("create or replace view {schema}.{name} as\n{select}")
        }
    };
    let mut all = Vec::with_capacity(TABLES.len() + 1);
    for table in TABLES {
        let name = table.name;
        let files = match (dialect, table.files) {
            (_, CopyFiles::None) => continue,
            (Dialect::Spark, _) => {
                format!(
                    "parquet.{}",
                    dialect.name_of(&format!("{directory}/{name}"))
                )
            }
            (_, CopyFiles::Whole) => {
                let path = dialect.text(&format!("{directory}/{name}/*.parquet"));
                format!("read_parquet({path}, hive_partitioning = false)")
            }
            (_, CopyFiles::Added | CopyFiles::Replaced) => {
                let path = dialect.text(&format!("{directory}/{name}/*/*.parquet"));
                format!(
                    "read_parquet({path}, hive_partitioning = true, hive_types = {{'bucket': bigint}})"
                )
            }
        };
        all.push(view(name, &format!("select * from {files}")));
    }
    let node = match schema {
        None => "node".to_owned(),
        Some(schema) => format!("{}.node", dialect.name_of(schema)),
    };
    let digest = match dialect {
        Dialect::Spark => "sha2({}, 256)",
        _ => "sha256({})",
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
    let schema = node.strip_suffix("node").unwrap_or_default();
    for (name, select) in people::views(dialect, schema) {
        all.push(view(name, &select));
    }
    Ok(all)
}

fn check(dialect: Dialect, directory: &str, schema: Option<&str>) -> Result<(), Error> {
    let mut parts = directory.split('/');
    let (what, help) = if !dialect.is_parquet() {
        let what = format!("the views are over Parquet files, which {dialect} does not read");
        (what, "make them for duckdb or spark")
    } else if let Some(strange) = directory.chars().find(|c| is_strange(*c)) {
        let what = format!("the directory has {strange:?}, which engines read as a pattern");
        (what, "rename it")
    } else if dialect == Dialect::DuckDb
        && let Some(part) = parts.find(|part| part.contains('='))
    {
        let reads = "which DuckDB reads as a column of every table";
        let what = format!("the directory has the part `{part}`, {reads}");
        let help = "rename it, or open DuckDB in it, and say the directory from there";
        (what, help)
    } else if schema == Some("") {
        ("the name of the schema is empty".to_owned(), "leave it out")
    } else if let Some(schema) = schema.filter(|schema| schema.chars().any(char::is_control)) {
        let what = format!("the schema {schema:?} has a control character");
        (what, "give the schema another name")
    } else if let Some(schema) = schema.filter(|schema| schema.contains("${"))
        && dialect == Dialect::Spark
    {
        // It does so before it reads the statement, also inside quotes.
        let what = format!("the schema `{schema}` has `${{`, and Spark puts a setting there");
        (what, "give the schema another name")
    } else {
        return Ok(());
    };
    Err(Error::from(StoreError::Refused(what)).with_help(help))
}

fn is_strange(c: char) -> bool {
    c.is_control() || "*?[]{}\\`".contains(c)
}

#[cfg(test)]
mod tests {
    use super::parquet_views;
    use crate::query::sql::Dialect;

    #[test]
    fn names_are_quoted_and_patterns_refused() {
        let spark = parquet_views(Dialect::Spark, "a/it's", Some("x`y")).unwrap();
        assert_eq!(
            spark[5],
            "create or replace view `x``y`.node as\nselect * from parquet.`a/it's/node`"
        );
        assert!(spark[10].contains("from `x``y`.node"), "{}", spark[10]);
        let duck = parquet_views(Dialect::DuckDb, "s3://it's/b/", Some("a\"b")).unwrap();
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
            let views = parquet_views(Dialect::DuckDb, directory, None).unwrap();
            assert!(views[5].contains(path), "{}", views[5]);
        }
        for strange in [
            "a*", "a?", "[a]", "{a,b}", "a${b}", "a\\b", "a`b", "a\nb", "\0",
        ] {
            for dialect in [Dialect::DuckDb, Dialect::Spark] {
                let error = parquet_views(dialect, strange, None)
                    .unwrap_err()
                    .to_string();
                assert!(error.contains("engines read as a pattern"), "{error}");
            }
        }
    }

    #[test]
    fn what_an_engine_reads_otherwise_is_refused_with_a_help() {
        use Dialect::{DuckDb, Postgres, Spark, Sqlite};

        for (dialect, directory, schema, said) in [
            (
                DuckDb,
                "lake/kind=agents/fleet",
                None,
                "the part `kind=agents`",
            ),
            (DuckDb, "s3://lake/env=", None, "the part `env=`"),
            (DuckDb, "d", Some(""), "is empty"),
            (DuckDb, "d", Some("a\nb"), "has a control character"),
            (Spark, "d", Some("a${spark.app.name}"), "has `${`"),
            (Sqlite, "d", None, "which sqlite does not read"),
            (Postgres, "d", None, "which postgres does not read"),
        ] {
            let error = parquet_views(dialect, directory, schema).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.first().help.is_some(), "{error}");
        }
        // Spark reads partitions below the directory alone, and DuckDB puts no settings anywhere.
        assert!(parquet_views(Spark, "lake/kind=agents/fleet", Some("$a{b}")).is_ok());
        assert!(parquet_views(DuckDb, "d", Some("a${b}")).is_ok());
    }
}
