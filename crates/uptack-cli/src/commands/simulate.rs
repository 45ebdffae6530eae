//! `uptack simulate`

use std::thread;

use clap::Args;
use uptack::simulate::{Crowd, Progress, Simulated, Simulation};
use uptack::{Channel, Coins, OsCoins};
use uptack_document::SimulationDocument;

use crate::arguments::{IntervalArguments, count};
use crate::failure::Result;
use crate::mechanism;
use crate::output::{grouped, print_result, readable};
use crate::progress::watched;

/// Repeat the whole way from truths to estimate, and see whether it keeps its promises
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
    mut_arg("interval", |argument| argument.help("How the intervals are made"))
)]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// The size of the crowd
    #[arg(long, value_parser = count)]
    owners: u64,
    /// How many of them would say yes
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
    #[command(flatten)]
    intervals: IntervalArguments,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let named = mechanism::read(&arguments.mechanism)?;
    let simulation = arguments.simulation()?;
    let result = follow(&simulation, &named.channel)?;
    let mechanism = named.mechanism.to_string();
    let document = SimulationDocument::new(mechanism.clone(), &simulation, &result);
    print_result(json, &document, || describe(&mechanism, &simulation, &result))
}

impl Arguments {
    fn simulation(&self) -> Result<Simulation> {
        Ok(Simulation {
            owners: self.owners,
            yes: self.yes,
            trials: self.trials,
            seed: self.seed.map_or_else(new_seed, Ok)?,
            confidence: self.intervals.confidence,
            interval: self.intervals.kind(),
            crowd: if self.per_owner { Crowd::PerOwner } else { Crowd::Aggregated },
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

fn describe(mechanism: &str, simulation: &Simulation, result: &Simulated) -> String {
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
