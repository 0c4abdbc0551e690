//! Edition `depth`.

use super::{Edition, equal, normalizes, refuses, warns};

const E: Edition = Edition::Depth;

/// The first table: what changes from `v0.1`.
#[test]
fn readings() {
    normalizes(
        E,
        &[
            (".cb", ".cb"),
            ("#x", "{id='x'}"),
            (".cb:sub", "{nodeType='cb', kind='sub'}"),
            (".foo", "{nodeType='foo'}"),
            (".foo:bar:baz", "{nodeType='foo', kind='bar:baz'}"),
            ("[kind=a]", "{kind='a'}"),
            ("[nodeType=seg]", "{nodeType='mt'}"),
        ],
    );
}

/// LANGUAGE §4: universal depth, source 001 §3.4.
#[test]
fn depths() {
    normalizes(
        E,
        &[
            ("depth(0) > .mc[offset=0]", "depth(0) > .mc[offset=0]"),
            ("depth(-1) > .cb#policy", "depth(-1) > .cb[id='policy']"),
            (".mt:depth(0)", ".mt:depth(0)"),
            (".mt:depth(<0)", ".mt:depth(-1)"),
            (".mt:depth(<=-1)", ".mt:depth(-1)"),
            (".mt:depth(>0)", ".mt:depth(>=1)"),
            (".mt:depth(>=2)", ".mt:depth(>=2)"),
            (".mt:depth(-1..2)", ".mt:depth(-1..2)"),
            (".mt:depth(-1-2)", ".mt:depth(-1..2)"),
            (".mt:depth({1,2}) .cb", ".mt:depth(1..2) .cb"),
            (".mt:depth(0,>=3,{1})", ".mt:depth(0..1,>=3)"),
            (":depth(0,1)", "depth(0..1)"),
            ("^seq", "depth(>=1)"),
            ("^seq[x]:first", "depth(>=1)[x!=null]:first"),
            ("^seq, ^ah", "depth(0), depth(>=1)"),
            ("^seq .mt", "^seq .mt"),
            ("^seq > *", "^seq > *"),
            (".mt:depth(0)[x]", ".mt[x!=null]:depth(0)"),
            (".mt:first:depth(0)", ".mt:first:depth(0)"),
            ("*:first:depth(0)", "*:first:depth(0)"),
            ("depth(1).mt", "depth(1)"),
            ("depth(0,1).mt", "depth(1)"),
            (".mt:sub:depth(0)", "[nodeType='mt'][kind='sub']:depth(0)"),
            ("[offset]:depth(0)", "[offset!=null]:depth(0)"),
            ("*:core:depth(0)", "[offset=0]:depth(0)"),
        ],
    );
    equal(
        E,
        &[
            &[
                "^ah > .mc[offset=0]",
                "depth(0) > .cont(offset=0)",
                "depth(0) > .mc:core",
            ],
            &["^sys > *", "depth(-1) > *", ":depth(-1) > *"],
            &["^seq", "depth(>=1)", "depth(>0)", "*:depth(>=1)"],
            &[".mt:depth(>0)", ".mt:depth(>=1)"],
            &[".mt:depth(<0)", ".mt:depth(-1)", ".mt:depth(-7--1)"],
        ],
    );
    warns(E, &[(".mt:depth(<-1)", ".mt:depth(<-1)", "no depth")]);
    refuses(
        E,
        &[
            (
                "depth() > .cb",
                "E_SELECTOR_INVALID",
                "depth()",
                "empty depth",
            ),
            (".mt:depth({})", "E_SELECTOR_INVALID", "{}", "empty depth"),
            (".mt:depth(2..1)", "E_SELECTOR_INVALID", "2..1", "1..2"),
            (".mt:depth(1--1)", "E_SELECTOR_INVALID", "1--1", "-1..1"),
            (".mt:depth(=1)", "E_SELECTOR_INVALID", "=1", ":depth(1)"),
            (".mt:depth(>)", "E_SELECTOR_INVALID", ")", "a number"),
            (".mt:depth({1-2})", "E_SELECTOR_INVALID", "-", "`}`"),
            ("depth (1)", "E_SELECTOR_INVALID", "depth", "depth(1)"),
        ],
    );
}

/// LANGUAGE §4: groups right behind a type, source 001 §3.5.1.
#[test]
fn groups() {
    equal(
        E,
        &[
            &[
                ".cb(kind='important' ttl=5)",
                ".cb[kind='important'][ttl=5]",
                ".cb(kind='important', ttl=5)",
                ".cb(ttl=5,kind=important)",
                ".cb(kind='important')[ttl=5]",
            ],
            &[".cb(a b=1)", ".cb[a][b=1]"],
        ],
    );
    refuses(
        E,
        &[
            (".cb()", "E_SELECTOR_INVALID", "()", "without a property"),
            (
                ".cb (a=1)",
                "E_SELECTOR_INVALID",
                "(",
                "right behind its type",
            ),
            (".cb[x](a=1)", "E_SELECTOR_INVALID", "(", "follows a type"),
            (".cb(a=1", "E_SELECTOR_INVALID", "", "end"),
            (".cb(a=1,)", "E_SELECTOR_INVALID", ")", "a word"),
            (".cb(a=)", "E_SELECTOR_INVALID", ")", "a word"),
        ],
    );
}

