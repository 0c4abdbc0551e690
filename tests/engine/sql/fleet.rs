//! Random selectors over random histories give the same rows from the engine and from PostgreSQL, DuckDB and
//! Spark, the last two over an export to Parquet. What is not installed prints `SKIPPED: reason`;
//! `.ci/fleet` installs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pactql::sql::{Dialect, Options, Shape, Statement};
use pactql::{
    Code, Session, Store,
    store::{ParquetExport, parquet_views},
};
use serde_json::Value;

use super::differential::{at, builder, rows};
use super::sqlite::Answers;
use crate::store::fleet::engines::{Fleet, Shared};
use crate::store::place::Folder;
use crate::support::documents::Sample;
use crate::support::random::{self, Rng};
use crate::support::selector::Edition;
use crate::support::{selectors, text};

/// Selectors for each edition: 504 in all dialects together in CI. Spark takes seconds for one, so it has
/// fewer of the 504.
fn cases(dialect: Dialect) -> usize {
    random::share(if dialect == Dialect::Spark { 80 } else { 296 }) as usize
}

/// The sessions that are asked.
const SESSIONS: u64 = 24;

/// The process that runs statements, for this test alone, if it has an engine; or why not.
pub(super) fn start(engine: &str) -> Result<Shared, String> {
    let fleet = Fleet::shared()?;
    if fleet.engines().iter().any(|known| known == engine) {
        Ok(fleet)
    } else {
        Err(format!("{engine} is not installed"))
    }
}

/// The rows of an engine, as [`Answers`] has them.
pub(super) fn answers(rows: &[Vec<Value>], shape: Shape) -> Answers {
    let mut answers = Answers::new();
    for row in rows {
        let id = |at: usize| row[at].as_str().unwrap();
        let line = match shape {
            Shape::Nodes => id(3).to_owned(),
            Shape::Changes => format!("{} {} {} {}", row[1], row[2], id(3), id(4)),
        };
        let own = answers.entry(id(0).to_owned()).or_default();
        own.push(line);
        let last = shape.columns().len() - 1;
        assert_eq!(row[last].as_u64(), Some(own.len() as u64), "{row:?}");
    }
    answers
}

/// The sessions of a fleet that selectors are made for: random ones.
fn samples() -> BTreeMap<String, (Arc<Session>, Sample)> {
    let sessions = (0..SESSIONS).map(|seed| {
        let sample = crate::conditions::case(seed, &Sample::new(seed * 7919 + 5), 0);
        let sample = Sample::of(sample.lines);
        let session = Session::from_slice(sample.text().as_bytes()).unwrap();
        (format!("s/{seed:02}"), (Arc::new(session), sample))
    });
    sessions.collect()
}

/// All sessions of a fleet: those, and one that has what they rarely have.
fn fill(
    store: &Store,
    samples: &BTreeMap<String, (Arc<Session>, Sample)>,
) -> BTreeMap<String, Arc<Session>> {
    let random = samples
        .iter()
        .map(|(name, (session, _))| (name.clone(), Arc::clone(session)));
    let fixed = (super::fixed::NAME.to_owned(), super::fixed::session());
    let sessions: BTreeMap<String, Arc<Session>> = random.chain([fixed]).collect();
    for (name, session) in &sessions {
        store.import(name, session, None).unwrap();
    }
    sessions
}

/// The selectors of a fleet, of all editions: fixed ones, and random ones for its sessions.
fn selectors(
    dialect: Dialect,
    committed: bool,
    samples: &BTreeMap<String, (Arc<Session>, Sample)>,
) -> Vec<(Edition, String)> {
    // Spark takes four seconds for one of these, and each is `:not` of one that it is asked.
    let slow = |text: &String| dialect == Dialect::Spark && text.starts_with("@t0 *:not(:");
    let fixed = super::fixed::selectors(40)
        .into_iter()
        .filter(|text| !slow(text));
    let mut all: Vec<_> = fixed.map(|text| (Edition::Canonical, text)).collect();
    for edition in [Edition::V01, Edition::Depth, Edition::Canonical] {
        let mut rng = Rng::new(77);
        let mut left = cases(dialect);
        while left > 0 {
            let (_, sample) = rng.pick(&samples.values().collect::<Vec<_>>());
            let sel = match edition {
                Edition::Canonical if rng.chance(50) => {
                    selectors::with_conditions(&mut rng, &sample.session)
                }
                _ => selectors::selector(&mut rng, &sample.session, edition),
            };
            let sel = at(&mut rng, &sample.session, edition, &sel);
            let unset = sel.time == crate::support::selector::Time::Omitted;
            if !(committed && edition != Edition::V01 && unset) {
                left -= 1;
                all.push((edition, text::variant(&sel, edition, &mut rng)));
            }
        }
    }
    all
}

