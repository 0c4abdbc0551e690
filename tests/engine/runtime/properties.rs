//! Random runs against the plain model: every outcome, every working state, every snapshot.
//!
//! Seeds are fixed. A failure prints its seed and the shortest run that still fails;
//! `PACTQL_SEED=n` plays that run alone, `PACTQL_CASES=n` sets the number of steps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pactql::{
    Context, ContextBuilder, Error, Message, NewNode, Session as Live, Snapshot, context::Reference,
};

use super::invariants::{Allowed, Checker};
use super::model::{Done, Limit, Measure, Model, Policy, Refused, Scope};
use super::ops::{self, Kind, Maker, Op};
use super::watch::Standing;
use crate::support::engine::Engine;
use crate::support::json::{Json, parse};
use crate::support::random::{self, Rng};
use crate::support::selector::{Edition, Sel, Time};
use crate::support::tree::Session as Walked;
use crate::support::{eval, range, selectors, text};

/// A clock that shows what the test set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hand(Arc<AtomicI64>);

impl Hand {
    pub(crate) fn set(&self, now: i64) {
        self.0.store(now, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl pactql::context::Clock for Hand {
    fn now_ns(&self) -> i64 {
        self.get()
    }
}

/// The document of a snapshot.
pub(crate) fn document(snapshot: &Snapshot) -> String {
    let mut out = Vec::new();
    pactql::logs::write_document(snapshot, &mut out).unwrap();
    String::from_utf8(out).unwrap().trim_end().to_owned()
}

/// The tree of the working state, as canonical text.
pub(crate) fn working(session: &Live) -> String {
    let history = session.history();
    let document = document(history.latest().unwrap());
    // Members are sorted: what comes after the tree is not part of it.
    let start = document.find("\"root\":").unwrap() + "\"root\":".len();
    let end = document.rfind(",\"spec_version\"");
    let end = end.unwrap_or_else(|| document.rfind(",\"working\"").unwrap_or(document.len() - 1));
    document[start..end].to_owned()
}

/// The policy of the crate.
fn declared(policy: &Policy) -> pactql::Policy {
    let mut declared = pactql::Policy::new().protect(policy.protect as u32);
    if let Some(turns) = policy.window {
        declared = declared.window(turns as u32);
    }
    for Limit {
        scope,
        measure,
        most,
    } in policy.limits.iter().copied()
    {
        let scope = match scope {
            Scope::Whole => pactql::context::Scope::Whole,
            Scope::Sys => pactql::context::Scope::Sys,
            Scope::Seq => pactql::context::Scope::Seq,
            Scope::Head => pactql::context::Scope::Head,
        };
        let measure = match measure {
            Measure::Nodes => pactql::context::Measure::Nodes,
            Measure::Tokens => pactql::context::Measure::Tokens,
        };
        declared = declared.limit(scope, measure, most);
    }
    declared
}

/// Where a run keeps its session besides memory.
pub(crate) trait Home {
    /// After a step that agreed with the model.
    fn stepped(&mut self, play: &mut Play, seed: u64) -> Outcome<()>;
    /// After a commit that agreed with the model.
    fn committed(&mut self, play: &mut Play, seed: u64) -> Outcome<()>;
    /// Goes on after the snapshots of `play.documents`, of which the last has this number of later ones,
    /// in another session.
    fn forked(&mut self, play: &mut Play, back: usize, seed: u64) -> Outcome<()>;
    /// Other ways to read the session; their working state is that of the last save.
    fn readers(&mut self) -> Outcome<Vec<Arc<Live>>>;
}

/// A context and its model.
pub(crate) struct Play {
    pub(crate) ctx: Context,
    pub(crate) model: Model,
    pub(crate) clock: Hand,
    pub(crate) policy: Option<Policy>,
    /// The documents of the snapshots.
    pub(crate) documents: Vec<String>,
    /// Pinned ids; the reference itself, or its name where a home keeps it.
    pub(crate) references: Vec<(String, Pin)>,
    pub(crate) checker: Checker,
    /// Some node of the cycle took the times of an earlier one.
    pub(crate) succeeded: bool,
    /// Whether the clock goes on; every other run.
    ticks: bool,
    pub(crate) serial: u64,
    /// What was done, for a failure.
    pub(crate) log: Vec<String>,
    pub(crate) counts: Counts,
    home: Option<Box<dyn Home>>,
    standing: Vec<Standing>,
}

/// What keeps a node.
#[derive(Clone, Debug)]
pub(crate) enum Pin {
    Held(#[allow(dead_code, reason = "it keeps the node until it is dropped")] Arc<Reference>),
    Named(String),
}

/// How much a run did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) steps: usize,
    pub(crate) done: usize,
    pub(crate) refused: usize,
    pub(crate) commits: usize,
    pub(crate) selectors: usize,
}

pub(crate) type Outcome<T> = Result<T, String>;

macro_rules! same {
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) if *left == *right => {}
            (left, right) => {
                let message = format!($($message)+);
                return Err(format!("{message}\n  engine: {left:?}\n   model: {right:?}"));
            }
        }
    };
}

