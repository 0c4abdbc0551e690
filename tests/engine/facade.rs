//! The public interface of the engine: plan cache, parameters, selections, explanations.

use std::path::Path;

use pactql::{
    Address, Code, Context, Edition, Engine, Message, Session, Value,
    explain::ExplainOptions,
    history::{At, DiffOptions},
};

fn session() -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/support-agent.jsonl");
    Session::open(path).expect("the fixture is valid")
}

fn ids(engine: &Engine, session: &Session, text: &str) -> Vec<String> {
    let selection = engine.rows(session, text).expect("the selector is valid");
    selection.ids().map(str::to_owned).collect()
}

#[test]
fn engines_sessions_and_prepared_selectors_cross_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Engine>();
    shared::<Session>();
    shared::<pactql::Prepared>();
    shared::<pactql::Selection>();
}

#[test]
fn a_text_is_compiled_once() {
    let (engine, session) = (Engine::new(), session());
    for text in [
        "@t0 .cb[kind='call']",
        "@t0 .cb[kind='text']",
        "@t-1 .cb[kind='call']",
    ] {
        ids(&engine, &session, text);
        ids(&engine, &session, text);
    }
    let stats = engine.cache_stats();
    assert_eq!((stats.misses, stats.text_hits), (3, 3));
    assert_eq!((stats.texts, stats.evictions), (3, 0));
}

#[test]
fn a_full_cache_forgets_and_an_engine_without_one_answers_alike() {
    let session = session();
    let small = Engine::builder().cached_texts(8).build();
    let none = Engine::builder().cached_texts(0).build();
    for n in 0..200 {
        let text = format!("@t0 .cb[priority>={n}]");
        assert_eq!(ids(&small, &session, &text), ids(&none, &session, &text));
    }
    let stats = small.cache_stats();
    assert!(stats.texts <= 16 && stats.evictions >= 184, "{stats:?}");
    assert_eq!(none.cache_stats().text_hits, 0);
}

#[test]
fn parameters_are_bound_by_name_and_checked_like_literals() {
    let (engine, session) = (Engine::new(), session());
    let prepared = engine
        .prepare("@t0 .cb[kind=$kind][priority>=$least]")
        .expect("valid");
    assert_eq!(prepared.params(), ["kind", "least"]);

    let bound = prepared
        .bind([("kind", "call".into()), ("least", 0.into())])
        .expect("bound");
    let selection = bound.rows(&session).expect("it runs");
    let expected = ids(&engine, &session, "@t0 .cb[kind='call'][priority>=0]");
    assert_eq!(selection.ids().collect::<Vec<_>>(), expected);

    let code = |result: Result<_, pactql::Error>| result.map(|_| ()).map_err(|e| e.code());
    let invalid = Err(Code::SelectorInvalid);
    assert_eq!(code(prepared.bind([("kind", "call".into())])), invalid);
    assert_eq!(
        code(prepared.bind([("kind", "call".into()), ("least", "x".into())])),
        invalid
    );
    let misspelt = prepared
        .bind([("kinds", Value::Null)])
        .expect_err("no such parameter");
    assert_eq!(misspelt.first().help.as_deref(), Some("there is `$kind`"));
    assert!(prepared.rows(&session).is_err());
    assert!(engine.rows(&session, "@t0 .cb[kind=$kind]").is_err());
}

#[test]
fn selections_count_skip_limit_and_filter() {
    let (engine, session) = (Engine::new(), session());
    let select = |text: &str| engine.rows(&session, text).expect("valid");
    let all: Vec<String> = ids(&engine, &session, "@t0 .cb");
    assert_eq!(select("@t0 .cb").count(), all.len());
    assert_eq!(select("@t0 .cb").to_ids(), all);
    let window = select("@t0 .cb").skip(2).limit(3);
    assert_eq!(window.ids().collect::<Vec<_>>(), all[2..5]);

    let inside = engine.prepare(".mt:depth(1)").expect("valid");
    let filtered = select("@t0 .cb").filter(&inside).expect("a filter");
    assert_eq!(
        filtered.ids().collect::<Vec<_>>(),
        ids(&engine, &session, "@t0 ^seq .mt:depth(1) .cb")
    );
    let timed = engine.prepare("@t0 .mt").expect("valid");
    assert!(select("@t0 .cb").filter(&timed).is_err());
}

