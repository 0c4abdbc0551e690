//! Rows with many columns in one buffer: asking a database for each value of each row costs more than
//! finding the row.
//!
//! A [`Wide`] is filled by a backend and read front to back, each row in the order of its columns. This
//! file knows no table.

use crate::store::error::{Result, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Wide {
    /// Each value is a mark and its bytes; a text begins with its length.
    bytes: Vec<u8>,
    /// Where each row begins, in the order of the result.
    rows: Vec<usize>,
}

// The marks of values.
const NULL: u8 = 0;
const INT: u8 = 1;
const TEXT: u8 = 2;
/// Of a type that no column has.
const OTHER: u8 = 3;

impl Wide {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        // A first capacity, so that few rows do not make it grow many times.
        self.bytes.reserve(8192);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn end(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a row, whose values begin there.
    pub(crate) fn add_row(&mut self, at: usize) {
        self.rows.push(at);
    }

    #[inline]
    pub(crate) fn add_int(&mut self, value: Option<i64>) {
        match value {
            None => self.bytes.push(NULL),
            Some(value) => {
                let mut cell = [INT; 9];
                cell[1..].copy_from_slice(&value.to_le_bytes());
                self.bytes.extend_from_slice(&cell);
            }
        }
    }

    /// Adds a text, which may not be one yet.
    #[inline]
    pub(crate) fn add_text(&mut self, value: Option<&[u8]>) {
        // A database has no longer ones.
        let fitting = value.map(|text| (u32::try_from(text.len()), text));
        match fitting {
            None => self.bytes.push(NULL),
            Some((Ok(len), text)) => {
                let mut cell = [TEXT; 5];
                cell[1..].copy_from_slice(&len.to_le_bytes());
                self.bytes.extend_from_slice(&cell);
                self.bytes.extend_from_slice(text);
            }
            Some((Err(_), _)) => self.bytes.push(OTHER),
        }
    }

    /// Adds a value of another type: reading it is an error.
    pub(crate) fn add_other(&mut self) {
        self.bytes.push(OTHER);
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Cells<'_>> {
        let from = |at: &usize| self.bytes.get(*at..).unwrap_or_default();
        self.rows.iter().map(move |at| Cells {
            left: from(at),
            at: 0,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Cells<'w> {
    left: &'w [u8],
    at: usize,
}

enum WideCell<'w> {
    Null,
    Int(i64),
    Text(&'w [u8]),
    Other,
}

impl<'w> Cells<'w> {
    #[inline]
    fn next(&mut self) -> WideCell<'w> {
        self.at += 1;
        self.read().unwrap_or(WideCell::Other)
    }

    #[inline]
    fn read(&mut self) -> Option<WideCell<'w>> {
        let (mark, left) = self.left.split_first()?;
        self.left = left;
        Some(match *mark {
            NULL => WideCell::Null,
            INT => {
                let (value, left) = self.left.split_first_chunk()?;
                self.left = left;
                WideCell::Int(i64::from_le_bytes(*value))
            }
            TEXT => {
                let (len, left) = self.left.split_first_chunk()?;
                let (text, left) = left.split_at_checked(u32::from_le_bytes(*len) as usize)?;
                self.left = left;
                WideCell::Text(text)
            }
            _ => WideCell::Other,
        })
    }

    #[cold]
    fn unlike(&self, expected: &str) -> StoreError {
        let at = self.at - 1;
        StoreError::Damaged(format!("column {at} of a result is not {expected}"))
    }

    /// The next integer, or truth value.
    #[inline]
    pub(crate) fn int(&mut self) -> Result<Option<i64>> {
        match self.next() {
            WideCell::Null => Ok(None),
            WideCell::Int(value) => Ok(Some(value)),
            WideCell::Text(_) | WideCell::Other => Err(self.unlike("an integer")),
        }
    }

    #[inline]
    pub(crate) fn text(&mut self) -> Result<Option<&'w str>> {
        match self.next() {
            WideCell::Null => Ok(None),
            WideCell::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.unlike("UTF-8")),
            },
            WideCell::Int(_) | WideCell::Other => Err(self.unlike("a text")),
        }
    }

    #[inline]
    pub(crate) fn given_int(&mut self) -> Result<i64> {
        self.int()?.ok_or_else(|| self.unlike("an integer"))
    }

    #[inline]
    pub(crate) fn given_text(&mut self) -> Result<&'w str> {
        self.text()?.ok_or_else(|| self.unlike("a text"))
    }
}

#[cfg(test)]
mod tests {
    use super::Wide;

    #[test]
    fn rows_come_back_in_their_order_and_errors_name_the_column() {
        let mut wide = Wide::default();
        wide.add_int(Some(i64::MIN));
        wide.add_text(Some("é".as_bytes()));
        wide.add_int(None);
        let second = wide.end();
        wide.add_text(None);
        wide.add_text(Some(b"\xFF"));
        wide.add_other();
        // A database may give them back in another order than it read them in.
        wide.add_row(second);
        wide.add_row(0);
        assert_eq!(wide.len(), 2);
        let rows: Vec<_> = wide.rows().collect();
        let mut row = rows[1].clone();
        assert_eq!(row.given_int().unwrap(), i64::MIN);
        assert_eq!(row.given_text().unwrap(), "é");
        assert_eq!(row.int().unwrap(), None);
        let mut row = rows[0].clone();
        assert_eq!(row.text().unwrap(), None);
        let error = row.text().unwrap_err().to_string();
        assert!(error.contains("column 1"), "{error}");
        assert!(row.int().is_err());
        assert!(rows[1].clone().text().is_err());
        assert!(rows[0].clone().given_int().is_err());
        wide.clear();
        assert_eq!((wide.len(), wide.end()), (0, 0));
    }
}
