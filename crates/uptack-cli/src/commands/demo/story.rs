//! What a demo tells, in the order in which it happens.

use std::time::Duration;

use serde_json::json;
use uptack::card::Card;
use uptack::display;
use uptack::estimate::{Confidence, Estimate, Estimator, Interval, IntervalKind};
use uptack_dap::release::record::Record;

use super::scene::{Gain, Scene};
use crate::failure::Failure;
use crate::output::{grouped, readable, readable_up};

/// The truth is outside of such an interval once in ten thousand demos.
const CONFIDENCE: f64 = 0.9999;
/// The width of the picture of an interval, in characters.
const PICTURE: usize = 48;

/// The plan with its reason.
pub(super) fn plan(card: &Card, gain: &Gain) -> String {
    format!(
        "The planner chose {}:\n  an expected error of {} vehicles (standard deviation), where {} would have {}.\n",
        card.mechanism,
        readable(card.predicted.sd.value()),
        gain.what,
        readable(gain.sd),
    )
}

/// What is shown at the end.
pub(super) struct Outcome {
    truth: u64,
    estimate: Estimate,
    interval: Interval,
    reports: u64,
    seconds: f64,
}

impl Outcome {
    pub(super) fn of(scene: &Scene, record: &Record, card: &Card, took: Duration) -> Result<Self, Failure> {
        let estimator = Estimator::new(&card.checked_channel()?)?;
        let observed = record.observed(&estimator)?;
        let [one] = observed.as_slice() else { return Err(Failure::environment("the record has not one question")) };
        Ok(Self {
            truth: scene.truth(),
            estimate: estimator.estimate_observed(&one.observation),
            interval: estimator.interval(&one.observation, Confidence::new(CONFIDENCE)?, IntervalKind::Auto),
            reports: record.reports,
            seconds: took.as_secs_f64(),
        })
    }

    /// A demo whose interval misses has failed, and says how likely that was.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if (self.interval.low..=self.interval.high).contains(&(self.truth as f64)) {
            return Ok(());
        }
        Err(Failure::environment("the truth is outside of the interval, which happens once in ten thousand demos"))
    }

    pub(super) fn json(&self, card: &Card) -> serde_json::Value {
        json!({
            "truth": self.truth,
            "estimate": self.estimate.estimate,
            "sd": self.estimate.sd,
            "interval": [self.interval.low, self.interval.high],
            "confidence": CONFIDENCE,
            "reports": self.reports,
            "seconds": self.seconds,
            "mechanism": card.mechanism,
            "card": card,
        })
    }

    pub(super) fn describe(&self, card: &Card, saw: &str) -> Result<String, Failure> {
        let [low, high] = display::interval(self.interval.low, self.interval.high);
        Ok(format!(
            "truth      {}   (the demo knows it; nobody else does)\n\
             estimate   {}   standard deviation {}\n\
             interval   {low} to {high}   holds the truth with probability 99.99 %\n\n{}\n\n\
             {saw}\n{}\nreports {}, seconds {:.1}\n",
            grouped(self.truth),
            readable(self.estimate.estimate),
            readable(self.estimate.sd),
            self.picture(),
            honest(card)?,
            grouped(self.reports),
            self.seconds,
        ))
    }

    /// The interval as a line, with the estimate and the truth on it.
    fn picture(&self) -> String {
        let (low, high) = (self.interval.low, self.interval.high.max(self.interval.low + 1.0));
        let margin = 0.08 * (high - low);
        let (first, last) = (low - margin, high + margin);
        let place =
            |value: f64| (((value - first) / (last - first)).clamp(0.0, 1.0) * (PICTURE - 1) as f64).round() as usize;
        let mut line = [' '; PICTURE];
        line[place(low)..=place(high)].fill('─');
        (line[place(low)], line[place(high)]) = ('├', '┤');
        line[place(self.estimate.estimate)] = '●';
        let marker = format!("{:>width$}", "↑", width = place(self.truth as f64) + 1);
        format!("           {}\n           {marker} truth", line.iter().collect::<String>().trim_end())
    }
}

/// What each party had before its eyes.
pub(super) fn saw(record: &Record, size: usize) -> String {
    let sums = match &record.sums {
        Some(sums) => {
            format!("{} answers 1, the noise of both aggregators included", sums.first().copied().unwrap_or(0))
        }
        None => {
            let counts: Vec<String> = record.counts.iter().map(|count| grouped(*count)).collect();
            format!("{}: how many vehicles wrote each cell of the card", counts.join(", "))
        }
    };
    format!(
        "What each party saw:\n  \
         leader    {0} reports of {size} bytes: a random share of each, and one sealed for the helper\n  \
         helper    {0} random shares, each without its other half\n  \
         analyst   {sums}\n",
        grouped(record.reports),
    )
}

/// Who must be honest for which claim.
fn honest(card: &Card) -> Result<String, Failure> {
    let epsilon =
        |claim: Option<f64>| claim.map_or("no guarantee".to_owned(), |claim| format!("ε = {}", readable_up(claim)));
    let one_aggregator = match card.claims.one_aggregator {
        Some(_) => format!("{}, δ = 0", epsilon(card.claims.whole_one_aggregator())),
        None => format!("{}: aggregators add no noise here", epsilon(card.claims.whole_linked())),
    };
    let owners = grouped(card.claim_owners()?);
    let besides = if card.claims.one_aggregator.is_some() { "that, and " } else { "" };
    Ok(format!(
        "What a vehicle's truth is protected by, if these are honest:\n  \
         nobody but the vehicle itself   {}\n  \
         one aggregator                  {one_aggregator}\n  \
         {besides}{owners} vehicles{:pad$}{} at δ = {}\n\
         In this demo both aggregators run in one process, so its operator could see every report.\n",
        epsilon(card.claims.whole_linked()),
        "",
        epsilon(card.claims.whole_release()),
        readable_up(card.delta().value()),
        pad = 32usize.saturating_sub(besides.len() + owners.chars().count() + " vehicles".len()),
    ))
}