#[test]
fn rows_and_ranges_name_each_other() {
    let (engine, session) = (Engine::new(), session());
    let range = "@t-1 .. @t0 .cb";
    let error = engine.rows(&session, range).expect_err("a range");
    assert_eq!(error.code(), Code::SelectorInvalid);
    assert_eq!(range[error.first().labels[0].span.clone()], range[..11]);
    let help = error.first().help.as_deref().unwrap_or_default();
    assert!(help.starts_with("`range` returns"), "{help}");
    for rows in ["@t0 .cb", "@* .cb", "@t-1..@t0 .cb @mode=union"] {
        let error = engine.range(&session, rows).expect_err("rows");
        assert_eq!(error.code(), Code::SelectorInvalid);
        let help = error.first().help.as_deref().unwrap_or_default();
        assert!(help.starts_with("`rows` returns"), "{help}");
        assert!(
            engine
                .select(&session, rows)
                .expect("an answer")
                .rows()
                .is_some()
        );
    }
    let diff = engine.range(&session, range).expect("a range");
    let answer = engine.select(&session, range).expect("an answer");
    assert_eq!(answer.count(), diff.rows());
    assert!(answer.range().is_some() && answer.rows().is_none());
}

#[test]
fn times_that_lead_nowhere_say_what_there_is() {
    let engine = Engine::new();
    let error = engine
        .rows(&session(), "@t-99 .cb")
        .expect_err("no such snapshot");
    assert_eq!(error.code(), Code::SnapshotNotFound);
    // The label says what is wrong with the address, the help which addresses exist.
    let text = error.to_text(pactql::ColorChoice::Never);
    assert!(text.contains("no commit is that far back"), "{text}");
    assert_eq!(text.matches("@t0 to @t-5 (@c6 to @c1)").count(), 1);

    let lone = Session::from_slice(br#"{"root":{"children":[]}}"#).expect("valid");
    for edition in Edition::ALL {
        let engine = Engine::builder().edition(edition).build();
        assert_eq!(
            engine.rows(&lone, "*").expect("an answer").to_ids(),
            ["^root"]
        );
        let empty = Session::from_documents(Vec::new()).expect("no documents");
        let error = engine.rows(&empty, "*").expect_err("nothing to read");
        assert_eq!(error.code(), Code::SnapshotNotFound);
    }
}

#[test]
fn a_time_without_a_snapshot_is_underlined_as_written() {
    let session = session();
    let marked = |edition: Edition, text: &'static str| {
        let engine = Engine::builder().edition(edition).build();
        let error = engine.select(&session, text).expect_err("no such snapshot");
        assert_eq!(error.code(), Code::SnapshotNotFound);
        text[error.first().labels[0].span.clone()].to_owned()
    };
    for (text, time) in [
        ("@c99.cb", "@c99"),
        ("@t-99#a", "@t-99"),
        ("  @c99 .cb", "@c99"),
        ("@t-98 .. @t-99 .cb", "@t-98 .. @t-99"),
        ("@c98:99 .cb", "@c98:99"),
    ] {
        assert_eq!(marked(Edition::Canonical, text), time, "{text}");
    }
    let empty = br#"{"working":true,"root":{"children":[]}}"#;
    let empty = Session::from_slice(empty).expect("valid");
    let engine = Engine::builder().edition(Edition::V01).build();
    let error = engine.rows(&empty, "  .cb ").expect_err("no snapshot");
    assert_eq!(error.first().labels[0].span, 2..5);
}

