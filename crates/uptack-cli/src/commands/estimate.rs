//! `uptack estimate` and `uptack simulate`: the estimate from a tally, and how well it does when repeated.

use std::fmt::Display;
use std::path::PathBuf;
use std::thread;

use clap::Args;
use uptack::Progress;
use uptack::estimate::paper::Combination;
use uptack::estimate::{BinEstimate, Confidence, Estimate, Estimator};
use uptack::simulate::{CrowdSampling, Simulated, Simulation};
use uptack::{Channel, Coins, OsCoins, Sums, Tally, answer_name, display};
use uptack_document::{Estimates, SimulationDocument, interval_name};

use crate::arguments::{IntervalArguments, count};
use crate::failure::{Failure, Result, ResultExt};
use crate::input::{InputSource, read_mechanism};
use crate::output::{Table, grouped, print_result, readable};
use crate::progress::watched;

/// Estimate how many owners would say yes, with an interval
#[derive(Args)]
#[command(after_help = "Examples:
  uptack estimate 'normal-form(f=0.5,r=1e-4)' tally.json
  uptack tally rows.csv | uptack estimate 'randomized-response(t=0.8)' \\
    --confidence 99%
  echo '{\"owners\":50000,\"sums\":[549]}' | uptack estimate \\
    'randomized-response(t=0.999) + laplace(scale=1)'
  echo '{\"answers\":[{\"1\":260,\"0\":24740,\"bottom\":25000}]}' | uptack estimate \\
    'normal-form(f=0.5,r=1e-4)' --json")]
pub(crate) struct EstimateArguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// A tally, or for mechanisms with noise a sum, as `uptack tally` prints them; standard input if absent or -
    tally: Option<PathBuf>,
    #[command(flatten)]
    intervals: IntervalArguments,
}

pub(crate) fn run_estimate(arguments: &EstimateArguments, json: bool) -> Result<()> {
    let named = read_mechanism(&arguments.mechanism)?;
    let solved = arguments.solve(&named.channel)?;
    let (mechanism, confidence) = (named.mechanism.to_string(), arguments.intervals.confidence);
    print_result(json, &solved.document(mechanism.clone(), confidence), || describe(&mechanism, confidence, &solved))
}

impl EstimateArguments {
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
    --yes 50 --trials 1000 --per-owner",
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
    #[arg(long, value_parser = count)]
    yes: u64,
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
    let named = read_mechanism(&arguments.mechanism)?;
    let simulation = arguments.simulation()?;
    let result = follow(&simulation, &named.channel)?;
    let mechanism = named.mechanism.to_string();
    let document = SimulationDocument::new(mechanism.clone(), &simulation, &result);
    print_result(json, &document, || describe_simulation(&mechanism, &simulation, &result))
}

impl SimulateArguments {
    fn simulation(&self) -> Result<Simulation> {
        Ok(Simulation {
            owners: self.owners,
            yes: self.yes,
            trials: self.trials,
            seed: self.seed.map_or_else(new_seed, Ok)?,
            confidence: self.intervals.confidence,
            interval: self.intervals.kind(),
            crowd: if self.per_owner { CrowdSampling::PerOwner } else { CrowdSampling::Aggregated },
        })
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
