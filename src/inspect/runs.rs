//! Where two runs part: the first step at which what was sent or what was answered differs (INSPECT §4).
//!
//! A step is a committed snapshot whose request was sent. What came after the last one is compared as if it were a step: a run
//! may end with a prompt that nothing answered, or with a call that failed. Requests and answers are compared as blocks: role,
//! kind, content, and of calls and results the name and whether it is an error. Ids, times, and the providers' ids of calls are
//! not compared, because no two runs share them.

use super::across::{Across, ComparedBlock, parameters};
use super::call::{Call, cycle_of, is_reply};
use super::happened::{InProgress, StepEvent, events};
use super::lists::ascending;
use super::part::Region;
use crate::history::{ContentOptions, History, Session};
use crate::index::{NodeRef, Snapshot};
use crate::json::members;
use crate::support::cancel::ensure;
use crate::support::diag::Error;
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A session as a run: its steps, ready to be compared with those of others.
///
/// ```
/// use pactql::Session;
/// use pactql::inspect::Run;
/// let session = Session::open("fixtures/support-agent.jsonl")?;
/// let run = Run::new(&session)?;
/// let found = run.divergence(&run, &Default::default());
/// assert!(found.parted.is_none());
/// assert_eq!(found.equal, found.a.steps);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    /// The steps, and what came after them, if it was not committed or not sent.
    steps: Vec<RunStep>,
    end: RunEnd,
}

/// A step, as hashes. Equal ones mean equal blocks, but for one pair in 2⁶⁴.
#[derive(Clone, Debug)]
struct RunStep {
    snapshot: Arc<Snapshot>,
    cycle: i64,
    /// The parameters and all blocks of the request.
    request: u64,
    answer: u64,
    /// The blocks that the step before did not have, and the answer; `None` if there are none.
    fresh: Option<u64>,
}

/// Where two runs part.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Divergence {
    /// Steps that are equal in both, before they part.
    pub equal: usize,
    /// The first step that differs; `None` if the runs are equal to their ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parted: Option<Parting>,
    /// Where they meet again, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meet: Option<Meeting>,
    /// How the first run ended.
    pub a: RunEnd,
    /// How the second run ended.
    pub b: RunEnd,
}

/// What differs in the first step that is not equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Parted {
    /// The requests.
    Request,
    /// The answers, to equal requests.
    Answer,
    /// One run ended, and the other went on.
    End,
}

/// The first step that differs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Parting {
    /// What differs.
    pub at: Parted,
    /// The cycle of the step in the first run, or of what came after its last step; `None` if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle_a: Option<i64>,
    /// The same in the second run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle_b: Option<i64>,
    /// The first block of the first run, in document order, that differs from the one of the second at its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_a: Option<String>,
    /// The block of the second run at that place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_b: Option<String>,
    /// The difference of the requests, or of the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Across>,
    /// The snapshots of the step.
    #[serde(skip)]
    pub snapshots: [Option<Arc<Snapshot>>; 2],
}

/// The first steps after the parting in which both runs add equal blocks and get equal answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Meeting {
    /// The cycle in the first run.
    pub cycle_a: i64,
    /// The cycle in the second run.
    pub cycle_b: i64,
    /// Steps after the parting that are equal in this way and in the same order, at most.
    pub steps: usize,
}

/// How a run ended.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RunEnd {
    /// The steps of the run.
    pub steps: usize,
    /// The cycle of the last one, or of what came after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<i64>,
    /// Whether that is the cycle in progress, of which nothing is committed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub working: bool,
    /// What happened in it.
    pub events: Vec<StepEvent>,
    /// Why its answer ended, in the provider's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The id of the last block of its answer, or else of its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The snapshot of the last step, or the working state.
    #[serde(skip)]
    pub snapshot: Option<Arc<Snapshot>>,
}

