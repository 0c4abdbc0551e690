//! The examples of sources 001 and 003, section by section, each in its edition, over one session
//! that has what they ask for. Golden tests over the sources' own fixtures stand in `golden.rs`.
//!
//! Left out are the examples that change the tree.

use crate::rules::check_lines;
use crate::support::engine::{self, Engine};
use crate::support::json::{self, Json};
use crate::support::outline;
use crate::support::selector::Edition::{self, Canonical, Depth};

/// One tree, both as the snapshot of cycle 42 and as the working state: what an example without a
/// time asks and what one with `@t0` asks is the same.
const TREE: &str = r#"
root -
  sys ^sys
    policy cb role=system kind=text key=policy-banner ttl=1
    rule cb role=system kind=text
  seq ^seq
    m1 mt created_at_ns=1
      x1 mc offset=0
        u1 cb role=user kind=text
        a1 cb role=assistant kind=text key=K ttl=9
    m2 mt created_at_ns=2
      u2 cb role=user kind=text
      sum2 cb role=assistant kind=summary key=K tags=["summary"] cycle=41
    m3 mt created_at_ns=3
      pre3 cb offset=-1 role=system kind=important ttl=5
      x3 mc offset=0
        u3 cb role=user kind=text
        a3 cb role=assistant kind=text key=K ttl=2
        c3 cb role=assistant kind=tool_call
      summary cb offset=1 role=assistant kind=summary key=summary ttl=2 cycle=42
  ah ^ah
    pre0 cb offset=-1 role=system kind=text key=hero ttl=4
    u0 cb role=user kind=text key=K
    s0 cb role=system kind=text tags=["featured"]
"#;

fn lines() -> Vec<String> {
    outline::lines(&format!("{TREE}--- 42{TREE}--- working"))
}

const INVALID: &str = "E_SELECTOR_INVALID";

