//! The mistakes of meaning: what is wrong, the remark at its place, and what to write instead.
//!
//! `%1`, `%2` and `%3` stand for words of the selector, or for advice that depends on them.

use std::fmt::Display;

use crate::query::ir::edition::Edition;
use crate::query::syntax::Span;
use crate::support::diag::{Code, Diagnostic, SelectorEdit};

use super::lowerer::{Lowerer, MAX_MISTAKES};

pub(super) struct LoweringFault {
    code: Code,
    message: &'static str,
    label: &'static str,
    /// Empty where nothing helps.
    help: &'static str,
}

macro_rules! faults {
    ($($NAME:ident $Code:ident: $message:literal, $label:literal, $help:literal;)*) => {
        $(pub(super) const $NAME: &LoweringFault = &LoweringFault {
            code: Code::$Code,
            message: $message,
            label: $label,
            help: $help,
        };)*
    };
}

faults! {
    // Properties.
    EMPTY_BRACKETS SelectorInvalid: "`%1` without a property", "nothing is compared",
        "write a property such as `role='user'`, or `role` for nodes that have one";
    JOINED_PROPS SelectorInvalid: "properties are separated by white space or a comma", "joined to the value before it",
        "write `(%1, %2)`";
    SEARCHED_NUMBER SelectorInvalid: "`~` searches texts, and `%1` is a number", "not with a number",
        "write `%1=1` or another comparison";
    NO_NAME SelectorInvalid: "`%1` is not an attribute name", "a name starts with a letter or `_`", "quote it: `[%2]`";
    NO_SNAPSHOT FacetNeedsSnapshot: "`%1` needs a snapshot", "known in a snapshot only",
        "start the selector with a time such as `@t0`";
    NO_SNAPSHOT_HERE FacetNeedsSnapshot: "`%1` needs a snapshot, and a mutation takes no time", "known in a snapshot only", "%2";
    ORDERED_LIST SelectorInvalid: "a list is compared with `=` or `!=`", "not with this comparison", "";
    EMPTY_LIST SelectorInvalid: "an empty list equals nothing", "no value is named", "write `%1=null` for nodes without one";
    LONG_LIST Limit: "a list has at most %1 values, this one has %2", "too many", "";
    NO_NUMBER SelectorInvalid: "expected a number for `%1`, found `%2`", "not a number and not `null`", "%3";
    LARGE_INTEGER SelectorInvalid: "the number is too large", "integers go from -9223372036854775808 to 9223372036854775807", "%1";
    LARGE_DECIMAL SelectorInvalid: "the number is too large", "beyond the range of a double", "%1";
    // Bodies.
    FILTERED_NONE SelectorInvalid: "`none` takes nothing but controls", "nothing can be filtered out of it",
        "write `none` alone after the time";
    TIME_ALONE SelectorInvalid: "a time alone selects nothing", "what is selected is missing", "write `%1 *` for every node";
    CONTROL_ALONE SelectorInvalid: "a control needs something to arrange", "what is selected is missing", "write `* %1`";
    EMPTY SelectorInvalid: "the selector is empty", "nothing is selected", "write `*` for every node";
    MANY_GROUPS Limit: "a union has at most %1 groups, this one has %2", "one group too many", "";
    MANY_STEPS Limit: "a group has at most %1 steps, this one has %2", "one step too many", "";
    BEHIND_SEARCH SelectorInvalid: "only filters and controls may follow here", "the selector is a search: `#word`, then `[…]`",
        "attach the brackets to their step: `#hero[ttl=1] .cb`";
    SHALLOW_SEARCH SelectorInvalid: "`?` looks one level below a position", "a position is missing",
        "write `(d1) ? {…}`, or `?? {…}` to search everywhere";
    // Filters and controls.
    PAGE_SIZE SelectorInvalid: "`@p` needs the size of a page", "a page of what size?", "add `@limit=10`";
    MODE_RANGE SelectorInvalid: "`@mode` needs a range", "there is one snapshot, or a list of all", "%1";
    UNIQUE_PLACE SelectorInvalid: "`@unique` has no meaning in a place", "a place is one node, not a list",
        "leave it out; `@first` takes the first of several nodes";
    CONTROL_TWICE SelectorInvalid: "`@%1` is given twice", "the second one", "";
    LIMIT_AND_FIRST SelectorInvalid: "`@limit` and `@first` exclude each other", "one limit is enough", "`@first` is `@limit=1`";
    NO_VALUE_HERE SelectorInvalid: "`@%1` takes no value", "remove this", "";
    LATE_HISTORY SelectorInvalid: "the time is written at the start of a selector", "not expected here",
        "move it to the front: `@history .cb`";
    UNKNOWN_CONTROL SelectorInvalid: "unknown control `@%1`", "no such control", "%2";
    CONTROL_NUMBER SelectorInvalid: "`@%1` needs a number", "the value is missing", "write `@%1=10`";
    CONTROL_NO_NUMBER SelectorInvalid: "expected a whole number, found `%2`", "a number belongs here", "write `@%1=10`";
    PAGE_ZERO SelectorInvalid: "pages count from 1", "the first page is 1", "write `@p=1`";
    CONTROL_VALUE SelectorInvalid: "`@%1` needs a value", "the value is missing", "the values are %2";
    UNKNOWN_VALUE SelectorInvalid: "unknown %1 `%2`", "no such value", "%3";
    // Depths.
    NO_DEPTH SelectorInvalid: "expected a depth, found nothing", "no depth is named",
        "write `:depth(1)`, `:depth(1-3)` or `:depth(>=1)`";
    NO_DEPTH_IN_SET SelectorInvalid: "expected a depth, found nothing", "no depth is named", "write `:depth({1,2})`";
    MANY_DEPTHS Limit: "a depth set has at most %1 values, this one has %2", "too many", "";
    REVERSED_DEPTHS SelectorInvalid: "reversed depth range", "the smaller depth comes first", "write `%1..%2`";
    EQUAL_DEPTH SelectorInvalid: "a depth takes no `=`", "write the number alone", "write `:depth(%1)`";
    // Positions.
    NO_HOPS SelectorInvalid: "a position without hops", "nothing is named",
        "write `(d1)` for the newest turn, `(d0)` for the active head";
    MANY_HOPS Limit: "a position has at most %1 hops, this one has %2", "one hop too many", "";
    LATE_DEPTH SelectorInvalid: "depth hops come first", "after another hop", "move it to the front: `(d1, cont, block)`";
    LOOSE_GROUP SelectorInvalid: "a group `(…)` follows a class", "no class directly before it",
        "use brackets here: `*[role='user']`, `0[role='user']`";
    SPACED_HOP SelectorInvalid: "a hop has no white space inside", "one hop, or several without commas between them",
        "write `*:block`, `cont[offset=0]`; hops are separated by commas";
    RANGE_OF_HOPS SelectorInvalid: "only depths have ranges", "not a depth on both sides", "write `d1..d3`";
    DEPTH_WITH_PARTS SelectorInvalid: "a depth hop takes nothing after it", "not expected here",
        "test the container with `seg`: `(d1, seg[role='user'])`";
    KIND_ALONE SelectorInvalid: "a kind needs a class", "no class before it", "write `*:block.call`, or `*[kind='call']`";
    BEHIND_HOP SelectorInvalid: "unexpected `%1`", "not expected here", "hops are separated by commas";
    PSEUDO_IN_HOP SelectorInvalid: "`:%1` is not a kind, and hops take no pseudo-classes", "a kind belongs here",
        "write a chain: `depth(1) > .cb:first`";
    NO_CLASS SelectorInvalid: "`%1` is not a class", "a class belongs here", "%2";
    DEEP_HOP SelectorInvalid: "the number is too large", "no turn is as deep", "";
    UNKNOWN_HOP SelectorInvalid: "unknown hop `%1`", "no such hop", "%2";
    EARLY_INSERTION SelectorInvalid: "`%1` is an insertion point", "not at the end", "%2";
    INSERTION_WITH_PARTS SelectorInvalid: "`%1` is an insertion point", "it takes nothing after it", "%2";
    TWO_INSERTIONS SelectorInvalid: "two insertion points", "the second one", "%1 is one: leave out the comma after it";
    CHILD_ZERO SelectorInvalid: "children count from 1", "child 0 does not exist",
        "write `-1` for before the first child, `+1` for after it";
    LATE_CHILD SelectorInvalid: "the number is too large", "no node has as many children", "write `end` for after the last child";
    INSERTION SelectorInvalid: "%1 makes the position an insertion point", "nothing to select here", "%2";
    // Steps.
    NO_ROOT SelectorInvalid: "expected a root after `^`", "the root is missing", "%2";
    UNKNOWN_ROOT SelectorInvalid: "unknown root `^%1`", "no such root", "%2";
    FOREIGN_PSEUDO SelectorInvalid: "expected a kind, found the pseudo-class `:%1` of CSS", "not a kind",
        "a kind of that name is written `[kind='%1']`";
    EMPTY_PART SelectorInvalid: "a type has no empty part", "a `:` without a word after it", "write `.cb:note`, or `.cb` alone";
    NTH_ZERO SelectorInvalid: "`:nth` counts from 1", "the first is 1", "write `:nth(1)`, or `:last` for the last";
    PSEUDO_NUMBER SelectorInvalid: "expected a number after `:%1`", "the number is missing", "write `:%1(1)`";
    UNKNOWN_PSEUDO SelectorInvalid: "unknown pseudo-class `:%1`", "no such pseudo-class", "%2";
    // Conditions.
    EMPTY_CONDITION SelectorInvalid: "expected a selector in `:%1(…)`", "nothing is named", "write `:%1%2`";
    CONDITION_ALONE SelectorInvalid: "expected a selector after `:%1`", "the selector is missing", "write `:%1(.cb)`";
    CHILD_INSIDE SelectorInvalid: "a selector in `:%1(…)` does not start with `>`", "not below the node",
        "`:has(> .cb)` is about the children of the node";
    CONDITION_STEPS SelectorInvalid: "`:%1(…)` takes tests of one node", "a second step", "what is below a node is tested by `:has(…)`";
    CONDITION_PICKS SelectorInvalid: "`:%1(…)` takes tests of one node", "a pick is about several",
        "write the pick behind it: `.cb:not(:pre):first`";
    MANY_INNER Limit: "a condition has at most %1 selectors, this one has %2", "too many", "leave some out";
    WITHIN_ELSEWHERE SelectorInvalid: "`:%1(…)` takes no `within`", "not expected here",
        "`:after(…)` and `:before(…)` take it";
    WITHIN_EARLY SelectorInvalid: "`within` is written last", "not expected here", "write `:after(.mt, .cb, within=2)`";
    WITHIN_NUMBER SelectorInvalid: "expected a whole number of turns, found `%1`", "a number belongs here",
        "write `within=2`; 0 is the same turn";
    WITHIN_LARGE SelectorInvalid: "the number is too large", "no depths differ by as much", "leave `within` out";
    // Times.
    NO_TIME_HERE SelectorInvalid: "a mutation takes no time, it changes the working state", "no time is expected here",
        "leave the time out";
    OLDEST_ALONE SelectorInvalid: "`@t-*` is an end of a range", "no snapshot by itself",
        "write `@t0..@t-*` for all snapshots as a range, `@*` for all as a list";
    WILD_TIME SelectorInvalid: "`@%1*` is not a time", "no snapshot by itself", "write `@*` for all snapshots";
    FUTURE SelectorInvalid: "`@t%1` is not a time", "nothing is newer than `@t0`", "write `@t-%1` for %1 commits back";
    MIXED_RANGE SnapshotRangeKindMismatch: "both ends of a range are of one kind",
        "one counts commits, the other names a cycle", "write `@t-3..@t0` or `@c10..@c20`";
    WILD_END SnapshotRangeWildcard: "`*` cannot be an end of a range", "not an end",
        "write `@t-*` for the oldest snapshot, or `@*` alone for all";
}

