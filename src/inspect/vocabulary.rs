//! Counts by the vocabularies that OpenAI publishes.
//!
//! A text is cut into pieces by the pattern that belongs to the vocabulary, and each piece is merged
//! into tokens alone. The library `tiktoken` does both. On texts that are not ASCII its cutting can
//! take quadratic time, and does not know that `ſ` is a letter `s`. So those are cut here, with
//! the same pattern, and pieces that are not ASCII are merged here with the library's vocabulary.
//!
//! This file knows texts. It must not know models.

use hashbrown::{DefaultHashBuilder, HashTable};
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::sync::LazyLock;
use tiktoken::CoreBpe;

/// A vocabulary with its pattern.
#[derive(Clone, Copy, Debug)]
pub(super) enum Vocabulary {
    O200k,
    Cl100k,
}

impl Vocabulary {
    fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    /// What texts that are not ASCII need. Made when the first one is counted.
    fn own(self) -> Option<&'static Own> {
        static O200K: LazyLock<Option<Own>> =
            LazyLock::new(|| Own::new(Vocabulary::O200k, &O200K_PIECES));
        static CL100K: LazyLock<Option<Own>> =
            LazyLock::new(|| Own::new(Vocabulary::Cl100k, &CL100K_PIECES));
        match self {
            Self::O200k => O200K.as_ref(),
            Self::Cl100k => CL100K.as_ref(),
        }
    }
}

/// The tokens of a text.
pub(super) fn count(vocabulary: Vocabulary, text: &str) -> u64 {
    let Some(encoding) = tiktoken::get_encoding(vocabulary.name()) else {
        return 0;
    };
    let own = match text.is_ascii() {
        true => None,
        false => vocabulary.own(),
    };
    let Some(own) = own else {
        return encoding.count(text) as u64;
    };
    let counts = pieces(&own.cutter, text).map(|piece| match piece.is_ascii() {
        true => encoding.count(piece),
        false => own.ranks.merge(piece.as_bytes()),
    });
    counts.sum::<usize>() as u64
}

/// What a piece is, the first that fits: words, up to three digits, signs, lines that end. White space
/// comes after them.
const O200K_PIECES: [&str; 5] = [
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'(?:s|t|re|ve|m|ll|d))?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'(?:s|t|re|ve|m|ll|d))?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
];

/// As above; here the ends of `it's` and the like come first, and are pieces.
const CL100K_PIECES: [&str; 5] = [
    r"(?i:'(?:s|t|re|ve|m|ll|d))",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
];

/// The place of the pattern of white space in [`Own::cutter`].
const SPACE: usize = 1;

/// What is done here instead of in the library.
struct Own {
    cutter: Regex,
    ranks: Ranks,
}

impl Own {
    fn new(vocabulary: Vocabulary, pieces: &[&str]) -> Option<Self> {
        let cutter = Regex::new_many(&[&*pieces.join("|"), r"\s+"]).ok()?;
        let ranks = Ranks::new(tiktoken::get_encoding(vocabulary.name())?);
        Some(Self { cutter, ranks })
    }
}

/// The pieces of a text, which together are the text. The last sign of white space between other
/// pieces begins the next one, unless it is alone.
fn pieces<'a>(cutter: &'a Regex, text: &'a str) -> impl Iterator<Item = &'a str> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let input = Input::new(text).range(from..).anchored(Anchored::Yes);
        let found = cutter.find(input)?;
        let mut piece = text.get(found.range())?;
        if found.pattern().as_usize() == SPACE && found.end() < text.len() {
            let last = piece.chars().next_back().map_or(0, char::len_utf8);
            if last < piece.len() {
                piece = piece.get(..piece.len() - last)?;
            }
        }
        from += piece.len();
        (!piece.is_empty()).then_some(piece)
    })
}

/// The tokens of a vocabulary by their bytes. A token of a lower rank is merged first.
struct Ranks {
    bytes: Vec<u8>,
    /// Where the bytes of a token start and end, and its rank.
    tokens: HashTable<(u32, u32, u32)>,
    hasher: DefaultHashBuilder,
}

