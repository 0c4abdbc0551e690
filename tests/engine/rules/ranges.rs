//! LANGUAGE §7, §8: ranges with modes, controls on ranges, and their caps.

use super::{check, check_lines};
use crate::support::engine::{self, Engine};
use crate::support::selector::Edition::{Canonical, Depth, V01};
use crate::support::{answer, json, outline};
use pactql::history::RangeOptions;

/// `back` comes, goes, comes back as another role and turns again; `x1` counts down and goes.
const HISTORY: &str = "
root -
  seq ^seq
    t1 mt created_at_ns=1
      back cb role=user
      x1 cb key=K role=user ttl=3
--- 10
root -
  seq ^seq
    t1 mt created_at_ns=1
      x1 cb key=K role=user ttl=2
    t2 mt created_at_ns=2
      x2 cb key=K role=tool
      y2 cb key=L role=user
--- 12
root -
  seq ^seq
    t1 mt created_at_ns=1
      back cb role=tool
      x1 cb key=K role=user ttl=1
    t2 mt created_at_ns=2
      x2 cb key=K role=user
      y2 cb key=L role=user
--- 17
root -
  seq ^seq
    t1 mt created_at_ns=1
      back cb role=user
    t2 mt created_at_ns=2
      x2 cb key=K role=user
    t3 mt created_at_ns=3
      x3 cb key=K role=user
--- 20
";

const INVALID: &str = "E_SELECTOR_INVALID";
const NO_CHANGE: &str = "@t0: =; @t-1: =; @t-2: =";

#[test]
fn pairs() {
    let whole = "@t0: +x3 -x1 -y2 ~back(content_hash,role); @t-1: +back ~x1(ttl) ~x2(content_hash,role); \
                 @t-2: +x2 +y2 -back ~x1(ttl)";
    for edition in [V01, Depth, Canonical] {
        check(
            edition,
            HISTORY,
            &[
                ("each with the next older one", "@t0..@t-3 .cb", whole),
                ("either end first", "@t-3..@t0 .cb", whole),
                (
                    "by cycles, which need not exist",
                    "@c11..@c17 .mt .cb",
                    "@c17: +back ~x1(ttl) ~x2(content_hash,role)",
                ),
                ("one snapshot", "@t-1..@t-1 .cb", answer::NO_PAIR),
                ("one cycle between", "@c11..@c16 .cb", answer::NO_PAIR),
                (
                    "a pick is taken in each snapshot",
                    "@t0..@t-* .cb:first",
                    "@t0: ~back(content_hash,role); @t-1: +back -x1; @t-2: +x1 -back",
                ),
                (
                    "a selector that matches nothing",
                    "@t0..@t-3 none",
                    NO_CHANGE,
                ),
            ],
        );
    }
}

#[test]
fn windows_shape_each_snapshot_before_it_is_compared() {
    check(
        Canonical,
        HISTORY,
        &[
            (
                "@limit",
                "@history .cb @limit=2",
                "@t0: +x2 -x1 ~back(content_hash,role); @t-1: +back -x2 ~x1(ttl); @t-2: +x2 -back ~x1(ttl)",
            ),
            (
                "@first",
                "@history .cb @first",
                "@t0: ~back(content_hash,role); @t-1: +back -x1; @t-2: +x1 -back",
            ),
            (
                "@p",
                "@history .cb @limit=2 @p=2",
                "@t0: +x3 -x2 -y2; @t-1: +x2; @t-2: +y2",
            ),
            ("@limit=0", "@history .cb @limit=0", NO_CHANGE),
            (
                "@order, then the window",
                "@history .mt @order=turn:desc,pre @first",
                "@t0: +t3 -t2; @t-1: =; @t-2: +t2 -t1",
            ),
            (
                "key order, then the window",
                "@history #K @first",
                "@t0: +x3 -x2; @t-1: ~x2(content_hash,role); @t-2: +x2 -x1",
            ),
            (
                "@unique",
                "@history {key} @unique",
                "@t0: +x2 -x1 -y2; @t-1: ~x1(ttl); @t-2: +y2 ~x1(ttl)",
            ),
            (
                "@order, @unique, window",
                "@history {key} @order=turn:desc,pre @unique @limit=1",
                "@t0: +x3 -x2; @t-1: ~x2(content_hash,role); @t-2: +x2 -x1",
            ),
            (
                "added in the newer's order, removed in the older's",
                "@t-1..@t0 .cb @order=turn:desc,pre",
                "@t0: +x3 -y2 -x1 ~back(content_hash,role)",
            ),
            (
                "filters and controls in any order",
                "@history .cb @limit=1 {role=user} @order=turn:desc,pre",
                "@t0: +x3 -x2; @t-1: +x2 -y2; @t-2: +y2 -back",
            ),
        ],
    );
}

