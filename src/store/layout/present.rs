//! The bits of `node.present` beyond those of [`crate::tree::Present`]: which members of a document
//! are restored from a column.

/// `created_at_iso`, from its column or, where that is null, from the nanoseconds.
pub(crate) const CREATED_AT_ISO: i64 = 1 << 8;
/// `cadence`, under this name and not its alias.
pub(crate) const CADENCE: i64 = 1 << 9;
/// `tags`, under this name, as a list of texts.
pub(crate) const TAGS: i64 = 1 << 10;
/// `parent_id`, that of the parent.
pub(crate) const PARENT_ID: i64 = 1 << 11;
/// Rows of `attr` belong to the node.
pub(crate) const ATTRS: i64 = crate::query::sql::HAS_ATTRS;
/// `ttl`, as null.
pub(crate) const NULL_TTL: i64 = 1 << 13;
