//! The conditions of a file, one a line (INSPECT §4).

use super::prices::decimal;
use crate::engine::Engine;
use crate::support::diag::{Code, Diagnostic, Error, nearest};
use crate::support::macros::names;
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// A condition, from one line of a file.
///
/// | line | holds if |
/// |---|---|
/// | `none SELECTOR` | the selector finds nothing |
/// | `some SELECTOR` | it finds something |
/// | `count SELECTOR <= N` | it finds at most N nodes |
/// | `order SELECTOR then SELECTOR` | both find something, and what the first finds first comes before what the second finds first: by snapshot, then in document order |
/// | `prefix >= N%` | every request keeps at least N % of the one before |
/// | `tokens <= N` | every request has at most N tokens |
/// | `growth <= N/step` | no request has more tokens than the one before and `N` |
/// | `cost <= 0.50` | all calls together cost at most 0.50 dollars; not if the price of one is not known |
/// | `unused = N` | N tools are defined in the newest snapshot and never called |
///
/// In place of each [sign](Sign) there may be any other.
///
/// ```
/// use pactql::inspect::Condition;
/// let condition = Condition::parse("tokens <= 100_000")?;
/// assert_eq!(condition.to_string(), "tokens <= 100000");
/// let error = Condition::parse("tokens <= many").expect_err("not a number");
/// assert_eq!(error.first().labels[0].span, 10..14);
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// The selector finds nothing.
    None(PlacedSelector),
    /// The selector finds something.
    Some(PlacedSelector),
    /// How much the selector finds.
    Count(PlacedSelector, Comparison),
    /// The first selector finds something before the second does.
    Order(PlacedSelector, PlacedSelector),
    /// A number of the session, or of each of its requests.
    Measure(Measure, Comparison),
}

/// A selector of a [`Condition`], which displays as its text. Equal texts are equal, wherever they are.
///
/// ```
/// use pactql::inspect::Condition;
/// let Condition::None(selector) = Condition::parse("none .cb")? else {
///     unreachable!()
/// };
/// assert_eq!((&*selector.text, selector.start), (".cb", 5));
/// # Ok::<(), pactql::Error>(())
/// ```
#[derive(Clone, Debug, Eq)]
#[non_exhaustive]
pub struct PlacedSelector {
    /// Its text.
    pub text: String,
    /// Where it begins in the line, or in the file if that was read, in bytes.
    pub start: usize,
}

impl PartialEq for PlacedSelector {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for PlacedSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

names! {
    /// What is compared with a number, of [`Condition`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Measure: as_str {
        /// How much of the request before each request keeps, in percent.
        Prefix = "prefix",
        /// The tokens of each request.
        Tokens = "tokens",
        /// How many tokens each request has more than the one before.
        Growth = "growth",
        /// The price of all calls.
        Cost = "cost",
        /// How many tools are never called.
        Unused = "unused",
    }
}

names! {
    /// How two numbers compare.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Sign: as_str {
        /// At most.
        AtMost = "<=",
        /// At least.
        AtLeast = ">=",
        /// Less.
        Less = "<",
        /// More.
        More = ">",
        /// Equal.
        Equal = "=",
        /// Not equal.
        Unequal = "!=",
    }
}

/// A comparison with a number.
///
/// ```
/// use pactql::inspect::{Comparison, Sign};
/// let few = Comparison { sign: Sign::Less, than: 3 };
/// assert!(few.holds(-2) && !few.holds(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// How.
    pub sign: Sign,
    /// With what; money in nano-dollars.
    pub than: u64,
}

impl Comparison {
    /// Whether it holds of a number.
    #[must_use]
    pub fn holds(self, number: impl Into<i128>) -> bool {
        let (number, than) = (number.into(), i128::from(self.than));
        match self.sign {
            Sign::AtMost => number <= than,
            Sign::AtLeast => number >= than,
            Sign::Less => number < than,
            Sign::More => number > than,
            Sign::Equal => number == than,
            Sign::Unequal => number != than,
        }
    }
}

impl Measure {
    /// The sign that may stand before a number, and what may stand after it.
    fn unit(self) -> (&'static str, &'static str) {
        match self {
            Self::Prefix => ("", "%"),
            Self::Growth => ("", "/step"),
            Self::Cost => ("$", ""),
            Self::Tokens | Self::Unused => ("", ""),
        }
    }

