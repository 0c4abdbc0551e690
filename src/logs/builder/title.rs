//! The title of a session whose log gives it none: the first words of the user.

use crate::json::string;
use crate::logs::json::quoted;
use crate::logs::log::LogMessage;

/// The most letters of a title.
const LETTERS: usize = 80;

/// The first words of a message of a person, as JSON; none if it is a command or was injected.
pub(super) fn from_message(message: &LogMessage) -> Option<String> {
    if message.injected || message.role.as_deref() != Some("user") {
        return None;
    }
    let texts = message.parts.iter().filter(|part| {
        part.kind == Some("text") && part.role.is_none() && part.field("data_verbatim").is_none()
    });
    let texts = texts.filter_map(|part| part.content.as_deref());
    message
        .typed
        .as_deref()
        .into_iter()
        .chain(texts)
        .find_map(|text| Some(quoted(&from_text(&string(text)?)?)))
}

/// The first words of a text of a person; none if it is a command or was injected.
pub(crate) fn from_text(text: &str) -> Option<String> {
    let text = text.trim_start();
    let is_of_person = !text.is_empty() && !is_injected(text) && !is_command(text);
    is_of_person.then(|| first_words(text))
}

/// Whether a message begins a turn: it is of the user, and no program put its texts there.
pub(super) fn begins_turn(message: &LogMessage) -> bool {
    let texts = message
        .parts
        .iter()
        .filter_map(|part| part.content.as_deref());
    let mut texts = texts.filter_map(string);
    message.role.as_deref() == Some("user")
        && !message.injected
        && !texts.any(|text| is_injected(text.trim_start()))
}

fn first_words(text: &str) -> String {
    // Only as much of a long text is looked at as a title can have.
    let start: String = text.chars().take(8 * LETTERS).collect();
    let words: Vec<&str> = start.split_whitespace().collect();
    let words = words.join(" ");
    let mut title: String = words.chars().take(LETTERS).collect();
    if title.len() < words.len() {
        // Not in the middle of a word, if there is a space.
        if let Some(space) = title.rfind(' ') {
            title.truncate(space);
        }
        title.push('…');
    }
    title
}

/// The name that a text has after a mark, and what follows it.
fn name(text: &str, mark: char) -> Option<(&str, &str)> {
    let is_name =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | ':');
    let rest = text.strip_prefix(mark)?;
    let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
    Some(rest.split_at(end)).filter(|(name, _)| !name.is_empty())
}

/// Whether the user gave the program a command: `/compact keep the plan`, and not `/etc/hosts`.
fn is_command(text: &str) -> bool {
    name(text, '/')
        .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Whether a program put a text among those of the user.
fn is_injected(text: &str) -> bool {
    let starts = [
        "# AGENTS.md instructions",
        "Caveat: The messages below",
        "[Request interrupted",
    ];
    // `<system-reminder>`, `<environment_context>`, `<INSTRUCTIONS>`; `<div>` may be of a person.
    let is_tag = name(text, '<').is_some_and(|(name, _)| {
        name.contains(['-', '_']) || name.chars().all(|letter| letter.is_ascii_uppercase())
    });
    is_tag || starts.iter().any(|start| text.starts_with(start))
}
