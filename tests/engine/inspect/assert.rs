//! Conditions: how they are read, and whether they hold.

use pactql::inspect::{AssertReport, Condition, Report, ReportOptions};
use pactql::{Engine, Session};

#[test]
fn conditions_are_read() {
    for (line, expected) in [
        ("none @t0 .cb:error", "none @t0 .cb:error"),
        ("  some   .cb ", "some .cb"),
        ("prefix >= 90%", "prefix >= 90%"),
        ("prefix >=90", "prefix >= 90%"),
        ("prefix > 90 %", "prefix > 90%"),
        ("tokens <= 100_000", "tokens <= 100000"),
        ("growth <= 2000/step", "growth <= 2000/step"),
        ("unused = 0", "unused = 0"),
        ("unused <= 3", "unused <= 3"),
        ("unused\t!=3", "unused != 3"),
        ("cost <= 0.50", "cost <= 0.50"),
        ("cost < $2", "cost < 2.00"),
        ("cost >= 0.000000001", "cost >= 0.000000001"),
        ("count .cb <= 3", "count .cb <= 3"),
        ("count .cb<=3", "count .cb <= 3"),
        (
            "count .mt > .cb[kind='a<=1'] = 0",
            "count .mt > .cb[kind='a<=1'] = 0",
        ),
        ("count .mt > 3", "count .mt > 3"),
        (
            "count .cb[kind=call]:depth(>5) != 1",
            "count .cb[kind=call]:depth(>5) != 1",
        ),
        ("count @t0 .cb @limit=3 >= 2", "count @t0 .cb @limit=3 >= 2"),
        ("order .cb then ^ah", "order .cb then ^ah"),
        (
            "order @c2 .cb[content='now then go'] then .cb[key='then']",
            "order @c2 .cb[content='now then go'] then .cb[key='then']",
        ),
    ] {
        let condition = Condition::parse(line).unwrap_or_else(|error| panic!("{line}: {error:?}"));
        assert_eq!(condition.to_string(), expected);
        assert_eq!(Condition::parse(expected).expect(expected), condition);
    }
    let file = "# limits\n\ntokens <= 5\r\n  # more\nunused = 0\n";
    let lines = Condition::parse_file(file).expect("conditions");
    let lines: Vec<usize> = lines.into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [3, 5]);
}

