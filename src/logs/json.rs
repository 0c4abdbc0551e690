//! Writing canonical JSON into strings: what [`mod@crate::render`] uses, under this module's name.

pub(super) use crate::render::json::{
    canonical, compact, json_text, push_canonical, push_integer, push_member, quoted,
};