#[test]
fn a_bound_list_of_one_is_its_element() {
    let outline = r#"{"root":{"children":[{"id":"ah","nodeType":"^ah","children":[
        {"id":"a","nodeType":"cb","key":"K","created_at_ns":1},
        {"id":"b","nodeType":"cb","key":"K","created_at_ns":2}]}]}}"#;
    let session = Session::from_slice(outline.as_bytes()).expect("valid");
    let engine = Engine::new();
    let bound = |text: &str, value: Value| {
        let prepared = engine.prepare(text).expect("valid");
        let selection = prepared.bind([("k", value)])?.rows(&session)?;
        Ok::<_, pactql::Error>(selection.ids().map(str::to_owned).collect::<Vec<_>>())
    };
    let one = |value: Value| Value::List([value].into());
    let newest_first = Some(vec!["b".to_owned(), "a".to_owned()]);
    let text = "@t0 .cb[key=$k]";
    assert_eq!(ids(&engine, &session, "@t0 .cb[key=[K]]"), ["b", "a"]);
    assert_eq!(bound(text, "K".into()).ok(), newest_first);
    assert_eq!(bound(text, one("K".into())).ok(), newest_first);
    let none = Some(Vec::new());
    assert_eq!(bound("@t0 .cb[key!=$k]", one("K".into())).ok(), none);
    assert_eq!(bound("@t0 .cb[priority!=$k]", one(0.into())).ok(), none);
    // The same errors as for a literal: a list cannot be ordered and is not a count.
    for text in ["@t0 .cb[key<$k]", "@t0 .cb @limit=$k"] {
        let text = text.to_owned();
        let list = bound(&text, one(1.into()));
        let literal = engine.rows(&session, &text.replace("$k", "[1]"));
        assert_eq!(list.is_err(), literal.is_err(), "{text}");
    }
}

#[test]
fn explanations_show_text_plan_rows_and_counters() {
    let (engine, session) = (Engine::new(), session());
    let options = ExplainOptions::default().analyze(true);
    let text = "@t0 ^seq .mt:depth(1-2) > .mc > .cb[kind='call']:first";
    let explain = engine
        .explain(Some(&session), text, options)
        .expect("valid");
    let time = regex::Regex::new(r", \d+(\.\d+)? (ns|µs|ms|s)\b").expect("a pattern");
    let shown = explain.to_string();
    assert_eq!(
        time.replace_all(&shown, ", TIME"),
        format!(
            "\
selector     {text}
edition      canonical
sugar        :depth(1-2)  → :depth(1..2)
normalized   @t0 ^seq .mt:depth(1..2) > .mc > .cb[kind='call']:first
fingerprint  {}
cache        miss
values       ?1 = 'call'
plan
  answer, document order  [rows 1, TIME, 2 pieces]
     └─ match  child: block, kind = ?1; first of each group  [rows 1, TIME, 2 pieces]
        └─ match  child: container  [rows 2, TIME, 2 pieces]
           └─ match  below: turn, depth 1..2  [rows 2, TIME, 2 pieces]
              └─ match  anywhere: ^seq  [rows 1, TIME, 2 pieces]
                 └─ scope  depth 1..2
strategy     windows: bit sets over the rows that can match
             not by id: some groups have no id
             not word: a group is short and anywhere, picks across levels, gathers a zone or names an id
             not chunks: every row is wanted
snapshots    @c6
rows         1
",
            engine.check(text).expect("valid").fingerprint
        ) + shown
            .rsplit_once("rows         1\n")
            .expect("counters follow")
            .1
    );
    let json = explain.to_json();
    assert_eq!(json["analysis"]["rows"], 1);
    assert_eq!(json["plan"][1]["actual_rows"], 1);

    let verbose = ExplainOptions::default().verbose(true);
    let again = engine
        .explain(None, "@t0 .mt, .mt", verbose)
        .expect("valid");
    let passes: Vec<&str> = again
        .passes
        .iter()
        .map(|pass| pass.query.as_str())
        .collect();
    assert_eq!(passes.first(), Some(&"@t0 .mt, .mt"));
    assert_eq!(passes.last(), Some(&"@t0 .mt"));
}

