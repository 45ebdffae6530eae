//! The findings as plain sentences and tables, for the page and for the command line.

use uptack::display::{self, Rounding};

use crate::compare::{CHOICE_BY_OWNERS, CHOICE_LINKED, Comparison, NOISE_ALONE, planned_choice};
use crate::evaluation::{Evaluation, EvaluationRow, Honest};
use crate::findings::{AtRelease, ErrorByTrust, Growth, range};
use crate::measure::SMALL;
use crate::method::MethodOrigin;
use crate::series::{CONTRIBUTIONS, INDEPENDENT, WINDOWS};

/// A table of plain cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportTable {
    /// Its name on the page.
    pub id: String,
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl ReportTable {
    pub(crate) fn new<const N: usize>(id: impl Into<String>, header: [&str; N], rows: Vec<[String; N]>) -> Self {
        let header = header.map(str::to_owned).to_vec();
        Self { id: id.into(), header, rows: rows.into_iter().map(Vec::from).collect() }
    }
}

/// One thing that the rows show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFinding {
    /// Its name on the page.
    pub id: &'static str,
    /// The finding, in one sentence.
    pub claim: String,
    /// Under which conditions, and how to read the numbers.
    pub conditions: String,
    /// The numbers behind it.
    pub table: Option<ReportTable>,
}

impl Evaluation {
    /// The findings, the most important first.
    pub fn summary(&self) -> Vec<ReportFinding> {
        let findings = [
            self.choice_finding(),
            self.trust_finding(),
            self.release_finding(),
            self.growth_finding(),
            self.series_finding(),
            self.interval_finding(),
        ];
        findings.into_iter().flatten().collect()
    }

    fn choice_finding(&self) -> Option<ReportFinding> {
        let errors = self.choice_errors();
        let owners = errors.first()?.owners;
        let (here, grown): (Vec<_>, Vec<_>) = errors.iter().partition(|row| row.owners == owners);
        let claim = format!(
            "Each owner reports its place, one choice among {} stations, at ε = {}: {}.",
            display::grouped(self.traffic.stations.len() as u64),
            display::claim(self.settings.levels.release.epsilon),
            choices_in_words(&here)
        );
        let mut conditions = format!(
            "Errors at the median station ({} vehicles) with {} owners, for everything that is published together.",
            self.traffic.median(),
            display::grouped(owners)
        );
        if let Some(first) = grown.first() {
            let owners = display::grouped(first.owners);
            conditions += &format!(" With {owners} owners, most of them elsewhere: {}.", choices_in_words(&grown));
        }
        let table = Some(trust_table("choice-table", "method", &errors));
        Some(ReportFinding { id: "choice", claim, conditions, table })
    }

    fn series_finding(&self) -> Option<ReportFinding> {
        let series = &self.longitudinal.as_ref()?.series;
        let least = |label: &str| {
            let same = series.iter().filter(|row| row.label == label && row.linked.is_some());
            same.min_by(|a, b| a.predicted.total_cmp(&b.predicted))
        };
        let (once, often) = (least(CONTRIBUTIONS)?, least(INDEPENDENT)?);
        let claim = format!(
            "A count in each of {WINDOWS} windows at ε = {} for the whole day has an error of {} if an owner contributes to \
             one of them, and of {} with an independent question in every window.",
            display::claim(self.settings.levels.release.epsilon),
            measured(once.predicted),
            measured(often.predicted)
        );
        let conditions = format!(
            "By theory, with one honest aggregator and a linked ε of {} for the day; an owner who would have contributed to \
             more windows is missing in the later ones.",
            display::claim(once.linked)
        );
        Some(ReportFinding { id: "series", claim, conditions, table: None })
    }

    fn trust_finding(&self) -> Option<ReportFinding> {
        let best = self.best_by_trust();
        let owners = best.first()?.owners;
        let here: Vec<String> = best.iter().filter(|part| part.owners == owners).map(best_in_words).collect();
        let epsilon = display::claim(self.settings.levels.release.epsilon);
        let conditions = format!(
            "Errors at the median station ({} vehicles) with {} owners; the report explains what each model assumes.",
            self.traffic.median(),
            display::grouped(owners)
        );
        let claim = format!("The best at ε = {epsilon}: {}.", here.join("; "));
        Some(ReportFinding {
            id: "trust",
            claim,
            conditions,
            table: Some(trust_table("trust-table", "best mechanism", &best)),
        })
    }

