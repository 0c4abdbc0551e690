//! Filters of the final set, and controls (LANGUAGE §6, §7).

use super::lowerer::Lowerer;
use super::notes::in_list;
use crate::query::ir::edition::Edition;
use crate::query::ir::name::{MODES, ORDERS};
use crate::query::ir::purpose::Purpose;
use crate::query::ir::query::{
    Attr, AttrKind, CompareOp, Controls, Literal, Operand, QueryTime, Test, Tests,
};
use crate::query::syntax::ast::{Brackets, Control, Filter};
use crate::query::syntax::words::CONTROLS;
use crate::query::syntax::{Span, is_name, quote};
use crate::support::diag::nearest;

/// The filters and controls of a selector.
#[derive(Default)]
pub(super) struct Filters {
    pub(super) tests: Tests,
    pub(super) controls: Controls,
}

/// The controls so far, with their places.
#[derive(Default)]
struct SeenControls<'a>(Vec<(&'a str, Span)>);

impl SeenControls<'_> {
    /// The last place of a control.
    fn place(&self, name: &str) -> Option<Span> {
        let seen = self.0.iter().rfind(|seen| seen.0 == name);
        seen.map(|seen| seen.1)
    }
}

impl Lowerer {
    pub(super) fn filters(
        &mut self,
        filters: &[Filter<'_>],
        time: Option<QueryTime>,
    ) -> Option<Filters> {
        let mut lowered = Filters::default();
        if filters.is_empty() {
            return Some(lowered);
        }
        let mut seen = SeenControls::default();
        let mut sound = true;
        for filter in filters {
            let before = lowered.tests.len();
            sound &= match filter {
                Filter::Attrs(attrs) => self.attrs(&attrs.node, attrs.span, &mut lowered.tests),
                Filter::Tag(tag) => {
                    let text = Literal::Text((*tag.node).into());
                    let test = Test::of(Attr::Tags, CompareOp::Eq, text);
                    lowered.tests.push(test);
                    if self.purpose == Purpose::Place && is_count(&tag.node) {
                        let message =
                            format!("`+{}` is a tag here, not an insertion point", tag.node);
                        let help = format!("write it as the last hop: `(d0, +{})`", tag.node);
                        self.warn(tag.span, message, "filters the parents", help);
                    }
                    let instead = format!("[tag={}]", quote(&tag.node));
                    self.needs(Edition::Canonical, tag.span, "`+tag`", Some(instead))
                }
                Filter::Control(control) => self
                    .control(control, &mut lowered.controls, &mut seen)
                    .is_some(),
            };
            self.note_filter(filter, lowered.tests.get(before..).unwrap_or_default());
        }
        if let Some(page) = seen.place("p")
            && seen.place("limit").is_none()
            && seen.place("first").is_none()
            && !self.fragment
        {
            self.invalid(
                page,
                "`@p` needs the size of a page",
                "a page of what size?",
            )
            .help("add `@limit=10`");
            sound = false;
        }
        if let Some(mode) = seen.place("mode")
            && !self.fragment
            && time.is_some_and(|time| !matches!(time, QueryTime::Range(..)))
        {
            let mutates = self.purpose != Purpose::Select;
            let advice = self.invalid(
                mode,
                "`@mode` needs a range",
                "there is one snapshot, or a list of all",
            );
            if mutates {
                advice
                    .write(mode, "")
                    .help("leave `@mode` out: a mutation changes the working state")
            } else {
                advice.help("start the selector with a range such as `@t-3..@t0`")
            }
            sound = false;
        }
        if let Some(unique) = seen.place("unique")
            && self.purpose == Purpose::Place
        {
            self.invalid(
                unique,
                "`@unique` has no meaning in a place",
                "a place is one node, not a list",
            )
            .write(unique, "")
            .help("leave it out; `@first` takes the first of several nodes");
            sound = false;
        }
        sound.then_some(lowered)
    }

    /// Notes the normal form of a filter or control.
    fn note_filter(&mut self, filter: &Filter<'_>, tests: &[Test]) {
        match filter {
            Filter::Attrs(attrs) => self.note(attrs.span, || in_list(attrs.node.form, tests)),
            Filter::Tag(tag) => self.note(tag.span, || in_list(Brackets::Brace, tests)),
            Filter::Control(control) if control.name.node == "first" => {
                self.note(control.span(), || "@limit=1".to_owned());
            }
            Filter::Control(_) => {}
        }
    }

    fn control<'a>(
        &mut self,
        control: &Control<'a>,
        controls: &mut Controls,
        seen: &mut SeenControls<'a>,
    ) -> Option<()> {
        let name = control.name.node;
        let span = control.span();
        let since = match name {
            "mode" => Edition::Depth,
            "limit" | "p" | "order" | "first" | "unique" => Edition::Canonical,
            _ => {
                self.unknown_control(control);
                return None;
            }
        };
        self.needs(since, span, &format!("`@{name}`"), None)
            .then_some(())?;
        let repeated = seen.place(name).is_some();
        seen.0.push((name, span));
        if repeated {
            self.invalid(span, format!("`@{name}` is given twice"), "the second one");
            return None;
        }
        let both = seen.place("limit").is_some() && seen.place("first").is_some();
        if both && matches!(name, "limit" | "first") {
            self.invalid(
                span,
                "`@limit` and `@first` exclude each other",
                "one limit is enough",
            )
            .help("`@first` is `@limit=1`");
            return None;
        }
        match name {
            "first" | "unique" => {
                if let Some(value) = &control.value {
                    self.invalid(
                        value.span,
                        format!("`@{name}` takes no value"),
                        "remove this",
                    );
                    return None;
                }
                if name == "first" {
                    controls.limit = Some(Operand::Literal(Literal::Int(1)));
                } else {
                    controls.unique = true;
                }
            }
            "limit" => controls.limit = Some(self.count(control, 0)?),
            "p" => controls.page = Some(self.count(control, 1)?),
            "order" => controls.order = self.word(control, &ORDERS)?,
            _ => controls.mode = self.word(control, &MODES)?,
        }
        Some(())
    }

