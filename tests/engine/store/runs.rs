//! The random runs of the runtime over a store: after every commit and in between, what is stored reads
//! as the same run in memory, also from another store on the same database, after the session was opened
//! again, pruned, forked, renamed, imported, copied, or given up without a save.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
#[cfg(all(unix, feature = "postgres"))]
use std::sync::atomic::{AtomicU32, Ordering};

use pactql::history::Attempt;
use pactql::inspect::{Part, Prices, Report, ReportOptions, TokenReport, Usage, UsageBy};
use pactql::{Context, Engine, Message, Provider, Session as Live, Store, store::Retention};

use super::layout;
use super::place::{Folder, documents, sound};
use crate::runtime::model::Model;
use crate::runtime::properties::{Home, Outcome, Pin, Play, document, random_runs};
use crate::support::json::{Json, parse};
use crate::support::random::{self, Rng};

/// What was done with stores, by name.
type Tally = Mutex<BTreeMap<&'static str, u32>>;

/// The documents of a session, and that of a saved working state.
type Documents = (Vec<String>, Option<String>);

/// A run in a store.
struct InStore {
    url: String,
    /// Where copies go.
    folder: Arc<Folder>,
    store: Option<Store>,
    /// As another process has it.
    other: Store,
    /// The session of the run, as `other` follows it.
    follow: Option<Arc<Live>>,
    name: String,
    number: u32,
    /// The other sessions.
    rest: BTreeMap<String, Documents>,
    saved: Saved,
    /// The rows of units as they were.
    units: layout::Seen,
    tally: Arc<Tally>,
}

/// The state that the store has.
struct Saved {
    model: Model,
    references: Vec<(String, Pin)>,
    succeeded: bool,
    working: Option<String>,
}

fn said(error: pactql::Error) -> String {
    format!("{}: {error}", error.code())
}

macro_rules! same {
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) if *left == *right => {}
            (left, right) => {
                let message = format!($($message)+);
                return Err(format!("{message}\n  stored: {left:?}\n  wanted: {right:?}"));
            }
        }
    };
}

impl InStore {
    fn begin(
        url: &str,
        folder: &Arc<Folder>,
        tally: &Arc<Tally>,
        play: &mut Play,
        seed: u64,
    ) -> Self {
        let store = Store::connect(url).unwrap();
        let name = format!("run {seed}");
        play.ctx = store.write_with(&name, play.builder()).unwrap();
        Self {
            url: url.to_owned(),
            folder: Arc::clone(folder),
            other: Store::connect(url).unwrap(),
            store: Some(store),
            follow: None,
            name,
            number: 0,
            rest: BTreeMap::new(),
            saved: Saved {
                model: play.model.clone(),
                references: Vec::new(),
                succeeded: false,
                working: None,
            },
            units: layout::Seen::new(),
            tally: Arc::clone(tally),
        }
    }

