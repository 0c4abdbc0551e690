//! Use the engine inside a program: read a session, select nodes, read their fields.
//!
//! `cargo run --example embed`

use pactql::{ColorChoice, Engine, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // An engine keeps compiled selectors; a session is one conversation with all its snapshots.
    // Both can be shared between threads without a lock.
    let engine = Engine::new();
    let session = Session::open("fixtures/support-agent.jsonl")?;
    println!(
        "cycles: {:?}",
        session.history().cycles().collect::<Vec<_>>()
    );

    // `@t0` is the newest snapshot, `^seq` the conversation, `.mt` a turn (`depth(1-2)`: the two
    // newest), `.cb` a block of content.
    let rows = engine.rows(&session, "@t0 ^seq .mt:depth(1-2) .cb")?;
    println!("{} blocks in the two newest turns:", rows.count());
    for node in &rows {
        let who = node.role().unwrap_or("nobody");
        let text: String = node.text().chars().take(40).collect();
        println!(
            "  {:<10} depth {:?}  {who}: {text}",
            node.id(),
            node.depth()
        );
    }

    // Content and custom attributes are JSON values; headers are typed.
    let calls = engine.rows(&session, "@t0 .cb[kind='call']")?;
    if let Some(call) = calls.nodes().next() {
        println!("\n{} as a value: {:?}", call.id(), call.content());
        for (name, value) in call.attributes() {
            println!("  {name} = {value}");
        }
        println!("  ttl {:?}, priority {}", call.ttl(), call.priority());
    }

    // A wrong selector is an error that underlines what is wrong.
    if let Err(error) = engine.rows(&session, "@t0 .cb[role=") {
        println!("\n{}", error.to_text(ColorChoice::Never));
    }
    Ok(())
}
