//! Text and tables that fit the terminal: lines break between words, never inside a word or a number.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::iter;

/// How many columns there are for output; unlimited if stdout is not a terminal.
///
/// As for help, the variable `COLUMNS` is used if there is no terminal to ask.
pub(crate) fn width() -> usize {
    let columns = terminal_columns().or_else(stated_columns);
    columns.map_or(usize::MAX, |columns| columns.max(NARROWEST))
}

/// Narrower terminals get lines that are too long: a query's name alone has 43 columns.
const NARROWEST: usize = 40;

fn terminal_columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

fn stated_columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// The parts, with the separator between them.
pub(crate) fn joined(parts: impl IntoIterator<Item: Display>, separator: &str) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(separator)
}

/// Breaks the lines that are wider than the terminal.
pub(crate) fn fitted_to_terminal(text: &str) -> String {
    fitted(text, width())
}

/// Breaks the lines that are too long; each part of a line is indented as the line was.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    joined(text.split('\n').flat_map(|line| fitted_line(line, width)), "\n")
}

fn fitted_line(line: &str, width: usize) -> impl Iterator<Item = String> {
    let unindented = line.trim_start_matches(' ');
    let indent = line.len() - unindented.len();
    let parts = wrap(unindented, width.saturating_sub(indent)).into_iter();
    parts.map(move |part| format!("{:indent$}{part}", "").trim_end().to_owned())
}

/// The text in lines of at most `width` columns, as far as its words allow; at least one line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    if columns(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for piece in pieces(text) {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() || fits(line, piece, width) {
            line.push_str(piece);
        } else {
            lines.push(piece.to_owned());
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

fn fits(line: &str, piece: &str, width: usize) -> bool {
    columns(line) + columns(piece.trim_end()) <= width
}

/// The widest part of a text that must stay in one piece.
pub(crate) fn longest_piece(text: &str) -> usize {
    pieces(text).map(|piece| columns(piece.trim_end())).max().unwrap_or(0)
}

/// The width of a text: every character that we print takes one column.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The parts between which a line may break: after a blank, and after a comma of a mechanism.
fn pieces(mut remaining: &str) -> impl Iterator<Item = &str> {
    iter::from_fn(move || {
        if remaining.is_empty() {
            return None;
        }
        let (piece, after) = remaining.split_at(first_break(remaining));
        remaining = after;
        Some(piece)
    })
}

/// Where the first piece of a text ends.
fn first_break(text: &str) -> usize {
    let mut ends = text.match_indices([' ', ',']).map(|(index, _)| index + 1);
    ends.find(|&end| may_break(text, end)).unwrap_or(text.len())
}

/// Whether a line may end at `end`: not inside a number, nor between it and its unit or its sign.
fn may_break(text: &str, end: usize) -> bool {
    let (before, after) = (text[..end].trim_end(), &text[end..]);
    if after.is_empty() || after.starts_with([' ', ',']) {
        return false;
    }
    let last = before.rsplit(' ').next().unwrap_or_default();
    let next = after.split([' ', ',', '.', ';', ')']).next().unwrap_or_default();
    let is_bound = matches!(last, "=" | "≤" | "≥" | "±") || matches!(next, "%" | "=" | "≤" | "≥" | "s");
    !is_bound && !is_grouped_number(last, next)
}

/// Whether two words are the groups of one number, as in `50 000`.
fn is_grouped_number(last: &str, next: &str) -> bool {
    let is_digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    next.len() == 3 && is_digits(last) && is_digits(next)
}

/// Rows of cells in aligned columns: the first column is aligned left, the others right.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// The first row names the columns.
    has_header: bool,
}

/// Between two columns.
const GAP: usize = 2;
/// Narrower cells stay on one line: they hold a number, or a word or two.
const WRAPPED: usize = 20;

impl Table {
    pub(crate) fn new(header: &[impl AsRef<str>]) -> Self {
        Self { rows: vec![header.iter().map(|cell| cell.as_ref().to_owned()).collect()], has_header: true }
    }

    /// The table with more rows.
    pub(crate) fn with_rows(mut self, rows: impl IntoIterator<Item: IntoIterator<Item = String>>) -> Self {
        self.rows.extend(rows.into_iter().map(|cells| cells.into_iter().collect()));
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item: Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table, as wide as the terminal at most.
    pub(crate) fn render(&self) -> String {
        self.render_within(width())
    }

    /// Long texts are broken into several lines; if that is not enough, each row is written as a list of its cells.
    pub(crate) fn render_within(&self, width: usize) -> String {
        let mut widths = self.natural_widths();
        while total(&widths) > width {
            let Some(column) = self.most_wrappable(&widths) else { return self.stacked(width) };
            let least = self.least_width(column);
            widths[column] = widths[column].saturating_sub(total(&widths) - width).max(least);
        }
        self.rows.iter().map(|row| aligned(row, &widths)).collect()
    }

    fn natural_widths(&self) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        (0..count).map(|column| self.cells(column).map(columns).max().unwrap_or(0)).collect()
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(move |row| row.get(column)).map(String::as_str)
    }

    /// The widest column that can still become narrower.
    fn most_wrappable(&self, widths: &[usize]) -> Option<usize> {
        let wide = widths.iter().enumerate().filter(|&(column, &width)| width > self.least_width(column).max(WRAPPED));
        wide.max_by_key(|(_, width)| **width).map(|(column, _)| column)
    }

    fn least_width(&self, column: usize) -> usize {
        self.cells(column).map(least_cell_width).max().unwrap_or(0)
    }

