//! Adds units to the text index of a store, queries it, and verifies it against the texts.
//!
//! The engine decides which texts a unit has: this file must not know what is sent of a node.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use crate::engine::searched;
use crate::index::UnitKind;
use crate::query::ir::{Required, fold};
use crate::store::database::sql::{
    Backend, Database, SqlValue, collect, first, int, ints, one_int, text,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::sums::Finding;
use crate::store::read::catalog::{self, Glob, ListedSession};
use crate::store::read::load::restore_unit;
use crate::store::texts::grams::{expression, grams, vector};
use crate::store::texts::tables::{create, drop_text_index, through};

/// How many bytes of text one transaction adds, so that others can write in between.
const TOGETHER: usize = 8 << 20;

const UNITS: i64 = 1_000;

/// Adds some of the units that the index does not have yet; it is made if it is missing. Returns how many;
/// none, if it has all. Linear in their texts. No other process may be writing.
pub(crate) fn index_texts(database: &mut dyn Database) -> Result<u64> {
    let mut through = match through(database)? {
        Some(through) => through,
        None => {
            drop_text_index(database)?;
            create(database)?;
            0
        }
    };
    let (mut count, mut bytes) = (0, 0);
    'full: loop {
        let next = "select unit_id, kind from unit where unit_id > ?1 order by unit_id limit ?2";
        let units = collect(database, next, &[through.into(), UNITS.into()], |row| {
            Ok((int(row, 0)?, text(row, 1)?.to_owned()))
        })?;
        if units.is_empty() {
            break;
        }
        for (unit, kind) in units {
            bytes += add_unit(database, unit, &kind)?;
            (through, count) = (unit, count + 1);
            if bytes > TOGETHER {
                break 'full;
            }
        }
    }
    if count > 0 {
        database.execute("update text_index set through = ?1", &[through.into()])?;
    }
    Ok(count)
}

/// The folded texts of a unit that an index has, sorted, each once.
pub(crate) fn texts_of_unit(
    database: &mut dyn Database,
    unit: i64,
    kind: &str,
) -> Result<BTreeSet<String>> {
    let unknown = || StoreError::Damaged(format!("a unit of the unknown kind {kind:?}"));
    let kind = UnitKind::parse(kind).ok_or_else(unknown)?;
    let made = restore_unit(database, unit, kind, &[])?;
    let texts = made.nodes().filter_map(searched);
    let texts = texts.map(|text| fold(&text));
    // A shorter one has no run, and no question that the index answers finds it.
    Ok(texts.filter(|text| text.chars().nth(2).is_some()).collect())
}

pub(crate) fn text_hash(folded: &str) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&Sha256::digest(folded.as_bytes())[..16]);
    hash
}

/// Adds a unit. Returns the bytes of its texts.
fn add_unit(database: &mut dyn Database, unit: i64, kind: &str) -> Result<usize> {
    let mut bytes = 0;
    for text in texts_of_unit(database, unit, kind)? {
        bytes += text.len();
        let text = put_text(database, &text)?;
        let insert = "insert into text_unit (text_id, unit_id) values (?1, ?2)";
        database.execute(insert, &[text.into(), unit.into()])?;
    }
    Ok(bytes)
}

fn put_text(database: &mut dyn Database, folded: &str) -> Result<i64> {
    let hash = text_hash(folded);
    let hash = SqlValue::Bytes(&hash);
    let find = "select text_id from text_doc where hash = ?1";
    if let Some(known) = one_int(database, find, &[hash])? {
        return Ok(known);
    }
    let is_sqlite = database.dialect() == Backend::Sqlite;
    let vector = if is_sqlite { None } else { vector(folded) };
    let values = [hash, vector.as_deref().into()];
    let (insert, values) = if is_sqlite {
        let sql = "insert into text_doc (hash) values (?1) returning text_id";
        (sql, &values[..1])
    } else {
        let sql = "insert into text_doc (hash, grams) \
                   values (?1, cast(cast(?2 as text) as tsvector)) returning text_id";
        (sql, &values[..])
    };
    let made = one_int(database, insert, values)?;
    let made = made.ok_or_else(|| StoreError::Damaged("a text vanished".to_owned()))?;
    if is_sqlite {
        let insert = "insert into text_gram (rowid, text) values (?1, ?2)";
        database.execute(insert, &[made.into(), folded.into()])?;
    }
    Ok(made)
}

/// Sessions that may have a text with what is required, at any time, in byte order of names; `None` if there is no index.
/// Linear in the texts that may have it, and in the units that the index does not have.
pub(crate) fn with_text(
    database: &mut dyn Database,
    required: &Required,
    glob: &Glob,
) -> Result<Option<Vec<ListedSession>>> {
    let Some(through) = through(database)? else {
        return Ok(None);
    };
    let asked = expression(required, database.dialect());
    let texts = match database.dialect() {
        Backend::Sqlite => "select rowid from text_gram where text_gram match ?1",
        Backend::Postgres => {
            "select text_id from text_doc where grams @@ cast(cast(?1 as text) as tsquery) \
             union all select text_id from text_doc where grams is null"
        }
    };
    let units = [
        (
            format!("in (select t.unit_id from text_unit t where t.text_id in ({texts}))"),
            vec![asked.as_str().into()],
        ),
        ("> ?1".to_owned(), vec![through.into()]),
    ];
    Ok(Some(catalog::placing(database, &units, glob)?))
}

/// Nothing if there is no text index. Linear in the texts and the index.
pub(crate) fn verify_texts(database: &mut dyn Database) -> Result<Vec<Finding>> {
    let wrong = match check(database) {
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

fn check(database: &mut dyn Database) -> Result<Option<String>> {
    let Some(through) = through(database)? else {
        return Ok(None);
    };
    // By text: the sum over the trigrams that it has.
    let mut sums: HashMap<i64, u64> = HashMap::new();
    let list = "select unit_id, kind from unit where unit_id <= ?1 order by unit_id";
    let units = collect(database, list, &[through.into()], |row| {
        Ok((int(row, 0)?, text(row, 1)?.to_owned()))
    })?;
    for (unit, kind) in &units {
        let texts = texts_of_unit(database, *unit, kind)?;
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

fn has_vector(database: &mut dyn Database, number: i64, text: &str) -> Result<bool> {
    if database.dialect() == Backend::Sqlite {
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

/// Compares the trigrams in SQLite's index, all in one go, with those of the texts.
fn runs(database: &mut dyn Database, mut sums: HashMap<i64, u64>) -> Result<Option<String>> {
    if database.dialect() != Backend::Sqlite {
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
