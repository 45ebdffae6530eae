//! Tables with bars on one common axis.

use crate::layout::columns;
use crate::output::Table;

/// Rows with a bar each, all on one axis that begins at 0.
pub(super) struct BarChart<'a> {
    pub(super) header: &'a [&'a str],
    pub(super) bars: Vec<Bar>,
}

/// One row, and the ends of its bar.
pub(super) struct Bar {
    pub(super) cells: Vec<String>,
    /// The bar is solid up to here.
    pub(super) solid: f64,
    /// It is light up to here.
    pub(super) light: f64,
}

/// Columns of the longest bar.
const WIDTH: usize = 24;
/// A whole column, and its first eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

impl BarChart<'_> {
    pub(super) fn render(&self) -> String {
        let longest = self.bars.iter().map(|bar| bar.light.max(bar.solid)).fold(0.0, f64::max);
        let header: Vec<&str> = self.header.iter().copied().chain([""]).collect();
        let rows = self.bars.iter().map(|bar| {
            let drawn = drawn(bar, longest);
            // The last column is aligned right, and bars begin at the left.
            let padding = " ".repeat(WIDTH.saturating_sub(columns(&drawn)));
            bar.cells.iter().cloned().chain([drawn + &padding]).collect::<Vec<_>>()
        });
        Table::new(&header).with_rows(rows).render()
    }
}

fn drawn(bar: &Bar, longest: f64) -> String {
    let eighths = |value: f64| match longest > 0.0 {
        true => (value.max(0.0) / longest * (8 * WIDTH) as f64).round() as usize,
        false => 0,
    };
    let solid = eighths(bar.solid);
    let whole = "█".repeat(solid / 8) + EIGHTHS[solid % 8];
    let light = eighths(bar.light).div_ceil(8);
    let rest = "░".repeat(light.saturating_sub(columns(&whole)));
    whole + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_one_axis() {
        let bar = |name: &str, solid, light| Bar { cells: vec![name.to_owned()], solid, light };
        let bars = vec![bar("a", 24.0, 24.0), bar("b", 12.5, 18.0), bar("c", -3.0, 1.0), bar("d", 0.0, 0.0)];
        let text = BarChart { header: &["option"], bars }.render();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("a       {}", "█".repeat(24)));
        assert_eq!(lines[2], format!("b       {}▌░░░░░", "█".repeat(12)));
        assert_eq!(lines[3..], ["c       ░", "d"]);
    }
}
