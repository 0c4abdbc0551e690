//! What formats share in reading members of records.

use crate::json::{Member, ValueType, elements, get, members, string, value_type};
use crate::logs::json::{canonical, quoted};
use crate::logs::log::{LogField, object_without};
use crate::logs::report::ImportReport;
use crate::support::macros::words;
use crate::tree::timestamp::nanos_of_rfc3339;

pub(super) fn get_string<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    get(members, name).filter(|value| value_type(value) == ValueType::String)
}

pub(super) fn text<'a>(members: &[Member<'a>], name: &str) -> Option<std::borrow::Cow<'a, str>> {
    get(members, name).and_then(string)
}

pub(super) fn inner<'a>(found: &[Member<'a>], name: &str) -> Vec<Member<'a>> {
    get(found, name).map(members).unwrap_or_default()
}

pub(super) fn items<'a>(found: &[Member<'a>], name: &str) -> Vec<&'a str> {
    elements(get(found, name).unwrap_or_default())
}

pub(super) fn is(found: &[Member<'_>], name: &str, kind: ValueType) -> bool {
    get(found, name).map(value_type) == Some(kind)
}

/// Counts the members of a record that nothing reads; `of` says which record it is.
pub(super) fn count_unread(
    found: &[Member<'_>],
    known: &[&str],
    of: &str,
    report: &mut ImportReport,
) {
    for (name, value) in found {
        if !known.contains(&&**name) && *value != "null" {
            report.skipped_member(&format!("{of}{name}"));
        }
    }
}

/// A time as a log spells it: RFC 3339, or seconds, milliseconds, … since 1970 as a number.
pub(super) fn time(raw: &str) -> Option<i64> {
    if let Some(text) = string(raw) {
        return nanos_of_rfc3339(&text);
    }
    let number: f64 = raw.parse().ok()?;
    // The unit with which the time is after 1973 and before 2255.
    let unit = [1e9, 1e6, 1e3, 1.0]
        .into_iter()
        .find(|unit| (1e17..9e18).contains(&(number * unit)));
    match (unit, raw.parse::<i64>()) {
        (Some(unit), Ok(whole)) => whole.checked_mul(unit as i64),
        (Some(unit), _) => Some((number * unit) as i64),
        _ => None,
    }
}

/// The members of a message that have no field of their own, as custom fields of its first block:
/// one each, their names in `data_members`; those whose field has another meaning in `data_other`.
#[derive(Default)]
pub(super) struct Others<'a> {
    fields: Vec<LogField>,
    /// The names of `fields`, without `data_`.
    names: Vec<&'a str>,
    reserved: Vec<Member<'a>>,
}

impl<'a> Others<'a> {
    /// Keeps a member. `reserved` are the names whose field has another meaning.
    pub(super) fn keep(
        &mut self,
        name: &'a str,
        value: &'a str,
        reserved: &[&str],
        report: &mut ImportReport,
    ) {
        report.member(name);
        if reserved.contains(&name) {
            self.reserved.push((name.into(), value));
        } else {
            self.fields
                .push((format!("data_{name}").into(), canonical(value)));
            self.names.push(name);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.reserved.is_empty()
    }

    pub(super) fn into_fields(mut self) -> Vec<LogField> {
        if !self.names.is_empty() {
            self.names.sort_unstable();
            let names: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
            let list = format!("[{}]", names.join(","));
            self.fields.push(("data_members".into(), list));
        }
        if let Some(rest) = object_without(&self.reserved, &[]) {
            self.fields.push(("data_other".into(), rest));
        }
        self.fields
    }
}

/// The name a role is counted under; unknown ones share one, so that the report stays short.
pub(super) fn role_name(role: &str) -> &'static str {
    let mut known = words![system developer user assistant tool function].into_iter();
    known.find(|known| *known == role).unwrap_or("other role")
}