impl Run {
    /// The steps of a session, and what came after the last one.
    ///
    /// Linear in the blocks that steps add, change and remove, and in the pieces of each snapshot.
    ///
    /// # Errors
    /// A snapshot of a store cannot be loaded.
    pub fn new(session: &Session) -> Result<Self, Error> {
        let history = session.history();
        history.fetch_all()?;
        let (steps, end) = (Vec::new(), RunEnd::default());
        let mut run = Self { steps, end };
        // The hash of the blocks of each number of units, of the step before.
        let mut hashes = vec![0];
        let mut last: Option<(&Arc<Snapshot>, Call)> = None;
        for snapshot in history.committed().iter() {
            ensure();
            let call = Call::in_history(&history, snapshot);
            if call.made {
                run.steps
                    .push(run.step(snapshot, cycle_of(snapshot), &mut hashes));
                last = Some((snapshot, call));
            }
        }
        run.end.steps = run.steps.len();
        if let Some((snapshot, call)) = last {
            let happened = events(&history, snapshot, &call);
            run.end.set(snapshot, cycle_of(snapshot), &call, happened);
        }
        run.add_end(&history, &mut hashes);
        Ok(run)
    }

    /// Adds what came after the last step: the cycle in progress, or a newest snapshot that was not sent.
    fn add_end(&mut self, history: &History, hashes: &mut Vec<u64>) {
        if let Some(found) = InProgress::of(history) {
            let mut step = self.step(found.snapshot, found.cycle, hashes);
            let call = &found.call;
            if call.failed + call.canceled > 0 {
                // A failure is an answer.
                step.answer = hash(&(step.answer, call.failed > 0, &call.error));
            }
            self.steps.push(step);
            self.end
                .set(found.snapshot, found.cycle, call, found.events);
            self.end.working = true;
        } else if let Some(newest) = history.committed().last()
            && self.end.cycle < Some(newest.cycle())
        {
            let call = Call::in_history(history, newest);
            let happened = events(history, newest, &call);
            if !call.compaction && !happened.is_empty() {
                self.steps.push(self.step(newest, newest.cycle(), hashes));
                self.end.set(newest, newest.cycle(), &call, happened);
            }
        }
    }

    fn step(&self, snapshot: &Arc<Snapshot>, cycle: i64, hashes: &mut Vec<u64>) -> RunStep {
        let older = self.steps.last().map(|step| &*step.snapshot);
        let kept = older.map_or(0, |older| snapshot.units_shared(older));
        hashes.truncate(kept + 1);
        let before = hashes[kept];
        let (mut request, mut whole) = (hash(&(before, parameters_hash(snapshot))), before);
        let (mut answer, mut fresh) = (0, None);
        let own_reply = cycle.to_string();
        for unit in snapshot.units_from(kept) {
            for node in unit.nodes().filter(|node| is_sent(*node)) {
                ensure();
                let says = hash(&ComparedBlock::new(node).says);
                whole = hash(&(whole, says));
                let is_reply = is_reply(node, &own_reply);
                if is_reply {
                    answer = hash(&(answer, says));
                } else {
                    request = hash(&(request, says));
                }
                if is_reply || older.is_none_or(|older| older.find(node.id()).is_none()) {
                    fresh = Some(hash(&(fresh, is_reply, says)));
                }
            }
            hashes.push(whole);
        }
        RunStep {
            snapshot: Arc::clone(snapshot),
            cycle,
            request,
            answer,
            fresh,
        }
    }

    /// The number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.steps
    }

    /// Whether nothing was sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The steps from one on.
    fn from(&self, first: usize) -> &[RunStep] {
        self.steps.get(first..self.len()).unwrap_or_default()
    }

    /// Compares the run with another one. `content` says how the contents of blocks are compared.
    ///
    /// `n log n` in the steps, and in the blocks of the step at which the runs part.
    #[must_use]
    pub fn divergence(&self, other: &Self, content: &ContentOptions) -> Divergence {
        let pairs = self.steps.iter().zip(&other.steps);
        let equal = pairs.take_while(|(a, b)| (a.request, a.answer) == (b.request, b.answer));
        let equal = equal.count();
        let (a, b) = (self.steps.get(equal), other.steps.get(equal));
        let parted = (a.is_some() || b.is_some()).then(|| Parting::new(a, b, content));
        Divergence {
            // What comes after the steps is none.
            equal: equal.min(self.len()).min(other.len()),
            meet: meeting(self.from(equal), other.from(equal)),
            parted,
            a: self.end.clone(),
            b: other.end.clone(),
        }
    }
}

