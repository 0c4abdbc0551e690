//! The quick way to search for a pattern: automata whose states are made when they are met.
//!
//! They give up on texts for which they would need more memory than they may have. The module must not know
//! what is done then.

use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Anchored, Input, MatchKind, Span};
use regex_syntax::hir::Hir;

use crate::support::cancel::stopped;

/// The size limit of one automaton of a pattern, in bytes: the default of the `regex` crate.
pub(super) const MAX_AUTOMATON_BYTES: usize = 10 * 1024 * 1024;

/// The memory of an automaton whose states are made when they are met, in bytes.
const CACHE_BYTES: usize = 2 * 1024 * 1024;

/// Texts of this many bytes are searched by pieces, so that the work can be cancelled.
pub(super) const LONG: usize = 8 * 1024 * 1024;

/// Bytes between two looks at the token of the work.
const PIECE: usize = 64 * 1024;

/// The automata of a pattern.
#[derive(Debug)]
pub(super) struct Quick {
    forwards: Automaton,
    prefilter: Option<Prefilter>,
    /// Reads a match from its end to where it begins.
    backwards: OnceLock<Option<Automaton>>,
}

/// Makes the memory for an automaton.
type Make = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// An automaton, and the memory for it. Each text takes some and gives it back, so threads must not wait for each other
/// there: a short text is searched in the time of a lock.
#[derive(Debug)]
struct Automaton {
    dfa: Arc<DFA>,
    caches: Pool<Cache, Make>,
}

impl Automaton {
    /// `None` if it would need too much memory.
    fn new(hir: &Hir, backwards: bool, prefilter: Option<Prefilter>) -> Option<Self> {
        let nfa = NFA::compiler()
            .configure(nfa_config().reverse(backwards))
            .build_from_hir(hir)
            .ok()?;
        let kind = if backwards {
            MatchKind::All
        } else {
            MatchKind::LeftmostFirst
        };
        let config = DFA::config()
            .match_kind(kind)
            .cache_capacity(CACHE_BYTES)
            .minimum_cache_clear_count(Some(1))
            .minimum_bytes_per_state(Some(10))
            .unicode_word_boundary(true)
            .prefilter(prefilter);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
        let dfa = Arc::new(dfa);
        let make = Arc::clone(&dfa);
        let make: Make = Box::new(move || make.create_cache());
        Some(Self {
            dfa,
            caches: Pool::new(make),
        })
    }

    fn run<T>(&self, work: impl FnOnce(&DFA, &mut Cache) -> T) -> T {
        work(&self.dfa, &mut self.caches.get())
    }
}

impl Quick {
    /// The automaton of a pattern; `None` if it would need too much memory.
    pub(super) fn new(hir: &Hir) -> Option<Self> {
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, hir);
        Some(Self {
            forwards: Automaton::new(hir, false, prefilter.clone())?,
            prefilter,
            backwards: OnceLock::new(),
        })
    }

    /// Whether the pattern matches; `None` if the text is not for these automata.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        if text.len() < LONG {
            let input = Input::new(text).earliest(true);
            return self.forwards.run(|dfa, cache| {
                let found = dfa.try_search_fwd(cache, &input);
                found.ok().map(|found| found.is_some())
            });
        }
        let end = self.end_counted(text, 0, true, &mut 0)?;
        Some(end.is_some())
    }

    /// The first match that begins at `from` or later. The outer `None` if the text is not for these automata.
    pub(super) fn find(&self, hir: &Hir, text: &str, from: usize) -> Option<Option<Range<usize>>> {
        let input = Input::new(text).range(from..);
        let found = self
            .forwards
            .run(|dfa, cache| dfa.try_search_fwd(cache, &input));
        match found.ok()? {
            None => Some(None),
            Some(end) => self.begin(hir, text, from..end.offset()).map(Some),
        }
    }

    /// As [`Quick::find`], with looks at the token of the work. The bytes that are read add up in `read`.
    pub(super) fn find_counted(
        &self,
        hir: &Hir,
        text: &str,
        from: usize,
        read: &mut usize,
    ) -> Option<Option<Range<usize>>> {
        match self.end_counted(text, from, false, read)? {
            None => Some(None),
            // The end of an empty match inside a letter.
            Some(end) if !text.is_char_boundary(end) => None,
            Some(end) => self.begin(hir, text, from..end).map(Some),
        }
    }

    /// The match that ends where a range does, and begins in it.
    fn begin(&self, hir: &Hir, text: &str, within: Range<usize>) -> Option<Range<usize>> {
        let backwards = self
            .backwards
            .get_or_init(|| Automaton::new(hir, true, None))
            .as_ref()?;
        let end = within.end;
        let input = Input::new(text).range(within).anchored(Anchored::Yes);
        let begin = backwards.run(|dfa, cache| dfa.try_search_rev(cache, &input));
        Some(begin.ok()??.offset()..end)
    }

    /// Where the first match ends, or at the earliest could; the outer `None` as in [`Quick::find`].
    fn end_counted(
        &self,
        text: &str,
        from: usize,
        earliest: bool,
        read: &mut usize,
    ) -> Option<Option<usize>> {
        let all = Span::from(from..text.len());
        let from = match &self.prefilter {
            // In a long text it would not look at the token.
            Some(prefilter) if text.len() < LONG => match prefilter.find(text.as_bytes(), all) {
                None => return Some(None),
                Some(candidate) => candidate.start,
            },
            _ => from,
        };
        self.forwards.run(|dfa, cache| {
            let input = Input::new(text).range(from..);
            let mut state = dfa.start_state_forward(cache, &input).ok()?;
            let mut end = None;
            let mut at = from;
            cache.search_start(at);
            for piece in text.as_bytes().get(from..)?.chunks(PIECE) {
                if stopped() {
                    return Some(None);
                }
                for (place, byte) in (at..).zip(piece) {
                    state = dfa.next_state(cache, state, *byte).ok()?;
                    if state.is_tagged() {
                        // A match is noticed one byte after its end.
                        match () {
                            () if state.is_match() => end = Some(place),
                            () if state.is_dead() => {
                                *read += place - from;
                                return Some(end);
                            }
                            () if state.is_quit() => return None,
                            () => {}
                        }
                        if earliest && end.is_some() {
                            return Some(end);
                        }
                    }
                }
                at += piece.len();
                cache.search_update(at);
            }
            *read += at - from;
            let last = dfa.next_eoi_state(cache, state).ok()?;
            Some(if last.is_match() {
                Some(text.len())
            } else {
                end
            })
        })
    }
}

/// Automata that do not say what the groups of a pattern match.
pub(super) fn nfa_config() -> thompson::Config {
    thompson::Config::new()
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(MAX_AUTOMATON_BYTES))
}
