//! The value of an attribute and how it compares (LANGUAGE §1, §5).

use std::cmp::Ordering;

use super::json::Json;
use super::selector::{Edition, Op, Prop, Value};
use super::tree::{Item, Session, Tree};

/// The value of an attribute on one item.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// A numeric header or facet.
    Number(Option<i64>),
    /// A string header.
    Text(Option<String>),
    /// nodeType as stored, with aliases replaced.
    StoredType(String),
    /// nodeType as the later editions read it: the head and the whole text.
    SplitType(String, String),
    /// The tags.
    Tags(Option<Vec<String>>),
    /// The content, a string header that may hold any JSON.
    Content(Option<Json>),
    /// Any other attribute, by the stored value.
    Dynamic(Option<Json>),
}

/// Whether `prop` is true for `item`.
pub(crate) fn holds(
    session: &Session,
    tree: &Tree,
    edition: Edition,
    item: Item,
    prop: &Prop,
) -> bool {
    let sugar = edition == Edition::Canonical && !prop.exact;
    let (op, value) = match (&prop.test, prop.name.as_str()) {
        (Some((op, value)), _) => (*op, value.clone()),
        (None, "ephemeral") if sugar => (Op::Eq, Value::int(1)),
        (None, "sticky") if sugar => {
            let one = |name| Prop::new(name, Op::Eq, Value::int(1));
            return holds(session, tree, edition, item, &one("ttl"))
                && holds(session, tree, edition, item, &one("cadence"));
        }
        (None, _) => (Op::Ne, Value::Null),
    };
    let name = match (&prop.test, prop.name.as_str()) {
        (None, "ephemeral") if sugar => "ttl",
        (_, name) => name,
    };
    if prop.exact && !HEADERS.contains(&name) {
        let own = |node: usize| tree.nodes[node].field(name).cloned();
        let read = Read::Dynamic(match item {
            Item::Node(node) => own(node),
            Item::Core(_) => None,
        });
        return compare(&read, op, &value);
    }
    compare(&read(session, tree, edition, item, name), op, &value)
}

/// The headers, by the names that they have in quotes.
const HEADERS: [&str; 18] = [
    "id",
    "nodeType",
    "role",
    "kind",
    "key",
    "created_at_iso",
    "content_hash",
    "parent",
    "parent_id",
    "content",
    "tags",
    "offset",
    "ttl",
    "priority",
    "cycle",
    "created_at_ns",
    "creation_index",
    "cadence",
];

/// Reads attribute `name` of `item`.
pub(crate) fn read(
    session: &Session,
    tree: &Tree,
    edition: Edition,
    item: Item,
    name: &str,
) -> Read {
    match item {
        Item::Core(turn) => read_core(tree, edition, turn, name),
        Item::Node(node) => read_node(session, tree, edition, node, name),
    }
}

/// The implicit core: nodeType `mc`, offset 0, its turn's depth, everything else null.
fn read_core(tree: &Tree, edition: Edition, turn: usize, name: &str) -> Read {
    match name {
        "nodeType" | "type" if edition != Edition::V01 => {
            Read::SplitType("mc".to_owned(), "mc".to_owned())
        }
        "nodeType" | "type" | "stored_type" => Read::StoredType("mc".to_owned()),
        "offset" => Read::Number(Some(0)),
        "depth" => Read::Number(tree.nodes[turn].depth),
        "bytes" | "tokens" if edition == Edition::Canonical => Read::Number(None),
        "ttl" | "priority" | "cycle" | "created_at_ns" | "creation_index" | "cadence" | "cad"
        | "sdepth" | "born_turn" | "age" => Read::Number(None),
        "tags" | "tag" => Read::Tags(None),
        _ => Read::Text(None),
    }
}

