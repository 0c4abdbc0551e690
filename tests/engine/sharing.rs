//! Sharing between snapshots: rows are stored for changes, not for every snapshot.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use pactql::context::StepClock;
use pactql::internals::index::{NodeRef, Segment, Snapshot, Writer};
use pactql::internals::tree::read_lines;
use pactql::{Context, History, Message, Session};

use crate::support::random::Rng;

/// One block of a turn.
fn block(id: &str, offset: i64, ttl: Option<i64>) -> String {
    let ttl = ttl.map_or("null".to_owned(), |ttl| ttl.to_string());
    format!(r#"{{"id":"{id}","nodeType":"cb","offset":{offset},"ttl":{ttl},"content":"of {id}"}}"#)
}

/// A whole document of cycle `cycle` with these turns.
fn document(cycle: i64, turns: &[String]) -> String {
    format!(
        r#"{{"cycle":{cycle},"root":{{"id":"r","children":[{{"id":"s","nodeType":"^sys","children":[{}]}},{{"id":"q","nodeType":"^seq","children":[{}]}},{{"id":"a","nodeType":"^ah","children":[]}}]}}}}"#,
        block("policy", 0, None),
        turns.join(",")
    )
}

fn turn(number: usize, blocks: &[String]) -> String {
    format!(
        r#"{{"id":"t{number}","nodeType":"mt","created_at_ns":{number},"children":[{}]}}"#,
        blocks.join(",")
    )
}

/// A session whose document of cycle N has the turns that `turns` returns for N.
fn session(cycles: i64, turns: impl Fn(i64) -> Vec<String>) -> (String, Arc<History>) {
    let mut lines = String::new();
    for cycle in 1..=cycles {
        let _ = writeln!(lines, "{}", document(cycle, &turns(cycle)));
    }
    let session = Session::from_slice(lines.as_bytes()).expect("the session is valid");
    (lines, session.history())
}

/// The number of distinct segments of a history and of their rows.
fn segments(history: &History) -> (usize, usize) {
    let mut seen: BTreeMap<*const Segment, usize> = BTreeMap::new();
    for snapshot in history.committed() {
        for piece in snapshot.pieces() {
            seen.insert(Arc::as_ptr(piece.segment()), piece.segment().len() as usize);
        }
    }
    (seen.len(), seen.values().sum())
}

/// Everything a reader can see of a snapshot.
fn contents(snapshot: &Snapshot) -> Vec<String> {
    let show = |node: NodeRef<'_>| {
        format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            node.id(),
            node.class(),
            node.depth(),
            node.parent().map(NodeRef::id),
            node.ttl(),
            node.offset(),
            node.children().map(NodeRef::id).collect::<Vec<_>>(),
            node.fields().collect::<Vec<_>>(),
        )
    };
    snapshot.nodes().map(show).collect()
}

/// Every snapshot has the contents it has in a session without merging, and those of its own
/// document read alone.
fn assert_reads_alike(lines: &str, history: &History) {
    let documents = read_lines(lines.as_bytes()).expect("the lines are valid");
    let apart = Session::build(documents, Writer::new().without_merging()).expect("a session");
    let apart = apart.history();
    assert_eq!(apart.committed().len(), history.committed().len());
    for ((snapshot, apart), line) in history
        .committed()
        .iter()
        .zip(apart.committed())
        .zip(lines.lines())
    {
        let alone = Session::from_slice(line.as_bytes())
            .expect("one document")
            .history();
        let expected = contents(&alone.committed()[0]);
        assert_eq!(contents(snapshot), expected);
        assert_eq!(contents(apart), expected);
        assert_eq!(snapshot.len(), expected.len());
    }
}

#[test]
fn a_growing_session_keeps_each_turn_about_once_and_has_few_pieces() {
    let turns = 200;
    let (lines, history) = session(turns, |cycle| {
        (1..=cycle as usize)
            .map(|n| turn(n, &[block(&format!("b{n}"), 0, None)]))
            .collect()
    });
    let (count, rows) = segments(&history);
    // A turn has three rows with its implicit core. Without sharing there would be 60,000.
    let whole: usize = history
        .committed()
        .iter()
        .map(|snapshot| snapshot.len())
        .sum();
    assert!(whole > 40_000, "{whole}");
    assert!(
        rows <= 3 * turns as usize + 3 * turns as usize,
        "{rows} rows in {count} segments"
    );
    for snapshot in history.committed() {
        let most = 2 * (u32::BITS - snapshot.turns().leading_zeros()) as usize + 8;
        assert!(snapshot.pieces().len() <= most);
    }
    assert_reads_alike(&lines, &history);
}

