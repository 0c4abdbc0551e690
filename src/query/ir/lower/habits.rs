//! Warns of forms that are legal but rarely meant (LANGUAGE §11).

use std::borrow::Cow;

use super::lowerer::Lowerer;
use crate::query::ir::name::headers;
use crate::query::ir::query::{Attr, QueryTime, RangeAnswer};
use crate::query::syntax::ast::{Attrs, Brackets, CompareOp, LiteralSyntax, Prop};
use crate::query::syntax::words::CLASSES;
use crate::query::syntax::{Span, quote};
use crate::support::diag::{Warning, nearest};

impl Lowerer {
    /// Warns of `.turn`, `.user`, `.CB`: types that no class, and probably no node, has.
    pub(super) fn warn_of_type(&mut self, head: &str, span: Span) {
        let Some(meant) = meant_type(head) else {
            return;
        };
        self.warn(
            span,
            format!("`.{head}` tests for the nodeType `{head}`"),
            "not a class of nodes",
            format!(
                "write `{meant}`, or `[nodeType={}]` if you mean that type",
                quote(head)
            ),
        );
    }

    /// Warns of `[kind=text,call]`, `[role:user]`, `[ROLE=x]`, `[role="'user'"]`.
    pub(super) fn warn_of_props(&mut self, attrs: &Attrs<'_>) {
        let mut list: Option<&Prop<'_>> = None;
        for (index, prop) in attrs.props.iter().enumerate() {
            self.warn_of_name(prop);
            if attrs.form == Brackets::Group && attrs.props.len() > 1 {
                self.warn_of_joint(prop);
            }
            match &prop.test {
                Some((op, value)) => {
                    let scalar =
                        matches!(value.node, LiteralSyntax::Word(_) | LiteralSyntax::Text(_));
                    let equal = op.node.is_equality();
                    list = Some(prop).filter(|_| scalar && equal);
                    if let LiteralSyntax::Text(Cow::Borrowed(text)) = &value.node
                        && let Some(inner) = text.strip_prefix('\'')
                        && let Some(inner) = inner.strip_suffix('\'')
                        && op.node != CompareOp::Matches
                    {
                        let help = format!("write `{}`", quote(inner));
                        let message = "the quotes inside are part of the text";
                        self.warn(value.span, message, "quoted twice", help);
                    }
                }
                None => {
                    let before = list.filter(|_| attrs.form != Brackets::Group);
                    if let Some(before) = before
                        && is_value(prop)
                    {
                        self.warn_of_list(before, attrs.props.get(index..).unwrap_or_default());
                        list = None;
                    }
                }
            }
        }
    }