#[test]
fn reduce() {
    let net = "@t0 since @t-3: +x2 +x3 -x1";
    for edition in [Depth, Canonical] {
        check(
            edition,
            HISTORY,
            &[
                ("the ends only", "@t0..@t-* .cb @mode=reduce", net),
                ("either end first", "@t-3..@t0 .cb @mode=reduce", net),
                ("cut at the oldest", "@t0..@t-9 .cb @mode=reduce", net),
                (
                    "two snapshots: the pair",
                    "@t-2..@t-1 .cb @mode=reduce",
                    "@t-1 since @t-2: +back ~x1(ttl) ~x2(content_hash,role)",
                ),
                (
                    "by cycles",
                    "@c1..@c17 .mt @mode=reduce",
                    "@c17 since @c10: +t2",
                ),
                (
                    "one snapshot has nothing to be compared with",
                    "@t-1..@t-1 .cb @mode=reduce",
                    answer::NO_PAIR,
                ),
                ("one cycle", "@c11..@c13 .cb @mode=reduce", answer::NO_PAIR),
            ],
        );
    }
    check(
        Canonical,
        HISTORY,
        &[
            ("of the whole history", "@history .cb @mode=reduce", net),
            (
                "a window shapes both ends",
                "@history .cb @limit=2 @mode=reduce",
                "@t0 since @t-3: +x2 -x1",
            ),
            (
                "@first",
                "@history .cb @mode=reduce @first",
                "@t0 since @t-3: =",
            ),
            (
                "@order",
                "@history .mt @mode=reduce @order=turn:desc,pre",
                "@t0 since @t-3: +t3 +t2",
            ),
            (
                "@unique",
                "@history {key} @unique @mode=reduce",
                "@t0 since @t-3: +x2 -x1",
            ),
        ],
    );
}

#[test]
fn union() {
    for edition in [Depth, Canonical] {
        check(
            edition,
            HISTORY,
            &[
                (
                    "matched in any snapshot, newest snapshot first",
                    "@t0..@t-* .cb @mode=union",
                    "back x2 x3 x1 y2",
                ),
                (
                    "each where the newest snapshot in which it matched puts it",
                    "@t-*..@t0 .cb[role=tool] @mode=union",
                    "back x2",
                ),
                (
                    "of the range only",
                    "@t-2..@t-3 .cb @mode=union",
                    "x1 x2 y2 back",
                ),
                ("of cycles", "@c10..@c12 .mt @mode=union", "t1 t2"),
                ("of one snapshot", "@t-2..@t-2 .mt @mode=union", "t1 t2"),
                (
                    "depths are those of each snapshot",
                    "@t0..@t-3 .mt:depth(1) @mode=union",
                    "t3 t2 t1",
                ),
                (
                    "picks are taken in each snapshot",
                    "@t0..@t-3 .cb:first @mode=union",
                    "back x1",
                ),
                ("in key order", "@t0..@t-3 [key=K] @mode=union", "x3 x2 x1"),
                ("nothing", "@t0..@t-3 none @mode=union", ""),
                ("cut", "@t-2..@t-7 .mt @mode=union", "t1 t2"),
                (
                    "touches none",
                    "@t-5..@t-7 .mt @mode=union",
                    "E_SNAPSHOT_NOT_FOUND",
                ),
            ],
        );
    }
    check(
        Canonical,
        HISTORY,
        &[
            (
                "a position",
                "@history (d1, *) @mode=union",
                "x3 x2 y2 back x1",
            ),
            (
                "a filter",
                "@history .cb {role=tool} @mode=union",
                "back x2",
            ),
        ],
    );
}

