//! Selectors as SQL: `sql`, and `select --via sql`.

use super::{AGENT, Scratch, answer, fails};

/// A store with the two fixtures.
fn store(scratch: &Scratch) -> String {
    let store = scratch.path("agents.db");
    answer(&["import", AGENT, "fixtures/greenhouse.jsonl", "-o", &store]);
    store
}

/// The database finds what the engine finds, in the same order.
#[test]
fn the_database_answers_as_the_engine_does() {
    let scratch = Scratch::new("sql-same");
    let store = store(&scratch);
    for selector in [
        "@t0 .cb",
        "@t0 ^seq .mt:depth(1-2) .cb:first",
        "[role='user']",
        "@t0 .cb[content~'re?fund']",
        "@* .cb[kind='result']",
        "@t-2..@t0 .cb @mode=latest",
        "@t0 .cb @order=path @limit=3",
        "@t0 [kind='nothing']",
    ] {
        let select = |more: &[&str]| {
            answer(&[&["select", &store, selector, "--format", "ids"], more].concat())
        };
        assert_eq!(select(&["--via", "sql"]), select(&[]), "{selector}");
    }
    let one = format!("{store}#green*");
    let rows = answer(&[
        "select",
        "--json",
        &one,
        "@t0 .cb[kind='result']",
        "--via",
        "sql",
    ]);
    assert_eq!(
        rows.lines().next(),
        Some(r#"{"id":"res2","ord":1,"seq":4,"session":"greenhouse","snapshot":14}"#)
    );
    let counted = [
        "select",
        &one,
        "@t0 .cb[kind='result']",
        "--via",
        "sql",
        "--count",
    ];
    assert_eq!(answer(&counted), format!("{}\n", rows.lines().count()));
}

/// No statement reads a text with U+0000: a store loads the session, and a statement alone is refused.
#[test]
fn a_text_with_nul_is_found() {
    let scratch = Scratch::new("sql-nul");
    let store = store(&scratch);
    let log = scratch.path("nul.jsonl");
    let text = concat!(
        r#"{"role":"user","content":"start\u0000 refund here"}"#,
        "\n",
        r#"{"role":"assistant","content":"yes"}"#,
        "\n"
    );
    std::fs::write(&log, text).expect("a file");
    answer(&["import", &log, "-o", &store]);
    let selector = "@t0 .cb[content~'refund here']";
    let (whole, one) = (["select", &store, selector], format!("{store}#nul"));
    assert_eq!(
        answer(&[&whole[..], &["--format", "ids"]].concat()),
        format!(
            "{store}#nul\t{}",
            answer(&["select", &one, selector, "--format", "ids"])
        )
    );
    let explained = answer(&["explain", &store, selector]);
    let by =
        "answered by  one statement, and 1 session loaded: no statement reads a text with U+0000\n";
    assert!(explained.contains(by), "{explained}");
    let refused = fails(
        &[&whole[..], &["--via", "sql"]].concat(),
        2,
        "the session `nul` has a text with U+0000, which no statement reads",
    );
    assert!(refused.contains("leave `--via sql` out"), "{refused}");
    let others = format!("{store}#green*");
    answer(&["select", &others, selector, "--via", "sql"]);
}

/// The first line of a statement is the selector; the statement ends with a semicolon.
#[test]
fn a_statement_is_printed() {
    for dialect in ["sqlite", "duckdb", "postgres", "spark"] {
        let statement = answer(&["sql", "@t0 .cb[role='it\\'s']", "--dialect", dialect]);
        assert!(
            statement.starts_with("-- @t0 .cb[role='it\\'s']\nwith "),
            "{statement}"
        );
        assert!(
            statement.ends_with("order by session, ord;\n"),
            "{statement}"
        );
    }
    let some = answer(&["sql", "@t0 .cb", "--sessions", "a*", "--schema", "x y"]);
    assert!(some.contains("z.name glob 'a*'"), "{some}");
    assert!(some.contains("from \"x y\".snapshot"), "{some}");
    let views = answer(&["sql", "--create-views", "fleet", "--dialect", "spark"]);
    assert!(views.contains("parquet.`fleet/node`"), "{views}");
}

#[test]
fn what_cannot_be_asked_is_said() {
    let scratch = Scratch::new("sql-wrong");
    let store = store(&scratch);
    let none = format!("{store}#nope");
    let nope = ["select", &none, "@t0 .cb", "--via", "sql"];
    fails(&nope, 4, "E_SESSION_NOT_FOUND");
    fails(&["sql", "@t0 .cb[content_hash='x']"], 2, "E_SQL");
    fails(&["sql", "@t0 .cb["], 2, "E_SELECTOR_INVALID");
    fails(
        &["sql", "@t0 .cb", "--dialect", "mysql"],
        3,
        "it takes sqlite, duckdb, postgres, spark",
    );
    fails(
        &["sql", "--create-views", "fleet"],
        3,
        "--dialect duckdb or spark",
    );
    fails(&["sql", &store], 1, "--via sql");
    fails(&["sql"], 1, "");
    fails(&["select", AGENT, "@t0 .cb", "--via", "sql"], 1, "is none");
    let via = |more: &[&str]| {
        let all = [&["select", &store, "@t0 .cb", "--via", "sql"], more].concat();
        all.iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    for (more, code, says) in [
        (&["--format", "nodes"][..], 3, "--format json or ids"),
        (&["--stats"], 1, "leave `--via sql` out"),
        (&["-e", "@t0 .mt"], 1, "after `-e`, one each"),
    ] {
        let words = via(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        fails(&words, code, says);
    }
}
