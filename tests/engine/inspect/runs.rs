//! Where two runs part, and where they meet again.

use pactql::Session;
use pactql::inspect::{Divergence, Parted, Run};
use pactql::logs::{ImportOptions, import};
use serde_json::{Value, json};

/// A block of a run: role, kind, content. A reply has the role `assistant`, and belongs to the step that ends with it.
type Said = (&'static str, &'static str, &'static str);

/// A session whose steps each send all blocks so far and add some. Its ids begin with `name`, as do the ids of calls.
fn run(name: &str, request: impl Fn(usize) -> Value, steps: &[&[Said]]) -> Session {
    let mut blocks: Vec<Value> = Vec::new();
    let mut lines = String::new();
    for (at, step) in steps.iter().enumerate() {
        for (role, kind, content) in *step {
            let mut block = json!({"id": format!("{name}:{}", blocks.len()), "nodeType": "cb", "role": role,
                "kind": kind, "content": content, "data_call_id": format!("{name}-call")});
            if *kind == "call" {
                let (tool, arguments) = content.split_once(' ').expect("a name and arguments");
                (block["data_call_name"], block["content"]) = (json!(tool), json!(arguments));
            }
            if *role == "assistant" {
                block["data_reply"] = json!(at + 1);
            }
            blocks.push(block);
        }
        let head = json!({"id": "^ah", "nodeType": "^ah", "children": [
            {"id": format!("{name}-core"), "nodeType": "mc", "offset": 0, "children": blocks}]});
        let document = json!({"cycle": at + 1, "meta": {"request": request(at)},
            "root": {"id": "^root", "nodeType": "^root", "children": [head]}});
        lines.push_str(&format!("{document}\n"));
    }
    Session::from_slice(lines.as_bytes()).expect("documents")
}

fn compared(a: &Session, b: &Session) -> Divergence {
    let [a, b] = [a, b].map(|session| Run::new(session).expect("a run"));
    a.divergence(&b, &Default::default())
}

const ASKED: Said = ("user", "text", "Book a seat.");
const SEARCHED: Said = ("assistant", "call", "search {\"to\":\"Lindau\"}");
const FOUND: Said = ("tool", "result", "IC 204");
const BOOKED: Said = ("assistant", "call", "book {\"train\":\"IC 204\"}");
const SEATED: Said = ("tool", "result", "seat 61");
const DONE: Said = ("assistant", "text", "Seat 61 in IC 204.");

fn whole(name: &str) -> Session {
    let steps: &[&[Said]] = &[&[ASKED, SEARCHED], &[FOUND, BOOKED], &[SEATED, DONE]];
    run(name, |_| json!({"model": "m", "seed": 1}), steps)
}

#[test]
fn runs_that_say_the_same_are_equal_whatever_their_ids() {
    let found = compared(&whole("a"), &whole("b"));
    assert_eq!((found.equal, found.a.steps, found.b.steps), (3, 3, 3));
    assert!(found.parted.is_none() && found.meet.is_none());
    assert_eq!(
        (found.a.cycle, found.a.block.as_deref()),
        (Some(3), Some("a:5"))
    );
    assert_eq!(found.b.block.as_deref(), Some("b:5"));
}

/// Programs write the JSON of tools as they like.
#[test]
fn white_space_in_json_is_no_difference() {
    let log = std::fs::read_to_string("fixtures/travel.openai.json").expect("a log");
    let spaced = log.replace("\": {", "\":   {").replace("\": [", "\":[");
    assert_ne!(log, spaced);
    let [a, b] = [log, spaced].map(|log| {
        let imported = import(log.as_bytes(), &ImportOptions::default()).expect("an import");
        imported.sessions[0].session().expect("a session")
    });
    let found = compared(&a, &b);
    assert_eq!((found.equal, found.a.steps), (5, 5));
}

#[test]
fn the_first_step_that_differs_is_found() {
    const OTHER: Said = ("assistant", "call", "search {\"to\":\"Bregenz\"}");
    const TOOL: Said = ("assistant", "call", "find {\"to\":\"Lindau\"}");
    const NONE: Said = ("tool", "result", "no train");
    const LATE: Said = ("user", "text", "Now, please.");
    let same = |_: usize| json!({"seed": 1, "model": "m"});
    let warm = |at: usize| match at {
        1 => json!({"model": "m", "seed": 1, "temperature": 1}),
        _ => json!({"model": "m", "seed": 1}),
    };
    type Case<'a> = (
        &'a str,
        &'a dyn Fn(usize) -> Value,
        &'a [&'a [Said]],
        (usize, Parted),
        [Option<&'a str>; 2],
        &'a [&'a str],
    );
    let cases: &[Case<'_>] = &[
        (
            "an answer with other arguments",
            &same,
            &[&[ASKED, OTHER], &[FOUND, BOOKED], &[SEATED, DONE]],
            (0, Parted::Answer),
            [Some("a:1"), Some("b:1")],
            &["content"],
        ),
        (
            "an answer that calls another tool with the same arguments",
            &same,
            &[&[ASKED, TOOL], &[FOUND, BOOKED], &[SEATED, DONE]],
            (0, Parted::Answer),
            [Some("a:1"), Some("b:1")],
            &["data_call_name"],
        ),
        (
            "a result that differs",
            &same,
            &[&[ASKED, SEARCHED], &[NONE, BOOKED], &[SEATED, DONE]],
            (1, Parted::Request),
            [Some("a:2"), Some("b:2")],
            &["content"],
        ),
        (
            "a parameter of one request",
            &warm,
            &[&[ASKED, SEARCHED], &[FOUND, BOOKED], &[SEATED, DONE]],
            (1, Parted::Request),
            [None, None],
            &[],
        ),
        (
            "a message more",
            &same,
            &[&[ASKED, SEARCHED], &[FOUND, LATE, BOOKED], &[SEATED, DONE]],
            (1, Parted::Request),
            [None, Some("b:3")],
            &[],
        ),
        (
            "an end",
            &same,
            &[&[ASKED, SEARCHED], &[FOUND, BOOKED]],
            (2, Parted::End),
            [None, None],
            &[],
        ),
    ];
    let first = whole("a");
    for (name, request, steps, (equal, at), blocks, fields) in cases {
        let second = run("b", request, steps);
        let found = compared(&first, &second);
        let parting = found.parted.as_ref().expect(name);
        assert_eq!((found.equal, parting.at), (*equal, *at), "{name}");
        let places = [parting.block_a.as_deref(), parting.block_b.as_deref()];
        assert_eq!(places, *blocks, "{name}");
        let step = |session: &Session| {
            let history = session.history();
            Some(history.committed().get(*equal)?.cycle())
        };
        assert_eq!(
            (parting.cycle_a, parting.cycle_b),
            (step(&first), step(&second)),
            "{name}"
        );
        let changed = parting.difference.iter().flat_map(|found| &found.changed);
        let changed: Vec<&str> = changed.flat_map(|changed| changed.fields.clone()).collect();
        assert_eq!(changed, *fields, "{name}");
        let parameters = parting
            .difference
            .iter()
            .flat_map(|found| &found.parameters);
        let parameters: Vec<&str> = parameters.map(|change| &*change.name).collect();
        let expected: &[&str] = match *name {
            "a parameter of one request" => &["temperature"],
            _ => &[],
        };
        assert_eq!(parameters, expected, "{name}");
        // The other way round.
        let turned = compared(&second, &first);
        let turned = turned.parted.as_ref().expect(name);
        assert_eq!(
            (turned.at, &turned.block_a, &turned.block_b),
            (*at, &parting.block_b, &parting.block_a),
            "{name}"
        );
    }
}