impl LoweringFault {
    fn filled(template: &str, words: &[&dyn Display]) -> String {
        let mut out = String::with_capacity(template.len() + 16);
        let mut parts = template.split('%');
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let number = part.bytes().next().unwrap_or(b'0').wrapping_sub(b'1');
            if let Some(word) = words.get(usize::from(number)) {
                out.push_str(&word.to_string());
            }
            out.push_str(part.get(1..).unwrap_or_default());
        }
        out
    }
}

impl Lowerer {
    /// Records a mistake, and returns that there is no value: `None` or `false`.
    pub(super) fn fault<T: Default>(
        &mut self,
        span: Span,
        fault: &LoweringFault,
        words: &[&dyn Display],
    ) -> T {
        self.mistake(span, fault, words, None)
    }

    /// As [`Lowerer::fault`], with the text that replaces a place and undoes the mistake.
    pub(super) fn mended<T: Default>(
        &mut self,
        span: Span,
        fault: &LoweringFault,
        words: &[&dyn Display],
        place: Span,
        text: impl Into<String>,
    ) -> T {
        self.mistake(span, fault, words, Some(SelectorEdit::new(place, text)))
    }

    /// As [`Lowerer::fault`], with the replacement that undoes the mistake, if it is known.
    pub(super) fn mistake<T: Default>(
        &mut self,
        span: Span,
        fault: &LoweringFault,
        words: &[&dyn Display],
        edit: Option<SelectorEdit>,
    ) -> T {
        let message = LoweringFault::filled(fault.message, words);
        let help = LoweringFault::filled(fault.help, words);
        self.record(fault.code, span, message, fault.label, help, edit)
    }

