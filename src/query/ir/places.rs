//! Where the matches of a pattern are: the matches that the `regex` crate finds, at a cost for each letter that
//! the pattern alone decides.
//!
//! A text is read twice. Backwards, with sets of positions: for each place, the positions that can take the
//! letter there so that a match follows. Forwards, from the first place where a match can begin: of
//! the ways on, in the order in which the pattern prefers them, the first one that the sets allow. So no
//! way has to be given up. The sets are kept for the ends of blocks, and made again for a block that is walked
//! through. The module must not know automata.

use std::collections::HashMap;
use std::ops::Range;

use regex_automata::util::look::{Look, LookMatcher};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::positions::Positions;
use crate::support::cancel::stopped;

/// Letters of a block.
const BLOCK: usize = 4_096;

/// A pattern as steps, with its positions in the order of [`Positions`].
#[derive(Clone, Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
    begin: usize,
    /// The step of each position.
    letters: Vec<usize>,
}

/// A step of a pattern, and the ones that follow it, the preferred one first.
#[derive(Clone, Debug)]
enum Step {
    Letter { position: usize, next: usize },
    Look { look: Look, next: usize },
    Ways { next: Vec<usize>, lazy: bool },
    Match,
}

/// Where a part of a pattern begins and ends: two steps.
#[derive(Clone, Copy)]
struct Part {
    begin: usize,
    end: usize,
}

impl Program {
    /// The steps of a pattern.
    pub(super) fn new(hir: &Hir) -> Self {
        let mut made = Self {
            steps: Vec::new(),
            begin: 0,
            letters: Vec::new(),
        };
        let all = made.part(hir);
        let matched = made.step(Step::Match);
        made.link(all.end, matched);
        made.begin = all.begin;
        for step in &mut made.steps {
            if let Step::Ways { next, lazy: true } = step {
                next.reverse();
            }
        }
        made
    }

    fn step(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    fn ways(&mut self, lazy: bool) -> usize {
        let next = Vec::new();
        self.step(Step::Ways { next, lazy })
    }

    fn link(&mut self, from: usize, to: usize) {
        match self.steps.get_mut(from) {
            Some(Step::Letter { next, .. } | Step::Look { next, .. }) => *next = to,
            Some(Step::Ways { next, .. }) => next.push(to),
            Some(Step::Match) | None => {}
        }
    }

    fn empty(&mut self) -> Part {
        let step = self.ways(false);
        Part {
            begin: step,
            end: step,
        }
    }

    fn letter(&mut self) -> Part {
        let position = self.letters.len();
        let step = self.step(Step::Letter { position, next: 0 });
        self.letters.push(step);
        Part {
            begin: step,
            end: step,
        }
    }

    fn then(&mut self, one: Part, other: Part) -> Part {
        self.link(one.end, other.begin);
        Part {
            begin: one.begin,
            end: other.end,
        }
    }

    fn part(&mut self, hir: &Hir) -> Part {
        match hir.kind() {
            HirKind::Empty => self.empty(),
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                let mut all = self.empty();
                for _ in text.chars() {
                    let letter = self.letter();
                    all = self.then(all, letter);
                }
                all
            }
            // Each is one position, also a class without letters.
            HirKind::Class(Class::Unicode(_) | Class::Bytes(_)) => self.letter(),
            HirKind::Look(look) => {
                // Of another version of the syntax than the matcher knows; then there are no positions either.
                let look = Look::from_repr(look.as_repr()).unwrap_or(Look::Start);
                let step = self.step(Step::Look { look, next: 0 });
                Part {
                    begin: step,
                    end: step,
                }
            }
            HirKind::Repetition(repetition) => self.repetition(repetition),
            HirKind::Capture(capture) => self.part(&capture.sub),
            HirKind::Concat(parts) => {
                let mut all = self.empty();
                for part in parts {
                    let part = self.part(part);
                    all = self.then(all, part);
                }
                all
            }
            HirKind::Alternation(parts) => {
                let (begin, end) = (self.ways(false), self.ways(false));
                for part in parts {
                    let part = self.part(part);
                    self.link(begin, part.begin);
                    self.link(part.end, end);
                }
                Part { begin, end }
            }
        }
    }

