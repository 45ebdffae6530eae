//! `uptack estimate`

use std::path::{Path, PathBuf};

use clap::Args;
use uptack::estimate::{Confidence, Estimator};
use uptack::{Channel, Sums, Tally, answer_name, display};
use uptack_document::{Solved, interval_name};

use crate::arguments::{IntervalArgument, confidence};
use crate::failure::Failure;
use crate::mechanism;
use crate::output::{Table, grouped, print, print_json, read_small_file, read_small_input, readable};

/// Estimate how many owners hold yes, with an interval
#[derive(Args)]
#[command(after_help = "Examples:
  uptack estimate 'normal-form(f=0.5,r=1e-4)' tally.json
  uptack tally rows.csv | uptack estimate 'randomized-response(t=0.8)' \\
    --confidence 99%
  echo '{\"owners\":50000,\"sums\":[549]}' | uptack estimate \\
    'randomized-response(t=0.999) + laplace(scale=1)'
  echo '{\"answers\":[{\"1\":260,\"0\":24740,\"bottom\":25000}]}' | uptack estimate \\
    'normal-form(f=0.5,r=1e-4)' --json")]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// A tally, or for mechanisms with noise a sum, as `uptack tally` prints them; standard input if absent or -
    tally: Option<PathBuf>,
    /// With which probability the interval holds the truth
    #[arg(long, default_value = "0.95", value_parser = confidence)]
    confidence: Confidence,
    /// How the interval is made
    #[arg(long, value_enum, default_value = "auto")]
    interval: IntervalArgument,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(&arguments.mechanism)?;
    let (text, place) = read_text(arguments.tally.as_deref())?;
    let (confidence, interval) = (arguments.confidence, arguments.interval);
    let solved = if named.channel.noise().is_some() {
        solve_sum(&named.channel, the_sum(&text, &place)?, confidence, interval, &place)?
    } else {
        solve(&named.channel, &parse_tally(&text, &place)?, confidence, interval, &place)?
    };
    let mechanism = named.mechanism.to_string();
    if json {
        return print_json(&solved.document(mechanism, arguments.confidence));
    }
    print(&describe(&mechanism, arguments.confidence, &solved))
}

/// Estimates from a tally; `place` is named where the tally cannot be one of this channel.
pub(crate) fn solve(
    channel: &Channel,
    tally: &Tally,
    confidence: Confidence,
    interval: IntervalArgument,
    place: &str,
) -> Result<Solved, Failure> {
    // A channel that nothing can be estimated from is not the tally's fault.
    Estimator::new(channel)?;
    Ok(Solved::of_tally(channel, tally, confidence, interval.into()).map_err(|error| error.at(place))?)
}

/// Estimates from a published sum with noise; `place` is named where it cannot be one of this channel.
pub(crate) fn solve_sum(
    channel: &Channel,
    published: (u64, i64),
    confidence: Confidence,
    interval: IntervalArgument,
    place: &str,
) -> Result<Solved, Failure> {
    Estimator::new(channel)?;
    Ok(Solved::of_sum(channel, published, confidence, interval.into()).map_err(|error| error.at(place))?)
}

/// The text of a tally or sum, and how its place is called.
fn read_text(path: Option<&Path>) -> Result<(String, String), Failure> {
    let (text, place) = match path.filter(|path| *path != Path::new("-")) {
        Some(path) => (read_small_file(path)?, path.display().to_string()),
        None => (read_small_input()?, "standard input".to_owned()),
    };
    if text.trim().is_empty() {
        return Err(Failure::request(format!("{place}: empty")).with_hint("`uptack tally` makes a tally from rows"));
    }
    Ok((text, place))
}

fn parse_tally(text: &str, place: &str) -> Result<Tally, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let hint = match serde_json::from_str::<Sums>(text) {
            Ok(_) => "this is a sum with noise: name the noise, as in MECHANISM + laplace(scale=2)",
            Err(_) => "a tally is JSON such as {\"answers\":[{\"1\":260,\"0\":240,\"bottom\":500}]}",
        };
        Failure::request(format!("{place}: not a tally: {error}")).with_hint(hint)
    })
}

fn parse_sums(text: &str, place: &str) -> Result<Sums, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let hint = match serde_json::from_str::<Tally>(text) {
            Ok(_) => "this is a tally without noise: `uptack tally --noise` adds it, or leave it out of the mechanism",
            Err(_) => "with noise a sum is published, as JSON such as {\"owners\":1000,\"sums\":[260]}",
        };
        Failure::request(format!("{place}: not a sum with noise: {error}")).with_hint(hint)
    })
}

/// The owners and the one sum of a file.
fn the_sum(text: &str, place: &str) -> Result<(u64, i64), Failure> {
    let published = parse_sums(text, place)?;
    match published.sums() {
        [sum] => Ok((published.owners(), *sum)),
        sums => Err(Failure::request(format!("{place}: {} sums, where one question has one", sums.len()))
            .with_hint("estimate the sums of a ballot one by one")),
    }
}

pub(crate) fn describe(mechanism: &str, confidence: Confidence, solved: &Solved) -> String {
    let Solved { estimate, interval, .. } = solved;
    let mut bins = Table::new(&["from", "estimate", "sd"]);
    let cell = |value: Option<f64>| value.map_or("-".to_owned(), readable);
    for bin in &estimate.by_bin {
        let name = format!("{} = {}", answer_name(bin.bin.answer), bin.bin.output);
        bins.row([name, cell(bin.estimate), cell(bin.sd)]);
    }
    for difference in &solved.differences {
        bins.row([difference.name.clone(), cell(difference.estimate), cell(difference.sd)]);
    }
    let noise = match estimate.aggregator_sd {
        0.0 => format!("{} from privacy", readable(estimate.privacy_sd)),
        noise => format!(
            "{} from the owners' coins and {} from the aggregators' noise",
            readable(estimate.privacy_sd),
            readable(noise)
        ),
    };
    let and = if estimate.aggregator_sd == 0.0 { " and" } else { "," };
    bins.row(["combined".to_owned(), readable(estimate.estimate), readable(estimate.sd)]);
    let [low, high] = display::interval(interval.low, interval.high);
    format!(
        "{mechanism}\n\n\
         {} of {} owners hold yes, give or take {} (standard deviation).\n\
         With confidence {} it is between {low} and {high} ({}).\n\
         Of the error, {} is from sampling{and} {noise} (squares add up).\n\n{}",
        readable(estimate.estimate),
        grouped(estimate.owners),
        readable(estimate.sd),
        confidence.level(),
        interval_name(interval.kind),
        readable(estimate.sampling_sd),
        bins.render(),
    )
}
