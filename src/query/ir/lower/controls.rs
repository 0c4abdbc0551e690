//! Filters of the final set, and controls (LANGUAGE §6, §7).

use std::fmt::Display;

use super::faults;
use super::lowerer::Lowerer;
use super::notes::in_list;
use crate::query::ir::edition::Edition;
use crate::query::ir::name::{MODES, ORDERS};
use crate::query::ir::purpose::Purpose;
use crate::query::ir::query::{AttrKind, Controls, Literal, Operand, QueryTime, Test, Tests};
use crate::query::syntax::ast::{Brackets, Control, Filter};
use crate::query::syntax::words::CONTROLS;
use crate::query::syntax::{Span, is_name, quote};
use crate::support::diag::{SelectorEdit, nearest};

#[derive(Default)]
pub(super) struct Filters {
    pub(super) tests: Tests,
    pub(super) controls: Controls,
}

#[derive(Default)]
struct SeenControls<'a>(Vec<(&'a str, Span)>);

impl SeenControls<'_> {
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
                    lowered.tests.push(Test::of_tag(&tag.node));
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
            sound = self.fault(page, faults::PAGE_SIZE, &[]);
        }
        if let Some(mode) = seen.place("mode")
            && !self.fragment
            && time.is_some_and(|time| !matches!(time, QueryTime::Range(..)))
        {
            sound = if self.purpose == Purpose::Select {
                let help = "start the selector with a range such as `@t-3..@t0`";
                self.fault(mode, faults::MODE_RANGE, &[&help])
            } else {
                let help = "leave `@mode` out: a mutation changes the working state";
                self.mended(mode, faults::MODE_RANGE, &[&help], mode, "")
            };
        }
        if let Some(unique) = seen.place("unique")
            && self.purpose == Purpose::Place
        {
            sound = self.mended(unique, faults::UNIQUE_PLACE, &[], unique, "");
        }
        sound.then_some(lowered)
    }

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
            _ => return self.unknown_control(control),
        };
        self.needs(since, span, &format!("`@{name}`"), None)
            .then_some(())?;
        let repeated = seen.place(name).is_some();
        seen.0.push((name, span));
        if repeated {
            return self.fault(span, faults::CONTROL_TWICE, &[&name]);
        }
        let both = seen.place("limit").is_some() && seen.place("first").is_some();
        if both && matches!(name, "limit" | "first") {
            return self.fault(span, faults::LIMIT_AND_FIRST, &[]);
        }
        match name {
            "first" | "unique" => {
                if let Some(value) = &control.value {
                    return self.fault(value.span, faults::NO_VALUE_HERE, &[&name]);
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

    fn unknown_control<T: Default>(&mut self, control: &Control<'_>) -> T {
        let (name, span) = (control.name.node, control.name.span);
        if name == "history" {
            return self.fault(span, faults::LATE_HISTORY, &[]);
        }
        let known = nearest(name, CONTROLS.into_iter().chain(["history"]));
        let help = known.map(|known| format!("did you mean `@{known}`?"));
        let list = "the controls are `@limit`, `@p`, `@first`, `@order`, `@unique` and `@mode`";
        let help = help.unwrap_or_else(|| list.to_owned());
        let edit = known.map(|known| SelectorEdit::new(span, format!("@{known}")));
        self.mistake(span, faults::UNKNOWN_CONTROL, &[&name, &help], edit)
    }

    fn count(&mut self, control: &Control<'_>, least: i64) -> Option<Operand> {
        let name = control.name.node;
        let Some(value) = &control.value else {
            return self.fault(control.name.span, faults::CONTROL_NUMBER, &[&name]);
        };
        if let Some(parameter) = value.node.strip_prefix('$')
            && is_name(parameter)
            && !parameter.contains(':')
        {
            return Some(Operand::Param(parameter.into()));
        }
        if value.node.is_empty() || !is_count(value.node) {
            return self.fault(value.span, faults::CONTROL_NO_NUMBER, &[&name, value]);
        }
        let number = self.integer(value.node, value.span, AttrKind::Number)?;
        if number < least {
            return self.fault(value.span, faults::PAGE_ZERO, &[]);
        }
        Some(Operand::Literal(Literal::Int(number)))
    }

    fn word<T: Copy>(&mut self, control: &Control<'_>, known: &[(&'static str, T)]) -> Option<T> {
        let name = control.name.node;
        let words: Vec<String> = known.iter().map(|(word, _)| format!("`{word}`")).collect();
        let list = words.join(", ");
        let Some(value) = &control.value else {
            return self.fault(control.name.span, faults::CONTROL_VALUE, &[&name, &list]);
        };
        let written: String = value.node.split_ascii_whitespace().collect();
        if let Some((_, meaning)) = known.iter().find(|(word, _)| *word == written) {
            return Some(*meaning);
        }
        let meant = nearest(&written, known.iter().map(|(word, _)| *word));
        let help = match meant {
            Some(meant) => format!("did you mean `@{name}={meant}`?"),
            None => format!("the values are {list}"),
        };
        let edit = meant.map(|meant| SelectorEdit::new(value.span, meant));
        let words: [&dyn Display; 3] = [&name, value, &help];
        self.mistake(value.span, faults::UNKNOWN_VALUE, &words, edit)
    }
}

/// Whether a word has digits only, as the child of an insertion point.
fn is_count(tag: &str) -> bool {
    tag.bytes().all(|byte| byte.is_ascii_digit())
}
