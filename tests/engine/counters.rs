//! Counters: a selection and `explain --analyze` are the same run and count the same work.

use std::path::Path;

use pactql::{
    Answer, Engine, Session,
    explain::{Counters, ExplainOptions},
};

/// Every query class, control, strategy and kind of answer.
const SELECTORS: &[&str] = &[
    "@t0 [id='cb:a1']",
    "@t0 [id='cb:none']",
    "@t0 [id='cb:a1'], [id='cb:n1']",
    "@t0 [id='cb:a1'][role='assistant']",
    "@t0 .mt [id='cb:a1']",
    "@t0 [id='cb:a1'], .cb[kind='call']",
    "@t0 .cb[role='assistant']",
    "@t0 ^seq .mt:depth(1) .cb",
    "@t0 ^seq .mt:depth(1) > .mc > .cb[role='assistant']",
    "@t0 ^seq .mt:depth(1-3) .cb[role='user']",
    "@t0 depth(-1,1) .cb",
    "@t0 depth(99) .cb",
    "@t0 .cb[kind='summary'][priority>=8]",
    "@t0 [ttl<=1]",
    "@t0 ^ah > .cb[offset<0]",
    "@t0 ^seq .mt .mc .cb[kind='call']",
    "@t0 .cb",
    "@t0 ^seq > .mt > .mc > .cb:first",
    "@t0 .mt:first .cb",
    "@t0 ^seq .mt :core .cb",
    "@t0 ^seq .mt:depth(1-2) :pre",
    "@t0 .cb {role='user'}",
    "@t0 .cb[content~'the'] {ttl>=0}",
    "@t0 .cb[age>=0]",
    "@t0 .cb[born_turn<=2][depth>=1]",
    "@t0 .cb, ^ah .mc, .mt:last",
    "@t0 .cb @limit=2",
    "@t0 .cb @limit=2 @p=2",
    "@t0 ^seq .mt:depth(1) .cb @first",
    "@t0 ^seq .mt .cb @limit=1 @order=post",
    "@t0 .cb @unique",
    "@t0 .cb @unique @limit=1",
    "@t0 none",
    ".cb[role='user']",
    "@* .cb[role='user']",
    "@* .cb @limit=2",
    "@* ^seq .mt:depth(1) .cb",
    "@t0..@t-* .cb @mode=union",
    "@t0..@t-* .cb[role='user'] @mode=latest",
    "@t0..@t-* .cb",
    "@t0..@t-* ^seq .mt:depth(1) .cb",
    "@t0..@t-* .cb @mode=reduce",
];

/// The number of rows and the work of finding them, as a selection and as an explanation tell.
fn both(engine: &Engine, session: &Session, text: &str) -> Option<[(u64, Counters); 2]> {
    let answer = engine.select(session, text).ok()?;
    let selected = match &answer {
        Answer::Rows(rows) => {
            let first = rows.measure();
            assert_eq!(rows.ids().count(), rows.count(), "{text}");
            assert_eq!(rows.measure(), first, "{text}: a measure is kept");
            (rows.count() as u64, first)
        }
        Answer::Range(diff) => (diff.rows() as u64, diff.counters),
    };
    let options = ExplainOptions::default().analyze(true);
    let explain = engine.explain(Some(session), text, options).ok()?;
    let strategy = explain.strategy.expect("a strategy is named");
    assert!(!strategy.ran.is_empty(), "{text}");
    let analysis = explain.analysis.expect("it was run");
    Some([selected, (analysis.rows, analysis.counters)])
}

#[test]
fn a_selection_counts_what_its_explanation_counts() {
    let engine = Engine::new();
    for fixture in ["support-agent.jsonl", "greenhouse.jsonl"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let session = Session::open(path.join(fixture)).expect("the fixture is valid");
        let mut answered = 0;
        for text in SELECTORS {
            let Some([selected, explained]) = both(&engine, &session, text) else {
                continue;
            };
            answered += 1;
            assert_eq!(selected, explained, "{fixture}: {text}");
            let read =
                |counters: Counters| counters.rows_seen + counters.probes + counters.postings;
            if selected.0 > 0 {
                assert!(read(selected.1) > 0, "{fixture}: {text} counts nothing");
            }
        }
        let refused = SELECTORS.len() - answered;
        // Only the working state is missing from a fixture.
        assert!(refused <= 1, "{fixture}: {refused} selectors were refused");
    }
}