#[test]
fn source_001() {
    let all = "root sys policy rule seq m1 x1 a1 u1 m2 sum2 u2 m3 pre3 x3 a3 c3 u3 summary \
               ah pre0 s0 u0";
    check_lines(
        Depth,
        &lines(),
        &[
            ("§3.1", "^sys", "sys"),
            ("§3.1", "^ah", "ah"),
            ("§3.1", "^seq", "m1 m2 m3"),
            ("§3.1", "^root", "root"),
            ("§3.2", ".cb:summary", "sum2 summary"),
            ("§3.2", "[nodeType='cb'][kind='summary']", "sum2 summary"),
            ("§3.2", ".cb[kind='tool_call']", "c3"),
            ("§3.4", ".mt:depth(0)", "ah"),
            ("§3.4", ".mt:depth(1)", "m3"),
            ("§3.4", ".mt:depth(-1)", "sys"),
            ("§3.4", ".mt:depth(1,2,5)", "m2 m3"),
            ("§3.4", ".mt:depth(1-3)", "m1 m2 m3"),
            ("§3.4", ".mt:depth(1..3)", "m1 m2 m3"),
            ("§3.4", ".mt:depth(<0)", "sys"),
            ("§3.4", ".mt:depth(>0)", "m1 m2 m3"),
            ("§3.4", ".mt:depth(>=2)", "m1 m2"),
            ("§3.4", ".mt:depth(<=-1)", "sys"),
            ("§3.4", ".mt:depth({1,2,4})", "m2 m3"),
            // Its core is implicit, and no result.
            ("§3.4", "depth(0) > .mc[offset=0]", ""),
            ("§3.4", "^ah > .mc[offset=0]", ""),
            ("§3.4", "depth(0) > .mc[offset=0] > .cb", "s0 u0"),
            ("§3.4", "^ah > .mc[offset=0] > .cb", "s0 u0"),
            // An id among the turn's own children (LANGUAGE §12).
            ("§3.4", ".mt:depth(1) > .cb#summary", "summary"),
            ("§3.4", ".mt:depth(2)", "m2"),
            ("§3.4", "depth(-1) > .cb#policy", "policy"),
            ("§3.4", "^seq .mt:depth(1)", "m3"),
            ("§3.4", "^sys > *", "policy rule"),
            ("§3.4", "depth(-1) > *", "policy rule"),
            ("§3.4", "[key=\"K\"]", "u0 a3 sum2 a1"),
            ("§3.4", "[key=\"K\"]:depth(>0):first", "a3"),
            ("§3.5.1", ".cb(kind='important' ttl=5)", "pre3"),
            ("§3.5.1", ".cb[kind='important'][ttl=5]", "pre3"),
            ("§3.5.1", ".cb(kind='summary')[ttl<=2]", "summary"),
            (
                "§3.5.3",
                "@t0 (d1, *:cb[kind=\"summary\"]) [age<2]",
                "summary",
            ),
            ("§3.5.3", "[born_turn=41]", "E_FACET_NEEDS_SNAPSHOT"),
            ("§3.5.3", "[age<2]", "E_FACET_NEEDS_SNAPSHOT"),
            ("§3.5.3", "[depth=1]", "E_FACET_NEEDS_SNAPSHOT"),
            ("§3.5.3", "[sdepth=1]", "E_FACET_NEEDS_SNAPSHOT"),
            (
                "§3.7",
                "@t0 ^seq .mt:depth(1) .mc > .cb[role='assistant']",
                "a3 c3",
            ),
            ("§3.8", "(d0, mc[offset=0], *:cb[role=\"user\"])", "u0"),
            (
                "§3.8",
                "(d1, seg, mc[offset=0], *:cb[role=\"assistant\"])",
                "a3 c3",
            ),
            ("§3.8", "(d2, seg, *:cb[kind=\"summary\"])", "sum2"),
            ("§3.8", "(d-1, *:cb[role=\"system\"])", "policy rule"),
            ("§3.9", "(d0, seg, mc[offset=0], )", INVALID),
            ("§3.9", "(d0, seg, mc[offset=0], end)", INVALID),
            ("§3.9", "(d0, seg, mc[offset=0], +1)", INVALID),
            ("§4", "^seq .mt:depth(>0)", "m1 m2 m3"),
            (
                "§4",
                ".mt:depth({1,2}) .cb",
                "sum2 u2 pre3 a3 c3 u3 summary",
            ),
            ("§4", ".cb(role='system' ttl=20)", ""),
            ("§4", ".cb[role='system'][ttl=20]", ""),
            ("§4", ".cb()", INVALID),
            ("§4", "@t-1..@c42 *", "E_SNAPSHOT_RANGE_KIND_MISMATCH"),
            ("§4", "@t0..@* *", "E_SNAPSHOT_RANGE_WILDCARD"),
            ("§5.2", "[ttl>5]", "a1"),
            ("§5.2", "[offset<0]", "pre3 pre0"),
            ("§5.2", "[cycle=42]", "summary"),
            ("§5.3", "[role='user']", "u1 u2 u3 u0"),
            ("§5.3", "[id!='abc123']", all),
            ("§6", "@t0 ^ah :pre .cb", "pre0"),
            (
                "§6",
                "^seq .mt:depth(1) .mc > .cb[role='assistant']",
                "a3 c3",
            ),
            ("§6", "^root .cb[ttl<=1]", "policy"),
            ("§6", "#abc123def", ""),
            ("§6", "^seq .mt:depth(1,2,3) .cb[role='user']", "u1 u2 u3"),
            ("§6", "^seq .mt:depth(1-3) .cb[role='user']", "u1 u2 u3"),
            ("§6", "^seq .mt:depth(1-5)", "m1 m2 m3"),
            ("§6", "@* #abc123def", ""),
            ("§6", "^seq .mt:depth(3)", "m1"),
            ("§6", "^seq .mt:depth(1) .cb[key='K']", "a3"),
            // It tests `^sys` itself (LANGUAGE §12).
            ("§6", ".mt:depth(<0)[key='policy-banner']", ""),
            (
                "§6",
                "^seq .mt:depth(1) .cb(role='assistant' ttl<=2)",
                "a3 summary",
            ),
            (
                "§6",
                "^seq .mt:depth(1) .cb[role='assistant'][ttl<=2]",
                "a3 summary",
            ),
        ],
    );
}