#[test]
fn latest() {
    for edition in [Depth, Canonical] {
        check(
            edition,
            HISTORY,
            &[
                (
                    "what is gone has a newest version",
                    "@t0..@t-* .cb @mode=latest",
                    "back x2 x3 x1 y2",
                ),
                (
                    "that version decides",
                    "@t0..@t-* .cb[role=tool] @mode=latest",
                    "",
                ),
                ("where it matches", "@t0..@t-* [ttl=1] @mode=latest", "x1"),
                (
                    "and where it no longer does",
                    "@t0..@t-* [ttl=3] @mode=latest",
                    "",
                ),
                (
                    "an id that vanished: the version before",
                    "@t-2..@t-3 .cb[role=user] @mode=latest",
                    "x1 y2 back",
                ),
                (
                    "an id that came back otherwise: the version after",
                    "@t-1..@t-3 .cb[role=user] @mode=latest",
                    "x1 x2 y2",
                ),
                (
                    "union finds the one before",
                    "@t-1..@t-3 .cb[role=user] @mode=union",
                    "x1 x2 y2 back",
                ),
                (
                    "found by what it came back as",
                    "@t-1..@t-3 .cb[role=tool] @mode=latest",
                    "back",
                ),
                (
                    "newest in the range, not in the session",
                    "@t-2..@t-3 [ttl=2] @mode=latest",
                    "x1",
                ),
                (
                    "depths change without a change of the node",
                    "@t0..@t-* .mt:depth(1) @mode=latest",
                    "t3",
                ),
                ("picks, too", "@t0..@t-* .cb:first @mode=latest", "back"),
                (
                    "a facet is read in the snapshot of the version",
                    "@t0..@t-3 .cb[depth=2] @mode=latest",
                    "x2 x1",
                ),
                ("of one snapshot", "@t-2..@t-2 .mt @mode=latest", "t1 t2"),
            ],
        );
    }
}

#[test]
fn controls_shape_the_final_list() {
    for mode in ["union", "latest"] {
        let cases = [
            ("@limit", ".cb @limit=4", "back x2 x3 x1"),
            ("@p", ".cb @limit=4 @p=2", "y2"),
            ("@p past the end", ".cb @limit=4 @p=3", ""),
            ("@first", ".cb @first", "back"),
            ("@limit=0", ".cb @limit=0", ""),
            ("@unique: one row a key", "{key} @unique", "x2 y2"),
            (
                "@unique: one row an id without a key",
                ".mt @unique",
                "t1 t2 t3",
            ),
            ("key order decides which", "#K @unique", "x3"),
            (
                "@order arranges each snapshot's rows",
                "{key} @order=turn:desc,pre",
                "x3 x2 y2 x1",
            ),
            (
                "then @unique",
                "{key} @unique @order=turn:desc,pre",
                "x3 y2",
            ),
            (
                "then the window",
                "{key} @limit=1 @p=2 @unique @order=turn:desc,pre",
                "y2",
            ),
            (
                "@order=pre switches key order off",
                "#K @order=pre",
                "x2 x3 x1",
            ),
        ];
        let texts = cases
            .map(|(rule, text, answer)| (rule, format!("@history {text} @mode={mode}"), answer));
        let cases: Vec<_> = texts
            .iter()
            .map(|(rule, text, answer)| (*rule, text.as_str(), *answer))
            .collect();
        check(Canonical, HISTORY, &cases);
    }
}

