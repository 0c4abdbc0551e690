//! Queries of SQL and jq as a whole: `select … where …`, pipes, `limit 5`.

use super::super::scan::{Kind, Scan, text_of};
use super::super::slip::Slip;
use super::common::class_step;

/// A selector in quotes as a whole.
pub(super) fn quoted(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let alone = scan.prev(index).is_none() && scan.next(index).is_none();
    if !alone || scan.kind(index) != Some(Kind::Quoted) {
        return None;
    }
    let word = scan.word(index);
    let mark = word.chars().next()?;
    // Without its end, the last character is one of the text.
    if word.len() < 2 || !word.ends_with(mark) {
        return None;
    }
    let inner = scan.content(index);
    let span = scan.span(index);
    Some(
        Slip::new(
            span.start..span.start + 1,
            "a selector takes no quotes around it",
            "not expected here",
        )
        .and_at(span.end - 1..span.end, "and here")
        .write(span, inner),
    )
}

/// `.cb > /dev/null`, `.cb 2>&1`: what a shell would have taken.
pub(super) fn redirected(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let next = scan.next(index)?;
    let to = scan.word(index) == ">" && scan.outside(index) && scan.word(next) == "/";
    let prev = scan.prev(index).filter(|prev| *prev >= scan.body())?;
    let device = matches!(scan.word(next + 1), "dev" | "tmp");
    (to && device).then(|| {
        Slip::new(
            scan.span(index).start..scan.text.trim_end().len(),
            "a selector writes to no file",
            "not expected here",
        )
        .write(scan.span(prev).end..scan.text.len(), "")
    })
}

/// `select * from blocks …`, `select .cb …`, `find …`.
pub(super) fn select(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if index != scan.body() || scan.kind(index) != Some(Kind::Word) {
        return None;
    }
    let verb = scan.word(index).to_ascii_lowercase();
    if !matches!(
        &*verb,
        "select" | "find" | "get" | "show" | "query" | "match" | "from"
    ) {
        return None;
    }
    let next = scan.next(index)?;
    if scan.word(next) == "(" {
        return piped_select(scan, index);
    }
    let is = |at: usize, word: &str| scan.outside(at) && scan.word(at).eq_ignore_ascii_case(word);
    let from = match &*verb {
        "from" => Some(index),
        _ => (index..scan.lexemes.len()).find(|at| is(*at, "from")),
    };
    let slip = Slip::new(
        scan.span(index),
        format!(
            "expected a step such as `.cb`, found the word `{}`",
            scan.word(index)
        ),
        "a selector has no verb",
    );
    if let Some(from) = from {
        let table = scan.next(from)?;
        let step = match scan.kind(table) {
            Some(Kind::Word) => class_step(scan.word(table)).unwrap_or_else(|| "*".to_owned()),
            _ => return Some(slip.write(scan.span(index).start..scan.span(table).start, "")),
        };
        let span = scan.span(index).start..scan.span(table).end;
        return Some(slip.write(span, step));
    }
    let span = scan.span(index).start..scan.span(next).start;
    Some(slip.write(span, ""))
}

/// `| select(.role == "user")`.
pub(super) fn piped_select(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index)
        || !matches!(
            &*scan.word(index).to_ascii_lowercase(),
            "select" | "filter" | "where" | "map"
        )
        || scan.word(index + 1) != "("
        || matches!(scan.prev_word(index), ":" | "::")
    {
        return None;
    }
    let (open, close) = (index + 1, scan.partner(index + 1)?);
    let mut from = index;
    let pipe = scan.prev(index).filter(|prev| scan.word(*prev) == "|");
    let pipe = pipe.or_else(|| scan.prev(index).filter(|prev| scan.word(*prev) == "."));
    if let Some(pipe) = pipe {
        from = pipe;
    }
    // `.[] |` and `.. |` are every node; the brackets alone mean that.
    let mut each = from;
    while let Some(before) = scan.prev(each).filter(|before| *before >= scan.body())
        && matches!(scan.word(before), "." | ".." | "[" | "]")
    {
        each = before;
    }
    let all = (each..from).all(|at| matches!(scan.word(at), "." | ".." | "[" | "]" | " "));
    let start = match scan.prev(from) {
        _ if all && each < from => scan.span(each).start,
        Some(prev) if prev >= scan.body() => scan.span(prev).end,
        _ => scan.span(from).start,
    };
    let inner = scan.text.get(scan.span(open).end..scan.span(close).start)?;
    Some(
        Slip::new(
            scan.through(from, index),
            "properties are written in brackets",
            "there are no pipes",
        )
        .write(start..scan.span(close).end, format!("[{}]", inner.trim())),
    )
}