#[test]
fn runs_meet_again_where_they_add_the_same() {
    const TRIED: Said = ("assistant", "call", "search {\"to\":\"Lindow\"}");
    const NONE: Said = ("tool", "result", "no such place");
    let second = run(
        "b",
        |_| json!({"model": "m", "seed": 1}),
        &[
            &[ASKED, TRIED],
            &[NONE, SEARCHED],
            &[FOUND, BOOKED],
            &[SEATED, DONE],
        ],
    );
    let found = compared(&whole("a"), &second);
    let meet = found.meet.expect("they meet");
    assert_eq!(
        (found.equal, meet.cycle_a, meet.cycle_b, meet.steps),
        (0, 2, 3, 2)
    );
    let apart = run("c", |_| json!({}), &[&[ASKED, TRIED], &[NONE, DONE]]);
    assert!(compared(&whole("a"), &apart).meet.is_none());
}

#[test]
fn what_an_earlier_request_had_and_this_one_has_not_is_a_difference() {
    let documents = |dropped: bool| {
        let block = |id: &str, content: &str| json!({"id": id, "nodeType": "cb", "role": "assistant", "content": content});
        let turn = |id: &str, depth: i64, block: Value| {
            json!({"id": id, "nodeType": "mt", "offset": -depth, "children": [
                {"id": format!("{id}-core"), "nodeType": "mc", "offset": 0, "children": [block]}]})
        };
        let mut lines = String::new();
        for cycle in 1..=4_i64 {
            let turns = (1..=cycle).filter(|at| !(dropped && cycle == 3 && *at == 1));
            let turns: Vec<Value> = turns
                .map(|at| {
                    turn(
                        &format!("mt:{at}"),
                        cycle - at + 1,
                        block(&format!("cb:{at}"), &format!("say {at}")),
                    )
                })
                .collect();
            let root = json!({"id": "^root", "nodeType": "^root", "children": [
                {"id": "^seq", "nodeType": "^seq", "children": turns}]});
            lines.push_str(&format!("{}\n", json!({"cycle": cycle, "root": root})));
        }
        Session::from_slice(lines.as_bytes()).expect("documents")
    };
    let found = compared(&documents(false), &documents(true));
    let parting = found.parted.expect("they part");
    assert_eq!(
        (found.equal, parting.at, parting.cycle_a),
        (2, Parted::Request, Some(3))
    );
    assert_eq!(
        (parting.block_a.as_deref(), parting.block_b.as_deref()),
        (Some("cb:1"), Some("cb:2"))
    );
    let lone: Vec<String> = parting
        .difference
        .expect("a difference")
        .only_a
        .into_iter()
        .map(|lone| lone.id)
        .collect();
    assert_eq!(lone, ["cb:1"]);
}