#[test]
fn modes_that_are_wrong() {
    check(
        V01,
        HISTORY,
        &[
            ("not yet", "@t0..@t-1 .cb @mode=union", "E_EDITION"),
            ("nor @history", "@history .cb", "E_EDITION"),
            ("nor windows", "@t0..@t-1 .cb @first", "E_EDITION"),
        ],
    );
    check(
        Depth,
        HISTORY,
        &[
            ("not yet", "@history .cb @mode=union", "E_EDITION"),
            (
                "nor windows",
                "@t0..@t-1 .cb @limit=1 @mode=union",
                "E_EDITION",
            ),
        ],
    );
    for edition in [Depth, Canonical] {
        check(
            edition,
            HISTORY,
            &[
                ("no time is no range", ".cb @mode=union", INVALID),
                ("nor is an address", "@t0 .cb @mode=latest", INVALID),
                ("nor a cycle", "@c12 .cb @mode=reduce", INVALID),
                ("nor all snapshots", "@* .cb @mode=union", INVALID),
                ("an unknown mode", "@t0..@t-1 .cb @mode=net", INVALID),
                ("it has no name", "@t0..@t-1 .cb @mode=pairwise", INVALID),
                ("no mode", "@t0..@t-1 .cb @mode=", INVALID),
                ("nor here", "@t0..@t-1 .cb @mode", INVALID),
                ("twice", "@t0..@t-1 .cb @mode=union @mode=union", INVALID),
                ("before the body", "@t0..@t-1 @mode=union .cb", INVALID),
            ],
        );
    }
}

fn options(max_snapshots: Option<usize>, max_changes: Option<usize>, stats: bool) -> RangeOptions {
    RangeOptions {
        max_snapshots,
        max_changes,
        stats,
        ..RangeOptions::default()
    }
}

#[test]
fn caps_keep_the_newest_snapshots_and_the_first_changes() {
    let session = engine::open(&outline::lines(HISTORY).join("\n"));
    let Engine(engine) = Engine::new(Canonical);
    let cases = [
        (
            (None, Some(4), false),
            "@t0..@t-1 .cb",
            "@t0: +x3 -x1 -y2 ~back(content_hash,role)",
        ),
        (
            (None, Some(3), false),
            "@t0..@t-1 .cb",
            "@t0: +x3 -x1 -y2; E_LIMIT",
        ),
        (
            (None, Some(2), false),
            "@t0..@t-1 .cb",
            "@t0: +x3 -x1; E_LIMIT",
        ),
        ((None, Some(0), false), "@t0..@t-1 .cb", "@t0: =; E_LIMIT"),
        ((None, Some(0), false), "@t0..@t-1 none", "@t0: ="),
        (
            (None, Some(1), true),
            "@history .cb",
            "@t0: +x3 (+1 -2 ~1); @t-1: +back (+1 -0 ~2); @t-2: +x2 (+2 -1 ~1); E_LIMIT",
        ),
        (
            (Some(2), None, false),
            "@history .cb",
            "@t0: +x3 -x1 -y2 ~back(content_hash,role); E_SNAPSHOT_RANGE_LIMIT",
        ),
        (
            (Some(4), None, false),
            "@history .mt",
            "@t0: +t3; @t-1: =; @t-2: +t2",
        ),
        (
            (Some(3), None, false),
            "@c10..@c20 .mt",
            "@c20: +t3; @c17: =; E_SNAPSHOT_RANGE_LIMIT",
        ),
        (
            (Some(1), None, false),
            "@history .mt",
            "no pair; E_SNAPSHOT_RANGE_LIMIT",
        ),
        (
            (Some(3), Some(1), true),
            "@history .cb @mode=reduce",
            "@t0 since @t-2: +back (+2 -2 ~1); E_SNAPSHOT_RANGE_LIMIT; E_LIMIT",
        ),
        // Windows come before caps.
        (
            (None, Some(1), true),
            "@t0..@t-1 .cb @limit=2",
            "@t0: +x2 (+1 -1 ~1); E_LIMIT",
        ),
        // Lists have no changes to count.
        (
            (Some(2), Some(1), true),
            "@history .mt:depth(1) @mode=union",
            "t3 t2",
        ),
        (
            (Some(2), Some(1), true),
            "@history [ttl] @mode=latest",
            "x1",
        ),
        ((Some(1), None, false), "@history [ttl] @mode=latest", ""),
        // Without a range there is nothing to cap.
        ((Some(1), Some(0), true), "@t-1 .cb", "back x1 x2 y2"),
        ((Some(1), Some(0), true), "@* .cb", "back x2 x3 x1 y2"),
    ];
    for ((snapshots, changes, stats), text, expected) in cases {
        let options = options(snapshots, changes, stats);
        let selection = engine.select_with(&session, text, &options).unwrap();
        assert_eq!(answer::of(&selection), expected, "{text} {options:?}");
    }
}

