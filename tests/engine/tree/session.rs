//! Sessions as files and streams, the order of their documents, and differences between them
//! (RUNTIME §1).

use std::io::Write;
use std::path::{Path, PathBuf};

use pactql::internals::tree::source::{Limits, SourceError, read_all, read_files, read_source};
use pactql::internals::tree::{
    Document, InputError, InputFault, Meta, Tree, read_document, read_lines, read_slice,
    whole_trees,
};
use pactql::{Session, error::LoadError};

/// The documents of a reader, which is called `name`.
fn read_stream(
    reader: impl std::io::Read,
    name: &Path,
    limits: Limits,
) -> Result<Vec<Document>, SourceError> {
    read_files([(read_all(reader, name, limits), name.to_owned())])
}

fn documents(lines: &[&str]) -> Vec<Document> {
    match read_lines(lines.join("\n").as_bytes()) {
        Ok(documents) => documents,
        Err(error) => panic!("{error}"),
    }
}

/// The headers and the ids of every tree in order, or the faults.
fn run(documents: Vec<Document>) -> Result<Vec<(Meta, String)>, String> {
    whole_trees(documents)
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
            "2:12: $.working: a second working state, the first is in line 1",
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
            "1:9: $.base: no earlier document has cycle 1\n3:9: $.base: no earlier document has cycle 7",
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(cycles(lines), Err((*expected).to_owned()), "{lines:?}");
    }
}

const BASE: &str = r#"{"cycle":1,"spec_version":"x","root":{"id":"r","children":[{"id":"q","nodeType":"^seq","children":[
    {"id":"t1","children":[{"id":"c1","offset":0,"children":[{"id":"b1"},{"id":"b2","offset":2}]}]},{"id":"t2"}]},{"id":"h","nodeType":"^ah"}]}}"#;

