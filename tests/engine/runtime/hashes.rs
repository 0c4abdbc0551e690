//! Content hashes of many random nodes against Python's `hashlib` and `json`, as source 002
//! chapter 08 §2.1 computes them.

use std::io::Write as _;
use std::process::{Command, Stdio};

use pactql::{Engine, Session};

use super::draft::content_hash;
use crate::support::json::{Json, parse};
use crate::support::random::Rng;

/// How many nodes are compared.
const NODES: u64 = 4_000;

/// Prints the hash of each line's node.
const PROGRAM: &str = "
import hashlib, json, sys
for line in sys.stdin:
    node = json.loads(line)
    hashable = {
        'content': node.get('content', ''),
        'kind': node.get('kind', ''),
        'role': node.get('role', ''),
    }
    for name, value in node.items():
        if name.startswith('data_') or name.startswith('content_'):
            hashable[name] = value
    text = json.dumps(hashable, sort_keys=True, separators=(',', ':'), ensure_ascii=True)
    print(hashlib.sha256(text.encode('utf-8')).hexdigest())
";

/// Pieces of strings: every class of character that JSON writers treat differently.
const TEXTS: [&str; 16] = [
    "plain",
    "\"quoted\"",
    "back\\slash /",
    "\u{0}\u{1}\u{1f}",
    "\u{8}\u{c}\n\r\t",
    "\u{7f}",
    "\u{80}\u{9f}",
    "é ß",
    "\u{2028}\u{2029}",
    "日本語",
    "\u{ffff}\u{fffd}",
    "😀",
    "\u{10000}\u{10ffff}",
    "a\u{301}",
    "~ }",
    "",
];

/// Numbers as they are written in logs, and such that are rounded, underflow or overflow a double's
/// integers.
const NUMBERS: [&str; 30] = [
    "0",
    "-0",
    "-0.0",
    "0.0",
    "1",
    "1.0",
    "-1.50",
    "1e5",
    "1E5",
    "1e+2",
    "1e16",
    "1e-4",
    "1e-5",
    "1.5e-7",
    "5e-324",
    "4.9e-324",
    "2.2250738585072014e-308",
    "1e-320",
    "1.7976931348623157e308",
    "1e-400",
    "9007199254740993",
    "9007199254740993.0",
    "18446744073709551616",
    "-123456789012345678901234567890",
    "0.1",
    "0.30000000000000004",
    "773813143760026.25",
    "123456789012345680.0",
    "1234567890123456.7",
    "2.98023223876953125e-8",
];

fn string(rng: &mut Rng) -> String {
    let count = rng.below(4);
    let pieces = (0..count).map(|_| {
        if rng.chance(70) {
            (*rng.pick(&TEXTS)).to_owned()
        } else {
            char::from_u32(rng.below(0x11_0000) as u32).map_or("�".into(), String::from)
        }
    });
    pieces.collect()
}

fn number(rng: &mut Rng) -> Json {
    if rng.chance(50) {
        return Json::Num((*rng.pick(&NUMBERS)).to_owned());
    }
    // Bits of every kind, and short decimals.
    let bits = rng.range(0, i64::from(u32::MAX)) as u64;
    let double = f64::from_bits(bits << 32 | rng.range(0, i64::from(u32::MAX)) as u64);
    if rng.chance(60) && double.is_finite() {
        Json::Num(format!("{double:e}"))
    } else {
        Json::Num(format!(
            "{}",
            rng.range(-1_000_000, 1_000_000) as f64 / 1_000.0
        ))
    }
}

fn value(rng: &mut Rng, depth: usize) -> Json {
    match rng.below(if depth == 0 { 5 } else { 8 }) {
        0 => Json::Null,
        1 => Json::Bool(rng.chance(50)),
        2 | 3 => Json::Str(string(rng)),
        4 => number(rng),
        5 | 6 => Json::Obj(members(rng, depth - 1, "")),
        _ => {
            let count = rng.below(4);
            Json::List((0..count).map(|_| value(rng, depth - 1)).collect())
        }
    }
}

