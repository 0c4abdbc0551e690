//! Slips of the fingers and of the shell: doubled signs, white space after a sign, backslashes.

use super::super::scan::{Kind, Scan};
use super::super::slip::Slip;
use crate::query::syntax::words::{CALLED_PSEUDOS, FOREIGN_PSEUDOS, PLAIN_PSEUDOS};
use crate::support::diag::Edit;

/// Backslashes that a shell was meant to remove.
pub(super) fn backslashes(scan: &Scan<'_>) -> Option<Slip> {
    let places: Vec<usize> = (0..scan.lexemes.len())
        .filter(|at| scan.word(*at) == "\\")
        .collect();
    let first = *places.first()?;
    let mut slip = Slip::new(
        scan.span(first),
        "a sign takes no backslash",
        "backslashes escape inside quotes only",
    );
    // `\"text\"` is one quoted text after an escape, so its end is escaped, too.
    for at in places {
        slip.edits.push(Edit::new(scan.span(at), ""));
        if scan.kind(at + 1) == Some(Kind::Quoted) {
            let span = scan.span(at + 1);
            let mark = scan.word(at + 1).get(..1).unwrap_or_default();
            let inner = scan.word(at + 1);
            let escaped = format!("\\{mark}");
            if let Some(end) = inner.find(&escaped) {
                slip.edits
                    .push(Edit::new(span.start + end..span.start + end + 1, ""));
            }
        }
    }
    Some(slip)
}

/// `..cb`, `##x`, `@@t0`, `++tag`, `^^seq`, `::first`, `,,`, `**`.
pub(super) fn doubled(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.kind(index) != Some(Kind::Sign) {
        return None;
    }
    let word = scan.word(index);
    if matches!(word, ".." | "...")
        && scan.kind(index + 1) == Some(Kind::Open)
        && index >= scan.body()
    {
        return Some(
            Slip::new(
                scan.span(index),
                "brackets directly follow their step",
                "not expected here",
            )
            .instead(""),
        );
    }
    let one = match word {
        "##" => "#",
        "@@" => "@",
        "++" => "+",
        "^^" => "^",
        "::" => ":",
        ",," => ",",
        "**" => "*",
        "???" => "??",
        ";;" => ";",
        ".." | "..." if scan.outside(index) && !scan.attached(index) => ".",
        ".." if scan.outside(index) && index >= scan.body() => ".",
        _ => return None,
    };
    let pseudo = scan.word(index + 1);
    let known = PLAIN_PSEUDOS.contains(&pseudo)
        || CALLED_PSEUDOS.contains(&pseudo)
        || FOREIGN_PSEUDOS.contains(&pseudo);
    if word == "::" && !known {
        return None;
    }
    let axis = word == "::" && index > 0 && is_axis(scan.word(index - 1));
    if axis {
        return None;
    }
    let named = scan.kind(index + 1) == Some(Kind::Word) || !matches!(one, "." | "#" | "@" | ":");
    let quoted = scan.kind(index + 1) == Some(Kind::Quoted) && one == "#";
    (named || quoted).then(|| {
        Slip::new(
            scan.span(index),
            format!("expected one `{one}`, found `{word}`"),
            "one sign too many",
        )
        .instead(one)
    })
}

/// `[[x=1]]`, `((d1))`, `{{x}}`.
pub(super) fn doubled_brackets(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.kind(index) != Some(Kind::Open) || scan.word(index + 1) != scan.word(index) {
        return None;
    }
    let close = scan.partner(index + 1)?;
    let outer = scan.partner(index)?;
    if outer != close + 1 {
        return None;
    }
    let bracket = scan.word(index);
    Some(
        Slip::new(
            scan.span(index + 1),
            format!("expected one `{bracket}`, found two"),
            "one bracket too many",
        )
        .and_at(scan.span(close), "and here")
        .write(scan.span(index + 1), "")
        .write(scan.span(close), ""),
    )
}

/// `''user''`.
pub(super) fn doubled_quotes(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let empty = |at: usize| matches!(scan.word(at), "''" | "\"\"");
    if !empty(index) {
        return None;
    }
    let mark = scan.word(index).get(..1)?;
    let close = (index + 1..scan.lexemes.len()).find(|at| empty(*at))?;
    let inner = scan
        .text
        .get(scan.span(index).end..scan.span(close).start)?;
    let plain = !inner.is_empty()
        && (index + 1..close).all(|at| {
            matches!(scan.kind(at), Some(Kind::Word | Kind::Space))
                || matches!(scan.word(at), "." | ":" | "/" | "-")
        });
    plain.then(|| {
        Slip::new(
            scan.span(index),
            "a text takes one quote on each side",
            "one quote too many",
        )
        .and_at(scan.span(close), "and here")
        .write(scan.span(index), mark)
        .write(scan.span(close), mark)
    })
}

