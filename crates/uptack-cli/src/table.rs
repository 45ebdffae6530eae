//! Tables that fit the terminal.

use crate::layout::{columns, longest_piece, width, wrap};

/// Rows of cells in aligned columns; the first column to the left, numbers to the right.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// The first row names the columns.
    has_header: bool,
}

/// Between two columns.
const GAP: usize = 2;
/// Narrower cells stay in one line: they hold a number, or a word or two.
const WRAPPED: usize = 20;

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&cell| cell.to_owned()).collect()], has_header: true }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table, as wide as the terminal at most.
    pub(crate) fn render(&self) -> String {
        self.render_within(width())
    }

    /// Long texts are broken into several lines; where that is not enough, each row is written as a list of its cells.
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
        let least =
            |cell: &str| if columns(cell) <= WRAPPED { columns(cell) } else { longest_piece(cell).max(WRAPPED) };
        self.cells(column).map(least).max().unwrap_or(0)
    }

    /// One line per cell, under the name of its column.
    fn stacked(&self, width: usize) -> String {
        let (names, rows) = if self.has_header { self.rows.split_at(1) } else { (&[][..], &self.rows[..]) };
        let name = |column: usize| names.first().and_then(|row| row.get(column)).map_or("", String::as_str);
        let indent = names.iter().flatten().map(|name| columns(name)).max().map_or(0, |widest| widest + GAP);
        let cell = |(column, cell): (usize, &String)| {
            let lines = wrap(cell, width.saturating_sub(indent));
            let label = |line: usize| if line == 0 { name(column) } else { "" };
            let lines = lines.iter().enumerate();
            lines.map(|(line, text)| format!("{:<indent$}{text}\n", label(line))).collect::<String>()
        };
        let filled =
            |row: &Vec<String>| row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()).map(cell).collect();
        rows.iter().map(filled).collect::<Vec<String>>().join("\n")
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// One row, in as many lines as its longest cell takes.
fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let padded = cells.iter().zip(widths).enumerate().map(|(column, (lines, width))| {
            let text = lines.get(number).map_or("", String::as_str);
            // Texts of several lines begin at the left, whichever column they are in.
            if column == 0 || lines.len() > 1 { format!("{text:<width$}") } else { format!("{text:>width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    (0..height.max(1)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
