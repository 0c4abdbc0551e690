//! How two texts differ: in a time, a counter, an id, white space, the order of keys, or in what they
//! say.
//!
//! The texts are JSON, as a provider is sent them. This file must not know requests.

use crate::render::canonical;
use regex_automata::meta::Regex;
use std::sync::LazyLock;

/// In what two different texts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextChange {
    WhiteSpace,
    Time,
    Counter,
    Id,
    /// JSON objects with the same members in another order, or values in another spelling.
    Spelling,
    /// The older text, and more after it.
    Extended,
    Other,
}

/// Dates, times of day, and seconds or smaller units since 1970.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\\.?";
    let day = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?";
    let clock = "[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?";
    let zone = "(?: ?(?:[AaPp]\\.?[Mm]\\.?|Z|UTC|GMT|[A-Z]{2,4}T|[+-][0-9]{2}:?[0-9]{2}))?";
    regex(&format!(
        "(?:{day} )?(?:\
         [0-9]{{4}}[-/.][0-9]{{1,2}}[-/.][0-9]{{1,2}}(?:[T ,]+{clock}{zone})?\
         |[0-9]{{1,2}}[-/.][0-9]{{1,2}}[-/.][0-9]{{4}}(?:[T ,]+{clock}{zone})?\
         |{month} [0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? [0-9]{{4}})?(?:[T ,]+(?:at )?{clock}{zone})?\
         |[0-9]{{1,2}}(?:st|nd|rd|th)? {month}(?:,? [0-9]{{4}})?(?:[T ,]+(?:at )?{clock}{zone})?\
         |{clock}{zone})\
         |\\b1[4-9][0-9]{{8}}(?:[0-9]{{3}}|[0-9]{{6}}|[0-9]{{9}}|\\.[0-9]+)?\\b\
         |\\b{day}\\b"
    ))
});

static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| regex("[0-9]+(?:[.,][0-9]+)*"));

/// Universally unique ids, hexadecimal digests, and ids that begin with what they are an id of.
static ID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(
        "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\
         |[A-Za-z]{2,16}[_-][A-Za-z0-9_-]{6,}\
         |\\b[0-9a-fA-F]{7,128}\\b\
         |\\b[A-Za-z0-9_-]{16,}\\b",
    )
});

static SPACE: LazyLock<Option<Regex>> = LazyLock::new(|| regex("(?:\\\\[nrt]|\\s)+"));

/// The patterns are constants, and a test compiles them.
fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// How the texts differ. Linear in both, but for the order of keys, which sorts them.
pub(super) fn compare(older: &str, newer: &str) -> TextChange {
    let equal = |regex: &LazyLock<Option<Regex>>, with: &str, only: fn(&str) -> bool| {
        regex.as_ref().is_some_and(|regex| {
            masked(older, regex, with, only) == masked(newer, regex, with, only)
        })
    };
    let any = |_: &str| true;
    if equal(&SPACE, "", any) {
        TextChange::WhiteSpace
    } else if equal(&TIME, "\u{1}", any) || differs_in_time(older, newer) {
        TextChange::Time
    } else if equal(&NUMBER, "\u{1}", any) {
        TextChange::Counter
    } else if equal(&ID, "\u{1}", has_digit) {
        TextChange::Id
    } else if is_json(older) && is_json(newer) && canonical(older) == canonical(newer) {
        TextChange::Spelling
    } else if newer.starts_with(unclosed(older)) {
        TextChange::Extended
    } else {
        TextChange::Other
    }
}

fn is_json(text: &str) -> bool {
    text.starts_with(['{', '['])
}

/// An id has a digit; a word has none.
fn has_digit(text: &str) -> bool {
    text.contains(|letter: char| letter.is_ascii_digit())
}

/// A text without what closes it: quotes, brackets, commas.
fn unclosed(text: &str) -> &str {
    text.trim_end_matches(['"', '}', ']', ','])
}

/// The text with every match replaced.
fn masked(text: &str, regex: &Regex, with: &str, only: fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for found in regex.find_iter(text) {
        if only(&text[found.range()]) {
            out.push_str(&text[end..found.start()]);
            out.push_str(with);
            end = found.end();
        }
    }
    out.push_str(&text[end..]);
    out
}

/// Whether the first byte that differs is in a time on both sides, whatever follows.
fn differs_in_time(older: &str, newer: &str) -> bool {
    let at = common_prefix(older, newer);
    let Some(regex) = TIME.as_ref() else {
        return false;
    };
    // The start of a number alone says little, so the whole match has to be around the byte.
    let around = |text: &str| {
        let mut found = regex.find_iter(text);
        let found = found.find(|found| found.end() > at)?;
        (found.start() <= at && found.len() > 4).then(|| found.start())
    };
    around(older).is_some_and(|start| Some(start) == around(newer))
}

/// The bytes that two texts have in common at their beginning, in whole characters.
pub(super) fn common_prefix(older: &str, newer: &str) -> usize {
    let bytes = older.bytes().zip(newer.bytes());
    let mut same = bytes.take_while(|(a, b)| a == b).count();
    while !older.is_char_boundary(same) || !newer.is_char_boundary(same) {
        same -= 1;
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_differ_in_what_they_differ_in() {
        for regex in [&TIME, &NUMBER, &ID, &SPACE] {
            assert!(regex.is_some());
        }
        for (older, newer, change) in [
            ("\"a  b\"", "\"a b\"", TextChange::WhiteSpace),
            ("\"a\\nb\"", "\"a b\"", TextChange::WhiteSpace),
            (
                "\"It is 2026-01-02T10:00:00Z.\"",
                "\"It is 2026-01-02T10:00:01Z.\"",
                TextChange::Time,
            ),
            (
                "\"Today is Monday, March 3, 2026\"",
                "\"Today is Tuesday, March 4, 2026\"",
                TextChange::Time,
            ),
            (
                "\"now: 1767348000\"",
                "\"now: 1767348060\"",
                TextChange::Time,
            ),
            ("\"at 10:59\"", "\"at 11:00\"", TextChange::Time),
            (
                "\"3 Mar 2026, and all else too\"",
                "\"4 Mar 2026, and more\"",
                TextChange::Time,
            ),
            ("\"step 1 of 9\"", "\"step 2 of 9\"", TextChange::Counter),
            (
                "\"run 550e8400-e29b-41d4-a716-446655440000\"",
                "\"run 6ba7b810-9dad-11d1-80b4-00c04fd430c8\"",
                TextChange::Id,
            ),
            (
                "\"request req_01HXYZ9abc\"",
                "\"request req_02KLMN0xyz\"",
                TextChange::Id,
            ),
            (
                "{\"a\":1,\"b\":2}",
                "{\"b\":2,\"a\":1}",
                TextChange::Spelling,
            ),
            ("\"the end\"", "\"the end, and more\"", TextChange::Extended),
            ("\"refund\"", "\"exchange\"", TextChange::Other),
            ("\"step one\"", "\"step two\"", TextChange::Other),
        ] {
            assert_eq!(compare(older, newer), change, "{older} {newer}");
        }
    }

    #[test]
    fn a_common_prefix_ends_between_characters() {
        assert_eq!(common_prefix("aé", "aè"), 1);
        assert_eq!(common_prefix("abc", "ab"), 2);
        assert_eq!(common_prefix("", "x"), 0);
    }
}
