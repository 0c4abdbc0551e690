//! Normalization: named passes that give equal meanings one form (LANGUAGE §9).
//!
//! The passes run in this order, each over the whole query:
//!
//! 1. `conditions` normalizes what stands inside of conditions, and writes each in its simplest form.
//! 2. `types` merges depth sets and the types of a step.
//! 3. `order` sorts tests and list values and drops repetitions. It runs after `types`, which adds
//!    and removes tests.
//! 4. `contradictions` drops groups that no node can match. It compares neighbours in the order.
//! 5. `groups` sorts the groups of a union, merges equal ones, puts the tags that filter a search for tags
//!    into it, and clears the rest of a selector that matches nothing.
//!
//! Every pass is idempotent; test builds assert that.

use super::contradiction;
use super::inner;
use super::query::{Controls, NodeStep, QueryStep, SelectorQuery, Test};
use super::settle::{drop_always_true, settle_step, sort, sort_step};
use crate::query::syntax::Span;
use crate::support::diag::Warning;

/// Called with the query after lowering (`"lower"`) and after each pass, by name.
pub type Observer<'a> = &'a mut dyn FnMut(&'static str, &SelectorQuery);

/// A pass over a query. The spans are those of its groups before the first pass; `contradictions` reads them.
type NormalizePass = fn(&mut SelectorQuery, &[Span], &mut Vec<Warning>);

/// The passes with their names; the module explains their order.
const PASSES: [(&str, NormalizePass); 5] = [
    ("conditions", conditions),
    ("types", types),
    ("order", sort_tests),
    ("contradictions", contradictions),
    ("groups", groups),
];

/// Runs all passes, showing the query to `observer` before the first and after each. `spans` are those of the
/// groups, for warnings.
pub(super) fn normalize(
    mut query: SelectorQuery,
    spans: &[Span],
    warnings: &mut Vec<Warning>,
    mut observer: Option<Observer<'_>>,
) -> SelectorQuery {
    if let Some(observer) = &mut observer {
        observer("lower", &query);
    }
    for (name, pass) in PASSES {
        pass(&mut query, spans, warnings);
        if let Some(observer) = &mut observer {
            observer(name, &query);
        }
    }
    #[cfg(test)]
    {
        let mut again = query.clone();
        for (name, pass) in PASSES {
            pass(&mut again, &[], &mut Vec::new());
            assert_eq!(again, query, "pass `{name}` is not idempotent");
        }
    }
    query
}

// ---- conditions ----------------------------------------------------------------------------

fn conditions(query: &mut SelectorQuery, _: &[Span], _: &mut Vec<Warning>) {
    each_step(query, inner::conditions);
}

// ---- types ---------------------------------------------------------------------------------

fn types(query: &mut SelectorQuery, _: &[Span], _: &mut Vec<Warning>) {
    each_step(query, settle_step);
}

fn each_step(query: &mut SelectorQuery, mut change: impl FnMut(&mut NodeStep)) {
    for (_, step) in query.chains.iter_mut().flat_map(|chain| &mut chain.steps) {
        if let QueryStep::Node(node) = step {
            change(node);
        }
    }
}

// ---- order ---------------------------------------------------------------------------------

fn sort_tests(query: &mut SelectorQuery, _: &[Span], _: &mut Vec<Warning>) {
    each_step(query, sort_step);
    sort(&mut query.filters);
    drop_always_true(&mut query.filters, &[]);
}

// ---- contradictions ------------------------------------------------------------------------

fn contradictions(query: &mut SelectorQuery, spans: &[Span], warnings: &mut Vec<Warning>) {
    let several = query.chains.len() > 1;
    let mut spans = spans.iter();
    query.chains.retain(|chain| {
        let span = spans.next().copied().unwrap_or_default();
        let Some(why) = contradiction::of_chain(chain) else {
            return true;
        };
        let what = if several {
            "this group"
        } else {
            "the selector"
        };
        let warning = Warning::new(format!("{what} matches nothing: {why}"));
        let warning = warning.at(span, "never matches");
        warnings.push(match space_help(&why) {
            Some(help) => warning.with_help(help),
            None => warning,
        });
        false
    });
    if !query.chains.is_empty()
        && let Some(why) = contradiction::of_tests(&query.filters)
    {
        warnings.push(Warning::new(format!("the selector matches nothing: {why}")));
        query.chains.clear();
    }
}

/// What to write where white space is missing or too much: `^sys.cb`, `.mt depth(1)`.
fn space_help(why: &str) -> Option<String> {
    if let Some(both) = why.strip_prefix("a node is not both `") {
        let types = both
            .strip_suffix('`')
            .and_then(|both| both.split_once("` and `"));
        let types = types.filter(|(outer, _)| !outer.starts_with("depth("));
        let (outer, inner) = types.unwrap_or(("^sys", ".cb"));
        return Some(format!(
            "white space goes to what is inside: `{outer} {inner}`"
        ));
    }
    // Those are `^sys` and `^ah`, too.
    let root = why.starts_with("`depth(-1)`") || why.starts_with("`depth(0)`");
    (!root && why.starts_with("`depth(") && why.ends_with("is never there"))
        .then(|| "the depth of a step is written without white space: `.mt:depth(1)`".to_owned())
}

// ---- groups --------------------------------------------------------------------------------

fn groups(query: &mut SelectorQuery, _: &[Span], _: &mut Vec<Warning>) {
    if query.chains.len() > 1 {
        query.chains.sort();
        query.chains.dedup();
    }
    join_tags(query);
    if query.chains.is_empty() {
        query.filters.clear();
        // The mode still decides what a range returns.
        query.controls = Controls {
            mode: query.controls.mode,
            ..Controls::default()
        };
    }
}

/// A search for tags has those that filter it, too: `{tag=a} +b` is `+a +b`. It may be what is left of a union.
fn join_tags(query: &mut SelectorQuery) {
    let is_tag = |test: &Test| test.attr().is_some_and(|attr| attr.tag().is_some());
    if query.search().is_some_and(|tests| tests.iter().all(is_tag))
        && let [chain] = &mut *query.chains
        && let [(_, QueryStep::Node(step))] = &mut *chain.steps
    {
        let tags = query.filters.iter().filter(|test| is_tag(test));
        step.tests.extend(tags.cloned());
        sort(&mut step.tests);
        query.filters.retain(|test| !is_tag(test));
    }
}
