//! Examples of the sources that say what a runtime does, and single rules of RUNTIME §3.

use pactql::{
    Context, Message, NewNode, Policy, Provider, Session,
    context::{Measure, Scope, sent},
    history::AttemptStatus,
    render::request,
};

use super::properties::{Hand, document, working};
use crate::support::json::parse;
use crate::support::random::Rng;

fn ids(ctx: &mut Context, selector: &str) -> Vec<String> {
    let rows = ctx.select(selector).unwrap();
    rows.ids().map(str::to_owned).collect()
}

fn add(ctx: &mut Context, position: &str, node: &str) -> String {
    ctx.add(position, NewNode::json(node).unwrap()).unwrap()
}

/// The ttl of each node a selector matches, as `id=ttl`.
fn ttls(ctx: &mut Context, selector: &str) -> Vec<String> {
    let rows = ctx.select(selector).unwrap();
    let shown = rows.into_iter().map(|node| match node.ttl() {
        Some(ttl) => format!("{}={ttl}", node.id()),
        None => format!("{}=null", node.id()),
    });
    shown.collect()
}

/// A context in which the cycle of this number is in progress.
fn at_cycle(cycle: i64) -> Context {
    let mut ctx = Context::builder().clock(Hand::default()).build();
    while ctx.cycle() < cycle {
        ctx.commit().unwrap();
    }
    ctx
}

/// Source 002 §4.3 (the example of §4.4).
#[test]
fn source_002_section_4_3_the_example_ordering() {
    let session = Session::from_slice(
        br#"{"root":{"children":[{"id":"ah","nodeType":"^ah","children":[
            {"id":"b","offset":0,"created_at_ns":1001,"creation_index":2},
            {"id":"z","offset":-1,"created_at_ns":1000,"creation_index":1},
            {"id":"a","offset":-1,"created_at_ns":1000,"creation_index":0}]}]}}"#,
    )
    .unwrap();
    let mut ctx = Context::resume(&session).unwrap();
    assert_eq!(ids(&mut ctx, "^ah .cb"), ["a", "z", "b"]);
}

