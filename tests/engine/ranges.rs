//! Ranges in every mode: the engine gives the bytes of the reference interpreter.

use crate::support::documents::Sample;
use crate::support::engine::{self, Engine};
use crate::support::json::{self, Json};
use crate::support::random::{self, Case, Rng, same};
use crate::support::selector::{Edition, Mode, Sel, Time};
use crate::support::tree::Session as Reference;
use crate::support::{answer, range, text};
use pactql::Session;
use pactql::internals::index::Writer;
use pactql::internals::tree::read_lines;

const EDITIONS: [Edition; 3] = [Edition::V01, Edition::Depth, Edition::Canonical];

fn random_range(rng: &mut Rng, session: &Reference) -> Time {
    let count = session.committed.len() as i64;
    if rng.chance(30) {
        let low = session.committed[0].cycle;
        let high = session.committed[count as usize - 1].cycle;
        return Time::CycleRange(rng.range((low - 2).max(0), high + 1), rng.range(low, high));
    }
    if rng.chance(10) {
        return Time::BackRange(Some(0), None);
    }
    let a = rng.range(0, count - 1) as u64;
    let b = rng.range(0, count) as u64;
    Time::BackRange(Some(a), Some(b))
}

/// The reference interpreter's answer to a range of any mode.
pub(crate) fn expected(
    session: &Reference,
    edition: Edition,
    sel: &Sel,
    text: &str,
) -> Result<String, String> {
    match sel.controls.mode {
        None | Some(Mode::Reduce) => range::diff(session, edition, sel, text),
        Some(Mode::Union | Mode::Latest) => {
            range::list(session, edition, sel).map(|ids| ids.join(" "))
        }
    }
    .map_err(str::to_owned)
}

/// The engine's answer to a range of any mode.
pub(crate) fn answered(
    engine: &Engine,
    session: &Session,
    sel: &Sel,
    text: &str,
) -> Result<String, String> {
    match sel.controls.mode {
        None | Some(Mode::Reduce) => engine.range(session, text),
        Some(Mode::Union | Mode::Latest) => engine.ids(session, text).map(|ids| ids.join(" ")),
    }
}

/// Gives a selector a random range, and in later editions perhaps a mode.
pub(crate) fn with_range(rng: &mut Rng, sel: &mut Sel, session: &Reference, edition: Edition) {
    sel.time = random_range(rng, session);
    if edition != Edition::V01 && rng.chance(50) {
        sel.controls.mode = Some(*rng.pick(&[Mode::Union, Mode::Latest, Mode::Reduce]));
    }
}

#[test]
fn answers_are_those_of_whole_snapshots() {
    for edition in EDITIONS {
        let engine = Engine::new(edition);
        random::selectors(random::share(200), edition, 6, |case| {
            let (session, sample) = case.open()?;
            let mut rng = case.rng();
            for sel in &case.selectors {
                let mut sel = sel.clone();
                with_range(&mut rng, &mut sel, &sample.session, edition);
                let text = text::plain(&sel, edition);
                let expected = expected(&sample.session, edition, &sel, &text);
                same!(answered(&engine, &session, &sel, &text), expected, "{text}");
            }
            Ok(())
        });
    }
}

/// Long sessions share units, merge segments and mask rows. What is not compared must not differ.
#[test]
fn long_histories_answer_as_walking_them_does() {
    for edition in EDITIONS {
        let engine = Engine::new(edition);
        let selectors = random::share(160).clamp(6, 40) as usize;
        let sizes = if random::few() { 1 } else { 4 };
        let make = |seed| {
            let sample = Sample::long(seed, 25 + 20 * (seed as usize % sizes));
            Case::new(seed, &sample, edition, selectors)
        };
        random::check(random::share(12), make, |case| {
            let (session, sample) = case.open()?;
            let documents = read_lines(sample.text().as_bytes()).unwrap();
            let unmerged = Session::build(documents, Writer::new().without_merging()).unwrap();
            let mut rng = case.rng();
            for sel in &case.selectors {
                let mut sel = sel.clone();
                with_range(&mut rng, &mut sel, &sample.session, edition);
                let text = text::plain(&sel, edition);
                let expected = expected(&sample.session, edition, &sel, &text);
                for session in [&session, &unmerged] {
                    let got = answered(&engine, session, &sel, &text);
                    same!(got, expected, "{text}");
                }
            }
            Ok(())
        });
    }
}

