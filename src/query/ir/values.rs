//! A query with the values of its parameters (LANGUAGE §5, §9).

use super::name::normal_type;
use super::normal::normalize;
use super::query::{
    Attr, AttrKind, AttrTest, Chain, CompareOp, Literal, NodeStep, Operand, PickOrTest, QueryStep,
    RowOrder, SelectorQuery, Test,
};

impl SelectorQuery {
    /// Whether values can decide the order of rows: one of several groups pins a key, and a group
    /// that cannot match with its values does not count (LANGUAGE §6).
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
    pub fn with_values(&self, value_of: impl Fn(&str) -> Option<Operand>) -> Self {
        let mut query = self.clone();
        for chain in &mut query.chains {
            fill_chain(chain, &value_of);
        }
        query
            .filters
            .iter_mut()
            .for_each(|test| fill(test, &value_of));
        normalize(query, &[], &mut Vec::new(), None)
    }
}

fn fill_chain(chain: &mut Chain, value_of: &impl Fn(&str) -> Option<Operand>) {
    for (_, step) in &mut chain.steps {
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
            .for_each(|test| fill(test, value_of));
    }
}

// Recursion is as deep as conditions are inside each other, which is bounded.
fn fill(test: &mut Test, value_of: &impl Fn(&str) -> Option<Operand>) {
    match test {
        Test::Attr(AttrTest { attr, op, operand }) => {
            fill_operand(operand, value_of);
            fit(attr, *op, operand);
        }
        Test::Inner(test) => {
            for chain in &mut test.any {
                fill_chain(chain, value_of);
            }
        }
        Test::Type(_) | Test::Depth(_) => {}
    }
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
    let Some(text) = literal.written() else {
        return;
    };
    *literal = Literal::Text(match attr {
        Attr::NodeType | Attr::StoredType if op != CompareOp::Matches => normal_type(&text).into(),
        _ => text.into(),
    });
}