impl Ranks {
    fn new(encoding: &CoreBpe) -> Self {
        let count = encoding.vocab_size();
        let mut ranks = Self {
            bytes: Vec::new(),
            tokens: HashTable::with_capacity(count),
            hasher: DefaultHashBuilder::default(),
        };
        for rank in 0..count as u32 {
            let token = encoding.decode(&[rank]);
            let start = ranks.bytes.len() as u32;
            ranks.bytes.extend(&token);
            let entry = (start, ranks.bytes.len() as u32, rank);
            let Self {
                bytes,
                tokens,
                hasher,
            } = &mut ranks;
            let hash = |entry: &(u32, u32, u32)| hasher.hash_one(slice(bytes, entry));
            let hashed = hash(&entry);
            tokens.insert_unique(hashed, entry, hash);
        }
        ranks
    }

    fn get(&self, token: &[u8]) -> Option<u32> {
        let same = |entry: &(u32, u32, u32)| slice(&self.bytes, entry) == token;
        let found = self.tokens.find(self.hasher.hash_one(token), same);
        found.map(|&(_, _, rank)| rank)
    }

    /// The number of tokens of a piece: of all neighbouring parts whose bytes together are a token,
    /// those of the lowest rank become one, the leftmost first, until none is left. `n log n`.
    fn merge(&self, piece: &[u8]) -> usize {
        if self.get(piece).is_some() {
            return 1;
        }
        let count = piece.len();
        // Where the part that starts here ends; 0 if none does. And where the part before it starts.
        let mut ends: Vec<usize> = (1..=count).collect();
        let mut before: Vec<usize> = (0..=count).map(|at| at.saturating_sub(1)).collect();
        let mut parts = count;
        let mut pairs = BinaryHeap::new();
        let pair = |start: usize, middle: usize, end: usize| {
            let rank = self.get(piece.get(start..end)?)?;
            Some(Reverse((rank, start, middle, end)))
        };
        pairs.extend((2..=count).filter_map(|end| pair(end - 2, end - 1, end)));
        while let Some(Reverse((_, start, middle, end))) = pairs.pop() {
            // One of the two may have been merged with another since.
            if ends.get(start) != Some(&middle) || ends.get(middle) != Some(&end) {
                continue;
            }
            ends[start] = end;
            ends[middle] = 0;
            before[end] = start;
            parts -= 1;
            if let Some(&next) = ends.get(end) {
                pairs.extend(pair(start, end, next));
            }
            if start > 0 {
                pairs.extend(pair(before[start], start, end));
            }
        }
        parts
    }
}

fn slice<'a>(bytes: &'a [u8], &(start, end, _): &(u32, u32, u32)) -> &'a [u8] {
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Vocabulary, pieces};

    #[test]
    fn pieces_are_the_whole_text() {
        for (text, o200k, cl100k) in [
            ("", "", ""),
            (
                "It's 1234  été!",
                "It's| |123|4| | été|!",
                "It|'s| |123|4| | été|!",
            ),
            ("I'ſ", "I'ſ", "I|'ſ"),
            (
                "\u{2003}\u{a0}x ",
                "\u{2003}|\u{a0}x| ",
                "\u{2003}|\u{a0}x| ",
            ),
            ("é \n x", "é| \n| x", "é| \n| x"),
            ("e\u{301}A//\n", "e\u{301}|A|//\n", "e|\u{301}A|//\n"),
        ] {
            for (vocabulary, expected) in [(Vocabulary::O200k, o200k), (Vocabulary::Cl100k, cl100k)]
            {
                let own = vocabulary.own().expect("a pattern");
                let found: Vec<&str> = pieces(&own.cutter, text).collect();
                assert_eq!(found.join("|"), expected, "{vocabulary:?}");
            }
        }
    }

    #[test]
    fn pieces_are_merged_as_the_library_does() {
        for vocabulary in [Vocabulary::O200k, Vocabulary::Cl100k] {
            let own = vocabulary.own().expect("a vocabulary");
            let library = tiktoken::get_encoding(vocabulary.name()).expect("a vocabulary");
            for word in [
                "a",
                "supercalifragilistic",
                "ababababababab",
                "xyzzyqwertzuiop",
            ] {
                let word = word.repeat(9);
                assert_eq!(
                    own.ranks.merge(word.as_bytes()),
                    library.count(&word),
                    "{word}"
                );
            }
        }
    }
}
