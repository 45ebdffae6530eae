//! The commands for mechanisms with options: one of several, or several contributions among many counts.

mod bars;
mod channel;
mod estimate;
mod plan;
mod privacy;
mod rows;
mod simulate;

pub(super) use channel::run_channel;
pub(super) use estimate::Estimate;
pub(super) use plan::{plan_mark, print_plan, tradeoff_table};
pub(super) use privacy::run_privacy;
pub(super) use rows::{OptionFile, Privatize, first_line, print_tally};
pub(super) use simulate::{run_simulate, true_counts};

use crate::failure::Failure;

/// An option of the command line that needs a mechanism with options.
pub(super) fn no_options(given: &str, mechanism: &str) -> Failure {
    Failure::request(format!("{given}: {mechanism} is about a yes/no question, which has no options"))
        .with_hint("options belong to choice(k=…,r=…) and contributions(counts=…,most=…,r=…)")
}