/// Other pipes: `| first`, `| head -5`, `| length`.
pub(super) fn pipes(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.word(index) != "|" {
        return None;
    }
    let prev = scan.prev(index)?;
    let command = scan.next(index)?;
    let before = scan.span(prev).end;
    let name = scan.word(command).to_ascii_lowercase();
    let end = scan.span(scan.lexemes.len().saturating_sub(1)).end;
    let slip = Slip::new(
        scan.through(index, command),
        "a selector has no pipes",
        "not expected here",
    );
    let argument = (command + 1..scan.lexemes.len())
        .find_map(|at| scan.word(at).parse::<u64>().ok().map(|number| (at, number)));
    let rest = match argument {
        Some((at, _)) => scan.span(at).end,
        None => scan.span(command).end,
    };
    let closes = scan
        .text
        .get(rest..)
        .is_some_and(|rest| rest.trim_matches([')', ' ']).is_empty());
    if scan.word(command) == "." && scan.word(command + 1) == "[" {
        // `| .[0]`, `| .[:5]`
        return Some(slip.write(before..scan.span(command).end, ""));
    }
    Some(match (&*name, argument) {
        ("first", None) => slip.write(before..rest, ":first"),
        ("last", None) => slip.write(before..rest, ":last"),
        ("head" | "first" | "limit" | "take" | "top", Some((_, count))) if closes => {
            slip.write(before..end, format!(" @limit={count}"))
        }
        ("head", None) => slip.write(before..rest, " @limit=10"),
        ("grep" | "rg", None) => {
            let pattern = scan.next(command)?;
            let text = text_of(&scan.content(pattern));
            slip.write(before..scan.span(pattern).end, format!("[content~{text}]"))
        }
        _ if scan.kind(command) == Some(Kind::Word) => slip.write(before..end, "").no_equal(
            "the answer is the list of nodes; count, sort or format it with the options of the command",
        ),
        _ => return None,
    })
}

/// The control that a word means, with `limit` for `top` and `take`.
fn control_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "limit" | "top" | "take" | "head" | "max" | "count" | "n" | "size" => "limit",
        "page" | "p" => "p",
        "order" | "sort" | "orderby" | "order_by" | "sortby" => "order",
        "mode" => "mode",
        "distinct" | "uniq" | "unique" => "unique",
        _ => return None,
    })
}

/// `limit 5`, `limit 5 offset 10`, `top 5`, `@limit 5`, `@limit(5)`, `limit=5`, `@sort=bfs`.
pub(super) fn limit(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.kind(index) != Some(Kind::Word) {
        return None;
    }
    let name = scan.word(index).to_ascii_lowercase();
    let control = index > 0 && scan.word(index - 1) == "@";
    let known = control_of(&name)?;
    let next = scan.next(index);
    let sign = next.filter(|next| matches!(scan.word(*next), "=" | ":" | "==" | "("));
    let start = if control {
        scan.span(index - 1).start
    } else {
        scan.span(index).start
    };
    let place = start..scan.span(index).end;
    if matches!(known, "mode" | "order")
        && let Some(sign) = sign.filter(|sign| scan.word(*sign) != "(")
        && let Some(slip) = assigned(scan, place.clone(), known, sign)
    {
        return Some(slip);
    }
    if !matches!(known, "limit" | "p") {
        let renamed = control && known != name && (known == "unique" || sign.is_some());
        return match renamed {
            true => Some(
                Slip::new(place, format!("expected `@{known}`"), "no such control")
                    .instead(format!("@{known}")),
            ),
            false if known == "unique" => None,
            false => order_by(scan, index, known),
        };
    }
    let value = match sign {
        Some(sign) => scan.next(sign)?,
        None => next?,
    };
    let count: u64 = scan.content(value).parse().ok()?;
    let right = control
        && known == name
        && scan.kind(value) == Some(Kind::Word)
        && sign.is_some_and(|sign| scan.word(sign) == "=");
    let free = control
        || scan
            .prev(index)
            .is_none_or(|prev| !scan.attached(index) || prev < scan.body());
    if right || !free || (!control && sign.is_none() && scan.attached(value)) {
        return None;
    }
    let last = match sign {
        Some(sign) if scan.word(sign) == "(" => scan.partner(sign)?,
        _ => value,
    };
    let slip = Slip::new(
        place,
        format!("expected `@{known}=…`"),
        "a control is written `@name=value`",
    );
    let spaced = start == 0 || !scan.attached(index - usize::from(control));
    let gap = if spaced { "" } else { " " };
    Some(with_offset(
        scan,
        slip,
        last,
        start,
        &format!("{gap}@{known}={count}"),
        count,
    ))
}

