//! The habits of other languages, and slips of typing: the table of what is recognised.
//!
//! A habit looks at one lexeme and its surroundings, and answers with the slip it sees, if any.
//! None may match a selector's own syntax: they run only on texts that were refused, but a text
//! may have one mistake and much that is right.

mod apart;
mod common;
mod compare;
mod depths;
mod glyphs;
mod join;
mod positions;
mod props;
mod pseudos;
mod sentence;
mod steps;
mod time;
mod typing;
mod values;

use super::scan::{Kind, Scan};
use super::slip::{Accept, Slip};
use crate::query::ir::edition::Edition;

type Habit = fn(&Scan<'_>, usize) -> Option<Slip>;

/// The habits, from the most specific to the most general: the first that applies anywhere in the
/// text is undone first.
const HABITS: [Habit; 55] = [
    apart::text_alone,
    apart::ids,
    apart::subtraction,
    depths::last_words,
    sentence::redirected,
    positions::unwrapped,
    positions::regions,
    join::enclosed,
    values::hops,
    values::values,
    values::turned,
    steps::types,
    props::spellings,
    sentence::quoted,
    props::decimals,
    typing::doubled_quotes,
    typing::doubled_brackets,
    sentence::leading,
    steps::paths,
    typing::doubled,
    typing::doubled_child,
    typing::spaced_signs,
    sentence::select,
    sentence::piped_select,
    sentence::json_paths,
    values::filters,
    pseudos::css_pseudos,
    steps::indexes,
    sentence::pipes,
    sentence::limit,
    sentence::group_by,
    steps::fields,
    steps::introduced,
    steps::bare_conditions,
    props::calls,
    compare::value_first,
    compare::no_search,
    compare::within,
    compare::between,
    compare::is,
    props::negation,
    props::patterns,
    props::names,
    join::parens,
    join::props_or,
    join::props_and,
    compare::css_signs,
    compare::text_words,
    compare::signs,
    props::gaps,
    values::globs,
    join::union,
    join::steps_and,
    steps::combinators,
    steps::groups,
];

/// Those that look like a quote or bracket without its other half, and are undone before these.
const EARLY: [Habit; 6] = [
    apart::comments,
    apart::counts,
    apart::printed,
    apart::name_paths,
    depths::depths,
    values::bare_patterns,
];

/// Those that apply only if none of the others does.
const LAST: [Habit; 3] = [steps::bare_words, typing::order, sentence::trailing];

/// The slip of [`EARLY`] to undo next.
pub(super) fn early(text: &str) -> Option<Slip> {
    let scan = Scan::new(text);
    let places = 0..scan.lexemes.len();
    EARLY
        .iter()
        .flat_map(|habit| places.clone().map(move |index| (habit, index)))
        .filter(|(_, index)| scan.kind(*index) != Some(Kind::Space))
        .find_map(|(habit, index)| habit(&scan, index))
}

/// The slip to undo next. `accept` tells whether a text is a selector.
pub(super) fn find(text: &str, edition: Edition, accept: Accept<'_>) -> Option<Slip> {
    let mut scan = Scan::new(text);
    scan.edition = edition;
    if let Some(slip) = glyphs::glyphs(&scan).or_else(|| typing::backslashes(&scan)) {
        return Some(slip);
    }
    if let Some(slip) = time::time(text, accept) {
        return Some(slip);
    }
    let habits = HABITS.iter().chain(&LAST);
    let places = 0..scan.lexemes.len();
    habits
        .flat_map(|habit| places.clone().map(move |index| (habit, index)))
        .filter(|(_, index)| scan.kind(*index) != Some(Kind::Space))
        .find_map(|(habit, index)| habit(&scan, index))
}
