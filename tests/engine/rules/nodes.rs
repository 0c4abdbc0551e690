//! LANGUAGE §1: nodes as a selector sees them.

use super::{TREE, check};
use crate::support::selector::Edition::{Canonical, Depth, V01};

#[test]
fn defaults() {
    let outline = "
root -
  seq ^seq
    t mt
      a cb
      b cb offset=0 priority=0 created_at_ns=0 creation_index=0
      c cb offset=-1 ttl=null role=null
";
    check(
        V01,
        outline,
        &[
            ("a missing offset is 0", "@t0 .cb[offset=0]", "a b"),
            ("a missing priority is 0", "@t0 .cb[priority=0]", "c a b"),
            (
                "a missing created_at_ns is 0",
                "@t0 .cb[created_at_ns<=0]",
                "c a b",
            ),
            (
                "a missing creation_index is 0",
                "@t0 .cb[creation_index>=0]",
                "c a b",
            ),
            (
                "a missing header with a default is not null",
                "@t0 .cb[priority=null]",
                "",
            ),
            (
                "every other absent header is null",
                "@t0 .cb[ttl=null][cycle=null]",
                "c a b",
            ),
            (
                "every other absent attribute is null",
                "@t0 .cb[data_x=null][role=null]",
                "c a b",
            ),
            ("an explicit null is null", "@t0 .cb[ttl!=null]", ""),
            ("defaults hold for order", "@t0 .mt > *", "c a b"),
            ("defaults hold for zones", "@t0 .mt > :core", "a b"),
        ],
    );
}

#[test]
fn classes() {
    let outline = "
root -
  sys ^sys
    m1 mc
    m2 cont:x
    b1 cb:summary
    b2 block
    b3 custom:note
    b4 note
    n1 -
      n2 -
    k1 mt
    k2 seg:plan
  seq ^seq
    n3 -
    n4 -
      n5 -
    n6 cb
  ah ^ah
    n7 -
";
    check(
        V01,
        outline,
        &[
            ("turns", ".mt", "k1 k2 n3 n4"),
            ("containers", ".mc", "m1 m2 n1"),
            (
                "blocks, unknown types among them",
                ".cb",
                "b1 b2 b3 b4 n2 n5 n6 n7",
            ),
            ("regions are none of the three", ".mt.cb, .mc.cb", ""),
            (
                "without nodeType directly under ^seq: a turn",
                "^seq > .mt",
                "n3 n4",
            ),
            (
                "without nodeType and with children: a container",
                "^sys > .mc[nodeType='mc']",
                "m1 n1",
            ),
            (
                "without nodeType otherwise: a block",
                "^ah > .cb[nodeType='cb']",
                "n7",
            ),
            (
                "it reads as mt, mc, cb accordingly",
                "[nodeType='mt']",
                "k1 n3 n4",
            ),
            (
                "the root without one reads as ^root",
                "[nodeType='^root']",
                "root",
            ),
            ("a read nodeType is not null", "*[nodeType=null]", ""),
        ],
    );
}

#[test]
fn class_is_decided_by_the_document_as_read() {
    let outline = "
root -
  ah ^ah
    x -
      y cb
--- 1
root -
  ah ^ah
    x -
--- 2
";
    check(
        V01,
        outline,
        &[
            ("a container while it has children", "@c1 .mc", "x"),
            ("a block in a document where it has none", "@c2 .cb", "x"),
        ],
    );
}

#[test]
fn one_vocabulary() {
    let outline = "
root -
  seq ^seq
    a seg
      c cont
        e block
        f cb
        g block:x
    b mt:x
      d mc
";
    for edition in [V01, Depth, Canonical] {
        check(
            edition,
            outline,
            &[
                (".mt is .seg", "@t0 .mt", "a b"),
                (".seg is .mt", "@t0 .seg", "a b"),
                (".mc is .cont", "@t0 .mc", "c d"),
                (".cont is .mc", "@t0 .cont", "c d"),
                (".cb is .block", "@t0 .cb", "e f g"),
                (".block is .cb", "@t0 .block", "e f g"),
                ("'seg:x' is 'mt:x'", "@t0 [nodeType='seg:x']", "b"),
                ("'mt:x' is 'mt:x'", "@t0 [type='mt:x']", "b"),
                ("'cb:x' is 'block:x'", "@t0 .cb:x", "g"),
                ("'block:x' is 'block:x'", "@t0 .block:x", "g"),
            ],
        );
    }
    check(
        V01,
        outline,
        &[
            (
                "'block' and 'cb' are one value",
                "@t0 [nodeType='block']",
                "e f",
            ),
            (
                "'cb' and 'block' are one value",
                "@t0 [nodeType='cb']",
                "e f",
            ),
            ("both sides of != too", "@t0 .cb[nodeType!='block']", "g"),
        ],
    );
}