    fn repetition(&mut self, repetition: &Repetition) -> Part {
        let Repetition { min, max, sub, .. } = repetition;
        let lazy = !repetition.greedy;
        let mut all = self.empty();
        let Some(max) = max else {
            for _ in 1..*min {
                let part = self.part(sub);
                all = self.then(all, part);
            }
            let part = self.part(sub);
            let again = self.ways(lazy);
            self.link(part.end, again);
            self.link(again, part.begin);
            let end = self.empty();
            // `x*` is `(x+)?`, not a loop that may be left out: else an `x` that may be empty is preferred where
            // the crate prefers the end.
            if *min == 0 {
                let whether = self.ways(lazy);
                self.link(whether, part.begin);
                self.link(whether, end.begin);
                self.link(all.end, whether);
            } else {
                self.link(all.end, part.begin);
            }
            self.link(again, end.begin);
            return Part {
                begin: all.begin,
                end: end.end,
            };
        };
        for _ in 0..*min {
            let part = self.part(sub);
            all = self.then(all, part);
        }
        let end = self.empty();
        for _ in *min..*max {
            let whether = self.ways(lazy);
            let part = self.part(sub);
            self.link(all.end, whether);
            self.link(whether, part.begin);
            self.link(whether, end.begin);
            all.end = part.end;
        }
        self.then(all, end)
    }

    /// The positions that can come next after a step, the preferred one first, where assertions hold. `None` is
    /// the end of the match; nothing comes after it.
    fn next(&self, from: usize, holds: impl Fn(Look) -> bool) -> Vec<Option<usize>> {
        let mut found = Vec::new();
        let mut seen = vec![false; self.steps.len()];
        let mut open = vec![from];
        while let Some(step) = open.pop() {
            match seen.get_mut(step) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            match &self.steps[step] {
                Step::Letter { position, .. } => found.push(Some(*position)),
                Step::Look { look, next } if holds(*look) => open.push(*next),
                Step::Look { .. } => {}
                Step::Ways { next, .. } => open.extend(next.iter().rev()),
                Step::Match => {
                    found.push(None);
                    break;
                }
            }
        }
        found
    }

    /// The step after a position.
    fn after(&self, position: usize) -> usize {
        match self.letters.get(position).map(|step| &self.steps[*step]) {
            Some(Step::Letter { next, .. }) => *next,
            _ => self.begin,
        }
    }
}

/// The matches of a pattern in a text.
#[derive(Debug)]
pub(super) struct Places<'p, 't> {
    positions: &'p Positions,
    program: &'p Program,
    text: &'t str,
    matcher: LookMatcher,
    /// The blocks of the text, and the sets of the places where they end.
    blocks: Vec<Block>,
    sets: Vec<u64>,
    open: Open,
    /// What can follow a step under assertions.
    next: HashMap<(usize, usize), Vec<Option<usize>>>,
}

#[derive(Debug)]
struct Block {
    range: Range<usize>,
    /// Whether a match can begin in it.
    begins: bool,
}

/// The block that is walked through: for each letter its place, its set, and whether a match can begin there.
#[derive(Debug, Default)]
struct Open {
    block: Option<usize>,
    places: Vec<usize>,
    sets: Vec<u64>,
    begins: Vec<bool>,
}

impl<'p, 't> Places<'p, 't> {
    /// The matches of a text that begin at byte `from` or later. Linear in the rest of the text. None are found
    /// where the work is cancelled.
    pub(super) fn new(
        positions: &'p Positions,
        program: &'p Program,
        text: &'t str,
        from: usize,
    ) -> Self {
        let mut made = Self {
            positions,
            program,
            text,
            matcher: LookMatcher::new(),
            blocks: Vec::new(),
            sets: Vec::new(),
            open: Open::default(),
            next: HashMap::new(),
        };
        let words = positions.words();
        let mut sets: Vec<Vec<u64>> = Vec::new();
        let mut set = vec![0; words];
        let mut end = text.len();
        while end > from {
            if stopped() {
                return made;
            }
            let rest = text.get(from..end).unwrap_or_default();
            let begin = rest
                .char_indices()
                .rev()
                .take(BLOCK)
                .last()
                .map_or(from, |(at, _)| from + at);
            sets.push(set.clone());
            let mut begins = false;
            made.back(begin..end, &mut set, |_, _, can| begins |= can);
            made.blocks.push(Block {
                range: begin..end,
                begins,
            });
            end = begin;
        }
        made.blocks.reverse();
        made.sets = sets.into_iter().rev().flatten().collect();
        made
    }

