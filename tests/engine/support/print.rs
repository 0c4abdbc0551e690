//! Prints syntax trees, so that what the parser reads can be read again.

use pactql::internals::syntax::ast::{
    Axis, DepthItem, Filter, GroupSyntax, InnerSyntax, Nth, PositionSyntax, SearchKind,
    SearchSyntax, Selector, SelectorBody, ShortNode, StepPart, WordOrParam,
};
use pactql::internals::syntax::{Spanned, quote};

/// A selector whose text parses back to an equal tree.
pub(crate) fn selector(selector: &Selector<'_>) -> String {
    let time = selector.time.iter().map(|time| time.to_string());
    let body = (selector.body != SelectorBody::Empty).then(|| body(&selector.body));
    let filters = selector.filters.iter().map(filter);
    joined(time.chain(body).chain(filters), " ")
}

/// The short form of a node, likewise.
pub(crate) fn node(node: &ShortNode<'_>) -> String {
    let head = std::iter::once(node.head.node.to_owned());
    let content = node.content.iter().map(|content| quote(&content.node));
    joined(
        head.chain(node.parts.iter().map(filter)).chain(content),
        " ",
    )
}

fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().collect::<Vec<_>>().join(between)
}

fn body(body: &SelectorBody<'_>) -> String {
    match body {
        SelectorBody::Empty => String::new(),
        SelectorBody::Nothing(_) => "none".to_owned(),
        SelectorBody::Union(groups) => joined(groups.iter().map(group), ", "),
        SelectorBody::Position(position) => format!("({})", hops(position)),
        SelectorBody::Search(of) => search(of),
    }
}

fn group(group: &GroupSyntax<'_>) -> String {
    let mut text = String::new();
    for (index, (combinator, step)) in group.steps.iter().enumerate() {
        text.push_str(match combinator {
            _ if index == 0 => "",
            Axis::Descendant => " ",
            Axis::Child => " > ",
        });
        text.extend(step.parts.iter().map(|part| step_part(&part.node)));
    }
    text
}

fn step_part(part: &StepPart<'_>) -> String {
    match part {
        StepPart::Root(name) => format!("^{name}"),
        StepPart::Star => "*".to_owned(),
        StepPart::Type(name) => format!(".{name}"),
        StepPart::Key(WordOrParam::Text(text)) => format!("#{}", quote(text)),
        StepPart::Key(WordOrParam::Param(name)) => format!("#${name}"),
        StepPart::Attrs(attrs) => attrs.to_string(),
        StepPart::Tag(tag) => format!("+{}", quote(tag)),
        StepPart::Anchor(items) => format!("depth({})", depths(items)),
        StepPart::Pseudo(name) => format!(":{name}"),
        StepPart::Depth(items) => format!(":depth({})", depths(items)),
        StepPart::Nth(nth) => match nth.node {
            Nth::Number(number) => format!(":nth({number})"),
            Nth::Param(name) => format!(":nth(${name})"),
        },
        StepPart::Condition(condition) => {
            let list = condition.list.iter().map(|inner| match inner {
                InnerSyntax::Group(Axis::Child, of) => format!("> {}", group(of)),
                InnerSyntax::Group(Axis::Descendant, of) => group(of),
                InnerSyntax::Within(number) => format!("within={}", number.node),
            });
            format!(":{}({})", condition.name, joined(list, ", "))
        }
    }
}

fn depths(items: &[Spanned<DepthItem>]) -> String {
    joined(items.iter().map(ToString::to_string), ",")
}

fn filter(filter: &Filter<'_>) -> String {
    match filter {
        Filter::Attrs(attrs) => attrs.to_string(),
        Filter::Tag(tag) => format!("+{}", quote(&tag.node)),
        Filter::Control(control) => control.to_string(),
    }
}

fn hops(position: &PositionSyntax<'_>) -> String {
    let comma = position.trailing_comma.map_or("", |_| ",");
    let hops = joined(position.hops.iter().map(ToString::to_string), ", ");
    format!("{hops}{comma}")
}

fn search(search: &SearchSyntax<'_>) -> String {
    let sign = match search.kind {
        SearchKind::Leading => "",
        SearchKind::Shallow => "? ",
        SearchKind::Deep | SearchKind::Within => "?? ",
    };
    let scope = match (&search.scope, search.kind) {
        (Some(scope), SearchKind::Within) => format!("within({}) ", hops(scope)),
        (Some(scope), _) => format!("({}) ", hops(scope)),
        (None, _) => String::new(),
    };
    format!("{scope}{sign}{}", search.attrs)
}
