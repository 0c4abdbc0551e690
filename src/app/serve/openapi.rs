//! The HTTP interface as an OpenAPI document, made of the table of routes.

use crate::app::calls::{CallEntry, TABLE};
use serde_json::{Value, json};
use utoipa::openapi::content::Content;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, OpenApiBuilder, PathsBuilder, Ref, RefOr, Required,
    SecurityRequirement,
};

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

fn schema(value: Value) -> RefOr<Schema> {
    serde_json::from_value(value).unwrap_or_default()
}

fn header(name: &str, about: &str, required: bool) -> utoipa::openapi::path::Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(if required {
            Required::True
        } else {
            Required::False
        })
        .description(Some(about))
        .schema(Some(schema(json!({"type": "string"}))))
        .build()
}

fn path(entry: &CallEntry, method: HttpMethod) -> PathItem {
    let is_write = method == HttpMethod::Post;
    let is_stream = entry.name == "events";
    let kind = if is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let content = if is_stream {
        json!({"type": "string"})
    } else {
        json!({})
    };
    let mut answer = ResponseBuilder::new()
        .description("The answer.")
        .content(kind, Content::new(Some(schema(content))));
    if is_write {
        let fence = HeaderBuilder::new()
            .description(Some("The fence of the session after the change."))
            .schema(Some(schema(json!({"type": "integer"}))));
        answer = answer.header("Pactql-Fence", fence.build());
    }
    let mut operation = OperationBuilder::new()
        .operation_id(Some(&*entry.name))
        .summary(Some(&*entry.about))
        .response("200", answer.build());
    for (status, about) in REFUSALS {
        let write_alone = matches!(status, "408" | "409" | "413");
        if is_write || !write_alone {
            let error = Content::new(Some(RefOr::Ref(Ref::from_schema_name("Error"))));
            let refusal = ResponseBuilder::new()
                .description(about)
                .content("application/json", error);
            operation = operation.response(status, refusal.build());
        }
    }
    for parameter in &entry.parameters {
        let mut value = parameter.schema();
        let about = value["description"].take();
        if let Some(value) = value.as_object_mut() {
            value.remove("description");
        }
        let required = if parameter.is_required() {
            Required::True
        } else {
            Required::False
        };
        let parameter = ParameterBuilder::new()
            .name(parameter.name())
            .parameter_in(ParameterIn::Query)
            .required(required)
            .description(about.as_str())
            .schema(Some(schema(value)));
        operation = operation.parameter(parameter.build());
    }
    if is_write {
        let body = Content::new(Some(schema(json!({"type": "object"}))));
        let body = RequestBodyBuilder::new().content("application/json", body);
        operation = operation
            .request_body(Some(body.build()))
            .parameter(header(
                "Idempotency-Key",
                "Names the change: one that is sent again is done once.",
                true,
            ))
            .parameter(header(
                "Pactql-Fence",
                "Refuse the change if another has written since this fence.",
                false,
            ));
    }
    PathItem::new(method, operation.build())
}

/// The document, as JSON on several lines.
pub(crate) fn document() -> String {
    let [_, reads, writes] = &*TABLE;
    let mut paths = PathsBuilder::new();
    for (entries, method) in [(reads, HttpMethod::Get), (writes, HttpMethod::Post)] {
        for entry in entries {
            paths = paths.path(format!("/api/{}", entry.name), path(entry, method.clone()));
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
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let cookie = ApiKey::Cookie(ApiKeyValue::new("pactql_PORT"));
    let components = ComponentsBuilder::new()
        .schema("Error", schema(error))
        .security_scheme("token", SecurityScheme::Http(bearer))
        .security_scheme("cookie", SecurityScheme::ApiKey(cookie));
    let none: [&str; 0] = [];
    let ways = ["token", "cookie"].map(|way| SecurityRequirement::new(way, none));
    let info = InfoBuilder::new()
        .title("pactql")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "What language models saw. Answers are those of the commands with `--json`.",
        ));
    let document = OpenApiBuilder::new()
        .info(info.build())
        .paths(paths.build())
        .components(Some(components.build()))
        .security(Some(ways));
    document.build().to_pretty_json().unwrap_or_default()
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
