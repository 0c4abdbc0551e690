//! Values and attributes of OpenTelemetry as JSON texts.
//!
//! OTLP/JSON has a value as an object that names its type, and attributes as a list; exporters for
//! people write both as plain JSON. This file must not know the names of attributes.

use crate::json::{Member, elements, get, members, string};
use crate::logs::json::{canonical, compact, push_member, quoted};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

/// Attributes by name, values as JSON. The first of a name counts.
pub(super) type Attributes = BTreeMap<String, String>;

/// The elements of the member `name`, if it is a list.
pub(super) fn list<'a>(found: &[Member<'a>], name: &str) -> Vec<&'a str> {
    elements(get(found, name).unwrap_or_default())
}

/// Attributes: a list of keys with values, or an object.
pub(super) fn attributes(raw: &str) -> Attributes {
    let mut found = Attributes::new();
    for (name, value) in members(raw) {
        found.entry(name.into_owned()).or_insert(value.to_owned());
    }
    for raw in elements(raw) {
        let pair = members(raw);
        let name = get(&pair, "key").and_then(string);
        if let (Some(name), Some(value)) = (name, get(&pair, "value")) {
            let value = any_value(value);
            found.entry(name.into_owned()).or_insert(value);
        }
    }
    found
}

/// The JSON that a typed value is.
pub(super) fn any_value(raw: &str) -> String {
    let found = members(raw);
    let Some((kind, value)) = found.first() else {
        return "null".to_owned();
    };
    match &**kind {
        // Integers of 64 bits are strings. Any other text stays one.
        "intValue" => match string(value) {
            Some(text) if text.parse::<i64>().is_ok_and(|n| n.to_string() == *text) => {
                text.into_owned()
            }
            _ => (*value).to_owned(),
        },
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => (*value).to_owned(),
        "arrayValue" => {
            let values = list(&members(value), "values");
            let values: Vec<String> = values.into_iter().map(any_value).collect();
            format!("[{}]", values.join(","))
        }
        "kvlistValue" => {
            let mut out = String::new();
            let mut names = HashSet::new();
            // Their order is kept: it can be that of the arguments of a call. The first of a name counts.
            for raw in list(&members(value), "values") {
                let pair = members(raw);
                if let Some(name) = get(&pair, "key").and_then(string)
                    && names.insert(name.clone())
                {
                    let value = get(&pair, "value").map_or("null".to_owned(), any_value);
                    push_member(&name, &value, &mut out);
                }
            }
            format!("{{{}}}", out.strip_prefix(',').unwrap_or_default())
        }
        _ => raw.to_owned(),
    }
}

/// The text of an attribute that is a string.
pub(super) fn text_of(attributes: &Attributes, name: &str) -> Option<String> {
    let raw = attributes.get(name)?;
    string(raw).map(Cow::into_owned)
}

/// An attribute that is JSON, or a string of JSON.
pub(super) fn json_of(attributes: &Attributes, name: &str) -> Option<String> {
    let raw = attributes.get(name)?;
    Some(match string(raw) {
        Some(text) => super::transcript::json_in(&text)?.to_owned(),
        None => raw.clone(),
    })
}

/// A value as JSON text in a string; a string is itself.
pub(super) fn as_text(raw: &str) -> String {
    if raw.starts_with('"') {
        canonical(raw)
    } else {
        quoted(&compact(raw))
    }
}