#[test]
fn few_rows_are_one_segment_in_all_snapshots() {
    let (lines, history) = session(18, |cycle| {
        (1..=cycle as usize)
            .map(|n| turn(n, &[block(&format!("b{n}"), 0, None)]))
            .collect()
    });
    // Six rows without the turns, three for each.
    assert_eq!(segments(&history), (1, 60));
    for snapshot in history.committed() {
        assert!(snapshot.pieces().len() <= 2, "the turns, and the head");
    }
    assert_eq!(
        history.latest().map(|newest| newest.pieces().len()),
        Some(1)
    );
    assert_reads_alike(&lines, &history);

    // A turn that changes with each commit does not take the others with it.
    let cycles = 40;
    let (lines, history) = session(cycles, |cycle| {
        let block = |n| match n {
            3 => block(&format!("b{n}-{cycle}"), 0, None),
            _ => block(&format!("b{n}"), 0, None),
        };
        (1..=10).map(|n| turn(n, &[block(n)])).collect()
    });
    let (count, rows) = segments(&history);
    assert!(
        rows <= 3 * cycles as usize + 2 * 36,
        "{rows} rows in {count} segments"
    );
    assert_reads_alike(&lines, &history);
}

#[test]
fn the_newest_turns_share_a_segment_while_they_are_small() {
    for (bytes, least, most) in [(10, 6, 8), (70_000, 0, 3)] {
        // Where there are more than 64 rows. One of four commits begins a batch.
        let beside = (41..49).filter(|&cycles| {
            let (lines, history) = session(cycles, |cycle| {
                let text = "x".repeat(bytes);
                let block = |n| block(&format!("b{n}"), 0, None).replace("of b", &text);
                (1..=cycle).map(|n| turn(n as usize, &[block(n)])).collect()
            });
            if bytes < 100 {
                assert_reads_alike(&lines, &history);
            }
            let newest = history.latest().expect("a snapshot");
            let piece = |n| {
                let turn = newest.find(&format!("t{n}"));
                turn.expect("a turn").piece()
            };
            piece(cycles) == piece(cycles - 1)
        });
        let beside = beside.count();
        assert!(
            (least..=most).contains(&beside),
            "{bytes}: {beside} of eight"
        );
    }
}

/// Older snapshots of a session that is written move to what commits merge, the newest of them a few commits later.
#[test]
fn older_snapshots_of_a_written_session_move() {
    let clock = StepClock::new(1 << 60, 1_000);
    let mut context = Context::builder().clock(clock).build();
    for turn in 0..300 {
        let question = Message::user(&format!("What is {turn} times two?"));
        context.append(question).expect("a question");
        let answer = Message::assistant(&format!("{}", 2 * turn));
        context.reply(answer).expect("an answer");
        context.commit().expect("a commit");
        let history = context.session().history();
        let newest = history.committed().last().expect("a snapshot");
        let pieces = newest.pieces();
        let newest: usize = pieces
            .iter()
            .map(|piece| piece.segment().len() as usize)
            .sum();
        let (count, rows) = segments(&history);
        // Few short segments of the newest turns wait.
        assert!(count <= pieces.len() + 3, "{count} after turn {turn}");
        assert!(rows <= newest + 64, "{rows} rows after turn {turn}");
    }
}

#[test]
fn ttls_that_count_down_and_ttls_that_stay_are_both_shared() {
    for counting in [true, false] {
        let (lines, history) = session(60, |cycle| {
            (1..=cycle)
                .map(|n| {
                    let left = if counting {
                        (n + 100 - cycle).max(0)
                    } else {
                        7
                    };
                    turn(n as usize, &[block(&format!("b{n}"), 0, Some(left))])
                })
                .collect()
        });
        let (count, rows) = segments(&history);
        assert!(
            rows < 900,
            "counting {counting}: {rows} rows in {count} segments"
        );
        assert_reads_alike(&lines, &history);
    }
}

#[test]
fn blocks_that_expire_are_masked_and_cost_no_new_rows() {
    let (lines, history) = session(80, |cycle| {
        (1..=cycle)
            .map(|n| {
                let mut blocks = vec![
                    block(&format!("b{n}"), 0, None),
                    block(&format!("c{n}"), 0, None),
                ];
                if n + 3 > cycle {
                    blocks.insert(0, block(&format!("p{n}"), -1, Some(n + 3 - cycle)));
                }
                turn(n as usize, &blocks)
            })
            .collect()
    });
    let (count, rows) = segments(&history);
    assert!(
        rows < 80 * 5 * 2 + 80 * 2,
        "{rows} rows in {count} segments"
    );
    assert_reads_alike(&lines, &history);
}

