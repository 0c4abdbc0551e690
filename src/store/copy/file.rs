//! Rows of a table as a Parquet file.
//!
//! This file and `read` know the crate `parquet`, and no other. It must not know what the rows mean.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use ::parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::SortingColumn;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type as Schema, TypePtr};
use sha2::{Digest, Sha256};

use crate::store::database::sql::{ResultRow, SqlValue, Type};
use crate::store::error::{Result, StoreError};
use crate::store::layout::schema::{StoreColumn, StoreTable};
use crate::support::scratch::{PartialFile, private_directory};
use crate::tree::hash::hex;

/// The most rows of a row group. Engines skip whole ones, by their least and greatest values.
pub(crate) const ROWS: usize = 32_768;

/// The most bytes of the texts of a row group, unless one row has more; what a writer needs of memory.
pub(crate) const BYTES: usize = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct WrittenFile {
    /// From the directory of the copy, with `/`.
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

impl WrittenFile {
    /// Where it is, if it is as it was written. Linear in the file.
    pub(crate) fn check(&self, root: &Path) -> Result<PathBuf> {
        let path = root.join(&self.path);
        if hash_of(&path)? != self.sha256 {
            let what = format!("{} is not the file that was exported", path.display());
            return Err(StoreError::Damaged(what));
        }
        Ok(path)
    }
}

/// The values of a column. With `given`, which are not null.
#[derive(Debug)]
pub(crate) enum ColumnValues {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Real(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

#[derive(Debug)]
struct RowGroup {
    columns: Vec<ColumnValues>,
    /// For each column and row, 1 if the value is not null.
    given: Vec<Vec<i16>>,
    rows: usize,
    bytes: usize,
}

impl RowGroup {
    fn new(columns: &[StoreColumn]) -> Self {
        let empty = columns.iter().map(|column| match column.kind {
            Type::Bool => ColumnValues::Bool(Vec::new()),
            Type::Id | Type::Int => ColumnValues::Int(Vec::new()),
            Type::Real => ColumnValues::Real(Vec::new()),
            Type::Text | Type::Bytes => ColumnValues::Bytes(Vec::new()),
        });
        Self {
            columns: empty.collect(),
            given: vec![Vec::new(); columns.len()],
            rows: 0,
            bytes: 0,
        }
    }

    fn push(&mut self, kinds: &[StoreColumn], row: &dyn ResultRow) -> Result<()> {
        let columns = self.columns.iter_mut().zip(&mut self.given);
        for (at, ((column, given), StoreColumn { kind, .. })) in columns.zip(kinds).enumerate() {
            let value = row.value(at, *kind)?;
            match (column, value) {
                (ColumnValues::Bool(all), SqlValue::Bool(value)) => all.push(value),
                (ColumnValues::Int(all), SqlValue::Int(value)) => all.push(value),
                (ColumnValues::Real(all), SqlValue::Real(value)) => all.push(value),
                (ColumnValues::Bytes(all), SqlValue::Text(text)) => {
                    self.bytes += text.len();
                    all.push(text.into());
                }
                (ColumnValues::Bytes(all), SqlValue::Bytes(bytes)) => {
                    self.bytes += bytes.len();
                    all.push(bytes.to_vec().into());
                }
                _ => {}
            }
            given.push(i16::from(value != SqlValue::Null));
        }
        self.rows += 1;
        Ok(())
    }
}

/// A file that is being written. It gets its name when it is whole; dropped before that, it is removed.
pub(crate) struct FileWriter {
    part: PartialFile,
    root: PathBuf,
    path: String,
    kinds: Vec<StoreColumn>,
    group: RowGroup,
    writer: SerializedFileWriter<File>,
    rows: u64,
}

impl FileWriter {
    /// The directories are made.
    pub(crate) fn new(root: &Path, path: String, table: &StoreTable) -> Result<Self> {
        let target = root.join(&path);
        let io = |error| StoreError::Io(target.clone(), error);
        if let Some(directory) = target.parent() {
            private_directory(directory, true).map_err(io)?;
        }
        // Until the file is complete its name begins with a full stop, and engines skip it.
        let part = PartialFile::file(&target, None).map_err(io)?;
        let kinds = table.file_columns();
        let file = part.open().try_clone().map_err(io)?;
        let writer =
            SerializedFileWriter::new(file, schema(&kinds)?, Arc::new(properties(&kinds)?));
        Ok(Self {
            part,
            root: root.to_owned(),
            path,
            group: RowGroup::new(&kinds),
            kinds,
            writer: writer.map_err(failed)?,
            rows: 0,
        })
    }

    pub(crate) fn push(&mut self, row: &dyn ResultRow) -> Result<()> {
        self.group.push(&self.kinds, row)?;
        self.rows += 1;
        if self.group.rows >= ROWS || self.group.bytes >= BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    fn flush(&mut self) -> Result<()> {
        use ColumnValues::{Bool, Bytes, Int, Real};
        if self.group.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(failed)?;
        let columns = self.group.columns.iter().zip(&self.group.given);
        for (column, given) in columns {
            let Some(mut writer) = group.next_column().map_err(failed)? else {
                break;
            };
            match (column, writer.untyped()) {
                (Bool(all), ColumnWriter::BoolColumnWriter(to)) => put(to, all, given)?,
                (Int(all), ColumnWriter::Int64ColumnWriter(to)) => put(to, all, given)?,
                (Real(all), ColumnWriter::DoubleColumnWriter(to)) => put(to, all, given)?,
                (Bytes(all), ColumnWriter::ByteArrayColumnWriter(to)) => put(to, all, given)?,
                _ => return Err(StoreError::Refused("a column has another type".to_owned())),
            }
            writer.close().map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.group = RowGroup::new(&self.kinds);
        Ok(())
    }

    /// Replaces a file of that name in one moment. It is on the disk then, but its name may not be yet.
    pub(crate) fn finish(mut self) -> Result<WrittenFile> {
        self.flush()?;
        let target = self.root.join(&self.path);
        let io = |error| StoreError::Io(target.clone(), error);
        self.writer.finish().map_err(failed)?;
        let bytes = self.writer.bytes_written() as u64;
        self.part.open().sync_all().map_err(io)?;
        self.part.rename(&target).map_err(io)?;
        Ok(WrittenFile {
            path: self.path,
            rows: self.rows,
            bytes,
            sha256: hash_of(&target)?,
        })
    }
}

fn put<T: DataType>(
    to: &mut ColumnWriterImpl<'_, T>,
    values: &[T::T],
    given: &[i16],
) -> Result<()> {
    to.write_batch(values, Some(given), None).map_err(failed)?;
    Ok(())
}

fn failed(error: ParquetError) -> StoreError {
    StoreError::Database(format!("a Parquet file could not be written: {error}"))
}

pub(crate) fn physical(kind: Type) -> Physical {
    match kind {
        Type::Bool => Physical::BOOLEAN,
        Type::Id | Type::Int => Physical::INT64,
        Type::Real => Physical::DOUBLE,
        Type::Text | Type::Bytes => Physical::BYTE_ARRAY,
    }
}

/// The schema of a file. Every column may be null, so that a later layout may add some.
fn schema(kinds: &[StoreColumn]) -> Result<TypePtr> {
    let mut fields = Vec::with_capacity(kinds.len());
    for StoreColumn { name, kind, .. } in kinds {
        let logical = (*kind == Type::Text).then_some(LogicalType::String);
        let field = Schema::primitive_type_builder(name, physical(*kind))
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL)
            .build();
        fields.push(Arc::new(field.map_err(failed)?));
    }
    let schema = Schema::group_type_builder("pactql").with_fields(fields);
    Ok(Arc::new(schema.build().map_err(failed)?))
}

fn properties(kinds: &[StoreColumn]) -> Result<WriterProperties> {
    let level = ZstdLevel::try_new(3).map_err(failed)?;
    let sorted = ["session_id", "unit_id", "pre"].iter().filter_map(|name| {
        let at = kinds.iter().position(|column| column.name == *name)?;
        let column_idx = i32::try_from(at).ok()?;
        Some(SortingColumn {
            column_idx,
            descending: false,
            nulls_first: false,
        })
    });
    let sorted: Vec<SortingColumn> = sorted.collect();
    let mut all = WriterProperties::builder()
        // Every engine reads it.
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(format!("pactql {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(level))
        .set_sorting_columns((!sorted.is_empty()).then_some(sorted));
    for StoreColumn { name, kind, .. } in kinds {
        // The least and greatest of long texts and of hashes lead to no rows.
        if *kind == Type::Bytes || LONG.contains(name) {
            let path = ColumnPath::from(*name);
            all = all.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    Ok(all.build())
}

const LONG: &[&str] = &["content", "meta", "runtime", "request", "params", "extra"];

pub(crate) fn hash_of(path: &Path) -> Result<String> {
    let io = |error| StoreError::Io(path.to_owned(), error);
    let mut file = File::open(path).map_err(io)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}
