//! Random cases: proptest's source of numbers, runner and shrinking over the generators of this
//! directory.
//!
//! Seeds are fixed, so a test does the same on every run and machine. A failure prints the seed
//! of its case; `PACTQL_SEED=n` runs that one alone, `PACTQL_CASES=n` sets how many cases run.

use std::fmt;

use proptest::prelude::{ProptestConfig, Rng as _, TestCaseError};
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::{RngAlgorithm, RngSeed, TestRng, TestRunner};

use super::documents::Sample;
use super::json::{self, Json};
use super::selector::{Axis, Body, Controls, Edition, Sel, Step};
use super::{selectors, text};
use pactql::Session;

#[path = "../../support/cases.rs"]
mod count;
pub(crate) use count::{cases, few, left_to_ci, share};

/// Whether a single seed is asked for, so that nothing can be said about how many cases ran.
pub(crate) fn is_single() -> bool {
    number("PACTQL_SEED").is_some()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The configuration of a `proptest!` block that runs `whole` cases with `PACTQL_CASES=20000`.
pub(crate) fn property(whole: u32) -> ProptestConfig {
    config(share(whole))
}

/// The same cases on every run.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0),
        failure_persistence: None,
        max_shrink_iters: 1_200,
        ..ProptestConfig::default()
    }
}

/// Random numbers from a seed.
pub(crate) struct Rng(TestRng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.0.next_u64() % 100 < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A session and selectors to ask it.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) edition: Edition,
    pub(crate) lines: Vec<String>,
    pub(crate) selectors: Vec<Sel>,
}

impl Case {
    /// A random session, and random selectors drawn from its nodes.
    pub(crate) fn new(seed: u64, sample: &Sample, edition: Edition, selectors: usize) -> Self {
        let mut rng = Rng::new(!seed);
        let selector = |_| selectors::selector(&mut rng, &sample.session, edition);
        Self {
            seed,
            edition,
            lines: sample.lines.clone(),
            selectors: (0..selectors).map(selector).collect(),
        }
    }

    /// The session as the engine reads it and as the reference interpreter does. A session that
    /// shrinking made invalid is not a case.
    pub(crate) fn open(&self) -> Result<(Session, Sample), TestCaseError> {
        let text = self.lines.join("\n") + "\n";
        match Session::from_slice(text.as_bytes()) {
            Ok(session) => Ok((session, Sample::of(self.lines.clone()))),
            Err(_) => Err(TestCaseError::reject("the session is invalid")),
        }
    }

    /// Random numbers for the test itself; the same in every smaller case.
    pub(crate) fn rng(&self) -> Rng {
        Rng::new(self.seed)
    }

    /// The cases to try when this one fails: with one selector, then with parts of it left out,
    /// then with parts of the session left out.
    fn smaller(&self) -> Vec<Self> {
        let with = |lines: &[String], selectors: &[Sel]| Self {
            lines: lines.to_vec(),
            selectors: selectors.to_vec(),
            ..*self
        };
        if self.selectors.len() > 1 {
            let single = self.selectors.chunks(1);
            return single.map(|selector| with(&self.lines, selector)).collect();
        }
        let selectors = self.selectors.iter().flat_map(smaller_selectors);
        let mut smaller: Vec<Self> = selectors.map(|sel| with(&self.lines, &[sel])).collect();
        let sessions = smaller_sessions(&self.lines).into_iter();
        smaller.extend(sessions.map(|lines| with(&lines, &self.selectors)));
        smaller
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PACTQL_SEED={} in edition {:?}", self.seed, self.edition)?;
        for selector in &self.selectors {
            writeln!(f, "  {}", text::plain(selector, self.edition))?;
        }
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Ends a case as failed unless both sides are equal. The message may name variables.
macro_rules! same {
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) if *left == *right => {}
            (left, right) => {
                let message = format!($($message)+);
                let message = format!("{message}\n   left: {left:?}\n  right: {right:?}");
                return Err(proptest::prelude::TestCaseError::fail(message));
            }
        }
    };
}
pub(crate) use same;

/// Runs `test` on `count` random cases, and on smaller ones when one fails.
#[track_caller]
pub(crate) fn check(
    count: u32,
    make: impl Fn(u64) -> Case,
    test: impl Fn(&Case) -> Result<(), TestCaseError>,
) {
    let count = if is_single() { 1 } else { count };
    let mut runner = TestRunner::new(config(count));
    let result = runner.run(&Cases(make), |case| test(&case));
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// [`check`] over random small sessions, without selectors.
#[track_caller]
pub(crate) fn sessions(count: u32, test: impl Fn(&Case) -> Result<(), TestCaseError>) {
    selectors(count, Edition::Canonical, 0, test);
}

/// [`check`] over random small sessions, each with `selectors` random selectors.
#[track_caller]
pub(crate) fn selectors(
    count: u32,
    edition: Edition,
    selectors: usize,
    test: impl Fn(&Case) -> Result<(), TestCaseError>,
) {
    let make = |seed| Case::new(seed, &Sample::new(seed), edition, selectors);
    check(count, make, test);
}

/// Makes cases from seeds.
struct Cases<F>(F);

impl<F> fmt::Debug for Cases<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cases")
    }
}

