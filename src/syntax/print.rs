//! Prints syntax trees as text that parses back to an equal tree.

use std::fmt::{self, Display, Formatter};

use super::ast::{
    Attrs, Body, Combinator, Control, DepthItem, Filter, Form, Group, Hop, HopHead, HopPart, Name,
    Nth, Part, Point, Position, Prop, Search, SearchKind, Selector, Step, Time, Value, Word,
};
use super::lex;
use super::span::Spanned;

/// `text` in single quotes, with quotes and backslashes escaped.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}

/// `text` for a message: control characters as escapes, everything else as it is.
pub(super) fn quote_word(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            let escape = character.is_control();
            let escaped = escape.then(|| character.escape_default());
            escaped
                .into_iter()
                .flatten()
                .chain((!escape).then_some(character))
        })
        .collect()
}

/// Whether `name` can stand as an attribute name without quotes: a letter or `_`, then letters,
/// digits, `_ - :`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| lex::is_word_char(c) || c == ':')
}

fn joined<T: Display>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    between: &str,
) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

impl<T: Display> Display for Spanned<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl Display for Selector<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut empty = true;
        if let Some(time) = &self.time {
            time.fmt(f)?;
            empty = false;
        }
        if self.body != Body::Empty {
            if !empty {
                f.write_str(" ")?;
            }
            self.body.fmt(f)?;
            empty = false;
        }
        for filter in &self.filters {
            if !empty {
                f.write_str(" ")?;
            }
            filter.fmt(f)?;
            empty = false;
        }
        Ok(())
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(point) => point.fmt(f),
            Self::Range(ends) => write!(f, "{}..{}", ends.0, ends.1),
            Self::History => f.write_str("@history"),
        }
    }
}

impl Display for Point {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Back(0) => f.write_str("@t0"),
            Self::Back(commits) => write!(f, "@t-{commits}"),
            Self::Ahead(commits) => write!(f, "@t{commits}"),
            Self::Oldest => f.write_str("@t-*"),
            Self::Cycle(cycle) => write!(f, "@c{cycle}"),
            Self::All => f.write_str("@*"),
            Self::Wild(kind) => write!(f, "@{kind}*"),
        }
    }
}

impl Display for Body<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => Ok(()),
            Self::Nothing(_) => f.write_str("none"),
            Self::Union(groups) => joined(f, groups, ", "),
            Self::Position(position) => position.fmt(f),
            Self::Search(search) => search.fmt(f),
        }
    }
}

impl Display for Group<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, (combinator, step)) in self.steps.iter().enumerate() {
            if index > 0 {
                f.write_str(match combinator {
                    Combinator::Descendant => " ",
                    Combinator::Child => " > ",
                })?;
            }
            step.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Step<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        joined(f, &self.parts, "")
    }
}

impl Display for Part<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => write!(f, "^{name}"),
            Self::Star => f.write_str("*"),
            Self::Type(name) => write!(f, ".{name}"),
            Self::Key(word) => write!(f, "#{word}"),
            Self::Attrs(attrs) => attrs.fmt(f),
            Self::Tag(tag) => write_tag(f, tag),
            Self::Anchor(items) => write_depths(f, "depth", items),
            Self::Pseudo(name) => write!(f, ":{name}"),
            Self::Depth(items) => write_depths(f, ":depth", items),
            Self::Nth(nth) => write!(f, ":nth({nth})"),
        }
    }
}

fn write_tag(f: &mut Formatter<'_>, tag: &str) -> fmt::Result {
    if !tag.is_empty() && tag.chars().all(lex::is_word_char) {
        write!(f, "+{tag}")
    } else {
        write!(f, "+{}", quote(tag))
    }
}

fn write_depths(f: &mut Formatter<'_>, name: &str, items: &[Spanned<DepthItem>]) -> fmt::Result {
    write!(f, "{name}(")?;
    joined(f, items, ",")?;
    f.write_str(")")
}

impl Display for DepthItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(depth) => depth.fmt(f),
            Self::Range(low, high) => write!(f, "{low}..{high}"),
            Self::Compare(op, depth) => write!(f, "{}{depth}", op.as_str()),
            Self::Set(depths) => {
                f.write_str("{")?;
                joined(f, depths, ",")?;
                f.write_str("}")
            }
        }
    }
}

impl Display for Nth<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Param(name) => write!(f, "${name}"),
        }
    }
}

impl Display for Word<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) if lex::is_plain_word(text) => f.write_str(text),
            Self::Text(text) => f.write_str(&quote(text)),
            Self::Param(name) => write!(f, "${name}"),
        }
    }
}

impl Display for Attrs<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (open, close) = match self.form {
            Form::Bracket => ("[", "]"),
            Form::Group => ("(", ")"),
            Form::Brace => ("{", "}"),
        };
        f.write_str(open)?;
        joined(f, &self.props, ", ")?;
        f.write_str(close)
    }
}

impl Display for Prop<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        match &self.test {
            Some((op, value)) => write!(f, "{}{value}", op.node.as_str()),
            None => Ok(()),
        }
    }
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.quoted {
            f.write_str(&quote(&self.text))
        } else {
            f.write_str(&self.text)
        }
    }
}

impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(text) | Self::Decimal(text) | Self::Word(text) => f.write_str(text),
            Self::Text(text) => f.write_str(&quote(text)),
            Self::Param(name) => write!(f, "${name}"),
            Self::List(values) => {
                f.write_str("[")?;
                joined(f, values, ", ")?;
                f.write_str("]")
            }
        }
    }
}

impl Display for Filter<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attrs(attrs) => attrs.fmt(f),
            Self::Tag(tag) => write_tag(f, &tag.node),
            Self::Control(control) => control.fmt(f),
        }
    }
}

impl Display for Control<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.name)?;
        match &self.value {
            Some(value) => write!(f, "={value}"),
            None => Ok(()),
        }
    }
}

impl Display for Position<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        self.write_hops(f)?;
        f.write_str(")")
    }
}

impl Position<'_> {
    fn write_hops(&self, f: &mut Formatter<'_>) -> fmt::Result {
        joined(f, &self.hops, ", ")?;
        match self.trailing_comma {
            Some(_) => f.write_str(","),
            None => Ok(()),
        }
    }
}

impl Display for Hop<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.head {
            HopHead::Word(word) | HopHead::Int(word) => f.write_str(word)?,
            HopHead::Star => f.write_str("*")?,
            HopHead::Range(low, high) => write!(f, "{low}..{high}")?,
            HopHead::Depth(items) => write_depths(f, "depth", items)?,
            HopHead::Search => f.write_str("?")?,
        }
        for part in &self.parts {
            match &part.node {
                HopPart::Sub(name) => write!(f, ".{name}")?,
                // A space keeps it apart from a word it would otherwise lengthen.
                HopPart::Class(name) => write!(f, " {name}")?,
                HopPart::Attrs(attrs) => attrs.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl Display for Search<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.scope) {
            (SearchKind::Within, Some(scope)) => {
                f.write_str("within(")?;
                scope.write_hops(f)?;
                f.write_str(") ?? ")?;
            }
            (kind, scope) => {
                if let Some(scope) = scope {
                    write!(f, "{scope} ")?;
                }
                f.write_str(match kind {
                    SearchKind::Leading => "",
                    SearchKind::Shallow => "? ",
                    SearchKind::Deep | SearchKind::Within => "?? ",
                })?;
            }
        }
        self.attrs.fmt(f)
    }
}
