//! What a caller's clock or counter that panics leaves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use pactql::{
    Context, NewNode, Policy,
    context::{Clock, Measure, Scope},
};

use super::properties::document;

/// A clock and a counter of tokens that panic at a call, counted by `left`; at 0 none does.
#[derive(Clone, Debug, Default)]
struct Fragile {
    now: Arc<AtomicI64>,
    left: Arc<AtomicU32>,
}

impl Fragile {
    fn step(&self) {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        assert!(left != 1, "asked to");
    }
}

impl Clock for Fragile {
    fn now_ns(&self) -> i64 {
        self.step();
        self.now.fetch_add(1_000, Ordering::Relaxed)
    }
}

/// A session with a cycle in progress in which blocks move, expire, are pruned and are summed up.
fn begun(fragile: &Fragile) -> Context {
    let counter = fragile.clone();
    let policy = Policy::new().limit(Scope::Seq, Measure::Tokens, 20);
    let policy = policy.counting(move |text| {
        counter.step();
        text.len() as u64
    });
    let mut ctx = Context::builder()
        .clock(fragile.clone())
        .policy(policy)
        .build();
    let mut add = |position: &str, node: &str| {
        ctx.add(position, NewNode::json(node).unwrap()).unwrap();
    };
    add("^ah", r#"{"id":"old","content":"a text that is long"}"#);
    add(
        "^sys",
        r#"{"id":"box","nodeType":"mc","removable":true,"children":[{"id":"in","ttl":1}]}"#,
    );
    ctx.commit().unwrap();
    for id in ["a", "b", "c"] {
        let node = format!(r#"{{"id":"{id}","content":"words"}}"#);
        ctx.add("^ah", NewNode::json(&node).unwrap()).unwrap();
    }
    ctx.compact("[id='b']", NewNode::json(r#"{"id":"sum"}"#).unwrap())
        .unwrap();
    ctx
}

/// The newest state, working or committed, as a document.
fn latest(ctx: &mut Context) -> String {
    let history = ctx.history();
    document(history.latest().unwrap())
}

#[test]
fn a_panic_of_the_caller_leaves_the_cycle_as_it_was() {
    let calm = &mut begun(&Fragile::default());
    let before = latest(calm);
    calm.commit().unwrap();
    let wanted = latest(calm);
    let mut panics = 0;
    for call in 1.. {
        let fragile = Fragile::default();
        let ctx = &mut begun(&fragile);
        fragile.left.store(call, Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| ctx.commit().map(drop)));
        if outcome.is_ok() {
            break;
        }
        panics += 1;
        fragile.left.store(0, Ordering::Relaxed);
        assert_eq!(latest(ctx), before, "after call {call}");
        ctx.commit().unwrap();
        assert_eq!(latest(ctx), wanted, "after call {call}");
    }
    assert!(panics >= 3, "{panics} calls");
}
