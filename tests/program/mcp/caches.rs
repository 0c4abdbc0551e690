//! The tools over caches answer as the interface does that they follow: six codes, fixed messages, nothing else.

use super::Scratch;
use serde_json::{Value, json};
use std::fs;

#[test]
fn errors_over_caches_have_the_codes_of_their_interface() {
    let scratch = Scratch::new("cache-errors");
    let resolve = |cache: &str| json!({"cache": cache, "query": "x", "budget": 1});
    let inspect = |cache: &str| json!({"cache": cache});
    let list = |root: &str| json!({"root": root});
    let budget = |budget: Value| json!({"cache": "caches/good", "query": "x", "budget": budget});
    let missing = ("cache_missing", "Cache does not exist");
    let invalid = ("cache_invalid", "Cache exists but is invalid");
    let no_budget = ("invalid_budget", "Budget is invalid");
    let mut client = scratch.client();
    for (tool, arguments, (code, message)) in [
        ("resolve", resolve("caches/none"), missing),
        ("resolve", resolve("agent.jsonl"), missing),
        ("resolve", resolve("../outside-cache"), missing),
        ("resolve", resolve(""), missing),
        (
            "resolve",
            json!({"cache": 1, "query": "x", "budget": 1}),
            missing,
        ),
        ("resolve", resolve("caches/damaged"), invalid),
        ("resolve", resolve("caches/not-one"), invalid),
        ("resolve", budget(json!(-1)), no_budget),
        ("resolve", budget(json!(1.5)), no_budget),
        ("resolve", budget(json!("12")), no_budget),
        (
            "resolve",
            json!({"cache": "caches/good", "query": 1, "budget": 1}),
            ("invalid_query", "Query is invalid"),
        ),
        ("inspect_cache", inspect("caches/none"), missing),
        ("inspect_cache", inspect("/"), missing),
        ("list_caches", list("none"), missing),
        ("list_caches", list("agent.jsonl"), missing),
    ] {
        for name in [format!("context_{tool}"), format!("context.{tool}")] {
            let (failed, texts) = client.call(&name, arguments.clone());
            let expected = format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
            assert_eq!(
                (failed, texts),
                (true, vec![expected]),
                "{name} {arguments}"
            );
        }
    }
    // The reason is on standard error.
    let (code, errors) = client.end();
    assert_eq!(code, 0);
    let said = "context_resolve: error[E_MISSING]: caches/none is not a directory\n";
    assert!(errors.starts_with(said), "{errors}");
}

#[test]
fn a_cache_is_inspected_as_its_interface_says() {
    let scratch = Scratch::new("cache-figures");
    let mut client = scratch.client();
    let mut inspect = |cache: &str| {
        let text = client.answer("context_inspect_cache", json!({"cache": cache}));
        let names = ["cache_version", "document_count", "total_bytes", "valid"];
        let places: Vec<_> = names
            .iter()
            .map(|name| text.find(&format!("\"{name}\":")))
            .collect();
        assert!(places.is_sorted() && !places.contains(&None), "{text}");
        let found: Value = serde_json::from_str(&text).expect("JSON");
        let files = fs::read_dir(scratch.path("root").join(cache)).expect("a directory");
        let files = files.map(|file| file.expect("an entry").metadata().expect("an entry"));
        let bytes: u64 = files
            .filter(fs::Metadata::is_file)
            .map(|file| file.len())
            .sum();
        assert_eq!(found["total_bytes"], bytes, "{cache}");
        found
    };
    let good = inspect("caches/good");
    assert_eq!(inspect("./caches//good"), good);
    assert_eq!(
        (&good["document_count"], &good["valid"]),
        (&json!(3), &json!(true))
    );
    let (_, out, _) = scratch.command(&["context", "inspect", "--cache", "caches/good"]);
    let command: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(good["cache_version"], command["cache_version"]);
    // What the manifest says, although it is wrong.
    let damaged = inspect("caches/damaged");
    assert_eq!(
        (&damaged["document_count"], &damaged["valid"]),
        (&json!(3), &json!(false))
    );
    assert_eq!(damaged["cache_version"], good["cache_version"]);
    // No manifest, or none that can be read.
    for text in [None, Some("{"), Some("[]"), Some("{\"cache_version\":1}")] {
        if let Some(text) = text {
            fs::write(scratch.path("root/caches/not-one/manifest.json"), text).expect("a file");
        }
        let none = inspect("caches/not-one");
        assert_eq!(none["cache_version"], "", "{text:?}");
        assert_eq!(
            (&none["document_count"], &none["valid"]),
            (&json!(0), &json!(false))
        );
    }
    assert_eq!(client.end().0, 0);
}
