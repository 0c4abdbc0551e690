//! Copies of stores as Parquet files on the command line.

use super::{AGENT, Scratch, answer, fails, pactql};
use serde_json::Value;

/// A session of four snapshots and a working state, which no copy has.
const GREENHOUSE: &str = "fixtures/greenhouse.jsonl";

#[test]
fn a_copy_is_made_added_to_and_imported() {
    let scratch = Scratch::new("copies");
    let [store, copy, other] = ["a.db", "copy", "b.db"].map(|name| scratch.path(name));
    answer(&["import", GREENHOUSE, "-o", &store, "--name", "support-1"]);
    let export = |more: &[&str]| {
        let arguments = ["store", "parquet", &store, &copy, "--json"];
        let ran = pactql(&[&arguments, more].concat());
        assert_eq!((ran.code, &*ran.err), (0, ""), "{}", ran.out);
        serde_json::from_str::<Value>(&ran.out).unwrap()
    };
    let first = export(&["--buckets", "2"]);
    assert_eq!(
        (&first["sessions"], &first["snapshots"]),
        (&1.into(), &4.into())
    );
    let again = export(&[]);
    assert_eq!(
        (&again["new_units"], &again["buckets_written"]),
        (&0.into(), &0.into())
    );

    let settings = |more: &[&str], message: &str| {
        let arguments = ["store", "parquet", &store, &copy];
        fails(&[&arguments, more].concat(), 6, message);
    };
    settings(&["--buckets", "3"], "is a copy in 2 buckets; say the same");
    settings(
        &["--since", "2026-01-31"],
        "is a copy of sessions of any age",
    );
    let some = format!("{store}#support-*");
    fails(
        &["store", "parquet", &some, &copy],
        6,
        "is a copy of all sessions",
    );
    scratch.write("file", "x");
    let here = scratch.0.to_str().unwrap();
    fails(
        &["store", "parquet", &store, here],
        6,
        "has files, and is not a copy",
    );

    let session = format!("{other}#support-1");
    for (arguments, message) in [
        (vec!["import", &copy], "is imported into a store"),
        (
            vec!["import", &copy, "-o", "out.jsonl"],
            "is imported into a store",
        ),
        (
            vec!["import", &copy, AGENT, "-o", &other],
            "as the others are",
        ),
        (
            vec!["import", &copy, "-o", &session],
            "as a whole, with its names",
        ),
        (
            vec!["import", &copy, "-o", &other, "--skip-existing"],
            "as a whole",
        ),
    ] {
        fails(&arguments, 1, message);
    }
    let ran = pactql(&["import", &copy, "-o", &other]);
    assert_eq!(
        (ran.code, &*ran.err),
        (0, "copied 1 session, 4 snapshots\n")
    );
    let whole = answer(&["export", GREENHOUSE, "--jsonl"]);
    let committed: Vec<&str> = whole.lines().take(4).collect();
    let exported = answer(&["export", &session]);
    assert!(exported.lines().eq(committed));
    fails(
        &["import", &copy, "-o", &other],
        1,
        "has a session `support-1` already",
    );
}
