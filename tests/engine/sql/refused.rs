//! What a dialect cannot say: an error that names it, for each line of the table in docs/fleet.md.

use pactql::sql::{Dialect, Options};
use pactql::{Code, Engine};

/// The dialects that refuse a construct, and a selector with it.
const REFUSED: [(&str, &[Dialect]); 9] = {
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
        ("@t0 .cb[content='1.50']", &[DuckDb, Spark]),
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
    insta::assert_snapshot!(error.render(pactql::ColorChoice::Never));
}
