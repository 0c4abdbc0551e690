//! Every example of `docs/language.md`, and of its corners in `tests/cases/corners.md`, is run, in the
//! editions it names, by the engine and by the reference interpreter, and must give what the page says.
//!
//! Tables are recognized by their head. An unknown head, a row without a result, or a session that
//! differs from the outline on the page fails.

use std::fmt::Write as _;

use pactql::internals::ir::{self, InsertionPoint};
use pactql::{Answer, RangeOptions, Session, Value as Param};

use crate::support::engine::{self, Engine};
use crate::support::json::Json;
use crate::support::selector::Edition;
use crate::support::tree::{self, Tree};
use crate::support::{answer, parse};

const PAGE: &str = concat!(
    include_str!("../../docs/language.md"),
    include_str!("../cases/corners.md")
);
const FIXTURE: &str = include_str!("../../fixtures/greenhouse.jsonl");
const EDITIONS: [Edition; 3] = [Edition::V01, Edition::Depth, Edition::Canonical];

/// A row of a table: where it is, and its cells.
struct Row {
    line: usize,
    cells: Vec<&'static str>,
}

/// The rows of all tables with this head.
fn rows(head: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut inside = false;
    for (number, line) in PAGE.lines().enumerate() {
        let cells: Vec<&str> = match line.strip_prefix('|') {
            Some(line) => line
                .trim_end_matches('|')
                .split('|')
                .map(str::trim)
                .collect(),
            None => Vec::new(),
        };
        match () {
            () if cells.is_empty() => inside = false,
            () if cells == head => inside = true,
            () if inside && cells[0] != "---" && !cells[0].starts_with("---") => {
                assert_eq!(cells.len(), head.len(), "line {}: {line}", number + 1);
                rows.push(Row {
                    line: number + 1,
                    cells,
                });
            }
            () => {}
        }
    }
    assert!(!rows.is_empty(), "no table with the head {head:?}");
    rows
}

