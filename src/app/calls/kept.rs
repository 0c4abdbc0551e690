//! What was read of files, kept while the files are as they were. It must not know what that is, nor how it is read.

use crate::app::present::Result;
use crate::support::cancel;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, GuardResult};
use std::path::PathBuf;
use std::time::Duration;

/// The most values that are kept.
const MOST: u64 = 64;

/// How long a call waits for another one's loading until it asks whether it is cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// How often a value is looked up again when its files change meanwhile.
const TRIES: usize = 3;

/// Values by place, each with the state `S` of its files just before they were read.
#[derive(Debug)]
pub(crate) struct Kept<S, V> {
    cache: Cache<PathBuf, KeptValue<S, V>, BySize>,
}

#[derive(Clone, Debug)]
struct KeptValue<S, V> {
    state: S,
    bytes: u64,
    value: V,
}

#[derive(Clone, Copy, Debug)]
struct BySize {
    least: u64,
}

impl<S, V> Weighter<PathBuf, KeptValue<S, V>> for BySize {
    fn weight(&self, _: &PathBuf, kept: &KeptValue<S, V>) -> u64 {
        kept.bytes.max(self.least)
    }
}

impl<S: Clone + PartialEq, V: Clone> Kept<S, V> {
    /// Keeps values of files of this many bytes in all, and at most 64; what is larger is read for each call.
    pub(crate) fn new(bytes: u64) -> Self {
        let least = bytes / MOST;
        Self {
            cache: Cache::with_weighter(MOST as usize, bytes, BySize { least }),
        }
    }

    /// The value at `place`: from memory if the files have the state they had, or else as `load` reads it. Concurrent calls
    /// load it once. `state` returns the state with the bytes that the value counts for. `load` gets the value of an earlier
    /// state, if that was kept.
    ///
    /// # Errors
    /// Those of `state` and `load`; the call is cancelled.
    pub(crate) fn get(
        &self,
        place: &PathBuf,
        state: impl Fn() -> Result<(S, u64)>,
        load: impl Fn(&S, Option<V>) -> Result<V>,
    ) -> Result<V> {
        for _ in 0..TRIES {
            let (state, bytes) = state()?;
            let old = self.cache.remove_if(place, |kept| kept.state != state);
            let old = old.map(|(_, kept)| kept.value);
            let kept = self.loaded(place, || {
                let value = load(&state, old)?;
                // A cancelled call may have read only a part.
                cancel::check()?;
                Ok(KeptValue {
                    state: state.clone(),
                    bytes,
                    value,
                })
            })?;
            // A concurrent call may have loaded it from files in another state.
            if kept.state == state {
                return Ok(kept.value);
            }
        }
        load(&state()?.0, None)
    }

    /// What is kept of a place, whatever the state of its files is now.
    pub(crate) fn peek(&self, place: &PathBuf) -> Option<V> {
        Some(self.cache.get(place)?.value)
    }

    /// What the values count for in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// The value at `place`, which one call loads while others wait for it, or until they are cancelled.
    fn loaded(
        &self,
        place: &PathBuf,
        load: impl FnOnce() -> Result<KeptValue<S, V>>,
    ) -> Result<KeptValue<S, V>> {
        loop {
            match self.cache.get_value_or_guard(place, Some(LOOK)) {
                GuardResult::Value(kept) => return Ok(kept),
                GuardResult::Guard(guard) => {
                    let kept = load()?;
                    // It is dropped at once if it is too large to keep, or if values that are read more often fill the cache.
                    let _ = guard.insert(kept.clone());
                    return Ok(kept);
                }
                GuardResult::Timeout => cancel::check()?,
            }
        }
    }
}

#[cfg(all(test, feature = "view"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_within_its_bytes() {
        const BYTES: u64 = 1 << 20;
        let kept = Kept::<u64, u64>::new(BYTES);
        for at in 0..500_u64 {
            let place = PathBuf::from(format!("{at}"));
            let bytes = 1_000 * (at % 90);
            let value = kept.get(&place, || Ok((at, bytes)), |_, _| Ok(at)).unwrap();
            assert_eq!(value, at);
            assert!(kept.bytes() <= BYTES, "{at}: {}", kept.bytes());
        }
        assert!(kept.bytes() > BYTES / 2);
    }

    #[test]
    fn the_value_of_an_earlier_state_is_given_to_what_makes_the_next() {
        // Of an empty cache: a full one may drop what is new at once, by hashes that differ from run to run.
        let kept = Kept::<u64, u64>::new(1 << 20);
        let place = PathBuf::from("grows");
        kept.get(&place, || Ok((1, 10)), |_, old| Ok(old.unwrap_or(7)))
            .unwrap();
        let grown = kept
            .get(&place, || Ok((2, 20)), |_, old| Ok(old.unwrap_or(0) + 1))
            .unwrap();
        assert_eq!(grown, 8);
    }
}
