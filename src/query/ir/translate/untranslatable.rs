//! The error of translation, with the place of what cannot be expressed.

use super::construct::Construct;
use super::place::find;
use crate::query::ir::edition::Edition;
use crate::query::ir::query::{Attr, AttrTest};
use crate::query::syntax::{self, Span};
use crate::support::diag::{Code, Diagnostic, Error};

/// Why an edition cannot express a selector (LANGUAGE, the tables of editions).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("edition `{edition}` cannot express {}", self.construct())]
pub struct Untranslatable {
    pub(super) edition: Edition,
    pub(super) construct: Construct,
}

impl Untranslatable {
    /// The edition.
    #[must_use]
    pub fn edition(&self) -> Edition {
        self.edition
    }

    /// The construct that the edition cannot express: "`@limit`", "the facet `age`".
    #[must_use]
    pub fn construct(&self) -> String {
        match &self.construct {
            Construct::WorkingState => "the working state".to_owned(),
            Construct::Control(name) => format!("`@{name}`"),
            Construct::Filter => "a filter of what was picked".to_owned(),
            Construct::Pattern(test) => format!("`{}~`", plain_name(test)),
            Construct::List(test) => format!("a list of values for `{}`", plain_name(test)),
            Construct::Facet(facet) => format!("the facet `{}`", Attr::Facet(*facet).name()),
            Construct::NodeType(test) | Construct::Kind(test) => {
                format!("`{}{}{}`", plain_name(test), test.op, test.operand)
            }
            Construct::Depth => "this set of depths".to_owned(),
            Construct::Pick => "a pick from what would be a union".to_owned(),
            Construct::Order => "this order of rows".to_owned(),
            Construct::Size => "a selector of this size".to_owned(),
            Construct::Unread => "this selector".to_owned(),
        }
    }

    /// The reason, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        let to = self.edition;
        match &self.construct {
            Construct::WorkingState => {
                format!("in `{to}` no time means `@t0`; name a time, such as `@t0`")
            }
            Construct::Control("mode") => format!("a range of `{to}` answers pairwise"),
            Construct::Control(_) => {
                format!("the rows of `{to}` come whole, in their own order")
            }
            Construct::Filter => {
                format!("`{to}` tests nodes in their step, and there before any pick")
            }
            Construct::Pattern(_) => format!("`{to}` compares whole values only"),
            Construct::List(_) => {
                "a node whose own value is a list would have to hold all of them".to_owned()
            }
            Construct::Facet(_) => format!("`{to}` knows stored fields only"),
            Construct::NodeType(test) | Construct::Kind(test) => match (&test.attr, to) {
                (Attr::Kind, _) => format!(
                    "`{to}` reads the stored kind alone, and would pass over a node whose type \
                     holds the kind, such as `cb:call`"
                ),
                (Attr::StoredKind, _) => format!(
                    "`{to}` reads a type such as `cb:call` as the kind `call` where no kind is \
                     stored, and would find such nodes too"
                ),
                (_, Edition::V01) => format!(
                    "`{to}` compares the whole nodeType, and what `$…` will be is not known"
                ),
                _ => format!(
                    "`{to}` also finds nodes whose type starts with it, and what `$…` will be is \
                     not known"
                ),
            },
            Construct::Depth => {
                format!("`{to}` names `^sys`, `^ah` and depths from 1, and no others at this place")
            }
            Construct::Pick => format!(
                "`{to}` would need a union here, and a pick takes from one group, not from several"
            ),
            Construct::Order => "another key would be pinned".to_owned(),
            Construct::Size => {
                format!("written in `{to}`, it has more groups or steps than a selector may have")
            }
            Construct::Unread => format!("`{to}` would read its text as something else"),
        }
    }

    /// The oldest edition that can express it; `None` if no single construct is the cause.
    #[must_use]
    pub fn since(&self) -> Option<Edition> {
        match &self.construct {
            Construct::WorkingState | Construct::Facet(_) | Construct::Depth => {
                Some(Edition::Depth)
            }
            Construct::Control("mode") => Some(Edition::Depth),
            Construct::Kind(test) | Construct::NodeType(test)
                if matches!(test.attr, Attr::Kind | Attr::NodeType) =>
            {
                Some(Edition::Depth)
            }
            Construct::Pick | Construct::Size | Construct::Unread => None,
            _ => Some(Edition::Canonical),
        }
    }

    /// The error about `text`, the selector as written.
    pub(in crate::query::ir) fn error(&self, text: &str) -> Error {
        let selector = syntax::parse(text).ok();
        let span = selector.and_then(|selector| find(&selector, &self.construct));
        let span = span.unwrap_or_else(|| whole(text));
        let label = match (&self.construct, self.since()) {
            (Construct::WorkingState, _) => "no time is written here".to_owned(),
            (_, Some(since)) => format!("edition `{since}` has it"),
            (_, None) => String::new(),
        };
        let error = Diagnostic::error(Code::Edition, self.to_string()).at(span, label);
        Error::new(text, error.with_help(self.reason()))
    }
}

/// The name of an attribute, `nodeType` and `kind` for the stored fields.
fn plain_name(test: &AttrTest) -> &str {
    match &test.attr {
        Attr::StoredType => "nodeType",
        Attr::StoredKind => "kind",
        attr => attr.name(),
    }
}

/// The span of the text without the white space around it.
fn whole(text: &str) -> Span {
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len().max(start);
    // Texts that parse are at most 64 KiB long.
    Span::new(
        u32::try_from(start).unwrap_or_default(),
        u32::try_from(end).unwrap_or_default(),
    )
}
