//! The id of a request that cannot be read, so that its client gets the error instead of silence.
//!
//! It looks at brackets, quotes and the members of the outermost object, without recursion; it does not check
//! that the rest is JSON.

use serde_json::{Value, json};

/// The id of a request, as a value that an answer can repeat; null if there is none to be found. If the outermost
/// object has several, it is the last one. Linear in the text.
pub(super) fn id_of(text: &[u8]) -> Value {
    let mut found = Value::Null;
    let mut at = 0;
    let mut depth = 0_usize;
    // Whether a string here is the key of a member of the outermost object.
    let mut key = false;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(text, at);
                let string = text.get(at..end).unwrap_or_default();
                at = end;
                if key && string == b"\"id\"" {
                    found = value_after(text, at).unwrap_or_default();
                }
                key = false;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                key = depth == 1 && byte == b'{';
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b',' => key = depth == 1,
            _ => {}
        }
        at += 1;
    }
    found
}

/// The place behind the string that begins at `at`.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        match text.get(at) {
            None => return text.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// The string or the number behind a key, if it is one and can be read.
fn value_after(text: &[u8], at: usize) -> Option<Value> {
    let rest = text.get(at..)?.trim_ascii_start();
    let rest = rest.strip_prefix(b":")?.trim_ascii_start();
    let end = match rest.first()? {
        b'"' => end_of_string(rest, 0),
        _ => rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte))?,
    };
    let value: Value = serde_json::from_slice(rest.get(..end)?).ok()?;
    (value.is_string() || value.is_number()).then_some(value)
}

/// An error of the protocol, as a line. Without an id it has `id: null`.
pub(super) fn error_line(id: Value, code: i32, message: &str) -> Vec<u8> {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    let mut line = error.to_string().into_bytes();
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