impl Play {
    pub(crate) fn new(seed: u64) -> Self {
        let clock = Hand::default();
        let policy = ops::policy(seed);
        let mut model = Model::new();
        model.policy = policy.clone();
        Self {
            ctx: builder(&clock, policy.as_ref()).build(),
            model,
            clock,
            policy,
            documents: Vec::new(),
            references: Vec::new(),
            checker: Checker::default(),
            succeeded: false,
            ticks: seed % 4 < 2,
            serial: 0,
            log: Vec::new(),
            counts: Counts::default(),
            home: None,
            standing: Vec::new(),
        }
    }

    /// Keeps the session in this home from now on.
    pub(crate) fn live_in(&mut self, home: Box<dyn Home>) {
        self.home = Some(home);
    }

    /// A builder of contexts as this run needs them.
    pub(crate) fn builder(&self) -> ContextBuilder {
        builder(&self.clock, self.policy.as_ref())
    }

    /// Lets the home do something with the run.
    fn at_home(
        &mut self,
        act: impl FnOnce(&mut dyn Home, &mut Self) -> Outcome<()>,
    ) -> Outcome<()> {
        let Some(mut home) = self.home.take() else {
            return Ok(());
        };
        let done = act(&mut *home, self);
        self.home = Some(home);
        done
    }

    fn walked(&self) -> Walked {
        Walked::from_lines(&[self.working_line()])
    }

    fn working_line(&self) -> String {
        let Json::Obj(mut members) = self.model.document(None) else {
            panic!("an object")
        };
        members.push(("working".to_owned(), Json::Bool(true)));
        Json::Obj(members).write()
    }

    /// One operation.
    pub(crate) fn step(&mut self, op: &Op) -> Outcome<()> {
        self.operate(op)?;
        self.look(op.seed)?;
        self.at_home(|home, play| home.stepped(play, op.seed))
    }

    /// Standing selectors are begun now and then, and some of them look after each operation.
    fn look(&mut self, seed: u64) -> Outcome<()> {
        let mut rng = Rng::new(seed.rotate_left(7));
        if self.standing.len() < 5 && rng.chance(15) {
            let sel = selectors::selector(&mut rng, &self.walked(), Edition::Canonical);
            let time = *rng.pick(&[Time::Omitted, Time::Omitted, Time::Back(0), Time::Back(1)]);
            // The working state has no facets.
            let time = match time {
                Time::Omitted if selectors::has_facet(&sel) => Time::Back(0),
                time => time,
            };
            let sel = Sel { time, ..sel };
            let text = text::variant(&sel, Edition::Canonical, &mut rng);
            self.standing.push(Standing::new(&self.ctx, &text)?);
        }
        let ctx = &self.ctx;
        self.standing.retain(|standing| standing.is_of(ctx));
        for standing in &mut self.standing {
            if rng.chance(60) {
                standing.look(&self.ctx)?;
            }
        }
        Ok(())
    }

