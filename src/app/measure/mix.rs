//! Which operation comes next: a select of a selector by its weight, or a commit; on a session in turn or by Zipf.
//!
//! A sequence is the same for the same seed. It must not know how operations are run.

use super::statistics::Random;

/// The most places in a cycle of weighted selectors.
pub(crate) const MOST_WEIGHT: u64 = 10_000;

pub(crate) struct Mix {
    /// The selectors of one cycle, spread as evenly as their weights allow.
    order: Vec<usize>,
    sessions: usize,
    /// Cumulated shares of the sessions; `None` if each has its turn.
    zipf: Option<Vec<f64>>,
    /// The share of operations that are commits.
    commits: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Select { selector: usize, session: usize },
    Commit { session: usize },
}

impl Mix {
    /// Weights are one for each selector; their sum is at most [`MOST_WEIGHT`] and not 0.
    pub(crate) fn new(weights: &[u64], sessions: usize, zipf: Option<f64>, commits: f64) -> Self {
        let zipf = zipf.map(|exponent| {
            let mut sum = 0.0;
            let shares = (1..=sessions).map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            });
            shares.collect()
        });
        Self {
            order: spread(weights),
            sessions,
            zipf,
            commits,
        }
    }

    /// The operations of one of several threads, each of which begins at another point.
    pub(crate) fn sequence(&self, thread: u64, threads: u64, seed: u64) -> Sequence<'_> {
        let all = (self.order.len() * self.sessions) as u64;
        Sequence {
            mix: self,
            at: 0,
            selects: all / threads * thread,
            random: Random::new(seed.wrapping_add(thread)),
        }
    }
}

/// The selectors of a cycle: each time the one that is furthest behind its share.
fn spread(weights: &[u64]) -> Vec<usize> {
    let total: u64 = weights.iter().sum();
    let mut behind = vec![0_i64; weights.len()];
    let mut order = Vec::new();
    for _ in 0..total {
        let mut next = 0;
        for (at, weight) in weights.iter().enumerate() {
            behind[at] += *weight as i64;
            if behind[at] > behind[next] {
                next = at;
            }
        }
        behind[next] -= total as i64;
        order.push(next);
    }
    order
}

pub(crate) struct Sequence<'a> {
    mix: &'a Mix,
    at: u64,
    selects: u64,
    random: Random,
}

impl Sequence<'_> {
    pub(crate) fn next(&mut self) -> Operation {
        let mix = self.mix;
        let commits = |operations: u64| (operations as f64 * mix.commits) as u64;
        self.at += 1;
        let in_turn = self.selects / mix.order.len() as u64 % mix.sessions as u64;
        let session = match &mix.zipf {
            None => in_turn as usize,
            Some(shares) => {
                let place = self.random.share() * shares.last().copied().unwrap_or(0.0);
                let session = shares.partition_point(|share| *share <= place);
                session.min(mix.sessions - 1)
            }
        };
        if commits(self.at) > commits(self.at - 1) {
            return Operation::Commit { session };
        }
        let selector = mix.order[(self.selects % mix.order.len() as u64) as usize];
        self.selects += 1;
        Operation::Select { selector, session }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mix, Operation, spread};

    #[test]
    fn weights_are_shares_and_spread() {
        assert_eq!(spread(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(spread(&[3, 1]), [0, 0, 1, 0]);
        assert_eq!(spread(&[0, 2]), [1, 1]);
        let order = spread(&[5, 3, 2]);
        let count = |of: usize| order.iter().filter(|at| **at == of).count();
        assert_eq!([0, 1, 2].map(count), [5, 3, 2]);
    }

    #[test]
    fn the_same_seed_gives_the_same_operations() {
        let mix = Mix::new(&[2, 1], 50, Some(1.0), 0.1);
        let run = |seed| {
            let mut sequence = mix.sequence(0, 1, seed);
            (0..3_000).map(|_| sequence.next()).collect::<Vec<_>>()
        };
        let all = run(7);
        assert_eq!(all, run(7));
        assert_ne!(all, run(8));
        let is_commit = |one: &&Operation| matches!(one, Operation::Commit { .. });
        assert_eq!(all.iter().filter(is_commit).count(), 300);
        let of = |wanted: usize| {
            let chosen = |one: &&Operation| match one {
                Operation::Select { selector, .. } => *selector == wanted,
                Operation::Commit { .. } => false,
            };
            all.iter().filter(chosen).count()
        };
        assert_eq!((of(0), of(1)), (1_800, 900));
        // By Zipf with exponent 1, the first of 50 has 1 / H(50) = 22 % of all, the second half of that.
        let on = |wanted: usize| {
            let on = |one: &&Operation| match **one {
                Operation::Select { session, .. } | Operation::Commit { session } => {
                    session == wanted
                }
            };
            all.iter().filter(on).count()
        };
        assert_eq!((0..50).map(on).sum::<usize>(), 3_000);
        assert!((560..780).contains(&on(0)), "{}", on(0));
        assert!((250..420).contains(&on(1)), "{}", on(1));
        assert!(on(49) < 40);
    }

    #[test]
    fn without_zipf_every_selector_meets_every_session() {
        let mix = Mix::new(&[1, 1], 3, None, 0.0);
        for thread in 0..4 {
            let mut sequence = mix.sequence(thread, 4, 1);
            let mut met: Vec<_> = (0..6).map(|_| sequence.next()).collect();
            met.sort_by_key(|one| format!("{one:?}"));
            met.dedup();
            assert_eq!(met.len(), 6, "{met:?}");
        }
    }
}
