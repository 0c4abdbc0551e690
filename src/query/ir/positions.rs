//! Patterns as sets of positions: a search whose cost per letter is known before it begins.
//!
//! Each letter or class of a pattern is a position, and what a text has matched so far is a set of
//! positions, one bit each. A letter of the text keeps the positions that take it and replaces each by the
//! ones that may follow, most of them by a shift. So the cost of a letter depends on the pattern alone,
//! and not, as with automata whose states are made when they are met, on the text. Forwards it says whether there
//! is a match; backwards, from the end of a text, what can become one at each place. The module must not know selectors.

use std::collections::HashMap;

use regex_automata::util::look::{Look, LookMatcher};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use crate::support::cancel::stopped;

/// The most positions. More would not be cheap enough in any case.
const MAX_POSITIONS: usize = 8_192;

/// The most different assertions, such as `^` and `\b`: there is a table for each combination.
const MAX_LOOKS: usize = 4;

/// The most operations on words for each letter of a text.
const MAX_COST: usize = 208;

/// Letters between two looks at the token of the work.
const PIECE: usize = 1 << 14;

/// A pattern as positions.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    count: usize,
    /// Words of a set.
    words: usize,
    /// The class of each ASCII letter, and of the ranges of letters from these on.
    ascii: [u16; 128],
    ranges: Vec<(char, u16)>,
    /// For each class of letters, the positions that take one of it.
    takes: Vec<u64>,
    /// The assertions of the pattern. The number of a table has a bit for each.
    looks: Vec<Look>,
    tables: Vec<Table>,
}

/// What may follow a position where certain assertions hold.
#[derive(Clone, Debug, Default)]
struct Table {
    /// Whether the empty text matches.
    nullable: bool,
    /// The positions that a match can begin with.
    first: Vec<u64>,
    /// The positions that a match can end with.
    last: Vec<u64>,
    /// The positions that the next one follows, and those that follow themselves.
    shifts: Vec<u64>,
    loops: Vec<u64>,
    /// Positions and what else follows all of them: two sets, one behind the other.
    jumps: Vec<(Vec<u64>, Vec<u64>)>,
}

/// What a part of a pattern does, under certain assertions.
struct Part {
    nullable: bool,
    first: Vec<u32>,
    last: Vec<u32>,
}

/// Builds the tables of a pattern.
struct Builder {
    /// The letters that each position takes, as the number of a set.
    letters: Vec<usize>,
    sets: Vec<Vec<(char, char)>>,
    known: HashMap<Vec<(char, char)>, usize>,
    looks: Vec<Look>,
    /// The positions that follow each one, under the assertions of the table in work.
    follow: Vec<Vec<u32>>,
    /// The assertions that hold in the table in work.
    held: usize,
    /// The next position, and how many positions follow another so far.
    next: usize,
    links: usize,
}

/// The pattern has too many positions, links or assertions.
struct TooLarge;

impl Positions {
    /// The positions of a pattern; `None` if a letter would cost too much.
    pub(super) fn new(hir: &Hir) -> Option<Self> {
        let mut looks = Vec::new();
        for look in hir.properties().look_set().iter() {
            looks.push(Look::from_repr(look.as_repr())?);
        }
        if looks.len() > MAX_LOOKS {
            return None;
        }
        let mut builder = Builder {
            letters: Vec::new(),
            sets: Vec::new(),
            known: HashMap::new(),
            looks,
            follow: Vec::new(),
            held: 0,
            next: 0,
            links: 0,
        };
        let mut tables = Vec::new();
        for held in 0..1 << builder.looks.len() {
            let part = builder.table(hir, held).ok()?;
            let words = builder.letters.len().div_ceil(64).max(1);
            tables.push(Table::new(&part, &builder.follow, words)?);
        }
        let words = builder.letters.len().div_ceil(64).max(1);
        let mut made = Self {
            count: builder.letters.len(),
            words,
            ascii: [0; 128],
            ranges: Vec::new(),
            takes: Vec::new(),
            looks: builder.looks.clone(),
            tables,
        };
        made.add_letters(&builder);
        Some(made)
    }

