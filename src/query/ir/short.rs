//! The short form of a node (RUNTIME §3) as the members of its JSON form.
//!
//! The module says what is written. Which members a node may have, and with which values, is decided
//! where nodes are made, for both forms alike; here that must not be known.

use std::ops::Range;

use super::edition::Edition;
use super::name::{normal_type, split_type};
use super::query::{Attr, AttrKind};
use crate::query::syntax::ast::{CompareOp, Filter, LiteralSyntax, Prop, ShortNode};
use crate::query::syntax::words::{CALLED_PSEUDOS, FOREIGN_PSEUDOS, PLAIN_PSEUDOS};
use crate::query::syntax::{Mistake, Span, Spanned, SyntaxError, is_name, parse_node, quote};
use crate::support::diag::{Code, Diagnostic, Error, Label};

/// How the short form looks, for help texts.
const FORM: &str = "write a node as `block:text {key='hero', ttl=2} +tag 'the content'`";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortMember {
    /// The name, in the spelling of documents.
    pub name: String,
    /// The value as JSON text.
    pub json: String,
    pub span: Range<usize>,
}

/// The members of the node whose short form is `text`: its nodeType and kind, its properties in the
/// order written, its tags, its content. The nodeType is in the `mt mc cb` vocabulary. In `v0.1` it has
/// the part after the colon; in later editions that part is the kind, unless a property is. Linear in
/// the text.
///
/// # Errors
/// `E_INPUT`: every property that is not a name, `=` and a value, and what is given twice.
pub fn short_node(text: &str, edition: Edition) -> Result<Vec<ShortMember>, Error> {
    let mut reader = ShortReader::default();
    match parse_node(text) {
        Ok(node) => reader.node(&node, edition),
        Err(mistakes) => reader.faults = mistakes.iter().map(|one| form(text, one)).collect(),
    }
    match Error::from_diagnostics(text, reader.faults) {
        Some(error) => Err(error),
        None => Ok(reader.members),
    }
}

fn form(text: &str, error: &SyntaxError) -> Diagnostic {
    let mut diagnostic = error.to_diagnostic();
    diagnostic.code = Some(Code::Input);
    let before = text.get(..error.span.start as usize).unwrap_or_default();
    match &error.mistake {
        Mistake::Unexpected { .. } | Mistake::UnexpectedEnd { .. } | Mistake::Stray(_) => {
            diagnostic.set_help(FORM);
        }
        _ => return diagnostic,
    }
    if before.trim_ascii().is_empty() {
        diagnostic.message = "expected the type of the node, such as `block:text`".to_owned();
    }
    if let Mistake::UnexpectedEnd { .. } = &error.mistake {
        diagnostic.message = diagnostic.message.replace("of the selector", "of the text");
        diagnostic.labels = vec![Label::new(error.span, "the text ends here")];
    }
    diagnostic
}

#[derive(Default)]
struct ShortReader {
    members: Vec<ShortMember>,
    faults: Vec<Diagnostic>,
    tags: Option<(Vec<String>, Span)>,
    /// Where a property has tags.
    tags_prop: Option<Span>,
}

impl ShortReader {
    fn node(&mut self, node: &ShortNode<'_>, edition: Edition) {
        self.check_head(node);
        for part in &node.parts {
            match part {
                Filter::Attrs(attrs) => attrs.node.props.iter().for_each(|prop| self.prop(prop)),
                Filter::Tag(tag) => self.tag(json_text(&tag.node), tag.span),
                // The grammar has no controls here.
                Filter::Control(_) => {}
            }
        }
        self.head(node, edition);
        if let Some((tags, span)) = self.tags.take() {
            self.add("tags", format!("[{}]", tags.join(",")), span);
        }
        if let Some(content) = &node.content {
            self.add("content", json_text(&content.node), content.span);
        }
    }

    fn fault(&mut self, span: Span, message: impl Into<String>, label: &str, help: String) {
        let fault = Diagnostic::error(Code::Input, message);
        self.faults.push(fault.at(span, label).with_help(help));
    }

