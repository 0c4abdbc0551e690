//! Properties of other languages, inside brackets: negations, functions, names with signs.

use super::super::scan::{Kind, Scan, escaped, text_of};
use super::super::slip::Slip;
use super::common::{after_name, any_op, is_op, joint, literal};
use crate::query::ir::lower::other_spelling;
use crate::query::ir::query::Attr;

/// `5.`, `.5`.
pub(super) fn decimals(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let digits = |at: usize| {
        let word = scan.word(at);
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    if scan.word(index) != "." || scan.outside(index) {
        return None;
    }
    let prev = scan.prev(index)?;
    let ends = |at: usize| {
        matches!(scan.word(at), "]" | "," | "}" | ")") || scan.kind(at) == Some(Kind::Space)
    };
    let (span, text) = if scan.attached(index) && digits(prev) && ends(index + 1) {
        is_op(scan.word(scan.prev(prev)?)).then_some(())?;
        (scan.through(prev, index), scan.word(prev).to_owned())
    } else if is_op(scan.word(prev)) && digits(index + 1) {
        let span = scan.through(index, index + 1);
        (span, format!("0.{}", scan.word(index + 1)))
    } else {
        return None;
    };
    Some(
        Slip::new(
            span,
            "a decimal has digits on both sides of the dot",
            "digits are missing",
        )
        .instead(text),
    )
}

/// `/re/i` in place of a quoted pattern, and `r'…'`.
pub(super) fn patterns(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) {
        return None;
    }
    let word = scan.word(index);
    if scan.kind(index) == Some(Kind::Word)
        && matches!(word, "r" | "b" | "u" | "f" | "rb" | "R")
        && scan.kind(index + 1) == Some(Kind::Quoted)
    {
        return Some(
            Slip::new(
                scan.span(index),
                "a quoted text takes no letter in front",
                "not expected here",
            )
            .instead(""),
        );
    }
    if scan.kind(index) != Some(Kind::Pattern) {
        return None;
    }
    let end = word.rfind('/')?;
    let inner = word.get(1..end)?.replace("\\/", "/");
    let flags: String = word
        .get(end + 1..)?
        .chars()
        .filter(|flag| "ismx".contains(*flag))
        .collect();
    let pattern = match &*flags {
        "" => inner,
        flags => format!("(?{flags}){inner}"),
    };
    let op = scan.prev(index)?;
    let mut slip = Slip::new(
        scan.span(index),
        "expected a pattern in quotes",
        "slashes do not quote",
    )
    .instead(text_of(&pattern));
    if matches!(scan.word(op), "=" | "==" | "=~" | "~=") {
        slip = slip.write(scan.span(op), "~");
    }
    Some(slip)
}

/// `role=!user`, `role!'user'`, `role not 'user'`.
fn negated_value(scan: &Scan<'_>, index: usize, prev: usize, next: usize) -> Option<Slip> {
    scan.value_end(next)?;
    let (place, span, label) = if scan.word(prev) == "=" {
        let span = scan.span(prev).start..scan.span(next).start;
        (scan.through(prev, index), span, "in the other order")
    } else if scan.is_value(prev) && after_name(scan, index) {
        let span = scan.span(prev).end..scan.span(next).start;
        (scan.span(index), span, "not a comparison")
    } else {
        return None;
    };
    Some(Slip::new(place, "expected `!=` for \"differs\"", label).write(span, "!="))
}

/// `ROLE`, `node_type`: a header in another spelling.
pub(super) fn spellings(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let named = scan.kind(index) == Some(Kind::Word) && scan.starts_prop(index);
    let op = scan.next(index).filter(|_| named)?;
    if scan.word(index + 1) == ":" || !any_op(scan, op) && !matches!(scan.word(op), "]" | "}") {
        return None;
    }
    let header = other_spelling(scan.word(index))?;
    Some(
        Slip::new(
            scan.span(index),
            format!("expected `{header}`, found `{}`", scan.word(index)),
            "no header has this name",
        )
        .instead(header),
    )
}

