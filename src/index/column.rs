//! Integer columns packed to the width their values need.

use std::ops::Range;

/// An integer column: each value is a base plus a code of zero, one, two, four or eight bytes.
#[derive(Clone, Debug)]
pub struct IntColumn {
    base: i64,
    codes: Codes,
}

#[derive(Clone, Debug)]
pub(crate) enum Codes {
    Zero,
    /// Codes of a byte, of a column of few rows: they are where others have a pointer, as a session has many small
    /// segments. Past the last row they are 0.
    Few([u8; FEW]),
    /// As [`Codes::Few`], of two bytes.
    FewWide([u16; FEW_WIDE]),
    U8(Box<[u8]>),
    U16(Box<[u16]>),
    U32(Box<[u32]>),
    U64(Box<[u64]>),
}

/// As many as fit beside the tag.
const FEW: usize = 23;
const FEW_WIDE: usize = 11;

/// Packs 64 bytes, each 0 or 1, into bits.
#[inline]
fn pack(hits: &[u8; 64]) -> u64 {
    let (eights, _) = hits.as_chunks::<8>();
    eights.iter().enumerate().fold(0, |word, (at, eight)| {
        // The product has the low bits of the eight bytes in its highest byte.
        let byte = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word | byte << (8 * at)
    })
}

impl Codes {
    /// Packs `codes`, none of which is above `max`.
    pub(crate) fn pack(codes: impl ExactSizeIterator<Item = u64>, max: u64) -> Self {
        match max {
            0 => Self::Zero,
            0x1..=0xff if codes.len() <= FEW => {
                let mut few = [0; FEW];
                few.iter_mut()
                    .zip(codes)
                    .for_each(|(few, code)| *few = code as u8);
                Self::Few(few)
            }
            0x100..=0xffff if codes.len() <= FEW_WIDE => {
                let mut few = [0; FEW_WIDE];
                few.iter_mut()
                    .zip(codes)
                    .for_each(|(few, code)| *few = code as u16);
                Self::FewWide(few)
            }
            0x1..=0xff => Self::U8(codes.map(|code| code as u8).collect()),
            0x100..=0xffff => Self::U16(codes.map(|code| code as u16).collect()),
            0x1_0000..=0xffff_ffff => Self::U32(codes.map(|code| code as u32).collect()),
            _ => Self::U64(codes.collect()),
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: u32) -> u64 {
        let row = row as usize;
        match self {
            Self::Zero => 0,
            Self::Few(codes) => u64::from(codes[row]),
            Self::FewWide(codes) => u64::from(codes[row]),
            Self::U8(codes) => u64::from(codes[row]),
            Self::U16(codes) => u64::from(codes[row]),
            Self::U32(codes) => u64::from(codes[row]),
            Self::U64(codes) => codes[row],
        }
    }

    pub(crate) fn for_each_in(&self, rows: Range<u32>, mut visit: impl FnMut(u64)) {
        let at = rows.start as usize..rows.end as usize;
        match self {
            Self::Zero => at.for_each(|_| visit(0)),
            Self::Few(codes) => codes[at].iter().for_each(|&code| visit(code.into())),
            Self::FewWide(codes) => codes[at].iter().for_each(|&code| visit(code.into())),
            Self::U8(codes) => codes[at].iter().for_each(|&code| visit(code.into())),
            Self::U16(codes) => codes[at].iter().for_each(|&code| visit(code.into())),
            Self::U32(codes) => codes[at].iter().for_each(|&code| visit(code.into())),
            Self::U64(codes) => codes[at].iter().for_each(|&code| visit(code)),
        }
    }

    /// One bit for each of the rows `start..start + 64` whose code is in `low..=high`. Bits of
    /// rows past the end are undefined.
    #[inline]
    pub(crate) fn word_in(&self, start: u32, low: u64, high: u64) -> u64 {
        /// The scan, compiled for each width.
        macro_rules! scan {
            ($codes:expr, $type:ty) => {{
                let codes = $codes.get(start as usize..).unwrap_or(&[]);
                if low > u64::from(<$type>::MAX) {
                    return 0;
                }
                let low_code = low as $type;
                // `low <= code <= high` as one unsigned comparison: codes below `low` wrap to large numbers.
                let span = (high.min(u64::from(<$type>::MAX)) as $type).wrapping_sub(low_code);
                let holds = |code: &$type| code.wrapping_sub(low_code) <= span;
                match codes.first_chunk::<64>() {
                    // Compilers vectorise comparing into bytes and packing these, but not setting
                    // one bit after the other.
                    Some(codes) => {
                        let mut hits = [0_u8; 64];
                        for (hit, code) in hits.iter_mut().zip(codes) {
                            *hit = u8::from(holds(code));
                        }
                        pack(&hits)
                    }
                    None => codes
                        .iter()
                        .enumerate()
                        .fold(0, |word, (bit, code)| word | u64::from(holds(code)) << bit),
                }
            }};
        }
        if low > high {
            return 0;
        }
        match self {
            Self::Zero => {
                if low == 0 {
                    u64::MAX
                } else {
                    0
                }
            }
            Self::Few(codes) => scan!(codes, u8),
            Self::FewWide(codes) => scan!(codes, u16),
            Self::U8(codes) => scan!(codes, u8),
            Self::U16(codes) => scan!(codes, u16),
            Self::U32(codes) => scan!(codes, u32),
            Self::U64(codes) => scan!(codes, u64),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Zero | Self::Few(_) | Self::FewWide(_) => 0,
            Self::U8(codes) => codes.len(),
            Self::U16(codes) => codes.len() * 2,
            Self::U32(codes) => codes.len() * 4,
            Self::U64(codes) => codes.len() * 8,
        }
    }
}

impl IntColumn {
    pub fn new(values: &[i64]) -> Self {
        // Frame of reference: most columns of a segment (cycle, time, offset) vary little, so the distance to
        // the smallest value takes a byte or two. The subtraction wraps, which is right in two's complement
        // even where the values span more than an i64 holds.
        let first = values.first().copied().unwrap_or(0);
        let (base, max) = values.iter().fold((first, first), |(min, max), &value| {
            (min.min(value), max.max(value))
        });
        let code = |value: i64| value.wrapping_sub(base) as u64;
        Self {
            base,
            codes: Codes::pack(values.iter().map(|&value| code(value)), code(max)),
        }
    }

