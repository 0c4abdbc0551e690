//! The body of a selector: a union, a position, a search, `none` (LANGUAGE §4, §7).

use std::fmt::Display;

use smallvec::{SmallVec, smallvec};

use super::faults;
use super::lowerer::{Lowerer, MAX_GROUPS, MAX_STEPS};
use super::notes::in_list;
use crate::query::ir::edition::Edition;
use crate::query::ir::purpose::Purpose;
use crate::query::ir::query::{Axis, Chain, QueryStep, Test, Tests};
use crate::query::syntax::Span;
use crate::query::syntax::ast::{
    Brackets, Filter, GroupSyntax, SearchKind, SearchSyntax, Selector, SelectorBody, StepPart,
    StepSyntax,
};
use crate::query::syntax::words::CONTROLS;

/// The chains of a body with their spans, and the filters of their union.
#[derive(Default)]
pub(super) struct ChainsAndFilters {
    pub(super) chains: SmallVec<[Chain; 1]>,
    pub(super) spans: SmallVec<[Span; 1]>,
    pub(super) filters: Tests,
}

impl Lowerer {
    pub(super) fn body(&mut self, selector: &Selector<'_>) -> Option<ChainsAndFilters> {
        match &selector.body {
            SelectorBody::Empty => self.empty(selector),
            SelectorBody::Nothing(span) => {
                let narrows = |filter: &Filter<'_>| !matches!(filter, Filter::Control(_));
                if selector.filters.iter().any(narrows) {
                    return self.fault(*span, faults::FILTERED_NONE, &[]);
                }
                Some(ChainsAndFilters::default())
            }
            SelectorBody::Union(groups) => self.union(groups),
            SelectorBody::Position(position) => {
                let chain = self.position(position, self.purpose == Purpose::Place)?;
                self.note(position.span, || chain.to_string());
                Some(one(chain, position.span))
            }
            SelectorBody::Search(search) => self.search(search),
        }
    }

    fn empty(&mut self, selector: &Selector<'_>) -> Option<ChainsAndFilters> {
        if self.fragment {
            return None;
        }
        match (&selector.time, selector.filters.first()) {
            (Some(time), None) => {
                let end = Span::new(time.span.end, time.span.end);
                self.mended(time.span, faults::TIME_ALONE, &[time], end, " *")
            }
            // An unknown control is reported as such.
            (_, Some(Filter::Control(control))) if !CONTROLS.contains(&control.name.node) => None,
            (_, Some(Filter::Control(control))) => {
                let span = control.span();
                let start = Span::new(span.start, span.start);
                self.mended(span, faults::CONTROL_ALONE, &[control], start, "* ")
            }
            _ => self.fault(Span::default(), faults::EMPTY, &[]),
        }
    }

