//! The rows of a segment by the hashes of their ids.

use hashbrown::HashTable;

use super::bits::Ones;

/// A segment of up to this many rows has no table.
const FEW: usize = 16;

/// Rows by hash, so that an id is stored once: a candidate is compared with the text it is cut out of.
#[derive(Debug)]
pub(super) enum Directory {
    /// The last byte of each row's hash. Comparing sixteen of them takes no longer than finding one in a table, and a
    /// session that commits often has many small segments.
    Few([u8; FEW]),
    Table(Box<HashTable<u32>>),
}

impl Directory {
    /// The directory of these rows, which ascend, of a segment of `len` rows.
    pub(super) fn new(
        len: usize,
        rows: impl Iterator<Item = u32>,
        hash: impl Fn(u32) -> u64,
    ) -> Self {
        if len <= FEW {
            let mut few = [0; FEW];
            rows.for_each(|row| few[row as usize] = hash(row) as u8);
            return Self::Few(few);
        }
        let mut table = HashTable::with_capacity(len);
        for row in rows {
            table.insert_unique(hash(row), row, |&row| hash(row));
        }
        Self::Table(Box::new(table))
    }

    /// A row of this hash for which `is_it` is true. It is called with other rows, too, some of which may be none of the
    /// segment's.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        match self {
            Self::Few(few) => {
                let mut found = 0;
                for (row, known) in few.iter().enumerate() {
                    found |= u64::from(*known == hash as u8) << row;
                }
                Ones(found).find(|row| is_it(*row))
            }
            Self::Table(table) => table.find(hash, |&row| is_it(row)).copied(),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Few(_) => 0,
            Self::Table(table) => size_of_val(&**table) + table.capacity() * 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Directory;

    #[test]
    fn few_rows_are_found_as_many_are() {
        let hash = |row: u32| u64::from(row % 5).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for len in [0, 1, 15, 16, 17, 40] {
            let some = (0..len).filter(|row| row % 3 != 1);
            let directory = Directory::new(len as usize, some.clone(), hash);
            for wanted in 0..len + 3 {
                let found = directory.find(hash(wanted), |row| {
                    row == wanted && row % 3 != 1 && row < len
                });
                assert_eq!(found, some.clone().find(|row| *row == wanted));
            }
        }
    }
}
