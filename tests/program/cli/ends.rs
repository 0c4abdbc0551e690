//! How files of sessions end: not begun, cut where a line ends, closed.

use super::{Scratch, fails, pactql};

/// A file without a byte is answered alike by every command.
#[test]
fn a_file_without_a_byte_is_the_same_error_everywhere() {
    let scratch = Scratch::new("ends-empty");
    let empty = scratch.write("empty.jsonl", "");
    let conditions = scratch.write("conditions", "some @t0 *\n");
    let out = scratch.path("out.jsonl");
    for command in [
        &["select", "SESSION", "@t0 *"][..],
        &["select", "-e", "@t0 *", "SESSION"],
        &["explain", "SESSION", "@t0 *"],
        &["show", "SESSION"],
        &["steps", "SESSION"],
        &["steps", "--changes", "SESSION"],
        &["sessions", "-v", "SESSION"],
        &["verify", "SESSION"],
        &["tokens", "SESSION"],
        &["prefix", "SESSION"],
        &["tokens", "--unused", "SESSION"],
        &["tokens", "--duplicates", "SESSION"],
        &["grep", "x", "SESSION"],
        &["top", "SESSION", ".cb"],
        &["diff", "SESSION", "@t-1", "@t0"],
        &["blame", "SESSION", "x"],
        &["render", "SESSION"],
        &["export", "SESSION"],
        &["export", "SESSION", "--jsonl"],
        &["share", "SESSION", "--receipt"],
        &["bench", "SESSION", "-e", ".cb"],
        &["assert", &conditions, "SESSION"],
        &["edit", "add", "SESSION", "^ah", "block"],
        &["edit", "update", "SESSION", ".cb", "ttl=1"],
        &["edit", "remove", "SESSION", ".cb"],
        &["edit", "move", "SESSION", ".cb", "^ah"],
        &["edit", "replace", "SESSION", ".cb", "block"],
        &["edit", "compact", "SESSION", ".cb", "block"],
        &["edit", "commit", "SESSION"],
        &["edit", "discard", "SESSION"],
        &["edit", "fork", "SESSION", "@t0", "-o", &out],
        &["edit", "refs", "SESSION"],
        &["edit", "attempts", "SESSION"],
        &["import", "SESSION", "-o", &out],
    ] {
        let command = command.iter().map(|word| word.replace("SESSION", &empty));
        let command: Vec<String> = command.collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let said = fails(&command, 5, "error[E_INPUT]:");
        let first = said.lines().next().unwrap_or_default();
        assert_eq!(
            first,
            format!("error[E_INPUT]: {empty} is empty"),
            "{command:?}"
        );
        assert!(said.contains("help: expected "), "{command:?}: {said}");
    }
}

/// A session that was cut where a line ends looks whole, unless it has its closing line.
#[test]
fn a_cut_session_is_noticed_by_its_closing_line() {
    let scratch = Scratch::new("ends-cut");
    let sealed = scratch.path("sealed.jsonl");
    let session = "fixtures/support-agent.jsonl";
    let made = pactql(&["export", session, "--jsonl", "--seal", "-o", &sealed]);
    assert_eq!(made.code, 0, "{}", made.err);
    let text = std::fs::read_to_string(&sealed).expect("a file");
    let plain = pactql(&["export", session, "--jsonl"]).out;
    let closing = text
        .strip_prefix(&plain)
        .expect("the same lines before the closing line");
    let lines = plain.lines().count();
    assert!(
        closing.starts_with(&format!("{{\"seal\":{{\"lines\":{lines},\"sha256\":\"")),
        "{closing}"
    );
    // It is no snapshot.
    let answer = |session: &str| pactql(&["select", session, "@* .cb", "--format", "json"]).out;
    assert_eq!(answer(&sealed), answer(session));
    let again = pactql(&["export", &sealed, "--jsonl", "--seal"]).out;
    assert_eq!(again, text);
    for (name, content, end, said) in [
        (
            "whole.jsonl",
            text.clone(),
            "sealed",
            "with a closing line, which fits: nothing is missing",
        ),
        (
            "plain.jsonl",
            plain.clone(),
            "line feed",
            "with a line feed; lines could be missing",
        ),
        (
            "open.jsonl",
            plain.trim_end().to_owned(),
            "no line feed",
            "without a line feed",
        ),
    ] {
        let file = scratch.write(name, &content);
        for command in [&["verify"][..], &["sessions", "-v"]] {
            let run = |format| pactql(&[command, &[&*file, "--format", format]].concat());
            let json = run("json");
            assert_eq!(json.code, 0, "{command:?} {name}: {}", json.err);
            let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
            assert_eq!(json["end"], end, "{command:?} {name}");
            let text = run("text").out;
            assert!(text.contains(said), "{command:?} {name}: {text}");
        }
    }
    // Every command notices a closing line that does not fit.
    let last = plain.trim_end().rfind('\n').expect("lines") + 1;
    let missing = format!("{}{closing}", &plain[..last]);
    let changed = text.replacen("refund", "return", 1);
    let appended = format!("{text}{}\n", plain.lines().next().expect("a line"));
    for (name, content, message) in [
        ("missing.jsonl", missing, "the file was sealed with"),
        (
            "changed.jsonl",
            changed,
            "the file was changed after it was sealed",
        ),
        (
            "appended.jsonl",
            appended,
            "the closing line of a sealed file is its last line",
        ),
    ] {
        let file = scratch.write(name, &content);
        for command in [
            &["verify", &file][..],
            &["sessions", "-v", &file],
            &["select", &file, "@t0 *"],
        ] {
            fails(command, 5, message);
        }
    }
    fails(
        &["export", session, "--seal"],
        1,
        "`--seal` needs `--jsonl`",
    );
}