    /// Records a mistake in words of its own.
    pub(super) fn record<T: Default>(
        &mut self,
        code: Code,
        span: Span,
        message: String,
        label: &str,
        help: String,
        edit: Option<SelectorEdit>,
    ) -> T {
        if self.errors.len() < MAX_MISTAKES {
            let mut error = Diagnostic::error(code, message).at(span, label);
            if !help.is_empty() {
                error.set_help(help);
            }
            edit.into_iter().for_each(|edit| error.add_edit(edit));
            self.errors.push(error);
        }
        T::default()
    }

    /// Refuses `what` unless the edition is at least `since`. `instead` is how the edition spells
    /// it, if it can.
    pub(super) fn needs(
        &mut self,
        since: Edition,
        span: Span,
        what: &str,
        instead: Option<String>,
    ) -> bool {
        self.edition >= since
            || self.lenient
            || match instead {
                Some(instead) => {
                    let help = format!("write `{instead}`, or choose edition `{since}`");
                    self.lacks(since, span, what, help)
                }
                None => self.lacks(since, span, what, format!("edition `{since}` has it")),
            }
    }

    /// Refuses `what`, which the edition lacks and `since` has.
    pub(super) fn lacks<T: Default>(
        &mut self,
        since: Edition,
        span: Span,
        what: &str,
        help: String,
    ) -> T {
        let message = format!("{what} is not part of edition `{}`", self.edition);
        let label = format!("needs edition `{since}`");
        self.record(Code::Edition, span, message, &label, help, None)
    }
}
