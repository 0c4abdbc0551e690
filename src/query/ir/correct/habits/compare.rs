//! Comparisons of other languages, inside brackets.

use super::super::scan::{Kind, Scan, escaped, text_of};
use super::super::slip::Slip;
use super::common::{
    after_name, any_op, is_op, joint, known_op, literal, one_of, union_of, within_other,
};
use crate::query::ir::query::Attr;

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
    if scan.kind(index) != Some(Kind::Sign) {
        return None;
    }
    let slip = Slip::new(scan.span(index), expected_sign(op), "not a comparison").instead(op);
    let value = scan.next(index)?;
    let lower = scan.word(value).to_ascii_lowercase();
    Some(if is_bool(&lower) && lower != scan.word(value) {
        slip.write(scan.span(value), lower)
    } else {
        slip
    })
}

fn is_bool(word: &str) -> bool {
    matches!(word, "true" | "false")
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
    let message = if instead.starts_with('=') {
        format!("expected `=`, found `{lower}`")
    } else {
        format!("expected `~` and a pattern, found `{lower}`")
    };
    let span = scan.span(name).end..scan.span(end).end;
    Some(Slip::new(scan.span(index), message, "not a comparison").write(span, instead))
}

/// The test that `like` makes.
fn like(text: &str, flags: &str) -> String {
    // `\%` and `\_` are the signs themselves: kept apart in a private character each.
    let text = text.replace("\\%", "\u{e000}").replace("\\_", "\u{e001}");
    let text = text.as_str();
    if !text.contains(['%', '_', '\u{e000}', '\u{e001}']) && flags.is_empty() {
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
            '\u{e000}' => pattern.push('%'),
            '\u{e001}' => pattern.push('_'),
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
    let lower = scan.word(value).to_ascii_lowercase();
    let written = match null {
        true => "null",
        false if is_bool(&lower) => &lower,
        false => scan.slice(value, end),
    };
    let span = scan.span(scan.prev(index)?).end..scan.span(end).end;
    let at = if null {
        scan.through(index, value)
    } else {
        scan.through(index, last)
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
    let word = if negated { scan.next(index)? } else { index };
    if !scan.word(word).eq_ignore_ascii_case("in") || !after_name(scan, index) {
        return None;
    }
    if let Some(slip) = turned(scan, index, word, negated) {
        return Some(slip);
    }
    let name = scan.prev(index)?;
    let open = scan.next(word)?;
    let op = if negated { "!=" } else { "=" };
    let (values, end) = listed(scan, open)?;
    let slip = Slip::new(
        scan.through(index, word),
        format!(
            "expected `{op}` and a list, found `{}`",
            scan.slice(index, word)
        ),
        "not a comparison",
    );
    let span = scan.span(name).start..scan.span(end).end;
    let named = scan.word(name);
    if one_of(named) {
        let inner = match scan.kind(open) {
            Some(Kind::Open) => scan.text.get(scan.span(open).end..scan.span(end).start)?,
            _ => scan.slice(open, end),
        };
        let list = format!("{op}[{}]", inner.trim());
        return Some(slip.write(scan.span(name).end..span.end, list));
    }
    // A list of tags would need all of them.
    let tests: Vec<String> = values
        .iter()
        .map(|value| format!("{named}{op}{value}"))
        .collect();
    if negated || tests.len() == 1 {
        return Some(slip.write(span, tests.join(joint(scan, index))));
    }
    let union = (!within_other(scan, name)).then(|| union_of(scan, name, &span, &tests));
    Some(match union.flatten() {
        Some((whole, union)) => slip.write(whole, union),
        None => slip.write(span, tests.first()?).no_equal(format!(
            "only a union tests for one of several values: `[{}], [{}]`",
            tests.first()?,
            tests.get(1)?
        )),
    })
}

/// The values of `(a, b)`, `[a, b]` or `a, b`, and where they end.
fn listed<'t>(scan: &Scan<'t>, open: usize) -> Option<(Vec<&'t str>, usize)> {
    let bracketed = scan.kind(open) == Some(Kind::Open);
    let close = scan.partner(open);
    let mut values = Vec::new();
    let mut at = if bracketed { scan.next(open)? } else { open };
    loop {
        let end = scan.value_end(at)?;
        values.push(scan.slice(at, end));
        let next = scan.next(end);
        if bracketed && next == close {
            return Some((values, close?));
        }
        let more = next.filter(|comma| scan.word(*comma) == ",");
        let more = more.and_then(|comma| scan.next(comma));
        let last = more.and_then(|more| scan.value_end(more));
        let (Some(more), Some(last)) = (more, last) else {
            return (!bracketed).then_some((values, end));
        };
        if !bracketed && scan.next(last).is_some_and(|next| any_op(scan, next)) {
            return Some((values, end));
        }
        at = more;
    }
}

/// `'x' in tags`, `'TODO' in content`.
fn turned(scan: &Scan<'_>, index: usize, word: usize, negated: bool) -> Option<Slip> {
    let value = scan.prev(index)?;
    let name = scan.next(word)?;
    let quoted = scan.kind(value) == Some(Kind::Quoted) && scan.kind(name) == Some(Kind::Word);
    if !quoted || scan.value_end(name) != Some(name) {
        return None;
    }
    let named = scan.word(name);
    let slip = Slip::new(
        scan.through(index, word),
        "expected a name, a comparison and a value",
        "in the other order",
    );
    let span = scan.through(value, name);
    let text = scan.word(value);
    Some(match (Attr::from_name(named), negated) {
        (Attr::Tags, true) => slip.write(span, format!("{named}!={text}")),
        (Attr::Tags, false) => slip.write(span, format!("{named}={text}")),
        (Attr::Custom(_), _) => slip.write(span, named).no_equal(format!(
            "`[{named}={text}]` tests a list, `~` searches a text"
        )),
        (_, true) => slip
            .write(span, named)
            .no_equal("`~` selects the nodes whose text matches; it has no opposite"),
        (_, false) => {
            let pattern = text_of(&escaped(&scan.content(value)));
            slip.write(span, format!("{named}~{pattern}"))
        }
    })
}

/// `'user'==role`, `3 = ttl`: the value in front.
pub(super) fn value_first(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let word = scan.word(index);
    let op = known_op(word).or_else(|| is_op(word).then_some(word))?;
    if scan.outside(index) || scan.kind(index) != Some(Kind::Sign) || op == "~" {
        return None;
    }
    let value = scan.prev(index)?;
    let name = scan.next(index)?;
    let first = scan.prev(value).filter(|sign| scan.word(*sign) == "-");
    let first = first.filter(|_| scan.attached(value)).unwrap_or(value);
    let number = scan.word(value).starts_with(|c: char| c.is_ascii_digit());
    let quoted = scan.kind(value) == Some(Kind::Quoted);
    let known = !matches!(Attr::from_name(scan.word(name)), Attr::Custom(_));
    let named = scan.kind(name) == Some(Kind::Word)
        && crate::query::syntax::is_name(scan.word(name))
        && scan.value_end(name) == Some(name);
    // A name in quotes may be compared with a bare word.
    if !named || !(number || quoted && known) || !scan.starts_prop(first) {
        return None;
    }
    if scan.next(name).is_some_and(|next| any_op(scan, next)) {
        return None;
    }
    let op = match op {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    };
    let text = format!("{}{op}{}", scan.word(name), scan.slice(first, value));
    Some(
        Slip::new(
            scan.through(first, value),
            "expected a name, a comparison and a value",
            "in the other order",
        )
        .write(scan.through(first, name), text),
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
