//! Content diffs: applied to the older content, they give the newer one.

use std::io::Write as _;
use std::process::Command;

use pactql::internals::history::{
    ContentDiff, ContentMode, ContentOptions, Labels, Material, Session, TokenHunk, content_diff,
    materialize,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A session in which the fields of the block `b` change.
fn session(older: &Value, newer: &Value) -> Session {
    let document = |cycle: i64, fields: &Value| {
        let mut block = json!({"id": "b", "nodeType": "cb", "role": "user"});
        for (name, value) in fields.as_object().expect("fields") {
            block[name] = value.clone();
        }
        json!({"cycle": cycle, "root": {"id": "r", "children": [
            {"id": "ah", "nodeType": "^ah", "children": [block]}]}})
    };
    let text = format!("{}\n{}\n", document(1, older), document(2, newer));
    Session::from_slice(text.as_bytes()).expect("a session")
}

fn diff_fields(older: &Value, newer: &Value, options: &ContentOptions) -> ContentDiff {
    let session = session(older, newer);
    let history = session.history();
    let [older, newer] = [0, 1].map(|at| history.committed()[at].find("b").expect("the block"));
    let labels = Labels {
        newer: "@t0",
        older: "@t-1",
    };
    content_diff(newer, older, options, labels)
}

fn diff(older: &Value, newer: &Value, mode: ContentMode, context_lines: usize) -> ContentDiff {
    let options = ContentOptions::default()
        .mode(mode)
        .context_lines(context_lines);
    diff_fields(
        &json!({"content": older}),
        &json!({"content": newer}),
        &options,
    )
}

/// Applies a unified diff, checking every line of it against the text.
fn apply_unified(older: &str, patch: &str) -> String {
    let source: Vec<&str> = older.split_inclusive('\n').collect();
    let mut out = String::new();
    let mut at = 0;
    let mut counts = (0, 0);
    let mut rest = patch.split_inclusive('\n').skip(2).peekable();
    while let Some(line) = rest.next() {
        if let Some(header) = line.strip_prefix("@@ -").filter(|_| counts == (0, 0)) {
            let header = header.strip_suffix(" @@\n").expect("a header");
            let (old, new) = header.split_once(" +").expect("two ranges");
            let range = |text: &str| match text.split_once(',') {
                Some((start, length)) => (start.parse().unwrap(), length.parse().unwrap()),
                None => (text.parse::<usize>().unwrap(), 1_usize),
            };
            let (start, length) = range(old);
            let start = if length == 0 { start } else { start - 1 };
            out.extend(source[at..start].iter().copied());
            at = start;
            counts = (length, range(new).1);
            continue;
        }
        let body = &line[1..];
        let body = if rest.peek().is_some_and(|next| next.starts_with('\\')) {
            rest.next();
            body.strip_suffix('\n').expect("a line feed to take back")
        } else {
            body
        };
        let mark = line.as_bytes()[0];
        if mark != b'+' {
            assert_eq!(source[at], body);
            at += 1;
            counts.0 -= 1;
        }
        if mark != b'-' {
            out.push_str(body);
            counts.1 -= 1;
        }
    }
    assert_eq!(counts, (0, 0), "{patch}");
    out.extend(source[at..].iter().copied());
    out
}

fn apply_tokens(older: &str, hunks: &[TokenHunk]) -> String {
    let mut text = older.to_owned();
    for hunk in hunks.iter().rev() {
        let range = hunk.older.start..hunk.older.start + hunk.older.text.len();
        assert_eq!(text[range.clone()], hunk.older.text);
        text.replace_range(range, &hunk.newer.text);
    }
    text
}

/// Texts that end in odd ways.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-c]{0,3}\n",
        1 => "[ab]{1,2}\r\n",
        1 => Just("\n".to_owned()),
        1 => "[ab]\r[ab]",
        2 => "[é👍\u{301}ｱ\u{2028}\t ]{1,4}",
        1 => Just("@@ -1 +1 @@\n".to_owned()),
        1 => Just("-- \n".to_owned()),
        1 => Just("\\ No newline at end of file\n".to_owned()),
        2 => "[a-z]{1,5}[ ,.]",
    ];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// A text and a changed version of it.
