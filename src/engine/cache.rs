//! The plan cache: selector text to prepared selector.
//!
//! It is bounded by weight and shared by all sessions and threads; a look-up locks one shard for one hash probe.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use hashbrown::DefaultHashBuilder;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::prepared::Prepared;
use super::statement::CompiledSelector;
use crate::advice::correct;
use crate::query::ir::{Edition, Purpose};
use crate::support::diag::Error;
use crate::support::macros::names;

type Texts = Cache<Arc<str>, Prepared, ByHeld, DefaultHashBuilder>;

/// Bytes of an entry of weight 1, including what it points to.
const ENTRY_BYTES: usize = 16 * 1024;

/// Estimated bytes of text, query, plan and bound plan for each byte of a selector's text.
const SPREAD: usize = 32;

/// By estimated bytes, 1 for an ordinary selector. What is heavier than the whole cache is not stored.
#[derive(Clone, Copy, Debug)]
struct ByHeld;

impl Weighter<Arc<str>, Prepared> for ByHeld {
    fn weight(&self, text: &Arc<str>, prepared: &Prepared) -> u64 {
        let patterns = prepared.bound().map_or(0, |bound| bound.pattern_bytes);
        let bytes = text.len() * SPREAD + patterns;
        (bytes.div_ceil(ENTRY_BYTES) as u64).max(1)
    }
}

names! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Outcome: as_str {
        Text = "text hit",
        Miss = "miss",
    }
}

/// Counters of the plan cache, from [`Engine::cache_stats`](crate::Engine::cache_stats).
///
/// ```
/// let engine = pactql::Engine::new();
/// engine.prepare("@t0 .cb[kind='call']")?;
/// engine.prepare("@t0 .cb[kind='call']")?;
/// let stats = engine.cache_stats();
/// assert_eq!((stats.misses, stats.text_hits), (1, 1));
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct CacheStats {
    /// Look-ups whose text was cached.
    pub text_hits: u64,
    /// Look-ups that compiled a plan.
    pub misses: u64,
    /// Texts evicted.
    pub evictions: u64,
    /// Texts in the cache.
    pub texts: u64,
}

fn cache(capacity: usize) -> Texts {
    let (hasher, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
    Cache::with(capacity, capacity as u64, ByHeld, hasher, lifecycle)
}

#[derive(Debug)]
pub(super) struct PlanCache {
    texts: Option<Texts>,
    /// The texts of mutations, places first: they mean something else there. Most engines have none.
    mutations: [OnceLock<Texts>; 2],
    capacity: usize,
    text_hits: AtomicU64,
    misses: AtomicU64,
    inserted: AtomicU64,
}

impl PlanCache {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            texts: (capacity > 0).then(|| cache(capacity)),
            mutations: [OnceLock::new(), OnceLock::new()],
            capacity,
            text_hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
        }
    }

    pub(super) fn look_up(
        &self,
        text: &str,
        edition: Edition,
        purpose: Purpose,
    ) -> Result<(Prepared, Outcome), Error> {
        let [places, targets] = &self.mutations;
        let of_mutation = match purpose {
            Purpose::Select => None,
            Purpose::Place => Some(places),
            Purpose::Target => Some(targets),
        };
        let known = self.texts.as_ref().map(|texts| match of_mutation {
            Some(known) => known.get_or_init(|| cache(self.capacity)),
            None => texts,
        });
        if let Some(prepared) = known.and_then(|known| known.get(text)) {
            self.text_hits.fetch_add(1, Ordering::Relaxed);
            return Ok((prepared, Outcome::Text));
        }
        self.compile(text, edition, purpose, known)
    }

    fn compile(
        &self,
        text: &str,
        edition: Edition,
        purpose: Purpose,
        texts: Option<&Texts>,
    ) -> Result<(Prepared, Outcome), Error> {
        let lowered = crate::query::ir::compile_for(text, edition, purpose)
            .map_err(|refused| correct(refused, edition, purpose))?;
        self.misses.fetch_add(1, Ordering::Relaxed);
        let prepared = Prepared::new(CompiledSelector::new(text, edition, lowered))?;
        if let Some(texts) = texts {
            self.inserted.fetch_add(1, Ordering::Relaxed);
            texts.insert(Arc::clone(&prepared.statement().text), prepared.clone());
        }
        Ok((prepared, Outcome::Miss))
    }

    pub(super) fn stats(&self) -> CacheStats {
        let mutations = self.mutations.iter().filter_map(OnceLock::get);
        let texts = self.texts.iter().chain(mutations);
        let texts = texts.map(|texts| texts.len() as u64).sum();
        CacheStats {
            text_hits: self.text_hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.inserted.load(Ordering::Relaxed).saturating_sub(texts),
            texts,
        }
    }
}
