//! Tool definitions in each provider's form, from each.

use super::{document, request, snapshot, tree};
use pactql::render::Contents;
use pactql::{
    Provider,
    render::{self, RenderError, Thread},
};
use serde_json::{Value, json};

const APIS: [Provider; 3] = [
    Provider::OpenAi,
    Provider::OpenAiResponses,
    Provider::Anthropic,
];

/// The definition, given as JSON text, for the three APIs.
fn tools(definition: &str) -> [Result<Value, RenderError>; 3] {
    let sys = json!([{"id": "t", "kind": "tool", "key": "f", "content": definition}]);
    let snapshot = tree(sys, json!([]), json!([]));
    APIS.map(|api| {
        let text = render::request(&*snapshot, api)?;
        let mut request: Value = serde_json::from_str(&text).expect("JSON");
        Ok(request["tools"][0].take())
    })
}

#[test]
fn functions_are_translated() {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let chat = json!({"type": "function", "function": {
        "name": "f", "description": "d", "parameters": schema}});
    let responses = json!({"type": "function", "name": "f", "description": "d",
        "parameters": schema, "strict": false});
    let anthropic = json!({"name": "f", "description": "d", "input_schema": schema});
    let mcp = json!({"name": "f", "description": "d", "inputSchema": schema});
    let bare = json!({"name": "f", "description": "d", "parameters": schema});
    for from in [&chat, &anthropic, &mcp, &bare] {
        let found = tools(&from.to_string()).map(Result::unwrap);
        assert_eq!(found, [chat.clone(), responses.clone(), anthropic.clone()]);
    }
    // From Responses, what is said about strictness is kept for OpenAI.
    let mut strict = chat.clone();
    strict["function"]["strict"] = json!(false);
    let found = tools(&responses.to_string()).map(Result::unwrap);
    assert_eq!(found, [strict, responses, anthropic]);
}

#[test]
fn a_function_without_a_schema_takes_nothing() {
    let empty = json!({"type": "object", "properties": {}});
    let found = tools(r#"{"type":"function","function":{"name":"f"}}"#).map(Result::unwrap);
    assert_eq!(
        found,
        [
            json!({"type": "function", "function": {"name": "f"}}),
            json!({"type": "function", "name": "f", "parameters": empty, "strict": false}),
            json!({"name": "f", "input_schema": empty}),
        ]
    );
}

#[test]
fn a_definition_of_the_same_api_is_kept_as_it_came() {
    let own = [
        r#"{ "type": "function", "function": {"parameters": {"b": 1.0, "a": "é"}, "name": "f", "x": 1} }"#,
        r#"{ "type": "function", "x": [ 1, 2 ], "parameters": {"b": 1.0, "a": "é"}, "name": "f" }"#,
        r#"{ "input_schema": {"b": 1.0, "a": "é"}, "name": "f", "cache_control": {"type": "ephemeral"} }"#,
    ];
    // White space and quotes inside strings stay.
    let escaped = r#"{ "name": "f", "description": "a \"b\" \\", "input_schema": {} }"#;
    let sys = json!([{"kind": "tool", "content": escaped}]);
    let found = render::request(&tree(sys, json!([]), json!([])), Provider::Anthropic).unwrap();
    let kept = r#"[{"name":"f","description":"a \"b\" \\","input_schema":{}}]"#;
    assert!(found.contains(kept), "{found}");
    for (definition, api) in own.into_iter().zip(APIS) {
        let spaceless: String = definition.split(' ').collect();
        let as_text = Value::from(definition).to_string();
        for content in [definition, &as_text] {
            let sys = json!([{"kind": "tool", "content": "DEFINITION"}]);
            let text = document(&json!(null), sys, json!([]), json!([])).to_string();
            let text = text.replace("\"DEFINITION\"", content);
            let found = render::request(&*snapshot(&text), api).unwrap();
            let end = format!("\"tools\":[{spaceless}]}}\n");
            assert!(found.ends_with(&end), "{found}");
        }
    }
}

#[test]
fn tools_make_a_request_of_the_messages_and_keep_their_order() {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let sys = json!([
        {"kind": "tool", "content": tool("z").to_string()},
        {"kind": "text", "content": "Be brief."},
        {"kind": "tool", "content": tool("a").to_string()}]);
    let snapshot = tree(sys, json!([]), json!([{"content": "Hi"}]));
    assert_eq!(
        request(&snapshot, Provider::Anthropic),
        json!({"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}],
            "tools": [tool("z"), tool("a")]})
    );
    let openai = request(&snapshot, Provider::OpenAi);
    let messages = json!([
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]);
    assert_eq!(openai["messages"], messages);
    assert_eq!(openai["tools"].as_array().map(Vec::len), Some(2));
    let responses = request(&snapshot, Provider::OpenAiResponses);
    assert_eq!(responses["instructions"], "Be brief.");
    let thread = Thread::from_snapshot(&snapshot, Contents::All);
    let texts: Vec<String> = thread.tools().map(|text| text.into_owned()).collect();
    assert_eq!(texts, [tool("z").to_string(), tool("a").to_string()]);
    // The thread has the definitions as blocks.
    let thread = request(&snapshot, Provider::Thread);
    assert_eq!(thread[0]["kind"], "tool");
    assert_eq!(thread[0]["content"], tool("z").to_string());
}

#[test]
fn a_provider_s_own_tools_go_to_that_provider_only() {
    let anthropic = r#"{"type":"web_search_20250305","name":"web_search","max_uses":5}"#;
    let openai = [
        r#"{"type":"web_search","filters":{}}"#,
        r#"{"type":"custom","custom":{"name":"g"}}"#,
        r#"{"type":"custom","name":"g","format":{"type":"text"}}"#,
    ];
    let refused = |found: &Result<Value, RenderError>, api: &str, kind: &str| {
        let error = found.as_ref().expect_err(kind);
        assert_eq!(
            error.to_string(),
            format!(
                "block `t`: expected a function for `{api}`, found the tool type `{kind}` of another API"
            )
        );
        assert!(error.help().is_some());
    };
    let found = tools(anthropic);
    assert_eq!(found[2].as_ref().unwrap().to_string(), json_text(anthropic));
    refused(&found[0], "openai", "web_search_20250305");
    refused(&found[1], "openai-responses", "web_search_20250305");
    for definition in openai {
        let found = tools(definition);
        for of_openai in &found[..2] {
            assert_eq!(
                of_openai.as_ref().unwrap().to_string(),
                json_text(definition)
            );
        }
        let kind: Value = serde_json::from_str(definition).unwrap();
        refused(&found[2], "anthropic", kind["type"].as_str().unwrap());
    }
}

fn json_text(text: &str) -> String {
    let value: Value = serde_json::from_str(text).expect("JSON");
    value.to_string()
}

#[test]
fn a_tool_without_a_definition_is_refused() {
    for wrong in [
        "",
        "search(query): searches",
        "[]",
        "{broken",
        "{}",
        r#"{"a":1,"a":2}"#,
    ] {
        for found in tools(wrong) {
            let error = found.expect_err(wrong);
            assert!(matches!(&error, RenderError::Block { id, .. } if id == "t"));
            let text = error.to_string();
            assert!(
                text.starts_with("block `t`: expected a tool definition"),
                "{text}"
            );
        }
    }
}
