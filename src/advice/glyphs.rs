//! Characters that word processors and web pages put in place of ASCII ones.

use super::scan::QUOTES;
use super::slip::Slip;

const TYPOGRAPHIC: &str = "a typographic quote";

/// The ASCII text for a character, and what the character is called. Quotes are not here: which mark
/// they become depends on what is between them.
fn plain(c: char) -> Option<(&'static str, &'static str)> {
    Some(match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => ("-", "a typographic dash"),
        '…' => ("..", "a typographic ellipsis"),
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => ("", "an invisible character"),
        '→' | '›' => (">", "an arrow"),
        '≤' => ("<=", "a mathematical sign"),
        '≥' => (">=", "a mathematical sign"),
        '≠' => ("!=", "a mathematical sign"),
        c if c.is_whitespace() && !c.is_ascii() => (" ", "a wide or no-break space"),
        _ => return None,
    })
}

/// All such characters outside of ASCII quotes, as one slip, with the backslashes that a shell needed.
pub(super) fn glyphs(text: &str) -> Option<Slip> {
    let mut slip: Option<Slip> = None;
    // Whether a typographic quote is open, and the ASCII quote that is.
    let (mut opened, mut ascii) = (false, None);
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let place = at..at + c.len_utf8();
        let next = characters.peek().map(|(_, next)| *next);
        let (sign, found) = if ascii.is_none() && QUOTES.contains(c) {
            opened = !opened;
            (mark(text, &place, opened), TYPOGRAPHIC)
        } else if opened {
            continue;
        } else if c == '\\'
            && ascii.is_none()
            && next.is_some_and(|next| "[]()='\" !".contains(next))
        {
            // The sign after it is neither the start nor the end of a text.
            characters.next();
            ("", "a backslash")
        } else if matches!(c, '\'' | '"') {
            ascii = match ascii {
                Some(open) if open == c => None,
                None => Some(c),
                open => open,
            };
            continue;
        } else if c == '\\' {
            // What it escapes neither opens nor closes a text.
            characters.next();
            continue;
        } else if let Some(plain) = plain(c).filter(|_| ascii.is_none()) {
            plain
        } else {
            continue;
        };
        let known = match slip.take() {
            Some(known) if found == TYPOGRAPHIC && known.places.len() == 1 => {
                known.and_at(place.clone(), "and here")
            }
            Some(known) => known,
            None => {
                let expected = match sign {
                    "" => "no character".to_owned(),
                    " " => "a plain space".to_owned(),
                    "'" | "\"" => "`'` or `\"`".to_owned(),
                    sign => format!("`{sign}`"),
                };
                let message = format!("expected {expected}, found {found}");
                Slip::new(place.clone(), message, "not expected here")
            }
        };
        slip = Some(known.write(place, sign));
    }
    slip
}

/// The ASCII quote for the typographic one at `place`: double where the text between the two has an
/// apostrophe.
fn mark(text: &str, place: &std::ops::Range<usize>, opens: bool) -> &'static str {
    let is_quote = |c: char| QUOTES.contains(c);
    let inner = if opens {
        text.get(place.end..)
            .and_then(|rest| rest.split(is_quote).next())
    } else {
        text.get(..place.start)
            .and_then(|rest| rest.rsplit(is_quote).next())
    };
    if inner.is_some_and(|inner| inner.contains('\'')) {
        "\""
    } else {
        "'"
    }
}