fn texts() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        (text(), text()),
        (text(), text(), text()).prop_map(|(a, b, c)| (format!("{a}{b}{c}"), format!("{a}{c}"))),
        (text(), text(), text()).prop_map(|(a, b, c)| (format!("{a}{c}"), format!("{a}{b}{c}"))),
        text().prop_map(|a| (a.clone(), a)),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-64_i32..64).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[a~/é\"\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map("[a-c~/]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(crate::support::random::property(4_000))]

    #[test]
    fn unified_diffs_apply((older, newer) in texts(), context in 0_usize..5) {
        let told = diff(&older.clone().into(), &newer.clone().into(), ContentMode::Unified, context);
        let patch = told.diff.expect("a diff");
        prop_assert_eq!(told.summary.identical, older == newer);
        prop_assert_eq!(patch.is_empty(), older == newer);
        if !patch.is_empty() {
            prop_assert!(patch.starts_with("--- @t-1/b\n+++ @t0/b\n@@ -"));
            prop_assert_eq!(apply_unified(&older, &patch), newer);
        }
    }

    #[test]
    fn word_hunks_apply((older, newer) in texts()) {
        let told = diff(&older.clone().into(), &newer.clone().into(), ContentMode::Tokens, 3);
        let hunks = told.hunks.expect("hunks");
        prop_assert_eq!(hunks.is_empty(), older == newer);
        prop_assert_eq!(apply_tokens(&older, &hunks), newer.clone());
        for hunk in &hunks {
            let range = hunk.newer.start..hunk.newer.start + hunk.newer.text.len();
            prop_assert_eq!(&newer[range], &*hunk.newer.text);
            prop_assert_ne!(&hunk.older.text, &hunk.newer.text);
        }
    }

    #[test]
    fn json_patches_apply(older in json_value(), newer in json_value(), as_text in any::<bool>()) {
        let stored = |value: &Value| if as_text { Value::from(value.to_string()) } else { value.clone() };
        let told = diff(&stored(&older), &stored(&newer), ContentMode::JsonPatch, 3);
        let nested = |value: &Value| value.is_object() || value.is_array();
        if nested(&older) && nested(&newer) {
            let patch = told.patch.expect("a patch");
            let patch: json_patch::Patch = serde_json::from_value(patch).expect("operations");
            let mut patched = older;
            json_patch::patch(&mut patched, &patch).expect("it applies");
            prop_assert_eq!(patched, newer);
        } else {
            prop_assert_eq!(told.mode, ContentMode::Unified);
            prop_assert!(told.patch.is_none() && told.diff.is_some());
        }
    }
}