fn members(rng: &mut Rng, depth: usize, prefix: &str) -> Vec<(String, Json)> {
    let mut found: Vec<(String, Json)> = Vec::new();
    for _ in 0..rng.below(4) {
        let name = format!("{prefix}{}", string(rng));
        if !found.iter().any(|(other, _)| *other == name) {
            found.push((name, value(rng, depth)));
        }
    }
    found
}

fn node(rng: &mut Rng) -> Json {
    let mut found = Vec::new();
    for name in ["role", "kind"] {
        match rng.below(4) {
            0 => {}
            1 => found.push((name.to_owned(), Json::Null)),
            _ => found.push((name.to_owned(), Json::Str(string(rng)))),
        }
    }
    if rng.chance(85) {
        found.push(("content".to_owned(), value(rng, 3)));
    }
    found.extend(members(rng, 2, "data_"));
    let custom = members(rng, 2, "content_").into_iter();
    found.extend(custom.filter(|(name, _)| name != "content_hash"));
    // What a hash leaves out.
    found.push(("priority".to_owned(), Json::int(rng.range(-3, 3))));
    found.push(("data".to_owned(), Json::int(1)));
    found.push(("contents".to_owned(), Json::int(2)));
    rng.shuffle(&mut found);
    Json::Obj(found)
}

/// The hashes by Python, or `None` where it is not installed.
fn by_python(lines: &str) -> Option<Vec<String>> {
    let version = Command::new("python3").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut child = Command::new("python3")
        .args(["-c", PROGRAM])
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(lines.as_bytes()).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn content_hashes_are_those_of_an_installed_python() {
    let mut rng = Rng::new(8);
    let nodes: Vec<Json> = (0..NODES).map(|_| node(&mut rng)).collect();
    let written: Vec<String> = nodes.iter().map(Json::write).collect();
    let Some(expected) = by_python(&(written.join("\n") + "\n")) else {
        println!("SKIPPED: python3 is not installed");
        return;
    };
    assert_eq!(expected.len(), nodes.len());
    let children: Vec<String> = written
        .iter()
        .enumerate()
        .map(|(at, text)| format!("{{\"id\":\"n{at}\",\"offset\":{at},{}", &text[1..]))
        .collect();
    let document = format!("{{\"root\":{{\"children\":[{}]}}}}", children.join(","));
    let session = Session::from_slice(document.as_bytes()).unwrap();
    let engine = Engine::new();
    let rows = engine.rows(&session, "*[priority!=null]").unwrap();
    let mut compared = 0;
    for row in &rows {
        let Some(at) = row
            .id()
            .strip_prefix('n')
            .and_then(|at| at.parse::<usize>().ok())
        else {
            continue;
        };
        let hash = row.content_hash();
        assert_eq!(hash, expected[at], "{}", written[at]);
        let Json::Obj(members) = &nodes[at] else {
            panic!("an object")
        };
        let members = members.iter().cloned().collect();
        assert_eq!(content_hash(&members), expected[at], "{}", written[at]);
        compared += 1;
    }
    assert_eq!(compared, NODES);
}

/// Source 002 chapter 08 §7.1: serializing twice gives the same bytes, and reading them too.
#[test]
fn serializations_are_stable() {
    let document = parse(
        r#"{"cycle":1,"root":{"id":"r","children":[{"id":"x","offset":2,"content":"é"},{"id":"y","content":1.0}]}}"#,
    );
    let session = Session::from_slice(document.write().as_bytes()).unwrap();
    let written = |session: &Session| {
        let history = session.history();
        let mut out = Vec::new();
        pactql::logs::write_document(&history.committed()[0], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let first = written(&session);
    assert_eq!(first, written(&session));
    let again = Session::from_slice(first.as_bytes()).unwrap();
    assert_eq!(first, written(&again));
}
