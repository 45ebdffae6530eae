//! Counts of options as documents: tallies, estimates, simulations and guarantees.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uptack::contribution::{Contributions, OptionNames, OptionRows};
use uptack::estimate::options::{MeanEstimate, OptionEstimate, OptionEstimates, OptionEstimator, QuantileEstimate};
use uptack::estimate::{Confidence, Interval, IntervalKind};
use uptack::privacy::Guarantee;
use uptack::privacy::contributions::{ContributionViews, RepeatedContributions};
use uptack::simulate::{ContributionSimulation, SimulatedContributions};
use uptack::{Error, NoiseLaw, OptionCounts, Output, Published, Sums, Tally, Unpredictable};

use crate::estimate::{Estimates, interval_name};
use crate::privacy::pure_json;

/// The counts of options as `uptack tally` prints them, with the options' names if they have any.
#[derive(Clone, Debug, Serialize)]
pub struct OptionTally {
    #[serde(flatten)]
    published: Published,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<String>>,
}

/// What a file of counts can hold; other fields are ignored.
#[derive(Deserialize)]
struct TallyFile {
    owners: Option<u64>,
    counts: Option<Vec<u64>>,
    sums: Option<Vec<i64>>,
    answers: Option<Value>,
    options: Option<Vec<String>>,
}

impl OptionTally {
    /// The counts of rows.
    pub fn of_rows(rows: &OptionRows) -> Result<Self, Error> {
        Ok(Self { published: exact(rows)?.into(), options: rows.header().given_names().map(<[String]>::to_vec) })
    }

    /// What two aggregators publish of rows. Of two options, they count the first.
    pub fn with_noise(rows: &OptionRows, noise: &NoiseLaw, coins: &mut impl Unpredictable) -> Result<Self, Error> {
        let header = rows.header();
        let counted = rows.counts()[..header.noisy_counts()].to_vec();
        let sums = OptionCounts::new(rows.owners(), counted)?.with_noise(noise, coins)?;
        Ok(Self { published: sums.into(), options: header.given_names().map(<[String]>::to_vec) })
    }

    /// Reads counts or sums, and also the tally of a yes/no question, whose answers 1 and 0 are two options.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let file: TallyFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let published = match (file.counts, file.sums, file.answers, file.owners) {
            (Some(counts), None, None, Some(owners)) => OptionCounts::new(owners, counts).map(Published::Counts),
            (None, Some(sums), None, Some(owners)) => Sums::new(owners, sums).map(Published::Sums),
            (None, None, Some(_), _) => return of_answers(text).map(|published| Self { published, options: None }),
            (None, None, None, _) => return Err("there are neither `counts` nor `sums`".to_owned()),
            (_, _, _, None) => return Err("`owners` is missing".to_owned()),
            _ => return Err("only one of `counts`, `sums` and `answers` can be given".to_owned()),
        };
        Ok(Self { published: published.map_err(|error| error.to_string())?, options: file.options })
    }

    /// How many owners there are.
    pub fn owners(&self) -> u64 {
        self.published.owners()
    }

    /// The counts or sums.
    pub fn numbers(&self) -> Vec<i64> {
        match &self.published {
            Published::Counts(counts) => counts.counts().iter().map(|&count| count as i64).collect(),
            Published::Sums(sums) => sums.sums().to_vec(),
        }
    }

    /// The names of the options, if they are stated.
    pub fn options(&self) -> Option<&[String]> {
        self.options.as_deref()
    }

    /// What a mechanism publishes of it: of two options the first count alone.
    pub fn published(&self, asked: &Contributions) -> Result<Published, Error> {
        match (&self.published, self.both(asked)) {
            (Published::Counts(counts), Some(both)) => Ok(OptionCounts::new(counts.owners(), vec![both[0]])?.into()),
            (published, _) => Ok(published.clone()),
        }
    }

    /// The exact counts of two options.
    fn both(&self, asked: &Contributions) -> Option<[u64; 2]> {
        let is_two = asked.is_choice() && asked.options() == 2 && asked.noise().is_none();
        match &self.published {
            Published::Counts(counts) if is_two => counts.counts().try_into().ok(),
            _ => None,
        }
    }

    /// The tally of the yes/no question that the mechanism is, if it is one and everything about it is known.
    fn yes_no_tally(&self, asked: &Contributions) -> Option<Tally> {
        asked.yes_no().filter(|_| asked.noise().is_none())?;
        let (owners, everybody) = (self.owners(), asked.law().silent().numerator() == 0);
        let [ones, zeros] = match (self.both(asked), &self.published) {
            (Some(both), _) => both,
            (None, Published::Counts(counts)) if everybody => [*counts.counts().first()?, owners - counts.counts()[0]],
            _ => return None,
        };
        let silent = owners.checked_sub(ones.checked_add(zeros)?)?;
        let mut answers = std::collections::BTreeMap::from([(Output::ONE, ones), (Output::ZERO, zeros)]);
        if !everybody {
            answers.insert(Output::BOTTOM, silent);
        } else if silent > 0 {
            return None;
        }
        Tally::new(vec![answers]).ok()
    }
}

