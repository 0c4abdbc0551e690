//! "Did you mean": the known word nearest to one that is not known.

/// How alike two words must be for one to be suggested for the other: the share of letters
/// that need no change, from 0 to 1. Lower values suggest words that have nothing in common.
pub const SIMILARITY: f64 = 0.5;

/// The known word most like `word`, if any is at least [`SIMILARITY`] alike.
///
/// Ties go to the word that stands first in `known`. Swapped neighbours count as one change;
/// upper and lower case are told apart only in ties.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words are never typing mistakes for ours, and the comparison is quadratic.
    const LONGEST: usize = 32;
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in known {
        let likeness =
            strsim::normalized_damerau_levenshtein(&word, &candidate.to_ascii_lowercase());
        if likeness >= SIMILARITY && best.is_none_or(|(so_far, _)| likeness > so_far) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const PSEUDOS: [&str; 7] = ["pre", "core", "post", "depth", "first", "last", "nth"];

    #[test]
    fn finds_the_word_that_was_meant() {
        for (typed, meant) in [
            ("frist", "first"),
            ("lst", "last"),
            ("dept", "depth"),
            ("CORE", "core"),
            ("ntn", "nth"),
        ] {
            assert_eq!(nearest(typed, PSEUDOS), Some(meant), "{typed}");
        }
    }

    #[test]
    fn stays_silent_where_nothing_is_near() {
        for typed in ["", "summary", "xyz", &"first".repeat(100)] {
            assert_eq!(nearest(typed, PSEUDOS), None, "{typed}");
        }
    }
}
