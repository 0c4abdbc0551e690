//! Selectors over many sessions in one file, beside one statement that finds the same nodes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pactql::{Answer, Store, store::StoreAnswers};
use rusqlite::Row;

use super::support::by_hand::ByHand;
use super::support::generate;
use super::support::memory::measure;
use super::support::table::verdict;
use super::{Effort, Scratch, line, open, timed};

/// The nodes of [`FEW`], by the index of the layout.
macro_rules! few_sql {
    ($columns:literal) => {
        concat!(
            "select ",
            $columns,
            " from attr a \
             cross join placement p on p.unit_id = a.unit_id and p.last_seq = 9223372036854775807 \
             cross join session s on s.session_id = p.session_id \
             cross join node n on n.unit_id = a.unit_id and n.pre = a.pre \
             left join body b on b.body_id = n.body_id \
             where a.name = 'data_topic' and a.text = 'refund' and a.type = 'text' \
             and length(a.text) <= 200 and length(a.name) <= 200 and n.class = 'cb' \
             order by s.name, p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id, n.pre"
        )
    };
}

/// Nodes of a session.
const NODES: usize = 30;
/// Sessions that have what [`FEW`] asks for.
const MATCHING: usize = 20;

/// What few sessions match, and the same as SQL: the name of the session and the id, and with what a reader
/// of the nodes wants to know.
const FEW: &str = "@t0 .cb[data_topic='refund']";
const FEW_SQL: &str = few_sql!("s.name, n.id");
const FEW_BLOCKS_SQL: &str = few_sql!("s.name, n.id, n.role, n.kind, b.text");

/// What all sessions match in all turns, and in the newest one.
const ALL: &str = "@t0 ^seq .cb[role='user']";
const ALL_SQL: &str = "select s.name, n.id from session s \
     cross join placement p on p.session_id = s.session_id and p.rank = 1 \
     and p.last_seq = 9223372036854775807 \
     cross join node n on n.unit_id = p.unit_id where n.class = 'cb' and n.role = 'user' \
     order by s.name, p.sibling_offset, p.created_at_ns, p.creation_index, p.id, n.pre";
const NEWEST: &str = "@t0 ^seq .mt:depth(1) .cb";
const NEWEST_SQL: &str = "select s.name, n.id from session s \
     cross join node n on n.unit_id = (select unit_id from placement p \
     where p.session_id = s.session_id and p.rank = 1 and p.turn and p.last_seq = 9223372036854775807 \
     order by p.sibling_offset desc, p.created_at_ns desc, p.creation_index desc, p.id desc limit 1) \
     where n.class = 'cb' order by s.name, n.pre";

/// All blocks of all sessions, with what a reader of them wants to know.
const BLOCKS: &str = "@t0 .cb";
const BLOCKS_SQL: &str = "select s.name, n.id, n.role, n.kind, b.text from session s \
     cross join placement p on p.session_id = s.session_id and p.last_seq = 9223372036854775807 \
     cross join node n on n.unit_id = p.unit_id left join body b on b.body_id = n.body_id \
     where n.class = 'cb' order by s.name, p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, \
     p.id, n.pre";

/// What both build: in byte order of names, each session with what was found in it.
type Found<T> = Vec<(String, Vec<T>)>;

/// A row of [`BLOCKS_SQL`] without the name.
type Block = (String, Option<String>, Option<String>, String);

/// What few and what all sessions of a file match.
pub(super) fn select(scratch: &Scratch, effort: Effort) {
    let rounds = (effort.rounds / 3).max(1);
    for sessions in [effort.sessions.min(1_000), effort.sessions] {
        let path = file(scratch, sessions);
        let hand = ByHand::open(&path);
        for (what, memory) in [("asked again", 256 << 20), ("from cold", 0)] {
            let store = with_memory(&path, memory);
            let name = |found: &str| format!("20 of {sessions} sessions match, {found}, {what}");
            let by_hand = || ask_by_hand(&hand, FEW_SQL);
            compare(&name("ids"), &|| ask(&store, FEW), &by_hand, rounds);
            let by_hand = || blocks_by_hand(&hand, FEW_BLOCKS_SQL);
            compare(&name("nodes"), &|| blocks(&store, FEW), &by_hand, rounds);
        }
    }
    let path = file(scratch, effort.sessions);
    let hand = ByHand::open(&path);
    let rounds = (effort.rounds / 100).max(1);
    for (what, (selector, sql)) in [
        ("all match in each turn", (ALL, ALL_SQL)),
        ("all match in the newest turn", (NEWEST, NEWEST_SQL)),
    ] {
        let ours = |store: &Store| ask(store, selector);
        let by_hand = || ask_by_hand(&hand, sql);
        whole(&path, what, rounds, ("asked again", 2.0), &ours, &by_hand);
    }
    let ours = |store: &Store| blocks(store, BLOCKS);
    let theirs = || blocks_by_hand(&hand, BLOCKS_SQL);
    let again = ("once loaded", 0.333);
    whole(
        &path,
        "all blocks with texts",
        rounds,
        again,
        &ours,
        &theirs,
    );
    bounded(&path, effort);
}