/// `!name`, `!(…)`, `not name`, `not name='x'`; `=!x`.
pub(super) fn negation(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) {
        return None;
    }
    let word = scan.word(index);
    if word != "!" && word != "!!" && !word.eq_ignore_ascii_case("not") {
        return None;
    }
    let next = scan.next(index)?;
    let prev = scan.prev(index)?;
    let starts = scan.starts_prop(index)
        || matches!(
            &*scan.word(prev).to_ascii_lowercase(),
            "and" | "or" | "&&" | "||" | "|" | "&"
        );
    if !starts {
        return negated_value(scan, index, prev, next);
    }
    if let Some(slip) = neither(scan, index, next) {
        return Some(slip);
    }
    let (open, close) = match scan.word(next) {
        "(" => (Some(next), scan.partner(next)),
        _ => (None, None),
    };
    let name = open.map_or(Some(next), |open| scan.next(open))?;
    let name = if scan.word(name) == "@" {
        scan.next(name)?
    } else {
        name
    };
    if !scan.is_value(name) {
        return None;
    }
    let op = scan.next(name)?;
    let message = "expected a comparison, found a negation";
    let slip = Slip::new(scan.span(index), message, "not expected here");
    let ends = |at: usize| {
        Some(at) == close
            || matches!(scan.word(at), "]" | "}" | "," | ")")
            || matches!(
                &*scan.word(at).to_ascii_lowercase(),
                "and" | "or" | "&&" | "||"
            )
    };
    if ends(op) {
        let end = close.unwrap_or(name);
        let span = scan.span(index).start..scan.span(end).end;
        return Some(slip.write(span, format!("{}=null", scan.word(name))));
    }
    let flipped = match scan.word(op) {
        "=" | "==" | "===" => "!=",
        "!=" | "<>" | "!==" => "=",
        _ => {
            return any_op(scan, op).then(|| {
                let span = scan.span(index).start..scan.span(name).start;
                slip.write(span, "").no_equal(
                    "only `=` has an opposite, `!=`; nodes without the attribute fail `<` and `~` either way",
                )
            });
        }
    };
    let value = scan.next(op)?;
    let end = scan.value_end(value)?;
    let whole = close.unwrap_or(end);
    if close.is_some() && scan.next(end) != close {
        return None;
    }
    let span = scan.span(index).start..scan.span(whole).end;
    let text = format!("{}{flipped}{}", scan.word(name), scan.slice(value, end));
    Some(slip.write(span, text))
}

/// `not (a='x' or b='y')`: none of the two.
fn neither(scan: &Scan<'_>, index: usize, open: usize) -> Option<Slip> {
    let close = scan.partner(open).filter(|_| scan.word(open) == "(")?;
    let joint_of = |at: usize| match &*scan.word(at).to_ascii_lowercase() {
        "or" | "||" | "|" => Some(true),
        "and" | "&&" | "&" | "," => Some(false),
        _ => None,
    };
    let joints: Vec<usize> = (open + 1..close)
        .filter(|at| scan.parent(*at) == Some(open) && joint_of(*at).is_some())
        .collect();
    let only_or = joints.iter().all(|at| joint_of(*at) == Some(true));
    if joints.is_empty() {
        return None;
    }
    let slip = Slip::new(
        scan.span(index),
        "expected a comparison, found a negation",
        "not expected here",
    );
    let span = scan.span(index).start..scan.span(close).end;
    let name = scan.next(open)?;
    let give_up = |slip: Slip| {
        let kept = scan.slice(name, name).to_owned();
        slip.write(span.clone(), kept)
            .no_equal("write each comparison with its opposite: `[role!='user'][kind!='text']` for none of two, a union of both for not both")
    };
    if !only_or {
        return scan.is_value(name).then(|| give_up(slip));
    }
    let mut tests = Vec::new();
    let mut from = name;
    for end in joints.into_iter().chain([close]) {
        let last = scan.prev(end)?;
        let Some(test) = opposite(scan, from, last) else {
            return scan.is_value(name).then(|| give_up(slip));
        };
        tests.push(test);
        from = scan.next(end).unwrap_or(end);
    }
    Some(slip.write(span.clone(), tests.join(joint(scan, index))))
}

