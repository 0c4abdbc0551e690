//! Standing selectors: what a runtime is told while an agent works, in the same thread and in another.
//!
//! `cargo run --example watch`

use std::sync::mpsc;
use std::thread;

use pactql::context::Watch;
use pactql::history::{BlameKind, blame};
use pactql::{Context, Message, NewNode};

/// What a look says, as a line; nothing if nothing came, went or changed.
fn tell(name: &str, watch: &mut Watch) -> Result<(), pactql::Error> {
    if let Some(diff) = watch.changes()? {
        let changed: Vec<&str> = diff.changed.iter().map(|change| &*change.id).collect();
        println!("{name}: +{:?} -{:?} ~{changed:?}", diff.added, diff.removed);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut context = Context::new();
    let mut notes = context.watch(".cb+note")?;
    let mut newest = context.watch("@t0 .mt:depth(1) .cb[role='user']")?;

    // A reader in another thread looks when it likes: looks that come late get one merged difference.
    let mut all = context.watch(".cb[role='user']")?;
    let (end, ended) = mpsc::channel::<()>();
    let reader = thread::spawn(move || -> Result<usize, pactql::Error> {
        let mut count = 0;
        let mut is_over = false;
        while !is_over {
            // What was committed before the end is seen by the look after it.
            is_over = ended.try_recv().is_ok();
            if let Some(diff) = all.changes()? {
                count = count + diff.added.len() - diff.removed.len();
            }
        }
        Ok(count)
    });

    let note =
        NewNode::json(r#"{"tags":["note"],"content":"The customer is in a hurry.","ttl":2}"#)?;
    let note = context.add("^sys", note)?;
    for question in ["Where is my refund?", "Since when?", "And the receipt?"] {
        context.append(Message::user(question))?;
        tell("notes", &mut notes)?; // nothing, unless the note came, changed or went
        context.reply(Message::assistant("On its way."))?;
        context.commit()?;
        tell("notes", &mut notes)?;
        tell("newest turn", &mut newest)?;
    }
    end.send(())?;
    let count = reader.join().expect("the reader ends")?;
    println!("the reader counts {count} questions");

    // Why the note is gone.
    for event in blame(&context.history(), &note)
        .expect("it was there")
        .events
    {
        match event.kind {
            BlameKind::Appeared { by, .. } => println!("{} {note} came: {by:?}", event.snapshot),
            BlameKind::Went { why, .. } => println!("{} {note} went: {why:?}", event.snapshot),
            _ => {}
        }
    }
    Ok(())
}