/// Times what all sessions match, from cold and again, and the statement with the same answer. `again` says what is
/// different then, and how much of the time of the statement it may take.
fn whole<T: PartialEq>(
    path: &Path,
    what: &str,
    rounds: usize,
    (then, limit): (&str, f64),
    ours: &dyn Fn(&Store) -> Found<T>,
    theirs: &dyn Fn() -> Found<T>,
) {
    let (mut cold, mut again, mut by_hand) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let store = with_memory(path, 64 << 30);
        let mut wanted = Vec::new();
        by_hand.push(timed(|| wanted = theirs()));
        for times in [&mut cold, &mut again] {
            let mut found = Vec::new();
            times.push(timed(|| found = ours(&store)));
            assert!(found == wanted && !found.is_empty());
        }
    }
    let mut other = by_hand.clone();
    line(&format!("{what}, from cold"), &mut cold, &mut other, 4.0);
    line(&format!("{what}, {then}"), &mut again, &mut by_hand, limit);
}

fn blocks_by_hand(hand: &ByHand, sql: &str) -> Found<Block> {
    found_by_hand(hand, sql, |row| {
        Ok((row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })
}

fn blocks(store: &Store, selector: &str) -> Found<Block> {
    let mut found = Vec::new();
    for answer in answers(store, selector) {
        let answer = answer.expect("an answer");
        let Answer::Rows(rows) = &answer.answer else {
            continue;
        };
        let blocks = rows.nodes().map(|node| {
            let [role, kind] = [node.role(), node.kind()].map(|text| text.map(str::to_owned));
            (node.id().to_owned(), role, kind, node.text().into_owned())
        });
        found.push((answer.session.clone(), blocks.collect()));
    }
    found
}

/// The memory that asking all sessions takes while few of them may stay.
fn bounded(path: &Path, effort: Effort) {
    for budget in [1, 64] {
        let store = with_memory(path, budget << 20);
        let count = || answers(&store, ALL).count();
        let (found, _, peak) = measure(count);
        assert_eq!(found, effort.sessions);
        let (peak, budget) = (peak as f64 / (1 << 20) as f64, budget as f64);
        // The names of the sessions are listed first, and some are on their way.
        let allowed = budget + 2.0 + effort.sessions as f64 * 100.0 / (1 << 20) as f64;
        println!(
            "{:<52}{peak:>9.1} MB{budget:>9} MB{:>19.0}  {}",
            "all match: the peak of memory, the budget",
            allowed,
            verdict(peak <= allowed)
        );
    }
}

pub(super) fn with_memory(path: &Path, bytes: usize) -> Store {
    let url = path.to_str().expect("a path");
    let builder = Store::builder().must_exist().memory(bytes);
    builder.connect(url).expect("the store opens")
}

/// Times a selector and a statement with the same answer, both several times.
fn compare<T: PartialEq>(
    name: &str,
    ours: &dyn Fn() -> Found<T>,
    theirs: &dyn Fn() -> Found<T>,
    rounds: usize,
) {
    let wanted = theirs();
    assert_eq!(wanted.len(), MATCHING);
    assert!(ours() == wanted);
    let (mut selected, mut by_hand) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        selected.push(timed(ours));
        by_hand.push(timed(theirs));
    }
    line(name, &mut selected, &mut by_hand, 2.0);
}

fn answers<'s>(store: &'s Store, selector: &str) -> StoreAnswers<'s> {
    store
        .select(selector)
        .and_then(|asked| asked.answers())
        .expect("the selector runs")
}

