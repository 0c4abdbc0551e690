//! Sessions as files and streams, the order of their documents, and differences between them
//! (RUNTIME §1).

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::io::Write;
use std::path::{Path, PathBuf};

use pactql::tree::source::{Limits, SourceError, read_source, read_stream};
use pactql::tree::{Document, Header, Tree, arrange, read_document, read_lines};

fn documents(lines: &[&str]) -> Vec<Document> {
    match read_lines(lines.join("\n").as_bytes()) {
        Ok(documents) => documents,
        Err(error) => panic!("{error}"),
    }
}

/// The headers and the ids of every tree, in order; or the faults.
fn run(documents: Vec<Document>) -> Result<Vec<(Header, String)>, String> {
    arrange(documents)
        .map_err(|error| error.to_string())?
        .map(|item| match item {
            Ok((header, tree)) => Ok((header, outline(&tree))),
            Err(error) => Err(error.to_string()),
        })
        .collect()
}

/// Ids in document order, with brackets around children.
fn outline(tree: &Tree) -> String {
    let mut out = String::new();
    let mut level = 0;
    for (index, row) in (0u32..).zip(&tree.rows) {
        while row.level < level {
            out.push(')');
            level -= 1;
        }
        if row.level > level {
            out.push('(');
            level += 1;
        } else if index > 0 {
            out.push(' ');
        }
        out += tree.id(index);
    }
    out + &")".repeat(level as usize)
}

fn cycles(lines: &[&str]) -> Result<Vec<i64>, String> {
    let found = run(documents(lines))?;
    Ok(found.into_iter().map(|(header, _)| header.cycle).collect())
}

#[test]
fn cycles_are_given_or_counted() {
    let cases: &[(&[&str], &[i64])] = &[
        (&[r#"{"root":{}}"#, r#"{"root":{}}"#], &[1, 2]),
        (
            &[
                r#"{"cycle":5,"root":{}}"#,
                r#"{"root":{}}"#,
                r#"{"cycle":3,"root":{}}"#,
                r#"{"root":{}}"#,
            ],
            &[3, 4, 5, 6],
        ),
        (
            &[r#"{"working":true,"root":{}}"#, r#"{"cycle":9,"root":{}}"#],
            &[9, 0],
        ),
        (
            &[
                r#"{"root":{}}"#,
                r#"{"working":true,"cycle":1,"root":{}}"#,
                r#"{"root":{}}"#,
            ],
            &[1, 2, 0],
        ),
        (&[], &[]),
    ];
    for (lines, expected) in cases {
        assert_eq!(cycles(lines).as_deref(), Ok(*expected), "{lines:?}");
    }
    let cases: &[(&[&str], &str)] = &[
        (
            &[
                r#"{"cycle":2,"root":{}}"#,
                r#"{"cycle":1,"root":{}}"#,
                r#"{"root":{}}"#,
            ],
            "3:1: $.cycle: a second document of cycle 2, the first is in line 1",
        ),
        (
            &[
                r#"{"working":true,"root":{}}"#,
                r#"{"working":true,"root":{}}"#,
            ],
            "2:1: $.working: a second working state, the first is in line 1",
        ),
        (
            &[
                r#"{"cycle":9223372036854775807,"root":{}}"#,
                r#"{"root":{}}"#,
            ],
            "2:1: $.cycle: no cycle follows the previous document's",
        ),
        (
            &[r#"{"base":1}"#, r#"{"root":{}}"#, r#"{"base":7}"#],
            "1:1: $.base: no earlier document has cycle 1\n3:1: $.base: no earlier document has cycle 7",
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(cycles(lines), Err((*expected).to_owned()), "{lines:?}");
    }
}

const BASE: &str = r#"{"cycle":1,"spec_version":"x","root":{"id":"r","children":[{"id":"q","nodeType":"^seq","children":[
    {"id":"t1","children":[{"id":"c1","offset":0,"children":[{"id":"b1"},{"id":"b2","offset":2}]}]},{"id":"t2"}]},{"id":"h","nodeType":"^ah"}]}}"#;

fn with_delta(delta: &str) -> Result<Vec<(Header, String)>, String> {
    let base = BASE.replace('\n', "");
    run(documents(&[&base, delta]))
}