/// The opposite of the test from one lexeme through another.
fn opposite(scan: &Scan<'_>, first: usize, last: usize) -> Option<String> {
    let name = match scan.word(first) {
        "@" | "." => first + 1,
        _ => first,
    };
    if !scan.is_value(name) {
        return None;
    }
    if name == last {
        return Some(format!("{}=null", scan.word(name)));
    }
    let op = scan.next(name)?;
    let flipped = match scan.word(op) {
        "=" | "==" | "===" => "!=",
        "!=" | "<>" | "!==" => "=",
        _ => return None,
    };
    let value = scan.next(op)?;
    let whole = scan.value_end(value) == Some(last);
    whole.then(|| format!("{}{flipped}{}", scan.word(name), scan.slice(value, last)))
}

/// `@name`, `.name`, `$name` and `"name": value` in place of `name` and `name=value`.
pub(super) fn names(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || scan.kind(index) != Some(Kind::Sign) {
        return None;
    }
    let word = scan.word(index);
    let next = scan.next(index)?;
    let prev = scan.prev(index)?;
    if word == ":" && scan.is_value(prev) && scan.value_end(next).is_some() {
        let named = scan.starts_prop(prev) && scan.bracket(index) != "(";
        // `role:user` is a name; with white space or quotes it is not.
        let two = next > index + 1
            || scan.kind(next) == Some(Kind::Quoted)
            || scan.kind(prev) == Some(Kind::Quoted);
        if named && two {
            let span = scan.span(prev).end..scan.span(next).start;
            let mut slip = Slip::new(
                scan.span(index),
                "expected `=` between a name and its value",
                "not a comparison",
            )
            .write(span, "=");
            if scan.kind(prev) == Some(Kind::Quoted) {
                let bare = scan.content(prev);
                if crate::query::syntax::is_name(&bare) {
                    slip = slip.write(scan.span(prev), bare);
                }
            }
            return Some(slip);
        }
        return None;
    }
    let starts = scan.starts_prop(index)
        || matches!(
            &*scan.word(prev).to_ascii_lowercase(),
            "and" | "or" | "not" | "&&" | "||" | "|" | "&" | "!"
        );
    let call = scan.word(index + 2) == "(";
    if !starts || call {
        return None;
    }
    let (span, name) = match word {
        "@" | "." | "$" if scan.kind(index + 1) == Some(Kind::Word) => {
            (scan.span(index), index + 1)
        }
        "@" | "$" if scan.word(index + 1) == "." && scan.kind(index + 2) == Some(Kind::Word) => {
            (scan.through(index, index + 1), index + 2)
        }
        _ => return None,
    };
    let after = scan.next_word(name);
    let test = after.is_empty()
        || matches!(after, "]" | "}" | ")" | "," | "&&" | "||" | "&" | "|" | ".")
        || matches!(&*after.to_ascii_lowercase(), "and" | "or")
        || scan.next(name).is_some_and(|at| any_op(scan, at));
    test.then(|| {
        Slip::new(
            span.start..scan.span(name).end,
            "an attribute is written without a sign",
            "the name alone is enough",
        )
        .write(span, "")
    })
}

