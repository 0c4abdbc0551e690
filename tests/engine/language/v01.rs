//! Edition `v0.1`.

use super::{Edition, Refused, canonical, equal, lowered, normalizes, refused, refuses, warns};

const E: Edition = Edition::V01;

/// What is refused, table by table.
pub(super) const REFUSED: &[&[Refused]] = &[TIMES, CHAINS, WORDS, PSEUDO_CLASSES, COMPARISONS];

/// LANGUAGE §3, source 000 §3.7.
#[test]
fn times() {
    normalizes(
        E,
        &[
            (".cb", "@t0 .cb"),
            ("@t0 .cb", "@t0 .cb"),
            ("@t00 .cb", "@t0 .cb"),
            ("@t-0 .cb", "@t0 .cb"),
            ("@t-3 .cb", "@t-3 .cb"),
            ("@c17 .cb", "@c17 .cb"),
            ("@* .cb", "@* .cb"),
            ("  @t0\t.cb\n", "@t0 .cb"),
            ("@t-3..@t0 .cb", "@t0..@t-3 .cb"),
            ("@t0..@t-3 .cb", "@t0..@t-3 .cb"),
            ("@t-5..-1 .cb", "@t-1..@t-5 .cb"),
            ("@t-5:-1 .cb", "@t-1..@t-5 .cb"),
            ("@t-5:@t-1 .cb", "@t-1..@t-5 .cb"),
            ("@t-5..0 .cb", "@t0..@t-5 .cb"),
            ("@t0..@t-* .cb", "@t0..@t-* .cb"),
            ("@t-*..@t-2 .cb", "@t-2..@t-* .cb"),
            ("@t0..-* .cb", "@t0..@t-* .cb"),
            ("@t-*..@t-* .cb", "@t-*..@t-* .cb"),
            ("@c10..@c20 .cb", "@c20..@c10 .cb"),
            ("@c10..20 .cb", "@c20..@c10 .cb"),
            ("@c10:20 .cb", "@c20..@c10 .cb"),
            ("@t-5 .. @t-1 .cb", "@t-1..@t-5 .cb"),
            // White space may be left out before a sign.
            ("@t0.cb", "@t0 .cb"),
            ("@t0^ah", "@t0 depth(0)"),
            ("@t0#a", "@t0 {id='a'}"),
            ("@t0[role=a]", "@t0 {role='a'}"),
            ("@t0:pre", "@t0 :pre"),
            ("@t-5..-1.cb", "@t-1..@t-5 .cb"),
            ("@*.cb", "@* .cb"),
            ("@t0*", "@t0 *"),
            ("@t0 none", "@t0 none"),
            ("none", "@t0 none"),
        ],
    );
    refuses(E, TIMES);
}