    fn check_head(&mut self, node: &ShortNode<'_>) {
        let (written, span) = (node.head.node, node.head.span);
        let (head, sub) = split_type(written);
        if !head.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let label = "not a letter at its start";
            let help = "write `block:text`".to_owned();
            self.fault(span, "a type starts with a letter", label, help);
        } else if written.split(':').any(str::is_empty) {
            let label = "a `:` without a word after it";
            let help = format!("write `{head}:text`, or `{head}` alone");
            self.fault(span, "a type has no empty part", label, help);
        } else if let Some(sub) = sub
            && let Some(part) = sub.split(':').find(is_pseudo)
        {
            let message = format!("`:{part}` is a pseudo-class, not a kind");
            let help = format!("write `{head} {{kind={}}}`", quote(sub));
            self.fault(span, message, "a kind belongs here", help);
        }
    }

    /// Puts the nodeType and the kind in front.
    fn head(&mut self, node: &ShortNode<'_>, edition: Edition) {
        let (written, span) = (node.head.node, node.head.span);
        let (head, sub) = split_type(written);
        let has_kind = self.members.iter().any(|member| member.name == "kind");
        let (node_type, kind) = match sub {
            Some(sub) if edition != Edition::V01 && !has_kind => (head, Some(sub)),
            _ => (written, None),
        };
        let kind = kind.map(|kind| member("kind", json_text(kind), span));
        self.members.splice(..0, kind);
        let node_type = json_text(&normal_type(node_type));
        self.members.insert(0, member("nodeType", node_type, span));
    }

    fn prop(&mut self, prop: &Prop<'_>) {
        let (name, span) = (&*prop.name.node.text, prop.name.span);
        let quoted = prop.name.node.quoted;
        if !quoted && !is_name(name) {
            let message = format!("`{name}` is not a name");
            let help = format!("quote it: `{}`", quote(name));
            self.fault(span, message, "a name starts with a letter or `_`", help);
            return;
        }
        if matches!(name, "nodeType" | "type") && !quoted {
            let message = "the type of a node is the word in front";
            let help = "write `block:text {…}`".to_owned();
            self.fault(span, message, "not a property here", help);
            return;
        }
        let Some((op, value)) = &prop.test else {
            let help = match name {
                "ephemeral" => "write `ttl=1`".to_owned(),
                "sticky" => "write `ttl=1, cadence=1`".to_owned(),
                "removable" => "write `removable=true`".to_owned(),
                _ => match name.split_once(':') {
                    Some((name, value)) => format!("write `{name}={}`", quote(value)),
                    None => format!("write `{name}='…'`"),
                },
            };
            let message = format!("expected `=` and a value after `{name}`");
            self.fault(span, message, "the value is missing", help);
            return;
        };
        if op.node != CompareOp::Eq {
            let message = format!("expected `=`, found `{}`", op.node);
            let help = format!("write `{name}={}`", value.node);
            self.fault(op.span, message, "a node has values, not comparisons", help);
            return;
        }
        let (attr, name) = match name {
            _ if quoted => (Attr::from_quoted_name(name), name),
            "tag" => (Attr::Tags, "tags"),
            "cad" => (Attr::Cadence, "cadence"),
            _ => (Attr::from_name(name), name),
        };
        let as_text = matches!(attr.kind(), AttrKind::Text | AttrKind::Tags);
        let (list, values) = match &value.node {
            LiteralSyntax::List(values) => (true, values.as_slice()),
            _ => (false, std::slice::from_ref(value)),
        };
        let json: Option<Vec<String>> = values.iter().map(|one| self.json(one, as_text)).collect();
        let Some(mut json) = json else { return };
        match (attr, &value.node) {
            (Attr::Tags, LiteralSyntax::Word("null" | "None")) => {
                self.add(name, json.concat(), value.span)
            }
            (Attr::Tags, _) => {
                if let Some(first) = self.tags_prop.replace(value.span) {
                    return self.twice("tags", first.into(), value.span);
                }
                self.tags_at(value.span);
                json.drain(..).for_each(|tag| self.tag(tag, value.span));
            }
            _ if list => self.add(name, format!("[{}]", json.join(",")), value.span),
            _ => self.add(name, json.concat(), value.span),
        }
    }

    /// A scalar value as JSON text; of a text header and of tags, numbers are texts as written.
    fn json(&mut self, value: &Spanned<LiteralSyntax<'_>>, as_text: bool) -> Option<String> {
        Some(match &value.node {
            LiteralSyntax::Word("null" | "None") => "null".to_owned(),
            LiteralSyntax::Word(word) if !as_text && matches!(*word, "true" | "false") => {
                (*word).to_owned()
            }
            LiteralSyntax::Int(written) | LiteralSyntax::Decimal(written) if !as_text => {
                number(written)
            }
            LiteralSyntax::Int(text) | LiteralSyntax::Decimal(text) | LiteralSyntax::Word(text) => {
                json_text(text)
            }
            LiteralSyntax::Text(text) => json_text(text),
            LiteralSyntax::Param(name) => {
                let message = format!("`${name}` has no value");
                let help = format!("write the value, or `'${name}'` for that text");
                self.fault(value.span, message, "a node takes no parameters", help);
                return None;
            }
            // Unreachable: the grammar does not nest lists.
            LiteralSyntax::List(_) => return None,
        })
    }

    fn tags_at(&mut self, span: Span) -> &mut Vec<String> {
        let (tags, whole) = self.tags.get_or_insert((Vec::new(), span));
        *whole = whole.to(span);
        tags
    }

    fn tag(&mut self, json: String, span: Span) {
        let tags = self.tags_at(span);
        if !tags.contains(&json) {
            tags.push(json);
        }
    }

    fn twice(&mut self, name: &str, first: Range<usize>, second: Span) {
        let fault = Diagnostic::error(Code::Input, format!("`{name}` is given twice"));
        let fault = fault
            .at(second, "the second one")
            .at(first, "the first one");
        self.faults.push(fault.with_help("leave one of them out"));
    }

    fn add(&mut self, name: &str, json: String, span: Span) {
        if let Some(first) = self.members.iter().find(|member| member.name == name) {
            return self.twice(name, first.span.clone(), span);
        }
        self.members.push(member(name, json, span));
    }
}

/// Whether a part of a type would be read as a pseudo-class, of this language or of CSS.
fn is_pseudo(part: &&str) -> bool {
    [&PLAIN_PSEUDOS[..], &CALLED_PSEUDOS, &FOREIGN_PSEUDOS]
        .iter()
        .any(|words| words.contains(part))
}

fn member(name: &str, json: String, span: Span) -> ShortMember {
    ShortMember {
        name: name.to_owned(),
        json,
        span: span.into(),
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number literal as JSON writes it: without a plus sign and leading zeros.
fn number(written: &str) -> String {
    let digits = written.trim_start_matches(['+', '-']);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (digits, String::new()),
    };
    let sign = if written.starts_with('-') { "-" } else { "" };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    format!("{sign}{whole}{fraction}")
}
