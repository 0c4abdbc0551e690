//! What a request has besides messages: parameters, tools, and the system prompt where the API has
//! a member for it.

use super::error::RenderError;
use super::json::{self, braced, compact, object_in, push_member, push_members};
use super::provider::Provider;
use super::thread::Source;
use super::tool::definition;
use crate::json::{get, members, string};
use std::borrow::Cow;

/// What a request has besides messages, checked before any of it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) provider: Provider,
    /// The members of the parameters with commas between them, as they came.
    pub(crate) parameters: String,
    pub(crate) tools: Vec<String>,
    /// The list of the tools, as JSON.
    pub(super) tool_list: String,
    /// The parameter whose member the tools are, if they are not one of the request.
    pub(super) tools_in: Option<&'static str>,
    /// The member that the system prompt is, and its value as JSON.
    pub(crate) system: Option<(&'static str, String)>,
    /// The member that the messages are.
    list: &'static str,
    /// The id of the block that is `instructions`.
    pub(crate) instructions: Option<String>,
    /// The number of blocks, from the first, that are not sent, because the API has them.
    pub(super) previous: usize,
    /// The one text, as JSON, in place of the list of messages.
    pub(super) alone: Option<String>,
    /// Whether parameters were given, even an empty object.
    given: bool,
    /// Whether there are messages, or else a list without any.
    has_list: bool,
}

impl Head {
    pub(super) fn empty() -> Self {
        Self {
            list: "blocks",
            has_list: true,
            ..Self::default()
        }
    }

    pub(super) fn new(
        source: Source<'_>,
        provider: Provider,
        system: Option<(&'static str, String)>,
        list: &'static str,
    ) -> Result<Self, RenderError> {
        let tools = source.system().filter(|block| block.is_tool());
        let tools: Result<Vec<String>, RenderError> =
            tools.map(|block| definition(&block, provider)).collect();
        let tools = tools?;
        let given = source.parameters();
        let raw = given.as_deref().unwrap_or("{}");
        let text = string(raw).unwrap_or(Cow::Borrowed(raw));
        let Some(parameters) = object_in(&text) else {
            return Err(RenderError::Parameters {
                message: "expected a JSON object as `meta.request`".to_owned(),
                help: "give them as an object, such as {\"model\": …, \"temperature\": …}"
                    .to_owned(),
            });
        };
        let clashes = |name: &str| name == "tools" && !tools.is_empty();
        let found = members(parameters);
        if let Some((name, _)) = found.iter().find(|(name, _)| clashes(name)) {
            return Err(clash(name, provider));
        }
        let parameters = compact(parameters);
        let mut head = Self {
            provider,
            parameters: parameters[1..parameters.len() - 1].to_owned(),
            tool_list: json::list(&tools),
            tools,
            list,
            given: given.is_some(),
            ..Self::empty()
        };
        if let Some((name, value)) = system {
            head.set_system(name, value)?;
        }
        Ok(head)
    }

    /// With a system prompt, in the member of this name.
    ///
    /// # Errors
    /// There is a parameter of that name.
    pub(super) fn set_system(
        &mut self,
        name: &'static str,
        value: String,
    ) -> Result<(), RenderError> {
        let parameters = format!("{{{}}}", self.parameters);
        if get(&members(&parameters), name).is_some() {
            return Err(clash(name, self.provider));
        }
        self.system = Some((name, value));
        Ok(())
    }

    pub(super) fn with_messages(self) -> Result<Self, RenderError> {
        let parameters = format!("{{{}}}", self.parameters);
        let found = members(&parameters);
        if found.iter().any(|(name, _)| name == self.list) {
            return Err(clash(self.list, self.provider));
        }
        Ok(self)
    }

    /// Without any message after it. A parameter of their name is all that there is of them then; a request of which
    /// the parameters are known, and have none, was sent without.
    pub(super) fn without_messages(mut self) -> Self {
        self.has_list = !self.given;
        self
    }

    pub(super) fn around(&self) -> (String, String) {
        let is_list = matches!(self.provider, Provider::Thread)
            || (self.provider == Provider::OpenAi && !self.given && self.tools.is_empty());
        if is_list {
            return ("[".to_owned(), "]\n".to_owned());
        }
        let parameters = format!("{{{}}}", self.parameters);
        let found = members(&parameters);
        let outer = self.tools_in.filter(|_| !self.tools.is_empty());
        let mut others = String::new();
        for (name, value) in found.iter().filter(|(name, _)| outer != Some(&**name)) {
            push_member(name, value, &mut others);
        }
        let mut open = format!("{{{}", others.strip_prefix(',').unwrap_or_default());
        if open.len() > 1 {
            open.push(',');
        }
        if let Some((name, value)) = &self.system {
            open.push_str(&format!("\"{name}\":{value},"));
        }
        let brackets = match (self.has_list, &self.alone) {
            (false, _) => {
                // The comma before it.
                if open.ends_with(',') {
                    open.pop();
                }
                ["", ""]
            }
            (true, Some(_)) => ["", ""],
            (true, None) => ["[", "]"],
        };
        if self.has_list {
            open.push_str(&format!("\"{}\":", self.list));
        }
        open.push_str(brackets[0]);
        let mut tools = String::new();
        if !self.tools.is_empty() {
            let mut inside = String::new();
            push_members(outer.and_then(|name| get(&found, name)), &mut inside);
            push_member("tools", &self.tool_list, &mut inside);
            match outer {
                Some(name) => push_member(name, &braced(&inside), &mut tools),
                None => tools = inside,
            }
        }
        // Nothing may stand before it.
        if open == "{" && !tools.is_empty() {
            tools.remove(0);
        }
        (open, format!("{}{tools}}}\n", brackets[1]))
    }
}

fn clash(name: &str, provider: Provider) -> RenderError {
    RenderError::Parameters {
        message: format!(
            "expected parameters without `{name}`, which `{provider}` takes from the tree"
        ),
        help: format!("remove `{name}` from `meta.request`"),
    }
}
