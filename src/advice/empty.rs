//! Finds out why a selection is empty (LANGUAGE §10). Runs only when asked: the cost of an answer
//! does not include it. Linear in the nodes of the snapshots that the selector reads; matches
//! elsewhere are searched in a bounded number of snapshots.

use hashbrown::HashSet;

use super::inventory::Inventory;
use super::reason::EmptyReason;
use super::unknown::{SEARCHED, Unknown, time_of};
use crate::history::{History, Position, Union, run_union};
use crate::index::Snapshot;
use crate::query::exec::{MatchedRows, RunInput, Trace, count, run, run_untailed};
use crate::query::ir::{
    Axis, Chain, Class, Controls, DepthSet, Edition, InnerKind, NodeStep, QueryStep, RangeAnswer,
    SelectorQuery, Test, TypeTest,
};
use crate::query::plan::{Bound, bind, compile, sources};
use crate::support::cancel::ensure;
use crate::tree::NodeClass;

/// A selector that found nothing, and where.
pub(crate) struct Nothing<'a> {
    pub(crate) query: &'a SelectorQuery,
    pub(crate) bound: &'a Bound,
    pub(crate) edition: Edition,
    pub(crate) history: &'a History,
    /// The snapshots it read, newest first.
    pub(crate) read: Vec<&'a Snapshot>,
    pub(crate) only: Option<Position>,
}

