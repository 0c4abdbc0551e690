//! How the program ends before a command is done: signals, `--timeout`, and panics.
//!
//! A thread waits for signals and sets the token that the command runs under, which ends soon then. If it
//! does not, the thread ends the program itself. No temporary file stays behind either way.
//!
//! A panic is a bug: it becomes a failure with exit code 7 and one paragraph, and standard output stays empty.

use super::command::{is_shown, say};
use super::options::scaled;
use crate::app::present::{Exit, Failure, Result};
use crate::support::cancel::Cancel;
use crate::support::scratch;
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

const GRACE: Duration = Duration::from_millis(100);

/// The exit code of the signal that came; 0 for none.
static SIGNAL: AtomicU8 = AtomicU8::new(0);

/// Whether the command ends by itself after a signal, and whether one came.
static LEFT: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Lets the command end by itself: from now on a signal, also one that the parent process has it ignore, only sets what
/// is returned.
pub(super) fn leave() -> &'static AtomicBool {
    LEFT.store(true, Ordering::SeqCst);
    #[cfg(unix)]
    for signal in WANTED {
        let _ = SIGNALS.get().map(|signals| signals.add_signal(signal));
    }
    &STOPPED
}

#[cfg(unix)]
static SIGNALS: std::sync::OnceLock<signal_hook::iterator::Handle> = std::sync::OnceLock::new();

#[cfg(unix)]
const WANTED: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Begins to wait for signals and, if there is one, for the end of the time. Returns the token for the
/// command. The time ends the program with this failure.
pub(super) fn watch(
    timeout: Option<Duration>,
    report: impl Fn(&Failure) + Send + 'static,
) -> Cancel {
    let cancel = timeout.map_or_else(Cancel::new, Cancel::after);
    wait_for_signals(cancel.clone());
    if let Some(timeout) = timeout {
        // Without a thread the command still ends at one of its own looks at the token.
        let _ = thread::Builder::new().spawn(move || {
            thread::sleep(timeout.saturating_add(GRACE));
            if !is_shown() {
                end(late(timeout), report);
            }
        });
    }
    cancel
}

fn late(timeout: Duration) -> Failure {
    let message = format!("not done within {timeout:?}");
    Failure::plain(Exit::Late, message).with_help("`--timeout` takes a longer time")
}

pub(super) fn failure(timeout: Option<Duration>) -> Failure {
    let code = SIGNAL.load(Ordering::SeqCst);
    let mut all = [Exit::Interrupted, Exit::Terminated, Exit::HungUp].into_iter();
    match (all.find(|exit| *exit as u8 == code), timeout) {
        (Some(exit), _) => Failure::plain(exit, "interrupted"),
        (None, Some(timeout)) => late(timeout),
        (None, None) => Failure::plain(Exit::Interrupted, "interrupted"),
    }
}

/// Ends the program. The reader of standard error may not read it, or another thread may wait there: then the
/// failure is not reported.
fn end(failure: Failure, report: impl FnOnce(&Failure) + Send + 'static) -> ! {
    scratch::end();
    let code = i32::from(failure.exit() as u8);
    let (done, reported) = mpsc::channel();
    let reporter = thread::Builder::new().spawn(move || {
        report(&failure);
        let _ = done.send(());
    });
    if reporter.is_ok() {
        let _ = reported.recv_timeout(GRACE);
    }
    std::process::exit(code);
}

/// The signals that the parent process has it ignore, as `nohup` does: a bit each, from 1. Known on Linux only.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0)
}

#[cfg(unix)]
fn wait_for_signals(cancel: Cancel) {
    // Without them, signals do what they do to any program.
    let ignored = ignored();
    let wanted = WANTED
        .iter()
        .filter(|signal| ignored >> (*signal - 1) & 1 == 0);
    let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) else {
        return;
    };
    let _ = SIGNALS.set(signals.handle());
    let _ = thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            let is_left = LEFT.load(Ordering::SeqCst);
            STOPPED.fetch_or(is_left, Ordering::SeqCst);
            if is_left || signal == SIGINT && is_shown() {
                continue;
            }
            let exit = match signal {
                SIGINT => Exit::Interrupted,
                SIGTERM => Exit::Terminated,
                _ => Exit::HungUp,
            };
            SIGNAL.store(exit as u8, Ordering::SeqCst);
            cancel.cancel();
            thread::sleep(GRACE);
            end(failure(None), |_| say("interrupted\n"));
        }
    });
}

#[cfg(not(unix))]
fn wait_for_signals(_: Cancel) {}

/// Reads a time such as `500ms`, `30s`, `5m` or `1h`; a number alone is seconds.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let seconds = format!("{text}s");
    let time = duration(text).or_else(|| duration(&seconds));
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a time, such as `500ms`, `30s` or `5m`".to_owned())
}

const UNITS: [(&str, u64); 6] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];

pub(super) fn duration(text: &str) -> Option<Duration> {
    scaled(text, &UNITS).map(Duration::from_millis)
}

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
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let said = SAID.lock().ok().and_then(|mut said| said.take());
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let what = said.or_else(|| text.map(str::to_owned));
        let what = what.unwrap_or_else(|| "no message".to_owned());
        let failure = Failure::internal(format!("the program failed: {what}"));
        failure.with_help(
            "this is a bug: please report it with this message, the command and `pactql --version`, on the page of the \
             repository, under Issues; what was being written was taken back: no file and no store is half changed",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{caught, time};
    use crate::app::present::Exit;

    #[test]
    fn times_have_units() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("2", 2_000),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                time(text).map(|time| time.as_millis()),
                Ok(milliseconds),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "0",
            "0ms",
            "-1s",
            "1.5s",
            "1 s",
            "99999999999999999999",
            "18446744073709551615h",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    #[allow(clippy::panic)]
    fn a_panic_is_exit_code_7_and_one_paragraph() {
        let failure = caught::<()>(|| panic!("row {} of 3", 7)).expect_err("a failure");
        assert_eq!(failure.exit(), Exit::Internal);
        let text = failure.text(crate::support::diag::ColorChoice::Never);
        assert!(
            text.contains("row 7 of 3")
                && text.contains("report it")
                && text.contains("half changed"),
            "{text}"
        );
        assert!(!text.trim_end().contains("\n\n"), "{text}");
    }
}
