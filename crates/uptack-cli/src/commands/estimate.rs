//! `uptack estimate` and `uptack simulate`: the estimate from a tally, and how well it does when repeated.

use std::fmt::Display;
use std::path::PathBuf;
use std::thread;

use clap::Args;
use uptack::Progress;
use uptack::contribution::Contributions;
use uptack::estimate::paper::Combination;
use uptack::estimate::{BinEstimate, Confidence, Estimate, Estimator};
use uptack::simulate::{ContributionSimulation, CrowdSampling, Simulated, Simulation};
use uptack::{Channel, Coins, OsCoins, Sums, Tally, answer_name, display};
use uptack_document::{Estimates, SimulationDocument, interval_name};

use super::contributions;
use crate::arguments::{IntervalArguments, count};
use crate::choices::OptionsArgument;
use crate::failure::{Failure, Result, ResultExt};
use crate::input::{InputSource, Loaded, read_any_mechanism};
use crate::output::{Table, grouped, print_result, readable};
use crate::progress::watched;

/// Estimate how many owners would say yes, or have each option, with an interval
#[derive(Args)]
#[command(after_help = "Examples:
  uptack estimate 'normal-form(f=0.5,r=1e-4)' tally.json
  uptack tally rows.csv | uptack estimate 'randomized-response(t=0.8)' \\
    --confidence 99%
  echo '{\"owners\":50000,\"sums\":[549]}' | uptack estimate \\
    'randomized-response(t=0.999) + laplace(scale=1)'
  echo '{\"answers\":[{\"1\":260,\"0\":24740,\"bottom\":25000}]}' | uptack estimate \\
    'normal-form(f=0.5,r=1e-4)' --json
  echo '{\"owners\":9000,\"sums\":[4003,2991,1496,507]}' | uptack estimate \\
    'choice(k=4,r=2e-4) + laplace(scale=2)' --options car,bus,bike,walk
  echo '{\"owners\":900,\"sums\":[3,241,402,196,41,12]}' | uptack estimate \\
    'choice(k=6,r=2e-4) + laplace(scale=2)' --bins 0,20,40,60 --quantiles 0.5")]
pub(crate) struct EstimateArguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// A tally, or for mechanisms with noise sums, as `uptack tally` prints them; standard input if absent or -
    tally: Option<PathBuf>,
    /// The names of the options, as a list or as a file with one name per line; by default the tally's, or numbers from 1
    #[arg(long, value_name = "A,B,…|FILE")]
    options: Option<OptionsArgument>,
    /// The value of each option, whose mean is estimated; `none` for an option without one
    #[arg(long, value_name = "V1,V2,…", allow_hyphen_values = true)]
    values: Option<String>,
    /// The options are the ranges between these rising edges, what is below and above them, and *no value*; the mean is
    /// estimated by midpoints
    #[arg(long, value_name = "E0,E1,…", allow_hyphen_values = true, conflicts_with_all = ["options", "values"])]
    bins: Option<String>,
    /// Show the options at which these shares of the owners are reached, as in 0.25,0.5,0.75
    #[arg(long, value_name = "Q1,Q2,…")]
    quantiles: Option<String>,
    #[command(flatten)]
    intervals: IntervalArguments,
}

pub(crate) fn run_estimate(arguments: &EstimateArguments, json: bool) -> Result<()> {
    let named = match read_any_mechanism(&arguments.mechanism)? {
        Loaded::YesNo(named) => named,
        Loaded::Contributions(asked) => return arguments.of_options(&asked, json),
    };
    arguments.check_yes_no()?;
    let solved = arguments.solve(&named.channel)?;
    let (mechanism, confidence) = (named.mechanism.to_string(), arguments.intervals.confidence);
    print_result(json, &solved.document(mechanism.clone(), confidence), || describe(&mechanism, confidence, &solved))
}

impl EstimateArguments {
    fn of_options(&self, asked: &Contributions, json: bool) -> Result<()> {
        let input = InputSource::new(self.tally.as_deref());
        contributions::Estimate {
            asked,
            input,
            text: &read_text(input)?,
            options: self.options.as_ref(),
            values: self.values.as_deref(),
            bins: self.bins.as_deref(),
            quantiles: self.quantiles.as_deref(),
            intervals: self.intervals,
        }
        .run(json)
    }

    /// Refuses what a yes/no question does not have.
    fn check_yes_no(&self) -> Result<()> {
        let given = [
            (self.options.is_some(), "--options"),
            (self.values.is_some(), "--values"),
            (self.bins.is_some(), "--bins"),
            (self.quantiles.is_some(), "--quantiles"),
        ];
        let first = given.into_iter().find(|(is_given, _)| *is_given);
        first.map_or(Ok(()), |(_, option)| Err(contributions::no_options(option, &self.mechanism)))
    }

    fn solve(&self, channel: &Channel) -> Result<Estimates> {
        let input = InputSource::new(self.tally.as_deref());
        let text = read_text(input)?;
        match channel.noise() {
            Some(_) => solve_sum(channel, the_sum(&text, input)?, self.intervals, input),
            None => solve(channel, &parse_tally(&text, input)?, self.intervals, input),
        }
    }
}