    /// The value of all rows, if the column has no other.
    #[inline]
    pub fn only(&self) -> Option<i64> {
        matches!(self.codes, Codes::Zero).then_some(self.base)
    }

    #[inline]
    pub fn get(&self, row: u32) -> i64 {
        self.base.wrapping_add(self.codes.get(row) as i64)
    }

    pub(crate) fn append_to(&self, out: &mut Vec<i64>, rows: Range<u32>) {
        out.reserve(rows.len());
        let base = self.base;
        self.codes
            .for_each_in(rows, |code| out.push(base.wrapping_add(code as i64)));
    }

    /// One bit for each of the rows `start..start + 64` whose value is in `low..=high`. Bits of
    /// rows past the end are undefined.
    #[inline]
    pub(crate) fn word_in(&self, start: u32, low: i64, high: i64) -> u64 {
        // The bounds are moved into the frame once, so that the scan compares codes and never decodes.
        if high < self.base || low > high {
            return 0;
        }
        let code = |value: i64| value.max(self.base).wrapping_sub(self.base) as u64;
        self.codes.word_in(start, code(low), code(high))
    }

    pub fn heap_bytes(&self) -> usize {
        self.codes.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::IntColumn;

    #[test]
    fn few_codes_take_the_place_of_a_pointer() {
        assert_eq!(size_of::<super::Codes>(), 24);
    }

    #[test]
    fn every_width_gives_values_back_and_finds_ranges() {
        for values in [
            vec![7; 100],
            (0..100).map(|value| value * 2 - 50).collect(),
            (0..100).map(|value| value * 600).collect(),
            (0..100).map(|value| value * 1_000_000).collect(),
            (0..100).map(|value| value * 1_000_000_000_000).collect(),
            vec![i64::MIN, -1, 0, 1, i64::MAX],
            (0..11).map(|value| value * 600).collect(),
            (0..12).map(|value| value * 600).collect(),
            (0..23).collect(),
            (0..24).collect(),
        ] {
            let column = IntColumn::new(&values);
            for (low, high) in [
                (0, 0),
                (-10, 600),
                (i64::MIN, i64::MAX),
                (1, 0),
                (i64::MAX, i64::MAX),
                (7, 7),
            ] {
                for start in [0_usize, 64] {
                    let mut expected = 0_u64;
                    for (bit, value) in values.iter().skip(start).take(64).enumerate() {
                        expected |= u64::from(low <= *value && *value <= high) << bit;
                    }
                    let rows = values.len().saturating_sub(start).min(64);
                    let real = if rows == 64 {
                        u64::MAX
                    } else {
                        (1 << rows) - 1
                    };
                    assert_eq!(column.word_in(start as u32, low, high) & real, expected);
                }
            }
            for (row, value) in values.iter().enumerate() {
                assert_eq!(column.get(row as u32), *value);
            }
        }
    }
}
