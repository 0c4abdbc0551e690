//! Diagnostics, and the error and warning types that the public API hands out.

use std::fmt;
use std::ops::Range;

use super::{Code, ColorChoice, render};

/// The longest message, label or help, in bytes: what a reader typed may be long, and a
/// diagnostic must not be.
const LONGEST: usize = 400;

/// `text`, with the middle left out where it is too long.
fn shorten(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let head = text.floor_char_boundary(LONGEST / 2);
    let tail = text.ceil_char_boundary(text.len() - LONGEST / 2);
    format!("{}…{}", &text[..head], &text[tail..])
}

/// Whether a finding stops the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The selector has no answer.
    Error,
    /// The selector is answered, and the reader should know something about it.
    Warning,
}

/// A place in the text and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Byte offsets into the text, `start..end`; empty where something is missing.
    pub span: Range<usize>,
    /// A short remark on the place; may be empty.
    pub message: String,
}

impl Label {
    /// A label on `span`.
    pub fn new(span: impl Into<Range<usize>>, message: impl Into<String>) -> Self {
        Self {
            span: span.into(),
            message: shorten(message.into()),
        }
    }
}

/// One finding: a code, a message, the places it is about, and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The code; warnings have none.
    pub code: Option<Code>,
    /// One line, lower case, no full stop.
    pub message: String,
    /// The places, the main one first. Empty where no place in the text is at fault.
    pub labels: Vec<Label>,
    /// What to do instead, where possible the corrected text.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without labels or help.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code: Some(code),
            message: shorten(message.into()),
            labels: Vec::new(),
            help: None,
        }
    }

    /// A warning without labels or help.
    pub fn warning(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            code: None,
            message: shorten(message.into()),
            labels: Vec::new(),
            help: None,
        }
    }

    /// Adds a place. The first one added is the main one.
    #[must_use]
    pub fn at(mut self, span: impl Into<Range<usize>>, message: impl Into<String>) -> Self {
        self.labels.push(Label::new(span, message));
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.set_help(help);
        self
    }

    /// Sets the advice.
    pub fn set_help(&mut self, help: impl Into<String>) {
        self.help = Some(shorten(help.into()));
    }

    /// Where the main label starts; the end of the world when there is none, so that findings
    /// without a place sort behind the others.
    #[must_use]
    pub fn start(&self) -> usize {
        self.labels
            .first()
            .map_or(usize::MAX, |label| label.span.start)
    }
}

/// A typed finding of some phase that can be told to a reader.
pub trait ToDiagnostic {
    /// The finding in words.
    fn to_diagnostic(&self) -> Diagnostic;
}

impl ToDiagnostic for Diagnostic {
    fn to_diagnostic(&self) -> Diagnostic {
        self.clone()
    }
}

/// Why a selector got no answer: the text and at least one diagnostic, the leftmost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    text: Box<str>,
    first: Box<Diagnostic>,
    rest: Vec<Diagnostic>,
}

impl Error {
    /// An error with one diagnostic about `text`.
    pub fn new(text: &str, diagnostic: Diagnostic) -> Self {
        Self {
            text: text.into(),
            first: Box::new(diagnostic),
            rest: Vec::new(),
        }
    }

    /// An error with all of `diagnostics`, sorted by their place; `None` when there are none.
    #[must_use]
    pub fn from_diagnostics(text: &str, mut diagnostics: Vec<Diagnostic>) -> Option<Self> {
        // Stable: findings about one place stay in the order they were made.
        diagnostics.sort_by_key(Diagnostic::start);
        diagnostics.dedup();
        let mut diagnostics = diagnostics.into_iter();
        let first = Box::new(diagnostics.next()?);
        Some(Self {
            text: text.into(),
            first,
            rest: diagnostics.collect(),
        })
    }

    /// The code of the first diagnostic.
    #[must_use]
    pub fn code(&self) -> Code {
        self.first.code.unwrap_or(Code::SelectorInvalid)
    }

    /// The message of the first diagnostic.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.first.message
    }

    /// The first diagnostic: the leftmost mistake.
    #[must_use]
    pub fn first(&self) -> &Diagnostic {
        &self.first
    }

    /// Every diagnostic, the leftmost first; at least one.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        std::iter::once(&*self.first).chain(&self.rest)
    }

    /// The text the spans point into.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every diagnostic as text, with its places underlined, each ending in a newline.
    #[must_use]
    pub fn render(&self, color: ColorChoice) -> String {
        let mut out = String::new();
        for diagnostic in self.diagnostics() {
            out.push_str(&render::render_diagnostic(&self.text, diagnostic, color));
        }
        out
    }

    /// The error as a JSON value (RUNTIME §7). Serialize the error itself to keep the members
    /// in their order; see its `Serialize`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())
    }
}

impl std::error::Error for Error {}

/// Something a reader should know about a selector that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: shorten(message.into()),
            labels: Vec::new(),
            help: None,
        }
    }

    /// Adds a place. The first one added is the main one.
    #[must_use]
    pub fn at(mut self, span: impl Into<Range<usize>>, message: impl Into<String>) -> Self {
        self.labels.push(Label::new(span, message));
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.set_help(help);
        self
    }

    /// Sets the advice.
    pub fn set_help(&mut self, help: impl Into<String>) {
        self.help = Some(shorten(help.into()));
    }

    /// The warning as text, with its places in `text` underlined, ending in a newline.
    #[must_use]
    pub fn render(&self, text: &str, color: ColorChoice) -> String {
        render::render_diagnostic(text, &self.to_diagnostic(), color)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ToDiagnostic for Warning {
    fn to_diagnostic(&self) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            code: None,
            message: self.message.clone(),
            labels: self.labels.clone(),
            help: self.help.clone(),
        }
    }
}