const TIMES: &[Refused] = &[
    ("@t0", "E_SELECTOR_INVALID", "@t0", "`@t0 *`"),
    (
        "@t-3..@t0",
        "E_SELECTOR_INVALID",
        "@t-3..@t0",
        "@t-3..@t0 *",
    ),
    ("@t3 .cb", "E_SELECTOR_INVALID", "@t3", "@t-3"),
    ("@t-* .cb", "E_SELECTOR_INVALID", "@t-*", "@t0..@t-*"),
    ("@t* .cb", "E_SELECTOR_INVALID", "@t*", "@*"),
    (
        "@t-3..@c4 .cb",
        "E_SNAPSHOT_RANGE_KIND_MISMATCH",
        "@t-3..@c4",
        "one kind",
    ),
    (
        "@c4:@t0 .cb",
        "E_SNAPSHOT_RANGE_KIND_MISMATCH",
        "@c4:@t0",
        "one kind",
    ),
    (
        "@c4..@t-* .cb",
        "E_SNAPSHOT_RANGE_KIND_MISMATCH",
        "@c4..@t-*",
        "one kind",
    ),
    (
        "@c4..-2 .cb",
        "E_SNAPSHOT_RANGE_KIND_MISMATCH",
        "@c4..-2",
        "one kind",
    ),
    ("@t0..@* .cb", "E_SNAPSHOT_RANGE_WILDCARD", "@*", "@t-*"),
    ("@*..@t0 .cb", "E_SNAPSHOT_RANGE_WILDCARD", "@*", "@t-*"),
    ("@t-5..* .cb", "E_SNAPSHOT_RANGE_WILDCARD", "*", "@t-*"),
    ("@c5..@c* .cb", "E_SNAPSHOT_RANGE_WILDCARD", "@c*", "@t-*"),
    ("@t-3..@t2 .cb", "E_SELECTOR_INVALID", "@t2", "@t-2"),
    ("@t0none", "E_SELECTOR_INVALID", "@t0none", "@t0 none"),
    ("@*none", "E_SELECTOR_INVALID", "", "white space is missing"),
    ("@T0 .cb", "E_SELECTOR_INVALID", "@T0", "@t0"),
    ("@now .cb", "E_SELECTOR_INVALID", "@now", "unknown time"),
    ("@t-5: -1 .cb", "E_SELECTOR_INVALID", ":", "white space"),
    ("@t-5 :-1 .cb", "E_SELECTOR_INVALID", ":", "white space"),
    ("@t-5.. .cb", "E_SELECTOR_INVALID", ".cb", "other end"),
    ("@t-5..", "E_SELECTOR_INVALID", "", "other end"),
    ("@c-4 .cb", "E_SELECTOR_INVALID", "-4", "no sign"),
    (
        "@c99999999999999999999 .cb",
        "E_SELECTOR_INVALID",
        "99999999999999999999",
        "too large",
    ),
    (".cb @t0", "E_SELECTOR_INVALID", "@t0", "start"),
    ("@ .cb", "E_SELECTOR_INVALID", "@", "without a word"),
    ("", "E_SELECTOR_INVALID", "", "empty"),
    ("  ", "E_SELECTOR_INVALID", "", "empty"),
    ("@history .cb", "E_EDITION", "@history", "@t0..@t-*"),
];

/// LANGUAGE §4, source 000 §4.
#[test]
fn chains() {
    normalizes(
        E,
        &[
            ("*", "@t0 *"),
            (".mt .mc > .cb", "@t0 .mt .mc > .cb"),
            (".seg .cont>.block", "@t0 .mt .mc > .cb"),
            (".mt\n>\t.cb", "@t0 .mt > .cb"),
            ("^root > *", "@t0 ^root > *"),
            ("^sys .cb", "@t0 depth(-1) .cb"),
            ("^ah .cb", "@t0 depth(0) .cb"),
            ("^seq .mt", "@t0 ^seq .mt"),
            // Alone, too, it is the region node here.
            ("^seq", "@t0 [stored_type='^seq']"),
            ("^seq:first", "@t0 [stored_type='^seq']:first"),
            (".cb, .mt", "@t0 .mt, .cb"),
            (".cb,.cb , .block", "@t0 .cb"),
            ("*.cb", "@t0 .cb"),
            ("^ah#a", "@t0 depth(0)[id='a']"),
            ("#a.cb[x]", "@t0 .cb[id='a'][x!=null]"),
            ("[x] [y]", "@t0 [x!=null] [y!=null]"),
            (".mt > [x]", "@t0 .mt > [x!=null]"),
        ],
    );
    refuses(E, CHAINS);
}

