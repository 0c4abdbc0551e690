//! Characters that word processors, web pages and shells put in place of ASCII ones.

use super::super::scan::{Kind, QUOTES, Scan};
use super::super::slip::Slip;

/// What a character or entity stands for, and what it is called. Quotes are apart.
fn plain(rest: &str) -> Option<(usize, &'static str, &'static str)> {
    const ENTITIES: [(&str, &str); 6] = [
        ("&gt;", ">"),
        ("&lt;", "<"),
        ("&amp;", "&"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
    ];
    if let Some((entity, sign)) = ENTITIES.iter().find(|(text, _)| rest.starts_with(text)) {
        return Some((entity.len(), sign, "an HTML entity"));
    }
    let c = rest.chars().next()?;
    let (sign, name) = match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => ("-", "a typographic dash"),
        '…' => ("..", "a typographic ellipsis"),
        '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}' => {
            ("", "an invisible character")
        }
        '∗' | '×' | '✱' => ("*", "a typographic asterisk"),
        '→' | '›' | '⟩' | '➜' => (">", "an arrow"),
        '≤' => ("<=", "a mathematical sign"),
        '≥' => (">=", "a mathematical sign"),
        '≠' => ("!=", "a mathematical sign"),
        '∧' => ("&&", "a mathematical sign"),
        '∨' => ("||", "a mathematical sign"),
        '\u{ff01}'..='\u{ff5e}' => (full_width(c)?, "a full-width character"),
        '、' => (",", "a full-width character"),
        c if c.is_whitespace() && !c.is_ascii() => (" ", "a no-break or other wide space"),
        _ => return None,
    };
    Some((c.len_utf8(), sign, name))
}

/// The ASCII sign of a full-width one.
fn full_width(c: char) -> Option<&'static str> {
    const SIGNS: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    let ascii = char::from_u32(u32::from(c) - 0xfee0)?;
    let at = SIGNS.find(ascii)?;
    SIGNS.get(at..=at)
}

/// All such characters outside of quotes, at once.
pub(super) fn glyphs(scan: &Scan<'_>) -> Option<Slip> {
    let mut slip: Option<Slip> = None;
    let mut quoted: Option<usize> = None;
    for index in 0..scan.lexemes.len() {
        let span = scan.span(index);
        if matches!(scan.kind(index), Some(Kind::Quoted | Kind::Pattern)) {
            if scan.word(index).starts_with('`') && quoted.is_none() {
                let text = super::super::scan::text_of(&scan.content(index));
                let found = slip.get_or_insert_with(|| {
                    Slip::new(
                        span.clone(),
                        "a text takes `'` or `\"`",
                        "backticks do not quote",
                    )
                });
                found
                    .edits
                    .push(crate::support::diag::Edit::new(span, text));
            }
            continue;
        }
        let mut at = span.start;
        while at < span.end {
            let rest = scan.text.get(at..).unwrap_or_default();
            let Some(c) = rest.chars().next() else { break };
            let length = c.len_utf8();
            if QUOTES.contains(c) {
                let opens = quoted.is_none();
                quoted = opens.then_some(at);
                let mark = mark_for(rest, opens, scan.text.get(..at).unwrap_or_default());
                slip = Some(
                    match slip.take() {
                        None => Slip::new(
                            at..at + length,
                            "a text takes `'` or `\"`",
                            "a typographic quote",
                        ),
                        Some(found) if !opens && found.also.is_empty() => {
                            found.and_at(at..at + length, "and here")
                        }
                        Some(found) => found,
                    }
                    .write(at..at + length, mark),
                );
                at += length;
                continue;
            }
            if quoted.is_none()
                && let Some((length, sign, name)) = plain(rest)
            {
                // White space beside white space goes away.
                slip = Some(
                    slip.take()
                        .unwrap_or_else(|| {
                            Slip::new(
                                at..at + length,
                                format!("expected {}, found {name}", shown(sign)),
                                "not an ASCII character",
                            )
                        })
                        .write(at..at + length, sign),
                );
                at += length;
                continue;
            }
            at += length;
        }
    }
    slip
}

fn shown(sign: &str) -> String {
    match sign {
        "" => "no character".to_owned(),
        " " => "a plain space".to_owned(),
        sign => format!("`{sign}`"),
    }
}

/// The ASCII quote for a pair: double where the text in between has an apostrophe.
fn mark_for(rest: &str, opens: bool, before: &str) -> &'static str {
    let inner = if opens {
        let inner = rest.get(rest.chars().next().map_or(0, char::len_utf8)..);
        let inner = inner.unwrap_or_default();
        inner
            .split(|c| QUOTES.contains(c))
            .next()
            .unwrap_or_default()
    } else {
        before
            .rsplit(|c| QUOTES.contains(c))
            .next()
            .unwrap_or_default()
    };
    if inner.contains('\'') { "\"" } else { "'" }
}
