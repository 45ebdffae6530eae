//! The texts that a demo prints, in order.

use std::time::Duration;

use serde_json::json;
use uptack::card::{Card, Claims};
use uptack::display;
use uptack::estimate::{Confidence, Estimate, Estimator, Interval, IntervalKind};
use uptack_dap::release::record::Record;

use super::scene::{Gain, Scene};
use crate::failure::{Failure, Result};
use crate::layout::joined;
use crate::output::{grouped, readable, readable_up};

/// The interval that is shown is that of every command and page. The demo fails only if the truth is outside a wider one, which
/// happens once in ten thousand demos.
const ALMOST_SURE: f64 = 0.9999;
/// The width of the picture of an interval, in characters.
const PICTURE: usize = 48;

/// The plan with its reason.
pub(super) fn plan(card: &Card, gain: &Gain) -> String {
    format!(
        "The planner chose {}:\n  an expected error of {} vehicles (standard deviation); {}, it would be {}.\n",
        card.mechanism,
        readable(card.predicted.sd.value()),
        gain.what,
        readable(gain.sd),
    )
}

/// The result of a demo.
pub(super) struct DemoResult {
    truth: u64,
    estimate: Estimate,
    interval: Interval,
    /// The interval that the truth is almost surely in.
    wide: Interval,
    reports: u64,
    seconds: f64,
}

impl DemoResult {
    pub(super) fn of(scene: &Scene, record: &Record, card: &Card, took: Duration) -> Result<Self> {
        let estimator = Estimator::new(&card.checked_channel()?)?;
        let observed = record.observed(&estimator)?;
        let [one] = observed.as_slice() else {
            return Err(Failure::environment("the record does not have exactly one question"));
        };
        let interval =
            |level| Ok::<_, Failure>(estimator.interval(&one.observation, Confidence::new(level)?, IntervalKind::Auto));
        Ok(Self {
            truth: scene.truth(),
            estimate: estimator.estimate_observed(&one.observation),
            interval: interval(Confidence::USUAL)?,
            wide: interval(ALMOST_SURE)?,
            reports: record.reports,
            seconds: took.as_secs_f64(),
        })
    }

    /// Fails if the truth is far outside the interval, and says how likely that was.
    pub(super) fn check(&self) -> Result<()> {
        if (self.wide.low..=self.wide.high).contains(&(self.truth as f64)) {
            return Ok(());
        }
        Err(Failure::environment("the truth is far outside the interval, which happens once in ten thousand demos"))
    }

    pub(super) fn json(&self, card: &Card) -> serde_json::Value {
        json!({
            "truth": self.truth,
            "estimate": self.estimate.estimate,
            "sd": self.estimate.sd,
            "interval": [self.interval.low, self.interval.high],
            "confidence": Confidence::USUAL,
            "reports": self.reports,
            "seconds": self.seconds,
            "mechanism": card.mechanism,
            "card": card,
        })
    }

    pub(super) fn describe(&self, card: &Card, saw: &str) -> Result<String> {
        let [low, high] = display::interval(self.interval.low, self.interval.high);
        Ok(format!(
            "truth      {}   (the demo knows it; nobody else does)\n\
             estimate   {}   standard deviation {}\n\
             interval   {low} to {high}   holds the truth with probability {} %\n\n{}\n\n\
             {saw}\n{}\nreports {}, seconds {:.1}\n",
            grouped(self.truth),
            readable(self.estimate.estimate),
            readable(self.estimate.sd),
            100.0 * Confidence::USUAL,
            self.picture(),
            honest(card)?,
            grouped(self.reports),
            self.seconds,
        ))
    }

    /// The interval as a line, with the estimate and the truth on it.
    fn picture(&self) -> String {
        let (low, high) = (self.interval.low, self.interval.high.max(self.interval.low + 1.0));
        let axis = PictureAxis::around(low, high);
        let mut line = [' '; PICTURE];
        line[axis.place(low)..=axis.place(high)].fill('─');
        (line[axis.place(low)], line[axis.place(high)]) = ('├', '┤');
        line[axis.place(self.estimate.estimate)] = '●';
        let marker = format!("{:>width$}", "↑", width = axis.place(self.truth as f64) + 1);
        format!("           {}\n           {marker} truth", line.iter().collect::<String>().trim_end())
    }
}

/// Which numbers the first and the last character of a picture stand for.
struct PictureAxis {
    first: f64,
    last: f64,
}

impl PictureAxis {
    /// An axis with some space on both sides of a range.
    fn around(low: f64, high: f64) -> Self {
        let margin = 0.08 * (high - low);
        Self { first: low - margin, last: high + margin }
    }

    fn place(&self, value: f64) -> usize {
        let share = (value - self.first) / (self.last - self.first);
        (share.clamp(0.0, 1.0) * (PICTURE - 1) as f64).round() as usize
    }
}

/// What each party saw.
pub(super) fn saw(record: &Record, size: usize) -> String {
    format!(
        "What each party saw:\n  \
         leader    {0} reports of {size} bytes: a random share of each, and one sealed for the helper\n  \
         helper    {0} random shares, each without its other half\n  \
         analyst   {1}\n",
        grouped(record.reports),
        analyst_saw(record),
    )
}

fn analyst_saw(record: &Record) -> String {
    if let Some(sums) = record.sums() {
        let sum = sums.first().copied().unwrap_or(0);
        return format!("{sum} answers that are 1, including the noise of both aggregators");
    }
    let counts = joined(record.counts().iter().copied().map(grouped), ", ");
    format!("{counts}: how many vehicles wrote each cell of the card")
}

/// Wider than the longest crowd: one aggregator and a million vehicles.
const WIDTH: usize = 39;

/// Who must be honest for which claim.
fn honest(card: &Card) -> Result<String> {
    let owners = grouped(card.claim_owners()?);
    let besides = if card.claims.one_aggregator.is_some() { "one aggregator and " } else { "" };
    let crowd = format!("{besides}{owners} vehicles");
    Ok(format!(
        "How a vehicle's truth is protected, if these are honest:\n  \
         {:WIDTH$}{}\n  \
         {:WIDTH$}{}\n  \
         {crowd:WIDTH$}{} at δ = {}\n\
         In this demo both aggregators run in one process, so its operator could see every report.\n",
        "nobody but the vehicle itself",
        epsilon_words(card.claims.whole_linked()),
        "one aggregator",
        one_aggregator(&card.claims),
        epsilon_words(card.claims.whole_release()),
        readable_up(card.delta().value()),
    ))
}

fn one_aggregator(claims: &Claims) -> String {
    match claims.one_aggregator {
        Some(_) => format!("{}, δ = 0", epsilon_words(claims.whole_one_aggregator())),
        None => format!("{}: aggregators add no noise here", epsilon_words(claims.whole_linked())),
    }
}

fn epsilon_words(claim: Option<f64>) -> String {
    claim.map_or("no guarantee".to_owned(), |claim| format!("ε = {}", readable_up(claim)))
}
