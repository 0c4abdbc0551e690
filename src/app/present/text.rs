//! Text that is safe to print, and counts.

/// At most `limit` characters of `text`: runs of white space become one space, and characters that
/// control a terminal become U+FFFD.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    let mut space = false;
    for letter in text.chars() {
        if letter.is_whitespace() {
            space = !out.is_empty();
            continue;
        }
        count += 1 + usize::from(space);
        if count > limit {
            out.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
        }
        out.push(if letter.is_control() || is_direction(letter) {
            '\u{fffd}'
        } else {
            letter
        });
    }
    out
}

/// All of `text`, as [`clean`] makes it safe to print.
pub(crate) fn printable(text: &str) -> String {
    clean(text, usize::MAX)
}

/// Whether a character changes the writing direction of the text after it.
pub(crate) fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A number of things: `1 node`, `2 nodes`, `3 hashes`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ if thing.ends_with('h') => format!("{count} {thing}es"),
        _ => format!("{count} {thing}s"),
    }
}

/// `text` as a literal of a selector: bare if it is a plain word, else in quotes.
pub(crate) fn literal(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let word =
        text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(plain);
    if word {
        text.to_owned()
    } else {
        crate::query::syntax::quote(text)
    }
}
