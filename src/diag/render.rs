//! Shows diagnostics as text with underlined places, and as JSON.

use std::ops::Range;

use codespan_reporting::diagnostic as codespan;
use codespan_reporting::files::SimpleFile;
use codespan_reporting::term::{self, termcolor};
use serde::{Serialize, Serializer};

use super::{Diagnostic, Error, Severity};

/// Whether a rendering uses colour. Finding out what a terminal can do is the caller's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// Plain text.
    #[default]
    Never,
    /// With ANSI escapes.
    Always,
}

/// The longest text shown whole, in bytes; of a longer one the surroundings of the main place
/// are shown, so that a diagnostic never grows with the text.
const SHOWN_WHOLE: usize = 2_000;

/// How much of a long text is shown on either side of the main place, in bytes.
const SURROUNDINGS: usize = 60;

/// One diagnostic about `text`: message, places underlined, help; ends in a newline.
#[must_use]
pub fn render_diagnostic(text: &str, diagnostic: &Diagnostic, color: ColorChoice) -> String {
    let window = window(text, diagnostic);
    let shown = &text[window.clone()];
    let severity = match diagnostic.severity {
        Severity::Error => codespan::Severity::Error,
        Severity::Warning => codespan::Severity::Warning,
    };
    let mut report = codespan::Diagnostic::new(severity).with_message(&diagnostic.message);
    if let Some(code) = diagnostic.code {
        report = report.with_code(code.as_str());
    }
    for (index, label) in diagnostic.labels.iter().enumerate() {
        let span = inside(text, &label.span);
        if index > 0 && (span.start < window.start || span.end > window.end) {
            continue;
        }
        let start = span.start.clamp(window.start, window.end) - window.start;
        let end = span.end.clamp(window.start, window.end) - window.start;
        let place = if index == 0 {
            codespan::Label::primary((), start..end)
        } else {
            codespan::Label::secondary((), start..end)
        };
        report = report.with_label(place.with_message(&label.message));
    }
    if let Some(help) = &diagnostic.help {
        report = report.with_note(format!("help: {help}"));
    }

    let config = term::Config {
        tab_width: 1,
        ..term::Config::default()
    };
    // Of a long text the columns are those of what is shown; say where that begins.
    let name = match window.start {
        0 => "selector".to_owned(),
        start => format!(
            "selector, from character {} on",
            text[..start].chars().count() + 1
        ),
    };
    let file = SimpleFile::new(name, shown);
    let rendered = match color {
        ColorChoice::Never => term::emit_into_string(&config, &file, &report).ok(),
        ColorChoice::Always => {
            let mut buffer = termcolor::Ansi::new(Vec::new());
            term::emit_to_write_style(&mut buffer, &config, &file, &report)
                .ok()
                .and_then(|()| String::from_utf8(buffer.into_inner()).ok())
        }
    };
    // Spans were moved inside the text above, so rendering cannot fail; the message alone is
    // what is left if it does.
    rendered.unwrap_or_else(|| format!("error: {}\n", diagnostic.message))
}

/// The part of `text` to show.
fn window(text: &str, diagnostic: &Diagnostic) -> Range<usize> {
    if text.len() <= SHOWN_WHOLE {
        return 0..text.len();
    }
    let main = diagnostic
        .labels
        .first()
        .map_or(0..0, |label| inside(text, &label.span));
    let end = main.end.min(main.start.saturating_add(SHOWN_WHOLE / 2));
    let start = floor(text, main.start.saturating_sub(SURROUNDINGS));
    start..ceil(text, end.saturating_add(SURROUNDINGS))
}

/// `span` moved into `text` and onto character boundaries.
fn inside(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = floor(text, span.start);
    start..ceil(text, span.end.max(start))
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// An error as it is written in JSON; the order of the members is part of the format.
#[derive(Serialize)]
struct ErrorJson<'a> {
    error: First<'a>,
}

#[derive(Serialize)]
struct First<'a> {
    #[serde(flatten)]
    first: DiagnosticJson<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<DiagnosticJson<'a>>,
}

#[derive(Serialize)]
struct DiagnosticJson<'a> {
    code: Option<&'static str>,
    message: &'a str,
    spans: Vec<SpanJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

#[derive(Serialize)]
struct SpanJson<'a> {
    start: usize,
    end: usize,
    label: &'a str,
}

impl<'a> From<&'a Diagnostic> for DiagnosticJson<'a> {
    fn from(diagnostic: &'a Diagnostic) -> Self {
        Self {
            code: diagnostic.code.map(super::Code::as_str),
            message: &diagnostic.message,
            spans: diagnostic
                .labels
                .iter()
                .map(|label| SpanJson {
                    start: label.span.start,
                    end: label.span.end,
                    label: &label.message,
                })
                .collect(),
            help: diagnostic.help.as_deref(),
        }
    }
}

/// `{"error":{"code","message","spans":[{"start","end","label"}],"help"}}` (RUNTIME §7), members
/// in this order. `spans` are byte offsets, those of the first diagnostic; `help` is left out
/// where there is none. Further diagnostics follow as `"more"`, in the same form.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ErrorJson {
            error: First {
                first: self.first().into(),
                more: self.diagnostics().skip(1).map(Into::into).collect(),
            },
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::{ColorChoice, render_diagnostic};
    use crate::diag::{Code, Diagnostic};

    #[test]
    fn long_texts_are_shown_around_the_main_place() {
        let text = format!("{}é?{}", "a".repeat(9_000), "b".repeat(9_000));
        let mistake = Diagnostic::error(Code::SelectorInvalid, "unexpected `?`")
            .at(9_002..9_003, "here")
            .at(0..2, "far away");
        let shown = render_diagnostic(&text, &mistake, ColorChoice::Never);
        assert!(shown.len() < 1_000, "{shown}");
        assert!(shown.contains("aaé?bb"), "{shown}");
    }

    #[test]
    fn wild_spans_are_moved_into_the_text() {
        for (text, span) in [("", 0..9), ("é", 1..1), ("ab", 7..9), ("a\n", 2..2)] {
            let mistake = Diagnostic::error(Code::Limit, "wild").at(span, "");
            let shown = render_diagnostic(text, &mistake, ColorChoice::Always);
            assert!(shown.contains("E_LIMIT"), "{shown}");
        }
    }
}
