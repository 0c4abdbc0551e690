//! The program from its start to its end, beside `sqlite3` with the same file.

use std::process::Command;

use super::support::by_hand::ByHand;
use super::support::{engine, generate};
use super::{Effort, Scratch, line, open, timed};

/// A node by its id out of a large session.
pub(super) fn by_id(scratch: &Scratch, effort: Effort) {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        return println!("SKIPPED: there is no `sqlite3`");
    }
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
