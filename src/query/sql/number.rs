//! Comparisons of a column of numbers with a literal, exact in every dialect (LANGUAGE §2, §5).
//!
//! A literal is rounded to the column's type when the statement is made: `ttl < 2.5` is `ttl < 3`. It must
//! not know where the column is.

use crate::query::ir::{CompareOp, ExactNumber, Literal};

use super::dialect::Dialect;
use super::words::{all, any};

/// The least `i64` that is not below a number, or, with `above`, that is above it.
fn cut_int(number: &ExactNumber<'_>, above: bool) -> Option<i64> {
    least(i64::MAX, |value| {
        reaches(ExactNumber::Int(i128::from(value)), number, above)
    })
}

/// Whether a value is not below a number, or, with `above`, is above it.
fn reaches(value: ExactNumber<'_>, number: &ExactNumber<'_>, above: bool) -> bool {
    let order = value.compare(number);
    if above { order.is_gt() } else { order.is_ge() }
}

/// The least integer up to `most` for which `far` holds, as it does for all above that one.
fn least(most: i64, far: impl Fn(i64) -> bool) -> Option<i64> {
    let (mut low, mut high) = (i128::from(i64::MIN), i128::from(most) + 1);
    while low < high {
        let middle = (low + high).div_euclid(2);
        if i64::try_from(middle).is_ok_and(&far) {
            high = middle
        } else {
            low = middle + 1
        }
    }
    i64::try_from(low).ok().filter(|found| *found <= most)
}

/// The least finite double that is not below a number, or, with `above`, that is above it.
fn cut_real(number: &ExactNumber<'_>, above: bool) -> Option<f64> {
    let far = |value: f64| reaches(ExactNumber::decimal(value), number, above);
    // Maps the bits of doubles to integers in the same order; it is its own inverse.
    let ordered = |bits: i64| bits ^ ((bits >> 63) as u64 >> 1) as i64;
    let of = |key: i64| f64::from_bits(ordered(key) as u64);
    let key_of = |value: f64| ordered(value.to_bits() as i64);
    let lowest = key_of(f64::MIN);
    let found = least(key_of(f64::MAX), |key| key >= lowest && far(of(key)));
    found.map(|key| of(key) + 0.0)
}

/// `column op number` for a column of `i64`, where the column is not null.
pub(super) fn int_compares(
    dialect: Dialect,
    column: &str,
    op: CompareOp,
    number: &ExactNumber<'_>,
) -> String {
    let above = matches!(op, CompareOp::Le | CompareOp::Gt);
    compares(column, op, cut_int(number, above), |value| {
        dialect.int(value)
    })
}

pub(super) fn compares<T>(
    column: &str,
    op: CompareOp,
    cut: Option<T>,
    write: impl Fn(T) -> String,
) -> String {
    match (op, cut) {
        (CompareOp::Lt | CompareOp::Le, Some(value)) => format!("{column} < {}", write(value)),
        (CompareOp::Lt | CompareOp::Le, None) => format!("{column} is not null"),
        (_, Some(value)) => format!("{column} >= {}", write(value)),
        (_, None) => "false".to_owned(),
    }
}

fn exact_int(number: &ExactNumber<'_>) -> Option<i64> {
    let equal = |value: &i64| ExactNumber::Int(i128::from(*value)).compare(number).is_eq();
    cut_int(number, false).filter(equal)
}

/// A column of `i64`, or null, compared with literals: any of them for `=`, none of them for `!=`.
pub(super) fn int_test(
    dialect: Dialect,
    column: &str,
    op: CompareOp,
    literals: &[&Literal],
) -> String {
    let null = literals.contains(&&Literal::Null);
    let numbers = || {
        literals
            .iter()
            .filter_map(|literal| ExactNumber::from_literal(literal))
    };
    match op {
        CompareOp::Eq | CompareOp::Ne => {
            let mut values: Vec<i64> = numbers().filter_map(|number| exact_int(&number)).collect();
            values.sort_unstable();
            values.dedup();
            let values: Vec<String> = values.iter().map(|value| dialect.int(*value)).collect();
            in_list(column, &values, null, op == CompareOp::Ne)
        }
        _ => any(numbers().map(|number| int_compares(dialect, column, op, &number))),
    }
}