    fn unknown_control(&mut self, control: &Control<'_>) {
        let name = control.name.node;
        let span = control.name.span;
        if name == "history" {
            self.invalid(
                span,
                "the time is written at the start of a selector",
                "not expected here",
            )
            .help("move it to the front: `@history .cb`");
            return;
        }
        let advice = self.invalid(
            span,
            format!("unknown control `@{name}`"),
            "no such control",
        );
        match nearest(name, CONTROLS.into_iter().chain(["history"])) {
            Some(known) => advice
                .write(span, format!("@{known}"))
                .help(format!("did you mean `@{known}`?")),
            None => advice
                .help("the controls are `@limit`, `@p`, `@first`, `@order`, `@unique` and `@mode`"),
        }
    }

    /// The value of `@limit` or `@p`.
    fn count(&mut self, control: &Control<'_>, least: i64) -> Option<Operand> {
        let name = control.name.node;
        let Some(value) = &control.value else {
            self.invalid(
                control.name.span,
                format!("`@{name}` needs a number"),
                "the value is missing",
            )
            .help(format!("write `@{name}=10`"));
            return None;
        };
        if let Some(parameter) = value.node.strip_prefix('$')
            && is_name(parameter)
            && !parameter.contains(':')
        {
            return Some(Operand::Param(parameter.into()));
        }
        let digits = !value.node.is_empty() && value.node.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            self.invalid(
                value.span,
                format!("expected a whole number, found `{}`", value.node),
                "a number belongs here",
            )
            .help(format!("write `@{name}=10`"));
            return None;
        }
        let number = self.integer(value.node, value.span, AttrKind::Number)?;
        if number < least {
            self.invalid(value.span, "pages count from 1", "the first page is 1")
                .help("write `@p=1`");
            return None;
        }
        Some(Operand::Literal(Literal::Int(number)))
    }

    /// The value of `@order` or `@mode`.
    fn word<T: Copy>(&mut self, control: &Control<'_>, known: &[(&'static str, T)]) -> Option<T> {
        let name = control.name.node;
        let list = || {
            let words: Vec<String> = known.iter().map(|(word, _)| format!("`{word}`")).collect();
            words.join(", ")
        };
        let Some(value) = &control.value else {
            self.invalid(
                control.name.span,
                format!("`@{name}` needs a value"),
                "the value is missing",
            )
            .help(format!("the values are {}", list()));
            return None;
        };
        let written: String = value.node.split_ascii_whitespace().collect();
        if let Some((_, meaning)) = known.iter().find(|(word, _)| *word == written) {
            return Some(*meaning);
        }
        let advice = self.invalid(
            value.span,
            format!("unknown {name} `{}`", value.node),
            "no such value",
        );
        match nearest(&written, known.iter().map(|(word, _)| *word)) {
            Some(meant) => advice
                .write(value.span, meant)
                .help(format!("did you mean `@{name}={meant}`?")),
            None => advice.help(format!("the values are {}", list())),
        }
        None
    }
}

/// Whether a tag is written like the child of an insertion point.
fn is_count(tag: &str) -> bool {
    tag.bytes().all(|byte| byte.is_ascii_digit())
}