/// LANGUAGE §8: which members stand behind the diffs, and what they say.
#[test]
fn caps_are_told() {
    let session = engine::open(&outline::lines(HISTORY).join("\n"));
    let Engine(engine) = Engine::new(Canonical);
    let tail = |text: &str, options: &RangeOptions| {
        let diff = engine.range_with(&session, text, options).unwrap();
        let diff = serde_json::to_string(&diff).unwrap();
        let json::Json::Obj(members) = json::parse(&diff) else {
            unreachable!("an object")
        };
        let behind = members.into_iter().skip(3).collect();
        json::Json::Obj(behind).write()
    };
    let snapshots = r#"{"code":"E_SNAPSHOT_RANGE_LIMIT","message":"only the newest 2 snapshots were taken","fatal":false}"#;
    let changes = r#"{"code":"E_LIMIT","message":"changes were cut","fatal":false}"#;
    let cases = [
        ((None, None), r#""mode":"pairwise""#.to_owned()),
        (
            (Some(4), None),
            r#""mode":"pairwise","limits":{"maxSnapshots":4,"truncated":false}"#.to_owned(),
        ),
        (
            (None, Some(99)),
            r#""mode":"pairwise","limits":{"maxChangesPerSnapshot":99,"truncated":false}"#
                .to_owned(),
        ),
        (
            (Some(2), None),
            format!(
                r#""mode":"pairwise","limits":{{"maxSnapshots":2,"truncated":true}},"errors":[{snapshots}]"#
            ),
        ),
        // One entry, however many pairs were cut.
        (
            (None, Some(1)),
            format!(
                r#""mode":"pairwise","limits":{{"maxChangesPerSnapshot":1,"truncated":true}},"errors":[{changes}]"#
            ),
        ),
        (
            (Some(2), Some(1)),
            format!(
                r#""mode":"pairwise","limits":{{"maxSnapshots":2,"maxChangesPerSnapshot":1,"truncated":true}},"errors":[{snapshots},{changes}]"#
            ),
        ),
    ];
    for ((most, changes), expected) in cases {
        let got = tail("@history .cb", &options(most, changes, false));
        assert_eq!(got, format!("{{{expected}}}"));
    }
    // Warnings stand before errors; counts leave no trace there.
    assert_eq!(
        tail("@t0..@t-9 .cb @mode=reduce", &options(None, Some(1), true)),
        format!(
            r#"{{"mode":"reduce","limits":{{"maxChangesPerSnapshot":1,"truncated":true}},"warnings":["the range reaches past the oldest snapshot and is cut to @t-3"],"errors":[{changes}]}}"#
        )
    );
    // A list says it in its warnings.
    let options = options(Some(2), None, false);
    let list = engine.select_with(&session, "@t0..@t-9 .cb @mode=union", &options);
    let warnings: Vec<String> = list
        .unwrap()
        .warnings()
        .iter()
        .map(|warning| warning.message.clone())
        .collect();
    assert_eq!(
        warnings,
        [
            "the range reaches past the oldest snapshot and is cut to @t-3",
            "only the newest 2 snapshots were taken",
        ]
    );
}

#[test]
fn a_history_of_one_snapshot() {
    let lines = outline::lines(HISTORY);
    check_lines(
        Canonical,
        &lines[..1],
        &[
            ("one snapshot", "@history .mt", answer::NO_PAIR),
            ("its net diff", "@history .mt @mode=reduce", answer::NO_PAIR),
            ("its list", "@history .mt @mode=union", "t1"),
        ],
    );
}