#[test]
fn namespaced_types_in_v01() {
    let outline = "
root -
  ah ^ah
    a cb:summary
    b cb kind=summary
    c cb:summary kind=text
    d block:summary
    e custom:summary
    f note
    g note:x
";
    check(
        V01,
        outline,
        &[
            (".cb:sub tests the nodeType", ".cb:summary", "a c d"),
            (
                "[nodeType='cb:sub'] is the same",
                "[nodeType='cb:summary']",
                "a c d",
            ),
            ("kind plays no part", ".cb[kind='summary']", "b"),
            ("[nodeType='cb'] is the whole text", "[nodeType='cb']", "b"),
            ("an unknown first part tests nodeType", ".note", "f"),
            ("an unknown first part with a second", ".note:x", "g"),
            ("a namespaced unknown type", ".custom:summary", "e"),
            ("unknown types are blocks", ".cb", "a b c d e f g"),
            (
                "orderings use the one vocabulary",
                "^ah > [nodeType>'cb:s']",
                "a c d e f g",
            ),
        ],
    );
}

#[test]
fn namespaced_types_in_the_later_editions() {
    let outline = "
root -
  ah ^ah
    a cb:summary
    b cb kind=summary
    c cb:summary kind=text
    d block:summary
    e custom:summary
    f note
    g note:x
    h cb
    i cb:p:q
";
    for edition in [Depth, Canonical] {
        check(
            edition,
            outline,
            &[
                (
                    "head:sub is nodeType head, kind sub",
                    "@t0 .cb:summary",
                    "a b d",
                ),
                (
                    "both forms are one",
                    "@t0 [nodeType='cb'][kind='summary']",
                    "a b d",
                ),
                (
                    "the vocabulary holds",
                    "@t0 [nodeType='block'][kind='summary']",
                    "a b d",
                ),
                ("unless the node has a kind of its own", "@t0 .cb:text", "c"),
                (
                    "nodeType is the head",
                    "@t0 ^ah > [nodeType='cb']",
                    "a b c d h i",
                ),
                (
                    "the whole still finds it",
                    "@t0 [nodeType='cb:summary']",
                    "a c d",
                ),
                (
                    "!= is the complement",
                    "@t0 ^ah > [nodeType!='cb']",
                    "e f g",
                ),
                (
                    "!= of the whole",
                    "@t0 ^ah > [nodeType!='cb:summary']",
                    "b e f g h i",
                ),
                ("any head", "@t0 [nodeType='custom'][kind='summary']", "e"),
                ("the sub is all behind the first colon", "@t0 .cb:p:q", "i"),
                (
                    "orderings use the whole text",
                    "@t0 ^ah > [nodeType>'cb']",
                    "a c d e f g i",
                ),
                ("an unknown type", "@t0 .note", "f g"),
                ("kind reads the sub", "@t0 ^ah > [kind]", "a b c d e g i"),
            ],
        );
    }
}