fn exact(rows: &OptionRows) -> Result<OptionCounts, Error> {
    OptionCounts::new(rows.owners(), rows.counts().to_vec())
}

fn of_answers(text: &str) -> Result<Published, String> {
    let tally: Tally = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if tally.answers().len() != 1 {
        return Err(format!("a tally of {} answers", tally.answers().len()));
    }
    let counts = [Output::ONE, Output::ZERO].map(|output| tally.count(0, output)).to_vec();
    OptionCounts::new(tally.owners(), counts).map(Published::Counts).map_err(|error| error.to_string())
}

/// How many owners have each option, and what else follows from their values and their order.
#[derive(Clone, Debug)]
pub struct EstimatedOptions {
    /// The options' names.
    pub names: OptionNames,
    /// The options.
    pub estimates: OptionEstimates,
    /// The same as a yes/no question, if it is one.
    pub yes_no: Option<Estimates>,
    /// The mean of the options' values.
    pub mean: Option<MeanEstimate>,
    /// The options at which shares of the owners are reached.
    pub quantiles: Vec<QuantileEstimate>,
}

impl EstimatedOptions {
    /// Estimates every option of a tally.
    pub fn of(
        asked: &Contributions,
        names: OptionNames,
        tally: &OptionTally,
        confidence: Confidence,
        kind: IntervalKind,
    ) -> Result<Self, Error> {
        let estimator = OptionEstimator::new(asked)?;
        let mut estimates = estimator.estimate(&tally.published(asked)?, confidence, kind)?;
        let yes_no = YesNoEstimates::of(asked, tally, confidence, kind)?;
        if let Some(found) = yes_no.as_ref().filter(|_| asked.is_choice() && asked.law().silent().numerator() > 0) {
            // The count of the second option says more than the first one alone if owners may be silent.
            found.replace(&mut estimates);
        }
        let yes_no = yes_no.map(|found| found.wanted);
        Ok(Self { names, estimates, yes_no, mean: None, quantiles: Vec::new() })
    }

    /// As JSON, under the text of the mechanism.
    pub fn json(&self, mechanism: &str) -> Value {
        let confidence = self.estimates.confidence;
        let mut document = match &self.yes_no {
            Some(estimates) => json!(estimates.document(mechanism.to_owned(), confidence)),
            None => json!({"mechanism": mechanism, "owners": self.estimates.owners, "confidence": confidence.level()}),
        };
        let options = self.estimates.options.iter().enumerate();
        document["options"] = options.map(|(index, option)| option_json(self.names.name(index), option)).collect();
        document["notes"] = json!(self.estimates.notes);
        if let Some(mean) = &self.mean {
            document["mean"] = mean_json(mean);
        }
        if !self.quantiles.is_empty() {
            document["quantiles"] = self.quantiles.iter().map(|quantile| self.quantile_json(quantile)).collect();
        }
        document
    }