    fn growth_finding(&self) -> Option<ReportFinding> {
        let growth = self.growth();
        let population = growth.first()?.population();
        let claim = format!(
            "With {} times the population and unchanged stations, the error of the planned mechanisms changes by a \
             factor of {}, and that of the others by {}.",
            measured(population),
            factors(growth.iter().filter(|part| part.kind == MethodOrigin::Family))?,
            factors(growth.iter().filter(|part| part.kind != MethodOrigin::Family))?
        );
        let conditions = format!(
            "At equal ε of a single answer (ε = {}), at the median station. A factor of 1 \
             means that the error does not grow; an error that grows with the square root of the crowd has a factor of {}.",
            display::claim(self.settings.levels.answer),
            display::rounded(population.sqrt(), 3, NEAREST)
        );
        Some(ReportFinding { id: "growth", claim, conditions, table: growth_table(&growth) })
    }

    fn release_finding(&self) -> Option<ReportFinding> {
        let found = self.at_release();
        let best = found.iter().find(|part| part.kind == MethodOrigin::Family)?;
        let claim = format!(
            "At equal guarantee of the release the best planned mechanism without a trusted party has an error of {} ({}); \
             {}.",
            measured(best.median),
            best.label,
            curators_in_words(&found, best.owners)
        );
        let conditions = format!(
            "{}, at the median station ({} vehicles). The curators see every truth; discrete Laplace noise keeps ε at δ = 0.",
            self.level(Comparison::Release).unwrap_or_default(),
            self.traffic.median()
        );
        Some(ReportFinding { id: "at-release", claim, conditions, table: Some(release_table(&found)) })
    }

    fn interval_finding(&self) -> Option<ReportFinding> {
        let found = self.intervals()?;
        let claim = format!(
            "The 95 % intervals of the worst row contain the truth {} of the time; at stations with fewer than {SMALL} \
             vehicles, {}.",
            percent(found.lowest),
            percent(found.lowest_small)
        );
        let together = format!(
            "The simultaneous intervals of all stations hold together in {} of {} trials, and at least 95 % is promised; in \
             the worst row, they do in {}. By chance, some row falls below {} in one of a thousand evaluations.",
            percent(found.simultaneous),
            display::grouped(found.trials),
            percent(found.lowest_simultaneous),
            percent(found.by_chance)
        );
        let conditions = match found.many {
            Some(range) => format!("{} {together}", many_in_words(range)),
            None => together,
        };
        Some(ReportFinding { id: "intervals", claim, conditions, table: None })
    }

    /// The heading of a comparison with its guarantee, and what it means.
    pub fn heading(&self, comparison: Comparison) -> (String, &'static str) {
        let level = self.level(comparison).map(|level| format!(", {level}")).unwrap_or_default();
        (format!("{}{level}", heading(comparison)), explanation(comparison))
    }

    /// The rows of a comparison: the error, the guarantee of every view, and who must be honest.
    pub fn rows_table(&self, comparison: Comparison) -> ReportTable {
        let header = [
            "method",
            "owners",
            "error, all stations",
            "median station",
            "coverage",
            "ε answer",
            "ε linked",
            "ε release",
            "ε one aggregator",
            "who must be honest",
        ];
        let rows = self.of(comparison).map(|row| self.row_cells(row)).collect();
        ReportTable::new(format!("rows-{comparison}"), header, rows)
    }

    fn row_cells(&self, row: &EvaluationRow) -> [String; 10] {
        [
            row.label.clone(),
            display::grouped(row.owners),
            measured(row.rmse()),
            measured(self.median_error(row).measured),
            percent(row.coverages().all),
            display::claim(row.claims.answer()),
            display::claim(row.claims.linked()),
            display::claim(row.claims.release()),
            row.claims.one_aggregator().map_or("–".to_owned(), display::claim),
            row.honest.to_string(),
        ]
    }

    /// Everything else about the rows of a comparison.
    pub fn details_table(&self, comparison: Comparison) -> ReportTable {
        let header = [
            "method",
            "owners",
            "theory",
            "relative error",
            "worst station",
            "coverage, fewer than 5",
            "all intervals at once",
            "ranks right",
            "bytes",
            "coins",
            "mechanism",
        ];
        let rows = self.of(comparison).map(|row| self.detail_cells(row)).collect();
        ReportTable::new(format!("details-{comparison}"), header, rows)
    }

    fn detail_cells(&self, row: &EvaluationRow) -> [String; 11] {
        let (worst, worst_rmse) = row.worst();
        [
            row.label.clone(),
            display::grouped(row.owners),
            measured(row.predicted()),
            measured(row.relative_error()),
            format!("{} ({})", measured(worst_rmse), self.traffic.stations[worst].name),
            percent(row.coverages().small),
            percent(row.measured.simultaneous),
            percent(row.measured.ranks),
            bytes_in_words(row.bytes),
            display::grouped(row.coins),
            row.mechanism.clone(),
        ]
    }
}

