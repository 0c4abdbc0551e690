//! LANGUAGE §4: steps, combinators, pseudo-classes, zones, picks, unions.

use super::{TREE, check};
use crate::support::selector::Edition::{Canonical, Depth, V01};

#[test]
fn steps_and_combinators() {
    check(
        V01,
        TREE,
        &[
            ("a root", "^sys", "sys"),
            ("the root itself", "^root", "root"),
            (
                "the first step may match anywhere",
                ".cb:pre",
                "t1a t2a x2 p1",
            ),
            ("the root included", "[id='root']", "root"),
            ("descendants at any level", "^ah .cb", "p1 p1c h1 q1"),
            ("not the node itself", ".mt .mt", "n1"),
            ("children", "^ah > .cb", "p1 h1 q1"),
            (
                "a long chain",
                "^root > ^seq > .mt > .mc > .cb",
                "u1 v1 u2 v2 u3",
            ),
            ("* matches every node", "^ah *", "p1 p1c h1 q1"),
            ("* with a test", "^ah > *[role='user']", "h1"),
            (
                "a run is one step",
                ".cb#u1[role='user'][kind='text']",
                "u1",
            ),
            ("in any order", "[role='user']#u1.cb", "u1"),
            ("a root and a type", "^seq.mt", ""),
            ("two ids never hold", "#u1#v1", ""),
            ("ids anywhere", "#p1c", "p1c"),
            (
                "each node once",
                ".mt .cb",
                "t1a u1 v1 t1z t2a u2 v2 t2z u3 x2 x1",
            ),
            ("an id in the middle", "#t1 #t1m #u1", "u1"),
            (
                "regions under the root",
                "^root > *",
                "sys seq ah stray untyped",
            ),
            ("^seq is the region node", "^seq", "seq"),
            ("nothing is above the root", "* ^root", ""),
            ("none matches nothing", "@t0 none", ""),
        ],
    );
    check(
        V01,
        TREE,
        &[
            ("an unknown root", "^foo", "E_SELECTOR_INVALID"),
            (
                "an unknown pseudo-class",
                ".cb :frist",
                "E_SELECTOR_INVALID",
            ),
            ("an unknown call", ".cb:nht(1)", "E_SELECTOR_INVALID"),
        ],
    );
}

#[test]
fn later_constructs_are_not_in_v01() {
    check(
        V01,
        TREE,
        &[
            ("an anchor", "depth(1)", "E_EDITION"),
            ("depth 0", ".mt:depth(0)", "E_EDITION"),
            ("negative depth", ".mt:depth(-1)", "E_EDITION"),
            ("a comparison of depths", ".mt:depth(>0)", "E_EDITION"),
            ("a set of depths", ".mt:depth({1,2})", "E_EDITION"),
            ("a group", ".cb(role='user')", "E_EDITION"),
            ("a tag", ".cb+x", "E_EDITION"),
            ("braces", "@t0 {role='user'}", "E_EDITION"),
            ("a search", "@t0 ?? {role='user'}", "E_EDITION"),
            ("history", "@history .cb", "E_EDITION"),
            ("a regular expression", ".cb[role~'u']", "E_EDITION"),
            ("a list", ".cb[role=[user,tool]]", "E_EDITION"),
            (
                "several properties",
                ".cb[role=user, kind=text]",
                "E_EDITION",
            ),
            ("a control", ".cb @limit=1", "E_EDITION"),
        ],
    );
}

#[test]
fn the_seq_region_in_later_editions() {
    for edition in [Depth, Canonical] {
        check(
            edition,
            TREE,
            &[
                ("one step with ^seq means the turns", "@t0 ^seq", "t1 t2 t3"),
                ("not the nested ones", "@t0 ^seq.mt", "t1 t2 t3"),
                (
                    "elsewhere it is the region node",
                    "@t0 ^root > ^seq > .cb",
                    "loose",
                ),
                ("each group for itself", "@t0 ^seq, ^ah", "t1 t2 t3 ah"),
                ("picks stand", "@t0 ^seq:last", "t3"),
                ("^sys is depth(-1)", "@t0 depth(-1) > .cb", "s1 s2"),
                ("^ah is depth(0)", "@t0 depth(0)", "ah"),
                ("anchors", "@t0 depth(1,3)", "t1 t3"),
                (
                    "anchors with tests",
                    "@t0 depth(>=1)[created_at_ns>1]",
                    "t2 t3",
                ),
            ],
        );
    }
}

