//! Times as text: RFC 3339 in UTC, to the nanosecond.

/// Seconds since 1970 and nanoseconds as `YYYY-MM-DDThh:mm:ss.nnnnnnnnnZ`. Proleptic Gregorian
/// calendar; a year beyond 9999 has more digits.
pub(crate) fn rfc3339(seconds: i64, nanos: u32) -> String {
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
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{nanos:09}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

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
