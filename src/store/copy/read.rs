//! Rows out of a Parquet file.
//!
//! A file is input like others: what it says of itself is compared with what an export writes, before memory is
//! taken for it. This file must not know what the rows mean.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use ::parquet::file::reader::{FileReader, SerializedFileReader};

use super::file::{BYTES, ColumnValues, ROWS, WrittenFile, physical};
use crate::store::database::sql::{ResultRow, SqlValue, Type};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{StoreColumn, StoreTable};

/// The most bytes of the pages of a row group. A group ends with the row that takes it over [`BYTES`], and a database keeps
/// no row of more than a gigabyte, here with its body.
const PAGES: i64 = 2 << 30;

pub(crate) struct FileRows {
    path: PathBuf,
    bytes: i64,
    reader: SerializedFileReader<File>,
    kinds: Vec<StoreColumn>,
    numbers: Vec<usize>,
}

impl FileRows {
    /// Refuses a file without the hash that `written` says, or without the columns of the table. Linear in the file.
    pub(crate) fn open(root: &Path, written: &WrittenFile, table: &StoreTable) -> Result<Self> {
        let path = written.check(root)?;
        let io = |error| StoreError::Io(path.clone(), error);
        let file = File::open(&path).map_err(io)?;
        let bytes = i64::try_from(file.metadata().map_err(io)?.len()).unwrap_or(i64::MAX);
        let reader = guarded(&path, || {
            SerializedFileReader::new(file).map_err(|error| unread(&path, &error))
        })?;
        let kinds = table.file_columns();
        let columns = reader.metadata().file_metadata().schema_descr().columns();
        let mut numbers = Vec::with_capacity(kinds.len());
        for StoreColumn { name, kind, .. } in &kinds {
            let found = columns.iter().position(|column| {
                column.name() == *name
                    && column.physical_type() == physical(*kind)
                    && (column.max_def_level(), column.max_rep_level()) == (1, 0)
            });
            numbers.push(found.ok_or_else(|| {
                StoreError::Damaged(format!("{} has no column {name}", path.display()))
            })?);
        }
        Ok(Self {
            path,
            bytes,
            reader,
            kinds,
            numbers,
        })
    }

    /// The position of a column in the rows; one that is missing gives an error when it is read.
    pub(crate) fn at(&self, name: &str) -> usize {
        let at = self.kinds.iter().position(|column| column.name == name);
        at.unwrap_or(usize::MAX)
    }

    /// Calls `each` with every row, in order. Has one row group in memory.
    pub(crate) fn read(&self, each: &mut dyn FnMut(&dyn ResultRow) -> Result<()>) -> Result<()> {
        for at in 0..self.reader.num_row_groups() {
            let group = guarded(&self.path, || self.group(at))?;
            for row in 0..group.rows {
                each(&GroupRow { group: &group, row })?;
            }
        }
        Ok(())
    }

    fn group(&self, at: usize) -> Result<GroupCells> {
        let wrong = |error: ParquetError| unread(&self.path, &error);
        let group = self.reader.get_row_group(at).map_err(wrong)?;
        let rows = bounds(group.metadata(), self.bytes).map_err(wrong)?;
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let mut columns = Vec::with_capacity(self.kinds.len());
        for number in &self.numbers {
            let pages = group.get_column_page_reader(*number).map_err(wrong)?;
            let left = group.metadata().column(*number).uncompressed_size();
            let pages = Box::new(Pages { pages, rows, left });
            let read = match get_column_reader(schema.column(*number), pages) {
                ColumnReader::BoolColumnReader(from) => get(from, rows, ColumnValues::Bool),
                ColumnReader::Int64ColumnReader(from) => get(from, rows, ColumnValues::Int),
                ColumnReader::DoubleColumnReader(from) => get(from, rows, ColumnValues::Real),
                ColumnReader::ByteArrayColumnReader(from) => get(from, rows, ColumnValues::Bytes),
                _ => return Err(StoreError::Damaged("a column has another type".to_owned())),
            };
            columns.push(read.map_err(wrong)?);
        }
        let cells = GroupCells { columns, rows };
        let fits = cells.texts() < BYTES;
        let longer = || wrong(large("a row group has longer texts"));
        fits.then_some(cells).ok_or_else(longer)
    }
}

/// The number of rows of a group of a file of this many bytes, if it is one that an export writes.
fn bounds(group: &RowGroupMetaData, bytes: i64) -> Result<usize, ParquetError> {
    let rows = usize::try_from(group.num_rows()).ok();
    let Some(rows) = rows.filter(|rows| *rows <= ROWS) else {
        let has = format!("a row group has {} rows", group.num_rows());
        return Err(large(&format!("{has} and not {ROWS} at most")));
    };
    let is_inside = |chunk: &ColumnChunkMetaData| {
        let start = chunk.dictionary_page_offset();
        let start = start.unwrap_or_else(|| chunk.data_page_offset());
        let end = start.checked_add(chunk.compressed_size());
        start >= 0 && chunk.compressed_size() >= 0 && end.is_some_and(|end| end <= bytes)
    };
    if !group.columns().iter().all(is_inside) {
        return Err(ParquetError::General("a column is elsewhere".to_owned()));
    }
    let mut left = PAGES;
    for chunk in group.columns() {
        let size = chunk.uncompressed_size();
        left = left.saturating_sub(if size < 0 { PAGES } else { size });
    }
    let larger = || large("a row group has larger pages");
    (left > 0).then_some(rows).ok_or_else(larger)
}

fn large(what: &str) -> ParquetError {
    ParquetError::General(format!("{what}, which no export writes"))
}

