//! One day of windows.

use maud::{Markup, html};
use uptack::display;

use super::table;
use crate::longitudinal::{Composed, Longitudinal, Memoized};
use crate::report::summary::Table;
use crate::report::text::measured;

pub(super) fn section(day: &Longitudinal) -> Markup {
    html! {
        h2 { "One day of five-minute windows" }
        p {
            "An owner who answers every window with fresh coins gives away more and more; ε of all releases together at \
            δ = " (display::claim(day.delta)) ", certified:"
        }
        (table(&composed(&day.composed)))
        p {
            "With " em { "memoized" } " coins an owner tosses once for each truth and repeats itself. While its truth \
            stays the same, the day says no more than one window. The price is twofold: the day's mean is no better \
            than one window's, and noise that is repeated cancels in the difference of two windows, so that an owner \
            whose truth changes is hidden only among those who change in the same window. No guarantee of the release \
            is claimed for memoized coins."
        }
        (table(&memoized(&day.memoized)))
    }
}

fn composed(parts: &[Composed]) -> Table {
    let header = ["method", "windows", "ε of the releases", "ε of all reports", "error of a window"];
    Table::new("day-fresh", header, parts.iter().map(composed_row).collect())
}

fn composed_row(part: &Composed) -> [String; 5] {
    let release = display::claim(part.release.map(|(_, upper)| upper));
    [part.label.clone(), part.windows.to_string(), release, display::claim(part.linked), measured(part.error)]
}

fn memoized(parts: &[Memoized]) -> Table {
    let header = [
        "method",
        "error of a window",
        "error of the day's mean, fresh",
        "memoized",
        "ε of all reports, fresh",
        "ε memoized, truth unchanged",
    ];
    Table::new("day-memoized", header, parts.iter().map(memoized_row).collect())
}

fn memoized_row(part: &Memoized) -> [String; 6] {
    [
        part.label.clone(),
        measured(part.window),
        measured(part.fresh),
        measured(part.memoized),
        display::claim(part.fresh_linked),
        display::claim(part.memoized_linked),
    ]
}
