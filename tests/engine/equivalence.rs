//! The equivalence of roots and depths (LANGUAGE §4; sources 001 and 003 §3.4), over random
//! sessions and chains:
//!
//! - `^sys` is `depth(-1)` and `^ah` is `depth(0)`, in any step;
//! - `^seq` as a group of one step is `depth(>=1)`;
//! - anywhere else `^seq` is the region node.
//!
//! Such steps are put at random places of random chains. The two spellings must give the same rows,
//! which are also those of the reference interpreter.

use std::cell::Cell;

use proptest::prelude::TestCaseError;

use crate::support::documents::Sample;
use crate::support::engine::Engine;
use crate::support::random::{self, Case, Rng, same};
use crate::support::selector::{
    Axis, Body, Chain, Depths, Edition, NodeStep, Op, Part, Prop, Pseudo, Region, Sel, Step, Time,
    Value,
};
use crate::support::{eval, selectors, text};

/// Two spellings of one step: the first part of each, and whether the step is a whole group.
#[derive(Clone)]
struct Law {
    root: Part,
    other: Part,
    alone: bool,
    /// Whether both have one canonical text, and so one plan.
    one_form: bool,
}

fn depths(low: i64, high: Option<i64>) -> Part {
    Part::Anchor(Depths(vec![(Some(low), high)]))
}

/// `^sys` and `^ah`, as a whole group or inside of a chain.
fn anchors(rng: &mut Rng) -> Law {
    let (root, depth) = *rng.pick(&[(Region::Sys, -1), (Region::Head, 0)]);
    Law {
        root: Part::Root(root),
        other: depths(depth, Some(depth)),
        alone: rng.chance(20),
        one_form: true,
    }
}

/// `^seq` as a whole group.
fn sealed(_: &mut Rng) -> Law {
    Law {
        root: Part::Root(Region::Seq),
        other: depths(1, None),
        alone: true,
        one_form: true,
    }
}

/// `^seq` in a chain with other steps.
fn region(_: &mut Rng) -> Law {
    Law {
        root: Part::Root(Region::Seq),
        other: Part::Attr(Prop::new("nodeType", Op::Eq, Value::text("^seq"))),
        alone: false,
        one_form: false,
    }
}

/// Puts a step that begins with `head` into the chain, before the step at `at` or, with `replace`,
/// in its place; `keep` takes over that step's tests.
fn with_step(chain: &Chain, law: &Law, head: &Part, at: usize, replace: bool, keep: bool) -> Chain {
    let mut chain = chain.clone();
    let mut step = NodeStep {
        parts: vec![head.clone()],
        pseudos: Vec::new(),
    };
    if keep && let (_, Step::Node(old)) = &chain.steps[at] {
        // A root with another type, root or id matches nothing most of the time.
        let other = |part: &&Part| matches!(part, Part::Attr(_) | Part::Tag(_));
        step.parts.extend(old.parts.iter().filter(other).cloned());
        step.pseudos = old.pseudos.clone();
    }
    let axis = chain.steps[at].0;
    if law.alone {
        chain.steps = vec![(Axis::Descendant, Step::Node(step))];
    } else if replace && chain.steps.len() > 1 {
        chain.steps[at] = (axis, Step::Node(step));
    } else {
        chain.steps.insert(at, (axis, Step::Node(step)));
        chain.steps[at + 1].0 = Axis::Descendant;
    }
    chain
}

/// Runs a law over the selectors of a case; counts the comparisons and those with an answer.
fn hold(
    case: &Case,
    law: fn(&mut Rng) -> Law,
    cases: &Cell<u32>,
    found: &Cell<u32>,
) -> Result<(), TestCaseError> {
    let (edition, mut rng) = (case.edition, case.rng());
    let engine = Engine::new(edition);
    let (session, sample) = case.open()?;
    for sel in &case.selectors {
        let mut sel = sel.clone();
        let Body::Union(chains) = &sel.body else {
            continue;
        };
        let (chain, rest) = (chains[0].clone(), chains[1..].to_vec());
        let law = law(&mut rng);
        let at = rng.below(chain.steps.len());
        let (replace, keep) = (rng.chance(50), rng.chance(60));
        // The engine drops a group that is a contradiction before it looks at pinned keys. The
        // interpreter does not, and the other spelling is not always seen to be a contradiction.
        let rest = if law.one_form { rest } else { Vec::new() };
        let single = rest.is_empty();
        sel.time = match rng.below(4) {
            0 if sample.session.working.is_some() && !selectors::has_facet(&sel) => Time::Omitted,
            1 => Time::Back(rng.below(sample.session.committed.len()) as u64),
            2 => Time::Back(0),
            _ => Time::All,
        };
        let spelled = |head: &Part| {
            let mut chains = vec![with_step(&chain, &law, head, at, replace, keep)];
            chains.extend(rest.iter().cloned());
            Sel {
                body: Body::Union(chains),
                ..sel.clone()
            }
        };
        let (one, other) = (spelled(&law.root), spelled(&law.other));
        let (text, twin) = (text::plain(&one, edition), text::plain(&other, edition));
        let ids = engine.ids(&session, &text).unwrap();
        same!(
            engine.ids(&session, &twin).unwrap(),
            ids,
            "{text} and {twin}"
        );
        if law.one_form {
            let fingerprint = |text: &str| engine.0.check(text).unwrap().fingerprint;
            same!(fingerprint(&twin), fingerprint(&text), "{text} and {twin}");
        }
        if single {
            for (sel, text) in [(&one, &text), (&other, &twin)] {
                let walked = eval::ids(&sample.session, edition, sel).unwrap();
                same!(walked, ids, "{text}");
            }
        }
        cases.set(cases.get() + 1);
        found.set(found.get() + u32::from(!ids.is_empty()));
    }
    Ok(())
}

