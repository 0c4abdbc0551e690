//! Ask what changed: between snapshots, for one node, and over the whole history.
//!
//! `cargo run --example ranges`

use pactql::{
    Answer, Engine, RangeOptions, Session,
    history::{BlameKind, blame},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new();
    let session = Session::open("fixtures/support-agent.jsonl")?;

    // A range compares each snapshot with the next older one; here, at most 5 changes of each pair.
    let options = RangeOptions::default().max_changes(5);
    let diff = engine.range_with(&session, "@t-3..@t0 .cb", &options)?;
    for pair in &diff.diffs {
        println!("{} since {}", pair.from.label, pair.to.label);
        println!(
            "  added {:?}, removed {:?}",
            pair.added_ids, pair.removed_ids
        );
        for change in &pair.changed {
            println!("  changed {}: {}", change.id, change.fields.join(", "));
        }
    }

    // With `@mode=union` the same range is one list of rows, each id once. `select` takes both.
    for selector in ["@t-3..@t0 .cb @mode=union", "@t-3..@t0 .cb @mode=reduce"] {
        match engine.select(&session, selector)? {
            Answer::Rows(rows) => println!("{selector}: {} rows", rows.count()),
            Answer::Range(diff) => println!("{selector}: {} changes", diff.rows()),
        }
    }

    // The history of one node, and of a selector.
    if let Some(blame) = blame(&session.history(), "cb:doc1") {
        for event in &blame.events {
            let what = match &event.kind {
                BlameKind::Appeared { .. } => "appeared".to_owned(),
                BlameKind::Changed { fields, .. } => format!("changed {}", fields.join(", ")),
                BlameKind::Went { why, .. } => format!("went: {why:?}"),
                _ => "something else".to_owned(),
            };
            println!("{} {}: {what}", blame.id, event.snapshot);
        }
    }
    for entry in engine.log(&session, ".cb[kind='call']")?.snapshots {
        println!(
            "{:<5} {} calls, {} new",
            entry.label, entry.matches, entry.added
        );
    }
    Ok(())
}
