//! Properties: groups add up to what counting each block of the thread again gives, whatever they are
//! grouped by, over one snapshot or a range, for all nodes or some.

use super::{greenhouse, travel};
use crate::support::random::{self, share};
use pactql::inspect::{By, Part, Report, ReportOptions, TokenReport, Tokenizer};
use pactql::render::{Contents, Wording};
use pactql::{Engine, Session, Snapshot, render::Thread};
use std::collections::BTreeSet;

/// Blocks, bytes, tokens and media of a snapshot, counted block by block.
fn counted(snapshot: &Snapshot, scope: Contents) -> [u64; 4] {
    let mut sums = [0; 4];
    for block in Thread::from_snapshot(snapshot, scope).blocks() {
        let wording = Wording::from_block(block);
        sums[0] += 1;
        sums[3] += u64::from(wording.media);
        for text in wording.texts() {
            sums[1] += text.len() as u64;
            sums[2] += Tokenizer::Bytes4.count(text);
        }
    }
    sums
}

fn check(session: &Session) -> Result<(), String> {
    let (engine, history) = (Engine::new(), session.history());
    let range = if history.committed().is_empty() {
        return Ok(());
    } else {
        Part::default().at("@history")
    };
    for by in By::ALL {
        let report = |part: &Part| {
            let options = ReportOptions::new(part.clone()).by(by);
            TokenReport::new(&engine, session, &options.tokenizer(Tokenizer::Bytes4))
        };
        let all = report(&range).map_err(|error| error.to_string())?;
        let whole = report(&range.clone().only("*")).map_err(|error| error.to_string())?;
        let mut texts = BTreeSet::new();
        for (found, snapshot) in all.snapshots.iter().zip(history.committed().iter()) {
            let place = format!("{} by {by:?}", found.label);
            let totals = found.totals;
            let totals = [totals.blocks, totals.bytes, totals.tokens, totals.media];
            let expected = counted(snapshot, Contents::All);
            same(&totals, &expected, &place)?;
            let mut sums = [0; 4];
            for group in &found.groups {
                let totals = group.totals;
                let each = [totals.blocks, totals.bytes, totals.tokens, totals.media];
                (0..4).for_each(|at| sums[at] += each[at]);
            }
            same(&sums, &expected, &place)?;
            let request = counted(snapshot, Contents::Request);
            let reply = found.reply;
            let reply = [reply.blocks, reply.bytes, reply.tokens, reply.media];
            let rest: Vec<u64> = (0..4).map(|at| expected[at] - request[at]).collect();
            same(&reply.as_slice(), &&rest[..], &place)?;
            let alone = report(&Part::default().at(found.label.clone()));
            same(
                &&alone.map_err(|error| error.to_string())?.snapshots[0],
                &found,
                &place,
            )?;
            for block in Thread::from_snapshot(snapshot, Contents::All).blocks() {
                texts.extend(Wording::from_block(block).texts().map(str::to_owned));
            }
        }
        let sizes = |report: &TokenReport| {
            let each = report.snapshots.iter();
            each.map(|each| (each.totals, each.groups.clone()))
                .collect::<Vec<_>>()
        };
        same(&sizes(&whole), &sizes(&all), "all nodes selected")?;
        let once: u64 = texts.iter().map(|text| Tokenizer::Bytes4.count(text)).sum();
        same(&all.distinct.tokens, &once, "distinct texts")?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(
    found: &T,
    expected: &T,
    place: &str,
) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{place}: {found:?}, expected {expected:?}"))
    }
}

#[test]
fn groups_of_fixtures_add_up() {
    let support = Session::open("fixtures/support-agent.jsonl").unwrap();
    for session in [travel(), greenhouse(), support] {
        assert_eq!(check(&session), Ok(()));
    }
}

#[test]
fn groups_of_random_sessions_add_up() {
    random::sessions(share(500), |case| {
        let (session, _) = case.open()?;
        check(&session).map_err(proptest::prelude::TestCaseError::fail)
    });
}
