//! Measures Uptack against its peers and prints one table.
//!
//! Contestants take turns within one run, and medians are compared, so that a ratio holds whatever the machine does
//! meanwhile. Times are processor time on one core, but for `privatize | tally`, which is time on the wall.

mod accounting;
mod choices;
mod clock;
mod contributions;
mod planning;
#[path = "../../checks/programs/src/bin/published_accountants/table.rs"]
mod published;
mod python;
mod sampling;
mod simulation;
mod table;
mod tallying;

use std::process::ExitCode;

/// How much is done.
pub struct Size {
    pub owners: usize,
    pub rounds: usize,
    pub trials: u64,
    pub simulation_rounds: usize,
}

const WHOLE: Size = Size { owners: 10_000_000, rounds: 11, trials: 10_000, simulation_rounds: 11 };

/// Enough to see that everything runs, too little to trust a number.
const QUICK: Size = Size { owners: 100_000, rounds: 3, trials: 100, simulation_rounds: 3 };

fn main() -> ExitCode {
    let size = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => WHOLE,
        [flag] if flag == "--quick" => QUICK,
        [flag] if flag == "--published" => {
            published::print(clock::cpu_seconds);
            return ExitCode::SUCCESS;
        }
        [flag] if flag == "--planning" => {
            table::print(&planning::measure(&WHOLE));
            return ExitCode::SUCCESS;
        }
        [flag] if flag == "--choices" => {
            table::print(&choices::measure(&WHOLE));
            return ExitCode::SUCCESS;
        }
        [flag] if flag == "--contributions" => {
            table::print(&contributions::measure(&WHOLE));
            return ExitCode::SUCCESS;
        }
        // Started by the benchmark itself, and not for people.
        [flag, work @ ..] if flag == "--alone" => {
            contributions::work_alone(work);
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("usage: uptack-bench [--quick | --published | --planning | --choices | --contributions]");
            return ExitCode::from(1);
        }
    };
    let mut rows = sampling::measure(&size);
    rows.extend(choices::measure(&size));
    rows.extend(tallying::measure_library(&size));
    rows.extend(tallying::measure_command_line(&size));
    rows.extend(simulation::measure(&size));
    rows.extend(accounting::measure(&size));
    rows.extend(planning::measure(&size));
    rows.extend(contributions::measure(&size));
    println!("{} owners, medians of {} rounds, 1 % of the owners are yes", size.owners, size.rounds);
    println!("{} trials a simulation, medians of {} rounds\n", size.trials, size.simulation_rounds);
    table::print(&rows);
    ExitCode::SUCCESS
}