#[test]
fn a_change_in_an_old_turn_costs_that_turn() {
    let (lines, history) = session(64, |cycle| {
        (1..=50)
            .map(|n| {
                let mut blocks = vec![block(&format!("b{n}"), 0, None)];
                if n == 1 + cycle % 50 {
                    blocks.push(block(&format!("late{cycle}"), 1, None));
                }
                turn(n as usize, &blocks)
            })
            .collect()
    });
    let whole: usize = history
        .committed()
        .iter()
        .map(|snapshot| snapshot.len())
        .sum();
    let (count, rows) = segments(&history);
    assert!(
        rows * 2 < whole,
        "{rows} rows in {count} segments, {whole} in all snapshots"
    );
    assert_reads_alike(&lines, &history);
}

#[test]
fn turns_that_go_and_come_back_read_right() {
    let (lines, history) = session(40, |cycle| {
        (1..=30)
            .filter(|n| (n + cycle) % 7 != 0)
            .map(|n| turn(n as usize, &[block(&format!("b{n}"), n % 3 - 1, None)]))
            .collect()
    });
    assert_reads_alike(&lines, &history);
}

/// Blocks of each unit of a session that changes at random: their ids and contents.
type Units = BTreeMap<&'static str, Vec<(String, String)>>;

/// A block with a content, as a document has it, or a difference that says its parent.
fn large(id: &str, content: &str, index: usize, parent: Option<&str>) -> String {
    let parent = parent.map_or(String::new(), |parent| {
        format!(r#","parent_id":"{parent}""#)
    });
    format!(
        r#"{{"id":"{id}","nodeType":"cb","creation_index":{index},"data_n":"{}","content":"{content}"{parent}}}"#,
        content.len()
    )
}

/// The document of a cycle with these blocks.
fn large_document(cycle: usize, units: &Units) -> String {
    let blocks = |unit: &str| {
        let blocks = units[unit].iter().enumerate();
        let blocks = blocks.map(|(at, (id, content))| large(id, content, at, None));
        blocks.collect::<Vec<_>>().join(",")
    };
    format!(
        r#"{{"cycle":{cycle},"root":{{"id":"r","children":[{{"id":"s","nodeType":"^sys","children":[{}]}},{{"id":"q","nodeType":"^seq","children":[{{"id":"t","nodeType":"mt","children":[{}]}}]}},{{"id":"a","nodeType":"^ah","children":[{}]}}]}}}}"#,
        blocks("s"),
        blocks("t"),
        blocks("a")
    )
}

/// Units with more contents than are copied, in which blocks are added, changed, removed and put elsewhere: what is shared
/// of their earlier versions is what each snapshot says, in whole documents and in differences.
#[test]
fn units_with_large_contents_share_what_stays() {
    let mut rng = Rng::new(11);
    let mut units: Units = ["s", "t", "a"].map(|unit| (unit, Vec::new())).into();
    let mut whole = large_document(1, &units);
    let mut differences = whole.clone();
    for cycle in 2..=400 {
        let unit = *rng.pick(&["s", "t", "a"]);
        let blocks = units.get_mut(unit).unwrap();
        let before = blocks.clone();
        // Most of a unit goes now and then.
        let kept = if cycle % 60 == 0 { 2 } else { usize::MAX };
        blocks.truncate(kept);
        let at = rng.below(blocks.len() + 1);
        let content = format!("{cycle} ").repeat(1 + rng.below(900));
        match rng.below(4) {
            0 if at < blocks.len() => blocks[at].1 = content,
            1 if at < blocks.len() => drop(blocks.remove(at)),
            2 if at < blocks.len() => {
                let block = blocks.remove(at);
                blocks.push(block);
            }
            _ => blocks.insert(at, (format!("b{cycle}"), content)),
        }
        let is_gone = |id: &str| blocks.iter().all(|(other, _)| other != id);
        let gone = before.iter().filter(|(id, _)| is_gone(id));
        let gone: Vec<String> = gone.map(|(id, _)| format!(r#""{id}""#)).collect();
        let named = blocks.iter().enumerate();
        let named = named.filter(|(index, block)| before.get(*index) != Some(*block));
        let named = named.map(|(index, (id, content))| large(id, content, index, Some(unit)));
        let _ = write!(
            differences,
            "\n{{\"base\":{},\"cycle\":{cycle},\"remove\":[{}],\"replace\":[{}]}}",
            cycle - 1,
            gone.join(","),
            named.collect::<Vec<_>>().join(",")
        );
        let _ = write!(whole, "\n{}", large_document(cycle, &units));
    }
    let read = |text: &str| Session::from_slice(text.as_bytes()).expect("a session");
    let (of_documents, of_differences) = (read(&whole).history(), read(&differences).history());
    assert_reads_alike(&whole, &of_documents);
    for (one, other) in of_documents
        .committed()
        .iter()
        .zip(of_differences.committed())
    {
        assert_eq!(contents(one), contents(other));
    }
    assert_eq!(of_differences.committed().len(), 400);
}