    fn count(&self, what: &'static str) {
        *self.tally.lock().unwrap().entry(what).or_default() += 1;
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn new_name(&mut self, of: &str) -> String {
        self.number += 1;
        format!("{} {of} {}", self.name, self.number)
    }

    fn note(&mut self, play: &Play, working: Option<String>) {
        self.saved = Saved {
            model: play.model.clone(),
            references: play.references.clone(),
            succeeded: play.succeeded,
            working,
        };
    }

    fn save(&mut self, play: &mut Play) -> Outcome<()> {
        play.ctx.save().map_err(said)?;
        let shown = play.ctx.is_changed() || play.documents.is_empty();
        let working = if shown {
            play.ctx
                .history()
                .working()
                .map(|working| document(working))
        } else {
            None
        };
        self.note(play, working);
        Ok(())
    }

    /// Gives the lease back, does something, and opens the session again.
    fn away(
        &mut self,
        play: &mut Play,
        act: impl FnOnce(&mut Self, &mut Play) -> Outcome<()>,
    ) -> Outcome<()> {
        play.ctx = play.builder().build();
        act(self, play)?;
        play.ctx = self
            .store()
            .write_with(&self.name, play.builder())
            .map_err(said)?;
        Ok(())
    }

    /// Compares a session with its documents.
    fn compare(&self, session: &Live, play: &Play) -> Outcome<()> {
        let (committed, working) = documents(session)?;
        same!(
            committed.len(),
            play.documents.len(),
            "another number of snapshots"
        );
        for (stored, wanted) in committed.iter().zip(&play.documents) {
            same!(stored, wanted, "another snapshot");
        }
        same!(working, self.saved.working, "another working state");
        Ok(())
    }

    /// Compares every session of a store.
    fn check(&self, store: &Store, play: &Play) -> Outcome<()> {
        let mut names: Vec<&String> = self.rest.keys().chain([&self.name]).collect();
        names.sort();
        let listed = store.sessions("").map_err(said)?;
        let listed: Vec<&String> = listed.iter().map(|info| &info.name).collect();
        same!(listed, names, "other sessions");
        for (name, wanted) in &self.rest {
            let session = store.session(name).map_err(said)?;
            same!(documents(&session)?, *wanted, "session {name} differs");
        }
        self.compare(&*store.session(&self.name).map_err(said)?, play)?;
        sound(store)
    }

    /// As [`InStore::check`], with the rows of a file.
    fn check_rows(&mut self, play: &Play) -> Outcome<()> {
        self.check(&self.other, play)?;
        if self.url.starts_with("postgres") {
            Ok(())
        } else {
            layout::check(&self.url, &mut self.units)
        }
    }

    /// Adds what is new to a copy as Parquet files, and compares a store out of it: working states are not there.
    #[cfg(feature = "parquet")]
    fn copy(&mut self, play: &Play, rng: &mut Rng) -> Outcome<()> {
        use super::parquet::{Copied, same_files};

        let directory = self.folder.file(&format!("fleet {}", rng.below(2)));
        let exported = self
            .other
            .export_parquet(&directory, &pactql::store::ParquetExport::default());
        let exported = exported.map_err(said)?;
        let again = self
            .store()
            .export_parquet(&directory, &pactql::store::ParquetExport::default());
        let again = again.map_err(said)?;
        same!(
            (again.units, again.buckets),
            (0, 0),
            "what a second export adds"
        );
        self.number += 1;
        let copied = Copied::new(&self.folder, &directory, self.number)?;
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, (committed, _)) in &self.rest {
            wanted.insert(name.clone(), committed.clone());
        }
        wanted.insert(self.name.clone(), play.documents.clone());
        let snapshots: usize = wanted.values().map(Vec::len).sum();
        let counted = (exported.sessions, exported.snapshots);
        same!(
            counted,
            (wanted.len() as u64, snapshots as u64),
            "what an export counts"
        );
        copied.check(&wanted)?;
        if rng.chance(20) {
            let fresh = [1, 2].map(|number| self.folder.file(&format!("fresh {number}")));
            for directory in &fresh {
                let what = pactql::store::ParquetExport::default().buckets(3);
                self.store()
                    .export_parquet(directory, &what)
                    .map_err(said)?;
            }
            same_files(&fresh[0], &fresh[1])?;
            Copied::new(&self.folder, &fresh[0], 0)?.check(&wanted)?;
            for directory in &fresh {
                std::fs::remove_dir_all(directory).map_err(|error| error.to_string())?;
            }
        }
        // What a context keeps is there too.
        let context = copied.store.write(&self.name).map_err(said)?;
        let newest = context
            .history()
            .committed()
            .last()
            .map(|newest| document(newest));
        same!(
            newest,
            play.documents.last().cloned(),
            "what a writer goes on from"
        );
        Ok(())
    }

