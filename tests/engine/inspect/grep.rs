//! Lines that match: over a hand-written session, and compared with a search of each snapshot.

use super::{imported, travel};
use crate::support::random::{self, Rng, share};
use pactql::inspect::{GrepReport, Part, Report, ReportOptions, Search};
use pactql::render::{Contents, Wording};
use pactql::{Engine, Session, render::Thread};
use proptest::prelude::TestCaseError;
use std::collections::BTreeMap;

/// What is found, a line each: `id first..last number:ranges`, numbers without ranges for context.
fn found(
    session: &Session,
    pattern: &str,
    part: &Part,
    ignore_case: bool,
    context: usize,
) -> String {
    let search = Search::new(pattern, ignore_case).unwrap().context(context);
    let options = ReportOptions::new(part.clone()).search(search);
    let found = GrepReport::new(&Engine::new(), session, &options).unwrap();
    let mut lines = 0;
    let blocks = found.blocks.iter().map(|block| {
        let each = block.lines.iter().map(|line| {
            lines += u64::from(!line.ranges.is_empty());
            let ranges: Vec<&str> = line
                .ranges
                .iter()
                .map(|range| &line.text[range.clone()])
                .collect();
            format!("{}:{}", line.number, ranges.join("+"))
        });
        let each: Vec<String> = each.collect();
        format!(
            "{} {}..{} {}",
            block.id,
            block.first,
            block.last,
            each.join(" ")
        )
    });
    let blocks: Vec<String> = blocks.collect();
    assert_eq!(found.lines, lines);
    blocks.join(", ")
}

#[test]
fn lines_that_match() {
    let all = Part::all();
    let results = all.clone().only(".cb[kind=result]");
    for (pattern, part, ignore_case, context, expected) in [
        ("Booked", &all, false, 0, "cb:10-1 @c5..@c5 1:Booked"),
        ("booked", &all, false, 0, ""),
        ("booked", &all, true, 0, "cb:10-1 @c5..@c5 1:Booked"),
        (
            "^RE",
            &all,
            false,
            1,
            "cb:4-1 @c2..@c5 2: 3:RE, cb:8-1 @c4..@c5 2: 3:RE",
        ),
        (
            "IC 20[46] ",
            &all,
            false,
            9,
            "cb:4-1 @c2..@c5 1:IC 204  2:IC 206  3:, cb:5-1 @c2..@c5 1:IC 204 , cb:8-1 @c4..@c5 1:IC 204  2:IC 206  3:",
        ),
        (
            "full$",
            &results,
            false,
            0,
            "cb:4-1 @c2..@c5 2:full, cb:8-1 @c4..@c5 2:full",
        ),
        (
            "full$",
            &results.clone().at("@c2..@c3"),
            false,
            0,
            "cb:4-1 @c2..@c3 2:full",
        ),
        (
            "full$",
            &results.clone().at("@t-3"),
            false,
            0,
            "cb:4-1 @c2..@c2 2:full",
        ),
        // A call is its name and its arguments.
        (
            "^book_seat .*second",
            &all,
            false,
            0,
            "cb:9-1 @c4..@c5 1:book_seat {\"train\": \"IC 204\", \"class\": \"second",
        ),
        (
            "61|8",
            &all.clone().only(".cb[kind=result]"),
            false,
            0,
            "cb:4-1 @c2..@c5 1:8, cb:8-1 @c4..@c5 1:8, cb:10-1 @c5..@c5 1:61+8+8",
        ),
        ("x*", &all.clone().only("[id='cb:10-1']"), false, 0, ""),
    ] {
        if pattern == "x*" {
            // An empty match is at every letter, and the search ends.
            let search = Search::new(pattern, false).unwrap();
            let options = ReportOptions::new(part.clone()).search(search);
            let found = GrepReport::new(&Engine::new(), &travel(), &options).unwrap();
            let line = &found.blocks[0].lines[0];
            assert_eq!(line.ranges.len(), line.text.len() + 1);
            continue;
        }
        assert_eq!(
            found(&travel(), pattern, part, ignore_case, context),
            expected,
            "{pattern}"
        );
    }
}

#[test]
fn a_block_with_another_text_is_another_one() {
    let line = |cycle: u32, text: &str| {
        format!(
            r#"{{"cycle":{cycle},"root":{{"children":[{{"id":"^ah","nodeType":"^ah","children":[
            {{"id":"note","nodeType":"cb","role":"user","content":"{text}"}}]}}]}}}}"#
        )
        .replace('\n', "")
    };
    let lines = [
        line(1, "red one"),
        line(2, "red two"),
        line(3, "blue"),
        line(4, "red one"),
    ];
    let session = Session::from_slice(lines.join("\n").as_bytes()).unwrap();
    let expected = "note @c1..@c4 1:red, note @c2..@c2 1:red";
    assert_eq!(found(&session, "red", &Part::all(), false, 0), expected);
}

#[test]
fn patterns_that_are_refused() {
    for (pattern, expected) in [
        ("(", "invalid pattern"),
        (r"\w{1000}{1000}", "larger than"),
        ("a)|(?i:b", "invalid pattern"),
    ] {
        let error = Search::new(pattern, true).unwrap_err();
        assert!(
            error.first().message.contains(expected),
            "{pattern}: {error}"
        );
        assert_eq!(error.text(), pattern);
    }
}

/// The matches of a session by block and text: the snapshots, and the lines.
fn searched(session: &Session, pattern: &regex::Regex) -> BTreeMap<(String, String), Vec<String>> {
    let history = session.history();
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for snapshot in history.committed().iter().chain(history.working()) {
        let label = if snapshot.is_working() {
            "working".to_owned()
        } else {
            format!("@c{}", snapshot.cycle())
        };
        for block in Thread::from_snapshot(snapshot, Contents::All).blocks() {
            let wording = Wording::from_block(block);
            let text = wording.texts().collect::<Vec<_>>().join(" ");
            let mut lines = text
                .split('\n')
                .map(|line| line.strip_suffix('\r').unwrap_or(line));
            if lines.any(|line| pattern.is_match(line)) {
                found
                    .entry((block.id().to_owned(), text))
                    .or_default()
                    .push(label.clone());
            }
        }
    }
    found
}

#[test]
fn random_sessions_agree_with_a_search_of_each_snapshot() {
    random::sessions(share(500), |case| {
        let (session, _) = case.open()?;
        let mut rng: Rng = case.rng();
        let pattern = *rng.pick(&["a", "[0-9]", "^$", "e.", "(?i)T", "\\s", "é|\u{4e00}", "o$"]);
        let search = Search::new(pattern, false);
        let search = search.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let options = ReportOptions::new(Part::all()).search(search);
        let found = GrepReport::new(&Engine::new(), &session, &options);
        let found = found.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let expected = searched(&session, &regex::Regex::new(pattern).unwrap());
        let found: Vec<[String; 3]> = found
            .blocks
            .into_iter()
            .map(|block| [block.id, block.first, block.last])
            .collect();
        let mut found = found;
        found.sort();
        let mut expected: Vec<[String; 3]> = expected
            .into_iter()
            .map(|((id, _), labels)| {
                [
                    id,
                    labels.first().cloned().unwrap(),
                    labels.last().cloned().unwrap(),
                ]
            })
            .collect();
        expected.sort();
        random::same!(found, expected, "{pattern}");
        Ok(())
    });
}

#[test]
fn images_have_no_text() {
    let chat = imported(include_bytes!("../../../fixtures/chat.openai.json"));
    let expected = "";
    assert_eq!(found(&chat, "base64", &Part::all(), true, 0), expected);
}