    /// The number of positions.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The size of the tables, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let tables = self.tables.iter();
        let sets: usize = tables.map(|table| 4 + 2 * table.jumps.len()).sum();
        (sets * self.words + self.takes.len()) * 8 + self.ranges.len() * 8
    }

    /// Divides all letters into classes: letters that the same positions take.
    fn add_letters(&mut self, builder: &Builder) {
        let mut masks = vec![vec![0; self.words]; builder.sets.len()];
        for (position, set) in builder.letters.iter().enumerate() {
            if let Some(word) = masks[*set].get_mut(position / 64) {
                *word |= 1 << (position % 64);
            }
        }
        let mut cuts: Vec<char> = vec!['\0'];
        for (low, high) in builder.sets.iter().flatten() {
            cuts.push(*low);
            cuts.extend(after(*high));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut classes: HashMap<Vec<u64>, u16> = HashMap::new();
        for cut in cuts {
            let mut takes = vec![0; self.words];
            for (set, mask) in builder.sets.iter().zip(&masks) {
                let at = set.partition_point(|(_, high)| *high < cut);
                if set.get(at).is_some_and(|(low, _)| *low <= cut) {
                    takes
                        .iter_mut()
                        .zip(mask)
                        .for_each(|(all, own)| *all |= own);
                }
            }
            let next = classes.len() as u16;
            let all = &mut self.takes;
            let class = *classes.entry(takes).or_insert_with_key(|takes| {
                all.extend(takes);
                next
            });
            if self
                .ranges
                .last()
                .is_none_or(|(_, before)| *before != class)
            {
                self.ranges.push((cut, class));
            }
        }
        for letter in 0..128 {
            self.ascii[usize::from(letter)] = self.class(char::from(letter));
        }
    }

    /// The class of a letter.
    fn class(&self, letter: char) -> u16 {
        let at = self.ranges.partition_point(|(from, _)| *from <= letter);
        self.ranges
            .get(at.wrapping_sub(1))
            .map_or(0, |range| range.1)
    }

    /// The assertions that hold at a place of a text, a bit for each: the number of the table for it.
    pub(super) fn held(&self, matcher: &LookMatcher, text: &str, at: usize) -> usize {
        let mut held = 0;
        for (bit, look) in self.looks.iter().enumerate() {
            let holds = matcher.matches(*look, text.as_bytes(), at);
            held |= usize::from(holds) << bit;
        }
        held
    }

    /// The assertions of the pattern, in the order of the bits of [`Positions::held`].
    pub(super) fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The words of a set of positions.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// The positions that take `letter` so that a match can follow: `after` is the set of the place behind
    /// the letter, `held` what holds there.
    pub(super) fn before(&self, held: usize, letter: char, after: &[u64], set: &mut [u64]) {
        self.tables[held].back(after, self.takes(letter), set);
    }

    /// Whether a match can begin at a place with this set, where `held` holds.
    pub(super) fn begins(&self, held: usize, set: &[u64]) -> bool {
        let table = &self.tables[held];
        table.nullable
            || table
                .first
                .iter()
                .zip(set)
                .any(|(one, other)| one & other != 0)
    }

    /// The positions that take a letter.
    fn takes(&self, letter: char) -> &[u64] {
        let class = match self.ascii.get(letter as usize) {
            Some(class) => *class,
            None => self.class(letter),
        };
        let takes = usize::from(class) * self.words;
        &self.takes[takes..takes + self.words]
    }

    /// Whether the pattern matches anywhere in a text. Linear in the text; false where the work is
    /// cancelled.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let matcher = LookMatcher::new();
        let mut table = &self.tables[self.held(&matcher, text, 0)];
        if table.nullable {
            return true;
        }
        let mut now = table.first.clone();
        let mut next = vec![0; self.words];
        for (count, (at, letter)) in text.char_indices().enumerate() {
            if count % PIECE == PIECE - 1 && stopped() {
                return false;
            }
            if !self.looks.is_empty() {
                table = &self.tables[self.held(&matcher, text, at + letter.len_utf8())];
            }
            if table.step(&mut now, self.takes(letter), &mut next) {
                return true;
            }
            std::mem::swap(&mut now, &mut next);
        }
        false
    }
}

