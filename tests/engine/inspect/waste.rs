//! Tools that are never called, texts that are sent twice, and sums over sessions: over hand-written
//! sessions, and compared with a search block by block.

use super::{greenhouse, travel};
use crate::support::random::{self, share};
use pactql::inspect::{
    By, DuplicateReport, Money, Part, Prices, Report, ReportOptions, TokenReport, Tokenizer, Top,
    UnusedReport,
};
use pactql::render::{Contents, Wording};
use pactql::{Engine, Session, render::Thread};
use proptest::prelude::TestCaseError;
use std::collections::{BTreeMap, BTreeSet};

fn part(time: &str, selector: &str) -> Part {
    let part = Part::default().at(time);
    match selector {
        "" => part,
        selector => part.only(selector),
    }
}

#[test]
fn tools_that_are_never_called() {
    let prices = r#"{"date":"d","models":{"gpt-4o":{"input":2,"cached_input":1,"output":8}}}"#;
    let prices = Prices::parse(prices).unwrap();
    for (time, selector, expected) in [
        (
            "@history",
            "",
            "cancel_booking 69*5=345 station_weather 55*5=275 of 4",
        ),
        (
            "@c1",
            "",
            "book_seat 68*1=68 cancel_booking 69*1=69 station_weather 55*1=55 of 4",
        ),
        (
            "@c2..@c3",
            "",
            "book_seat 68*2=136 cancel_booking 69*2=138 station_weather 55*2=110 of 4",
        ),
        ("@history", "#missing", "of 0"),
        (
            "@history",
            "^sys [key=cancel_booking]",
            "cancel_booking 69*5=345 of 1",
        ),
    ] {
        let options = ReportOptions::new(part(time, selector)).tokenizer(Tokenizer::Bytes4);
        let report = UnusedReport::new(&Engine::new(), &travel(), &options.prices(prices.clone()));
        let report = report.unwrap();
        let mut tools: Vec<String> = Vec::new();
        for tool in &report.tools {
            let (tokens, requests, sent) = (tool.tokens, tool.requests, tool.sent_tokens);
            tools.push(format!("{} {tokens}*{requests}={sent}", tool.name));
            assert_eq!(tool.nano_dollars, Some(Money(sent * 2_000)));
            let cached = Money(tokens * 2_000 + (sent - tokens) * 1_000);
            assert_eq!(tool.cached_nano_dollars, Some(cached));
        }
        assert!(
            report
                .tools
                .is_sorted_by_key(|tool| u64::MAX - tool.sent_tokens)
        );
        tools.sort();
        tools.push(format!("of {}", report.defined));
        assert_eq!(tools.join(" "), expected, "{time} {selector}");
    }
    // No price, no cost.
    let none = Prices::parse(r#"{"date":"d","models":{}}"#).unwrap();
    let options = ReportOptions::new(part("@history", "")).prices(none);
    let report = UnusedReport::new(&Engine::new(), &travel(), &options).unwrap();
    assert!(report.tools.iter().all(|tool| tool.nano_dollars.is_none()));
    assert_eq!(report.model.as_deref(), Some("gpt-4o-2024-08-06"));
}

#[test]
fn texts_that_are_sent_twice() {
    for (time, selector, expected) in [
        ("@t0", "", "169: cb:4-1 cb:8-1, 55: cb:3-1 cb:7-1"),
        ("@c3", "", "55: cb:3-1 cb:7-1"),
        ("@c2", "", ""),
        ("@t0", ".cb[kind=call]", "55: cb:3-1 cb:7-1"),
        ("@t0", ".mt:depth(1)", ""),
    ] {
        let options = ReportOptions::new(part(time, selector)).tokenizer(Tokenizer::Bytes4);
        let report = DuplicateReport::new(&Engine::new(), &travel(), &options).unwrap();
        let found = report.snapshots[0].texts.iter().map(|text| {
            assert_eq!(
                text.repeated_tokens,
                text.tokens * (text.blocks.len() as u64 - 1)
            );
            format!("{}: {}", text.bytes, text.blocks.join(" "))
        });
        assert_eq!(
            found.collect::<Vec<_>>().join(", "),
            expected,
            "{time} {selector}"
        );
    }
}

#[test]
fn sums_over_sessions() {
    let engine = Engine::new();
    let (travel, greenhouse) = (travel(), greenhouse());
    let sum = |by: Option<By>, part: &Part| {
        let mut top = Top::new(by, Tokenizer::Bytes4);
        top.add(&engine, "travel", &travel, part).unwrap();
        top.add(&engine, "greenhouse", &greenhouse, part).unwrap();
        let groups = top.groups();
        let groups = groups.iter().map(|group| {
            let totals = group.totals;
            let name = group.name.as_deref().unwrap_or("-");
            format!("{name} {}/{}", totals.blocks, totals.tokens)
        });
        groups.collect::<Vec<_>>().join(", ")
    };
    let users = Part::default().only(".cb[role=user]");
    assert_eq!(sum(None, &users), "travel 2/32, greenhouse 4/20");
    assert_eq!(sum(Some(By::Role), &users), "user 6/52");
    assert_eq!(
        sum(Some(By::Turn), &users),
        "travel mt:1 1/17, travel mt:3 1/15, greenhouse t1 1/8, greenhouse ^ah 2/7, greenhouse t3 1/5"
    );
    // In all requests, a block counts as often as it was sent.
    assert_eq!(
        sum(Some(By::Role), &users.clone().at("@history")),
        "user 14/172"
    );
    assert_eq!(sum(None, &Part::default().only("none")), "");
}

/// The texts that a snapshot has more than once, with how often, block by block.
fn repeated(session: &Session) -> Vec<BTreeMap<String, usize>> {
    let history = session.history();
    let each = history.committed().iter().map(|snapshot| {
        let mut texts: BTreeMap<String, usize> = BTreeMap::new();
        for block in Thread::from_snapshot(snapshot, Contents::All).blocks() {
            if let Some(text) = Wording::from_block(block)
                .text
                .filter(|text| !text.is_empty())
            {
                *texts.entry(text).or_default() += 1;
            }
        }
        texts.retain(|_, count| *count > 1);
        texts
    });
    each.collect()
}

#[test]
fn random_sessions_agree_with_a_search() {
    random::sessions(share(500), |case| {
        let (session, _) = case.open()?;
        let history = session.history();
        if history.committed().is_empty() {
            return Ok(());
        }
        let fail = |error: pactql::Error| TestCaseError::fail(error.to_string());
        let (engine, all) = (Engine::new(), Part::default().at("@history"));
        let options = ReportOptions::new(all.clone()).tokenizer(Tokenizer::Bytes4);
        let report = DuplicateReport::new(&engine, &session, &options).map_err(fail)?;
        for (found, expected) in report.snapshots.iter().zip(repeated(&session)) {
            let found = found
                .texts
                .iter()
                .map(|text| (text.text.clone(), text.blocks.len()));
            random::same!(found.collect::<BTreeMap<_, _>>(), expected, "duplicates");
        }
        // The names of tools by their definitions, and of those that were called.
        let (mut defined, mut called) = (BTreeSet::new(), BTreeSet::new());
        for snapshot in history.committed().iter() {
            for block in Thread::from_snapshot(snapshot, Contents::All).blocks() {
                if block.is_tool() {
                    defined.insert(block.key().map(str::to_owned));
                } else if block.kind() == Some("call") {
                    called.extend(Wording::from_block(block).name);
                }
            }
        }
        let named = defined
            .iter()
            .flatten()
            .filter(|name| !called.contains(*name));
        let named: Vec<String> = named.cloned().collect();
        let report = UnusedReport::new(&engine, &session, &options).map_err(fail)?;
        let tools: BTreeSet<String> = report.tools.into_iter().map(|tool| tool.name).collect();
        random::same!(
            named.iter().all(|name| tools.contains(name)),
            true,
            "{tools:?}"
        );
        // Sums over all requests are those of the snapshots.
        let mut top = Top::new(None, Tokenizer::Bytes4);
        top.add(&engine, "s", &session, &all).map_err(fail)?;
        let report = TokenReport::new(&engine, &session, &options).map_err(fail)?;
        let sum: u64 = report.snapshots.iter().map(|each| each.totals.tokens).sum();
        let found = top.groups().first().map_or(0, |group| group.totals.tokens);
        random::same!(found, sum, "top");
        Ok(())
    });
}
