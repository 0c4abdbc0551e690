//! Custom attributes and tags as rows of `attr` (STORE §2).

use crate::json::{JsonValue, elements};
use crate::query::ir::ExactNumber;
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
pub(crate) fn custom(attrs: &mut Vec<Attr>, name: &str, value: JsonValue<'_>) -> bool {
    if name.contains('\0') {
        return false;
    }
    let given_back = !is_header(name);
    let (attr, given_back) = match value {
        JsonValue::List(json) => {
            let mut decoded = String::new();
            for (ordinal, item) in (0..).zip(elements(json)) {
                attrs.push(Attr {
                    name: name.to_owned(),
                    ordinal,
                    ..scalar_attr(JsonValue::read(item, &mut decoded))
                });
            }
            (of_kind("list"), false)
        }
        JsonValue::Object(_) => (of_kind("object"), false),
        scalar => {
            let attr = scalar_attr(scalar);
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
fn scalar_attr(value: JsonValue<'_>) -> Attr {
    match value {
        JsonValue::Text(text) if text.contains('\0') => of_kind("text"),
        JsonValue::Text(text) => text_attr(text.to_owned()),
        JsonValue::List(_) => of_kind("list"),
        JsonValue::Object(_) => of_kind("object"),
        JsonValue::Bool(value) => Attr {
            kind: "bool",
            text: Some(value.to_string()),
            ..Attr::default()
        },
        JsonValue::Null => of_kind("null"),
        JsonValue::Number(number) => {
            let whole = number.bytes().all(|b| b == b'-' || b.is_ascii_digit());
            let int = number.parse::<i64>().ok().filter(|_| whole);
            Attr {
                kind: if whole { "int" } else { "real" },
                text: Some(number.to_owned()),
                int,
                real: number.parse::<f64>().ok().filter(|real| real.is_finite()),
                big: (whole && int.is_none()).then(|| number.to_owned()),
                ..Attr::default()
            }
        }
    }
}

/// The values of a text, which may read as a number (LANGUAGE §5).
pub(crate) fn text_attr(text: String) -> Attr {
    let mut attr = of_kind("text");
    match ExactNumber::of_text(&text) {
        Some(ExactNumber::Int(value)) => {
            attr.int = i64::try_from(value).ok();
            attr.real = Some(value as f64);
            attr.big = attr.int.is_none().then(|| value.to_string());
        }
        Some(ExactNumber::Decimal(value)) => attr.real = Some(value),
        Some(ExactNumber::Long(_)) => {
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

/// A text that a column of text can hold: one without U+0000.
pub(crate) fn plain(value: JsonValue<'_>) -> Option<&str> {
    value.text().filter(|text| !text.contains('\0'))
}