#[test]
fn source_003() {
    check_lines(
        Canonical,
        &lines(),
        &[
            ("§3.1", "^sys", "sys"),
            ("§3.1", "^ah", "ah"),
            ("§3.1", "^seq", "m1 m2 m3"),
            ("§3.2", ".block:summary", "sum2 summary"),
            ("§3.2", "[nodeType='block'][kind='summary']", "sum2 summary"),
            ("§3.2", ".block[kind='tool_call']", "c3"),
            ("§3.3", "#K", "u0 a3 sum2 a1"),
            ("§3.3", "#u2", ""),
            ("§3.3", "{ id=\"u2\" }", "u2"),
            ("§3.4", ".seg:depth(0)", "ah"),
            ("§3.4", ".seg:depth(1,2,5)", "m2 m3"),
            ("§3.4", ".seg:depth(1..3)", "m1 m2 m3"),
            ("§3.4", ".seg:depth(<=-1)", "sys"),
            ("§3.4", ".seg:depth({1,2,4})", "m2 m3"),
            ("§3.4", "depth(0) > .cont[offset=0]", ""),
            ("§3.4", "depth(0) > .cont[offset=0] > .block", "s0 u0"),
            // A key among the turn's own children (LANGUAGE §12).
            ("§3.4", ".seg:depth(1) > .block#summary", "summary"),
            ("§3.4", ".seg:depth(2)", "m2"),
            ("§3.4", "depth(-1) > .block#policy", ""),
            ("§3.4", "depth(-1) > .block#policy-banner", "policy"),
            ("§3.4", "^seq .seg:depth(1)", "m3"),
            ("§3.4", "^sys > *", "policy rule"),
            ("§3.4", "depth(-1) > *", "policy rule"),
            ("§3.4", "[key=\"K\"]:depth(>0):first", "a3"),
            ("§3.5.1", ".block(kind='important' ttl=5)", "pre3"),
            ("§3.5.1", ".block[kind='important'][ttl=5]", "pre3"),
            ("§3.5.1", ".block(kind='summary')[ttl<=2]", "summary"),
            (
                "§3.5.3",
                "@t0 (d1, *:block[kind=\"summary\"]) [age<2]",
                "summary",
            ),
            ("§3.5.3", "[age<2]", "E_FACET_NEEDS_SNAPSHOT"),
            ("§3.6", "(d1) ? { kind=summary }", "summary"),
            ("§3.6", "?? { kind=summary }", "sum2 summary"),
            ("§3.6", "within(d1, d2) ?? { role=user }", "u2 u3"),
            (
                "§3.7",
                "@t0 ^seq .seg:depth(1) .cont > .block[role='assistant']",
                "a3 c3",
            ),
            ("§3.8", "(d0, cont[offset=0], *:block[role=\"user\"])", "u0"),
            (
                "§3.8",
                "(d1, seg, cont[offset=0], *:block[role=\"assistant\"])",
                "a3 c3",
            ),
            ("§3.8", "(d2, seg, *:block[kind=\"summary\"])", "sum2"),
            ("§3.8", "(d-1, *:block[role=\"system\"])", "policy rule"),
            ("§3.9", "(d0, seg, cont[offset=0], )", INVALID),
            ("§3.9", "(d0, seg, cont[offset=0], end)", INVALID),
            ("§3.9", "(d0, seg, cont[offset=0], +1)", INVALID),
            ("§3.10", "{ key=\"K\" }", "u0 a3 sum2 a1"),
            ("§3.10", "+featured", "s0"),
            ("§3.10", "?? { tag=\"featured\" }", "s0"),
            ("§3.10", "+summary +featured", ""),
            ("§3.10", "(d0, *) +featured", "s0"),
            ("§3.10", "(d1, *) +featured", ""),
            ("§3.10", "#'hero banner'", ""),
            ("§4", "^seq .seg:depth(>0)", "m1 m2 m3"),
            ("§4", ".seg:depth(<0)", "sys"),
            (
                "§4",
                ".seg:depth({1,2}) .block",
                "sum2 u2 pre3 a3 c3 u3 summary",
            ),
            ("§4", ".block(role='system' ttl=20)", ""),
            ("§4", ".block()", INVALID),
            ("§5.2", "[ttl>5]", "a1"),
            ("§5.3", "[role='user']", "u1 u2 u3 u0"),
            ("§6", "(d0, *:block) { role=system } [ ttl>0 ]", "pre0"),
            (
                "§6",
                "@t0 (d1, seg, cont[offset=0], *:block) { role=assistant }",
                "a3 c3",
            ),
            ("§6", "(d-1, *:block) { ttl<=1 }", "policy"),
            ("§6", "#hero", "pre0"),
            ("§6", "{ key='hero' }", "pre0"),
            ("§6", "?? { tag='summary' }", "sum2"),
            (
                "§6",
                "within(d1,d3) ?? { type=block, kind=summary } @order=bfs @limit=50",
                "summary",
            ),
            ("§6", "(d0, cont[offset=0], )", INVALID),
            ("§6", "@* #abc123def", ""),
            ("§6", "^seq .seg:depth(3)", "m1"),
            ("§6", "^seq .seg:depth(1) .block[key='K']", "a3"),
            ("§6", ".seg:depth(<0)[key='policy-banner']", ""),
            (
                "§6",
                "^seq .seg:depth(1) .block(role='assistant' ttl<=2)",
                "a3 summary",
            ),
            (
                "§6",
                "^seq .seg:depth(1) .block[role='assistant'][ttl<=2]",
                "a3 summary",
            ),
            ("§7 19", "(d1) ? ? { kind=summary }", INVALID),
            ("§7 19", "?? ?? { kind=summary }", INVALID),
        ],
    );
}