/// The code spans of a cell.
fn spans(cell: &'static str) -> Vec<&'static str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The editions a cell names, and whether it says that earlier editions refuse the selector.
fn editions(row: &Row, cell: &str) -> (Vec<Edition>, bool) {
    let named = |name: &str| match name {
        "v0.1" => Edition::V01,
        "depth" => Edition::Depth,
        "canonical" => Edition::Canonical,
        other => panic!("line {}: no edition `{other}`", row.line),
    };
    match cell.strip_suffix('+') {
        Some(since) => {
            let since = rank(named(since));
            let later = EDITIONS
                .into_iter()
                .filter(|edition| rank(*edition) >= since);
            (later.collect(), true)
        }
        None => (cell.split(", ").map(named).collect(), false),
    }
}

fn rank(edition: Edition) -> usize {
    EDITIONS.iter().position(|other| *other == edition).unwrap()
}

/// The content of a result cell: `nothing` or its code span, and the text after it.
fn stated(row: &Row, cell: &'static str) -> String {
    let (result, rest) = match cell.strip_prefix("nothing") {
        Some(rest) => ("nothing", rest),
        None => match cell.strip_prefix('`').and_then(|cell| cell.split_once('`')) {
            Some((result, rest)) if !result.is_empty() => (result, rest),
            _ => panic!("line {}: the row has no result: `{cell}`", row.line),
        },
    };
    assert!(
        rest.is_empty() || rest == WARNED,
        "line {}: `{rest}` is no part of a result",
        row.line
    );
    format!("{result}{rest}")
}

const WARNED: &str = ", with a warning";

fn shown(selection: &Answer) -> String {
    or_nothing(answer::of(selection))
}

/// An answer, and whether it has a warning. Warnings about a range's extent are in its diff.
fn noted(selection: &Answer) -> String {
    let diff = selection.range();
    let warned = !selection.warnings().is_empty() || diff.is_some_and(|d| !d.warnings.is_empty());
    let note = if warned { WARNED } else { "" };
    format!("{}{note}", shown(selection))
}

/// The answer of the engine, as the page writes it.
fn answer(engine: &Engine, session: &Session, text: &str) -> String {
    match engine.0.select(session, text) {
        Err(error) => error.code().to_string(),
        Ok(selection) => noted(&selection),
    }
}

/// The answer of the reference interpreter, which has no warnings.
fn walked(session: &tree::Session, edition: Edition, text: &str) -> String {
    let sel = parse::parse(text, edition);
    let answer = answer::walked(session, edition, &sel, text);
    answer.map_or_else(str::to_owned, or_nothing)
}

fn or_nothing(answer: String) -> String {
    match answer.as_str() {
        "" => "nothing".to_owned(),
        _ => answer,
    }
}

/// The differences from the page, collected so that one run shows all of them.
#[derive(Default)]
struct Check {
    cases: usize,
    wrong: Vec<String>,
}

impl Check {
    fn same(&mut self, row: &Row, who: &str, text: &str, stated: &str, got: &str) {
        self.cases += 1;
        if stated != got {
            self.wrong.push(format!(
                "line {} of language.md and corners.md: `{text}`\n  the page says `{stated}`\n  {who} `{got}`",
                row.line
            ));
        }
    }

    fn done(self, least: usize) {
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
        assert!(self.cases >= least, "only {} cases", self.cases);
    }
}

#[test]
fn every_table_is_run() {
    let known = [
        "| example | edition | result | means |",
        "| example | edition | without its working state | means |",
        "| place | edition | parent and where | means |",
        "| short form | edition | node | means |",
        "| selector | edition | calls | result |",
        "| selector | edition | options | result |",
        "| selector | edition | values | result |",
        "| example | edition | normal form | because |",
        "| code | example | edition | when |",
        // A description of the editions.
        "| edition | omitted time | `#x` | `.cb:sub` | adds |",
    ];
    let lines: Vec<&str> = PAGE.lines().collect();
    for pair in lines.windows(2) {
        if pair[1].starts_with("|---") {
            assert!(known.contains(&pair[0]), "nothing runs {}", pair[0]);
        }
    }
}

#[test]
fn every_example_gives_its_result() {
    let lines: Vec<&str> = FIXTURE.lines().collect();
    examples("result", &lines, 1_000);
}

/// LANGUAGE §3: without a working state of its own, a session still answers an omitted time.
#[test]
fn every_example_without_a_working_state_gives_its_result() {
    let (working, lines): (Vec<&str>, Vec<&str>) = FIXTURE
        .lines()
        .partition(|line| line.contains("\"working\":true"));
    assert_eq!((working.len(), lines.len()), (1, 4));
    examples("without its working state", &lines, 40);
}

/// Runs the tables whose results are in the column `results`, over the session of these lines.
fn examples(results: &str, lines: &[&str], least: usize) {
    let session = engine::open(&lines.join("\n"));
    let reference = tree::Session::from_lines(lines);
    let mut check = Check::default();
    for row in rows(&["example", "edition", results, "means"]) {
        let stated = stated(&row, row.cells[2]);
        let (editions, since) = editions(&row, row.cells[1]);
        let examples = spans(row.cells[0]);
        assert!(!examples.is_empty(), "line {}: no example", row.line);
        for text in examples {
            for edition in EDITIONS {
                let engine = Engine::new(edition);
                let got = answer(&engine, &session, text);
                let who = format!("{edition:?} answers");
                if editions.contains(&edition) {
                    check.same(&row, &who, text, &stated, &got);
                    let found = stated.strip_suffix(WARNED).unwrap_or(&stated);
                    if found.starts_with("E_") && found != "E_SNAPSHOT_NOT_FOUND" {
                        continue;
                    }
                    let got = walked(&reference, edition, text);
                    check.same(&row, &format!("{edition:?} walks to"), text, found, &got);
                } else if since {
                    check.same(&row, &who, text, "E_EDITION", &got);
                }
            }
        }
    }
    check.done(least);
}

/// The examples of the page that have an answer, with their editions.
pub(crate) fn answered() -> Vec<(Edition, &'static str)> {
    let mut found = Vec::new();
    for results in ["result", "without its working state"] {
        for row in rows(&["example", "edition", results, "means"]) {
            if stated(&row, row.cells[2]).starts_with("E_") {
                continue;
            }
            let (editions, _) = editions(&row, row.cells[1]);
            let texts = spans(row.cells[0]);
            found.extend(
                editions
                    .iter()
                    .flat_map(|edition| texts.iter().map(|text| (*edition, *text))),
            );
        }
    }
    found
}

/// Runs every text of a table with three columns before the remarks, and compares what `got` says of it.
fn each_text(head: &[&str], least: usize, got: impl Fn(Edition, &str) -> String) {
    let mut check = Check::default();
    for row in rows(head) {
        let stated = spans(row.cells[2])[0];
        let (editions, since) = editions(&row, row.cells[1]);
        for text in spans(row.cells[0]) {
            for edition in EDITIONS {
                let expected = match editions.contains(&edition) {
                    true => stated,
                    false if since && head[0] == "place" => "E_EDITION",
                    false => continue,
                };
                let who = format!("{edition:?} says");
                check.same(&row, &who, text, expected, &got(edition, text));
            }
        }
    }
    check.done(least);
}

/// The parents of a place, and where among their children.
#[test]
fn every_place_is_where_the_page_says() {
    let session = engine::open(FIXTURE);
    let history = session.history();
    let working = history.working().unwrap();
    let head = ["place", "edition", "parent and where", "means"];
    each_text(&head, 40, |edition, text| {
        let Engine(engine) = Engine::new(edition);
        let spot = match engine.spot(working, text) {
            Ok(spot) => spot,
            Err(error) => return error.code().to_string(),
        };
        let parents = spot.parents.iter().map(|parent| {
            if parent.core {
                format!("core of {}", parent.node.id())
            } else {
                parent.node.id().to_owned()
            }
        });
        let parents = match parents.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "nothing".to_owned(),
            parents => parents,
        };
        match spot.insertion {
            InsertionPoint::Into => format!("{parents}: inside"),
            InsertionPoint::Start => format!("{parents}: first"),
            InsertionPoint::End => format!("{parents}: last"),
            InsertionPoint::After(child) => format!("{parents}: after child {child}"),
            InsertionPoint::Before(child) => format!("{parents}: before child {child}"),
        }
    });
}

