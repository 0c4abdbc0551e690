//! Sets of depths: what `:depth(…)` and the anchors test.

use super::intervals::Intervals;

/// The smallest depth there is: the depth of `^sys`.
const LOWEST: i64 = -1;

/// A set of depths: -1 is `^sys`, 0 is `^ah`, and 1, 2, … are the turns from the newest to the
/// oldest (LANGUAGE §1).
///
/// Values below -1 do not exist and are cut off, so `<0` and `-1` are equal sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DepthSet(Intervals);

impl std::ops::Deref for DepthSet {
    type Target = Intervals;

    fn deref(&self) -> &Intervals {
        &self.0
    }
}

impl DepthSet {
    pub fn one(depth: i64) -> Self {
        Self::range(depth, depth)
    }

    /// The depths from `low` to `high`, both included; empty when `low > high`.
    pub fn range(low: i64, high: i64) -> Self {
        Self(Intervals::range(low.max(LOWEST), high))
    }

    /// The union of inclusive ranges in any order, overlapping or empty. `O(n log n)`.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let ranges = ranges.into_iter();
        let ranges = ranges.map(|(low, high)| (low.max(LOWEST), high));
        Self(Intervals::union_of(ranges))
    }

    pub fn union(&self, other: &Self) -> Self {
        let ranges = self.ranges().iter().chain(other.ranges());
        Self::from_ranges(ranges.copied())
    }

    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(other))
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
        let all = DepthSet::range(i64::MIN, i64::MAX);
        assert_eq!(all.ranges(), [(-1, i64::MAX)]);
    }
}