impl Nothing<'_> {
    /// The reasons, those nearest to a typing mistake first. None for a selector that matches
    /// nothing by its form, which has a warning.
    pub(crate) fn reasons(&self) -> Vec<EmptyReason> {
        if self.query.chains.is_empty() {
            return Vec::new();
        }
        if self.read.is_empty() {
            return vec![EmptyReason::NothingCommitted];
        }
        let mut reasons = self.window();
        if !reasons.is_empty() {
            return reasons;
        }
        let unknown = Unknown {
            here: Inventory::new(&self.read),
            edition: self.edition,
            history: self.history,
        };
        unknown.find(self.query, &mut reasons);
        self.steps(&unknown.here, &mut reasons);
        reasons.extend(self.elsewhere());
        reasons
    }

    /// What no node has of several sessions, in which one selector found nothing: of names and values that are not
    /// known.
    pub(crate) fn unknown_in_all(sessions: &[Self]) -> Vec<EmptyReason> {
        let mut reasons = Vec::new();
        if let Some(first) = sessions.first() {
            let unknown = Unknown {
                here: Inventory::of_sessions(sessions.iter().map(|each| &each.read[..])),
                edition: first.edition,
                history: first.history,
            };
            unknown.find(first.query, &mut reasons);
        }
        reasons
    }

    fn window(&self) -> Vec<EmptyReason> {
        if self.bound.page.is_none() {
            return Vec::new();
        }
        let rows = self.distinct(|input| run_untailed(self.bound, input, &mut Trace::off()));
        (rows > 0)
            .then_some(EmptyReason::Window { rows })
            .into_iter()
            .collect()
    }

    /// The number of distinct ids in the snapshots read.
    fn distinct(&self, run: impl Fn(RunInput<'_>) -> MatchedRows) -> u64 {
        let mut ids = HashSet::new();
        for snapshot in self.read.iter().inspect(|_| ensure()) {
            let rows = run(RunInput::new(snapshot, self.history));
            ids.extend(rows.iter().map(|row| snapshot.node(row).id()));
        }
        ids.len() as u64
    }

    /// The first step of each chain that keeps nothing, or the filters after all of them. Of
    /// several snapshots, the numbers are those of the one in which a chain gets furthest.
    fn steps(&self, here: &Inventory<'_>, reasons: &mut Vec<EmptyReason>) {
        // Words pass over implicit cores, and steps are counted with them.
        let counted = Bound {
            in_word: false,
            in_words: false,
            interval: None,
            ..self.bound.clone()
        };
        let traced = |snapshot: &&Snapshot| {
            let mut trace = Trace::on();
            // A page may end a run before every step has run.
            run_untailed(&counted, RunInput::new(snapshot, self.history), &mut trace);
            trace
        };
        let read = self.read.iter().inspect(|_| ensure());
        let traces: Vec<Trace> = read.map(traced).collect();
        let mut last = 0;
        for (at, chain) in self.query.chains.iter().enumerate() {
            if let Some(scope) = self.bound.chains.get(at).and_then(|of| of.scope.as_ref())
                && let [snapshot] = self.read[..]
                && depths(snapshot).intersection(scope).ranges().is_empty()
            {
                let missing = match scope.ranges() {
                    [(-1, -1)] => EmptyReason::UnknownRegion { region: "^sys" },
                    [(0, 0)] => EmptyReason::UnknownRegion { region: "^ah" },
                    _ => EmptyReason::Depths {
                        turns: snapshot.turns(),
                    },
                };
                push(reasons, missing);
                continue;
            }
            let rows = |trace: &Trace| -> Vec<u64> {
                let steps = trace.steps().get(at).map_or(&[][..], |steps| &steps[..]);
                let row = |step: usize| steps.get(step).map_or(0, |step| step.rows);
                (0..chain.steps.len()).map(row).collect()
            };
            let reached = |rows: &Vec<u64>| rows.iter().take_while(|rows| **rows > 0).count();
            // Of equally far ones `rev` gives the newest.
            let Some(rows) = traces.iter().rev().map(rows).max_by_key(reached) else {
                continue;
            };
            let failed = reached(&rows);
            let to = failed.min(chain.steps.len() - 1);
            if ends_in_container(&chain.steps[..=to]) && only_implicit_containers(here) {
                push(reasons, EmptyReason::ImplicitContainers);
            } else if failed == chain.steps.len() {
                last = last.max(rows[to]);
                continue;
            } else if failed > 0 {
                let reason = EmptyReason::Step {
                    after: steps_text(&chain.steps[..failed], false),
                    rows: rows[failed - 1],
                    step: steps_text(&chain.steps[failed..=failed], true),
                };
                push(reasons, reason);
            } else if reasons.is_empty() {
                reasons.extend(self.first_step(&chain.steps[0].1));
            }
            self.inside(&chain.steps[to].1, here, reasons);
        }
        if last > 0 && !self.query.filters.is_empty() {
            push(reasons, EmptyReason::Filters { rows: last });
        } else if last > 0 && self.bound.mode == RangeAnswer::Latest {
            push(reasons, EmptyReason::Superseded { rows: last });
        } else if reasons.is_empty() {
            for chain in &self.query.chains {
                let tests = vec![(steps_text(&chain.steps, false), 0)];
                push(
                    reasons,
                    EmptyReason::Tests {
                        tests,
                        picks: false,
                    },
                );
            }
        }
    }

    /// Why a condition of a step, which leaves nothing, has no match inside.
    fn inside(&self, step: &QueryStep, here: &Inventory<'_>, reasons: &mut Vec<EmptyReason>) {
        let tests = step.node().into_iter().flat_map(NodeStep::all_tests);
        let conditions = tests.filter_map(Test::inner);
        for test in conditions.filter(|test| test.kind != InnerKind::Not) {
            let mut inside = Vec::new();
            for chain in &test.any {
                let query = self.alone(chain.clone());
                // A parameter's value is not known here.
                let Ok(bound) = bind(&compile(&query), &sources(&query), &[]) else {
                    return;
                };
                let found = Nothing {
                    query: &query,
                    bound: &bound,
                    read: self.read.clone(),
                    ..*self
                };
                if found.distinct(|input| run(&bound, input, &mut Trace::off())) > 0 {
                    inside.clear();
                    break;
                }
                // Recursion is as deep as conditions are inside each other, which is bounded.
                found.steps(here, &mut inside);
            }
            for why in inside {
                let condition = test.to_string();
                let why = Box::new(why);
                push(reasons, EmptyReason::Condition { condition, why });
            }
        }
    }

    /// A group as a selector.
    fn alone(&self, chain: Chain) -> SelectorQuery {
        SelectorQuery {
            time: self.query.time,
            chains: [chain].into_iter().collect(),
            filters: Default::default(),
            controls: Controls::default(),
        }
    }

    /// How many nodes each test of a first step matches alone.
    fn first_step(&self, step: &QueryStep) -> Option<EmptyReason> {
        let QueryStep::Node(step) = step else {
            return None;
        };
        let alone = step.tests.iter().map(|test| {
            let step = QueryStep::Node(NodeStep {
                tests: [test.clone()].into_iter().collect(),
                tail: Box::default(),
            });
            let chain = Chain {
                steps: [(Axis::Descendant, step)].into(),
            };
            let text = chain.to_string();
            let query = self.alone(chain);
            // A parameter's value is not known here.
            let bound = bind(&compile(&query), &sources(&query), &[]).ok()?;
            let rows = self.distinct(|input| run(&bound, input, &mut Trace::off()));
            Some((text, rows))
        });
        let tests = alone.collect::<Option<Vec<(String, u64)>>>()?;
        Some(EmptyReason::Tests {
            tests,
            picks: !step.tail.is_empty(),
        })
    }

    /// Matches in the working state, else in the newest other snapshot that has any, of those searched.
    fn elsewhere(&self) -> Option<EmptyReason> {
        let history = self.history;
        let matches = |snapshot: &Snapshot| {
            let input = RunInput::new(snapshot, history);
            count(self.bound, input, &mut Trace::off())
        };
        let found = |time: String, cycle: Option<i64>, rows| EmptyReason::Elsewhere {
            omit: cycle.is_none() && self.edition != Edition::V01,
            time,
            cycle,
            rows,
        };
        if let Some(working) = history
            .working()
            .filter(|_| self.only != Some(Position::Working))
        {
            let rows = matches(working);
            if rows > 0 {
                return Some(found(String::new(), None, rows));
            }
        }
        self.only?;
        let mut newest = None;
        let searched = Union::newest(history, SEARCHED);
        run_union(
            self.bound,
            history,
            &searched,
            &mut Trace::off(),
            &mut |at, _| {
                newest = Some(at);
                false
            },
        );
        let at = newest?;
        let snapshot = history.committed().get(at)?;
        let back = history.committed().len() - 1 - at;
        Some(found(
            time_of(back),
            Some(snapshot.cycle()),
            matches(snapshot),
        ))
    }
}

