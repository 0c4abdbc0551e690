//! `select --budget`: the same rules over the blocks of a session.

use super::{by_definition, text};
use pactql::budget::{Query, version_of};
use pactql::{Engine, Session};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A session of one snapshot with these blocks in one turn, by id and content.
fn session(blocks: &[(&str, Value)]) -> Session {
    let blocks: Vec<Value> = blocks
        .iter()
        .map(|(id, content)| json!({"id": id, "nodeType": "cb", "content": content}))
        .collect();
    let document = json!({"root": {"children": [{"id": "seq", "nodeType": "^seq", "children": [
        {"id": "mt:1", "nodeType": "mt", "children": [
            {"id": "mc:1", "nodeType": "mc", "children": blocks}]}]}]}});
    Session::from_slice(document.to_string().as_bytes()).expect("a session")
}

/// The chosen ids of all blocks, with their tokens.
fn fitting(session: &Session, query: &str, budget: u64) -> Vec<(String, u64)> {
    let selection = Engine::new().rows(session, "@t0 .cb").expect("blocks");
    let fit = selection.fit(&Query::new(query), budget);
    let documents = fit.resolution.documents;
    documents
        .into_iter()
        .map(|document| (document.id, document.tokens))
        .collect()
}

#[test]
fn blocks_are_chosen_as_documents_are() {
    let session = session(&[
        ("cb:long", json!("wheel wheel wheel wheel wheel")),
        ("cb:b", json!("a wheel")),
        ("cb:a", json!("the Wheel")),
        ("cb:none", json!("brakes")),
    ]);
    for (query, budget, expected) in [
        // Best score first, equal scores by id; what does not fit is skipped.
        ("wheel", 9, &["cb:long"][..]),
        ("wheel", 7, &["cb:a", "cb:b", "cb:none"]),
        ("wheel", 11, &["cb:long", "cb:a"]),
        ("wheel", 100, &["cb:long", "cb:a", "cb:b", "cb:none"]),
        ("WHEEL brakes", 4, &["cb:none", "cb:b"]),
        ("", 100, &["cb:a", "cb:b", "cb:long", "cb:none"]),
        ("", 0, &[]),
        ("wheel", 1, &[]),
    ] {
        let ids: Vec<String> = fitting(&session, query, budget)
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, expected, "{query:?} {budget}");
    }
}

#[test]
fn the_text_of_a_block_is_its_content_as_rendered() {
    let long = "9".repeat(40);
    for (content, expected) in [
        (json!("plain"), "plain"),
        (
            json!("tab\tquote\"é\u{1F600}\u{0}"),
            "tab\tquote\"é\u{1F600}\u{0}",
        ),
        (json!(null), ""),
        (json!(""), ""),
        (json!(17), "17"),
        (json!(true), "true"),
        (
            json!({"b": [1, "ü"], "a": {}}),
            r#"{"a":{},"b":[1,"\u00fc"]}"#,
        ),
        (json!([]), "[]"),
        (json!(long), &long),
    ] {
        let session = session(&[("cb:1", content.clone())]);
        let selection = Engine::new().rows(&session, "@t0 .cb").expect("a block");
        let fit = selection.fit(&Query::new(""), 1000);
        let document = &fit.resolution.documents[0];
        assert_eq!(document.content, expected, "{content}");
        assert_eq!(document.tokens, (expected.len() as u64).div_ceil(4));
        assert_eq!(document.version, version_of(expected.as_bytes()));
    }
}

#[test]
fn the_answer_has_the_shape_of_source_004() {
    let session = session(&[
        ("cb:1", json!("Paid in full")),
        ("cb:2", json!("paid twice")),
    ]);
    let selection = Engine::new().rows(&session, "@t0 *").expect("nodes");
    let fit = selection.fit(&Query::new("PAID"), 5);
    assert_eq!(
        fit.resolution.to_json(false).expect("JSON"),
        "{\"documents\":[{\"id\":\"cb:2\",\
         \"version\":\"sha256:dc9b3d283c861baafe6e511dafee5c47280cb0e40ace680e485492a9229e53d9\",\
         \"content\":\"paid twice\",\"score\":0.5,\"tokens\":3,\
         \"why\":{\"query_terms\":[\"paid\"],\"term_matches\":1,\"total_words\":2}}],\
         \"selection\":{\"query\":\"PAID\",\"budget\":5,\"tokens_used\":3,\
         \"documents_considered\":2,\"documents_selected\":1,\"documents_excluded_by_budget\":1}}"
    );
    assert_eq!(fit.nodes[0].id(), "cb:2");
    // The root, the region, the turn and the container are not blocks.
    assert_eq!(fit.others, selection.count() - 2);
}

#[test]
fn lists_over_several_snapshots_are_filled_and_ranges_refused() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/support-agent.jsonl");
    let (engine, session) = (Engine::new(), Session::open(path).expect("a session"));
    let query = Query::new("order return");
    for selector in [
        "@* .cb",
        "@t0 .cb",
        "@t-3..@t0 .cb @mode=union",
        "@t-3..@t0 .cb @mode=latest",
        "@t0 .cb @order=turn:desc,pre @limit=7",
    ] {
        let selection = engine.rows(&session, selector).expect("a selector");
        for budget in [0, 1, 40, 200, u64::MAX] {
            let fit = selection.fit(&query, budget);
            let summary = &fit.resolution.selection;
            assert!(summary.tokens_used <= budget);
            assert_eq!(summary.documents_considered, selection.count());
            let tokens = fit.resolution.documents.iter().map(|chosen| chosen.tokens);
            assert_eq!(tokens.sum::<u64>(), summary.tokens_used);
            let ids = fit.resolution.documents.iter().map(|chosen| &*chosen.id);
            assert!(fit.nodes.iter().map(|node| node.id()).eq(ids));
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let again = pool
                    .expect("a pool")
                    .install(|| selection.fit(&query, budget));
                let again = again.resolution.to_json(false);
                assert_eq!(
                    again.expect("JSON"),
                    fit.resolution.to_json(false).expect("JSON")
                );
            }
        }
    }
    for selector in [
        "@t-3..@t0 .cb",
        "@t-3..@t0 .cb @mode=reduce",
        "@t0..@t0 .cb",
    ] {
        assert!(engine.rows(&session, selector).is_err(), "{selector}");
    }
}

proptest! {
    #![proptest_config(crate::support::random::property(1_024))]
    #[test]
    fn what_fits_is_what_the_definition_chooses(
        contents in prop::collection::btree_map("[a-d]{1,3}", text(), 0..12),
        query in text(),
        budget in 0_u64..60,
    ) {
        let blocks: Vec<(&str, Value)> = contents
            .iter()
            .rev()
            .map(|(id, content)| (&**id, json!(content)))
            .collect();
        let session = session(&blocks);
        let selection = Engine::new().rows(&session, "@t0 .cb").expect("blocks");
        let fit = selection.fit(&Query::new(&*query), budget);
        prop_assert!(fit.resolution.selection.tokens_used <= budget);
        let chosen: Vec<(String, f32)> = fit.resolution.documents.into_iter()
            .map(|document| (document.id, document.score)).collect();
        let documents: Vec<(String, String)> = contents.into_iter().collect();
        prop_assert_eq!(chosen, by_definition(&documents, &query, budget));
    }
}
