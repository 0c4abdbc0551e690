//! Conditions that a session has to meet, for continuous integration (INSPECT §4).
//!
//! A file has a condition a line. This file knows conditions and reports. It must not know how a failure
//! is printed.

use super::part::Part;
use super::prefix::{PrefixOptions, PrefixStep, Prefixes, prefixes};
use super::prices::Prices;
use super::tokenizer::Tokenizer;
use super::unused::unused;
use crate::engine::Engine;
use crate::history::Session;
use crate::support::diag::{Code, Diagnostic, Error};
use serde::Serialize;
use std::fmt;

/// How many failures of a condition are listed.
const LISTED: usize = 5;

/// A condition, from one line of a file.
///
/// | line | holds if |
/// |---|---|
/// | `none SELECTOR` | the selector finds nothing |
/// | `some SELECTOR` | it finds something |
/// | `prefix >= N%` | every request keeps so much of the one before |
/// | `tokens <= N` | every request has this many tokens at most |
/// | `growth <= N/step` | no request has more tokens than the one before and `N` |
/// | `unused = 0`, `unused <= N` | this many tools are defined in the newest snapshot and never called |
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
    /// Every request keeps at least so much of the one before, in percent.
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
            found.ok_or_else(|| {
                refuse(
                    format!("expected `{word} {sign}` and a whole number"),
                    example,
                )
            })
        };
        Ok(match word {
            "none" | "some" => {
                if rest.is_empty() {
                    return Err(refuse(
                        format!("`{word}` needs a selector"),
                        "none @t0 .cb[data_is_error=true]",
                    ));
                }
                Engine::new().prepare(rest)?;
                match word {
                    "none" => Self::None(rest.to_owned()),
                    _ => Self::Some(rest.to_owned()),
                }
            }
            "prefix" => Self::Prefix(number(">=", "%", "prefix >= 90%")?),
            "tokens" => Self::Tokens(number("<=", "", "tokens <= 100000")?),
            "growth" => Self::Growth(number("<=", "/step", "growth <= 2000/step")?),
            "unused" if rest.starts_with("<=") => Self::Unused(number("<=", "", "unused <= 2")?),
            "unused" => Self::Unused(number("=", "", "unused = 0")?),
            _ => {
                let known = ["none", "some", "prefix", "tokens", "growth", "unused"];
                return Err(refuse(
                    format!("expected a condition, found `{word}`"),
                    &format!("a line begins with one of {}", known.join(", ")),
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
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let conditions: Result<Vec<(usize, Self)>, Error> = lines
            .map(|(at, line)| Ok((at + 1, Self::parse(line)?)))
            .collect();
        let conditions = conditions?;
        if conditions.is_empty() {
            let mistake = Diagnostic::error(Code::Input, "the file has no condition")
                .with_help("none @t0 .cb[data_is_error=true]");
            return Err(Error::new("", mistake));
        }
        Ok(conditions)
    }
}

/// Whether a condition holds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// The line of the condition.
    pub line: usize,
    /// The condition.
    pub condition: Condition,
    /// Whether it holds.
    pub holds: bool,
    /// How often it does not.
    pub failures: usize,
    /// The first failures.
    pub first: Vec<Failed>,
}

/// Where a condition does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failed {
    /// The cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<i64>,
    /// The block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// What is there instead.
    pub what: String,
}

/// Checks conditions, each with the number of its line. `tokenizer` counts tokens, by default the one that
/// fits the model. A session without snapshots meets none.
///
/// # Errors
/// A selector that compares the snapshots of a range; a time that no snapshot has; a request that the
/// provider has no form for, if a condition needs it.
pub fn check(
    engine: &Engine,
    session: &Session,
    conditions: &[(usize, Condition)],
    tokenizer: Option<Tokenizer>,
) -> Result<Vec<Checked>, Error> {
    let empty = session.history().latest().is_none();
    let mut requests: Option<Prefixes> = None;
    let mut checked = Vec::with_capacity(conditions.len());
    for (line, condition) in conditions {
        let failures = if empty {
            vec![Failed {
                cycle: None,
                block: None,
                what: "the session has no snapshots".to_owned(),
            }]
        } else {
            failures(engine, session, condition, &mut requests, tokenizer)?
        };
        checked.push(Checked {
            line: *line,
            condition: condition.clone(),
            holds: failures.is_empty(),
            failures: failures.len(),
            first: failures.into_iter().take(LISTED).collect(),
        });
    }
    Ok(checked)
}

fn failures(
    engine: &Engine,
    session: &Session,
    condition: &Condition,
    requests: &mut Option<Prefixes>,
    tokenizer: Option<Tokenizer>,
) -> Result<Vec<Failed>, Error> {
    Ok(match condition {
        Condition::None(selector) => {
            let rows = engine.rows(session, selector)?;
            let nodes = rows.nodes().map(|node| Failed {
                cycle: Some(node.row().snapshot_cycle()),
                block: Some(node.id().to_owned()),
                what: "found".to_owned(),
            });
            nodes.collect()
        }
        Condition::Some(selector) => match engine.rows(session, selector)?.count() {
            0 => vec![Failed {
                cycle: None,
                block: None,
                what: "nothing found".to_owned(),
            }],
            _ => Vec::new(),
        },
        Condition::Prefix(_) | Condition::Tokens(_) | Condition::Growth(_) => {
            if requests.is_none() {
                let options = PrefixOptions::default().tokenizer(tokenizer);
                *requests = Some(prefixes(engine, session, &Part::default(), &options)?);
            }
            let steps = requests.iter().flat_map(|found| &found.steps);
            steps.filter_map(|step| of_step(condition, step)).collect()
        }
        Condition::Unused(most) => {
            let all = Part::default().at("@history");
            let found = unused(engine, session, &all, tokenizer, &Prices::default())?;
            let count = found.tools.len() as u64;
            let names = found.tools.into_iter().filter(|_| count > *most);
            names
                .map(|tool| Failed {
                    cycle: None,
                    block: None,
                    what: format!("tool `{}` is never called", tool.name),
                })
                .collect()
        }
    })
}

/// Why a request does not meet a condition; `None` if it does.
fn of_step(condition: &Condition, step: &PrefixStep) -> Option<Failed> {
    let failed = |what: String| Failed {
        cycle: Some(step.cycle),
        block: None,
        what,
    };
    let later = step.before.is_some();
    match condition {
        Condition::Prefix(percent) if later && step.reused_percent() < *percent => {
            let difference = step.difference.as_ref();
            let cause = difference
                .map(|found| found.cause.text())
                .unwrap_or_default();
            Some(Failed {
                block: difference.and_then(|found| found.block.clone()),
                ..failed(format!("{} % kept: {cause}", step.reused_percent()))
            })
        }
        Condition::Tokens(most) if step.tokens > *most => {
            Some(failed(format!("{} tokens", step.tokens)))
        }
        Condition::Growth(most) if later => {
            let grown = step.tokens.saturating_sub(step.tokens_before);
            (grown > *most).then(|| failed(format!("{grown} tokens more")))
        }
        _ => None,
    }
}
