//! Times as text: RFC 3339 in UTC, to the nanosecond.

use std::fmt::Write;

use crate::json::StoredValue;

/// Bytes of a time whose year has four digits.
const LENGTH: usize = 30;

/// Seconds since 1970 and nanoseconds as `YYYY-MM-DDThh:mm:ss.nnnnnnnnnZ`. Proleptic Gregorian
/// calendar; a year beyond 9999 has more digits.
pub(crate) fn rfc3339(seconds: i64, nanos: u32) -> String {
    let mut text = String::with_capacity(LENGTH);
    push_rfc3339(&mut text, seconds, nanos);
    text
}

/// [`rfc3339_of_nanos`] as a value of a node.
pub(crate) fn stored_time(nanos: i64) -> StoredValue {
    let (seconds, nanos) = parts(nanos);
    StoredValue::written(LENGTH, |text| push_rfc3339(text, seconds, nanos))
}

fn push_rfc3339(text: &mut String, seconds: i64, nanos: u32) {
    const DAY: i64 = 86_400;
    const ERA: i64 = 146_097;
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // Years are counted from March, so that the leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    if (0..=9999).contains(&year) {
        push_digits(text, year as u32, 1_000);
    } else {
        // Writing to a string does not fail.
        let _ = write!(text, "{year:04}");
    }
    let parts = [month, day, hour, minute, second];
    for (mark, value) in "--T::".chars().zip(parts) {
        text.push(mark);
        push_digits(text, value as u32, 10);
    }
    text.push('.');
    push_digits(text, nanos, 100_000_000);
    text.push('Z');
}

/// Appends a number with as many digits as `highest`, a power of ten, has.
fn push_digits(text: &mut String, value: u32, mut highest: u32) {
    while highest > 0 {
        text.push(char::from(b'0' + (value / highest % 10) as u8));
        highest /= 10;
    }
}

/// [`rfc3339`] of nanoseconds since 1970.
pub(crate) fn rfc3339_of_nanos(nanos: i64) -> String {
    let (seconds, nanos) = parts(nanos);
    rfc3339(seconds, nanos)
}

/// Whether a time is a position: a log without times has positions in their place, in nanoseconds from 1970 on, and they are
/// shown as no date (INSPECT §1).
pub(crate) fn is_position(time: &str) -> bool {
    time.starts_with("1970-")
}

/// A time to the millisecond, rounded down, and to the second where that is all.
pub(crate) fn millis(time: &str) -> String {
    let Some((whole, fraction)) = time.split_once('.') else {
        return time.to_owned();
    };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, zone) = fraction.split_at(digits);
    match digits.get(..3).unwrap_or(digits).trim_end_matches('0') {
        "" => format!("{whole}{zone}"),
        _ => format!("{whole}.{}{zone}", digits.get(..3).unwrap_or(digits)),
    }
}

/// Seconds and the nanoseconds beyond them.
fn parts(nanos: i64) -> (i64, u32) {
    const SECOND: i64 = 1_000_000_000;
    (nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND) as u32)
}

/// Nanoseconds since 1970 of an RFC 3339 time: a date, `T` or a space, a time with any number of
/// decimals, and `Z` or an offset. `None` for other text and for times outside i64.
pub(crate) fn nanos_of_rfc3339(text: &str) -> Option<i64> {
    let digits = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = text.get(range)?;
        let all = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| all)
    };
    let is = |at: usize, wanted: &str| {
        text.get(at..=at)
            .is_some_and(|found| wanted.contains(found))
    };
    if !(is(4, "-") && is(7, "-") && is(10, "Tt ") && is(13, ":") && is(16, ":")) {
        return None;
    }
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    // A leap second reads as the second after it.
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
            (rest.split_at(end).0, rest.split_at(end).1)
        }
        None => ("", rest),
    };
    if rest.starts_with('.') && fraction.is_empty() {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let offset = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let at = text.len() - 5;
            let (hours, minutes) = (digits(at..at + 2)?, digits(at + 3..at + 5)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3_600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    // Years are counted from March, as in `rfc3339`.
    let (shifted, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::{nanos_of_rfc3339, rfc3339, rfc3339_of_nanos};

    #[test]
    fn times_are_read_back() {
        for nanos in [
            0,
            1,
            951_782_399_000_000_005,
            1_735_689_599_999_999_999,
            -1,
            i64::MAX / 2,
        ] {
            assert_eq!(nanos_of_rfc3339(&rfc3339_of_nanos(nanos)), Some(nanos));
        }
        for (text, nanos) in [
            ("1970-01-01T00:00:01Z", Some(1_000_000_000)),
            ("1970-01-01 01:00:00.5+01:00", Some(500_000_000)),
            ("1970-01-01T00:00:00.1234567899Z", Some(123_456_789)),
            ("1970-01-01T00:00:00", None),
            ("1970-02-29T00:00:00Z", None),
            ("1970-01-01T00:00:00.Z", None),
            ("9999-01-01T00:00:00Z", None),
            ("yesterday", None),
        ] {
            assert_eq!(nanos_of_rfc3339(text), nanos, "{text}");
        }
    }

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, nanos, text) in [
            (0, 0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399, 5, "2000-02-28T23:59:59.000000005Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.000000001Z"),
            (951_868_800, 0, "2000-03-01T00:00:00.000000000Z"),
            (1_709_251_199, 999_999_999, "2024-02-29T23:59:59.999999999Z"),
            (1_735_689_599, 0, "2024-12-31T23:59:59.000000000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(rfc3339(seconds, nanos), text);
        }
    }
}
