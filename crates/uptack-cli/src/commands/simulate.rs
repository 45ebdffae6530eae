//! `uptack simulate`

use std::thread;

use clap::Args;
use uptack::estimate::Confidence;
use uptack::simulate::{Crowd, Progress, Simulated, Simulation};
use uptack::{Channel, Coins, OsCoins};
use uptack_document::SimulationDocument;

use crate::arguments::{IntervalArgument, confidence, count};
use crate::failure::Failure;
use crate::mechanism;
use crate::output::{grouped, print, print_json, readable};
use crate::progress::{self, Step};

/// Repeat the whole way from truths to estimate, and see whether it keeps its promises
#[derive(Args)]
#[command(after_help = "Examples:
  uptack simulate 'normal-form(f=0.5,r=1e-4)' --owners 50000 --yes 500 \\
    --trials 20000 --seed 1
  uptack simulate 'randomized-response(t=0.999) + laplace(scale=1)' \\
    --owners 50000 --yes 500 --trials 20000
  uptack simulate 'randomized-response(t=0.8)' --owners 1e9 --yes 500 \\
    --trials 1000
  uptack simulate 'cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)' --owners 5000 \\
    --yes 50 --trials 1000 --per-owner")]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// The size of the crowd
    #[arg(long, value_parser = count)]
    owners: u64,
    /// How many of them hold yes
    #[arg(long, value_parser = count)]
    yes: u64,
    /// How often to repeat
    #[arg(long, value_parser = count)]
    trials: u64,
    /// A seed, for results that can be reproduced; by default a new one each time, which is printed
    #[arg(long, value_parser = count)]
    seed: Option<u64>,
    /// Call the real sampler for every owner, instead of drawing the counts at once
    #[arg(long)]
    per_owner: bool,
    /// The confidence of the intervals
    #[arg(long, default_value = "0.95", value_parser = confidence)]
    confidence: Confidence,
    /// How the intervals are made
    #[arg(long, value_enum, default_value = "auto")]
    interval: IntervalArgument,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(&arguments.mechanism)?;
    let seed = arguments.seed.map_or_else(new_seed, Ok)?;
    let simulation = Simulation {
        owners: arguments.owners,
        yes: arguments.yes,
        trials: arguments.trials,
        seed,
        confidence: arguments.confidence,
        interval: arguments.interval.into(),
        crowd: if arguments.per_owner { Crowd::PerOwner } else { Crowd::Aggregated },
    };
    let result = follow(&simulation, &named.channel)?;
    let mechanism = named.mechanism.to_string();
    if json {
        return print_json(&SimulationDocument::new(mechanism, &simulation, &result));
    }
    print(&describe(&mechanism, &simulation, &result))
}

/// Small enough to be typed again.
fn new_seed() -> Result<u64, Failure> {
    let mut bytes = [0; 4];
    OsCoins.fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes).into())
}

fn follow(simulation: &Simulation, channel: &Channel) -> Result<Simulated, Failure> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let progress = Progress::default();
    let now = || Step { what: "trials", done: progress.done(), all: simulation.trials };
    Ok(progress::follow(now, || simulation.run_with(channel, threads, &progress))?)
}

fn describe(mechanism: &str, simulation: &Simulation, result: &Simulated) -> String {
    format!(
        "{mechanism}\n\n\
         {} trials with {} of {} owners holding yes (seed {})\n\n\
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
