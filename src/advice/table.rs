//! The table of what people bring from other languages (LANGUAGE §11), and its lookup.
//!
//! | item of a pattern | lexemes |
//! |---|---|
//! | `NAME` | the name of an attribute; outside of brackets a word that stands alone |
//! | `WORD`, `NUMBER`, `VALUE`, `PATTERN`, `QUOTED` | one of these |
//! | `OP` | a comparison of any language |
//! | `BARE` | what white space, a comma or a bracket ends |
//! | `(…)`, `LIST` | a pair of parentheses, or of any brackets, with its content |
//! | `REST` | all up to the end of the selector, a limit, a comma, a pipe or a control |
//! | `START`, `END` | nothing: the start or the end of a property |
//! | `BEGIN`, `LAST` | nothing: the start of the selector after its time, or its end |
//! | `ALONE` | nothing: white space, brackets or the end |
//! | `CHILD`, `DEEP`, `SLASHES` | `/`, `//`, either of them |
//! | `a/b` | one of these lexemes, in any case |
//!
//! White space between lexemes does not matter. A row applies only to a text that was refused, so a
//! pattern may also match what is right elsewhere in the language.

use super::glyphs::glyphs;
use super::joins::{and, condition, or, order, parentheses};
use super::matching::{BracketPlace, Here, MistakeRow, lookup};
use super::scan::Scan;
use super::slip::{Accept, Slip};
use super::times::time;
use crate::query::ir::Edition;

const fn row(
    place: BracketPlace,
    pattern: &'static str,
    marked: (usize, usize),
    from: &'static str,
    expected: &'static str,
    here: Here,
) -> MistakeRow {
    MistakeRow {
        place,
        pattern,
        marked,
        from,
        expected,
        here,
    }
}

use BracketPlace::{In, Out};
use Here::{By, Nothing, Text};

const LIST: &str = "`=` and a list of values";
const SEARCH: &str = "`~` and a pattern";
const ANY_CASE: &str = "`(?i)` in the pattern";
const UNEQUAL: &str = "a comparison with `!=`";
const NAME: &str = "the name of an attribute";
const BRACKETS: &str = "properties in brackets";
const STEP: &str = "a step such as `.cb`";
const NO_SEARCH: &str = "`~` selects the nodes whose text matches; `:not([content~'…'])` behind a step selects the others";
const OPPOSITES: &str = "write each test with its opposite: `[role!='user']`, `[role=null]` for nodes without one; \
                         `:not(…)` behind a step turns any test";
const DOWN: &str = "a selector goes down only: from a node to its children (`>`) or to anything inside (white space)";
const PSEUDOS: &str =
    "the pseudo-classes are `:first`, `:last`, `:nth(2)`, `:pre`, `:core`, `:post` and `:depth(1)`";

