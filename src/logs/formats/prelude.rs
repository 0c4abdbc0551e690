//! What every format is written with: records and their members, what a format says of them, and what it counts.

pub(super) use super::fields::{count_unread, get_string, inner, is, items, role_name, text, time};
pub(super) use super::reader::{LogReader, LogRecord, Records, Sniff};
pub(super) use crate::json::{
    Accepted, Member, ValueType, elements, get, members, string, value_type,
};
pub(super) use crate::logs::json::{canonical, list, object, quoted};
pub(super) use crate::logs::log::{
    About, Event, LogCall, LogField, LogMessage, LogPart, LogRequest, LogTool, NONE_KEPT, OWNER,
    failed, object_where, object_without,
};
pub(super) use crate::logs::output::{Output, SessionId};
pub(super) use crate::logs::report::{Fate, ImportReport};
pub(super) use crate::support::macros::words;
