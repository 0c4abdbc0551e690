//! LANGUAGE §3: time.

use super::check;
use crate::support::selector::Edition::{Canonical, Depth, V01};

const HISTORY: &str = "
root -
  ah ^ah
    a cb
--- 10
root -
  ah ^ah
    a cb
    b cb
--- 12
root -
  ah ^ah
    b cb
    c cb
--- 17
root -
  ah ^ah
    w cb
--- working
";

#[test]
fn addresses() {
    check(
        V01,
        HISTORY,
        &[
            ("@t0 is the newest committed", "@t0 .cb", "b c"),
            ("@t-1", "@t-1 .cb", "a b"),
            ("@t-2", "@t-2 .cb", "a"),
            ("@cN is the snapshot of cycle N", "@c12 .cb", "a b"),
            ("@c17", "@c17 .cb", "b c"),
            ("all", "@* .cb", "b c a"),
            ("no time is @t0 here", ".cb", "b c"),
            ("white space may be left out before a sign", "@t0.cb", "b c"),
            ("before #", "@t-1#a", "a"),
            ("before ^", "@c10^ah .cb", "a"),
            ("before a bracket", "@t0[id='b']", "b"),
            ("not before a word", "@t0none", "E_SELECTOR_INVALID"),
            (
                "a snapshot that is not there",
                "@t-3 .cb",
                "E_SNAPSHOT_NOT_FOUND",
            ),
            (
                "a cycle that is not there",
                "@c11 .cb",
                "E_SNAPSHOT_NOT_FOUND",
            ),
            ("@t3 is invalid", "@t3 .cb", "E_SELECTOR_INVALID"),
            ("@t-* alone is invalid", "@t-* .cb", "E_SELECTOR_INVALID"),
            ("a time alone is an error", "@t0", "E_SELECTOR_INVALID"),
            ("an unknown time", "@x .cb", "E_SELECTOR_INVALID"),
            ("a time in the middle", ".cb @t0", "E_SELECTOR_INVALID"),
        ],
    );
    for edition in [Depth, Canonical] {
        check(
            edition,
            HISTORY,
            &[
                ("no time is the working state", ".cb", "w"),
                ("explicit times", "@t0 .cb", "b c"),
                ("all leaves the working state out", "@* .cb", "b c a"),
            ],
        );
    }
}

#[test]
fn no_working_state() {
    for edition in [Depth, Canonical] {
        check(
            edition,
            "root -\n  ah ^ah",
            &[(
                "omitted time without a working state",
                ".cb",
                "E_NO_WORKING_STATE",
            )],
        );
    }
}

#[test]
fn nothing_committed() {
    let outline = "
root -
  ah ^ah
    w cb
--- working
";
    check(
        V01,
        outline,
        &[
            ("@* over no snapshots is empty", "@* .cb", ""),
            ("@t0 does not exist", "@t0 .cb", "E_SNAPSHOT_NOT_FOUND"),
            ("nor does the default", ".cb", "E_SNAPSHOT_NOT_FOUND"),
        ],
    );
}

#[test]
fn ranges_that_are_wrong() {
    check(
        V01,
        HISTORY,
        &[
            (
                "mixed ends",
                "@t0..@c10 .cb",
                "E_SNAPSHOT_RANGE_KIND_MISMATCH",
            ),
            (
                "mixed ends the other way",
                "@c10..@t0 .cb",
                "E_SNAPSHOT_RANGE_KIND_MISMATCH",
            ),
            ("@* as an end", "@t0..@* .cb", "E_SNAPSHOT_RANGE_WILDCARD"),
            ("@* in front", "@*..@t0 .cb", "E_SNAPSHOT_RANGE_WILDCARD"),
            (
                "touches no snapshot",
                "@t-5..@t-9 .cb",
                "E_SNAPSHOT_NOT_FOUND",
            ),
            ("touches no cycle", "@c1..@c5 .cb", "E_SNAPSHOT_NOT_FOUND"),
        ],
    );
}

#[test]
fn a_snapshot_without_cycle_takes_the_next_number() {
    let outline = "
root -
  ah ^ah
    a cb
--- 1
root -
  ah ^ah
    b cb
--- 5
";
    check(
        V01,
        outline,
        &[
            ("given cycles stand", "@c1 .cb", "a"),
            ("with gaps", "@c5 .cb", "b"),
            ("and order the history", "@t0 .cb", "b"),
        ],
    );
}