/// Applied to the older answer, a diff gives the newer one.
#[test]
fn a_diff_leads_from_the_older_to_the_newer() {
    let engine = Engine::new(Edition::Canonical);
    let list = |json: &Json, name: &str| -> Vec<String> {
        let Some(Json::List(ids)) = json.get(name) else {
            panic!("a list `{name}`")
        };
        ids.iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect()
    };
    let make = |seed| Case::new(seed, &Sample::long(seed, 12), Edition::Canonical, 1);
    random::check(random::share(60), make, |case| {
        let (session, sample) = case.open()?;
        let mut sel = case.selectors[0].clone();
        let oldest = sample.session.committed.len() as u64 - 1;
        let mut ask = |time: Time| {
            sel.time = time;
            text::plain(&sel, Edition::Canonical)
        };
        let whole = Time::BackRange(Some(0), Some(oldest));
        let pairwise = json::parse(&engine.range(&session, &ask(whole)).unwrap());
        let Some(Json::List(blocks)) = pairwise.get("diffs") else {
            panic!("diffs")
        };
        for (back, block) in blocks.iter().enumerate() {
            let mut ids = |back: usize| {
                let text = ask(Time::Back(back as u64));
                engine.ids(&session, &text).unwrap()
            };
            let (newer, older) = (ids(back), ids(back + 1));
            let (added, removed) = (list(block, "added_ids"), list(block, "removed_ids"));
            // Removing and adding turns the older list into the newer one.
            let mut made: Vec<String> = older;
            made.retain(|id| !removed.contains(id));
            made.extend(added);
            made.sort();
            let mut newer = newer;
            newer.sort();
            same!(made, newer, "{}", ask(whole));
        }
        Ok(())
    });
}

#[test]
fn threads_do_not_show() {
    let engine = Engine::new(Edition::Canonical);
    let sample = Sample::long(77, 60);
    let session = engine::open(&sample.text());
    for text in [
        "@history .cb",
        "@history .mt:depth(1) .cb",
        "@history *:core @mode=reduce",
        "@t0..@t-30 .cb[ttl<=2] @order=turn:asc,pre",
    ] {
        let answers: Vec<_> = [1, 2, 8]
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let diff = pool
                    .unwrap()
                    .install(|| engine.0.range(&session, text).unwrap());
                serde_json::to_string(&diff).unwrap()
            })
            .into();
        assert_eq!(answers[0], answers[1], "{text}");
        assert_eq!(answers[0], answers[2], "{text}");
    }
}

#[test]
fn both_marks_and_both_directions_give_the_same_bytes() {
    let engine = Engine::new(Edition::V01);
    random::selectors(random::share(60), Edition::V01, 1, |case| {
        let (session, sample) = case.open()?;
        let mut rng = case.rng();
        let sel = &case.selectors[0];
        let (a, b) = match random_range(&mut rng, &sample.session) {
            Time::BackRange(a, b) => (Time::BackRange(a, b), Time::BackRange(b, a)),
            Time::CycleRange(a, b) => (Time::CycleRange(a, b), Time::CycleRange(b, a)),
            _ => unreachable!("a range"),
        };
        let mut answers = Vec::new();
        for time in [a, b] {
            let sel = Sel {
                time,
                ..sel.clone()
            };
            for _ in 0..4 {
                let text = text::variant(&sel, Edition::V01, &mut rng);
                let diff = engine.range(&session, &text);
                answers.push(diff.map(|diff| answer::without_query(&diff)));
            }
        }
        for answer in &answers {
            same!(*answer, answers[0], "another spelling");
        }
        Ok(())
    });
}

