//! The rows of a segment whose ttl counts down, and the cycles in which they expire.
//!
//! Between two neighbouring snapshots only those rows change that have not expired, few of many. They are found
//! without the others, also among some rows only: an older snapshot has the first rows of a segment, and all later ones
//! expire later. This file does not know why a row expires.

use std::ops::Range;

use smallvec::SmallVec;

/// Rows and the cycles in which they expire.
#[derive(Debug)]
pub(super) struct Expiring {
    /// Ascending.
    rows: Box<[u32]>,
    /// A tree of maxima: row `i` is at `len + i`, and the cycles at `2 * n` and `2 * n + 1` are below that at `n`, which
    /// is the later one.
    latest: Box<[i64]>,
}

impl Expiring {
    /// These rows, which ascend, with their cycles.
    pub(super) fn new(expiring: &[(u32, i64)]) -> Self {
        let len = expiring.len();
        let mut latest = vec![i64::MIN; 2 * len];
        for (at, (_, cycle)) in expiring.iter().enumerate() {
            latest[len + at] = *cycle;
        }
        for at in (1..len).rev() {
            latest[at] = latest[2 * at].max(latest[2 * at + 1]);
        }
        Self {
            rows: expiring.iter().map(|(row, _)| *row).collect(),
            latest: latest.into(),
        }
    }

    /// Calls `visit` with those of `rows` that expire after a cycle, in any order. Logarithmic in all rows for each of
    /// them.
    pub(super) fn after(&self, cycle: i64, rows: &Range<u32>, mut visit: impl FnMut(u32)) {
        let len = self.rows.len();
        // All rows of most segments have expired: place 1 is above all.
        if self.latest.get(1).is_none_or(|latest| *latest <= cycle) {
            return;
        }
        // Most pieces begin with their segment, or end with it.
        let place = |row: u32| match self.rows.last() {
            _ if row == 0 => len,
            Some(last) if *last < row => 2 * len,
            _ => len + self.rows.partition_point(|known| *known < row),
        };
        let (mut start, mut end) = (place(rows.start), place(rows.end));
        let mut open: SmallVec<[usize; 64]> = SmallVec::new();
        // The fewest places that are above all of these rows and no others.
        while start < end {
            if start % 2 == 1 {
                open.push(start);
                start += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                open.push(end);
            }
            (start, end) = (start / 2, end / 2);
        }
        while let Some(at) = open.pop() {
            if self.latest[at] <= cycle {
                continue;
            }
            match at.checked_sub(len) {
                Some(at) => visit(self.rows[at]),
                None => open.extend([2 * at, 2 * at + 1]),
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.rows) + size_of_val(&*self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::Expiring;

    #[test]
    fn those_that_expire_later_are_found_in_any_range() {
        for len in [0, 1, 2, 3, 7, 8, 30] {
            let all: Vec<(u32, i64)> = (0..len)
                .map(|at| (3 * at, i64::from(at * 7 % 11)))
                .collect();
            let expiring = Expiring::new(&all);
            for (start, end) in [(0, 100), (3, 4), (4, 6), (10, 40), (5, 5)] {
                for cycle in -1..12 {
                    let mut found = Vec::new();
                    expiring.after(cycle, &(start..end), |row| found.push(row));
                    found.sort_unstable();
                    let wanted = all
                        .iter()
                        .filter(|(row, at)| (start..end).contains(row) && *at > cycle);
                    assert_eq!(found, wanted.map(|(row, _)| *row).collect::<Vec<_>>());
                }
            }
        }
    }
}
