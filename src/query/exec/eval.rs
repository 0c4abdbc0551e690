//! Tests of single nodes, for what has no posting list and no column.
//!
//! Values are read as comparisons see them (LANGUAGE §5): payload fields as JSON values, nodeTypes
//! in one vocabulary, facets from the snapshot and the session.

use super::stats::SessionStats;
use crate::index::NodeRef;
use crate::json::{JsonValue, ValueType, any_text, elements, string, value_type};
use crate::query::ir::{Attr, Class, Facet, TypeTest, normal_type};
use crate::query::plan::{
    AttrCondition, BoundTest, Compare, Scalar, TextTest, ValueTest, has_text,
};

/// Whether an implicit core satisfies a test: its nodeType is `mc`, its offset 0, and every
/// other attribute null (LANGUAGE §1). Tests of its depth, the depth of its turn, and conditions with selectors
/// inside are left to callers, which know the row.
pub(super) fn core_holds(test: &BoundTest) -> bool {
    match test {
        BoundTest::Depth(_)
        | BoundTest::Inner(_)
        | BoundTest::Type(TypeTest::Class(Class::Container)) => true,
        BoundTest::Type(_) => false,
        BoundTest::Attr(AttrCondition { attr, compare }) => match (attr, compare) {
            (Attr::Offset, Compare::Number(set)) => set.contains(Some(0)),
            (Attr::Facet(Facet::Depth), Compare::Number(_)) => true,
            (_, Compare::Number(set)) => set.contains(None),
            (Attr::StoredType | Attr::NodeType, Compare::Text(test)) => test.holds(Some("mc")),
            (_, Compare::Text(test)) => test.holds(None),
            (_, Compare::Value(test)) => test.holds(&Scalar::Null),
            (_, Compare::Observed(numbers)) => numbers.set.contains(None),
        },
    }
}

/// Evaluates a later edition's nodeType test: equality accepts `head:sub` and also its `head`;
/// orderings and patterns see the whole text.
pub(super) fn node_type_holds(test: &TextTest, text: &str) -> bool {
    let whole = normal_type(text);
    let TextTest::In { texts, negated, .. } = test else {
        return test.holds(Some(&whole));
    };
    let head = whole.split(':').next().unwrap_or("");
    (has_text(texts, &whole) || has_text(texts, head)) != *negated
}

/// The part of a nodeType after the colon.
pub(super) fn sub_type(text: &str) -> Option<&str> {
    text.split_once(':').map(|(_, sub)| sub)
}

/// A value as comparisons see it. Only a list allocates, and texts with escapes in it.
pub(super) fn scalar(value: JsonValue<'_>) -> Scalar<'_> {
    match value {
        JsonValue::Null => Scalar::Null,
        JsonValue::Bool(true) => Scalar::Text("true".into()),
        JsonValue::Bool(false) => Scalar::Text("false".into()),
        JsonValue::Text(text) => Scalar::Text(text.into()),
        JsonValue::Number(number) => Scalar::Number(number),
        JsonValue::Object(_) => Scalar::Other,
        JsonValue::List(json) => {
            let items = elements(json).into_iter();
            let items = items.map(|item| match value_type(item) {
                ValueType::String => string(item).map_or(Scalar::Null, Scalar::Text),
                ValueType::Array => Scalar::List(Vec::new()),
                _ => scalar(JsonValue::stored(item)),
            });
            Scalar::List(items.collect())
        }
    }
}

pub(super) fn node_holds(
    condition: &AttrCondition,
    node: NodeRef<'_>,
    stats: &dyn SessionStats,
) -> bool {
    let text = |name: &str| node.field(name).and_then(JsonValue::text);
    match (&condition.attr, &condition.compare) {
        (Attr::Id, Compare::Text(test)) => test.holds(Some(node.id())),
        (Attr::Parent, Compare::Text(test)) => test.holds(node.parent().map(NodeRef::id)),
        (Attr::CreatedAtIso, Compare::Text(test)) => test.holds(text("created_at_iso")),
        (Attr::ContentHash, Compare::Text(test)) => match text("content_hash") {
            Some(stored) => test.holds(Some(stored)),
            None => test.holds(Some(&node.content_hash())),
        },
        (Attr::Content, Compare::Value(test)) => content_holds(test, node.field("content")),
        (Attr::Tags, Compare::Value(test)) => {
            test.holds(&match node.tags().map_or(Scalar::Null, scalar) {
                Scalar::Text(text) => Scalar::List(vec![Scalar::Text(text)]),
                value => value,
            })
        }
        (Attr::Custom(name), Compare::Value(test)) => {
            test.holds(&node.field(name).map_or(Scalar::Null, scalar))
        }
        (Attr::Cadence, Compare::Number(set)) => set.contains(node.cadence()),
        (Attr::Facet(facet), Compare::Number(set)) => set.contains(match facet {
            Facet::Depth => node.depth(),
            Facet::Sdepth => Some(i64::from(node.level())),
            Facet::BornTurn => born_turn(node, stats),
            Facet::Age => {
                born_turn(node, stats).map(|born| node.snapshot_cycle().saturating_sub(born))
            }
        }),
        // Every other attribute has a column.
        _ => false,
    }
}

/// Evaluates a comparison of a content. A pattern sees each text inside a list or an object.
#[inline]
pub(super) fn content_holds(test: &ValueTest, content: Option<JsonValue<'_>>) -> bool {
    match (content, test.pattern()) {
        // The most frequent case is all that many searches do.
        (Some(JsonValue::Text(text)), Some(pattern)) => pattern.is_match(text),
        (Some(JsonValue::List(json) | JsonValue::Object(json)), Some(pattern)) => {
            any_text(json, |text| pattern.is_match(text))
        }
        (content, _) => test.holds(&content.map_or(Scalar::Null, scalar)),
    }
}

/// The `cycle` header, else the oldest snapshot that has the id (LANGUAGE §5).
fn born_turn(node: NodeRef<'_>, stats: &dyn SessionStats) -> Option<i64> {
    node.cycle()
        .or_else(|| stats.first_seen(node.id()))
        .or(Some(node.snapshot_cycle()))
}
