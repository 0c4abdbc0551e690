//! What a dialect cannot say: an error that names it, for each line of the table in docs/fleet.md.

use pactql::sql::{Dialect, Options};
use pactql::{Code, Engine};

/// The dialects that refuse a construct, and a selector with it.
const REFUSED: [(&str, &[Dialect]); 12] = {
    use Dialect::{DuckDb, Postgres, Spark, Sqlite};
    [
        (
            "@t0 .cb[content_hash='x']",
            &[Sqlite, DuckDb, Postgres, Spark],
        ),
        (r"@t0 .cb[content~'\brefund\b']", &[DuckDb, Postgres, Spark]),
        (r"@t0 .cb[content~'(?mR)^a$']", &[DuckDb, Postgres, Spark]),
        (r"@t0 .cb[key~'a{300}']", &[Postgres]),
        (r"@t0 .cb[key~'a{1001}']", &[DuckDb, Postgres]),
        (r"@t0 .cb[key~'(a{40}){40}']", &[DuckDb, Postgres]),
        (r"@t0 .cb[key~'(?:(?:ab){2}){250}|(x+){200}']", &[]),
        ("@t0 .cb[content='1.50']", &[DuckDb, Spark]),
        ("@t0 .cb[tokens>500]", &[DuckDb, Postgres, Spark]),
        ("@t0 .cb[role=$role]", &[Sqlite, DuckDb, Postgres, Spark]),
        ("@t0 .cb @limit=$n", &[Sqlite, DuckDb, Postgres, Spark]),
        ("@t0 .cb[role='a\0']", &[Sqlite, DuckDb, Postgres, Spark]),
    ]
};

/// LANGUAGE §5: texts that read as numbers compare as such, at any length.
#[test]
fn a_decimal_beyond_all_doubles_is_refused_and_a_whole_number_is_not() {
    let engine = Engine::new();
    for dialect in Dialect::ALL {
        let made = |end: &str| {
            let selector = format!("@t0 .cb[data_n>'{}{end}']", "9".repeat(320));
            engine.sql(&selector, dialect, &Options::default())
        };
        assert!(made("").is_ok(), "{dialect}");
        assert_eq!(made(".5").unwrap_err().code(), Code::Sql, "{dialect}");
    }
}

#[test]
fn what_a_dialect_cannot_say_is_refused_and_nothing_else() {
    let engine = Engine::new();
    for (selector, by) in REFUSED {
        for dialect in Dialect::ALL {
            let statement = engine.sql(selector, dialect, &Options::default());
            match (by.contains(&dialect), statement) {
                (false, Ok(_)) => {}
                (true, Err(error)) => {
                    assert_eq!(error.code(), Code::Sql, "{dialect} {selector:?}");
                    assert!(!error.first().labels.is_empty(), "{dialect} {selector:?}");
                    assert!(error.first().help.is_some(), "{dialect} {selector:?}");
                }
                (expected, got) => panic!("{dialect} {selector:?}: {expected} {got:?}"),
            }
        }
    }
}

#[test]
fn a_parameter_has_help_of_its_own() {
    for selector in [
        "@t0 .cb[role=$role]",
        "@t0 .cb @limit=$n",
        "@t0 .cb:nth($n)",
    ] {
        let refused = Engine::new().sql(selector, Dialect::Sqlite, &Options::default());
        let help = refused.unwrap_err().first().help.clone();
        assert_eq!(
            help.as_deref(),
            Some("write the value in its place"),
            "{selector}"
        );
    }
}

#[test]
fn the_error_shows_the_construct_and_the_reason() {
    let error = Engine::new()
        .sql(
            r"@t0 .cb[key~'\bx'][role='user']",
            Dialect::DuckDb,
            &Options::default(),
        )
        .unwrap_err();
    insta::assert_snapshot!(error.to_text(pactql::ColorChoice::Never));
}

/// SQLite joins so many tables, and the others any number.
#[test]
fn a_union_of_too_many_groups_is_refused_for_sqlite() {
    let engine = Engine::new();
    for (groups, may) in [(110, true), (256, false)] {
        let groups: Vec<String> = (0..groups).map(|n| format!(".cb[role='r{n}']")).collect();
        let selector = format!("@t0 {}", groups.join(", "));
        for dialect in Dialect::ALL {
            let statement = engine.sql(&selector, dialect, &Options::default());
            let refused = statement.err().map(|error| error.code());
            let expected = (dialect == Dialect::Sqlite && !may).then_some(Code::Sql);
            assert_eq!(refused, expected, "{dialect} {}", groups.len());
        }
    }
}

/// What is no literal of a statement may not say anything either.
#[test]
fn settings_that_a_dialect_cannot_say_are_refused() {
    let engine = Engine::new();
    for (schema, sessions, by) in [
        ("a\0", "", &Dialect::ALL[..]),
        ("", "a\0", &Dialect::ALL[..]),
        ("${spark.app.name}", "", &[Dialect::Spark][..]),
        ("", "${spark.app.name}", &[][..]),
    ] {
        let options = Options {
            sessions: sessions.to_owned(),
            schema: schema.to_owned(),
        };
        for dialect in Dialect::ALL {
            let statement = engine.sql("@t0 .cb", dialect, &options);
            assert_eq!(
                statement.is_err(),
                by.contains(&dialect),
                "{dialect} {schema:?}"
            );
        }
    }
}
