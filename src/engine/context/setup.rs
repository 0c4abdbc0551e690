//! The system prompt, the tools and the parameters of the requests to come.

use super::Context;
use crate::json::{Reader, get, members, string};
use crate::runtime::{NewNode, problem_text};
use crate::support::diag::{Code, Error};

/// The priority of the system prompt and of tools: a policy takes everything of a lower one first.
const PRIORITY: i64 = 1_000;

impl Context {
    /// Makes these texts the system prompt: the blocks of kind `text` and role `system` directly below
    /// `^sys` that have no key. Blocks whose text is the same stay, others are replaced, added or
    /// removed. New ones get the priority 1,000, so that a policy takes other blocks first. Returns the ids of the blocks, in order.
    ///
    /// # Errors
    /// `E_PINNED` for a block that would go. Nothing has changed then.
    pub fn set_system<'t>(
        &mut self,
        parts: impl IntoIterator<Item = &'t str>,
    ) -> Result<Vec<String>, Error> {
        let node = |text: &str| NewNode::text(text).role("system").priority(PRIORITY);
        let wanted: Vec<NewNode> = parts.into_iter().map(node).collect();
        let set = self.workspace.set_list("text", &wanted);
        self.finish("", set)
    }

    /// Makes these definitions, each a JSON object, the tools: blocks of kind `tool` directly below
    /// `^sys`, with the tool's name as key. Their spelling and order are kept. Definitions that are the
    /// same stay; others are replaced, added or removed, with the priority 1,000. Returns the ids of the blocks, in order.
    ///
    /// # Errors
    /// `E_INPUT`: a definition that is not a JSON object or has no name, two with one name; `E_PINNED`
    /// for a block that would go. Nothing has changed then.
    pub fn set_tools<'t>(
        &mut self,
        definitions: impl IntoIterator<Item = &'t str>,
    ) -> Result<Vec<String>, Error> {
        let mut wanted: Vec<NewNode> = Vec::new();
        for text in definitions {
            json_object(text, "the definition of a tool")?;
            let name = tool_name(text).ok_or_else(|| {
                wrong(
                    text,
                    "a tool definition needs a name",
                    r#"{"name":"search", …}"#,
                )
            })?;
            let node = NewNode::new()
                .role("system")
                .kind("tool")
                .key(&name)
                .priority(PRIORITY)
                .content(text.trim());
            if wanted
                .iter()
                .any(|other| other.member("key") == node.member("key"))
            {
                let message = format!("the tool `{name}` is defined twice");
                return Err(wrong(text, message, "give every tool one definition"));
            }
            wanted.push(node);
        }
        let set = self.workspace.set_list("tool", &wanted);
        self.finish("", set)
    }

    /// Sets the parameters of the requests to come (model, temperature, …), a JSON object: the
    /// `meta.request` of the next snapshots. Its spelling is kept.
    ///
    /// # Errors
    /// `E_INPUT`: text that is not a JSON object.
    pub fn set_request(&mut self, parameters: &str) -> Result<(), Error> {
        json_object(parameters, "the parameters of a request")?;
        self.workspace.request = Some(parameters.trim().into());
        self.changed();
        Ok(())
    }

    /// The parameters, as JSON text.
    pub fn request_parameters(&self) -> Option<&str> {
        self.workspace.request.as_deref()
    }
}

/// Refuses a text that does not hold one JSON object; `what` is what it was to be.
fn json_object(text: &str, what: &str) -> Result<(), Error> {
    let mut reader = Reader::new(text);
    let value = reader.skip_value();
    let value = value.and_then(|value| reader.end().map(|()| value));
    if let Some(problem) = reader.problems().first() {
        return Err(problem_text(problem).about(text));
    }
    if value.is_ok_and(|value| value.starts_with('{')) {
        return Ok(());
    }
    let message = format!("{what} must be a JSON object");
    Err(wrong(text, message, "such as {\"name\": 1}"))
}

fn tool_name(definition: &str) -> Option<String> {
    let outer = members(definition);
    let name = get(&outer, "name").and_then(string);
    let inner = || {
        let function = members(get(&outer, "function")?);
        get(&function, "name").and_then(string).map(String::from)
    };
    // A tool that the provider itself runs has only a type.
    let hosted = || {
        let hosted = get(&outer, "type").and_then(string)?;
        (hosted != "function").then(|| hosted.into())
    };
    let name = name.map(String::from).or_else(inner).or_else(hosted);
    name.filter(|name| !name.is_empty())
}

fn wrong(text: &str, message: impl Into<String>, help: &str) -> Error {
    Error::whole(Code::Input, text, message).with_help(help)
}