fn with_delta(delta: &str) -> Result<Vec<(Meta, String)>, String> {
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
        // A subtree is moved.
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
        // Replacements come before removals: a node moved out of a removed one stays.
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
        // Two nodes trade places.
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
            "2:21: $.remove[0]: no node has the id `zz`",
        ),
        (
            r#"{"base":1,"remove":["r"]}"#,
            "2:21: $.remove[0]: the root cannot be removed",
        ),
        (
            r#"{"base":1,"replace":[{"id":"n"}]}"#,
            "2:22: $.replace[0]: a node of `replace` needs a parent_id",
        ),
        (
            r#"{"base":1,"replace":[{"id":"n","parent_id":"zz"}]}"#,
            "2:22: $.replace[0].parent_id: no node has the id `zz`",
        ),
        (
            r#"{"base":1,"replace":[{"id":"r","parent_id":"q"}]}"#,
            "2:22: $.replace[0].parent_id: the root has no parent",
        ),
        (
            r#"{"base":1,"replace":[{"id":"c1","parent_id":"b1"}]}"#,
            "2:22: $.replace[0].parent_id: the node would be below itself",
        ),
        (
            r#"{"base":1,"replace":[{"id":"n","parent_id":"n"}]}"#,
            "2:22: $.replace[0].parent_id: the node would be below itself",
        ),
        (
            r#"{"base":1,"replace":[{"id":"h2","parent_id":"r","nodeType":"^ah"}]}"#,
            "2:22: $.replace[0].nodeType: a second ^ah, the first is at $.base: the node `h`.nodeType",
        ),
        (
            r#"{"base":1,"replace":[{"id":"c2","parent_id":"t1","nodeType":"mc","offset":0}]}"#,
            "2:22: $.replace[0].offset: a second container at offset 0, the first is at $.base: the node `c1`.offset",
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

/// The faults of a session; the same whether deltas are applied to trees or to the index.
fn faults(text: &[u8]) -> Vec<InputFault> {
    let error = Session::from_slice(text).expect_err("a session at fault");
    let by_trees: Vec<InputError> = whole_trees(read_slice(text).expect("documents"))
        .filter_map(Result::err)
        .collect();
    assert_eq!(by_trees, std::slice::from_ref(&error));
    assert_eq!(error.more, 0);
    error.faults
}

/// Sessions with one whole document in line 1, and what is wrong with their other lines: line,
/// the text it begins with, path, message. Column and offset must be those of that text.
#[test]
fn all_faults_of_all_lines_come_in_one_report() {
    type Wrong<'a> = (usize, &'a str, &'a str, &'a str);
    let cases: &[(&[&str], &[Wrong<'_>])] = &[
        // Everything wrong with one line.
        (
            &[
                r#" {"base":1,"cycle":2,"remove":["zz","b1","r"],"replace":[{"id":"x","parent_id":"yy"},{"id":"z"},{"id":"c1","parent_id":"b2"}, {"id":"h2","parent_id":"r","nodeType":"^ah"}]}"#,
            ],
            &[
                (2, r#""zz""#, "$.remove[0]", "no node has the id `zz`"),
                (2, r#""r"]"#, "$.remove[2]", "the root cannot be removed"),
                (
                    2,
                    r#"{"id":"x""#,
                    "$.replace[0].parent_id",
                    "no node has the id `yy`",
                ),
                (
                    2,
                    r#"{"id":"z""#,
                    "$.replace[1]",
                    "a node of `replace` needs a parent_id",
                ),
                (
                    2,
                    r#"{"id":"c1""#,
                    "$.replace[2].parent_id",
                    "the node would be below itself",
                ),
                (
                    2,
                    r#"{"id":"h2""#,
                    "$.replace[3].nodeType",
                    "a second ^ah, the first is at $.base: the node `h`.nodeType",
                ),
            ],
        ),
        // The root stays the root, whatever `parent_id` the line gives.
        (
            &[
                r#"{"base":1,"replace":[{"id":"r","parent_id":"h"},{"id":"c2","parent_id":"t1","nodeType":"mc","offset":0}],"remove":["zz"]}"#,
            ],
            &[
                (
                    2,
                    r#"{"id":"r""#,
                    "$.replace[0].parent_id",
                    "the root has no parent",
                ),
                (
                    2,
                    r#"{"id":"c2""#,
                    "$.replace[1].offset",
                    "a second container at offset 0, the first is at $.base: the node `c1`.offset",
                ),
                (2, r#""zz""#, "$.remove[0]", "no node has the id `zz`"),
            ],
        ),
        // Columns count characters, offsets count bytes; the lists may be in either order.
        (
            &[r#"{"note":"äö","replace":[{"id":"ü","parent_id":"é"}],"base":1,"remove":["ß"]}"#],
            &[
                (
                    2,
                    r#"{"id":"ü""#,
                    "$.replace[0].parent_id",
                    "no node has the id `é`",
                ),
                (2, r#""ß""#, "$.remove[0]", "no node has the id `ß`"),
            ],
        ),
        // A child of a node without a place, or of a node below itself, is not a fault of its own.
        (
            &[
                r#"{"base":1,"replace":[{"id":"y","parent_id":"x"},{"id":"x","parent_id":"?"},{"id":"m","parent_id":"n"},{"id":"n","parent_id":"n"}]}"#,
            ],
            &[
                (
                    2,
                    r#"{"id":"x""#,
                    "$.replace[1].parent_id",
                    "no node has the id `?`",
                ),
                (
                    2,
                    r#"{"id":"n""#,
                    "$.replace[3].parent_id",
                    "the node would be below itself",
                ),
            ],
        ),
        // A wrong line does not hide the faults of others; lines based on it are not checked.
        (
            &[
                r#"{"cycle":2,"base":1,"remove":["zz"]}"#,
                r#"{"cycle":3,"base":2,"remove":["not","judged"]}"#,
                r#"{"cycle":4,"base":1,"remove":["yy"]}"#,
                r#"{"cycle":5,"base":1,"remove":["b1"]}"#,
                r#"{"cycle":6,"base":5,"replace":[{"id":"n","parent_id":"b1"}]}"#,
                r#"{"working":true,"base":5,"remove":["b1"]}"#,
            ],
            &[
                (2, r#""zz""#, "$.remove[0]", "no node has the id `zz`"),
                (4, r#""yy""#, "$.remove[0]", "no node has the id `yy`"),
                (
                    6,
                    r#"{"id":"n""#,
                    "$.replace[0].parent_id",
                    "no node has the id `b1`",
                ),
                (7, r#""b1""#, "$.remove[0]", "no node has the id `b1`"),
            ],
        ),
        // Faults between documents do not hide faults in them.
        (
            &[
                r#"{"cycle":1,"root":{}}"#,
                r#"{"cycle":2,"base":9,"remove":["not","judged"]}"#,
                r#"{"cycle":3,"base":1,"remove":["zz"]}"#,
                r#"{"root":{},"working":true}"#,
                r#"{"root":{},"working": true}"#,
                r#"{"base":7,"cycle":3}"#,
                r#"{"cycle":9223372036854775807,"root":{}}"#,
                r#"  {"root":{}}"#,
            ],
            &[
                (
                    2,
                    r#"1,"root""#,
                    "$.cycle",
                    "a second document of cycle 1, the first is in line 1",
                ),
                (3, "9,", "$.base", "no earlier document has cycle 9"),
                (4, r#""zz""#, "$.remove[0]", "no node has the id `zz`"),
                (
                    6,
                    "true}",
                    "$.working",
                    "a second working state, the first is in line 5",
                ),
                (7, "7,", "$.base", "no earlier document has cycle 7"),
                (
                    7,
                    "3}",
                    "$.cycle",
                    "a second document of cycle 3, the first is in line 4",
                ),
                (
                    9,
                    r#"{"root""#,
                    "$.cycle",
                    "no cycle follows the previous document's",
                ),
            ],
        ),
        // Deltas of later cycles are applied early and checked like others.
        (
            &[
                r#"{"cycle":9,"base":1,"remove":["zz"]}"#,
                r#"{"cycle":5,"base":9,"remove":["not judged"]}"#,
                r#"{"cycle":8,"base":1,"remove":["b1"]}"#,
                r#"{"cycle":0,"base":8,"remove":["b1"]}"#,
            ],
            &[
                (2, r#""zz""#, "$.remove[0]", "no node has the id `zz`"),
                (5, r#""b1""#, "$.remove[0]", "no node has the id `b1`"),
            ],
        ),
    ];
    for (lines, expected) in cases {
        for mark in ["", "\u{feff}"] {
            let mut text = vec![format!("{mark}{}", BASE.replace('\n', ""))];
            text.extend(lines.iter().map(|line| (*line).to_owned()));
            let starts: Vec<usize> = text
                .iter()
                .scan(0, |at, line| {
                    Some(std::mem::replace(at, *at + line.len() + 1))
                })
                .collect();
            let found = faults(text.join("\n").as_bytes());
            let found: Vec<_> = found
                .into_iter()
                .map(|fault| {
                    let place = (fault.offset, fault.line, fault.column);
                    (fault.path, fault.message, place)
                })
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|&(line, begins, path, message)| {
                    let text = &text[line - 1];
                    let at = text.find(begins).expect("the text at fault");
                    let offset = (starts[line - 1] + at) as u64;
                    let column = text[..at].chars().count() as u64 + 1;
                    (
                        path.to_owned(),
                        message.to_owned(),
                        (offset, line as u64, column),
                    )
                })
                .collect();
            assert_eq!(found, expected, "{lines:?}");
        }
    }
}

#[test]
fn nesting_too_deep_by_a_difference_hides_no_other_fault() {
    let chain: Vec<String> = (0..1_500)
        .map(|at| match at {
            0 => r#"{"id":"d0","parent_id":"h"}"#.to_owned(),
            _ => format!(r#"{{"id":"d{at}","parent_id":"d{}"}}"#, at - 1),
        })
        .collect();
    let line = format!(
        r#"{{"base":1,"replace":[{}],"remove":["zz"]}}"#,
        chain.join(",")
    );
    let text = format!("{}\n{line}", BASE.replace('\n', ""));
    let found: Vec<(String, String)> = faults(text.as_bytes())
        .into_iter()
        .map(|fault| (fault.path, fault.message))
        .collect();
    // The root and the region are two levels, so 998 more fit.
    let expected = [
        (
            "$.replace[998]",
            "values must nest at most 1,000 levels deep",
        ),
        ("$.remove[0]", "no node has the id `zz`"),
    ];
    let expected = expected.map(|(path, message)| (path.to_owned(), message.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn many_faults_are_listed_up_to_a_limit_and_counted() {
    let mut lines = vec![BASE.replace('\n', "")];
    for cycle in 2..50 {
        let remove = r#""u1","u2","u3""#;
        lines.push(format!(
            r#"{{"cycle":{cycle},"base":1,"remove":[{remove}]}}"#
        ));
    }
    let text = lines.join("\n");
    let error = Session::from_slice(text.as_bytes()).expect_err("every line is wrong");
    assert_eq!((error.faults.len(), error.more), (100, 48 * 3 - 100));
    assert_eq!(error.faults[0].line, 2);
    assert_eq!(error.faults[99].line, 35);
    let node = r#"{"id":"n0"}"#;
    let nodes: Vec<String> = (0..150)
        .map(|at| node.replace('0', &at.to_string()))
        .collect();
    let line = format!(r#"{{"base":1,"replace":[{}]}}"#, nodes.join(","));
    let text = format!("{}\n{line}", lines[0]);
    let error = Session::from_slice(text.as_bytes()).expect_err("every node is wrong");
    assert_eq!((error.faults.len(), error.more), (100, 50));
    assert_eq!(error.faults[99].path, "$.replace[99]");
}

#[test]
fn faults_between_files_name_the_files() {
    let path = directory("tree_faults_between_files");
    let write = |name: &str, text: &str| std::fs::write(path.join(name), text).expect(name);
    write("a.json", "{\n  \"cycle\": 1,\n  \"root\": {}\n}\n");
    write("b.json", "{\n  \"root\": {},\n  \"cycle\": 1\n}\n");
    write(
        "c.json",
        "{\n  \"base\": 1,\n  \"cycle\": 2,\n  \"remove\": [\n    \"zz\"\n  ]\n}\n",
    );
    write(
        "d.json",
        "{\"cycle\":5,\"root\":{}}\n{\"cycle\":5,\"root\":{}}\n{\"cycle\":1,\"root\":{}}\n",
    );
    let error = Session::open(&path).expect_err("four faults");
    let name = |name: &str| path.join(name).display().to_string();
    let (a, b, c, d) = (
        name("a.json"),
        name("b.json"),
        name("c.json"),
        name("d.json"),
    );
    assert_eq!(
        error.to_string(),
        format!(
            "{b}:3:12: $.cycle: a second document of cycle 1, the first is {a}\n\
             {c}:5:5: $.remove[0]: no node has the id `zz`\n\
             {d}:2:10: $.cycle: a second document of cycle 5, the first is in line 1\n\
             {d}:3:10: $.cycle: a second document of cycle 1, the first is {a}"
        )
    );
    let LoadError::Input(error) = error else {
        panic!("{error}")
    };
    let offsets: Vec<u64> = error.faults.iter().map(|fault| fault.offset).collect();
    assert_eq!(offsets, [27, 47, 31, 53]);
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
    // The newest comes first, so the whole chain of deltas is needed at once.
    lines.push(r#"{"cycle":-1,"base":20000}"#.to_owned());
    let found = run(read_lines(lines.join("\n").as_bytes()).expect("lines")).expect("a session");
    assert_eq!(found.len(), 20_001);
}

/// An empty directory for this test.
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
        "a.json",
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
    write("e.json", b"{\"root\":{}}\n{\"root\":");
    let error = read_source(&path, Limits::default()).expect_err("two files are wrong");
    let SourceError::Invalid(files) = &error else {
        panic!("{error}")
    };
    assert_eq!(files.len(), 2);
    let text = error.to_string();
    assert!(
        text.contains("d.json:1:16: $.root.ttl: the ttl must be 0 or more, or null for no limit"),
        "{text}"
    );
    assert!(
        text.contains("e.json:2:9: $.root: malformed JSON"),
        "{text}"
    );

    // With JSON Lines in a directory, each file is a session (RUNTIME §7).
    write("f.jsonl", b"{\"root\":{}}");
    let several = read_source(&path, Limits::default());
    let Err(SourceError::Several(_, files)) = several else {
        panic!("{several:?}")
    };
    assert_eq!(files.last(), Some(&path.join("f.jsonl")));

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

/// Counts the bytes that are read of it.
struct Endless(u8, u64);

impl std::io::Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        into.fill(self.0);
        self.1 += into.len() as u64;
        Ok(into.len())
    }
}

#[test]
fn a_stream_of_nothing_is_refused_at_its_first_megabyte() {
    for byte in [0, b' ', b'\n'] {
        let mut stream = Endless(byte, 0);
        let error = read_stream(&mut stream, Path::new("-"), Limits::default()).unwrap_err();
        assert!(
            error.to_string().contains("white space or zeros"),
            "{error}"
        );
        assert!(stream.1 < 3 << 20, "{} bytes", stream.1);
    }
    #[cfg(feature = "gzip")]
    {
        let bomb = gzip(&vec![0; 64 << 20]);
        let error = read_stream(&bomb[..], Path::new("-"), Limits::default()).unwrap_err();
        assert!(
            error.to_string().contains("white space or zeros"),
            "{error}"
        );
    }
    // White space before a document is no harm.
    let late = format!("{}{{\"root\":{{}}}}", " ".repeat(1 << 19));
    assert!(read_stream(late.as_bytes(), Path::new("-"), Limits::default()).is_ok());
}