/// Compares the answers of `ask` with those of the engine. `committed`: working states are not there.
fn compare(
    dialect: Dialect,
    committed: bool,
    samples: &BTreeMap<String, (Arc<Session>, Sample)>,
    sessions: &BTreeMap<String, Arc<Session>>,
    mut ask: impl FnMut(&Statement) -> Result<Answers, String>,
) {
    let (mut asked, mut found, mut refused, mut wrong) = (0, 0, 0, Vec::new());
    for (edition, written) in selectors(dialect, committed, samples) {
        let engine = builder(edition);
        let statement = match engine.sql(&written, dialect, &Options::default()) {
            Err(error) if error.code() == Code::Sql => {
                refused += 1;
                continue;
            }
            statement => statement.unwrap(),
        };
        let mut expected = Answers::new();
        for (name, session) in sessions {
            let rows = rows(&engine, session, &written).unwrap();
            if !rows.is_empty() {
                expected.insert(name.clone(), rows);
            }
        }
        asked += 1;
        found += usize::from(!expected.is_empty());
        let got = ask(&statement);
        if got.as_ref() != Ok(&expected) {
            let mut say = format!("{written}\n{}", statement.text());
            match got {
                Err(error) => say.push_str(&format!("\n  {error}")),
                Ok(got) => {
                    let differs = |name: &&String| got.get(*name) != expected.get(*name);
                    let names = got.keys().chain(expected.keys());
                    if let Some(name) = names.clone().find(differs) {
                        say.push_str(&format!(
                            "\n  {name} sql: {:?}\n  {name} engine: {:?}",
                            got.get(name),
                            expected.get(name)
                        ));
                    }
                }
            }
            wrong.push(say);
        }
    }
    println!("{dialect}: {asked} selectors, {found} with an answer, {refused} refused");
    let count = wrong.len();
    for say in &mut wrong {
        // A statement of a wide selector is long.
        let end = say
            .char_indices()
            .nth(8_000)
            .map_or(say.len(), |(at, _)| at);
        say.truncate(end);
    }
    wrong.truncate(3);
    assert!(count == 0, "{count} differ:\n{}", wrong.join("\n\n"));
    assert!(
        found * 5 >= asked * 2,
        "only {found} of {asked} find anything"
    );
    assert!(refused * 10 < asked, "{refused} refused");
}

/// Compares an engine over Parquet files.
fn over_parquet(dialect: Dialect) {
    let mut process = match start(dialect.name()) {
        Ok(process) => process,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let folder = Folder::quick();
    let store = Store::open(folder.file("x.db")).unwrap();
    let samples = samples();
    let sessions = fill(&store, &samples);
    let directory = folder.file("fleet");
    store
        .export_parquet(&directory, &ParquetExport::default().buckets(4))
        .unwrap();
    let setup = parquet_views(dialect, &directory, None).unwrap();
    compare(dialect, true, &samples, &sessions, |statement| {
        let rows = process.ask(dialect.name(), &setup, statement.text())?;
        Ok(answers(&rows, statement.shape()))
    });
}

#[test]
fn duckdb_answers_as_the_engine_does() {
    over_parquet(Dialect::DuckDb);
}

#[test]
fn spark_answers_as_the_engine_does() {
    over_parquet(Dialect::Spark);
}

#[cfg(all(unix, feature = "postgres"))]
#[test]
fn postgresql_answers_as_the_engine_does() {
    use crate::store::server::Server;
    use pactql::store::SqlRow;

    let server = match Server::start() {
        Ok(server) => server,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let store = Store::connect(&server.url("fleet")).unwrap();
    let samples = samples();
    let sessions = fill(&store, &samples);
    compare(Dialect::Postgres, false, &samples, &sessions, |statement| {
        let mut answers = Answers::new();
        let ran = store.run_statement(statement, |row| {
            let (session, line) = match row {
                SqlRow::Node { session, id, .. } => (session, id),
                SqlRow::Change {
                    session,
                    newer,
                    older,
                    change,
                    id,
                    ..
                } => (session, format!("{newer} {older} {change} {id}")),
                _ => panic!("another row"),
            };
            answers.entry(session).or_default().push(line);
        });
        ran.map_err(|error| error.to_string())?;
        Ok(answers)
    });
}
