//! Edition `canonical`.

use super::{Edition, Refused, canonical, equal, lowered, normalizes, refuses, warns};

const E: Edition = Edition::Canonical;

/// What is refused, table by table.
pub(super) const REFUSED: &[&[Refused]] = &[SEARCHES_AND_FILTERS, VALUES, CONTROLS];

/// Source 003 §6, as it normalizes.
#[test]
fn examples() {
    normalizes(
        E,
        &[
            (
                "(d0, *:block) { role=system } [ ttl>0 ]",
                "depth(0) > .cb {role='system', ttl>0}",
            ),
            (
                "@t0 (d1, seg, cont[offset=0], *:block) { role=assistant }",
                "@t0 depth(1) > .mc[offset=0] > .cb {role='assistant'}",
            ),
            ("(d-1, *:block) { ttl<=1 }", "depth(-1) > .cb {ttl<=1}"),
            ("#hero", "{key='hero'}"),
            (
                "@history +featured @first",
                "@t0..@t-* {tags='featured'} @limit=1",
            ),
            ("?? { tag='summary' }", "{tags='summary'}"),
            (
                "within(d1,d3) ?? { type=block, kind=summary } @order=bfs @limit=50",
                "depth(1,3) [nodeType='cb'][kind='summary'] @order=bfs @limit=50",
            ),
            ("@t-5:@t-1 ^ah .block", "@t-1..@t-5 depth(0) .cb"),
            ("@* #abc123def", "@* {key='abc123def'}"),
            ("^seq .seg:depth(3)", "^seq .mt:depth(3)"),
            (
                "^seq .seg:depth(1) .block[key='K']",
                "^seq .mt:depth(1) .cb[key='K']",
            ),
            (
                ".seg:depth(<0)[key='policy-banner']",
                ".mt[key='policy-banner']:depth(-1)",
            ),
        ],
    );
}

/// LANGUAGE §4, §7: searches, filters and tags.
#[test]
fn searches_and_filters() {
    normalizes(
        E,
        &[
            ("#K [x]", "{key='K'} [x!=null]"),
            ("#K [x] [y=1]", "{key='K'} [x!=null, y=1]"),
            ("#'hero banner'", "{key='hero banner'}"),
            ("+b +a", "{tags='a', tags='b'}"),
            ("+b+a [x]", "{tags='a', tags='b'} [x!=null]"),
            ("#K > [x]", "[key='K'] > [x!=null]"),
            ("#K .cb", "[key='K'] .cb"),
            ("#K [x], .cb", ".cb, [key='K'] [x!=null]"),
            ("#K[a] [x]", "[key='K'][a!=null] [x!=null]"),
            (".cb+a", ".cb+a"),
            (".cb +a", ".cb {tags='a'}"),
            (".cb +a +b", ".cb {tags='a', tags='b'}"),
            (".cb, +b +a", ".cb, *+a+b"),
            ("+a > .cb", "*+a > .cb"),
            (".cb +a [x]", ".cb {tags='a', x!=null}"),
            (".cb [x]", ".cb [x!=null]"),
            (".cb {a} [x]", ".cb {a!=null, x!=null}"),
            (".cb @unique [x]", ".cb {x!=null} @unique"),
            ("{a=1, b} [c] +d", "{a=1, b!=null} [tags='d', c!=null]"),
            ("(d1) ?? {role=user}", "depth(1) [role='user']"),
            ("(d1) ? {role=user}", "depth(1) > [role='user']"),
            ("within (d1) ?? {x}", "depth(1) [x!=null]"),
            (
                "(d1, ?{role=user}, *{x})",
                "depth(1) > [role='user'] > [x!=null]",
            ),
            ("{sticky, role=user}", "{role='user', ttl=1, cadence=1}"),
            ("[ephemeral]", "{ttl=1}"),
            ("['ephemeral']", "{ephemeral!=null}"),
            ("[ephemeral=1]", "{ephemeral=1}"),
            (
                "[stored_type='seg:x'][stored_kind=a]",
                "{stored_type='mt:x', stored_kind='a'}",
            ),
            ("[stored_type='^seq']", "[stored_type='^seq']"),
            (".cb {stored_type='^seq'}", ".cb {stored_type='^seq'}"),
            ("none", "none"),
            ("@t0..@t-1 none @mode=union", "@t0..@t-1 none @mode=union"),
        ],
    );
    refuses(E, SEARCHES_AND_FILTERS);
}