/// Source 002 chapter 03 §8.1, with the numbers of the example.
#[test]
fn source_002_chapter_03_ttls() {
    let mut ctx = at_cycle(10);
    for (id, ttl) in [("now", "0"), ("two", "2"), ("always", "null")] {
        add(&mut ctx, "^ah", &format!(r#"{{"id":"{id}","ttl":{ttl}}}"#));
    }
    assert_eq!(ttls(&mut ctx, ".cb"), ["now=0", "two=2", "always=null"]);
    let commit = ctx.commit().unwrap();
    assert_eq!((commit.cycle, commit.expired), (10, vec!["now".to_owned()]));
    assert_eq!(ttls(&mut ctx, "@c10 .cb"), ["two=2", "always=null"]);
    assert_eq!(ctx.commit().unwrap().expired, [""; 0]);
    assert_eq!(ttls(&mut ctx, "@c11 .cb"), ["two=1", "always=null"]);
    let commit = ctx.commit().unwrap();
    assert_eq!((commit.cycle, commit.expired), (12, vec!["two".to_owned()]));
    assert_eq!(ttls(&mut ctx, "@c12 .cb"), ["always=null"]);
}

/// Source 002 chapter 03 §8.2: what empties a core leaves it, as each turn has one; a container
/// that may go does, and the one around it.
#[test]
fn source_002_chapter_03_the_cascade() {
    let mut ctx = at_cycle(1);
    let core = add(&mut ctx, "^ah", r#"{"nodeType":"mc","offset":0}"#);
    add(&mut ctx, "^ah", r#"{"id":"said","ttl":0}"#);
    assert_eq!(ids(&mut ctx, "#'x', .mc > .cb"), ["said"]);
    add(
        &mut ctx,
        "^ah",
        r#"{"id":"outer","nodeType":"mc","offset":1,"removable":true,"children":[
            {"id":"inner","nodeType":"mc","removable":true,"children":[{"id":"found","ttl":0}]}]}"#,
    );
    add(
        &mut ctx,
        "^ah",
        r#"{"id":"kept","nodeType":"mc","offset":1,"children":[{"id":"gone","ttl":0}]}"#,
    );
    add(
        &mut ctx,
        "^ah",
        r#"{"id":"never full","nodeType":"mc","offset":1,"removable":true}"#,
    );
    let commit = ctx.commit().unwrap();
    assert_eq!(commit.expired, ["said", "found", "gone"]);
    assert_eq!(commit.emptied, ["inner", "outer"]);
    assert_eq!(
        ids(&mut ctx, "@t0 ^seq .mt > *"),
        [core.as_str(), "kept", "never full"]
    );
}

/// Source 002 chapter 03 §8.3.
#[test]
fn source_002_chapter_03_sealing() {
    let mut ctx = at_cycle(1);
    add(
        &mut ctx,
        "^ah",
        r#"{"id":"core","nodeType":"mc","offset":0,"children":[{"id":"ask","role":"user"}]}"#,
    );
    add(
        &mut ctx,
        "^ah",
        r#"{"id":"looked up","role":"tool","offset":1}"#,
    );
    assert_eq!(ctx.commit().unwrap().turn, "mt:1");
    assert_eq!(ids(&mut ctx, "@t0 ^root > ^seq > .mt"), ["mt:1"]);
    assert_eq!(ids(&mut ctx, "@t0 [id='mt:1'] > *"), ["core", "looked up"]);
    assert_eq!(ids(&mut ctx, "@t0 [id='core'] > *"), ["ask"]);
    assert_eq!(ids(&mut ctx, "@t0 ^ah *"), [""; 0]);
    // An empty head is an empty turn with a core.
    assert_eq!(ctx.commit().unwrap().turn, "mt:2");
    assert_eq!(
        ids(&mut ctx, "@t0 ^seq *"),
        ["mt:1", "core", "ask", "looked up", "mt:2", "mc:2"]
    );
}

/// Source 002 chapter 07 §4.1: the tree "prior to commit" is a working state. The blocks have no
/// times, so their ids decide their order (§4.3).
#[test]
fn source_002_chapter_07_a_flat_log_is_imported_and_sealed() {
    let session = Session::from_slice(
        br#"{"working":true,"root": {"children": [
    {"id": "sys-1", "nodeType": "^sys", "children": [
      {"id": "cb:sysA", "nodeType": "cb", "role": "system", "kind": "text", "offset": 0, "content": "You are helpful."}
    ]},
    {"id": "ah-1", "nodeType": "^ah", "children": [
      {"id": "mc:1", "nodeType": "mc", "offset": 0, "children": [
        {"id": "cb:u1", "nodeType": "cb", "role": "user", "kind": "text", "content": "Hello"},
        {"id": "cb:a1", "nodeType": "cb", "role": "assistant", "kind": "text", "content": "Hi!"}
      ]}
    ]}
  ]}}"#,
    )
    .unwrap();
    let mut ctx = Context::resume(&session).unwrap();
    let commit = ctx.commit().unwrap();
    assert_eq!(commit.turn, "mt:1");
    assert_eq!(ids(&mut ctx, "@t0 ^sys .cb[role='system']"), ["cb:sysA"]);
    assert_eq!(
        ids(&mut ctx, "@t0 ^seq .mt:depth(1) > .mc > .cb"),
        ["cb:a1", "cb:u1"]
    );
    assert_eq!(ids(&mut ctx, "@t0 ^ah *"), [""; 0]);
}

/// Source 002 chapter 07 §4.2: a retrieved block in the post-context of the turn it is for, and in
/// the head.
#[test]
fn source_002_chapter_07_retrieved_blocks_expire() {
    const RETRIEVED: &str = r#"{
  "id": "cb:rag1",
  "nodeType": "cb",
  "role": "system",
  "kind": "text",
  "content": "Doc: How to reset a password...",
  "ttl": 2,
  "offset": 1
}"#;
    let mut ctx = at_cycle(2);
    add(&mut ctx, "(d1)", RETRIEVED);
    add(&mut ctx, "^ah", &RETRIEVED.replace("rag1", "rag2"));
    ctx.commit().unwrap();
    assert_eq!(
        ttls(&mut ctx, "@t0 .mt > .cb:post"),
        ["cb:rag1=2", "cb:rag2=2"]
    );
    ctx.commit().unwrap();
    assert_eq!(
        ttls(&mut ctx, "@t0 .mt > .cb:post"),
        ["cb:rag1=1", "cb:rag2=1"]
    );
    assert_eq!(ctx.commit().unwrap().expired, ["cb:rag1", "cb:rag2"]);
    assert_eq!(ids(&mut ctx, "@t0 .cb"), [""; 0]);
}