/// The forms, the more specific before the more general: the first row that matches anywhere is applied
/// first.
#[rustfmt::skip]
static ROWS: &[MistakeRow] = &[
    // Names and values.
    row(Out, ". WORD", (1, 2), "not a class of nodes", "`{2:class}`", Text("{2:class}")),
    row(In, "START NAME OP", (2, 2), "the spelling of another tool", "`{2:header}`", Text("{2:header}{3}")),
    row(In, "OP true/false", (2, 2), "as in Python", "`{2:lower}`", Text("{1}{2:lower}")),
    row(In, "OP QUOTED", (2, 2), "as in SQL", "a text in `'` or `\"`", Text("{1}{2:backticks}")),
    row(In, "OP . NUMBER", (2, 3), "as in C", "digits on both sides of the dot", Text("{1}0.{3}")),
    row(In, "START QUOTED =/== NAME END", (2, 2), "as in C", "the name of an attribute on the left", Text("{4}={2}")),
    // Comparisons.
    row(In, "NAME =/== VALUE i END", (4, 4), "as in CSS", SEARCH, Text("{1}{3:i-is}")),
    row(In, "NAME ~/=~ VALUE i END", (4, 4), "as in CSS", ANY_CASE, Text("{1}{3:i-pattern}")),
    row(In, "NAME |= VALUE", (2, 2), "as in CSS", SEARCH, Text("{1}{3:starts}")),
    row(In, "NAME *= VALUE i END", (4, 4), "as in CSS", SEARCH, Text("{1}{3:i-has}")),
    row(In, "NAME ^= VALUE i END", (4, 4), "as in CSS", SEARCH, Text("{1}{3:i-starts}")),
    row(In, "NAME $= VALUE i END", (4, 4), "as in CSS", SEARCH, Text("{1}{3:i-ends}")),
    row(In, "NAME is not null/none/nil", (2, 4), "as in SQL", "`!=null`", Text("{1}!=null")),
    row(In, "NAME is null/none/nil", (2, 3), "as in SQL", "`=null`", Text("{1}=null")),
    row(In, "NAME is not VALUE", (2, 3), "as in SQL", "`!=`", Text("{1}!={4}")),
    row(In, "NAME is VALUE", (2, 2), "as in SQL", "`=`", Text("{1}={3}")),
    row(In, "NAME not in LIST", (2, 3), "as in SQL", "`!=` and a list of values", Text("{4:none}")),
    row(In, "NAME in LIST", (2, 2), "as in SQL", LIST, Text("{3:any}")),
    row(In, "NAME not like/ilike/contains/matches VALUE", (2, 3), "as in SQL", "a comparison", Nothing(NO_SEARCH)),
    row(In, "NAME !~ VALUE", (2, 2), "as in Perl", "a comparison", Nothing(NO_SEARCH)),
    row(In, "NAME OP PATTERN", (3, 3), "as in JavaScript", "a pattern in quotes", Text("{1}~{3:pattern}")),
    row(In, "~ BARE", (2, 2), "as in a shell", "a pattern in quotes", Text("~{2:quoted}")),
    row(In, "= ! VALUE", (1, 2), "a slip of typing", "`!=`", Text("!={3}")),
    row(In, "=/!= (…)", (2, 2), "as in SQL", "a list in `[…]`", Text("{1}[{2}]")),
    row(In, "NAME like VALUE", (2, 2), "as in SQL", SEARCH, Text("{1}{3:like}")),
    row(In, "NAME ilike VALUE", (2, 2), "as in SQL", SEARCH, Text("{1}{3:ilike}")),
    row(In, "NAME contains/includes/has/*= VALUE", (2, 2), "as in XPath and CSS", SEARCH, Text("{1}{3:has}")),
    row(In, "NAME startswith/starts_with/^= VALUE", (2, 2), "as in CSS", SEARCH, Text("{1}{3:starts}")),
    row(In, "NAME endswith/ends_with/$= VALUE", (2, 2), "as in CSS", SEARCH, Text("{1}{3:ends}")),
    row(In, "contains ( text ( ) , VALUE )", (1, 1), "as in XPath", SEARCH, Text("content{7:has}")),
    row(In, "contains/includes ( NAME , VALUE )", (1, 1), "as in XPath", SEARCH, Text("{3}{5:has}")),
    row(In, "starts-with/startswith ( NAME , VALUE )", (1, 1), "as in XPath", SEARCH, Text("{3}{5:starts}")),
    row(In, "NAME . contains/includes ( VALUE )", (3, 3), "as in JavaScript", SEARCH, Text("{1}{5:has}")),
    row(In, "NAME . startswith/starts_with ( VALUE )", (3, 3), "as in Python", SEARCH, Text("{1}{5:starts}")),
    row(In, "NAME . endswith/ends_with ( VALUE )", (3, 3), "as in Python", SEARCH, Text("{1}{5:ends}")),
    row(In, "exists/has ( NAME )", (1, 1), "as in jq", "the name alone", Text("{3}")),
    row(In, "NAME exists END", (2, 2), "as in SQL", "the name alone", Text("{1}")),
    row(In, "NAME between VALUE and VALUE", (2, 2), "as in SQL", "`>=` and `<=`", Text("{1}>={3}, {1}<={5}")),
    row(In, "NAME eq/equals/ne/lt/le/lte/gt/ge/gte/matches/regexp/rlike VALUE", (2, 2), "as in SQL and Perl", "`{2:op}`", Text("{1}{2:op}{3}")),
    row(In, "==/===/!==/<>/=>/=</=~/~=/~~", (1, 1), "as in Python, SQL and Perl", "`{1:op}`", Text("{1:op}")),
    // Negations.
    row(In, "START not/! ( NAME =/==/is VALUE )", (2, 2), "as in Python", UNEQUAL, Text("{4}!={6}")),
    row(In, "START not/! NAME =/==/is VALUE", (2, 2), "as in Python", UNEQUAL, Text("{3}!={5}")),
    row(In, "START not/! NAME !=/<> VALUE", (2, 2), "as in Python", "a comparison with `=`", Text("{3}={5}")),
    row(In, "START not/! NAME END", (2, 2), "as in Python", "`=null`", Text("{3}=null")),
    row(In, "START not/!", (2, 2), "as in Python", UNEQUAL, Nothing(OPPOSITES)),
    // Names.
    row(In, "START ? (…)", (2, 2), "as in JSONPath", NAME, Text("{3}")),
    row(In, "START @ . NAME", (2, 3), "as in JSONPath", NAME, Text("{4}")),
    row(In, "START @/./$ NAME", (2, 2), "as in XPath and jq", NAME, Text("{3}")),
    row(In, "START NAME : VALUE", (3, 3), "as in JSON", "`=`", Text("{2}={4}")),
    row(In, "; NAME OP", (1, 1), "as in CSS", "a comma", Text(", {2}{3}")),
    row(In, "START NAME VALUE END", (3, 3), "as in a shell", "`=` before a value", Text("{2:known}={3}")),
    row(In, "OP WORD WORD END", (2, 3), "as in a shell", "quotes around a text with spaces", Text("{1}'{2} {3}'")),
    // What joins properties.
    row(In, "OP VALUE NAME OP VALUE", (3, 3), "as in SQL", "a comma before the next property", Text("{1}{2}, {3}{4}{5}")),
    row(In, "START (…)", (2, 2), "as in SQL and Python", "properties without parentheses", By(parentheses)),
    row(In, "or/||/|", (1, 1), "as in SQL and Python", "a list of values or a union", By(or)),
    row(In, "and/&&/&", (1, 1), "as in SQL and Python", "a comma or another pair of brackets", By(and)),
    // Pseudo-classes.
    row(Out, ": first-child/first-of-type", (1, 2), "as in CSS", "`:first`", Text(":first")),
    row(Out, ": last-child/last-of-type", (1, 2), "as in CSS", "`:last`", Text(":last")),
    row(Out, ": nth-last-child/nth-last-of-type ( 1 )", (1, 2), "as in CSS", "`:last`", Text(":last")),
    row(Out, ": nth-child/nth-of-type ( NUMBER )", (1, 2), "as in CSS", "`:nth(…)`", Text(":nth({4})")),
    row(Out, ": nth-child/nth-of-type/nth-last-child/nth-last-of-type", (1, 2), "as in CSS", "`:nth(…)` with a number",
        Nothing("`:nth(2)` picks the second and `:last` the last; several are a union: `.cb:nth(1), .cb:nth(3)`")),
    row(Out, ": only-child/only-of-type", (1, 2), "as in CSS", "a pseudo-class of this language", Nothing(PSEUDOS)),
    row(Out, ": contains (…)", (1, 2), "as in jQuery", "a search of the content", Text("[content{3:has}]")),
    row(Out, ": not ( NAME =/== VALUE )", (1, 2), "as in CSS", UNEQUAL, Text("[{4}!={6}]")),
    row(Out, ": where/matches/any (…)", (1, 2), "as in CSS", "`:is(…)`", Text(":is({3})")),
    row(Out, ": depth/nth [ NUMBER ]", (3, 5), "as in Python", "parentheses", Text(":{2}({4})")),
    row(Out, ": WORD (…)", (1, 2), "a slip of typing", "`:{2:called}(…)`", Text(":{2:called}({3})")),
    row(Out, ": WORD ( ./#/^/*/[", (1, 2), "no selector goes inside", "a pseudo-class with a selector inside", By(condition)),
    row(Out, "within NUMBER", (1, 2), "a slip of typing", "`within={2}`", Text("within={2}")),
    row(In, "within NUMBER", (1, 2), "a slip of typing", "`within={2}`", Text("within={2}")),
    row(Out, "[ 0 ]", (1, 3), "as in Python", "`:first`", Text(":first")),
    row(Out, "[ - 1 ]", (1, 4), "as in Python", "`:last`", Text(":last")),
    row(Out, "[ last ( ) ]", (1, 5), "as in XPath", "`:last`", Text(":last")),
    row(Out, "[ : NUMBER ]", (1, 4), "as in Python", "`@limit={3}`", Text(" @limit={3}")),
    row(Out, "[ - NUMBER : ]", (1, 5), "as in Python", "depths",
        Nothing("`:last` picks the last of each place; the last three turns are `.mt:depth(1-3)`")),
    row(Out, "[ 0 : NUMBER ]", (1, 5), "as in Python", "`@limit={4}`", Text(" @limit={4}")),
    row(Out, "[ NUMBER : NUMBER ]", (1, 5), "as in Python", "depths",
        Nothing("turns count from the newest: `.mt:depth(1-3)`; several of one place are a union: `.cb:nth(2), .cb:nth(3)`")),
    row(Out, "[ - NUMBER ]", (1, 4), "as in Python", "a depth", Nothing("turns count from the newest: `.mt:depth(2)`")),
    row(Out, "[ * ]", (1, 3), "as in JSONPath", "a step alone, which selects all", Text("")),
    row(Out, "[ NUMBER ]", (1, 3), "as in XPath", "`:nth({2})`, which counts from 1", Text(":nth({2})")),
    // Paths.
    row(Out, "BEGIN . [ ] | .", (2, 5), "as in jq", STEP, Text(".")),
    row(Out, "BEGIN . [ ]", (2, 4), "as in jq", "`*`", Text("*")),
    row(Out, "BEGIN $ ./.. WORD", (2, 3), "as in JSONPath", STEP, Text("{4:step}")),
    row(Out, "BEGIN $ .", (2, 2), "as in JSONPath", STEP, Text(".")),
    row(Out, "BEGIN $", (2, 2), "as in JSONPath", STEP, Text("")),
    row(Out, "BEGIN SLASHES WORD", (2, 2), "as in XPath", STEP, Text("{3:step}")),
    row(Out, "BEGIN SLASHES", (2, 2), "as in XPath", STEP, Text("")),
    row(Out, "SLASHES ../parent/ancestor/following-sibling/preceding-sibling", (1, 2), "as in XPath", "`>` or white space", Nothing(DOWN)),
    row(Out, "CHILD WORD", (1, 1), "as in XPath", "`>`", Text(" > {2:step}")),
    row(Out, "DEEP WORD", (1, 1), "as in XPath", "white space", Text(" {2:step}")),
    row(Out, "CHILD", (1, 1), "as in XPath", "`>`", Text(" > ")),
    row(Out, "DEEP", (1, 1), "as in XPath", "white space", Text(" ")),
    row(Out, "->/>>/=>", (1, 1), "as in other languages", "`>`", Text(" > ")),
    row(Out, "BEGIN ! ./#/^", (2, 2), "as in a shell", STEP, Nothing(OPPOSITES)),
    row(Out, "~/< .", (1, 1), "as in CSS", "`>` or white space", Nothing(DOWN)),
    row(Out, "+ .", (1, 1), "as in CSS", "`>` or white space", Nothing(DOWN)),
    // Sentences.
    row(Out, "BEGIN select/find/get */id from WORD", (2, 4), "as in SQL", STEP, Text("{5:step}")),
    row(Out, "BEGIN select/find/get/from WORD", (2, 2), "as in SQL", STEP, Text("{3:step}")),
    row(Out, "BEGIN select/find/get/from", (2, 2), "as in SQL", STEP, Text("")),
    row(Out, "| select (…)", (1, 2), "as in jq", BRACKETS, Text("[{3}]")),
    row(Out, "| WORD", (1, 2), "as in jq and a shell", "the end of the selector",
        Nothing("the answer is the list of nodes; count, sort or format it with the options of the command")),
    row(Out, "where/with REST", (1, 1), "as in SQL", BRACKETS, Text("[{2}]")),
    row(Out, "limit/top NUMBER", (1, 2), "as in SQL", "`@limit={2}`", Text(" @limit={2}")),
    row(Out, "limit/mode/order =/: VALUE", (1, 1), "as in a shell", "`@{1}={3}`", Text(" @{1}={3}")),
    row(Out, "@ order = dfs", (4, 4), "as in graph algorithms", "`pre`", Text("@order=pre")),
    row(Out, "order/sort/group by", (1, 2), "as in SQL", "a control", By(order)),
    row(Out, ". WORD . WORD =/==/!=/<> VALUE", (3, 6), "as in jq", BRACKETS, Text(".{2}[{4}{5:op}{6}]")),
    row(Out, "NAME =/==/!=/<>/~ VALUE", (1, 3), "as in SQL", BRACKETS, Text("[{1}{2:op}{3}]")),
    // What joins selectors.
    row(Out, "and/&&/& [", (1, 1), "as in SQL and Python", "tests without a sign between them", Text("[")),
    row(Out, "and/&&/&", (1, 1), "as in SQL and Python", "one step or a union",
        Nothing("write `.cb, .mt` for both kinds of nodes, `.mt .cb` for blocks inside turns")),
    row(Out, "or/||/|/union", (1, 1), "as in SQL and Python", "a comma", By(or)),
    // Slips of typing.
    row(Out, "BEGIN QUOTED LAST", (2, 2), "as in a shell", "a selector without quotes around it", Text("{2:inner}")),
    row(Out, ":: first/last/nth/depth/pre/core/post", (1, 1), "as in CSS", "`:`", Text(":{2}")),
    row(Out, "##/++/^^/,,", (1, 1), "a slip of typing", "`{1:half}`", Text("{1:half}")),
    row(Out, "NAME ALONE", (1, 1), "a word without its sign", "a step such as `{1:step}`", Text("{1:step}")),
];

