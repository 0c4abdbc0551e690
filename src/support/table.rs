//! Tables of text for a terminal, with colours and with a bar at the end of each line.

use super::macros::names;
use super::text::printable;
use super::text::{cut, width_of};
use std::cmp::Reverse;
use {serde::Serialize, serde_json::Value};

/// How text is printed: with the escape sequences of a terminal for colours, or as it is, which is the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    colored: bool,
    columns: Option<usize>,
    order: RowOrder,
}

/// Which rows of a table are printed, and in which order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowOrder {
    /// The title of a column by which they are sorted: numbers from the largest, words from the first.
    pub(crate) by: Option<&'static str>,
    pub(crate) is_reversed: bool,
    /// How many at most, from the first.
    pub(crate) most: Option<usize>,
}

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
        /// Notes.
        Dim = "2",
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
        Self {
            colored,
            ..Self::default()
        }
    }

    /// No line of a table is wider, as far as its numbers allow that.
    pub(crate) fn columns(mut self, columns: Option<usize>) -> Self {
        self.columns = columns;
        self
    }

    pub(crate) fn order(mut self, order: RowOrder) -> Self {
        self.order = order;
        self
    }

    pub(crate) fn tint(self, tint: Tint, text: &str) -> String {
        if self.colored && !text.is_empty() {
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
    /// A row below the others, whatever their order.
    last: Option<Vec<TableCell>>,
    hide_empty: bool,
    /// The columns that are left out where there is no room, in this order.
    optional: &'static [usize],
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
            last: None,
            hide_empty: false,
            optional: &[],
        }
    }

    /// A table of what serializes to JSON objects. Each column has a title and, after a `=`, the member that it shows if
    /// that has another name.
    pub(crate) fn of(rows: impl IntoIterator<Item = impl Serialize>, columns: &str) -> Self {
        let columns = columns.split(' ');
        let columns = columns.map(|column| column.split_once('=').unwrap_or((column, column)));
        let (titles, members): (Vec<&str>, Vec<&str>) = columns.unzip();
        let mut table = Self::new(titles);
        for row in rows {
            let row = serde_json::to_value(row).unwrap_or_default();
            table.add(members.iter().map(|member| {
                let text = match &row[member] {
                    Value::Null | Value::Bool(false) => String::new(),
                    Value::Bool(true) => "yes".to_owned(),
                    Value::String(text) => printable(text),
                    other => other.to_string(),
                };
                TableCell::new(text, (*member == "name").then_some(Tint::Name))
            }));
        }
        table
    }

    /// These columns have words, too.
    pub(crate) fn words(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        for at in columns {
            self.left[at] = true;
        }
        self
    }

    /// These columns have numbers.
    pub(crate) fn numbers(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        for at in columns {
            self.left[at] = false;
        }
        self
    }

    /// Leaves these columns out, in this order, until the longest one has room.
    pub(crate) fn optional(mut self, columns: &'static [usize]) -> Self {
        self.optional = columns;
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

    /// Adds a row that stays below the others.
    pub(crate) fn add_last(&mut self, cells: impl IntoIterator<Item = impl Into<TableCell>>) {
        self.last = Some(cells.into_iter().map(Into::into).collect());
    }

    pub(crate) fn add_bar(
        &mut self,
        name: String,
        cells: impl IntoIterator<Item = String>,
        size: u64,
    ) {
        let cells = std::iter::once(name).chain(cells);
        self.rows
            .push((cells.map(Into::into).collect(), Some(size)));
    }

    /// The rows with their places, sorted by the column of `--sort` and turned round by `--reverse`.
    fn ordered(&self, order: RowOrder) -> Vec<(usize, &Vec<TableCell>)> {
        let rows = self.rows.iter().map(|(cells, _)| cells);
        let mut rows: Vec<_> = rows.enumerate().collect();
        if let Some(at) = self.sorted(order) {
            rows.sort_by_cached_key(|(_, cells)| {
                let text = cells.get(at).map_or("", |cell| &cell.text);
                (Reverse(number(text)), text.to_owned())
            });
        }
        if order.is_reversed {
            rows.reverse();
        }
        rows.truncate(order.most.unwrap_or(usize::MAX));
        rows
    }

    /// The column of `--sort`.
    fn sorted(&self, order: RowOrder) -> Option<usize> {
        let by = order.by?;
        let titles = self.titles.iter();
        let mut names = titles.map(|title| title.replace(' ', "-"));
        // The first column is what the rows are of, such as `day`.
        Some(names.position(|name| name == by).unwrap_or(0))
    }

    /// Makes the widest columns of words narrower until a line fits.
    fn shrink(&self, fit: Option<usize>, order: RowOrder, widths: &mut [Option<usize>]) {
        let Some(fit) = fit else { return };
        let sorted = self.sorted(order);
        let sum = |widths: &[Option<usize>]| widths.iter().flatten().map(|width| width + 2).sum();
        for at in self.optional.iter().filter(|at| sorted != Some(**at)) {
            let words = widths.iter().zip(&self.left);
            let words = words.filter_map(|(width, left)| width.filter(|_| *left));
            let saved = words.max().unwrap_or(0).saturating_sub(ROOMY);
            let all: usize = sum(widths);
            if all - saved > fit + 2 {
                widths[*at] = None;
            }
        }
        let all: usize = sum(widths);
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
        let rows = self.ordered(paint.order).into_iter();
        let sizes = rows.filter_map(|(at, _)| self.rows[at].1);
        let largest = sizes.max().unwrap_or(0);
        self.ended(paint, 0, |row, room| {
            let size = row.and_then(|row| self.rows[row].1);
            let longest = room.map_or(LONGEST, |room| LONGEST.min(room as u64));
            let bar = size.map_or(0, |size| bar(size, largest, longest));
            paint.tint(Tint::Kind, &"█".repeat(bar))
        })
    }

    /// The same with an end for each line, which `end` makes of the place of the row, `None` for the titles, and of
    /// how many columns are left for it: at least `least`.
    pub(crate) fn ended(
        &self,
        paint: Paint,
        least: usize,
        end: impl Fn(Option<usize>, Option<usize>) -> String,
    ) -> String {
        let titles = self.titles.iter();
        let titles = titles.map(|title| TableCell::new(cut(title, WIDEST), Some(Tint::Name)));
        let titles: Vec<TableCell> = titles.collect();
        let rows = self.ordered(paint.order);
        let shown = || rows.iter().map(|(_, row)| *row).chain(&self.last);
        let cells = |at: usize| shown().filter_map(move |row| row.get(at));
        // What is not a terminal gets whole words, and a terminal has room for bars.
        let has_bars = self.rows.iter().any(|(_, size)| size.is_some());
        let most = match paint.columns {
            Some(_) if has_bars => WIDEST,
            _ => usize::MAX,
        };
        let width = |at: usize| {
            let widths = cells(at).map(|cell| width_of(&cell.text));
            let widest = widths.max().unwrap_or(0).min(most);
            let is_shown = widest > 0 || !self.hide_empty;
            is_shown.then(|| widest.max(width_of(&titles[at].text)))
        };
        let mut widths: Vec<Option<usize>> = (0..titles.len()).map(width).collect();
        let fit = paint.columns.map(|all| match least {
            0 => all,
            least => all.saturating_sub(least + 2),
        });
        self.shrink(fit, paint.order, &mut widths);
        let used: usize = widths.iter().flatten().map(|width| width + 2).sum();
        let room = paint.columns.map(|all| all.saturating_sub(used).max(least));
        let mut text = String::new();
        let rows = rows.iter().map(|(at, row)| (*row, Some(*at)));
        let rows = std::iter::once((&titles, None)).chain(rows);
        let rows = rows.map(|(row, at)| (row, end(at, room)));
        let last = self.last.iter().map(|row| (row, String::new()));
        for (row, end) in rows.chain(last) {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let Some(width) = width else { continue };
                let text = match paint.columns {
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
            line.extend(["  ", &end]);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Columns are left out rather than that the longest one is cut to less.
const ROOMY: usize = 24;

/// A column of words is not cut to less.
const NARROWEST: usize = 10;

/// What a cell with a number is sorted by: as in `1,536`, `$0.02`, `65 %`, `@c12` or `+3 -0 ~0`, in millionths.
fn number(cell: &str) -> Option<u128> {
    let word = cell
        .split(' ')
        .next()?
        .trim_start_matches(['@', 'c', '+', '$']);
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    let whole: u128 = whole.replace(',', "").parse().ok()?;
    let part = format!("{part:0<6.6}").parse::<u128>().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(part)
}

/// The length of a bar; at least one for what is not nothing, where there is room.
fn bar(size: u64, largest: u64, longest: u64) -> usize {
    let length = match largest {
        0 => 0,
        largest => (u128::from(size) * u128::from(longest)).div_ceil(u128::from(largest)),
    };
    // At most `longest`.
    length as usize
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Paint, RowOrder, TextTable, bar};

    #[test]
    fn tables_fit() {
        let table = |columns| {
            let mut table = TextTable::new(["name", "title", "count"]).words([1]);
            table.add(
                [
                    "a name of 20 columns",
                    "a longer title of 30 columns..",
                    "7",
                ]
                .map(String::from),
            );
            table.text(Paint::default().columns(columns))
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
    #[cfg(feature = "cli")]
    fn rows_are_ordered() {
        let table = |order| {
            let mut table = TextTable::new(["day", "tokens in"]);
            for row in [["b", "900"], ["a", "1,200"], ["c", ""]] {
                table.add(row.map(String::from));
            }
            table.add_last(["total", "2,100"].map(String::from));
            let text = table.text(Paint::default().order(order));
            let names = text.lines().filter_map(|line| line.split(' ').next());
            names.skip(1).collect::<Vec<_>>().join(" ")
        };
        for (by, is_reversed, most, expected) in [
            (None, false, None, "b a c total"),
            (None, true, Some(1), "c total"),
            (Some("tokens-in"), false, None, "a b c total"),
            (Some("tokens-in"), true, None, "c b a total"),
            (Some("name"), false, Some(2), "a b total"),
        ] {
            let order = RowOrder {
                by,
                is_reversed,
                most,
            };
            assert_eq!(table(order), expected, "{order:?}");
        }
    }

    #[test]
    fn bars_are_in_proportion() {
        for (size, largest, length) in [(0, 0, 0), (0, 9, 0), (1, 1_000, 1), (9, 9, 30), (3, 9, 10)]
        {
            assert_eq!(bar(size, largest, LONGEST), length, "{size} of {largest}");
        }
        assert_eq!(bar(u64::MAX, u64::MAX, LONGEST), 30);
    }
}
