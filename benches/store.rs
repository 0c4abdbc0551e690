//! What a store costs beside what a user would write by hand: prepared statements over tables of the same
//! layout, with the same settings, in the same run.
//!
//! - Commits: a durable commit of a turn of ten nodes beside inserting the same rows; many sessions in
//!   one transaction beside one commit at a time; with `PACTQL_POSTGRES=1` in a server of its own, too.
//! - From cold: opening a session and answering a selector beside one statement that fetches the rows,
//!   for a short and a long history.
//! - Size: recorded sessions in one file. They are read from `PACTQL_DATA`, or from `../shared/data`; without
//!   them this part prints a line.
//! - The program: `pactql` from its start to its end beside `sqlite3`, if that is installed, of one session and of all of a
//!   file.
//! - Many sessions in one file: selectors that few and that all of them match, and the memory it takes.
//! - Texts: a search through the sessions of that file, with its text index and without.
//!
//! Times are medians of interleaved runs: each contender has its turn in each round. Committing waits for
//! the disk, so the figures are those of the directory for temporary files. `-- PART …` runs only some
//! parts: `commit`, `batch`, `cold`, `size`, `program`, `many`, `texts`.

#[path = "support/many_sessions.rs"]
mod many_sessions;
#[path = "support/program.rs"]
mod program;
#[path = "support/search_texts.rs"]
mod search_texts;
#[cfg(all(unix, feature = "postgres"))]
#[path = "../tests/support/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "each program uses a part")]
mod server;
mod support;

use std::hint::black_box;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pactql::logs::{ImportOptions, MessageLocation, Pointer, import};
use pactql::{Context, Session, Store, context::StepClock, store::Durability};
use serde_json::{Value, json};
use support::by_hand::{ByHand, Rows};
use support::memory::Counting;
use support::table::verdict;
use support::timing::nice;
use support::{engine, generate};

/// Blocks that are added for a commit; the turn and its core are made by sealing.
const BLOCKS: usize = 8;
/// Sessions that commit together.
const SESSIONS: usize = 64;
/// What a session is asked from cold.
const RECENT: &str = "@t0 ^seq .mt:depth(1-3) .cb";

/// How much is measured.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    /// Commits of the long history.
    long: usize,
    /// Nodes of the session that the program is asked of.
    nodes: usize,
    /// Sessions in the large file.
    sessions: usize,
}

/// A part of the bench.
type Part = (&'static str, fn(&Scratch, Effort));

const PARTS: [Part; 7] = [
    ("commit", commits),
    ("batch", batches),
    ("cold", from_cold),
    ("size", sizes),
    ("program", program::run),
    ("many", many_sessions::select),
    ("texts", search_texts::search),
];

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // As a test, everything runs once.
    let effort = if has("--bench") {
        Effort {
            rounds: 301,
            long: 10_000,
            nodes: 100_000,
            sessions: 100_000,
        }
    } else {
        Effort {
            rounds: 3,
            long: 20,
            nodes: 1_000,
            sessions: 200,
        }
    };
    let some = PARTS.iter().any(|(name, _)| has(name));
    println!(
        "{:<52}{:>12}{:>12}{:>9}{:>10}",
        "", "store", "by hand", "ratio", "required"
    );
    for (name, part) in PARTS {
        if has(name) || !some {
            part(&Scratch::new(name), effort);
        }
    }
}

/// A directory that goes with the part.
struct Scratch(PathBuf);

