//! The members of a node as a caller gives them: which are known, of which type, and what follows
//! from them (RUNTIME §1 and §3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use sha2::{Digest, Sha256};

use super::model::{Refused, class_of};
use crate::support::json::Json;
use crate::support::tree::Class;

/// A node that is not in a tree yet.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) id: Option<String>,
    pub(super) class: Class,
    pub(super) offset: Option<i64>,
    /// The time of a given `created_at_iso`.
    pub(super) time: Option<i64>,
    pub(super) iso: Option<String>,
    /// The members that are kept as they are.
    pub(super) fields: BTreeMap<String, Json>,
    pub(super) children: Vec<Draft>,
}

/// What a new node is checked against.
pub(super) struct Rules<'a> {
    /// Every id there ever was.
    pub(super) used: &'a BTreeSet<String>,
}

/// The members that only the runtime sets.
const FILLED: [&str; 4] = ["cycle", "created_at_ns", "creation_index", "parent_id"];

/// Headers that a null leaves out.
const OPTIONAL: [&str; 14] = [
    "role",
    "kind",
    "key",
    "tags",
    "tag",
    "cadence",
    "cad",
    "provenance",
    "content_hash",
    "offset",
    "ttl",
    "priority",
    "nodeType",
    "created_at_iso",
];

/// The members that an update cannot set.
const FIXED: [&str; 10] = [
    "id",
    "nodeType",
    "offset",
    "cycle",
    "created_at_ns",
    "created_at_iso",
    "creation_index",
    "removable",
    "children",
    "parent_id",
];

impl Draft {
    /// Reads a node and those below it, and says which rules they break.
    pub(super) fn read(node: &Json, rules: &Rules<'_>) -> (Self, Refused) {
        let mut codes = Refused::new();
        let mut seen = BTreeSet::new();
        let draft = Self::read_into(node, rules, &mut seen, &mut codes);
        (draft, codes)
    }

    fn read_into(
        node: &Json,
        rules: &Rules<'_>,
        seen: &mut BTreeSet<String>,
        codes: &mut Refused,
    ) -> Self {
        let mut draft = Self {
            id: None,
            class: Class::Block,
            offset: None,
            time: None,
            iso: None,
            fields: BTreeMap::new(),
            children: Vec::new(),
        };
        let Json::Obj(members) = node else {
            codes.insert("E_INPUT");
            return draft;
        };
        let node_type = node.get("nodeType").and_then(Json::as_str).unwrap_or("cb");
        draft.class = class_of(node_type);
        if !matches!(draft.class, Class::Container | Class::Block) {
            codes.insert("E_REGION");
        } else if node_type.is_empty() || node_type.starts_with('^') {
            codes.insert("E_HEADER");
        }
        for (name, value) in members {
            if *value == Json::Null && OPTIONAL.contains(&name.as_str()) {
                continue;
            }
            if !fits(name, value) || FILLED.contains(&name.as_str()) {
                codes.insert("E_HEADER");
            }
            match name.as_str() {
                "id" => draft.id = value.as_str().map(str::to_owned),
                "offset" => draft.offset = value.as_int(),
                "created_at_iso" => {
                    draft.iso = value.as_str().map(str::to_owned);
                    draft.time = value.as_str().and_then(time_of);
                    if draft.time.is_none() {
                        codes.insert("E_HEADER");
                    }
                }
                "children" => {
                    let Json::List(children) = value else {
                        continue;
                    };
                    let read = |child| Self::read_into(child, rules, seen, codes);
                    draft.children = children.iter().map(read).collect();
                }
                _ => {
                    draft.fields.insert(name.clone(), value.clone());
                }
            }
        }
        for pair in [["tag", "tags"], ["cad", "cadence"]] {
            if pair.iter().all(|name| node.get(name).is_some()) {
                codes.insert("E_HEADER");
            }
        }
        let removable = node.get("removable") == Some(&Json::Bool(true));
        if removable && draft.class != Class::Container {
            codes.insert("E_HEADER");
        }
        if let Some(hash) = node.get("content_hash").and_then(Json::as_str)
            && hash != content_hash(&draft.fields)
        {
            codes.insert("E_HEADER");
        }
        if let Some(id) = &draft.id
            && (rules.used.contains(id) || !seen.insert(id.clone()))
        {
            codes.insert("E_DUPLICATE_ID");
        }
        draft
    }