impl RunEnd {
    /// Sets what a run ends with.
    fn set(&mut self, snapshot: &Arc<Snapshot>, cycle: i64, call: &Call, happened: Vec<StepEvent>) {
        let sent = |node: &NodeRef<'_>| is_sent(*node);
        let last = snapshot.nodes().filter(sent).last();
        self.cycle = Some(cycle);
        self.events = happened;
        self.stop_reason.clone_from(&call.stop_reason);
        self.block = last.map(|node| node.id().to_owned());
        self.snapshot = Some(Arc::clone(snapshot));
    }
}

impl Parting {
    fn new(a: Option<&RunStep>, b: Option<&RunStep>, content: &ContentOptions) -> Self {
        let cycle = |step: Option<&RunStep>| step.map(|step| step.cycle);
        let mut parting = Self {
            at: Parted::End,
            cycle_a: cycle(a),
            cycle_b: cycle(b),
            block_a: None,
            block_b: None,
            difference: None,
            snapshots: [a, b].map(|step| step.map(|step| Arc::clone(&step.snapshot))),
        };
        let (Some(a), Some(b)) = (a, b) else {
            return parting;
        };
        let is_answer = a.request == b.request;
        parting.at = if is_answer {
            Parted::Answer
        } else {
            Parted::Request
        };
        let [first, second] = [a, b].map(|step| step.blocks(is_answer));
        let pairs = first.iter().zip(&second);
        let same = pairs.take_while(|(a, b)| a.says == b.says).count();
        let id = |blocks: &[ComparedBlock<'_>]| Some(blocks.get(same)?.node.id().to_owned());
        (parting.block_a, parting.block_b) = (id(&first), id(&second));
        let parameters = if is_answer {
            Vec::new()
        } else {
            parameters(&a.snapshot, &b.snapshot)
        };
        parting.difference = Some(Across::new(&first, &second, parameters, content));
        parting
    }
}

impl RunStep {
    /// The blocks of the answer, or of the request.
    fn blocks(&self, answer: bool) -> Vec<ComparedBlock<'_>> {
        let cycle = self.cycle.to_string();
        let nodes = self.snapshot.nodes().filter(|node| is_sent(*node));
        let nodes = nodes.filter(|node| is_reply(*node, &cycle) == answer);
        nodes.map(ComparedBlock::new).collect()
    }
}

/// The first pair of steps, by the sum of their places, in which both add the same.
fn meeting(a: &[RunStep], b: &[RunStep]) -> Option<Meeting> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, step) in b.iter().enumerate() {
        if let Some(fresh) = step.fresh {
            places.entry(fresh).or_default().push(at);
        }
    }
    // Each step of one run with the first of the other that is equal to it and not taken yet.
    let mut taken: HashMap<u64, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, step) in a.iter().enumerate() {
        let Some((fresh, places)) = step
            .fresh
            .and_then(|fresh| Some((fresh, places.get(&fresh)?)))
        else {
            continue;
        };
        let next = taken.entry(fresh).or_default();
        if let Some(other) = places.get(*next) {
            pairs.push((at, *other));
            *next += 1;
        }
    }
    let (first, second) = *pairs.iter().min_by_key(|(a, b)| (a + b, *a))?;
    Some(Meeting {
        cycle_a: a[first].cycle,
        cycle_b: b[second].cycle,
        steps: ascending(&pairs).len(),
    })
}

fn is_sent(node: NodeRef<'_>) -> bool {
    Region::containing(node).is_some()
}

/// The request parameters, in whatever order they are written.
fn parameters_hash(snapshot: &Snapshot) -> u64 {
    let mut all = members(snapshot.meta().request().unwrap_or("{}"));
    all.sort_unstable();
    hash(&all)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