/// Estimates from a tally; `place` is named if the tally cannot come from this channel.
pub(crate) fn solve(
    channel: &Channel,
    tally: &Tally,
    intervals: IntervalArguments,
    place: impl Display,
) -> Result<Estimates> {
    // A channel that nothing can be estimated from is not the tally's fault.
    Estimator::new(channel)?;
    Estimates::of_tally(channel, tally, intervals.confidence, intervals.kind()).at(place)
}

/// Estimates from a published sum with noise; `place` is named if the sum cannot come from this channel.
pub(crate) fn solve_sum(
    channel: &Channel,
    published: (u64, i64),
    intervals: IntervalArguments,
    place: impl Display,
) -> Result<Estimates> {
    Estimator::new(channel)?;
    Estimates::of_sum(channel, published, intervals.confidence, intervals.kind()).at(place)
}

/// The text of a tally or a sum.
fn read_text(input: InputSource<'_>) -> Result<String> {
    let text = input.read_small()?;
    if text.trim().is_empty() {
        return Err(Failure::request("empty").at(input).with_hint("`uptack tally` makes a tally from rows"));
    }
    Ok(text)
}

fn parse_tally(text: &str, place: InputSource<'_>) -> Result<Tally> {
    serde_json::from_str(text)
        .map_err(|error| Failure::request(format!("{place}: not a tally: {error}")).with_hint(tally_hint(text)))
}

fn tally_hint(text: &str) -> &'static str {
    match serde_json::from_str::<Sums>(text) {
        Ok(_) => "this is a sum with noise: name the noise, as in MECHANISM + laplace(scale=2)",
        Err(_) => "a tally is JSON such as {\"answers\":[{\"1\":260,\"0\":240,\"bottom\":500}]}",
    }
}

fn parse_sums(text: &str, place: InputSource<'_>) -> Result<Sums> {
    serde_json::from_str(text)
        .map_err(|error| Failure::request(format!("{place}: not a sum with noise: {error}")).with_hint(sums_hint(text)))
}

fn sums_hint(text: &str) -> &'static str {
    match serde_json::from_str::<Tally>(text) {
        Ok(_) => "this is a tally without noise: `uptack tally --noise` adds it, or leave it out of the mechanism",
        Err(_) => "with noise a sum is published, as JSON such as {\"owners\":1000,\"sums\":[260]}",
    }
}

/// The owners and the one sum of a file.
fn the_sum(text: &str, place: InputSource<'_>) -> Result<(u64, i64)> {
    let published = parse_sums(text, place)?;
    match published.sums() {
        [sum] => Ok((published.owners(), *sum)),
        sums => Err(Failure::request(format!("{place}: {} sums, but one question has one", sums.len()))
            .with_hint("estimate the sums of a ballot one by one")),
    }
}

pub(crate) fn describe(mechanism: &str, confidence: Confidence, solved: &Estimates) -> String {
    let Estimates { estimate, interval, .. } = solved;
    let [low, high] = display::interval(interval.low, interval.high);
    format!(
        "{mechanism}\n\n\
         {} of {} owners would say yes, give or take {} (standard deviation).\n\
         With confidence {} it is between {low} and {high} ({}).\n\
         Of the error, {} (squares add up).\n{}\n{}",
        readable(estimate.estimate),
        grouped(estimate.owners),
        readable(estimate.sd),
        confidence.level(),
        interval_name(interval.kind),
        error_parts(estimate),
        few_answers_words(estimate),
        bins_table(solved).render(),
    )
}

/// That the estimate is biased, if it rests on few answers.
fn few_answers_words(estimate: &Estimate) -> String {
    let Some(answers) = estimate.few_answers else { return String::new() };
    format!(
        "It rests on {answers} answers, which is few for this mechanism: the estimate is biased, and its error larger than stated.\n\
         The interval holds all the same.\n"
    )
}

/// How much of the error comes from where.
fn error_parts(estimate: &Estimate) -> String {
    let [sampling, privacy, noise] = [estimate.sampling_sd, estimate.privacy_sd, estimate.aggregator_sd].map(readable);
    if estimate.aggregator_sd == 0.0 {
        return format!("{sampling} is from sampling and {privacy} from privacy");
    }
    format!("{sampling} is from sampling, {privacy} from the owners' coins and {noise} from the aggregators' noise")
}

/// The estimates from single bins and from differences of answers, and from everything combined.
fn bins_table(solved: &Estimates) -> Table {
    let mut table = Table::new(&["from", "estimate", "sd"])
        .with_rows(solved.estimate.by_bin.iter().map(bin_row))
        .with_rows(solved.differences.iter().map(difference_row));
    table.row(["combined", &readable(solved.estimate.estimate), &readable(solved.estimate.sd)]);
    table
}

fn bin_row(bin: &BinEstimate) -> [String; 3] {
    let name = format!("{} = {}", answer_name(bin.bin.answer), bin.bin.output);
    [name, readable_or_dash(bin.estimate), readable_or_dash(bin.sd)]
}

