//! Arguments as words: which are selectors and which are files, and how a shell is given them.

use crate::app::present::stores::StoreAddress;
use std::path::Path;

/// Whether a word reads as a selector, or as a piece of one, and no file has this name.
pub(super) fn is_selector(word: &str) -> bool {
    !exists(word) && !has_file_ending(word) && reads_as_selector(word)
}

pub(super) fn reads_as_selector(word: &str) -> bool {
    let mut letters = word.trim_start().chars();
    match letters.next() {
        Some('@' | '^' | '#' | '[' | '{' | '(' | '*' | '>' | '?' | '+') => true,
        // A class or a type; a path such as `./x` or `..` is none.
        Some('.') => letters.next().is_some_and(char::is_alphabetic) && !word.contains('/'),
        Some(':') => letters.next().is_some_and(char::is_alphabetic),
        _ => ["depth(", "within(", "none "]
            .iter()
            .any(|start| word.starts_with(start)),
    }
}

/// Whether a word names a file, one that exists or one with the ending of a session or a log; or a store
/// or its sessions.
pub(super) fn is_file(word: &str) -> bool {
    exists(word) || has_file_ending(word) || StoreAddress::parse(word).is_some()
}

/// Whether there is a file, a directory or a store with this name, or it means standard input.
pub(super) fn exists(word: &str) -> bool {
    word == "-"
        || Path::new(word).exists()
        || StoreAddress::parse(word).is_some_and(StoreAddress::exists)
}

fn has_file_ending(word: &str) -> bool {
    let word = word.strip_suffix(".gz").unwrap_or(word);
    let known = [".json", ".jsonl", ".ndjson"];
    !word.contains(char::is_whitespace) && known.iter().any(|end| word.ends_with(end))
}

/// A word as a shell takes it: bare if it has only plain characters, else in quotes.
pub(super) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./:=@%+,".contains(letter);
    // A comment begins with a `#`, a word that has one inside is a word.
    let inside = |letter: char| plain(letter) || letter == '#';
    if word.starts_with(plain) && word.chars().all(inside) {
        word.to_owned()
    } else {
        in_quotes(word)
    }
}

/// A word in quotes, as a selector is written in a shell.
pub(super) fn in_quotes(word: &str) -> String {
    // These have a meaning inside double quotes.
    if word.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        format!("\"{word}\"")
    }
}

/// Words as a shell takes them, each [`quoted`].
pub(super) fn joined<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{in_quotes, is_file, is_selector, quoted};

    #[test]
    fn selectors_and_files_are_told_apart() {
        for word in [
            "@t0",
            "@t0 .cb",
            ".cb",
            ".cb[role='x']",
            "^ah",
            "#k",
            "*",
            "+a",
            ":first",
            "depth(1)",
        ] {
            assert!(is_selector(word) && !is_file(word), "{word}");
        }
        for word in [
            "session.jsonl",
            "./x.json",
            "a.json.gz",
            ".hidden.jsonl",
            "Cargo.toml",
            "missing.db",
            "missing.db#a",
            "postgres://host/agents#a-*",
            "-",
        ] {
            assert!(is_file(word) && !is_selector(word), "{word}");
        }
        for word in ["missing", "../x", "", "runs/"] {
            assert!(!is_file(word) && !is_selector(word), "{word}");
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("a/b-1.jsonl"), "a/b-1.jsonl");
        assert_eq!(quoted("agents.db#a"), "agents.db#a");
        assert_eq!(quoted("agents.db#a-*"), "\"agents.db#a-*\"");
        assert_eq!(quoted("#a"), "\"#a\"");
        assert_eq!(quoted("my file.json"), "\"my file.json\"");
        assert_eq!(
            in_quotes("@t0 .cb[role='user']"),
            "\"@t0 .cb[role='user']\""
        );
        assert_eq!(in_quotes("[role=\"user\"]"), "'[role=\"user\"]'");
        assert_eq!(in_quotes("[a='$x']"), "'[a='\\''$x'\\'']'");
    }
}
