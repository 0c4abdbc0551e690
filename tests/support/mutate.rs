//! Damage to inputs, the same on every run: bytes changed, parts cut out, repeated, exchanged, and tokens
//! of JSON put where they do not belong.

/// Damaged versions of an input, without end.
pub(crate) struct Mutations<'a> {
    good: &'a [u8],
    random: u64,
}

/// What is put into an input.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"0.1",
    b"\\ud800",
    b"\\u0000",
    b"\\",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"{\"root\":{}}",
    b"\"id\":\"x\",",
    b"9223372036854775808",
    b"[[[[[[[[",
    b"\"children\":[{\"children\":[",
    b"\x1f\x8b",
];

impl<'a> Mutations<'a> {
    pub(crate) fn of(good: &'a [u8]) -> Self {
        let random = good.iter().fold(88_172_645_463_325_252, |seed: u64, byte| {
            seed.rotate_left(5) ^ u64::from(*byte)
        });
        Self {
            good,
            random: random | 1,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % limit.max(1) as u64) as usize
    }

    /// A part of some bytes, of up to a quarter of them.
    fn part(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = (length - start).min(length / 4 + 1);
        start..start + self.below(most + 1)
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let part = self.part(bytes.len());
        let at = self.below(bytes.len() + 1);
        match self.below(9) {
            0 if !bytes.is_empty() => {
                let at = at.min(bytes.len() - 1);
                bytes[at] ^= 1 << self.below(8);
            }
            1 if !bytes.is_empty() => {
                let at = at.min(bytes.len() - 1);
                bytes[at] = self.below(256) as u8;
            }
            2 => drop(bytes.drain(part)),
            3 => {
                let copy = bytes[part].to_vec();
                bytes.splice(at..at, copy);
            }
            4 => bytes.truncate(at),
            5 => {
                let other = self.part(bytes.len());
                let copy = bytes[other].to_vec();
                bytes.splice(part, copy);
            }
            // Between two commas, where a value or a member is.
            6 => {
                let comma = |from: usize| bytes[from..].iter().position(|byte| *byte == b',');
                if let Some(start) = comma(at)
                    && let Some(length) = comma(at + start + 1)
                {
                    let token = TOKENS[self.random as usize % TOKENS.len()].to_vec();
                    bytes.splice(at + start + 1..at + start + 1 + length, token);
                }
            }
            _ => {
                let token = TOKENS[self.below(TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
        }
    }
}

impl Iterator for Mutations<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut bytes = self.good.to_vec();
        for _ in 0..1 + self.below(3) {
            self.damage(&mut bytes);
        }
        Some(bytes)
    }
}
