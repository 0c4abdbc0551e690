//! Properties: names, comparisons and literals (LANGUAGE §5, as far as it is settled before any
//! data is seen).

use crate::diag::Code;
use crate::syntax::ast::{Attrs, Form, Name, Op as AstOp, Prop, Value};
use crate::syntax::{Span, Spanned, is_name, quote};

use super::super::name::normal_type;
use super::super::pattern::PatternError;
use super::super::{Attr, AttrTest, Edition, Kind, Literal, Op, Operand, Test, Tests};
use super::{Lowerer, MAX_VALUES};

impl Lowerer {
    /// Adds the tests of a list of properties; false where one is wrong.
    pub(super) fn attrs(&mut self, attrs: &Attrs<'_>, span: Span, tests: &mut Tests) -> bool {
        let mut sound = true;
        match attrs.form {
            Form::Bracket if attrs.props.len() > 1 => {
                let apart: String = attrs.props.iter().map(|prop| format!("[{prop}]")).collect();
                sound &= self.needs(
                    Edition::Canonical,
                    span,
                    "a bracket with several properties",
                    Some(apart),
                );
            }
            Form::Group => {
                let apart: String = attrs.props.iter().map(|prop| format!("[{prop}]")).collect();
                let instead = Some(apart).filter(|apart| !apart.is_empty());
                sound &= self.needs(Edition::Depth, span, "a group `(…)`", instead);
            }
            Form::Brace => sound &= self.needs(Edition::Canonical, span, "`{…}`", None),
            Form::Bracket => {}
        }
        if attrs.props.is_empty() {
            let what = match attrs.form {
                Form::Bracket => "`[]` without a property",
                Form::Group => "`()` without a property",
                Form::Brace => "`{}` without a property",
            };
            self.invalid(span, what, "nothing is compared")
                .help("write a property such as `role='user'`, or `role` for nodes that have one");
            return false;
        }
        for prop in &attrs.props {
            sound &= self.prop(prop, tests).is_some();
        }
        sound
    }

    fn prop(&mut self, prop: &Prop<'_>, tests: &mut Tests) -> Option<()> {
        let name = &prop.name;
        if prop.test.is_none()
            && !name.node.quoted
            && let Some(more) = sugar(&name.node.text)
        {
            if self.edition < Edition::Canonical && !self.lenient {
                let name = &name.node.text;
                let plain = if more {
                    "[ttl=1][cadence=1]"
                } else {
                    "[ttl=1]"
                };
                self.lacks(Edition::Canonical, prop.span(), &format!("`[{name}]`"))
                    .help(format!(
                        "write `{plain}`, or `['{name}']` for the attribute of that name"
                    ));
                return None;
            }
            tests.push(attr_test(Attr::Ttl, Op::Eq, Literal::Int(1)));
            tests.extend(more.then(|| attr_test(Attr::Cadence, Op::Eq, Literal::Int(1))));
            return Some(());
        }
        let attr = self.attr(name)?;
        let Some((op, value)) = &prop.test else {
            tests.push(attr_test(attr, Op::Ne, Literal::Null));
            return Some(());
        };
        let (op, op_span) = (lower_op(op.node), op.span);
        if op == Op::Matches && !self.needs(Edition::Canonical, op_span, "`~`", None) {
            return None;
        }
        if op == Op::Matches && attr.kind() == Kind::Number {
            self.invalid(
                op_span,
                format!("`{}` is a number and has no text to search", name.node.text),
                "not with a number",
            )
            .help(format!(
                "write `{}=1` or another comparison",
                name.node.text
            ));
            return None;
        }
        if let Value::List(values) = &value.node {
            return self.list(attr, &name.node, op, values, value.span, tests);
        }
        let literal = self.operand(&attr, &name.node, op, value)?;
        if op == Op::Matches
            && let Operand::Literal(Literal::Text(pattern)) = &literal
        {
            self.pattern(pattern, value.span)?;
        }
        tests.push(Test::Attr(AttrTest {
            attr,
            op,
            operand: literal,
        }));
        Some(())
    }