/// Whether a column is one of some literals, or null if that is set; or, negated, the exact complement.
pub(super) fn in_list(column: &str, values: &[String], null: bool, negated: bool) -> String {
    let list = match values {
        [] => None,
        [one] => Some(format!(
            "{column} {} {one}",
            if negated { "<>" } else { "=" }
        )),
        many => {
            let word = if negated { "not in" } else { "in" };
            Some(format!("{column} {word} ({})", many.join(", ")))
        }
    };
    match (list, null, negated) {
        (None, true, false) => format!("{column} is null"),
        (None, true, true) => format!("{column} is not null"),
        (None, false, negated) => negated.to_string(),
        (Some(list), true, false) | (Some(list), false, true) => {
            format!("({column} is null or {list})")
        }
        (Some(list), false, false) | (Some(list), true, true) => list,
    }
}

/// A row of `attr` compared with a number: also where its text reads as one.
pub(super) fn attr_compares(
    dialect: Dialect,
    row: &str,
    op: CompareOp,
    number: &ExactNumber<'_>,
) -> Option<String> {
    let [int, real, big] = ["int", "real", "big"].map(|name| format!("{row}.{name}"));
    let far = digits_of(number)?;
    if op == CompareOp::Eq {
        let mut parts = Vec::new();
        if let Some(value) = exact_int(number) {
            parts.push(format!("{int} = {}", dialect.int(value)));
        }
        if let Some(value) = cut_real(number, false)
            && ExactNumber::decimal(value).compare(number).is_eq()
        {
            let same = format!("{real} = {}", dialect.real(value));
            let [int, big] = [&int, &big].map(|column| format!("{column} is null"));
            parts.push(all([int, big, same]));
        }
        if far.is_some() {
            parts.push(big_compares(dialect, &big, op, &far));
        }
        return Some(any(parts));
    }
    let above = matches!(op, CompareOp::Le | CompareOp::Gt);
    let reals = compares(&real, op, cut_real(number, above), |value| {
        dialect.real(value)
    });
    Some(any([
        int_compares(dialect, &int, op, number),
        all([format!("{int} is null"), format!("{big} is null"), reals]),
        big_compares(dialect, &big, op, &far),
    ]))
}

/// Whether a number is negative, and its digits, as a column of long digits sees it; `None` within `i64`,
/// where the sign of the column's digits decides.
type LongDigits = Option<(bool, String)>;

/// `None` for a decimal beyond all doubles.
fn digits_of(number: &ExactNumber<'_>) -> Option<LongDigits> {
    let least = ExactNumber::Int(i128::from(i64::MIN));
    let most = ExactNumber::Int(i128::from(i64::MAX));
    if number.compare(&least).is_ge() && number.compare(&most).is_le() {
        return Some(None);
    }
    Some(Some(match number {
        ExactNumber::Int(value) => (*value < 0, value.unsigned_abs().to_string()),
        // A double beyond 2^63 has no fraction, and all its digits are printed.
        ExactNumber::Decimal(value) => (*value < 0.0, format!("{:.0}", value.abs())),
        ExactNumber::Long(number) => {
            let (negative, digits) = number.whole()?;
            (negative, digits.to_owned())
        }
    }))
}

/// The digits of a number beyond `i64`, with its sign, compared with a number.
fn big_compares(dialect: Dialect, big: &str, op: CompareOp, far: &LongDigits) -> String {
    let minus = format!("substr({big}, 1, 1) = '-'");
    let plus = format!("substr({big}, 1, 1) <> '-'");
    let less = matches!(op, CompareOp::Lt | CompareOp::Le);
    match far {
        None if op == CompareOp::Eq => "false".to_owned(),
        None if less => minus,
        None => plus,
        Some((negative, digits)) => {
            let sign = if *negative { "-" } else { "" };
            let text = dialect.text(&format!("{sign}{digits}"));
            if op == CompareOp::Eq {
                return format!("{big} = {text}");
            }
            let length = digits.len() + sign.len();
            // Of two negative numbers the longer one is less.
            let mark = if less != *negative { "<" } else { ">" };
            let equal = matches!(op, CompareOp::Le | CompareOp::Ge);
            let equal = if equal { "=" } else { "" };
            let same_sign = any([
                format!("length({big}) {mark} {length}"),
                all([
                    format!("length({big}) = {length}"),
                    format!("{big} {mark}{equal} {text}"),
                ]),
            ]);
            match (*negative, less) {
                (false, true) => any([minus, same_sign]),
                (true, false) => any([plus, same_sign]),
                (false, false) => all([plus, same_sign]),
                (true, true) => all([minus, same_sign]),
            }
        }
    }
}

/// The least number of nanoseconds whose text, as `text_of` writes it, is not below a text, or, with
/// `above`, that is above it. Later times have greater texts.
pub(super) fn cut_time(text: &str, above: bool, text_of: impl Fn(i64) -> String) -> Option<i64> {
    let far = |value: i64| {
        let made = text_of(value);
        if above { *made > *text } else { *made >= *text }
    };
    least(i64::MAX, far)
}
