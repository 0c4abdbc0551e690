//! LANGUAGE §6: order.

use super::{TREE, check};
use crate::support::selector::Edition::{Canonical, Depth, V01};

const KEYS: &str = "
root -
  sys ^sys
    s cb key=K created_at_ns=50
  seq ^seq
    t1 mt created_at_ns=1
      a cb key=K created_at_ns=1
      b cb key=K created_at_ns=9
    t2 mt created_at_ns=2
      c cb key=K created_at_ns=5 creation_index=0
      d cb key=K created_at_ns=5 creation_index=1
      z cb key=K created_at_ns=5 creation_index=1
      e cb key=L created_at_ns=9
    loose cb key=K created_at_ns=99
  ah ^ah
    f cb key=K
";

#[test]
fn document_order() {
    check(
        V01,
        TREE,
        &[(
            "parent before child, regions first",
            "*",
            "root sys s1 s2 seq t1 t1a t1m u1 v1 t1z t2 t2a u2 v2 t2z t3 t3m u3 n1 x2 x1 loose \
             ah p1 p1c h1 q1 stray untyped inner",
        )],
    );
    let outline = "
root -
  stray cb offset=-9
  ah ^ah offset=-5
    b cb created_at_ns=1
    a cb created_at_ns=1
    B cb created_at_ns=1
    d cb created_at_ns=1 creation_index=-1
    c cb created_at_ns=0
    e cb offset=-1 created_at_ns=7
    é cb created_at_ns=1
  seq ^seq offset=-7
  sys ^sys offset=8
";
    check(
        V01,
        outline,
        &[
            (
                "regions in their order whatever their offsets",
                "^root > *",
                "sys seq ah stray",
            ),
            (
                "offset, created_at_ns, creation_index, id",
                "^ah > *",
                "e c d B a b é",
            ),
        ],
    );
}

