//! Custom attributes and tags as rows of `attr` (STORE §2).

use std::borrow::Cow;

use crate::json::{elements, unescape};
use crate::query::ir::Number;
use crate::tree::is_header;

/// A row of `attr`.
#[derive(Debug, Default)]
pub(crate) struct Attr {
    pub(crate) name: String,
    pub(crate) ordinal: i64,
    pub(crate) kind: &'static str,
    pub(crate) text: Option<String>,
    pub(crate) int: Option<i64>,
    pub(crate) real: Option<f64>,
    pub(crate) big: Option<String>,
}

/// Adds the rows of a custom attribute. Returns whether they give it back: scalars do.
pub(crate) fn custom(attrs: &mut Vec<Attr>, name: &str, json: &str) -> bool {
    if name.contains('\0') {
        return false;
    }
    let given_back = !is_header(name);
    let (attr, given_back) = match json.as_bytes().first() {
        Some(b'[') => {
            let members = (0..).zip(elements(json));
            let members = members.map(|(ordinal, json)| Attr {
                name: name.to_owned(),
                ordinal,
                ..scalar_attr(json)
            });
            attrs.extend(members);
            (of_kind("list"), false)
        }
        Some(b'{') => (of_kind("object"), false),
        _ => {
            let attr = scalar_attr(json);
            let exact = attr.kind != "text" || attr.text.is_some();
            (attr, given_back && exact)
        }
    };
    attrs.push(Attr {
        name: name.to_owned(),
        ordinal: -1,
        ..attr
    });
    given_back
}

fn of_kind(kind: &'static str) -> Attr {
    Attr {
        kind,
        ..Attr::default()
    }
}

/// The values of a scalar, or the type of another value.
fn scalar_attr(json: &str) -> Attr {
    match json.as_bytes().first() {
        Some(b'"') => match plain(json) {
            Some(text) => text_attr(text.into_owned()),
            None => of_kind("text"),
        },
        Some(b'[') => of_kind("list"),
        Some(b'{') => of_kind("object"),
        Some(b't' | b'f') => Attr {
            kind: "bool",
            text: Some(json.to_owned()),
            ..Attr::default()
        },
        Some(b'n') => of_kind("null"),
        _ => {
            let whole = json.bytes().all(|b| b == b'-' || b.is_ascii_digit());
            let int = json.parse::<i64>().ok().filter(|_| whole);
            Attr {
                kind: if whole { "int" } else { "real" },
                text: Some(json.to_owned()),
                int,
                real: json.parse::<f64>().ok().filter(|real| real.is_finite()),
                big: (whole && int.is_none()).then(|| json.to_owned()),
                ..Attr::default()
            }
        }
    }
}

/// The values of a text, which may read as a number (LANGUAGE §5).
pub(crate) fn text_attr(text: String) -> Attr {
    let mut attr = of_kind("text");
    match Number::of_text(&text) {
        Some(Number::Int(value)) => {
            attr.int = i64::try_from(value).ok();
            attr.real = Some(value as f64);
            attr.big = attr.int.is_none().then(|| value.to_string());
        }
        Some(Number::Decimal(value)) => attr.real = Some(value),
        Some(Number::Long(_)) => {
            attr.real = text.parse().ok().filter(|real: &f64| real.is_finite());
            attr.big = Some(plain_digits(&text));
        }
        None => {}
    }
    attr.text = Some(text);
    attr
}

/// The digits of a whole number without what does not change it, with its sign if that is a minus.
fn plain_digits(text: &str) -> String {
    let sign = if text.starts_with('-') { "-" } else { "" };
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let whole = digits.split('.').next().unwrap_or_default();
    format!("{sign}{whole}")
}

/// A JSON string that a column of text can hold: one without U+0000.
pub(crate) fn plain(json: &str) -> Option<Cow<'_, str>> {
    let body = json.strip_prefix('"')?.strip_suffix('"')?;
    let text = match memchr::memchr(b'\\', body.as_bytes()) {
        Some(_) => Cow::Owned(unescape(body)),
        None => Cow::Borrowed(body),
    };
    (!text.contains('\0')).then_some(text)
}
