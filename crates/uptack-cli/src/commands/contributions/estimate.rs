//! `uptack estimate` of a mechanism with options: every option, and the mean and quantiles of their values.

use uptack::contribution::{Contributions, OptionNames};
use uptack::display;
use uptack::estimate::options::{MeanEstimate, OptionEstimate, OptionEstimator, QuantileEstimate};
use uptack_document::{EstimatedOptions, OptionScale, OptionTally, interval_name};

use super::bars::{Bar, BarChart};
use crate::arguments::{IntervalArguments, number};
use crate::choices::{OptionsArgument, bins, check_names, numbers};
use crate::failure::{Failure, Result, ResultExt};
use crate::input::InputSource;
use crate::layout::joined;
use crate::output::{grouped, print_result, readable};

/// What `uptack estimate` was asked about options.
pub(crate) struct Estimate<'a> {
    pub(crate) asked: &'a Contributions,
    pub(crate) input: InputSource<'a>,
    /// The tally.
    pub(crate) text: &'a str,
    pub(crate) options: Option<&'a OptionsArgument>,
    pub(crate) values: Option<&'a str>,
    pub(crate) bins: Option<&'a str>,
    pub(crate) quantiles: Option<&'a str>,
    pub(crate) intervals: IntervalArguments,
}

const TALLY: &str = "a tally of options is JSON such as {\"owners\":1000,\"counts\":[260,740]}, or with noise \"sums\"";

impl Estimate<'_> {
    pub(crate) fn run(self, json: bool) -> Result<()> {
        let scale = self.scale()?;
        let tally = OptionTally::from_json(self.text)
            .map_err(|message| Failure::request(format!("{}: not a tally of options: {message}", self.input)))
            .with_hint(TALLY)?;
        let names = self.names(&tally, &scale)?;
        let (confidence, kind) = (self.intervals.confidence, self.intervals.kind());
        // A mechanism from which nothing can be estimated is not the tally's fault.
        OptionEstimator::new(self.asked)?;
        let found = EstimatedOptions::of(self.asked, names, &tally, confidence, kind).at(self.input)?;
        let mut found = self.with_mean(found, &tally, &scale)?;
        if let Some(shares) = self.quantiles {
            let shares = numbers(shares, "--quantiles")?;
            found = found.with_quantiles(self.asked, &tally, &scale, &shares).at("--quantiles")?;
        }
        let mechanism = self.asked.to_string();
        print_result(json, &found.json(&mechanism), || self.describe(&found))
    }

    fn with_mean(&self, found: EstimatedOptions, tally: &OptionTally, scale: &OptionScale) -> Result<EstimatedOptions> {
        let found = found.with_mean(self.asked, tally, scale);
        match scale {
            OptionScale::Values(_) => found.at("--values").or_hint("a mean is over owners with one option each"),
            OptionScale::Bins(_) | OptionScale::None => Ok(found?),
        }
    }

    fn scale(&self) -> Result<OptionScale> {
        match (self.bins, self.values) {
            (Some(edges), _) => bins(edges, self.asked).map(OptionScale::Bins),
            (None, Some(values)) => self.checked_values(values).map(OptionScale::Values),
            (None, None) => Ok(OptionScale::None),
        }
    }

    /// One value for each option; `none` for an option without one.
    fn checked_values(&self, text: &str) -> Result<Vec<Option<f64>>> {
        let read = |text: &str| match text.trim() {
            "none" => Ok(None),
            text => number(text).map(Some).map_err(|message| Failure::request(message).at("--values")),
        };
        let values: Result<Vec<Option<f64>>> = text.split(',').map(read).collect();
        let values = values.with_hint("the value of an option is a number, or none")?;
        let (has, wants) = (values.len(), self.asked.options());
        if has == wants {
            return Ok(values);
        }
        Err(Failure::request(format!("--values: {has} values for {wants} options"))
            .with_hint("give one value for each option, in their order"))
    }

    /// The options' names: those that are given, those of the bins or of the tally, or numbers.
    fn names(&self, tally: &OptionTally, scale: &OptionScale) -> Result<OptionNames> {
        let given = match scale {
            OptionScale::Bins(bins) => Some(bins.names()),
            _ => self.options.map(OptionsArgument::names).transpose()?,
        };
        given.as_ref().map_or(Ok(()), |given| check_names(given, self.asked))?;
        let stated = tally.options().map(|names| OptionNames::new(names.iter().cloned())).transpose().at(self.input)?;
        check_same(given.as_ref(), stated.as_ref()).at(self.input)?;
        let names = given.or(stated).unwrap_or_else(|| OptionNames::numbered(self.asked.options()));
        let (has, wants) = (names.len(), self.asked.options());
        if has != wants {
            return Err(Failure::request(format!("a tally of {has} options, but {} has {wants}", self.asked))
                .with_hint("was it made by another mechanism?")
                .at(self.input));
        }
        Ok(names)
    }

    fn describe(&self, found: &EstimatedOptions) -> String {
        let estimates = &found.estimates;
        let level = estimates.confidence.level();
        let kind = estimates.options.first().map_or("exact", |option| interval_name(option.interval.kind));
        let parts = [
            format!("{}\n\n{} owners", self.asked, grouped(estimates.owners)),
            String::new(),
            options_chart(found),
            format!(
                "Each interval ({kind}) holds with confidence {level} by itself, and those of the column `all at once` hold \
                 together with that confidence. Bars are solid up to the lower end of an option's interval, and light up to \
                 its upper end."
            ),
            joined(&estimates.notes, "\n"),
            found.mean.as_ref().map(|mean| mean_words(mean, level)).unwrap_or_default(),
            quantile_words(&found.quantiles, &found.names, level),
        ];
        let mut text = joined(parts.iter().filter(|part| !part.is_empty()), "\n\n");
        text.push('\n');
        text
    }
}

