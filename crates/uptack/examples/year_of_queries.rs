//! One owner answers the same question every week for a year: what do all the releases together give away?
//!
//! `cargo run --release --example year_of_queries`
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use uptack::Mechanism;
use uptack::privacy::composition::{Charge, Filter};
use uptack::privacy::{Delta, Repeated, Target, Views, WorkLimit, release, release_loss};

const OWNERS: u64 = 20_000;
const DELTA: f64 = 1e-8;

fn main() -> Result<(), uptack::Error> {
    let channel = "normal-form(f=1, r=0.02)".parse::<Mechanism>()?.channel();
    let target = Target::Delta(Delta::new(DELTA)?);
    let accountant = release(&channel, OWNERS)?;
    let views = Views::of(&channel, OWNERS, target, WorkLimit::default())?;

    // If it was decided in advance to ask 52 times.
    for weeks in [1, 4, 52] {
        let all = Repeated::of(&views, &accountant, target, weeks)?;
        let epsilon = all.release.map_or(f64::INFINITY, |value| value.upper());
        println!(
            "{weeks} weeks: ε = {epsilon:.4} for the published counts, {:.1} for the answers",
            all.linked.unwrap()
        );
    }

    // If nobody knows what will be asked: a budget that says no before it is exceeded.
    let mut budget = Filter::new(2.0, 1e-6)?;
    let charge = Charge::dominated_by(release_loss(&accountant, 1000, 1e-8)?);
    let mut weeks = 0;
    while budget.try_spend(&charge).is_ok() {
        weeks += 1;
    }
    println!("a lifetime budget of (2, 1e-6) allows {weeks} such weeks");
    Ok(())
}
