//! The request around the messages: parameters and tools.

use super::error::RenderError;
use super::json::{compact, list, object_in};
use super::provider::Provider;
use super::source::Source;
use super::tool::definition;
use crate::tree::shallow::{members, string};
use std::borrow::Cow;

/// The parameters and tools of a request, checked before any of it is written.
pub(super) struct Frame {
    /// The members of the parameters with commas between them, as they came.
    parameters: String,
    tools: Vec<String>,
}

impl Frame {
    /// Reads parameters and tools. `written` are the members that the provider's form writes
    /// besides `tools`.
    pub(super) fn new(
        source: Source<'_>,
        provider: Provider,
        written: &[&str],
    ) -> Result<Self, RenderError> {
        let tools = source.system().filter(|block| block.is_tool());
        let tools: Result<Vec<String>, RenderError> =
            tools.map(|block| definition(&block, provider)).collect();
        let tools = tools?;
        let raw = source.parameters().unwrap_or_else(|| "{}".into());
        let text = string(&raw).unwrap_or(Cow::Borrowed(&raw));
        let Some(parameters) = object_in(&text) else {
            return Err(RenderError::Parameters {
                message: "expected a JSON object as `meta.request`".to_owned(),
                help: "give them as an object, such as {\"model\": …, \"temperature\": …}"
                    .to_owned(),
            });
        };
        let clashes =
            |name: &str| written.contains(&name) || (name == "tools" && !tools.is_empty());
        let found = members(parameters);
        if let Some((name, _)) = found.iter().find(|(name, _)| clashes(name)) {
            return Err(RenderError::Parameters {
                message: format!(
                    "expected parameters without `{name}`, which `{provider}` takes from the tree"
                ),
                help: format!("remove `{name}` from `meta.request`"),
            });
        }
        let parameters = compact(parameters);
        Ok(Self {
            parameters: parameters[1..parameters.len() - 1].to_owned(),
            tools,
        })
    }

    /// Whether the session has neither parameters nor tools.
    pub(super) fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.tools.is_empty()
    }

    /// What comes before the messages, which are the list `name`; `system` is another member
    /// with its comma, or nothing.
    pub(super) fn open(&self, system: &str, name: &str) -> String {
        let parameters = &self.parameters;
        let before = if parameters.is_empty() { "" } else { "," };
        format!("{{{parameters}{before}{system}\"{name}\":[")
    }

    /// What comes after the messages.
    pub(super) fn close(&self) -> String {
        if self.tools.is_empty() {
            return "]}\n".to_owned();
        }
        format!("],\"tools\":{}}}\n", list(&self.tools))
    }
}
