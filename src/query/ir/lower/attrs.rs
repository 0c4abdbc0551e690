//! Properties: names, comparisons and literals (LANGUAGE §5).

use std::fmt::Display;

use super::faults;
use super::lowerer::{Lowerer, MAX_VALUES};
use crate::query::ir::edition::Edition;
use crate::query::ir::name::normal_type;
use crate::query::ir::pattern::PatternError;
use crate::query::ir::purpose::Purpose;
use crate::query::ir::query::{Attr, AttrKind, AttrTest, CompareOp, Literal, Operand, Test, Tests};
use crate::query::syntax::ast::{AttrName, Attrs, Brackets, LiteralSyntax, Prop};
use crate::query::syntax::{Span, Spanned, is_name, quote};
use crate::support::diag::{Code, SelectorEdit};

impl Lowerer {
    pub(super) fn attrs(&mut self, attrs: &Attrs<'_>, span: Span, tests: &mut Tests) -> bool {
        let one = attrs.props.len() <= 1;
        let (since, what) = match attrs.form {
            Brackets::Bracket if one => (Edition::V01, ""),
            Brackets::Bracket => (Edition::Canonical, "a bracket with several properties"),
            Brackets::Group => (Edition::Depth, "a group `(…)`"),
            Brackets::Brace => (Edition::Canonical, "`{…}`"),
        };
        let mut sound = self.edition >= since;
        if !sound {
            let apart = attrs.props.iter().map(|prop| format!("[{prop}]")).collect();
            let instead = Some(apart)
                .filter(|apart: &String| attrs.form != Brackets::Brace && !apart.is_empty());
            sound = self.needs(since, span, what, instead);
        }
        if attrs.props.is_empty() {
            return self.fault(span, faults::EMPTY_BRACKETS, &[attrs]);
        }
        for prop in &attrs.props {
            sound &= self.prop(prop, tests).is_some();
        }
        let joined = |pair: &&[Prop<'_>]| pair[0].span().end == pair[1].span().start;
        if let Some(pair) = attrs.props.windows(2).find(joined) {
            let place = pair[1].span();
            sound = self.fault(place, faults::JOINED_PROPS, &[&pair[0], &pair[1]]);
        }
        self.warn_of_props(attrs);
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
                let plain = ["[ttl=1]", "[ttl=1][cadence=1]"][usize::from(more)];
                let help =
                    format!("write `{plain}`, or `['{name}']` for the attribute of that name");
                let what = format!("`[{name}]`");
                return self.lacks(Edition::Canonical, prop.span(), &what, help);
            }
            tests.push(Test::new(Attr::Ttl, CompareOp::Eq, Literal::Int(1)));
            tests.extend(more.then(|| Test::new(Attr::Cadence, CompareOp::Eq, Literal::Int(1))));
            return Some(());
        }
        let attr = self.attr(name)?;
        let Some((op, value)) = &prop.test else {
            tests.push(Test::new(attr, CompareOp::Ne, Literal::Null));
            return Some(());
        };
        let (op, op_span) = (op.node, op.span);
        if op == CompareOp::Matches && !self.needs(Edition::Canonical, op_span, "`~`", None) {
            return None;
        }
        if op == CompareOp::Matches && attr.kind() == AttrKind::Number {
            return self.fault(op_span, faults::SEARCHED_NUMBER, &[&name.node.text]);
        }
        if let LiteralSyntax::List(values) = &value.node {
            return self.list(attr, &name.node, op, values, value.span, tests);
        }
        let operand = self.operand(&attr, &name.node, op, value)?;
        if op == CompareOp::Matches
            && let Operand::Literal(Literal::Text(pattern)) = &operand
        {
            self.pattern(pattern, value.span)?;
        }
        tests.push(Test::Attr(AttrTest { attr, op, operand }));
        Some(())
    }

    fn attr(&mut self, name: &Spanned<AttrName<'_>>) -> Option<Attr> {
        let text = &*name.node.text;
        let attr = if name.node.quoted {
            Attr::from_quoted_name(text)
        } else if is_name(text) {
            Attr::from_name(text)
        } else {
            let quoted = quote(text);
            let words: [&dyn Display; 2] = [&text, &quoted];
            return self.mended(name.span, faults::NO_NAME, &words, name.span, &*quoted);
        };
        match attr {
            Attr::NodeType if self.edition == Edition::V01 => Some(Attr::StoredType),
            Attr::Kind if self.edition == Edition::V01 => Some(Attr::StoredKind),
            // The earlier editions have no sizes.
            Attr::Bytes | Attr::Tokens if self.edition < Edition::Canonical => {
                Some(Attr::Custom(text.into()))
            }
            Attr::StoredType | Attr::StoredKind => {
                let instead = match attr {
                    _ if self.edition != Edition::V01 => None,
                    Attr::StoredType => Some("nodeType".to_owned()),
                    _ => Some("kind".to_owned()),
                };
                let what = format!("`{text}`");
                self.needs(Edition::Canonical, name.span, &what, instead)
                    .then_some(attr)
            }
            Attr::Facet(_) => {
                let what = format!("the facet `{text}`");
                self.needs(Edition::Depth, name.span, &what, None)
                    .then_some(())?;
                if !self.timed {
                    return self.needs_snapshot(text, name.span);
                }
                Some(attr)
            }
            attr => Some(attr),
        }
    }

    /// Refuses a facet in a selector without a time.
    fn needs_snapshot<T: Default>(&mut self, facet: &str, span: Span) -> T {
        if self.purpose == Purpose::Select {
            let start = Span::new(0, 0);
            return self.mended(span, faults::NO_SNAPSHOT, &[&facet], start, "@t0 ");
        }
        let help = match facet {
            "depth" => "write the depth on a step: `.cb:depth(1)`",
            _ => "name the nodes by id: `[id='cb:1']`",
        };
        self.fault(span, faults::NO_SNAPSHOT_HERE, &[&facet, &help])
    }

    fn list(
        &mut self,
        attr: Attr,
        name: &AttrName<'_>,
        op: CompareOp,
        values: &[Spanned<LiteralSyntax<'_>>],
        span: Span,
        tests: &mut Tests,
    ) -> Option<()> {
        if !self.needs(Edition::Canonical, span, "a list of values", None) {
            return None;
        }
        if !op.is_equality() {
            return self.fault(span, faults::ORDERED_LIST, &[]);
        }
        if values.is_empty() {
            return self.fault(span, faults::EMPTY_LIST, &[name]);
        }
        if values.len() > MAX_VALUES {
            return self.fault(span, faults::LONG_LIST, &[&MAX_VALUES, &values.len()]);
        }
        // All values are lowered before the first missing one ends this, to report every mistake.
        let operands: Vec<_> = values
            .iter()
            .map(|value| self.operand(&attr, name, op, value))
            .collect();
        let operands: Option<Box<[Operand]>> = operands.into_iter().collect();
        let operand = Operand::List(operands?);
        tests.push(Test::Attr(AttrTest { attr, op, operand }));
        Some(())
    }

    /// A scalar value, in the form that `attr` compares.
    fn operand(
        &mut self,
        attr: &Attr,
        name: &AttrName<'_>,
        op: CompareOp,
        value: &Spanned<LiteralSyntax<'_>>,
    ) -> Option<Operand> {
        let span = value.span;
        let kind = attr.kind();
        let as_text = op == CompareOp::Matches || matches!(kind, AttrKind::Text | AttrKind::Tags);
        let literal = match &value.node {
            LiteralSyntax::Param(name) => return Some(Operand::Param((*name).into())),
            LiteralSyntax::Word("null" | "None") => Literal::Null,
            LiteralSyntax::Int(written) => {
                let number = self.integer(written, span, kind)?;
                match kind {
                    _ if as_text => Literal::Text((*written).into()),
                    AttrKind::Dynamic if number.to_string() != *written => {
                        Literal::Spelled((*written).into())
                    }
                    _ => Literal::Int(number),
                }
            }
            LiteralSyntax::Decimal(written) => {
                let number = self.decimal(written, span, kind)?;
                if as_text {
                    Literal::Text((*written).into())
                } else {
                    decimal_literal(number, written, kind)
                }
            }
            LiteralSyntax::Word(word) => {
                if kind == AttrKind::Number {
                    return self.not_a_number(name, word, span);
                }
                let lower = word.to_ascii_lowercase();
                let is_bool = matches!(&*lower, "true" | "false") && lower != **word;
                let meant = if is_bool { &*lower } else { "null" };
                if is_bool || matches!(*word, "NULL" | "Null" | "nil" | "undefined") {
                    let message = format!("`{word}` is a text, not `{meant}`");
                    let help = format!("write `{meant}`, or `{}` for that text", quote(word));
                    self.warn(span, message, "compared as a text", help);
                }
                if is_scientific(word) {
                    let message = format!("`{word}` is a text, not a number");
                    let help = format!(
                        "write `{}` for that text, or a plain decimal such as `0.5`",
                        quote(word)
                    );
                    self.warn(span, message, "compared as a text", help);
                }
                text_literal(attr, op, word)
            }
            LiteralSyntax::Text(text) => {
                if kind == AttrKind::Number {
                    return self.not_a_number(name, text, span);
                }
                text_literal(attr, op, text)
            }
            // Unreachable: the grammar does not nest lists.
            LiteralSyntax::List(_) => return None,
        };
        Some(Operand::Literal(literal))
    }

    fn not_a_number(&mut self, name: &AttrName<'_>, text: &str, span: Span) -> Option<Operand> {
        let plain = text.parse::<i64>().is_ok().then(|| text.trim());
        let help = plain.map(|plain| format!("remove the quotes: `{plain}`"));
        let edit = plain.map(|plain| SelectorEdit::new(span, plain));
        let words: [&dyn Display; 3] = [&name.text, &text, &help.unwrap_or_default()];
        self.mistake(span, faults::NO_NUMBER, &words, edit)
    }

    /// The value of an integer literal. `kind` is that of the attribute it is compared with, or
    /// [`AttrKind::Number`] where only a number is allowed.
    pub(super) fn integer(&mut self, written: &str, span: Span, kind: AttrKind) -> Option<i64> {
        written.parse().ok().or_else(|| {
            let negative = written.starts_with('-');
            let nearest = if negative { i64::MIN } else { i64::MAX };
            let help = match kind {
                AttrKind::Number => format!("the nearest is `{nearest}`"),
                _ => as_text(written),
            };
            self.fault(span, faults::LARGE_INTEGER, &[&help])
        })
    }

    fn decimal(&mut self, written: &str, span: Span, kind: AttrKind) -> Option<f64> {
        let number = written.parse().ok();
        let number = number.filter(|number: &f64| number.is_finite());
        number.or_else(|| {
            let help = match kind {
                AttrKind::Number => String::new(),
                _ => as_text(written),
            };
            self.fault(span, faults::LARGE_DECIMAL, &[&help])
        })
    }

    /// Checks a regular expression. The plan compiles it again, once.
    fn pattern(&mut self, pattern: &str, span: Span) -> Option<()> {
        if self.patterns.is_exhausted() {
            // The pattern that exceeded the limit was reported.
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
        let help = error.help().to_owned();
        self.record(code, span, error.to_string(), label, help, None)
    }
}

/// What to write instead of a number that is too large.
fn as_text(written: &str) -> String {
    format!("quote it to compare it as a text: `{}`", quote(written))
}

/// Whether a bare name is sugar; `Some(true)` if it also tests the cadence.
fn sugar(name: &str) -> Option<bool> {
    match name {
        "ephemeral" => Some(false),
        "sticky" => Some(true),
        _ => None,
    }
}

fn text_literal(attr: &Attr, op: CompareOp, text: &str) -> Literal {
    match attr {
        Attr::NodeType | Attr::StoredType if op != CompareOp::Matches => {
            Literal::Text(normal_type(text).into())
        }
        _ => Literal::Text(text.into()),
    }
}

/// A decimal literal. Against a numeric header `5.0` is 5; elsewhere its spelling may matter.
fn decimal_literal(number: f64, written: &str, kind: AttrKind) -> Literal {
    // 2^53: doubles represent every whole number up to here exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if kind == AttrKind::Number && number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
        let whole = number as i64;
        return Literal::Int(whole);
    }
    Literal::Decimal(number, written.into())
}

/// Whether `word` looks like a number in scientific notation, which is a text: `1e5`.
fn is_scientific(word: &str) -> bool {
    let Some((mantissa, exponent)) = word.split_once(['e', 'E']) else {
        return false;
    };
    let exponent = exponent.strip_prefix('-').unwrap_or(exponent);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(mantissa.strip_prefix('-').unwrap_or(mantissa)) && digits(exponent)
}
