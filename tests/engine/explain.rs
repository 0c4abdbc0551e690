//! `explain` for readers: sugar next to its normal form, in every edition, as text and as JSON;
//! and the plan that selectors of one meaning share.

use pactql::engine::{Engine, Explain, ExplainOptions};
use pactql::ir::Edition;

#[track_caller]
fn explain(engine: &Engine, text: &str) -> Explain {
    match engine.explain(None, text, ExplainOptions::default()) {
        Ok(explain) => explain,
        Err(error) => panic!("{error}"),
    }
}

/// What stands before the plan.
#[track_caller]
fn head(engine: &Engine, text: &str) -> String {
    let text = explain(engine, text).to_string();
    let (head, _) = text.split_once("\nplan\n").unwrap_or_default();
    head.to_owned()
}

fn engine(edition: Edition) -> Engine {
    Engine::builder().edition(edition).build()
}

#[test]
fn the_first_edition() {
    let text = "#a > .cb:summary:core:nth(1), ^seq .seg:depth(1-3)[kind=x]";
    insta::assert_snapshot!(head(&engine(Edition::V01), text), @r#"
selector     #a > .cb:summary:core:nth(1), ^seq .seg:depth(1-3)[kind=x]
edition      v0.1
sugar        (no time)    → @t0
             #a           → [id='a']
             .cb:summary  → [stored_type='cb:summary']
             :core        → [offset=0]
             :nth(1)      → :first
             .seg         → .mt
             :depth(1-3)  → :depth(1..3)
             [kind=x]     → [stored_kind='x']
normalized   @t0 ^seq .mt[stored_kind='x']:depth(1..3), [id='a'] > [stored_type='cb:summary'][offset=0]:first
fingerprint  fe2d7b3f3d75935401c846298821deaa0437ccfdf3296fdcc44c5619151b16e2
cache        miss
values       ?1 = 'x'
             ?2 = 'a'
             ?3 = 'cb:summary'
             ?4 = 0
"#);
}

#[test]
fn the_second_edition() {
    let text = "@t-3..@t0 .mt(role=user, ttl=1), :depth({1,2}) .block[type=block]";
    insta::assert_snapshot!(head(&engine(Edition::Depth), text), @r#"
selector     @t-3..@t0 .mt(role=user, ttl=1), :depth({1,2}) .block[type=block]
edition      depth
sugar        @t-3..@t0           → @t0..@t-3
             (role=user, ttl=1)  → [role='user'][ttl=1]
             :depth({1,2})       → depth(1..2)
             .block              → .cb
             [type=block]        → [nodeType='cb']
normalized   @t0..@t-3 depth(1..2) .cb[nodeType='cb'], .mt[role='user'][ttl=1]
fingerprint  8d12ba1bdf74b4657db01a7739c7f9ed9a27ab25988b5dda3ff06acceea7fa81
cache        miss
values       ?1 = 'cb'
             ?2 = 'user'
             ?3 = 1
"#);
    insta::assert_snapshot!(head(&engine(Edition::Depth), "^seq"), @r#"
selector     ^seq
edition      depth
sugar        ^seq  → depth(>=1)
normalized   depth(>=1)
fingerprint  c57d8b18f035a6b40aee126c5ad96ea66a995f59c4c282512566d4c7366c2288
cache        miss
"#);
}

#[test]
fn the_canonical_edition() {
    let canonical = engine(Edition::Canonical);
    let text = "@history #hero [ephemeral] @first";
    insta::assert_snapshot!(head(&canonical, text), @r#"
selector     @history #hero [ephemeral] @first
edition      canonical
sugar        @history     → @t0..@t-*
             #hero        → [key='hero']
             [ephemeral]  → [ttl=1]
             @first       → @limit=1
normalized   @t0..@t-* {key='hero'} [ttl=1] @limit=1
fingerprint  903ff2bd4a813ce50a425d9a2502f4d19cff97dc38323f9fd217851cea62bae1
cache        miss
values       ?1 = 'hero'
             ?2 = 1
             ?3 = 1
"#);
    let text = "@t0 (d1..d3, seg, cont[offset=0], block:call) {sticky} +hot";
    insta::assert_snapshot!(head(&canonical, text), @r#"
selector     @t0 (d1..d3, seg, cont[offset=0], block:call) {sticky} +hot
edition      canonical
sugar        (d1..d3, seg, cont[offset=0], block:call)  → depth(1..3) > .mc[offset=0] > [nodeType='cb'][kind='call']
             {sticky}  → {ttl=1, cadence=1}
             +hot      → {tags='hot'}
normalized   @t0 depth(1..3) > .mc[offset=0] > [nodeType='cb'][kind='call'] {tags='hot', ttl=1, cadence=1}
fingerprint  6e49d5244a99834e5b5dbb699d25196e165c3fec880ccccf6ce6bceef869f12e
cache        miss
values       ?1 = 0
             ?2 = 'cb'
             ?3 = 'call'
             ?4 = 'hot'
             ?5 = 1
             ?6 = 1
"#);
    let text = "@t0 within(d1) ?? {role=user}";
    insta::assert_snapshot!(head(&canonical, text), @r#"
selector     @t0 within(d1) ?? {role=user}
edition      canonical
sugar        within(d1) ?? {role=user}  → depth(1) [role='user']
normalized   @t0 depth(1) [role='user']
fingerprint  d1c7aff8a326a148115969cc0ca81c0758be0cde247588c2fa862fcb5929c096
cache        miss
values       ?1 = 'user'
"#);
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

/// Where nothing stands for anything else, nothing is said.
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

/// LANGUAGE §9: one meaning in several spellings has one fingerprint, and the second finds the
/// plan of the first.
#[test]
fn spellings_share_a_plan() {
    let engine = engine(Edition::Canonical);
    let first = explain(&engine, "@t0 ^ah > .mc[offset=0]");
    let second = explain(&engine, "@t0 depth(0) > .cont:core");
    let third = explain(&engine, "@t0 (d0, cont[offset=1])");
    assert_eq!(first.cache, "miss");
    assert_eq!(second.cache, "shape hit");
    assert_eq!(second.fingerprint, first.fingerprint);
    assert_eq!(second.normalized, first.normalized);
    // Another literal: another selector, the same plan.
    assert_eq!(third.cache, "shape hit");
    assert_ne!(third.fingerprint, first.fingerprint);
    let stats = engine.cache_stats();
    assert_eq!((stats.plans, stats.shape_hits, stats.misses), (1, 2, 1));
    assert_eq!(
        explain(&engine, "@t0 ^ah > .mc[offset=0]").cache,
        "text hit"
    );
}