#[test]
fn patch_applies_unified_diffs() {
    if Command::new("patch").arg("--version").output().is_err() {
        println!("skipped: there is no patch(1) here");
        return;
    }
    let folder = std::env::temp_dir().join(format!("pactql-patch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let long = (0..200).map(|n| format!("line {n}\n")).collect::<String>();
    for (case, (older, newer)) in [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a", "a\n"),
        ("a\n", "a"),
        ("a\nb", "a\nc"),
        ("", "new\n"),
        ("", "new"),
        ("gone\n", ""),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("a\rb\nc", "a\rd\nc"),
        ("é\n👍\n", "é\n👎\n"),
        ("-- \n++ \n", "++ \n-- \n"),
        (
            &*long,
            &long.replace("line 7\n", "").replace("line 150", "150"),
        ),
        (&*long, &long.replace("line 1", "x")),
    ]
    .into_iter()
    .enumerate()
    {
        for context in [0, 1, 3] {
            let told = diff(&older.into(), &newer.into(), ContentMode::Unified, context);
            let [from, to] = ["older", "newer"].map(|name| folder.join(format!("{name}{case}")));
            std::fs::write(&from, older).unwrap();
            let mut child = Command::new("patch")
                .args(["--binary", "-s", "-o"])
                .args([&to, &from])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(told.diff.unwrap().as_bytes()).unwrap();
            drop(stdin);
            assert!(child.wait().unwrap().success(), "{older:?} {newer:?}");
            assert_eq!(std::fs::read_to_string(&to).unwrap(), newer);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_shape_is_that_of_the_source() {
    let older = json!({"content": "one\ntwo\nthree", "content_mime": "text/plain"});
    let newer = json!({"content": "one\n2\nthree", "content_mime": "text/plain"});
    let told = |mode| {
        let options = ContentOptions::default().mode(mode);
        serde_json::to_string(&diff_fields(&older, &newer, &options)).unwrap()
    };
    let start = r#""mime":"text/plain","summary":{"bytesNewer":11,"bytesOlder":13,"identical":false,"truncated":false},"#;
    assert_eq!(
        told(ContentMode::Unified),
        format!(
            r#"{{"mode":"unified",{start}"diff":"--- @t-1/b\n+++ @t0/b\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\\ No newline at end of file\n"}}"#
        )
    );
    assert_eq!(
        told(ContentMode::Tokens),
        format!(
            r#"{{"mode":"tokens",{start}"hunks":[{{"older":{{"start":4,"text":"two"}},"newer":{{"start":4,"text":"2"}}}}]}}"#
        )
    );
    let patched = diff(
        &json!({"a": 1, "b": [1, 2]}),
        &json!({"b": [1, 2, 3], "a": 1}),
        ContentMode::JsonPatch,
        3,
    );
    assert_eq!(
        serde_json::to_string(&patched).unwrap(),
        r#"{"mode":"jsonpatch","summary":{"bytesNewer":19,"bytesOlder":17,"identical":false,"truncated":false},"patch":[{"op":"add","path":"/b/2","value":3}]}"#
    );
}

#[test]
fn json_that_a_patch_would_not_keep_is_compared_as_text() {
    for (older, newer) in [
        // Numbers that the JSON library cannot represent.
        (
            r#"{"n":18446744073709551617}"#,
            r#"{"n":18446744073709551618}"#,
        ),
        // Equal keys.
        (r#"{"n":1,"n":2}"#, r#"{"n":2}"#),
        // A text that is not JSON.
        ("[1]", "[1"),
        // Deeper than the JSON library reads.
        (&"[".repeat(200), "[]"),
    ] {
        let told = diff(&older.into(), &newer.into(), ContentMode::JsonPatch, 3);
        assert_eq!(told.mode, ContentMode::Unified, "{older}");
        assert!(told.patch.is_none() && told.diff.is_some());
    }
    // An object is not equal to a text that contains one.
    let told = diff(
        &json!({"a": 1}),
        &json!("{\"a\":1}"),
        ContentMode::JsonPatch,
        3,
    );
    assert_eq!(told.mode, ContentMode::Unified);
    assert!(!told.summary.identical);
}

#[test]
fn long_contents_are_not_compared() {
    let options = ContentOptions::default().max_bytes(10);
    let told = diff_fields(
        &json!({"content": "short"}),
        &json!({"content": "much longer"}),
        &options,
    );
    assert!(told.summary.truncated && told.diff.is_none());
    assert_eq!(told.summary.bytes_newer, 11);
}

#[test]
fn large_contents_without_a_common_line_end_soon() {
    let lines = |salt: u64| -> String {
        (0..120_000_u64)
            .map(|n| {
                format!(
                    "{:x}\n",
                    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 4_096 + salt
                )
            })
            .collect()
    };
    let (older, newer) = (lines(0), lines(7));
    let told = diff(
        &older.clone().into(),
        &newer.clone().into(),
        ContentMode::Unified,
        3,
    );
    assert_eq!(apply_unified(&older, &told.diff.unwrap()), newer);
}

#[test]
fn ids_cannot_break_a_header() {
    let document = |cycle: i64, content: &str| {
        json!({"cycle": cycle, "root": {"id": "r", "children": [
            {"id": "ah", "nodeType": "^ah", "children": [
                {"id": "x\n+++ y\t", "nodeType": "cb", "content": content}]}]}})
    };
    let text = format!("{}\n{}\n", document(1, "a"), document(2, "b"));
    let session = Session::from_slice(text.as_bytes()).unwrap();
    let history = session.history();
    let [older, newer] = [0, 1].map(|at| history.committed()[at].find("x\n+++ y\t").unwrap());
    let labels = Labels {
        newer: "@t0",
        older: "@t-1",
    };
    let told = content_diff(newer, older, &ContentOptions::default(), labels);
    let text = told.diff.unwrap();
    assert!(
        text.starts_with("--- @t-1/x\\n+++ y\\t\n+++ @t0/x\\n+++ y\\t\n@@"),
        "{text}"
    );
}

#[test]
fn materialized_fields_have_one_order() {
    let session = session(
        &json!({"content": "é", "content_encoding": "utf-8"}),
        &json!({"content": {"b": 1, "a": 2}, "content_hash": "kept"}),
    );
    let history = session.history();
    let [older, newer] = [0, 1].map(|at| history.committed()[at].find("b").unwrap());
    let fields = [
        Material::ContentHash,
        Material::Encoding,
        Material::Content,
        Material::Content,
    ];
    let told = serde_json::to_string(&materialize(newer, older, &fields)).unwrap();
    let hash = older.content_hash();
    assert_eq!(
        told,
        format!(
            r#"{{"from":{{"content":{{"a":2,"b":1}},"encoding":null,"content_hash":"kept"}},"to":{{"content":"é","encoding":"utf-8","content_hash":"{hash}"}}}}"#
        )
    );
    assert_eq!(Material::parse("mime"), Some(Material::Mime));
    assert_eq!(Material::parse("hash"), None);
    assert_eq!(ContentMode::parse("tokens"), Some(ContentMode::Tokens));
    assert_eq!(ContentMode::parse(""), None);
}
