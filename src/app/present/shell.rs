//! Words as a shell takes them: what is advised can be typed.

/// A word as a shell takes it: bare if it has only plain characters, else in quotes.
pub(crate) fn quoted(word: &str) -> String {
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
pub(crate) fn in_quotes(word: &str) -> String {
    // These have a meaning inside double quotes.
    if word.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::{in_quotes, quoted};

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