const SEARCHES_AND_FILTERS: &[Refused] = &[
    (".cb +a > .mt", "E_SELECTOR_INVALID", "+a", ".cb+tag"),
    (".cb +a .mt", "E_SELECTOR_INVALID", "+a", ".cb+tag"),
    (".cb > +a", "E_SELECTOR_INVALID", "+a", ".cb+tag"),
    ("+", "E_SELECTOR_INVALID", "+", "without a word"),
    ("#K [x] .cb", "E_SELECTOR_INVALID", ".cb", "only filters"),
    (
        "{role=user} .cb",
        "E_SELECTOR_INVALID",
        ".cb",
        "only filters",
    ),
    (".cb {x} .mt", "E_SELECTOR_INVALID", ".mt", "only filters"),
    ("{}", "E_SELECTOR_INVALID", "{}", "without a property"),
    ("? {x}", "E_SELECTOR_INVALID", "?", "?? {"),
    ("? ? {x}", "E_SELECTOR_INVALID", "?", "another search"),
    (".cb ?? {x}", "E_SELECTOR_INVALID", "??", "follow a chain"),
    (".cb ? {x}", "E_SELECTOR_INVALID", "?", "follow a chain"),
    ("within(d1)", "E_SELECTOR_INVALID", "", "`??`"),
    ("within(d1) ? {x}", "E_SELECTOR_INVALID", "?", ""),
    (
        "within(d1,) ?? {x}",
        "E_SELECTOR_INVALID",
        ",",
        "insertion point",
    ),
    ("none [x]", "E_SELECTOR_INVALID", "[", "stands alone"),
    ("none {x}", "E_SELECTOR_INVALID", "none", "stands alone"),
    ("none, .cb", "E_SELECTOR_INVALID", ",", "stands alone"),
    ("{x} > .cb", "E_SELECTOR_INVALID", ">", "write a chain"),
    ("{x}, {y}", "E_SELECTOR_INVALID", ",", "only filters"),
    ("{x=}", "E_SELECTOR_INVALID", "}", "a word"),
    ("{x", "E_SELECTOR_INVALID", "", "end"),
    ("{,a}", "E_SELECTOR_INVALID", ",", "a word"),
    ("{a=b c}", "E_SELECTOR_INVALID", "c", "quote"),
    ("{a;b}", "E_SELECTOR_INVALID", "a;b", "quoted"),
    ("?? {}", "E_SELECTOR_INVALID", "{}", "without a property"),
    ("??", "E_SELECTOR_INVALID", "", "`{`"),
    ("?? [x]", "E_SELECTOR_INVALID", "[", "`{`"),
    ("(d1) ?? .cb", "E_SELECTOR_INVALID", ".cb", "`{`"),
    ("within(d1) .cb", "E_SELECTOR_INVALID", ".cb", "`??`"),
    ("?? .cb", "E_SELECTOR_INVALID", ".cb", "`{`"),
    ("?? ?? {x}", "E_SELECTOR_INVALID", "??", "another search"),
    ("(d1) ? ? {x}", "E_SELECTOR_INVALID", "?", "another search"),
    (
        "(d1) ?? {x} ?? {y}",
        "E_SELECTOR_INVALID",
        "??",
        "a search cannot follow",
    ),
    ("?? {x} .cb", "E_SELECTOR_INVALID", ".cb", "write a chain"),
    (
        "within() ?? {x}",
        "E_SELECTOR_INVALID",
        "within()",
        "without hops",
    ),
    ("within(d1) {x}", "E_SELECTOR_INVALID", "{", "`??`"),
    (
        "within ?? {x}",
        "E_SELECTOR_INVALID",
        "within",
        "within(d1)",
    ),
    (
        "within(d1, end) ?? {x}",
        "E_SELECTOR_INVALID",
        "end",
        "insertion point",
    ),
    (".cb, +a > +b", "E_SELECTOR_INVALID", "+b", ".cb+tag"),
    ("+'a", "E_SELECTOR_INVALID", "'a", "closing"),
    ("+a:b", "E_SELECTOR_INVALID", ":b", "pseudo-class"),
    ("+a [x] .cb", "E_SELECTOR_INVALID", ".cb", "only filters"),
    (".cb {a}, .mt", "E_SELECTOR_INVALID", ",", "only filters"),
    (".cb none", "E_SELECTOR_INVALID", "none", "stands alone"),
    ("none +a", "E_SELECTOR_INVALID", "none", "stands alone"),
    ("[stored_type>]", "E_SELECTOR_INVALID", "]", "a word"),
];

