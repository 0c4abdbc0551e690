//! Messages: the everyday way to fill a turn.

use std::borrow::Cow;
use std::sync::Arc;

use super::Context;
use crate::json::string;
use crate::runtime::{Destination, Insertion, NewNode, word};
use crate::support::diag::Error;
use crate::tree::NodeClass;

/// A message: a role, and parts that become blocks.
///
/// ```
/// use pactql::{Context, Message, Provider};
/// let mut context = Context::new();
/// context.append(Message::user("How warm is it in Graz?"))?;
/// context.reply(Message::assistant("").call("c1", "weather", r#"{"city":"Graz"}"#))?;
/// context.commit()?;
/// context.append(Message::tool("c1", "21 °C"))?;
/// assert_eq!(context.select(".cb[kind='call']")?.count(), 1);
/// assert_eq!(context.select("^ah .cb[data_call_id='c1']")?.count(), 1);
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    role: Cow<'static, str>,
    parts: Vec<NewNode>,
}

impl Message {
    /// A message without parts.
    pub fn new(role: &str) -> Self {
        Self {
            role: word(role),
            parts: Vec::new(),
        }
    }

    /// A user's text.
    pub fn user(text: &str) -> Self {
        Self::new("user").text(text)
    }

    /// The model's text; none if it is empty.
    pub fn assistant(text: &str) -> Self {
        Self::new("assistant").text(text)
    }

    /// An instruction, which goes to `^sys`.
    pub fn system(text: &str) -> Self {
        Self::new("system").text(text)
    }

    /// The result of a tool call.
    pub fn tool(call_id: &str, result: &str) -> Self {
        let part = NewNode::new().kind("result").content(result);
        Self::new("tool").part(part.set_text("data_call_id", call_id))
    }

    /// Marks the last part as the result of a call that failed: `data_is_error` is true. `steps`, `assert` and the
    /// forms of providers that have a place for it tell such results apart.
    ///
    /// ```
    /// use pactql::{Context, Message};
    /// let mut context = Context::new();
    /// context.append(Message::tool("c1", "no such city").failed())?;
    /// assert_eq!(context.select("^ah .cb[data_is_error=true]")?.count(), 1);
    /// # Ok::<(), pactql::Error>(())
    /// ```
    #[must_use]
    pub fn failed(mut self) -> Self {
        if let Some(part) = self.parts.pop() {
            self.parts.push(part.set("data_is_error", true));
        }
        self
    }

    /// Adds a text; none if it is empty.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        if text.is_empty() {
            return self;
        }
        self.part(NewNode::text(text))
    }

    /// Adds a tool call; `arguments` is the JSON text the model wrote.
    #[must_use]
    pub fn call(self, call_id: &str, tool: &str, arguments: &str) -> Self {
        let part = NewNode::new().kind("call").content(arguments);
        let part = part.set_text("data_call_id", call_id);
        self.part(part.set_text("data_call_name", tool))
    }

    /// Adds an image, by its URL.
    #[must_use]
    pub fn image(self, url: &str) -> Self {
        let content = serde_json::json!({ "url": url });
        self.part(NewNode::new().kind("image").set("content", content))
    }

    /// Adds a part. It gets the message's role unless it has one.
    #[must_use]
    pub fn part(mut self, part: NewNode) -> Self {
        self.parts.push(part);
        self
    }

    /// The role.
    pub fn role(&self) -> &str {
        &self.role
    }
}

impl Context {
    /// Adds a message to the turn in progress: its parts become blocks at the end of the core of `^ah`.
    /// A message of role `system` goes to `^sys`. Returns the ids of the blocks.
    ///
    /// # Errors
    /// `E_HEADER` or `E_DUPLICATE_ID` for a part. Nothing has changed then.
    pub fn append(&mut self, message: Message) -> Result<Vec<String>, Error> {
        self.put(message, false)
    }

    /// Adds the model's reply, as [`Context::append`] does, and ends the attempt that is running. Its
    /// blocks are marked with `data_reply`, so that a request of this cycle is rendered without them, until something
    /// is appended after them.
    /// Errors as [`Context::append`].
    pub fn reply(&mut self, message: Message) -> Result<Vec<String>, Error> {
        let ids = self.put(message, true)?;
        self.fed_at = None;
        self.complete_running();
        Ok(ids)
    }

    /// Adds the part of the model's reply that has come, as [`Context::reply`] does, and lets the attempt run on: a
    /// [`Stream`](super::Stream) adds what follows. A message with an empty part begins a block without a text.
    /// Errors as [`Context::append`].
    pub fn begin_reply(&mut self, message: Message) -> Result<Vec<String>, Error> {
        let message = if message.parts.is_empty() {
            message.part(NewNode::text(""))
        } else {
            message
        };
        self.put(message, true)
    }

    fn put(&mut self, message: Message, is_reply: bool) -> Result<Vec<String>, Error> {
        if message.parts.is_empty() {
            return Ok(Vec::new());
        }
        let cycle = self.cycle();
        let grouped = message.parts.len() > 1 && &*message.role != "assistant";
        let mut given: Vec<Arc<str>> = Vec::new();
        let put = self.workspace.add_all(|workspace| {
            let target = match &*message.role {
                "system" => Destination::new(workspace.region_id(NodeClass::Sys)?, Insertion::End),
                _ => workspace.open_core()?,
            };
            let mut ids: Vec<String> = Vec::with_capacity(message.parts.len());
            for part in message.parts {
                let mut part = match part.member("role") {
                    Some(_) => part,
                    None => part.role(&message.role),
                };
                // A reply is marked, and ids that are made show by their form.
                if let Some(id) = part.member("id").and_then(string).filter(|_| !is_reply) {
                    given.push(id.as_ref().into());
                }
                if is_reply {
                    part = part.set("data_reply", cycle);
                }
                if grouped {
                    // The parts of one message say so with its first block's id.
                    let first = ids.first().cloned();
                    let first = match first {
                        Some(first) => first,
                        None => workspace.next_id(&part)?,
                    };
                    part = part.set_text("data_message", &first);
                }
                ids.push(workspace.add(&target, &part)?.to_string());
            }
            Ok(ids)
        });
        if put.is_ok() {
            self.workspace.note_appended(&given);
        }
        self.finish("", put)
    }
}
