//! The words of the language and where they end (LANGUAGE §2). Knows texts only.

/// The controls. Any other word after `@` at the start of a selector is read as a time.
pub(crate) const CONTROLS: [&str; 6] = ["limit", "p", "order", "mode", "first", "unique"];

pub(crate) const PLAIN_PSEUDOS: [&str; 5] = ["first", "last", "pre", "core", "post"];

pub(crate) const CALLED_PSEUDOS: [&str; 2] = ["nth", "depth"];

/// The conditions on other nodes, which take selectors in parentheses (LANGUAGE §13).
pub(crate) const CONDITIONS: [&str; 7] =
    ["has", "not", "is", "after", "before", HAS_RESULT, HAS_CALL];

pub(crate) const HAS_RESULT: &str = "has-result";
pub(crate) const HAS_CALL: &str = "has-call";

/// The conditions that may be written without parentheses.
pub(crate) const BARE_CONDITIONS: [&str; 2] = [HAS_RESULT, HAS_CALL];

/// How deep conditions may be inside each other (LANGUAGE §13, `E_LIMIT`).
pub(crate) const MAX_LEVELS: usize = 8;

/// Pseudo-classes of CSS and jQuery that the language lacks or takes with parentheses only. After a colon they
/// are never kinds (LANGUAGE §11).
pub(crate) const FOREIGN_PSEUDOS: [&str; 15] = [
    "not",
    "has",
    "is",
    "where",
    "contains",
    "first-child",
    "last-child",
    "only-child",
    "nth-child",
    "nth-last-child",
    "first-of-type",
    "last-of-type",
    "only-of-type",
    "nth-of-type",
    "nth-last-of-type",
];

/// The words for classes, in both vocabularies.
pub(crate) const CLASSES: [&str; 6] = ["seg", "cont", "block", "mt", "mc", "cb"];

pub(crate) const ROOTS: [&str; 4] = ["sys", "seq", "ah", "root"];

/// Whether `c` may occur in a word after `#`.
pub(super) fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Whether `c` ends a bare word inside brackets, even a word that should have been quoted.
pub(super) fn is_delimiter(c: char) -> bool {
    c.is_ascii_whitespace()
        || matches!(
            c,
            ',' | '[' | ']' | '(' | ')' | '{' | '}' | '\'' | '"' | '=' | '<' | '>' | '!' | '~'
        )
}

/// The length in bytes of the characters at the start of `text` that `accepts` takes.
pub(super) fn length_while(text: &str, accepts: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accepts(c)).unwrap_or(text.len())
}

/// The bytes of `rest`, which follows a word directly, that show the word needs quotes; 0 if
/// none do. In a property (`in_props`) that is anything but a delimiter. Outside brackets `#a.b`
/// is a key and a type, so only characters that start no token count.
pub(super) fn foreign_length(rest: &str, in_props: bool) -> usize {
    let mut characters = rest.chars();
    let foreign = match characters.next() {
        Some('.') if !in_props => characters.next().is_some_and(|next| next.is_ascii_digit()),
        // `[a^=b]` is a comparison in other languages.
        Some('^' | '$' | '*') if in_props && characters.next() == Some('=') => false,
        Some(first) if in_props => !is_delimiter(first),
        Some(first) => !first.is_ascii() || "/\\%&;|".contains(first),
        None => false,
    };
    if foreign {
        length_while(rest, |c| !is_delimiter(c))
    } else {
        0
    }
}

/// The length of the name at the start of `rest`: a letter or `_`, then letters, digits, `_ -`.
pub(super) fn name_length(rest: &str) -> usize {
    if rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        length_while(rest, is_word_char)
    } else {
        0
    }
}

/// The length of the word at the start of `rest`, without its trailing pseudo-classes.
pub(super) fn word_length(rest: &str) -> usize {
    let mut end = rest
        .bytes()
        .take_while(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':'))
        .count();
    // Fast path: most words have no colon.
    if !rest.as_bytes()[..end].contains(&b':') {
        return end;
    }
    let mut called = rest.as_bytes().get(end) == Some(&b'(');
    while let Some(colon) = memchr::memrchr(b':', &rest.as_bytes()[..end]) {
        let part = rest.get(colon + 1..end).unwrap_or_default();
        let cut = PLAIN_PSEUDOS.contains(&part)
            || BARE_CONDITIONS.contains(&part)
            || called && (CALLED_PSEUDOS.contains(&part) || CONDITIONS.contains(&part));
        if !cut {
            break;
        }
        end = colon;
        called = false;
    }
    end
}

/// Whether `name` is an attribute name that needs no quotes: a letter or `_`, then letters,
/// digits, `_ - :`.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| is_word_char(c) || c == ':')
}

/// `text` in single quotes, with quotes and backslashes escaped.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('\'');
    quoted
}

/// `+tag`, with quotes where the tag needs them.
pub(crate) fn tag_text(tag: &str) -> String {
    if !tag.is_empty() && tag.chars().all(is_word_char) {
        format!("+{tag}")
    } else {
        format!("+{}", quote(tag))
    }
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
            ("cb:x:has(.mc)", 4),
            ("cb:has:first", 6),
            ("cb:has-result:first", 2),
            ("cb:has-call(", 2),
            ("cb:after", 8),
        ] {
            assert_eq!(word_length(word), length, "{word}");
        }
    }
}