    fn union(&mut self, groups: &[GroupSyntax<'_>]) -> Option<ChainsAndFilters> {
        if let Some(group) = groups.get(MAX_GROUPS) {
            let span = group_span(group);
            return self.fault(span, faults::MANY_GROUPS, &[&MAX_GROUPS, &groups.len()]);
        }
        if let [group] = groups
            && self.edition == Edition::Canonical
            && let Some(filters) = search_filters(group)
        {
            return self.shorthand_search(group, filters);
        }
        let mut union = ChainsAndFilters::default();
        union.chains.reserve(groups.len());
        let mut sound = true;
        for group in groups {
            if let Some((_, step)) = group.steps.get(MAX_STEPS) {
                let words: [&dyn Display; 2] = [&MAX_STEPS, &group.steps.len()];
                sound = self.fault(step.span, faults::MANY_STEPS, &words);
                continue;
            }
            union.spans.push(group_span(group));
            match self.group(group) {
                Some(chain) => union.chains.push(chain),
                None => sound = false,
            }
        }
        sound.then_some(union)
    }

    /// `#hero [x]` and `+a +b [x]` in the canonical edition, where the brackets are filters.
    fn shorthand_search(
        &mut self,
        group: &GroupSyntax<'_>,
        filters: &[(Axis, StepSyntax<'_>)],
    ) -> Option<ChainsAndFilters> {
        let mut tests = Tests::new();
        let mut sound = true;
        for (_, step) in filters {
            for part in &step.parts {
                let before = tests.len();
                match &part.node {
                    StepPart::Attrs(attrs) if attrs.form == Brackets::Bracket => {
                        sound &= self.attrs(attrs, part.span, &mut tests);
                        let added = tests.get(before..).unwrap_or_default();
                        self.note(part.span, || in_list(Brackets::Bracket, added));
                    }
                    StepPart::Tag(tag) => {
                        tests.push(Test::of_tag(tag));
                        let added = tests.get(before..).unwrap_or_default();
                        self.note(part.span, || in_list(Brackets::Brace, added));
                    }
                    _ => {
                        sound = self.fault(step.span, faults::BEHIND_SEARCH, &[]);
                        break;
                    }
                }
            }
        }
        let (_, first) = group.steps.first()?;
        let search = GroupSyntax {
            steps: vec![(Axis::Descendant, first.clone())],
        };
        let chain = self.group(&search)?;
        sound.then(|| ChainsAndFilters {
            filters: tests,
            ..one(chain, first.span)
        })
    }

    fn search(&mut self, search: &SearchSyntax<'_>) -> Option<ChainsAndFilters> {
        let mut sound = match (search.kind, &search.scope) {
            (SearchKind::Leading, _) => true,
            (SearchKind::Shallow, None) => self.fault(search.sign, faults::SHALLOW_SEARCH, &[]),
            (kind, _) => {
                let what = match kind {
                    SearchKind::Shallow => "`? {…}`",
                    SearchKind::Within => "`within(…)`",
                    _ => "`?? {…}`",
                };
                self.needs(Edition::Canonical, search.sign, what, None)
            }
        };
        let mut tests = Tests::new();
        // If the sign is refused, an error about the braces would add nothing.
        if sound || search.kind == SearchKind::Leading {
            sound &= self.attrs(&search.attrs.node, search.attrs.span, &mut tests);
        }
        let (mut steps, span) = match &search.scope {
            Some(scope) => {
                let chain = self.position(scope, false)?;
                (chain.steps.into_vec(), scope.span.to(search.attrs.span))
            }
            None => (Vec::new(), search.attrs.span),
        };
        let axis = match search.kind {
            SearchKind::Shallow => Axis::Child,
            _ => Axis::Descendant,
        };
        steps.push((axis, QueryStep::from_tests(tests)));
        let steps = steps.into();
        let chain = Chain { steps };
        let written = match search.kind {
            SearchKind::Leading => span,
            _ => search.sign.to(span),
        };
        self.note(written, || match (&search.scope, &*chain.steps) {
            (None, [(_, QueryStep::Node(step))]) => in_list(Brackets::Brace, &step.tests),
            _ => chain.to_string(),
        });
        sound.then(|| one(chain, span))
    }
}

fn one(chain: Chain, span: Span) -> ChainsAndFilters {
    ChainsAndFilters {
        chains: smallvec![chain],
        spans: smallvec![span],
        filters: Tests::new(),
    }
}

fn group_span(group: &GroupSyntax<'_>) -> Span {
    match (group.steps.first(), group.steps.last()) {
        (Some((_, first)), Some((_, last))) => first.span.to(last.span),
        _ => Span::default(),
    }
}

/// The steps that filter a shorthand search: those after a first step of nothing but `#word` or
/// tags, if the next is `[…]` after white space.
fn search_filters<'a, 's>(group: &'a GroupSyntax<'s>) -> Option<&'a [(Axis, StepSyntax<'s>)]> {
    let ((_, first), rest) = group.steps.split_first()?;
    let begins = match first.parts.as_slice() {
        [part] if matches!(part.node, StepPart::Key(_)) => true,
        parts => parts
            .iter()
            .all(|part| matches!(part.node, StepPart::Tag(_))),
    };
    let (axis, second) = rest.first()?;
    let filters = begins
        && *axis == Axis::Descendant
        && second.parts.first().is_some_and(
            |part| matches!(&part.node, StepPart::Attrs(attrs) if attrs.form == Brackets::Bracket),
        );
    filters.then_some(rest)
}
