//! Reading documents: what is accepted, what is rejected and with which path (RUNTIME §1), and
//! canonical document order (LANGUAGE §6).

use std::fmt::Write;

use pactql::internals::tree::document::DocumentBody;
use pactql::internals::tree::{
    Document, Fields, NodeClass, Present, Tree, read_document, read_lines,
};
use proptest::prelude::*;

fn read(text: &str) -> Document {
    match read_document(text.as_bytes()) {
        Ok(document) => document,
        Err(error) => panic!("{text}\n{error}"),
    }
}

fn tree(text: &str) -> Tree {
    match read(text).body {
        DocumentBody::Full(tree) => tree,
        other => panic!("{other:?}: {text}"),
    }
}

/// A document whose root has these children.
fn under_root(children: &str) -> String {
    format!(r#"{{"root":{{"id":"r","children":[{children}]}}}}"#)
}

fn ids(tree: &Tree) -> Vec<&str> {
    (0..tree.rows.len() as u32)
        .map(|row| tree.id(row))
        .collect()
}

/// `path: message` of every fault.
fn faults(text: &str) -> Vec<String> {
    match read_document(text.as_bytes()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error
            .faults
            .iter()
            .map(|fault| format!("{}: {}", fault.path, fault.message))
            .collect(),
    }
}

/// The payload record of a row: names and values as JSON.
fn payload(tree: &Tree, row: usize) -> Vec<(String, String)> {
    Fields::new(tree.record(row as u32))
        .map(|(name, value)| (name.to_owned(), value.json().into_owned()))
        .collect()
}

#[test]
fn document_members() {
    let document = read(
        r#" {"x": [1, 2], "working" : true, "spec_version": "PACT\/0.1.0", "cycle": 7, "a":null, "root": {}} "#,
    );
    assert_eq!(document.cycle, Some(7));
    assert!(document.working);
    assert_eq!(document.spec_version.as_deref(), Some(r#""PACT\/0.1.0""#));
    let extra: Vec<(&str, &str)> = document.extra.iter().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(extra, [("a", "null"), ("x", "[1, 2]")]);
    let DocumentBody::Full(tree) = &document.body else {
        panic!("a full document")
    };
    assert_eq!(ids(tree), ["^root"]);
    assert_eq!(tree.rows[0].class, NodeClass::Root);
    assert!(tree.rows[0].present.has(Present::ID_IMPLIED));
    assert!(!tree.rows[0].present.has(Present::EMPTY_CHILDREN));
    // A byte order mark is skipped; those after it are text.
    assert!(read_document(b"\xEF\xBB\xBF{\"root\":{}}").is_ok());
    let error = read_document(&b"\xEF\xBB\xBF".repeat(100_000)).expect_err("no document");
    assert_eq!(error.faults[0].offset, 3, "{error:?}");
}

#[test]
fn fields_of_a_node() {
    let tree = tree(&under_root(
        r#"{"children":[],"zeta":{"b":1, "a":[1e5]},"id":"n\u0061","nodeType":"cb:x","role":"user","kind":"k\n","key":"K",
            "offset":-3,"ttl":0,"priority":9,"cycle":2,"created_at_ns":1700000000000000001,"creation_index":4,
            "content":"a\u00e9","tags":["x"],"tag":"y","parent_id":"r","cadence":1,"removable":false}"#,
    ));
    let row = &tree.rows[1];
    assert_eq!(tree.id(1), "na");
    assert_eq!(row.class, NodeClass::Block);
    assert_eq!(
        tree.headers(1).texts,
        ["cb:x", "user", "k\n", "K"].map(Some)
    );
    assert_eq!(row.numbers, [-3, 0, 9, 2, 1_700_000_000_000_000_001, 4]);
    assert_eq!(row.present.0, 0x7F);
    assert_eq!(row.level, 1);
    let expected = [
        ("cadence", "1"),
        ("content", r#""aé""#),
        ("parent_id", r#""r""#),
        ("removable", "false"),
        ("tag", r#""y""#),
        ("tags", r#"["x"]"#),
        ("zeta", r#"{"b":1, "a":[1e5]}"#),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(payload(&tree, 1), expected);
}

#[test]
fn nulls_are_absent_and_kept() {
    let tree = tree(&under_root(
        r#"{"id":"a","nodeType":null,"role":null,"kind":null,"key":null,"offset":null,"ttl":null,"priority":null,
            "cycle":null,"created_at_ns":null,"creation_index":null,"created_at_iso":null,"content_hash":null,
            "children":null,"parent_id":null,"tags":null,"cadence":null,"removable":null}"#,
    ));
    assert_eq!(tree.rows[1].present, Present(0));
    assert_eq!(tree.rows[1].class, NodeClass::Block);
    let names: Vec<String> = payload(&tree, 1)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names.len(), 16);
    assert!(!names.contains(&"children".to_owned()));
}

#[test]
fn classes() {
    use NodeClass::{Block, Container, Head, Root, Seq, Sys, Turn};
    let tree = tree(
        r#"{"root":{"children":[
            {"id":"s","nodeType":"^sys","children":[{"id":"s1"},{"id":"s2","children":[]}]},
            {"id":"q","children":[{"id":"t"},{"id":"t2","children":[{"id":"c","children":[{"id":"b"}]}]},
                {"id":"t3","nodeType":"seg:x"},{"id":"b3","nodeType":"cb"}],"nodeType":"^seq"},
            {"id":"h","nodeType":"^ah","children":[{"id":"m1","nodeType":"mc"},{"id":"m2","nodeType":"cont:y"},
                {"id":"m3","nodeType":"block"},{"id":"m4","nodeType":"^foo"},{"id":"m5","nodeType":"summary"},
                {"id":"m6","nodeType":"mt","children":[{"id":"m7","nodeType":"mtx"},{"id":"m8","nodeType":""}]}]}
        ]}}"#,
    );
    let found: Vec<(&str, NodeClass)> = (0..tree.rows.len() as u32)
        .map(|row| (tree.id(row), tree.rows[row as usize].class))
        .collect();
    let expected = [
        ("^root", Root),
        ("s", Sys),
        ("s1", Block),
        ("s2", Block),
        ("q", Seq),
        ("b3", Block),
        ("t", Turn),
        ("t2", Turn),
        ("c", Container),
        ("b", Block),
        ("t3", Turn),
        ("h", Head),
        ("m1", Container),
        ("m2", Container),
        ("m3", Block),
        ("m4", Block),
        ("m5", Block),
        ("m6", Turn),
        ("m7", Block),
        ("m8", Block),
    ];
    assert_eq!(found, expected);
}

#[test]
fn canonical_order() {
    let cases: &[(&str, &[&str])] = &[
        (
            r#"{"id":"h","nodeType":"^ah"},{"id":"x","offset":-9},{"id":"q","nodeType":"^seq"},{"id":"s","nodeType":"^sys","offset":5}"#,
            &["s", "q", "h", "x"],
        ),
        (
            r#"{"id":"c","created_at_ns":3000},{"id":"a","offset":-1,"created_at_ns":1000},{"id":"b","created_at_ns":2000},{"id":"d","offset":1,"created_at_ns":4000}"#,
            &["a", "b", "c", "d"],
        ),
        (
            r#"{"id":"b","creation_index":1},{"id":"a","creation_index":1},{"id":"c"},{"id":"é"},{"id":"z"},{"id":"Z"}"#,
            &["Z", "c", "z", "é", "a", "b"],
        ),
        (
            r#"{"id":"n2","offset":2,"children":[{"id":"y","offset":1},{"id":"x","offset":-1,"children":[{"id":"w"}]}]},{"id":"n1","offset":1,"children":[{"id":"v"}]}"#,
            &["n1", "v", "n2", "x", "w", "y"],
        ),
    ];
    for (children, expected) in cases {
        let tree = tree(&under_root(children));
        assert_eq!(&ids(&tree)[1..], *expected, "{children}");
        check_shape(&tree);
    }
}

/// Checks that rows are in pre-order, and their `end` and `level`.
fn check_shape(tree: &Tree) {
    let mut stack: Vec<u32> = Vec::new();
    for (index, row) in (0u32..).zip(&tree.rows) {
        while let Some(&top) = stack.last()
            && tree.rows[top as usize].end <= index
        {
            stack.pop();
        }
        assert_eq!(row.parent, stack.last().copied().unwrap_or(u32::MAX));
        assert_eq!(row.level as usize, stack.len());
        assert!(row.end > index);
        stack.push(index);
    }
}

#[test]
fn single_faults() {
    let children: &[(&str, &[&str])] = &[
        (r#"{}"#, &["$.root.children[0]: a node must have an `id`"]),
        (
            r#"{"id":null}"#,
            &["$.root.children[0]: a node must have an `id`"],
        ),
        (
            r#"{"id":7}"#,
            &["$.root.children[0].id: the id must be a string, not 7"],
        ),
        (
            r#"{"id":""}"#,
            &["$.root.children[0].id: the id must not be empty"],
        ),
        (
            r#"7,{"id":"a"},null"#,
            &[
                "$.root.children[0]: a node must be an object, not 7",
                "$.root.children[2]: a node must be an object, not null",
            ],
        ),
        (
            r#"{"id":"a"},{"id":"b","children":[{"id":"\u0061"}]}"#,
            &[
                "$.root.children[1].children[0].id: the id `a` is given twice, first at $.root.children[0].id",
            ],
        ),
        (
            r#"{"id":"r"}"#,
            &["$.root.children[0].id: the id `r` is given twice, first at $.root.id"],
        ),
        (
            r#"{"id":"h","nodeType":"^ah"},{"id":"i","nodeType":"^ah"}"#,
            &[
                "$.root.children[1].nodeType: a second ^ah, the first is at $.root.children[0].nodeType",
            ],
        ),
        (
            r#"{"id":"h","nodeType":"^sys"},{"id":"i","nodeType":"^sys"}"#,
            &[
                "$.root.children[1].nodeType: a second ^sys, the first is at $.root.children[0].nodeType",
            ],
        ),
        (
            r#"{"id":"h","children":[{"id":"i","nodeType":"^seq"}]}"#,
            &["$.root.children[0].children[0].nodeType: ^seq must be a direct child of the root"],
        ),
        (
            r#"{"id":"h","nodeType":"^root"}"#,
            &["$.root.children[0].nodeType: only the root of the tree can be `^root`"],
        ),
        (
            r#"{"id":"t","nodeType":"mt","children":[{"id":"a","nodeType":"mc","offset":0},{"id":"b","nodeType":"cont:x","offset":0}]}"#,
            &[
                "$.root.children[0].children[1].offset: a second container at offset 0, the first is at $.root.children[0].children[0].offset",
            ],
        ),
        (
            r#"{"id":"t","nodeType":"^ah","children":[{"id":"a","offset":0,"children":[{"id":"c"}]},{"id":"b","nodeType":"cont:x","offset":0}]}"#,
            &[
                "$.root.children[0].children[1].offset: a second container at offset 0, the first is at $.root.children[0].children[0].offset",
            ],
        ),
        (
            r#"{"id":"a","parent_id":"q"}"#,
            &["$.root.children[0].parent_id: parent_id is `q`, but the node is a child of `r`"],
        ),
        (
            r#"{"id":"a","parent_id":3}"#,
            &["$.root.children[0].parent_id: parent_id must be a string or null, not 3"],
        ),
        (
            r#"{"id":"a","ttl":-1}"#,
            &["$.root.children[0].ttl: the ttl must be 0 or more, or null for no limit"],
        ),
        (
            r#"{"id":"a","offset":1.0}"#,
            &["$.root.children[0].offset: offset must be an integer or null, not 1.0: write 1"],
        ),
        (
            r#"{"id":"a","offset":1e2}"#,
            &["$.root.children[0].offset: offset must be an integer or null, not 1e2"],
        ),
        (
            r#"{"id":"a","priority":true}"#,
            &["$.root.children[0].priority: priority must be an integer or null, not true"],
        ),
        (
            r#"{"id":"a","cycle":"1"}"#,
            &["$.root.children[0].cycle: cycle must be an integer or null, not \"1\": write 1"],
        ),
        (
            r#"{"id":"a","created_at_ns":9223372036854775808}"#,
            &[
                "$.root.children[0].created_at_ns: created_at_ns must be an integer of 64 bits, not 9223372036854775808",
            ],
        ),
        (
            r#"{"id":"a","creation_index":[]}"#,
            &[
                "$.root.children[0].creation_index: creation_index must be an integer or null, not a list",
            ],
        ),
        (
            r#"{"id":"a","nodeType":1}"#,
            &["$.root.children[0].nodeType: nodeType must be a string or null, not 1"],
        ),
        (
            r#"{"id":"a","role":[]}"#,
            &["$.root.children[0].role: role must be a string or null, not a list"],
        ),
        (
            r#"{"id":"a","kind":{}}"#,
            &["$.root.children[0].kind: kind must be a string or null, not an object"],
        ),
        (
            r#"{"id":"a","key":false}"#,
            &["$.root.children[0].key: key must be a string or null, not false"],
        ),
        (
            r#"{"id":"a","created_at_iso":5}"#,
            &["$.root.children[0].created_at_iso: created_at_iso must be a string, or null, not 5"],
        ),
        (
            r#"{"id":"a","content_hash":5}"#,
            &["$.root.children[0].content_hash: content_hash must be a string, or null, not 5"],
        ),
        (
            r#"{"id":"a","tags":5}"#,
            &[
                "$.root.children[0].tags: tags must be a string or a list of strings, or null, not 5",
            ],
        ),
        (
            r#"{"id":"a","tag":["x",1]}"#,
            &[
                "$.root.children[0].tag: tag must be a string or a list of strings, or null, not [\"x\",1]",
            ],
        ),
        (
            r#"{"id":"a","cadence":1.5}"#,
            &[
                "$.root.children[0].cadence: cadence must be an integer of 64 bits, or null, not 1.5",
            ],
        ),
        (
            r#"{"id":"a","removable":1}"#,
            &["$.root.children[0].removable: removable must be true or false, or null, not 1"],
        ),
        (
            r#"{"id":"a","children":{}}"#,
            &[
                "$.root.children[0].children: children must be a list of nodes or null, not an object",
            ],
        ),
        (
            r#"{"id":"a","id":"b"}"#,
            &["$.root.children[0].id: the key is given twice"],
        ),
        (
            r#"{"id":"a","offset":1,"offset":1}"#,
            &["$.root.children[0].offset: the key is given twice"],
        ),
        (
            r#"{"id":"a","children":[],"children":[]}"#,
            &["$.root.children[0].children: the key is given twice"],
        ),
        (
            r#"{"id":"a","x":1,"\u0078":1}"#,
            &["$.root.children[0].x: the key `x` is given twice"],
        ),
        (
            r#"{"id":"a","content":[{"p":{"k":1,"k":2}}]}"#,
            &["$.root.children[0].content[0].p.k: the key `k` is given twice"],
        ),
        (
            r#"{"id":"a","content":{"odd key":["\ud800"]}}"#,
            &[
                "$.root.children[0].content['odd key'][0]: a string must have whole surrogate pairs, not half of one",
            ],
        ),
        (
            r#"{"id":"a\udc00"}"#,
            &["$.root.children[0].id: a string must have whole surrogate pairs, not half of one"],
        ),
        (
            r#"{"id":"a","content":[1,1e400]}"#,
            &["$.root.children[0].content[1]: a number must be in the range of a double"],
        ),
        (
            r#"{"id":"a","data_x":-1e309}"#,
            &["$.root.children[0].data_x: a number must be in the range of a double"],
        ),
        // Malformed JSON ends the report; faults before it are kept.
        (
            r#"{"id":"a","ttl":-1},{"id":"b" "role":1}"#,
            &[
                "$.root.children[0].ttl: the ttl must be 0 or more, or null for no limit",
                "$.root.children[1].id: malformed JSON: expected `,` or `}`",
            ],
        ),
    ];
    for (nodes, expected) in children {
        assert_eq!(faults(&under_root(nodes)), *expected, "{nodes}");
    }
    let documents: &[(&str, &[&str])] = &[
        ("", &["$: malformed JSON: expected a value"]),
        (
            "[]",
            &["$: a snapshot document must be an object with `root`, not a list"],
        ),
        ("{}", &["$: a snapshot document must have a `root`"]),
        (
            r#"{"root":[]}"#,
            &["$.root: the root must be an object, not a list"],
        ),
        (
            r#"{"root":{}} x"#,
            &["$: malformed JSON: expected the end of the document"],
        ),
        (
            r#"{"root":{},"cycle":1.0}"#,
            &["$.cycle: cycle must be an integer of 64 bits, not 1.0"],
        ),
        (
            r#"{"root":{},"cycle":1,"cycle":1}"#,
            &["$.cycle: the key `cycle` is given twice"],
        ),
        (
            r#"{"root":{},"a":1,"a":1}"#,
            &["$.a: the key `a` is given twice"],
        ),
        (
            r#"{"root":{},"working":1}"#,
            &["$.working: working must be true or false, not 1"],
        ),
        (
            r#"{"root":{},"spec_version":1}"#,
            &["$.spec_version: spec_version must be a string, not 1"],
        ),
        (
            r#"{"root":{"nodeType":"^ah"}}"#,
            &["$.root.nodeType: the root must be `^root` or have no nodeType, not be a region"],
        ),
        (
            r#"{"root":{"parent_id":"x"}}"#,
            &["$.root.parent_id: the root has no parent"],
        ),
        (
            r#"{"root":{},"base":1}"#,
            &["$.base: a document must have either `root`, or `base` with `replace` and `remove`"],
        ),
        (
            r#"{"replace":[]}"#,
            &["$.replace: `replace` and `remove` need a `base`, the cycle that they change"],
        ),
        (
            r#"{"base":1,"replace":[{"id":"a","children":[{"id":"b"}]}]}"#,
            &[
                "$.replace[0].children: a node of `replace` must have no children: list them, each with its parent_id",
            ],
        ),
        (
            r#"{"base":1,"replace":[{"parent_id":"x"}]}"#,
            &["$.replace[0]: a node must have an `id`"],
        ),
        (
            r#"{"base":1,"replace":[{"id":"a"},{"id":"a"}]}"#,
            &["$.replace[1].id: the id `a` is given twice, first at $.replace[0].id"],
        ),
        (
            r#"{"base":1,"replace":[{"id":"a"}],"remove":["b","a",1,"b"]}"#,
            &[
                "$.remove[1]: the id `a` is both replaced and removed",
                "$.remove[2]: an id must be a string, not 1",
                "$.remove[3]: the id `b` is removed twice",
            ],
        ),
        (
            r#"{"base":1,"remove":{}}"#,
            &["$.remove: remove must be a list of ids, not an object"],
        ),
    ];
    for (text, expected) in documents {
        assert_eq!(faults(text), *expected, "{text}");
    }
}

#[test]
fn accepted() {
    for nodes in [
        // Several containers in a turn are fine if at most one has an explicit offset 0.
        r#"{"id":"t","nodeType":"mt","children":[{"id":"a","nodeType":"mc"},{"id":"b","nodeType":"mc"},{"id":"c","nodeType":"mc","offset":0}]}"#,
        r#"{"id":"t","nodeType":"^sys","children":[{"id":"a","nodeType":"mc","offset":0},{"id":"b","nodeType":"mc","offset":0}]}"#,
        // Integers of any size and small floats, outside headers.
        r#"{"id":"a","content":[123456789012345678901234567890,1e-400,0e999,-0.0]}"#,
        r#"{"id":"a","offset":-9223372036854775808,"created_at_ns":9223372036854775807}"#,
        r#"{"id":"a","content":"\ud83d\ude00 \u0000 \" \\ \/"}"#,
        r#"{"id":"a","children":null,"parent_id":"r"}"#,
    ] {
        tree(&under_root(nodes));
    }
}

#[test]
fn all_faults_in_one_report() {
    let text =
        under_root("\n{\"id\":\"a\",\"ttl\":-1,\"offset\":\"é\", \"role\":1},\n{\"id\":\"a\"}");
    let error = read_document(text.as_bytes()).expect_err("four faults");
    let places: Vec<(u64, u64)> = error.faults.iter().map(|f| (f.line, f.column)).collect();
    assert_eq!(error.faults.len(), 4);
    assert_eq!(places[0].0, 2);
    assert_eq!(places[2], (2, 41));
    assert_eq!(places[3], (3, 1));
    assert_eq!(
        error.to_string().lines().last(),
        Some(
            "3:1: $.root.children[1].id: the id `a` is given twice, first at $.root.children[0].id"
        )
    );
    // The list is cut and says how many are missing.
    let many = under_root(&vec!["{}"; 1_000].join(","));
    let error = read_document(many.as_bytes()).expect_err("a thousand faults");
    assert_eq!((error.faults.len(), error.more), (100, 900));
    assert!(error.to_string().ends_with("and 900 more"));
}

#[test]
fn lines() {
    let text = "{\"root\":{}}\r\n\n  \n{\"cycle\":2,\"base\":1,\"replace\":[{\"id\":\"a\",\"parent_id\":\"^root\"}],\"remove\":[\"x\"],\"working\":true}\n";
    let documents = read_lines(text.as_bytes()).expect("two documents");
    assert_eq!(documents.len(), 2);
    assert!(documents[1].working);
    let DocumentBody::Delta(delta) = &documents[1].body else {
        panic!("a delta")
    };
    assert_eq!(delta.base, 1);
    assert_eq!(delta.replace.nodes.id(0), "a");
    assert_eq!(delta.replace.parents, [Some("^root".into())]);
    assert_eq!(delta.remove, ["x".into()]);

    let text = "{\"root\":{}}\n{\"root\":\n{\"root\":{\"ttl\":-1}}\n";
    let error = read_lines(text.as_bytes()).expect_err("two faults");
    let places: Vec<(u64, u64)> = error.faults.iter().map(|f| (f.line, f.offset)).collect();
    assert_eq!(places, [(2, 20), (3, 36)]);
}

#[test]
fn nesting() {
    let nodes = |levels: usize| {
        let mut text = String::from(r#"{"root":"#);
        for level in 1..levels {
            let _ = write!(text, r#"{{"id":"n{level}","children":["#);
        }
        text += r#"{"id":"last"}"#;
        text += &"]}".repeat(levels - 1);
        text + "}"
    };
    check_shape(&tree(&nodes(1_000)));
    for levels in [1_001, 100_000] {
        let found = faults(&nodes(levels));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].ends_with(".children[0]: values must nest at most 1,000 levels deep"),
            "{found:?}"
        );
    }
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let value = |levels: usize| {
            let content = format!("{}1{}", open.repeat(levels), close.repeat(levels));
            under_root(&format!(r#"{{"id":"x","content":{content}}}"#))
        };
        tree(&value(1_000));
        assert_eq!(faults(&value(1_001)).len(), 1);
        assert_eq!(faults(&value(100_000)).len(), 1);
    }
    // Brackets that are never closed.
    faults(&r#"{"root":{"id":"a","children":["#.repeat(100_000));
    faults(&format!(r#"{{"root":{{"x":{}"#, "[".repeat(1_000_000)));
}

#[test]
fn odd_numbers_and_texts() {
    for bad in [
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "tru",
        "nul",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12G4\"",
        "\"\u{1}\"",
        "\"\n\"",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "[",
        "{",
        "{\"a\":1",
        "'a'",
        "1 2",
    ] {
        let text = format!("{{\"root\":{{\"content\":{bad}}}}}");
        let found = faults(&text);
        assert!(found[0].contains("malformed JSON"), "{text}: {found:?}");
    }
    let digits = "7".repeat(1_000_000);
    tree(&format!(r#"{{"root":{{"content":{digits}}}}}"#));
    tree(&format!(r#"{{"root":{{"content":0.{digits}}}}}"#));
    faults(&format!(r#"{{"root":{{"content":{digits}.0}}}}"#));
    faults(&format!(r#"{{"root":{{"offset":{digits}}}}}"#));
    faults(&format!(r#"{{"root":{{"content":1e{digits}}}}}"#));
    assert!(read_document(b"{\"root\":{\"id\":\"\xff\"}}").is_err());
}

#[test]
fn many_keys_are_compared_in_less_than_quadratic_time() {
    let mut text = String::from(r#"{"root":{"content":{"#);
    for key in 0..200_000 {
        let _ = write!(text, "\"k{key}\":0,");
    }
    let closed = format!("{}\"k77\":1}}}}}}", text);
    assert_eq!(
        faults(&closed),
        ["$.root.content.k77: the key `k77` is given twice"]
    );
}

/// JSON-like fragments, glued together at random.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("null"),
        Just("true"),
        Just("1e400"),
        Just("-0"),
        Just("\"id\""),
        Just("\"a\""),
        Just("\"root\""),
        Just("\"children\""),
        Just("{\"root\":"),
        Just("\"\\ud800\""),
        Just("\\"),
        Just("\""),
        Just(" "),
        Just("\u{feff}"),
        Just("\"base\":1"),
        Just("\"replace\":[{"),
        Just("\"remove\":["),
        Just("\"ttl\":-1"),
        Just("\"parent_id\":"),
        Just("99999999999999999999"),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(crate::support::random::property(8_000))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_document(&bytes);
        let _ = read_lines(&bytes);
    }

    #[test]
    fn random_fragments_never_panic(text in fragments()) {
        let _ = read_document(text.as_bytes());
        let _ = read_lines(text.as_bytes());
        let inside = format!("{{\"root\":{{\"id\":\"x\",\"children\":[{text}]}}}}");
        let _ = read_document(inside.as_bytes());
    }

    #[test]
    fn reader_and_serde_json_agree(text in fragments()) {
        // This reader and serde_json agree on what is well-formed JSON.
        let mut reader = pactql::internals::json::Reader::new(&text);
        let ours = reader.skip_value().and_then(|_| reader.end()).is_ok() && reader.problems().is_empty();
        let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        // serde_json reads large numbers as infinity or fails, and takes the last of equal keys.
        if ours { prop_assert!(theirs, "{}", text); }
        if theirs && !ours { prop_assert!(!reader.problems().is_empty()); }
    }

    #[test]
    fn truncated_and_changed_documents_never_panic(cut in 0usize..400, at in 0usize..400, byte in any::<u8>()) {
        let text = under_root(r#"{"id":"s","nodeType":"^sys","children":[{"id":"a","content":{"x":[1,2.5e3,"\ud83d\ude00é"]},"tags":["p","q"]}]},{"id":"t","parent_id":"r","ttl":3,"offset":-2}"#);
        let bytes = text.as_bytes();
        let cut = cut.min(bytes.len());
        prop_assert!(read_document(&bytes[..cut]).is_err() || cut == bytes.len());
        let mut changed = bytes.to_vec();
        if let Some(slot) = changed.get_mut(at) { *slot = byte; }
        let _ = read_document(&changed);
    }
}
