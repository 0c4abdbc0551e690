//! Threads as JSON records, and back.
//!
//! A block is an object with the members `id`, `role`, `kind`, `key`, `parent`, `system`, `content`
//! and its `data_*` fields in this order; what is absent or false is left out. Parameters are
//! `{"parameters": …}`.

use super::block::ThreadBlock;
use super::json::{canonical, compact, object, quoted};

use crate::json::{Member, Reader, get, string};
use crate::tree::InputError;
use std::sync::Arc;

pub(super) enum ThreadRecord {
    Block(ThreadBlock),
    Parameters(Box<str>),
}

pub(super) fn of_block(block: &ThreadBlock) -> Arc<str> {
    let text = |text: &Option<Box<str>>| text.as_deref().map(quoted);
    let own = [
        ("id", Some(quoted(&block.id))),
        ("role", Some(quoted(&block.role))),
        ("kind", text(&block.kind)),
        ("key", text(&block.key)),
        ("parent", Some(quoted(&block.parent))),
        ("system", block.system.then(|| "true".to_owned())),
        ("content", block.content.as_deref().map(str::to_owned)),
    ];
    let own = own.iter();
    let own = own.filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    object(own.chain(block.fields())).into()
}

pub(super) fn of_parameters(parameters: &str) -> Arc<str> {
    format!("{{\"parameters\":{parameters}}}").into()
}

/// Reads a record.
pub(super) fn read(text: &str, at: usize) -> Result<ThreadRecord, InputError> {
    let wrong = |what: &str| InputError::at_path(format!("$[{at}]"), what.to_owned());
    let Some(found) = members_of(text) else {
        return Err(wrong("expected a JSON object without repeated keys"));
    };
    if let [(name, parameters)] = &found[..]
        && name == "parameters"
    {
        return Ok(ThreadRecord::Parameters(compact(parameters).into()));
    }
    let known = ["id", "role", "kind", "key", "parent", "system", "content"];
    let mut data: Vec<(Box<str>, Box<str>)> = Vec::new();
    for (name, value) in &found {
        if name.starts_with("data_") {
            data.push((Box::from(&**name), canonical(value).into()));
        } else if !known.contains(&&**name) {
            let known = known.join(", ");
            return Err(wrong(&format!(
                "expected the members {known} and data_*, or parameters alone, found `{name}`"
            )));
        }
    }
    data.sort_unstable();
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
        data,
        parent: required("parent")?,
        system,
    };
    block.content = get(&found, "content").map(|content| {
        if block.is_tool() {
            compact(content).into()
        } else {
            canonical(content).into()
        }
    });
    Ok(ThreadRecord::Block(block))
}

/// The members of the object that a text is; `None` if it is anything else, or repeats a key.
///
/// They are read one by one, so that each may nest as deep as a field of a document.
fn members_of(text: &str) -> Option<Vec<Member<'_>>> {
    let mut reader = Reader::new(text);
    reader.begin_object().ok()?;
    let mut found: Vec<Member<'_>> = Vec::new();
    while let Some((key, _)) = reader.next_key(found.is_empty()).ok()? {
        let key = key.decode();
        let value = reader.skip_value().ok()?;
        found.push((key, value));
    }
    reader.end().ok()?;
    let mut names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    let unique = names.windows(2).all(|pair| pair[0] != pair[1]);
    (unique && reader.problems().is_empty()).then_some(found)
}
