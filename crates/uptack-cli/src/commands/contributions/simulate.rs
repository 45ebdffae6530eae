//! `uptack simulate` of a mechanism with options.

use std::thread;

use uptack::Progress;
use uptack::contribution::{Contributions, OptionNames};
use uptack::simulate::{ContributionSimulation, SimulatedContributions};
use uptack_document::simulated_options_json;

use crate::arguments::count;
use crate::failure::{Failure, Result, ResultExt};
use crate::output::{Table, grouped, print_result, readable};
use crate::progress::watched;

/// How many owners have each option. For a yes/no question, the number that would say yes is enough.
pub(crate) fn true_counts(
    asked: &Contributions,
    owners: u64,
    counts: Option<&str>,
    yes: Option<u64>,
) -> Result<Vec<u64>> {
    if let Some(text) = counts {
        let read = |text: &str| count(text.trim()).map_err(|message| Failure::request(message).at("--counts"));
        return text.split(',').map(read).collect();
    }
    match yes {
        Some(yes) if asked.yes_no().is_some() && yes <= owners => Ok([yes, owners - yes][..asked.options()].to_vec()),
        Some(yes) if asked.yes_no().is_some() => {
            Err(Failure::request(format!("{yes} yes-owners are more than the {owners} owners")))
        }
        _ => Err(Failure::request(format!("how many owners have each of the {} options?", asked.options()))
            .with_hint("give --counts, one number for each option")),
    }
}

pub(crate) fn run_simulate(asked: &Contributions, simulation: ContributionSimulation, json: bool) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = |progress: &Progress| simulation.run_with(asked, threads, progress);
    let result = watched("trials", simulation.trials, work).or_hint("--counts has one number for each option")?;
    let names = OptionNames::numbered(asked.options());
    let document = simulated_options_json(asked, &names, &simulation, &result);
    print_result(json, &document, || describe(asked, &names, &simulation, &result))
}

fn describe(
    asked: &Contributions,
    names: &OptionNames,
    simulation: &ContributionSimulation,
    result: &SimulatedContributions,
) -> String {
    let rows = result.options.iter().enumerate().map(|(index, option)| {
        let numbers = [option.bias, option.rmse, option.predicted_sd, option.coverage].map(readable);
        let first = [names.name(index).to_owned(), grouped(simulation.counts[index])];
        first.into_iter().chain(numbers).collect::<Vec<_>>()
    });
    let table = Table::new(&["option", "owners", "bias", "rmse", "predicted sd", "coverage"]).with_rows(rows);
    format!(
        "{asked}\n\n{} trials with {} owners (seed {})\n\n{}\n\
         Intervals have confidence {}. All simultaneous intervals hold at once in a share of {} of the trials.\n",
        grouped(result.trials),
        grouped(simulation.owners),
        simulation.seed,
        table.render(),
        simulation.confidence.level(),
        readable(result.simultaneous_coverage),
    )
}