#[test]
fn implicit_cores() {
    check(
        V01,
        TREE,
        &[
            ("one is found through", "@t0 #t2 .mc > .cb", "u2 v2"),
            ("and past", "@t0 #t2 > .cb", "t2a u2 v2 t2z"),
            ("^ah has one", "@t0 ^ah .mc > .cb", "h1"),
            ("nested turns have one", "@t0 #n1 > .mc > .cb", "x1"),
            (
                "not where there is a container at offset 0",
                "@t0 #t1 .mc > .cb",
                "u1 v1",
            ),
            (
                "a container without an offset stands at 0",
                "@t0 #t3 > .mc > .cb",
                "u3",
            ),
            ("descendants of it", "@t0 #t2 .mc .cb", "u2 v2"),
            ("it is never in a result", "@t0 .mc", "t1m t3m untyped"),
            ("* does not match it", "@t0 #t2 > * > .cb", ""),
            (
                "brackets alone do not match it",
                "@t0 #t2 > [nodeType='mc'] > .cb",
                "",
            ),
            ("a zone does not hold it", "@t0 #t2 > :core > .mc", ""),
            ("its offset is 0", "@t0 #t2 > .mc[offset=0] > .cb", "u2 v2"),
            (
                "its offset is 0 for :core",
                "@t0 #t2 > .mc:core > .cb",
                "u2 v2",
            ),
            (
                "its nodeType is mc",
                "@t0 #t2 > .mc[nodeType='cont'] > .cb",
                "u2 v2",
            ),
            (
                "every other attribute is null",
                "@t0 #t2 > .mc[priority=null][id=null] > .cb",
                "u2 v2",
            ),
            (
                "also where a node has a default",
                "@t0 #t2 > .mc[priority=0] > .cb",
                "",
            ),
            (
                "its depth is its turn's",
                "@t0 ^seq .mc:depth(2) > .cb",
                "u2 v2",
            ),
            (
                "picks in that step count it",
                "@t0 ^seq .mc:nth(2) > .cb",
                "u2 v2",
            ),
            (
                "it stands after the children before 0",
                "@t0 ^seq .mc:last > .cb",
                "x1",
            ),
            ("it holds blocks only", "@t0 .mc > .mt", ""),
            (
                "a pick by turn counts it",
                "@t0 .mt > .mc:first > .cb",
                "u1 v1 u2 v2 u3 x1",
            ),
        ],
    );
    let outline = "
root -
  ah ^ah
    t mt offset=0
      a cb
    c mc offset=1
      d cb
    b cb
";
    check(
        V01,
        outline,
        &[
            ("a container elsewhere is no core", "^ah > .mc > .cb", "b d"),
            ("a turn at offset 0 is not in it", "^ah > .mc .mt", ""),
            (
                "the implicit core comes first here",
                "^ah > .mc:first > .cb",
                "b",
            ),
            ("the container is the second", "^ah > .mc:nth(2) > .cb", "d"),
            (
                "depth of a nested turn's core is the region's",
                "^ah .mt > .mc > .cb",
                "a",
            ),
        ],
    );
}

#[test]
fn depth() {
    check(
        V01,
        TREE,
        &[
            ("the newest turn is 1", "@t0 ^seq > .mt:depth(1)", "t3"),
            ("the one before is 2", "@t0 ^seq > .mt:depth(2)", "t2"),
            (
                "a node has the depth of its turn",
                "@t0 .cb:depth(3)",
                "t1a u1 v1 t1z",
            ),
            ("the turn itself included", "@t0 #t2:depth(2)", "t2"),
            (
                "nested turns are at their turn's depth",
                "@t0 .mt:depth(1)",
                "t3 n1",
            ),
            (
                "nothing loose under ^seq has one",
                "@t0 #loose:depth(1-9)",
                "",
            ),
            ("^seq has none", "@t0 ^seq:depth(1-9)", ""),
            ("the root has none", "@t0 ^root:depth(1-9)", ""),
        ],
    );
    for edition in [Depth, Canonical] {
        check(
            edition,
            TREE,
            &[
                ("^sys is -1", "@t0 .cb:depth(-1)", "s1 s2"),
                ("^ah is 0", "@t0 .cb:depth(0)", "p1 p1c h1 q1"),
                (
                    "outside the regions there is none",
                    "@t0 .cb:depth(>=-1)",
                    "s1 s2 t1a u1 v1 t1z t2a u2 v2 t2z u3 x2 x1 p1 p1c h1 q1",
                ),
            ],
        );
    }
}

#[test]
fn depth_follows_canonical_order() {
    let outline = "
root -
  seq ^seq
    a mt created_at_ns=5
    b mt created_at_ns=5 creation_index=1
    c mt offset=-1 created_at_ns=9
    d mt offset=1
    e cb created_at_ns=99 offset=2
";
    check(
        V01,
        outline,
        &[
            ("last in canonical order is 1", ".mt:depth(1)", "d"),
            ("2", ".mt:depth(2)", "b"),
            ("3", ".mt:depth(3)", "a"),
            ("4", ".mt:depth(4)", "c"),
        ],
    );
}
