//! Lists: each value once with its number, and what two lists have in the same order.

use hashbrown::HashMap;
use std::borrow::Borrow;
use std::hash::Hash;

/// Values by keys, each once, numbered in the order in which they first appear.
#[derive(Clone, Debug)]
pub(super) struct Numbered<K, V = K> {
    numbers: HashMap<K, u32>,
    pub(super) list: Vec<V>,
}

impl<K, V> Default for Numbered<K, V> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            list: Vec::new(),
        }
    }
}

impl<K: Eq + Hash, V> Numbered<K, V> {
    /// The number of a key, whose value is added if there is none.
    pub(super) fn number<Q>(&mut self, key: &Q, value: impl FnOnce() -> V) -> u32
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let next = self.list.len() as u32;
        self.list.push(value());
        self.numbers.insert(key.to_owned(), next);
        next
    }
}

impl Numbered<String> {
    pub(super) fn name(&mut self, name: &str) -> u32 {
        self.number(name, || name.to_owned())
    }

    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }
}

/// The longest run of pairs that ascends on both sides, of pairs that ascend on the first. `n log n`.
pub(super) fn ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the run with the smallest end: the index of its last pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, second)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *second);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let last = ends.last().copied();
    let run = std::iter::successors(last, |at| before[*at]);
    let mut run: Vec<(usize, usize)> = run.map(|at| pairs[at]).collect();
    run.reverse();
    run
}
