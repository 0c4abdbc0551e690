//! How many random cases a test runs: one number for all tests, `PACTQL_CASES`.
//!
//! By default few, so that all tests give their results soon after an edit; many where `CI` is set.

/// Cases of a property by default, and where `CI` is set.
const FEW: u32 = 200;
const MANY: u32 = 400;

/// The number to which the counts of the tests refer: `share(n)` is `n` with `PACTQL_CASES=20000`.
const WHOLE: u32 = 20_000;

/// The cases of a property.
pub(crate) fn cases() -> u32 {
    let set = std::env::var("PACTQL_CASES").ok();
    match set.map(|cases| cases.parse().expect("PACTQL_CASES is a number")) {
        Some(cases) => cases,
        None if std::env::var_os("CI").is_some() => MANY,
        None => FEW,
    }
}

/// The cases of a test that runs `whole` with `PACTQL_CASES=20000`; at least 1.
pub(crate) fn share(whole: u32) -> u32 {
    let share = u64::from(whole) * u64::from(cases()) / u64::from(WHOLE);
    u32::try_from(share).unwrap_or(u32::MAX).max(1)
}

/// Whether few cases run, so that what takes seconds is left to CI.
pub(crate) fn few() -> bool {
    cases() <= FEW
}

/// Whether a test that takes seconds ends here, with a line that says so: it runs where `CI` is set, and
/// with more cases than by default.
pub(crate) fn left_to_ci() -> bool {
    if few() {
        println!("SKIPPED: takes seconds; runs with CI=true");
    }
    few()
}
