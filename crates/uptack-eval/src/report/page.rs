//! The page: text, tables and plots in one file that loads nothing from the network.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use uptack::display;

use super::plots::Figure;
use super::summary::{ReportFinding, ReportTable, measured};
use crate::compare::Comparison;
use crate::evaluation::Evaluation;
use crate::median_station::{Composed, Longitudinal, Memoized};
use crate::series::DailySeries;

const STYLE: &str = include_str!("style.css");

/// The headings and names of the plots that do not belong to a comparison.
const FIGURES: [(&str, &str); 5] = [
    ("One release: the largest stations", "histogram"),
    ("Error against ε", "error-epsilon"),
    ("Coverage of the intervals", "coverage"),
    ("Truth against estimate", "scatter"),
    ("The stations", "map"),
];

impl Evaluation {
    pub(super) fn page(&self, plots: &[(String, Figure)]) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    link rel="icon" href="data:,";
                    title { "Uptack: evaluation" }
                    style { (PreEscaped(STYLE)) }
                }
                body { (self.body(plots)) }
            }
        };
        page.into_string() + "\n"
    }

    fn body(&self, plots: &[(String, Figure)]) -> Markup {
        html! {
            h1 { "Counting a crowd: the evaluation" }
            @if !self.complete {
                p.note { strong { "Partial." } " The run was stopped; rows show the trials done so far." }
            }
            h2 #findings { "What was found" }
            @for finding in self.summary() { (section(&finding)) }
            h2 { "What was counted, and how to read the tables" }
            (self.introduction())
            @for comparison in Comparison::ALL { (self.comparison(comparison, plots)) }
            @for (heading, name) in FIGURES {
                h2 { (heading) }
                (figure(plots, name))
            }
            @if let Some(day) = &self.longitudinal { (day_section(day)) }
        }
    }

    fn introduction(&self) -> Markup {
        let traffic = &self.traffic;
        html! {
            p {
                (traffic.origin) ": " (display::grouped(traffic.total())) " vehicles at "
                (display::grouped(traffic.stations.len() as u64)) " stations, the median station has "
                (traffic.median()) ". " (self.flagged()) " The question is where \
                an owner is or, for one station at a time, “are you at this station?”; the population grows by vehicles elsewhere. Every vehicle that crosses a station is taken \
                as one owner. Errors are root mean squared errors."
            }
            p.note {
                "A guarantee is for a " em { "view" } ": of one answer alone, of one owner's whole report (linked), of \
                the released tallies. Two methods are comparable only in the view in which their guarantees are equal, \
                so every row shows all of them, and who must be honest for the one by which it is compared. They are \
                for everything that is published together where each owner reports its place, and for one station's question \
                elsewhere; an owner who answers all stations with a one-station method changes two answers by moving. The \
                methods marked “all” report the owner's place at once."
            }
        }
    }

    fn flagged(&self) -> String {
        let flagged = match self.traffic.stations.iter().filter(|station| !station.flags.is_empty()).count() {
            1 => "1 station carries".to_owned(),
            count => format!("{count} stations carry"),
        };
        format!("{flagged} a flag (imputed, partly observed, doubtful).{}", self.suspects())
    }

    fn suspects(&self) -> String {
        let suspects = self.traffic.stations.iter().filter(|station| station.is_suspect());
        let names: Vec<String> =
            suspects.map(|station| format!("{} with {} vehicles", station.name, station.vehicles)).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(" Doubtful detectors, kept as published: {}.", names.join(", "))
    }

    fn comparison(&self, comparison: Comparison, plots: &[(String, Figure)]) -> Markup {
        let (heading, explanation) = self.heading(comparison);
        html! {
            h2 id={ "comparison-" (comparison) } { (heading) }
            p { (explanation) }
            (figure(plots, &format!("error-{comparison}")))
            (table(&self.rows_table(comparison)))
            details {
                summary { "More about every row: worst station, ranks, bytes, coins, the mechanism itself" }
                (table(&self.details_table(comparison)))
            }
        }
    }
}

fn section(finding: &ReportFinding) -> Markup {
    html! {
        section id=(finding.id) {
            p { strong { (finding.claim) } " " (finding.conditions) }
            @if let Some(numbers) = &finding.table { (table(numbers)) }
        }
    }
}

/// A table that turns into one card per row in a narrow window: every cell names its column.
fn table(table: &ReportTable) -> Markup {
    html! {
        table id=(table.id) {
            thead { tr { @for name in &table.header { th scope="col" { (name) } } } }
            tbody {
                @for row in &table.rows {
                    tr { @for (name, cell) in table.header.iter().zip(row) { td data-column=(name) { (cell) } } }
                }
            }
        }
    }
}

fn figure(plots: &[(String, Figure)], name: &str) -> Markup {
    let found = plots.iter().find(|(other, _)| other == name);
    html! {
        @if let Some((_, plot)) = found { figure id=(name) { (PreEscaped(plot.to_svg())) } }
    }
}

fn day_section(day: &Longitudinal) -> Markup {
    html! {
        h2 { "One day of five-minute windows" }
        p {
            "An owner who answers every window with fresh coins gives away more and more; ε of all releases together at \
            δ = " (display::claim(day.delta)) ", certified:"
        }
        (table(&composed(&day.composed)))
        p {
            "With " em { "memoized" } " coins an owner flips its coins once for each truth and repeats its answer. While its \
            truth stays the same, the day reveals no more than one window. The price is twofold: the day's mean is no better \
            than one window's, and noise that is repeated cancels in the difference of two windows, so that an owner \
            whose truth changes is hidden only among those who change in the same window. No guarantee of the release \
            is claimed for memoized coins."
        }
        (table(&memoized(&day.memoized)))
        (series_section(&day.series))
    }
}

/// One series for the whole day, by how many windows an owner contributes to.
fn series_section(series: &[DailySeries]) -> Markup {
    html! {
        p {
            "Instead, an owner may contribute to at most k windows of the day, each contribution being one choice among all windows or \
            none of them, tossed once. The noise is for everything that is published in the day together: one honest \
            aggregator is enough, and ε is that of the comparisons above. An owner who would contribute to more than k windows \
            is missing in the later ones. Independent questions give every window its share of both ε; Gaussian noise is \
            compared by theory alone, and has a δ."
        }
        (table(&series_table(series)))
    }
}

fn series_table(series: &[DailySeries]) -> ReportTable {
    let header = ["method", "contributions", "ε of all reports", "δ", "error of a window, theory", "measured"];
    ReportTable::new("day-series", header, series.iter().map(series_row).collect())
}

fn series_row(row: &DailySeries) -> [String; 6] {
    [
        row.label.clone(),
        row.most.to_string(),
        display::claim(row.linked),
        display::claim(row.delta),
        measured(row.predicted),
        row.measured.map_or("–".to_owned(), measured),
    ]
}

fn composed(parts: &[Composed]) -> ReportTable {
    let header = ["method", "windows", "ε of the releases", "ε of all reports", "error of a window"];
    ReportTable::new("day-fresh", header, parts.iter().map(composed_row).collect())
}

fn composed_row(part: &Composed) -> [String; 5] {
    let release = display::claim(part.release.map(|(_, upper)| upper));
    [part.label.clone(), part.windows.to_string(), release, display::claim(part.linked), measured(part.error)]
}

fn memoized(parts: &[Memoized]) -> ReportTable {
    let header = [
        "method",
        "error of a window",
        "error of the day's mean, fresh",
        "memoized",
        "ε of all reports, fresh",
        "ε memoized, truth unchanged",
    ];
    ReportTable::new("day-memoized", header, parts.iter().map(memoized_row).collect())
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