const CHAINS: &[Refused] = &[
    (".cb,", "E_SELECTOR_INVALID", "", "each side"),
    (", .cb", "E_SELECTOR_INVALID", ",", "each side"),
    (".cb,,.mt", "E_SELECTOR_INVALID", ",", "each side"),
    ("> .cb", "E_SELECTOR_INVALID", ">", "each side"),
    (".cb >", "E_SELECTOR_INVALID", "", "each side"),
    (".cb > > .mt", "E_SELECTOR_INVALID", ">", "each side"),
    ("cb", "E_SELECTOR_INVALID", "cb", "`.cb`"),
    ("seq .mt", "E_SELECTOR_INVALID", "seq", "`^seq`"),
    (
        "role='user'",
        "E_SELECTOR_INVALID",
        "role='user'",
        "`[role='user']`",
    ),
    ("^sek .cb", "E_SELECTOR_INVALID", "^sek", "`^seq`"),
    ("^ .cb", "E_SELECTOR_INVALID", "^", "without a word"),
    ("^elsewhere", "E_SELECTOR_INVALID", "^elsewhere", "`^root`"),
    (".cb]", "E_SELECTOR_INVALID", "]", "unexpected"),
    (".cb)", "E_SELECTOR_INVALID", ")", "unexpected"),
    (".cb[", "E_SELECTOR_INVALID", "", "end"),
    (".cb[]", "E_SELECTOR_INVALID", "[]", "without a property"),
    (".", "E_SELECTOR_INVALID", ".", "letter"),
    (".1", "E_SELECTOR_INVALID", ".", "letter"),
    (".cb;.mt", "E_SELECTOR_INVALID", ";", "unexpected character"),
    (
        ".cb\u{a0}.mt",
        "E_SELECTOR_INVALID",
        "\u{a0}",
        "plain spaces",
    ),
    (".héllo", "E_SELECTOR_INVALID", "é", "unexpected character"),
    (".cb(", "E_SELECTOR_INVALID", "", "end"),
    ("depth(1) > .cb", "E_EDITION", "depth(1)", "`depth`"),
    (
        ".cb(role=user)",
        "E_EDITION",
        "(role=user)",
        "`@t0 .cb[role='user']`",
    ),
    ("(d1)", "E_EDITION", "(d1)", "`depth`"),
    ("{a=1}", "E_EDITION", "{a=1}", "`canonical`"),
    ("?? {a=1}", "E_EDITION", "??", "`canonical`"),
    (".cb+hot", "E_EDITION", "+hot", "`@t0 .cb[tags='hot']`"),
    (".cb @limit=3", "E_EDITION", "@limit=3", "`canonical`"),
    (
        "@t0..@t-1 .cb @mode=union",
        "E_EDITION",
        "@mode=union",
        "`depth`",
    ),
];

