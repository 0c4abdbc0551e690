//! The conditions of a file, one a line (INSPECT §4).

use crate::engine::Engine;
use crate::support::diag::{Code, Diagnostic, Error};
use serde::Serialize;
use std::fmt;

/// A condition, from one line of a file.
///
/// | line | holds if |
/// |---|---|
/// | `none SELECTOR` | the selector finds nothing |
/// | `some SELECTOR` | it finds something |
/// | `prefix >= N%` | every request keeps at least N % of the one before |
/// | `tokens <= N` | every request has at most N tokens |
/// | `growth <= N/step` | no request has more tokens than the one before and `N` |
/// | `unused = 0`, `unused <= N` | at most N tools are defined in the newest snapshot and never called |
///
/// ```
/// use pactql::inspect::Condition;
/// let condition = Condition::parse("tokens <= 100000")?;
/// assert_eq!(condition.to_string(), "tokens <= 100000");
/// assert!(Condition::parse("tokens < many").is_err());
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// The selector finds nothing.
    None(String),
    /// The selector finds something.
    Some(String),
    /// Every request keeps at least this much of the one before, in percent.
    Prefix(u64),
    /// Every request has at most this many tokens.
    Tokens(u64),
    /// No request has more tokens than the one before and this.
    Growth(u64),
    /// At most this many tools are never called.
    Unused(u64),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None(selector) => write!(f, "none {selector}"),
            Self::Some(selector) => write!(f, "some {selector}"),
            Self::Prefix(percent) => write!(f, "prefix >= {percent}%"),
            Self::Tokens(most) => write!(f, "tokens <= {most}"),
            Self::Growth(most) => write!(f, "growth <= {most}/step"),
            Self::Unused(most) => write!(f, "unused <= {most}"),
        }
    }
}

impl Serialize for Condition {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Condition {
    /// Reads a line.
    ///
    /// # Errors
    /// It is not a condition; every error of its selector, with its place in the line.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let start = line.len() - line.trim_start().len();
        let text = line.trim();
        let word = text.split(char::is_whitespace).next().unwrap_or_default();
        let rest = text[word.len()..].trim();
        let refuse = |message: String, help: &str| {
            let mistake = Diagnostic::error(Code::Input, message)
                .at(start..start + text.len(), "this condition")
                .with_help(help);
            Error::new(line, mistake)
        };
        let number = |sign: &str, end: &str, example: &str| {
            let found = rest.strip_prefix(sign).map(str::trim_start);
            let found = found.map(|rest| rest.strip_suffix(end).map_or(rest, str::trim_end));
            let found = found.and_then(|digits| digits.replace('_', "").parse().ok());
            let message = || format!("expected `{word} {sign}` and a whole number");
            found.ok_or_else(|| refuse(message(), example))
        };
        Ok(match word {
            "none" | "some" if rest.is_empty() => {
                let message = format!("`{word}` needs a selector");
                return Err(refuse(message, "none @t0 .cb[data_is_error=true]"));
            }
            "none" | "some" => {
                Engine::new().prepare(rest)?;
                let condition = if word == "none" {
                    Self::None
                } else {
                    Self::Some
                };
                condition(rest.to_owned())
            }
            "prefix" => Self::Prefix(number(">=", "%", "prefix >= 90%")?),
            "tokens" => Self::Tokens(number("<=", "", "tokens <= 100000")?),
            "growth" => Self::Growth(number("<=", "/step", "growth <= 2000/step")?),
            "unused" if rest.starts_with("<=") => Self::Unused(number("<=", "", "unused <= 2")?),
            "unused" => Self::Unused(number("=", "", "unused = 0")?),
            _ => {
                let message = format!("expected a condition, found `{word}`");
                let known = "none, some, prefix, tokens, growth, unused";
                return Err(refuse(
                    message,
                    &format!("a line begins with one of {known}"),
                ));
            }
        })
    }

    /// Reads a file: a condition a line, without empty lines and those that begin with `#`. Each with
    /// the number of its line, from 1.
    ///
    /// # Errors
    /// As [`Condition::parse`], of the first line that is none, with its number; a file without a
    /// condition.
    pub fn parse_file(text: &str) -> Result<Vec<(usize, Self)>, Error> {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let lines = lines.filter(|(_, line)| !line.trim().starts_with('#'));
        let conditions = lines.map(|(at, line)| Ok((at, Self::parse(line)?)));
        let conditions = conditions.collect::<Result<Vec<(usize, Self)>, Error>>()?;
        if conditions.is_empty() {
            let mistake = Diagnostic::error(Code::Input, "the file has no condition")
                .with_help("none @t0 .cb[data_is_error=true]");
            return Err(Error::new("", mistake));
        }
        Ok(conditions)
    }
}