impl Table {
    /// The table of a pattern; `None` if a letter would cost too much.
    fn new(part: &Part, follow: &[Vec<u32>], words: usize) -> Option<Self> {
        let set = |positions: &[u32]| {
            let mut set = vec![0_u64; words];
            for position in positions {
                if let Some(word) = set.get_mut(*position as usize / 64) {
                    *word |= 1 << (position % 64);
                }
            }
            set
        };
        let (mut shifts, mut loops) = (Vec::new(), Vec::new());
        let mut jumps: HashMap<Vec<u32>, Vec<u32>> = HashMap::new();
        for (position, follow) in (0..).zip(follow) {
            let mut others = Vec::new();
            for next in follow {
                match next.checked_sub(position) {
                    Some(0) => loops.push(position),
                    Some(1) => shifts.push(position),
                    _ => others.push(*next),
                }
            }
            others.sort_unstable();
            others.dedup();
            if !others.is_empty() {
                jumps.entry(others).or_default().push(position);
                if cost(words, jumps.len()) > MAX_COST {
                    return None;
                }
            }
        }
        let mut jumps: Vec<(Vec<u32>, Vec<u32>)> =
            jumps.into_iter().map(|(to, from)| (from, to)).collect();
        jumps.sort_unstable();
        (cost(words, jumps.len()) <= MAX_COST).then(|| Self {
            nullable: part.nullable,
            first: set(&part.first),
            last: set(&part.last),
            shifts: set(&shifts),
            loops: set(&loops),
            jumps: jumps
                .iter()
                .map(|(from, to)| (set(from), set(to)))
                .collect(),
        })
    }

    /// Goes over one letter, which these positions take, to the place that the table is for. Returns
    /// whether a match ends there. `now` is changed.
    #[inline]
    fn step(&self, now: &mut [u64], takes: &[u64], next: &mut [u64]) -> bool {
        let mut any = 0;
        let mut ends = 0;
        let mut carry = 0;
        next.copy_from_slice(&self.first);
        let follow = self.shifts.iter().zip(&self.loops);
        let sets = takes.iter().zip(&self.last).zip(follow);
        for ((now, next), ((takes, last), (shifts, loops))) in
            now.iter_mut().zip(&mut *next).zip(sets)
        {
            *now &= takes;
            any |= *now;
            ends |= *now & last;
            let moved = *now & shifts;
            *next |= moved << 1 | carry | *now & loops;
            carry = moved >> 63;
        }
        if any != 0 {
            for (from, to) in &self.jumps {
                if now.iter().zip(from).any(|(now, from)| now & from != 0) {
                    next.iter_mut().zip(to).for_each(|(next, to)| *next |= to);
                }
            }
        }
        ends != 0 || self.nullable
    }
}

impl Table {
    /// Goes back over one letter, which these positions take, from the place that the table is for.
    #[inline]
    fn back(&self, after: &[u64], takes: &[u64], set: &mut [u64]) {
        let mut any = 0;
        let above = after.iter().skip(1).chain(&[0]);
        let follow = self.shifts.iter().zip(&self.loops).zip(&self.last);
        for ((set, (after, above)), ((shifts, loops), last)) in
            set.iter_mut().zip(after.iter().zip(above)).zip(follow)
        {
            any |= after;
            *set = last | (after >> 1 | above << 63) & shifts | after & loops;
        }
        if any != 0 {
            for (from, to) in &self.jumps {
                if after.iter().zip(to).any(|(after, to)| after & to != 0) {
                    set.iter_mut()
                        .zip(from)
                        .for_each(|(set, from)| *set |= from);
                }
            }
        }
        set.iter_mut()
            .zip(takes)
            .for_each(|(set, takes)| *set &= takes);
    }
}

/// What a letter costs in the worst case, in operations on words: each jump is also a branch that is hard to
/// foresee.
fn cost(words: usize, jumps: usize) -> usize {
    4 * words + jumps * (words + 3)
}

/// The letter after another one.
fn after(letter: char) -> Option<char> {
    match letter {
        '\u{d7ff}' => Some('\u{e000}'),
        _ => char::from_u32(letter as u32 + 1),
    }
}

impl Builder {
    /// The pattern where the assertions of `held` hold, and no others.
    fn table(&mut self, hir: &Hir, held: usize) -> Result<Part, TooLarge> {
        self.held = held;
        self.next = 0;
        self.links = 0;
        self.follow.clear();
        self.part(hir)
    }

