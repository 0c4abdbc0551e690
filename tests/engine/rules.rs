//! Rules of LANGUAGE §6 and §8 that need more than a selector and its answer. The others are
//! cases in `tests/cases/answers`.

use crate::support::engine::{self, Engine};
use crate::support::selector::Edition::Canonical;
use crate::support::tree::Session as Reference;
use crate::support::{answer, json, outline, parse};
use pactql::RangeOptions;

const HISTORY: &str = include_str!("../cases/sessions/ranges.outline");

#[test]
fn paths_of_a_deep_and_wide_tree() {
    // On every level, ids descend in document order.
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
    let (engine, session) = (Engine::new(Canonical), engine::open(&lines[0]));
    let reference = Reference::from_lines(&lines);
    for (text, expected) in [
        ("@t0 * @order=path", &expected),
        // Few nodes: they are sorted, the tree is not walked.
        ("@t0 .cb[id~'7$'] @order=path", &some),
    ] {
        let sel = parse::parse(text, Canonical);
        let walked = answer::walked(&reference, Canonical, &sel, text);
        assert_eq!(walked.as_ref(), Ok(expected), "{text}");
        assert_eq!(
            answer::asked(&engine, &session, text).as_ref(),
            Ok(expected),
            "{text}"
        );
    }
}

fn options(max_snapshots: Option<usize>, max_changes: Option<usize>, stats: bool) -> RangeOptions {
    let mut options = RangeOptions::default().stats(stats);
    options.max_snapshots = max_snapshots;
    options.max_changes = max_changes;
    options
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
        // Windows are applied before caps.
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

/// LANGUAGE §8: the members after the diffs.
#[test]
fn caps_are_reported() {
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
    // Warnings come before errors; requested counts do not appear there.
    assert_eq!(
        tail("@t0..@t-9 .cb @mode=reduce", &options(None, Some(1), true)),
        format!(
            r#"{{"mode":"reduce","limits":{{"maxChangesPerSnapshot":1,"truncated":true}},"warnings":["the range reaches past the oldest snapshot and is cut to @t-3"],"errors":[{changes}]}}"#
        )
    );
    // A list has its caps in its warnings.
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

/// A result comes in a later snapshot than its call, so over several snapshots every call is one without a result.
#[test]
fn unanswered_calls_over_several_snapshots_have_a_warning() {
    let log = r#"[{"role":"user","content":"go"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"ok"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},
        {"role":"assistant","content":"never mind"}]"#;
    let log = pactql::logs::import(log.as_bytes(), &pactql::logs::ImportOptions::default());
    let session = log.unwrap().sessions[0].session().unwrap();
    let engine = pactql::Engine::new();
    let found = |text: &str| {
        let rows = engine.rows(&session, text).unwrap();
        let ids: Vec<String> = rows.ids().map(str::to_owned).collect();
        let warnings = rows
            .warnings()
            .iter()
            .map(|warning| warning.message.clone());
        (ids.join(" "), warnings.collect::<Vec<_>>())
    };
    let said = "a call matches if it has no result in one of the snapshots, and most have none in their first";
    for (text, ids, has_warning) in [
        (
            "@* .cb[kind='call']:not(:has-result)",
            "cb:4-1 cb:2-1",
            true,
        ),
        (
            "@history .cb[kind='call']:not(:has-result) @mode=union",
            "cb:4-1 cb:2-1",
            true,
        ),
        (
            "@* .cb[kind='call']:not(:has-result([content='x']))",
            "cb:2-1 cb:4-1",
            true,
        ),
        (
            "@history .cb[kind='call']:not(:has-result) @mode=latest",
            "cb:4-1",
            false,
        ),
        ("@t0 .cb[kind='call']:not(:has-result)", "cb:4-1", false),
        ("@* .cb[kind='call']:has-result", "cb:2-1", false),
    ] {
        let warnings = if has_warning {
            vec![said.to_owned()]
        } else {
            Vec::new()
        };
        assert_eq!(found(text), (ids.to_owned(), warnings), "{text}");
    }
}
