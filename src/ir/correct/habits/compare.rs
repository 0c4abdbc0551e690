//! Comparisons of other languages, inside brackets.

use super::super::scan::{Kind, Scan, escaped, text_of};
use super::super::slip::Slip;
use super::common::{after_name, any_op, joint, known_op, literal};

/// `==`, `<>`, `eq`, `=~` …
pub(super) fn signs(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) {
        return None;
    }
    let word = scan.word(index);
    let is_word = scan.kind(index) == Some(Kind::Word);
    let op = known_op(&word.to_ascii_lowercase())?;
    if is_word {
        let value = scan.next(index)?;
        scan.value_end(value)?;
        if !after_name(scan, index) {
            return None;
        }
        let span = scan.span(scan.prev(index)?).end..scan.span(value).start;
        return Some(
            Slip::new(scan.span(index), expected_sign(op), "not a comparison").write(span, op),
        );
    }
    (scan.kind(index) == Some(Kind::Sign))
        .then(|| Slip::new(scan.span(index), expected_sign(op), "not a comparison").instead(op))
}

fn expected_sign(op: &str) -> String {
    let what = match op {
        "=" => "\"equals\"",
        "!=" => "\"differs\"",
        "~" => "a search for a pattern",
        "<=" => "\"at most\"",
        ">=" => "\"at least\"",
        "<" => "\"less than\"",
        _ => "\"greater than\"",
    };
    format!("expected `{op}` for {what}")
}

/// `^=`, `$=`, `*=`, `|=` of CSS.
pub(super) fn css_signs(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || scan.kind(index) != Some(Kind::Sign) {
        return None;
    }
    let sign = scan.word(index);
    let value = scan.next(index)?;
    let end = scan.value_end(value)?;
    let text = escaped(&literal(scan, value, end));
    let (what, pattern) = match sign {
        "^=" => ("begins with", format!("^{text}")),
        "$=" => ("ends with", format!("{text}$")),
        "*=" => ("contains", text),
        "|=" => ("begins with", format!("^{text}(-|$)")),
        _ => return None,
    };
    let span = scan.span(index).start..scan.span(end).end;
    Some(
        Slip::new(
            scan.span(index),
            format!("expected `~` and a pattern for \"{what}\""),
            "not a comparison",
        )
        .write(span, format!("~{}", text_of(&pattern))),
    )
}

/// `!~`, and `not like` with its kin.
pub(super) fn no_search(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) {
        return None;
    }
    let negated = scan.word(index) == "!~"
        || scan.word(index).eq_ignore_ascii_case("not")
            && matches!(
                &*scan.next_word(index).to_ascii_lowercase(),
                "like" | "ilike" | "contains" | "matches"
            );
    if !negated || !after_name(scan, index) {
        return None;
    }
    let last = match scan.word(index) {
        "!~" => index,
        _ => scan.next(index)?,
    };
    Some(
        Slip::new(
            scan.through(index, last),
            "no comparison is the opposite of `~`",
            "not a comparison",
        )
        .instead("~")
        .no_equal("`~` selects the nodes whose text matches; `!=` compares a whole value"),
    )
}

/// `like 'x%'`, `contains 'x'`, `startswith 'x'`.
pub(super) fn text_words(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || scan.kind(index) != Some(Kind::Word) || !after_name(scan, index) {
        return None;
    }
    let value = scan.next(index)?;
    let end = scan.value_end(value)?;
    let text = literal(scan, value, end);
    let name = scan.prev(index)?;
    let tags = matches!(scan.word(name), "tag" | "tags");
    let lower = scan.word(index).to_ascii_lowercase();
    let instead = match &*lower {
        "contains" | "includes" | "has" if tags => format!("={}", scan.slice(value, end)),
        "like" => like(&text, ""),
        "ilike" => like(&text, "(?i)"),
        "contains" | "includes" => format!("~{}", text_of(&escaped(&text))),
        "startswith" | "starts_with" => format!("~{}", text_of(&format!("^{}", escaped(&text)))),
        "endswith" | "ends_with" => format!("~{}", text_of(&format!("{}$", escaped(&text)))),
        _ => return None,
    };
    let message = match instead.starts_with('=') {
        true => format!("expected `=`, found `{lower}`"),
        false => format!("expected `~` and a pattern, found `{lower}`"),
    };
    let span = scan.span(name).end..scan.span(end).end;
    Some(Slip::new(scan.span(index), message, "not a comparison").write(span, instead))
}

