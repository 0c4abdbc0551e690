//! Exact comparison of numbers (LANGUAGE §2).
//!
//! Integers are exact at any length, decimals are doubles, and the two compare by exact value:
//! no number that a document can contain is rounded.

use std::cmp::Ordering;

use super::query::Literal;

/// A number, read from its spelling.
#[derive(Clone, Copy, Debug)]
pub enum ExactNumber<'a> {
    /// An integer of up to 128 bits.
    Int(i128),
    /// A decimal. Never a NaN, and never the negative zero.
    Decimal(f64),
    /// A number beyond both, as its digits.
    Long(Digits<'a>),
}

/// A number of more than 128 bits, as its digits: an integer, or a decimal too large for a double.
/// Its magnitude is above that of every [`ExactNumber::Int`].
#[derive(Clone, Copy, Debug)]
pub struct Digits<'a> {
    negative: bool,
    /// Before the point, without leading zeros.
    whole: &'a str,
    /// After the point, without trailing zeros.
    fraction: &'a str,
}

impl<'a> ExactNumber<'a> {
    /// Reads `[+-]?digits[.digits]` or a JSON number. `None` for anything else, and for an exponent
    /// that overflows a double. Linear in the text.
    pub fn new(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !unsigned.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        if let Ok(int) = text.parse::<i128>() {
            return Some(Self::Int(int));
        }
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let long = |whole: &'a str, fraction: &'a str| {
            Self::Long(Digits {
                negative: text.starts_with('-'),
                whole: whole.trim_start_matches('0'),
                fraction: fraction.trim_end_matches('0'),
            })
        };
        if plain(unsigned) {
            return Some(long(unsigned, ""));
        }
        let decimal = text.parse::<f64>().ok()?;
        if decimal.is_finite() {
            return Some(Self::decimal(decimal));
        }
        (plain(whole) && plain(fraction)).then(|| long(whole, fraction))
    }

    /// Reads a text that orders as a number (LANGUAGE §5): `[+-]?digits[.digits]`, the whole of it.
    pub fn of_text(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let reads = match unsigned.split_once('.') {
            Some((whole, fraction)) => digits(whole) && digits(fraction),
            None => digits(unsigned),
        };
        if reads { Self::new(text) } else { None }
    }

    /// The number of a literal; `None` for a null and for a text.
    pub fn from_literal(literal: &'a Literal) -> Option<Self> {
        match literal {
            Literal::Int(value) => Some(Self::Int(i128::from(*value))),
            Literal::Decimal(value, _) => Some(Self::decimal(*value)),
            Literal::Spelled(text) => Self::new(text),
            Literal::Null | Literal::Text(_) => None,
        }
    }

    /// A decimal. Both zeros are the same number.
    pub fn decimal(number: f64) -> Self {
        Self::Decimal(number + 0.0)
    }

    /// Compares exact values: a total order. Allocates only to compare a number of more than 128
    /// bits with a decimal.
    pub fn compare(&self, other: &ExactNumber<'_>) -> Ordering {
        match (self, other) {
            (Self::Int(a), ExactNumber::Int(b)) => a.cmp(b),
            (Self::Decimal(a), ExactNumber::Decimal(b)) => a.total_cmp(b),
            (Self::Int(a), ExactNumber::Decimal(b)) => int_with_decimal(*a, *b),
            (Self::Decimal(a), ExactNumber::Int(b)) => int_with_decimal(*b, *a).reverse(),
            (Self::Long(a), ExactNumber::Long(b)) => a.compare(b),
            (Self::Long(a), ExactNumber::Int(_)) => a.side(),
            (Self::Int(_), ExactNumber::Long(b)) => b.side().reverse(),
            (Self::Long(a), ExactNumber::Decimal(b)) => a.compare_decimal(*b),
            (Self::Decimal(a), ExactNumber::Long(b)) => b.compare_decimal(*a).reverse(),
        }
    }
}