/// LANGUAGE §5: lists and patterns.
#[test]
fn values() {
    normalizes(
        E,
        &[
            ("[role=[user,tool]]", "{role=['tool', 'user']}"),
            ("[role!=[user,'a b',null]]", "{role!=[null, 'a b', 'user']}"),
            ("[role=[user]]", "{role='user'}"),
            ("[ttl=[3,1,3]]", "{ttl=[1, 3]}"),
            ("[tag=[b,a]]", "{tags='a', tags='b'}"),
            ("[tags!=[b,a]]", "{tags!=['a', 'b']}"),
            ("[x=[$a,1]]", "{x=[1, $a]}"),
            ("[content~'a.*b']", "{content~'a.*b'}"),
            ("[role~use]", "{role~'use'}"),
            ("[x~5]", "{x~'5'}"),
            ("[role~$p]", "{role~$p}"),
            (".cb[a=1, b=2]", ".cb[a=1][b=2]"),
        ],
    );
    warns(E, &[("[role~null]", "[role~null]", "never true")]);
    refuses(E, VALUES);
    let values = vec!["x"; 1_024].join(",");
    lowered(&format!("[role=[{values}]]"), E);
    let over = format!("[role=[{values},y]]");
    refuses(
        E,
        &[(&over, "E_LIMIT", &over[6..over.len() - 1], "1024 values")],
    );
}

const VALUES: &[Refused] = &[
    ("[role=[]]", "E_SELECTOR_INVALID", "[]", "empty list"),
    ("[role<[a]]", "E_SELECTOR_INVALID", "[a]", "only"),
    ("[role~[a]]", "E_SELECTOR_INVALID", "[a]", "only"),
    ("[role=[[a]]]", "E_SELECTOR_INVALID", "[", "a word"),
    ("[role=[a,]]", "E_SELECTOR_INVALID", "]", "a word"),
    ("[ttl=[1,x]]", "E_SELECTOR_INVALID", "x", "is a number"),
    ("[ttl~'1']", "E_SELECTOR_INVALID", "~", "is a number"),
    ("@t0 [age~'1']", "E_SELECTOR_INVALID", "~", "is a number"),
    (
        "[content~'(']",
        "E_SELECTOR_INVALID",
        "'('",
        "unclosed group",
    ),
    (
        "[content~'(a{1000}){1000}']",
        "E_LIMIT",
        "'(a{1000}){1000}'",
        "when compiled",
    ),
    ("[a,]", "E_SELECTOR_INVALID", "]", "a word"),
    ("[,a]", "E_SELECTOR_INVALID", ",", "a word"),
    ("[a b]", "E_SELECTOR_INVALID", "b", "commas"),
    ("[role=[a b]]", "E_SELECTOR_INVALID", "b", "commas"),
    ("[role=[a]", "E_SELECTOR_INVALID", "", "end"),
    (
        "[ttl=['1']]",
        "E_SELECTOR_INVALID",
        "'1'",
        "remove the quotes",
    ),
    ("[x~]", "E_SELECTOR_INVALID", "]", "a word"),
    ("[x~'[']", "E_SELECTOR_INVALID", "'['", "character class"),
    ("[x~'*']", "E_SELECTOR_INVALID", "'*'", "repetition"),
    ("[cadence~1]", "E_SELECTOR_INVALID", "~", "is a number"),
    ("[ephemeral=]", "E_SELECTOR_INVALID", "]", "a word"),
    (".cb ~ x", "E_SELECTOR_INVALID", "~", "in brackets"),
    ("{age<2}", "E_FACET_NEEDS_SNAPSHOT", "age", "@t0"),
    (".cb {depth=1}", "E_FACET_NEEDS_SNAPSHOT", "depth", "@t0"),
    (
        "(d1) {born_turn=1}",
        "E_FACET_NEEDS_SNAPSHOT",
        "born_turn",
        "@t0",
    ),
    ("@t0 {sdepth=x}", "E_SELECTOR_INVALID", "x", "is a number"),
    ("[$x]", "E_SELECTOR_INVALID", "$x", "literal"),
    ("$x .cb", "E_SELECTOR_INVALID", "$x", "a parameter"),
    ("[x=$]", "E_SELECTOR_INVALID", "$", "quoted"),
    ("#$", "E_SELECTOR_INVALID", "#$", "`#$key`"),
];

