//! `explain` as JSON, and the plan that selectors of one meaning share. Its text is in
//! `tests/cases/explain`.

use pactql::{
    Edition, Engine, Session,
    explain::{Explain, ExplainOptions},
};

#[track_caller]
fn explain(engine: &Engine, text: &str) -> Explain {
    match engine.explain(None, text, ExplainOptions::default()) {
        Ok(explain) => explain,
        Err(error) => panic!("{error}"),
    }
}

fn engine(edition: Edition) -> Engine {
    Engine::builder().edition(edition).build()
}

#[test]
fn as_json() {
    let json = explain(&engine(Edition::Canonical), "^ah > .cb:core[ephemeral]").to_json();
    insta::assert_json_snapshot!(json["sugar"], @r#"
[
  {
    "end": 3,
    "normal": "depth(0)",
    "start": 0,
    "written": "^ah"
  },
  {
    "end": 14,
    "normal": "[offset=0]",
    "start": 9,
    "written": ":core"
  },
  {
    "end": 25,
    "normal": "[ttl=1]",
    "start": 14,
    "written": "[ephemeral]"
  }
]
"#);
}

/// Without sugar there is no such section.
#[test]
fn without_sugar() {
    let explain = explain(
        &engine(Edition::Canonical),
        "@t0 depth(0) > .cb[role='user']",
    );
    assert!(explain.sugar.is_empty());
    assert!(!explain.to_string().contains("sugar"));
    assert!(explain.to_json().get("sugar").is_none());
}

/// LANGUAGE §9: spellings with one meaning have one fingerprint and one plan.
#[test]
fn spellings_have_one_plan() {
    let engine = engine(Edition::Canonical);
    let first = explain(&engine, "@t0 ^ah > .mc[offset=0]");
    let second = explain(&engine, "@t0 depth(0) > .cont:core");
    let third = explain(&engine, "@t0 (d0, cont[offset=1])");
    assert_eq!(first.cache, "miss");
    assert_eq!(second.plan, first.plan);
    assert_eq!(second.fingerprint, first.fingerprint);
    assert_eq!(second.normalized, first.normalized);
    // A different literal makes a different selector with the same plan.
    assert_eq!(third.plan.len(), first.plan.len());
    assert_ne!(third.fingerprint, first.fingerprint);
    let stats = engine.cache_stats();
    assert_eq!((stats.text_hits, stats.misses), (0, 3));
    assert_eq!(
        explain(&engine, "@t0 ^ah > .mc[offset=0]").cache,
        "text hit"
    );
}

/// LANGUAGE §3: which snapshot answers a selector that names no time.
#[test]
fn the_snapshot_of_an_omitted_time() {
    let line = |cycle| format!("{{\"cycle\":{cycle},\"root\":{{}}}}\n");
    let committed = line(3) + &line(7);
    let own = committed.clone() + "{\"working\":true,\"root\":{}}";
    for (text, edition, selector, time) in [
        (
            &committed,
            Edition::Canonical,
            "*",
            Some("working state (newest snapshot, cycle 7)"),
        ),
        (&own, Edition::Depth, "*", Some("working state")),
        (&own, Edition::V01, "*", None),
        (&own, Edition::Canonical, "@t0 *", None),
    ] {
        let session = Session::from_slice(text.as_bytes()).unwrap();
        let options = ExplainOptions::default();
        let explain = engine(edition).explain(Some(&session), selector, options);
        let explain = explain.unwrap();
        assert_eq!(explain.time.as_deref(), time, "{edition} {selector}");
        assert_eq!(explain.to_string().contains("\ntime  "), time.is_some());
    }
}
