//! Conditions: how they are read, and whether they hold.

use pactql::inspect::{AssertReport, Condition, Report, ReportOptions};
use pactql::{Engine, Session};

#[test]
fn conditions_are_read_or_refused_with_what_works() {
    for (line, expected) in [
        ("none @t0 .cb:error", "none @t0 .cb:error"),
        ("  some   .cb ", "some .cb"),
        ("prefix >= 90%", "prefix >= 90%"),
        ("prefix >=90", "prefix >= 90%"),
        ("tokens <= 100_000", "tokens <= 100000"),
        ("growth <= 2000/step", "growth <= 2000/step"),
        ("unused = 0", "unused <= 0"),
        ("unused <= 3", "unused <= 3"),
    ] {
        assert_eq!(Condition::parse(line).expect(line).to_string(), expected);
    }
    for (line, wrong, help) in [
        ("none", "needs a selector", "none @t0"),
        ("none .cb[", "", ""),
        ("prefix > 90%", "expected `prefix >=`", "prefix >= 90%"),
        ("tokens <= many", "expected `tokens <=`", "tokens <= 100000"),
        (
            "growth <= -1/step",
            "expected `growth <=`",
            "growth <= 2000/step",
        ),
        ("all .cb", "found `all`", "none, some"),
        ("", "found ``", "none, some"),
    ] {
        let error = Condition::parse(line).expect_err(line);
        let error = error.to_text(pactql::ColorChoice::Never);
        assert!(
            error.contains(wrong) && error.contains(help),
            "{line}: {error}"
        );
    }
    let file = "# limits\n\ntokens <= 5\n  # more\nunused = 0\n";
    let lines: Vec<usize> = Condition::parse_file(file)
        .expect("conditions")
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [3, 5]);
    assert!(Condition::parse_file("# nothing\n").is_err());
}

#[test]
fn conditions_hold_or_say_where_they_do_not() {
    let session = Session::open("fixtures/support-agent.jsonl").expect("a session");
    let engine = Engine::new();
    // What fails first: cycle, block, a part of what is said.
    type First = Option<(Option<i64>, Option<&'static str>, &'static str)>;
    let cases: [(&str, usize, First); 12] = [
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
