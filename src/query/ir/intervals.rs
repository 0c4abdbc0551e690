//! Sets of integers as intervals: depths in the normalized form, numbers in bound plans.

use smallvec::SmallVec;

/// A set of integers: sorted, disjoint, non-adjacent inclusive intervals. Equal sets have equal
/// intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Intervals(SmallVec<[(i64, i64); 2]>);

impl Intervals {
    /// The integers from `low` to `high`, both included; empty when `low > high`.
    pub fn range(low: i64, high: i64) -> Self {
        let mut ranges = SmallVec::new();
        if low <= high {
            ranges.push((low, high));
        }
        Self(ranges)
    }

    /// The union of inclusive ranges in any order, overlapping or empty. `O(n log n)`.
    pub fn union_of(ranges: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let ranges = ranges.into_iter().filter(|(low, high)| low <= high);
        let mut ranges: SmallVec<[(i64, i64); 2]> = ranges.collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let joins = next.0 <= last.1.saturating_add(1);
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
        Self(ranges)
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let mut ranges = SmallVec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let (low, high) = (a.0.max(b.0), a.1.min(b.1));
            if low <= high {
                ranges.push((low, high));
            }
            if a.1 < b.1 {
                i += 1;
            } else {
                j += 1;
            }
        }
        Self(ranges)
    }

    pub fn complement(&self) -> Self {
        let mut ranges = SmallVec::new();
        let mut next = Some(i64::MIN);
        for &(low, high) in &self.0 {
            if let Some(start) = next
                && start < low
            {
                ranges.push((start, low - 1));
            }
            next = high.checked_add(1);
        }
        ranges.extend(next.map(|start| (start, i64::MAX)));
        Self(ranges)
    }

    /// Whether `number` is in the set. Logarithmic in the number of intervals.
    #[inline]
    pub fn contains(&self, number: i64) -> bool {
        let at = self.0.partition_point(|&(_, high)| high < number);
        self.0.get(at).is_some_and(|&(low, _)| low <= number)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The intervals, ascending; `i64::MAX` as an upper end means "no end".
    #[inline]
    pub fn ranges(&self) -> &[(i64, i64)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    #[test]
    fn ranges_are_sorted_and_joined() {
        let set = Intervals::union_of([(7, 7), (3, 3), (1, 2), (9, 8), (i64::MAX, i64::MAX)]);
        assert_eq!(set.ranges(), [(1, 3), (7, 7), (i64::MAX, i64::MAX)]);
        assert!(set.contains(2) && !set.contains(4) && !set.contains(i64::MIN));
    }

    #[test]
    fn intersection_and_complement() {
        let odd = Intervals::union_of([(1, 1), (3, 3), (5, i64::MAX)]);
        let middle = Intervals::range(2, 6);
        assert_eq!(odd.intersection(&middle).ranges(), [(3, 3), (5, 6)]);
        assert_eq!(odd.complement().ranges(), [(i64::MIN, 0), (2, 2), (4, 4)]);
        assert_eq!(odd.complement().complement(), odd);
        assert!(odd.intersection(&odd.complement()).is_empty());
    }
}
