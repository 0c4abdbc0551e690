//! Prints the table of figures.

use super::timing::nice;
use std::fmt::{self, Display, Formatter};

/// One figure: times in nanoseconds, NaN for a contender that does not take part.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) sqlite: f64,
    pub(crate) walk: f64,
    pub(crate) floor: f64,
    pub(crate) pactql: f64,
    /// The required ratio to the better of SQLite and walk.
    pub(crate) required: f64,
}

impl Line {
    /// How many times faster than the better of SQLite and walk.
    pub(crate) fn ratio(&self) -> f64 {
        self.sqlite.min(self.walk) / self.pactql
    }

    /// The most the engine may take in this run.
    fn allowed(&self) -> f64 {
        self.sqlite.min(self.walk) / self.required
    }
}

/// Lines in sections.
#[derive(Default)]
pub(crate) struct Table {
    sections: Vec<(String, Vec<Line>)>,
}

impl Table {
    /// Starts a section.
    pub(crate) fn section(&mut self, title: &str) {
        self.sections.push((title.into(), Vec::new()));
    }

    /// Adds a line to the last section.
    pub(crate) fn add(&mut self, line: Line) {
        if let Some((_, lines)) = self.sections.last_mut() {
            lines.push(line);
        }
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (title, lines) in &self.sections {
            writeln!(
                f,
                "\n{title:34} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}",
                "SQLite", "walk", "floor", "pactql", "allowed", "ratio", "required"
            )?;
            for line in lines {
                let verdict = if line.pactql.is_nan() {
                    ""
                } else {
                    verdict(line.ratio() >= line.required)
                };
                writeln!(
                    f,
                    "  {:32} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8}  {verdict}",
                    line.name,
                    nice(line.sqlite),
                    nice(line.walk),
                    nice(line.floor),
                    nice(line.pactql),
                    nice(line.allowed()),
                    factor(line.ratio()),
                    factor(line.required),
                )?;
            }
        }
        Ok(())
    }
}

/// Whether a figure is reached, as text.
pub(crate) fn verdict(reached: bool) -> &'static str {
    if reached { "reached" } else { "NOT REACHED" }
}

/// A ratio with three digits.
fn factor(ratio: f64) -> String {
    match ratio {
        ratio if ratio.is_nan() => "-".into(),
        ratio if ratio < 10.0 => format!("{ratio:.2}"),
        ratio if ratio < 100.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}
