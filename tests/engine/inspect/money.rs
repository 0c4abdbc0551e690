//! What calls cost, whole and in part, what a cache missed, and what leaving something out would save: worked out
//! by hand for a small session.
//!
//! | call | sent, in tokens of four bytes | read from the cache | written to it |
//! |---|---|---:|---:|
//! | 1 | system 10, user 10 | 0 | 20 |
//! | 2 | and a call of 2, its result of 100 | 20 | 102 |
//! | 3 | and a reply of 5, a user of 10 | 122 | 15 |
//! | 4 | and a reply of 5, a user of 10 | 0 | 152 |
//!
//! The provider counts a hundred times as many. Each reply is 500 tokens of its.

use super::imported;
use pactql::inspect::{
    AssertReport, Condition, MissCause, Money, Part, PrefixReport, Prices, Report, ReportOptions,
    TokenReport, Tokenizer, Usage, UsageBy, WithoutReport,
};
use pactql::{Engine, Session};
use serde_json::{Value, json};

const READ: [u64; 4] = [0, 20, 122, 0];
const WRITTEN: [u64; 4] = [20, 102, 15, 152];

/// Reading costs 0.2, writing 2.5, anything else that is sent 2, and the reply 10 dollars a million.
fn prices() -> Prices {
    let table = r#"{"date":"d","models":{"m":
        {"input":2,"cached_input":0.2,"cache_write":2.5,"cache_write_1h":4,"output":10}}}"#;
    Prices::parse(table).unwrap()
}

fn options(part: Part) -> ReportOptions {
    ReportOptions::new(part)
        .prices(prices())
        .tokenizer(Tokenizer::Bytes4)
}

