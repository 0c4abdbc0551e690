//! Diagnostics: what every phase reports, before it is shown to anyone.

use std::ops::Range;

use serde::Serialize;

use super::code::Code;

/// The length limit of messages, labels and help texts, in bytes. They may quote the selector,
/// which may be long.
const LONGEST: usize = 400;

/// `text`, without its middle if it is too long.
pub(super) fn shorten(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let head = text.floor_char_boundary(LONGEST / 2);
    let tail = text.ceil_char_boundary(text.len() - LONGEST / 2);
    format!("{}…{}", &text[..head], &text[tail..])
}

/// Whether a diagnostic prevents an answer. See the example of [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The selector is refused.
    Error,
    /// The selector is answered.
    Warning,
}

/// A place in the text with a remark. See the example of [`Diagnostic`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// Byte offsets, `start..end`; empty where something is missing.
    #[serde(flatten)]
    pub span: Range<usize>,
    /// The remark; may be empty.
    #[serde(rename = "label")]
    pub message: String,
}

impl Label {
    /// A label on `span`.
    #[doc(hidden)]
    pub fn new(span: impl Into<Range<usize>>, message: impl Into<String>) -> Self {
        Self {
            span: span.into(),
            message: shorten(message.into()),
        }
    }
}

/// A replacement of a part of the selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorEdit {
    /// The part; empty where something is inserted.
    pub span: Range<usize>,
    /// What to write there.
    pub text: String,
}

impl SelectorEdit {
    /// Replaces `span` by `text`.
    pub fn new(span: impl Into<Range<usize>>, text: impl Into<String>) -> Self {
        Self {
            span: span.into(),
            text: text.into(),
        }
    }
}

/// An error or a warning, with its places and a help text.
///
/// ```
/// let error = pactql::Engine::new().check("@t0..@c3 .cb").unwrap_err();
/// assert_eq!(error.first().labels[0].span, 0..8); // `@t0..@c3`
/// assert!(error.first().help.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Error or warning.
    #[serde(skip)]
    pub severity: Severity,
    /// The code; `None` for warnings.
    pub code: Option<Code>,
    /// One line, lower case, no full stop.
    pub message: String,
    /// The places, the main one first; empty if the mistake has no place.
    #[serde(rename = "spans")]
    pub labels: Vec<Label>,
    /// What to write instead, if known the corrected text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The replacements that undo this mistake, if known.
    #[serde(skip)]
    pub(super) edits: Vec<SelectorEdit>,
    /// The whole selector, corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) correction: Option<Box<str>>,
}

impl Diagnostic {
    /// The whole selector, corrected, if what was meant is evident. It is valid in the same
    /// edition; the help text has it, too.
    ///
    /// ```
    /// let error = pactql::Engine::new().check("@t0 .cb[role == 'user']").unwrap_err();
    /// assert_eq!(error.first().correction(), Some("@t0 .cb[role = 'user']"));
    /// ```
    pub fn correction(&self) -> Option<&str> {
        self.correction.as_deref()
    }

    /// Sets the help text, if there is one.
    #[must_use]
    pub(crate) fn with_any_help(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.with_help(help),
            None => self,
        }
    }
}

#[doc(hidden)]
impl Diagnostic {
    /// An error without labels or help.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code: Some(code),
            message: shorten(message.into()),
            labels: Vec::new(),
            help: None,
            edits: Vec::new(),
            correction: None,
        }
    }

    /// Sets the corrected selector, and the help text to it.
    pub fn correct(&mut self, text: &str) {
        self.help = Some(format!("write `{text}`"));
        self.correction = Some(text.into());
    }

    /// The replacements that undo this mistake; empty if they are not known.
    pub fn edits(&self) -> &[SelectorEdit] {
        &self.edits
    }

    /// Adds a replacement that helps to undo this mistake.
    pub fn add_edit(&mut self, edit: SelectorEdit) {
        self.edits.push(edit);
    }

    /// Adds a place. The first is the main one.
    #[must_use]
    pub fn at(mut self, span: impl Into<Range<usize>>, message: impl Into<String>) -> Self {
        self.labels.push(Label::new(span, message));
        self
    }

    /// Sets the help text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.set_help(help);
        self
    }

    /// Sets the help text.
    pub fn set_help(&mut self, help: impl Into<String>) {
        self.help = Some(shorten(help.into()));
    }

    /// The start of the main label; `usize::MAX` without one, which sorts last.
    pub fn start(&self) -> usize {
        self.labels
            .first()
            .map_or(usize::MAX, |label| label.span.start)
    }
}