/// Selections count for every way of asking: a limit, a filter, and rows that were found at once.
#[test]
fn operations_on_rows_count_too() {
    let engine = Engine::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/support-agent.jsonl");
    let session = Session::open(path).expect("the fixture is valid");
    for text in ["@t0 .cb", "@t0 ^seq .mt:depth(1) .cb"] {
        let rows = || engine.rows(&session, text).expect("rows");
        let all = rows().measure();
        assert!(all.rows_seen > 0, "{text}");
        let limited = rows().limit(1);
        assert_eq!(limited.count(), 1, "{text}");
        assert!(limited.measure().rows_seen > 0, "{text}");
        let filter = engine.prepare(".cb[role='user']").expect("a filter");
        let filtered = rows().filter(&filter).expect("a filter applies");
        assert!(filtered.count() > 0, "{text}");
        let work = filtered.measure();
        assert!(
            work.postings > all.postings,
            "{text}: the filter's work is missing"
        );
        assert!(rows().skip(1).measure().rows_seen > 0, "{text}");
    }
}

/// `explain` names the strategy, and why cheaper ones do not fit.
#[test]
fn strategies_are_named_with_reasons() {
    let engine = Engine::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/support-agent.jsonl");
    let session = Session::open(path).expect("the fixture is valid");
    for (text, name, cheaper) in [
        ("@t0 [id='cb:a1']", "by id", 0),
        ("@t0 ^seq .mt:depth(1) .cb", "word", 1),
        ("@t0 .cb @limit=1", "chunks", 2),
        ("@t0 .cb", "windows", 3),
        ("@t0..@t-* .cb", "chunks", 0),
    ] {
        for run in [false, true] {
            let options = ExplainOptions::default().analyze(run);
            let explain = engine.explain(Some(&session), text, options).expect(text);
            let strategy = explain.strategy.as_ref().expect(text);
            assert_eq!(
                (strategy.name, strategy.cheaper.len()),
                (name, cheaper),
                "{text}"
            );
            assert_eq!(strategy.ran.is_empty(), !run, "{text}");
            let line = format!("strategy     {name}: {}\n", strategy.summary);
            assert!(explain.to_string().contains(&line), "{explain}");
            assert_eq!(explain.to_json()["strategy"]["name"], name);
        }
    }
}

/// The reasons are true of the plan: an id or a region that a selector does name is not denied.
#[test]
fn reasons_are_those_of_the_plan() {
    let engine = Engine::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/support-agent.jsonl");
    let session = Session::open(path).expect("the fixture is valid");
    let no_word =
        "a group is short and anywhere, picks across levels, gathers a zone or names an id";
    let no_chunks =
        "rows are not found in result order, a pick spans the tree, or a group names an id";
    for (text, cheaper) in [
        (
            "@t0 [id='cb:a1']:first",
            &["a pick spans the tree", no_word, "every row is wanted"][..],
        ),
        (
            "@t0 [id='cb:a1'], .cb @limit=1",
            &["some groups have no id", no_word, no_chunks],
        ),
        ("@t0 depth(0-2) .cb", &["some groups have no id"]),
    ] {
        let explain = engine.explain(Some(&session), text, ExplainOptions::default());
        let strategy = explain.expect(text).strategy.expect(text);
        let reasons: Vec<&str> = strategy.cheaper.iter().map(|not| not.reason).collect();
        assert_eq!(reasons, cheaper, "{text}");
    }
    // The newest snapshot decides the name, even if an older one ran first.
    let options = ExplainOptions::default().analyze(true);
    let explain = engine.explain(Some(&session), "@t-3..@t0 .mt:depth(1-3)", options);
    let strategy = explain.expect("a range").strategy.expect("a strategy");
    assert_eq!((strategy.name, strategy.cheaper.len()), ("word", 1));
    // Words run over several pieces, so every snapshot takes them.
    assert_eq!(strategy.ran.len(), 1);
}