const NEAREST: display::Rounding = display::Rounding::Nearest;

fn trust_table(id: &str, method: &str, errors: &[ErrorByTrust]) -> ReportTable {
    let header = ["who must be honest", method, "owners", "median station", "theory", "ε linked"];
    ReportTable::new(id, header, errors.iter().map(trust_row).collect())
}

fn growth_table(growth: &[Growth]) -> Option<ReportTable> {
    let [from, to] = growth.first()?.owners.map(|owners| format!("{} owners", display::grouped(owners)));
    let header = ["method", &from, &to, "factor", "factor, all stations"];
    Some(ReportTable::new("growth-table", header, growth.iter().map(growth_row).collect()))
}

fn release_table(found: &[AtRelease]) -> ReportTable {
    let header = ["method", "owners", "median station", "theory", "all stations"];
    ReportTable::new("at-release-table", header, found.iter().map(release_row).collect())
}

/// The factors by which errors grow, from the least to the largest.
fn factors<'a>(parts: impl Iterator<Item = &'a Growth>) -> Option<String> {
    let ends = range(parts.map(|part| part.errors()[0]))?;
    let [low, high] = ends.map(|factor| display::rounded(factor, 3, NEAREST));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

fn curators_in_words(found: &[AtRelease], owners: u64) -> String {
    let curators = found.iter().filter(|part| part.kind == MethodOrigin::Curator && part.owners == owners);
    let errors: Vec<String> = curators.map(|part| format!("{} {}", part.label, measured(part.median))).collect();
    errors.join(", ")
}

fn many_in_words([low, high]: [f64; 2]) -> String {
    let (low, high) = (percent(low), percent(high));
    format!(
        "Over the stations whose rarest informative count expects at least 50, every row is between {low} and {high}."
    )
}

fn bytes_in_words((bytes, all): (u64, bool)) -> String {
    format!("{}{}", display::grouped(bytes), if all { " (all)" } else { "" })
}

/// The errors of one choice among all stations in one population, as a sentence.
fn choices_in_words(rows: &[&ErrorByTrust]) -> String {
    let error = |label: &str| rows.iter().find(|row| row.label == label).map(|row| measured(row.median));
    let noisy = CHOICE_LINKED
        .iter()
        .filter_map(|&linked| Some(format!("{} at a linked ε of {linked}", error(&planned_choice(linked))?)));
    let mut parts = vec![format!("with one honest aggregator {}", noisy.collect::<Vec<_>>().join(", "))];
    parts.extend(error(NOISE_ALONE).map(|error| format!("{error} without coins")));
    parts.extend(error(CHOICE_BY_OWNERS).map(|error| format!("with the owners' coins alone {error}")));
    parts.extend(
        least_error(rows, Honest::Curator).map(|best| format!("with a trusted curator {}", measured(best.median))),
    );
    let local = least_error(rows, Honest::Nobody);
    parts.extend(local.map(|best| format!("with nobody honest {} ({})", measured(best.median), best.label)));
    parts.join("; ")
}

fn least_error<'a>(rows: &[&'a ErrorByTrust], honest: Honest) -> Option<&'a ErrorByTrust> {
    let same = rows.iter().filter(|row| row.honest == honest);
    same.min_by(|a, b| a.predicted.total_cmp(&b.predicted)).copied()
}

fn best_in_words(best: &ErrorByTrust) -> String {
    let model = match best.honest {
        Honest::Nobody => "with nobody honest",
        Honest::Holders => "if an owner's answers are not combined",
        Honest::Owners => "with the owners honest",
        Honest::OneAggregator if best.linked.is_none() => "with one honest aggregator",
        Honest::OneAggregator => "with one honest aggregator and a channel in case it is not",
        Honest::Curator => "with an honest curator",
    };
    format!("{model}, {} (error {})", best.label.trim_start_matches("curator, "), measured(best.median))
}

fn trust_row(best: &ErrorByTrust) -> [String; 6] {
    [
        best.honest.to_string(),
        best.label.clone(),
        display::grouped(best.owners),
        measured(best.median),
        measured(best.predicted),
        display::claim(best.linked),
    ]
}

fn growth_row(part: &Growth) -> [String; 5] {
    let [median, all] = part.errors();
    let [from, to] = part.median;
    [part.label.clone(), measured(from), measured(to), measured(median), measured(all)]
}

fn release_row(part: &AtRelease) -> [String; 5] {
    let owners = display::grouped(part.owners);
    [part.label.clone(), owners, measured(part.median), measured(part.predicted), measured(part.all)]
}

