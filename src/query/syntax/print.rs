//! Prints the parts of syntax trees that messages name. The text parses back to an equal part.

use std::fmt::{self, Display, Formatter};

use super::ast::{
    AttrName, Attrs, Brackets, CompareOp, Control, DepthItem, Hop, HopHead, HopPart, LiteralSyntax,
    Prop, TimePoint, TimeSyntax,
};
use super::span::Spanned;
use super::words::quote;

pub(in crate::query) fn joined<T: Display>(
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

impl Display for TimeSyntax {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(point) => point.fmt(f),
            Self::Range(ends) => write!(f, "{}..{}", ends.0, ends.1),
            Self::History => f.write_str("@history"),
        }
    }
}

impl Display for TimePoint {
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

impl Display for CompareOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Matches => "~",
        })
    }
}

impl Display for DepthItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(depth) => depth.fmt(f),
            Self::Range(low, high) => write!(f, "{low}..{high}"),
            Self::Compare(op, depth) => write!(f, "{op}{depth}"),
            Self::Set(depths) => {
                f.write_str("{")?;
                joined(f, depths, ",")?;
                f.write_str("}")
            }
        }
    }
}

impl Display for Attrs<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (open, close) = match self.form {
            Brackets::Bracket => ("[", "]"),
            Brackets::Group => ("(", ")"),
            Brackets::Brace => ("{", "}"),
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
            Some((op, value)) => write!(f, "{op}{value}"),
            None => Ok(()),
        }
    }
}

impl Display for AttrName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.quoted {
            f.write_str(&quote(&self.text))
        } else {
            f.write_str(&self.text)
        }
    }
}

impl Display for LiteralSyntax<'_> {
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

impl Display for Control<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.name)?;
        match &self.value {
            Some(value) => write!(f, "={value}"),
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
            HopHead::Depth(items) => {
                f.write_str("depth(")?;
                joined(f, items, ",")?;
                f.write_str(")")?;
            }
            HopHead::Search => f.write_str("?")?,
        }
        let mut after_word = !matches!(self.head, HopHead::Star);
        for part in &self.parts {
            match &part.node {
                HopPart::Sub(name) => write!(f, ".{name}")?,
                // The space keeps the class from lengthening a word before it. Lowering refuses it.
                HopPart::Class(name) if after_word => write!(f, " {name}")?,
                HopPart::Class(name) => f.write_str(name)?,
                HopPart::Attrs(attrs) => attrs.fmt(f)?,
            }
            after_word = !matches!(part.node, HopPart::Attrs(_));
        }
        Ok(())
    }
}