/// Refuses a tally of other options than those that are given.
fn check_same(given: Option<&OptionNames>, stated: Option<&OptionNames>) -> Result<()> {
    let (Some(given), Some(stated)) = (given, stated) else { return Ok(()) };
    if given.names() == stated.names() {
        return Ok(());
    }
    let (ours, theirs) = (given.names(), stated.names());
    let index = (0..ours.len().min(theirs.len())).find(|&index| ours[index] != theirs[index]);
    let difference = match index {
        Some(index) => format!("option {} is `{}`, not `{}`", index + 1, theirs[index], ours[index]),
        None => format!("it has {} options, not {}", theirs.len(), ours.len()),
    };
    Err(Failure::request(format!("a tally of other options: {difference}"))
        .with_hint("was it made from another question?"))
}

fn options_chart(found: &EstimatedOptions) -> String {
    let bars =
        found.estimates.options.iter().enumerate().map(|(index, option)| option_bar(found.names.name(index), option));
    let header = ["option", "estimate", "sd", "interval", "all at once", "share", "consistent"];
    BarChart { header: &header, bars: bars.collect() }.render().trim_end().to_owned()
}

fn option_bar(name: &str, option: &OptionEstimate) -> Bar {
    let ends = |low, high| {
        let [low, high] = display::interval(low, high);
        format!("{low} to {high}")
    };
    let cells = vec![
        name.to_owned(),
        readable(option.estimate),
        readable(option.sd),
        ends(option.interval.low, option.interval.high),
        ends(option.simultaneous.low, option.simultaneous.high),
        format!("{:.1} %", 100.0 * option.share),
        readable(option.consistent),
    ];
    Bar { cells, solid: option.interval.low, light: option.interval.high }
}

fn mean_words(mean: &MeanEstimate, level: f64) -> String {
    let [low, high] = [mean.interval.low, mean.interval.high].map(readable);
    let bins = mean.bin_error.map(|error| {
        format!(
            " It is computed from midpoints of the ranges, of owners whose value lies between the edges; the width of the \
             ranges can move it by up to {} more.",
            readable(error)
        )
    });
    format!(
        "The mean over {} owners is {}, give or take {} (standard deviation); with confidence {level} it is between {low} and \
         {high}.{}",
        readable(mean.owners),
        readable(mean.estimate),
        readable(mean.sd),
        bins.unwrap_or_default()
    )
}

fn quantile_words(quantiles: &[QuantileEstimate], names: &OptionNames, level: f64) -> String {
    let words = quantiles.iter().map(|quantile| {
        let name = |option: usize| names.name(option);
        let hull = match quantile.low == quantile.high {
            true => format!("with confidence {level} no other"),
            false => format!("with confidence {level} from `{}` to `{}`", name(quantile.low), name(quantile.high)),
        };
        format!("Quantile {}: `{}`, {hull}.", quantile.q, name(quantile.option))
    });
    joined(words, "\n")
}