fn read_node(session: &Session, tree: &Tree, edition: Edition, node: usize, name: &str) -> Read {
    let n = &tree.nodes[node];
    let text = |field: &str| Read::Text(n.field(field).and_then(Json::as_str).map(str::to_owned));
    let int = |field: &str| n.field(field).and_then(Json::as_int);
    let whole = one_vocabulary(&n.read_type());
    match name {
        "nodeType" | "type" if edition != Edition::V01 => {
            let head = whole.split(':').next().unwrap().to_owned();
            Read::SplitType(head, whole)
        }
        "nodeType" | "type" | "stored_type" => Read::StoredType(whole),
        "kind" if edition != Edition::V01 => match n.field("kind") {
            Some(kind) => Read::Text(kind.as_str().map(str::to_owned)),
            None => Read::Text(whole.split_once(':').map(|(_, sub)| sub.to_owned())),
        },
        "kind" | "stored_kind" => text("kind"),
        "id" => Read::Text(Some(n.id.clone())),
        "role" => text("role"),
        "key" => text("key"),
        "created_at_iso" => text("created_at_iso"),
        "content_hash" => Read::Text(Some(n.content_hash())),
        "parent" | "parent_id" => Read::Text(n.parent.map(|p| tree.nodes[p].id.clone())),
        "content" => Read::Content(n.field("content").cloned()),
        "tags" | "tag" => Read::Tags(n.tags()),
        "offset" => Read::Number(Some(n.offset)),
        "priority" => Read::Number(Some(int("priority").unwrap_or(0))),
        "created_at_ns" => Read::Number(Some(n.created_at_ns)),
        "creation_index" => Read::Number(Some(n.creation_index)),
        "ttl" => Read::Number(int("ttl")),
        "cycle" => Read::Number(int("cycle")),
        "cadence" | "cad" => Read::Number(int("cadence").or_else(|| int("cad"))),
        "bytes" if edition == Edition::Canonical => Read::Number(Some(n.bytes())),
        "tokens" if edition == Edition::Canonical => Read::Number(Some((n.bytes() + 3) / 4)),
        "depth" => Read::Number(n.depth),
        "sdepth" => Read::Number(Some(n.level)),
        "born_turn" => Read::Number(Some(born(session, tree, node))),
        "age" => {
            // The nearest number of 64 bits.
            let age = i128::from(tree.cycle) - i128::from(born(session, tree, node));
            let nearest = age.clamp(i64::MIN.into(), i64::MAX.into());
            Read::Number(i64::try_from(nearest).ok())
        }
        custom => Read::Dynamic(n.field(custom).cloned()),
    }
}

fn born(session: &Session, tree: &Tree, node: usize) -> i64 {
    let n = &tree.nodes[node];
    n.field("cycle").and_then(Json::as_int).unwrap_or_else(|| {
        let has_it = |t: &&Tree| t.nodes.iter().any(|other| other.id == n.id);
        session
            .committed
            .iter()
            .find(has_it)
            .map_or(tree.cycle, |t| t.cycle)
    })
}

/// A nodeType in the `mt mc cb` vocabulary.
pub(crate) fn one_vocabulary(node_type: &str) -> String {
    let (head, rest) = match node_type.split_once(':') {
        Some((head, rest)) => (head, format!(":{rest}")),
        None => (node_type, String::new()),
    };
    let head = match head {
        "seg" => "mt",
        "cont" => "mc",
        "block" => "cb",
        other => other,
    };
    format!("{head}{rest}")
}

fn compare(read: &Read, op: Op, value: &Value) -> bool {
    match op {
        Op::Eq => equals(read, value),
        Op::Ne => !equals(read, value),
        Op::Matches => matches(read, value),
        Op::Lt => order(read, value) == Some(Ordering::Less),
        Op::Gt => order(read, value) == Some(Ordering::Greater),
        Op::Le => matches!(order(read, value), Some(Ordering::Less | Ordering::Equal)),
        Op::Ge => matches!(
            order(read, value),
            Some(Ordering::Greater | Ordering::Equal)
        ),
    }
}

/// Whether a name is that of a numeric header.
pub(crate) fn is_numeric(name: &str, edition: Edition) -> bool {
    let names = [
        "offset",
        "ttl",
        "priority",
        "cycle",
        "created_at_ns",
        "creation_index",
        "cadence",
    ];
    names.contains(&name) || edition == Edition::Canonical && ["bytes", "tokens"].contains(&name)
}