#[test]
fn every_short_form_is_the_node_the_page_says() {
    let head = ["short form", "edition", "node", "means"];
    each_text(&head, 40, |edition, text| {
        let edition = Engine::new(edition).0.edition();
        let members = match ir::short_node(text, edition) {
            Ok(members) => members,
            Err(error) => return error.code().to_string(),
        };
        let members = members
            .iter()
            .map(|member| format!("\"{}\":{}", member.name, member.json));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    });
}

/// `limit(1)`, `skip(1)`, `filter(.mt)` on results.
#[test]
fn every_call_on_a_result_gives_its_result() {
    let session = engine::open(FIXTURE);
    let mut check = Check::default();
    for row in rows(&["selector", "edition", "calls", "result"]) {
        let stated = stated(&row, row.cells[3]);
        for edition in editions(&row, row.cells[1]).0 {
            let Engine(engine) = Engine::new(edition);
            let text = spans(row.cells[0])[0];
            let mut selection = engine.rows(&session, text).unwrap();
            for call in spans(row.cells[2]) {
                let call = call.strip_suffix(')').and_then(|call| call.split_once('('));
                selection = match call.unwrap() {
                    ("skip", count) => selection.skip(count.parse().unwrap()),
                    ("limit", count) => selection.limit(count.parse().unwrap()),
                    ("filter", filter) => {
                        let filter = engine.prepare(filter).unwrap();
                        selection.filter(&filter).unwrap()
                    }
                    (other, _) => panic!("line {}: no call `{other}`", row.line),
                };
            }
            let got = shown(&Answer::Rows(selection));
            check.same(&row, &format!("{edition:?} answers"), text, &stated, &got);
        }
    }
    check.done(8);
}

/// `max_snapshots=2`, `max_changes=1`, `stats` as options of a range.
#[test]
fn every_range_with_options_gives_its_result() {
    let session = engine::open(FIXTURE);
    let mut check = Check::default();
    for row in rows(&["selector", "edition", "options", "result"]) {
        let stated = stated(&row, row.cells[3]);
        for edition in editions(&row, row.cells[1]).0 {
            let Engine(engine) = Engine::new(edition);
            let text = spans(row.cells[0])[0];
            let mut options = RangeOptions::default();
            for option in spans(row.cells[2]) {
                let (name, count) = option.split_once('=').unwrap_or((option, "1"));
                let count = count.parse().unwrap();
                match name {
                    "max_snapshots" => options.max_snapshots = Some(count),
                    "max_changes" => options.max_changes = Some(count),
                    "stats" => options.stats = true,
                    other => panic!("line {}: no option `{other}`", row.line),
                }
            }
            let selection = engine.select_with(&session, text, &options).unwrap();
            let got = noted(&selection);
            check.same(&row, &format!("{edition:?} answers"), text, &stated, &got);
        }
    }
    check.done(8);
}

#[test]
fn every_selector_with_values_gives_its_result() {
    let session = engine::open(FIXTURE);
    let mut check = Check::default();
    for row in rows(&["selector", "edition", "values", "result"]) {
        let stated = stated(&row, row.cells[3]);
        let (editions, since) = editions(&row, row.cells[1]);
        for edition in EDITIONS {
            let Engine(engine) = Engine::new(edition);
            let text = spans(row.cells[0])[0];
            let values = spans(row.cells[2]);
            let run = || {
                let mut prepared = engine.prepare(text)?;
                if !values.is_empty() {
                    let values = values.iter().map(|value| value.split_once('=').unwrap());
                    prepared = prepared.bind(values.map(|(name, value)| (name, param(value))))?;
                }
                prepared.select(&session)
            };
            let got = match run() {
                Ok(selection) => shown(&selection),
                Err(error) => error.code().to_string(),
            };
            let who = format!("{edition:?} answers");
            if editions.contains(&edition) {
                check.same(&row, &who, text, &stated, &got);
                let refused = engine.select(&session, text).err();
                let refused = refused.map_or("an answer".to_owned(), |e| e.code().to_string());
                check.same(&row, "select says", text, "E_SELECTOR_INVALID", &refused);
            } else if since {
                check.same(&row, &who, text, "E_EDITION", &got);
            }
        }
    }
    check.done(30);
}