/// LANGUAGE §6, §7: controls.
#[test]
fn controls() {
    normalizes(
        E,
        &[
            (".cb @limit=0", ".cb @limit=0"),
            (".cb @first", ".cb @limit=1"),
            (
                ".cb @p=2 @limit=10 @unique @order=post",
                ".cb @order=post @unique @limit=10 @p=2",
            ),
            (".cb @order=pre", ".cb @order=pre"),
            (".cb @order=bfs", ".cb @order=bfs"),
            (".cb @order=path", ".cb @order=path"),
            (".cb @order=turn:asc,pre", ".cb @order=turn:asc,pre"),
            (
                ".cb @order=turn:desc, pre @first",
                ".cb @order=turn:desc,pre @limit=1",
            ),
            (".cb @limit = 5", ".cb @limit=5"),
            (".cb@limit=5", ".cb @limit=5"),
            (".cb @limit=$n @p=$k", ".cb @limit=$n @p=$k"),
            ("@t0..@t-3 .cb @mode=reduce", "@t0..@t-3 .cb @mode=reduce"),
            ("@history .cb", "@t0..@t-* .cb"),
            ("@history.cb", "@t0..@t-* .cb"),
        ],
    );
    refuses(E, CONTROLS);
}

const CONTROLS: &[Refused] = &[
    (".cb @lmit=3", "E_SELECTOR_INVALID", "@lmit", "`@limit`"),
    (
        ".cb @sort=3",
        "E_SELECTOR_INVALID",
        "@sort",
        "unknown control",
    ),
    (
        ".cb @limit",
        "E_SELECTOR_INVALID",
        "@limit",
        "needs a number",
    ),
    (".cb @limit=", "E_SELECTOR_INVALID", "=", "missing"),
    (".cb @limit=-1", "E_SELECTOR_INVALID", "-1", "whole number"),
    (
        ".cb @limit=all",
        "E_SELECTOR_INVALID",
        "all",
        "whole number",
    ),
    (
        ".cb @limit=99999999999999999999",
        "E_SELECTOR_INVALID",
        "99999999999999999999",
        "too large",
    ),
    (
        ".cb @limit=1 @limit=2",
        "E_SELECTOR_INVALID",
        "@limit=2",
        "twice",
    ),
    (
        ".cb @limit=1 @first",
        "E_SELECTOR_INVALID",
        "@first",
        "exclude each other",
    ),
    (
        ".cb @unique @unique",
        "E_SELECTOR_INVALID",
        "@unique",
        "twice",
    ),
    (".cb @p=2", "E_SELECTOR_INVALID", "@p=2", "@limit=10"),
    (".cb @limit=1 @p=0", "E_SELECTOR_INVALID", "0", "@p=1"),
    (".cb @first=2", "E_SELECTOR_INVALID", "2", "no value"),
    (
        ".cb @order=pree",
        "E_SELECTOR_INVALID",
        "pree",
        "`@order=pre`",
    ),
    (
        ".cb @order",
        "E_SELECTOR_INVALID",
        "@order",
        "needs a value",
    ),
    (
        ".cb @mode=union",
        "E_SELECTOR_INVALID",
        "@mode=union",
        "range",
    ),
    (
        "@* .cb @mode=union",
        "E_SELECTOR_INVALID",
        "@mode=union",
        "range",
    ),
    (
        "@t0..@t-1 .cb @mode=uniom",
        "E_SELECTOR_INVALID",
        "uniom",
        "@mode=union",
    ),
    ("@limit=5 .cb", "E_SELECTOR_INVALID", ".cb", "at the end"),
    ("@limit=5", "E_SELECTOR_INVALID", "@limit=5", "`* @limit=5`"),
    ("@t0 @first", "E_SELECTOR_INVALID", "@first", "`* @first`"),
    (".cb @history", "E_SELECTOR_INVALID", "@history", "start"),
    (
        ".cb @first .mt",
        "E_SELECTOR_INVALID",
        ".mt",
        "only filters",
    ),
    (".cb @first, .mt", "E_SELECTOR_INVALID", ",", "only filters"),
    (
        ".cb @limit=1.5",
        "E_SELECTOR_INVALID",
        "1.5",
        "whole number",
    ),
    (
        ".cb @limit='1'",
        "E_SELECTOR_INVALID",
        "'1'",
        "whole number",
    ),
    (".cb @first @first", "E_SELECTOR_INVALID", "@first", "twice"),
    (
        ".cb @first @limit=1",
        "E_SELECTOR_INVALID",
        "@limit=1",
        "exclude each other",
    ),
    (
        ".cb @p=1 @p=2 @limit=3",
        "E_SELECTOR_INVALID",
        "@p=2",
        "twice",
    ),
    (
        ".cb @order=pre @order=post",
        "E_SELECTOR_INVALID",
        "@order=post",
        "twice",
    ),
    (
        ".cb @order=up",
        "E_SELECTOR_INVALID",
        "up",
        "`turn:desc,pre`",
    ),
    (
        ".cb @order=turn:desc",
        "E_SELECTOR_INVALID",
        "turn:desc",
        "@order=turn:desc,pre",
    ),
    (".cb @unique=1", "E_SELECTOR_INVALID", "1", "no value"),
    (".cb @order=$o", "E_SELECTOR_INVALID", "$o", "unknown order"),
    (".cb @t0", "E_SELECTOR_INVALID", "@t0", "front"),
    ("@history", "E_SELECTOR_INVALID", "@history", "@history *"),
    (
        "@history .cb @mode",
        "E_SELECTOR_INVALID",
        "@mode",
        "needs a value",
    ),
];