impl Scratch {
    fn new(part: &str) -> Self {
        let name = format!("pactql-bench-store-{}-{part}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Store {
    Store::open(path.to_str().expect("a path")).expect("the store opens")
}

/// The time of a run, in nanoseconds.
fn timed<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_nanos() as f64
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints times of the store and by hand; the ratio may be at most `most`.
fn line(name: &str, store: &mut [f64], hand: &mut [f64], most: f64) -> f64 {
    let (store, hand) = (median(store), median(hand));
    let (ratio, met) = (store / hand, verdict(store / hand <= most));
    let (shown, hand) = (nice(store), nice(hand));
    println!("{name:<52}{shown:>12}{hand:>12}{ratio:>9.2}{most:>10}  {met}");
    store
}

/// A session of a store that is committed to.
struct Live(Context);

impl Live {
    fn new(store: &Store, name: &str) -> Self {
        let builder = Context::builder().clock(StepClock::new(1 << 61, 1_000));
        Self(store.write_with(name, builder).expect("a lease"))
    }

    fn add(&mut self, blocks: &[String]) {
        for block in blocks {
            self.0.add("^ah", block).expect("a block can be added");
        }
    }

    fn commit(&mut self) {
        black_box(self.0.commit().expect("a commit"));
    }
}

/// What `count` commits of a session write.
fn rows_of_commits(scratch: &Scratch, count: usize) -> Vec<Rows> {
    let path = scratch.file("model.db");
    let store = open(&path);
    let mut live = Live::new(&store, "model");
    for blocks in generate::new_blocks(count * BLOCKS).chunks(BLOCKS) {
        live.add(blocks);
        live.commit();
    }
    let model = ByHand::open(&path);
    (1..=count as i64)
        .map(|seq| model.rows_of(1, seq))
        .collect()
}

/// A durable commit of ten nodes.
fn commits(scratch: &Scratch, effort: Effort) {
    let count = effort.rounds + 20;
    let rows = rows_of_commits(scratch, count);
    let store = open(&scratch.file("store.db"));
    let hand = ByHand::like(&scratch.file("model.db"), &scratch.file("hand.db"));
    let mut live = Live::new(&store, "live");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let blocks = generate::new_blocks(count * BLOCKS);
    for (round, (blocks, rows)) in blocks.chunks(BLOCKS).zip(&rows).enumerate() {
        live.add(blocks);
        if round % 2 == 0 {
            ours.push(timed(|| live.commit()));
            theirs.push(timed(|| hand.write([rows])));
        } else {
            theirs.push(timed(|| hand.write([rows])));
            ours.push(timed(|| live.commit()));
        }
    }
    // The first ones compile the statements.
    let start = ours.len().min(20) / 2;
    let name = format!(
        "a durable commit of ten nodes, {} rows",
        rows[count - 1].inserted.len()
    );
    line(&name, &mut ours[start..], &mut theirs[start..], 1.5);
}

/// Commits of many sessions in one transaction.
fn batches(scratch: &Scratch, effort: Effort) {
    let file = |name| scratch.file(name).to_str().expect("a path").to_owned();
    together(
        SESSIONS,
        10.0,
        effort,
        [&file("store.db"), &file("batched.db")],
    );
    #[cfg(all(unix, feature = "postgres"))]
    match server::Server::start() {
        Ok(server) => {
            println!("in PostgreSQL");
            together(
                32,
                5.0,
                effort,
                [&server.url("alone"), &server.url("batched")],
            );
        }
        Err(reason) => println!("{reason}"),
    }
    // What waiting for the disk once saves at all.
    let rows = rows_of_commits(scratch, SESSIONS * 2);
    let hand = ByHand::like(&scratch.file("model.db"), &scratch.file("hand.db"));
    let (first, second) = rows.split_at(SESSIONS);
    let single = timed(|| first.iter().for_each(|rows| hand.write([rows])));
    let together = timed(|| hand.write(second));
    println!(
        "{:<52}{:>12}{:>12}{:>9.2}",
        "  the same rows by hand: together, one by one",
        nice(together / SESSIONS as f64),
        nice(single / SESSIONS as f64),
        single / together
    );
}

/// Commits of as many sessions, one at a time, by `commit_all`, and by threads of a store that groups them.
fn together(sessions: usize, required: f64, effort: Effort, urls: [&str; 2]) {
    let rounds = (effort.rounds / 10).max(2);
    let blocks = generate::new_blocks((rounds + 1) * 2 * BLOCKS);
    let mut blocks = blocks.chunks(BLOCKS);
    let begin = |store: &Store| -> Vec<Live> {
        let names = (0..sessions).map(|at| format!("s{at}"));
        names.map(|name| Live::new(store, &name)).collect()
    };
    let rate = |name: &str, all: f64, one_by_one: f64| {
        let ratio = one_by_one / all;
        let name = format!("{sessions} sessions: {name}");
        let [all, one_by_one] = [all, one_by_one].map(|time| nice(time / sessions as f64));
        println!(
            "{name:<52}{all:>12}{one_by_one:>12}{ratio:>8.1}x{:>10}  {}",
            format!("{required}x"),
            verdict(ratio >= required)
        );
    };
    let store = Store::connect(urls[0]).expect("opens");
    let mut live = begin(&store);
    let (mut single, mut together) = (Vec::new(), Vec::new());
    for _ in 0..=rounds {
        let turn = blocks.next().expect("blocks");
        live.iter_mut().for_each(|live| live.add(turn));
        single.push(timed(|| live.iter_mut().for_each(Live::commit)));
        let turn = blocks.next().expect("blocks");
        live.iter_mut().for_each(|live| live.add(turn));
        let all = live.iter_mut().map(|live| &mut live.0);
        let mut results = Vec::new();
        together.push(timed(|| results = store.commit_all(all)));
        assert!(results.iter().all(Result::is_ok));
    }
    let single = median(&mut single[1..]);
    rate("commit_all", median(&mut together[1..]), single);
    drop(live);

    let builder = Store::builder().durability(Durability::Batched);
    let store = builder.connect(urls[1]).expect("opens");
    let mut live = begin(&store);
    let turns = generate::new_blocks(rounds * BLOCKS);
    let all = timed(|| {
        std::thread::scope(|scope| {
            for live in &mut live {
                scope.spawn(|| {
                    for turn in turns.chunks(BLOCKS) {
                        live.add(turn);
                        live.commit();
                    }
                });
            }
        });
    });
    rate(
        "Durability::Batched, adding included",
        all / rounds as f64,
        single,
    );
}

/// The rows of [`RECENT`] of a session.
const RECENT_SQL: &str = "select n.id, n.role, n.kind, b.text from (select * from placement \
     where session_id = (select session_id from session where name = ?1) and rank = 1 \
     and last_seq = 9223372036854775807 \
     order by sibling_offset desc, created_at_ns desc, creation_index desc, id desc limit 3) t \
     cross join node n on n.unit_id = t.unit_id left join body b on b.body_id = n.body_id \
     where n.class = 'cb' \
     order by t.sibling_offset, t.created_at_ns, t.creation_index, t.id, n.pre";

/// A row of [`RECENT_SQL`].
type Block = (String, Option<String>, Option<String>, Option<String>);

fn recent_by_hand(hand: &ByHand, name: &str) -> Vec<Block> {
    hand.all(RECENT_SQL, [name], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })
}

fn recent(store: &Store, name: &str) -> Vec<String> {
    let session = store.session(name).expect("the session");
    let rows = store.engine().rows(&session, RECENT).expect("the rows");
    rows.ids().map(str::to_owned).collect()
}

/// Opening a session and answering a selector.
fn from_cold(scratch: &Scratch, effort: Effort) {
    for commits in [10, effort.long] {
        let path = scratch.file(&format!("{commits}.db"));
        let session = engine::load(&generate::live(0, commits, true));
        let store = open(&path);
        for name in ["a", "b"] {
            store.import(name, &session, None).expect("an import");
        }
        drop((store, session));
        let url = path.to_str().expect("a path");

        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            ours.push(timed(|| {
                let store = Store::builder().must_exist().connect(url).expect("a store");
                recent(&store, "a")
            }));
            theirs.push(timed(|| {
                let connection = rusqlite::Connection::open(&path).expect("a file");
                recent_by_hand(&ByHand { connection }, "a")
            }));
        }
        let name = format!("from cold, {commits} commits: the store too");
        line(&name, &mut ours, &mut theirs, 2.0);

        // Each session is closed when the other is opened.
        let store = Store::builder().memory(0).connect(url).expect("a store");
        let hand = ByHand::open(&path);
        let ids: Vec<String> = recent_by_hand(&hand, "a")
            .into_iter()
            .map(|row| row.0)
            .collect();
        assert_eq!(recent(&store, "a"), ids);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..effort.rounds {
            let name = ["a", "b"][round % 2];
            ours.push(timed(|| recent(&store, name)));
            theirs.push(timed(|| recent_by_hand(&hand, name)));
        }
        let name = format!("from cold, {commits} commits: in an open store");
        line(&name, &mut ours, &mut theirs, 2.0);
    }
}

