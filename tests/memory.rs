//! The memory of a loaded session, counted as bytes requested from the allocator. The number is
//! the same on every machine, so limits can be asserted, unlike times.
//!
//! There is one test function, so that nothing else allocates while it counts.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/cases.rs"]
mod cases;
#[allow(dead_code, reason = "the bench uses the rest")]
#[path = "../benches/sessions/classes.rs"]
mod classes;
#[allow(dead_code, reason = "the bench uses the rest")]
#[path = "../benches/sessions/contenders.rs"]
mod contenders;
#[path = "../benches/sessions/grow.rs"]
mod grow;
#[path = "../benches/support/mod.rs"]
mod support;

use pactql::budget::{BuildOptions, Cache, Query, build};
use pactql::internals::index::Segment;
use pactql::logs::{ImportOptions, import_file, lost_in_export};
use pactql::{Context, Engine, Message, Session, Store, context::StepClock};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use support::contenders::payload;
use support::memory::{Counting, asked_by, counted_blocks, measure};
use support::{generate, walk};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes a node may take in addition to its id, content and custom fields: 14 MB for 100,000
/// nodes.
const BYTES_PER_NODE: usize = 140;

/// Loads `bytes`; returns the session and the bytes it holds.
fn load(bytes: &[u8]) -> (Session, usize) {
    let load = || Session::from_slice(bytes).expect("the generated session is valid");
    let (session, held, _) = measure(load);
    (session, held)
}

#[test]
fn memory_follows_nodes_and_changes() {
    // The first load allocates what the process allocates once.
    drop(load(&generate::document(1_000)));

    an_index_is_small();
    a_long_session_shares_its_rows();
    a_difference_costs_what_it_changes();
    a_written_session_keeps_what_changed();
    a_waiting_session_is_small();
    a_step_of_an_agent_allocates_little();
    answers_over_a_store_stay_within_its_memory();
    whole_snapshots_find_the_sharing_again();
    counting_lists_nothing();
    a_select_allocates_the_list_of_its_ids();
    a_cache_is_built_in_one_pass();
    an_export_is_verified_line_by_line();
    a_bomb_takes_what_the_limit_allows();
    // Each of these takes seconds, so it is left to CI.
    if !cases::few() {
        a_unit_that_changes_keeps_its_contents();
        a_range_holds_its_answer();
        a_log_is_imported_with_memory_for_its_longest_context();
        a_session_is_verified_in_twice_its_file();
    }
}

/// A stream of gzip members: the first one, then another one again and again, for 4 GB and more.
struct Bomb {
    member: Vec<u8>,
    at: usize,
    left: usize,
    rest: Vec<u8>,
}

impl Bomb {
    fn new(start: &str, megabyte: &str) -> Self {
        let pack = |text: &[u8]| {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(text).expect("memory");
            out.finish().expect("memory")
        };
        Self {
            member: pack(start.as_bytes()),
            at: 0,
            left: 4 << 10,
            rest: pack(megabyte.repeat((1 << 20) / megabyte.len()).as_bytes()),
        }
    }
}

