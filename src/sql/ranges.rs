//! What changed between the lists of two snapshots (LANGUAGE §8, STORE §5).

use crate::ir::{Mode, Query};

use super::tables::Tables;
use super::words::{Select, With, any, names};

/// Adds the pairs of snapshots and what changed in each, and returns the end of the statement.
pub(super) fn changes(query: &Query, tables: &Tables, listed: &str, with: &mut With) -> Select {
    with.add("pairs", pairs(query.controls.mode));
    with.add_union("changes", vec![newer(listed), removed(listed)]);
    let session = tables.table("session");
    let mut columns = names(&[
        "z.name as session",
        "d.newer",
        "d.older",
        "d.change",
        "d.id",
    ]);
    columns.push(
        "row_number() over (partition by d.session_id order by d.newer desc, \
         case d.change when 'added' then 0 when 'removed' then 1 else 2 end, d.ord) as ord"
            .to_owned(),
    );
    Select {
        columns,
        from: vec![
            "changes d".to_owned(),
            format!("join {session} z on z.session_id = d.session_id"),
        ],
        end: names(&["order by session, ord"]),
        ..Select::default()
    }
}

/// The pairs: neighbours, or the two ends.
fn pairs(mode: Mode) -> Select {
    match mode {
        Mode::Reduce => Select {
            columns: names(&["session_id", "max(seq) as newer", "min(seq) as older"]),
            from: names(&["asked"]),
            end: names(&["group by session_id", "having max(seq) > min(seq)"]),
            ..Select::default()
        },
        Mode::Pairwise | Mode::Union | Mode::Latest => Select {
            columns: names(&["a.session_id", "a.seq as newer", "b.seq as older"]),
            from: names(&[
                "asked a",
                "join asked b on b.session_id = a.session_id and b.seq = a.seq - 1",
            ]),
            ..Select::default()
        },
    }
}

/// The rows of the newer lists that the older ones do not have, or have otherwise.
fn newer(listed: &str) -> Select {
    // Null differs from a value, and not from null.
    let differs = |column: &str| {
        format!("m.{column} <> o.{column} or (m.{column} is null) <> (o.{column} is null)")
    };
    let kind = "case when o.id is null then 'added' else 'changed' end as change";
    let differences = [
        "o.id is null".to_owned(),
        differs("version"),
        differs("parent"),
        differs("ttl"),
    ];
    Select {
        columns: names(&["p.session_id", "p.newer", "p.older", kind, "m.id", "m.ord"]),
        from: vec![
            "pairs p".to_owned(),
            format!("join {}", at(listed, "m", "newer")),
            format!("left join {} and o.id = m.id", at(listed, "o", "older")),
        ],
        filters: vec![any(differences)],
        ..Select::default()
    }
}

/// The rows of the older lists that the newer ones do not have.
fn removed(listed: &str) -> Select {
    let kind = "'removed' as change";
    Select {
        columns: names(&["p.session_id", "p.newer", "p.older", kind, "o.id", "o.ord"]),
        from: vec![
            "pairs p".to_owned(),
            format!("join {}", at(listed, "o", "older")),
            format!("left join {} and m.id = o.id", at(listed, "m", "newer")),
        ],
        filters: names(&["m.id is null"]),
        ..Select::default()
    }
}

/// The list of an end of a pair.
fn at(listed: &str, alias: &str, end: &str) -> String {
    format!("{listed} {alias} on {alias}.session_id = p.session_id and {alias}.seq = p.{end}")
}
