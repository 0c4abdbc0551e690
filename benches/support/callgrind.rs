//! Instructions of a program, counted by callgrind: the same on every machine that it is built for.

use std::process::Command;

/// Runs this program again with these arguments, on one thread; the instructions that callgrind collected, with
/// options of its own. `None` if there is no valgrind.
pub(crate) fn collected(options: &[&str], arguments: &[&str]) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(std::env::current_exe().ok()?)
        .args(arguments)
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .ok()?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let line = printed.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}
