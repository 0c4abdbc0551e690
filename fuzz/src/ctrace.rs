//! A file of ctxdiff, damaged: an error, or sessions that are read back as they were written.

use std::sync::LazyLock;

use pactql::logs::{ImportOptions, import};
use rusqlite::{Connection, MAIN_DB};

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut database = Connection::open_in_memory().expect("memory");
    database
        .execute_batch(
            r#"create table run (id TEXT PRIMARY KEY, project TEXT NOT NULL, started_at TEXT NOT NULL, provider TEXT NOT NULL,
                 models TEXT NOT NULL, ctxdiff_version TEXT NOT NULL, schema_version INTEGER NOT NULL);
               create table call (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, seq INTEGER NOT NULL, params TEXT NOT NULL,
                 usage TEXT, latency_ms INTEGER, error TEXT, agent TEXT, step TEXT, provider TEXT);
               create table block (content_hash TEXT PRIMARY KEY, role TEXT, kind TEXT, text TEXT, token_count INTEGER,
                 token_method TEXT);
               create table call_block (call_id TEXT, block_id TEXT, position INTEGER, label TEXT, label_source TEXT);
               insert into run values ('r1', 'synthetic', '2026-03-02T09:00:00+00:00', 'openai', '[]', '0.5.1', 2);
               insert into call values ('c1', 'r1', 1, '{"model": "m", "temperature": 0.50}', '{"input": 40}', 12, null, 'a', '1', 'openai'),
                 ('c2', 'r1', 2, '{"model": "m"}', null, null, 'timeout', 'a', '2', null);
               insert into block values
                 ('t', 'system', 'tool_schema', '{"function": {"name": "search"}, "type": "function"}', 9, 'x'),
                 ('s', 'system', 'message', 'Be brief.', 3, 'x'), ('u', 'user', 'message', 'Find it.', 3, 'x'),
                 ('a', 'assistant', 'tool_call', '{"name": "search", "arguments": "{\"q\": 1}", "id": "k"}', 3, 'x'),
                 ('r', 'tool', 'tool_result', 'found', 1, 'x');
               insert into call_block values ('c1', 't', 0, 'tools', 'auto'), ('c1', 's', 1, 'system', 'auto'), ('c1', 'u', 2, null, null),
                 ('c2', 't', 0, 'tools', 'auto'), ('c2', 's', 1, 'system', 'auto'), ('c2', 'u', 2, null, null), ('c2', 'a', 3, null, null),
                 ('c2', 'r', 4, null, null);"#,
        )
        .expect("tables");
    let good = database.serialize(MAIN_DB).expect("memory").to_vec();
    let imported = import(&good, &ImportOptions::default()).expect("a good file");
    assert!(!imported.sessions.is_empty());
    good
});

pub fn run(bytes: &[u8]) {
    let Some(file) = super::patch::database(&GOOD, bytes) else {
        return;
    };
    if let Ok(imported) = import(&file, &ImportOptions::default()) {
        super::logs::read_back(&imported);
    }
}