/// What a step read is told at the step: bytes of the texts that were searched, rows whose ttl was compared, pieces.
#[test]
fn an_analysis_tells_what_each_step_read() {
    let engine = Engine::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/greenhouse.jsonl");
    let session = Session::open(path).expect("the fixture is valid");
    let options = ExplainOptions::default().analyze(true);
    let explained = |text: &str| engine.explain(Some(&session), text, options).expect(text);
    let rows = |text: &str| engine.rows(&session, text).expect(text);
    let content = |node: pactql::Node<'_>| {
        let content = node.content();
        let text = content.as_ref().and_then(|content| content.as_str());
        text.map_or(0, str::len) as u64
    };

    let blocks = rows("@t0 .cb[kind='text']");
    let bytes: u64 = blocks.nodes().map(content).sum();
    let explain = explained("@t0 .cb[kind='text'][content~'wa[rt]']");
    let [whole, step] = [0, 1].map(|at| explain.plan[at].work.expect("it was run"));
    assert!(bytes > 0);
    // Removed rows of a segment may be tested, too, before they are left out.
    assert!(whole.text_bytes == 0 && step.text_bytes >= bytes, "{bytes}");
    assert!(step.pieces >= 1 && step.ttl_rows == 0, "{step:?}");
    let analysis = explain.analysis.as_ref().expect("it was run");
    assert_eq!(analysis.work.text_bytes, step.text_bytes);
    let bytes = step.text_bytes;
    assert!(analysis.work.time_ns >= step.time_ns);
    assert!(
        explain
            .to_string()
            .contains(&format!("{bytes} bytes searched]")),
        "{explain}"
    );

    // Every block is compared once with each of two values, however they are tested.
    let all = rows("@t0 .cb").count() as u64;
    for text in ["@t0 .cb[ttl!=1]", "@t0 .cb[role!='none'][ttl!=1]"] {
        let explain = explained(text);
        let step = explain.plan[1].work.expect("it was run");
        assert!(
            step.ttl_rows >= all && step.text_bytes == 0,
            "{text}: {step:?}"
        );
    }
    // A filter of the final set is told with it.
    let explain = explained("@t0 .cb[kind='text'] {content~'wa[rt]'}");
    let searched = |at: usize| explain.plan[at].work.map(|work| work.text_bytes);
    let told: u64 = [0, 1].map(|at| searched(at).unwrap_or(0)).iter().sum();
    assert!(told > 0, "{told}");
    // What is read inside of a condition is told at its step, however deep it is inside.
    for text in [
        "@t0 .mt:has(.cb[kind='text'][content~'wa[rt]'])",
        "@t0 .mt:not(:has(.cb[kind='text'][content~'wa[rt]']))",
        "@t0 .mt:has(.cb[kind='text']:has-result([content~'wa[rt]']), .cb[content~'wa[rt]'])",
    ] {
        let explain = explained(text);
        let step = explain.plan[1].work.expect("it was run");
        assert!(step.text_bytes >= bytes, "{text}: {step:?}");
        let (whole, steps) = (explain.analysis.expect("it was run"), &explain.plan);
        let told = steps.iter().filter_map(|line| line.work);
        assert_eq!(
            told.map(|work| work.text_bytes).sum::<u64>(),
            whole.work.text_bytes
        );
    }
    let explain = explained("@t0 .mt:has(.cb[ttl!=1])");
    let step = explain.plan[1].work.expect("it was run");
    assert!(step.ttl_rows > 0, "{step:?}");
    // Neighbours are compared by the ttls that run out between them, and without a test of one.
    let explain = explained("@history .cb");
    let whole = explain.plan[0].work.expect("it was run");
    assert!(whole.ttl_rows > 0 && whole.pieces > 0, "{whole:?}");
    assert_eq!(explain.plan[1].work.map(|work| work.ttl_rows), Some(0));
    // A zone is a step and has rows of its own.
    let explain = explained("@t0 ^seq .mt :core .cb");
    let zone = explain
        .plan
        .iter()
        .find(|line| line.operator.starts_with("zone"));
    let kept = zone.and_then(|line| line.actual_rows).expect("a zone");
    assert!(kept >= rows("@t0 ^seq .mt :core .cb").count() as u64 && kept > 0);
    // Without a run nothing is told.
    let explain = engine.explain(Some(&session), "@t0 .cb", ExplainOptions::default());
    assert!(
        explain
            .expect("a plan")
            .plan
            .iter()
            .all(|line| line.work.is_none())
    );
}

/// An attribute with more values than have lists is read where it is, and nowhere else.
#[test]
fn values_of_an_attribute_are_read_where_it_is() {
    let block = |at: usize| {
        let order = match at % 4 {
            0 => format!(r#","order":"o{at}""#),
            _ => String::new(),
        };
        format!(
            r#"{{"id":"b{at}","nodeType":"cb","role":"user","kind":"text","offset":{at}{order},"content":"x","children":[]}}"#
        )
    };
    let blocks: Vec<String> = (0..800).map(block).collect();
    let text = format!(
        r#"{{"cycle":1,"root":{{"id":"r","children":[{{"id":"h","nodeType":"^ah","children":[{}]}}]}}}}"#,
        blocks.join(",")
    );
    let session = Session::from_slice(text.as_bytes()).expect("a session");
    for (selector, found) in [
        ("@t0 .cb[order='o400']", 1),
        ("@t0 .cb[order~'o40']", 4),
        ("@t0 .cb[order='o401']", 0),
    ] {
        let rows = Engine::new().rows(&session, selector).expect("rows");
        assert_eq!(rows.count(), found, "{selector}");
        assert!(
            rows.measure().probes <= 200,
            "{selector}: {:?}",
            rows.measure()
        );
    }
}
