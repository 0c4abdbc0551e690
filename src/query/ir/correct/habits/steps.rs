//! Steps as CSS, XPath, jq and Python write them, outside brackets.

use super::super::scan::{Kind, Scan, escaped, text_of};
use super::super::slip::Slip;
use super::common::{any_op, class_step, condition_end};
use super::typing::is_axis;
use crate::query::ir::lower::meant_type;
use crate::query::ir::query::Attr;

/// `.mt[1]`, `[0]`, `[-1]`, `[last()]`, `[:5]`, `[*]`.
pub(super) fn indexes(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.word(index) != "[" {
        return None;
    }
    let close = scan.partner(index)?;
    let inner = scan
        .text
        .get(scan.span(index).end..scan.span(close).start)?;
    let inner: String = inner.chars().filter(|c| !c.is_whitespace()).collect();
    let inner = inner
        .strip_prefix("position()=")
        .unwrap_or(&inner)
        .trim_start_matches('=');
    let pick = match inner {
        "last()" | "last" | "-1" | "$" => ":last".to_owned(),
        "first()" | "0" => ":first".to_owned(),
        "*" => String::new(),
        _ => match inner.parse::<i64>() {
            Ok(at) if at >= 1 => format!(":nth({at})"),
            _ => return slice(scan, index, close, inner),
        },
    };
    let what = match &*pick {
        "" => "every node is selected without brackets".to_owned(),
        _ if inner == "last" || inner == "first" => return None,
        pick => format!("a place in a list is written `{pick}`"),
    };
    let whole = scan.through(index, close);
    let message = if pick.contains("nth") {
        format!("{what}, counted from 1")
    } else {
        what
    };
    Some(Slip::new(whole, message, "brackets take properties").instead(pick))
}

/// `[:5]`, `[0:5]`, `[5:10]`.
fn slice(scan: &Scan<'_>, index: usize, close: usize, inner: &str) -> Option<Slip> {
    let (from, to) = inner.split_once(':')?;
    let number = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<i64>().ok(),
    };
    let (from, to) = (number(from)?, number(to)?);
    let last = close + 1 >= scan.lexemes.len();
    let slip = Slip::new(
        scan.through(index, close),
        "a part of a list is written `@limit=…` at the end",
        "brackets take properties",
    );
    if to == 0 && from < 0 {
        let count = from.unsigned_abs().to_string();
        return Some(match super::depths::of_turns(scan, index, &count) {
            Some(depths) => slip.instead(depths),
            None => slip.instead("").no_equal(
                "`:last` picks the last of each place; the last three turns are `.mt:depth(1-3)`",
            ),
        });
    }
    let size = to.checked_sub(from)?;
    if size > 0 && from >= 0 && last {
        if from == 0 {
            return Some(slip.instead(format!(" @limit={size}")));
        }
        if from % size == 0 {
            let page = from / size + 1;
            return Some(slip.instead(format!(" @limit={size} @p={page}")));
        }
    }
    Some(
        slip.instead("")
            .no_equal("`@limit=5` keeps the first five, `@limit=5 @p=2` the next five"),
    )
}

/// `/cb`, `//cb[…]`, `a/b`, `child::cb`.
pub(super) fn paths(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let sign = scan.word(index);
    let axis = scan.word(index + 1) == "::" && is_axis(sign) && scan.outside(index);
    if axis && !matches!(scan.prev_word(index), "/" | "//") {
        return axis_step(scan, index);
    }
    if !scan.outside(index) || !matches!(sign, "/" | "//") {
        return None;
    }
    let prev = scan.prev(index).filter(|prev| *prev >= scan.body());
    let message = "steps are separated by `>` or white space, not by slashes";
    let slip = Slip::new(scan.span(index), message, "not expected here");
    let Some(mut next) = scan.next(index) else {
        return Some(slip.instead(""));
    };
    let from = prev.map_or(scan.span(index).start, |prev| scan.span(prev).end);
    let mut joint = match (prev, sign) {
        (None, _) => "",
        (_, "//") => " ",
        _ => " > ",
    };
    if matches!(scan.word(next), ".." | "...") {
        return Some(
            slip.write(scan.through(index, next), "")
                .no_equal(no_way_up()),
        );
    }
    if scan.word(next + 1) == "::" {
        match scan.word(next) {
            "descendant" | "descendant-or-self" => {
                joint = if prev.is_some() { " " } else { "" };
            }
            "child" | "self" => {}
            _ => {
                let span = scan.span(index).start..scan.span(next + 1).end;
                return Some(slip.write(span, " ").no_equal(no_way_up()));
            }
        }
        next = scan.next(next + 1)?;
    }
    if scan.word(next) == "@" && scan.kind(next + 1) == Some(Kind::Word) {
        let span = from..scan.span(next + 1).end;
        return Some(slip.write(span, format!("[{}]", scan.word(next + 1))));
    }
    if scan.kind(next) == Some(Kind::Word) {
        let name = scan.word(next);
        let step = class_step(name).unwrap_or_else(|| format!(".{name}"));
        let span = from..scan.span(next).end;
        return Some(slip.write(span, format!("{joint}{step}")));
    }
    Some(slip.write(from..scan.span(next).start, joint))
}

