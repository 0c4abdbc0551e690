//! The command line, run as a program: results, messages, exit codes.

mod agent;
mod bench;
mod context;
#[cfg(feature = "parquet")]
mod copies;
mod ends;
mod fit;
mod follow;
mod history;
mod hostile;
mod imports;
mod inspect;
mod limits;
mod many;
mod marks;
mod opencode;
mod queries;
mod ranges;
mod read_only;
mod sessions;
mod share;
mod sql;
mod store;
mod terminal;
pub(crate) mod usage;
mod walk;
mod write;
mod wrong;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a run.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// Runs `pactql` in the package's directory.
fn pactql(arguments: &[&str]) -> Ran {
    with_input(arguments, b"")
}

/// The command without the logs of the agents of this machine.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    for name in [
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_DATA_HOME",
        "COPILOT_HOME",
        "PI_CODING_AGENT_DIR",
        "XDG_CACHE_HOME",
        "LOCALAPPDATA",
    ] {
        command.env_remove(name);
    }
    command
        .env("HOME", "/nowhere")
        .env("USERPROFILE", "/nowhere")
}

/// Runs `pactql` with something on standard input.
fn with_input(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = alone(&mut Command::new(env!("CARGO_BIN_EXE_pactql")))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // A program that does not read closes the pipe, which is fine.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the program ends");
    feeder.join().expect("the feeder ends");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// The standard output of a run that must succeed.
pub(crate) fn answer(arguments: &[&str]) -> String {
    let ran = pactql(arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    ran.out
}

/// Runs a command that must fail with this code, without output, and with this text in its
/// message. Returns the message.
#[track_caller]
fn fails(arguments: &[&str], code: i32, message: &str) -> String {
    let ran = pactql(arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {}", ran.err);
    assert_eq!(ran.out, "", "{arguments:?}");
    assert!(ran.err.contains(message), "{arguments:?}: {}", ran.err);
    ran.err
}

/// A directory for one test, removed at the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The fixtures.
const AGENT: &str = "fixtures/support-agent.jsonl";
const CHAT: &str = "fixtures/chat.openai.json";

#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pactql"))
        .args(["export", "--jsonl", "--full", AGENT])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
