//! What a node can be given as.

use crate::diag::Error;
use crate::runtime::NewNode;

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
    /// The node. `short` reads the short form.
    ///
    /// # Errors
    /// `E_INPUT`: a text that is neither form.
    #[doc(hidden)]
    fn into_node(self, short: Short<'_>) -> Result<NewNode, Error>;
}

/// Reads the short form.
#[doc(hidden)]
pub(super) type Short<'s> = &'s dyn Fn(&str) -> Result<NewNode, Error>;

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::runtime::NewNode {}
    impl Sealed for &crate::runtime::NewNode {}
    impl Sealed for &str {}
    impl Sealed for String {}
    impl Sealed for &String {}
    impl Sealed for serde_json::Value {}
}

impl IntoNode for NewNode {
    fn into_node(self, _: Short<'_>) -> Result<NewNode, Error> {
        Ok(self)
    }
}

impl IntoNode for &NewNode {
    fn into_node(self, _: Short<'_>) -> Result<NewNode, Error> {
        Ok(self.clone())
    }
}

impl IntoNode for &str {
    fn into_node(self, short: Short<'_>) -> Result<NewNode, Error> {
        if self.trim_start().starts_with('{') {
            return NewNode::json(self);
        }
        short(self)
    }
}

impl IntoNode for String {
    fn into_node(self, short: Short<'_>) -> Result<NewNode, Error> {
        self.as_str().into_node(short)
    }
}

impl IntoNode for &String {
    fn into_node(self, short: Short<'_>) -> Result<NewNode, Error> {
        self.as_str().into_node(short)
    }
}

impl IntoNode for serde_json::Value {
    fn into_node(self, _: Short<'_>) -> Result<NewNode, Error> {
        NewNode::json(&self.to_string())
    }
}
