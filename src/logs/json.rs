//! Writing canonical JSON into strings: what [`mod@crate::render`] uses, under this module's name.

pub(super) use crate::render::json::{
    braced, canonical, compact, json_text, list, object, push_member, quoted, value,
};
