//! Choose what fits a number of tokens: blocks of a session, and documents of a cache.
//!
//! `cargo run --example budget`

use std::path::Path;
use std::time::SystemTime;

use pactql::budget::{BuildOptions, Cache, Query, build};
use pactql::{Engine, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Blocks are scored against a query and chosen, best first, while they fit.
    let session = Session::open("fixtures/support-agent.jsonl")?;
    let blocks = Engine::new().rows(&session, "@* .cb")?;
    let query = Query::new("refund for the damaged order");
    let fit = blocks.fit(&query, 120);
    let summary = &fit.resolution.selection;
    println!(
        "{} of {} blocks, {} of {} tokens",
        summary.documents_selected,
        summary.documents_considered,
        summary.tokens_used,
        summary.budget
    );
    for (node, document) in fit.nodes.iter().zip(&fit.resolution.documents) {
        println!(
            "  {:.3} {:>3} tokens  {}",
            document.score,
            document.tokens,
            node.id()
        );
    }

    // A cache is a directory made from Markdown files. It answers in the same way, and reads only
    // the documents that it needs.
    let cache = std::env::temp_dir().join(format!("pactql-example-{}", std::process::id()));
    let options = BuildOptions {
        force: true,
        created_at: SystemTime::now(),
    };
    build(Path::new("docs"), &cache, options)?;
    let found = Cache::open(&cache)?.resolve(&Query::new("budget tokens"), 8_000)?;
    println!(
        "\nof the {} documents:",
        found.selection.documents_considered
    );
    for document in &found.documents {
        println!(
            "  {:.3} {:>5} tokens  {}",
            document.score, document.tokens, document.id
        );
    }
    std::fs::remove_dir_all(&cache)?;
    Ok(())
}
