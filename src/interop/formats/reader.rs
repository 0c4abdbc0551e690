//! What a log format is to the importer: a reader of records.

use crate::interop::output::Output;

/// Whether a record is of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::interop) enum Sniff {
    No,
    /// It could be; another record may show that it is of another format.
    Maybe,
    /// Nothing else looks like this.
    Yes,
}

/// One record of a log: JSON that was checked.
#[derive(Clone, Copy, Debug)]
pub(in crate::interop) struct Record<'a> {
    pub(in crate::interop) raw: &'a str,
    /// Where the list of records is; empty for the whole input.
    pub(in crate::interop) list: &'a str,
    pub(in crate::interop) at: At,
}

/// Which record of its list it is.
#[derive(Clone, Copy, Debug)]
pub(in crate::interop) enum At {
    /// The only one.
    Whole,
    /// A line, from 1.
    Line(usize),
    /// An element, from 0.
    Element(usize),
}

impl Record<'_> {
    /// Where it is.
    pub(in crate::interop) fn location(&self) -> String {
        match self.at {
            At::Whole => self.list.to_owned(),
            At::Line(number) => format!("line {number}"),
            At::Element(index) => format!("{}/{index}", self.list),
        }
    }
}

/// Reads the records of one log.
pub(in crate::interop) trait Reader {
    /// Reads the next record.
    fn record(&mut self, record: &Record<'_>, out: &mut Output);

    /// Reads a list of messages that is everything that was sent in one step. Returns false if
    /// the format has no lists of messages.
    fn step(&mut self, _messages: &[&str], _out: &mut Output) -> bool {
        false
    }

    /// The log has ended.
    fn finish(&mut self, _out: &mut Output) {}
}
