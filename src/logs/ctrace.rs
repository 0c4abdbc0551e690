//! ctxdiff's `.ctrace` files as lines of JSON, one a call, which [`super::formats`] reads.
//!
//! The file is a SQLite database: runs, their calls, and for each call the list of its blocks, whose
//! texts are there once. This file must not know messages.

use super::json::{braced, compact, list, push_member, quoted, value};
use crate::tree::InputError;
use rusqlite::{Connection, Row};

/// The calls of all runs, one a line, in order. Refuses databases of other programs, and damaged ones.
pub(super) fn lines(database: &Connection) -> Result<String, InputError> {
    read(database).map_err(|error| {
        InputError::at_document(format!(
            "expected a file of ctxdiff or opencode in this SQLite file: {error}"
        ))
    })
}

fn read(database: &Connection) -> rusqlite::Result<String> {
    // Version 1 does not say whose call it was.
    let has = "select count(*) from pragma_table_info('call') where name = ?1";
    let column = |name: &str| -> rusqlite::Result<String> {
        let count: i64 = database.query_row(has, [name], |row| row.get(0))?;
        Ok(match count {
            0 => "null".to_owned(),
            _ => format!("c.{name}"),
        })
    };
    let (agent, step, provider) = (column("agent")?, column("step")?, column("provider")?);
    let sql = format!(
        "select c.id, r.id, r.project, r.started_at, c.seq, c.latency_ms, c.params, c.usage, c.error, \
         {agent}, {step}, coalesce({provider}, r.provider) from call c join run r on r.id = c.run_id \
         order by r.rowid, c.seq"
    );
    let mut calls = database.prepare(&sql)?;
    let mut blocks = database.prepare(
        "select b.role, b.kind, b.text, cb.label, cb.label_source from call_block cb \
         join block b on b.content_hash = cb.block_id where cb.call_id = ?1 order by cb.position",
    )?;
    let mut out = String::new();
    let mut rows = calls.query([])?;
    while let Some(row) = rows.next()? {
        let mut run = String::new();
        texts(row, 1, &["id", "project", "started_at"], &mut run)?;
        let mut call = format!(",\"run\":{}", braced(&run));
        for (at, name) in [(4, "seq"), (5, "latency_ms")] {
            if let Some(number) = row.get::<_, Option<i64>>(at)? {
                push_member(name, &number.to_string(), &mut call);
            }
        }
        for (at, name) in [(6, "params"), (7, "usage")] {
            if let Some(text) = row.get::<_, Option<String>>(at)? {
                push_member(name, &json(&text), &mut call);
            }
        }
        texts(row, 8, &["error", "agent", "step", "provider"], &mut call)?;
        let mut of_call = Vec::new();
        let mut found = blocks.query([row.get_ref(0)?.as_str()?])?;
        while let Some(row) = found.next()? {
            let mut block = String::new();
            let names = ["role", "kind", "text", "label", "label_source"];
            texts(row, 0, &names, &mut block)?;
            of_call.push(braced(&block));
        }
        push_member("blocks", &list(of_call), &mut call);
        out.push_str(&format!("{{\"ctrace\":\"call\"{call}}}\n"));
    }
    Ok(out)
}

fn texts(row: &Row<'_>, first: usize, names: &[&str], out: &mut String) -> rusqlite::Result<()> {
    for (at, name) in names.iter().enumerate() {
        if let Some(text) = row.get::<_, Option<String>>(first + at)? {
            push_member(name, &quoted(&text), out);
        }
    }
    Ok(())
}

/// The JSON that a column holds, on one line; anything else as a string.
fn json(text: &str) -> String {
    value(text).map_or_else(|| quoted(text), |value| compact(value).into_owned())
}
