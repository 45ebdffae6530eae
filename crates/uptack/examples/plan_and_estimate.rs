//! From a question to an estimate: plan, draw every owner's answer, tally, estimate.
//!
//! `cargo run --release --example plan_and_estimate`
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack::plan::{Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon};
use uptack::{OsCoins, Sampler, Tally, Truth};

const OWNERS: u64 = 50_000;
const YES: u64 = 500;

fn main() -> Result<(), uptack::Error> {
    // About 500 of 50 000 owners would say yes, and the published counts may give away (1, 1e-8).
    let mut request = Request::new(OWNERS, Prior::at(YES));
    request.release = Some((Epsilon::new(1.0)?, Delta::new(1e-8)?));
    let plan = plan(&request)?;
    println!("{} with a standard deviation of {:.3}", plan.best.mechanism, plan.best.sd);

    // On each device: one draw with the operating system's coins.
    let channel = &plan.best.channel;
    let sampler = Sampler::new(channel);
    let mut cells = vec![0; channel.cells().len()];
    for owner in 0..OWNERS {
        cells[sampler.draw(Truth::from_bool(owner < YES), &mut OsCoins)?] += 1;
    }

    // At the analyst's: counts, never rows.
    let tally = Tally::from_cells(channel, &cells)?;
    let estimator = Estimator::new(channel)?;
    let observation = estimator.observe(&tally)?;
    let estimate = estimator.estimate_observed(&observation);
    let interval = estimator.interval(&observation, Confidence::new(0.95)?, IntervalKind::Auto);
    println!("{:.1} would say yes; between {} and {} at 95 %", estimate.estimate, interval.low, interval.high);
    Ok(())
}