#[test]
fn differences_apply() {
    let cases = [
        (r#"{"base":1}"#, "r(q(t1(c1(b1 b2)) t2) h)"),
        (
            r#"{"base":1,"replace":[{"id":"n","parent_id":"c1","offset":1}]}"#,
            "r(q(t1(c1(b1 n b2)) t2) h)",
        ),
        // A whole subtree, children before parents.
        (
            r#"{"base":1,"replace":[{"id":"y","parent_id":"x"},{"id":"x","parent_id":"h"}]}"#,
            "r(q(t1(c1(b1 b2)) t2) h(x(y)))",
        ),
        // Moved with what is below it.
        (
            r#"{"base":1,"replace":[{"id":"c1","parent_id":"t2"}]}"#,
            "r(q(t1 t2(c1(b1 b2))) h)",
        ),
        // Replaced in place: new headers, so a new order.
        (
            r#"{"base":1,"replace":[{"id":"b1","parent_id":"c1","offset":9}]}"#,
            "r(q(t1(c1(b2 b1)) t2) h)",
        ),
        (r#"{"base":1,"remove":["t1"]}"#, "r(q(t2) h)"),
        (r#"{"base":1,"remove":["t1","b1"]}"#, "r(q(t2) h)"),
        // First in, then out: what was moved out of a removed node stays.
        (
            r#"{"base":1,"replace":[{"id":"b1","parent_id":"h"}],"remove":["c1"]}"#,
            "r(q(t1 t2) h(b1))",
        ),
        (
            r#"{"base":1,"replace":[{"id":"n","parent_id":"c1"}],"remove":["c1"]}"#,
            "r(q(t1 t2) h)",
        ),
        (
            r#"{"base":1,"replace":[{"id":"r","key":"new"}]}"#,
            "r(q(t1(c1(b1 b2)) t2) h)",
        ),
        // Two that trade places.
        (
            r#"{"base":1,"replace":[{"id":"b1","parent_id":"t1"},{"id":"c1","parent_id":"b1"}]}"#,
            "r(q(t1(b1(c1(b2))) t2) h)",
        ),
    ];
    for (delta, expected) in cases {
        let found = with_delta(delta).unwrap_or_else(|error| panic!("{delta}\n{error}"));
        assert_eq!(found[1].1, expected, "{delta}");
        assert_eq!(found[1].0.spec_version.as_deref(), Some("\"x\""));
        assert_eq!(found[1].0.cycle, 2);
    }
}

#[test]
fn differences_that_cannot_be() {
    let cases = [
        (
            r#"{"base":1,"remove":["zz"]}"#,
            "2:1: $.remove[0]: no node has the id `zz`",
        ),
        (
            r#"{"base":1,"remove":["r"]}"#,
            "2:1: $.remove[0]: the root cannot be removed",
        ),
        (
            r#"{"base":1,"replace":[{"id":"n"}]}"#,
            "2:1: $.replace[0]: a node of `replace` needs a parent_id",
        ),
        (
            r#"{"base":1,"replace":[{"id":"n","parent_id":"zz"}]}"#,
            "2:1: $.replace[0].parent_id: no node has the id `zz`",
        ),
        (
            r#"{"base":1,"replace":[{"id":"r","parent_id":"q"}]}"#,
            "2:1: $.replace[0].parent_id: the root has no parent",
        ),
        (
            r#"{"base":1,"replace":[{"id":"c1","parent_id":"b1"}]}"#,
            "2:1: $.replace[0].parent_id: the node would hang below itself",
        ),
        (
            r#"{"base":1,"replace":[{"id":"n","parent_id":"n"}]}"#,
            "2:1: $.replace[0].parent_id: the node would hang below itself",
        ),
        (
            r#"{"base":1,"replace":[{"id":"h2","parent_id":"r","nodeType":"^ah"}]}"#,
            "2:1: $.replace[0].nodeType: a second ^ah, the first is at $.base: the node `h`.nodeType",
        ),
        (
            r#"{"base":1,"replace":[{"id":"c2","parent_id":"t1","nodeType":"mc","offset":0}]}"#,
            "2:1: $.replace[0].offset: a second container at offset 0, the first is at $.base: the node `c1`.offset",
        ),
    ];
    for (delta, expected) in cases {
        assert_eq!(
            with_delta(delta).err().as_deref(),
            Some(expected),
            "{delta}"
        );
    }
}

#[test]
fn differences_chain_and_branch_in_any_cycle_order() {
    let lines = [
        r#"{"cycle":5,"root":{"children":[{"id":"a"}]}}"#,
        r#"{"cycle":3,"base":5,"replace":[{"id":"b","parent_id":"^root"}]}"#,
        r#"{"cycle":4,"base":3,"replace":[{"id":"c","parent_id":"b"}]}"#,
        r#"{"cycle":1,"base":4,"remove":["a"]}"#,
        r#"{"working":true,"base":5,"replace":[{"id":"w","parent_id":"a"}]}"#,
    ];
    let found: Vec<(i64, String)> = run(documents(&lines))
        .expect("all bases are there")
        .into_iter()
        .map(|(header, outline)| (header.cycle, outline))
        .collect();
    let expected = [
        (1, "^root(b(c))"),
        (3, "^root(a b)"),
        (4, "^root(a b(c))"),
        (5, "^root(a)"),
        (0, "^root(a(w))"),
    ];
    assert_eq!(found.len(), expected.len());
    for ((cycle, outline), (wanted, tree)) in found.iter().zip(expected) {
        assert_eq!((*cycle, &**outline), (wanted, tree));
    }
}

#[test]
fn a_long_chain_does_not_recurse() {
    let mut lines = vec![r#"{"root":{}}"#.to_owned()];
    for cycle in 1..20_000 {
        lines.push(format!(r#"{{"base":{cycle}}}"#));
    }
    // The newest first, so that the whole chain is needed at once.
    lines.push(r#"{"cycle":-1,"base":20000}"#.to_owned());
    let found = run(read_lines(lines.join("\n").as_bytes()).expect("lines")).expect("a session");
    assert_eq!(found.len(), 20_001);
}

/// A directory of this test run, empty.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a directory for the test");
    path
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

#[test]
fn files_and_directories() {
    let path = directory("tree_sources");
    let write = |name: &str, bytes: &[u8]| std::fs::write(path.join(name), bytes).expect(name);
    write("b.json", b"{\n  \"root\": {\"id\": \"b\"}\n}\n");
    write(
        "a.jsonl",
        b"{\"root\":{\"id\":\"a1\"}}\n{\"root\":{\"id\":\"a2\"}}\n",
    );
    write(".hidden", b"nothing of use");
    std::fs::create_dir(path.join("folder")).expect("a folder");
    #[cfg(feature = "gzip")]
    write("c.json.gz", &gzip(b"{\"root\":{\"id\":\"c\"}}"));
    let found = run(read_source(&path, Limits::default()).expect("a session")).expect("in order");
    let ids: Vec<&str> = found.iter().map(|(_, outline)| &**outline).collect();
    #[cfg(feature = "gzip")]
    assert_eq!(ids, ["a1", "a2", "b", "c"]);
    #[cfg(not(feature = "gzip"))]
    assert_eq!(ids, ["a1", "a2", "b"]);

    // All files of a directory are in one report.
    write("d.json", b"{\"root\":{\"ttl\":-1}}");
    write("e.jsonl", b"{\"root\":{}}\n{\"root\":");
    let error = read_source(&path, Limits::default()).expect_err("two files are wrong");
    let SourceError::Invalid(files) = &error else {
        panic!("{error}")
    };
    assert_eq!(files.len(), 2);
    let text = error.to_string();
    assert!(
        text.contains("d.json:1:16: $.root.ttl: the ttl is negative"),
        "{text}"
    );
    assert!(
        text.contains("e.jsonl:2:9: $.root: malformed JSON"),
        "{text}"
    );

    let missing = read_source(&path.join("nowhere"), Limits::default());
    assert!(matches!(missing, Err(SourceError::Missing(_))));
}

#[test]
fn streams_and_formats() {
    let read = |bytes: &[u8]| read_stream(bytes, Path::new("-"), Limits::default());
    let count = |bytes: &[u8]| {
        read(bytes)
            .map(|documents| documents.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(count(b"{\"root\":{}}"), Ok(1));
    assert_eq!(count(b"{\"root\":{}}\n\n"), Ok(1));
    assert_eq!(count(b"\n{\"root\":{}}\r\n{\"root\":{}}"), Ok(2));
    assert_eq!(count(b"{\"root\":\n{}}"), Ok(1));
    assert_eq!(count(b"\xEF\xBB\xBF{\"root\":{}}\n{\"root\":{}}"), Ok(2));
    let broken = count(b"{\"root\" {}}\n{\"root\":{\"ttl\":-1}}").expect_err("two lines are wrong");
    assert_eq!(broken.lines().count(), 2, "{broken}");
    assert!(count(b"").is_err());
    assert!(count(b"x").is_err());
    #[cfg(feature = "gzip")]
    {
        let packed = gzip(b"{\"root\":{}}\n{\"root\":{}}");
        assert_eq!(count(&packed), Ok(2));
        let half = count(&packed[..packed.len() / 2]).expect_err("cut gzip");
        assert!(half.contains("broken gzip data"), "{half}");
    }
    #[cfg(not(feature = "gzip"))]
    assert!(count(&gzip(b"{}")).is_err());
}

#[test]
fn input_is_limited_after_unpacking() {
    let limits = Limits { max_input: 1_000 };
    let document = |size: usize| format!("{{\"root\":{{}}}}{}", " ".repeat(size - 11));
    for packed in [false, true] {
        if packed && cfg!(not(feature = "gzip")) {
            continue;
        }
        for (size, fits) in [(1_000, true), (1_001, false), (5_000_000, false)] {
            let text = document(size).into_bytes();
            let bytes = if packed { gzip(&text) } else { text };
            let outcome = read_stream(&bytes[..], Path::new("-"), limits);
            assert_eq!(outcome.is_ok(), fits, "{size} packed: {packed}");
            if let Err(error) = outcome {
                assert!(matches!(error, SourceError::Invalid(_)));
                assert!(error.to_string().contains("1000 bytes"), "{error}");
            }
        }
    }
    assert!(read_document(document(11).as_bytes()).is_ok());
}
