//! What a selector has nothing for: comments, subtraction, counting, fields to print.

use super::super::scan::{Kind, Scan, escaped, text_of};
use super::super::slip::Slip;
use super::common::is_op;
use crate::query::ir::query::Attr;

/// `.cb # note`, `.cb // note`, `.cb -- note`.
pub(super) fn comments(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || index <= scan.body() || scan.attached(index) {
        return None;
    }
    let first = match (scan.word(index), scan.word(index + 1)) {
        ("#" | "//", _) => index + 1,
        ("-", "-") => index + 2,
        _ => return None,
    };
    let prev = scan.prev(index)?;
    let word = scan.next(first)?;
    let spaced = scan.kind(first) == Some(Kind::Space);
    let steps = matches!(scan.word(prev), ">" | ",") || scan.kind(word) != Some(Kind::Word);
    if !spaced || steps || prev < scan.body() {
        return None;
    }
    let span = scan.span(index).start..scan.text.len();
    Some(
        Slip::new(span, "a selector has no comments", "not expected here")
            .write(scan.span(prev).end..scan.text.len(), ""),
    )
}

/// `.cb - .cb[role=user]`, `.cb except .mt`, `!.cb`, `not .cb`.
pub(super) fn subtraction(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || index < scan.body() {
        return None;
    }
    let next = scan.next(index)?;
    let step = matches!(scan.word(next), "." | "#" | "^" | "*" | "[" | "(" | "+");
    let prev = scan.prev(index).filter(|prev| *prev >= scan.body());
    let word = scan.word(index).to_ascii_lowercase();
    let sign = match &*word {
        "-" | "!" => true,
        "not" | "except" | "minus" | "without" | "exclude" => {
            scan.kind(index) == Some(Kind::Word) && (prev.is_none() || !scan.attached(index))
        }
        _ => false,
    };
    if !sign || !step {
        return None;
    }
    let slip = Slip::new(scan.span(index), "nothing subtracts", "not expected here");
    let help = "`!=` is the opposite of `=`: `.cb[role!='user']`; `[role=null]` is the opposite of `[role]`";
    let Some(prev) = prev else {
        let span = scan.span(index).start..scan.span(next).start;
        return Some(slip.write(span, "").no_equal(help));
    };
    // `.cb - .cb[role=user]`
    let end = scan.text.trim_end().len();
    let before = scan
        .text
        .get(scan.span(scan.body()).start..scan.span(prev).end)?;
    let after = scan.text.get(scan.span(next).start..end)?;
    let test = after
        .strip_prefix(before)
        .and_then(|test| test.strip_prefix('[')?.strip_suffix(']'))
        .filter(|test| !test.contains(['[', ']', '!', '<', '>', '~', ',']))
        .and_then(|test| test.split_once('='));
    let span = scan.span(prev).end..scan.text.len();
    Some(match test {
        Some((name, value)) => slip.write(span, format!("[{name}!={value}]")),
        None => slip.write(span, "").no_equal(help),
    })
}

/// `count(.cb)`, `len(.cb)`.
pub(super) fn counts(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let word = scan.word(index).to_ascii_lowercase();
    let name = matches!(
        &*word,
        "count" | "len" | "length" | "size" | "sum" | "any" | "exists"
    );
    let close = scan.partner(index + 1)?;
    if index != scan.body() || !name || scan.next(close).is_some() {
        return None;
    }
    Some(
        Slip::new(
            scan.span(index),
            format!("expected a step such as `.cb`, found the function `{word}`"),
            "there are no functions",
        )
        .write(scan.through(index, index + 1), "")
        .write(scan.span(close), "")
        .no_equal("the answer is the list of nodes; on the command line, `--count` counts it"),
    )
}

/// `| .content`: a field of each node.
pub(super) fn printed(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let name = scan.next(index)? + 1;
    let field = !matches!(Attr::from_name(scan.word(name)), Attr::Custom(_));
    let ends = scan.next(name).is_none();
    if !scan.outside(index) || scan.word(index) != "|" || scan.word(name - 1) != "." {
        return None;
    }
    let prev = scan.prev(index)?;
    (field && ends).then(|| {
        let span = scan.span(prev).end..scan.span(name).end;
        Slip::new(
            scan.through(index, name),
            "a selector selects whole nodes",
            "not a step",
        )
        .write(span, "")
        .no_equal("on the command line, `--format nodes` prints the fields of each node")
    })
}

/// `"refund"`: a text alone.
pub(super) fn text_alone(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let alone =
        scan.prev(index).is_none_or(|prev| prev < scan.body()) && scan.next(index).is_none();
    if !alone || scan.kind(index) != Some(Kind::Quoted) {
        return None;
    }
    let text = scan.content(index);
    let plain = text
        .chars()
        .all(|c| c.is_alphanumeric() || c == ' ' || c == '_');
    if !plain || text.trim().is_empty() || super::common::class_step(&text).is_some() {
        return None;
    }
    let test = format!("[content~{}]", text_of(&escaped(&text)));
    let message = "a text is searched with `~` in the content";
    Some(Slip::new(scan.span(index), message, "not a step").instead(test))
}

/// `cb:u3`, `cont:m2`: an id without a sign.
pub(super) fn ids(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let free = index == scan.body() && scan.kind(index) == Some(Kind::Word);
    let class = matches!(
        scan.word(index),
        "cb" | "mt" | "mc" | "block" | "seg" | "cont" | "turn"
    );
    let end = scan.value_end(index).filter(|end| *end > index)?;
    let next = scan.next(end);
    let tests = next.is_some_and(|next| is_op(scan.word(next)) || scan.word(next) == "(");
    if !free || !class || scan.word(index + 1) != ":" || tests {
        return None;
    }
    let id = scan.slice(index, end);
    let pseudo = scan.word(index + 2);
    if crate::query::syntax::words::PLAIN_PSEUDOS.contains(&pseudo) {
        return None;
    }
    let message = format!("expected a step such as `.cb`, found the word `{id}`");
    Some(
        Slip::new(
            scan.through(index, end),
            message,
            "an id is tested in brackets",
        )
        .instead(format!("[id={}]", text_of(id))),
    )
}

/// `[content.return_id=x]`, `[data.call_name='x']`, `[content['return_id']=x]`.
pub(super) fn name_paths(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.starts_prop(index) || scan.kind(index) != Some(Kind::Word) {
        return None;
    }
    let head = scan.word(index);
    let (name, end) = match scan.word(index + 1) {
        "." | "/" | "->" => (scan.word(index + 2).to_owned(), index + 2),
        "[" => (scan.content(index + 2), scan.partner(index + 1)?),
        _ => return None,
    };
    if !crate::query::syntax::is_name(&name) || scan.word(end + 1) == "(" {
        return None;
    }
    let slip = Slip::new(
        scan.through(index, end),
        "the name of an attribute is not a path",
        "not a name",
    );
    match head {
        "data" => Some(slip.instead(format!("data_{name}"))),
        "content" => {
            let op = scan.next(end);
            let value = op
                .filter(|op| is_op(scan.word(*op)))
                .and_then(|op| scan.next(op));
            let last = value.and_then(|value| scan.value_end(value)).unwrap_or(end);
            let test = format!("content~{}", text_of(&escaped(&name)));
            let help = format!("`[{test}]` searches every text inside the content");
            Some(slip.write(scan.through(index, last), test).no_equal(help))
        }
        _ => None,
    }
}
