//! Matches the rows of the table against the lexemes of a text, and writes what they say.

use std::ops::Range;

use super::scan::{Kind, Scan, escaped, text_of, unquoted};
use super::slip::Slip;
use super::words::{known_op, one_of, step};
use crate::query::ir::{Attr, meant_type, other_spelling};
use crate::query::syntax::words::{CALLED_PSEUDOS, CONDITIONS, PLAIN_PSEUDOS};
use crate::support::diag::nearest;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BracketPlace {
    In,
    Out,
}

/// What to write here.
pub(super) enum Here {
    /// This text, with `{2}` for what item 2 of the pattern matched, or `{2:like}` for its conversion.
    Text(&'static str),
    /// Nothing means the same; this says what there is instead.
    Nothing(&'static str),
    /// What a function makes of the match.
    By(fn(&Scan<'_>, &Matched, Slip) -> Option<Slip>),
}

pub(super) struct MistakeRow {
    pub(super) place: BracketPlace,
    pub(super) pattern: &'static str,
    /// The first and last item that the error marks.
    pub(super) marked: (usize, usize),
    /// Where people know it from, as the remark at the place.
    pub(super) from: &'static str,
    /// What was expected in its place; like [`Here::Text`].
    pub(super) expected: &'static str,
    pub(super) here: Here,
}

/// Where the items of a pattern are in the text.
pub(super) struct Matched {
    pub(super) first: usize,
    /// The place of each item; of brackets, of their content.
    pub(super) items: Vec<Range<usize>>,
    /// All of it.
    pub(super) span: Range<usize>,
    /// The item that is the name of an attribute.
    name: Option<usize>,
}

pub(super) fn lookup(row: &MistakeRow, scan: &Scan<'_>) -> Option<Slip> {
    let fits = |index: &usize| {
        let outside = scan.outside(*index);
        // `.where` is a type, `@limit` a control.
        let part = outside && scan.kind(*index) == Some(Kind::Word) && scan.attached(*index);
        scan.kind(*index) != Some(Kind::Space)
            && outside == (row.place == BracketPlace::Out)
            && !part
    };
    let places = (0..scan.lexemes.len()).filter(fits);
    places
        .filter_map(|index| matched(row.pattern, scan, index))
        .find_map(|found| slip(row, scan, &found))
}

fn matched(pattern: &str, scan: &Scan<'_>, index: usize) -> Option<Matched> {
    let mut found = Matched {
        first: index,
        items: Vec::new(),
        span: scan.span(index),
        name: None,
    };
    let mut at = index;
    for (number, item) in pattern.split_whitespace().enumerate() {
        if matches!(item, "START" | "END" | "BEGIN" | "LAST" | "ALONE") {
            if !holds(item, scan, at) {
                return None;
            }
            let here = scan.span(at).start;
            found.items.push(here..here);
            continue;
        }
        let (inner, last) = lexemes(item, scan, at)?;
        if item == "NAME" && found.name.is_none() {
            found.name = Some(number);
        }
        found.span.end = scan.span(last).end;
        found.items.push(inner);
        at = scan.next(last).unwrap_or(scan.lexemes.len());
    }
    Some(found)
}

/// Whether what an item without lexemes says is true before the lexeme `at`.
fn holds(item: &str, scan: &Scan<'_>, at: usize) -> bool {
    let joins = |word: &str| {
        matches!(word, "&&" | "&" | "||" | "|")
            || ["and", "or", "not"]
                .iter()
                .any(|joint| word.eq_ignore_ascii_case(joint))
    };
    match item {
        "BEGIN" => at == scan.body(),
        "LAST" => at >= scan.lexemes.len(),
        "ALONE" => at >= scan.lexemes.len() || !scan.attached(at) || scan.word(at) == "[",
        "END" => {
            let word = scan.word(at);
            at >= scan.lexemes.len() || matches!(word, "]" | "}" | ")" | ",") || joins(word)
        }
        // A list of values has no properties.
        _ => {
            // A list of values has no properties, and neither have depths or a position.
            let other = scan.parent(at).is_none_or(|open| {
                let before = scan.prev_word(open);
                let list = known_op(before).is_some() || before.eq_ignore_ascii_case("in");
                list || scan.word(open) == "(" && scan.outside(open)
            });
            !other && (scan.starts_prop(at) || joins(scan.prev_word(at)))
        }
    }
}

/// The place of an item that starts at the lexeme `at`, and its last lexeme.
fn lexemes(item: &str, scan: &Scan<'_>, at: usize) -> Option<(Range<usize>, usize)> {
    let (kind, word) = (scan.kind(at)?, scan.word(at));
    let one = |fits: bool| fits.then(|| (scan.span(at), at));
    match item {
        "NAME" => {
            let joint = ["and", "or", "not"]
                .iter()
                .any(|joint| word.eq_ignore_ascii_case(joint));
            let letter = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
            one(kind == Kind::Word && letter && !joint)
        }
        "WORD" => one(kind == Kind::Word),
        "NUMBER" => one(kind == Kind::Word && word.bytes().all(|byte| byte.is_ascii_digit())),
        "PATTERN" => one(kind == Kind::Pattern),
        "QUOTED" => one(kind == Kind::Quoted),
        "OP" => one(known_op(word).is_some()),
        "CHILD" => one(word == "/"),
        "DEEP" => one(word == "//"),
        "SLASHES" => one(matches!(word, "/" | "//")),
        "VALUE" => {
            let last = scan.value_end(at)?;
            Some((scan.span_between(at, last), last))
        }
        "(…)" | "LIST" => {
            let close = scan.partner(at)?;
            let opens = kind == Kind::Open && (item == "LIST" || word == "(");
            opens.then(|| (scan.inside(at, close), close))
        }
        "BARE" => {
            let ends = |index: &usize| {
                let outer = scan.parent(*index) != scan.parent(at);
                !outer && (scan.kind(*index) == Some(Kind::Space) || scan.word(*index) == ",")
            };
            let close = scan.parent(at).and_then(|open| scan.partner(open));
            let end = close.unwrap_or(scan.lexemes.len());
            let last = (at..end).find(ends).unwrap_or(end).checked_sub(1)?;
            let quoted = (at..=last).any(|index| scan.kind(index) == Some(Kind::Quoted));
            (last > at && !quoted && kind != Kind::Open)
                .then(|| (scan.span_between(at, last), last))
        }
        "REST" => {
            let ends = |index: &usize| {
                let word = scan.word(*index);
                let mark = matches!(word, "," | "@" | "|") || word == "{" && !scan.attached(*index);
                let word = ["limit", "order", "group"]
                    .iter()
                    .any(|end| word.eq_ignore_ascii_case(end));
                scan.outside(*index) && (mark || word)
            };
            let last = (at..scan.lexemes.len())
                .find(ends)
                .unwrap_or(scan.lexemes.len());
            let last = scan.prev(last).filter(|last| *last >= at)?;
            Some((scan.span_between(at, last), last))
        }
        choices => one(choices
            .split('/')
            .any(|choice| choice.eq_ignore_ascii_case(word))),
    }
}

/// What a row says about a place that it matches; nothing if a conversion does not apply there.
fn slip(row: &MistakeRow, scan: &Scan<'_>, found: &Matched) -> Option<Slip> {
    let item = |number: usize| found.items.get(number - 1).cloned();
    let (from, to) = (item(row.marked.0)?, item(row.marked.1)?);
    let marked = from.start..to.end;
    let typed = scan.text.get(marked.clone())?;
    let expected = filled(row.expected, scan, found)?;
    let message = format!("expected {expected}, found `{typed}`");
    let mut slip = Slip::new(marked, message, row.from);
    match row.here {
        Here::Text(template) => {
            let text = filled(template, scan, found)?;
            Some(slip.write(spaced(scan, found.span.clone(), &text), text))
        }
        Here::Nothing(help) => {
            slip.no_equal = Some(help.into());
            Some(slip)
        }
        Here::By(make) => make(scan, found, slip),
    }
}

/// `span` with the white space around it that `text` replaces.
pub(super) fn spaced(scan: &Scan<'_>, span: Range<usize>, text: &str) -> Range<usize> {
    let before = scan.text.get(..span.start).unwrap_or_default();
    let after = scan.text.get(span.end..).unwrap_or_default();
    // A test at the start of a selector stays apart from its time.
    let begins = span.start <= scan.span(scan.body()).start;
    let mut span = span;
    if text.starts_with([' ', ',', ']']) || text.starts_with(['[', ':']) && !begins {
        span.start = before.trim_end().len();
    }
    if text.is_empty() || text.ends_with([' ', '[']) {
        span.end += after.len() - after.trim_start().len();
    }
    span
}

#[cfg(test)]
pub(super) const CONVERSIONS: &str = "any none like ilike has starts ends pattern op step called \
    class header lower quoted backticks half inner known i-is i-has i-starts i-ends i-pattern";

/// `template` with the items filled in; nothing if a conversion does not apply.
fn filled(template: &str, scan: &Scan<'_>, found: &Matched) -> Option<String> {
    let mut parts = template.split('{');
    let mut out = parts.next()?.to_owned();
    let name = found.name.and_then(|name| found.items.get(name));
    let name = name
        .and_then(|name| scan.text.get(name.clone()))
        .unwrap_or_default();
    for part in parts {
        let (inner, rest) = part.split_once('}')?;
        let (number, how) = inner.split_once(':').unwrap_or((inner, ""));
        let number: usize = number.parse().ok()?;
        let item = found.items.get(number.checked_sub(1)?)?;
        let typed = scan.text.get(item.clone())?;
        out.push_str(&converted(typed, how, name)?);
        out.push_str(rest);
    }
    Some(out)
}

/// What was `typed` as `how` says; `name` is the attribute that it is compared with.
fn converted(typed: &str, how: &str, name: &str) -> Option<String> {
    let (case, how) = match how.strip_prefix("i-") {
        Some(how) => ("(?i)", how),
        None => ("", how),
    };
    let pattern = |start: &str, end: &str| {
        format!(
            "~{}",
            text_of(&format!("{case}{start}{}{end}", escaped(&unquoted(typed))))
        )
    };
    Some(match how {
        "any" => listed(typed, name, "=", " or ")?,
        "none" => listed(typed, name, "!=", ", ")?,
        "like" => like(&unquoted(typed), ""),
        "ilike" => like(&unquoted(typed), "(?i)"),
        "has" if Attr::from_name(name) == Attr::Tags => format!("={typed}"),
        "has" => pattern("", ""),
        "is" => pattern("^", "$"),
        "starts" => pattern("^", ""),
        "ends" => pattern("", "$"),
        "pattern" if !case.is_empty() => {
            format!("~{}", text_of(&format!("{case}{}", unquoted(typed))))
        }
        "pattern" => {
            let (pattern, flags) = typed.strip_prefix('/')?.rsplit_once('/')?;
            let flags = if flags.is_empty() {
                String::new()
            } else {
                format!("(?{flags})")
            };
            text_of(&format!("{flags}{}", pattern.replace("\\/", "/")))
        }
        "op" => known_op(typed)?.to_owned(),
        "step" => step(typed)?,
        "called" => nearest(typed, CALLED_PSEUDOS.into_iter().chain(CONDITIONS))
            .filter(|near| *near != typed && !PLAIN_PSEUDOS.contains(&typed))?
            .to_owned(),
        "known" => Some(typed)
            .filter(|name| !matches!(Attr::from_name(name), Attr::Custom(_)))?
            .to_owned(),
        "class" => meant_type(typed)?.into_owned(),
        "header" => other_spelling(typed)?.to_owned(),
        "lower" => Some(typed.to_ascii_lowercase()).filter(|lower| lower != typed)?,
        "quoted" => text_of(typed),
        "backticks" if typed.starts_with('`') => text_of(&unquoted(typed)),
        "backticks" => return None,
        "half" => typed.get(..typed.len() / 2)?.to_owned(),
        "inner" if typed.len() > 1 && typed.get(..1).is_some_and(|mark| typed.ends_with(mark)) => {
            unquoted(typed)
        }
        "inner" => return None,
        _ => typed.to_owned(),
    })
}

/// A test of `name` for the values of a list. Where nodes have lists themselves, as tags, a list of values
/// needs all of them, so that each is a test of its own.
fn listed(inner: &str, name: &str, op: &str, joint: &str) -> Option<String> {
    if one_of(name) {
        return Some(format!("{name}{op}[{inner}]"));
    }
    let scan = Scan::new(inner);
    let mut values = Vec::new();
    let mut at = Some(0);
    while let Some(first) = at.filter(|at| *at < scan.lexemes.len()) {
        let last = scan.value_end(first)?;
        values.push(format!("{name}{op}{}", scan.slice(first, last)));
        let comma = scan.next(last).filter(|comma| scan.word(*comma) == ",");
        at = comma.and_then(|comma| scan.next(comma));
    }
    (!values.is_empty()).then(|| values.join(joint))
}

/// The test that `like` makes: `%` is any text, `_` any character.
fn like(text: &str, flags: &str) -> String {
    let (open, inner) = match text.strip_prefix('%') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (ends, inner) = match inner.strip_suffix('%') {
        Some(rest) if !rest.ends_with('\\') => (true, rest),
        _ => (false, inner),
    };
    let mut pattern = String::from(flags);
    if inner.contains(['%', '_']) {
        pattern.push_str("(?s)");
    }
    if !open {
        pattern.push('^');
    }
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek().is_some_and(|next| matches!(next, '%' | '_')) => {
                pattern.extend(letters.next());
            }
            '%' => pattern.push_str(".*"),
            '_' => pattern.push('.'),
            other => pattern.push_str(&escaped(&other.to_string())),
        }
    }
    if !ends {
        pattern.push('$');
    }
    if !text.contains(['%', '_']) && flags.is_empty() {
        return format!("={}", text_of(text));
    }
    format!("~{}", text_of(&pattern))
}