    fn part(&mut self, hir: &Hir) -> Result<Part, TooLarge> {
        match hir.kind() {
            HirKind::Empty => Ok(Part::empty(true)),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| TooLarge)?;
                let mut all = Part::empty(true);
                for letter in text.chars() {
                    let one = self.position(vec![(letter, letter)])?;
                    all = self.then(all, one)?;
                }
                Ok(all)
            }
            HirKind::Class(class) => self.class(class),
            HirKind::Look(look) => {
                let at = self
                    .looks
                    .iter()
                    .position(|known| known.as_repr() == look.as_repr());
                let holds = at.is_some_and(|bit| self.held & 1 << bit != 0);
                Ok(Part::empty(holds))
            }
            HirKind::Repetition(repetition) => self.repetition(repetition),
            HirKind::Capture(capture) => self.part(&capture.sub),
            HirKind::Concat(parts) => {
                let mut all = Part::empty(true);
                for part in parts {
                    let part = self.part(part)?;
                    all = self.then(all, part)?;
                }
                Ok(all)
            }
            HirKind::Alternation(parts) => {
                let mut all = Part::empty(false);
                for part in parts {
                    let part = self.part(part)?;
                    all.nullable |= part.nullable;
                    all.first.extend(part.first);
                    all.last.extend(part.last);
                }
                Ok(all)
            }
        }
    }

    fn class(&mut self, class: &Class) -> Result<Part, TooLarge> {
        let letters = match class {
            Class::Unicode(class) => class
                .iter()
                .map(|range| (range.start(), range.end()))
                .collect(),
            // Bytes of valid UTF-8 alone are ASCII.
            Class::Bytes(class) => class
                .iter()
                .map(|range| (char::from(range.start()), char::from(range.end())))
                .collect(),
        };
        self.position(letters)
    }

    /// A position that takes one of these letters, which ascend.
    fn position(&mut self, letters: Vec<(char, char)>) -> Result<Part, TooLarge> {
        let at = self.next;
        if at == MAX_POSITIONS {
            return Err(TooLarge);
        }
        self.next += 1;
        self.follow.push(Vec::new());
        if self.letters.len() == at {
            let next = self.sets.len();
            let set = *self.known.entry(letters).or_insert_with_key(|letters| {
                self.sets.push(letters.clone());
                next
            });
            self.letters.push(set);
        }
        let at = at as u32;
        Ok(Part {
            nullable: false,
            first: vec![at],
            last: vec![at],
        })
    }

    fn link(&mut self, from: &[u32], to: &[u32]) -> Result<(), TooLarge> {
        self.links += from.len() * to.len();
        // A pattern that can be run cheaply has few.
        if self.links > 64 * MAX_POSITIONS {
            return Err(TooLarge);
        }
        for position in from {
            self.follow[*position as usize].extend(to);
        }
        Ok(())
    }

    fn then(&mut self, one: Part, other: Part) -> Result<Part, TooLarge> {
        self.link(&one.last, &other.first)?;
        let mut made = Part {
            nullable: one.nullable && other.nullable,
            first: one.first,
            last: other.last,
        };
        if one.nullable {
            made.first.extend(&other.first);
        }
        if other.nullable {
            made.last.extend(one.last);
        }
        Ok(made)
    }

    /// The copies of a part one behind the other, of which some must be there.
    fn repetition(&mut self, repetition: &Repetition) -> Result<Part, TooLarge> {
        let Repetition { min, max, sub, .. } = repetition;
        let properties = sub.properties();
        if properties.minimum_len() == Some(0) && !properties.look_set().is_empty() {
            return self.copies(repetition);
        }
        let copies = max.unwrap_or((*min).max(1));
        let mut all = Part::empty(true);
        let mut before: Vec<u32> = Vec::new();
        for copy in 0..copies {
            let part = self.part(sub)?;
            if max.is_none() && copy + 1 == copies {
                self.link(&part.last, &part.first)?;
            }
            match copy {
                0 => {
                    all.first = part.first;
                    all.nullable = part.nullable || *min == 0;
                }
                _ => self.link(&before, &part.first)?,
            }
            // A part that may be empty is as good as left out, so each copy can be the last.
            if all.nullable || copy + 1 >= *min {
                all.last.extend(&part.last);
            }
            before = part.last;
        }
        Ok(all)
    }

    /// As [`Builder::repetition`], of a part that is empty at some places and not at others, so that any
    /// copy can be the first or the last.
    fn copies(&mut self, repetition: &Repetition) -> Result<Part, TooLarge> {
        let Repetition { min, max, sub, .. } = repetition;
        let copies = max.unwrap_or((*min).max(1));
        let mut all = Part::empty(true);
        for copy in 0..copies {
            let mut part = self.part(sub)?;
            if max.is_none() && copy + 1 == copies {
                self.link(&part.last, &part.first)?;
            }
            part.nullable |= copy >= *min;
            all = self.then(all, part)?;
        }
        Ok(all)
    }
}

impl Part {
    /// Without positions: what matches the empty text, or nothing.
    fn empty(nullable: bool) -> Self {
        Self {
            nullable,
            first: Vec::new(),
            last: Vec::new(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