#[test]
fn a_session_without_steps_parts_at_once() {
    let empty = Session::from_documents(Vec::new()).expect("an empty session");
    let found = compared(&empty, &whole("b"));
    let parting = found.parted.expect("they part");
    assert_eq!(
        (found.equal, parting.at, parting.cycle_a, parting.cycle_b),
        (0, Parted::End, None, Some(1))
    );
    assert_eq!(
        (found.a.steps, found.a.cycle, found.a.block),
        (0, None, None)
    );
    assert!(Run::new(&empty).expect("a run").is_empty());
}

/// The trials of one task, each pair of them, beside a comparison of the messages as they were recorded.
#[test]
fn recorded_trials_part_where_their_messages_do() {
    use crate::real_data::{data, unpacked};
    let Some(root) = data() else { return };
    let log = unpacked(&root.join("tau-bench-airline/gpt-4o-airline.json.gz"));
    let recorded: Vec<Value> = serde_json::from_slice(&log).expect("a list of trials");
    let sessions = import(&log, &ImportOptions::default())
        .expect("sessions")
        .sessions;
    assert_eq!(recorded.len(), sessions.len());
    let runs: Vec<Run> = sessions
        .iter()
        .map(|session| Run::new(&session.session().expect("a session")).expect("a run"))
        .collect();
    let mut pairs = 0;
    for (a, first) in recorded.iter().enumerate() {
        for (b, second) in recorded.iter().enumerate().skip(a + 1) {
            if first["task_id"] != second["task_id"] {
                continue;
            }
            pairs += 1;
            let [messages_a, messages_b] = [first, second].map(said);
            let same = messages_a
                .iter()
                .zip(&messages_b)
                .take_while(|(a, b)| a == b)
                .count();
            let answers = |messages: &[Value]| {
                let answers = messages.iter().filter(|said| said[0] == "assistant");
                answers.count()
            };
            let found = runs[a].divergence(&runs[b], &Default::default());
            assert_eq!(found.equal, answers(&messages_a[..same]), "{a} and {b}");
            let rest = [messages_a.get(same), messages_b.get(same)];
            let at = found.parted.map(|parting| parting.at);
            let is_answer = |said: Option<&Value>| said.is_some_and(|said| said[0] == "assistant");
            let expected = match rest {
                [Some(_), Some(_)] if rest.iter().all(|said| is_answer(*said)) => {
                    Some(Parted::Answer)
                }
                [Some(_), Some(_)] => Some(Parted::Request),
                [None, None] => None,
                _ => Some(Parted::End),
            };
            assert_eq!(at, expected, "{a} and {b}");
        }
    }
    assert_eq!(pairs, 300);
}

/// Each message of a trial without the ids of calls.
fn said(trial: &Value) -> Vec<Value> {
    let messages = trial["traj"].as_array().expect("messages").iter();
    let call = |call: &Value| json!([call["function"]["name"], call["function"]["arguments"]]);
    let said = messages.map(|message| {
        let calls: Vec<Value> = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(call)
            .collect();
        json!([message["role"], message["content"], message["name"], calls])
    });
    said.collect()
}