/// LANGUAGE §5: facets, source 001 §3.5.3.
#[test]
fn facets() {
    normalizes(
        E,
        &[
            ("@t0 [age<2]", "@t0 {age<2}"),
            ("@t0 .cb[depth=1][sdepth>3]", "@t0 .cb[depth=1][sdepth>3]"),
            ("@* [born_turn=3]", "@* {born_turn=3}"),
            ("['age'=2]", "{'age'=2}"),
        ],
    );
    refuses(
        E,
        &[
            ("[age<2]", "E_FACET_NEEDS_SNAPSHOT", "age", "@t0"),
            (".cb[depth=1]", "E_FACET_NEEDS_SNAPSHOT", "depth", "@t0"),
            ("@t0 [age=old]", "E_SELECTOR_INVALID", "old", "is a number"),
        ],
    );
}

/// LANGUAGE §7: positions, source 001 §3.8.
#[test]
fn positions() {
    normalizes(
        E,
        &[
            (
                "(d0, mc[offset=0], *:cb[role=\"user\"])",
                "depth(0) > .mc[offset=0] > .cb[role='user']",
            ),
            (
                "(d1, seg, mc[offset=0], *:cb[role=\"assistant\"])",
                "depth(1) > .mc[offset=0] > .cb[role='assistant']",
            ),
            (
                "(d2, seg, *:cb[kind=\"summary\"])",
                "depth(2) > .cb[kind='summary']",
            ),
            (
                "(d-1, *:cb[role=\"system\"])",
                "depth(-1) > .cb[role='system']",
            ),
            ("(d1)", "depth(1)"),
            ("(d1, d3, seg[x])", "depth(1,3)[x!=null]"),
            ("(d1..d3, *)", "depth(1..3) > *"),
            ("(depth(>=2), 0)", "depth(>=2) > [offset=0]"),
            ("(seg)", "^root > .mt"),
            ("(*, *)", "^root > * > *"),
            (
                "(d1, -1, 2[x])",
                "depth(1) > [offset=-1] > [offset=2][x!=null]",
            ),
            ("(d1, -1:block)", "depth(1) > .cb[offset=-1]"),
            (
                "(d1, 1:cont.x, block:call)",
                "depth(1) > [nodeType='mc'][kind='x'][offset=1] > [nodeType='cb'][kind='call']",
            ),
            (
                "(d1, *:block.call)",
                "depth(1) > [nodeType='cb'][kind='call']",
            ),
            (
                "(d1, seg.done, cb(role=user))",
                "depth(1)[nodeType='mt'][kind='done'] > .cb[role='user']",
            ),
            (
                "@t0 (d1, *:cb[kind=\"summary\"]) [age<2]",
                "@t0 depth(1) > .cb[kind='summary'] {age<2}",
            ),
            (
                "@t0..@t-3 (d2, *:cb) @mode=latest [depth=2]",
                "@t0..@t-3 depth(2) > .cb {depth=2} @mode=latest",
            ),
        ],
    );
    refuses(
        E,
        &[
            ("()", "E_SELECTOR_INVALID", "()", "without hops"),
            (
                "(d0, seg, mc[offset=0], )",
                "E_SELECTOR_INVALID",
                ",",
                "insertion point",
            ),
            (
                "(d0, seg, mc[offset=0], end)",
                "E_SELECTOR_INVALID",
                "end",
                "insertion point",
            ),
            (
                "(d0, seg, mc[offset=0], +1)",
                "E_SELECTOR_INVALID",
                "+1",
                "insertion point",
            ),
            ("(d1, -1)", "E_SELECTOR_INVALID", "-1", "*[offset=-1]"),
            ("(end, d1)", "E_SELECTOR_INVALID", "end", "last thing"),
            ("(d1, +1, *)", "E_SELECTOR_INVALID", "+1", "insertion point"),
            ("(seg, d1)", "E_SELECTOR_INVALID", "d1", "first"),
            ("(d1[x])", "E_SELECTOR_INVALID", "[x]", "seg"),
            ("(*.call)", "E_SELECTOR_INVALID", ".call", "*:block.call"),
            (
                "(block:first)",
                "E_SELECTOR_INVALID",
                "block:first",
                "`:first`",
            ),
            ("(d1, *:first)", "E_SELECTOR_INVALID", ":first", "no class"),
            ("(turn)", "E_SELECTOR_INVALID", "turn", "unknown hop"),
            ("(blok)", "E_SELECTOR_INVALID", "blok", "`block`"),
            ("(d3..d1)", "E_SELECTOR_INVALID", "d3..d1", "1..3"),
            ("(a..d1)", "E_SELECTOR_INVALID", "a..d1", "d1..d3"),
            (
                "(d1), .cb",
                "E_SELECTOR_INVALID",
                ",",
                "never part of a union",
            ),
            (
                ".cb, (d1)",
                "E_SELECTOR_INVALID",
                "(",
                "never part of a union",
            ),
            ("(d1) .cb", "E_SELECTOR_INVALID", ".cb", "only filters"),
            ("(d1", "E_SELECTOR_INVALID", "", "end"),
            ("(d1,,d2)", "E_SELECTOR_INVALID", ",", "unexpected"),
            ("(d1, seg{x})", "E_EDITION", "{x}", "`canonical`"),
            ("(d1, ?{x})", "E_EDITION", "?{x}", "`canonical`"),
            ("(d1) ?? {x}", "E_EDITION", "??", "`canonical`"),
            (
                "within(d1) ?? {x}",
                "E_EDITION",
                "within(d1)",
                "`canonical`",
            ),
            (".cb {x}", "E_EDITION", "{x}", "`canonical`"),
            (".cb +x", "E_EDITION", "+x", "`.cb[tags='x']`"),
            ("@history .cb", "E_EDITION", "@history", "@t0..@t-*"),
            (".cb @first", "E_EDITION", "@first", "`canonical`"),
            (
                ".cb @mode=union",
                "E_SELECTOR_INVALID",
                "@mode=union",
                "range",
            ),
        ],
    );
}
