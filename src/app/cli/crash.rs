//! What a command says if the program itself has failed.
//!
//! A panic is a bug: it becomes a failure with exit code 7 and one paragraph, and standard output stays empty.
//! This file must not know commands.

use crate::app::present::Failure;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::Mutex;

static SAID: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the message of a panic for the report, unless someone wants to see where it comes from.
pub(super) fn quiet() {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        set_hook(Box::new(keep));
    }
}

fn keep(info: &PanicHookInfo<'_>) {
    let what = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map(ToString::to_string);
    if let Ok(mut said) = SAID.lock() {
        *said = Some(format!("{what}, at {}", place.unwrap_or_default()));
    }
}

/// Runs a command; a panic is a failure of exit code 7. Cancelled work must have been stopped inside.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let said = SAID.lock().ok().and_then(|mut said| said.take());
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let what = said.or_else(|| text.map(str::to_owned));
        let what = what.unwrap_or_else(|| "no message".to_owned());
        let failure = Failure::internal(format!("the program failed: {what}"));
        failure.with_help("this is a bug: please report it with the command that you ran")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::present::Exit;

    #[test]
    #[allow(clippy::panic)]
    fn a_panic_is_exit_code_7_and_one_paragraph() {
        let failure = caught::<()>(|| panic!("row {} of 3", 7)).expect_err("a failure");
        assert_eq!(failure.exit(), Exit::Internal);
        let text = failure.text(crate::support::diag::ColorChoice::Never);
        assert!(
            text.contains("row 7 of 3") && text.contains("report it"),
            "{text}"
        );
        assert!(!text.trim_end().contains("\n\n"), "{text}");
    }
}
