//! Golden tests of the sources that are more than a selector and its answer. The others are
//! cases in `tests/cases/answers/source-*.txt`.

use crate::support::engine::{self, Engine};
use crate::support::json::{self, Json};
use crate::support::selector::Edition::{self, Canonical, Depth};
use crate::support::{answer, outline};

/// One tree as the snapshot of cycle 42 and as the working state.
const EXAMPLES: &str = include_str!("../cases/sessions/examples.outline");

/// The summaries of source 000 §3.7 (source 002 chapter 04 §3.7): one appears with `@t-1`, one
/// disappears with `@t0`.
const SUMMARIES: &str = r#"
{"cycle":100,"root":{"children":[{"id":"seq","nodeType":"^seq","children":[{"id":"mt:1","nodeType":"mt","children":[{"id":"cb:sum:c101","nodeType":"cb:summary"}]}]}]}}
{"cycle":101,"root":{"children":[{"id":"seq","nodeType":"^seq","children":[{"id":"mt:1","nodeType":"mt","children":[{"id":"cb:sum:c101","nodeType":"cb:summary"}]}]}]}}
{"cycle":102,"root":{"children":[{"id":"seq","nodeType":"^seq","children":[{"id":"mt:1","nodeType":"mt","children":[{"id":"cb:sum:c101","nodeType":"cb:summary"},{"id":"cb:sum:c102","nodeType":"cb:summary"}]}]}]}}
{"cycle":103,"root":{"children":[{"id":"seq","nodeType":"^seq","children":[{"id":"mt:1","nodeType":"mt","children":[{"id":"cb:sum:c102","nodeType":"cb:summary"}]}]}]}}
"#;

/// Sources 000, 001 and 003 §3.7: one result, printed three times.
#[test]
fn section_37_the_printed_ranges() {
    let printed = r#"{
     "query": "QUERY",
     "snapshots": [ { "label":"@t0" }, { "label":"@t-1" }, { "label":"@t-2" }, { "label":"@t-3" } ],
     "diffs": [
       { "from":{"label":"@t0"}, "to":{"label":"@t-1"}, "added_ids":[], "removed_ids":["cb:sum:c101"], "changed":[] },
       { "from":{"label":"@t-1"}, "to":{"label":"@t-2"}, "added_ids":["cb:sum:c102"], "removed_ids":[], "changed":[] },
       { "from":{"label":"@t-2"}, "to":{"label":"@t-3"}, "added_ids":[], "removed_ids":[], "changed":[] }
     ],
     "mode": "pairwise"
    }"#;
    for (edition, query, prefix) in [
        (
            Edition::V01,
            "@t-3..@t0 ^seq .mt .cb[nodeType='cb:summary']",
            "cb:",
        ),
        (
            Edition::Depth,
            "@t-3..@t0 ^seq .mt .cb[nodeType='cb'][kind='summary']",
            "cb:",
        ),
        (
            Edition::Canonical,
            "@t-3..@t0 ^seq .seg .block[nodeType='block'][kind='summary']",
            "block:",
        ),
    ] {
        let own = |text: &str| text.replace("cb:sum:", &format!("{prefix}sum:"));
        let session = engine::open(&own(SUMMARIES));
        let got = Engine::new(edition).range(&session, query).unwrap();
        let printed = own(printed).replace("QUERY", query);
        assert_eq!(
            only_labels(&json::parse(&got)).write(),
            json::parse(&printed).write(),
            "{edition:?}"
        );
    }
    let whole = Engine::new(Edition::V01)
        .range(&engine::open(SUMMARIES), "@t-1..@t0 .cb:summary")
        .unwrap();
    assert_eq!(
        whole,
        r#"{"query":"@t-1..@t0 .cb:summary","snapshots":[{"kind":"t","value":0,"label":"@t0","cycle":103},{"kind":"t","value":-1,"label":"@t-1","cycle":102}],"diffs":[{"from":{"kind":"t","value":0,"label":"@t0","cycle":103},"to":{"kind":"t","value":-1,"label":"@t-1","cycle":102},"added_ids":[],"removed_ids":["cb:sum:c101"],"changed":[]}],"mode":"pairwise"}"#
    );
}

/// The source prints only the label of a snapshot.
fn only_labels(json: &Json) -> Json {
    match json {
        Json::Obj(members) => {
            let label = members.iter().find(|(name, _)| name == "label");
            match label {
                Some(label) => Json::Obj(vec![label.clone()]),
                None => {
                    let members = members.iter();
                    Json::Obj(members.map(|(k, v)| (k.clone(), only_labels(v))).collect())
                }
            }
        }
        Json::List(items) => Json::List(items.iter().map(only_labels).collect()),
        other => other.clone(),
    }
}