    fn act(&mut self, play: &mut Play, rng: &mut Rng) -> Outcome<()> {
        let action = *rng.pick(&[
            "save", "reopen", "reopen", "crash", "crash", "look", "prune", "prune", "rename",
            "fork", "delete", "backup", "import", "copy", "copy",
        ]);
        play.log.push(format!("store: {action}"));
        self.count(action);
        match action {
            "save" => self.save(play)?,
            "reopen" => {
                self.save(play)?;
                self.away(play, |home, _| {
                    if rng.chance(50) {
                        home.store = None;
                        home.store = Some(Store::connect(&home.url).map_err(said)?);
                    }
                    Ok(())
                })?;
            }
            "crash" => {
                self.away(play, |_, _| Ok(()))?;
                play.model = self.saved.model.clone();
                play.references.clone_from(&self.saved.references);
                play.succeeded = self.saved.succeeded;
            }
            "prune" => {
                let keep = 1 + rng.below(4);
                self.save(play)?;
                let open = rng.chance(50);
                let retention = Retention::default()
                    .keep(keep as u64)
                    .sessions(self.name.clone());
                let gone = play.documents.len().saturating_sub(keep);
                let counted = self.other.prune(&retention.clone().dry_run());
                let counted = counted.map_err(said)?;
                same!(counted.snapshots, gone as u64, "a rehearsal of a prune");
                let prune = |home: &mut Self, play: &mut Play| {
                    let pruned = home.other.prune(&retention).map_err(said)?;
                    same!(pruned, counted, "a prune");
                    play.documents.drain(..gone);
                    Ok(())
                };
                if open {
                    prune(self, play)?;
                    self.away(play, |_, _| Ok(()))?;
                } else {
                    self.away(play, prune)?;
                }
            }
            "rename" => {
                self.save(play)?;
                let to = self.new_name("renamed");
                self.away(play, |home, _| {
                    home.other.rename(&home.name, &to).map_err(said)?;
                    home.name = to;
                    home.follow = None;
                    Ok(())
                })?;
            }
            "fork" if !play.documents.is_empty() => {
                let to = self.new_name("fork");
                let at = rng.below(play.documents.len());
                let address = address(play.documents.len() - 1 - at);
                self.other.fork(&self.name, &address, &to).map_err(said)?;
                self.rest.insert(to, (play.documents[..=at].to_vec(), None));
            }
            "delete" => {
                let names: Vec<String> = self.rest.keys().cloned().collect();
                if !names.is_empty() {
                    let name = rng.pick(&names);
                    self.other.delete(name).map_err(said)?;
                    self.rest.remove(name);
                }
            }
            "backup" => {
                self.number += 1;
                let path = self.folder.file(&format!("copy {}.db", self.number));
                self.store().backup(&path).map_err(said)?;
                let copy = Store::builder().must_exist().open(&path).map_err(said)?;
                self.check(&copy, play)?;
                drop(copy);
                for end in ["", "-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{path}{end}"));
                }
            }
            "import" => {
                let to = self.new_name("import");
                let session = self.other.session(&self.name).map_err(said)?;
                self.store()
                    .import(&to, &session, Some("a test"))
                    .map_err(said)?;
                let working = self.saved.working.clone();
                self.rest.insert(to, (play.documents.clone(), working));
            }
            #[cfg(feature = "parquet")]
            "copy" => self.copy(play, rng)?,
            _ => {}
        }
        if rng.chance(30) {
            let fresh = Store::connect(&self.url).map_err(said)?;
            self.check(&fresh, play)?;
        }
        self.check_rows(play)
    }
}

/// The address of a snapshot by how many are newer.
fn address(back: usize) -> String {
    match back {
        0 => "@t0".to_owned(),
        _ => format!("@t-{back}"),
    }
}

impl Home for InStore {
    fn stepped(&mut self, play: &mut Play, seed: u64) -> Outcome<()> {
        let mut rng = Rng::new(seed ^ 0x5702E);
        if rng.chance(12) {
            self.act(play, &mut rng)
        } else {
            Ok(())
        }
    }

