//! Words that most nodes have: names of members, roles, kinds and nodeTypes. A node does not have copies of them.

use std::borrow::Cow;

/// A word of a node.
pub(super) type Word = Cow<'static, str>;

/// Functions that compare a text with each of some words.
macro_rules! words {
    ($($word:literal)*) => {
        /// A word, which is not copied if it is one of those.
        pub(crate) fn word(text: &str) -> Word {
            match text {
                $($word => Cow::Borrowed($word),)*
                _ => Cow::Owned(text.to_owned()),
            }
        }

        /// A word as JSON.
        pub(super) fn quoted_word(text: &str) -> Word {
            match text {
                $($word => Cow::Borrowed(concat!("\"", $word, "\"")),)*
                _ => Cow::Owned(crate::json::quoted(text)),
            }
        }
    };
}

words! {
    "id" "nodeType" "offset" "ttl" "priority" "role" "kind" "key" "content" "content_hash" "created_at_iso" "tags"
    "removable" "provenance" "data_call_id" "data_call_name" "data_message" "data_reply"
    "cb" "mc" "mt" "system" "user" "assistant" "tool" "text" "call" "result" "image" "note"
}