/// The test that `like` makes.
fn like(text: &str, flags: &str) -> String {
    if !text.contains(['%', '_']) && flags.is_empty() {
        return format!("={}", text_of(text));
    }
    let (open, inner) = match text.strip_prefix('%') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (ends, inner) = match inner.strip_suffix('%') {
        Some(rest) => (true, rest),
        None => (false, inner),
    };
    let mut pattern = String::from(flags);
    if inner.contains(['%', '_']) {
        pattern.push_str("(?s)");
    }
    if !open {
        pattern.push('^');
    }
    for character in inner.chars() {
        match character {
            '%' => pattern.push_str(".*"),
            '_' => pattern.push('.'),
            other => pattern.push_str(&escaped(&other.to_string())),
        }
    }
    if !ends {
        pattern.push('$');
    }
    format!("~{}", text_of(&pattern))
}

/// `is null`, `is not null`, `is 'x'`.
pub(super) fn is(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index)
        || !scan.word(index).eq_ignore_ascii_case("is")
        || !after_name(scan, index)
    {
        return None;
    }
    let mut last = index;
    let mut op = "=";
    if scan.next_word(index).eq_ignore_ascii_case("not") {
        last = scan.next(index)?;
        op = "!=";
    }
    let value = scan.next(last)?;
    let end = scan.value_end(value)?;
    let null = is_null(scan.word(value));
    let written = match null {
        true => "null",
        false => scan.slice(value, end),
    };
    let span = scan.span(scan.prev(index)?).end..scan.span(end).end;
    let at = match null {
        true => scan.through(index, value),
        false => scan.through(index, last),
    };
    Some(
        Slip::new(
            at.clone(),
            format!(
                "expected `{op}{}`, found `{}`",
                if null { "null" } else { "" },
                scan.text.get(at).unwrap_or_default()
            ),
            "not a comparison",
        )
        .write(span, format!("{op}{written}")),
    )
}

pub(super) fn is_null(word: &str) -> bool {
    matches!(
        &*word.to_ascii_lowercase(),
        "null" | "none" | "nil" | "undefined" | "nan" | "missing"
    )
}

/// `in (a, b)`, `not in [a, b]`, `in a`.
pub(super) fn within(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) {
        return None;
    }
    let negated = scan.word(index).eq_ignore_ascii_case("not");
    let word = match negated {
        true => scan.next(index)?,
        false => index,
    };
    if !scan.word(word).eq_ignore_ascii_case("in") || !after_name(scan, index) {
        return None;
    }
    let open = scan.next(word)?;
    let op = if negated { "!=" } else { "=" };
    let (list, end) = if scan.kind(open) == Some(Kind::Open) {
        let close = scan.partner(open)?;
        let inner = scan.span(open).end..scan.span(close).start;
        let inner = scan.text.get(inner).unwrap_or_default().trim();
        (format!("[{inner}]"), close)
    } else {
        let mut end = scan.value_end(open)?;
        while scan.next_word(end) == "," {
            let Some(more) = scan.next(end).and_then(|comma| scan.next(comma)) else {
                break;
            };
            let Some(last) = scan.value_end(more) else {
                break;
            };
            let next = scan.next(last);
            if next.is_some_and(|next| any_op(scan, next)) {
                break;
            }
            end = last;
        }
        (format!("[{}]", scan.slice(open, end)), end)
    };
    let span = scan.span(scan.prev(index)?).end..scan.span(end).end;
    Some(
        Slip::new(
            scan.through(index, word),
            format!(
                "expected `{op}` and a list, found `{}`",
                scan.slice(index, word)
            ),
            "not a comparison",
        )
        .write(span, format!("{op}{list}")),
    )
}

/// `between 1 and 3`.
pub(super) fn between(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index)
        || !scan.word(index).eq_ignore_ascii_case("between")
        || !after_name(scan, index)
    {
        return None;
    }
    let name = scan.prev(index)?;
    let low = scan.next(index)?;
    let and = scan.next(scan.value_end(low)?)?;
    let high = scan.next(and)?;
    let end = scan.value_end(high)?;
    if !scan.word(and).eq_ignore_ascii_case("and") {
        return None;
    }
    let named = scan.word(name);
    let text = format!(
        "{named}>={}{}{named}<={}",
        scan.slice(low, scan.value_end(low)?),
        joint(scan, index),
        scan.slice(high, end)
    );
    Some(
        Slip::new(
            scan.span(index),
            "expected `>=` and `<=`, found `between`",
            "not a comparison",
        )
        .write(scan.span(name).start..scan.span(end).end, text),
    )
}
