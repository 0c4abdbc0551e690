//! LANGUAGE §2: words, strings, numbers, white space.

use super::{check, check_lines};
use crate::support::selector::Edition::{Canonical, Depth, V01};

fn one_block(fields: &[&str]) -> Vec<String> {
    let blocks: Vec<String> = fields
        .iter()
        .map(|fields| format!("{{{fields}}}"))
        .collect();
    let blocks = blocks.join(",");
    vec![format!(
        r#"{{"root":{{"children":[{{"id":"ah","nodeType":"^ah","children":[{blocks}]}}]}}}}"#
    )]
}

#[test]
fn ids() {
    let lines = one_block(&[
        r#""id":"a1""#,
        r#""id":"A1""#,
        r#""id":"v1.2""#,
        r#""id":"hero_banner""#,
        r#""id":"b:first""#,
        r#""id":"b""#,
        r#""id":"c:first:x""#,
        r#""id":"7-up_x:y""#,
        r#""id":"it's""#,
        r#""id":"back\\slash""#,
        r#""id":"日本""#,
    ]);
    for edition in [V01, Depth] {
        check_lines(
            edition,
            &lines,
            &[
                ("ids are case-sensitive", "@t0 #a1", "a1"),
                ("and opaque", "@t0 #A1", "A1"),
                ("a dot needs quotes", "@t0 #'v1.2'", "v1.2"),
                ("an underscore does not", "@t0 #hero_banner", "hero_banner"),
                (
                    "a trailing pseudo is no part of the word",
                    "@t0 #b:first",
                    "b",
                ),
                ("quotes include it", "@t0 #'b:first'", "b:first"),
                (
                    "it is cut off only at the end",
                    "@t0 #c:first:x",
                    "c:first:x",
                ),
                ("digits, dashes and colons", "@t0 #7-up_x:y", "7-up_x:y"),
                ("double quotes", "@t0 #\"it's\"", "it's"),
                ("an escaped quote", "@t0 #'it\\'s'", "it's"),
                (
                    "an escaped backslash",
                    "@t0 #'back\\\\slash'",
                    "back\\slash",
                ),
                (
                    "any other backslash stays",
                    "@t0 #'back\\slash'",
                    "back\\slash",
                ),
                ("letters beyond ASCII are quoted", "@t0 #'日本'", "日本"),
                (
                    "without quotes they are an error",
                    "@t0 #日本",
                    "E_SELECTOR_INVALID",
                ),
                ("an empty word is an error", "@t0 #", "E_SELECTOR_INVALID"),
                ("several pseudos are cut off", "@t0 #b:core:first", "b"),
                ("so is a call", "@t0 #b:nth(1)", "b"),
            ],
        );
    }
}

#[test]
fn types() {
    let outline = "
root -
  ah ^ah
    a cb:summary
    b cb:first
    c cb:first:frist
    d note
";
    check(
        V01,
        outline,
        &[
            ("type and pseudo", ".block:summary:first", "a"),
            (
                "a pseudo at the end is no part of the type",
                "^ah > .cb:first",
                "a",
            ),
            ("cut off only at the end", ".cb:first:frist", "c"),
            (
                "brackets name a type that looks like a pseudo",
                "[nodeType='cb:first']",
                "b",
            ),
            ("an unknown type", ".note:first", "d"),
            ("no type", ".", "E_SELECTOR_INVALID"),
            ("a type begins with a letter", ".1cb", "E_SELECTOR_INVALID"),
        ],
    );
}

#[test]
fn attribute_names_and_values() {
    let lines = one_block(&[
        r#""id":"a","my key":1,"_x":"u","data-y":"w","n:s":"v""#,
        r#""id":"b","role":"it's","data_t":"true","data_s":"2024-01-01T00:00:00Z""#,
        r#""id":"c","data_t":true,"data_s":"1e5","role":"null""#,
        r#""id":"d","data_s":"back\\slash","data_n":9223372036854775807"#,
        r#""id":"e","data_s":"a\"b","data_n":-9223372036854775808"#,
    ]);
    check_lines(
        V01,
        &lines,
        &[
            ("a quoted name", "['my key'=1]", "a"),
            ("a name may begin with _", "[_x='u']", "a"),
            ("a name may have - and :", "[data-y=w][n:s=v]", "a"),
            ("double quotes", "[role=\"it's\"]", "b"),
            ("escaped quotes", "[role='it\\'s']", "b"),
            ("escaped double quotes", "[data_s=\"a\\\"b\"]", "e"),
            ("a lone backslash stays", "[data_s='back\\slash']", "d"),
            ("an escaped backslash", "[data_s='back\\\\slash']", "d"),
            (
                "a bare word may start with a digit",
                "[data_s=2024-01-01T00:00:00Z]",
                "b",
            ),
            ("1e5 is a text", "[data_s=1e5]", "c"),
            ("true is the text", "[data_t=true]", "b c"),
            ("null is null", ".cb[data_t=null]", "a d e"),
            ("None is null", ".cb[data_t=None]", "a d e"),
            ("a quoted null is a text", "[role='null']", "c"),
            ("the largest integer", "[data_n=9223372036854775807]", "d"),
            ("the smallest integer", "[data_n=-9223372036854775808]", "e"),
            (
                "an integer beyond i64",
                "[data_n=9223372036854775808]",
                "E_SELECTOR_INVALID",
            ),
            (
                "a bare word with a dot",
                "[data_s=a.b]",
                "E_SELECTOR_INVALID",
            ),
            ("an unfinished string", "[role='user]", "E_SELECTOR_INVALID"),
            (
                "an unfinished bracket",
                "[role='user'",
                "E_SELECTOR_INVALID",
            ),
            ("an empty bracket", "[]", "E_SELECTOR_INVALID"),
            ("no right side", "[role=]", "E_SELECTOR_INVALID"),
            (
                "an unknown operator",
                "[role=='user']",
                "E_SELECTOR_INVALID",
            ),
        ],
    );
}

#[test]
fn white_space() {
    let outline = "
root -
  ah ^ah
    m mc
      a cb role=user
";
    check(
        V01,
        outline,
        &[
            ("descendant", "^ah .cb", "a"),
            ("any amount", "  ^ah   \t .cb  ", "a"),
            ("none around >", "^ah>.mc>.cb", "a"),
            ("some around >", "^ah > .mc  >  .cb", "a"),
            ("inside brackets", "[ role = 'user' ]", "a"),
            ("around a comma", ".mc , .cb", "m a"),
            ("none around a comma", ".mc,.cb", "m a"),
            ("inside :depth", ".mt:depth( 1 , 2 )", ""),
            ("a new line is white space", "^ah\n.cb", "a"),
            ("nothing at all", "", "E_SELECTOR_INVALID"),
            ("only white space", "   ", "E_SELECTOR_INVALID"),
        ],
    );
    for edition in [V01, Depth, Canonical] {
        check(
            edition,
            outline,
            &[
                ("a dangling >", "@t0 ^ah >", "E_SELECTOR_INVALID"),
                ("a leading >", "@t0 > .cb", "E_SELECTOR_INVALID"),
                ("a doubled >", "@t0 ^ah > > .cb", "E_SELECTOR_INVALID"),
                ("a dangling comma", "@t0 ^ah,", "E_SELECTOR_INVALID"),
                ("a stray sign", "@t0 ^ah & .cb", "E_SELECTOR_INVALID"),
            ],
        );
    }
}