fn ask(store: &Store, selector: &str) -> Found<String> {
    let mut found = Vec::new();
    let asked = store.select(selector).expect("the selector runs");
    for answer in asked.ids().expect("the selector runs") {
        let answer = answer.expect("an answer");
        let ids = answer.ids().map(str::to_owned).collect();
        found.push((answer.session().to_owned(), ids));
    }
    found
}

fn ask_by_hand(hand: &ByHand, sql: &str) -> Found<String> {
    found_by_hand(hand, sql, |row| row.get(1))
}

/// The rows of a statement, in which those of a session come one after the other, by the names of sessions.
fn found_by_hand<T>(
    hand: &ByHand,
    sql: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Found<T> {
    let mut found: Found<T> = Vec::new();
    hand.all(sql, [], |row| {
        let name = row.get_ref(0)?.as_str()?;
        match found.last_mut() {
            Some((last, list)) if last == name => list.push(read(row)?),
            _ => found.push((name.to_owned(), vec![read(row)?])),
        }
        Ok(())
    });
    found
}

/// A store of so many sessions. It is made once; with `PACTQL_BENCH_FILES` it stays in that directory.
pub(super) fn file(scratch: &Scratch, sessions: usize) -> PathBuf {
    let name = format!("many-{sessions}.db");
    let kept = std::env::var_os("PACTQL_BENCH_FILES").map(PathBuf::from);
    let path = kept.map_or(scratch.file(&name), |kept| kept.join(&name));
    if path.exists() {
        return path;
    }
    let part = path.with_extension("part");
    let store = open(&part);
    let every = (sessions / MATCHING).max(1);
    let made = (0..sessions).map(|number| {
        let topic = match number % every {
            0 => "refund",
            _ => "other",
        };
        let session = super::engine::load(document(number, topic).as_bytes());
        (format!("chat/{number:06}"), session, None)
    });
    store.import_all(made).expect("an import");
    drop(store);
    let hand = ByHand::open(&part);
    hand.all("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    drop(hand);
    std::fs::rename(&part, &path).expect("a file");
    path
}

/// A session of [`NODES`] nodes: a prompt that all share, three turns of six blocks, and a block in the head.
/// The first block of the newest turn has a topic.
fn document(number: usize, topic: &str) -> String {
    const BLOCKS: [(&str, &str); 6] = [
        ("user", "text"),
        ("assistant", "thinking"),
        ("assistant", "call"),
        ("tool", "result"),
        ("assistant", "call"),
        ("tool", "result"),
    ];
    let mut next = number * NODES;
    let mut id = || {
        next += 1;
        generate::id(next as u64)
    };
    let mut text = String::new();
    let (root, sys, seq, head) = (id(), id(), id(), id());
    let _ = write!(
        text,
        r#"{{"cycle":3,"root":{{"id":"{root}","children":[{{"id":"{sys}","nodeType":"^sys","children":["#
    );
    let prompt = "You answer questions about orders, and look them up before you do.";
    let _ = write!(
        text,
        r#"{{"id":"{}","nodeType":"cb","role":"system","kind":"text","content":"{prompt}"}}]}},"#,
        id()
    );
    let _ = write!(text, r#"{{"id":"{seq}","nodeType":"^seq","children":["#);
    for turn in 0..3 {
        let comma = if turn == 0 { "" } else { "," };
        let created = 1_700_000_000_000_000_000_u64 + turn * 60_000_000_000;
        let _ = write!(
            text,
            r#"{comma}{{"id":"{}","nodeType":"mt","created_at_ns":{created},"children":[{{"id":"{}","nodeType":"mc","children":["#,
            id(),
            id()
        );
        for (at, (role, kind)) in BLOCKS.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let own = id();
            let custom = match at {
                0 if turn == 2 => format!(r#""data_topic":"{topic}","#),
                _ => String::new(),
            };
            let _ = write!(
                text,
                r#"{comma}{{"id":"{own}","nodeType":"cb","role":"{role}","kind":"{kind}",{custom}"creation_index":{at},"content":"{own} has the details of order {number}, in its own words, as a message of some length would."}}"#
            );
        }
        text.push_str("]}]}");
    }
    let _ = write!(
        text,
        r#"]}},{{"id":"{head}","nodeType":"^ah","children":[{{"id":"{}","nodeType":"cb","role":"user","kind":"text","offset":1,"content":"draft"}}]}}]}}}}"#,
        id()
    );
    text
}
