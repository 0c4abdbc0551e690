//! Compile a selector once and run it with different values.
//!
//! `cargo run --example parameters`

use pactql::{ColorChoice, Engine, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new();
    let session = Session::open("fixtures/support-agent.jsonl")?;

    // `$role` and `$kind` are filled in later. A value is never parsed as a part of the selector,
    // so text from a user is safe here.
    let blocks = engine.prepare("@t0 .cb[role=$role][kind=$kind]")?;
    println!("{} takes {:?}", blocks.text(), blocks.params());
    for (role, kind) in [
        ("user", "text"),
        ("assistant", "text"),
        ("assistant", "call"),
    ] {
        let bound = blocks.bind([("role", role.into()), ("kind", kind.into())])?;
        println!(
            "  {role:<10} {kind:<5} {:?}",
            bound.rows(&session)?.to_ids()
        );
    }

    // Binding is checked like a literal in the same place: names and types.
    if let Err(error) = blocks.bind([("role", "user".into()), ("knd", "text".into())]) {
        println!("\n{}", error.to_text(ColorChoice::Never));
    }

    // A text that was seen before is not compiled again.
    for kind in ["text", "call", "text"] {
        engine.rows(&session, &format!("@t0 .cb[kind='{kind}']"))?;
    }
    let stats = engine.cache_stats();
    println!(
        "\nplan cache: {} texts compiled, {} found",
        stats.misses, stats.text_hits
    );
    Ok(())
}
