//! Finds what has no words in the text it was written in.

use crate::syntax::Span;
use crate::syntax::ast::{
    Attrs, Body, Filter, Group, Hop, HopHead, HopPart, Op as AstOp, Part, Prop, Selector, Step,
    Value,
};

use super::super::{Attr, AttrTest, Edition, Op};
use super::Construct;

/// The first place of `construct` in a selector of `edition`; `None` where it is the selector as
/// a whole.
pub(super) fn find(
    selector: &Selector<'_>,
    construct: &Construct,
    edition: Edition,
) -> Option<Span> {
    match construct {
        Construct::Control(name) => control(selector, name),
        Construct::Filter => filter(selector),
        Construct::Pattern(test)
        | Construct::List(test)
        | Construct::NodeType(test)
        | Construct::Kind(test) => {
            prop(selector, test).or_else(|| typed(selector, &test.attr, edition))
        }
        Construct::Facet(facet) => {
            let wanted = Attr::Facet(*facet);
            let of_facet = |prop: &&Prop<'_>| attr_of(prop) == wanted;
            props(selector).into_iter().find(of_facet).map(Prop::span)
        }
        Construct::Depth => depth(selector),
        Construct::Pick => steps(selector).into_iter().find_map(|step| {
            let pick = |part: &&crate::syntax::Spanned<Part<'_>>| {
                matches!(part.node, Part::Pseudo("first" | "last") | Part::Nth(_))
            };
            step.parts.iter().find(pick).map(|part| part.span)
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
    // Behind a search, brackets look like a step.
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

/// Every property, in the order written.
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

/// What a property compares, whichever field of it the edition reads.
fn attr_of(prop: &Prop<'_>) -> Attr {
    let name = &prop.name.node;
    if name.quoted {
        Attr::from_quoted_name(&name.text)
    } else {
        Attr::from_name(&name.text)
    }
}

/// One reading for both.
fn either(attr: &Attr) -> &Attr {
    match attr {
        Attr::StoredType => &Attr::NodeType,
        Attr::StoredKind => &Attr::Kind,
        attr => attr,
    }
}

/// The property that became `test`: the attribute, the comparison, and a list for a list.
fn prop(selector: &Selector<'_>, test: &AttrTest) -> Option<Span> {
    let fits = |prop: &&Prop<'_>| {
        let attr = attr_of(prop);
        if either(&attr) != either(&test.attr) {
            return false;
        }
        match &prop.test {
            None => test.op == Op::Ne,
            Some((op, _)) => op.node.as_str() == test.op.to_string(),
        }
    };
    let all = props(selector);
    let of_list = |prop: &&Prop<'_>| {
        let list = matches!(&prop.test, Some((_, value)) if matches!(value.node, Value::List(_)));
        let searched = matches!(&prop.test, Some((op, _)) if op.node == AstOp::Matches);
        list || searched
    };
    let mut fitting = all.iter().copied().filter(fits);
    let first = fitting.next()?;
    let best = std::iter::once(first).chain(fitting).find(of_list);
    Some(best.unwrap_or(first).span())
}

/// The type word that tests a nodeType or a kind.
fn typed(selector: &Selector<'_>, attr: &Attr, _: Edition) -> Option<Span> {
    let kind = matches!(attr, Attr::Kind | Attr::StoredKind);
    for step in steps(selector) {
        for part in &step.parts {
            if let Part::Type(word) = part.node
                && (word.contains(':') || !kind)
            {
                return Some(part.span);
            }
        }
    }
    hops(selector)
        .iter()
        .find(|hop| {
            let subs = |part: &crate::syntax::Spanned<HopPart<'_>>| {
                matches!(part.node, HopPart::Sub(_) | HopPart::Class(_))
            };
            hop.parts.iter().any(subs)
                || matches!(&hop.head, HopHead::Word(word) if word.contains(':'))
        })
        .map(|hop| hop.span)
}

/// The first depth that is more than a region's name and more than a turn's number.
fn depth(selector: &Selector<'_>) -> Option<Span> {
    let in_steps = steps(selector).into_iter().find_map(|step| {
        let depth = |part: &&crate::syntax::Spanned<Part<'_>>| {
            matches!(part.node, Part::Anchor(_) | Part::Depth(_))
        };
        let seq = |part: &&crate::syntax::Spanned<Part<'_>>| {
            matches!(part.node, Part::Root("seq" | "ah" | "sys"))
        };
        let parts = || step.parts.iter();
        parts()
            .find(depth)
            .or_else(|| parts().find(seq))
            .map(|part| part.span)
    });
    in_steps.or_else(|| hops(selector).first().map(|hop| hop.span))
}
