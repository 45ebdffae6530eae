//! One file per command.

mod aggregator;
mod algebra;
mod answer;
mod ask;
mod audit;
mod backup;
mod cancel;
mod channel;
mod completions;
mod demo;
mod enrol;
mod estimate;
mod evaluate;
mod fleet;
mod ledger;
mod man;
mod pair_secret;
mod plan;
mod privacy;
mod privatize;
mod queries;
mod randomizer;
mod result;
mod serve;
mod simulate;
mod tally;
mod task;
mod verify;

use clap::Subcommand;

use crate::failure::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Channel(channel::Arguments),
    Plan(plan::Arguments),
    Privacy(privacy::Arguments),
    Privatize(privatize::Arguments),
    Tally(tally::Arguments),
    Estimate(estimate::Arguments),
    Evaluate(evaluate::Arguments),
    Simulate(simulate::Arguments),
    Algebra(algebra::Arguments),
    Audit(audit::Arguments),
    Aggregator(aggregator::Arguments),
    Task(task::Arguments),
    PairSecret(pair_secret::Arguments),
    Answer(answer::Arguments),
    Fleet(fleet::Arguments),
    Ledger(ledger::Arguments),
    Enrol(enrol::Arguments),
    Serve(serve::Arguments),
    Ask(ask::Arguments),
    Queries(queries::Arguments),
    Result(result::Arguments),
    Cancel(cancel::Arguments),
    Backup(backup::Arguments),
    Verify(verify::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    pub(crate) fn run(self, json: bool) -> Result<()> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments, json),
            Self::Channel(arguments) => channel::run(&arguments, json),
            Self::Plan(arguments) => plan::run(&arguments, json),
            Self::Privacy(arguments) => privacy::run(&arguments, json),
            Self::Privatize(arguments) => privatize::run(&arguments, json),
            Self::Tally(arguments) => tally::run(&arguments, json),
            Self::Estimate(arguments) => estimate::run(&arguments, json),
            Self::Evaluate(arguments) => evaluate::run(&arguments, json),
            Self::Simulate(arguments) => simulate::run(&arguments, json),
            Self::Algebra(arguments) => algebra::run(&arguments, json),
            Self::Audit(arguments) => audit::run(&arguments, json),
            Self::Aggregator(arguments) => aggregator::run(&arguments, json),
            Self::Task(arguments) => task::run(&arguments, json),
            Self::PairSecret(arguments) => pair_secret::run(&arguments, json),
            Self::Answer(arguments) => answer::run(&arguments, json),
            Self::Fleet(arguments) => fleet::run(&arguments, json),
            Self::Ledger(arguments) => ledger::run(&arguments, json),
            Self::Enrol(arguments) => enrol::run(&arguments, json),
            Self::Serve(arguments) => serve::run(&arguments, json),
            Self::Ask(arguments) => ask::run(&arguments, json),
            Self::Queries(arguments) => queries::run(&arguments, json),
            Self::Result(arguments) => result::run(&arguments, json),
            Self::Cancel(arguments) => cancel::run(&arguments, json),
            Self::Backup(arguments) => backup::run(&arguments, json),
            Self::Verify(arguments) => verify::run(&arguments, json),
            Self::Completions(arguments) => completions::run(&arguments, json),
            Self::Man(arguments) => man::run(&arguments, json),
        }
    }
}
