//! Tool definitions: one in the provider's form is kept as it came, a function in another's is
//! translated.

use super::block::ThreadBlock;
use super::error::RenderError;
use super::json::{braced, compact, object_in, push_member};
use super::provider::Provider;
use crate::json::{Member, get, members, string};

/// Whether a provider is sent a definition, which is JSON, in the form it has.
pub(crate) fn is_kept(raw: &str, provider: Provider) -> bool {
    if object_in(raw).is_none() {
        return false;
    }
    let found = members(raw);
    match function(&found) {
        Some(function) => function.form == Some(provider),
        None => get(&found, "type")
            .and_then(string)
            .is_some_and(|kind| is_hosted(&kind, &found, provider)),
    }
}

/// A function that the model can call. The values are JSON.
struct Function<'a> {
    /// Whose form its definition has: `{"type":"function","function":{…}}` is that of Chat Completions,
    /// `{"type":"function","name":…,"parameters":…}` of Responses, `{"name":…,"input_schema":…}` of
    /// Anthropic, `{"toolSpec":{…}}` of Bedrock; `None` for everything else with a name and a schema, such as MCP's `inputSchema`
    /// and Gemini's functions.
    form: Option<Provider>,
    name: &'a str,
    description: Option<&'a str>,
    schema: Option<&'a str>,
    strict: Option<&'a str>,
}

/// The definition in a block, in the form of `provider`.
pub(super) fn definition(block: &ThreadBlock, provider: Provider) -> Result<String, RenderError> {
    let text = block.definition().unwrap_or_default();
    // One that was sent so before.
    if block.text("data_form").as_deref() == Some(provider.name()) {
        return Ok(compact(&text).into_owned());
    }
    let Some(raw) = object_in(&text) else {
        return Err(RenderError::block(
            block.id(),
            "expected a tool definition, a JSON object, as the content of a block of kind `tool`",
            "give it the definition as an API takes it, such as \
             {\"name\": …, \"description\": …, \"input_schema\": …}, or another kind, such as `text`",
        ));
    };
    let found = members(raw);
    if let Some(function) = function(&found) {
        return Ok(if function.form == Some(provider) {
            compact(raw).into_owned()
        } else {
            function.translated(provider)
        });
    }
    // A hosted tool, which has no schema, goes to the provider that hosts it.
    let Some(kind) = get(&found, "type").and_then(string) else {
        return Err(RenderError::block(
            block.id(),
            "expected a tool definition with a `name` or a `type`",
            "give it the definition as an API takes it, such as \
             {\"name\": …, \"description\": …, \"input_schema\": …}",
        ));
    };
    if is_hosted(&kind, &found, provider) {
        return Ok(compact(raw).into_owned());
    }
    Err(RenderError::block(
        block.id(),
        format!(
            "expected a function for `{provider}`, found the tool type `{kind}` of another API"
        ),
        format!(
            "remove the block, or define a function with a name and a schema in place of `{kind}`"
        ),
    ))
}

fn function<'a>(found: &[Member<'a>]) -> Option<Function<'a>> {
    if let Some(inner) = get(found, "toolSpec").map(members)
        && let Some(name) = get(&inner, "name")
    {
        return Some(Function {
            form: Some(Provider::Bedrock),
            name,
            description: get(&inner, "description"),
            schema: get(&inner, "inputSchema").and_then(|schema| get(&members(schema), "json")),
            strict: get(&inner, "strict"),
        });
    }
    if let Some(inner) = get(found, "function").map(members)
        && let Some(name) = get(&inner, "name")
    {
        return Some(Function {
            form: Some(Provider::OpenAi),
            name,
            description: get(&inner, "description"),
            schema: get(&inner, "parameters"),
            strict: get(&inner, "strict"),
        });
    }
    let name = get(found, "name")?;
    let anthropic = get(found, "input_schema");
    // Those of MCP, OpenAI and Gemini.
    let others = [
        "inputSchema",
        "parameters",
        "parametersJsonSchema",
        "parameters_json_schema",
    ];
    let others = others.iter().find_map(|name| get(found, name));
    let schema = anthropic.or(others);
    let kind = get(found, "type").and_then(string);
    let form = match kind.as_deref() {
        Some("function") => Some(Provider::OpenAiResponses),
        _ if anthropic.is_some() => Some(Provider::Anthropic),
        // A hosted tool has a type and no schema.
        Some(_) if schema.is_none() => return None,
        _ => None,
    };
    Some(Function {
        form,
        name,
        description: get(found, "description"),
        schema,
        strict: get(found, "strict"),
    })
}

impl Function<'_> {
    fn translated(&self, provider: Provider) -> String {
        let mut out = String::new();
        let schema = self.schema.map(compact);
        let empty = "{\"type\":\"object\",\"properties\":{}}";
        let mut push = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                push_member(name, &compact(value), &mut out);
            }
        };
        push("name", Some(self.name));
        push("description", self.description);
        if provider == Provider::Anthropic {
            push("input_schema", schema.as_deref().or(Some(empty)));
            return braced(&out);
        }
        if provider == Provider::OpenAiResponses {
            push("parameters", schema.as_deref().or(Some(empty)));
            // Here a function is strict unless it says otherwise, elsewhere only if it says so.
            push("strict", self.strict.or(Some("false")));
            return format!("{{\"type\":\"function\"{out}}}");
        }
        if provider == Provider::Bedrock {
            let schema = format!("{{\"json\":{}}}", schema.as_deref().unwrap_or(empty));
            push("inputSchema", Some(&schema));
            return format!("{{\"toolSpec\":{}}}", braced(&out));
        }
        if provider == Provider::Gemini {
            // Unlike `parameters`, it is JSON Schema as the others have it.
            push("parametersJsonSchema", schema.as_deref());
            return braced(&out);
        }
        push("parameters", schema.as_deref());
        push("strict", self.strict);
        format!("{{\"type\":\"function\",\"function\":{}}}", braced(&out))
    }
}

/// Whether a provider hosts a tool of a type. Anthropic's have a name, OpenAI's none or the type `custom`; those of
/// Gemini and Bedrock have no type.
fn is_hosted(kind: &str, found: &[Member<'_>], provider: Provider) -> bool {
    if matches!(provider, Provider::Gemini | Provider::Bedrock) {
        return false;
    }
    let anthropic = kind != "custom" && get(found, "name").is_some();
    anthropic == (provider == Provider::Anthropic)
}
