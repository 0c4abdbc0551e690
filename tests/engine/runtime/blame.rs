//! Why nodes came and went: what the commits of a context keep, and what logs say.

use pactql::context::{Measure, Scope};
use pactql::history::blame;
use pactql::{Context, Message, NewNode, Policy, Session, Snapshot};
use serde_json::{Value, json};

use super::properties::{Hand, document};

/// The events of a node: snapshot, event, and what is said of it, changes aside.
fn events(session: &Session, id: &str) -> Vec<String> {
    let found = blame(&session.history(), id).unwrap_or_else(|| panic!("no node `{id}`"));
    let found = serde_json::to_value(&found).unwrap();
    let events = found["events"].as_array().unwrap().iter();
    let events = events.filter(|event| event["event"] != "changed");
    let words = events.map(|event| {
        let of = |name: &str| event[name].as_str().map(str::to_owned);
        let words = [
            "snapshot",
            "event",
            "by",
            "of",
            "why",
            "into",
            "successor",
            "with",
        ]
        .map(of);
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    });
    words.collect()
}

fn node(json: Value) -> NewNode {
    NewNode::json(&json.to_string()).unwrap()
}

fn builder() -> pactql::ContextBuilder {
    Context::builder().clock(Hand::default())
}

/// A session in which nodes come and go in every way, and what is to be said of each.
fn eventful() -> (Context, Vec<(String, Vec<&'static str>)>) {
    let mut ctx = builder().build();
    let block = |id: &str, offset: i64| {
        node(json!({"id": id, "nodeType": "cb", "offset": offset, "content": id}))
    };
    let rules = ctx.set_system(["Be brief."]).unwrap().remove(0);
    let tool = ctx.set_tools([r#"{"name":"search"}"#]).unwrap().remove(0);
    ctx.add(
        "^sys",
        node(json!({"id": "banner", "content": "Monday", "ttl": 2})),
    )
    .unwrap();
    ctx.add("^sys", node(json!({"id": "doc", "content": "a page"})))
        .unwrap();
    ctx.add("^sys", node(json!({"id": "note", "content": "a note"})))
        .unwrap();
    ctx.add("^sys", node(json!({"id": "tip", "content": "a tip"})))
        .unwrap();
    let shelf = json!({"id": "shelf", "nodeType": "mc", "removable": true, "offset": 1, "children": [
        {"id": "book", "content": "a book", "ttl": 1}, {"id": "leaf", "content": "a leaf", "ttl": 1}]});
    ctx.add("^ah", node(shelf)).unwrap();
    let question = ctx.append(Message::user("one")).unwrap().remove(0);
    let given = node(json!({"id": "mine", "content": "with an id"}));
    ctx.append(Message::new("user").part(given)).unwrap();
    let reply = ctx.reply(Message::assistant("two")).unwrap().remove(0);
    ctx.commit().unwrap();

    let prompt = ctx.set_system(["Be brief and exact."]).unwrap().remove(0);
    let page = ctx.replace("{id='doc'}", "block \"another page\"").unwrap();
    let last = ctx
        .replace(&format!("{{id='{page}'}}"), "block \"the last page\"")
        .unwrap();
    ctx.remove("{id='note'}").unwrap();
    ctx.add("(d1, end)", block("late", 2)).unwrap();
    ctx.append(Message::user("three")).unwrap();
    ctx.commit().unwrap();

    let moved = ctx.move_to("{id='late'}", "^sys").unwrap().remove(0);
    ctx.commit().unwrap();

    ctx.update("{id='tip'}", node(json!({"ttl": 0}))).unwrap();
    let summary = ctx
        .compact("^seq .mt:depth(2-9)", r#"block:summary "what was""#)
        .unwrap();
    ctx.commit().unwrap();
    let wanted = vec![
        (rules, vec!["@c1 appeared set_system", "@c2 went replaced"]),
        (prompt, vec!["@c2 appeared set_system"]),
        (tool, vec!["@c1 appeared set_tools"]),
        (
            "banner".into(),
            vec!["@c1 appeared add", "@c3 went expired"],
        ),
        ("tip".into(), vec!["@c1 appeared add", "@c4 went expired"]),
        ("doc".into(), vec!["@c1 appeared add", "@c2 went replaced"]),
        (last, vec!["@c2 appeared replace doc"]),
        ("note".into(), vec!["@c1 appeared add", "@c2 went removed"]),
        ("shelf".into(), vec!["@c1 appeared add", "@c2 went emptied"]),
        ("book".into(), vec!["@c1 appeared add", "@c2 went expired"]),
        (question, vec!["@c1 appeared append", "@c4 went compacted"]),
        (
            "mine".into(),
            vec!["@c1 appeared append", "@c4 went compacted"],
        ),
        (reply, vec!["@c1 appeared reply", "@c4 went compacted"]),
        (
            "mt:1".into(),
            vec!["@c1 appeared commit", "@c4 went compacted"],
        ),
        (
            "mc:1".into(),
            vec!["@c1 appeared commit", "@c4 went compacted"],
        ),
        ("late".into(), vec!["@c2 appeared add", "@c3 went moved"]),
        (moved, vec!["@c3 appeared move late"]),
        (summary, vec!["@c4 appeared compact"]),
    ];
    (ctx, wanted)
}

fn check(session: &Session, wanted: &[(String, Vec<&str>)]) {
    for (id, wanted) in wanted {
        let found = events(session, id);
        let is_so = found.len() == wanted.len()
            && found
                .iter()
                .zip(wanted)
                .all(|(found, wanted)| found.starts_with(wanted));
        assert!(is_so, "{id}: {found:?}, not {wanted:?}");
    }
}

fn lines<'a>(snapshots: impl IntoIterator<Item = &'a std::sync::Arc<Snapshot>>) -> String {
    let lines = snapshots
        .into_iter()
        .map(|snapshot| document(snapshot) + "\n");
    lines.collect()
}

#[test]
fn what_commits_keep_says_why() {
    let (ctx, wanted) = eventful();
    let session = ctx.session();
    check(&session, &wanted);
    let summary = &wanted.last().unwrap().0;
    let with = events(&session, "mine");
    assert_eq!(with[1], format!("@c4 went compacted {summary} mt:1"));
    // The same of the documents, and of a session that goes on after them.
    let text = lines(session.history().committed());
    let read = Session::from_slice(text.as_bytes()).unwrap();
    check(&read, &wanted);
    let mut resumed = builder().resume(&read).unwrap();
    resumed.commit().unwrap();
    check(&resumed.session(), &wanted);
    // Commits that have nothing to say have no record.
    let newest = resumed.history();
    let newest = document(newest.committed().last().unwrap());
    assert!(!newest.contains("\"commit\""), "{newest}");
}

#[test]
fn a_record_outlives_the_process_in_the_middle_of_a_cycle() {
    let path = std::env::temp_dir().join(format!("pactql-blame-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut file = pactql::SessionFile::create(&path, builder().build()).unwrap();
    file.context()
        .add("^sys", node(json!({"id": "doc", "content": "a page"})))
        .unwrap();
    file.context().commit().unwrap();
    file.save().unwrap();
    let context = file.context();
    let page = context
        .replace("{id='doc'}", "block \"another page\"")
        .unwrap();
    context
        .add("^sys", node(json!({"id": "more", "content": "more"})))
        .unwrap();
    file.save().unwrap();
    drop(file);
    let mut file = pactql::SessionFile::open(&path, builder()).unwrap();
    file.context().commit().unwrap();
    let session = file.context().session();
    assert_eq!(
        events(&session, "doc")[1],
        format!("@c2 went replaced {page}")
    );
    assert_eq!(events(&session, &page), ["@c2 appeared replace doc"]);
    assert_eq!(events(&session, "more"), ["@c2 appeared add"]);
    drop(file);
    std::fs::remove_file(path).unwrap();
}

#[cfg(feature = "store")]
#[test]
fn a_store_keeps_the_reasons() {
    let (ctx, wanted) = eventful();
    let path = std::env::temp_dir().join(format!("pactql-blame-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let store = pactql::Store::open(&path).unwrap();
    store.import("s", &ctx.session(), None).unwrap();
    let session = store.session("s").unwrap();
    session.history().fetch_all().unwrap();
    check(&session, &wanted);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_policy_is_a_reason() {
    let limit = Policy::new().limit(Scope::Seq, Measure::Nodes, 5);
    let mut ctx = builder().policy(limit.protect(1)).build();
    let first = ctx.append(Message::user("one")).unwrap().remove(0);
    ctx.commit().unwrap();
    ctx.append(Message::user("two")).unwrap();
    ctx.commit().unwrap();
    ctx.append(Message::user("three")).unwrap();
    let commit = ctx.commit().unwrap();
    assert!(commit.pruned.contains(&first), "{commit:?}");
    assert_eq!(events(&ctx.session(), &first)[1], "@c3 went pruned");
}

#[test]
fn logs_say_what_they_can() {
    let snapshot = |cycle: i64, meta: Value, blocks: &[&str]| {
        let blocks = blocks.iter().map(|id| {
            let kind = if id.starts_with("sum") {
                "summary"
            } else {
                "text"
            };
            json!({"id": id, "nodeType": "cb", "kind": kind})
        });
        json!({"cycle": cycle, "meta": meta, "root": {"id": "r", "children": [
            {"id": "q", "nodeType": "^seq", "children": [
                {"id": "t", "nodeType": "mt", "children": blocks.collect::<Vec<_>>()}]}]}})
    };
    let transcript = json!({"source": "transcript"});
    let compacted = json!({"source": "transcript", "compaction": {"trigger": "auto"}});
    let by_hand = json!({"commit": [1, 2]});
    let text = [
        snapshot(1, transcript.clone(), &["a", "b", "c", "d"]),
        snapshot(2, transcript, &["b", "c", "d"]),
        snapshot(3, compacted, &["sum", "c", "d"]),
        // What another program wrote there says nothing.
        snapshot(4, by_hand, &["sum", "d"]),
        snapshot(5, Value::Null, &["sum"]),
    ];
    let text: String = text.iter().map(|line| format!("{line}\n")).collect();
    let session = Session::from_slice(text.as_bytes()).unwrap();
    let said = |id: &str| events(&session, id);
    assert_eq!(said("a"), ["@c1 appeared import", "@c2 went dropped"]);
    assert_eq!(said("b"), ["@c1 appeared import", "@c3 went compacted sum"]);
    assert_eq!(said("sum"), ["@c3 appeared compact"]);
    assert_eq!(said("c"), ["@c1 appeared import", "@c4 went"]);
    assert_eq!(said("d"), ["@c1 appeared import", "@c5 went"]);
}