fn difference_row(difference: &Combination) -> [String; 3] {
    [difference.name.clone(), readable_or_dash(difference.estimate), readable_or_dash(difference.sd)]
}

fn readable_or_dash(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), readable)
}

/// Simulate the whole path from truths to estimates, and compare its errors with the predicted ones
///
/// For a mechanism with options, --counts says how many owners have each of them.
#[derive(Args)]
#[command(
    after_help = "Examples:
  uptack simulate 'normal-form(f=0.5,r=1e-4)' --owners 50000 --yes 500 \\
    --trials 20000 --seed 1
  uptack simulate 'randomized-response(t=0.999) + laplace(scale=1)' \\
    --owners 50000 --yes 500 --trials 20000
  uptack simulate 'randomized-response(t=0.8)' --owners 1e9 --yes 500 \\
    --trials 1000
  uptack simulate 'cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)' --owners 5000 \\
    --yes 50 --trials 1000 --per-owner
  uptack simulate 'choice(k=4,r=2e-4) + laplace(scale=2)' --owners 9000 \\
    --counts 4000,3000,1500,500 --trials 1000 --seed 1",
    mut_arg("confidence", |argument| argument.help("The confidence of the intervals")),
    mut_arg("interval", |argument| argument.help("How the intervals are computed"))
)]
pub(crate) struct SimulateArguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// The size of the crowd
    #[arg(long, value_parser = count)]
    owners: u64,
    /// How many of them would say yes
    #[arg(long, value_parser = count, required_unless_present = "counts")]
    yes: Option<u64>,
    /// How many of them have each option; one of several options is had by everybody
    #[arg(long, value_name = "C1,C2,…", conflicts_with = "yes")]
    counts: Option<String>,
    /// How many times to repeat
    #[arg(long, value_parser = count)]
    trials: u64,
    /// The seed, for reproducible results; by default a new one is drawn and printed
    #[arg(long, value_parser = count)]
    seed: Option<u64>,
    /// Call the real sampler for every owner, instead of drawing the counts at once
    #[arg(long)]
    per_owner: bool,
    #[command(flatten)]
    intervals: IntervalArguments,
}

pub(crate) fn run_simulate(arguments: &SimulateArguments, json: bool) -> Result<()> {
    let named = match read_any_mechanism(&arguments.mechanism)? {
        Loaded::YesNo(named) => named,
        Loaded::Contributions(asked) => {
            return contributions::run_simulate(&asked, arguments.of_options(&asked)?, json);
        }
    };
    let simulation = arguments.simulation()?;
    let result = follow(&simulation, &named.channel)?;
    let mechanism = named.mechanism.to_string();
    let document = SimulationDocument::new(mechanism.clone(), &simulation, &result);
    print_result(json, &document, || describe_simulation(&mechanism, &simulation, &result))
}

impl SimulateArguments {
    fn simulation(&self) -> Result<Simulation> {
        let yes = self.yes.ok_or_else(|| contributions::no_options("--counts", &self.mechanism))?;
        Ok(Simulation {
            owners: self.owners,
            yes,
            trials: self.trials,
            seed: self.seed.map_or_else(new_seed, Ok)?,
            confidence: self.intervals.confidence,
            interval: self.intervals.kind(),
            crowd: self.crowd(),
        })
    }

    fn of_options(&self, asked: &Contributions) -> Result<ContributionSimulation> {
        Ok(ContributionSimulation {
            owners: self.owners,
            counts: contributions::true_counts(asked, self.owners, self.counts.as_deref(), self.yes)?,
            trials: self.trials,
            seed: self.seed.map_or_else(new_seed, Ok)?,
            confidence: self.intervals.confidence,
            interval: self.intervals.kind(),
            crowd: self.crowd(),
        })
    }

    fn crowd(&self) -> CrowdSampling {
        if self.per_owner { CrowdSampling::PerOwner } else { CrowdSampling::Aggregated }
    }
}

/// Small enough to be typed again.
fn new_seed() -> Result<u64> {
    let mut bytes = [0; 4];
    OsCoins.fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes).into())
}

fn follow(simulation: &Simulation, channel: &Channel) -> Result<Simulated> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = |progress: &Progress| simulation.run_with(channel, threads, progress);
    Ok(watched("trials", simulation.trials, work)?)
}

fn describe_simulation(mechanism: &str, simulation: &Simulation, result: &Simulated) -> String {
    format!(
        "{mechanism}\n\n\
         {} trials in which {} of {} owners would say yes (seed {})\n\n\
         mean          {}\n\
         bias          {}\n\
         rmse          {}\n\
         predicted sd  {}\n\
         coverage      {} of intervals at confidence {}\n",
        grouped(result.trials),
        grouped(simulation.yes),
        grouped(simulation.owners),
        simulation.seed,
        readable(result.mean),
        readable(result.bias),
        readable(result.rmse),
        readable(result.predicted_sd),
        readable(result.coverage),
        simulation.confidence.level(),
    )
}
