//! A text as what another text lacks: a prompt that has the time in it is written once, not at every
//! step.
//!
//! Lengths are in UTF-16 code units, as scripts of a page count them. This file must not know blocks.

use serde::{Serialize, Serializer};

/// Texts of fewer bytes are written whole.
const LEAST_BYTES: usize = 256;

/// A text, whole or by another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written<'a> {
    Whole(&'a str),
    /// The start of text `base`, then `middle`, then the end of text `base`.
    Of {
        base: u32,
        head: usize,
        tail: usize,
        middle: &'a str,
    },
}

impl<'a> Written<'a> {
    /// `text` by the text `base`, which has a number, if that is less than half as long. Linear in both.
    pub(super) fn of(text: &'a str, base: Option<(u32, &str)>) -> Self {
        let Some((base, other)) = base.filter(|_| text.len() >= LEAST_BYTES) else {
            return Self::Whole(text);
        };
        let pairs = text.chars().zip(other.chars());
        let same = pairs.take_while(|(a, b)| a == b).map(|(letter, _)| letter);
        let (bytes, head) = sizes(same);
        let (rest, other) = (&text[bytes..], &other[bytes..]);
        let pairs = rest.chars().rev().zip(other.chars().rev());
        let same = pairs.take_while(|(a, b)| a == b).map(|(letter, _)| letter);
        let (bytes, tail) = sizes(same);
        let middle = &rest[..rest.len() - bytes];
        if middle.len() <= text.len() / 2 {
            Self::Of {
                base,
                head,
                tail,
                middle,
            }
        } else {
            Self::Whole(text)
        }
    }
}

/// Letters in bytes and in UTF-16 code units.
fn sizes(letters: impl Iterator<Item = char>) -> (usize, usize) {
    letters.fold((0, 0), |(bytes, units), letter| {
        (bytes + letter.len_utf8(), units + letter.len_utf16())
    })
}

/// A string, or `[base, head, tail, middle]`.
impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(text) => serializer.serialize_str(text),
            Self::Of {
                base,
                head,
                tail,
                middle,
            } => (base, head, tail, middle).serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Written;
    use proptest::prelude::*;

    fn read(text: &Written<'_>, bases: &[&str]) -> String {
        match text {
            Written::Whole(text) => (*text).to_owned(),
            Written::Of {
                base,
                head,
                tail,
                middle,
            } => {
                let base: Vec<u16> = bases[*base as usize].encode_utf16().collect();
                let mut units = base[..*head].to_vec();
                units.extend(middle.encode_utf16());
                units.extend(&base[base.len() - tail..]);
                String::from_utf16(&units).expect("whole characters")
            }
        }
    }

    proptest! {
        #[test]
        fn a_text_comes_back(
            start in "[aé😀]{0,200}", end in "[aé😀]{0,200}", a in "[aé😀]{0,9}", b in "[aé😀]{0,9}",
        ) {
            let (base, text) = (format!("{start}{a}{end}"), format!("{start}{b}{end}"));
            let written = Written::of(&text, Some((0, &base)));
            prop_assert_eq!(read(&written, &[&base]), text);
        }
    }

    #[test]
    fn a_long_text_is_what_changed() {
        let rules = "Answer in one sentence. ".repeat(40);
        let (base, text) = (format!("10:00 {rules}"), format!("10:01 {rules}"));
        let written = Written::of(&text, Some((7, &base)));
        let (head, tail) = (4, 1 + rules.len());
        assert_eq!(
            written,
            Written::Of {
                base: 7,
                head,
                tail,
                middle: "1"
            }
        );
        assert_eq!(Written::of(&rules, None), Written::Whole(&rules));
        assert_eq!(
            Written::of("short", Some((7, "short"))),
            Written::Whole("short")
        );
    }
}