impl<F: Fn(u64) -> Case> Strategy for Cases<F> {
    type Tree = Shrinking;
    type Value = Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let seed = number("PACTQL_SEED").unwrap_or_else(|| u64::from(runner.rng().next_u32()));
        let case = (self.0)(seed);
        Ok(Shrinking {
            failing: case.clone(),
            current: case,
            untried: Vec::new(),
        })
    }
}

/// Tries smaller cases; starts over from each that fails too.
struct Shrinking {
    failing: Case,
    current: Case,
    /// Smaller than `failing`; the next one to try is last.
    untried: Vec<Case>,
}

impl ValueTree for Shrinking {
    type Value = Case;

    fn current(&self) -> Case {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.failing = self.current.clone();
        self.untried = self.failing.smaller();
        self.untried.reverse();
        self.complicate()
    }

    fn complicate(&mut self) -> bool {
        let next = self.untried.pop();
        let more = next.is_some();
        self.current = next.unwrap_or_else(|| self.failing.clone());
        more
    }
}

fn smaller_selectors(sel: &Sel) -> Vec<Sel> {
    let mut found = Vec::new();
    let mut push = |change: &dyn Fn(&mut Sel)| {
        let mut candidate = sel.clone();
        change(&mut candidate);
        if candidate != *sel {
            found.push(candidate);
        }
    };
    push(&|sel| sel.controls = Controls::default());
    push(&|sel| sel.filters.clear());
    let Body::Union(chains) = &sel.body else {
        return found;
    };
    fn steps(sel: &mut Sel, chain: usize) -> &mut Vec<(Axis, Step)> {
        match &mut sel.body {
            Body::Union(chains) => &mut chains[chain].steps,
            _ => unreachable!("a union"),
        }
    }
    for (c, chain) in chains.iter().enumerate() {
        if chains.len() > 1 {
            push(&|sel| {
                if let Body::Union(chains) = &mut sel.body {
                    chains.remove(c);
                }
            });
        }
        for (s, (_, step)) in chain.steps.iter().enumerate() {
            if chain.steps.len() > 1 {
                push(&|sel| {
                    steps(sel, c).remove(s);
                });
            }
            let Step::Node(step) = step else { continue };
            for p in 0..step.parts.len() {
                if step.parts.len() + step.pseudos.len() > 1 {
                    push(&|sel| {
                        if let (_, Step::Node(step)) = &mut steps(sel, c)[s] {
                            step.parts.remove(p);
                        }
                    });
                }
            }
            for p in 0..step.pseudos.len() {
                if step.parts.len() + step.pseudos.len() > 1 {
                    push(&|sel| {
                        if let (_, Step::Node(step)) = &mut steps(sel, c)[s] {
                            step.pseudos.remove(p);
                        }
                    });
                }
            }
        }
    }
    found
}

fn smaller_sessions(lines: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for i in 0..lines.len() {
        if lines.len() > 1 {
            let mut fewer = lines.to_vec();
            fewer.remove(i);
            found.push(fewer);
        }
    }
    for (i, line) in lines.iter().enumerate() {
        let document = json::parse(line);
        let mut n = 0;
        while let Some(smaller) = without(&document, n) {
            let mut changed = lines.to_vec();
            changed[i] = smaller.write();
            found.push(changed);
            n += 1;
        }
    }
    found
}

/// The value without its `n`th member or element at any level.
fn without(json: &Json, n: usize) -> Option<Json> {
    let mut n = n;
    let mut copy = json.clone();
    take(&mut copy, &mut n).then_some(copy)
}

fn take(json: &mut Json, n: &mut usize) -> bool {
    match json {
        Json::Obj(members) => {
            for i in 0..members.len() {
                if !matches!(members[i].0.as_str(), "id" | "root" | "cycle") {
                    if *n == 0 {
                        members.remove(i);
                        return true;
                    }
                    *n -= 1;
                }
                if take(&mut members[i].1, n) {
                    return true;
                }
            }
            false
        }
        Json::List(items) => {
            for i in 0..items.len() {
                if *n == 0 {
                    items.remove(i);
                    return true;
                }
                *n -= 1;
                if take(&mut items[i], n) {
                    return true;
                }
            }
            false
        }
        _ => false,
    }
}