/// The order that a word of another language means.
fn order_of(text: &str) -> Option<&'static str> {
    Some(match &*text.to_ascii_lowercase() {
        "depth" | "depth desc" | "turn" | "turn desc" | "desc" | "newest" | "recent" => {
            "turn:desc,pre"
        }
        "asc" | "oldest" | "turn asc" => "turn:asc,pre",
        "pre" | "dfs" | "document" | "preorder" => "pre",
        "post" | "postorder" => "post",
        "bfs" | "level" => "bfs",
        "path" => "path",
        "turn:desc,pre" | "turn:desc" => "turn:desc,pre",
        "turn:asc,pre" | "turn:asc" => "turn:asc,pre",
        _ => return None,
    })
}

/// `mode=union`, `@sort=depth`, `order=bfs`.
fn assigned(
    scan: &Scan<'_>,
    place: std::ops::Range<usize>,
    known: &str,
    sign: usize,
) -> Option<Slip> {
    let value = scan.next(sign)?;
    let mut last = scan.value_end(value)?;
    while scan.word(last + 1) == "," && scan.kind(last + 2) == Some(Kind::Word) {
        last += 2;
    }
    let written = scan.slice(value, last);
    let meant = match known {
        "order" => order_of(written)?,
        _ if matches!(written, "union" | "latest" | "reduce") => written,
        _ => return None,
    };
    let instead = format!("@{known}={meant}");
    let span = place.start..scan.span(last).end;
    let same = scan.text.get(span.clone()) == Some(&*instead);
    let free = place.start == 0
        || scan
            .text
            .get(..place.start)
            .is_some_and(|before| before.ends_with([' ', ']', ')', '}']));
    (!same && free).then(|| {
        let message = format!("expected `@{known}={meant}`");
        let named = scan.text.get(place) == Some(&*format!("@{known}"));
        let label = if named {
            "no such order"
        } else {
            "a control is written `@name=value`"
        };
        Slip::new(span, message, label).instead(instead)
    })
}

/// Finishes `limit 5`, to which `offset 10` may belong.
fn with_offset(
    scan: &Scan<'_>,
    slip: Slip,
    last: usize,
    start: usize,
    text: &str,
    count: u64,
) -> Slip {
    let offset = scan
        .next(last)
        .filter(|offset| scan.word(*offset).eq_ignore_ascii_case("offset"))
        .and_then(|offset| scan.next(offset))
        .and_then(|skipped| Some((skipped, scan.word(skipped).parse::<u64>().ok()?)));
    match offset {
        None => slip.write(start..scan.span(last).end, text),
        Some((skipped, skip)) if count > 0 && skip % count == 0 => slip.write(
            start..scan.span(skipped).end,
            format!("{text} @p={}", skip / count + 1),
        ),
        Some((skipped, _)) => slip.write(start..scan.span(skipped).end, text).no_equal(
            "`@limit=5 @p=2` takes the second page of five; rows are skipped in whole pages",
        ),
    }
}

/// `order by …`, `group by …`, `sort …`: nothing means the same.
fn order_by(scan: &Scan<'_>, index: usize, known: &str) -> Option<Slip> {
    let by = scan
        .next(index)
        .filter(|next| scan.word(*next).eq_ignore_ascii_case("by"))?;
    let column = scan.next(by)?;
    let mut last = column;
    while let Some(next) = scan.next(last)
        && (matches!(&*scan.word(next).to_ascii_lowercase(), "asc" | "desc" | ",")
            || scan.word(last) == ",")
    {
        last = next;
    }
    let before = scan
        .prev(index)
        .map_or(scan.span(index).start, |prev| scan.span(prev).end);
    if known == "order"
        && let Some(order) = order_of(scan.slice(column, last))
    {
        let message = format!("expected `@order={order}`, found words");
        let slip = Slip::new(
            scan.through(index, by),
            message,
            "a control is written `@name=value`",
        );
        return Some(slip.write(before..scan.span(last).end, format!(" @order={order}")));
    }
    Some(
        Slip::new(
            scan.through(index, by),
            format!("expected `@{known}=…`, found words"),
            "a control is written `@name=value`",
        )
        .write(before..scan.span(last).end, "")
        .no_equal("the orders are `pre`, `post`, `bfs`, `path`, `turn:desc,pre` and `turn:asc,pre`: `@order=turn:desc,pre`"),
    )
}