    /// Whether it has what a core container cannot have: a ttl, or leave to go when empty.
    pub(super) fn is_fleeting(&self) -> bool {
        let ttl = self.fields.get("ttl").is_some_and(|ttl| *ttl != Json::Null);
        ttl || self.fields.get("removable") == Some(&Json::Bool(true))
    }

    pub(super) fn has_ttl_zero(&self) -> bool {
        let own = self.fields.get("ttl").and_then(Json::as_int) == Some(0);
        own || self.children.iter().any(Self::has_ttl_zero)
    }
}

/// Whether a member is known and its value of the right type.
fn fits(name: &str, value: &Json) -> bool {
    match name {
        "id" => value.as_str().is_some_and(|id| !id.is_empty()),
        "nodeType" | "created_at_iso" => value.as_str().is_some(),
        "offset" | "priority" => value.as_int().is_some(),
        "ttl" => *value == Json::Null || value.as_int().is_some_and(|ttl| ttl >= 0),
        "role" | "kind" | "key" | "content_hash" => {
            *value == Json::Null || value.as_str().is_some()
        }
        "cadence" | "cad" => *value == Json::Null || value.as_int().is_some(),
        "removable" => matches!(value, Json::Bool(_) | Json::Null),
        "tag" | "tags" => match value {
            Json::Null | Json::Str(_) => true,
            Json::List(tags) => tags.iter().all(|tag| tag.as_str().is_some()),
            _ => false,
        },
        "children" => matches!(value, Json::List(_)),
        "content" | "provenance" => true,
        _ => name.starts_with("data_") || name.starts_with("content_") || name.contains(':'),
    }
}

/// The rules that the members of an update break by themselves.
pub(super) fn check_update(given: &Json) -> Refused {
    let mut codes = Refused::new();
    let Json::Obj(members) = given else {
        return Refused::from(["E_INPUT"]);
    };
    for (name, value) in members {
        let removes = *value == Json::Null && name != "priority";
        if FIXED.contains(&name.as_str()) || !removes && !fits(name, value) {
            codes.insert("E_HEADER");
        }
    }
    codes
}

/// The content hash of a node's members (source 002 chapter 08 §2.1).
pub(super) fn content_hash(fields: &BTreeMap<String, Json>) -> String {
    let mut hashed: BTreeMap<&str, Json> = BTreeMap::new();
    for name in ["content", "kind", "role"] {
        hashed.insert(name, fields.get(name).cloned().unwrap_or(Json::text("")));
    }
    for (name, value) in fields {
        let custom = name.starts_with("content_") || name.starts_with("data_");
        if custom && name != "content_hash" {
            hashed.insert(name, value.clone());
        }
    }
    let members = hashed
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let digest = Sha256::digest(Json::Obj(members.collect()).canonical().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The time of nanoseconds since 1970, in UTC, counted day by day.
pub(crate) fn iso_of(ns: i64) -> String {
    let (seconds, nanos) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let (mut days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut year = 1970;
    while days < 0 {
        year -= 1;
        days += days_of(year);
    }
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let mut month = 0;
    while days >= months(year)[month] {
        days -= months(year)[month];
        month += 1;
    }
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let (month, day, second) = (month + 1, days + 1, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// The nanoseconds of an RFC 3339 time.
fn time_of(text: &str) -> Option<i64> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        let form =
            r"^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)$";
        Regex::new(form).unwrap()
    });
    let found = FORM.captures(text)?;
    let number = |n: usize| found[n].parse::<i64>().unwrap();
    let (year, month, day) = (number(1), number(2), number(3));
    let mut days = day - 1;
    if !(1..=12).contains(&month) || !(1..=months(year)[month as usize - 1]).contains(&day) {
        return None;
    }
    days += months(year)[..month as usize - 1].iter().sum::<i64>();
    days += (1970..year).map(days_of).sum::<i64>() - (year..1970).map(days_of).sum::<i64>();
    let mut seconds = days * 86_400 + number(4) * 3_600 + number(5) * 60 + number(6);
    if let Some(zone) = found[8].strip_prefix(['+', '-']) {
        let (hours, minutes) = zone.split_once(':').unwrap();
        let zone = hours.parse::<i64>().ok()? * 3_600 + minutes.parse::<i64>().ok()? * 60;
        seconds -= if found[8].starts_with('-') {
            -zone
        } else {
            zone
        };
    }
    let nanos = found.get(7).map_or("", |part| part.as_str());
    let nanos: i64 = format!("{nanos:0<9}")[..9].parse().unwrap();
    Some(seconds * 1_000_000_000 + nanos)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

fn months(year: i64) -> [i64; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}