/// `. cb`, `# key`, `: first`, `^ seq`, `@ t0`, `@limit= 5`.
pub(super) fn spaced_signs(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.kind(index + 1) != Some(Kind::Space) {
        return None;
    }
    let sign = scan.word(index);
    let next = index + 2;
    let names = scan.kind(next) == Some(Kind::Word)
        || matches!(sign, "#" | "+") && scan.kind(next) == Some(Kind::Quoted);
    let free = index == 0
        || !scan.attached(index)
        || sign == ":"
        || matches!(scan.word(index - 1), "," | ">" | "]");
    if !matches!(sign, "." | "#" | "^" | "@" | ":" | "+") || !names || !free {
        return None;
    }
    let mut span = scan.span(index + 1);
    // `.cb : first`
    if sign == ":"
        && index > 0
        && scan.kind(index - 1) == Some(Kind::Space)
        && index > scan.body() + 1
    {
        span = scan.span(index - 1).start..span.end;
        return Some(
            Slip::new(
                scan.span(index),
                "a pseudo-class directly follows its step",
                "no white space around it",
            )
            .write(span, ":"),
        );
    }
    Some(
        Slip::new(
            scan.span(index + 1),
            format!("expected a word directly after `{sign}`"),
            "no white space here",
        )
        .write(span, ""),
    )
}

/// A time that is not in front, and a control or filter that is.
pub(super) fn order(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if !scan.outside(index) || scan.word(index) != "@" || scan.kind(index + 1) != Some(Kind::Word) {
        return None;
    }
    let name = scan.word(index + 1);
    let digits = name
        .strip_prefix(['t', 'c'])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        || name == "t" && scan.word(index + 2) == "-"
        || name == "history";
    let timed = scan.text.trim_start().starts_with('@');
    let prev = scan.prev(index);
    if digits && !timed && prev.is_some() {
        let mut last = index + 1;
        while last + 1 < scan.lexemes.len()
            && scan.kind(last + 1) != Some(Kind::Space)
            && scan.outside(last + 1)
        {
            last += 1;
        }
        let time = scan.slice(index, last).to_owned();
        let from = prev.map_or(0, |prev| scan.span(prev).end);
        return Some(
            Slip::new(
                scan.through(index, last),
                "the time is written at the start of a selector",
                "not expected here",
            )
            .write(0..0, format!("{time} "))
            .write(from..scan.span(last).end, ""),
        );
    }
    let control = crate::query::syntax::words::CONTROLS.contains(&name);
    let front =
        prev.is_none_or(|prev| prev < scan.body() && prev + 2 <= index && scan.body() == index);
    if !control || !front {
        return None;
    }
    let mut last = index + 1;
    if scan.word(last + 1) == "=" {
        last += 2;
    }
    let next = scan.next(last)?;
    if scan.word(next) == "@" {
        return None;
    }
    let written = scan.slice(index, last).to_owned();
    let end = scan.text.trim_end().len();
    Some(
        Slip::new(
            scan.through(index, last),
            "controls are written at the end of a selector",
            "not expected here",
        )
        .write(scan.span(index).start..scan.span(next).start, "")
        .write(end..scan.text.len(), format!(" {written}")),
    )
}

/// `> >`.
pub(super) fn doubled_child(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let next = scan.next(index)?;
    if !scan.outside(index) || scan.word(index) != ">" || !matches!(scan.word(next), ">" | ">>") {
        return None;
    }
    Some(
        Slip::new(
            scan.span(next),
            "expected a step between two `>`",
            "one sign too many",
        )
        .write(scan.span(index).end..scan.span(next).end, ""),
    )
}

/// The axes of XPath.
pub(super) fn is_axis(word: &str) -> bool {
    matches!(
        word,
        "child"
            | "descendant"
            | "descendant-or-self"
            | "self"
            | "parent"
            | "ancestor"
            | "ancestor-or-self"
            | "following"
            | "following-sibling"
            | "preceding"
            | "preceding-sibling"
    )
}