/// `descendant::cb` without a slash.
fn axis_step(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let name = scan.next(index + 1)?;
    let message = "a step has no axis: `>` goes to children, white space to anything inside";
    let slip = Slip::new(scan.through(index, index + 1), message, "not expected here");
    let step = match scan.kind(name) {
        Some(Kind::Word) => {
            class_step(scan.word(name)).unwrap_or_else(|| format!(".{}", scan.word(name)))
        }
        _ => scan.word(name).to_owned(),
    };
    let slip = slip.write(scan.span(index).start..scan.span(name).end, step);
    let down =
        matches!(scan.word(index), "child" | "self") || scan.word(index).starts_with("descendant");
    Some(if down {
        slip
    } else {
        slip.no_equal(no_way_up())
    })
}

fn no_way_up() -> &'static str {
    "a selector goes down only: from a node to its children (`>`) or to anything inside (white space)"
}

/// `+`, `~`, `<`, `>>`, `->` between steps.
pub(super) fn combinators(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.kind(index) != Some(Kind::Sign) {
        return None;
    }
    let sign = scan.word(index);
    let (prev, next) = (scan.prev(index)?, scan.next(index)?);
    if prev < scan.body() {
        return None;
    }
    let between = scan.span(prev).end..scan.span(next).start;
    match sign {
        ">>" | ">>>" | "->" | "=>" => Some(
            Slip::new(
                scan.span(index),
                format!("expected `>` between a node and its child, found `{sign}`"),
                "not a combinator",
            )
            .write(between, " > "),
        ),
        "+" | "~" | "<" | "-" if scan.kind(next) != Some(Kind::Word) || next > index + 1 => {
            if scan.kind(next) == Some(Kind::Quoted)
                || scan.kind(next) == Some(Kind::Word) && sign != "~"
            {
                return None;
            }
            let what = match sign {
                "<" => "no combinator goes up",
                _ => "no combinator goes sideways",
            };
            Some(
                Slip::new(scan.span(index), what, "not a combinator")
                    .write(between, " ")
                    .no_equal(no_way_up()),
            )
        }
        _ => None,
    }
}

/// `.cb.role=='user'`, `.role=='user'`, `.cb.content.contains('x')`.
pub(super) fn fields(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.word(index) != "." {
        return None;
    }
    let name = index + 1;
    if scan.kind(name) != Some(Kind::Word) {
        return None;
    }
    let op = scan.next(name)?;
    let method = scan.word(op) == "." && scan.word(op + 2) == "(";
    // `.mt > .cb` has `>` as a combinator.
    let sign = any_op(scan, op) && !matches!(scan.word(op), ">" | "=>" | "~" | "<");
    let word = scan.kind(op) == Some(Kind::Word);
    if !(method
        || sign
            && (!word
                || scan.next(op).is_some_and(|value| {
                    scan.value_end(value).is_some() || scan.word(value) == "("
                })))
    {
        return None;
    }
    let last = condition_end(scan, name)?;
    let body = scan.slice(name, last);
    let before = scan.span(index).start;
    Some(
        Slip::new(
            scan.through(index, op),
            "a comparison is written in brackets",
            "brackets are missing",
        )
        .write(before..scan.span(last).end, format!("[{body}]")),
    )
}

