//! Nothing that a selector, a glob or a name of a schema says gets out of its literal: whatever the text, the
//! statement has the same tokens, and texts where texts were.

use pactql::sql::{Dialect, Options};
use pactql::{Code, Engine};
use sqlparser::dialect::{
    Dialect as Reader, DuckDbDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::support::random::{Rng, share};

/// What people try.
const HOSTILE: [&str; 24] = [
    "'",
    "''",
    "\"",
    "`",
    "\\",
    "\\'",
    "\\\\'",
    "'; drop table node; --",
    "' or '1'='1",
    "--",
    "/*",
    "*/",
    ";",
    "\n-- x\n",
    "\r",
    "\u{2028}select",
    "${spark.sql.shuffle.partitions}",
    "${env:HOME}",
    "$1",
    "?1",
    ":name",
    "@x",
    "E'\\n'",
    "é\u{301}😀\u{7f}",
];

/// A text of some of them.
fn hostile(rng: &mut Rng) -> String {
    (0..1 + rng.below(4)).map(|_| *rng.pick(&HOSTILE)).collect()
}

/// A string of a selector.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Selectors with places for a text.
const SHAPES: [&str; 7] = [
    "@t0 .cb[id=TEXT]",
    "@t0 [key=TEXT][role!=TEXT] > .cb",
    "@t0 .cb[TEXT=1][TEXT='x']",
    "@t0 .cb[content=TEXT]",
    "@t0 .cb[kind<TEXT][data_x>=TEXT]",
    "@t0 .cb[tags=[TEXT, 'b']] @order=path",
    "@t-1..@t0 .cb[nodeType=TEXT]",
];

/// The reader that knows the quotes of a dialect: Spark's texts have backslashes, as those of MySQL.
fn reader(dialect: Dialect) -> Box<dyn Reader> {
    match dialect {
        Dialect::Sqlite => Box::new(SQLiteDialect {}),
        Dialect::DuckDb => Box::new(DuckDbDialect {}),
        Dialect::Postgres => Box::new(PostgreSqlDialect {}),
        Dialect::Spark => Box::new(MySqlDialect {}),
    }
}

/// The tokens, with any text for a text and any name for a quoted name, and no white space or comments.
fn shape(dialect: Dialect, sql: &str) -> Vec<String> {
    let reader = reader(dialect);
    let tokens = Tokenizer::new(&*reader, sql).tokenize().expect(sql);
    let kept = tokens
        .into_iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    kept.map(|token| match token {
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => "text".to_owned(),
        Token::Word(word) if word.quote_style.is_some() => "name".to_owned(),
        // A number that a text is compared with besides.
        Token::Number(..) => "number".to_owned(),
        token => token.to_string(),
    })
    .collect()
}

#[test]
fn whatever_a_text_says_the_statement_has_the_same_shape() {
    let engine = Engine::new();
    let mut rng = Rng::new(4);
    for dialect in Dialect::ALL {
        for round in 0..share(2_400).max(2 * SHAPES.len() as u32) as usize {
            let selector = SHAPES[round % SHAPES.len()];
            let options = |glob: &str, schema: &str| Options {
                sessions: glob.to_owned(),
                schema: schema.to_owned(),
            };
            // A type with a colon is two texts.
            let text = if selector.contains("nodeType") {
                hostile(&mut rng).replace(':', ";")
            } else {
                hostile(&mut rng)
            };
            // What reads as nothing else, and has neither a slash nor a star.
            let glob = hostile(&mut rng).replace(['/', '*', '['], "x");
            // Spark would put a setting into a name: that is refused.
            let schema = match dialect {
                Dialect::Spark => hostile(&mut rng).replace("${", "$ {"),
                _ => hostile(&mut rng),
            };
            let made = |text: &str, options: &Options| {
                let selector = selector.replace("TEXT", &quoted(text));
                engine.sql(&selector, dialect, options).unwrap()
            };
            let tame = made("zz y", &options("abc*", "main x"));
            let wild = made(&text, &options(&format!("{glob}*"), &schema));
            assert_eq!(
                shape(dialect, tame.text()),
                shape(dialect, wild.text()),
                "{dialect} {text:?} {glob:?} {schema:?}\n{}",
                wild.text()
            );
        }
    }
}

#[test]
fn statements_parse_in_the_dialects_of_others() {
    let engine = Engine::new();
    for (dialect, reader) in [
        // That of SQLite here does not know `cross join … on`; SQLite itself does.
        (
            Dialect::Postgres,
            Box::new(PostgreSqlDialect {}) as Box<dyn Reader>,
        ),
        (Dialect::DuckDb, Box::new(DuckDbDialect {})),
    ] {
        for selector in SHAPES {
            let selector = selector.replace("TEXT", "'a'");
            let statement = engine.sql(&selector, dialect, &Options::default()).unwrap();
            let parsed = Parser::parse_sql(&*reader, statement.text());
            assert_eq!(parsed.map(|all| all.len()), Ok(1), "{}", statement.text());
        }
    }
}

#[test]
fn a_text_with_a_nul_is_refused() {
    let engine = Engine::new();
    for dialect in Dialect::ALL {
        for selector in SHAPES {
            let selector = selector.replace("TEXT", "'a\0b'");
            let refused = engine
                .sql(&selector, dialect, &Options::default())
                .unwrap_err();
            assert_eq!(refused.code(), Code::Sql, "{dialect} {selector:?}");
        }
        for options in [
            Options {
                sessions: "a\0*".to_owned(),
                ..Options::default()
            },
            Options {
                schema: "a\0".to_owned(),
                ..Options::default()
            },
        ] {
            let refused = engine.sql("@t0 .cb", dialect, &options).unwrap_err();
            assert_eq!(refused.code(), Code::Sql, "{dialect} {options:?}");
        }
    }
}