    /// The attribute a name means.
    fn attr(&mut self, name: &Spanned<Name<'_>>) -> Option<Attr> {
        let text = &*name.node.text;
        let attr = if name.node.quoted {
            Attr::from_quoted_name(text)
        } else if is_name(text) {
            Attr::from_name(text)
        } else {
            self.invalid(
                name.span,
                format!("`{text}` is no attribute name"),
                "a name starts with a letter or `_`",
            )
            .help(format!("quote it: `[{}]`", quote(text)));
            return None;
        };
        match attr {
            Attr::NodeType if self.edition == Edition::V01 => Some(Attr::StoredType),
            Attr::Kind if self.edition == Edition::V01 => Some(Attr::StoredKind),
            Attr::StoredType | Attr::StoredKind => {
                let instead = if attr == Attr::StoredType {
                    "nodeType"
                } else {
                    "kind"
                };
                self.needs(
                    Edition::Canonical,
                    name.span,
                    &format!("`{text}`"),
                    Some(instead.to_owned()).filter(|_| self.edition == Edition::V01),
                )
                .then_some(attr)
            }
            Attr::Facet(_) => {
                if !self.needs(
                    Edition::Depth,
                    name.span,
                    &format!("the facet `{text}`"),
                    None,
                ) {
                    return None;
                }
                if !self.timed {
                    self.error(
                        Code::FacetNeedsSnapshot,
                        name.span,
                        format!("`{text}` needs a snapshot"),
                        "known in a snapshot only",
                    )
                    .help("start the selector with a time such as `@t0`");
                    return None;
                }
                Some(attr)
            }
            attr => Some(attr),
        }
    }

    fn list(
        &mut self,
        attr: Attr,
        name: &Name<'_>,
        op: Op,
        values: &[Spanned<Value<'_>>],
        span: Span,
        tests: &mut Tests,
    ) -> Option<()> {
        if !self.needs(Edition::Canonical, span, "a list of values", None) {
            return None;
        }
        if !matches!(op, Op::Eq | Op::Ne) {
            self.invalid(
                span,
                "a list goes with `=` and `!=` only",
                "not with this comparison",
            );
            return None;
        }
        if values.is_empty() {
            self.invalid(span, "an empty list equals nothing", "no value is named")
                .help(format!("write `{name}=null` for nodes without one"));
            return None;
        }
        if values.len() > MAX_VALUES {
            let message = format!(
                "a list has at most {MAX_VALUES} values, this one has {}",
                values.len()
            );
            self.error(Code::Limit, span, message, "too many");
            return None;
        }
        let mut operands = Vec::with_capacity(values.len());
        let mut sound = true;
        for value in values {
            match self.operand(&attr, name, op, value) {
                Some(operand) => operands.push(operand),
                None => sound = false,
            }
        }
        if !sound {
            return None;
        }
        tests.push(Test::Attr(AttrTest {
            attr,
            op,
            operand: Operand::List(operands.into()),
        }));
        Some(())
    }

    /// A scalar value as `attr` compares it.
    fn operand(
        &mut self,
        attr: &Attr,
        name: &Name<'_>,
        op: Op,
        value: &Spanned<Value<'_>>,
    ) -> Option<Operand> {
        let span = value.span;
        let kind = attr.kind();
        let as_text = op == Op::Matches || matches!(kind, Kind::Text | Kind::Tags);
        let literal = match &value.node {
            Value::Param(name) => return Some(Operand::Param((*name).into())),
            Value::Word("null" | "None") => Literal::Null,
            Value::Int(written) => {
                let number = self.integer(written, span, kind)?;
                if as_text {
                    Literal::Text((*written).into())
                } else {
                    Literal::Int(number)
                }
            }
            Value::Decimal(written) => {
                let number = self.decimal(written, span, kind)?;
                if as_text {
                    Literal::Text((*written).into())
                } else {
                    decimal_literal(number, written, kind)
                }
            }
            Value::Word(word) => {
                if kind == Kind::Number {
                    return self.not_a_number(name, word, span);
                }
                if is_scientific(word) {
                    self.warn(
                        span,
                        format!("`{word}` is a text, not a number"),
                        "compared as a text",
                    )
                    .hint(format!(
                        "write `{}` to say so, or a plain decimal",
                        quote(word)
                    ));
                }
                text_literal(attr, op, word)
            }
            Value::Text(text) => {
                if kind == Kind::Number {
                    return self.not_a_number(name, text, span);
                }
                text_literal(attr, op, text)
            }
            // The grammar nests no lists.
            Value::List(_) => return None,
        };
        Some(Operand::Literal(literal))
    }

    fn not_a_number(&mut self, name: &Name<'_>, text: &str, span: Span) -> Option<Operand> {
        let numeric = text.parse::<i64>().is_ok();
        let advice = self.invalid(
            span,
            format!("`{}` is a number and `{text}` is not", name.text),
            "a number or `null` belongs here",
        );
        if numeric {
            advice.help(format!("remove the quotes: `{}`", text.trim()));
        }
        None
    }

    /// An integer as written. `kind` is that of the attribute it is compared with, or
    /// [`Kind::Number`] where only a number can stand.
    pub(super) fn integer(&mut self, written: &str, span: Span, kind: Kind) -> Option<i64> {
        let number = written.parse().ok();
        if number.is_none() {
            let negative = written.starts_with('-');
            let nearest = if negative { i64::MIN } else { i64::MAX };
            let advice = self.invalid(
                span,
                "the number is too large",
                "integers go from -9223372036854775808 to 9223372036854775807",
            );
            match kind {
                Kind::Number => advice.help(format!("the nearest is `{nearest}`")),
                _ => advice.help(format!(
                    "quote it to compare it as a text: `{}`",
                    quote(written)
                )),
            }
        }
        number
    }

    fn decimal(&mut self, written: &str, span: Span, kind: Kind) -> Option<f64> {
        let number = written
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite());
        if number.is_none() {
            let advice = self.invalid(span, "the number is too large", "no double holds it");
            if kind != Kind::Number {
                advice.help(format!(
                    "quote it to compare it as a text: `{}`",
                    quote(written)
                ));
            }
        }
        number
    }