/// `where role='user'` outside of brackets.
pub(super) fn introduced(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let word = scan.word(index);
    let verb = matches!(
        &*word.to_ascii_lowercase(),
        "where" | "with" | "having" | "whose" | "if" | "when"
    );
    if !scan.outside(index) || !verb || scan.kind(index) != Some(Kind::Word) {
        return None;
    }
    let attached = scan.attached(index) && matches!(scan.prev_word(index), ":" | "." | "#" | "+");
    let start = scan.next(index)?;
    if attached || scan.word(index + 1) == "(" {
        return None;
    }
    let message = format!("properties are written in brackets, without `{word}`");
    let slip = Slip::new(scan.span(index), message, "not expected here");
    let from = match last_step(scan, index) {
        Some(prev) => scan.span(prev).end,
        None => scan.span(index).start,
    };
    if scan.word(start) == "[" {
        return Some(slip.write(from..scan.span(start).start, ""));
    }
    let begins = matches!(scan.kind(start), Some(Kind::Word | Kind::Quoted))
        || matches!(scan.word(start), "(" | "!" | "@" | ".");
    let last = condition_end(scan, start).filter(|_| begins)?;
    let body = scan.slice(start, last);
    Some(slip.write(from..scan.span(last).end, format!("[{body}]")))
}

/// The step that a condition after white space belongs to.
fn last_step(scan: &Scan<'_>, index: usize) -> Option<usize> {
    scan.prev(index)
        .filter(|prev| *prev >= scan.body() && !matches!(scan.word(*prev), ">" | "," | "|"))
}

/// `.turn`, `.CB` for the class of that name.
pub(super) fn types(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let name = scan.word(index + 1);
    let follows = index > 0 && scan.attached(index) && scan.kind(index - 1) == Some(Kind::Sign);
    let part = matches!(scan.word(index + 2), ":" | "." | "(") || follows;
    if !scan.outside(index) || scan.word(index) != "." || name.is_empty() || part {
        return None;
    }
    let meant = meant_type(name).filter(|meant| meant.starts_with('.'))?;
    let op = scan.next(index + 1);
    if op.is_some_and(|op| any_op(scan, op) && !matches!(scan.word(op), ">" | "~" | "<")) {
        return None;
    }
    Some(
        Slip::new(
            scan.through(index, index + 1),
            format!("expected `{meant}`, found the nodeType `{name}`"),
            "not a class of nodes",
        )
        .instead(meant),
    )
}

/// `role='user'`, `role:user`, `not role='user'` outside of brackets.
pub(super) fn bare_conditions(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let part = scan.attached(index)
        && scan.prev(index).is_some_and(|prev| {
            scan.kind(prev) == Some(Kind::Sign) && !matches!(scan.word(prev), ">" | ",")
        });
    if !scan.outside(index) || part || index < scan.body() {
        return None;
    }
    let word = scan.word(index);
    let lower = word.to_ascii_lowercase();
    if matches!(
        &*lower,
        "limit" | "order" | "p" | "page" | "top" | "mode" | "and" | "or"
    ) {
        return None;
    }
    let negated = word == "!" || lower == "not";
    let is_word = scan.kind(index) == Some(Kind::Word);
    let call = is_word
        && scan.word(index + 1) == "("
        && matches!(
            &*lower,
            "contains" | "starts-with" | "ends-with" | "matches" | "exists" | "has"
        );
    let name = if negated { scan.next(index)? } else { index };
    let op = scan.next(name);
    let comparison = scan.is_value(name)
        && op.is_some_and(|op| {
            any_op(scan, op) && (scan.word(op) != ">" || scan.kind(op + 1) == Some(Kind::Word))
        });
    // `role:user`, as search engines write it.
    let labelled = is_word
        && scan.word(index + 1) == ":"
        && scan.value_end(index + 2).is_some()
        && !matches!(Attr::from_name(word), Attr::Custom(_));
    if !(comparison || labelled || call) {
        return None;
    }
    let mut last = condition_end(scan, index)?;
    let mut body = scan.slice(index, last).to_owned();
    if labelled {
        (body, last) = labels(scan, index, last)?;
    }
    let from = match last_step(scan, index) {
        Some(prev) => scan.span(prev).end,
        None => scan.span(index).start,
    };
    let place = scan.span(index).start..scan.span(op.unwrap_or(last)).end;
    let message = "a comparison is written in brackets";
    let slip = Slip::new(place, message, "brackets are missing");
    let searched = match last_step(scan, index).map(|prev| scan.word(prev)) {
        Some("?" | "??") => format!(" {{{body}}}"),
        _ => format!("[{body}]"),
    };
    Some(slip.write(from..scan.span(last).end, searched))
}

