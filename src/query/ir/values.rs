//! A query with the values of its parameters (LANGUAGE §5, §9).

use super::name::normal_type;
use super::normal::{ChainDraft, QueryDraft, normalize};
use super::query::{
    Attr, AttrKind, AttrTest, CompareOp, Literal, NodeStep, Operand, PickOrTest, Query, QueryStep,
    RowOrder, Test,
};
use crate::query::syntax::Span;

impl Query {
    /// Whether values can decide the order of rows: one of several groups pins a key, and a group
    /// that cannot match with its values does not count (LANGUAGE §6).
    #[must_use]
    pub fn order_depends_on_values(&self) -> bool {
        let pins = |step: &QueryStep| step.node().and_then(NodeStep::pinned_key).is_some();
        let mut last = self.chains.iter().filter_map(|chain| chain.steps.last());
        self.controls.order == RowOrder::Default
            && self.chains.len() > 1
            && last.any(|(_, step)| pins(step))
            && self.has_params()
    }

    /// The query with a value for each parameter of a test, normalized again. `value_of` may leave
    /// parameters as they are.
    #[must_use]
    pub fn with_values(&self, value_of: impl Fn(&str) -> Option<Operand>) -> Self {
        let mut chains = self.chains.clone();
        for (_, step) in chains.iter_mut().flat_map(|chain| &mut chain.steps) {
            let QueryStep::Node(NodeStep { tests, tail }) = step else {
                continue;
            };
            let tail = tail.iter_mut().filter_map(|item| match item {
                PickOrTest::Test(test) => Some(test),
                _ => None,
            });
            tests
                .iter_mut()
                .chain(tail)
                .for_each(|test| fill(test, &value_of));
        }
        let mut filters = self.filters.clone();
        filters.iter_mut().for_each(|test| fill(test, &value_of));
        let span = Span::default();
        let draft = QueryDraft {
            time: self.time,
            chains: chains
                .into_iter()
                .map(|chain| ChainDraft { chain, span })
                .collect(),
            filters: filters.into_vec().into(),
            controls: self.controls.clone(),
        };
        normalize(draft, &mut Vec::new(), None)
    }
}

fn fill(test: &mut Test, value_of: &impl Fn(&str) -> Option<Operand>) {
    let Test::Attr(AttrTest { attr, op, operand }) = test else {
        return;
    };
    fill_operand(operand, value_of);
    fit(attr, *op, operand);
}

fn fill_operand(operand: &mut Operand, value_of: &impl Fn(&str) -> Option<Operand>) {
    match operand {
        Operand::Literal(_) => {}
        Operand::Param(name) => {
            if let Some(value) = value_of(name) {
                *operand = value;
            }
        }
        Operand::List(values) => {
            for value in values {
                fill_operand(value, value_of);
            }
        }
    }
}

/// Gives a value the form that a literal in its place has.
fn fit(attr: &Attr, op: CompareOp, operand: &mut Operand) {
    let literal = match operand {
        Operand::Literal(literal) => literal,
        Operand::Param(_) => return,
        Operand::List(values) => return values.iter_mut().for_each(|value| fit(attr, op, value)),
    };
    if !matches!(attr.kind(), AttrKind::Text | AttrKind::Tags) {
        return;
    }
    let text: Box<str> = match &*literal {
        Literal::Null => return,
        Literal::Int(number) => number.to_string().into(),
        Literal::Decimal(_, text) | Literal::Spelled(text) | Literal::Text(text) => text.clone(),
    };
    *literal = Literal::Text(match attr {
        Attr::NodeType | Attr::StoredType if op != CompareOp::Matches => normal_type(&text).into(),
        _ => text,
    });
}