/// The pages of a column. Refuses what no export writes and could take any amount of memory: an encoding that
/// repeats parts of values, a page with more values than rows, more bytes than the file says.
struct Pages {
    pages: Box<dyn PageReader>,
    rows: usize,
    left: i64,
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let Some(page) = self.pages.get_next_page()? else {
            return Ok(None);
        };
        let bytes = i64::try_from(page.buffer().len()).unwrap_or(i64::MAX);
        self.left = self.left.saturating_sub(bytes);
        let values = usize::try_from(page.num_values()).unwrap_or(usize::MAX);
        if values > self.rows || self.left < 0 {
            return Err(large("a page is larger"));
        }
        #[allow(deprecated, reason = "the name that writers of the first version give")]
        match page.encoding() {
            Encoding::PLAIN | Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                Ok(Some(page))
            }
            other => Err(large(&format!("a page is encoded as {other}"))),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Makes an error of a panic: the crate panics where some numbers of a forged file are negative or too large.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(read));
    let wrong = |_| StoreError::Damaged(format!("{} cannot be read", path.display()));
    done.map_err(wrong)?
}

fn get<T: DataType>(
    mut from: ColumnReaderImpl<T>,
    rows: usize,
    column: impl Fn(Vec<T::T>) -> ColumnValues,
) -> Result<(ColumnValues, Vec<Option<u32>>), ParquetError> {
    let (mut values, mut given) = (Vec::new(), Vec::new());
    while given.len() < rows {
        let left = rows - given.len();
        let (read, ..) = from.read_records(left, Some(&mut given), None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::General("a column is cut".to_owned()));
        }
    }
    let mut next = 0;
    let places = given.into_iter().map(|given| {
        let place = (given > 0).then_some(next);
        next += u32::from(given > 0);
        place
    });
    let places = places.collect();
    Ok((column(values), places))
}

fn unread(path: &Path, error: &ParquetError) -> StoreError {
    StoreError::Damaged(format!("{} cannot be read: {error}", path.display()))
}

struct GroupCells {
    /// The values of a column, and of each row the number of its value.
    columns: Vec<(ColumnValues, Vec<Option<u32>>)>,
    rows: usize,
}

impl GroupCells {
    /// The bytes of the texts of all rows but the last, which may be longer.
    fn texts(&self) -> usize {
        let mut bytes = 0;
        for (column, places) in &self.columns {
            if let ColumnValues::Bytes(all) = column {
                let texts = places.iter().take(self.rows.saturating_sub(1)).flatten();
                let texts = texts.filter_map(|place| all.get(*place as usize));
                bytes += texts.map(ByteArray::len).sum::<usize>();
            }
        }
        bytes
    }
}

struct GroupRow<'g> {
    group: &'g GroupCells,
    row: usize,
}

impl ResultRow for GroupRow<'_> {
    fn value(&self, at: usize, kind: Type) -> Result<SqlValue<'_>> {
        let wrong = |what| StoreError::Damaged(format!("column {at} of a file {what}"));
        let unlike = || wrong("has another type");
        let (column, places) = self.group.columns.get(at).ok_or_else(unlike)?;
        let Some(place) = places.get(self.row).copied().flatten() else {
            return Ok(SqlValue::Null);
        };
        let place = place as usize;
        Ok(match (kind, column) {
            (Type::Bool, ColumnValues::Bool(all)) => all.get(place).copied().into(),
            (Type::Id | Type::Int, ColumnValues::Int(all)) => all.get(place).copied().into(),
            (Type::Real, ColumnValues::Real(all)) => all.get(place).copied().into(),
            (Type::Bytes, ColumnValues::Bytes(all)) => all.get(place).map(ByteArray::data).into(),
            (Type::Text, ColumnValues::Bytes(all)) => {
                let text = all.get(place).map(|text| std::str::from_utf8(text.data()));
                let text = text.transpose().map_err(|_| wrong("is not UTF-8"))?;
                text.into()
            }
            _ => return Err(unlike()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that come as they are.
    struct Given(Vec<Page>);

    impl PageReader for Given {
        fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
            Ok(self.0.pop())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<(), ParquetError> {
            Ok(())
        }
    }

    impl Iterator for Given {
        type Item = Result<Page, ParquetError>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    #[test]
    fn pages_are_those_of_an_export() {
        let read = |pages: &[(usize, u32, Encoding)]| {
            let page =
                |(bytes, num_values, encoding): &(usize, u32, Encoding)| Page::DictionaryPage {
                    buf: vec![0; *bytes].into(),
                    num_values: *num_values,
                    encoding: *encoding,
                    is_sorted: false,
                };
            let given = Given(pages.iter().map(page).collect());
            let pages = Pages {
                pages: Box::new(given),
                rows: 10,
                left: 100,
            };
            pages
                .collect::<Result<Vec<Page>, ParquetError>>()
                .map(|all| all.len())
        };
        let plain = Encoding::PLAIN;
        assert_eq!(read(&[(100, 10, plain)]).unwrap(), 1);
        assert_eq!(
            read(&[(50, 10, plain), (50, 1, Encoding::RLE_DICTIONARY)]).unwrap(),
            2
        );
        for wrong in [
            (101, 10, plain),
            (1, 11, plain),
            (1, u32::MAX, plain),
            (1, 1, Encoding::DELTA_BYTE_ARRAY),
        ] {
            let error = read(&[wrong]).unwrap_err().to_string();
            assert!(error.contains("which no export writes"), "{error}");
        }
        assert!(read(&[(60, 1, plain), (60, 1, plain)]).is_err());
    }
}
