//! How diagnostics look: rendered text, JSON, and what a reader is told in typical cases.

use pactql::diag::{ColorChoice, Error};
use pactql::ir::{Edition, compile};

#[track_caller]
fn error(text: &str, edition: Edition) -> Error {
    match compile(text, edition) {
        Ok(lowered) => panic!("`{text}` is accepted as `{}`", lowered.query),
        Err(error) => error,
    }
}

#[track_caller]
fn rendered(text: &str, edition: Edition) -> String {
    error(text, edition).render(ColorChoice::Never)
}

#[test]
fn a_typing_mistake() {
    insta::assert_snapshot!(rendered("@t0 ^sek .cb[role='user']:frist", Edition::V01), @r#"
error[E_SELECTOR_INVALID]: unknown root `^sek`
  ┌─ selector:1:5
  │
1 │ @t0 ^sek .cb[role='user']:frist
  │     ^^^^ no such root
  │
  = help: did you mean `^seq`?

error[E_SELECTOR_INVALID]: unknown pseudo-class `:frist`
  ┌─ selector:1:26
  │
1 │ @t0 ^sek .cb[role='user']:frist
  │                          ^^^^^^ no such pseudo-class
  │
  = help: did you mean `:first`?
"#);
}

#[test]
fn several_mistakes_in_one_go() {
    insta::assert_snapshot!(rendered("@t0 .cb[role=] > *:frist, [ttl='3']", Edition::V01), @r#"
error[E_SELECTOR_INVALID]: unexpected `]`
  ┌─ selector:1:14
  │
1 │ @t0 .cb[role=] > *:frist, [ttl='3']
  │              ^ not expected here
  │
  = help: expected `[`, a word or a quoted text, a number or a parameter

error[E_SELECTOR_INVALID]: unknown pseudo-class `:frist`
  ┌─ selector:1:19
  │
1 │ @t0 .cb[role=] > *:frist, [ttl='3']
  │                   ^^^^^^ no such pseudo-class
  │
  = help: did you mean `:first`?

error[E_SELECTOR_INVALID]: `ttl` is a number and `3` is not
  ┌─ selector:1:32
  │
1 │ @t0 .cb[role=] > *:frist, [ttl='3']
  │                                ^^^ a number or `null` belongs here
  │
  = help: remove the quotes: `3`
"#);
}

#[test]
fn another_edition() {
    insta::assert_snapshot!(rendered(".mt(role='user' ttl<=2) @first", Edition::V01), @r#"
error[E_EDITION]: a group `(…)` is not part of edition `v0.1`
  ┌─ selector:1:4
  │
1 │ .mt(role='user' ttl<=2) @first
  │    ^^^^^^^^^^^^^^^^^^^^ needs edition `depth`
  │
  = help: edition `canonical` has it: `@t0 .mt[role='user'][ttl<=2] @limit=1`

error[E_EDITION]: `@first` is not part of edition `v0.1`
  ┌─ selector:1:25
  │
1 │ .mt(role='user' ttl<=2) @first
  │                         ^^^^^^ needs edition `canonical`
  │
  = help: edition `canonical` has it
"#);
}

/// LANGUAGE §10: the construct, the edition that has it, and the whole selector in other words.
#[test]
fn another_edition_with_the_selector_rewritten() {
    insta::assert_snapshot!(rendered("@t0 (d1, cont, block) {role=user}", Edition::V01), @r#"
error[E_EDITION]: a position `(…)` is not part of edition `v0.1`
  ┌─ selector:1:5
  │
1 │ @t0 (d1, cont, block) {role=user}
  │     ^^^^^^^^^^^^^^^^^ needs edition `depth`
  │
  = help: write `@t0 *:depth(1) > .mc > .cb[role='user']`, or choose edition `canonical`

error[E_EDITION]: `{…}` is not part of edition `v0.1`
  ┌─ selector:1:23
  │
1 │ @t0 (d1, cont, block) {role=user}
  │                       ^^^^^^^^^^^ needs edition `canonical`
  │
  = help: edition `canonical` has it
"#);
    insta::assert_snapshot!(rendered("#hero .mt:depth(0) +hot", Edition::V01), @r#"
error[E_EDITION]: depth 0 is not part of edition `v0.1`
  ┌─ selector:1:17
  │
1 │ #hero .mt:depth(0) +hot
  │                 ^ needs edition `depth`
  │
  = help: edition `canonical` has it: `@t0 [id='hero'] .mt:depth(0) {tags='hot'}`

error[E_EDITION]: `+tag` is not part of edition `v0.1`
  ┌─ selector:1:20
  │
1 │ #hero .mt:depth(0) +hot
  │                    ^^^^ needs edition `canonical`
  │
  = help: write `[tag='hot']`, or choose edition `canonical`
"#);
    insta::assert_snapshot!(rendered("@history #hero .cb[role=[user, tool]]", Edition::Depth), @r#"
error[E_EDITION]: `@history` is not part of edition `depth`
  ┌─ selector:1:1
  │
1 │ @history #hero .cb[role=[user, tool]]
  │ ^^^^^^^^ needs edition `canonical`
  │
  = help: write `@t0..@t-* #hero .cb[role='tool'], #hero .cb[role='user']`, or in edition `canonical` `@t0..@t-* [id='hero'] .cb[role=['tool', 'user']]`

error[E_EDITION]: a list of values is not part of edition `depth`
  ┌─ selector:1:25
  │
1 │ @history #hero .cb[role=[user, tool]]
  │                         ^^^^^^^^^^^^ needs edition `canonical`
  │
  = help: edition `canonical` has it
"#);
}

/// Where the edition has no words, the later one has, and what was meant may need others there.
#[test]
fn another_edition_alone() {
    insta::assert_snapshot!(rendered("#hero @first", Edition::V01), @r#"
error[E_EDITION]: `@first` is not part of edition `v0.1`
  ┌─ selector:1:7
  │
1 │ #hero @first
  │       ^^^^^^ needs edition `canonical`
  │
  = help: edition `canonical` has it: `@t0 {id='hero'} @limit=1`
"#);
    insta::assert_snapshot!(rendered("@t0 .cb[age<2]", Edition::V01), @r#"
error[E_EDITION]: the facet `age` is not part of edition `v0.1`
  ┌─ selector:1:9
  │
1 │ @t0 .cb[age<2]
  │         ^^^ needs edition `depth`
  │
  = help: edition `depth` has it
"#);
}

#[test]
fn a_selector_that_cannot_be_translated() {
    let error = |text, from, to| match pactql::ir::translate(text, from, to) {
        Ok(said) => panic!("`{text}` is `{said}`"),
        Err(error) => error.render(ColorChoice::Never),
    };
    insta::assert_snapshot!(error("#hero .cb", Edition::Canonical, Edition::V01), @r#"
error[E_EDITION]: the working state cannot be said in edition `v0.1`
  ┌─ selector:1:1
  │
1 │ #hero .cb
  │ ^^^^^^^^^ no time is written here
  │
  = help: in `v0.1` no time means `@t0`; name a time, such as `@t0`
"#);
    insta::assert_snapshot!(
        error("@t0 .mc, .cb[role='user'][kind='call']", Edition::Canonical, Edition::V01),
        @r#"
error[E_EDITION]: `kind='call'` cannot be said in edition `v0.1`
  ┌─ selector:1:27
  │
1 │ @t0 .mc, .cb[role='user'][kind='call']
  │                           ^^^^^^^^^^^ edition `depth` has it
  │
  = help: `v0.1` reads the stored kind alone, and would pass over a node whose type holds the kind, such as `cb:call`
"#
    );
    insta::assert_snapshot!(error("@t0 .cb:first {x}", Edition::Canonical, Edition::Depth), @r#"
error[E_EDITION]: a filter of what was picked cannot be said in edition `depth`
  ┌─ selector:1:15
  │
1 │ @t0 .cb:first {x}
  │               ^^^ edition `canonical` has it
  │
  = help: `depth` tests nodes in their step, and there before any pick
"#);
}

#[test]
fn characters_are_counted_not_bytes() {
    insta::assert_snapshot!(rendered("[a='äöü'] .é", Edition::Canonical), @r#"
error[E_SELECTOR_INVALID]: unexpected character `.`
  ┌─ selector:1:11
  │
1 │ [a='äöü'] .é
  │           ^ no selector holds this here
  │
  = help: a type starts with an ASCII letter: `.cb`; test any other as `[nodeType='…']`
"#);
}

#[test]
fn an_early_end() {
    insta::assert_snapshot!(rendered("@t0 .cb[role='user'", Edition::V01), @r#"
error[E_SELECTOR_INVALID]: unexpected end of the selector
  ┌─ selector:1:20
  │
1 │ @t0 .cb[role='user'
  │                    ^ something is missing here
  │
  = help: expected `,` or `]`
"#);
}

#[test]
fn a_limit() {
    let text = vec!["*"; 65].join(" ");
    let error = error(&text, Edition::Canonical);
    assert_eq!(
        error.to_string(),
        "E_LIMIT: a group has at most 64 steps, this one has 65"
    );
    assert_eq!(error.first().labels[0].span, 128..129);
}

#[test]
fn a_warning() {
    let text = ".cb:summary, ^root > ^ah ^sys";
    let lowered = compile(text, Edition::Canonical).ok();
    let warnings: String = lowered
        .iter()
        .flat_map(|lowered| &lowered.warnings)
        .map(|warning| warning.render(text, ColorChoice::Never))
        .collect();
    insta::assert_snapshot!(warnings, @r#"
warning: this group matches nothing: `depth(-1)` never stands there
  ┌─ selector:1:14
  │
1 │ .cb:summary, ^root > ^ah ^sys
  │              ^^^^^^^^^^^^^^^^ never matches
"#);
}

/// RUNTIME §7: the members and their order.
#[test]
fn json() {
    let error = error("^sek [x", Edition::Canonical);
    assert_eq!(
        serde_json::to_string(&error).unwrap_or_default(),
        concat!(
            r#"{"error":{"code":"E_SELECTOR_INVALID","message":"unknown root `^sek`","#,
            r#""spans":[{"start":0,"end":4,"label":"no such root"}],"help":"did you mean `^seq`?","#,
            r#""more":[{"code":"E_SELECTOR_INVALID","message":"unexpected end of the selector","#,
            r#""spans":[{"start":7,"end":7,"label":"something is missing here"}],"#,
            r#""help":"expected `,`, `]` or a comparison"}]}}"#,
        )
    );
    assert_eq!(error.to_json()["error"]["spans"][0]["end"], 4);
}

#[test]
fn colour_is_a_choice() {
    let error = error("^sek", Edition::V01);
    assert!(error.render(ColorChoice::Always).contains("\u{1b}["));
    assert!(!error.render(ColorChoice::Never).contains("\u{1b}["));
    assert_eq!(error.to_string(), "E_SELECTOR_INVALID: unknown root `^sek`");
}

/// Texts of a reader may be long; what is said about them is not.
#[test]
fn diagnostics_stay_short() {
    for text in [
        format!("[a={}.b]", "x".repeat(60_000)),
        format!("[{}=1][ttl=x]", "1".repeat(60_000)),
        format!("*:{}", "x".repeat(60_000)),
        format!(".cb @{}", "x".repeat(60_000)),
        format!(".mt({})", "a,".repeat(30_000)),
    ] {
        for edition in Edition::ALL {
            let shown = error(&text, edition).render(ColorChoice::Never);
            assert!(shown.len() < 10_000, "{}", shown.len());
        }
    }
}

/// However many mistakes there are, 64 are told; patterns stop being compiled at a limit.
#[test]
fn what_is_told_is_bounded() {
    let many = |piece: &str, count: usize| piece.repeat(count);
    for (text, edition, code, count) in [
        (
            format!("@t0 .cb {}", many("+a", 10_000)),
            Edition::V01,
            "E_EDITION",
            64,
        ),
        (
            format!("@t0 .cb {}", many("@limit=1 ", 7_000)),
            Edition::Canonical,
            "E_SELECTOR_INVALID",
            64,
        ),
        (
            format!("@t0 .cb{}", many("[ttl=x]", 5_000)),
            Edition::V01,
            "E_SELECTOR_INVALID",
            64,
        ),
        (
            format!("@t0 .cb{}", many(r"[content~'\w{100}']", 3_000)),
            Edition::Canonical,
            "E_LIMIT",
            1,
        ),
        (
            format!("@t0 .cb{}", many(r"[content~'\w{999}']", 3_000)),
            Edition::Canonical,
            "E_LIMIT",
            4,
        ),
        (
            format!("@t0 .cb{} ]", many(r" [content~'\w{100}']", 3_000)),
            Edition::Canonical,
            "E_LIMIT",
            64,
        ),
    ] {
        let error = error(&text, edition);
        assert_eq!(error.code().as_str(), code, "{}", &text[..30]);
        let told = error.diagnostics().count();
        assert!((1..=count).contains(&told), "{}: {told}", &text[..30]);
    }
}

/// LANGUAGE §10: the help is what can be written.
#[test]
fn a_number_that_is_too_large() {
    for (text, help) in [
        (
            "[ttl=99999999999999999999]",
            "the nearest is `9223372036854775807`",
        ),
        (
            "[offset>-99999999999999999999]",
            "the nearest is `-9223372036854775808`",
        ),
        (
            ".cb @limit=99999999999999999999",
            "the nearest is `9223372036854775807`",
        ),
        (
            "[n=99999999999999999999]",
            "quote it to compare it as a text: `'99999999999999999999'`",
        ),
    ] {
        let error = error(text, Edition::Canonical);
        assert_eq!(error.first().help.as_deref(), Some(help), "{text}");
    }
}

/// A long text is not shown whole; where the part that is shown begins is said.
#[test]
fn places_in_long_texts() {
    let text = format!("@t0 {}.cb[x==1]", "[a='ä'] ".repeat(2_000));
    let shown = rendered(&text, Edition::Canonical);
    assert!(
        shown.contains("selector, from character 15956 on:1:55"),
        "{shown}"
    );
}
