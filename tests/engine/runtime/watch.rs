//! Standing selectors: what a look says, what it costs, and that nothing is lost by looking seldom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pactql::context::Watch;
use pactql::{Code, Context, Engine, Message, NewNode, Session};

use super::properties::{Hand, Outcome};

/// A standing selector, and what the differences make of an empty set: the matched ids, each with all of its node that
/// a difference notices.
#[derive(Debug)]
pub(crate) struct Standing {
    watch: Watch,
    session: Arc<Session>,
    nodes: BTreeMap<String, String>,
}

impl Standing {
    pub(crate) fn new(ctx: &Context, selector: &str) -> Outcome<Self> {
        let watch = ctx.watch(selector).map_err(|error| error.to_string())?;
        Ok(Self {
            watch,
            session: ctx.session(),
            nodes: BTreeMap::new(),
        })
    }

    /// Whether it stands over the session of this context. A context that was opened again has another one.
    pub(crate) fn is_of(&self, ctx: &Context) -> bool {
        Arc::ptr_eq(&self.session, &ctx.session())
    }

    /// Looks, and compares what is put together of the differences with a fresh answer.
    pub(crate) fn look(&mut self, ctx: &Context) -> Outcome<()> {
        let text = self.watch.text().to_owned();
        let diff = self.watch.changes().map_err(|error| error.to_string())?;
        let selection = match ctx.select(&text) {
            Ok(selection) => Some(selection),
            Err(error) if error.code() == Code::SnapshotNotFound => None,
            Err(error) => return Err(error.to_string()),
        };
        let nodes = selection.iter().flat_map(|selection| selection.nodes());
        let nodes = nodes.map(|node| {
            let attributes: Vec<_> = node.attributes_json().collect();
            let parent = node.parent().map(|parent| parent.id());
            let hash = node.content_hash();
            let seen = format!("{:?} {attributes:?} {parent:?} {hash}", node.headers());
            (node.id().to_owned(), seen)
        });
        let fresh: BTreeMap<String, String> = nodes.collect();
        let mut changed = BTreeSet::new();
        if let Some(diff) = diff {
            if diff.is_empty() {
                return Err(format!("{text}: an empty difference"));
            }
            for id in &diff.removed {
                if self.nodes.remove(id).is_none() {
                    return Err(format!("{text}: `{id}` went and was not there"));
                }
            }
            for id in &diff.added {
                let seen = fresh.get(id).cloned().unwrap_or_default();
                if self.nodes.insert(id.clone(), seen).is_some() {
                    return Err(format!("{text}: `{id}` came and was there"));
                }
                changed.insert(id.clone());
            }
            for change in &diff.changed {
                let is_there = self.nodes.contains_key(&change.id);
                if !is_there || !changed.insert(change.id.clone()) || change.fields.is_empty() {
                    return Err(format!("{text}: `{}` did not change", change.id));
                }
            }
        }
        if !self.nodes.keys().eq(fresh.keys()) {
            let (had, has) = (self.nodes.keys(), fresh.keys());
            return Err(format!("{text}\n  differences: {had:?}\n  fresh: {has:?}"));
        }
        for (id, seen) in &fresh {
            if self.nodes[id] != *seen && !changed.contains(id) {
                return Err(format!(
                    "{text}: nothing was said of `{id}`\n  was {}\n  is {seen}",
                    self.nodes[id]
                ));
            }
        }
        self.nodes = fresh;
        Ok(())
    }
}

fn is_send<T: Send>(_: &T) {}

fn context() -> Context {
    Context::builder().clock(Hand::default()).build()
}

