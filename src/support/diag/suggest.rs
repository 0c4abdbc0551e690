//! "Did you mean": the known word nearest to an unknown one.

/// The similarity from which a word is suggested: the share of letters that need no change, from
/// 0 to 1. Lower values suggest unrelated words.
pub const SIMILARITY: f64 = 0.5;

/// The word of `known` most similar to `word`, if its similarity is at least [`SIMILARITY`].
///
/// The first of several equally similar words wins. Swapped neighbours count as one change, and
/// case is ignored.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_at(SIMILARITY, word, known)
}

/// As [`nearest`], with another similarity: higher where the known words are many or arbitrary.
pub fn nearest_at<'a>(
    similarity: f64,
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Longer words are not typing mistakes for a known word, and the comparison is quadratic.
    const LONGEST: usize = 32;
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in known {
        let likeness =
            strsim::normalized_damerau_levenshtein(&word, &candidate.to_ascii_lowercase());
        if likeness >= similarity && best.is_none_or(|(so_far, _)| likeness > so_far) {
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
