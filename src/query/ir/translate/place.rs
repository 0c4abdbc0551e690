//! Finds the place of a construct in the selector as written.

use super::construct::Construct;
use crate::query::ir::query::{Attr, AttrTest, Op};
use crate::query::syntax::ast::{
    Attrs, Body, Filter, Group, Hop, HopHead, HopPart, Part, Prop, Selector, Step, Value,
};
use crate::query::syntax::{Span, Spanned};

/// The first place of `construct`; `None` if that is the whole selector.
pub(super) fn find(selector: &Selector<'_>, construct: &Construct) -> Option<Span> {
    match construct {
        Construct::Control(name) => control(selector, name),
        Construct::Filter => filter(selector),
        Construct::Pattern(test)
        | Construct::List(test)
        | Construct::NodeType(test)
        | Construct::Kind(test) => prop(selector, test).or_else(|| typed(selector, &test.attr)),
        Construct::Facet(facet) => {
            let wanted = Attr::Facet(*facet);
            let of_facet = |prop: &&Prop<'_>| attr_of(prop) == wanted;
            props(selector).into_iter().find(of_facet).map(Prop::span)
        }
        Construct::Depth => depth(selector),
        Construct::Pick => steps(selector).into_iter().find_map(|step| {
            part_span(step, |part| {
                matches!(part, Part::Pseudo("first" | "last") | Part::Nth(_))
            })
        }),
        Construct::WorkingState | Construct::Order | Construct::Size | Construct::Unread => None,
    }
}

fn control(selector: &Selector<'_>, name: &str) -> Option<Span> {
    selector.filters.iter().find_map(|filter| match filter {
        Filter::Control(control)
            if control.name.node == name || name == "limit" && control.name.node == "first" =>
        {
            Some(control.span())
        }
        _ => None,
    })
}

fn filter(selector: &Selector<'_>) -> Option<Span> {
    let written = selector.filters.iter().find_map(|filter| match filter {
        Filter::Attrs(attrs) => Some(attrs.span),
        Filter::Tag(tag) => Some(tag.span),
        Filter::Control(_) => None,
    });
    // After a shorthand search, brackets are parsed as a step.
    written.or_else(|| match &selector.body {
        Body::Union(groups) => match groups.as_slice() {
            [group] => group.steps.get(1).map(|(_, step)| step.span),
            _ => None,
        },
        _ => None,
    })
}

fn groups<'a, 's>(selector: &'a Selector<'s>) -> &'a [Group<'s>] {
    match &selector.body {
        Body::Union(groups) => groups,
        _ => &[],
    }
}

fn steps<'a, 's>(selector: &'a Selector<'s>) -> Vec<&'a Step<'s>> {
    let steps = groups(selector).iter().flat_map(|group| &group.steps);
    steps.map(|(_, step)| step).collect()
}

fn hops<'a, 's>(selector: &'a Selector<'s>) -> &'a [Hop<'s>] {
    match &selector.body {
        Body::Position(position) => &position.hops,
        Body::Search(search) => search.scope.as_ref().map_or(&[], |scope| &scope.hops),
        _ => &[],
    }
}

/// All properties, in the order written.
fn props<'a, 's>(selector: &'a Selector<'s>) -> Vec<&'a Prop<'s>> {
    let mut lists: Vec<&Attrs<'_>> = Vec::new();
    for step in steps(selector) {
        lists.extend(step.parts.iter().filter_map(|part| match &part.node {
            Part::Attrs(attrs) => Some(attrs),
            _ => None,
        }));
    }
    for hop in hops(selector) {
        lists.extend(hop.parts.iter().filter_map(|part| match &part.node {
            HopPart::Attrs(attrs) => Some(attrs),
            _ => None,
        }));
    }
    if let Body::Search(search) = &selector.body {
        lists.push(&search.attrs.node);
    }
    lists.extend(selector.filters.iter().filter_map(|filter| match filter {
        Filter::Attrs(attrs) => Some(&attrs.node),
        _ => None,
    }));
    lists.into_iter().flat_map(|attrs| &attrs.props).collect()
}

/// The attribute of a property, without the distinction of stored fields.
fn attr_of(prop: &Prop<'_>) -> Attr {
    let name = &prop.name.node;
    if name.quoted {
        Attr::from_quoted_name(&name.text)
    } else {
        Attr::from_name(&name.text)
    }
}

/// Maps stored fields to the fields that later editions read.
fn either(attr: &Attr) -> &Attr {
    match attr {
        Attr::StoredType => &Attr::NodeType,
        Attr::StoredKind => &Attr::Kind,
        attr => attr,
    }
}

/// The property that became `test`: one with its attribute and comparison, if possible a list or
/// a pattern.
fn prop(selector: &Selector<'_>, test: &AttrTest) -> Option<Span> {
    let fits = |prop: &&Prop<'_>| {
        let attr = attr_of(prop);
        if either(&attr) != either(&test.attr) {
            return false;
        }
        match &prop.test {
            None => test.op == Op::Ne,
            Some((op, _)) => Op::from(op.node) == test.op,
        }
    };
    let all = props(selector);
    let of_list = |prop: &&Prop<'_>| {
        let list = matches!(&prop.test, Some((_, value)) if matches!(value.node, Value::List(_)));
        let searched = matches!(&prop.test, Some((op, _)) if Op::from(op.node) == Op::Matches);
        list || searched
    };
    let mut fitting = all.iter().copied().filter(fits);
    let first = fitting.next()?;
    let best = std::iter::once(first).chain(fitting).find(of_list);
    Some(best.unwrap_or(first).span())
}

/// The type that tests a nodeType or a kind.
fn typed(selector: &Selector<'_>, attr: &Attr) -> Option<Span> {
    let kind = matches!(attr, Attr::Kind | Attr::StoredKind);
    let in_steps = steps(selector).into_iter().find_map(|step| {
        part_span(
            step,
            |part| matches!(part, Part::Type(word) if word.contains(':') || !kind),
        )
    });
    let in_hop = |hop: &&Hop<'_>| {
        let subs =
            |part: &Spanned<HopPart<'_>>| matches!(part.node, HopPart::Sub(_) | HopPart::Class(_));
        hop.parts.iter().any(subs) || matches!(&hop.head, HopHead::Word(word) if word.contains(':'))
    };
    in_steps.or_else(|| hops(selector).iter().find(in_hop).map(|hop| hop.span))
}

/// The first depth expression or region.
fn depth(selector: &Selector<'_>) -> Option<Span> {
    let in_steps = steps(selector).into_iter().find_map(|step| {
        let depth = part_span(step, |part| {
            matches!(part, Part::Anchor(_) | Part::Depth(_))
        });
        let region = |part: &Part<'_>| matches!(part, Part::Root("seq" | "ah" | "sys"));
        depth.or_else(|| part_span(step, region))
    });
    in_steps.or_else(|| hops(selector).first().map(|hop| hop.span))
}

/// The span of the first part that is `wanted`.
fn part_span(step: &Step<'_>, wanted: impl Fn(&Part<'_>) -> bool) -> Option<Span> {
    let part = step.parts.iter().find(|part| wanted(&part.node))?;
    Some(part.span)
}