#[test]
fn looks_that_lag_get_one_difference() {
    let mut ctx = context();
    let mut often = ctx.watch(".cb[role='user'], .cb+note").unwrap();
    let mut once = ctx.watch(".cb[role='user'], .cb+note").unwrap();
    is_send(&once);
    assert!(often.changes().unwrap().is_none());
    let first = ctx.append(Message::user("one")).unwrap();
    let diff = often.changes().unwrap().unwrap();
    assert_eq!(
        (diff.added, diff.removed.len(), diff.changed.len()),
        (first.clone(), 0, 0)
    );
    assert!(often.changes().unwrap().is_none(), "it was said already");
    ctx.reply(Message::assistant("two")).unwrap();
    assert!(often.changes().unwrap().is_none(), "nothing that matches");
    let note = NewNode::json(r#"{"tags":["note"],"content":"brief","offset":1,"ttl":2}"#).unwrap();
    let note = ctx.add("^ah", note).unwrap();
    assert_eq!(often.changes().unwrap().unwrap().added, [&*note]);
    ctx.commit().unwrap();
    let diff = often.changes().unwrap();
    let changed: Vec<_> = diff.iter().flat_map(|diff| &diff.changed).collect();
    assert_eq!(changed.len(), 1, "{diff:?}");
    assert_eq!(changed[0].id, note);
    assert_eq!(changed[0].fields, ["parent"]);
    ctx.commit().unwrap();
    assert_eq!(often.changes().unwrap().unwrap().changed[0].fields, ["ttl"]);
    ctx.commit().unwrap();
    assert_eq!(often.changes().unwrap().unwrap().removed, [&*note]);
    // The note came and went in between.
    let diff = once.changes().unwrap().unwrap();
    assert_eq!(
        (diff.added, diff.removed.len(), diff.changed.len()),
        (first, 0, 0)
    );
}

#[test]
fn a_time_says_which_snapshot_stands() {
    let mut ctx = context();
    let mut committed = ctx.watch("@t0 .cb").unwrap();
    let mut third = ctx.watch("@c3 .cb").unwrap();
    let mut all = Vec::new();
    for cycle in 1..=4 {
        let ids = ctx.append(Message::user("text")).unwrap();
        assert!(committed.changes().unwrap().is_none());
        ctx.commit().unwrap();
        assert_eq!(committed.changes().unwrap().unwrap().added, ids);
        all.extend(ids);
        let found = third.changes().unwrap();
        assert_eq!(
            found.map(|diff| diff.added),
            (cycle == 3).then(|| all.clone())
        );
    }
}

#[test]
fn what_cannot_stand_is_refused() {
    let ctx = context();
    let code = |selector: &str| ctx.watch(selector).unwrap_err().code();
    for selector in [
        "@* .cb",
        "@t-2..@t0 .cb",
        "@history .cb @mode=union",
        ".cb[role=$role]",
    ] {
        assert_eq!(code(selector), Code::SelectorInvalid, "{selector}");
    }
    let error = format!("{:?}", ctx.watch("@* .cb").unwrap_err());
    assert!(error.contains("leave the time out"), "{error}");
    let bound = ctx.engine().prepare(".cb[role=$role]").unwrap();
    let bound = bound.bind([("role", "user".into())]).unwrap();
    assert!(
        bound
            .watch(&ctx.session())
            .unwrap()
            .changes()
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_reader_in_another_thread_loses_nothing() {
    let mut ctx = context();
    let mut watch = ctx.watch(".cb[role='user']").unwrap();
    let session = ctx.session();
    let writer = std::thread::spawn(move || {
        for number in 0..200 {
            ctx.append(Message::user(&format!("text {number}")))
                .unwrap();
            if number % 3 == 0 {
                ctx.commit().unwrap();
            }
            if number % 17 == 0 {
                ctx.compact("^seq .mt", "block:summary \"what was\"")
                    .unwrap();
            }
        }
        ctx.commit().unwrap();
    });
    let mut found = BTreeSet::new();
    let mut look = |watch: &mut Watch| {
        if let Some(diff) = watch.changes().unwrap() {
            diff.removed.iter().for_each(|id| assert!(found.remove(id)));
            diff.added
                .iter()
                .for_each(|id| assert!(found.insert(id.clone())));
        }
    };
    while !writer.is_finished() {
        look(&mut watch);
    }
    writer.join().unwrap();
    look(&mut watch);
    let fresh = Engine::new()
        .rows(&session, "@t0 .cb[role='user']")
        .unwrap();
    assert_eq!(
        found,
        fresh.to_ids().into_iter().map(str::to_owned).collect()
    );
}

/// Rows and pieces that 100 standing selectors read at a commit that changes nothing for them, in a session of this many
/// steps: of the first, and at most of the others.
fn cost(steps: usize) -> ([u64; 2], [u64; 2]) {
    let mut ctx = context();
    for step in 0..steps {
        ctx.append(Message::user(&format!("question {step}")))
            .unwrap();
        ctx.reply(Message::assistant("answer")).unwrap();
        ctx.commit().unwrap();
    }
    let selector = |number: usize| match number % 4 {
        0 => format!(".cb[kind='call'][data_call_name='tool {number}']"),
        1 => format!(".mt .cb[content~'word {number}']"),
        2 => format!("^sys .cb#key{number}"),
        _ => format!(".cb+tag{number}, .mc > .cb[role='tool']"),
    };
    let watches = (0..100).map(|number| ctx.watch(&selector(number)).unwrap());
    let mut watches: Vec<Watch> = watches.collect();
    for watch in &mut watches {
        assert!(watch.changes().unwrap().is_none());
    }
    let before: Vec<_> = watches.iter().map(Watch::counters).collect();
    ctx.append(Message::user("one more")).unwrap();
    ctx.reply(Message::assistant("yes")).unwrap();
    ctx.commit().unwrap();
    let costs = watches.iter_mut().zip(before).map(|(watch, before)| {
        assert!(watch.changes().unwrap().is_none());
        let now = watch.counters();
        let rows = now.rows_seen + now.probes - before.rows_seen - before.probes;
        [rows, now.pieces_read - before.pieces_read]
    });
    let costs: Vec<[u64; 2]> = costs.collect();
    let most = |at: usize| costs[1..].iter().map(|cost| cost[at]).max().unwrap();
    (costs[0], [most(0), most(1)])
}

#[test]
fn a_commit_costs_a_standing_selector_what_it_changed() {
    let (first, others) = cost(10_000);
    println!("rows and pieces: {first:?}, then {others:?}");
    // The turn that was sealed (a turn, a container, two blocks) and `^ah`, in both snapshots.
    assert!(first[0].max(others[0]) <= 16, "{first:?} {others:?}");
    // The units are found once for all.
    assert!(
        others[1] <= 1 && first[1] > others[1],
        "{first:?} {others:?}"
    );
    let (few_first, few) = cost(100);
    assert_eq!(
        (few_first[0], few),
        (first[0], others),
        "of a hundred steps"
    );
}

#[test]
fn a_standing_selector_keeps_no_history() {
    let mut ctx = context();
    let mut watch = ctx.watch(".cb").unwrap();
    let mut held = Vec::new();
    for step in 0..50 {
        ctx.append(Message::user(&format!("question {step}")))
            .unwrap();
        ctx.commit().unwrap();
        let history = ctx.history();
        held.push(Arc::downgrade(&history));
        drop(history);
        assert_eq!(watch.changes().unwrap().unwrap().added.len(), 1);
    }
    let live = held
        .iter()
        .filter(|history| history.strong_count() > 0)
        .count();
    assert_eq!(live, 1);
}