    fn operate(&mut self, op: &Op) -> Outcome<()> {
        // Operations on several nodes may be refused after the clock was read for some of them. What
        // they read is read again, so in runs with such operations the clock rests.
        let now = self.clock.get() + if self.ticks { op.tick } else { 0 };
        self.clock.set(now);
        self.counts.steps += 1;
        let session = || self.walked();
        let mut maker = Maker {
            rng: Rng::new(op.seed),
            model: &self.model,
            session: &session,
            serial: self.serial,
        };
        match op.kind {
            Kind::Add => {
                let (position, spots) = maker.position();
                let node = maker.node_for(&spots);
                self.serial = maker.serial;
                self.log.push(format!("add {position} {}", node.write()));
                let got = new_node(&node).and_then(|new| self.ctx.add(&position, new));
                let wanted = self.changed(|model| model.add(&spots, &node, now));
                self.compare(got, wanted)?;
            }
            Kind::Update => {
                let (selector, ids) = maker.selector();
                let fields = maker.fields();
                self.serial = maker.serial;
                self.log
                    .push(format!("update {selector} {}", fields.write()));
                let got = new_node(&fields).and_then(|new| self.ctx.update(&selector, new));
                let wanted = self.changed(|model| model.update(&ids, &fields));
                if !ids.is_empty() {
                    self.compare(got, wanted)?;
                }
            }
            Kind::Remove => {
                let (selector, ids) = maker.selector();
                self.log.push(format!("remove {selector}"));
                let got = self.ctx.remove(&selector);
                let wanted = self.changed(|model| model.remove(&ids));
                self.compare(got, wanted)?;
            }
            Kind::Move => {
                let (selector, ids) = maker.selector_of_one();
                let (position, spots) = maker.position();
                if self.ticks && ids.len() > 1 {
                    return Ok(());
                }
                self.log.push(format!("move {selector} to {position}"));
                let got = self.ctx.move_to(&selector, &position);
                let wanted = self.changed(|model| model.move_to(&ids, &spots, now));
                // With nothing to move the position may be wrong, too; of several nodes any may be the
                // first that cannot go.
                let either = ids.is_empty() || ids.len() > 1 && wanted.is_err();
                if !either || got.is_ok() {
                    self.compare(got, wanted)?;
                }
            }
            Kind::Replace => {
                let (selector, ids) = maker.selector_of_one();
                let node = maker.successor();
                self.serial = maker.serial;
                self.log
                    .push(format!("replace {selector} {}", node.write()));
                let got = new_node(&node).and_then(|new| self.ctx.replace(&selector, new));
                let wanted = self.changed(|model| model.replace(&ids, &node, now));
                self.succeeded |= wanted.is_ok();
                self.compare(got, wanted)?;
            }
            Kind::Compact => {
                let (selector, ids) = maker.selector_of_any();
                let node = maker.successor();
                self.serial = maker.serial;
                self.log
                    .push(format!("compact {selector} {}", node.write()));
                let got = new_node(&node).and_then(|new| self.ctx.compact(&selector, new));
                let wanted = self.changed(|model| model.compact(&ids, &node, now));
                self.succeeded |= wanted.is_ok();
                self.compare(got, wanted)?;
            }
            Kind::Pin => {
                let (selector, ids) = maker.selector_of_any();
                self.log.push(format!("pin {selector}"));
                let got = match &self.home {
                    None => self.ctx.pin(&selector).map(|reference| {
                        (reference.id().to_owned(), Pin::Held(Arc::new(reference)))
                    }),
                    Some(_) => {
                        self.serial += 1;
                        let name = format!("pin {}", self.serial);
                        let id = self.ctx.pin_as(&name, &selector);
                        id.map(|id| (id, Pin::Named(name)))
                    }
                };
                let wanted = self.changed(|model| model.pin(&ids));
                let got = got.map(|(id, pin)| {
                    self.references.push((id.clone(), pin));
                    id
                });
                self.compare(got, wanted)?;
            }
            Kind::Unpin => {
                if self.references.is_empty() {
                    return Ok(());
                }
                let at = maker.rng.below(self.references.len());
                let (id, reference) = self.references.swap_remove(at);
                self.log.push(format!("unpin {id}"));
                match reference {
                    Pin::Named(name) => same!(self.ctx.unpin(&name), Some(id.clone()), "no pin"),
                    held => drop(held),
                }
                self.model.unpin(&id);
            }
            Kind::Discard => {
                self.log.push("discard".to_owned());
                self.ctx.discard();
                self.model.discard();
                let nodes = &self.model.nodes;
                let stays =
                    |id: &str, pin: &Pin| matches!(pin, Pin::Held(_)) || nodes.contains_key(id);
                self.references.retain(|(id, pin)| stays(id, pin));
                self.succeeded = false;
            }
            Kind::Commit => {
                let seed = maker.rng.range(0, i64::MAX - 1) as u64;
                self.log.push("commit".to_owned());
                self.commit(seed)?;
            }
            Kind::Fork => self.fork(op.seed)?,
            Kind::Append => {
                let (role, parts) = maker.message();
                let is_reply = role == "assistant";
                self.serial = maker.serial;
                let refused = || {
                    self.model
                        .clone()
                        .append(role, &parts, is_reply, now)
                        .is_err()
                };
                if self.ticks && refused() {
                    return Ok(());
                }
                let texts: Vec<String> = parts.iter().map(Json::write).collect();
                self.log.push(format!("append {role} {}", texts.join(" ")));
                let message = texts.iter().try_fold(Message::new(role), |message, text| {
                    Ok(message.part(NewNode::json(text)?))
                });
                let got = message.and_then(|message| {
                    if is_reply {
                        self.ctx.reply(message)
                    } else {
                        self.ctx.append(message)
                    }
                });
                let wanted = self.changed(|model| model.append(role, &parts, is_reply, now));
                self.compare(got, wanted)?;
            }
            Kind::Request => {
                let parameters = format!(r#"{{"z":1.50,"model":"m{}"}}"#, self.serial);
                self.log.push(format!("set_request {parameters}"));
                self.ctx
                    .set_request(&parameters)
                    .map_err(|error| error.to_string())?;
                self.model.request = Some(parse(&parameters));
            }
        }
        let tree = self.model.document(None).get("root").unwrap().canonical();
        let shown = working(&self.ctx.session());
        if shown != tree {
            return Err(format!(
                "the working state differs\n{}",
                difference(&shown, &tree)
            ));
        }
        Ok(())
    }

    /// The model's outcome; it is changed only where the outcome is good.
    fn changed<T>(
        &mut self,
        run: impl FnOnce(&mut Model) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let mut model = self.model.clone();
        let outcome = run(&mut model);
        if outcome.is_ok() {
            self.model = model;
        }
        outcome
    }

    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        got: Result<T, Error>,
        wanted: Result<T, Refused>,
    ) -> Outcome<()> {
        match (got, wanted) {
            (Ok(got), Ok(wanted)) => {
                same!(got, wanted, "another result");
                self.counts.done += 1;
                Ok(())
            }
            (Err(error), Err(codes)) => {
                let code = error.code().to_string();
                self.counts.refused += 1;
                if codes.contains(code.as_str()) {
                    Ok(())
                } else {
                    Err(format!("{code} instead of {codes:?}: {error}"))
                }
            }
            (got, wanted) => {
                let got = got.map_err(|error| format!("{}: {error}", error.code()));
                Err(format!("engine: {got:?}\n   model: {wanted:?}"))
            }
        }
    }

