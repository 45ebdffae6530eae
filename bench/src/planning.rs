//! Planning, against one call of the accounting for the mechanism that is planned.

#[path = "../../checks/programs/src/bin/planning_times/cases.rs"]
mod cases;

use crate::Size;
use crate::clock::cpu_seconds;
use crate::table::{Row, Target};

/// The time of a whole plan, certificates and bound included; its ratio to one certificate; and its calls.
pub fn measure(size: &Size) -> Vec<Row> {
    let rounds = size.simulation_rounds.min(5);
    let rows = |case: &cases::Case| {
        let measured = case.measure(cpu_seconds, rounds);
        [
            Row::new(format!("a plan for {}", case.what), Target::AtMost(case.most), measured.plan, "s"),
            Row::new("  against one certificate of it", Target::None, measured.plan / measured.certificate, "×"),
            Row::new("  calls of the accounting in its search", Target::None, measured.calls as f64, ""),
        ]
    };
    cases::cases().iter().flat_map(rows).collect()
}