const SIZE: &str = "`bytes`, the size of the content";

/// Sizes, which other editions read as attributes of these names.
#[rustfmt::skip]
static SIZES: &[MistakeRow] = &[
    row(In, "len/length/size/strlen ( content/text ) OP NUMBER", (1, 4), "as in Python and SQL", SIZE, Text("bytes{5:op}{6}")),
    row(In, "content/text . length/len/size ( ) OP NUMBER", (1, 5), "as in Rust", SIZE, Text("bytes{6:op}{7}")),
    row(In, "content/text . length/len/size OP NUMBER", (1, 3), "as in JavaScript", SIZE, Text("bytes{4:op}{5}")),
];

/// The slip to undo next. `accept` tells whether a text is a selector of `edition`.
pub(super) fn find(text: &str, edition: Edition, accept: Accept<'_>) -> Option<Slip> {
    let scan = Scan::new(text);
    let sizes = match edition {
        Edition::Canonical => SIZES,
        Edition::V01 | Edition::Depth => &[],
    };
    let found = glyphs(text).or_else(|| time(text, accept));
    found.or_else(|| sizes.iter().chain(ROWS).find_map(|row| lookup(row, &scan)))
}

#[cfg(test)]
mod tests {
    use super::{Here, ROWS, SIZES};
    use crate::advice::matching::CONVERSIONS;

    /// A row that names an item its pattern does not have would never apply.
    #[test]
    fn rows_name_items_that_they_have() {
        for row in ROWS.iter().chain(SIZES) {
            let items = row.pattern.split_whitespace().count();
            assert!(
                (1..=row.marked.1).contains(&row.marked.0),
                "{}",
                row.pattern
            );
            assert!(row.marked.1 <= items, "{}", row.pattern);
            let text = match row.here {
                Here::Text(text) => text,
                _ => "",
            };
            for template in [text, row.expected] {
                for part in template.split('{').skip(1) {
                    let (inner, _) = part.split_once('}').expect("a closing brace");
                    let (item, how) = inner.split_once(':').unwrap_or((inner, ""));
                    let item: usize = item.parse().expect("the number of an item");
                    assert!((1..=items).contains(&item), "{}: {template}", row.pattern);
                    let known = CONVERSIONS.split(' ').any(|known| known == how);
                    assert!(how.is_empty() || known, "{template}");
                }
            }
        }
    }
}