/// `contains(name, 'x')`, `starts-with(…)`, `exists(name)`, `name.contains('x')`.
pub(super) fn calls(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.outside(index) || scan.kind(index) != Some(Kind::Word) || scan.word(index + 1) != "(" {
        return None;
    }
    let open = index + 1;
    let close = scan.partner(open)?;
    let function = scan.word(index).to_ascii_lowercase();
    let function = function.replace(['-', '_'], "");
    let method = scan.word(index.checked_sub(1)?) == "." && index >= 2 && scan.is_value(index - 2);
    let (first, name, value) = if method {
        let first = if scan.word(index.saturating_sub(3)) == "." && scan.starts_prop(index - 3) {
            index - 3
        } else {
            index - 2
        };
        (first, scan.word(index - 2).to_owned(), scan.next(open)?)
    } else {
        let comma =
            (open..close).find(|at| scan.word(*at) == "," && scan.parent(*at) == Some(open));
        let argument = scan.text.get(
            scan.span(open).end..comma.map_or(scan.span(close).start, |c| scan.span(c).start),
        )?;
        let name = match argument.trim().trim_start_matches(['@', '.', '$']) {
            "" | "text()" => "content".to_owned(),
            name if crate::query::syntax::is_name(name) => name.to_owned(),
            _ => return None,
        };
        (
            index,
            name,
            comma.map_or(close, |comma| scan.next(comma).unwrap_or(close)),
        )
    };
    let end = if value == close {
        None
    } else {
        Some(scan.value_end(value)?)
    };
    let test = match (&*function, end) {
        ("exists" | "has" | "hasattr" | "defined" | "isset", None) => name,
        ("isnull", None) => format!("{name}=null"),
        ("isnotnull" | "notnull", None) => format!("{name}!=null"),
        (_, None) => return None,
        (called, Some(end)) => {
            let text = escaped(&literal(scan, value, end));
            match called {
                "contains" | "includes" if Attr::from_name(&name) == Attr::Tags => {
                    format!("{name}={}", scan.slice(value, end))
                }
                "contains" | "includes" | "indexof" => format!("{name}~{}", text_of(&text)),
                "startswith" => format!("{name}~{}", text_of(&format!("^{text}"))),
                "endswith" => format!("{name}~{}", text_of(&format!("{text}$"))),
                "matches" | "match" | "test" | "regex" | "search" => {
                    format!("{name}~{}", scan.slice(value, end))
                }
                "equals" | "eq" => format!("{name}={}", scan.slice(value, end)),
                _ => return None,
            }
        }
    };
    let span = scan.span(first).start..scan.span(close).end;
    Some(
        Slip::new(
            scan.span(index),
            "expected a comparison, found a function",
            "there are no functions",
        )
        .write(span, test),
    )
}

/// `[role exists]`, `[role 'user']`, `[role='user' kind='text']`, `[role=user name]`.
pub(super) fn gaps(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let bracket = scan.bracket(index);
    if bracket != "[" && bracket != "{" || !scan.is_value(index) {
        return None;
    }
    let prev = scan.prev(index)?;
    if scan.starts_prop(prev) && scan.is_value(prev) {
        let span = scan.span(prev).end..scan.span(index).start;
        if scan.word(index).eq_ignore_ascii_case("exists") {
            let span = scan.span(prev).end..scan.span(index).end;
            return Some(
                Slip::new(
                    scan.span(index),
                    "a name alone tests that it is there",
                    "not needed",
                )
                .write(span, ""),
            );
        }
        let known = !matches!(Attr::from_name(scan.word(prev)), Attr::Custom(_));
        let last = matches!(scan.next_word(index), "]" | "}" | ",");
        if last && (known || scan.kind(index) == Some(Kind::Quoted)) {
            let at = if span.is_empty() {
                scan.span(index)
            } else {
                span.clone()
            };
            return Some(
                Slip::new(
                    at,
                    "expected `=` between a name and its value",
                    "a sign is missing",
                )
                .write(span, "="),
            );
        }
        return None;
    }
    // After a complete comparison.
    let op = scan.prev(prev)?;
    if !scan.is_value(prev) || !is_op(scan.word(op)) || scan.attached(index) {
        return None;
    }
    let next = scan.next(index);
    if next.is_some_and(|next| any_op(scan, next)) {
        let gap = scan.span(prev).end..scan.span(index).start;
        return Some(
            Slip::new(
                gap.clone(),
                "properties are separated by commas",
                "a comma is missing",
            )
            .write(gap, joint(scan, index)),
        );
    }
    if scan.kind(prev) != Some(Kind::Word) || joins(scan.word(index)) {
        return None;
    }
    let mut last = index;
    while let Some(next) = scan.next(last)
        && scan.kind(next) == Some(Kind::Word)
        && !joins(scan.word(next))
    {
        last = next;
    }
    let span = scan.through(prev, last);
    let words = scan.text.get(span.clone())?;
    matches!(scan.next_word(last), "]" | "}" | "," | "").then(|| {
        Slip::new(
            span.clone(),
            "a text with spaces takes quotes",
            "the quotes are missing",
        )
        .write(span, text_of(words))
    })
}

fn joins(word: &str) -> bool {
    matches!(
        &*word.to_ascii_lowercase(),
        "and" | "or" | "not" | "in" | "like" | "is"
    )
}