/// The calls, each a request with its response, as a recorder writes them.
fn calls() -> Vec<Value> {
    let text = |letter: &str, tokens: usize| letter.repeat(4 * tokens);
    let reply = |content: Value| json!({"role": "assistant", "content": content});
    let call = json!([{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": text("r", 100)}]);
    let said = |letter: &str| json!([{"type": "text", "text": text(letter, 5)}]);
    let user = |content: Value| json!({"role": "user", "content": content});
    let mut messages = vec![user(json!([{"type": "text", "text": text("u", 10)}]))];
    let replies = [call, said("a"), said("b"), said("c")];
    let next = [
        result,
        json!([{"type": "text", "text": text("v", 10)}]),
        json!([{"type": "text", "text": text("w", 10)}]),
    ];
    let mut calls = Vec::new();
    for (at, content) in replies.iter().enumerate() {
        calls.push(json!({
            "session_id": "s",
            "timestamp": format!("2026-01-31T23:5{}:00Z", 2 * at),
            "request": {
                "model": "m",
                "max_tokens": 100,
                "system": [{"type": "text", "text": text("s", 10)}],
                "messages": messages.clone(),
            },
            "response": {
                "id": format!("r{at}"),
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": content,
                "stop_reason": "end_turn",
                "usage": {
                    "input_tokens": 0,
                    "cache_read_input_tokens": READ[at] * 100,
                    "cache_creation_input_tokens": WRITTEN[at] * 100,
                    "output_tokens": 500,
                },
            },
        }));
        messages.push(reply(content.clone()));
        messages.extend(next.get(at).cloned().map(user));
    }
    calls
}

fn session(calls: &[Value]) -> Session {
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    imported(lines.as_bytes())
}

/// Nano-dollars of tokens of the provider, in hundreds.
fn nanos(plain: u64, read: u64, written: u64, replied: u64) -> Money {
    Money(100 * (plain * 2_000 + read * 200 + written * 2_500 + replied * 10_000))
}

#[test]
fn a_part_is_priced_as_the_provider_charged_it() {
    let session = session(&calls());
    for (selector, expected) in [
        ("", [(0, 20, 5), (20, 102, 5), (122, 15, 5), (0, 152, 5)]),
        (
            ".cb[kind='result']",
            [(0, 0, 0), (0, 100, 0), (100, 0, 0), (0, 100, 0)],
        ),
        ("^sys .cb", [(0, 10, 0), (10, 0, 0), (10, 0, 0), (0, 10, 0)]),
        // The last call is a reply of the first request, and sent with the others.
        (
            ".cb[kind='call']",
            [(0, 0, 5), (0, 2, 0), (2, 0, 0), (0, 2, 0)],
        ),
        (".cb", [(0, 20, 5), (20, 102, 5), (122, 15, 5), (0, 152, 5)]),
    ] {
        let part = Part::default().over("@history");
        let part = if selector.is_empty() {
            part
        } else {
            part.only(selector)
        };
        let report = TokenReport::new(&Engine::new(), &session, &options(part)).unwrap();
        let costs: Vec<_> = report
            .snapshots
            .iter()
            .map(|shown| shown.cost.unwrap())
            .collect();
        for ((cost, (read, written, replied)), shown) in
            costs.iter().zip(expected).zip(&report.snapshots)
        {
            let expected = nanos(0, read, written, replied);
            assert_eq!(cost.nano_dollars, expected, "{selector} {}", shown.label);
            assert_eq!(cost.estimate, !selector.is_empty());
        }
        // The whole session stands first, whatever the part.
        assert_eq!(report.session.requests, 4);
        assert_eq!(report.session.nano_dollars, nanos(0, 142, 289, 20));
        assert_eq!(report.session.cached_tokens, 14_200);
    }
}

#[test]
fn what_leaving_results_out_would_save() {
    let session = session(&calls());
    let report = |selector: &str| {
        let part = Part::default().only(selector);
        WithoutReport::new(&Engine::new(), &session, &options(part)).unwrap()
    };
    let found = report(".cb[kind='result']");
    assert_eq!(found.then.nano_dollars, nanos(0, 142, 289, 20));
    // 20, then 20 read and 2 written, then 22 and 15, and 52 that the provider would have missed, too.
    let now = found.now;
    assert_eq!((now.input_tokens, now.cached_tokens), (13_100, 4_200));
    assert_eq!((now.cache_write_tokens, now.output_tokens), (8_900, 2_000));
    assert_eq!(now.nano_dollars, nanos(0, 42, 89, 20));
    assert_eq!((found.blocks, &found.breaks[..]), (3, &[][..]));
    // One block in three requests.
    let text = found.to_text(&ReportOptions::default());
    assert!(text.contains("1 block left out 3 times"), "{text}");
    // The result stays in the request that it is new in, so that the next one does not begin with that.
    let found = report(".mt:depth(>1) .cb[kind='result']");
    assert_eq!(found.breaks, [3]);
    // 20, then 20 read and 102 written. The third, of 37, begins as the second up to the call: 22 read and 15 written.
    // The provider read nothing of the fourth, and would have written its 52.
    let now = found.now;
    assert_eq!((now.input_tokens, now.cached_tokens), (23_100, 4_200));
    assert_eq!(now.cache_write_tokens, 18_900);
    assert_eq!(now.nano_dollars, nanos(0, 42, 189, 20));
    assert_eq!(found.blocks, 2);
    // Nothing is left out, and nothing changes.
    let found = report("#missing");
    assert_eq!((found.then, found.blocks), (found.now, 0));
}

/// Changes the calls, from 0.
type Change = fn(&mut [Value]);

#[test]
fn causes_of_misses() {
    fn mark(call: &mut Value, message: usize) {
        let content = &mut call["request"]["messages"][message]["content"];
        let last = content.as_array().unwrap().len() - 1;
        content[last]["cache_control"] = json!({"type": "ephemeral"});
    }
    let cases: [(&str, Change, MissCause); 8] = [
        ("no mark", |_| {}, MissCause::NoMark),
        (
            "marks at the end",
            |calls| {
                mark(&mut calls[2], 4);
                mark(&mut calls[3], 6);
            },
            MissCause::Unknown,
        ),
        (
            "a mark before the growth",
            |calls| {
                mark(&mut calls[2], 0);
                mark(&mut calls[3], 0);
            },
            MissCause::EarlyMark,
        ),
        (
            "many blocks",
            |calls| {
                mark(&mut calls[2], 4);
                let more = vec![json!({"type": "text", "text": "more"}); 24];
                let content = &mut calls[3]["request"]["messages"][6]["content"];
                content.as_array_mut().unwrap().extend(more);
                mark(&mut calls[3], 6);
            },
            MissCause::FarMark,
        ),
        (
            "idle",
            |calls| calls[3]["timestamp"] = json!("2026-02-01T00:30:00Z"),
            MissCause::Idle,
        ),
        (
            "an hour",
            |calls| {
                calls[3]["timestamp"] = json!("2026-02-01T00:30:00Z");
                let usage = &mut calls[2]["response"]["usage"];
                usage["cache_creation"] = json!({"ephemeral_1h_input_tokens": 1500});
            },
            MissCause::NoMark,
        ),
        (
            "a parameter",
            |calls| calls[3]["request"]["max_tokens"] = json!(200),
            MissCause::Parameter,
        ),
        (
            "too short",
            |calls| {
                for call in calls {
                    let usage = call["response"]["usage"].as_object_mut().unwrap();
                    for count in usage.values_mut().filter(|count| count.is_u64()) {
                        *count = json!(count.as_u64().unwrap() / 100);
                    }
                }
            },
            MissCause::BelowMinimum,
        ),
    ];
    for (name, change, expected) in cases {
        let mut calls = calls();
        change(&mut calls);
        let report = PrefixReport::new(&Engine::new(), &session(&calls), &options(Part::default()));
        let report = report.unwrap();
        let missed: Vec<_> = report
            .steps
            .iter()
            .map(|step| step.missed.as_ref())
            .collect();
        let [None, None, None, Some(missed)] = missed[..] else {
            panic!("{name}: {missed:?}");
        };
        assert_eq!(missed.cause, expected, "{name}");
        assert!(
            report.steps.iter().all(|step| step.difference.is_none()),
            "{name}"
        );
        // One line for all that nothing explains, unless every request is listed.
        let is_unknown = expected == MissCause::Unknown;
        for (all, is_listed) in [(false, !is_unknown), (true, true)] {
            let text = report.to_text(&ReportOptions::default().full(all));
            assert_eq!(text.contains("likely: "), is_listed, "{name}: {text}");
            let is_counted = text.contains("nothing in the log explains 1 of the misses");
            assert_eq!(is_counted, is_unknown && !all, "{name}: {text}");
        }
        if name == "no mark" {
            assert_eq!((missed.read_tokens, missed.readable_tokens), (0, 13_700));
            assert_eq!(missed.nano_dollars, Some(Money(13_700 * (2_500 - 200))));
            let text = report.to_text(&ReportOptions::default());
            assert!(
                text.starts_with("4 requests in the form of anthropic, 0 breaks, 1 cache miss\n"),
                "{text}"
            );
        }
    }
}

/// `usage` and `tokens` have one figure, the provider's; what was counted here is apart from it.
#[test]
fn what_was_counted_here_is_apart() {
    let mut all = calls();
    // Of one reply and of one request the provider's count is not known.
    all[1]["response"]["usage"]["output_tokens"].take();
    all[3]["response"]["usage"].take();
    let session = session(&all);
    let mut usage = Usage::new(UsageBy::Day, prices());
    usage.add("s", &session).unwrap();
    let options = options(Part::default());
    let report = TokenReport::new(&Engine::new(), &session, &options).unwrap();
    assert_eq!(report.session, usage.total);
    assert_eq!(usage.total.nano_dollars, nanos(0, 142, 137, 10));
    let here = report.counted_here;
    // The reply of 5 tokens, the request of 152 and its reply of 5.
    let sizes = (here.requests, here.input_tokens, here.output_tokens);
    assert_eq!(sizes, (2, 152, 10));
    assert_eq!(here.nano_dollars, Money(152 * 2_000 + 10 * 10_000));
    let text = report.to_text(&options);
    let said = "; counted here of 2 requests: 152 tokens in, 10 tokens out, $0.000404";
    assert!(text.contains(said), "{text}");
    // So it is over several sessions.
    let mut sum = Usage::new(UsageBy::Session, prices());
    report.add_to(&mut sum, "s");
    assert_eq!((sum.total, sum.counted_here), (usage.total, here));
    assert!(sum.sum().contains(said), "{}", sum.sum());
}

#[test]
fn usage_counts_each_response_once() {
    let all = calls();
    let first = session(&all[..3]);
    // The file of a resumed session begins with a copy of the first.
    let resumed = session(&all);
    for (by, names) in [
        (UsageBy::Day, vec![Some("2026-01-31")]),
        (UsageBy::Month, vec![Some("2026-01")]),
        (UsageBy::Model, vec![Some("m")]),
        (UsageBy::Session, vec![Some("first"), Some("resumed")]),
        (UsageBy::Project, vec![None]),
        (UsageBy::Agent, vec![None]),
    ] {
        let mut usage = Usage::new(by, prices());
        usage.add("first", &first).unwrap();
        usage.add("resumed", &resumed).unwrap();
        let found: Vec<_> = usage
            .groups
            .iter()
            .map(|group| group.name.as_deref())
            .collect();
        assert_eq!(found, names, "{by:?}");
        let sum: Money = usage
            .groups
            .iter()
            .map(|group| group.used.nano_dollars)
            .sum();
        assert_eq!(sum, usage.total.nano_dollars);
        assert_eq!((usage.total.requests, usage.repeated), (4, 3));
        assert_eq!(usage.total.nano_dollars, nanos(0, 142, 289, 20));
        assert_eq!(usage.total.output_tokens, 2_000);
    }
}

/// Calls without an id: those of one session are counted though they are alike, those of a fork are not counted again though
/// they have the time of the fork.
#[test]
fn responses_without_an_id_are_known_by_their_session() {
    let session = |meta: &str, times: [&str; 2]| {
        let block = |cycle: usize| {
            format!(
                r#"{{"id":"b{cycle}","nodeType":"cb","role":"assistant","content":"yes","created_at_iso":"{}","data_reply":"{cycle}"}}"#,
                times[cycle - 1]
            )
        };
        let turn = |cycle: usize| {
            format!(
                r#"{{"id":"t{cycle}","nodeType":"mt","creation_index":{cycle},"children":[{}]}}"#,
                block(cycle)
            )
        };
        let lines = (1..=2).map(|cycle| {
            let turns: Vec<String> = (1..=cycle).map(turn).collect();
            format!(
                r#"{{"cycle":{cycle},"meta":{meta},"usage":{{"input_tokens":10,"output_tokens":1}},"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[{}]}}]}}}}"#,
                turns.join(",")
            ) + "\n"
        });
        Session::from_slice(lines.collect::<String>().as_bytes()).expect("a session")
    };
    let (first, second) = ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z");
    let of = |sessions: &[&Session]| {
        let mut usage = Usage::new(UsageBy::Session, prices());
        for session in sessions {
            usage.add("one", session).expect("its calls");
        }
        (usage.total.requests, usage.repeated)
    };
    let own = session(r#"{"session":{"id":"s"}}"#, [first; 2]);
    let other = session(r#"{"session":{"id":"o"}}"#, [second; 2]);
    let meta = r#"{"session":{"id":"f"},"parent":{"session_id":"s","forked":true}}"#;
    let fork = session(meta, [second, second]);
    assert_eq!(of(&[&own]), (2, 0));
    assert_eq!(of(&[&own, &other]), (4, 0));
    assert_eq!(of(&[&own, &fork]), (2, 2));
}

/// Calls without a reply, of which only `meta` says what they used: a copy of a session does not make them more, and where
/// no call was made they are no group. What is not a count of tokens is none.
#[test]
fn calls_without_a_reply_are_counted_once() {
    let session = |time: &str, meta: &str| {
        let line = format!(
            r#"{{"cycle":1,"meta":{meta},"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[
            {{"id":"t","nodeType":"mt","children":[{{"id":"b","nodeType":"cb","role":"user","content":"yes","created_at_iso":"{time}"}}]}}]}}]}}}}"#
        );
        Session::from_slice(line.as_bytes()).expect("a session")
    };
    let of = |sessions: &[Session]| {
        let mut usage = Usage::new(UsageBy::Model, prices());
        for session in sessions {
            usage.add("one", session).expect("its calls");
        }
        usage
    };
    let summary =
        |usage: &str| format!(r#"{{"source":"transcript","compaction":{{"usage":{usage}}}}}"#);
    let (first, second) = ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z");
    let counts = summary(r#"{"input_tokens":9}"#);
    let [own, copy] = [(); 2].map(|()| session(first, &counts));
    let usage = of(&[own, copy, session(second, &counts)]);
    assert_eq!((usage.total.unanswered, usage.repeated), (2, 0));
    assert_eq!(usage.total.requests, 0);
    assert_eq!(usage.groups.len(), 0, "{:?}", usage.groups);
    for (counted, usage) in [
        (0, r#"{"latency_ms":12,"input_tokens":0}"#),
        (1, r#"{"promptTokenCount":12}"#),
        (1, r#"{"total":{"input_tokens":12}}"#),
        (1, r#"{"tokens":{"input":12,"cost":0}}"#),
        (0, r#"{"total":{"latency_ms":12}}"#),
        (0, "null"),
    ] {
        let found = of(&[session(first, &summary(usage))]).total.unanswered;
        assert_eq!(found, counted, "{usage}");
    }
}

#[test]
fn a_limit_of_cost_names_the_call_that_passes_it() {
    let session = session(&calls());
    let of = |line: &str, table: Prices| {
        let condition = Condition::parse(line).unwrap();
        let options = options(Part::default()).prices(table);
        let options = options.conditions(vec![(1, condition)]);
        let report = AssertReport::new(&Engine::new(), &session, &options).unwrap();
        let first = report.conditions[0].first.first();
        first.map(|failed| (failed.cycle, failed.what.clone()))
    };
    // $0.01, then 0.0309, 0.01119 and 0.043 more.
    for (line, expected) in [
        ("cost <= 0.09509", None),
        ("cost < 0.095090001", None),
        ("cost = 0.09509", None),
        ("cost >= 0.09", None),
        ("cost != 0.05", None),
        (
            "cost <= 0.05",
            Some((Some(3), "$0.052090 so far, $0.095090 in all")),
        ),
        (
            "cost < 0.09509",
            Some((Some(4), "$0.095090 so far, $0.095090 in all")),
        ),
        (
            "cost <= 0",
            Some((Some(1), "$0.010000 so far, $0.095090 in all")),
        ),
    ] {
        let expected = expected.map(|(cycle, what)| (cycle, what.to_owned()));
        assert_eq!(of(line, prices()), expected, "{line}");
    }
    // What is not known is not below any limit.
    let other = Prices::parse(r#"{"date":"d","models":{}}"#).unwrap();
    let what = "the price of model `m` is not known".to_owned();
    assert_eq!(of("cost <= 100", other), Some((Some(1), what)));
}

/// Local servers count their ids from one again; a copy has the same input.
#[test]
fn one_id_with_another_input_or_model_is_another_response() {
    let call = |model: &str, input: u32, output: u32| {
        let text = format!(
            r#"{{"cycle":1,"usage":{{"input_tokens":{input},"output_tokens":{output},"model":"{model}","response_id":"chatcmpl-17"}},"root":{{"id":"r","nodeType":"root","children":[]}}}}"#
        );
        Session::from_slice(text.as_bytes()).expect("a session")
    };
    let first = call("a", 10, 5);
    for (second, requests) in [
        (call("a", 10, 5), 1),
        // Copied before the reply was whole.
        (call("a", 10, 2), 1),
        (call("a", 11, 5), 2),
        (call("b", 10, 5), 2),
    ] {
        let mut usage = Usage::new(UsageBy::Model, prices());
        usage.add("first", &first).expect("its calls");
        usage.add("second", &second).expect("its calls");
        assert_eq!(
            (usage.total.requests, usage.repeated),
            (requests, 2 - requests)
        );
    }
}