    fn commit(&mut self, seed: u64) -> Outcome<()> {
        let pins = self.model.clone();
        let wanted: Done = self.model.commit(self.clock.get());
        let got = self.ctx.commit().map_err(|error| error.to_string())?;
        self.counts.commits += 1;
        let session = self.ctx.session();
        let history = session.history();
        let shown = document(history.committed().last().unwrap());
        if shown != wanted.document {
            let difference = difference(&shown, &wanted.document);
            return Err(format!("another snapshot\n{difference}"));
        }
        same!(got.cycle, wanted.cycle, "another cycle");
        same!(got.turn, wanted.turn, "another turn");
        same!(got.expired, wanted.expired, "others expired");
        same!(got.pruned, wanted.pruned, "others were pruned");
        same!(got.compacted, wanted.compacted, "others were compacted");
        same!(got.kept, wanted.kept, "others were kept");
        same!(got.voided, wanted.voided, "other summaries were voided");
        same!(got.emptied, wanted.emptied, "others were emptied");
        let kept = |id: &str| pins.nodes.contains_key(id) && pins.pinned(id);
        let allowed = Allowed {
            pinned: &kept,
            succeeded: self.succeeded,
        };
        self.checker.check(&parse(&wanted.document), &allowed)?;
        self.succeeded = false;
        self.documents.push(wanted.document);
        let cycles: Vec<i64> = history.cycles().collect();
        same!(
            cycles.len(),
            self.documents.len(),
            "another number of snapshots"
        );
        for (snapshot, document_then) in history.committed().iter().zip(&self.documents) {
            if random::Rng::new(seed).chance(30) {
                same!(document(snapshot), *document_then, "a snapshot changed");
            }
        }
        self.at_home(|home, play| home.committed(play, seed))?;
        if random::Rng::new(!seed).chance(35) {
            self.select(seed)
        } else {
            Ok(())
        }
    }