#[test]
fn paths_of_a_deep_and_wide_tree() {
    // Ids fall where document order rises, on every level.
    let levels = 60;
    let mut root = String::from("null");
    for level in (0..levels).rev() {
        let wide: Vec<String> = (0..20)
            .map(|n| {
                let id = format!("n{:02}.{level}", 50 - n);
                format!(r#"{{"id":"{id}","nodeType":"cb","offset":{n}}}"#)
            })
            .collect();
        let below = if root == "null" {
            String::new()
        } else {
            format!("{root},")
        };
        root = format!(
            r#"{{"id":"m{level:02}","nodeType":"mc","offset":3,"children":[{below}{}]}}"#,
            wide.join(",")
        );
    }
    let lines = [format!(
        r#"{{"cycle":1,"root":{{"id":"root","children":[{root}]}}}}"#
    )];
    let mut expected = String::from("root");
    let mut behind = Vec::new();
    for level in 0..levels {
        expected.push_str(&format!(" m{level:02}"));
        for n in (0..20).rev() {
            behind.push((level, format!(" n{:02}.{level}", 50 - n)));
        }
    }
    behind.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    behind.iter().for_each(|(_, id)| expected.push_str(id));
    let some = expected
        .split(' ')
        .filter(|id| id.starts_with('n') && id.ends_with('7'))
        .collect::<Vec<_>>()
        .join(" ");
    super::check_lines(
        Canonical,
        &lines,
        &[
            (
                "siblings by id, at any depth",
                "@t0 * @order=path",
                &expected,
            ),
            ("of few nodes", "@t0 .cb[id~'7$'] @order=path", &some),
        ],
    );
}

#[test]
fn key_order() {
    let newest_first = "f d z c b a s loose";
    check(
        V01,
        KEYS,
        &[
            (
                "depth 0, 1, 2, then negative, then none",
                "[key='K']",
                newest_first,
            ),
            ("a number pins as written", "[key=K]", newest_first),
            (
                "every group pins the same",
                ".cb[key='K'], ^seq [key='K']",
                newest_first,
            ),
            (
                "groups that pin different keys",
                "[key='K'], [key='L']",
                "s a b c d z e loose f",
            ),
            (
                "a group that pins none",
                "[key='K'], #e",
                "s a b c d z e loose f",
            ),
            (
                "another step pins",
                "^seq [key='K'], [key='K'] .cb",
                "a b c d z loose",
            ),
            ("!= does not pin", ".cb[key!='L']", "s a b c d z loose f"),
            ("null does not pin", ".mt[key=null]", "t1 t2"),
            ("a pick is in key order", "[key='K']:first", "f"),
            (
                "the newest sealed instance",
                "[key='K']:depth(1-9):first",
                "d",
            ),
            ("by turn", "^seq > .mt [key='K']:first", "d b"),
            ("the oldest by turn", "^seq > .mt [key='K']:last", "c a"),
            ("the n-th", "^seq > .mt [key='K']:nth(2)", "z a"),
            (
                "a step that pins none picks in document order",
                "^seq > .mt .cb:last",
                "b e",
            ),
        ],
    );
    for edition in [Depth, Canonical] {
        check(
            edition,
            KEYS,
            &[
                ("key order", "@t0 [key='K']", newest_first),
                (
                    "the newest sealed instance",
                    "@t0 [key='K']:depth(>0):first",
                    "d",
                ),
            ],
        );
    }
    check(
        Canonical,
        KEYS,
        &[
            ("a search pins", "@t0 #K", newest_first),
            ("braces pin", "@t0 {key=K}", newest_first),
            ("a filter pins", "@t0 .cb {key=K}", newest_first),
            ("a list of one pins", "@t0 [key=[K]]", newest_first),
            (
                "a list of two does not",
                "@t0 [key=[K,L]]",
                "s a b c d z e loose f",
            ),
            ("a hop pins", "@t0 (d1..d2, block[key=K])", "d z c b a"),
            (
                "@order=pre switches it off",
                "@t0 #K @order=pre",
                "s a b c d z loose f",
            ),
        ],
    );
}

#[test]
fn all_snapshots() {
    let outline = "
root -
  ah ^ah
    a cb key=K role=user
    b cb key=K created_at_ns=1
    c cb
--- 1
root -
  ah ^ah
    d cb key=K
    b cb key=K created_at_ns=1 role=user
    a cb
--- 2
";
    check(
        V01,
        outline,
        &[
            ("each id once, newest snapshot first", "@* .cb", "a d b c"),
            (
                "where the newest matching snapshot puts it",
                "@* .cb[role='user']",
                "b a",
            ),
            (
                "key order inside each snapshot's part",
                "@* [key='K']",
                "b d a",
            ),
            ("picks are taken in each snapshot", "@* .cb:first", "a"),
            ("picks differ by snapshot", "@* .cb:last", "b"),
        ],
    );
}

#[test]
fn orders() {
    check(
        Canonical,
        TREE,
        &[
            ("pre", "@t0 ^ah * @order=pre", "p1 p1c h1 q1"),
            ("post", "@t0 ^ah, ^ah * @order=post", "p1c p1 h1 q1 ah"),
            (
                "bfs",
                "@t0 depth(0), depth(0) * @order=bfs",
                "ah p1 h1 q1 p1c",
            ),
            ("path", "@t0 depth(0) * @order=path", "h1 p1 p1c q1"),
            (
                "turn:desc,pre",
                "@t0 depth(<=2) @order=turn:desc,pre",
                "ah t3 t2 sys",
            ),
            (
                "turn:asc,pre",
                "@t0 depth(<=2) @order=turn:asc,pre",
                "sys t2 t3 ah",
            ),
            (
                "none is last in desc",
                "@t0 #nokey, .cb:post, ^root @order=turn:desc,pre",
                "q1 t2z t1z root",
            ),
        ],
    );
}

#[test]
fn windows() {
    check(
        Canonical,
        KEYS,
        &[
            ("@limit", "@t0 #K @limit=2", "f d"),
            ("@limit=0", "@t0 #K @limit=0", ""),
            ("@first", "@t0 #K @first", "f"),
            ("@p", "@t0 #K @limit=3 @p=2", "c b a"),
            ("@p past the end", "@t0 #K @limit=3 @p=9", ""),
            (
                "@unique keeps the first of each key",
                "@t0 ^seq .cb @unique",
                "a e",
            ),
            (
                "of each id where there is none",
                "@t0 ^seq .mt @unique",
                "t1 t2",
            ),
            (
                "order, unique, window",
                "@t0 ^seq .cb @order=post @unique @limit=1",
                "a",
            ),
            ("@p needs a size", "@t0 #K @p=2", "E_SELECTOR_INVALID"),
            (
                "both limits",
                "@t0 #K @first @limit=1",
                "E_SELECTOR_INVALID",
            ),
            (
                "a control twice",
                "@t0 #K @limit=1 @limit=2",
                "E_SELECTOR_INVALID",
            ),
            ("page 0", "@t0 #K @limit=1 @p=0", "E_SELECTOR_INVALID"),
            ("an unknown control", "@t0 #K @limt=1", "E_SELECTOR_INVALID"),
            ("an unknown order", "@t0 #K @order=up", "E_SELECTOR_INVALID"),
        ],
    );
}
