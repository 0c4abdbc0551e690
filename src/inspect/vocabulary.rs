//! Counts by the vocabularies that OpenAI publishes.
//!
//! A text is cut into pieces by the pattern that belongs to the vocabulary, and each piece is merged
//! into tokens alone. The library `tiktoken` does both. On texts that are not ASCII its cutting can
//! take quadratic time, and does not know that `ſ` is a letter `s`. So those are cut here, with
//! the same pattern, and pieces that are not ASCII are merged here with the library's vocabulary.

use crate::support::cancel::ensure;
use hashbrown::{DefaultHashBuilder, HashTable};
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::sync::{LazyLock, OnceLock};
use tiktoken::CoreBpe;

pub(super) struct Vocabulary {
    /// What the library has of it, unpacked when it is first asked for.
    ///
    /// Not by its name: the library's table of names would bring every vocabulary into the program, and
    /// those of other models have five times the size of these two.
    library: LazyLock<CoreBpe>,
    pieces: &'static [&'static str],
    /// What texts that are not ASCII need. Made when the first one is counted.
    own: OnceLock<Option<Own>>,
}

pub(super) static O200K: Vocabulary =
    Vocabulary::new(tiktoken::encoding::o200k_base, &O200K_PIECES);
pub(super) static CL100K: Vocabulary =
    Vocabulary::new(tiktoken::encoding::cl100k_base, &CL100K_PIECES);

impl Vocabulary {
    const fn new(library: fn() -> CoreBpe, pieces: &'static [&'static str]) -> Self {
        Self {
            library: LazyLock::new(library),
            pieces,
            own: OnceLock::new(),
        }
    }

    fn own(&self) -> Option<&Own> {
        self.own.get_or_init(|| Own::new(self)).as_ref()
    }

    pub(super) fn count(&self, text: &str) -> u64 {
        if text.is_ascii() {
            count_ascii(self, text, STEP)
        } else {
            count_pieces(self, text)
        }
    }
}

/// The bytes that are counted between two looks at the token of the work.
const STEP: usize = 1 << 16;

/// The longest piece that the library merges. It takes a few milliseconds.
const LONGEST: usize = 1 << 14;

/// The tokens of a text that is ASCII, in parts of `step` bytes and somewhat more.
fn count_ascii(vocabulary: &Vocabulary, text: &str, step: usize) -> u64 {
    let (mut rest, mut tokens) = (text, 0);
    while !rest.is_empty() {
        ensure();
        let end = border(rest.as_bytes(), step).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        tokens += if part.len() > 2 * step.max(LONGEST) {
            count_pieces(vocabulary, part)
        } else {
            vocabulary.library.count(part) as u64
        };
        rest = after;
    }
    tokens
}

/// The first place from `from` on where both patterns cut an ASCII text, whatever else is in it. What is
/// before and after it can then be counted alone.
///
/// Between a letter and a digit, after words, and after ends of lines before a word: no alternative of the
/// patterns has two signs of these kinds beside each other, and none looks at what follows a letter or a digit.
fn border(text: &[u8], from: usize) -> Option<usize> {
    let is_border = |&at: &usize| {
        let (Some(before), Some(after)) = (text.get(at - 1), text.get(at)) else {
            return false;
        };
        let is_word = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphabetic);
        match (before, after) {
            (b'a'..=b'z' | b'A'..=b'Z', b'0'..=b'9') | (b'0'..=b'9', b'a'..=b'z' | b'A'..=b'Z') => {
                true
            }
            (b'a'..=b'z' | b'A'..=b'Z', b' ') => is_word(at + 1),
            (b'\n', _) => after.is_ascii_alphanumeric(),
            _ => false,
        }
    };
    (from.max(1)..text.len()).find(is_border)
}

