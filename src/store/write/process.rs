//! Which process of which machine holds a lease, and whether it is dead.
//!
//! A process is known by the machine's name, its boot, the space of process numbers, the number, and when it started. This
//! file knows no lease.

use std::fs::read_to_string;

/// This process, in one line of words. `None` where the system does not say.
pub(crate) fn own() -> Option<String> {
    let number = std::process::id();
    Some(format!("{} {number} {}", machine()?, started(number)?))
}

/// Whether a process that [`own`] named was one of this machine and has ended. Of another machine nothing is known.
pub(crate) fn is_dead(process: &str) -> bool {
    let Some(machine) = machine() else {
        return false;
    };
    let own = process.strip_prefix(&machine);
    let Some((number, start)) = own.and_then(|own| own.trim_start().split_once(' ')) else {
        return false;
    };
    number
        .parse()
        .is_ok_and(|number| started(number).is_none_or(|now| now != start))
}

/// The machine since it was started, as far as this process sees others.
fn machine() -> Option<String> {
    let host = read_to_string("/proc/sys/kernel/hostname").ok()?;
    let boot = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let host: String = host.split_whitespace().collect();
    Some(format!("{host} {} {}", boot.trim(), space.display()))
}

/// When a process started, in ticks since the machine did; `None` if there is none of this number.
fn started(number: u32) -> Option<String> {
    let line = read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The second word is the program's name in brackets, which may have anything in it.
    let (_, rest) = line.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    // One that has ended and was not waited for is a zombie.
    let state = words.next()?;
    let start = words.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| start.to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_dead() {
        let own = own().unwrap();
        assert!(!is_dead(&own), "{own}");
        let (rest, start) = own.rsplit_once(' ').unwrap();
        assert!(
            is_dead(&format!("{rest} {start}0")),
            "another process of the same number"
        );
        assert!(
            !is_dead(&format!("elsewhere {own}")),
            "a process of another machine"
        );
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (space, _) = rest.rsplit_once(' ').unwrap();
        let other = format!("{space} {} {}", child.id(), started(child.id()).unwrap());
        assert!(!is_dead(&other));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_dead(&other));
    }
}