#[test]
fn source_002_chapter_05_both_range_marks_are_one() {
    let lines: Vec<String> = (1..=6)
        .map(|cycle| {
            let ids: Vec<String> = (cycle..cycle + 2)
                .map(|n| format!(r#"{{"id":"cb:{n}","nodeType":"cb","ttl":{cycle}}}"#))
                .collect();
            format!(
                r#"{{"cycle":{cycle},"root":{{"children":[{{"id":"ah","nodeType":"^ah","children":[{}]}}]}}}}"#,
                ids.join(",")
            )
        })
        .collect();
    let session = engine::open(&lines.join("\n"));
    let texts = [
        (Edition::V01, "@t-5..-1 ^ah .cb"),
        (Edition::V01, "@t-5:-1 ^ah .cb"),
        (Edition::V01, "@t-1..@t-5 ^ah .cb"),
        (Edition::V01, "@t-5:@t-1 ^ah .cb"),
        // sources 001, 003 §6.
        (Edition::Depth, "@t-5:@t-1 ^ah .cb"),
        (Edition::Canonical, "@t-5:@t-1 ^ah .block"),
    ];
    let answers = texts.map(|(edition, text)| {
        let diff = Engine::new(edition).range(&session, text).unwrap();
        answer::without_query(&diff)
    });
    assert!(
        answers[0].contains(r#""added_ids":["cb:6"],"removed_ids":["cb:4"]"#),
        "{}",
        answers[0]
    );
    for answer in &answers[1..] {
        assert_eq!(*answer, answers[0]);
    }
}

#[test]
fn source_002_chapter_08_content_hash_stability() {
    let text = r#"{"root":{"children":[{"id":"sys","nodeType":"^sys","children":[
        {"id":"test1","content":"Hello world","role":"user","ttl":5,"created_at_ns":1000000},
        {"id":"test2","content":"Hello world","role":"user","ttl":10,"created_at_ns":2000000},
        {"id":"empty"},
        {"id":"rich","content":"é\u007f😀\n\"","role":"user","kind":"text","content_mime":"text/plain","data_n":[1.0,1e-7,1e16,0.00001,123456789012345678901234567890],"data_o":{"b":1,"a":null}},
        {"id":"nulls","content":null,"kind":null}
    ]}]}}"#;
    // Each hash is what the reference code prints for the node.
    let hashes = [
        (
            "bd991081a0a67c7476399d89d1638f2931cd261208cdc9965502b18a04f1dec6",
            "test1 test2",
        ),
        (
            "3d81012112ce288f5f9061f4973ab485bbe28d04ce7989ab351215f75d5a2058",
            "empty",
        ),
        (
            "fffb569faacff5477134b77d15f636e7b63f484964405589d8be58722bfa40d1",
            "rich",
        ),
        (
            "839e7066eba599bb9301cfc147fe400dde468d3aa16a258cb5ac17eaa59fc162",
            "nulls",
        ),
    ];
    let oracle = crate::support::tree::Session::from_lines(&[text]);
    let engine = Engine::new(Edition::V01);
    let session = engine::open(text);
    for (hash, expected) in hashes {
        let query = format!("@t0 ^sys > [content_hash='{hash}']");
        assert_eq!(engine.ids(&session, &query).unwrap().join(" "), expected);
        for id in expected.split(' ') {
            let tree = &oracle.committed[0];
            assert_eq!(
                tree.nodes[tree.find(id).unwrap()].computed_hash(),
                hash,
                "{id}"
            );
        }
    }
}

#[test]
fn source_002_section_12_the_provider_threads() {
    let thread = |text: &str| -> Vec<String> {
        let Json::List(items) = json::parse(text) else {
            panic!("a list")
        };
        items
            .iter()
            .map(|item| item.get("id").unwrap().as_str().unwrap().to_owned())
            .collect()
    };
    let engine = Engine::new(Edition::V01);
    for (fixture, printed) in [
        (
            include_str!("../cases/fixtures/002-12.8.json"),
            include_str!("../cases/fixtures/002-12.8-thread.json"),
        ),
        (
            include_str!("../cases/fixtures/002-12.9.json"),
            include_str!("../cases/fixtures/002-12.9-thread.json"),
        ),
    ] {
        let session = engine::open(fixture);
        assert_eq!(engine.ids(&session, "@t0 .cb").unwrap(), thread(printed));
        let newest = session.history().latest().unwrap().clone();
        let bytes = pactql::render::request(&*newest, pactql::Provider::Thread).unwrap();
        assert_eq!(bytes.trim_end(), json::parse(printed).write());
    }
}

/// Sources 001, 003 §6: windows and filters on results.
#[test]
fn windows_and_filters_of_the_library() {
    let session = engine::open(&outline::lines(EXAMPLES).join("\n"));
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

/// Source 003 §3.10: formatters merge `{ tag=… }` with `+tag` chains, in one order.
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

/// Source 003 §3.7.1: `@history` is `@t0..@t-*`. Source 003 §6: with `@first`, each snapshot's
/// first row (LANGUAGE §12).
#[test]
fn history_is_a_range() {
    let session = engine::open(&outline::lines(FEATURED).join("\n"));
    let engine = Engine::new(Canonical);
    let ask = |query: &str| answer::without_query(&engine.range(&session, query).unwrap());
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

/// LANGUAGE §3: without a time a selector reads the working state, which in a session that brings
/// none is what the last commit left.
#[test]
fn no_time_is_always_answered() {
    let lines = outline::lines(EXAMPLES);
    let session = engine::open(&lines[0]);
    for edition in [Edition::V01, Depth, Canonical] {
        let got = Engine::new(edition).ids(&session, "^sys > .cb:first");
        assert_eq!(got.unwrap(), ["policy"], "{edition:?}");
    }
}
