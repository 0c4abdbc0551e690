//! The HTTP interface as an OpenAPI document, made of the table of routes.

use crate::app::calls::{CallEntry, TABLE};
use serde_json::{Map, Value, json};

/// What may go wrong, by status.
const REFUSALS: [(&str, &str); 10] = [
    ("400", "An argument or the selector is invalid."),
    ("401", "No token, or a wrong one."),
    (
        "403",
        "The request is for another host, or from a page of another site.",
    ),
    ("404", "No such session or snapshot."),
    ("408", "The body did not come in time."),
    ("409", "Another has written the session, or is writing it."),
    ("413", "The body is too long."),
    (
        "422",
        "The log cannot be read, or a node or message in the body is not valid.",
    ),
    ("429", "Too many requests at once."),
    ("503", "It took too long, or the server is ending."),
];

fn header(name: &str, about: &str, required: bool) -> Value {
    json!({
        "name": name, "in": "header", "required": required, "description": about,
        "schema": {"type": "string"},
    })
}

fn operation(entry: &CallEntry, is_write: bool) -> Value {
    let answer = if entry.name == "events" {
        json!({"text/event-stream": {"schema": {"type": "string"}}})
    } else {
        json!({"application/json": {"schema": {}}})
    };
    let mut responses = json!({"200": {"description": "The answer.", "content": answer}});
    for (status, about) in REFUSALS {
        let write_alone = matches!(status, "408" | "409" | "413");
        if is_write || !write_alone {
            let error = json!({"schema": {"$ref": "#/components/schemas/Error"}});
            responses[status] =
                json!({"description": about, "content": {"application/json": error}});
        }
    }
    let parameters = entry.parameters.iter().map(|parameter| {
        let mut schema = parameter.schema();
        let about = schema["description"].take();
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("description");
        }
        json!({
            "name": parameter.name(), "in": "query", "required": parameter.is_required(),
            "description": about, "schema": schema,
        })
    });
    let mut parameters: Vec<Value> = parameters.collect();
    let mut operation = json!({"operationId": entry.name, "summary": entry.about});
    if is_write {
        responses["200"]["headers"] = json!({"Pactql-Fence": {
            "description": "The fence of the session after the change.",
            "schema": {"type": "integer"},
        }});
        operation["requestBody"] =
            json!({"content": {"application/json": {"schema": {"type": "object"}}}});
        parameters.push(header(
            "Idempotency-Key",
            "Names the change: one that is sent again is done once.",
            true,
        ));
        parameters.push(header(
            "Pactql-Fence",
            "Refuse the change if another has written since this fence.",
            false,
        ));
    }
    operation["parameters"] = parameters.into();
    operation["responses"] = responses;
    operation
}

/// The document, as JSON on several lines.
pub(crate) fn document() -> String {
    let [_, reads, writes] = &*TABLE;
    let mut paths = Map::new();
    for (entries, method) in [(reads, "get"), (writes, "post")] {
        for entry in entries {
            let operation = operation(entry, method == "post");
            paths.insert(format!("/api/{}", entry.name), json!({method: operation}));
        }
    }
    let error = json!({
        "type": "object", "required": ["error"],
        "properties": {"error": {
            "type": "object", "required": ["code", "message", "spans"],
            "properties": {
                "code": {"type": "string"}, "message": {"type": "string"}, "help": {"type": "string"},
                "spans": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "start": {"type": "integer"}, "end": {"type": "integer"}, "label": {"type": "string"},
                    },
                }},
            },
        }},
    });
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "pactql",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What language models saw. Answers are those of the commands with `--json`.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": error},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "pactql_PORT"},
            },
        },
        "security": [{"token": []}, {"cookie": []}],
    });
    format!("{document:#}")
}

#[cfg(test)]
mod tests {
    use super::document;
    use crate::app::calls::TABLE;
    use serde_json::Value;

    #[test]
    fn every_route_is_in_the_document_with_its_arguments() {
        let document: Value = serde_json::from_str(&document()).expect("JSON");
        for (entries, method) in TABLE[1..].iter().zip(["get", "post"]) {
            for entry in entries {
                let path = &document["paths"][format!("/api/{}", entry.name)][method];
                let named = path["parameters"].as_array().expect("a list");
                for parameter in &entry.parameters {
                    let found = named.iter().find(|one| one["name"] == parameter.name());
                    let found = found.expect("the argument");
                    assert_eq!(found["required"], parameter.is_required());
                    assert!(found["schema"]["type"].is_string(), "{found}");
                    assert!(parameter.takes_its_example(), "{parameter:?}");
                }
                assert_eq!(path["summary"], entry.about);
            }
        }
    }
}