#[test]
fn depth_tests() {
    check(
        V01,
        TREE,
        &[
            ("one", "^seq > .mt:depth(2)", "t2"),
            ("a list", "^seq > .mt:depth(1,3)", "t1 t3"),
            ("a range", "^seq > .mt:depth(2-3)", "t1 t2"),
            ("a mixed list", "^seq > .mt:depth(1,2-3)", "t1 t2 t3"),
            (
                "on a block it keeps those of the depth",
                ".cb:depth(2)",
                "t2a u2 v2 t2z",
            ),
            ("on an id", "#u1:depth(3)", "u1"),
            ("on an attribute", "[role='user']:depth(1-2)", "u2 u3"),
            ("nested turns are of the depth", ".mt:depth(1)", "t3 n1"),
            ("alone it means the turn", ":depth(1)", "t3"),
            ("so does the star", "*:depth(1)", "t3"),
            ("alone, then its blocks", ":depth(2) > .cb:core", "u2 v2"),
            (
                "an offset beside it is an attribute",
                ":depth(3):pre",
                "t1a",
            ),
            ("behind a pick it narrows", "^seq > *:last:depth(1)", ""),
            (
                "two sets intersect",
                ".cb:depth(1-2):depth(2-3)",
                "t2a u2 v2 t2z",
            ),
            ("empty", ".mt:depth()", "E_SELECTOR_INVALID"),
            ("non-integer", ".mt:depth(x)", "E_SELECTOR_INVALID"),
            ("a decimal", ".mt:depth(1.5)", "E_SELECTOR_INVALID"),
            ("reversed", ".mt:depth(3-1)", "E_SELECTOR_INVALID"),
            ("a dangling comma", ".mt:depth(1,)", "E_SELECTOR_INVALID"),
            ("unfinished", ".mt:depth(1", "E_SELECTOR_INVALID"),
        ],
    );
    for edition in [Depth, Canonical] {
        check(
            edition,
            TREE,
            &[
                (
                    "on a plain turn type ^ah takes part",
                    "@t0 .mt:depth(0)",
                    "ah",
                ),
                ("and ^sys", "@t0 .mt:depth(<0)", "sys"),
                (
                    "also with tests",
                    "@t0 .mt[key='policy']:depth(-1..0)",
                    "sys",
                ),
                ("not on other types", "@t0 .cb:depth(0)", "p1 p1c h1 q1"),
                ("a range from below", "@t0 .mt:depth(-1..1)", "sys t3 n1 ah"),
                ("a comparison", "@t0 :depth(>=2)", "t1 t2"),
                ("at most", "@t0 :depth(<=0)", "sys ah"),
                ("a set", "@t0 :depth({1,3})", "t1 t3"),
                ("two dots", "@t0 :depth(1..2)", "t2 t3"),
                ("reversed", "@t0 :depth(2..1)", "E_SELECTOR_INVALID"),
                ("empty", "@t0 depth()", "E_SELECTOR_INVALID"),
            ],
        );
    }
}

#[test]
fn an_anchor_is_no_nested_turn() {
    let outline = "
root -
  seq ^seq
    t -
      b mc offset=1
        n seg
";
    for edition in [Depth, Canonical] {
        check(
            edition,
            outline,
            &[
                ("alone", "@t0 :depth(1)", "t"),
                ("behind a pick too", "@t0 * :first:depth(1)", "t"),
                ("a turn type takes both", "@t0 .mt:depth(1)", "t n"),
            ],
        );
    }
}

#[test]
fn offset_pseudos() {
    check(
        V01,
        TREE,
        &[
            (":pre", "^seq .cb:pre", "t1a t2a x2"),
            (":core", "#t2 > .cb:core", "u2 v2"),
            (":post", "^seq .mt > .cb:post", "t1z t2z"),
            ("they test the node's own offset", "^sys:post", "sys"),
            ("the star makes an ordinary step", "^ah > *:pre", "p1"),
            ("with a pick it is an ordinary step", "^ah :pre:first", "p1"),
        ],
    );
}

#[test]
fn zones() {
    check(
        V01,
        TREE,
        &[
            (
                "the blocks that are members or lie inside",
                "^ah :pre .cb",
                "p1 p1c",
            ),
            ("the members that are blocks", "^ah :pre > .cb", "p1"),
            ("the members", "^ah :pre", "p1"),
            (
                "members at any depth behind white space",
                "^seq :pre",
                "t1a t2a x2",
            ),
            ("behind > its children", "#t3 > :pre", ""),
            ("one for each left-context node", ".mt > :pre", "t1a t2a x2"),
            ("one block a turn", "^seq > .mt :core .cb:first", "u1 u2 u3"),
            ("a zone after a zone", "^ah :pre :core", "p1c"),
            ("a member zone after a zone", "^ah :pre > :core", ""),
            ("the same sign again behind >", "^ah :pre > :pre", "p1"),
            ("as first step of the whole tree", ":pre", "t1a t2a x2 p1"),
            ("a zone in front", ":post .cb:pre", "x2"),
            ("a zone in the middle", "^seq .mt :post > .cb", "t1z t2z"),
            (
                "implicit cores lie inside members",
                "#t3 :post .mc > .cb",
                "x1",
            ),
            ("but are no members", "#t2 > :core > .mc", ""),
        ],
    );
}

