//! Removes units and bodies that nothing refers to any more.

use std::collections::BTreeSet;

use crate::store::database::sql::{Database, ints};
use crate::store::error::Result;
use crate::store::texts::tables;

/// Returns the number of units and of bodies that went. Linear in the candidates; each needs a lookup.
pub(crate) fn units(database: &mut dyn Database, candidates: &[i64]) -> Result<(u64, u64)> {
    let mut removed = Vec::new();
    let mut bodies: BTreeSet<i64> = BTreeSet::new();
    let candidates: BTreeSet<i64> = candidates.iter().copied().collect();
    for unit in candidates {
        let gone = database.execute(
            "delete from unit where unit_id = ?1 \
             and not exists (select 1 from placement where unit_id = ?1)",
            &[unit.into()],
        )?;
        if gone == 0 {
            continue;
        }
        removed.push(unit);
        let of_unit =
            "select distinct body_id from node where unit_id = ?1 and body_id is not null";
        bodies.extend(ints(database, of_unit, &[unit.into()])?);
        database.execute("delete from attr where unit_id = ?1", &[unit.into()])?;
        database.execute("delete from node where unit_id = ?1", &[unit.into()])?;
    }
    tables::forget(database, &removed)?;
    let mut unused = 0;
    for body in bodies {
        unused += database.execute(
            "delete from body where body_id = ?1 \
             and not exists (select 1 from node where body_id = ?1)",
            &[body.into()],
        )?;
    }
    Ok((removed.len() as u64, unused))
}
