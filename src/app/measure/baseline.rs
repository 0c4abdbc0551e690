//! A measurement in a file, and what got slower since.
//!
//! The file has, for each selector, the means of the parts of a run; an interval tells how much those differ in both
//! runs. What differs between two starts of a program, or two machines, is in no interval. It must not know options.

use super::statistics::{Ratio, median};
use crate::app::present::{Failure, Result};
use crate::logs::file::output;
use serde::{Deserialize, Serialize};
use std::path::Path;

const VERSION: u32 = 1;

/// Samples that a comparison needs of each run.
const FEWEST_SAMPLES: usize = 5;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Baseline {
    version: u32,
    /// What was measured, apart from selectors: equal in two runs that can be compared.
    settings: String,
    selectors: Vec<Sampled>,
}

/// The samples of a selector, in nanoseconds a select.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sampled {
    pub(crate) selector: String,
    pub(crate) samples_ns: Vec<f64>,
}

/// A selector now and then.
#[derive(Serialize)]
pub(crate) struct Since {
    pub(crate) selector: String,
    /// Medians of the samples.
    pub(crate) before_ns: f64,
    pub(crate) now_ns: f64,
    #[serde(flatten)]
    pub(crate) ratio: Ratio,
    pub(crate) verdict: &'static str,
}

impl Baseline {
    pub(crate) fn new(settings: String, selectors: Vec<Sampled>) -> Self {
        Self {
            version: VERSION,
            settings,
            selectors,
        }
    }

    /// The baseline of a file; `None` if there is no such file.
    pub(crate) fn read(file: &str) -> Result<Option<Self>> {
        if !Path::new(file).exists() {
            return Ok(None);
        }
        let bytes = std::fs::read(file).map_err(|error| Failure::file(file, &error))?;
        let read: Result<Self, _> = serde_json::from_slice(&bytes);
        match read {
            Ok(baseline) if baseline.version == VERSION => Ok(Some(baseline)),
            Ok(other) => Err(Self::unfit(
                file,
                &format!("it has version {}", other.version),
            )),
            Err(error) => Err(Self::unfit(file, &error.to_string())),
        }
    }

    fn unfit(file: &str, why: &str) -> Failure {
        Failure::usage(format!("{file} is not a baseline of this program: {why}"))
            .with_help("name another file; `--baseline` writes one that does not exist")
    }

    pub(crate) fn write(&self, file: &str) -> Result<()> {
        let written = output(Path::new(file), |out| {
            serde_json::to_writer(&mut *out, self)?;
            out.write_all(b"\n")
        });
        written.map_err(|error| Failure::output(file, &error))
    }

    /// Refuses a baseline that was measured otherwise.
    pub(crate) fn check(&self, file: &str, settings: &str) -> Result<()> {
        if self.settings == settings {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "{file} was measured with {}; this is {settings}",
            self.settings
        ))
        .with_help("measure the same, or `--force` to replace the baseline"))
    }

    /// The selectors that both have, in the order of `now`.
    pub(crate) fn since(&self, now: &[Sampled], seed: u64) -> Vec<Since> {
        let mut found = Vec::new();
        for now in now {
            let before = self.selectors.iter();
            let Some(before) = before.into_iter().find(|one| one.selector == now.selector) else {
                continue;
            };
            let (before, after) = (&before.samples_ns, &now.samples_ns);
            let usable = |samples: &[f64]| {
                samples.len() >= FEWEST_SAMPLES && samples.iter().all(|sample| *sample > 0.0)
            };
            if !usable(before) || !usable(after) {
                continue;
            }
            let ratio = Ratio::of_samples(before, after, seed);
            found.push(Since {
                selector: now.selector.clone(),
                before_ns: median(before.clone()),
                now_ns: median(after.clone()),
                ratio,
                verdict: ratio.verdict(),
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Baseline, Sampled};

    fn sampled(selector: &str, around: f64) -> Sampled {
        let samples = (0..20).map(|at| around + f64::from(at % 4));
        Sampled {
            selector: selector.to_owned(),
            samples_ns: samples.collect(),
        }
    }

    #[test]
    fn selectors_are_compared_by_their_text() {
        let before = [
            sampled("a", 100.0),
            sampled("b", 100.0),
            sampled("gone", 1.0),
        ];
        let before = Baseline::new("x".to_owned(), before.into());
        let mut few = sampled("few", 1.0);
        few.samples_ns.truncate(2);
        let now = [
            sampled("b", 150.0),
            sampled("new", 1.0),
            few,
            sampled("a", 100.0),
        ];
        let since = before.since(&now, 1);
        let told: Vec<_> = since
            .iter()
            .map(|one| (&*one.selector, one.verdict))
            .collect();
        assert_eq!(told, [("b", "slower"), ("a", "same")]);
        assert!(since[0].ratio.low > 1.4 && since[0].ratio.high < 1.6);
        assert!(before.check("f", "x").is_ok() && before.check("f", "y").is_err());
    }
}
