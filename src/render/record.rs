//! Threads as JSON records, and back.
//!
//! A block is an object with the members `id`, `role`, `kind`, `key`, `parent`, `system`,
//! `content` and `data` in this order; what is absent or false is left out. Parameters are
//! `{"parameters": …}`.

use super::block::ThreadBlock;
use super::json::{canonical, compact, json_text, object, push_member, quoted, value};

use crate::tree::InputError;
use crate::tree::shallow::{Member, get, members, string};
use std::sync::Arc;

/// What one record is.
pub(super) enum Record {
    Block(ThreadBlock),
    Parameters(Box<str>),
}

pub(super) fn of_block(block: &ThreadBlock) -> Arc<str> {
    let mut out = String::from("{\"id\":");
    json_text(&block.id, &mut out);
    push_member("role", &quoted(&block.role), &mut out);
    let headers = [("kind", &block.kind), ("key", &block.key)];
    for (name, text) in headers {
        if let Some(text) = text {
            push_member(name, &quoted(text), &mut out);
        }
    }
    push_member("parent", &quoted(&block.parent), &mut out);
    if block.system {
        push_member("system", "true", &mut out);
    }
    if let Some(content) = &block.content {
        push_member("content", content, &mut out);
    }
    if !block.data.is_empty() {
        let mut data = String::new();
        for (name, value) in &block.data {
            push_member(name, value, &mut data);
        }
        push_member("data", &object(&data), &mut out);
    }
    out.push('}');
    out.into()
}

pub(super) fn of_parameters(parameters: &str) -> Arc<str> {
    format!("{{\"parameters\":{parameters}}}").into()
}

/// Reads a record.
///
/// # Errors
/// Anything that the functions above do not write.
pub(super) fn read(text: &str, at: usize) -> Result<Record, InputError> {
    let wrong = |what: &str| InputError::at_path(format!("$[{at}]"), what.to_owned());
    let Some(text) = value(text) else {
        return Err(wrong("expected a JSON object without repeated keys"));
    };
    let found = members(text);
    if let [(name, parameters)] = &found[..]
        && name == "parameters"
    {
        return Ok(Record::Parameters(compact(parameters).into()));
    }
    let known = [
        "id", "role", "kind", "key", "parent", "system", "content", "data",
    ];
    if let Some((name, _)) = found.iter().find(|(name, _)| !known.contains(&&**name)) {
        let known = known.join(", ");
        return Err(wrong(&format!(
            "expected the members {known}, or parameters alone, found `{name}`"
        )));
    }
    let text = |name: &str| match get(&found, name) {
        None => Ok(None),
        Some(raw) => match string(raw) {
            Some(text) => Ok(Some(Box::from(&*text))),
            None => Err(wrong(&format!("expected a string as `{name}`"))),
        },
    };
    let required = |name: &str| {
        text(name)?.ok_or_else(|| wrong(&format!("expected a string as `{name}`, found none")))
    };
    let system = match get(&found, "system") {
        None => false,
        Some("true") => true,
        Some(_) => return Err(wrong("expected true as `system`, or no such member")),
    };
    let mut block = ThreadBlock {
        id: required("id")?,
        role: required("role")?,
        kind: text("kind")?,
        key: text("key")?,
        content: None,
        data: data(&found).ok_or_else(|| wrong("expected an object of data_* fields as `data`"))?,
        parent: required("parent")?,
        system,
    };
    block.content = get(&found, "content").map(|content| match block.is_tool() {
        true => compact(content).into(),
        false => canonical(content).into(),
    });
    Ok(Record::Block(block))
}

/// The member `data`, sorted by name; `None` if it is no object of custom fields.
fn data(found: &[Member<'_>]) -> Option<Vec<(Box<str>, Box<str>)>> {
    let Some(raw) = get(found, "data") else {
        return Some(Vec::new());
    };
    let fields = raw.starts_with('{').then(|| members(raw))?;
    let mut data = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        if !name.starts_with("data_") {
            return None;
        }
        data.push((Box::from(&*name), canonical(value).into()));
    }
    data.sort_unstable();
    Some(data)
}
