//! The error and warning types of the public API, and the JSON form of errors.

use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

use super::code::Code;
use super::diagnostic::{Diagnostic, Label, Severity, shorten};
use super::render::{ColorChoice, SELECTOR, render_diagnostic, render_named};

/// Why a selector was refused: its text and at least one diagnostic, leftmost first.
///
/// ```
/// let text = "@t0 .cb[ttl=";
/// let error = pactql::Engine::new().check(text).unwrap_err();
/// assert_eq!(error.code(), pactql::Code::SelectorInvalid);
/// println!("{}", error.to_text(pactql::ColorChoice::Always));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", self.code(), self.message())]
pub struct Error {
    text: Box<str>,
    first: Box<Diagnostic>,
    rest: Vec<Diagnostic>,
    /// The file that has the text.
    file: Option<Box<str>>,
}

impl Error {
    /// An error with one diagnostic about `text`.
    #[doc(hidden)]
    pub fn new(text: &str, diagnostic: Diagnostic) -> Self {
        Self {
            text: text.into(),
            first: Box::new(diagnostic),
            rest: Vec::new(),
            file: None,
        }
    }

    /// An error about all of `text`.
    pub(crate) fn whole(code: Code, text: &str, message: impl Into<String>) -> Self {
        let diagnostic = Diagnostic::error(code, message);
        Self::new(text, diagnostic.at(0..text.len(), ""))
    }

    /// An error with all of `diagnostics`, sorted by place; `None` if there are none.
    #[doc(hidden)]
    #[must_use]
    pub fn from_diagnostics(text: &str, mut diagnostics: Vec<Diagnostic>) -> Option<Self> {
        // A stable sort: diagnostics about one place keep their order.
        diagnostics.sort_by_key(Diagnostic::start);
        diagnostics.dedup();
        let mut diagnostics = diagnostics.into_iter();
        let first = Box::new(diagnostics.next()?);
        Some(Self {
            text: text.into(),
            first,
            rest: diagnostics.collect(),
            file: None,
        })
    }

    /// The error with advice, in the place of any it had.
    #[must_use]
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.first.help = Some(help.into());
        self
    }

    /// The error with the name of the file whose text this is, which is shown with the places.
    #[must_use]
    pub(crate) fn in_file(mut self, name: &str) -> Self {
        self.file = Some(name.into());
        self
    }

    /// The code of the first diagnostic.
    pub fn code(&self) -> Code {
        self.first.code.unwrap_or(Code::SelectorInvalid)
    }

    /// The message of the first diagnostic.
    pub fn message(&self) -> &str {
        &self.first.message
    }

    /// The first diagnostic, which is the leftmost.
    pub fn first(&self) -> &Diagnostic {
        &self.first
    }

    /// All diagnostics, leftmost first; at least one.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        std::iter::once(&*self.first).chain(&self.rest)
    }

    /// The text the spans point into.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All diagnostics as text with underlined places, each ending in a newline.
    pub fn to_text(&self, color: ColorChoice) -> String {
        let mut out = String::new();
        for diagnostic in self.diagnostics() {
            let name = self.file.as_deref().unwrap_or(SELECTOR);
            out.push_str(&render_named(name, &self.text, diagnostic, color));
        }
        out
    }

    /// The error as a JSON value (RUNTIME §7). Serialize the error itself to keep the order of
    /// the members.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The picture of [`Error::to_text`], which is what a `main` that returns the error prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_text(ColorChoice::Never).trim_end())
    }
}

/// A remark on a selector that was answered. Example: [`CheckReport`](crate::explain::CheckReport).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// One line, lower case, no full stop.
    pub message: String,
    /// The places, the main one first; may be empty.
    pub labels: Vec<Label>,
    /// What to write instead.
    pub help: Option<String>,
}

impl Warning {
    /// A warning without labels or help.
    #[doc(hidden)]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: shorten(message.into()),
            labels: Vec::new(),
            help: None,
        }
    }

    /// Adds a place. The first is the main one.
    #[doc(hidden)]
    #[must_use]
    pub fn at(mut self, span: impl Into<Range<usize>>, message: impl Into<String>) -> Self {
        self.labels.push(Label::new(span, message));
        self
    }

    /// Sets the help text.
    #[doc(hidden)]
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(shorten(help.into()));
        self
    }

    /// The warning as text with underlined places of `text`; ends in a newline.
    pub fn to_text(&self, text: &str, color: ColorChoice) -> String {
        let warning = Diagnostic {
            severity: Severity::Warning,
            code: None,
            labels: self.labels.clone(),
            help: self.help.clone(),
            ..Diagnostic::error(Code::SelectorInvalid, self.message.as_str())
        };
        render_diagnostic(text, &warning, color)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// `{"error":{"code","message","spans":[{"start","end","label"}],"help"}}` (RUNTIME §7), members
/// in this order. `spans` are byte offsets, and `help` may be absent. After it comes `correction`,
/// the whole selector corrected, where that is known. Further diagnostics follow as `"more"`, in
/// the same form, and as `"file"` the file whose text it is, where it is one.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Diagnostics<'a> {
            #[serde(flatten)]
            first: &'a Diagnostic,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            more: &'a [Diagnostic],
            #[serde(skip_serializing_if = "Option::is_none")]
            file: Option<&'a str>,
        }
        let (first, more) = (&*self.first, &*self.rest);
        let file = self.file.as_deref();
        serializer.collect_map([("error", Diagnostics { first, more, file })])
    }
}
