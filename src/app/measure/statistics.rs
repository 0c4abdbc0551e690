//! How much slower: ratios of times with an interval of confidence, by bootstrap.
//!
//! Medians, because a machine that does something else makes a few rounds much slower. Resampling is seeded, so equal
//! samples give an equal interval. It must not know what was timed.

use serde::Serialize;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 1_000;

/// Random numbers that a seed decides: SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to 1, which is left out.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of the numbers below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A ratio of times with its interval of 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Ratio {
    /// The median of ratios, each of two times that were measured next to each other.
    pub(crate) fn paired(ratios: &[f64], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let again = |_| median(resampled(ratios, &mut random));
        let again = (0..RESAMPLES).map(again).collect();
        Self::new(median(ratios.to_vec()), again)
    }

    /// The ratio of the medians of two samples, the second by the first.
    pub(crate) fn of_samples(before: &[f64], after: &[f64], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let again = (0..RESAMPLES)
            .map(|_| {
                let before = median(resampled(before, &mut random));
                median(resampled(after, &mut random)) / before
            })
            .collect();
        Self::new(median(after.to_vec()) / median(before.to_vec()), again)
    }

    fn new(ratio: f64, mut again: Vec<f64>) -> Self {
        again.sort_by(f64::total_cmp);
        let at = |share: f64| again[((RESAMPLES - 1) as f64 * share).round() as usize];
        Self {
            ratio,
            low: at(0.025),
            high: at(0.975),
        }
    }

    /// What the interval says: `slower`, `faster`, or `same` where it has 1 in it.
    pub(crate) fn verdict(&self) -> &'static str {
        if self.low > 1.0 {
            "slower"
        } else if self.high < 1.0 {
            "faster"
        } else {
            "same"
        }
    }
}

fn resampled(samples: &[f64], random: &mut Random) -> Vec<f64> {
    let one = |_| samples[random.below(samples.len())];
    (0..samples.len()).map(one).collect()
}

/// The median of samples, of which there is at least one.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.len().is_multiple_of(2) {
        f64::midpoint(samples[middle - 1], samples[middle])
    } else {
        samples[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, Ratio, median};

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    /// Samples around a mean, with a few that are far off.
    fn noisy(mean: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let one = |at: usize| match at % 10 {
            0 => mean * 3.0,
            _ => mean * (0.95 + random.share() / 10.0),
        };
        (0..40).map(one).collect()
    }

    #[test]
    fn an_interval_has_the_true_ratio_and_tells_what_is_slower() {
        let (one, two) = (noisy(100.0, 1), noisy(120.0, 2));
        let found = Ratio::of_samples(&one, &two, 5);
        assert_eq!(found, Ratio::of_samples(&one, &two, 5));
        assert!(found.low <= 1.2 && 1.2 <= found.high, "{found:?}");
        assert!(found.low <= found.ratio && found.ratio <= found.high);
        assert_eq!(found.verdict(), "slower");
        assert_eq!(Ratio::of_samples(&two, &one, 5).verdict(), "faster");
        assert_eq!(
            Ratio::of_samples(&one, &noisy(100.0, 3), 5).verdict(),
            "same"
        );
        let ratios: Vec<f64> = one.iter().zip(&two).map(|(one, two)| two / one).collect();
        let found = Ratio::paired(&ratios, 5);
        assert!(found.low <= 1.2 && 1.2 <= found.high, "{found:?}");
        assert_eq!(Ratio::paired(&[1.0; 12], 1).verdict(), "same");
    }
}