    fn committed(&mut self, play: &mut Play, seed: u64) -> Outcome<()> {
        self.note(play, None);
        match &self.follow {
            Some(session) => {
                let changed = self.other.refresh(session).map_err(said)?;
                same!(changed, true, "a commit that a refresh does not see");
            }
            None => self.follow = Some(self.other.session(&self.name).map_err(said)?),
        }
        self.count("refresh");
        if let Some(session) = &self.follow {
            self.compare(session, play)?;
        }
        if Rng::new(seed ^ 0xC0).chance(10) {
            self.check(&Store::connect(&self.url).map_err(said)?, play)
        } else {
            Ok(())
        }
    }

    fn forked(&mut self, play: &mut Play, back: usize, seed: u64) -> Outcome<()> {
        let mut rng = Rng::new(seed ^ 0xF0);
        // The context goes without a save.
        play.ctx = play.builder().build();
        let session = self.other.session(&self.name).map_err(said)?;
        let before = documents(&session)?;
        let to = self.new_name("branch");
        if rng.chance(50) {
            play.log.push(format!("store: fork @t-{back} to {to}"));
            self.store()
                .fork(&self.name, &address(back), &to)
                .map_err(said)?;
        } else {
            play.log.push(format!("store: import @t-{back} as {to}"));
            let text = play.documents.join("\n") + "\n";
            let session = Live::from_slice(text.as_bytes()).unwrap();
            self.store().import(&to, &session, None).map_err(said)?;
        }
        self.count("branch");
        let name = std::mem::replace(&mut self.name, to);
        self.rest.insert(name, before);
        self.follow = None;
        play.ctx = self
            .store()
            .write_with(&self.name, play.builder())
            .map_err(said)?;
        let documents: Vec<Json> = play.documents.iter().map(|text| parse(text)).collect();
        let mut model = Model::resume(&documents);
        model.policy.clone_from(&play.policy);
        self.saved = Saved {
            model,
            references: Vec::new(),
            succeeded: false,
            working: None,
        };
        Ok(())
    }

    fn readers(&mut self) -> Outcome<Vec<Arc<Live>>> {
        let fresh = Store::connect(&self.url).map_err(said)?;
        let mut readers = vec![
            self.other.session(&self.name).map_err(said)?,
            fresh.session(&self.name).map_err(said)?,
        ];
        readers.extend(self.follow.clone());
        Ok(readers)
    }
}

fn runs(steps: u32, url: &(dyn Fn(&Folder, u64) -> String + Sync)) {
    let tally = Arc::new(Tally::default());
    random_runs(steps, &|play, seed| {
        let folder = Arc::new(Folder::quick());
        let url = url(&folder, seed);
        let home = InStore::begin(&url, &folder, &tally, play, seed);
        play.live_in(Box::new(home));
    });
    println!("{:?}", tally.lock().unwrap());
}

#[test]
fn random_runs_agree_with_those_in_sqlite() {
    runs(random::share(15_000), &|folder, _| folder.file("runs.db"));
}

#[cfg(all(unix, feature = "postgres"))]
#[test]
fn random_runs_agree_with_those_in_postgres() {
    match super::server::Server::start() {
        Ok(server) => runs(random::share(1_200), &|_, seed| {
            // A run that is made shorter begins with an empty schema each time.
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            server.url(&format!("runs_{seed}_{number}"))
        }),
        Err(reason) => println!("SKIPPED: {reason}"),
    }
}