/// Source 002 §7.1 and §7.2; source 002 chapter 07 §4.2.
#[test]
fn pruning_takes_priority_then_age_then_id() {
    let policy = |most, protect| {
        Policy::new()
            .limit(Scope::Seq, Measure::Nodes, most)
            .protect(protect)
    };
    // Three sealed turns of two blocks, turn and core each: 12 nodes.
    let left = |most, protect| {
        let mut ctx = Context::builder()
            .clock(Hand::default())
            .policy(policy(u64::MAX, 1))
            .build();
        for turn in 1..=3 {
            for (name, priority) in [("a", 1), ("b", 0)] {
                let node = format!(r#"{{"id":"{name}{turn}","priority":{priority}}}"#);
                add(&mut ctx, "^ah", &node);
            }
            ctx.commit().unwrap();
        }
        let mut ctx = {
            let session = ctx.session();
            Context::builder()
                .clock(Hand::default())
                .policy(policy(most, protect))
                .resume(&session)
                .unwrap()
        };
        ctx.commit().unwrap().pruned.join(" ")
    };
    assert_eq!(left(12, 1), "");
    assert_eq!(left(11, 1), "b1");
    assert_eq!(left(10, 1), "b1 b2");
    assert_eq!(left(9, 1), "b1 b2 b3");
    assert_eq!(left(8, 1), "b1 b2 b3 a1");
    // The newest sealed turn is protected, too.
    assert_eq!(left(9, 2), "b1 b2 a1");
    assert_eq!(left(0, 2), "b1 b2 a1 a2");
    assert_eq!(left(0, 3), "b1 a1");
}

/// Source 002 chapter 03 §7: what expires makes room before anything is pruned, and what is sealed
/// is what is left.
#[test]
fn a_commit_expires_then_prunes_then_seals() {
    let mut ctx = Context::builder()
        .clock(Hand::default())
        .policy(
            Policy::new()
                .limit(Scope::Head, Measure::Nodes, 1)
                .protect(0),
        )
        .build();
    for (id, ttl, priority) in [("a", "0", 0), ("b", "null", 1), ("c", "null", 2)] {
        let node = format!(r#"{{"id":"{id}","ttl":{ttl},"priority":{priority}}}"#);
        add(&mut ctx, "^ah", &node);
    }
    let commit = ctx.commit().unwrap();
    assert_eq!(commit.expired, ["a"]);
    assert_eq!(commit.pruned, ["b"]);
    assert_eq!(ids(&mut ctx, "@t0 ^seq .cb"), ["c"]);
}

/// Source 002 §5.4: while the reference lives, the node does; its ttl reads 0.
#[test]
fn a_reference_keeps_a_node_past_its_time() {
    let mut ctx = at_cycle(1);
    add(
        &mut ctx,
        "^sys",
        r#"{"id":"outer","nodeType":"mc","ttl":1,"children":[{"id":"held"},{"id":"other","ttl":0}]}"#,
    );
    let reference = ctx.pin("[id='held']").unwrap();
    ctx.commit().unwrap();
    assert_eq!(ids(&mut ctx, "^sys *"), ["outer", "held"]);
    ctx.commit().unwrap();
    assert_eq!(ttls(&mut ctx, "@t0 ^sys *"), ["outer=0", "held=null"]);
    ctx.commit().unwrap();
    assert_eq!(ids(&mut ctx, "@t0 ^sys *"), ["outer", "held"]);
    drop(reference);
    assert_eq!(ctx.commit().unwrap().expired, ["outer"]);
    assert_eq!(ids(&mut ctx, "@t0 ^sys *"), [""; 0]);
}

/// Source 002 §2.3, source 002 chapter 05 §4.5.
#[test]
fn a_committed_node_changes_its_region_as_a_new_node() {
    let mut ctx = at_cycle(1);
    add(
        &mut ctx,
        "^sys",
        r#"{"id":"rule","key":"policy","content":"be brief"}"#,
    );
    ctx.commit().unwrap();
    let moved = ctx.move_to("[id='rule']", "^ah").unwrap();
    assert_eq!(moved.len(), 1);
    assert_ne!(moved[0], "rule");
    assert_eq!(ids(&mut ctx, "#policy"), moved);
    ctx.commit().unwrap();
    assert_eq!(ids(&mut ctx, "@t0 #policy"), moved);
    assert_eq!(ids(&mut ctx, "@t-1 #policy"), ["rule"]);
    let session = ctx.session();
    let diff = ctx.engine().range(&session, "@t-1..@t0 #policy").unwrap();
    assert_eq!(diff.diffs[0].added_ids, moved);
    assert_eq!(diff.diffs[0].removed_ids, ["rule"]);
}

fn conversation() -> Context {
    let mut ctx = at_cycle(1);
    for cycle in 0..4 {
        add(
            &mut ctx,
            "^ah",
            &format!(r#"{{"role":"user","content":"question {cycle}"}}"#),
        );
        add(
            &mut ctx,
            "^ah",
            r#"{"role":"tool","offset":1,"ttl":1,"data_x":[1.50,null]}"#,
        );
        ctx.commit().unwrap();
    }
    add(
        &mut ctx,
        "^ah",
        r#"{"role":"user","content":"the last one"}"#,
    );
    ctx
}

/// Source 002 §7.3 and §8.2.
#[test]
fn equal_runs_give_equal_bytes() {
    let (one, other) = (conversation().session(), conversation().session());
    let all = |session: &Session| {
        let history = session.history();
        let mut all: Vec<String> = history.committed().iter().map(|s| document(s)).collect();
        all.push(working(session));
        all
    };
    assert_eq!(all(&one), all(&other));
}

/// Source 002 §8.3: no way out changes what is there.
#[test]
fn rendering_and_exporting_change_nothing() {
    let ctx = conversation();
    let session = ctx.session();
    let before = working(&session);
    let history = session.history();
    for snapshot in history.committed().iter().chain(history.working()) {
        let text = document(snapshot);
        for _ in 0..2 {
            let thread = pactql::render::request(&**snapshot, pactql::Provider::Thread).unwrap();
            assert!(thread.contains("question 0"));
            assert_eq!(document(snapshot), text);
        }
        assert!(parse(&text).get("root").is_some());
    }
    assert_eq!(working(&ctx.session()), before);
}

/// Source 002 chapter 05 §2.1.1: what was sent in a cycle stays known, although what was to go with
/// its commit has gone, the reply has come, and the next cycle has other tools and parameters.
#[test]
fn each_cycle_renders_the_bytes_that_were_sent() {
    for provider in [
        Provider::Thread,
        Provider::OpenAi,
        Provider::OpenAiResponses,
        Provider::Anthropic,
    ] {
        let mut ctx = Context::builder()
            .clock(Hand::default())
            .policy(
                Policy::new()
                    .limit(Scope::Seq, Measure::Nodes, 8)
                    .protect(1),
            )
            .build();
        ctx.set_system(["You are brief.", "You are kind."]).unwrap();
        let mut bodies = Vec::new();
        for cycle in 1..=6 {
            ctx.set_request(&format!(
                r#"{{"model":"m","temperature":0.{cycle}0,"max_tokens":50}}"#
            ))
            .unwrap();
            if cycle % 2 == 0 {
                let tool = format!(r#"{{"name":"look_up","description":"tool {cycle}"}}"#);
                ctx.set_tools([tool.as_str()]).unwrap();
            }
            ctx.append(Message::user(&format!("question {cycle}")))
                .unwrap();
            // One call is given up, and what it was for is rewritten.
            let first = ctx.render(provider).unwrap();
            ctx.cancel_attempt().unwrap();
            add(
                &mut ctx,
                "^ah",
                r#"{"kind":"text","role":"user","content":"found for this call only","ttl":0}"#,
            );
            let second = ctx.render(provider).unwrap();
            assert_ne!(first.body, second.body);
            ctx.reply(Message::assistant(&format!("answer {cycle}")))
                .unwrap();
            let commit = ctx.commit().unwrap();
            assert_eq!(commit.cycle, cycle);
            assert_eq!(commit.expired.len(), 1);
            bodies.push(second.body);
        }
        let history = ctx.history();
        for (snapshot, body) in history.committed().iter().zip(&bodies) {
            let thread = sent(&history, snapshot);
            assert_eq!(request(&thread, provider).unwrap(), *body, "{provider:?}");
            assert!(!document(snapshot).contains("attempt"));
        }
        let attempts = ctx.attempts();
        assert_eq!(attempts.len(), 12);
        for (attempt, number) in attempts.iter().zip((1..=12).rev()) {
            assert_eq!(attempt.cycle_id, (number + 1) / 2);
            let status = if number % 2 == 0 {
                "completed"
            } else {
                "canceled"
            };
            assert_eq!(attempt.status.as_str(), status);
            assert_eq!(attempt.model.as_deref(), Some("m"));
            assert_eq!(attempt.params.len(), 64);
            assert!(attempt.ended_at.is_some());
        }
    }
}
/// A node that is put into a head goes to the end of its core, after nodes of any offset there.
#[test]
fn what_says_no_place_goes_to_the_end_of_the_core() {
    for position in ["^ah", "(d0)", "[id='^ah']"] {
        let mut ctx = at_cycle(1);
        ctx.append(Message::user("x")).unwrap();
        add(&mut ctx, "[id='mc:1']", r#"{"id":"a","offset":1}"#);
        add(&mut ctx, position, r#"{"id":"b"}"#);
        let appended = ctx.append(Message::user("y")).unwrap();
        let core = ids(&mut ctx, "[id='mc:1'] > *");
        assert_eq!(
            core,
            ["cb:c1-1", "a", "b", appended[0].as_str()],
            "{position}"
        );
    }
}

/// Messages and nodes without a place meet in one core, whichever comes first.
#[test]
fn messages_join_blocks_that_are_the_core_already() {
    let mut ctx = at_cycle(1);
    add(&mut ctx, "^ah", r#"{"id":"loose"}"#);
    add(&mut ctx, "^ah", r#"{"id":"post","offset":1}"#);
    let appended = ctx.append(Message::user("x")).unwrap();
    ctx.commit().unwrap();
    let core = ids(&mut ctx, "@t0 [id='mc:1'] > *");
    assert_eq!(core, ["loose", appended[0].as_str()]);
    assert_eq!(ids(&mut ctx, "@t0 .mt > .cb"), ["post"]);
}

/// The system prompt and the tools: what is the same stays the same node, in the order that was
/// asked for; nothing else changes.
#[test]
fn setting_a_list_changes_only_what_differs() {
    let mut ctx = at_cycle(1);
    add(
        &mut ctx,
        "^sys",
        r#"{"id":"kept","key":"policy","content":"by hand"}"#,
    );
    let mut rng = Rng::new(3);
    let mut before: Vec<(String, String)> = Vec::new();
    for _ in 0..200 {
        let count = rng.below(5);
        let wanted: Vec<&str> = (0..count)
            .map(|_| *rng.pick(&["a", "b", "c", "d"]))
            .collect();
        let set = ctx.set_system(wanted.iter().copied()).unwrap();
        let rows = ctx.select("^sys > .cb:text[role='system']").unwrap();
        let after = rows
            .into_iter()
            .map(|n| (n.id().to_owned(), n.text().to_string()));
        let after: Vec<(String, String)> = after.collect();
        let texts: Vec<&str> = after.iter().map(|(_, text)| text.as_str()).collect();
        let shown: Vec<&str> = after.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(texts, wanted);
        assert_eq!(shown, set);
        // Equal texts at the start keep their nodes.
        let same = |(a, b): &(&(String, String), &(String, String))| a.1 == b.1;
        let start = before.iter().zip(&after).take_while(same);
        assert!(
            start.into_iter().all(|(a, b)| a == b),
            "{before:?} {after:?}"
        );
        assert_eq!(ids(&mut ctx, "#policy"), ["kept"]);
        if rng.chance(30) {
            ctx.commit().unwrap();
        }
        before = after;
    }
}

#[test]
fn a_successor_has_its_own_time_wherever_an_offset_keeps_its_place() {
    let mut ctx = Context::new();
    for id in ["a", "b", "c"] {
        ctx.add("^sys", NewNode::text(id).id(id)).unwrap();
    }
    ctx.commit().unwrap();
    let header = |ctx: &Context, id: &str| {
        let found = ctx.select(&format!("*[id='{id}']")).unwrap();
        let node = found.nodes().next().unwrap();
        (node.cycle(), node.created_at_ns(), node.creation_index())
    };
    let before = header(&ctx, "c");
    for (old, new) in [("a", "a2"), ("c", "c2"), ("b", "b2")] {
        let selector = format!("*[id='{old}']");
        ctx.replace(&selector, NewNode::text(new).id(new)).unwrap();
    }
    let order = ids(&mut ctx, "^sys > .cb");
    assert_eq!(order, ["a2", "b2", "c2"], "each is where the other was");
    ctx.commit().unwrap();
    let made = ["a2", "c2", "b2"].map(|id| header(&ctx, id));
    assert!(made.is_sorted_by(|a, b| a.1 < b.1 && a.2 < b.2), "{made:?}");
    assert!(
        made.iter().all(|it| it.0 == Some(2) && it.1 > before.1),
        "{made:?}"
    );
    let rest = ctx.compact("*[id='a2'], *[id='b2']", NewNode::text("s").id("s"));
    assert_eq!(rest.unwrap(), "s");
    ctx.commit().unwrap();
    assert_eq!(ids(&mut ctx, "@t0 ^sys > .cb"), ["s", "c2"]);
    assert!(header(&ctx, "s").1 > made[2].1);
}

#[test]
fn no_id_is_given_again_after_a_discard() {
    let mut ctx = Context::new();
    ctx.add("^ah", NewNode::text("a").id("mine")).unwrap();
    ctx.append(Message::user("sent")).unwrap();
    ctx.render(Provider::OpenAi).unwrap();
    let used = ids(&mut ctx, "^ah *");
    ctx.discard();
    let again = ctx.add("^ah", NewNode::text("b").id("mine")).unwrap_err();
    assert_eq!(again.code(), pactql::Code::DuplicateId);
    let resumed = Context::builder().resume_kept(&ctx.session(), &ctx.kept());
    let mut resumed = resumed.unwrap();
    for ctx in [&mut ctx, &mut resumed] {
        ctx.append(Message::user("other")).unwrap();
        ctx.commit().unwrap();
        let now = ids(ctx, "@t0 *");
        assert!(used.iter().all(|id| !now.contains(id)), "{used:?} {now:?}");
        let again = ctx.add("^ah", NewNode::text("b").id("mine")).unwrap_err();
        assert_eq!(again.code(), pactql::Code::DuplicateId);
    }
}

#[test]
fn a_compaction_says_what_a_reference_keeps() {
    let mut ctx = Context::new();
    for text in ["a", "b", "c"] {
        ctx.append(Message::user(text)).unwrap();
        ctx.commit().unwrap();
    }
    let [first, second] =
        ["mt:1", "mt:2"].map(|id| ids(&mut ctx, &format!("*[id='{id}'] .cb")).remove(0));
    let pin = ctx.pin(&format!("*[id='{first}']")).unwrap();
    // A turn and blocks of it: what can go goes.
    let matched = "*[id='mt:1'], *[id='mt:1'] *, *[id='mt:2'] .cb";
    ctx.compact(matched, NewNode::text("s").id("s")).unwrap();
    let commit = ctx.commit().unwrap();
    assert_eq!(
        (&commit.kept[..], &commit.voided[..]),
        (&["mt:1".to_owned()][..], &[][..])
    );
    assert_eq!(commit.compacted, [second]);
    assert_eq!(ids(&mut ctx, "@t0 *[id='mt:2'] .cb"), ["s"]);
    // Nothing can go: it is refused, or, if the reference came later, it says that there is no summary.
    let all = ctx
        .compact("*[id='mt:1']", NewNode::text("t").id("t"))
        .unwrap_err();
    assert_eq!(all.code(), pactql::Code::Pinned);
    ctx.compact("*[id='mt:3']", NewNode::text("t").id("t"))
        .unwrap();
    let late = ctx.pin("*[id='mt:3'] .cb").unwrap();
    let commit = ctx.commit().unwrap();
    assert_eq!(
        (commit.kept, commit.voided),
        (vec!["mt:3".to_owned()], vec!["t".to_owned()])
    );
    assert_eq!(commit.compacted, Vec::<String>::new());
    drop((pin, late));
}

#[test]
fn a_window_takes_whole_turns_but_pinned_ones() {
    let policy = Policy::new().window(3);
    let mut ctx = Context::builder().policy(policy).build();
    let mut pins = Vec::new();
    for text in ["a", "b", "c", "d", "e"] {
        ctx.append(Message::user(text)).unwrap();
        ctx.commit().unwrap();
        if text == "b" {
            pins.push(ctx.pin("*[id='mt:2'] .cb").unwrap());
        }
    }
    assert_eq!(
        ids(&mut ctx, "@t0 ^seq > .mt"),
        ["mt:2", "mt:3", "mt:4", "mt:5"]
    );
    pins.clear();
    let commit = ctx.commit().unwrap();
    assert_eq!(commit.pruned, ["mt:2", "mt:3"]);
    let blamed = ctx.session().history();
    assert_eq!(blamed.committed().len(), 6);
}

#[test]
fn an_attempt_runs_while_a_stream_feeds_it() {
    type End = fn(&mut Context) -> Result<(), pactql::Error>;
    let ends: [(End, AttemptStatus, Option<u64>); 3] = [
        (
            |ctx| ctx.complete_attempt(12, 3),
            AttemptStatus::Completed,
            Some(3),
        ),
        (Context::cancel_attempt, AttemptStatus::Canceled, None),
        (
            |ctx| ctx.fail_attempt("cut off"),
            AttemptStatus::Error,
            None,
        ),
    ];
    for (end, status, tokens) in ends {
        // The reply is begun, and said to be there, before the rest comes.
        for begins in [Context::begin_reply, Context::reply] {
            let clock = Hand::default();
            let mut ctx = Context::builder().clock(clock.clone()).build();
            ctx.append(Message::user("Where is it?")).unwrap();
            let sent = ctx.render(Provider::OpenAi).unwrap().body;
            let id = begins(&mut ctx, Message::assistant("On"))
                .unwrap()
                .remove(0);
            for (at, text) in [(7_000_000_000, " its"), (8_000_000_000, " way")] {
                clock.set(at);
                ctx.stream(&id).unwrap().push(text);
                let running = ctx.attempts().iter().next().unwrap().clone();
                assert_eq!(
                    (running.status, running.ended_at),
                    (AttemptStatus::Running, None)
                );
            }
            clock.set(9_000_000_000);
            end(&mut ctx).unwrap();
            let ended = ctx.attempts().iter().next().unwrap().clone();
            assert_eq!((ended.status, ended.token_out), (status, tokens));
            let last = ended.ended_at.unwrap();
            assert!(
                last.starts_with("1970-01-01T00:00:08"),
                "{last}: when the last text came"
            );
            let text = ctx.select("^ah .cb[role='assistant']").unwrap();
            assert_eq!(
                text.nodes().next().unwrap().text(),
                "On its way",
                "what had come stays"
            );
            // Another attempt is sent the same: what came is part of a reply.
            assert_eq!(ctx.render(Provider::OpenAi).unwrap().body, sent);
        }
    }
    // A commit completes what was fed.
    let mut ctx = Context::new();
    ctx.append(Message::user("Where is it?")).unwrap();
    ctx.render(Provider::OpenAi).unwrap();
    let id = ctx.begin_reply(Message::assistant("")).unwrap().remove(0);
    ctx.stream(&id).unwrap().push("Here.");
    ctx.commit().unwrap();
    let status = ctx.attempts().iter().next().unwrap().status;
    assert_eq!(status, AttemptStatus::Completed);
}

/// Without an insertion point a block that is moved into an implicit core comes where its time says, before
/// later ones.
#[test]
fn a_block_moved_into_an_implicit_core_keeps_its_time() {
    let mut ctx = Context::new();
    let block = |id: &str, offset: i64| {
        format!(
            r#"{{"id":"{id}","nodeType":"cb","kind":"text","role":"user","offset":{offset},"content":"{id}"}}"#
        )
    };
    ctx.add("^ah", block("early", 2)).unwrap();
    ctx.add("^ah", block("late", 0)).unwrap();
    let moved = ctx.move_to("[id='early']", "(d0, cont[offset=0])").unwrap();
    assert_eq!(moved, ["early"]);
    assert_eq!(ids(&mut ctx, "^ah .cb[offset=0]"), ["early", "late"]);
}
