//! Edition `depth`.

use super::{Edition, Refused, equal, normalizes, refuses, warns};

const E: Edition = Edition::Depth;

/// What is refused, table by table.
pub(super) const REFUSED: &[&[Refused]] = &[LATER, TIMES, DEPTHS, GROUPS, FACETS, POSITIONS];

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
    refuses(E, DEPTHS);
}

const DEPTHS: &[Refused] = &[
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
    ("depth(1", "E_SELECTOR_INVALID", "", "end"),
    ("depth(x) > .cb", "E_SELECTOR_INVALID", "x", "whole number"),
    (
        "depth(1.5) > *",
        "E_SELECTOR_INVALID",
        "1.5",
        "whole number",
    ),
    ("depth(3-1) > *", "E_SELECTOR_INVALID", "3-1", "`1..3`"),
    (
        "depth(99999999999999999999)",
        "E_SELECTOR_INVALID",
        "99999999999999999999",
        "too large",
    ),
    ("depth({}) > *", "E_SELECTOR_INVALID", "{}", "empty depth"),
    ("depth($n)", "E_SELECTOR_INVALID", "$n", "a depth"),
    (
        ".mt:depth(>1.5)",
        "E_SELECTOR_INVALID",
        "1.5",
        "whole number",
    ),
    (".mt:depth(>=x)", "E_SELECTOR_INVALID", "x", "whole number"),
    (
        ".mt:depth({1,x})",
        "E_SELECTOR_INVALID",
        "x",
        "whole number",
    ),
    (".mt:depth(!=1)", "E_SELECTOR_INVALID", "!", "whole number"),
    (".mt:depth(1..)", "E_SELECTOR_INVALID", ")", "a number"),
    (".mt:depth(-)", "E_SELECTOR_INVALID", ")", "a number"),
    (".mt:depth(1,,2)", "E_SELECTOR_INVALID", ",", "a number"),
];

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
    refuses(E, GROUPS);
}

const GROUPS: &[Refused] = &[
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
    ("^ah(x=1)", "E_SELECTOR_INVALID", "(", "follows a type"),
    ("*(x=1)", "E_SELECTOR_INVALID", "(", "follows a type"),
    ("#a(x=1)", "E_SELECTOR_INVALID", "(", "follows a type"),
    (".cb(x=1)(y=2)", "E_SELECTOR_INVALID", "(", "follows a type"),
    (".cb(x==1)", "E_SELECTOR_INVALID", "==", "`=`"),
    (".cb(ttl=soon)", "E_SELECTOR_INVALID", "soon", "is a number"),
    (
        ".cb(ttl='2')",
        "E_SELECTOR_INVALID",
        "'2'",
        "remove the quotes",
    ),
    (".cb(x=1,,y=2)", "E_SELECTOR_INVALID", ",", "a word"),
    (".cb(age=1)", "E_FACET_NEEDS_SNAPSHOT", "age", "@t0"),
    (".cb(x~1)", "E_EDITION", "~", "`canonical`"),
    (".cb(x=[a])", "E_EDITION", "[a]", "`canonical`"),
];

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
    refuses(E, FACETS);
}

const FACETS: &[Refused] = &[
    ("[age<2]", "E_FACET_NEEDS_SNAPSHOT", "age", "@t0"),
    (".cb[depth=1]", "E_FACET_NEEDS_SNAPSHOT", "depth", "@t0"),
    ("@t0 [age=old]", "E_SELECTOR_INVALID", "old", "is a number"),
    (
        "[born_turn=3]",
        "E_FACET_NEEDS_SNAPSHOT",
        "born_turn",
        "@t0",
    ),
    (
        ".mt > [sdepth>2]",
        "E_FACET_NEEDS_SNAPSHOT",
        "sdepth",
        "@t0",
    ),
    (
        "@t0 [depth='1']",
        "E_SELECTOR_INVALID",
        "'1'",
        "remove the quotes",
    ),
    (
        "@t0 [sdepth<deep]",
        "E_SELECTOR_INVALID",
        "deep",
        "is a number",
    ),
    (
        "@t0..@t-2 [born_turn=true]",
        "E_SELECTOR_INVALID",
        "true",
        "is a number",
    ),
];

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
    refuses(E, POSITIONS);
}