/// Recorded sessions in one file.
fn sizes(scratch: &Scratch, _effort: Effort) {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let root = std::env::var_os("PACTQL_DATA").map_or(beside, PathBuf::from);
    if !root.is_dir() {
        return println!("SKIPPED: no recorded sessions at {}", root.display());
    }
    let airline = unpacked(&root.join("tau-bench-airline/gpt-4o-airline.json.gz"));
    let place = MessageLocation::Messages(Pointer::parse("/*/traj").expect("a pointer"));
    let (file, lines, _) = stored(&scratch.file("airline.db"), &airline, place);
    let name = "200 sessions: MB in a store, as JSON Lines";
    size_line(name, file, lines, file <= 4_500_000, "4.5 MB");

    let path = root.join("pi-mono-long-sessions/before-compaction.jsonl.gz");
    let messages = chat_messages(&unpacked(&path));
    let path = scratch.file("long.db");
    let (file, _, whole) = stored(&path, messages.as_bytes(), MessageLocation::default());
    let name = "a long session: MB in a store, as whole snapshots";
    size_line(name, file, whole, whole >= 100 * file, "100x");
}

fn size_line(name: &str, store: u64, other: u64, met: bool, required: &str) {
    let (ratio, met) = (other as f64 / store as f64, verdict(met));
    let [store, other] = [store, other].map(|bytes| format!("{:.2}", bytes as f64 / 1e6));
    println!("{name:<52}{store:>12}{other:>12}{ratio:>8.1}x{required:>10}  {met}");
}