    fn held(&self, at: usize) -> usize {
        match self.positions.looks() {
            [] => 0,
            _ => self.positions.held(&self.matcher, self.text, at),
        }
    }

    /// Goes back over a range of the text, from the set of its end to the one of its begin. `each` gets each
    /// place, its set, and whether a match can begin there.
    fn back(
        &self,
        range: Range<usize>,
        set: &mut Vec<u64>,
        mut each: impl FnMut(usize, &[u64], bool),
    ) {
        let mut before = vec![0; set.len()];
        let mut held = self.held(range.end);
        let letters = self.text.get(range.clone()).unwrap_or_default();
        for (at, letter) in letters.char_indices().rev() {
            self.positions.before(held, letter, set, &mut before);
            std::mem::swap(set, &mut before);
            held = self.held(range.start + at);
            let begins = self.positions.begins(held, set);
            each(range.start + at, set, begins);
        }
    }

    /// Makes the sets of a block.
    fn open(&mut self, block: usize) {
        let Some(Block { range, .. }) = self.blocks.get(block) else {
            return;
        };
        if self.open.block == Some(block) {
            return;
        }
        let words = self.positions.words();
        let mut open = std::mem::take(&mut self.open);
        open.places.clear();
        open.sets.clear();
        open.begins.clear();
        open.block = Some(block);
        let end = self.sets.get(block * words..(block + 1) * words);
        let mut set = end.unwrap_or_default().to_vec();
        // From the last place to the first one.
        self.back(range.clone(), &mut set, |at, set, begins| {
            open.places.push(at);
            open.sets.extend(set);
            open.begins.push(begins);
        });
        self.open = open;
    }

    /// The first match that begins at byte `from` or later, `from` not being before those of earlier calls.
    pub(super) fn first(&mut self, from: usize) -> Option<Range<usize>> {
        let mut block = self.blocks.partition_point(|block| block.range.end <= from);
        while let Some(Block { begins, .. }) = self.blocks.get(block) {
            if stopped() {
                return None;
            }
            if *begins {
                self.open(block);
                // They descend.
                let later = self.open.places.partition_point(|place| *place >= from);
                let begin = (0..later).rev().find(|index| self.open.begins[*index]);
                if let Some(begin) = begin.and_then(|index| self.open.places.get(index)) {
                    return self.walk(*begin, block);
                }
            }
            block += 1;
        }
        // At the end of the text, unless the work was cancelled before its blocks were made.
        let end = self.text.len();
        let whole = self
            .blocks
            .last()
            .map_or(from == end, |block| block.range.end == end);
        (whole && self.positions.begins(self.held(end), &[])).then_some(end..end)
    }

    /// The preferred match that begins at a place of a block.
    fn walk(&mut self, begin: usize, mut block: usize) -> Option<Range<usize>> {
        let words = self.positions.words();
        let mut step = self.program.begin;
        let mut at = begin;
        // Places descend in an open block, so the next letter is the one before.
        let mut index = self.open.places.partition_point(|place| *place >= at);
        loop {
            if index == 0 && at < self.text.len() {
                block += 1;
                if stopped() {
                    return None;
                }
                self.open(block);
                index = self.open.places.len();
            }
            let held = self.held(at);
            let program = self.program;
            let looks = self.positions.looks();
            let ways = self.next.entry((held, step)).or_insert_with(|| {
                program.next(step, |look| {
                    let bit = looks.iter().position(|known| *known == look);
                    bit.is_some_and(|bit| held & 1 << bit != 0)
                })
            });
            let sets = if at < self.text.len() {
                self.open.sets.get((index - 1) * words..index * words)
            } else {
                None
            };
            let sets = sets.unwrap_or_default();
            let can = |position: usize| {
                let word = sets.get(position / 64);
                word.is_some_and(|word| word & 1 << (position % 64) != 0)
            };
            let way = ways.iter().find(|way| way.is_none_or(can))?;
            let Some(position) = *way else {
                return Some(begin..at);
            };
            step = program.after(position);
            index -= 1;
            at = match index {
                0 => self.blocks.get(block)?.range.end,
                _ => *self.open.places.get(index - 1)?,
            };
        }
    }
}

#[cfg(test)]
mod tests;