#[test]
fn picks() {
    check(
        V01,
        TREE,
        &[
            (":first of everything", ".cb:first", "s1"),
            (":last of everything", ".cb:last", "inner"),
            (":nth", "^seq .cb:nth(3)", "v1"),
            (":nth beyond the end", "^ah .cb:nth(9)", ""),
            ("one a group", "^seq > .mt .cb:first", "t1a t2a u3"),
            (
                "the nearest left-context node groups",
                ".mt .cb:first",
                "t1a t2a u3 x2",
            ),
            (
                "by parent behind >",
                ".mc > .cb:last",
                "v1 v2 u3 x1 h1 inner",
            ),
            (
                "of the nodes matched so far",
                "^ah .cb[role='user']:first",
                "p1c",
            ),
            (
                "tests come first wherever they stand",
                "^ah .cb:first[role='user']",
                "p1c",
            ),
            ("pseudos apply left to right", "^ah > .cb:post:first", "q1"),
            ("what follows a pick narrows it", "^ah > .cb:first:post", ""),
            ("a pick of a pick", "^ah > .cb:last:first", "q1"),
            (
                "with no left context the whole set is one group",
                ".mt:last",
                "n1",
            ),
            ("zero", ".cb:nth(0)", "E_SELECTOR_INVALID"),
            ("negative", ".cb:nth(-1)", "E_SELECTOR_INVALID"),
            ("nothing", ".cb:nth()", "E_SELECTOR_INVALID"),
            ("a word", ".cb:nth(x)", "E_SELECTOR_INVALID"),
            (
                ":first takes no argument",
                ".cb:first(1)",
                "E_SELECTOR_INVALID",
            ),
        ],
    );
}

#[test]
fn groups_in_brackets() {
    for edition in [Depth, Canonical] {
        check(
            edition,
            TREE,
            &[
                (
                    "a group is brackets",
                    "@t0 .cb(role='user' kind='text')",
                    "u1",
                ),
                ("with commas", "@t0 .cb(role='user', kind='text')", "u1"),
                (
                    "mixed with brackets",
                    "@t0 .cb(role='user')[kind='text']",
                    "u1",
                ),
                ("an empty group", "@t0 .cb()", "E_SELECTOR_INVALID"),
            ],
        );
    }
}

#[test]
fn unions() {
    check(
        V01,
        TREE,
        &[
            (
                "each node once, in result order",
                "#u2, ^sys > .cb, #u2",
                "s1 s2 u2",
            ),
            (
                "over the whole set",
                "^ah .cb, ^seq .mt:depth(1) .cb",
                "u3 x2 x1 p1 p1c h1 q1",
            ),
            ("a group that matches nothing", "#nowhere, #u1", "u1"),
        ],
    );
}

#[test]
fn tags_and_trailing_filters() {
    let outline = "
root -
  ah ^ah key=k
    a cb tags=[\"x\",\"y\"] role=user
      d cb tags=x
    b cb tags=\"x\"
    c cb tags=[] key=k
      e cb role=user
";
    check(
        Canonical,
        outline,
        &[
            ("a tag on a step", "@t0 .cb+x", "a d b"),
            ("two tags", "@t0 .cb+x+y", "a"),
            ("a run at the start is one step with both", "@t0 +x +y", "a"),
            ("at the very end it filters", "@t0 ^ah > .cb +x", "a b"),
            ("the whole union", "@t0 #k > .cb, ^ah .cb +x", "a d b"),
            (
                "a run that starts a group is its step",
                "@t0 #nokey, +x +y",
                "a",
            ),
            (
                "anywhere else it is an error",
                "@t0 ^ah +x .cb",
                "E_SELECTOR_INVALID",
            ),
            ("right after > too", "@t0 ^ah > +x", "E_SELECTOR_INVALID"),
            ("#word is the key", "@t0 #k", "ah c"),
            ("never the id", "@t0 #a", ""),
            (
                "after a chain [..] is a descendant step",
                "@t0 ^ah > .cb [role='user']",
                "e",
            ),
            (
                "a search in front makes it a filter",
                "@t0 #k [role=null]",
                "ah c",
            ),
            ("behind braces it filters", "@t0 {tag=x} [role='user']", "a"),
            (
                "behind a trailing tag it filters",
                "@t0 ^ah .cb +x [role='user']",
                "a",
            ),
        ],
    );
}