/// Runs a law over many small sessions and a few long ones, in both editions that have it. `least`
/// is the part of 20,000 cases that must run and the part that must have an answer.
fn holds(name: &str, law: fn(&mut Rng) -> Law, least: (u32, u32)) {
    let (cases, found) = (Cell::new(0), Cell::new(0));
    for edition in [Edition::Depth, Edition::Canonical] {
        for (count, long) in [(150, false), (3, true)] {
            let make = |seed| {
                let sample = if long {
                    Sample::long(seed, 40)
                } else {
                    Sample::new(seed)
                };
                Case::new(seed, &sample, edition, 12)
            };
            random::check(random::share(count), make, |case| {
                hold(case, law, &cases, &found)
            });
        }
    }
    let (cases, found) = (cases.get(), found.get());
    println!("{name}: {cases} cases, {found} with an answer");
    if !random::is_single() {
        assert!(cases >= random::share(least.0), "only {cases} cases");
        assert!(
            found >= random::share(least.1),
            "only {found} of {cases} find anything"
        );
    }
}

#[test]
fn sys_and_ah_are_depths_in_any_step() {
    holds("^sys and ^ah", anchors, (2_000, 500));
}

#[test]
fn seq_as_a_whole_group_is_every_sealed_turn() {
    holds("^seq alone", sealed, (2_000, 800));
}

#[test]
fn seq_elsewhere_is_the_region_node() {
    holds("^seq elsewhere", region, (2_000, 500));
}

/// The forms that sources 001 and 003 §3.4 print as identical give the same rows.
#[test]
fn the_printed_equivalences_hold_over_random_sessions() {
    let rows = [
        ["^ah > .mc[offset=0]", "depth(0) > .mc[offset=0]"],
        ["^ah > .cont[offset=0]", ":depth(0) > .mc:core"],
        ["^sys > *", "depth(-1) > *"],
        ["^sys > *", "*:depth(-1) > *"],
        ["^ah", "*:depth(0)"],
        ["^sys", ":depth(<0)"],
        ["^seq", "depth(>0)"],
        ["^seq", ":depth(>=1)"],
    ];
    for edition in [Edition::Depth, Edition::Canonical] {
        let engine = Engine::new(edition);
        random::sessions(random::share(120), |case| {
            let (session, _) = case.open()?;
            for [one, other] in rows {
                let ask = |text: &str| engine.ids(&session, &format!("@* {text}")).unwrap();
                same!(ask(one), ask(other), "{edition:?}: {one} and {other}");
            }
            // An anchor is a turn directly below `^seq`; `.mt` also matches nested turns.
            let ask = |text: &str| engine.ids(&session, &format!("@t0 {text}")).unwrap();
            same!(ask("^seq .mt:depth(1)"), ask(".mt:depth(1)"), "{edition:?}");
            same!(ask("^seq > .mt:depth(2)"), ask("depth(2)"), "{edition:?}");
            Ok(())
        });
    }
}

/// The equivalence is also true for steps with picks, which take from what matched so far.
#[test]
fn picks_take_from_either_spelling() {
    let pseudos = [
        vec![Pseudo::First],
        vec![Pseudo::Last],
        vec![Pseudo::Nth(2)],
        vec![Pseudo::First, Pseudo::Depth(Depths::one(1))],
    ];
    let engine = Engine::new(Edition::Canonical);
    random::sessions(random::share(60), |case| {
        let (session, _) = case.open()?;
        for pseudos in &pseudos {
            let step = |head: Part| {
                let step = NodeStep {
                    parts: vec![head],
                    pseudos: pseudos.clone(),
                };
                let sel = Sel {
                    time: Time::All,
                    body: Body::Union(vec![Chain {
                        steps: vec![(Axis::Descendant, Step::Node(step))],
                    }]),
                    filters: Vec::new(),
                    controls: Default::default(),
                };
                let text = text::plain(&sel, Edition::Canonical);
                (engine.ids(&session, &text).unwrap(), text)
            };
            for (root, anchor) in [
                (Region::Seq, depths(1, None)),
                (Region::Head, depths(0, Some(0))),
                (Region::Sys, depths(-1, Some(-1))),
            ] {
                let (ids, text) = step(Part::Root(root));
                let (others, other) = step(anchor);
                same!(ids, others, "{text} and {other}");
            }
        }
        Ok(())
    });
}