    /// `[kind=text,call]`: `before` is `kind=text`, `rest` starts with `call`.
    fn warn_of_list(&mut self, before: &Prop<'_>, rest: &[Prop<'_>]) {
        let Some((op, value)) = &before.test else {
            return;
        };
        let more: Vec<&Prop<'_>> = rest.iter().take_while(|prop| is_value(prop)).collect();
        let (Some(first), Some(last)) = (more.first(), more.last()) else {
            return;
        };
        let names: Vec<String> = more.iter().map(|prop| prop.name.node.to_string()).collect();
        let (name, value, op) = (&before.name.node, &value.node, op.node);
        // A list needs all of the values, a single value is one of them.
        let what = match Attr::from_name(&name.text) {
            Attr::Tags => " for all of these tags",
            Attr::Custom(_) => "",
            _ => " for one of several values",
        };
        self.warn(
            first.name.span.to(last.name.span),
            format!(
                "{} is tested as an attribute, not as a value of `{name}`",
                listed(&names)
            ),
            "names of attributes",
            format!("write `{name}{op}[{value}, {}]`{what}", names.join(", ")),
        );
    }

    /// `.cb(role=user or kind=call)`: the words between properties are names.
    fn warn_of_joint(&mut self, prop: &Prop<'_>) {
        let name = &prop.name.node;
        let help = match &*name.text {
            "and" => "properties are joined by commas or white space: `.cb(role=user, kind=call)`",
            "or" => "write a union: `.cb(role=user), .cb(kind=call)`",
            "not" => "`!=` is the opposite of `=`: `.cb(role!=user)`",
            _ => return,
        };
        if prop.test.is_none() && !name.quoted {
            let message = format!("`{}` is tested as an attribute", name.text);
            self.warn(prop.name.span, message, "the name of an attribute", help);
        }
    }

    /// Remarks on `@* .cb[kind='call']:not(:has-result)`: a result comes in a later snapshot than its call, so every call
    /// matches in some snapshot.
    pub(super) fn remark_unanswered(&mut self, time: QueryTime, mode: RangeAnswer) {
        let in_any = time == QueryTime::All || mode == RangeAnswer::Union;
        if let Some(span) = self.unanswered.filter(|_| in_any) {
            let message = "a call matches if it has no result in one of the snapshots, and most have none in their first";
            let help = "for calls that were never answered, begin with `@history` and end with `@mode=latest`";
            let remark =
                Warning::new(message).at(span, "true of a call that a later snapshot answers");
            self.remarks.push(remark.with_help(help));
        }
    }

    fn warn_of_name(&mut self, prop: &Prop<'_>) {
        let name = &prop.name.node;
        if name.quoted {
            return;
        }
        let written = match (&prop.test, name.text.split_once(':')) {
            (None, Some((head, value))) if known(head) && !value.is_empty() => {
                Some(format!("{head}={}", quote(value)))
            }
            (Some((_, value)), Some((head, ""))) if known(head) => {
                Some(format!("{head}={}", value.node))
            }
            _ => None,
        };
        let (text, quoted) = (&name.text, quote(&name.text));
        let (message, help) = if let Some(written) = written {
            let help = format!("write `{written}`, or `{quoted}` for that name");
            (format!("`{text}` is the name of an attribute"), help)
        } else if let Some(header) = other_spelling(text) {
            let help = format!("write `{header}`, or `{quoted}` if you mean that attribute");
            let message = format!("`{text}` is a custom attribute, not the header `{header}`");
            (message, help)
        } else {
            return;
        };
        self.warn(prop.name.span, message, "no header has this name", help);
    }
}

/// Whether a property without a comparison is probably a value of the one before it.
fn is_value(prop: &Prop<'_>) -> bool {
    let name = &prop.name.node;
    let sugar = matches!(&*name.text, "ephemeral" | "sticky");
    prop.test.is_none() && (name.quoted || !known(&name.text) && !sugar)
}

fn known(name: &str) -> bool {
    !matches!(Attr::from_name(name), Attr::Custom(_))
}

/// The header whose name differs in case and underscores only.
pub(crate) fn other_spelling(name: &str) -> Option<&'static str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|c| *c != '_' && *c != '-');
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    // Fast path: most names are known.
    if known(name) {
        return None;
    }
    let wanted = plain(name);
    headers().find(|header| plain(header) == wanted)
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// What a type that is not a class probably means, as a step.
pub(crate) fn meant_type(head: &str) -> Option<Cow<'static, str>> {
    let lower = head.to_ascii_lowercase();
    if CLASSES.contains(&head) {
        return None;
    }
    if let Some(class) = CLASSES.into_iter().find(|class| *class == lower) {
        return Some(format!(".{class}").into());
    }
    Some(match &*lower {
        "turn" | "turns" | "segment" | "segments" | "mts" | "segs" => ".mt".into(),
        "blocks" | "cbs" | "part" | "parts" | "message" | "messages" | "msg" => ".cb".into(),
        "container" | "containers" | "conts" => ".mc".into(),
        "node" | "nodes" | "item" | "items" => "*".into(),
        "root" | "seq" | "sys" | "ah" => format!("^{lower}").into(),
        "user" | "assistant" | "tool" | "system" | "developer" => {
            format!("[role='{lower}']").into()
        }
        "text" | "call" | "result" | "summary" | "image" => format!("[kind='{lower}']").into(),
        word if word.len() >= 4 => {
            let class = nearest(word, ["block", "cont"]).filter(|class| one_apart(word, class))?;
            format!(".{class}").into()
        }
        _ => return None,
    })
}

/// Whether two words differ in one letter: added, left out or another.
fn one_apart(word: &str, other: &str) -> bool {
    let (word, other) = (word.as_bytes(), other.as_bytes());
    let same = word.iter().zip(other).take_while(|(a, b)| a == b).count();
    let ends = word.iter().rev().zip(other.iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    word.len().abs_diff(other.len()) <= 1 && same + tail + 1 >= word.len().max(other.len())
}
