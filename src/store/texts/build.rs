//! Adds units to the text index of a store, queries it, and verifies it against the texts.
//!
//! The engine decides which texts a unit has: this file must not know what is sent of a node.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use crate::engine::indexed;
use crate::index::UnitKind;
use crate::query::ir::{Required, fold};
use crate::query::sql::Dialect;
use crate::store::database::home::Home;
use crate::store::database::sql::{
    Backend, Database, ResultRow, SqlValue, collect, first, int, ints, one_int, text,
};
use crate::store::error::{Result, StoreError};
use crate::store::layout::sums::Finding;
use crate::store::read::load::restore_units;
use crate::store::texts::grams::{expression, grams, vector};
use crate::store::texts::tables::{create, drop_text_index, through};
use crate::support::cancel;

/// How many bytes of text one transaction adds, so that others can write in between.
const TOGETHER: usize = 8 << 20;

/// How many units are read at once.
const UNITS: i64 = 64;

/// How many such batches are read before they are written.
const AHEAD: usize = 2;

/// Adds some of the units that the index does not have yet; it is made if it is missing. Returns how many;
/// none, if it has all. Linear in their texts. No other process may be writing: so a second connection reads the same,
/// on another thread, ahead of what is written.
pub(crate) fn index_texts(database: &mut dyn Database, home: &Home) -> Result<u64> {
    let through = match through(database)? {
        Some(through) => through,
        None => {
            drop_text_index(database)?;
            create(database)?;
            0
        }
    };
    std::thread::scope(|scope| {
        let (sender, ahead) = sync_channel(AHEAD);
        let tokens = cancel::here();
        scope.spawn(move || {
            // Whatever ends it, the writer reads on itself, and meets the same.
            let read = || tokens.within(|| read_ahead(home, through, &sender));
            let _ = catch_unwind(AssertUnwindSafe(read));
        });
        write_texts(database, through, &ahead)
    })
}

/// Units that follow each other: the last, how many, and their texts.
struct UnitBatch {
    last: i64,
    count: u64,
    texts: UnitTexts,
}

impl UnitBatch {
    /// The units after one; `None` if there are no more.
    fn after(database: &mut dyn Database, through: i64) -> Result<Option<Self>> {
        let next = "select unit_id, kind from unit where unit_id > ?1 order by unit_id limit ?2";
        let units = collect(database, next, &[through.into(), UNITS.into()], unit)?;
        let Some((last, _)) = units.last() else {
            return Ok(None);
        };
        Ok(Some(Self {
            last: *last,
            count: units.len() as u64,
            texts: texts_of_units(database, &units)?,
        }))
    }
}

/// Reads batch after batch until nothing is left or wanted.
fn read_ahead(home: &Home, mut through: i64, to: &SyncSender<UnitBatch>) -> Result<()> {
    let mut reader = home.reader()?;
    while let Some(batch) = UnitBatch::after(&mut *reader, through)? {
        through = batch.last;
        if to.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}

fn write_texts(
    database: &mut dyn Database,
    mut through: i64,
    ahead: &Receiver<UnitBatch>,
) -> Result<u64> {
    let (mut count, mut bytes) = (0, 0);
    // FTS5 writes what it has in memory before a statement that may have to be taken back, so its rows come last, together.
    let mut fresh = Vec::new();
    while bytes <= TOGETHER {
        let batch = match ahead.recv() {
            Ok(batch) => Some(batch),
            Err(_) => UnitBatch::after(database, through)?,
        };
        let Some(batch) = batch else {
            break;
        };
        (through, count) = (batch.last, count + batch.count);
        for (unit, texts) in batch.texts {
            for text in texts {
                bytes += text.len();
                put_text(database, unit, text, &mut fresh)?;
            }
        }
    }
    for (number, text) in fresh {
        let insert = "insert into text_gram (rowid, text) values (?1, ?2)";
        database.execute(insert, &[number.into(), text.as_str().into()])?;
    }
    if count > 0 {
        database.execute("update text_index set through = ?1", &[through.into()])?;
    }
    Ok(count)
}

fn unit(row: &dyn ResultRow) -> Result<(i64, UnitKind)> {
    let kind = text(row, 1)?;
    let unknown = || StoreError::Damaged(format!("a unit of the unknown kind {kind:?}"));
    Ok((int(row, 0)?, UnitKind::parse(kind).ok_or_else(unknown)?))
}

/// Units, and the folded texts of each that an index has, sorted, each once.
type UnitTexts = Vec<(i64, BTreeSet<String>)>;

fn texts_of_units(database: &mut dyn Database, units: &[(i64, UnitKind)]) -> Result<UnitTexts> {
    let mut found = Vec::with_capacity(units.len());
    restore_units(database, units, |unit, made| {
        let texts = made.nodes().filter_map(indexed);
        let texts = texts.map(|text| fold(&text));
        // A shorter one has no run, and no question that the index answers finds it.
        let texts = texts.filter(|text| text.chars().nth(2).is_some());
        found.push((unit, texts.collect()));
        Ok(())
    })?;
    Ok(found)
}

pub(crate) fn text_hash(folded: &str) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&Sha256::digest(folded.as_bytes())[..16]);
    hash
}

