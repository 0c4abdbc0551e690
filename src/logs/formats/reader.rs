//! What a log format is to the importer: a reader of records.

use crate::json::Accepted;
use crate::logs::output::Output;
use crate::support::cancel::ensure;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::logs) enum Sniff {
    #[default]
    No,
    /// It could be; another record may show that it is of another format.
    Maybe,
    /// Nothing else looks like this.
    Yes,
}

impl From<bool> for Sniff {
    fn from(is_sure: bool) -> Self {
        if is_sure { Self::Yes } else { Self::No }
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::logs) struct LogRecord<'a> {
    pub(in crate::logs) raw: &'a str,
    /// Where the list of records is; empty for the whole input.
    pub(in crate::logs) list: &'a str,
    pub(in crate::logs) at: RecordAt,
    pub(in crate::logs) json: Accepted<'a>,
    /// Its number among the records of its log, from 0.
    pub(in crate::logs) number: usize,
}

/// The records of a log, for formats that read one twice. The first time they note its number.
pub(in crate::logs) trait Records {
    /// One that cannot be read a second time is left out, which the owner of the records reports.
    fn again(&self, number: usize, read: &mut dyn FnMut(&LogRecord<'_>));
}

pub(in crate::logs) struct InMemory<'a>(pub(in crate::logs) &'a [LogRecord<'a>]);

impl Records for InMemory<'_> {
    fn again(&self, number: usize, read: &mut dyn FnMut(&LogRecord<'_>)) {
        ensure();
        if let Some(record) = self.0.get(number) {
            read(record);
        }
    }
}

impl dyn Records + '_ {
    pub(in crate::logs) fn read<T>(
        &self,
        number: usize,
        read: impl FnOnce(&LogRecord<'_>) -> T,
    ) -> Option<T> {
        let (mut read, mut made) = (Some(read), None);
        self.again(number, &mut |record| {
            made = read.take().map(|read| read(record));
        });
        made
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::logs) enum RecordAt {
    /// The only one.
    Whole,
    /// A line, from 1.
    Line(usize),
    /// An element, from 0.
    Element(usize),
}

impl LogRecord<'_> {
    pub(in crate::logs) fn location(&self) -> String {
        match self.at {
            RecordAt::Whole => self.list.to_owned(),
            RecordAt::Line(number) => format!("line {number}"),
            RecordAt::Element(index) => format!("{}/{index}", self.list),
        }
    }
}

pub(in crate::logs) trait LogReader: Send {
    /// Reads the next record. `records` has those before it, too.
    fn record(&mut self, record: &LogRecord<'_>, records: &dyn Records, out: &mut Output);

    /// Reads all messages that were sent in one step. Returns false if the format has no lists of messages.
    fn step(&mut self, _messages: &[&str], _out: &mut Output) -> bool {
        false
    }

    /// A reader that has read the same, so that a log that is growing can be ended and read on. What both tell of paths, they
    /// tell once. `None` if the format is read as a whole.
    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        None
    }

    fn finish(&mut self, _records: &dyn Records, _out: &mut Output) {}
}

/// The reader of a format each of whose records is a log by itself.
pub(super) struct EachRecord(pub(super) fn(&LogRecord<'_>, &mut Output));

impl LogReader for EachRecord {
    fn record(&mut self, record: &LogRecord<'_>, _: &dyn Records, out: &mut Output) {
        (self.0)(record, out);
    }

    fn copy(&mut self) -> Option<Box<dyn LogReader>> {
        Some(Box::new(Self(self.0)))
    }
}