/// The bytes of a new store of imported sessions, of their lines, and of their whole snapshots.
fn stored(path: &Path, log: &[u8], location: MessageLocation) -> (u64, u64, u64) {
    let options = ImportOptions {
        location,
        ..ImportOptions::default()
    };
    let imported = import(log, &options).expect("an import");
    let store = open(path);
    let (mut lines, mut whole) = (Vec::new(), Count(0));
    let mut total = 0;
    for (number, session) in imported.sessions.iter().enumerate() {
        lines.clear();
        let recording = &session.recording;
        recording.write_jsonl(&mut lines, false).expect("lines");
        recording.write_jsonl(&mut whole, true).expect("lines");
        total += lines.len() as u64;
        let session = Session::from_slice(&lines).expect("a session");
        store
            .import(&format!("s{number:03}"), &session, None)
            .expect("an import");
    }
    drop(store);
    let hand = ByHand::open(path);
    let bytes: i64 = hand.number("select sum(length(cast(text as blob))) from body");
    hand.all("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    let file = std::fs::metadata(path).expect("the file").len();
    println!(
        "  {} sessions, {} nodes, {} contents of {:.2} MB",
        imported.sessions.len(),
        hand.number("select count(*) from node"),
        hand.number("select count(*) from body"),
        bytes as f64 / 1e6
    );
    (file, total, whole.0)
}

/// Counts what is written.
struct Count(u64);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).expect("the log");
    let mut file = flate2::read::GzDecoder::new(file);
    file.read_to_end(&mut bytes).expect("a gzip file");
    bytes
}

/// The messages of a log of typed lines, as a list of OpenAI chat messages.
fn chat_messages(log: &[u8]) -> String {
    let lines = log.split(|byte| *byte == b'\n').filter(|l| !l.is_empty());
    let lines = lines.map(|line| serde_json::from_slice::<Value>(line).expect("JSON"));
    let messages: Vec<Value> = lines.filter_map(|line| chat_message(&line)).collect();
    serde_json::to_string(&messages).expect("JSON")
}

fn chat_message(line: &Value) -> Option<Value> {
    if line["type"] == "compaction" {
        return Some(json!({"role": "user", "content": line["summary"]}));
    }
    let message = line.get("message")?;
    let blocks = message["content"].as_array();
    let blocks: Vec<&Value> = blocks.into_iter().flatten().collect();
    let text = |kind: &str| {
        let parts = blocks.iter().filter_map(|block| block[kind].as_str());
        parts.collect::<Vec<_>>().join("\n")
    };
    Some(match message["role"].as_str()? {
        "toolResult" => json!({
            "role": "tool",
            "tool_call_id": message["toolCallId"],
            "content": text("text"),
        }),
        "bashExecution" => json!({"role": "user", "content": message["output"]}),
        "assistant" => {
            let calls = blocks.iter().filter(|block| block["type"] == "toolCall");
            let calls: Vec<Value> = calls
                .map(|call| {
                    let arguments = call["arguments"].to_string();
                    let function = json!({"name": call["name"], "arguments": arguments});
                    json!({"id": call["id"], "type": "function", "function": function})
                })
                .collect();
            let mut made = json!({"role": "assistant", "content": text("text")});
            let thoughts = text("thinking");
            if !thoughts.is_empty() {
                made["reasoning_content"] = thoughts.into();
            }
            if !calls.is_empty() {
                made["tool_calls"] = calls.into();
            }
            made
        }
        role => json!({"role": role, "content": text("text")}),
    })
}
