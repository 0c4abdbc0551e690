//! A command line that did not parse, as typed.

use super::words::joined;
use clap::builder::ArgAction;
use clap::{Arg, Command};
use std::ffi::OsString;
use std::sync::OnceLock;

/// The command line as typed.
pub(super) struct Typed<'a> {
    /// The command whose arguments did not parse; the program if none was recognized.
    pub(super) command: &'a Command,
    /// The names of the commands: none, `select`, or `context build`.
    pub(super) names: Vec<&'a str>,
    /// The words after them.
    pub(super) rest: &'a [String],
}

impl<'a> Typed<'a> {
    /// Finds the command among the words.
    pub(super) fn new(program: &'a Command, words: &'a [String]) -> Self {
        let (mut command, mut names, mut rest) = (program, Vec::new(), words);
        // The one option that may come before the command.
        match rest {
            [first, _, more @ ..] if first == "--color" => rest = more,
            [first, more @ ..] if first.starts_with("--color=") => rest = more,
            _ => {}
        }
        while let [first, more @ ..] = rest {
            let Some(found) = command.find_subcommand(first) else {
                break;
            };
            names.push(found.get_name());
            (command, rest) = (found, more);
        }
        Self {
            command,
            names,
            rest,
        }
    }

    /// The name of the command, as messages call it.
    pub(super) fn name(&self) -> String {
        match &self.names[..] {
            [] => "pactql".to_owned(),
            names => names.join(" "),
        }
    }

    /// The command line with other words after the command.
    pub(super) fn with(&self, words: &[String]) -> String {
        let mut line = String::from("pactql");
        for name in &self.names {
            line.extend([" ", name]);
        }
        if !words.is_empty() {
            line.extend([" ", &joined(words)]);
        }
        line
    }

    /// Where a word is among the words after the command.
    pub(super) fn position(&self, word: &str) -> Option<usize> {
        let is = |typed: &String| {
            typed == word || typed.split_once('=').is_some_and(|(name, _)| name == word)
        };
        self.rest.iter().position(is)
    }

    /// Whether the command has an option.
    pub(super) fn has(&self, long: &str) -> bool {
        self.command
            .get_arguments()
            .any(|argument| argument.get_long() == Some(long))
    }

    /// The options that were typed, each with its value, but those that give selectors.
    fn options(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut words = self.rest.iter().peekable();
        while let Some(word) = words.next() {
            if !word.starts_with('-') || word.len() == 1 {
                continue;
            }
            let name = word.split('=').next().unwrap_or_default();
            let is_meant = |argument: &&Arg| {
                let long = argument.get_long().map(|long| format!("--{long}"));
                let short = argument.get_short().map(|short| format!("-{short}"));
                long.as_deref() == Some(name) || short.as_deref() == Some(name)
            };
            let Some(argument) = self.command.get_arguments().find(is_meant) else {
                continue;
            };
            let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
                && !argument.is_require_equals_set();
            let value = words.next_if(|_| takes && !word.contains('='));
            if !matches!(argument.get_id().as_str(), "selectors" | "file") {
                found.push(word.clone());
                found.extend(value.cloned());
            }
        }
        found
    }

    /// How the command is used: `pactql log SESSION [SELECTOR]`.
    pub(super) fn usage(&self) -> String {
        let usage = self.command.clone().render_usage().to_string();
        let line = usage.lines().next().unwrap_or_default();
        let line = line.trim_start_matches("Usage:").trim();
        line.replace(" [OPTIONS]", "").replace(['<', '>'], "")
    }
}

/// The program, for messages that repeat a part of its command line.
static PROGRAM: OnceLock<Command> = OnceLock::new();

/// Says which program this is, once.
pub(super) fn set_program(mut program: Command) {
    program.build();
    PROGRAM.get_or_init(|| program);
}

/// The arguments of the program, with its name.
static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says what the arguments are, once. Returns them.
pub(super) fn set_arguments(arguments: Vec<OsString>) -> &'static [OsString] {
    ARGUMENTS.get_or_init(|| arguments)
}

/// The arguments of the program, without its name.
pub(super) fn words() -> Vec<String> {
    let words = ARGUMENTS.get().map_or(&[][..], Vec::as_slice);
    let words = words.iter().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The options of the command line of this process, to repeat after the words of another one:
/// empty, or a blank and the options.
pub(super) fn options() -> String {
    let words = words();
    let Some(program) = PROGRAM.get() else {
        return String::new();
    };
    match &Typed::new(program, &words).options()[..] {
        [] => String::new(),
        options => format!(" {}", joined(options)),
    }
}
