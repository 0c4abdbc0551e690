//! Tests of single nodes, for what has no posting list and no column.
//!
//! Values are read as comparisons see them (LANGUAGE §5): payload fields as JSON values, nodeTypes
//! in one vocabulary, facets from the snapshot and the session.

use std::borrow::Cow;

use super::stats::SessionStats;
use crate::index::NodeRef;
use crate::query::ir::{Attr, Class, Facet, TypeTest, normal_type};
use crate::query::plan::{BoundTest, Compare, Condition, Scalar, TextTest, has_text};

/// Whether an implicit core satisfies a test: its nodeType is `mc`, its offset 0, and every
/// other attribute null (LANGUAGE §1). Tests of its depth, the depth of its turn, are left to
/// callers, which know the row.
pub(super) fn core_holds(test: &BoundTest) -> bool {
    match test {
        BoundTest::Depth(_) | BoundTest::Type(TypeTest::Class(Class::Container)) => true,
        BoundTest::Type(_) => false,
        BoundTest::Attr(Condition { attr, compare }) => match (attr, compare) {
            (Attr::Offset, Compare::Number(set)) => set.contains(Some(0)),
            (Attr::Facet(Facet::Depth), Compare::Number(_)) => true,
            (_, Compare::Number(set)) => set.contains(None),
            (Attr::StoredType | Attr::NodeType, Compare::Text(test)) => test.holds(Some("mc")),
            (_, Compare::Text(test)) => test.holds(None),
            (_, Compare::Value(test)) => test.holds(&Scalar::Null),
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

/// A JSON value as comparisons see it.
pub(super) fn scalar(json: &str) -> Scalar<'_> {
    match json.as_bytes().first() {
        None | Some(b'n') => Scalar::Null,
        Some(b't') => Scalar::Text("true".into()),
        Some(b'f') => Scalar::Text("false".into()),
        Some(b'"') if !json.contains('\\') => Scalar::Text(json.trim_matches('"').into()),
        Some(b'"') => serde_json::from_str::<String>(json)
            .map_or(Scalar::Null, |text| Scalar::Text(text.into())),
        Some(b'[') => {
            let items: Vec<&serde_json::value::RawValue> =
                serde_json::from_str(json).unwrap_or_default();
            Scalar::List(
                items
                    .into_iter()
                    .map(|item| match item.get().as_bytes().first() {
                        Some(b'[') => Scalar::List(Vec::new()),
                        _ => scalar(item.get()),
                    })
                    .collect(),
            )
        }
        Some(b'{') => Scalar::Other,
        Some(_) => Scalar::Number(json),
    }
}

/// The texts inside a list or an object, at any depth; the names of members are not among them.
/// Reads the JSON, which is valid, once and without recursion.
fn texts_in(json: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = json;
    std::iter::from_fn(move || {
        loop {
            let (_, inside) = rest.split_once('"')?;
            let mut escaped = false;
            let end = inside.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })?;
            let (text, after) = (inside.get(..end)?, inside.get(end + 1..)?);
            let start = rest.len() - inside.len() - 1;
            let quoted = rest.get(start..start + end + 2)?;
            rest = after;
            if after.trim_start().starts_with(':') {
                continue;
            }
            return Some(if text.contains('\\') {
                serde_json::from_str::<String>(quoted)
                    .unwrap_or_default()
                    .into()
            } else {
                text.into()
            });
        }
    })
}

/// Evaluates a comparison on a node.
pub(super) fn node_holds(
    condition: &Condition,
    node: NodeRef<'_>,
    stats: &dyn SessionStats,
) -> bool {
    let text = |json: Option<&str>| match json {
        Some(json) if json.starts_with('"') => serde_json::from_str::<String>(json).ok(),
        _ => None,
    };
    match (&condition.attr, &condition.compare) {
        (Attr::Id, Compare::Text(test)) => test.holds(Some(node.id())),
        (Attr::Parent, Compare::Text(test)) => test.holds(node.parent().map(NodeRef::id)),
        (Attr::CreatedAtIso, Compare::Text(test)) => {
            test.holds(text(node.field("created_at_iso")).as_deref())
        }
        (Attr::ContentHash, Compare::Text(test)) => {
            let stored = text(node.field("content_hash"));
            test.holds(Some(&stored.unwrap_or_else(|| node.content_hash())))
        }
        (Attr::Content, Compare::Value(test)) => match (node.field("content"), test.pattern()) {
            (Some(json), Some(pattern)) if json.starts_with(['[', '{']) => {
                texts_in(json).any(|text| pattern.is_match(&text))
            }
            (json, _) => test.holds(&json.map_or(Scalar::Null, scalar)),
        },
        (Attr::Tags, Compare::Value(test)) => {
            test.holds(&match node.tags().map_or(Scalar::Null, scalar) {
                Scalar::Text(text) => Scalar::List(vec![Scalar::Text(text)]),
                value => value,
            })
        }
        (Attr::Custom(name), Compare::Value(test)) => {
            test.holds(&node.field(name).map_or(Scalar::Null, scalar))
        }
        (Attr::Cadence, Compare::Number(set)) => {
            set.contains(node.cadence().and_then(|json| json.parse().ok()))
        }
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

/// The `cycle` header, else the oldest snapshot that has the id (LANGUAGE §5).
fn born_turn(node: NodeRef<'_>, stats: &dyn SessionStats) -> Option<i64> {
    node.cycle()
        .or_else(|| stats.first_seen(node.id()))
        .or(Some(node.snapshot_cycle()))
}

#[cfg(test)]
mod tests {
    use super::texts_in;

    #[test]
    fn texts_at_any_depth_without_names() {
        let json = r#"{"a":"x","b" : [1,"y\"z","\"",{"c":null,"d":["",true,"\\"]}],"e":{"f":"g: \u00e9"}}"#;
        let texts: Vec<_> = texts_in(json).collect();
        assert_eq!(texts, ["x", "y\"z", "\"", "", "\\", "g: é"]);
        assert_eq!(texts_in("[[],{}]").count(), 0);
    }
}