fn only_implicit_containers(here: &Inventory<'_>) -> bool {
    let has = |class| here.has_class(class);
    !has(NodeClass::Container) && (has(NodeClass::Turn) || has(NodeClass::Head))
}

fn ends_in_container(steps: &[(Axis, QueryStep)]) -> bool {
    let container = Test::Type(TypeTest::Class(Class::Container));
    match steps.last() {
        Some((_, QueryStep::Node(step))) => step.tests.contains(&container),
        _ => false,
    }
}

fn push(reasons: &mut Vec<EmptyReason>, reason: EmptyReason) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}

fn depths(snapshot: &Snapshot) -> DepthSet {
    let mut ranges = Vec::new();
    if !snapshot.sys_rows().is_empty() {
        ranges.push((-1, -1));
    }
    if !snapshot.head_rows().is_empty() {
        ranges.push((0, 0));
    }
    if snapshot.turns() > 0 {
        ranges.push((1, i64::from(snapshot.turns())));
    }
    DepthSet::from_ranges(ranges)
}

/// Steps as text, with the axis of the first one if `axis` is set. Regions have their names, which
/// canonical text does not use.
fn steps_text(steps: &[(Axis, QueryStep)], axis: bool) -> String {
    let mut text = String::new();
    for (at, (of, step)) in steps.iter().enumerate() {
        text.push_str(match (at, of) {
            (0, _) if !axis => "",
            (0, Axis::Descendant) => "",
            (_, Axis::Descendant) => " ",
            (0, Axis::Child) => "> ",
            (_, Axis::Child) => " > ",
        });
        let alone = Chain {
            steps: [(Axis::Descendant, step.clone())].into(),
        };
        let alone = alone.to_string();
        let regions = [
            ("depth(-1)", "^sys"),
            ("depth(0)", "^ah"),
            ("[stored_type='^seq']", "^seq"),
        ];
        let named = regions.iter().find_map(|(canonical, name)| {
            let rest = alone.strip_prefix(canonical)?;
            Some(format!("{name}{rest}"))
        });
        text.push_str(&named.unwrap_or(alone));
    }
    text
}
