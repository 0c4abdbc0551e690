//! Where words end (LANGUAGE §2).

/// The pseudo-classes that are cut off a word's end, without and with parentheses.
const PLAIN_PSEUDOS: [&str; 5] = ["first", "last", "pre", "core", "post"];
const CALLED_PSEUDOS: [&str; 2] = ["nth", "depth"];

/// A letter of a word behind `#`.
pub(in crate::syntax) fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// What ends a bare word inside of brackets, whatever else it holds.
pub(super) fn is_delimiter(c: char) -> bool {
    c.is_ascii_whitespace()
        || matches!(
            c,
            ',' | '[' | ']' | '(' | ')' | '{' | '}' | '\'' | '"' | '=' | '<' | '>' | '!' | '~'
        )
}

/// How much of `rest`, which follows a word without a gap, shows that the word should have been
/// quoted. In a property (`in_props`) that is anything that ends no word; outside of brackets
/// `#a.b` is a key and a type, so only what can be no sign counts.
pub(super) fn foreign_length(rest: &str, in_props: bool) -> usize {
    let mut characters = rest.chars();
    let foreign = match characters.next() {
        Some('.') if !in_props => characters.next().is_some_and(|next| next.is_ascii_digit()),
        // `[a^=b]` compares, in other languages.
        Some('^' | '$' | '*') if in_props && characters.next() == Some('=') => false,
        Some(first) if in_props => !is_delimiter(first),
        Some(first) => !first.is_ascii() || "/\\%&;|".contains(first),
        None => false,
    };
    if !foreign {
        return 0;
    }
    rest.chars()
        .take_while(|&c| !is_delimiter(c))
        .map(char::len_utf8)
        .sum()
}

/// The length of the name `rest` starts with: letters, digits, `_ -`, not starting with a digit.
pub(super) fn name_length(rest: &str) -> usize {
    if !rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return 0;
    }
    rest.bytes()
        .take_while(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        .count()
}

/// The length of the word `rest` starts with, without its trailing pseudo-classes.
pub(super) fn word_length(rest: &str) -> usize {
    let mut end = rest
        .bytes()
        .take_while(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':'))
        .count();
    // Most words are short and have no colon at all.
    if !rest.as_bytes()[..end].contains(&b':') {
        return end;
    }
    let mut called = rest.as_bytes().get(end) == Some(&b'(');
    while let Some(colon) = memchr::memrchr(b':', &rest.as_bytes()[..end]) {
        let part = rest.get(colon + 1..end).unwrap_or_default();
        let cut = PLAIN_PSEUDOS.contains(&part) || called && CALLED_PSEUDOS.contains(&part);
        if !cut {
            break;
        }
        end = colon;
        called = false;
    }
    end
}

/// Whether `word` can stand behind `#` without quotes.
pub(in crate::syntax) fn is_plain_word(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|c| is_word_char(c) || c == ':')
        && word_length(word) == word.len()
        && !word
            .rsplit(':')
            .next()
            .is_some_and(|last| word.contains(':') && CALLED_PSEUDOS.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::word_length;

    #[test]
    fn trailing_pseudo_classes_are_cut_off_a_word() {
        for (word, length) in [
            ("cb:summary:first", 10),
            ("cb:first:frist", 14),
            ("mt:depth(1):first", 2),
            ("mt:depth", 8),
            ("cb:pre:first:last", 2),
            ("cb:u2", 5),
            ("cb:nth(2)", 2),
            ("a:first:depth(1)", 1),
            ("a:depth:first", 7),
        ] {
            assert_eq!(word_length(word), length, "{word}");
        }
    }
}
