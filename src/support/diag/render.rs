//! Renders diagnostics as text with underlined places.

use std::ops::Range;

use codespan_reporting::diagnostic as codespan;
use codespan_reporting::files::SimpleFile;
use codespan_reporting::term::{self, termcolor};

use super::diagnostic::{Diagnostic, Severity};
use crate::support::text::escaped;

/// Whether to use colour; the caller knows what the terminal supports. See [`Error`](crate::Error).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// Plain text.
    #[default]
    Never,
    /// With ANSI escapes.
    Always,
}

/// The length up to which a line is shown whole, in bytes. Of a longer one only the surroundings
/// of the main place are shown.
const SHOWN_WHOLE: usize = 2_000;

/// The bytes of a long text shown on either side of the main place.
const SURROUNDINGS: usize = 60;

/// What a text is called that is in no file.
pub(super) const SELECTOR: &str = "selector";

/// `diagnostic` about `text`: message, underlined places, help. Ends in a newline.
#[must_use]
pub fn render_diagnostic(text: &str, diagnostic: &Diagnostic, color: ColorChoice) -> String {
    render_named(SELECTOR, text, diagnostic, color)
}

/// As [`render_diagnostic`], of a text that is called something else.
pub(super) fn render_named(
    name: &str,
    text: &str,
    diagnostic: &Diagnostic,
    color: ColorChoice,
) -> String {
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
    // The columns count from the start of the shown part, so the name says where that is.
    let name = match window.start {
        0 => name.to_owned(),
        start => format!(
            "{name}, from character {} on",
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
    // Rendering cannot fail, because all spans are inside the text.
    let rendered = rendered.unwrap_or_else(|| format!("error: {}\n", diagnostic.message));
    escaped(&rendered, color == ColorChoice::Always).into_owned()
}

/// The part of `text` to show.
fn window(text: &str, diagnostic: &Diagnostic) -> Range<usize> {
    let main = diagnostic
        .labels
        .first()
        .map_or(0..0, |label| inside(text, &label.span));
    // Of several lines only those with a place are printed.
    let before = text[..main.start].rfind('\n').map_or(0, |at| at + 1);
    let after = text[main.end..].find('\n');
    let after = after.map_or(text.len(), |at| main.end + at);
    if after - before <= SHOWN_WHOLE {
        return 0..text.len();
    }
    let end = main.end.min(main.start.saturating_add(SHOWN_WHOLE / 2));
    let start = text.floor_char_boundary(main.start.saturating_sub(SURROUNDINGS));
    start..text.ceil_char_boundary(end.saturating_add(SURROUNDINGS))
}

/// `span`, moved into `text` and onto character boundaries.
fn inside(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start);
    start..text.ceil_char_boundary(span.end.max(start))
}

#[cfg(test)]
mod tests {
    use super::{ColorChoice, render_diagnostic};
    use crate::support::diag::{Code, Diagnostic};

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