/// Each with the text at the place, what is said, and advice. A whole line as advice works.
#[test]
fn other_lines_are_refused_at_the_place_with_what_works() {
    for (line, place, message, help) in [
        ("none", "", "`none` needs a selector", "such as `none .cb"),
        ("some  ", "", "`some` needs a selector", "such as `some .cb"),
        ("none .cb[", "", "", ""),
        (
            "none @t0 .cb[role == 'user']",
            "==",
            "",
            "write `none @t0 .cb[role = 'user']`",
        ),
        (
            "none @t-1..@t0 .cb",
            "@t-1..@t0",
            "the diffs of a range",
            "",
        ),
        ("none .cb[kind=$kind]", "$kind", "", ""),
        (
            "prefix => 90%",
            "=>",
            "expected one of <= >= < > = != after `prefix`, found `=>`",
            "such as `prefix >= 90%`",
        ),
        (
            "tokens many",
            "many",
            "after `tokens`, found `many`",
            "such as `tokens <= 100000`",
        ),
        ("tokens", "", "after `tokens`", "such as `tokens <= 100000`"),
        (
            "tokens <= many",
            "many",
            "expected a whole number after `<=`, found `many`",
            "such as `tokens <= 100000`",
        ),
        (
            "tokens <= 99999999999999999999",
            "99999999999999999999",
            "expected a whole number",
            "such as",
        ),
        (
            "growth <= -1/step",
            "-1/step",
            "expected a whole number",
            "such as `growth <= 2000/step`",
        ),
        (
            "prefix >= 99.5%",
            "99.5%",
            "expected a whole number",
            "such as `prefix >= 90%`",
        ),
        (
            "cost <= half",
            "half",
            "expected dollars with at most 9 decimals after `<=`, found `half`",
            "such as `cost <= 0.50`",
        ),
        (
            "count .cb[kind='call']",
            "",
            "expected a comparison after the selector",
            "write `count .cb[kind='call'] <= 3`",
        ),
        (
            "count",
            "",
            "`count` needs a selector",
            "such as `count .cb",
        ),
        (
            "count .cb <= few",
            "few",
            "expected a whole number after `<=`, found `few`",
            "such as `count .cb",
        ),
        (
            "count .cb =< 3",
            "=<",
            "expected one of <= >= < > = != after `count`, found `=<`",
            "such as `count .cb",
        ),
        (
            "count .cb[role == 'user'] <= 3",
            "==",
            "",
            "write `count .cb[role = 'user'] <= 3`",
        ),
        ("count <= 3", "", "`count` needs a selector", ""),
        (
            "order .cb",
            "",
            "expected `then` and a second selector",
            "such as `order .cb",
        ),
        (
            "order .cb then",
            "",
            "`order` needs a selector",
            "such as `order .cb",
        ),
        (
            "order then .cb",
            "",
            "`order` needs a selector",
            "such as `order .cb",
        ),
        (
            "order .cb then .cb[role == 'user']",
            "==",
            "",
            "write `order .cb then .cb[role = 'user']`",
        ),
        (
            "order .cb[role == 'user'] then .cb",
            "==",
            "",
            "write `order .cb[role = 'user'] then .cb`",
        ),
        (
            "order .cb[key='a then b', kind == 1] then .cb",
            "==",
            "",
            "write `order .cb[key='a then b', kind = 1] then .cb`",
        ),
        (
            "  all .cb",
            "all",
            "expected a condition, found `all`",
            "one of none, some",
        ),
        (
            "token <= 5",
            "token",
            "expected a condition, found `token`",
            "write `tokens <= 5`",
        ),
        (
            "",
            "",
            "found ``",
            "one of none, some, count, order, prefix",
        ),
    ] {
        let error = Condition::parse(line).expect_err(line);
        let first = error.first();
        let span = first.labels[0].span.clone();
        assert_eq!(
            (error.text(), &line[span.clone()]),
            (line, place),
            "{error:?}"
        );
        assert!(error.message().contains(message), "{error:?}");
        let said = first.help.clone().unwrap_or_default();
        assert!(said.contains(help), "{line}: {said}");
        let works = said.strip_suffix('`').and_then(|said| said.split_once('`'));
        if let Some((_, works)) = works {
            assert!(Condition::parse(works).is_ok(), "{line}: {works}");
        }
        // In a file, the place is that in the file.
        let before = "unused = 0\n  # é\n";
        if !line.trim().is_empty() {
            let file = format!("{before}{line}\ncost <= 1\n");
            let error = Condition::parse_file(&file).expect_err(line);
            let found = error.first().labels[0].span.clone();
            assert_eq!(
                found,
                before.len() + span.start..before.len() + span.end,
                "{error:?}"
            );
        }
    }
    let error = Condition::parse_file("tokens <= 5\nall\nnone .cb\ncost\n").expect_err("two");
    let starts = error.diagnostics().map(|found| found.labels[0].span.start);
    assert_eq!(starts.collect::<Vec<_>>(), [12, 29]);
    assert!(Condition::parse_file("# nothing\n").is_err());
}