/// Adds a text of a unit; in SQLite without its trigrams, for which it goes to `fresh` if it is new.
fn put_text(
    database: &mut dyn Database,
    unit: i64,
    folded: String,
    fresh: &mut Vec<(i64, String)>,
) -> Result<()> {
    let hash = text_hash(&folded);
    let hash = SqlValue::Bytes(&hash);
    let find = "select text_id from text_doc where hash = ?1";
    let text = match one_int(database, find, &[hash])? {
        Some(known) => known,
        None => {
            let made = add_text(database, hash, &folded)?;
            if database.dialect() == Backend::Sqlite {
                fresh.push((made, folded));
            }
            made
        }
    };
    let insert = "insert into text_unit (text_id, unit_id) values (?1, ?2)";
    database.execute(insert, &[text.into(), unit.into()])?;
    Ok(())
}

fn add_text(database: &mut dyn Database, hash: SqlValue<'_>, folded: &str) -> Result<i64> {
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
    made.ok_or_else(|| StoreError::Damaged("a text vanished".to_owned()))
}

/// The units that may have a text with what is required, as conditions, one of which holds: those that the index finds,
/// and those that it does not have. `None` if there is no index. Asking is linear in both.
pub(crate) fn with_text(
    database: &mut dyn Database,
    required: &Required,
) -> Result<Option<[String; 2]>> {
    let Some(through) = through(database)? else {
        return Ok(None);
    };
    let asked = expression(required, database.dialect());
    let texts = match database.dialect() {
        Backend::Sqlite => {
            let asked = Dialect::Sqlite.text(&asked);
            format!("select rowid from text_gram where text_gram match {asked}")
        }
        Backend::Postgres => {
            let asked = Dialect::Postgres.text(&asked);
            format!(
                "select text_id from text_doc where grams @@ cast({asked} as tsquery) \
                 union all select text_id from text_doc where grams is null"
            )
        }
    };
    let found = format!("in (select t.unit_id from text_unit t where t.text_id in ({texts}))");
    Ok(Some([found, format!("> {through}")]))
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
    let units = collect(database, list, &[through.into()], unit)?;
    for some in units.chunks(UNITS as usize) {
        for (unit, texts) in texts_of_units(database, some)? {
            if let Some(wrong) = check_unit(database, unit, &texts, &mut sums)? {
                return Ok(Some(wrong));
            }
        }
    }
    left_over(database, sums.len(), &units)?
        .map_or_else(|| runs(database, sums), |what| Ok(Some(what)))
}

/// Compares the texts that the index has of a unit, and adds the sums of those that were not seen before.
fn check_unit(
    database: &mut dyn Database,
    unit: i64,
    texts: &BTreeSet<String>,
    sums: &mut HashMap<i64, u64>,
) -> Result<Option<String>> {
    let mut kept = collect(
        database,
        "select d.hash, d.text_id from text_unit t join text_doc d on d.text_id = t.text_id \
         where t.unit_id = ?1",
        &[unit.into()],
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
    Ok(None)
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
    units: &[(i64, UnitKind)],
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
