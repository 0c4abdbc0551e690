//! Lines as messages of the protocol, and messages as lines.
//!
//! The SDK hands over each request as it comes and keeps every answer until it is written. Here the number of
//! both is limited, and a line that is not a message is answered under its id. Besides the server, it is the only
//! file that knows the SDK.

use super::lines::{Input, LONGEST, LineOutput, ReceivedLine};
use super::load::Load;
use crate::json::members;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;

#[derive(Debug)]
pub(super) struct Wire {
    input: Input,
    output: LineOutput,
    load: Load,
    /// Requests without an answer, with their bytes.
    open: HashMap<RequestId, usize>,
}

impl Wire {
    pub(super) fn new(input: Input, output: LineOutput, load: Load) -> Self {
        Self {
            input,
            output,
            load,
            open: HashMap::new(),
        }
    }

    /// The message that a line is; an error is sent if it is none.
    fn message(&mut self, line: &ReceivedLine) -> Option<ClientJsonRpcMessage> {
        let message = match read(&line.bytes, line.cut) {
            Ok(message) => message?,
            Err(refusal) => {
                self.refuse(refusal);
                return None;
            }
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                if self.open.contains_key(&request.id) {
                    let id = request.id.clone().into_json_value();
                    let message = "another request with this id has no answer yet";
                    self.refuse(error_line(id, ErrorCode::INVALID_REQUEST, message));
                    return None;
                }
                let length = line.bytes.len();
                self.load.came(|now| &mut now.requests, length);
                self.open.insert(request.id.clone(), length);
            }
            JsonRpcMessage::Notification(notification) => {
                // The SDK sends no answer to a request that was cancelled.
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.settle(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    fn refuse(&self, refusal: Vec<u8>) {
        // No caller waits until it is written; the load counts it.
        drop(self.output.send(refusal));
    }

    /// A request has its answer, or wants none.
    fn settle(&mut self, id: &RequestId) {
        if let Some(bytes) = self.open.remove(id) {
            self.load.went(|now| &mut now.requests, bytes);
        }
    }
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = id.cloned() {
            self.settle(&id);
        }
        self.output.send(line(&item))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // A wait that is given up loses nothing: a line is taken and read in one step.
        loop {
            self.load.may_read().await;
            let line = self.input.recv().await?;
            if let Some(message) = self.message(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The message that a line is; `None` of an empty one, and of a notification that this protocol has not. `cut` says
/// that the line was longer.
///
/// # Errors
/// The line that refuses anything else.
pub(super) fn read(line: &[u8], cut: bool) -> Result<Option<ClientJsonRpcMessage>, Vec<u8>> {
    let bytes = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let bytes = bytes.trim_ascii();
    let refuse = |code: ErrorCode, message: &str| Err(error_line(id_of(bytes), code, message));
    if bytes.is_empty() {
        return Ok(None);
    }
    if cut {
        let message = format!("a message has at most {LONGEST} bytes");
        return refuse(ErrorCode::PARSE_ERROR, &message);
    }
    let error = match serde_json::from_slice(bytes) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    if error.is_syntax() || error.is_eof() {
        let message = format!("the message cannot be read: {error}");
        return refuse(ErrorCode::PARSE_ERROR, &message);
    }
    // Good JSON of another shape.
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    if id_of(bytes).is_null() && value["method"].is_string() && value.get("id").is_none() {
        return Ok(None);
    }
    let message = "not a request of JSON-RPC 2.0 or of this protocol";
    refuse(ErrorCode::INVALID_REQUEST, message)
}

/// The id of a request that cannot be read, as a value that an answer can repeat, so that its client gets the
/// error instead of silence; null if there is none to be found. If the outermost object has several, it is the
/// last one. Linear in the text.
fn id_of(text: &[u8]) -> Value {
    let text = String::from_utf8_lossy(text);
    let members = members(&text);
    let id = members.iter().rev().find(|(name, _)| name == "id");
    let id = id.map_or("", |(_, raw)| *raw);
    // A number at the end of the text may have had more digits.
    let is_cut = id.as_bytes().as_ptr_range().end == text.as_bytes().as_ptr_range().end;
    match serde_json::from_str(id) {
        Ok(Value::Number(number)) if !is_cut => Value::Number(number),
        Ok(Value::String(name)) => Value::String(name),
        _ => Value::Null,
    }
}

/// An error of the protocol, as a line. Without an id it has `id: null`.
fn error_line(id: Value, code: ErrorCode, message: &str) -> Vec<u8> {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}});
    (error.to_string() + "\n").into_bytes()
}

pub(super) fn line(message: &ServerJsonRpcMessage) -> Vec<u8> {
    if let JsonRpcMessage::Error(error) = message
        && error.id.is_none()
    {
        return error_line(Value::Null, error.error.code, &error.error.message);
    }
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::id_of;
    use serde_json::json;

    #[test]
    fn the_id_is_found_in_the_outermost_object_alone() {
        let deep = format!(
            r#"{{"a":{}0{},"id":7}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        let open = format!(r#"{{"id":7,"a":{}"#, "{\"id\":".repeat(100_000));
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":3,"params":{"id":4}}"#, json!(3)),
            (r#"{"params":{"id":4},"id" : "x-\"1" }"#, json!("x-\"1")),
            (r#"{"a":"\ud800","id":-5}"#, json!(-5)),
            (r#"{"id":1,"a":"\"","b":["id"],"c":"id"}"#, json!(1)),
            (r#"{"id":1,"id":2}"#, json!(2)),
            (r#"{"a":"id","b":{"c":"}"},"id":9,"#, json!(9)),
            (r#"{"id":1.5}"#, json!(1.5)),
            (&deep, json!(7)),
            (&open, json!(7)),
            (r#"{"id":"\ud800"}"#, json!(null)),
            (r#"{"id":null}"#, json!(null)),
            (r#"{"id":{"id":1}}"#, json!(null)),
            (r#"{"id":"#, json!(null)),
            (r#"{"id":12"#, json!(null)),
            (r#"{"id":"open"#, json!(null)),
            (r#"[{"id":1}]"#, json!(null)),
            (r#"["id",1]"#, json!(null)),
            ("", json!(null)),
            ("nonsense", json!(null)),
            (r#"{"id"#, json!(null)),
            (r#"{"id\"#, json!(null)),
        ] {
            assert_eq!(
                id_of(text.as_bytes()),
                id,
                "{}",
                &text[..text.len().min(80)]
            );
        }
    }
}