/// LANGUAGE §5: a bound value is checked like a literal at that place.
#[test]
fn bound_patterns_are_bounded_like_literal_ones() {
    let engine = Engine::new();
    let names: Vec<String> = (0..30).map(|n| format!("p{n}")).collect();
    let tests: String = names
        .iter()
        .map(|name| format!("[content~${name}]"))
        .collect();
    let prepared = engine.prepare(&format!("@t0 .cb{tests}")).expect("valid");
    let bind = |pattern: &str| {
        let values = names.iter().map(|name| (name.as_str(), pattern.into()));
        prepared.bind(values)
    };
    assert!(bind("a+").is_ok());
    for (pattern, code) in [
        (r"\w{100}", Code::Limit),
        (r"\w{999}", Code::Limit),
        ("(", Code::SelectorInvalid),
    ] {
        let error = bind(pattern).expect_err(pattern);
        assert_eq!(error.code(), code, "{pattern}");
        assert!(error.first().help.is_some(), "{pattern}");
    }
}

/// The cache keeps fewer selectors if they are large.
#[test]
fn the_cache_is_bounded_by_what_it_holds() {
    let engine = Engine::builder().cached_texts(1_024).build();
    for n in 0..100 {
        engine
            .prepare(&format!(r"@t0 .cb[content~'{n}\w{{10}}']"))
            .expect("valid");
    }
    let held = engine.cache_stats().texts;
    assert!((1..60).contains(&held), "{held}");
}

#[test]
fn an_analysis_that_was_asked_for_is_given_or_refused() {
    let (engine, session) = (Engine::new(), session());
    let options = |analyze| ExplainOptions::default().analyze(analyze);
    let text = "@t0 .cb[role=$r]";
    assert!(engine.explain(Some(&session), text, options(false)).is_ok());
    let error = engine
        .explain(Some(&session), text, options(true))
        .expect_err("open");
    assert_eq!(error.code(), Code::SelectorInvalid);
    assert!(error.to_string().contains("`$r` has no value"), "{error}");
}

/// A value of a node is missing only if it is nested too deep for `serde_json`; its text is not.
#[test]
fn values_are_nested_in_up_to_127_levels() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for (levels, given) in [(127, true), (128, false), (900, false)] {
        let json = deep(levels);
        let document = format!(
            r#"{{"cycle":1,"root":{{"id":"r","children":[{{"id":"^seq","nodeType":"^seq","children":[
            {{"id":"t","nodeType":"mt","children":[{{"id":"b","nodeType":"cb","content":{json},"x":{json}}}]}}]}}]}}}}"#
        );
        let document = document.replace('\n', "");
        let session = Session::from_slice(document.as_bytes()).expect("the document is valid");
        let rows = Engine::new().rows(&session, "@t0 .cb").expect("rows");
        let node = rows.nodes().next().expect("a block");
        assert_eq!(node.text(), json);
        assert_eq!(node.content().is_some(), given, "{levels}");
        assert_eq!(node.attribute("x").is_some(), given, "{levels}");
        assert_eq!(node.attributes().count(), usize::from(given), "{levels}");
    }
}