    /// Checks a regular expression; it is compiled again, once, where it is used.
    fn pattern(&mut self, pattern: &str, span: Span) -> Option<()> {
        if self.patterns.is_exhausted() {
            // Told at the pattern that was one too much.
            return None;
        }
        let Some(error) = self.patterns.compile(pattern).err() else {
            return Some(());
        };
        let (code, label) = match &error {
            PatternError::Invalid(_) => (Code::SelectorInvalid, "not a regular expression"),
            PatternError::TooLarge(_) => (Code::Limit, "too large"),
            PatternError::TooMany => (Code::Limit, "too large together with those before"),
        };
        self.error(code, span, error.message(), label)
            .help(error.help());
        None
    }
}

/// Whether a bare name is sugar: `Some(true)` where it tests the cadence too.
fn sugar(name: &str) -> Option<bool> {
    match name {
        "ephemeral" => Some(false),
        "sticky" => Some(true),
        _ => None,
    }
}

/// A test of one attribute against a literal.
pub(super) fn attr_test(attr: Attr, op: Op, literal: Literal) -> Test {
    Test::Attr(AttrTest {
        attr,
        op,
        operand: Operand::Literal(literal),
    })
}

fn lower_op(op: AstOp) -> Op {
    match op {
        AstOp::Eq => Op::Eq,
        AstOp::Ne => Op::Ne,
        AstOp::Lt => Op::Lt,
        AstOp::Le => Op::Le,
        AstOp::Gt => Op::Gt,
        AstOp::Ge => Op::Ge,
        AstOp::Matches => Op::Matches,
    }
}

/// A text literal, in the one vocabulary of types where it is compared with one.
fn text_literal(attr: &Attr, op: Op, text: &str) -> Literal {
    match attr {
        Attr::NodeType | Attr::StoredType if op != Op::Matches => {
            Literal::Text(normal_type(text).into())
        }
        _ => Literal::Text(text.into()),
    }
}

/// A decimal. Against a numeric header `5.0` is 5; against anything else its text may matter.
fn decimal_literal(number: f64, written: &str, kind: Kind) -> Literal {
    // Doubles up to here hold every whole number exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if kind == Kind::Number && number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
        let whole = number as i64;
        return Literal::Int(whole);
    }
    Literal::Decimal(number, written.into())
}

/// `1e5`, which reads like a number and is none.
fn is_scientific(word: &str) -> bool {
    let Some((mantissa, exponent)) = word.split_once(['e', 'E']) else {
        return false;
    };
    let exponent = exponent.strip_prefix('-').unwrap_or(exponent);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(mantissa.strip_prefix('-').unwrap_or(mantissa)) && digits(exponent)
}