fn param(text: &str) -> Param {
    match text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
    {
        Some(text) => Param::from(text),
        None if text == "null" => Param::Null,
        None => Param::from(text.parse::<i64>().unwrap()),
    }
}

#[test]
fn every_normal_form_is_one() {
    let mut check = Check::default();
    let canonical = Engine::new(Edition::Canonical);
    for row in rows(&["example", "edition", "normal form", "because"]) {
        let stated = stated(&row, row.cells[2]);
        for edition in editions(&row, row.cells[1]).0 {
            for text in spans(row.cells[0]) {
                let got = Engine::new(edition).0.format(text).unwrap();
                let who = format!("{edition:?} prints");
                check.same(&row, &who, text, &stated, &got);
            }
        }
        let again = canonical.0.format(&stated).unwrap();
        check.same(&row, "and again", &stated, &stated, &again);
    }
    check.done(25);
}

#[test]
fn every_code_is_given() {
    let session = engine::open(FIXTURE);
    let mut check = Check::default();
    for row in rows(&["code", "example", "edition", "when"]) {
        let stated = spans(row.cells[0])[0];
        for edition in editions(&row, row.cells[2]).0 {
            for text in spans(row.cells[1]) {
                let got = answer(&Engine::new(edition), &session, text);
                check.same(&row, &format!("{edition:?} answers"), text, stated, &got);
            }
        }
    }
    check.done(15);
    // This example needs another session: the first snapshot alone.
    let bare = engine::open(FIXTURE.lines().next().unwrap());
    for edition in EDITIONS {
        assert_eq!(answer(&Engine::new(edition), &bare, "^ah"), "ah");
    }
}

/// The page draws the session of the examples: its newest snapshot, what the working state adds,
/// and what older snapshots had.
#[test]
fn the_session_is_the_one_on_the_page() {
    let lines: Vec<&str> = FIXTURE.lines().collect();
    let session = tree::Session::from_lines(&lines);
    let newest = session.committed.last().unwrap();
    let mut blocks = PAGE.split("```text\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap();

    assert_eq!(block(), outline(newest, &|_| true));

    let working = session.working.as_ref().unwrap();
    let new = |id: &str| newest.find(id).is_none();
    let older: Vec<&Tree> = session.committed[..2].iter().collect();
    let gone: Vec<String> = older.iter().map(|tree| outline(tree, &new)).collect();
    let gone = gone.last().unwrap();
    assert!(older.iter().all(|tree| tree.find("tip1").is_some()));
    assert!(session.committed[2].find("tip1").is_none());
    assert_eq!(
        block(),
        format!(
            "working state: below ah\n{}@c11 and @c12: below t1\n{gone}",
            outline(working, &new)
        )
        .replace("\n      tip1", "\n    tip1")
    );
}

/// A tree as the page draws it.
fn outline(tree: &Tree, keep: &dyn Fn(&str) -> bool) -> String {
    const FIELDS: [&str; 10] = [
        "role",
        "kind",
        "key",
        "status",
        "offset",
        "ttl",
        "cadence",
        "priority",
        "tags",
        "removable",
    ];
    let mut text = String::new();
    for item in &tree.order {
        let tree::Item::Node(at) = item else { continue };
        let node = &tree.nodes[*at];
        if !keep(&node.id) {
            continue;
        }
        let indent = 2 * node.level as usize;
        let _ = write!(text, "{:indent$}{}", "", node.id);
        if let Some(kind) = node.field("nodeType").and_then(Json::as_str) {
            let _ = write!(text, " {kind}");
        }
        let mut gap = "  ";
        for name in FIELDS {
            let value = match node.field(name) {
                Some(Json::List(items)) => {
                    let items: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
                    items.join(",")
                }
                Some(Json::Str(text)) => text.clone(),
                Some(value) => value.write(),
                None => continue,
            };
            if (name, value.as_str()) != ("role", "system") {
                let _ = write!(text, "{gap}{name}={value}");
                gap = " ";
            }
        }
        text.push('\n');
    }
    text
}