const PROMPT: &str = r#"{"timestamp":"2026-03-01T10:00:07Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"And now?"}]}}"#;
const FAILED: &str = r#"{"timestamp":"2026-03-01T10:00:09Z","type":"event_msg","payload":{"type":"error","message":"usage limit reached"}}"#;
const REPLIED: &str = r#"{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"s1","cwd":"/work"}}
{"timestamp":"2026-03-01T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Open the vents."}]}}
{"timestamp":"2026-03-01T10:00:03Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"They are open."}]}}
"#;

/// A call that failed after the last reply is in the lists of steps, and in the ends of runs.
#[test]
fn what_came_after_the_last_reply_is_said() {
    let scratch = Scratch::new("ends-after");
    let replied = scratch.write("replied.jsonl", REPLIED);
    let failed = scratch.write("failed.jsonl", format!("{REPLIED}{PROMPT}\n{FAILED}\n"));
    let said = "failed 1× (usage limit reached); no reply to 1 text";
    for command in [&["steps", &failed][..], &[&failed]] {
        let out = pactql(command).out;
        let last = out.lines().last().unwrap_or_default();
        assert!(last.starts_with("working") && last.ends_with(said), "{out}");
    }
    let out = pactql(&["diff", &replied, &failed]).out;
    assert!(out.contains("step 2 (working beside end)"), "{out}");
    let end = format!("failed.jsonl ends in the working state after 1 step: {said}\n");
    assert!(out.contains(&end), "{out}");
    let json = pactql(&["steps", &failed, "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let last = &json["steps"][1];
    assert_eq!(
        (&last["label"], &last["failed"]),
        (&"working".into(), &1.into())
    );
    assert_eq!(last["events"][1]["event"], "no_reply");
    assert_eq!(
        last["events"][1]["kinds"][0],
        serde_json::json!(["text", 1])
    );
}

/// A session of the runtime has the model of its request, and the first words of the user.
#[test]
fn sessions_of_the_runtime_have_a_model_and_a_title() {
    let scratch = Scratch::new("ends-listed");
    let block =
        r#"{"id":"u","nodeType":"cb","role":"user","kind":"text","content":"Is IC 204\n late?"}"#;
    let head = format!(r#"{{"id":"^ah","nodeType":"^ah","children":[{block}]}}"#);
    let document = format!(
        r#"{{"cycle":1,"meta":{{"request":{{"model":"gpt-4o"}}}},"root":{{"children":[{head}]}}}}"#
    );
    let session = scratch.write("runtime.jsonl", &document);
    let json = pactql(&["sessions", &session, "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["title"], &json["model"]),
        (&"Is IC 204 late?".into(), &"gpt-4o".into())
    );
    // Its own title stands.
    let titled = document.replace(r#""meta":{"#, r#""meta":{"title":"Trains","model":"m","#);
    let session = scratch.write("titled.jsonl", &titled);
    let json = pactql(&["sessions", &session, "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["title"], &json["model"]),
        (&"Trains".into(), &"m".into())
    );
}