impl Digits<'_> {
    /// Whether it is negative, and the digits of its magnitude, if it has no fraction.
    pub fn whole(&self) -> Option<(bool, &str)> {
        self.fraction
            .is_empty()
            .then_some((self.negative, self.whole))
    }

    /// How it compares with every number of smaller magnitude.
    fn side(&self) -> Ordering {
        if self.negative {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    }

    fn compare(&self, other: &Digits<'_>) -> Ordering {
        if self.negative != other.negative {
            return self.side();
        }
        let size = self
            .whole
            .len()
            .cmp(&other.whole.len())
            .then_with(|| self.whole.cmp(other.whole))
            .then_with(|| self.fraction.cmp(other.fraction));
        if self.negative { size.reverse() } else { size }
    }

    fn compare_decimal(&self, other: f64) -> Ordering {
        if !other.is_finite() {
            return if other < 0.0 {
                Ordering::Greater
            } else {
                Ordering::Less
            };
        }
        // A double this large has no fraction, and the format prints all its digits. A smaller
        // one has fewer digits, which decides.
        let digits = format!("{:.0}", other.abs());
        self.compare(&Digits {
            negative: other < 0.0,
            whole: &digits,
            fraction: "",
        })
    }
}

/// Compares an integer with a decimal without rounding either.
fn int_with_decimal(int: i128, decimal: f64) -> Ordering {
    // Both bounds are powers of two, so nothing is rounded here.
    if decimal >= i128::MAX as f64 {
        return Ordering::Less;
    }
    if decimal < i128::MIN as f64 {
        return Ordering::Greater;
    }
    let floor = decimal.floor();
    int.cmp(&(floor as i128)).then(if decimal > floor {
        Ordering::Less
    } else {
        Ordering::Equal
    })
}

#[cfg(test)]
mod tests {
    use super::ExactNumber;
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn numbers_of_any_length_compare_by_their_exact_value() {
        let long = |digit: &str| format!("1{}{digit}", "0".repeat(399));
        let (zero, one) = (long("0"), long("1"));
        let half = format!("{zero}.5");
        let minus = format!("-{zero}");
        let padded = format!("+000{zero}.000");
        // 2^130, as a double and as an integer.
        let power = "1361129467683753853853498429727072845824";
        for (a, b, expected) in [
            ("1", "1.0", Equal),
            ("-0", "0.0", Equal),
            ("-0.0", "0", Equal),
            ("1e3", "1000", Equal),
            ("-1.5", "-1", Less),
            ("9007199254740993", "9007199254740992.0", Greater),
            ("9223372036854775807", "9223372036854775808.0", Less),
            (
                "10000000000000000000000000000000000000000",
                "10000000000000000000000000000000000000001",
                Less,
            ),
            (power, "1361129467683753853853498429727072845824.0", Equal),
            (power, "1.361129467683753853853498429727072845824e39", Equal),
            (
                "1361129467683753853853498429727072845825",
                "1.361129467683753853853498429727072845824e39",
                Greater,
            ),
            (power, "1e40", Less),
            (power, "-1e40", Greater),
            (power, "0.5", Greater),
            (&zero, &one, Less),
            (&zero, "5", Greater),
            (&zero, "1.7e308", Greater),
            (&minus, "5", Less),
            (&minus, "-1.7e308", Less),
            (&minus, &zero, Less),
            (&zero, &half, Less),
            (&half, &one, Less),
            (&padded, &zero, Equal),
        ] {
            let number = |text| ExactNumber::new(text).expect("a number");
            assert_eq!(number(a).compare(&number(b)), expected, "{a} {b}");
            assert_eq!(number(b).compare(&number(a)), expected.reverse(), "{b} {a}");
        }
        for text in ["", "-", "inf", "nan", "e5", "1x", "1e400", "null"] {
            assert!(ExactNumber::new(text).is_none(), "{text}");
        }
    }
}