/// LANGUAGE §9: equal meanings have one form, whatever the spelling.
#[test]
fn equal_meanings() {
    equal(
        E,
        &[
            &[
                "^ah > .mc[offset=0]",
                "depth(0) > .cont(offset=0)",
                "depth(0) > .mc:core",
                "(d0, cont[offset=0])",
            ],
            &["#hero", "{key='hero'}", "[key=hero]", "?? {key=\"hero\"}"],
            &["+a +b", "+b+a", "{tag=[b,a]}", "?? {tags=a, tag='b'}"],
            &[
                "(d1, *:block)",
                "(d1, seg, block)",
                "depth(1) > .block",
                "(depth(1), cb)",
            ],
            &["within(d1) ?? {x}", "(d1) ?? {x}", "depth(1) [x]"],
            &["@history *", "@t0..@t-* *", "@t-*..@t0 *"],
            &["[ephemeral]", "{ttl=1}", "[ttl=1.0]"],
            &[
                ".block:summary",
                "[nodeType='block'][kind='summary']",
                ".cb:summary",
            ],
            &["none", ".cb[ttl<1][ttl>3]", "none @limit=3"],
            &[
                ".mt:depth(1):first:first",
                ".mt:depth(1):first",
                ".mt:depth(1):nth(1)",
            ],
        ],
    );
}

/// Where an omitted time means the working state, `v0.1` says `@t0`; the rest is one language.
#[test]
fn editions_meet_in_one_form() {
    for text in [
        ".cb[role=user]",
        "^sys .cb",
        ".mt:depth(1) > .mc:core",
        "^ah :pre",
    ] {
        let old = canonical(text, Edition::V01);
        assert_eq!(old, format!("@t0 {}", canonical(text, E)));
    }
}

/// LANGUAGE §9: the fingerprint is the SHA-256 of the canonical text.
#[test]
fn fingerprint() {
    let query = lowered("@t0 .block", E).query;
    assert_eq!(query.canonical_text(), "@t0 .cb");
    // printf '@t0 .cb' | sha256sum
    assert_eq!(
        query.fingerprint().to_string(),
        "4b29d12ff8277ce31c110af248abbe15850bb269d985d727c1d2d80fc94f68dc"
    );
}
