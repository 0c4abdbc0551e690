//! The program from its start to its end, beside `sqlite3` with the same file.

use std::path::Path;
use std::process::Command;

use super::many_sessions::file;
use super::support::by_hand::ByHand;
use super::support::{engine, generate};
use super::{Effort, Scratch, line, open, timed};

/// A node by its id out of a large session, and questions about all sessions of a file.
pub(super) fn run(scratch: &Scratch, effort: Effort) {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        return println!("SKIPPED: there is no `sqlite3`");
    }
    by_id(scratch, effort);
    for sessions in [1_000, 10_000, 100_000] {
        let sessions = effort.sessions.min(sessions);
        many(&file(scratch, sessions), sessions, effort);
        if sessions == effort.sessions {
            break;
        }
    }
}

/// The newest placements, with their nodes.
const NEWEST: &str = "from session s cross join placement p on p.session_id = s.session_id \
     and p.last_seq = 9223372036854775807 cross join node n on n.unit_id = p.unit_id";
const DOCUMENT_ORDER: &str =
    "order by s.name, p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id, n.pre";

/// What is asked of all sessions of a file, and the best statement for it that its indexes allow.
fn many(path: &Path, sessions: usize, effort: Effort) {
    let hand = ByHand::open(path);
    let middle = "select id from node where class = 'cb' limit 1 offset ?1";
    let ids: Vec<String> = hand.all(middle, [sessions as i64 * 10], |row| row.get(0));
    drop(hand);
    let users = "n.class = 'cb' and n.role = 'user' and p.rank = 1";
    let of_id = |id: &str| {
        format!(
            "select s.name, n.id from node n cross join placement p on p.unit_id = n.unit_id \
             and p.last_seq = 9223372036854775807 cross join session s on s.session_id = p.session_id \
             where n.id = '{id}'"
        )
    };
    let rare = "select s.name, n.id from attr a cross join placement p on p.unit_id = a.unit_id \
         and p.last_seq = 9223372036854775807 cross join session s on s.session_id = p.session_id \
         cross join node n on n.unit_id = a.unit_id and n.pre = a.pre where a.name = 'data_topic' \
         and a.text = 'refund' and a.type = 'text' and n.class = 'cb' order by s.name, n.pre";
    let sizes = "count(*), sum(length(b.text))";
    let with_body = "left join body b on b.body_id = n.body_id where n.class = 'cb'";
    let all_users = "@t0 ^seq .cb[role='user']";
    let [one, none] = [&*ids[0], "nowhere"].map(|id| format!("@t0 [id='{id}']"));
    let ids_of = format!("select s.name, n.id {NEWEST} where {users} {DOCUMENT_ORDER}");
    let count = format!("select s.name, count(*) {NEWEST} where {users} group by s.name");
    let by_role = format!("select n.role, {sizes} {NEWEST} {with_body} group by n.role");
    for (what, arguments, sql, limit) in [
        (
            "rare",
            &["select", "@t0 .cb[data_topic='refund']"][..],
            rare.to_owned(),
            1.5,
        ),
        (
            "a count for each",
            &["select", all_users, "--count"],
            count,
            2.0,
        ),
        ("ids", &["select", all_users], ids_of.clone(), 2.0),
        ("ids as JSON", &["select", all_users, "--json"], ids_of, 2.0),
        ("one id", &["select", &one], of_id(&ids[0]), 2.0),
        ("an absent id", &["select", &none], of_id("nowhere"), 2.0),
        (
            "top by role, texts read",
            &["top", "--by", "role", "--tokenizer", "bytes/4"],
            by_role,
            2.0,
        ),
    ] {
        let rounds = (effort.rounds / 10).min(300_000 / sessions).clamp(1, 31);
        // The command, then the store.
        let (command, rest) = arguments.split_first().expect("a command");
        let ask = |mut ours: Command| {
            ours.arg(command).arg(path).args(rest);
            ours.output().expect("the program runs")
        };
        let program = env!("CARGO_BIN_EXE_pactql");
        let memory = String::from_utf8_lossy(&ask(measured(program)).stderr).into_owned();
        let memory = memory.lines().last().and_then(|line| line.parse().ok());
        let peak = memory.unwrap_or(0.0) / 1024.0;
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let mut theirs = Command::new("sqlite3");
            theirs.args(rest.contains(&"--json").then_some("-json"));
            theirs.arg(path).arg(&sql);
            own.push(timed(|| ask(Command::new(program))));
            other.push(timed(|| theirs.output().expect("the program runs")));
        }
        let name = format!("{sessions} sessions, {what}, at most {peak:.0} MB");
        line(&name, &mut own, &mut other, limit);
    }
}

/// A program whose largest memory, in kilobytes, is the last line of its errors, where `time` is installed.
fn measured(program: &str) -> Command {
    const TIME: &str = "/usr/bin/time";
    if !Path::new(TIME).exists() {
        return Command::new(program);
    }
    let mut command = Command::new(TIME);
    command.args(["-f", "%M", program]);
    command
}

fn by_id(scratch: &Scratch, effort: Effort) {
    let path = scratch.file("large.db");
    let session = engine::load(&generate::document(effort.nodes));
    let store = open(&path);
    store.import("large", &session, None).expect("an import");
    drop((store, session));
    let middle = "select id from node where class = 'cb' order by unit_id, pre limit 1 offset ?1";
    let hand = ByHand::open(&path);
    let ids: Vec<String> = hand.all(middle, [effort.nodes as i64 / 2], |row| row.get(0));
    let id = &ids[0];
    drop(hand);

    let mut ours = Command::new(env!("CARGO_BIN_EXE_pactql"));
    let selector = format!("@t0 [id='{id}']");
    ours.arg("select").arg(format!("{}#large", path.display()));
    ours.args([&selector, "--format", "nodes"]);
    let mut theirs = Command::new("sqlite3");
    theirs.arg(&path).arg(format!(
        "select n.id, n.class, n.role, n.kind, n.sibling_offset, n.priority, n.created_at_iso, b.text \
         from node n join placement p on p.unit_id = n.unit_id left join body b on b.body_id = n.body_id \
         where n.id = '{id}' and p.last_seq = 9223372036854775807 \
         and p.session_id = (select session_id from session where name = 'large')"
    ));
    for contender in [&mut ours, &mut theirs] {
        let output = contender.output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(id), "{text}{output:?}");
    }
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        own.push(timed(|| ours.output().expect("the program runs")));
        other.push(timed(|| theirs.output().expect("the program runs")));
    }
    let name = format!("`pactql` and `sqlite3`: one of {} nodes", effort.nodes);
    line(&name, &mut own, &mut other, 2.0);
}
