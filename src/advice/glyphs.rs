//! Characters that word processors and web pages put in place of ASCII ones.

use super::scan::{Kind, QUOTES, Scan};
use super::slip::Slip;

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

/// All such characters outside of ASCII quotes, as one slip.
pub(super) fn glyphs(scan: &Scan<'_>) -> Option<Slip> {
    let mut slip: Option<Slip> = None;
    let mut opened = false;
    let kept = |index: &usize| !matches!(scan.kind(*index), Some(Kind::Quoted | Kind::Pattern));
    for index in (0..scan.lexemes.len()).filter(kept) {
        let start = scan.span(index).start;
        for (at, c) in scan.word(index).char_indices() {
            let place = start + at..start + at + c.len_utf8();
            let (sign, found) = if QUOTES.contains(c) {
                opened = !opened;
                (mark(scan.text, &place, opened), "a typographic quote")
            } else if let Some(plain) = plain(c).filter(|_| !opened) {
                plain
            } else {
                continue;
            };
            let known = slip.take();
            let known = match known {
                Some(known) if found == "a typographic quote" && known.places.len() == 1 => {
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
                    Slip::new(place.clone(), message, "not an ASCII character")
                }
            };
            slip = Some(known.write(place, sign));
        }
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
