//! Constructs of the later editions, each with an equivalent selector.
//!
//! The equivalent is in edition `v0.1` if that can express it, otherwise the long form in the same
//! edition. `tests/engine/pairs.rs` asserts that both have the same plan and counters;
//! `cargo bench --bench editions` times them.

use super::generate;
use pactql::Edition::{self, Canonical, Depth, V01};
use pactql::{Engine, Session};

/// Two selectors with the same meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// The construct, in its edition.
    pub(crate) construct: (Edition, &'static str),
    /// The equivalent without it.
    pub(crate) plain: (Edition, &'static str),
}

/// A construct of an edition and a selector of `v0.1`.
const fn pair(edition: Edition, construct: &'static str, plain: &'static str) -> Pair {
    Pair {
        construct: (edition, construct),
        plain: (V01, plain),
    }
}

/// A construct and the long form in the same edition, because `v0.1` has no equivalent.
const fn within(edition: Edition, construct: &'static str, plain: &'static str) -> Pair {
    Pair {
        construct: (edition, construct),
        plain: (edition, plain),
    }
}

/// Every construct that has an equivalent.
pub(crate) const PAIRS: [Pair; 35] = [
    // Depths and anchors.
    pair(Depth, "@t0 depth(0) > .mc", "@t0 ^ah > .mc"),
    pair(Depth, "@t0 depth(-1) > .cb", "@t0 ^sys > .cb"),
    pair(
        Depth,
        "@t0 depth(1) > .mc > .cb",
        "@t0 :depth(1) > .mc > .cb",
    ),
    pair(Depth, "@t0 depth({1,2,3}) .cb", "@t0 :depth(1-3) .cb"),
    pair(Depth, "@t0 .cb:depth({1,3})", "@t0 .cb:depth(1,3)"),
    within(Depth, "@t0 ^seq", "@t0 depth(>=1)"),
    // Groups.
    pair(Depth, "@t0 .cb(role='user')", "@t0 .cb[role='user']"),
    pair(
        Depth,
        "@t0 .block(role='user', ttl<=2)",
        "@t0 .cb[role='user'][ttl<=2]",
    ),
    pair(
        Depth,
        "@t0 .mt:depth(1) .cb(role=user ttl<=2)",
        "@t0 .mt:depth(1) .cb[role=user][ttl<=2]",
    ),
    // Positions.
    pair(Depth, "@t0 (d0, *)", "@t0 ^ah > *"),
    pair(
        Depth,
        "@t0 (d1, cont[offset=0], *:block)",
        "@t0 :depth(1) > .mc[offset=0] > .cb",
    ),
    pair(
        Depth,
        "@t0 (d1, seg, cont, block[role='assistant'])",
        "@t0 :depth(1) > .mc > .cb[role='assistant']",
    ),
    pair(Depth, "@t0 (d1..d3, block)", "@t0 :depth(1-3) > .cb"),
    pair(Depth, "@t0 (d0, -1:block)", "@t0 ^ah > .cb[offset=-1]"),
    pair(
        Canonical,
        "@t0 (d1, cont{offset=0}, block{role=tool})",
        "@t0 :depth(1) > .mc[offset=0] > .cb[role=tool]",
    ),
    pair(
        Canonical,
        "@t0 (d1..d9, ?{role=user})",
        "@t0 :depth(1-9) > [role=user]",
    ),
    // Searches.
    pair(Canonical, "@t0 {role=user}", "@t0 [role='user']"),
    pair(
        Canonical,
        "@t0 ?? {role=user, ttl<=2}",
        "@t0 [role='user'][ttl<=2]",
    ),
    pair(
        Canonical,
        "@t0 within(d1..d3) ?? {role=user}",
        "@t0 :depth(1-3) [role='user']",
    ),
    pair(
        Canonical,
        "@t0 (d1) ? {role=user}",
        "@t0 :depth(1) > [role='user']",
    ),
    pair(Canonical, "@t0 #recap", "@t0 [key='recap']"),
    pair(Canonical, "@t0 .cb#recap", "@t0 .cb[key='recap']"),
    // Tags and lists.
    pair(Canonical, "@t0 +recap", "@t0 [tags=recap]"),
    pair(Canonical, "@t0 .cb+recap", "@t0 .cb[tags=recap]"),
    pair(Canonical, "@t0 +recap +old", "@t0 [tags=recap][tags=old]"),
    pair(
        Canonical,
        "@t0 .cb[tag=[old,recap]]",
        "@t0 .cb[tag=old][tag=recap]",
    ),
    pair(Canonical, "@t0 .cb[role=[user]]", "@t0 .cb[role=user]"),
    pair(
        Canonical,
        "@t0 .cb[role=user, priority>3]",
        "@t0 .cb[role=user][priority>3]",
    ),
    // Behaviours.
    pair(Canonical, "@t0 [ephemeral]", "@t0 [ttl=1]"),
    pair(Canonical, "@t0 .cb[sticky]", "@t0 .cb[ttl=1][cadence=1]"),
    pair(Canonical, "@t0 {ephemeral}", "@t0 [ttl=1]"),
    // Types, times and windows.
    within(
        Canonical,
        "@t0 .cb:summary",
        "@t0 [nodeType='cb'][kind='summary']",
    ),
    within(Canonical, "@t0 .cb @first", "@t0 .cb @limit=1"),
    within(Canonical, "@t0 .mt @order=pre", "@t0 .mt"),
    pair(Canonical, "@history .cb[ttl]", "@t0..@t-* .cb[ttl!=null]"),
];

/// A generated session of `nodes` nodes, in which summaries have a key and tags, and notes a tag
/// and a cadence.
pub(crate) fn session(nodes: usize) -> Session {
    let text = String::from_utf8(generate::document(nodes)).expect("JSON is UTF-8");
    let text = text
        .replace(
            r#""kind":"summary""#,
            r#""kind":"summary","key":"recap","tags":["recap","old"]"#,
        )
        .replace(
            r#""kind":"note""#,
            r#""kind":"note","tags":["recap"],"cadence":1"#,
        );
    Session::from_slice(text.as_bytes()).expect("the generated document is valid")
}

/// An engine for an edition, with an empty cache.
pub(crate) fn engine(edition: Edition) -> Engine {
    Engine::builder().edition(edition).build()
}