    /// Random selectors give what walking the exported documents gives, and what the session gives
    /// that was read from them.
    fn select(&mut self, seed: u64) -> Outcome<()> {
        let mut rng = Rng::new(seed);
        let mut lines = self.documents.clone();
        if rng.chance(50) {
            lines.push(self.working_line());
        }
        let walked = Walked::from_lines(&lines);
        let read = Live::from_slice((lines.join("\n") + "\n").as_bytes()).unwrap();
        let live = self.ctx.session();
        let engine = Engine::new(Edition::Canonical);
        let mut readers = Vec::new();
        self.at_home(|home, _| {
            readers = home.readers()?;
            Ok(())
        })?;
        let sel = selectors::selector(&mut rng, &walked, Edition::Canonical);
        let mut times = vec![Time::Back(0), Time::All, Time::BackRange(Some(0), None)];
        if self.documents.len() > 1 {
            times.push(Time::Back(1));
        }
        if !selectors::has_facet(&sel) {
            times.push(Time::Omitted);
        }
        for time in times {
            let sel = Sel {
                time,
                ..sel.clone()
            };
            let is_range = matches!(time, Time::BackRange(..));
            let text = text::variant(&sel, Edition::Canonical, &mut rng);
            let got = engine.ids(&live, &text);
            same!(
                got,
                engine.ids(&read, &text),
                "{text} in the session that was read"
            );
            self.counts.selectors += 1;
            for reader in readers.iter().filter(|_| time != Time::Omitted) {
                let stored = engine.ids(reader, &text);
                same!(got, stored, "{text} in a stored session");
            }
            if !is_range {
                let wanted = eval::ids(&walked, Edition::Canonical, &sel);
                let wanted = wanted.map_err(str::to_owned);
                same!(got, wanted, "{text}");
            } else if let Ok(wanted) = range::diff(&walked, Edition::Canonical, &sel, &text) {
                same!(got, Ok(vec![wanted]), "{text}");
            }
        }
        Ok(())
    }

    fn fork(&mut self, seed: u64) -> Outcome<()> {
        if self.documents.is_empty() {
            return Ok(());
        }
        let mut rng = Rng::new(seed);
        let at = rng.below(self.documents.len());
        let back = self.documents.len() - 1 - at;
        self.documents.truncate(at + 1);
        if self.home.is_some() {
            self.at_home(|home, play| home.forked(play, back, seed))?;
        } else if rng.chance(50) {
            self.log.push(format!("fork @t-{back}"));
            let address = match back {
                0 => "@t0".to_owned(),
                _ => format!("@t-{back}"),
            };
            self.ctx = self.ctx.fork(&address).map_err(|error| error.to_string())?;
        } else {
            self.log
                .push(format!("resume from the documents up to @t-{back}"));
            let text = self.documents.join("\n") + "\n";
            let session = Live::from_slice(text.as_bytes()).unwrap();
            let builder = builder(&self.clock, self.policy.as_ref());
            self.ctx = builder
                .resume(&session)
                .map_err(|error| error.to_string())?;
        }
        self.references.clear();
        self.standing.clear();
        let documents: Vec<Json> = self.documents.iter().map(|text| parse(text)).collect();
        self.model = Model::resume(&documents);
        self.model.policy = self.policy.clone();
        self.succeeded = false;
        self.checker = Checker::fork(&documents);
        Ok(())
    }
}

fn builder(clock: &Hand, policy: Option<&Policy>) -> ContextBuilder {
    let builder = Context::builder().clock(clock.clone());
    match policy {
        Some(policy) => builder.policy(declared(policy)),
        None => builder,
    }
}

fn new_node(node: &Json) -> Result<NewNode, Error> {
    NewNode::json(&node.write())
}

/// Where the session of a run is, besides memory.
type Settle<'s> = &'s (dyn Fn(&mut Play, u64) + Sync);