const POSITIONS: &[Refused] = &[
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
    ("(end)", "E_SELECTOR_INVALID", "end", "insertion point"),
    (
        "(d1, -1, end)",
        "E_SELECTOR_INVALID",
        "end",
        "insertion point",
    ),
    ("(d1, seg, d2)", "E_SELECTOR_INVALID", "d2", "first"),
    ("(d1 seg)", "E_SELECTOR_INVALID", "seg", "nothing behind it"),
    ("(dx)", "E_SELECTOR_INVALID", "dx", "unknown hop"),
    ("(d)", "E_SELECTOR_INVALID", "d", "unknown hop"),
    (
        "(d99999999999999999999)",
        "E_SELECTOR_INVALID",
        "d99999999999999999999",
        "too large",
    ),
    ("(d1..3)", "E_SELECTOR_INVALID", "3", "`d1..d3`"),
    ("(d1..)", "E_SELECTOR_INVALID", ")", "`d1..d3`"),
    ("(depth())", "E_SELECTOR_INVALID", "depth()", "empty depth"),
    (
        "(d1, 1.call)",
        "E_SELECTOR_INVALID",
        ".call",
        "*:block.call",
    ),
    ("(d1, 1:foo)", "E_SELECTOR_INVALID", "1:foo", "no class"),
    (
        "(d1, block.pre)",
        "E_SELECTOR_INVALID",
        "block.pre",
        "no pseudo-classes",
    ),
    (
        "(d1, seg:core)",
        "E_SELECTOR_INVALID",
        "seg:core",
        "no pseudo-classes",
    ),
    (
        "(d1, block())",
        "E_SELECTOR_INVALID",
        "()",
        "without a property",
    ),
    (
        "(d1, block[])",
        "E_SELECTOR_INVALID",
        "[]",
        "without a property",
    ),
    (
        "(d1, block[ttl=x])",
        "E_SELECTOR_INVALID",
        "x",
        "is a number",
    ),
    ("(d1, #a)", "E_SELECTOR_INVALID", "#", "key='hero'"),
    ("(d1, ^ah)", "E_SELECTOR_INVALID", "^", "`d0`"),
    ("(d1, .cb)", "E_SELECTOR_INVALID", ".cb", "unexpected"),
    ("(d1)(d2)", "E_SELECTOR_INVALID", "(", "follow a position"),
    ("(d1) (d2)", "E_SELECTOR_INVALID", "(", "follow a position"),
    ("(d1) > .mc", "E_SELECTOR_INVALID", ">", "`depth(1) > .cb`"),
    (
        "(d1):first",
        "E_SELECTOR_INVALID",
        ":first",
        "follow a position",
    ),
    (
        "(d1) [x] .cb",
        "E_SELECTOR_INVALID",
        ".cb",
        "follow a position",
    ),
    (
        "(d1, *) none",
        "E_SELECTOR_INVALID",
        "none",
        "follow a position",
    ),
    ("(d1, *) @t0", "E_SELECTOR_INVALID", "@t0", "front"),
];

/// LANGUAGE §3, as in `v0.1`, and modes.
#[test]
fn times() {
    refuses(E, TIMES);
}

