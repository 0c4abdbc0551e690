//! Tables of text for a terminal, with colours and with a bar at the end of each line.

use super::macros::names;
use super::text::{cut, width_of};

/// Colours text by the escape sequences of a terminal, or leaves it as it is, which is the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint(bool);

names! {
    /// A colour by its meaning.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Tint: code {
        /// Green.
        Added = "32",
        /// Red.
        Removed = "31",
        /// Yellow.
        Changed = "33",
        /// Snapshots and line numbers: cyan.
        Place = "36",
        /// Ids and titles of columns: bold.
        Name = "1",
        /// Roles and kinds: blue.
        Kind = "34",
        /// The name of a tool: magenta.
        Tool = "35",
        /// What the selector looked for: bold red.
        Match = "1;31",
    }
}

impl Paint {
    /// With colours, or without.
    #[must_use]
    pub fn new(colored: bool) -> Self {
        Self(colored)
    }

    pub(crate) fn tint(self, tint: Tint, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", tint.code())
        } else {
            text.to_owned()
        }
    }
}

/// The length of the longest bar.
const LONGEST: u64 = 30;

/// The columns to which the cells of a table with bars are cut.
const WIDEST: usize = 60;

/// A table: words to the left and numbers to the right, maybe with bars in proportion to the largest.
pub(crate) struct TextTable {
    titles: Vec<String>,
    /// Whether each column is of words.
    left: Vec<bool>,
    rows: Vec<(Vec<TableCell>, Option<u64>)>,
    hide_empty: bool,
    /// The most columns of the terminal that a line takes.
    fit: Option<usize>,
}

pub(crate) struct TableCell {
    text: String,
    tint: Option<Tint>,
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self { text, tint: None }
    }
}

impl TableCell {
    pub(crate) fn new(text: String, tint: Option<Tint>) -> Self {
        Self { text, tint }
    }
}

impl TextTable {
    /// A table with these titles; only the first column has words.
    pub(crate) fn new(titles: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let titles: Vec<String> = titles.into_iter().map(Into::into).collect();
        Self {
            left: (0..titles.len()).map(|at| at == 0).collect(),
            titles,
            rows: Vec::new(),
            hide_empty: false,
            fit: None,
        }
    }

    /// These columns have words, too.
    pub(crate) fn words(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        for at in columns {
            self.left[at] = true;
        }
        self
    }

    /// These columns have numbers.
    #[cfg(feature = "cli")]
    pub(crate) fn numbers(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        for at in columns {
            self.left[at] = false;
        }
        self
    }

    /// Cuts cells of words, the longest ones first, so that a line takes no more columns of the terminal.
    #[cfg(feature = "cli")]
    pub(crate) fn fit(mut self, columns: Option<usize>) -> Self {
        self.fit = columns;
        self
    }

    /// Leaves out columns with nothing in them.
    pub(crate) fn hide_empty(mut self) -> Self {
        self.hide_empty = true;
        self
    }

    pub(crate) fn add(&mut self, cells: impl IntoIterator<Item = impl Into<TableCell>>) {
        let cells = cells.into_iter().map(Into::into).collect();
        self.rows.push((cells, None));
    }

    pub(crate) fn add_bar(
        &mut self,
        name: String,
        cells: impl IntoIterator<Item = String>,
        size: u64,
    ) {
        let cells = std::iter::once(name).chain(cells);
        let cells = cells.map(|cell| cut(&cell, WIDEST).into()).collect();
        self.rows.push((cells, Some(size)));
    }

    /// Makes the widest columns of words narrower until a line fits.
    fn shrink(&self, widths: &mut [Option<usize>]) {
        let Some(fit) = self.fit else { return };
        let all: usize = widths.iter().flatten().map(|width| width + 2).sum();
        for _ in fit..all.saturating_sub(2) {
            let words = widths.iter_mut().zip(&self.left);
            let words = words.filter_map(|(width, left)| width.as_mut().filter(|_| *left));
            match words.max() {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => return,
            }
        }
    }

    /// The table, a line for the titles and one for each row.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let titles = self.titles.iter();
        let titles = titles.map(|title| TableCell::new(cut(title, WIDEST), Some(Tint::Name)));
        let titles: Vec<TableCell> = titles.collect();
        let cells = |at: usize| self.rows.iter().filter_map(move |(row, _)| row.get(at));
        let width = |at: usize| {
            let widest = cells(at)
                .map(|cell| width_of(&cell.text))
                .max()
                .unwrap_or(0);
            let is_shown = widest > 0 || !self.hide_empty;
            is_shown.then(|| widest.max(width_of(&titles[at].text)))
        };
        let mut widths: Vec<Option<usize>> = (0..titles.len()).map(width).collect();
        self.shrink(&mut widths);
        let largest = self.rows.iter().filter_map(|(_, size)| *size).max();
        let mut text = String::new();
        let rows = self.rows.iter().map(|(row, size)| (row, *size));
        for (row, size) in std::iter::once((&titles, None)).chain(rows) {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let Some(width) = width else { continue };
                let text = match self.fit {
                    Some(_) => cut(&cell.text, *width),
                    None => cell.text.clone(),
                };
                let blanks = " ".repeat(width - width_of(&text));
                let shown = match cell.tint {
                    Some(tint) => paint.tint(tint, &text),
                    None => text,
                };
                if !line.is_empty() {
                    line.push_str("  ");
                }
                if self.left[at] {
                    line.extend([shown, blanks]);
                } else {
                    line.extend([blanks, shown]);
                }
            }
            let bar = size.map_or(0, |size| bar(size, largest.unwrap_or(0)));
            line.extend(["  ", &paint.tint(Tint::Kind, &"█".repeat(bar))]);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A column of words is not cut to less.
const NARROWEST: usize = 10;

/// The length of a bar; at least one for what is not nothing.
fn bar(size: u64, largest: u64) -> usize {
    let length = match largest {
        0 => 0,
        largest => (u128::from(size) * u128::from(LONGEST)).div_ceil(u128::from(largest)),
    };
    // At most LONGEST.
    length as usize
}

#[cfg(test)]
mod tests {
    use super::{Paint, TextTable, bar};

    #[test]
    fn tables_fit() {
        let table = |fit| {
            let mut table = TextTable::new(["name", "title", "count"])
                .words([1])
                .fit(fit);
            table.add(
                [
                    "a name of 20 columns",
                    "a longer title of 30 columns..",
                    "7",
                ]
                .map(String::from),
            );
            table.text(Paint::default())
        };
        let whole = table(None);
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert_eq!(widest(&whole), Some(59));
        assert_eq!(table(Some(59)), whole);
        assert_eq!(
            table(Some(40)),
            "name              title            count\n\
             a name of 20 co…  a longer title…      7\n"
        );
        // Numbers are whole, and words keep their beginnings.
        assert_eq!(widest(&table(Some(1))), Some(29));
    }

    #[test]
    fn bars_are_in_proportion() {
        for (size, largest, length) in [(0, 0, 0), (0, 9, 0), (1, 1_000, 1), (9, 9, 30), (3, 9, 10)]
        {
            assert_eq!(bar(size, largest), length, "{size} of {largest}");
        }
        assert_eq!(bar(u64::MAX, u64::MAX), 30);
    }
}
