//! What changed between the lists of two snapshots (LANGUAGE §8, STORE §5).

use crate::ir::{Mode, Query};

use super::tables::Tables;
use super::words::{Select, With};

/// Adds the pairs of snapshots and what changed in each, and returns the end of the statement.
pub(super) fn changes(query: &Query, tables: &Tables, listed: &str, with: &mut With) -> Select {
    let pairs = match query.controls.mode {
        Mode::Reduce => Select {
            columns: ["session_id", "max(seq) as newer", "min(seq) as older"]
                .map(str::to_owned)
                .to_vec(),
            from: vec!["asked".to_owned()],
            end: vec![
                "group by session_id".to_owned(),
                "having max(seq) > min(seq)".to_owned(),
            ],
            ..Select::default()
        },
        _ => Select {
            columns: ["a.session_id", "a.seq as newer", "b.seq as older"]
                .map(str::to_owned)
                .to_vec(),
            from: vec![
                "asked a".to_owned(),
                "join asked b on b.session_id = a.session_id and b.seq = a.seq - 1".to_owned(),
            ],
            ..Select::default()
        },
    };
    with.add("pairs", pairs);
    let at = |alias: &str, end: &str| {
        format!("{listed} {alias} on {alias}.session_id = p.session_id and {alias}.seq = p.{end}")
    };
    // Null differs from a value, and not from null.
    let differs = |column: &str| {
        format!("m.{column} <> o.{column} or (m.{column} is null) <> (o.{column} is null)")
    };
    let columns = |change: &str, from: &str| {
        let mut columns = ["p.session_id", "p.newer", "p.older"]
            .map(str::to_owned)
            .to_vec();
        columns.extend([
            format!("{change} as change"),
            format!("{from}.id"),
            format!("{from}.ord"),
        ]);
        columns
    };
    let kind = "case when o.id is null then 'added' else 'changed' end";
    let newer = Select {
        columns: columns(kind, "m"),
        from: vec![
            "pairs p".to_owned(),
            format!("join {}", at("m", "newer")),
            format!("left join {} and o.id = m.id", at("o", "older")),
        ],
        filters: vec![format!(
            "(o.id is null or {} or {} or {})",
            differs("version"),
            differs("parent"),
            differs("ttl")
        )],
        ..Select::default()
    };
    let older = Select {
        columns: columns("'removed'", "o"),
        from: vec![
            "pairs p".to_owned(),
            format!("join {}", at("o", "older")),
            format!("left join {} and m.id = o.id", at("m", "newer")),
        ],
        filters: vec!["m.id is null".to_owned()],
        ..Select::default()
    };
    with.add_union("changes", vec![newer, older]);
    let session = tables.table("session");
    Select {
        columns: [
            "z.name as session",
            "d.newer",
            "d.older",
            "d.change",
            "d.id",
            "row_number() over (partition by d.session_id order by d.newer desc, \
             case d.change when 'added' then 0 when 'removed' then 1 else 2 end, d.ord) as ord",
        ]
        .map(str::to_owned)
        .to_vec(),
        from: vec![
            "changes d".to_owned(),
            format!("join {session} z on z.session_id = d.session_id"),
        ],
        end: vec!["order by session, ord".to_owned()],
        ..Select::default()
    }
}
