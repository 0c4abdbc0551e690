//! The agent of `examples`: it runs, and its session answers the questions of the README.

use super::{Scratch, answer, fails};

#[path = "../../../examples/agent.rs"]
#[expect(dead_code, reason = "the test calls `run`, not `main`")]
mod example;

#[test]
fn the_session_of_the_example_answers_questions() {
    let scratch = Scratch::new("agent");
    let path = &*scratch.path("session.jsonl");
    let mut out = Vec::new();
    example::run(path, &mut out).expect("the example runs");
    assert_eq!(
        String::from_utf8(out).expect("UTF-8"),
        "\
Which tools did the last three turns call?
  cb:c5-2: {\"about\":\"L-88\"}
What was put in front of the turn in progress?
  cb:c7-2: 5.1: refunds take five working days.
When did retrieved documents come and go?
  @c5: + -cb:c3-2
  @c3: +cb:c3-2 -cb:c1-7
Which requests were sent, and how did they end?
  a6-1 completed
  a5-1 completed
  a4-1 completed
  a3-2 completed
  a3-1 canceled
  a2-1 completed
  a1-1 completed
"
    );
    assert!(answer(&["verify", path, "--format", "json"]).contains("\"valid\":true"));
    for (selector, ids) in [
        ("@t0 ^seq .mt:depth(1-3) .cb[kind='call']", "cb:c5-2\n"),
        ("^ah > .cb[offset<0]", "cb:c7-2\n"),
        ("@t0 #rule", "cb:c1-4\n"),
        ("@t0 ^seq > *", "cb:c6-3\nmt:3\nmt:4\nmt:5\nmt:6\n"),
        ("@c2 .cb[role='assistant'][content~'thirty']", "cb:c2-2\n"),
    ] {
        assert_eq!(
            answer(&["select", path, selector, "--format", "ids"]),
            ids,
            "{selector}"
        );
    }
    let stopped = ["edit", "attempts", path, "--status", "canceled"];
    assert_eq!(
        answer(&stopped),
        "attempt  status    provider  model\na3-1     canceled  openai    scripted-1\n"
    );
    // The request of cycle 2 as it was sent: before the reply, with a turn that is a summary now.
    let sent = answer(&["render", path, "--request", "--at", "@c2", "--as", "openai"]);
    assert!(
        sent.contains("The brakes squeal.") && !sent.contains("thirty"),
        "{sent}"
    );
    assert!(sent.contains("\"model\":\"scripted-1\""), "{sent}");
    fails(&["edit", "remove", path, "#rule"], 2, "E_PINNED");
}