#[test]
fn headers_and_what_counts_as_a_change() {
    let text = r#"{"root":{"children":[{"id":"ah","nodeType":"^ah","children":[
        {"id":"same","nodeType":"block","offset":0,"status":1,"ttl":null},
        {"id":"ttl","ttl":3},
        {"id":"text","content":"a","role":"user"},
        {"id":"stored","content_hash":"x"},
        {"id":"tags","tags":["a","b"]},
        {"id":"list","data_l":[1,2]},
        {"id":"moved"},
        {"id":"box","nodeType":"mc","offset":5}
    ]}]}}
    {"root":{"children":[{"id":"ah","nodeType":"^ah","children":[
        {"id":"same","nodeType":"cb","status":1.0},
        {"id":"ttl","ttl":2},
        {"id":"text","content":"b","role":"tool"},
        {"id":"stored","content_hash":"y"},
        {"id":"tags","tags":["b","a"]},
        {"id":"list","data_l":[1,3]},
        {"id":"box","nodeType":"mc","offset":5,"children":[{"id":"moved"}]},
        {"id":"new"}
    ]}]}}"#;
    let lines: Vec<String> = text
        .split("\n    {\"root\"")
        .map(|part| {
            let part = part.trim();
            let part = if part.starts_with('{') {
                part.to_owned()
            } else {
                format!("{{\"root\"{part}")
            };
            part.replace('\n', "")
        })
        .collect();
    let engine = Engine::new(Edition::V01);
    let session = engine::open(&lines.join("\n"));
    let got = json::parse(&engine.range(&session, "@t-1..@t0 .cb").unwrap());
    let Some(Json::List(diffs)) = got.get("diffs") else {
        panic!("diffs")
    };
    let diff = &diffs[0];
    assert_eq!(diff.get("added_ids").unwrap().write(), r#"["new"]"#);
    assert_eq!(diff.get("removed_ids").unwrap().write(), "[]");
    let Some(Json::List(changed)) = diff.get("changed") else {
        panic!("changed")
    };
    let find = |id: &str| {
        changed
            .iter()
            .find(|c| c.get("id") == Some(&Json::text(id)))
    };
    assert!(
        find("same").is_none(),
        "defaults, both vocabularies and 1 = 1.0 are no change"
    );
    let fields = |id: &str| find(id).unwrap().get("fields").unwrap().write();
    let delta = |id: &str| find(id).unwrap().get("delta").map(Json::write);
    assert_eq!(fields("ttl"), r#"["ttl"]"#);
    assert_eq!(delta("ttl").unwrap(), r#"{"ttl":{"from":2,"to":3}}"#);
    assert_eq!(fields("text"), r#"["content_hash","role"]"#);
    assert_eq!(fields("stored"), r#"["content_hash"]"#);
    assert_eq!(
        delta("stored").unwrap(),
        r#"{"content_hash":{"from":"y","to":"x"}}"#
    );
    assert_eq!(fields("tags"), r#"["tags"]"#);
    assert_eq!(delta("tags"), None);
    assert_eq!(fields("list"), r#"["content_hash","data_l"]"#);
    assert_eq!(fields("moved"), r#"["parent"]"#);
    assert_eq!(
        delta("moved").unwrap(),
        r#"{"parent":{"from":"box","to":"ah"}}"#
    );
    let reference = Reference::from_lines(&lines);
    let sel = crate::support::parse::parse("@t-1..@t0 .cb", Edition::V01);
    let expected = range::diff(&reference, Edition::V01, &sel, "@t-1..@t0 .cb").unwrap();
    assert_eq!(engine.range(&session, "@t-1..@t0 .cb").unwrap(), expected);
}

#[test]
fn large_numbers_and_nulls_are_compared_by_what_they_mean() {
    let versions = [
        (
            "large",
            r#""x":10000000000000000000000000000000000000000"#,
            r#""x":10000000000000000000000000000000000000001"#,
            r#"["x"]"#,
        ),
        (
            "decimal",
            r#""x":9007199254740993"#,
            r#""x":9007199254740992.0"#,
            r#"["x"]"#,
        ),
        (
            "nested",
            r#""x":[{"n":90071992547409930000000000000000000000001}]"#,
            r#""x":[{"n":90071992547409930000000000000000000000000}]"#,
            r#"["x"]"#,
        ),
        ("equal", r#""x":1e22"#, r#""x":10000000000000000000000"#, ""),
        (
            "tag",
            r#""tags":null,"tag":"a""#,
            r#""tags":null,"tag":"b""#,
            r#"["tags"]"#,
        ),
        (
            "tags",
            r#""tags":null,"tag":"a""#,
            r#""tags":["a"],"tag":"b""#,
            "",
        ),
        (
            "cad",
            r#""cadence":null,"cad":1"#,
            r#""cadence":null,"cad":2"#,
            r#"["cadence"]"#,
        ),
        ("cadence", r#""cadence":null,"cad":1"#, r#""cadence":1"#, ""),
    ];
    let line = |pick: fn(&(&str, &'static str, &'static str, &str)) -> &'static str| {
        let nodes: Vec<String> = versions
            .iter()
            .map(|version| format!(r#"{{"id":"{}",{}}}"#, version.0, pick(version)))
            .collect();
        format!(r#"{{"root":{{"children":[{}]}}}}"#, nodes.join(","))
    };
    let lines = [line(|version| version.1), line(|version| version.2)];
    let session = engine::open(&lines.join("\n"));
    let got = Engine::new(Edition::V01)
        .range(&session, "@t-1..@t0 *")
        .unwrap();
    let reference = Reference::from_lines(&lines);
    let sel = crate::support::parse::parse("@t-1..@t0 *", Edition::V01);
    let expected = range::diff(&reference, Edition::V01, &sel, "@t-1..@t0 *").unwrap();
    assert_eq!(got, expected);
    for (id, _, _, fields) in versions {
        let changed = format!(r#"{{"id":"{id}","fields":{fields}"#);
        assert_eq!(got.contains(&changed), !fields.is_empty(), "{id} in {got}");
        assert_eq!(
            got.contains(&format!(r#""id":"{id}""#)),
            !fields.is_empty(),
            "{id} in {got}"
        );
    }
}

#[test]
fn ranges_are_cut_at_the_oldest_snapshot() {
    let lines: Vec<String> = [3, 5, 9]
        .iter()
        .map(|c| {
            format!(r#"{{"cycle":{c},"root":{{"children":[{{"id":"n{c}","nodeType":"cb"}}]}}}}"#)
        })
        .collect();
    let engine = Engine::new(Edition::V01);
    let session = engine::open(&lines.join("\n"));
    let ask = |text: &str| json::parse(&engine.range(&session, text).unwrap());
    let labels = |json: &Json| -> Vec<String> {
        let Some(Json::List(all)) = json.get("snapshots") else {
            panic!("snapshots")
        };
        all.iter()
            .map(|s| s.get("label").unwrap().as_str().unwrap().to_owned())
            .collect()
    };
    let warnings = |json: &Json| json.get("warnings").map(Json::write);
    let past = ask("@t0..@t-7 .cb");
    assert_eq!(labels(&past), ["@t0", "@t-1", "@t-2"]);
    let text = r#"["the range reaches past the oldest snapshot and is cut to @t-2"]"#;
    assert_eq!(warnings(&past).unwrap(), text);
    let open = ask("@t-1..@t-* .cb");
    assert_eq!(labels(&open), ["@t-1", "@t-2"]);
    assert_eq!(warnings(&open), None);
    let cycles = ask("@c1..@c5 .cb");
    assert_eq!(labels(&cycles), ["@c5", "@c3"]);
    let text = r#"["the range reaches past the oldest snapshot and is cut to @c3"]"#;
    assert_eq!(warnings(&cycles).unwrap(), text);
    let between = ask("@c4..8 .cb");
    assert_eq!(labels(&between), ["@c5"]);
    assert_eq!(between.get("diffs").unwrap().write(), "[]");
    assert_eq!(labels(&ask("@t-2..-1 .cb")), ["@t-1", "@t-2"]);
}