/// LANGUAGE §6, §9: a group that cannot match with the values bound to it does not decide the
/// order, as if they were literals.
#[test]
fn bound_values_decide_the_order_as_literals_do() {
    let text = r#"{"root":{"children":[{"id":"ah","nodeType":"^ah","children":[
        {"id":"a","key":"K","created_at_ns":1,"ttl":2},{"id":"b","key":"K","created_at_ns":2},
        {"id":"c","key":"7","created_at_ns":3,"role":"7"}]}]}}"#;
    let session = Session::from_slice(text.as_bytes()).expect("a document");
    let engine = Engine::new();
    for (prepared, values, literal, ids) in [
        (
            "[key=K], [ttl<$a][ttl>$b]",
            [("a", Value::from(1)), ("b", Value::from(3))],
            "[key=K], [ttl<1][ttl>3]",
            vec!["b", "a"],
        ),
        (
            "[key=K], [ttl<$a][ttl>$b]",
            [("a", Value::from(3)), ("b", Value::from(1))],
            "[key=K], [ttl<3][ttl>1]",
            vec!["a", "b"],
        ),
        (
            "[key=$a], [key=L][role=$b][role='8']",
            [("a", "K".into()), ("b", Value::from(7))],
            "[key=K], [key=L][role=7][role='8']",
            vec!["b", "a"],
        ),
        (
            "[key=$a], [role=$b][role='7']",
            [("a", Value::from(7)), ("b", Value::from(7))],
            "[key=7], [role=7][role='7']",
            vec!["c"],
        ),
    ] {
        let bound = engine.prepare(prepared).expect("valid").bind(values);
        let rows = bound.expect("bound").rows(&session).expect("rows");
        assert_eq!(rows.to_ids(), ids, "{prepared}");
        let rows = engine.rows(&session, literal).expect("rows");
        assert_eq!(rows.to_ids(), ids, "{literal}");
    }
    // Values are checked in a group that does not count, too.
    let prepared = engine
        .prepare("[key=K], [ttl<1][ttl>3][ttl=$a]")
        .expect("valid");
    assert!(
        prepared.bind([("a", "x".into())]).is_ok(),
        "the group is gone"
    );
    let prepared = engine.prepare("[key=K], [ttl<$a][ttl>3]").expect("valid");
    assert!(prepared.bind([("a", "x".into())]).is_err());
}

/// Structures of the index are not dumped: a name, a cycle, a size, the first ids.
#[test]
fn debug_forms_are_short() {
    let (session, engine) = (session(), Engine::new());
    let history = session.history();
    let newest = history.committed().last().expect("a snapshot");
    let rows = engine.rows(&session, "@t0 .cb").expect("rows");
    let all = engine.rows(&session, "@* .cb").expect("rows");
    let [older, newer] = [1, 0].map(|back| At::Committed(Address::Back(back)));
    let diff = engine.diff(&session, older, newer, None, &DiffOptions::default());
    let mut context = Context::resume(&session).expect("a context");
    let mut watch = context.watch(".cb").expect("a watch");
    watch.changes().expect("a look");
    context.append(Message::user("Thanks.")).expect("a message");
    let changes = watch.changes().expect("a look").expect("changes");
    let run = pactql::inspect::Run::new(&session).expect("a run");
    for (name, text, most) in [
        ("a snapshot", format!("{newest:?}"), 80),
        ("a history", format!("{history:?}"), 120),
        ("a session", format!("{session:?}"), 150),
        ("a selection", format!("{rows:?}"), 300),
        ("a selection of all", format!("{all:?}"), 300),
        ("an engine", format!("{engine:?}"), 60),
        (
            "a prepared selector",
            format!("{:?}", engine.prepare(".cb")),
            60,
        ),
        (
            "a difference",
            format!("{:?}", diff.expect("a difference")),
            1_500,
        ),
        ("a watch", format!("{watch:?}"), 60),
        ("changes", format!("{changes:?}"), 600),
        ("a context", format!("{context:?}"), 250),
        ("a run", format!("{run:?}"), 2_500),
        (
            "an answer",
            format!(
                "{:?}",
                engine.select(&session, "@t0 .cb").expect("an answer")
            ),
            400,
        ),
    ] {
        assert!(text.len() <= most, "{name}: {} bytes: {text}", text.len());
    }
    let cycle = newest.cycle();
    let begins = |text: String, expected: &str| assert!(text.starts_with(expected), "{text}");
    begins(
        format!("{newest:?}"),
        &format!("Snapshot {{ cycle: {cycle}, working: false, nodes: "),
    );
    begins(
        format!("{rows:?}"),
        &format!("Selection {{ address: Snapshot {{ cycle: {cycle} }}, count: "),
    );
    begins(
        format!("{all:?}"),
        "Selection { address: 6 snapshots, count: ",
    );
    begins(
        format!("{session:?}"),
        &format!(
            "Session {{ history: History {{ committed: Snapshots {{ len: 6, newest: @c{cycle} }}"
        ),
    );
    let first = rows.ids().next().expect("an id");
    assert!(
        format!("{rows:?}").contains(&format!("{first:?}")),
        "{rows:?}"
    );
}