    /// How many digits after the point count.
    fn decimals(self) -> usize {
        match self {
            Self::Cost => 9,
            _ => 0,
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Prefix => "prefix >= 90%",
            Self::Tokens => "tokens <= 100000",
            Self::Growth => "growth <= 2000/step",
            Self::Cost => "cost <= 0.50",
            Self::Unused => "unused = 0",
        }
    }
}

/// The words that conditions begin with.
fn words() -> impl Iterator<Item = &'static str> {
    let of_selectors = ["none", "some", "count", "order"];
    of_selectors
        .into_iter()
        .chain(Measure::ALL.map(Measure::as_str))
}

/// Whether a text begins as a condition.
pub(crate) fn is_condition(text: &str) -> bool {
    let (first, rest) = text.split_once(' ').unwrap_or_default();
    !rest.is_empty() && words().any(|known| known == first)
}

fn example(word: &str) -> &'static str {
    match word {
        "none" => "none .cb[data_is_error=true]",
        "count" => "count .cb[kind='call'] <= 3",
        "order" => "order .cb[kind='call'] then .cb[kind='result']",
        "some" => "some .cb[kind='call']",
        other => Measure::parse(other).map_or("tokens <= 100000", Measure::example),
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None(selector) => write!(f, "none {selector}"),
            Self::Some(selector) => write!(f, "some {selector}"),
            Self::Count(selector, Comparison { sign, than }) => {
                write!(f, "count {selector} {sign} {than}")
            }
            Self::Order(first, second) => write!(f, "order {first} then {second}"),
            Self::Measure(Measure::Cost, Comparison { sign, than }) => {
                let (dollars, nanos) = (than / 1_000_000_000, than % 1_000_000_000);
                let nanos = format!("{nanos:09}");
                let cents = nanos.trim_end_matches('0');
                write!(f, "cost {sign} {dollars}.{cents:0<2}")
            }
            Self::Measure(measure, Comparison { sign, than }) => {
                write!(f, "{measure} {sign} {than}{}", measure.unit().1)
            }
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
    /// It is not a condition; every error of a selector, with its place in the line.
    pub fn parse(line: &str) -> Result<Self, Error> {
        Self::parse_at(line, 0)
    }

    /// As [`Condition::parse`], of a line that begins at the byte `start` of its file.
    fn parse_at(line: &str, start: usize) -> Result<Self, Error> {
        let line = Line(line, start);
        let whole = line.trimmed(0..line.0.len());
        let text = &line.0[whole.clone()];
        let word = text.split(char::is_whitespace).next().unwrap_or_default();
        let after = whole.start + word.len();
        let rest = line.trimmed(after..whole.end);
        Ok(match word {
            "none" => Self::None(line.selector(rest, word)?),
            "some" => Self::Some(line.selector(rest, word)?),
            "count" => {
                let (selector, comparison) = line.count(rest)?;
                Self::Count(selector, comparison)
            }
            "order" => {
                let (first, second) = line.order(rest)?;
                Self::Order(first, second)
            }
            _ => match Measure::parse(word) {
                Some(measure) => {
                    let comparison = line.comparison(rest, word, Some(measure))?;
                    Self::Measure(measure, comparison)
                }
                None => {
                    let message = format!("expected a condition, found `{word}`");
                    let mut mistake = Diagnostic::error(Code::Input, message);
                    match nearest(word, words()) {
                        Some(near) => mistake.correct(&format!("{near}{}", &line.0[after..])),
                        None => {
                            let known = words().collect::<Vec<_>>().join(", ");
                            mistake.set_help(format!("a line begins with one of {known}"));
                        }
                    }
                    return Err(Error::new(line.0, mistake.at(whole.start..after, "")));
                }
            },
        })
    }

    /// Reads a file: a condition a line, without empty lines and those that begin with `#`. Each with
    /// the number of its line, from 1.
    ///
    /// # Errors
    /// As [`Condition::parse`], of every line that is not a condition, with places in the whole text; a file without a
    /// condition.
    pub fn parse_file(text: &str) -> Result<Vec<(usize, Self)>, Error> {
        let (mut conditions, mut mistakes) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (number, whole) in (1..).zip(text.split_inclusive('\n')) {
            let line = whole.trim_end();
            if !line.trim_start().is_empty() && !line.trim_start().starts_with('#') {
                match Self::parse_at(line, start) {
                    Ok(condition) => conditions.push((number, condition)),
                    Err(error) => mistakes.extend(error.diagnostics().map(|it| moved(it, start))),
                }
            }
            start += whole.len();
        }
        if let Some(error) = Error::from_diagnostics(text, mistakes) {
            return Err(error);
        }
        if conditions.is_empty() {
            let mistake = Diagnostic::error(Code::Input, "the file has no condition")
                .with_help(example("none"));
            return Err(Error::new("", mistake));
        }
        Ok(conditions)
    }

    fn selectors(&self) -> [Option<&PlacedSelector>; 2] {
        match self {
            Self::None(only) | Self::Some(only) | Self::Count(only, _) => [Some(only), None],
            Self::Order(first, second) => [Some(first), Some(second)],
            Self::Measure(..) => [None, None],
        }
    }
}

