//! Matches against those of the regex crate, on a table and on random patterns, each way by itself.

use proptest::prelude::*;
use regex::Regex;

use super::super::pattern::Patterns;
use super::super::positions::tests::any_pattern;
use super::*;

/// The matches of each way: all that the pattern finds, and the bounded way alone from each place on.
fn agrees(pattern: &str, text: &str) -> Result<(), String> {
    let regex = Regex::new(pattern).expect(pattern);
    let expected: Vec<Range<usize>> = regex.find_iter(text).map(|found| found.range()).collect();
    let compiled = Patterns::new().compile(pattern).expect(pattern);
    let found: Vec<Range<usize>> = compiled.find_all(text).collect();
    if found != expected {
        return Err(format!(
            "{pattern} in {text:?}: {found:?}, not {expected:?}"
        ));
    }
    let hir = super::super::form::simplified(regex_syntax::parse(pattern).expect(pattern));
    let Some(positions) = Positions::new(&hir) else {
        return Ok(());
    };
    let program = Program::new(&hir);
    let mut all = Places::new(&positions, &program, text, 0);
    for from in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        let expected = regex.find_at(text, from).map(|found| found.range());
        let alone = Places::new(&positions, &program, text, from).first(from);
        let found = all.first(from);
        if found != expected || alone != expected {
            return Err(format!(
                "{pattern} in {text:?} from {from}: {found:?} and {alone:?}, not {expected:?}"
            ));
        }
    }
    Ok(())
}

#[test]
fn finds_what_the_regex_crate_finds() {
    let long = "ab é".repeat(3_000) + "z" + &"ba\n".repeat(2_000) + "z";
    for pattern in [
        "a|ab",
        "ab|a",
        "(a|ab)(c|bcd)?",
        "a*?b",
        "(a*?)*b?",
        "(|a)*",
        "(|a)+",
        "(a|)*?b",
        "(a*b*)*é",
        "(?:b??a?){2,3}",
        "(?:|a|\\b){2,}",
        "a{1,3}?",
        "(?:a|b){2,}?",
        "(?s).*z|.",
        ".*z|a",
        "(?m)^.*$",
        r"\b\w+\b",
        "[ab]{2}a[^z]*",
        "",
        "$|^",
        r"[^\s\S]|a",
        "x{0}b",
    ] {
        for text in ["", "a", "ab", "abcd", "aab é\nb", "éab\n\n"] {
            agrees(pattern, text).expect("the same matches");
        }
        let regex = Regex::new(pattern).expect(pattern);
        let hir = super::super::form::simplified(regex_syntax::parse(pattern).expect(pattern));
        let positions = Positions::new(&hir).expect(pattern);
        let program = Program::new(&hir);
        for from in [0, 1, 5, 14_998, long.len() - 1, long.len()] {
            let found = Places::new(&positions, &program, &long, from).first(from);
            let expected = regex.find_at(&long, from).map(|found| found.range());
            assert_eq!(found, expected, "{pattern} from {from}");
        }
    }
}

/// So many matches that the search begins to count its work; each reads the rest of the text.
#[test]
fn many_matches_are_found_in_linear_time() {
    let text = "ab".repeat(50_000);
    for pattern in ["(?s).*z|.", "(?s)a.*z|b", "[ab]*z|[ab]{3}"] {
        let regex = Regex::new(pattern).expect(pattern);
        let compiled = Patterns::new().compile(pattern).expect(pattern);
        // The crate takes quadratic time, so the first hundred are compared.
        let expected: Vec<_> = regex
            .find_iter(&text)
            .take(100)
            .map(|found| found.range())
            .collect();
        let found: Vec<_> = compiled.find_all(&text).collect();
        assert_eq!(found[..100], expected, "{pattern}");
        assert!(found.len() > 30_000, "{pattern}");
    }
}

proptest! {
    #[test]
    fn finds_what_the_regex_crate_finds_with_any_pattern(
        pattern in any_pattern(), texts in prop::collection::vec("[abé \n]{0,9}", 8)
    ) {
        for text in &texts {
            if let Err(difference) = agrees(&pattern, text) {
                prop_assert!(false, "{}", difference);
            }
        }
    }
}