    fn quantile_json(&self, quantile: &QuantileEstimate) -> Value {
        let name = |option: usize| self.names.name(option);
        json!({
            "q": quantile.q,
            "option": name(quantile.option),
            "low": name(quantile.low),
            "high": name(quantile.high),
            "numbers": [quantile.option + 1, quantile.low + 1, quantile.high + 1],
        })
    }
}

/// The estimate of a yes/no question, with an interval of the wanted kind, and with an exact one.
struct YesNoEstimates {
    wanted: Estimates,
    exact: Estimates,
}

impl YesNoEstimates {
    fn of(
        asked: &Contributions,
        tally: &OptionTally,
        confidence: Confidence,
        kind: IntervalKind,
    ) -> Result<Option<Self>, Error> {
        let Some(channel) = asked.yes_no().map(|mechanism| mechanism.channel()) else { return Ok(None) };
        let estimate = |kind| match (&tally.published, tally.yes_no_tally(asked)) {
            (Published::Sums(sums), _) => {
                Estimates::of_sum(&channel, (sums.owners(), sums.sums()[0]), confidence, kind).map(Some)
            }
            (_, Some(tally)) => Estimates::of_tally(&channel, &tally, confidence, kind).map(Some),
            (_, None) => Ok(None),
        };
        let (wanted, exact) = (estimate(kind)?, estimate(IntervalKind::Exact)?);
        Ok(wanted.zip(exact).map(|(wanted, exact)| Self { wanted, exact }))
    }

    /// Puts these estimates in the place of those from one count alone.
    fn replace(&self, estimates: &mut OptionEstimates) {
        let (found, all) = (&self.wanted.estimate, estimates.owners as f64);
        let first = OptionEstimate {
            estimate: found.estimate,
            sd: found.sd,
            sampling_sd: found.sampling_sd,
            aggregator_sd: found.aggregator_sd,
            privacy_sd: found.privacy_sd,
            interval: self.wanted.interval,
            simultaneous: self.exact.interval,
            consistent: found.estimate.clamp(0.0, all),
            share: found.estimate / all,
        };
        let mirrored =
            |interval: Interval| Interval { low: all - interval.high, high: all - interval.low, kind: interval.kind };
        let second = OptionEstimate {
            estimate: all - first.estimate,
            interval: mirrored(first.interval),
            simultaneous: mirrored(first.simultaneous),
            consistent: all - first.consistent,
            share: 1.0 - first.share,
            ..first
        };
        estimates.options = vec![first, second];
    }
}