/// The snapshot has the counts of its reply, and beside them those of the calls before, which were paid for, too.
#[test]
fn all_completed_calls_of_a_cycle_are_summed() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    let mut context = store.write("a").unwrap();
    context.set_request(r#"{"model":"gpt-4o"}"#).unwrap();
    context.append(Message::user("Hello")).unwrap();
    for (input, output) in [(100, 10), (200, 20)] {
        context.render(Provider::OpenAi).unwrap();
        context.complete_attempt(input, output).unwrap();
    }
    context.render(Provider::OpenAi).unwrap();
    context.fail_attempt("429").unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.reply(Message::assistant("Hi.")).unwrap();
    context.complete_attempt(300, 30).unwrap();
    context.commit().unwrap();
    // The next cycle has one call.
    context.append(Message::user("And?")).unwrap();
    context.render(Provider::OpenAi).unwrap();
    context.reply(Message::assistant("No.")).unwrap();
    context.complete_attempt(1000, 1).unwrap();
    context.commit().unwrap();
    drop(context);
    let session = store.session("a").unwrap();
    let (exported, _) = documents(&session).unwrap();
    let read = Live::from_slice(exported.join("\n").as_bytes()).unwrap();
    for session in [&*session, &read] {
        let mut usage = Usage::new(UsageBy::Model, Prices::default());
        usage.add("a", session).unwrap();
        let total = usage.total;
        let summed = [total.requests, total.input_tokens, total.output_tokens];
        assert_eq!(summed, [4, 1600, 61]);
        assert_eq!((total.uncounted, total.unpriced), (0, 0));
        assert_eq!(total.nano_dollars.to_string(), "$0.004610");
        let options = ReportOptions::new(Part::all());
        let report = TokenReport::new(&Engine::new(), session, &options).unwrap();
        assert_eq!(
            (report.session.requests, report.session.input_tokens),
            (4, 1600)
        );
        let call = &report.snapshots[0].call;
        assert_eq!(
            (call.input_tokens, call.output_tokens),
            (Some(300), Some(30))
        );
        let counts = call
            .earlier
            .iter()
            .map(|it| (it.input_tokens, it.output_tokens));
        let counts: Vec<_> = counts.collect();
        assert_eq!(counts, [(Some(100), Some(10)), (Some(200), Some(20))]);
        assert!(report.snapshots[1].call.earlier.is_empty());
    }
}

/// Calls of one cycle to several models are each in the group of their own.
#[test]
fn an_earlier_call_is_of_its_own_model() {
    let mut context = Context::new();
    context.append(Message::user("Hello")).unwrap();
    for (model, input, output) in [("unheard-of", 100, 10), ("gpt-4o", 300, 30)] {
        let parameters = format!(r#"{{"model":"{model}"}}"#);
        context.set_request(&parameters).unwrap();
        context.render(Provider::OpenAi).unwrap();
        context.complete_attempt(input, output).unwrap();
    }
    context.append(Message::assistant("Hi.")).unwrap();
    context.commit().unwrap();
    let mut usage = Usage::new(UsageBy::Model, Prices::default());
    usage.add("a", &context.session()).unwrap();
    let groups = usage.groups.iter().map(|group| {
        let used = &group.used;
        (
            group.name.as_deref(),
            used.requests,
            used.input_tokens,
            used.unpriced,
        )
    });
    let groups: Vec<_> = groups.collect();
    let wanted = [(Some("gpt-4o"), 1, 300, 0), (Some("unheard-of"), 1, 100, 1)];
    assert_eq!(groups, wanted);
}

/// Also where the reply was kept before its counts came.
#[test]
fn counts_after_a_reply_are_kept() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    let mut context = store.write("a").unwrap();
    for again in [false, true] {
        context.append(Message::user("Hello")).unwrap();
        context.render(Provider::OpenAi).unwrap();
        context.reply(Message::assistant("Hi.")).unwrap();
        context.save().unwrap();
        if again {
            drop(context);
            context = store.write("a").unwrap();
        }
        context.complete_attempt(9, 4).unwrap();
        context.save().unwrap();
        context.commit().unwrap();
    }
    drop(context);
    let session = store.session("a").unwrap();
    let history = session.history();
    for snapshot in history.committed().iter() {
        let call = pactql::inspect::Call::from_snapshot(snapshot);
        assert_eq!((call.input_tokens, call.output_tokens), (Some(9), Some(4)));
    }
    let context = store.write("a").unwrap();
    let counts = |it: &Attempt| (it.attempt_id.clone(), it.token_in, it.token_out);
    let counts: Vec<_> = context.attempts().iter().map(counts).collect();
    assert_eq!(
        counts,
        ["a2-1", "a1-1"].map(|id| (id.to_owned(), Some(9), Some(4)))
    );
}
