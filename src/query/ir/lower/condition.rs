//! Conditions with selectors inside: `:has(…)`, `:not(…)`, `:has-result` and their like (LANGUAGE §13).
//!
//! Each becomes one test. What it means is normalized by a pass; here it is only checked.

use super::faults;
use super::lowerer::{Lowerer, MAX_GROUPS, MAX_STEPS};
use super::step::StepContext;
use crate::query::ir::edition::Edition;
use crate::query::ir::query::{Axis, Chain, InnerKind, InnerTest, QueryStep, Test};
use crate::query::syntax::ast::{ConditionSyntax, GroupSyntax, InnerSyntax};
use crate::query::syntax::{Span, Spanned};

/// Whether the first step tests that a call has a result.
fn is_answered(chain: &Chain) -> bool {
    let is = |test: &Test| matches!(test, Test::Inner(inner) if inner.kind == InnerKind::HasResult);
    match chain.steps.first() {
        Some((_, QueryStep::Node(step))) => step.tests.iter().any(is),
        _ => false,
    }
}

impl Lowerer {
    pub(super) fn condition(
        &mut self,
        condition: &ConditionSyntax<'_>,
        span: Span,
    ) -> Option<Test> {
        let kind = self.condition_kind(condition.name, span)?;
        let groups = |inner: &&InnerSyntax<'_>| matches!(inner, InnerSyntax::Group(..));
        let count = condition.list.iter().filter(groups).count();
        if count == 0 {
            let instead = match kind {
                InnerKind::HasResult | InnerKind::HasCall => "",
                _ => "(.cb)",
            };
            return self.fault(span, faults::EMPTY_CONDITION, &[&kind.name(), &instead]);
        }
        if count > MAX_GROUPS {
            return self.fault(span, faults::MANY_INNER, &[&MAX_GROUPS, &count]);
        }
        let mut any = Vec::with_capacity(count);
        let mut within = None;
        let mut sound = true;
        for (index, inner) in condition.list.iter().enumerate() {
            match inner {
                InnerSyntax::Group(axis, group) => match self.inner_group(kind, *axis, group) {
                    Some(chain) => any.push(chain),
                    None => sound = false,
                },
                InnerSyntax::Within(number) => {
                    let is_last = index + 1 == condition.list.len();
                    within = self.within(kind, number, is_last);
                    sound &= within.is_some();
                }
            }
        }
        if kind == InnerKind::Not && any.iter().any(is_answered) {
            self.unanswered.get_or_insert(span);
        }
        let any = any.into();
        sound.then(|| Test::Inner(Box::new(InnerTest { kind, within, any })))
    }

    /// `:has-result` and `:has-call` without parentheses.
    pub(super) fn bare_condition(&mut self, name: &str, span: Span) -> Option<Test> {
        let kind = self.condition_kind(name, span)?;
        Some(Test::of_inner(kind, Vec::new()))
    }

    fn condition_kind(&mut self, name: &str, span: Span) -> Option<InnerKind> {
        let what = format!("`:{name}`");
        let fits = self.needs(Edition::Canonical, span, &what, None);
        InnerKind::parse(name).filter(|_| fits)
    }

    fn inner_group(
        &mut self,
        kind: InnerKind,
        axis: Axis,
        group: &GroupSyntax<'_>,
    ) -> Option<Chain> {
        if let Some((_, step)) = group.steps.get(MAX_STEPS) {
            return self.fault(
                step.span,
                faults::MANY_STEPS,
                &[&MAX_STEPS, &group.steps.len()],
            );
        }
        let (_, first) = group.steps.first()?;
        if axis == Axis::Child && kind != InnerKind::Has {
            return self.fault(first.span, faults::CHILD_INSIDE, &[&kind.name()]);
        }
        if !kind.takes_tests() {
            let mut chain = self.group(group)?;
            if let Some((first, _)) = chain.steps.first_mut() {
                *first = axis;
            }
            return Some(chain);
        }
        if let Some((_, second)) = group.steps.get(1) {
            return self.fault(second.span, faults::CONDITION_STEPS, &[&kind.name()]);
        }
        let step = self.step(first, StepContext::Test)?;
        if step.picks() {
            return self.fault(first.span, faults::CONDITION_PICKS, &[&kind.name()]);
        }
        let steps: Vec<(Axis, QueryStep)> = vec![(Axis::Descendant, step)];
        Some(Chain {
            steps: steps.into(),
        })
    }

    fn within(&mut self, kind: InnerKind, number: &Spanned<&str>, is_last: bool) -> Option<i64> {
        if !matches!(kind, InnerKind::After | InnerKind::Before) {
            return self.fault(number.span, faults::WITHIN_ELSEWHERE, &[&kind.name()]);
        }
        if !is_last {
            return self.fault(number.span, faults::WITHIN_EARLY, &[]);
        }
        let digits = number.node;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return self.fault(number.span, faults::WITHIN_NUMBER, &[&digits]);
        }
        match digits.parse() {
            Ok(number) => Some(number),
            // The only fault that digits can have.
            Err(_) => self.fault(number.span, faults::WITHIN_LARGE, &[]),
        }
    }
}