/// A measured value to four digits, which is more than trials can tell, with its thousands separated; a dash if it is not
/// finite.
pub fn measured(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let plain = display::rounded(value, 4, Rounding::Nearest);
    let (whole, part) = plain.split_once('.').map_or((plain.as_str(), None), |(whole, part)| (whole, Some(part)));
    // Negative numbers and those with an exponent stay as they are.
    let whole = whole.parse::<u64>().map_or(whole.to_owned(), display::grouped);
    part.map_or(whole.clone(), |part| format!("{whole}.{part}"))
}

pub(crate) fn percent(value: impl Into<Option<f64>>) -> String {
    value.into().map_or("–".to_owned(), |value| display::percent(value, 1, Rounding::Nearest))
}

/// What all methods of a comparison have in common.
pub(crate) fn heading(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Choice => "Each owner reports its place: one choice among all stations, at equal ε of the release",
        Comparison::ChoiceLinked => "One choice among all stations, at equal ε of the whole report",
        Comparison::Trust => "At equal ε of the release, by who must be honest",
        Comparison::Paper => "The paper's settings",
        Comparison::Release => "At equal guarantee of the release",
        Comparison::Answer => "At equal ε of a single answer",
        Comparison::Linked => "At equal ε of the whole report",
    }
}

impl Evaluation {
    /// The guarantee at which methods are compared; none if they differ in it.
    pub(crate) fn level(&self, comparison: Comparison) -> Option<String> {
        let levels = &self.settings.levels;
        let epsilon = format!("ε = {}", display::claim(levels.epsilon(comparison)?));
        Some(match comparison {
            Comparison::Choice | Comparison::Trust | Comparison::Release => {
                format!("{epsilon}, δ = {}", display::claim(levels.release.delta))
            }
            _ => epsilon,
        })
    }
}

/// What the guarantee means, and what it does not.
pub(crate) fn explanation(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Choice => {
            "Each owner is at exactly one station and contributes to one count: if it moves, two of the published counts \
             change, and all of them together keep ε. A planned choice with noise needs one honest aggregator, and δ = 0; its \
             linked ε is the protection that remains if nobody is honest. A planned choice by the owners' coins needs honest \
             owners. The frequency oracles hide the whole location in one report and need nobody to be honest. One normal form per \
             station has (ε/2, δ/2) for each of the two counts. If the population has grown, “elsewhere” is one more option."
        }
        Comparison::ChoiceLinked => {
            "Whoever sees everything that an owner writes learns no more than this about where it is. The first two also keep \
             ε of the release if one aggregator is honest, and pay for that with noise; the frequency oracles do not: if nobody \
             combines the shares, theirs is all that the owners' coins give. Generalized randomized response is the planned \
             choice without its noise."
        }
        Comparison::Trust => {
            "Nobody: the guarantee holds even against someone who sees the report itself. The owners: the other owners flip \
             their coins as they should, nobody invents owners, and nobody sees a single report; δ is as stated. One \
             aggregator: one of the two adds its noise, once, and keeps the noise and its shares secret; nothing is assumed \
             about any owner, and δ = 0. The curator sees every truth; with discrete Laplace noise, δ = 0. The linked ε is \
             the protection that remains if nobody is honest: “none” means that an owner's truth is then visible. At a \
             fixed linked ε, the error grows with the square root of the crowd."
        }
        Comparison::Paper => {
            "Their guarantees differ, so their errors cannot be compared; “none” in the column of the release means that a \
             lone owner is visible."
        }
        Comparison::Release => {
            "Whoever sees the tallies learns no more than this about anybody, provided that nobody sees a single answer. \
             Local methods with this local ε also keep it, and pay for their stronger guarantee. A trusted curator sees \
             every truth."
        }
        Comparison::Answer => {
            "Whoever sees one of an owner's answers learns no more than this. Methods with several answers need parties \
             that do not combine them; their releases keep the guarantee of the comparison above."
        }
        Comparison::Linked => {
            "Whoever sees everything that an owner writes learns no more than this. For a yes/no question every such method \
             is a garbling of randomized response, so none can be better, as the rows show."
        }
    }
}

/// The names as “A”, “A and B” or “A, B and C”.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        let cases = [
            (195_703.4, "195 703"),
            (6828.35, "6 828"),
            (0.99553, "0.9955"),
            (0.25, "0.25"),
            (-1234.0, "-1234"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(measured(value), text);
        }
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        assert_eq!([&["A"][..], &["A", "B"], &["A", "B", "C"]].map(listed), ["A", "A and B", "A, B and C"]);
    }
}
