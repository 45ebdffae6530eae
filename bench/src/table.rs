//! What is printed.

/// A row of the table.
pub struct Row {
    what: String,
    target: String,
    measured: String,
    verdict: &'static str,
}

/// What a measurement should be.
#[derive(Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// Told for information.
    None,
}

impl Row {
    /// A row whose value is written with `unit` behind it.
    pub fn new(what: impl Into<String>, target: Target, value: f64, unit: &str) -> Self {
        let (bound, sign, met) = match target {
            Target::AtLeast(bound) => (bound, "≥ ", value >= bound),
            Target::AtMost(bound) => (bound, "≤ ", value <= bound),
            Target::None => return Self::text(what, "", format!("{} {unit}", number(value)), "–"),
        };
        let verdict = if met { "pass" } else { "MISS" };
        Self::text(what, format!("{sign}{} {unit}", number(bound)), format!("{} {unit}", number(value)), verdict)
    }

    /// A row for what could not be measured.
    pub fn skipped(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::text(what, "", why, "skipped")
    }

    fn text(
        what: impl Into<String>,
        target: impl Into<String>,
        measured: impl Into<String>,
        verdict: &'static str,
    ) -> Self {
        Self { what: what.into(), target: target.into(), measured: measured.into(), verdict }
    }

    fn cells(&self) -> [&str; 4] {
        [&self.what, &self.target, &self.measured, self.verdict]
    }
}

/// The rows as a Markdown table that reads well as it is.
pub fn print(rows: &[Row]) {
    let head = ["what", "target", "measured", "verdict"];
    let lines: Vec<[&str; 4]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 4] = std::array::from_fn(width);
    for (index, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("| {} |", cells.join(" | "));
        if index == 0 {
            println!("| {} |", widths.map(|width| "-".repeat(width)).join(" | "));
        }
    }
}

/// Three figures are enough for a measurement.
fn number(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
