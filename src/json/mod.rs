//! JSON: text comes in, values and canonical text go out.
//!
//! | what | file |
//! |---|---|
//! | reading, with every check and the place of each problem | `reader`, `text` |
//! | one level of an accepted value at a time | `members` |
//! | values whose text is decoded | `value` |
//! | canonical text | `canonical` |
//! | secrets, taken out of decoded strings | `redact` |
//!
//! It must not know trees, logs or what the names of members mean.

mod canonical;
mod members;
mod reader;
mod redact;
mod text;
mod value;

pub use canonical::{
    Appended, Sink, canonical, write_float, write_number, write_string, write_value,
};
pub(crate) use members::{
    Accepted, Jumps, Member, ValueType, after_string, elements, get, members, string, value_type,
};
pub use reader::{Halt, MAX_NESTING, MAX_PROBLEMS, Problem, ProblemKind, Reader};
pub use redact::{BadPattern, Redaction, Redactor};
pub(crate) use redact::{Redacted, redact_log};
pub use text::{Text, unescape};
pub(crate) use text::{named, not_integer, shorten};
pub use value::{JsonValue, StoredValue};
pub(crate) use value::{any_text, quoted};