const TIMES: &[Refused] = &[
    ("@t0", "E_SELECTOR_INVALID", "@t0", "`@t0 *`"),
    (
        "@t0..@t-*",
        "E_SELECTOR_INVALID",
        "@t0..@t-*",
        "@t0..@t-* *",
    ),
    ("@t2 .cb", "E_SELECTOR_INVALID", "@t2", "@t-2"),
    ("@t-* .cb", "E_SELECTOR_INVALID", "@t-*", "@t0..@t-*"),
    (
        "@t0..@c3 *",
        "E_SNAPSHOT_RANGE_KIND_MISMATCH",
        "@t0..@c3",
        "one kind",
    ),
    (
        "@c3:-1 *",
        "E_SNAPSHOT_RANGE_KIND_MISMATCH",
        "@c3:-1",
        "one kind",
    ),
    ("@*..@t0 *", "E_SNAPSHOT_RANGE_WILDCARD", "@*", "@t-*"),
    ("@c1..@c* *", "E_SNAPSHOT_RANGE_WILDCARD", "@c*", "@t-*"),
    (
        "@t0..@t-1 .cb @mode=both",
        "E_SELECTOR_INVALID",
        "both",
        "`latest`",
    ),
    (
        "@t0..@t-1 .cb @mode",
        "E_SELECTOR_INVALID",
        "@mode",
        "needs a value",
    ),
    (
        "@t0..@t-1 .cb @mode=union @mode=latest",
        "E_SELECTOR_INVALID",
        "@mode=latest",
        "twice",
    ),
    (
        "@t0 .cb @mode=latest",
        "E_SELECTOR_INVALID",
        "@mode=latest",
        "range",
    ),
    (
        "@* .cb @mode=union",
        "E_SELECTOR_INVALID",
        "@mode=union",
        "range",
    ),
];

/// What `canonical` has, and what this edition says instead.
#[test]
fn what_a_later_edition_has() {
    refuses(E, LATER);
}

const LATER: &[Refused] = &[
    ("{x}", "E_EDITION", "{x}", "`canonical`"),
    ("?? {x}", "E_EDITION", "??", "`canonical`"),
    ("(d1) ? {x}", "E_EDITION", "?", "`canonical`"),
    ("(d1, block{x})", "E_EDITION", "{x}", "`canonical`"),
    ("+x", "E_EDITION", "+x", "`[tags='x']`"),
    (".cb+x", "E_EDITION", "+x", "`.cb[tags='x']`"),
    ("#a [x] +y", "E_EDITION", "+y", "`#a [tags='y'][x!=null]`"),
    ("[a,b]", "E_EDITION", "[a,b]", "`[a!=null][b!=null]`"),
    ("[a~b]", "E_EDITION", "~", "`canonical`"),
    ("[a=[b]]", "E_EDITION", "[b]", "`canonical`"),
    ("[ephemeral]", "E_EDITION", "ephemeral", "[ttl=1]"),
    (".cb(sticky)", "E_EDITION", "sticky", "[cadence=1]"),
    (
        "[stored_type=cb]",
        "E_EDITION",
        "stored_type",
        "`canonical`",
    ),
    ("[stored_kind=x]", "E_EDITION", "stored_kind", "`canonical`"),
    (".cb @limit=1", "E_EDITION", "@limit=1", "`canonical`"),
    (".cb @p=1", "E_EDITION", "@p=1", "`canonical`"),
    (".cb @unique", "E_EDITION", "@unique", "`canonical`"),
    (".cb @order=pre", "E_EDITION", "@order=pre", "`canonical`"),
];

/// LANGUAGE §10, `E_LIMIT`.
#[test]
fn limits() {
    let depths: Vec<String> = (1..=1_025).map(|depth| depth.to_string()).collect();
    let depths = depths.join(",");
    let anchor = format!("depth({depths}) > .cb");
    let set = format!(".cb:depth({{{depths}}})");
    let steps = format!("{}.cb", "^ah > ".repeat(64));
    let groups = format!("{}.mc", ".cb,".repeat(256));
    refuses(
        E,
        &[
            (&anchor, "E_LIMIT", &anchor[..anchor.len() - 6], "1024"),
            (&set, "E_LIMIT", &set[3..], "1024"),
            (&steps, "E_LIMIT", ".cb", "64 steps"),
            (&groups, "E_LIMIT", ".mc", "256 groups"),
        ],
    );
}
