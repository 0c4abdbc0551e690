//! A process that commits is killed at a random moment: every commit that it was told of is there, and no
//! half one (STORE §3).

use std::time::{Duration, Instant};

use pactql::Store;

use super::child::{Acknowledged, LEASE, Writer, check, newest, parse};
use super::place::Folder;
use crate::support::random::{self, Rng};

/// How often a process is killed: 4 times in CI, 1,000 times with `PACTQL_CASES=250000`.
fn kills() -> u64 {
    u64::from(random::share(80).max(4))
}

fn killed(mode: &str, kills: u64) {
    let mut rng = Rng::new(9);
    let mut folder = Folder::new();
    let mut acknowledged: Vec<Acknowledged> = Vec::new();
    let (mut all, mut unacknowledged) = (0, 0);
    for number in 0..kills {
        // A new file now and then: a long history costs time.
        if number % 10 == 0 {
            folder = Folder::new();
            acknowledged.clear();
        }
        let path = folder.file("store.db");
        let mut writer = Writer::start(mode, &path, &[]);
        let before = acknowledged.len();
        let patience = Duration::from_millis(rng.range(0, 120) as u64);
        // From the first commit on, or while the store is being made.
        let early = rng.chance(20);
        if early {
            std::thread::sleep(patience);
        }
        let mut started = None;
        if !early {
            while let Some(line) = writer.line() {
                acknowledged.extend(parse(&line));
                if started.get_or_insert_with(Instant::now).elapsed() >= patience {
                    break;
                }
            }
        }
        writer.kill();
        // What it said before the end.
        while let Some(line) = writer.line() {
            acknowledged.extend(parse(&line));
        }
        all += acknowledged.len() - before;
        let opened = Store::builder().lease(LEASE).open(&path);
        let store = opened.unwrap_or_else(|error| panic!("kill {number}: {error}"));
        if let Err(error) = check(&store, &acknowledged, 1, false) {
            panic!("kill {number}: {error}");
        }
        // What is there now has to stay, acknowledged or not.
        let there = newest(&store);
        let more = there.iter().filter(|commit| !acknowledged.contains(commit));
        unacknowledged += more.count();
        acknowledged.extend(there);
    }
    println!(
        "{kills} kills of `{mode}`: {all} commits were acknowledged, {unacknowledged} more are there"
    );
    assert!(all > 0);
}

#[test]
fn a_killed_process_loses_no_commit() {
    if crate::support::random::left_to_ci() {
        return;
    }
    killed("one", kills());
}

#[test]
fn a_killed_process_loses_no_batch() {
    killed("batched", kills().div_ceil(2));
}