    /// One line per cell, after the name of its column.
    fn stacked(&self, width: usize) -> String {
        let list = LabelledList::new(self.names(), width);
        joined(self.body().iter().map(|row| list.render(row)), "\n")
    }

    /// The names of the columns, if they have names.
    fn names(&self) -> &[String] {
        if self.has_header { &self.rows[0] } else { &[] }
    }

    /// The rows without the header.
    fn body(&self) -> &[Vec<String>] {
        &self.rows[usize::from(self.has_header)..]
    }
}

fn least_cell_width(cell: &str) -> usize {
    let natural = columns(cell);
    if natural <= WRAPPED { natural } else { longest_piece(cell).max(WRAPPED) }
}

/// Rows written as lists, each cell after its label.
struct LabelledList<'a> {
    labels: &'a [String],
    indent: usize,
    width: usize,
}

impl<'a> LabelledList<'a> {
    fn new(labels: &'a [String], width: usize) -> Self {
        let indent = labels.iter().map(|label| columns(label)).max().map_or(0, |widest| widest + GAP);
        Self { labels, indent, width }
    }

    /// The cells of a row, without those that are empty.
    fn render(&self, row: &[String]) -> String {
        let filled = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
        filled.map(|(column, cell)| self.entry(column, cell)).collect()
    }

    fn entry(&self, column: usize, cell: &str) -> String {
        let indent = self.indent;
        let label = self.labels.get(column).map_or("", String::as_str);
        // Only the first line has the label.
        let labels = iter::once(label).chain(iter::repeat(""));
        let lines = wrap(cell, self.width.saturating_sub(indent));
        lines.iter().zip(labels).map(|(line, label)| format!("{label:<indent$}{line}\n")).collect()
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// One row, in as many lines as its longest cell takes.
fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    (0..height.max(1)).map(|line| aligned_line(&cells, line, widths)).collect()
}

fn aligned_line(cells: &[Vec<String>], number: usize, widths: &[usize]) -> String {
    let columns = cells.iter().zip(widths).enumerate();
    let padded = columns.map(|(column, (lines, width))| {
        let text = lines.get(number).map_or("", String::as_str);
        // Texts of several lines are aligned left in every column.
        if column == 0 || lines.len() > 1 { format!("{text:<width$}") } else { format!("{text:>width$}") }
    });
    joined(padded, "  ").trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indent() {
        assert_eq!(fitted("a short line", 80), "a short line");
        assert_eq!(fitted("  one two three\nfour", 10), "  one two\n  three\nfour");
        assert_eq!(fitted("supercalifragilistic", 10), "supercalifragilistic");
        assert_eq!(fitted("", 10), "");
        assert_eq!(fitted("a\n\nb\n", 10), "a\n\nb\n");
    }

    #[test]
    fn a_number_keeps_its_unit_and_a_mechanism_breaks_at_its_commas() {
        assert_eq!(wrap("an ε = 0.5 at 95 % is", 10), ["an ε = 0.5", "at 95 % is"]);
        assert_eq!(wrap("blended(b1=0,b2=0.25,b3=0.25)", 14), ["blended(b1=0,", "b2=0.25,", "b3=0.25)"]);
        assert_eq!(wrap("give or take ± 6.3", 14), ["give or take", "± 6.3"]);
        assert_eq!(longest_piece(&format!("of {} owners", uptack::display::grouped(1_050_000))), 9);
    }

    #[test]
    fn no_text_loses_anything() {
        let text = "With fewer honest owners, ε of the release is 1.0871 with 90 %, 1.2768 with 75 %.";
        for width in 1..100 {
            let lines = wrap(text, width);
            assert_eq!(
                lines.join(" ").split_whitespace().collect::<Vec<_>>(),
                text.split_whitespace().collect::<Vec<_>>()
            );
            let longest = longest_piece(text).max(width);
            assert!(lines.iter().all(|line| columns(line) <= longest), "{width}: {lines:?}");
        }
    }

    fn table() -> Table {
        let mut table = Table::new(&["mechanism", "sd", "above the least"]);
        table.row(["spread(pairs=2,f=0.598235,r=0.00270209)", "6.9316", "least"].map(str::to_owned));
        table.row(["blended(b1=0,b2=0.247974,b3=0.247974,f1=0)", "8.0152", "+15.6 %"].map(str::to_owned));
        table
    }

    #[test]
    fn a_table_is_as_wide_as_it_needs_to_be() {
        let text = table().render_within(usize::MAX);
        assert_eq!(text, table().render_within(67));
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("blended(b1=0,b2=0.247974,b3=0.247974,f1=0)  8.0152          +15.6 %\n"), "{text}");
    }

    #[test]
    fn a_narrow_table_breaks_texts_and_no_numbers() {
        let text = table().render_within(50);
        assert!(text.lines().all(|line| columns(line) <= 50), "{text}");
        for whole in ["6.9316", "8.0152", "+15.6 %", "f=0.598235,", "b2=0.247974,"] {
            assert!(text.contains(whole), "{text}");
        }
    }

    #[test]
    fn a_table_that_cannot_fit_becomes_a_list() {
        let mut table = Table::new(&["query", "state", "reason"]);
        table.row(["5VJ7qWQrXnC1bMZ0fT8yKpLh3sD2gA9eRuI6oNvBxkw", "withheld", "too few"].map(str::to_owned));
        let text = table.render_within(52);
        assert_eq!(text, "query   5VJ7qWQrXnC1bMZ0fT8yKpLh3sD2gA9eRuI6oNvBxkw\nstate   withheld\nreason  too few\n");
    }
}