/// Whether no number, and not even its absence, passes all comparisons. Tries the literals and
/// the numbers next to them, and 0: between those nothing changes.
pub(crate) fn no_number(tests: &[(Op, &Value)]) -> bool {
    if tests
        .iter()
        .any(|(_, value)| matches!(value, Value::List(_)))
    {
        return false;
    }
    let next = |text: &String| {
        let whole: i128 = text.split('.').next().unwrap().parse().unwrap_or(0);
        let near = [-1, 0, 1].map(|more| (whole + more).to_string());
        let between = [-1, 0].map(|more| format!("{}.5", whole + more));
        near.into_iter().chain(between).chain([text.clone()])
    };
    let candidates = tests.iter().filter_map(|(_, value)| match value {
        Value::Num(text) => Some(next(text)),
        _ => None,
    });
    let passes = |number: Option<&str>| {
        let order = |value: &Value| match (number, value) {
            (Some(number), Value::Num(literal)) => Some(compare_numbers(number, literal)),
            (None, Value::Null) => Some(Ordering::Equal),
            _ => None,
        };
        tests.iter().all(|(op, value)| match (op, order(value)) {
            (Op::Eq, order) => order == Some(Ordering::Equal),
            (Op::Ne, order) => order != Some(Ordering::Equal),
            (_, _) if **value == Value::Null => false,
            (Op::Lt, order) => order == Some(Ordering::Less),
            (Op::Gt, order) => order == Some(Ordering::Greater),
            (Op::Le, order) => order.is_some_and(Ordering::is_le),
            (Op::Ge, order) => order.is_some_and(Ordering::is_ge),
            (Op::Matches, _) => false,
        })
    };
    // Any number passes `!=null`.
    let mut candidates = candidates.flatten().chain(["0".to_owned()]);
    !passes(None) && !candidates.any(|number| passes(Some(&number)))
}

fn equals(read: &Read, value: &Value) -> bool {
    if let Value::List(values) = value {
        return match read {
            Read::Tags(_)
            | Read::Content(Some(Json::List(_)))
            | Read::Dynamic(Some(Json::List(_))) => values.iter().all(|value| equals(read, value)),
            _ => values.iter().any(|value| equals(read, value)),
        };
    }
    match (read, value) {
        (Read::Number(None) | Read::Text(None) | Read::Tags(None), value)
        | (Read::Content(None) | Read::Dynamic(None), value) => *value == Value::Null,
        (_, Value::Null) => false,
        (Read::Number(Some(number)), Value::Num(text)) => {
            compare_numbers(&number.to_string(), text) == Ordering::Equal
        }
        (Read::Number(Some(_)), _) => false,
        (Read::Text(Some(text)), Value::Num(other) | Value::Text(other)) => text == other,
        (Read::StoredType(whole), Value::Num(other) | Value::Text(other)) => {
            *whole == one_vocabulary(other)
        }
        (Read::SplitType(head, whole), Value::Num(other) | Value::Text(other)) => {
            let other = one_vocabulary(other);
            *head == other || *whole == other
        }
        (Read::Tags(Some(tags)), Value::Num(other) | Value::Text(other)) => tags.contains(other),
        (Read::Content(Some(json)), Value::Num(other) | Value::Text(other)) => {
            let equal = |json: &Json| plain_text(json).as_ref() == Some(other);
            match json {
                Json::List(items) => items.iter().any(equal),
                json => equal(json),
            }
        }
        (Read::Dynamic(Some(json)), value) => same_kind_equal(json, value),
        (_, Value::List(_)) => false,
    }
}