/// `group by …`.
pub(super) fn group_by(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index)
        || !scan.word(index).eq_ignore_ascii_case("group")
        || !scan.next_word(index).eq_ignore_ascii_case("by")
    {
        return None;
    }
    let before = scan.prev(index).map_or(0, |prev| scan.span(prev).end);
    let end = scan.span(scan.lexemes.len() - 1).end;
    Some(
        Slip::new(
            scan.through(index, scan.next(index)?),
            "expected a filter or a control",
            "nothing groups",
        )
        .write(before..end, "")
        .no_equal("`@unique` keeps the first node of each key"),
    )
}

/// `$.turns[*].blocks`, `$..cb`, `.[]`, `..cb` at the start.
pub(super) fn json_paths(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if index != scan.body() {
        return None;
    }
    let word = scan.word(index);
    let dollar = word == "$";
    let each = word == "." && scan.word(index + 1) == "[" && scan.word(index + 2) == "]";
    if each {
        let end = scan.span(index + 2).end;
        let rest = scan.next(index + 2);
        let step = match rest.map(|rest| scan.word(rest)) {
            Some(".") => "",
            _ => "*",
        };
        return Some(
            Slip::new(
                scan.span(index).start..end,
                "every node is selected by `*`",
                "not a step",
            )
            .instead(step),
        );
    }
    if !dollar {
        return None;
    }
    let slip = Slip::new(
        scan.span(index),
        "a selector starts anywhere in the tree, without `$`",
        "not expected here",
    );
    let mut out = String::new();
    let mut at = index + 1;
    loop {
        match scan.word(at) {
            "." | ".." if scan.kind(at + 1) == Some(Kind::Word) || scan.word(at + 1) == "*" => {
                if !out.is_empty() {
                    out.push_str(if scan.word(at) == ".." { " " } else { " > " });
                }
                let name = scan.word(at + 1);
                out.push_str(&class_step(name).unwrap_or_else(|| format!(".{name}")));
                at += 2;
            }
            ".." if scan.word(at + 1) == "[" => at += 1,
            "[" => {
                let Some(close) = scan.partner(at) else { break };
                let inner = scan
                    .text
                    .get(scan.span(at).end..scan.span(close).start)?
                    .trim();
                if inner == "*" || inner.is_empty() {
                    at = close + 1;
                    continue;
                }
                if let Some(test) = inner
                    .strip_prefix("?(")
                    .and_then(|test| test.strip_suffix(')'))
                {
                    out.push_str(&format!("[{test}]"));
                    at = close + 1;
                    continue;
                }
                break;
            }
            _ => break,
        }
    }
    let end = scan.span(at.saturating_sub(1)).end;
    if out.is_empty() && at >= scan.lexemes.len() {
        out.push('*');
    }
    Some(slip.write(scan.span(index).start..end, out))
}

/// A sign at the end that something should follow.
pub(super) fn trailing(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.next(index).is_some() || !scan.outside(index) {
        return None;
    }
    let word = scan.word(index);
    let what = match word {
        ";" | ";;" => "a selector ends without a sign",
        "," | ",," => "expected a selector after the comma",
        ">" | "." | ".." | "..." | "/" | "|" | "||" | "&&" | "&" => "expected a step after this",
        _ => return None,
    };
    let prev = scan.prev(index).filter(|prev| *prev >= scan.body())?;
    let span = scan.span(prev).end..scan.span(index).end;
    Some(Slip::new(scan.span(index), what, "nothing follows").write(span, ""))
}

/// A comma or `,` at the start, or two in a row with white space between.
pub(super) fn leading(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !matches!(scan.word(index), "," | ",,") {
        return None;
    }
    let next = scan.next(index)?;
    let start = scan.outside(index) && scan.prev(index).is_none_or(|prev| prev < scan.body());
    let inner = scan
        .prev(index)
        .is_some_and(|prev| matches!(scan.word(prev), "[" | "{"));
    let twice = matches!(scan.word(next), "," | ",,");
    let closes = !scan.outside(index) && matches!(scan.word(next), "]" | "}");
    if !(start || inner || twice || closes) {
        return None;
    }
    let at = if twice {
        scan.span(next)
    } else {
        scan.span(index)
    };
    let gap = if twice {
        scan.span(index).end..scan.span(next).end
    } else {
        scan.span(index).start..scan.span(next).start
    };
    let timed = start && scan.prev(index).is_some();
    let what = if scan.outside(index) {
        "a selector"
    } else {
        "a property"
    };
    Some(
        Slip::new(
            at,
            format!("expected {what} on each side of a comma"),
            "one comma too many",
        )
        .write(gap, if timed { " " } else { "" }),
    )
}
