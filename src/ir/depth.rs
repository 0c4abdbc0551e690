//! Sets of depths: what `:depth(…)` and the anchors test.
//!
//! Depth is -1 for `^sys`, 0 for `^ah` and 1, 2, … for the turns from the newest to the oldest
//! (LANGUAGE §1), so a set is kept as sorted, disjoint, inclusive intervals over `-1..`.

use smallvec::SmallVec;

/// The smallest depth there is: the depth of `^sys`.
const LOWEST: i64 = -1;

/// A set of depths, as sorted, disjoint, non-adjacent inclusive intervals.
///
/// Values below -1 do not exist and are cut off, so `<0` and `-1` are equal sets. Two sets are
/// equal exactly when they hold the same depths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DepthSet {
    ranges: SmallVec<[(i64, i64); 2]>,
}

impl DepthSet {
    /// The set that holds nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Every depth from -1 up. Nodes without a depth are in no set, not even this one.
    #[must_use]
    pub fn all() -> Self {
        Self::range(LOWEST, i64::MAX)
    }

    /// The set of one depth.
    #[must_use]
    pub fn one(depth: i64) -> Self {
        Self::range(depth, depth)
    }

    /// The depths from `low` to `high`, both included; empty when `low > high`.
    #[must_use]
    pub fn range(low: i64, high: i64) -> Self {
        let low = low.max(LOWEST);
        let mut ranges = SmallVec::new();
        if low <= high {
            ranges.push((low, high));
        }
        Self { ranges }
    }

    /// The set of all depths in `ranges`, inclusive pairs in any order, overlapping or empty.
    /// Sorts once: `n log n` in the number of pairs.
    #[must_use]
    pub fn from_ranges(mut ranges: Vec<(i64, i64)>) -> Self {
        ranges.sort_unstable();
        let mut set = Self::empty();
        for (low, high) in ranges {
            let low = low.max(LOWEST);
            if low > high {
                continue;
            }
            match set.ranges.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => set.ranges.push((low, high)),
            }
        }
        set
    }

    /// The union of both sets. Linear in the number of intervals.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all: SmallVec<[(i64, i64); 4]> =
            self.ranges.iter().chain(&other.ranges).copied().collect();
        all.sort_unstable();
        let mut ranges: SmallVec<[(i64, i64); 2]> = SmallVec::new();
        for (low, high) in all {
            match ranges.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => ranges.push((low, high)),
            }
        }
        Self { ranges }
    }

    /// The depths in both sets. Linear in the number of intervals.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut ranges = SmallVec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(i), other.ranges.get(j)) {
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
        Self { ranges }
    }

    /// Whether `depth` is in the set.
    #[must_use]
    pub fn contains(&self, depth: i64) -> bool {
        self.ranges
            .iter()
            .any(|&(low, high)| low <= depth && depth <= high)
    }

    /// Whether the set holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether the set holds every depth.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.ranges.as_slice() == [(LOWEST, i64::MAX)]
    }

    /// The intervals, ascending and disjoint; `i64::MAX` as an upper end means "no end".
    #[must_use]
    pub fn ranges(&self) -> &[(i64, i64)] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::DepthSet;

    #[test]
    fn union_joins_neighbours_and_sorts() {
        let set = DepthSet::one(3)
            .union(&DepthSet::one(1))
            .union(&DepthSet::one(2));
        assert_eq!(set, DepthSet::range(1, 3));
        assert_eq!(set.union(&DepthSet::one(7)).ranges(), [(1, 3), (7, 7)]);
    }

    #[test]
    fn depths_below_the_system_region_do_not_exist() {
        assert_eq!(DepthSet::range(i64::MIN, -1), DepthSet::one(-1));
        assert!(DepthSet::range(i64::MIN, -2).is_empty());
        assert!(DepthSet::range(i64::MIN, i64::MAX).is_all());
    }

    #[test]
    fn intersection_keeps_what_both_hold() {
        let odd = DepthSet::one(1)
            .union(&DepthSet::one(3))
            .union(&DepthSet::range(5, i64::MAX));
        assert_eq!(
            odd.intersection(&DepthSet::range(2, 6)).ranges(),
            [(3, 3), (5, 6)]
        );
        assert!(odd.intersection(&DepthSet::one(2)).is_empty());
        assert!(odd.contains(1_000) && !odd.contains(4));
    }
}
