//! A log of ctxdiff, which is a SQLite file.

/// A file as ctxdiff 0.5 writes it; `two` is whether it is of version 2.
pub(crate) fn ctrace(path: &std::path::Path, two: bool) -> Vec<u8> {
    let _ = std::fs::remove_file(path);
    let file = rusqlite::Connection::open(path).expect("a database");
    let more = if two {
        ", agent TEXT, step TEXT, provider TEXT"
    } else {
        ""
    };
    file.execute_batch(&format!(
        "create table run (id TEXT PRIMARY KEY, project TEXT NOT NULL, started_at TEXT NOT NULL, provider TEXT \
         NOT NULL, models TEXT NOT NULL, ctxdiff_version TEXT NOT NULL, schema_version INTEGER NOT NULL);
         create table call (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, seq INTEGER NOT NULL, params TEXT NOT NULL, \
         usage TEXT, latency_ms INTEGER, error TEXT{more});
         create table block (content_hash TEXT PRIMARY KEY, role TEXT, kind TEXT, text TEXT, token_count INTEGER, \
         token_method TEXT);
         create table call_block (call_id TEXT, block_id TEXT, position INTEGER, label TEXT, label_source TEXT);
         insert into run values ('r1', 'synthetic', '2026-03-02T09:00:00+00:00', 'openai', '[]', '0.5.1', 2);"
    ))
    .expect("tables");
    let tool = r#"{"function": {"description": "Search", "name": "search", "parameters": {"type": "object"}}, "type": "function"}"#;
    let blocks = [
        ("t", "system", "tool_schema", tool),
        ("s", "system", "message", "Be brief."),
        ("u", "user", "message", "Find it."),
        (
            "c1",
            "assistant",
            "content_part",
            r#"{"function": {"arguments": "{\"q\": 1}", "name": "search"}, "id": "c1", "type": "function"}"#,
        ),
        (
            "c2",
            "assistant",
            "content_part",
            r#"{"function": {"arguments": "{}", "name": "search"}, "id": "c2", "type": "function"}"#,
        ),
        ("r1", "tool", "message", "found"),
        (
            "p1",
            "user",
            "content_part",
            r#"{"text": "See:", "type": "text"}"#,
        ),
        ("p2", "user", "image", "[image 1024×768]"),
        ("w", "user", "message", "Write."),
        (
            "a",
            "assistant",
            "content_part",
            r#"{"id": "x", "input": {"b": 1}, "name": "save", "type": "tool_use"}"#,
        ),
    ];
    for (hash, role, kind, text) in blocks {
        file.execute(
            "insert into block values (?1, ?2, ?3, ?4, 1, 'estimate')",
            [hash, role, kind, text],
        )
        .expect("a block");
    }
    let calls: [(&str, &str, &str, &[&str]); 4] = [
        ("1", "openai", "researcher", &["t", "s", "u"]),
        (
            "2",
            "openai",
            "researcher",
            &["t", "s", "u", "c1", "c2", "r1", "p1", "p2"],
        ),
        ("3", "anthropic", "writer", &["s", "w", "a"]),
        (
            "4",
            "openai",
            "researcher",
            &["t", "s", "u", "c1", "c2", "r1", "p1", "p2"],
        ),
    ];
    for (id, provider, agent, list) in calls {
        let error = (id == "2").then_some("rate limit");
        file.execute(
            "insert into call (id, run_id, seq, params, usage, latency_ms, error) values \
             (?1, 'r1', ?1, '{\"model\": \"m\"}', '{\"prompt_tokens\": 5, \"completion_tokens\": 2}', 7, ?2)",
            rusqlite::params![id, error],
        )
        .expect("a call");
        if two {
            file.execute(
                "update call set agent = ?2, provider = ?3 where id = ?1",
                [id, agent, provider],
            )
            .expect("a call");
        }
        for (at, block) in list.iter().enumerate() {
            let source = if *block == "w" { "tagged" } else { "heuristic" };
            file.execute(
                "insert into call_block values (?1, ?2, ?3, 'rag', ?4)",
                rusqlite::params![id, block, at as i64, source],
            )
            .expect("a block");
        }
    }
    // As ctxdiff leaves it.
    file.pragma_update(None, "journal_mode", "wal")
        .expect("a log");
    drop(file);
    let bytes = std::fs::read(path).expect("a file");
    let _ = std::fs::remove_file(path);
    bytes
}
