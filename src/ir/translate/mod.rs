//! Translation: a normalized selector written down in the words of one edition.
//!
//! A [`Query`] knows no edition, so translating is printing it in another one's words. Where an
//! edition lacks the words, [`express`] first looks for an equal meaning that it has words for
//! (a filter moves into the step it filters, a list becomes a union, `depth(1)` a turn under
//! `^seq`); what has none is refused by name. Whatever is printed is read back, and it is
//! given out only if it reads as the query that was meant.
//!
//! Nothing here knows data: "equal" means equal over every session, whatever its nodes hold.

mod alternatives;
mod attrs;
mod depths;
mod express;
mod place;
mod spell;

use std::fmt;

use crate::diag::{Code, Diagnostic, Error};
use crate::syntax::{self, Span};

use super::lower::{self, compile};
use super::{Attr, AttrTest, Edition, Facet, Query};

/// Why a selector has no words in an edition (LANGUAGE, the tables of editions).
#[derive(Clone, Debug, PartialEq)]
pub struct Untranslatable {
    edition: Edition,
    construct: Construct,
}

/// What has no words in an edition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Construct {
    /// The working state.
    WorkingState,
    /// A control, by its name.
    Control(&'static str),
    /// A filter of the final set behind a pick.
    Filter,
    /// `~`
    Pattern(AttrTest),
    /// A list of values.
    List(AttrTest),
    /// A derived facet.
    Facet(Facet),
    /// A test of the nodeType that the edition reads in another way.
    NodeType(AttrTest),
    /// A test of the kind that the edition reads in another way.
    Kind(AttrTest),
    /// A set of depths.
    Depth,
    /// A step that would become several, before or in a pick.
    Pick,
    /// The order of the rows would be another.
    Order,
    /// More groups, steps or bytes than a selector may have.
    Size,
    /// What was printed did not read back as what was meant.
    Unread,
}

impl Untranslatable {
    /// The edition that has no words for it.
    #[must_use]
    pub fn edition(&self) -> Edition {
        self.edition
    }

    /// What the edition has no words for: "`@limit`", "the facet `age`".
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

    /// Why, in one line.
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

    /// The oldest edition that has words for it; none where that is no single construct.
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

    /// The error about `text`, which was written in `from`.
    fn error(&self, text: &str, from: Edition) -> Error {
        let span = match syntax::parse(text) {
            Ok(selector) => place::find(&selector, &self.construct, from),
            Err(_) => None,
        };
        let span = span.unwrap_or_else(|| whole(text));
        let label = match (&self.construct, self.since()) {
            (Construct::WorkingState, _) => "no time is written here".to_owned(),
            (_, Some(since)) => format!("edition `{since}` has it"),
            (_, None) => String::new(),
        };
        let range: std::ops::Range<usize> = span.into();
        let message = self.to_string();
        let diagnostic = Diagnostic::error(Code::Edition, message)
            .at(range, label)
            .with_help(self.reason());
        Error::new(text, diagnostic)
    }
}

/// The name of an attribute as its edition writes it.
fn plain_name(test: &AttrTest) -> &str {
    match &test.attr {
        Attr::StoredType => "nodeType",
        Attr::StoredKind => "kind",
        attr => attr.name(),
    }
}

/// The text without the white space around it.
fn whole(text: &str) -> Span {
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len().max(start);
    // Texts that were read are under 64 KiB.
    Span::new(
        u32::try_from(start).unwrap_or_default(),
        u32::try_from(end).unwrap_or_default(),
    )
}

impl fmt::Display for Untranslatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cannot be said in edition `{}`",
            self.construct(),
            self.edition
        )
    }
}

impl std::error::Error for Untranslatable {}

impl Query {
    /// The query as a text of `edition`: one that means the same over every session, and that
    /// was read back to make sure. In the canonical edition that is the canonical text, which
    /// every query has.
    ///
    /// Linear in the query, but for unions that take the place of lists, of mixed depths and of
    /// types with a kind; they have as many groups as these have members, within the limits of
    /// LANGUAGE §10.
    ///
    /// # Errors
    /// What the edition has no words for, the first that was found.
    pub fn text_in(&self, edition: Edition) -> Result<String, Untranslatable> {
        let fail = |construct| Untranslatable { edition, construct };
        if edition == Edition::Canonical {
            return Ok(self.canonical_text());
        }
        let expressed = express::express(self, edition).map_err(fail)?;
        let text = spell::query(&expressed, edition);
        if text.len() > syntax::MAX_BYTES {
            return Err(fail(Construct::Size));
        }
        match lower::read(&text, edition) {
            Some(read) if read == expressed => Ok(text),
            _ => Err(fail(Construct::Unread)),
        }
    }
}

/// `text`, a selector of `from`, as a selector of `to` that means the same over every session
/// (LANGUAGE, the tables of editions). See [`Query::text_in`].
///
/// # Errors
/// Every mistake of the selector; or an `E_EDITION` at what `to` has no words for, with the
/// reason.
pub fn translate(text: &str, from: Edition, to: Edition) -> Result<String, Error> {
    let lowered = compile(text, from)?;
    lowered
        .query
        .text_in(to)
        .map_err(|reason| reason.error(text, from))
}
