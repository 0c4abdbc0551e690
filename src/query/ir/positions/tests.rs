//! Positions against the regex crate, on a table and on random patterns.

use proptest::prelude::*;
use regex::Regex;

use super::super::form::simplified;
use super::*;

fn positions(pattern: &str) -> Option<Positions> {
    let hir = regex_syntax::parse(pattern).expect(pattern);
    Positions::new(&simplified(hir))
}

const TEXTS: [&str; 14] = [
    "", "a", "b", "ab", "ba", "aab", "abab", "a b", "é", "aéb", "a\nb", "\n", "ab\n", "ba é ab",
];

#[test]
fn agrees_with_the_regex_crate() {
    for pattern in [
        "a",
        "ab",
        "a|b",
        "a*b",
        "a+b",
        "a?b",
        "(ab)*",
        "(ab)+b",
        "a{2}",
        "a{2,}b",
        "a{1,3}b",
        "(a?b?){3}a",
        "(a?){2,3}b",
        "(a|b*){2}é",
        "^a",
        "b$",
        "^$",
        "^ab$",
        "(?m)^b",
        "(?m)a$",
        r"\ba",
        r"a\b",
        r"\Bb",
        r"\b\B",
        r"(?:^|b)a",
        r"(?:a|\b)b",
        r"(?:a|\b){2}b",
        r"(?:^|a){3}b",
        r"(?:a|$|\b){2,}b",
        r"(?:a|\b){0,2}é",
        r"(\ba){2}",
        r"(?:\b|a)*b",
        ".",
        "..",
        "(?s).{2}",
        r"\w\W",
        "[^a]b",
        r"(?i)AB",
        "(a*)*b",
        "(a*b*)*é",
        "(|a)+b",
        "a**b",
        r"(?-u)\w\b",
        "(?R)a$",
        r"\<a",
        "é+",
        ".*.*b",
    ] {
        let Some(made) = positions(pattern) else {
            panic!("{pattern} is too large");
        };
        let regex = Regex::new(pattern).expect(pattern);
        for text in TEXTS {
            let expected = regex.is_match(text);
            assert_eq!(made.is_match(text), expected, "{pattern} in {text:?}");
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_the_regex_crate_on_any_pattern(
        pattern in any_pattern(), texts in prop::collection::vec("[abé \n]{0,9}", 8)
    ) {
        let regex = Regex::new(&pattern).expect("a pattern");
        if let Some(made) = positions(&pattern) {
            for text in &texts {
                prop_assert_eq!(made.is_match(text), regex.is_match(text), "{} in {:?}", pattern, text);
            }
        }
    }
}

pub(in super::super) fn any_pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "é", ".", "[ab]", "[^a]", r"\w", r"\s", "^", "$", r"\b", r"\B", "", "ab",
        "(?m:^)",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "??", "{1,3}?",
                    "{2,}?"
                ])
            )
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
            inner.prop_map(|part| format!("({part})")),
        ]
    })
}