/// The tokens of a text that is cut here, piece by piece.
fn count_pieces(vocabulary: &Vocabulary, text: &str) -> u64 {
    let encoding = &vocabulary.library;
    let Some(own) = vocabulary.own() else {
        return encoding.count(text) as u64;
    };
    let (mut tokens, mut counted) = (0, 0);
    for piece in pieces(&own.cutter, text) {
        tokens += if piece.is_ascii() && piece.len() <= LONGEST {
            encoding.count(piece)
        } else {
            own.ranks.merge(piece.as_bytes())
        };
        counted += piece.len();
        if counted >= STEP {
            counted = 0;
            ensure();
        }
    }
    tokens as u64
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

const CL100K_PIECES: [&str; 5] = [
    r"(?i:'(?:s|t|re|ve|m|ll|d))",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
];

/// The place of the pattern of white space in [`Own::cutter`].
const SPACE: usize = 1;

struct Own {
    cutter: Regex,
    ranks: Ranks,
}

impl Own {
    fn new(vocabulary: &Vocabulary) -> Option<Self> {
        let cutter = Regex::new_many(&[&*vocabulary.pieces.join("|"), r"\s+"]).ok()?;
        let ranks = Ranks::new(&vocabulary.library);
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
    /// those of the lowest rank become one, the leftmost first, until none is left. `n log n`, and some
    /// 24 bytes of memory for each of the piece; of one sign repeated linear, and none. Ends early if the work is
    /// cancelled.
    fn merge(&self, piece: &[u8]) -> usize {
        match self.repeated(piece) {
            Some(tokens) => tokens,
            // Places are numbers of four bytes. No text has such a word.
            None => piece
                .chunks(1 << 30)
                .map(|part| self.merge_parts(part))
                .sum(),
        }
    }

    /// [`Ranks::merge`] of a piece that is one sign again and again: each token is a number of signs, and equal tokens in a
    /// row are merged at once. `None` of another piece, and where a merge would not come before all others.
    fn repeated(&self, piece: &[u8]) -> Option<usize> {
        let starts = |byte: &u8| !matches!(byte, 0x80..=0xBF);
        let rest = piece.get(1..)?;
        let sign = rest
            .iter()
            .position(starts)
            .map_or(piece.len(), |at| at + 1);
        let count = piece.len() / sign;
        if count < 2
            || !piece.len().is_multiple_of(sign)
            || piece[sign..] != piece[..piece.len() - sign]
        {
            return None;
        }
        let parts = self.parts_of_sign(piece, sign)?;
        if parts > 1 {
            return Some(parts * count);
        }
        let rank = |signs: usize| self.get(piece.get(..signs * sign)?);
        // How many signs a token has, and how many such tokens are in a row.
        let mut runs: Vec<(usize, usize)> = vec![(1, count)];
        loop {
            ensure();
            let inside = |(at, run): (usize, &(usize, usize))| {
                let rank = rank(2 * run.0).filter(|_| run.1 > 1)?;
                Some((rank, at, true))
            };
            let beside = |(at, pair): (usize, &[(usize, usize)])| {
                Some((rank(pair[0].0 + pair[1].0)?, at, false))
            };
            let all = runs.iter().enumerate().filter_map(inside);
            let all = all.chain(runs.windows(2).enumerate().filter_map(beside));
            // The leftmost pair of a run is inside of it.
            let Some((first, at, is_inside)) =
                all.min_by_key(|&(rank, at, is_inside)| (rank, at, !is_inside))
            else {
                return Some(runs.iter().map(|run| run.1).sum());
            };
            let (signs, tokens) = runs[at];
            let around = at.checked_sub(1).into_iter().chain([at + 1]);
            let around = around.filter_map(|at| runs.get(at)).map(|run| run.0);
            let mut new = around
                .chain([signs, 2 * signs])
                .map(|other| rank(2 * signs + other));
            let new: [(usize, usize); 3] = if !is_inside {
                let (other, others) = runs.remove(at + 1);
                [(signs, tokens - 1), (signs + other, 1), (other, others - 1)]
            } else if new.all(|rank| rank.is_none_or(|rank| rank > first)) {
                [(2 * signs, tokens / 2), (signs, tokens % 2), (0, 0)]
            } else {
                [(2 * signs, 1), (signs, tokens - 2), (0, 0)]
            };
            runs.splice(at..=at, new);
            runs.retain(|run| run.1 > 0);
            runs.dedup_by(|run, before| {
                let is_same = run.0 == before.0;
                before.1 += if is_same { run.1 } else { 0 };
                is_same
            });
            if runs.len() > 64 {
                return None;
            }
        }
    }

    /// How many tokens each of the signs of a piece is where all are the same, before one is merged with the next. `None`
    /// if that comes first.
    fn parts_of_sign(&self, piece: &[u8], sign: usize) -> Option<usize> {
        let mut starts: Vec<usize> = (0..sign).collect();
        while starts.len() > 1 {
            let parts = starts.len();
            let start = |at: usize| starts[at % parts] + at / parts * sign;
            let rank = |from: usize, to: usize| self.get(piece.get(start(from)..start(to))?);
            let mut pairs: Vec<(u32, usize)> = (0..parts)
                .filter_map(|at| Some((rank(at, at + 2)?, at)))
                .collect();
            pairs.sort_unstable();
            let (first, at) = match pairs[..] {
                [] => return Some(parts),
                [(first, at), ..]
                    if at + 1 < parts && pairs.get(1).is_none_or(|next| next.0 > first) =>
                {
                    (first, at)
                }
                _ => return None,
            };
            // With what is before and after it, of another sign maybe; of two parts both are.
            let before = if at > 0 { at - 1 } else { parts - 1 };
            let mut new = [
                rank(before, before + 3),
                rank(at, at + 3),
                rank(at, at + 4).filter(|_| parts == 2),
            ]
            .into_iter();
            if new.any(|rank| rank.is_some_and(|rank| rank <= first)) {
                return None;
            }
            starts.remove(at + 1);
        }
        Some(1)
    }

    fn merge_parts(&self, piece: &[u8]) -> usize {
        if self.get(piece).is_some() {
            return 1;
        }
        let count = piece.len() as u32;
        // Where the part that starts here ends; 0 if none does. And where the part before it starts.
        let mut ends: Vec<u32> = (1..=count).collect();
        let mut before: Vec<u32> = (0..=count).map(|at| at.saturating_sub(1)).collect();
        let mut parts = piece.len();
        let pair = |start: u32, middle: u32, end: u32| {
            let rank = self.get(piece.get(start as usize..end as usize)?)?;
            Some(Reverse((rank, start, middle, end)))
        };
        let mut looks = 0_usize;
        let mut look = || {
            looks += 1;
            if looks.is_multiple_of(STEP) {
                ensure();
            }
        };
        let mut pairs = Vec::new();
        for end in 2..=count {
            pairs.extend(pair(end - 2, end - 1, end));
            look();
        }
        let mut pairs = BinaryHeap::from(pairs);
        while let Some(Reverse((_, start, middle, end))) = pairs.pop() {
            look();
            // One of the two may have been merged with another since.
            let at = start as usize;
            if ends.get(at) != Some(&middle) || ends.get(middle as usize) != Some(&end) {
                continue;
            }
            ends[at] = end;
            ends[middle as usize] = 0;
            before[end as usize] = start;
            parts -= 1;
            if let Some(&next) = ends.get(end as usize) {
                pairs.extend(pair(start, end, next));
            }
            if start > 0 {
                pairs.extend(pair(before[at], start, end));
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
    use super::{CL100K, O200K, count_ascii, count_pieces, pieces};
    use crate::support::cancel::Cancel;

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
            for (vocabulary, expected) in [(&O200K, o200k), (&CL100K, cl100k)] {
                let own = vocabulary.own().expect("a pattern");
                let found: Vec<&str> = pieces(&own.cutter, text).collect();
                assert_eq!(found.join("|"), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn pieces_are_merged_as_the_library_does() {
        for vocabulary in [&O200K, &CL100K] {
            let own = vocabulary.own().expect("a vocabulary");
            let library = &vocabulary.library;
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

    #[test]
    fn one_sign_again_and_again_is_merged_at_once() {
        for vocabulary in [&O200K, &CL100K] {
            let ranks = &vocabulary.own().expect("a vocabulary").ranks;
            let signs = " \n\t\0'-=_*#./aAzeé¿ßж語の한\u{3000}\u{a0}\u{301}\u{200b}😀🏳";
            let mut known = 0;
            for sign in signs.chars() {
                for count in (2..70).chain([127, 128, 129, 255, 257, 1_000, 4_099]) {
                    let piece = sign.to_string().repeat(count);
                    let found = ranks.repeated(piece.as_bytes());
                    known += usize::from(found.is_some());
                    let expected = ranks.merge_parts(piece.as_bytes());
                    assert_eq!(
                        found.unwrap_or(expected),
                        expected,
                        "{sign:?} {count} times"
                    );
                }
            }
            assert!(known > 1_500, "{known} are known");
            // Without memory for each sign, and soon.
            let cancel = Cancel::at_check(0);
            let piece = "a".repeat(10 << 20);
            assert!(
                cancel
                    .run(|| ranks.merge(piece.as_bytes()))
                    .expect("tokens")
                    > 1 << 16
            );
            assert!(cancel.checks().0 < 100, "{:?}", cancel.checks());
        }
    }

    /// Texts of signs at which the patterns cut, and at which they do not, in every order.
    #[test]
    fn a_text_in_parts_has_the_tokens_of_the_whole() {
        const SIGNS: [&str; 20] = [
            "a", "Word", "re", "LL", "1", "2345", " ", "  ", "\n", "\r\n", "\t", "'", "'s", "/",
            ".", "_", "{\"", "\u{b}", "-", "\n ",
        ];
        let mut random = 88_172_645_463_325_252_u64;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        for vocabulary in [&O200K, &CL100K] {
            for _ in 0..2_000 {
                let text: String = (0..1 + next(24))
                    .map(|_| SIGNS[next(SIGNS.len())])
                    .collect();
                let whole = vocabulary.library.count(&text) as u64;
                for step in [1, 2, 5] {
                    let parts = count_ascii(vocabulary, &text, step);
                    assert_eq!(parts, whole, "{text:?} in parts of {step}");
                }
                assert_eq!(count_pieces(vocabulary, &text), whole, "{text:?}");
            }
        }
    }

    #[test]
    fn one_long_text_stops() {
        let prose = "Some words and 1234 numbers.\n".repeat(40_000);
        // One piece without a place to cut, of letters and of white space.
        let (letters, space) = ("ab".repeat(200_000), " \t".repeat(200_000));
        for text in [&prose, &letters, &space, &format!("{prose}é")] {
            let free = Cancel::at_check(0);
            assert!(free.run(|| O200K.count(text)).is_ok());
            let (all, _) = free.checks();
            let least = (text.len() >> 18) as u64;
            assert!(all > least, "{all} looks at {} bytes", text.len());
            let cancel = Cancel::at_check(3);
            assert!(cancel.run(|| O200K.count(text)).is_err());
            assert!(cancel.checks().1 <= 4, "{:?}", cancel.checks());
        }
    }
}