/// LANGUAGE §2 and the first table: what `.cb:sub` and `#x` mean here.
#[test]
fn words() {
    normalizes(
        E,
        &[
            (".cb:summary", "@t0 {stored_type='cb:summary'}"),
            (".block:summary", "@t0 {stored_type='cb:summary'}"),
            (".foo", "@t0 {stored_type='foo'}"),
            (".foo:bar", "@t0 {stored_type='foo:bar'}"),
            ("[nodeType='block:x']", "@t0 {stored_type='cb:x'}"),
            ("[type=seg]", "@t0 {stored_type='mt'}"),
            ("[kind=call]", "@t0 {stored_kind='call'}"),
            ("#cb:u2", "@t0 {id='cb:u2'}"),
            ("#1-a_b:c", "@t0 {id='1-a_b:c'}"),
            ("#'v1.2'", "@t0 {id='v1.2'}"),
            ("#\"hero banner\"", "@t0 {id='hero banner'}"),
            ("#'cb:first'", "@t0 {id='cb:first'}"),
            // Trailing pseudo-classes are cut off.
            ("#cb:u2:first", "@t0 [id='cb:u2']:first"),
            (".cb:summary:first", "@t0 [stored_type='cb:summary']:first"),
            (
                ".cb:summary:depth(2)",
                "@t0 [stored_type='cb:summary']:depth(2)",
            ),
            (".cb:pre:last", "@t0 .cb[offset<0]:last"),
            (".cb:nth(2)", "@t0 .cb:nth(2)"),
            ("[my-key:x=1]", "@t0 {my-key:x=1}"),
            ("['my key'=1]", "@t0 {'my key'=1}"),
            ("['role'=a]", "@t0 {role='a'}"),
            ("['type'=a]", "@t0 {'type'='a'}"),
            (r"[a='it\'s']", r"@t0 {a='it\'s'}"),
            (r#"[a="x\"y"]"#, r#"@t0 {a='x"y'}"#),
            (r"[a='\d\\']", r"@t0 {a='\\d\\'}"),
            ("[a=2024-01-01T00:00:00Z]", "@t0 {a='2024-01-01T00:00:00Z'}"),
            ("[a=null]", "@t0 {a=null}"),
            ("[a!=None]", "@t0 {a!=null}"),
            ("[a='null']", "@t0 {a='null'}"),
            ("[a=true]", "@t0 {a='true'}"),
            ("[a=-5]", "@t0 {a=-5}"),
            ("[a=+5]", "@t0 {a=5}"),
            ("[a=1.50]", "@t0 {a=1.50}"),
            ("[a=9223372036854775807]", "@t0 {a=9223372036854775807}"),
            ("[a=-9223372036854775808]", "@t0 {a=-9223372036854775808}"),
            ("[ a  <=  3 ]", "@t0 {a<=3}"),
            ("[a=$x]", "@t0 {a=$x}"),
            ("#$x", "@t0 {id=$x}"),
            (".cb:nth($n)", "@t0 .cb:nth($n)"),
            (".cb:code", "@t0 {stored_type='cb:code'}"),
        ],
    );
    warns(
        E,
        &[
            (".mt:frist", ".mt:frist", ":first"),
            (".cb:first:frist", ".cb:first:frist", ":first"),
            (".mt:depth", ".mt:depth", ":depth"),
            ("#a:lats", "#a:lats", ":last"),
            ("[a=1e5]", "1e5", "text"),
            ("[id=12E-3]", "12E-3", "text"),
        ],
    );
    refuses(E, WORDS);
}

const WORDS: &[Refused] = &[
    ("# .cb", "E_SELECTOR_INVALID", "#", "#hero"),
    ("#:first", "E_SELECTOR_INVALID", "#", "#hero"),
    ("#v1.2", "E_SELECTOR_INVALID", "#v1.2", "`#'v1.2'`"),
    ("#a/b", "E_SELECTOR_INVALID", "#a/b", "`#'a/b'`"),
    ("#héllo", "E_SELECTOR_INVALID", "#héllo", "`#'héllo'`"),
    ("#'a", "E_SELECTOR_INVALID", "'a", "closing"),
    ("[a='b]", "E_SELECTOR_INVALID", "'b]", "closing"),
    ("[v=1.2.3]", "E_SELECTOR_INVALID", "1.2.3", "`'1.2.3'`"),
    ("[v=a.b]", "E_SELECTOR_INVALID", "a.b", "`'a.b'`"),
    ("[mail=a@b.c]", "E_SELECTOR_INVALID", "a@b.c", "`'a@b.c'`"),
    ("[v=/x]", "E_SELECTOR_INVALID", "/x", "`'/x'`"),
    ("[v=é]", "E_SELECTOR_INVALID", "é", "`'é'`"),
    ("[a=b c]", "E_SELECTOR_INVALID", "c", "quote"),
    ("[1a=2]", "E_SELECTOR_INVALID", "1a", "`['1a']`"),
    ("[-a]", "E_SELECTOR_INVALID", "-a", "`['-a']`"),
    ("[5=5]", "E_SELECTOR_INVALID", "5", "a word"),
    (
        "[a=99999999999999999999]",
        "E_SELECTOR_INVALID",
        "99999999999999999999",
        "too large",
    ),
    (
        "[id=99999999999999999999]",
        "E_SELECTOR_INVALID",
        "99999999999999999999",
        "too large",
    ),
    ("[$x=1]", "E_SELECTOR_INVALID", "$x", "name"),
    ("$x", "E_SELECTOR_INVALID", "$x", "parameter"),
    ("[a==b]", "E_SELECTOR_INVALID", "==", "`=`"),
    ("[a^=b]", "E_SELECTOR_INVALID", "^=", "`~ '^text'`"),
    ("[a=]", "E_SELECTOR_INVALID", "]", "a word"),
    ("[=a]", "E_SELECTOR_INVALID", "=", "a word"),
    ("[a<>b]", "E_SELECTOR_INVALID", "<>", "`!=`"),
    ("[a~b]", "E_EDITION", "~", "`canonical`"),
    ("[a=[b,c]]", "E_EDITION", "[b,c]", "`canonical`"),
    ("[a=1,b=2]", "E_EDITION", "[a=1,b=2]", "`@t0 [a=1][b=2]`"),
    ("[ephemeral]", "E_EDITION", "ephemeral", "`@t0 [ttl=1]`"),
    ("[sticky]", "E_EDITION", "sticky", "[ttl=1][cadence=1]"),
    (
        "[stored_type=cb]",
        "E_EDITION",
        "stored_type",
        "[nodeType='cb']",
    ),
    ("@t0 [age<2]", "E_EDITION", "age", "`depth`"),
];

/// LANGUAGE §4: depths, zones and picks; source 000 §3.4.
#[test]
fn pseudo_classes() {
    normalizes(
        E,
        &[
            (".mt:depth(1)", "@t0 .mt:depth(1)"),
            (".mt:depth(1,2,5)", "@t0 .mt:depth(1..2,5)"),
            (".mt:depth(1-3)", "@t0 .mt:depth(1..3)"),
            (".mt:depth(1..3)", "@t0 .mt:depth(1..3)"),
            (".mt:depth( 1 , 3 - 4 )", "@t0 .mt:depth(1,3..4)"),
            (".mt:depth(2):depth(2-4)", "@t0 .mt:depth(2)"),
            (".cb:depth(2)", "@t0 .cb:depth(2)"),
            ("[x]:depth(2)", "@t0 [x!=null]:depth(2)"),
            (":depth(2)", "@t0 depth(2)"),
            ("*:depth(2)", "@t0 depth(2)"),
            ("*:depth(2):first", "@t0 depth(2):first"),
            (":pre", "@t0 :pre"),
            ("^ah :pre .cb", "@t0 depth(0) :pre .cb"),
            ("^ah :pre > .cb", "@t0 depth(0) :pre > .cb"),
            ("^ah > :post", "@t0 depth(0) > :post"),
            (".mt :core :pre", "@t0 .mt :core :pre"),
            ("*:pre", "@t0 {offset<0}"),
            (":pre:first", "@t0 [offset<0]:first"),
            (".cb:core", "@t0 .cb[offset=0]"),
            (".cb:post[x]", "@t0 .cb[offset>0][x!=null]"),
            (".cb:first[x]", "@t0 .cb[x!=null]:first"),
            (".cb:first:core", "@t0 .cb:first:core"),
            (".cb:first:depth(1)", "@t0 .cb:first:depth(1)"),
            (".cb:nth(3):last", "@t0 .cb:nth(3)"),
            (":first", "@t0 *:first"),
        ],
    );
    refuses(E, PSEUDO_CLASSES);
}

const PSEUDO_CLASSES: &[Refused] = &[
    (
        ".mt:depth()",
        "E_SELECTOR_INVALID",
        ":depth()",
        "empty depth",
    ),
    (".mt:depth(x)", "E_SELECTOR_INVALID", "x", "whole number"),
    (
        ".mt:depth(1.5)",
        "E_SELECTOR_INVALID",
        "1.5",
        "whole number",
    ),
    (
        ".mt:depth(1st)",
        "E_SELECTOR_INVALID",
        "1st",
        "whole number",
    ),
    (".mt:depth(3-1)", "E_SELECTOR_INVALID", "3-1", "`1..3`"),
    (".mt:depth(1,)", "E_SELECTOR_INVALID", ")", "a number"),
    (".mt:depth(1 2)", "E_SELECTOR_INVALID", "2", "`,`"),
    (".mt:depth(1", "E_SELECTOR_INVALID", "", "end"),
    (
        ".mt:depth(99999999999999999999)",
        "E_SELECTOR_INVALID",
        "99999999999999999999",
        "too large",
    ),
    (".mt:depth($n)", "E_SELECTOR_INVALID", "$n", "parameter"),
    (".mt:depth(0)", "E_EDITION", "0", "`@t0 ^ah, ^ah .mt`"),
    (".mt:depth(-1)", "E_EDITION", "-1", "`@t0 ^sys, ^sys .mt`"),
    (".mt:depth(0-3)", "E_EDITION", "0-3", "`depth`"),
    (".mt:depth(>1)", "E_EDITION", ">1", "`depth`"),
    (
        ".mt:depth({1,2})",
        "E_EDITION",
        "{1,2}",
        "`@t0 .mt:depth(1..2)`",
    ),
    ("*:frist", "E_SELECTOR_INVALID", ":frist", "`:first`"),
    ("[x]:depht(1)", "E_SELECTOR_INVALID", "(", "no parentheses"),
    ("*:hover", "E_SELECTOR_INVALID", ":hover", "unknown"),
    ("*:depth", "E_SELECTOR_INVALID", ":depth", ":depth(1)"),
    (".cb:nth(0)", "E_SELECTOR_INVALID", "0", "from 1"),
    (".cb:nth(-1)", "E_SELECTOR_INVALID", "-1", "from 1"),
    (".cb:nth()", "E_SELECTOR_INVALID", ")", "a number"),
    (".cb:nth(1,2)", "E_SELECTOR_INVALID", ",", "`)`"),
    (".cb:first(2)", "E_SELECTOR_INVALID", "(", "no parentheses"),
];

/// LANGUAGE §5, the part that is settled at compile time.
#[test]
fn comparisons() {
    normalizes(
        E,
        &[
            ("[ttl<=1]", "@t0 {ttl<=1}"),
            ("[ttl=5.0]", "@t0 {ttl=5}"),
            ("[ttl>0.5]", "@t0 {ttl>0.5}"),
            ("[ttl=null]", "@t0 {ttl=null}"),
            ("[cad=1]", "@t0 {cadence=1}"),
            ("[tag=a]", "@t0 {tags='a'}"),
            ("[tag=5]", "@t0 {tags='5'}"),
            ("[parent_id=a]", "@t0 {parent='a'}"),
            // A text header against a number compares with the number as written.
            ("[id=007]", "@t0 {id='007'}"),
            ("[role>1.50]", "@t0 {role>'1.50'}"),
            ("[data_x=007]", "@t0 {data_x=7}"),
            ("[priority]", "@t0 *"),
            ("[ttl]", "@t0 {ttl!=null}"),
        ],
    );
    refuses(E, COMPARISONS);
}

const COMPARISONS: &[Refused] = &[
    ("[ttl=soon]", "E_SELECTOR_INVALID", "soon", "is a number"),
    (
        "[ttl='3']",
        "E_SELECTOR_INVALID",
        "'3'",
        "remove the quotes",
    ),
    ("[offset=true]", "E_SELECTOR_INVALID", "true", "is a number"),
    (
        "[created_at_ns<1e5]",
        "E_SELECTOR_INVALID",
        "1e5",
        "is a number",
    ),
];

/// LANGUAGE §9: equal meanings have one form.
#[test]
fn equal_meanings() {
    equal(
        E,
        &[
            &[".mt[a=1][b=2]", ".mt[b=2][a=1]", ".seg[a=1][b=2][a=1]"],
            &[
                "^ah > .mc[offset=0]",
                "^ah > .mc:core",
                "^ah>.cont[offset=0.0]",
            ],
            &[
                ".cb:summary",
                "[nodeType='cb:summary']",
                "[type='block:summary']",
            ],
            &[".a, .b", ".b,.a", ".a,.b,.a"],
            &["@t-3..@t0 *", "@t0..@t-3 *", "@t0:-3 *", "@t-3:0 *"],
            &["[a]", "[a!=null]", "[a!=None]"],
            &[".mt:depth(1,2,3)", ".mt:depth(1-3)", ".mt:depth(3,1-2)"],
            &["^seq[x]", "[nodeType='^seq'][x]"],
        ],
    );
}

/// LANGUAGE §10: what can match nothing by its form.
#[test]
fn contradictions() {
    for (text, underlined, says) in [
        ("^root > ^ah ^sys", "^root > ^ah ^sys", "`depth(-1)`"),
        (
            "[ttl<1][ttl>3]",
            "[ttl<1][ttl>3]",
            "`[ttl<1]` and `[ttl>3]`",
        ),
        ("[ttl=1][ttl=2]", "[ttl=1][ttl=2]", "exclude"),
        ("[ttl<2][ttl>=2]", "[ttl<2][ttl>=2]", "exclude"),
        ("[ttl=null][ttl>1]", "[ttl=null][ttl>1]", "exclude"),
        ("[role=a][role=b]", "[role=a][role=b]", "exclude"),
        ("[x=a][x!=a]", "[x=a][x!=a]", "exclude"),
        (".mt.cb", ".mt.cb", "not both"),
        ("^root.mt", "^root.mt", "not both"),
        ("^sys^ah", "^sys^ah", "no depth"),
        (".mt[nodeType=cb]", ".mt[nodeType=cb]", "exclude"),
        ("[ttl<null]", "[ttl<null]", "never true"),
        ("[offset=null]", "[offset=null]", "never true"),
        ("#a#b", "#a#b", "exclude"),
        (".mt:depth(1):depth(2)", ".mt:depth(1):depth(2)", "no depth"),
        ("^seq:depth(1) .cb", "^seq:depth(1) .cb", "excludes itself"),
        (".cb ^root", ".cb ^root", "never stands there"),
        (".cb > ^ah", ".cb > ^ah", "never stands there"),
        ("^seq > ^ah", "^seq > ^ah", "never stands there"),
        (".cb:pre:first:core", ".cb:pre:first:core", "exclude"),
    ] {
        assert_eq!(canonical(text, E), "@t0 none", "`{text}`");
        warns(E, &[(text, underlined, says)]);
    }
    // The rest of a union stays.
    assert_eq!(canonical(".cb, [ttl<1][ttl>3]", E), "@t0 .cb");
    warns(
        E,
        &[(".cb, [ttl<1][ttl>3]", "[ttl<1][ttl>3]", "this group")],
    );
    // These may match.
    for text in [
        "[tag=a][tag=b]",
        "[x=a][x=b]",
        "[ttl<=1][ttl>=1]",
        "[ttl!=1][ttl!=2]",
        "^root :core ^ah",
        ":pre ^ah",
        "^root ^seq > .mt",
        "* ^ah",
        "[x] ^ah",
        ".mt .mt:depth(1)",
    ] {
        let found = lowered(text, E);
        assert!(!found.query.is_none(), "`{text}`");
        assert_eq!(found.warnings, [], "`{text}`");
    }
}

/// LANGUAGE §10: several mistakes at once, the leftmost first.
#[test]
fn several_mistakes() {
    let text = "@t0 ^sek .cb[role=] .mt:depth(3-1) > [x=1.2.3] *:frist";
    let error = refused(text, E);
    let underlined: Vec<&str> = error
        .diagnostics()
        .map(|diagnostic| &text[diagnostic.labels[0].span.clone()])
        .collect();
    assert_eq!(underlined, ["^sek", "]", "3-1", "1.2.3", ":frist"]);
}

/// LANGUAGE §10, `E_LIMIT`.
#[test]
fn limits() {
    let groups = vec![".cb"; 256].join(",");
    assert_eq!(canonical(&groups, E), "@t0 .cb");
    let groups = vec![".cb"; 257].join(",");
    refuses(E, &[(&groups, "E_LIMIT", ".cb", "256 groups")]);

    let steps = vec!["*"; 64].join(" ");
    lowered(&steps, E);
    let steps = vec!["*"; 65].join(" ");
    refuses(E, &[(&steps, "E_LIMIT", "*", "64 steps")]);

    let depths: Vec<String> = (1..=1_024).map(|depth| depth.to_string()).collect();
    let fits = format!(".mt:depth({})", depths.join(","));
    assert_eq!(canonical(&fits, E), "@t0 .mt:depth(1..1024)");
    let over = format!(".mt:depth({},7)", depths.join(","));
    assert_eq!(refused(&over, E).code().as_str(), "E_LIMIT");

    let fits = format!("#{}", "a".repeat(64 * 1024 - 1));
    lowered(&fits, E);
    let over = format!("#{}", "a".repeat(64 * 1024));
    assert_eq!(refused(&over, E).code().as_str(), "E_LIMIT");
}

/// LANGUAGE §6: which selectors come in key order.
#[test]
fn pinned_keys() {
    for (text, pinned) in [
        ("[key='K']", Some("'K'")),
        (".mt .cb[key=K][x]", Some("'K'")),
        (".cb[key=K], [key='K']", Some("'K'")),
        (".cb[key=$k]", Some("$k")),
        ("[key=K]:first", Some("'K'")),
        (".cb[key=K], .mt", None),
        (".cb[key=K], .mt[key=L]", None),
        ("[key=K] .cb", None),
        ("[key!=K]", None),
        ("[key=null]", None),
        ("[key]", None),
        ("[key=K] :pre", None),
        ("#K", None),
    ] {
        let query = lowered(text, E).query;
        let found = query.pinned_key().map(ToString::to_string);
        assert_eq!(found.as_deref(), pinned, "`{text}`");
    }
}

/// LANGUAGE §5: parameters stand for whole literals.
#[test]
fn parameters() {
    let query = lowered("#$id.cb[a=$x][b<$y]:nth($n), .mt[a=$x]", E).query;
    assert_eq!(query.params(), ["id", "n", "x", "y"]);
    assert_eq!(lowered(".cb", E).query.params(), [] as [&str; 0]);
}