/// 001 §6, 003 §6: windows and filters on results.
#[test]
fn windows_and_filters_of_the_library() {
    let session = engine::open(&lines().join("\n"));
    for (edition, filter) in [(Depth, ".mt:depth(>0)"), (Canonical, ".seg:depth(>0)")] {
        let Engine(engine) = Engine::new(edition);
        let select = || engine.rows(&session, "[key='K']").unwrap();
        assert_eq!(select().limit(1).to_ids(), ["u0"]);
        assert_eq!(select().skip(1).limit(1).to_ids(), ["a3"]);
        let filter = engine.prepare(filter).unwrap();
        let history = select().filter(&filter).unwrap();
        assert_eq!(history.to_ids(), ["a3", "sum2", "a1"]);
    }
}

/// 003 §3.10: formatters merge `{ tag=… }` with `+tag` chains, in one order.
#[test]
fn tags_are_merged_and_sorted() {
    let Engine(engine) = Engine::new(Canonical);
    let one = engine.format("+featured +archived").unwrap();
    for text in [
        "?? { tag=archived, tag=featured }",
        "{ tag=[featured,archived] }",
        "+archived+featured",
    ] {
        assert_eq!(engine.format(text).unwrap(), one, "{text}");
    }
    let braces = engine.format(".block {tag=b} +a").unwrap();
    assert_eq!(engine.format(".block +a +b").unwrap(), braces);
}

/// Three snapshots in which a featured block comes and goes.
const FEATURED: &str = r#"
root -
  ah ^ah
    a cb tags=["featured"]
    b cb tags=["featured"]
--- 7
root -
  ah ^ah
    b cb tags=["featured"]
--- 8
root -
  ah ^ah
    b cb tags=["featured"]
    c cb tags=["featured"]
--- 9
"#;

