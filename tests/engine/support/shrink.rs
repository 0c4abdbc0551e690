//! Makes a failing case small enough to read: fewer snapshots, nodes, fields and selector parts,
//! as long as it still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::json::{self, Json};
use super::selector::{Body, Controls, Sel, Step};

/// Shrinks a session and a selector together. A candidate on which `fails` panics is passed over.
pub(crate) fn shrink(
    lines: &[String],
    sel: &Sel,
    fails: impl Fn(&[String], &Sel) -> bool,
) -> (Vec<String>, Sel) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let fails = |lines: &[String], sel: &Sel| {
        catch_unwind(AssertUnwindSafe(|| fails(lines, sel))).unwrap_or(false)
    };
    let (mut lines, mut sel) = (lines.to_vec(), sel.clone());
    let mut budget = 1200;
    'again: loop {
        for candidate in smaller_selectors(&sel) {
            budget -= 1;
            if budget > 0 && fails(&lines, &candidate) {
                sel = candidate;
                continue 'again;
            }
        }
        for candidate in smaller_sessions(&lines) {
            budget -= 1;
            if budget > 0 && fails(&candidate, &sel) {
                lines = candidate;
                continue 'again;
            }
        }
        break;
    }
    std::panic::set_hook(hook);
    (lines, sel)
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
    fn steps(sel: &mut Sel, chain: usize) -> &mut Vec<(super::selector::Axis, Step)> {
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
