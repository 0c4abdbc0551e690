//! Compares the text index of a store with the texts it is an index of.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use crate::store::database::sql::{Database, Dialect, collect, first, int, ints, one_int, text};
use crate::store::error::{Result, StoreError};
use crate::store::manage::verify::Finding;
use crate::store::texts::build::{TextsOf, text_hash, texts_of_unit};
use crate::store::texts::grams::{grams, vector};
use crate::store::texts::tables::through;

/// What is wrong with a text index, if anything is; nothing if there is none. Linear in the texts and the
/// index.
pub(crate) fn verify_texts(database: &mut dyn Database, texts_of: TextsOf) -> Result<Vec<Finding>> {
    let wrong = match check(database, texts_of) {
        Ok(wrong) => wrong,
        Err(StoreError::Damaged(what) | StoreError::Database(what)) => Some(what),
        Err(other) => return Err(other),
    };
    let found = wrong.map(|what| {
        let what = format!(
            "the text index is not what the texts say ({what}): remove it and make it again"
        );
        (None, None, what)
    });
    Ok(found.into_iter().collect())
}

/// The first contradiction.
fn check(database: &mut dyn Database, texts_of: TextsOf) -> Result<Option<String>> {
    let Some(through) = through(database)? else {
        return Ok(None);
    };
    // By text: what the runs of it come to, as of the texts.
    let mut sums: HashMap<i64, u64> = HashMap::new();
    let list = "select unit_id, kind from unit where unit_id <= ?1 order by unit_id";
    let units = collect(database, list, &[through.into()], |row| {
        Ok((int(row, 0)?, text(row, 1)?.to_owned()))
    })?;
    for (unit, kind) in &units {
        let texts = texts_of_unit(database, *unit, kind, texts_of)?;
        let mut kept = collect(
            database,
            "select d.hash, d.text_id from text_unit t join text_doc d on d.text_id = t.text_id \
             where t.unit_id = ?1",
            &[(*unit).into()],
            |row| Ok((row.bytes(0)?.unwrap_or_default().to_vec(), int(row, 1)?)),
        )?;
        kept.sort_unstable();
        let mut made: Vec<([u8; 16], &String)> =
            texts.iter().map(|text| (text_hash(text), text)).collect();
        made.sort_unstable();
        if kept.len() != made.len() || kept.iter().zip(&made).any(|(a, b)| a.0[..] != b.0[..]) {
            return Ok(Some(format!("unit {unit} has other texts")));
        }
        for ((_, number), (_, text)) in kept.into_iter().zip(made) {
            if sums.contains_key(&number) {
                continue;
            }
            if !has_vector(database, number, text)? {
                return Ok(Some(format!("text {number} has other runs of characters")));
            }
            let sum = grams(text).into_iter().map(gram_sum);
            sums.insert(number, sum.fold(0, u64::wrapping_add));
        }
    }
    left_over(database, sums.len(), &units)?
        .map_or_else(|| runs(database, sums), |what| Ok(Some(what)))
}

/// Whether PostgreSQL has the runs of a text.
fn has_vector(database: &mut dyn Database, number: i64, text: &str) -> Result<bool> {
    if database.dialect() == Dialect::Sqlite {
        return Ok(true);
    }
    let same = first(
        database,
        "select grams is not distinct from cast(cast(?2 as text) as tsvector) from text_doc \
         where text_id = ?1",
        &[number.into(), vector(text).as_deref().into()],
        |row| row.bool(0),
    )?;
    Ok(same.flatten() == Some(true))
}

/// Rows of units and texts that there are no more.
fn left_over(
    database: &mut dyn Database,
    texts: usize,
    units: &[(i64, String)],
) -> Result<Option<String>> {
    let count = one_int(database, "select count(*) from text_doc", &[])?;
    if count != i64::try_from(texts).ok() {
        return Ok(Some("it has texts that no unit has".to_owned()));
    }
    let known: BTreeSet<i64> = units.iter().map(|(unit, _)| *unit).collect();
    let distinct = "select distinct unit_id from text_unit";
    let placed = ints(database, distinct, &[])?;
    let gone = placed.iter().find(|unit| !known.contains(*unit));
    Ok(gone.map(|unit| format!("there is no unit {unit}")))
}

/// Compares the runs in SQLite's index, all in one go, with those of the texts.
fn runs(database: &mut dyn Database, mut sums: HashMap<i64, u64>) -> Result<Option<String>> {
    if database.dialect() != Dialect::Sqlite {
        return Ok(None);
    }
    let mut strange = None;
    let mut last = (String::new(), 0);
    database.query("select term, doc from text_gram_row", &[], &mut |row| {
        let (term, number) = (text(row, 0)?, int(row, 1)?);
        if last.0 != term {
            last = (term.to_owned(), gram_sum(term));
        }
        match sums.get_mut(&number) {
            Some(sum) => *sum = sum.wrapping_sub(last.1),
            None => strange = Some(number),
        }
        Ok(())
    })?;
    let wrong = sums.into_iter().filter(|(_, sum)| *sum != 0);
    let wrong = wrong.map(|(number, _)| number).chain(strange).min();
    Ok(wrong.map(|number| format!("text {number} has other runs of characters")))
}

/// What a run counts for in the sum of a text.
fn gram_sum(gram: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&Sha256::digest(gram.as_bytes())[..8]);
    u64::from_be_bytes(bytes)
}