impl std::io::Read for Bomb {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.member.len() {
            if self.left == 0 {
                return Ok(0);
            }
            self.left -= 1;
            self.at = 0;
            self.member.clone_from(&self.rest);
        }
        let bytes = self.member.get(self.at..).unwrap_or_default();
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Four gigabytes that come out of some megabytes take what the limit allows, and blanks one or two megabytes.
fn a_bomb_takes_what_the_limit_allows() {
    use pactql::internals::tree::{Limits, read_source};
    const MOST: u64 = 16 << 20;
    let limits = Limits { max_input: MOST };
    let path = std::env::temp_dir().join(format!("pactql-bomb-{}.json.gz", std::process::id()));
    let large = "larger than 16777216 bytes";
    let blank = "white space or zeros";
    for (start, megabyte, said, most) in [
        ("[", "1,", large, 3 * MOST as usize),
        ("{\"root\":{\"id\":\"", "endless.", large, 3 * MOST as usize),
        ("{\"root\":{}}\n", "{\"a\":1}\n", large, 3 * MOST as usize),
        ("", " ", blank, 4 << 20),
        ("", "\0", blank, 4 << 20),
    ] {
        let mut file = fs::File::create(&path).expect("a file");
        let packed = std::io::copy(&mut Bomb::new(start, megabyte), &mut file);
        assert!(packed.expect("space") < 64 << 20);
        let (read, _, peak) = measure(|| read_source(&path, limits));
        let error = read.expect_err("too large").to_string();
        assert!(error.contains(said), "{error}");
        println!("a bomb of {megabyte:?} takes {peak} bytes");
        assert!(peak < most, "{megabyte:?} took {peak} bytes");
    }
    fs::remove_file(path).expect("removed");
}

/// A session of lines after a first one with a root, `^sys` and `^seq`; each replaces what `nodes` says of its cycle.
fn lines(commits: usize, nodes: impl Fn(usize) -> String) -> String {
    let mut lines = r#"{"cycle":1,"root":{"id":"r","children":[{"id":"s","nodeType":"^sys"},{"id":"q","nodeType":"^seq"}]}}"#.to_owned();
    for cycle in 2..=commits {
        let (base, nodes) = (cycle - 1, nodes(cycle));
        lines.push_str(&format!(
            "\n{{\"base\":{base},\"cycle\":{cycle},\"remove\":[],\"replace\":[{nodes}]}}"
        ));
    }
    lines
}

/// A block that says a word with its number so many times.
fn block(id: usize, parent: &str, number: usize, times: usize) -> String {
    let content = format!("{number} words ").repeat(times);
    format!(
        r#"{{"id":"b{id}","nodeType":"cb","role":"user","content":"{content}","parent_id":"{parent}"}}"#
    )
}

/// A session of lines that each add a turn with one block of so many times two words.
fn grown(commits: usize, times: usize) -> String {
    lines(commits, |cycle| {
        let block = block(cycle, &format!("t{cycle}"), cycle, times);
        format!(
            r#"{{"id":"t{cycle}","nodeType":"mt","created_at_ns":{cycle},"parent_id":"q"}},{block}"#
        )
    })
}

/// Writing an export and reading it again takes far less than the session itself, and is linear in what changed.
fn an_export_is_verified_line_by_line() {
    let verify = |commits: usize| {
        let lines = grown(commits, 1_000);
        let session = Session::from_slice(lines.as_bytes()).expect("a session");
        let history = session.history();
        let working = history.working().map(|working| &**working);
        let verify = || lost_in_export(history.committed(), working).expect("not cancelled");
        let (lost, _, peak) = measure(verify);
        assert_eq!(lost, []);
        (lines.len(), peak, asked_by(verify))
    };
    let (short, long) = (verify(100), verify(400));
    println!(
        "exports of {} and {} bytes are verified with {} and {}",
        short.0, long.0, short.1, long.1
    );
    assert!(long.1 < long.0 / 2, "{} bytes took {}", long.0, long.1);
    assert!(long.2 < short.2 * 5, "{} bytes became {}", short.2, long.2);
}

/// Reading a file and verifying its export takes less than twice the file, whether it is one document or many lines.
fn a_session_is_verified_in_twice_its_file() {
    let block = |number: usize| {
        let content = format!("{number} words ").repeat(50);
        format!(r#"{{"content":"{content}","id":"b{number}","nodeType":"cb","role":"user"}}"#)
    };
    let document = |blocks: std::ops::Range<usize>, cycle: usize| {
        let blocks: Vec<String> = blocks.map(block).collect();
        let blocks = blocks.join(",");
        format!(
            r#"{{"cycle":{cycle},"root":{{"children":[{{"children":[{blocks}],"id":"sys","nodeType":"^sys"}}],"id":"r"}}}}"#
        ) + "\n"
    };
    let path = std::env::temp_dir().join(format!("pactql-twice-{}.jsonl", std::process::id()));
    let lines = (1..=20).map(|cycle| document(800 * (cycle - 1)..800 * cycle, cycle));
    for (name, text) in [
        ("one document", document(0..16_000, 1)),
        ("lines of documents", lines.collect()),
        ("differences", grown(800, 1_000)),
        ("differences of a small turn each", grown(20_000, 33)),
    ] {
        fs::write(&path, &text).expect("a file");
        let verify = || {
            let session = Session::open(&path).expect("a session");
            let history = session.history();
            lost_in_export(history.committed(), None).expect("not cancelled")
        };
        let (lost, _, peak) = measure(verify);
        println!(
            "{name}: {} bytes are read and verified with {peak}",
            text.len()
        );
        assert_eq!(lost, []);
        assert!(
            peak < 2 * text.len(),
            "{name} took {peak} of {}",
            text.len()
        );
    }
    fs::remove_file(path).expect("removed");
}

/// A log of Claude Code with a compaction after every twenty turns.
fn compacted_log(path: &Path, turns: usize) -> u64 {
    let mut log = std::io::BufWriter::new(fs::File::create(path).expect("a file"));
    let mut at = 0;
    let mut put = |kind: &str, more: serde_json::Value| {
        let parent = (at > 0).then(|| format!("u{}", at - 1));
        let mut line = serde_json::json!({"type": kind, "uuid": format!("u{at}"), "parentUuid": parent,
            "sessionId": "s", "isSidechain": false, "timestamp": "2026-03-02T09:00:00Z"});
        for (name, value) in more.as_object().expect("an object") {
            line[name] = value.clone();
        }
        at += 1;
        writeln!(log, "{line}").expect("space");
    };
    for turn in 0..turns {
        let text = format!("{turn} ").repeat(6_000);
        put(
            "user",
            serde_json::json!({"message": {"role": "user", "content": text}}),
        );
        put(
            "assistant",
            serde_json::json!({"message": {"role": "assistant", "id": format!("m{turn}"), "model": "m",
                "content": [{"type": "text", "text": format!("reply {turn}")}]}}),
        );
        if turn % 20 == 19 {
            put(
                "system",
                serde_json::json!({"subtype": "compact_boundary", "compactMetadata": {}}),
            );
            put(
                "user",
                serde_json::json!({"isCompactSummary": true,
                    "message": {"role": "user", "content": "what was said"}}),
            );
        }
    }
    log.flush().expect("space");
    fs::metadata(path).expect("a file").len()
}

/// Four times the log takes hardly more memory: what the model is sent bounds it, and some bytes a line.
fn a_log_is_imported_with_memory_for_its_longest_context() {
    let directory = std::env::temp_dir().join(format!("pactql-memory-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let import = |turns: usize| {
        let path = directory.join(format!("{turns}.jsonl"));
        let length = compacted_log(&path, turns);
        let log = fs::File::open(&path).expect("the log");
        let database = directory.join(format!("{turns}.db"));
        let store = Store::open(database.display().to_string()).expect("a store");
        let (snapshots, _, peak) = measure(|| {
            let spool = tempfile::tempfile_in(&directory).expect("a file");
            let imported = import_file(&log, spool, &ImportOptions::default());
            let mut imported = imported.expect("a good log").expect("lines");
            let recording = imported.sessions.remove(0).recording;
            let session = Session::replayed(Arc::new(recording));
            let done = store.import_log(&[("log".to_owned(), session)], None);
            done.expect("a new session").snapshots
        });
        assert_eq!(snapshots, turns + turns / 20);
        (length as usize, peak)
    };
    let (short, long) = (import(200), import(800));
    println!(
        "logs of {} and {} bytes: {} and {} bytes at most",
        short.0, long.0, short.1, long.1
    );
    assert!(long.0 > 3 * short.0);
    assert!(long.1 < short.1 + short.1 / 2, "{short:?} became {long:?}");
    assert!(long.1 < long.0 / 2, "{long:?}");
    fs::remove_dir_all(directory).expect("removed");
}

fn an_index_is_small() {
    for nodes in [1_000, 10_000] {
        let bytes = generate::document(nodes);
        let kept = payload(&walk::load(&bytes));
        let (_session, held) = load(&bytes);
        let beyond = held.saturating_sub(kept);
        println!(
            "{nodes} nodes: {held} bytes, {} a node beyond payload",
            beyond / nodes
        );
        assert!(
            beyond <= BYTES_PER_NODE * nodes,
            "{nodes} nodes hold {beyond} bytes beyond their payload"
        );
    }
}

/// Each commit adds a turn, so twice as many commits may take little more than twice the bytes.
/// With rows for each snapshot it would be four times.
fn a_long_session_shares_its_rows() {
    let (_short, short) = load(&generate::committed(300));
    let (session, long) = load(&generate::committed(600));
    println!("300 commits: {short} bytes; 600 commits: {long} bytes");
    assert!(long < short * 5 / 2, "{short} bytes became {long}");

    let history = session.history();
    assert_eq!(history.committed().len(), 601);
    for snapshot in history.committed() {
        let pieces = snapshot.pieces().len() as u32;
        let turns = snapshot.turns().max(1);
        assert!(
            pieces <= 2 * turns.ilog2() + 8 + 2,
            "{pieces} pieces for {turns} turns"
        );
    }
}

/// Loading eight times as many commits, each with one more turn, may request little more than
/// eight times the bytes (rows are copied again each time their number doubles). With a tree for
/// each snapshot it would be sixty-four times.
fn a_difference_costs_what_it_changes() {
    let work = |turns: usize| {
        let bytes = generate::committed(turns);
        asked_by(|| Session::from_slice(&bytes).expect("the generated session is valid"))
    };
    let (short, long) = (work(250), work(2_000));
    println!("250 commits ask for {short} bytes, 2,000 for {long}");
    assert!(long < short * 13, "{short} bytes became {long}");
}

/// Lines that add a block of 11 KB to `^sys`, or change one of its 250 blocks: all of it is indexed again each time, but the
/// contents that stay are there once.
fn a_unit_that_changes_keeps_its_contents() {
    for (name, text, most) in [
        (
            "grows",
            lines(600, |cycle| block(cycle, "s", cycle, 1_000)),
            8,
        ),
        (
            "changes",
            lines(2_000, |cycle| block(cycle % 250, "s", cycle, 60)),
            30,
        ),
    ] {
        let (session, held) = load(text.as_bytes());
        println!(
            "{} bytes of lines whose `^sys` {name} hold {held}",
            text.len()
        );
        assert!(held < most * text.len(), "{} bytes hold {held}", text.len());
        assert_eq!(session.history().committed().len(), text.lines().count());
    }
}

/// A thousand snapshots of a session of 10,000 nodes that gets ten more in each: little more than
/// the newest one alone.
fn a_written_session_keeps_what_changed() {
    const MOST: usize = 40 << 20;
    let lines = generate::live(1_000, 0, true);
    let blocks = generate::new_blocks(8_000);
    let write = || {
        let session = Session::from_slice(&lines).expect("the generated session is valid");
        let builder = Context::builder().clock(StepClock::new(1 << 61, 1_000));
        let mut context = builder.resume(&session).expect("the session goes on");
        for turn in blocks.chunks(8) {
            for block in turn {
                context.add("^ah", block).expect("a block can be added");
            }
            context.commit().expect("a commit");
        }
        context.session()
    };
    let (session, held, _) = measure(write);
    let history = session.history();
    let newest = history.committed().last().map_or(0, |newest| newest.len());
    println!("1,001 snapshots of a written session, {newest} nodes in the newest: {held} bytes");
    assert_eq!((history.committed().len(), newest), (1_001, 20_004));
    assert!(held < MOST, "{held} bytes are held");
}

/// A small session that grew by commits holds little beside its own texts; a prompt that other sessions have is there once.
fn a_waiting_session_is_small() {
    const MOST: usize = 10_000;
    let prompt = "You book flights. ".repeat(300);
    let grow = || {
        let clock = StepClock::new(1 << 60, 1_000);
        let mut context = Context::builder().clock(clock).build();
        context.append(Message::system(&prompt)).expect("a message");
        for turn in 0..6 {
            let call = format!("call{turn}");
            let message = match turn % 2 {
                0 => Message::user("How do I get to Graz?"),
                _ => Message::tool(&format!("call{}", turn - 1), "there are seats"),
            };
            context.append(message).expect("a message");
            let reply = Message::assistant("").call(&call, "search", "{}");
            context.reply(reply).expect("a reply");
            context.commit().expect("a commit");
        }
        context.session()
    };
    let segments = |session: &Session| -> Vec<Arc<Segment>> {
        let history = session.history();
        let snapshots = history.committed().iter();
        let pieces = snapshots.flat_map(|snapshot| snapshot.pieces());
        let mut segments: Vec<_> = pieces.map(|piece| Arc::clone(piece.segment())).collect();
        segments.sort_unstable_by_key(Arc::as_ptr);
        segments.dedup_by_key(|segment| Arc::as_ptr(segment));
        segments
    };
    let (first, second) = (grow(), grow());
    let mut own = segments(&first);
    let others = segments(&second);
    own.retain(|segment| !others.iter().any(|other| Arc::ptr_eq(segment, other)));
    let texts: usize = own.iter().map(|segment| segment.payload_bytes()).sum();
    let texts = texts - prompt.len();
    const SESSIONS: usize = 100;
    let (sessions, held, _) = measure(|| (0..SESSIONS).map(|_| grow()).collect::<Vec<_>>());
    assert_eq!(sessions.len(), SESSIONS);
    let held = held / SESSIONS;
    let history = first.history();
    let nodes = history.latest().map_or(0, |newest| newest.len());
    let beside = held.saturating_sub(texts);
    println!(
        "a session of {nodes} nodes in {} segments holds {beside} bytes beside {texts} of texts",
        own.len()
    );
    assert!(beside < MOST, "{held} bytes, {texts} of them texts");
}

/// A result, the reply and the commit in a long session, at the median: three of four commits copy the newest turns, and no others.
fn a_step_of_an_agent_allocates_little() {
    const MOST: usize = 90;
    let mut context = Context::builder()
        .clock(StepClock::new(1 << 61, 1_000))
        .build();
    let prompt = Message::system(&"You book flights. ".repeat(300));
    context.append(prompt).expect("a message");
    let mut counts: Vec<usize> = (0..600)
        .map(|turn| {
            let result = Message::tool(&format!("call{turn}"), "there are seats");
            let reply = Message::assistant("").call(&format!("call{}", turn + 1), "search", "{}");
            let step = || {
                context.append(result).expect("a result");
                context.reply(reply).expect("a reply");
                context.commit().expect("a commit");
            };
            counted_blocks(step).1
        })
        .skip(500)
        .collect();
    counts.sort_unstable();
    let median = counts[counts.len() / 2];
    println!("append + reply + commit make {median} allocations");
    assert!(median <= MOST, "{median} allocations");
}

/// Sessions that are asked together are counted when they were read, not when they were opened.
fn answers_over_a_store_stay_within_its_memory() {
    const MEMORY: usize = 1 << 20;
    let path = std::env::temp_dir().join(format!("pactql-answers-{}.db", std::process::id()));
    let url = path.display().to_string();
    let store = Store::open(&url).expect("a store");
    for number in 0..1_000 {
        let mut context = Context::builder()
            .clock(StepClock::new(1 << 61, 1_000))
            .build();
        context.append(Message::user("Hello")).expect("a message");
        context.commit().expect("a commit");
        let imported = store.import(&format!("s{number}"), &context.session(), None);
        imported.expect("a new session");
    }
    drop(store);
    let builder = Store::builder().must_exist().memory(MEMORY);
    let store = builder.connect(&url).expect("the store opens");
    let ask = || {
        let asked = store.select("@t0 .cb").expect("a selector");
        asked.answers().expect("answers").count()
    };
    let (found, held, peak) = measure(ask);
    assert_eq!(found, 1_000);
    println!("1,000 sessions were asked with {MEMORY} bytes: {held} are held, {peak} at most");
    assert!(held < MEMORY && peak < 2 * MEMORY, "{held}, {peak}");
    drop(store);
    fs::remove_file(path).expect("the file");
}

/// Whole snapshots take about the memory of the same snapshots written as deltas.
fn whole_snapshots_find_the_sharing_again() {
    let bytes = generate::committed_whole(120);
    let (session, held) = load(&bytes);
    let newest = session.history();
    let nodes = newest.latest().map_or(0, |snapshot| snapshot.len());
    println!(
        "121 whole snapshots, {} bytes of JSON: {held} bytes, {} for each node of the newest",
        bytes.len(),
        held / nodes.max(1)
    );
    assert!(
        held < bytes.len() / 8,
        "{} bytes of repeated JSON are held as {held}",
        bytes.len()
    );
}

/// Comparing 1,000 snapshots of up to 10,000 nodes takes little more than the answer.
fn a_range_holds_its_answer() {
    const MOST: usize = 64 << 20;
    let (session, _) = load(&generate::committed(1_000));
    let engine = Engine::new();
    for selector in [
        "@history .cb[role='assistant']",
        "@history .mt:depth(1) .cb",
        "@history .cb @limit=9000",
    ] {
        let diff = || engine.select(&session, selector).expect("an answer");
        let (_diff, held, peak) = measure(diff);
        let beyond = peak - held;
        println!("{selector}: {held} bytes, {beyond} beyond them on the way");
        assert!(
            beyond < MOST,
            "{selector} took {beyond} bytes beyond its answer"
        );
    }
}

fn counting_lists_nothing() {
    let (session, _) = load(&generate::document(10_000));
    let query = Engine::new()
        .prepare("@t0 .cb")
        .expect("the selector is valid");
    let count = || {
        query
            .rows(&session)
            .map_or(0, |selection| selection.count())
    };
    let (count, _, peak) = measure(count);
    assert!(count > 7_000);
    assert!(peak < 1_024, "counting {count} blocks took {peak} bytes");
}

/// A select of ids allocates their list, if there are any, and a count nothing, once the thread has memory for bitmaps.
fn a_select_allocates_the_list_of_its_ids() {
    let engine = Engine::new();
    let mut over = Vec::new();
    for nodes in [30, 300, 3_000] {
        let session = grow::session(&grow::conversation(nodes), nodes);
        let facts = classes::Facts::of(&session);
        for class in classes::all() {
            let query = engine.prepare(&class.selector(&facts));
            let query = query.expect("a selector");
            let rows = || query.rows(&session).expect("rows");
            let (ids, count) = (|| rows().to_ids().len(), || rows().count());
            assert_eq!(ids(), count(), "{}", class.name);
            let (found, listing) = counted_blocks(ids);
            let (_, counting) = counted_blocks(count);
            if listing > usize::from(found > 0) || counting > 0 {
                let name = class.name;
                over.push(format!("{name} of {nodes} nodes: {listing}, {counting}"));
            }
        }
    }
    assert_eq!(over, [""; 0], "allocations of a select, and of a count");
}

/// A build needs memory for the largest document, and a few words for each document, whatever
/// the total size; an answer needs the manifest, a document for each thread, and its result.
fn a_cache_is_built_in_one_pass() {
    const DOCUMENT: usize = 40_000;
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("memory-budget");
    let _ = fs::remove_dir_all(&scratch);
    let (sources, cache) = (scratch.join("sources"), scratch.join("cache"));
    fs::create_dir_all(&sources).expect("a directory");
    for document in 0..400_usize {
        let words = (0..DOCUMENT / 8).map(|n| format!("w{:06} ", (n * document) % 2_000));
        let path = sources.join(format!("{document}.md"));
        fs::write(path, words.collect::<String>()).expect("a file");
    }
    let options = BuildOptions {
        force: true,
        created_at: std::time::UNIX_EPOCH,
    };
    let (_, _, peak) = measure(|| build(&sources, &cache, options).expect("a cache"));
    let most = 6 * DOCUMENT + 400 * 1_000;
    assert!(400 * DOCUMENT > 2 * most, "the documents have more: {most}");
    assert!(peak <= most, "{peak} bytes held, at most {most}");
    let query = Query::new("w000006 w001999 unknown");
    let ask = || {
        let cache = Cache::open(&cache).expect("a cache");
        cache
            .resolve(&query, 2 * DOCUMENT as u64 / 4)
            .expect("an answer")
    };
    let (answer, held, peak) = measure(ask);
    assert_eq!(answer.documents.len(), 2);
    assert!(held <= 3 * DOCUMENT, "{held} bytes held by an answer");
    let most = 12 * DOCUMENT + 400 * 1_000;
    assert!(peak <= most, "{peak} bytes held to answer, at most {most}");
    let _ = fs::remove_dir_all(&scratch);
}