/// Plays a run; the failure, with the step at which it is.
fn play(seed: u64, ops: &[Op], settle: Settle<'_>) -> Result<Counts, (usize, String)> {
    let mut at = 0;
    let mut log = Vec::new();
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut play = Play::new(seed);
        settle(&mut play, seed);
        for op in ops {
            let done = play.step(op);
            log.clone_from(&play.log);
            if let Err(message) = done {
                return Err(format!("{:?}\n{}\n{message}", play.policy, log.join("\n")));
            }
            at += 1;
        }
        Ok(play.counts)
    }));
    match played {
        Ok(Ok(counts)) => Ok(counts),
        Ok(Err(message)) => Err((at, message)),
        Err(_) => Err((at, format!("{}\nand a panic", log.join("\n")))),
    }
}

/// Where two canonical texts differ: the nodes, without what they have in common.
fn difference(engine: &str, model: &str) -> String {
    let split = |text: &str| -> Vec<String> {
        let nodes = text.replace("},{", "}\n{").replace(":[{", ":[\n{");
        nodes.lines().map(str::to_owned).collect()
    };
    let (engine, model) = (split(engine), split(model));
    let only = |a: &[String], b: &[String], name: &str| -> Vec<String> {
        let lines = a.iter().filter(|line| !b.contains(line));
        lines.map(|line| format!("  {name}: {line}")).collect()
    };
    let mut lines = only(&engine, &model, "engine");
    lines.extend(only(&model, &engine, " model"));
    if lines.is_empty() {
        lines.push("  the same lines in another order".to_owned());
    }
    lines.join("\n")
}

/// The shortest run that still fails, found by leaving operations out.
fn shortest(
    seed: u64,
    mut ops: Vec<Op>,
    mut failure: (usize, String),
    settle: Settle<'_>,
) -> String {
    ops.truncate(failure.0 + 1);
    let mut size = ops.len() / 2;
    while size > 0 {
        let mut start = 0;
        while start < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(start..(start + size).min(ops.len()));
            match play(seed, &fewer, settle) {
                Err(still) => {
                    fewer.truncate(still.0 + 1);
                    (ops, failure) = (fewer, still);
                }
                Ok(_) => start += size,
            }
        }
        size /= 2;
    }
    format!(
        "PACTQL_SEED={seed}, {} operations\n{}",
        ops.len(),
        failure.1
    )
}

/// The operations of a run.
const LENGTH: usize = 60;

#[test]
fn random_runs_agree_with_the_model() {
    random_runs(random::cases(), &|_, _| {});
}

/// Random runs of this number of steps in all.
pub(crate) fn random_runs(steps: u32, settle: Settle<'_>) {
    let seed = std::env::var("PACTQL_SEED").ok();
    let seed: Option<u64> = seed.and_then(|seed| seed.parse().ok());
    let runs = match seed {
        Some(seed) => seed..seed + 1,
        None => 0..u64::from(steps).div_ceil(LENGTH as u64),
    };
    let run = |seed| {
        let ops = ops::run(seed, LENGTH);
        play(seed, &ops, settle).map_err(|failure| (seed, ops, failure))
    };
    // In two threads; the first failure is the one of the lowest seed.
    let (even, odd): (Vec<u64>, Vec<u64>) = runs.partition(|seed| seed % 2 == 0);
    let all = |seeds: Vec<u64>| seeds.into_iter().map(run).collect::<Result<Vec<_>, _>>();
    let outcomes = std::thread::scope(|scope| {
        let halves = [scope.spawn(|| all(even)), scope.spawn(|| all(odd))];
        halves.map(|half| half.join().unwrap())
    });
    let failures = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    if let Some((seed, ops, failure)) = failures.min_by_key(|(seed, ..)| *seed) {
        panic!("{}", shortest(*seed, ops.clone(), failure.clone(), settle));
    }
    let mut total = Counts::default();
    for counts in outcomes.into_iter().flatten().flatten() {
        total.steps += counts.steps;
        total.done += counts.done;
        total.refused += counts.refused;
        total.commits += counts.commits;
        total.selectors += counts.selectors;
    }
    println!("{total:?}");
    if seed.is_none() {
        assert!(total.done > total.refused, "most operations are refused");
    }
}