/// 003 §3.7.1: `@history` is `@t0..@t-*`. 003 §6: with `@first`, each snapshot's first row
/// (LANGUAGE §12).
#[test]
fn history_is_a_range() {
    let session = engine::open(&outline::lines(FEATURED).join("\n"));
    let engine = Engine::new(Canonical);
    let ask = |query: &str| {
        let Json::Obj(mut members) = json::parse(&engine.range(&session, query).unwrap()) else {
            panic!("an object")
        };
        members.retain(|(name, _)| name != "query");
        Json::Obj(members).write()
    };
    let sugar = ask("@history +featured");
    assert_eq!(sugar, ask("@t0..@t-* +featured"));
    assert_eq!(sugar, ask("@t-2..@t0 ?? { tag='featured' }"));
    assert!(
        sugar.contains(r#""added_ids":["c"],"removed_ids":[]"#),
        "{sugar}"
    );
    assert!(
        sugar.contains(r#""added_ids":[],"removed_ids":["a"]"#),
        "{sugar}"
    );

    let first = ask("@history +featured @first");
    assert!(
        first.contains(r#""added_ids":["b"],"removed_ids":["a"]"#),
        "{first}"
    );
    assert!(!first.contains(r#""c""#), "{first}");
}

/// Four snapshots; a turn moves back with each that is sealed, and what it held comes and goes.
const MOVING: &str = r#"
root -
  seq ^seq
    m1 mt created_at_ns=1
      a1 cb
      b1 cb
    m2 mt created_at_ns=2
      a2 cb
--- 30
root -
  seq ^seq
    m1 mt created_at_ns=1
      a1 cb
    m2 mt created_at_ns=2
      a2 cb
--- 31
root -
  seq ^seq
    m1 mt created_at_ns=1
      a1 cb
    m2 mt created_at_ns=2
      a2 cb
      x2 mc
        c2 cb
    m3 mt created_at_ns=3
      a3 cb
      b3 cb
--- 32
root -
  seq ^seq
    m1 mt created_at_ns=1
      a1 cb
    m2 mt created_at_ns=2
      a2 cb
    m3 mt created_at_ns=3
      a3 cb
    m4 mt created_at_ns=4
      a4 cb
--- 33
"#;

/// 001 §3.5.3, 003 §3.5.3: a range with a mode, and a facet of the snapshot each row is of. `a3`
/// stands at depth 2 now, `b1` stood there when it was last seen; `b3` was at depth 1, `a1` and
/// `a2` have moved on. 001 §3.7, 003 §3.7: a mode goes with a range of snapshots only. 003 §5:
/// the three modes of the grammar.
#[test]
fn ranges_with_a_mode() {
    let lines = outline::lines(MOVING);
    check_lines(
        Depth,
        &lines,
        &[
            (
                "§3.5.3",
                "@t0..@t-3 (d2, *:cb) @mode=latest [depth=2]",
                "a3 b1",
            ),
            ("§3.7", "(d2, *:cb) @mode=latest", INVALID),
            ("§3.7", "@t0 (d2, *:cb) @mode=latest", INVALID),
        ],
    );
    check_lines(
        Canonical,
        &lines,
        &[
            (
                "§3.5.3",
                "@t0..@t-3 (d2, *:block) @mode=latest [depth=2]",
                "a3 b1",
            ),
            ("§3.7", "(d2, *:block) @mode=latest", INVALID),
            ("§3.7", "@t0 (d2, *:block) @mode=latest", INVALID),
            (
                "§5",
                "@t0..@t-3 (d2, *:block) @mode=union [depth=2]",
                "a3 a2 a1 b1",
            ),
            (
                "§5",
                "@t0..@t-3 (d2, *:block) @mode=reduce [depth=2]",
                "@t0 since @t-3: +a3 -a1 -b1",
            ),
        ],
    );
}

/// 001 §3.7, 003 §3.7, §7 15: without a time the working state, never a snapshot.
#[test]
fn no_time_is_never_a_snapshot() {
    let lines = lines();
    let session = engine::open(&lines[0]);
    for edition in [Depth, Canonical] {
        let engine = Engine::new(edition);
        let got = engine.ids(&session, "^sys > *");
        assert_eq!(got, Err("E_NO_WORKING_STATE".to_owned()));
    }
    let got = Engine::new(Edition::V01).ids(&session, "^sys > .cb:first");
    assert_eq!(got.unwrap(), ["policy"]);
}
