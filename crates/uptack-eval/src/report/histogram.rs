//! One release of a choice among all stations: the largest stations as bars, with truths and intervals.

use uptack::contribution::Contributions;
use uptack::display;
use uptack::estimate::options::{OptionEstimate, OptionEstimator};
use uptack::estimate::{Confidence, IntervalKind};
use uptack::{OptionCounts, Published, Sums};
use uptack_chart::{Bar, Bars};

use super::summary::measured;
use crate::error::Result;
use crate::evaluation::{Evaluation, EvaluationRow};
use crate::measure::LEVEL;

/// More stations than this are added up.
const SHOWN: usize = 30;

impl Evaluation {
    /// The first trial of a row; none if its stations were not drawn together.
    pub(super) fn histogram(&self, row: &EvaluationRow) -> Result<Option<Bars>> {
        let Some(release) = Release::of(row)? else { return Ok(None) };
        let largest = self.largest_stations();
        let estimates = release.estimates()?;
        Ok(Some(Bars {
            title: format!("Where the owners are: the {} largest stations", largest.len()),
            subtitle: format!(
                "{}, first trial, {} owners; bars: estimates, diamonds: truths; all intervals together hold at 95 %",
                row.label,
                display::grouped(row.owners)
            ),
            bars: largest.iter().map(|&station| self.bar(station, &estimates[station])).collect(),
            truths: largest.iter().map(|&station| self.traffic.stations[station].vehicles as f64).collect(),
            notes: vec![self.rest(&largest, &release)?],
        }))
    }

    /// The stations with the most vehicles, from the largest down.
    fn largest_stations(&self) -> Vec<usize> {
        let vehicles = self.vehicles();
        let mut order = Vec::from_iter(0..vehicles.len());
        order.sort_by_key(|&station| std::cmp::Reverse(vehicles[station]));
        order.truncate(SHOWN);
        order
    }

    fn bar(&self, station: usize, found: &OptionEstimate) -> Bar {
        Bar {
            name: self.traffic.stations[station].name.clone(),
            value: found.estimate,
            low: found.simultaneous.low,
            high: found.simultaneous.high,
        }
    }

    /// Everybody who is at none of the stations that are shown, in one sentence.
    fn rest(&self, shown: &[usize], release: &Release) -> Result<String> {
        let options = release.estimator.asked().options();
        let others: Vec<usize> = (0..options).filter(|option| !shown.contains(option)).collect();
        if others.is_empty() {
            return Ok("Every option is shown.".to_owned());
        }
        let vehicles = self.vehicles();
        let at_shown: u64 = shown.iter().map(|&station| vehicles[station]).sum();
        let found = release.estimator.union(&release.published, &others, release.confidence)?;
        Ok(format!(
            "The rest, {} options together: truth {}, estimate {}, 95 % interval {} to {}.",
            display::grouped(others.len() as u64),
            display::grouped(release.published.owners() - at_shown),
            measured(found.estimate.round()),
            measured(found.interval.low),
            measured(found.interval.high)
        ))
    }
}

/// What was published, and how it is read.
struct Release {
    estimator: OptionEstimator,
    published: Published,
    confidence: Confidence,
}

impl Release {
    fn of(row: &EvaluationRow) -> Result<Option<Self>> {
        let Some(numbers) = &row.measured.published else { return Ok(None) };
        let asked: Contributions = row.mechanism.parse()?;
        let published = match asked.noise() {
            Some(_) => Published::Sums(Sums::new(row.owners, numbers.clone())?),
            None => {
                let counts = numbers.iter().map(|count| count.unsigned_abs()).collect();
                Published::Counts(OptionCounts::new(row.owners, counts)?)
            }
        };
        Ok(Some(Self { estimator: OptionEstimator::new(&asked)?, published, confidence: Confidence::new(LEVEL)? }))
    }

    fn estimates(&self) -> Result<Vec<OptionEstimate>> {
        Ok(self.estimator.estimate(&self.published, self.confidence, IntervalKind::Auto)?.options)
    }
}