/// An error of a condition's selector with its places in the text of the file.
pub(crate) fn in_conditions(text: &str, conditions: &[(usize, Condition)], error: Error) -> Error {
    let mut selectors = conditions
        .iter()
        .flat_map(|(_, condition)| condition.selectors().into_iter().flatten());
    // Conditions are checked in order, so of equal selectors the first one has failed.
    let Some(failed) = selectors.find(|selector| selector.text == error.text()) else {
        return error;
    };
    let places = error.diagnostics().map(|it| moved(it, failed.start));
    Error::from_diagnostics(text, places.collect()).unwrap_or(error)
}

/// A diagnostic with its places so much further on.
fn moved(diagnostic: &Diagnostic, by: usize) -> Diagnostic {
    let mut moved = diagnostic.clone();
    for label in &mut moved.labels {
        label.span = label.span.start + by..label.span.end + by;
    }
    moved
}

/// A line, and where it begins in its file. Its parts are ranges of its bytes.
#[derive(Clone, Copy)]
struct Line<'a>(&'a str, usize);

impl Line<'_> {
    fn trimmed(self, part: Range<usize>) -> Range<usize> {
        let text = &self.0[part.clone()];
        let start = part.start + text.len() - text.trim_start().len();
        start..start.max(part.start + text.trim_end().len())
    }

    fn refuse(self, part: Range<usize>, message: String, word: &str) -> Error {
        let mistake = Diagnostic::error(Code::Input, message).at(part, "");
        Error::new(
            self.0,
            mistake.with_help(format!("such as `{}`", example(word))),
        )
    }

    /// Checks a selector of rows without parameters. What corrects it corrects the line.
    fn selector(self, part: Range<usize>, word: &str) -> Result<PlacedSelector, Error> {
        let part = self.trimmed(part);
        let text = &self.0[part.clone()];
        if text.is_empty() {
            return Err(self.refuse(part, format!("`{word}` needs a selector"), word));
        }
        compiles(text).map_err(|error| {
            let diagnostics = error.diagnostics().map(|diagnostic| {
                let mut mistake = moved(diagnostic, part.start);
                if let Some(selector) = diagnostic.correction() {
                    let (before, after) = (&self.0[..part.start], &self.0[part.end..]);
                    mistake.correct(format!("{before}{selector}{after}").trim());
                }
                mistake
            });
            Error::from_diagnostics(self.0, diagnostics.collect()).unwrap_or(error)
        })?;
        Ok(PlacedSelector {
            text: text.to_owned(),
            start: self.1 + part.start,
        })
    }

    /// `SELECTOR <= 3`. The comparison is the last, because selectors have some, too.
    fn count(self, part: Range<usize>) -> Result<(PlacedSelector, Comparison), Error> {
        let text = &self.0[part.clone()];
        let last = text.rfind(is_sign);
        let sign = text[..last.map_or(0, |last| last + 1)].trim_end_matches(is_sign);
        if text.is_empty() || last.is_none() || compiles(text).is_ok() {
            self.selector(part.clone(), "count")?;
            let mut mistake =
                Diagnostic::error(Code::Input, "expected a comparison after the selector");
            mistake.correct(&format!("{} <= 3", self.0.trim()));
            let mistake = mistake.at(part.end..part.end, "");
            return Err(Error::new(self.0, mistake));
        }
        let at = part.start + sign.len();
        let comparison = self.comparison(at..part.end, "count", None)?;
        Ok((self.selector(part.start..at, "count")?, comparison))
    }

    /// `SELECTOR then SELECTOR`: cut at the first `then` that has a selector on both sides, because a text in a selector
    /// may have the word, too.
    fn order(self, part: Range<usize>) -> Result<(PlacedSelector, PlacedSelector), Error> {
        let text = &self.0[part.clone()];
        let is_space = |letter: Option<char>| letter.is_none_or(char::is_whitespace);
        let words = text
            .match_indices("then")
            .map(|(at, word)| (at, at + word.len()));
        let cuts = words.filter(|(start, end)| {
            is_space(text[..*start].chars().next_back()) && is_space(text[*end..].chars().next())
        });
        let cuts: Vec<(usize, usize)> = cuts.collect();
        let sides = |both: usize| {
            cuts.iter().find(|(start, end)| {
                let sides = [&text[..*start], &text[*end..]];
                sides[..both]
                    .iter()
                    .all(|side| compiles(side.trim()).is_ok())
            })
        };
        // Where none works, the errors are those of the most likely one.
        let is_outside = |(start, _): &&(usize, usize)| {
            let quotes = |quote| text[..*start].matches(quote).count();
            quotes('\'') % 2 == 0 && quotes('"') % 2 == 0
        };
        let likely = || cuts.iter().find(is_outside).or(cuts.first());
        let Some((start, end)) = sides(2).or_else(|| sides(1)).or_else(likely) else {
            self.selector(part.clone(), "order")?;
            let message = "expected `then` and a second selector".to_owned();
            return Err(self.refuse(part.end..part.end, message, "order"));
        };
        Ok((
            self.selector(part.start..part.start + start, "order")?,
            self.selector(part.start + end..part.end, "order")?,
        ))
    }

    /// A sign and a number: of a measure, or how many.
    fn comparison(
        self,
        part: Range<usize>,
        word: &str,
        measure: Option<Measure>,
    ) -> Result<Comparison, Error> {
        let text = &self.0[part.clone()];
        let signs = text.len() - text.trim_start_matches(is_sign).len();
        let Some(sign) = Sign::parse(&text[..signs]) else {
            let first = text.split(char::is_whitespace).next().unwrap_or_default();
            let end = if signs == 0 { first.len() } else { signs };
            let place = part.start..part.start + end;
            let found = match end {
                0 => String::new(),
                _ => format!(", found `{}`", &self.0[place.clone()]),
            };
            let known = Sign::ALL.map(Sign::as_str).join(" ");
            let message = format!("expected one of {known} after `{word}`{found}");
            return Err(self.refuse(place, message, word));
        };
        let place = self.trimmed(part.start + signs..part.end);
        let text = &self.0[place.clone()];
        let (before, after) = measure.map_or(("", ""), Measure::unit);
        let digits = text.strip_prefix(before).map_or(text, str::trim_start);
        let digits = digits.strip_suffix(after).map_or(digits, str::trim_end);
        let decimals = measure.map_or(0, Measure::decimals);
        let Some(than) = decimal(&digits.replace('_', ""), decimals) else {
            let what = match decimals {
                0 => "a whole number".to_owned(),
                most => format!("dollars with at most {most} decimals"),
            };
            let message = format!("expected {what} after `{sign}`, found `{text}`");
            return Err(self.refuse(place, message, word));
        };
        Ok(Comparison { sign, than })
    }
}

fn is_sign(letter: char) -> bool {
    matches!(letter, '<' | '>' | '=' | '!')
}

/// Errors: it is not a selector of rows, or it has parameters.
fn compiles(selector: &str) -> Result<(), Error> {
    let prepared = Engine::new().prepare(selector)?;
    prepared.check_rows()?;
    prepared.ready().map(|_| ())
}
