//! The commands, grouped by purpose.

mod audit;
mod channel;
mod contributions;
mod demo;
mod estimate;
mod evaluate;
mod network;
mod plan;
mod privacy;
mod rows;
mod shell;

use clap::Subcommand;

use crate::failure::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Channel(channel::ChannelArguments),
    Plan(plan::Arguments),
    Privacy(privacy::Arguments),
    Privatize(rows::PrivatizeArguments),
    Tally(rows::TallyArguments),
    Estimate(estimate::EstimateArguments),
    Evaluate(evaluate::Arguments),
    Simulate(estimate::SimulateArguments),
    Algebra(channel::AlgebraArguments),
    Audit(audit::Arguments),
    Aggregator(network::aggregator::AggregatorArguments),
    Task(network::aggregator::TaskArguments),
    PairSecret(network::aggregator::PairSecretArguments),
    Answer(network::answer::AnswerArguments),
    Fleet(network::fleet::FleetArguments),
    Ledger(network::answer::LedgerArguments),
    Enrol(network::fleet::EnrolArguments),
    Serve(network::serve::ServeArguments),
    Ask(network::ask::Arguments),
    Queries(network::queries::QueriesArguments),
    Result(network::result::ResultArguments),
    Cancel(network::queries::CancelArguments),
    Backup(network::serve::BackupArguments),
    Verify(network::result::VerifyArguments),
    Completions(shell::CompletionsArguments),
    Man(shell::ManArguments),
}

impl Command {
    pub(crate) fn run(self, json: bool) -> Result<()> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments, json),
            Self::Channel(arguments) => channel::run_channel(&arguments, json),
            Self::Plan(arguments) => plan::run(&arguments, json),
            Self::Privacy(arguments) => privacy::run(&arguments, json),
            Self::Privatize(arguments) => rows::run_privatize(&arguments, json),
            Self::Tally(arguments) => rows::run_tally(&arguments, json),
            Self::Estimate(arguments) => estimate::run_estimate(&arguments, json),
            Self::Evaluate(arguments) => evaluate::run(&arguments, json),
            Self::Simulate(arguments) => estimate::run_simulate(&arguments, json),
            Self::Algebra(arguments) => channel::run_algebra(&arguments, json),
            Self::Audit(arguments) => audit::run(&arguments, json),
            Self::Aggregator(arguments) => network::aggregator::run_aggregator(&arguments, json),
            Self::Task(arguments) => network::aggregator::run_task(&arguments, json),
            Self::PairSecret(arguments) => network::aggregator::run_pair_secret(&arguments, json),
            Self::Answer(arguments) => network::answer::run_answer(&arguments, json),
            Self::Fleet(arguments) => network::fleet::run_fleet(&arguments, json),
            Self::Ledger(arguments) => network::answer::run_ledger(&arguments, json),
            Self::Enrol(arguments) => network::fleet::run_enrol(&arguments, json),
            Self::Serve(arguments) => network::serve::run_serve(&arguments, json),
            Self::Ask(arguments) => network::ask::run(&arguments, json),
            Self::Queries(arguments) => network::queries::run_queries(&arguments, json),
            Self::Result(arguments) => network::result::run_result(&arguments, json),
            Self::Cancel(arguments) => network::queries::run_cancel(&arguments, json),
            Self::Backup(arguments) => network::serve::run_backup(&arguments, json),
            Self::Verify(arguments) => network::result::run_verify(&arguments, json),
            Self::Completions(arguments) => shell::run_completions(&arguments, json),
            Self::Man(arguments) => shell::run_man(&arguments, json),
        }
    }
}
