//! What a node can be given as.

use crate::query::ir::{Edition, short_node};
use crate::runtime::NewNode;
use crate::support::diag::{Code, Diagnostic, Error};

/// Something that describes a node: a [`NewNode`], a text (a JSON object, or the short form
/// `block:text { key='hero' } "content"`), or a JSON value.
///
/// ```
/// let mut context = pactql::Context::new();
/// context.add("^ah", r#"{"role":"user","content":"Hello"}"#)?;
/// context.add("^ah", r#"block:text { role=user } "Hello""#)?;
/// context.add("^ah", serde_json::json!({"role": "user", "content": "Hello"}))?;
/// assert_eq!(context.select("^ah .cb[role='user']")?.count(), 3);
/// # Ok::<(), pactql::Error>(())
/// ```
pub trait IntoNode: sealed::Sealed {
    /// The node. `short` reads the short form. Errors: `E_INPUT`: a text that is neither form.
    #[doc(hidden)]
    fn into_node(self, short: Short<'_>) -> Result<NewNode, Error>;
}

#[doc(hidden)]
pub(super) type Short<'s> = &'s dyn Fn(&str) -> Result<NewNode, Error>;

mod sealed {
    pub trait Sealed {}
}

/// What each type that describes a node makes of itself, and of the reader of the short form.
macro_rules! into_node {
    ($($given:ty: $made:expr;)*) => {$(
        impl sealed::Sealed for $given {}

        impl IntoNode for $given {
            fn into_node(self, short: Short<'_>) -> Result<NewNode, Error> {
                let made: fn(Self, Short<'_>) -> _ = $made;
                made(self, short)
            }
        }
    )*};
}

into_node! {
    NewNode: |node, _| Ok(node);
    &NewNode: |node, _| Ok(node.clone());
    &str: |text, short| if text.trim_start().starts_with('{') {
        NewNode::json(text)
    } else {
        short(text)
    };
    String: |text, short| text.as_str().into_node(short);
    &String: |text, short| text.as_str().into_node(short);
    serde_json::Value: |value, _| NewNode::json(&value.to_string());
}

/// Reads the short form of a node. If it `is_whole`, no content comes from elsewhere, so one word that is not a
/// type is refused: it is a text without its quotes. Errors: `E_INPUT`: text that is not of the form.
pub(crate) fn short_form(text: &str, edition: Edition, is_whole: bool) -> Result<NewNode, Error> {
    let members = short_node(text, edition)?;
    let mut names = members.iter().map(|member| &*member.name);
    let is_bare = names.all(|name| matches!(name, "nodeType" | "kind"));
    let word = text.trim().split(':').next().unwrap_or_default();
    if is_whole && is_bare && !["block", "cb", "cont", "mc", "seg", "mt"].contains(&word) {
        let message = format!("`{word}` is not a type, and the node has no content");
        let diagnostic = Diagnostic::error(Code::Input, message).at(0..text.len(), "");
        let help = format!("a text is `block:text \"{}\"`", text.trim());
        return Err(Error::new(text, diagnostic.with_help(help)));
    }
    let members = members.into_iter();
    let members = members.map(|member| (member.name, member.json));
    Ok(NewNode::of_members(members))
}