#[test]
fn conditions_hold_or_say_where_they_do_not() {
    let session = Session::open("fixtures/support-agent.jsonl").expect("a session");
    let engine = Engine::new();
    // What fails first: cycle, block, a part of what is said.
    type First = Option<(Option<i64>, Option<&'static str>, &'static str)>;
    let cases: [(&str, usize, First); 34] = [
        ("none @t0 .cb[kind='nothing']", 0, None),
        ("some @t0 .cb[kind='call']", 0, None),
        (
            "none @t0 .cb[kind='summary']",
            1,
            Some((Some(6), Some("cb:sum1"), "found")),
        ),
        (
            "some @t0 .cb[kind='nothing']",
            1,
            Some((Some(6), None, "nothing found")),
        ),
        (
            "some @* .cb[kind='nothing']",
            1,
            Some((None, None, "nothing found")),
        ),
        ("prefix >= 1%", 0, None),
        (
            "prefix >= 60%",
            2,
            Some((
                Some(4),
                Some("cb:u1"),
                "25 % kept: an earlier message was dropped",
            )),
        ),
        ("tokens <= 1000", 0, None),
        ("tokens <= 300", 4, Some((Some(3), None, "366 tokens"))),
        ("growth <= 100/step", 0, None),
        (
            "growth <= 80/step",
            1,
            Some((Some(3), None, "81 tokens more")),
        ),
        ("unused = 0", 0, None),
        ("none .cb", 23, Some((Some(6), Some("cb:persona"), "found"))),
        ("tokens >= 233", 0, None),
        ("growth != 80/step", 0, None),
        ("unused != 1", 0, None),
        // The session names no model.
        (
            "cost <= 1",
            6,
            Some((Some(1), None, "the model is not known")),
        ),
        ("count .cb = 23", 0, None),
        ("count .cb != 22", 0, None),
        ("count .cb < 24", 0, None),
        ("count .cb >= 23", 0, None),
        ("count .cb > 22", 0, None),
        (
            "count .cb <= 22",
            1,
            Some((Some(6), Some("cb:plan"), "number 23 of 23")),
        ),
        (
            "count .cb = 20",
            3,
            Some((Some(6), Some("cb:r5"), "number 21 of 23")),
        ),
        (
            "count .cb < 20",
            4,
            Some((Some(6), Some("cb:doc4"), "number 20 of 23")),
        ),
        ("count .cb = 24", 1, Some((Some(6), None, "23 found"))),
        ("count .cb >= 24", 1, Some((Some(6), None, "23 found"))),
        ("count .cb != 23", 1, Some((Some(6), None, "23 found"))),
        ("order .cb[kind='call'] then .cb[kind='result']", 0, None),
        (
            "order @c2 .cb then @c1 .cb",
            1,
            Some((Some(1), Some("cb:persona"), "comes before")),
        ),
        ("order @c1 .cb then @c2 .cb", 0, None),
        (
            "order .cb[kind='result'] then .cb[kind='call']",
            1,
            Some((Some(6), Some("cb:c2"), "comes before")),
        ),
        (
            "order .cb then .cb[kind='nothing']",
            1,
            Some((Some(6), None, "nothing found of .cb[kind='nothing']")),
        ),
        (
            "order .cb then .cb",
            1,
            Some((Some(6), Some("cb:persona"), "both find this first")),
        ),
    ];
    for (line, failures, first) in cases {
        let condition = Condition::parse(line).expect(line);
        let found = AssertReport::new(
            &engine,
            &session,
            &ReportOptions::default().conditions(vec![(1, condition)]),
        )
        .expect(line);
        let found = &found.conditions[0];
        assert_eq!(
            (found.holds, found.failures),
            (failures == 0, failures),
            "{line}: {found:?}"
        );
        assert!(found.first.len() <= 5, "{line}");
        let said = found.first.first();
        assert_eq!(said.is_some(), first.is_some(), "{line}");
        if let (Some(said), Some((cycle, block, what))) = (said, first) {
            assert_eq!(
                (said.cycle, said.block.as_deref()),
                (cycle, block),
                "{line}"
            );
            assert!(said.what.contains(what), "{line}: {}", said.what);
        }
    }
}

/// A mistake in a condition that holds is seen; a value that is far from all others may be meant.
#[test]
fn a_selector_that_finds_nothing_has_a_note_where_another_is_near() {
    let session = Session::open("fixtures/support-agent.jsonl").expect("a session");
    for (line, note) in [
        (
            "none .cb[rol='user']",
            "no node has `rol`; did you mean `role`?",
        ),
        (
            "none @* .mt:has(.cb[kind='cal'])",
            "did you mean `[kind='call']`?",
        ),
        (
            "count .cb[role='use'] <= 3",
            "did you mean `[role='user']`?",
        ),
        (
            "order .cb then .cb[kind='resul']",
            "did you mean `[kind='result']`?",
        ),
        ("none @t0 .cb[kind='nothing']", ""),
        ("none .cb[kind='call', role='user']", ""),
        ("none .cb[kind='call']", ""),
    ] {
        let condition = vec![(1, Condition::parse(line).expect(line))];
        let options = ReportOptions::default().conditions(condition);
        let found = AssertReport::new(&Engine::new(), &session, &options).expect(line);
        let notes = &found.conditions[0].notes;
        let text = found.text(&options, pactql::inspect::Paint::default());
        match note {
            "" => assert!(notes.is_empty() && !text.contains("note: "), "{text}"),
            _ => assert!(
                notes.len() == 1 && notes[0].contains(note) && text.contains(&notes[0]),
                "{line}: {notes:?}, {text}"
            ),
        }
    }
}