/// Number with number, text with text, membership for lists, nothing for objects.
fn same_kind_equal(json: &Json, value: &Value) -> bool {
    match (json, value) {
        (Json::Num(a), Value::Num(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Json::Str(a), Value::Text(b)) => a == b,
        (Json::Bool(a), Value::Text(b)) => a.to_string() == *b,
        (Json::List(items), value) => items
            .iter()
            .any(|item| item.is_scalar() && same_kind_equal(item, value)),
        _ => false,
    }
}

fn order(read: &Read, value: &Value) -> Option<Ordering> {
    let literal = match value {
        Value::Null | Value::List(_) => return None,
        Value::Num(text) | Value::Text(text) => text,
    };
    match read {
        Read::Number(number) => Some(compare_numbers(&number.as_ref()?.to_string(), literal)),
        Read::Text(text) => Some(text.as_deref()?.cmp(literal)),
        Read::StoredType(whole) | Read::SplitType(_, whole) => {
            Some(whole.as_str().cmp(&one_vocabulary(literal)))
        }
        Read::Tags(_) => None,
        Read::Content(json) => Some(plain_text(json.as_ref()?)?.as_str().cmp(literal)),
        Read::Dynamic(json) => {
            let json = json.as_ref()?;
            let text = plain_text(json)?;
            let is_number = matches!(json, Json::Num(_)) || reads_as_number(&text);
            if is_number && reads_as_number(literal) {
                Some(compare_numbers(&text, literal))
            } else {
                Some(text.as_str().cmp(literal))
            }
        }
    }
}

fn matches(read: &Read, value: &Value) -> bool {
    let (Value::Text(pattern) | Value::Num(pattern)) = value else {
        return false;
    };
    let pattern = regex::Regex::new(pattern).unwrap();
    match read {
        Read::Number(_) => false,
        Read::Text(text) => text.as_ref().is_some_and(|text| pattern.is_match(text)),
        Read::StoredType(whole) | Read::SplitType(_, whole) => pattern.is_match(whole),
        Read::Tags(tags) => tags.iter().flatten().any(|tag| pattern.is_match(tag)),
        Read::Content(Some(json @ (Json::List(_) | Json::Obj(_)))) => {
            let mut texts = Vec::new();
            strings(json, &mut texts);
            texts.into_iter().any(|text| pattern.is_match(text))
        }
        Read::Dynamic(Some(Json::List(items))) => items
            .iter()
            .filter_map(plain_text)
            .any(|text| pattern.is_match(&text)),
        Read::Content(json) | Read::Dynamic(json) => json
            .as_ref()
            .and_then(plain_text)
            .is_some_and(|text| pattern.is_match(&text)),
    }
}

/// The strings of a value, at any depth.
fn strings<'a>(json: &'a Json, found: &mut Vec<&'a str>) {
    match json {
        Json::Str(text) => found.push(text),
        Json::List(items) => items.iter().for_each(|item| strings(item, found)),
        Json::Obj(members) => members.iter().for_each(|(_, value)| strings(value, found)),
        Json::Null | Json::Bool(_) | Json::Num(_) => {}
    }
}

/// The text of a string, number or boolean.
fn plain_text(json: &Json) -> Option<String> {
    match json {
        Json::Str(text) | Json::Num(text) => Some(text.clone()),
        Json::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// `[+-]?digits[.digits]`, the whole text.
pub(crate) fn reads_as_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(unsigned),
    }
}

/// Compares two numbers exactly: integers of any length by their digits, decimals by the value
/// of their f64.
pub(crate) fn compare_numbers(a: &str, b: &str) -> Ordering {
    let (a, b) = (exact(a), exact(b));
    let magnitude = a
        .whole
        .len()
        .cmp(&b.whole.len())
        .then_with(|| a.whole.cmp(&b.whole))
        .then_with(|| a.fraction.cmp(&b.fraction));
    match (a.negative, b.negative) {
        (false, false) => magnitude,
        (true, true) => magnitude.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// Sign and decimal digits, without leading and trailing zeros.
struct Exact {
    negative: bool,
    whole: String,
    fraction: String,
}

fn exact(text: &str) -> Exact {
    let negative = text.starts_with('-');
    let unsigned = text.trim_start_matches(['+', '-']);
    let digits = match unsigned.parse::<f64>().unwrap() {
        // Only texts can exceed a double; they are compared as written.
        double if unsigned.contains(['.', 'e', 'E']) && double.is_finite() => {
            format!("{double:.1100}")
        }
        _ => unsigned.to_owned(),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = whole.trim_start_matches('0').to_owned();
    let fraction = fraction.trim_end_matches('0').to_owned();
    Exact {
        negative: negative && !(whole.is_empty() && fraction.is_empty()),
        whole,
        fraction,
    }
}

#[test]
fn numbers_compare_by_their_exact_value() {
    use Ordering::{Equal, Greater, Less};
    for (a, b, expected) in [
        ("1", "1.0", Equal),
        ("-0", "0", Equal),
        ("-0.0", "0", Equal),
        ("9007199254740993", "9007199254740992.0", Greater),
        ("9223372036854775807", "9223372036854775808.0", Less),
        ("-2", "-10", Greater),
        ("+7", "07.0", Equal),
        (
            "123456789012345678901234567890",
            "9223372036854775807",
            Greater,
        ),
        ("0.1", "0.10", Equal),
        ("1e3", "1000", Equal),
        ("-1.5", "-1", Less),
    ] {
        assert_eq!(compare_numbers(a, b), expected, "{a} against {b}");
        assert_eq!(compare_numbers(b, a), expected.reverse(), "{b} against {a}");
    }
}
