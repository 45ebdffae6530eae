//! A simulation.

use serde::Serialize;
use uptack::simulate::{Simulated, Simulation};

/// The result of a simulation.
#[derive(Serialize, Clone, Debug)]
pub struct SimulationDocument {
    mechanism: String,
    owners: u64,
    yes: u64,
    trials: u64,
    seed: u64,
    mean: f64,
    bias: f64,
    rmse: f64,
    predicted_sd: f64,
    coverage: f64,
    confidence: f64,
}

impl SimulationDocument {
    /// The result for a mechanism, given by its text.
    pub fn new(mechanism: String, simulation: &Simulation, result: &Simulated) -> Self {
        Self {
            mechanism,
            owners: simulation.owners,
            yes: simulation.yes,
            trials: result.trials,
            seed: simulation.seed,
            mean: result.mean,
            bias: result.bias,
            rmse: result.rmse,
            predicted_sd: result.predicted_sd,
            coverage: result.coverage,
            confidence: simulation.confidence.level(),
        }
    }
}