fn option_json(name: &str, option: &OptionEstimate) -> Value {
    json!({
        "name": name,
        "estimate": option.estimate,
        "sd": option.sd,
        "interval": ends(option.interval),
        "simultaneous": ends(option.simultaneous),
        "consistent": option.consistent,
        "share": option.share,
        "sampling_sd": option.sampling_sd,
        "privacy_sd": option.privacy_sd,
        "aggregator_sd": option.aggregator_sd,
        "interval_kind": interval_name(option.interval.kind),
    })
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

fn mean_json(mean: &MeanEstimate) -> Value {
    json!({
        "estimate": mean.estimate,
        "sd": mean.sd,
        "interval": ends(mean.interval),
        "interval_kind": interval_name(mean.interval.kind),
        "owners": mean.owners,
        "bin_error": mean.bin_error,
    })
}

/// The result of a simulation of options.
pub fn simulated_options_json(
    mechanism: &Contributions,
    names: &OptionNames,
    simulation: &ContributionSimulation,
    result: &SimulatedContributions,
) -> Value {
    let options = result.options.iter().zip(&simulation.counts).enumerate();
    let mut document = json!({
        "mechanism": mechanism.to_string(),
        "owners": simulation.owners,
        "trials": result.trials,
        "seed": simulation.seed,
        "confidence": simulation.confidence.level(),
        "options": options
            .map(|(index, (option, count))| json!({
                "name": names.name(index),
                "count": count,
                "bias": option.bias,
                "rmse": option.rmse,
                "predicted_sd": option.predicted_sd,
                "coverage": option.coverage,
            }))
            .collect::<Vec<_>>(),
        "simultaneous_coverage": result.simultaneous_coverage,
    });
    if mechanism.yes_no().is_some() {
        let (first, yes) = (&result.options[0], simulation.counts[0]);
        document["yes"] = json!(yes);
        document["mean"] = json!(yes as f64 + first.bias);
        for field in ["bias", "rmse", "predicted_sd", "coverage"] {
            document[field] = document["options"][0][field].clone();
        }
    }
    document
}

/// Every view of contributions, once and repeated, with a statement in words.
pub fn contribution_privacy_json(
    views: &ContributionViews,
    repeated: Option<&RepeatedContributions>,
    statement: &str,
) -> Value {
    let mut document = json!({
        "mechanism": views.contributions().to_string(),
        "owners": views.release.owners(),
        "neighbours": "everything that one owner contributes is substituted, the number of owners is public",
        "views": contribution_views_json(views),
        "statement": statement,
    });
    if let Some(repeated) = repeated {
        document["repeated"] = json!({
            "times": repeated.times,
            "linked": repeated.linked,
            "one_aggregator": repeated.one_aggregator.map(pure_json),
            "release": views.release.target().json(repeated.release),
        });
    }
    document
}

/// The `views` of contributions.
pub fn contribution_views_json(views: &ContributionViews) -> Value {
    json!({
        "linked": views.linked,
        "one_aggregator": views.one_aggregator.map(pure_json),
        "release": views.release.json(),
        "owners_alone": views.owners_alone.as_ref().map(Guarantee::json),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimated(mechanism: &str, tally: &str) -> Value {
        let asked: Contributions = mechanism.parse().unwrap();
        let tally = OptionTally::from_json(tally).unwrap();
        let names = OptionNames::numbered(asked.options());
        let confidence = Confidence::new(0.95).unwrap();
        EstimatedOptions::of(&asked, names, &tally, confidence, IntervalKind::Auto).unwrap().json(mechanism)
    }

    #[test]
    fn two_options_are_estimated_as_the_yes_no_question_that_they_are() {
        for (choice, counts, yes_no, tally) in [
            (
                "choice(k=2,f=0.5,r=1e-4)",
                r#"{"owners":50000,"counts":[260,24740]}"#,
                "normal-form(f=0.5,r=1e-4)",
                r#"{"answers":[{"1":260,"0":24740,"bottom":25000}]}"#,
            ),
            (
                "choice(k=2,r=0.1)",
                r#"{"owners":1000,"counts":[260]}"#,
                "normal-form(f=1,r=0.1)",
                r#"{"answers":[{"1":260,"0":740}]}"#,
            ),
        ] {
            let channel = yes_no.parse::<uptack::Mechanism>().unwrap().channel();
            let confidence = Confidence::new(0.95).unwrap();
            let tally = serde_json::from_str(tally).unwrap();
            let expected = Estimates::of_tally(&channel, &tally, confidence, IntervalKind::Auto).unwrap();
            let found = estimated(choice, counts);
            let all = found["owners"].as_f64().unwrap();
            for (field, value) in [("estimate", expected.estimate.estimate), ("sd", expected.estimate.sd)] {
                assert!((found[field].as_f64().unwrap() - value).abs() < 1e-9 * all, "{choice} {field}");
                assert!((found["options"][0][field].as_f64().unwrap() - value).abs() < 1e-9 * all, "{choice} {field}");
            }
            let second = found["options"][1]["estimate"].as_f64().unwrap();
            assert!((second + expected.estimate.estimate - all).abs() < 1e-9 * all);
        }
    }

    #[test]
    fn a_tally_reads_back_with_its_names() {
        let tally = OptionTally::from_json(r#"{"owners":10,"counts":[2,8],"options":["a","b"]}"#).unwrap();
        let again = OptionTally::from_json(&serde_json::to_string(&tally).unwrap()).unwrap();
        assert_eq!((again.numbers(), again.options().map(<[String]>::len)), (vec![2, 8], Some(2)));
        for bad in ["{", r#"{"owners":3}"#, r#"{"counts":[1]}"#, r#"{"owners":3,"counts":[1],"sums":[1]}"#] {
            assert!(OptionTally::from_json(bad).is_err(), "{bad}");
        }
    }
}
