//! Prices, and what calls cost.

use super::travel;
use pactql::Engine;
use pactql::inspect::{Money, Part, Prices, Report, ReportOptions, TokenReport};

/// Another table of prices, of the library that counts tokens, has the same for each model of ours that it
/// knows.
#[cfg(feature = "tokens")]
#[test]
fn the_table_agrees_with_another() {
    let prices = Prices::default();
    let mut compared = 0;
    for model in tiktoken::pricing::all_models() {
        let Some(price) = prices.find(model.id) else {
            continue;
        };
        let nanos = |dollars: f64| (dollars * 1_000.0).round() as u64;
        let theirs = model.pricing;
        assert_eq!(price.input, nanos(theirs.input_per_1m), "{}", model.id);
        assert_eq!(price.output, nanos(theirs.output_per_1m), "{}", model.id);
        // For the caches of Anthropic and Google theirs has not what the providers' pages say: a tenth.
        let cached = if model.id.starts_with("claude-") || model.id.starts_with("gemini-") {
            price.cached_input
        } else {
            theirs.cached_input_per_1m.map(nanos)
        };
        assert_eq!(price.cached_input, cached, "{}", model.id);
        compared += 1;
    }
    assert!(compared >= 15, "only {compared} models");
}

#[test]
fn models_by_name() {
    let table = r#"{"date": "2026-01-31", "models": {
        "one": {"input": 1, "output": 2}, "one-mini": {"input": 0.1, "output": 0.2, "cached_input": null}}}"#;
    let prices = Prices::parse(table).unwrap();
    assert_eq!(prices.date(), "2026-01-31");
    for (name, input) in [
        ("one", Some(1_000)),
        ("ONE", Some(1_000)),
        ("router/one", Some(1_000)),
        ("one-latest", Some(1_000)),
        ("one-20260131", Some(1_000)),
        ("one-2026-01-31", Some(1_000)),
        ("one@20260131", Some(1_000)),
        ("one-mini", Some(100)),
        ("one-mini-0131", Some(100)),
        ("one-large", None),
        ("one-5", None),
        ("one1", None),
        ("ft:one:mine", None),
        ("", None),
    ] {
        assert_eq!(prices.find(name).map(|price| price.input), input, "{name}");
    }
}

#[test]
fn tables_that_cannot_be_read() {
    for (table, expected) in [
        ("", "expected JSON"),
        ("{}", "expected a string as `date`"),
        ("{\"date\":1,\"models\":{}}", "expected a string as `date`"),
        ("{\"date\":\"d\"}", "expected an object as `models`"),
        (
            "{\"date\":\"d\",\"models\":{}} x",
            "expected one JSON object",
        ),
        (
            "{\"date\":\"d\",\"date\":\"d\",\"models\":{}}",
            "expected one JSON object",
        ),
        (
            "{\"date\":\"d\",\"models\":{\"m\":{\"input\":1}}}",
            "expected `output` among the prices of `m`",
        ),
        (
            "{\"date\":\"d\",\"models\":{\"m\":{\"input\":-1,\"output\":1}}}",
            "expected dollars a million tokens with at most three decimals as `input` of `m`, found `-1`",
        ),
        (
            "{\"date\":\"d\",\"models\":{\"m\":{\"input\":\"1\",\"output\":1}}}",
            "found `\"1\"`",
        ),
    ] {
        let error = Prices::parse(table).unwrap_err().to_string();
        assert!(error.contains(expected), "{table}: {error}");
    }
}

#[test]
fn costs_of_calls() {
    let prices = |model: &str| {
        let table = format!(
            "{{\"date\":\"d\",\"models\":{{\"{model}\":{{\"input\":2,\"cached_input\":0.5,\"output\":10}}}}}}"
        );
        Prices::parse(&table).unwrap()
    };
    let (engine, session) = (Engine::new(), travel());
    let costs = |part: &Part, model: &str| {
        let options = ReportOptions::new(part.clone()).prices(prices(model));
        let report = TokenReport::new(&engine, &session, &options).unwrap();
        let costs = report.snapshots.into_iter().map(|snapshot| {
            let cost = snapshot.cost?;
            Some((cost.nano_dollars, cost.estimate))
        });
        costs.collect::<Vec<_>>()
    };
    // 165 tokens sent anew, 512 from the cache, 28 in the reply.
    let newest = Some((Money(165 * 2_000 + 512 * 500 + 28 * 10_000), false));
    assert_eq!(costs(&Part::default(), "gpt-4o"), [newest]);
    assert_eq!(costs(&Part::default(), "gpt-4"), [None]);
    let all = costs(&Part::default().at("@history"), "gpt-4o");
    assert_eq!((all.len(), all[4]), (5, newest));
    assert_eq!(all[0], Some((Money(352 * 2_000 + 31 * 10_000), false)));
}