/// `role:user and kind:text refund` as properties, and where they end.
fn labels(scan: &Scan<'_>, first: usize, end: usize) -> Option<(String, usize)> {
    let mut body = String::new();
    let mut last = first;
    let mut at = first;
    loop {
        let labelled = scan.word(at + 1) == ":" && scan.kind(at) == Some(Kind::Word);
        let known = !matches!(Attr::from_name(scan.word(at)), Attr::Custom(_));
        if labelled && known {
            let value = at + 2;
            let close = scan.value_end(value)?;
            body.push_str(&format!("{}={}", scan.word(at), scan.slice(value, close)));
            last = close;
        } else if at > first && scan.is_value(at) {
            // A word alone is searched for.
            let text = text_of(&escaped(&scan.content(at)));
            body.push_str(&format!("content~{text}"));
            last = at;
        } else {
            break;
        }
        let Some(mut next) = scan.next(last).filter(|next| *next <= end) else {
            break;
        };
        let mut joint = "][".to_owned();
        if matches!(
            &*scan.word(next).to_ascii_lowercase(),
            "and" | "&&" | "&" | "or" | "||"
        ) {
            let or = scan.word(next).eq_ignore_ascii_case("or") || scan.word(next) == "||";
            if or {
                joint = " or ".to_owned();
            }
            next = scan.next(next)?;
        }
        body.push_str(&joint);
        at = next;
    }
    let body = body
        .trim_end_matches("][")
        .trim_end_matches(" or ")
        .to_owned();
    Some((body, last))
}

/// `(role=user)` where no type precedes, `.cb (role=user)`.
pub(super) fn groups(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.word(index) != "(" {
        return None;
    }
    let close = scan.partner(index)?;
    let inside = index + 1..close;
    let compares = inside
        .clone()
        .any(|at| scan.parent(at) == Some(index) && any_op(scan, at) && scan.word(at) != "*=");
    if !compares {
        return None;
    }
    let prev = scan.prev(index).filter(|prev| *prev >= scan.body());
    let named = |at: usize| {
        scan.kind(at) == Some(Kind::Word)
            && at
                .checked_sub(1)
                .is_some_and(|sign| matches!(scan.word(sign), "." | ":"))
    };
    let message = "a group of properties directly follows a type";
    if let Some(prev) = prev
        && named(prev)
    {
        if scan.attached(index) {
            return None;
        }
        let span = scan.span(prev).end..scan.span(index).start;
        return Some(Slip::new(span.clone(), message, "no white space here").write(span, ""));
    }
    if prev.is_some_and(|prev| scan.kind(prev) == Some(Kind::Word) && scan.attached(index)) {
        return None;
    }
    Some(
        Slip::new(
            scan.through(index, index),
            message,
            "brackets are expected here",
        )
        .write(scan.span(index), "[")
        .write(scan.span(close), "]"),
    )
}

/// `turns`, `user`, `seq` without their signs.
pub(super) fn bare_words(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.kind(index) != Some(Kind::Word) {
        return None;
    }
    let free = scan.prev(index).is_none_or(|prev| {
        prev < scan.body() || !scan.attached(index) || matches!(scan.word(prev), ">" | ",")
    });
    if !free
        || index < scan.body()
        || matches!(scan.word(index + 1), "(" | ":") && scan.word(index) != "turn"
    {
        return None;
    }
    let mut step = class_step(scan.word(index))?;
    let mut last = index;
    // `seq.mt.cb`, `cb.user`
    while scan.word(last + 1) == "."
        && let Some(more) = class_step(scan.word(last + 2))
    {
        if !more.starts_with('[') {
            step.push(' ');
        }
        step.push_str(&more);
        last += 2;
    }
    if last > index {
        let message = "steps are separated by `>` or white space, not by dots";
        let place = scan.through(index, last);
        return Some(Slip::new(place, message, "signs are missing").instead(step));
    }
    Some(
        Slip::new(
            scan.span(index),
            format!(
                "expected a step such as `.cb`, found the word `{}`",
                scan.word(index)
            ),
            "a sign is missing",
        )
        .instead(step),
    )
}
