//! Tables of numbers with a bar at the end of each line.

use super::options::{Paint, Tint};
use super::output::width_of;

/// The length of the longest bar.
const LONGEST: u64 = 30;

/// The columns to which names are cut.
const WIDEST: usize = 60;

/// A table: a name, numbers to the right, and a bar in proportion to the largest.
pub(super) struct Bars {
    header: Vec<String>,
    rows: Vec<(Vec<String>, u64)>,
}

impl Bars {
    /// A table with the titles of its columns, the first of which is that of the names.
    pub(super) fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a line.
    pub(super) fn add(&mut self, name: String, cells: impl IntoIterator<Item = String>, size: u64) {
        let mut row = vec![name];
        row.extend(cells);
        self.rows.push((row, size));
    }

    /// The table.
    pub(super) fn text(&self, paint: Paint) -> String {
        let cut = |cell: &str| super::output::cut(cell, WIDEST);
        let column = |at: usize| {
            let cells = self.rows.iter().filter_map(|(row, _)| row.get(at));
            let cells = cells.chain(self.header.get(at));
            cells.map(|cell| width_of(&cut(cell))).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(column).collect();
        let largest = self.rows.iter().map(|(_, size)| *size).max().unwrap_or(0);
        let mut text = String::new();
        let header = std::iter::once((&self.header, None));
        let rows = self.rows.iter().map(|(row, size)| (row, Some(*size)));
        for (row, size) in header.chain(rows) {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell);
                let blanks = " ".repeat(width - width_of(&cell));
                let cell = match size {
                    None => paint.tint(Tint::Name, &cell),
                    Some(_) => cell,
                };
                match at {
                    0 => line.extend([&*cell, &blanks]),
                    _ => line.extend(["  ", &blanks, &cell]),
                }
            }
            let bar = size.map_or(0, |size| bar(size, largest));
            line.extend(["  ", &paint.tint(Tint::Kind, &"█".repeat(bar))]);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The length of a bar; at least one for what is not nothing.
fn bar(size: u64, largest: u64) -> usize {
    let length = match largest {
        0 => 0,
        largest => (u128::from(size) * u128::from(LONGEST)).div_ceil(u128::from(largest)),
    };
    // At most LONGEST.
    length as usize
}

/// A number with commas between thousands.
pub(super) fn amount(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{amount, bar};

    #[test]
    fn thousands_have_commas() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(amount(number), text);
        }
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
