//! Estimates from the tallies of one crowd, and from those of many simulated ones.

use serde::Serialize;
use serde_json::{Value, json};
use uptack::estimate::paper::{self, Backward, Combination, SignOutcome, SignSolution, SignSystem};
use uptack::estimate::{BinEstimate, Confidence, Estimate, Estimator, Interval, IntervalKind, Observation};
use uptack::simulate::{Simulated, Simulation};
use uptack::{Channel, Error, Tally, answer_name};

/// An estimate, as the fields that programs read.
#[derive(Clone, Debug, Serialize)]
pub struct EstimateDocument {
    mechanism: String,
    owners: u64,
    estimate: f64,
    sd: f64,
    interval: [f64; 2],
    interval_kind: &'static str,
    confidence: f64,
    sampling_sd: f64,
    privacy_sd: f64,
    aggregator_sd: f64,
    few_answers: Option<u64>,
    by_bin: Vec<Value>,
    equations: Option<Value>,
    differences: Vec<Value>,
    backward: Option<Value>,
}

/// An estimate by every method.
#[derive(Clone, Debug)]
pub struct Estimates {
    /// The combined estimate, from everything that the tallies show.
    pub estimate: Estimate,
    /// The interval.
    pub interval: Interval,
    equations: Option<SignSystem>,
    /// The paper's differences of answers.
    pub differences: Vec<Combination>,
    backward: Option<Backward>,
}

impl Estimates {
    /// Estimates from a tally.
    pub fn of_tally(
        channel: &Channel,
        tally: &Tally,
        confidence: Confidence,
        interval: IntervalKind,
    ) -> Result<Self, Error> {
        let estimator = Estimator::new(channel)?;
        let observation = estimator.observe(tally)?;
        Ok(Self {
            equations: SignSystem::solve(channel, tally)?,
            differences: paper::differences(channel, tally)?,
            backward: paper::backward(channel, tally).ok(),
            ..Self::of_observation(&estimator, &observation, confidence, interval)
        })
    }

    /// Estimates from a published sum with noise, to which none of the paper's own methods applies.
    pub fn of_sum(
        channel: &Channel,
        (owners, sum): (u64, i64),
        confidence: Confidence,
        interval: IntervalKind,
    ) -> Result<Self, Error> {
        let estimator = Estimator::new(channel)?;
        let observation = estimator.observe_sum(owners, sum)?;
        Ok(Self::of_observation(&estimator, &observation, confidence, interval))
    }

    /// The combined estimate and its interval alone.
    fn of_observation(
        estimator: &Estimator,
        observation: &Observation,
        confidence: Confidence,
        interval: IntervalKind,
    ) -> Self {
        Self {
            estimate: estimator.estimate_observed(observation),
            interval: estimator.interval(observation, confidence, interval),
            equations: None,
            differences: Vec::new(),
            backward: None,
        }
    }

    /// As a document, under the text of the mechanism.
    pub fn document(&self, mechanism: String, confidence: Confidence) -> EstimateDocument {
        let Self { estimate, interval, .. } = self;
        EstimateDocument {
            mechanism,
            owners: estimate.owners,
            estimate: estimate.estimate,
            sd: estimate.sd,
            interval: [interval.low, interval.high],
            interval_kind: interval_name(interval.kind),
            confidence: confidence.level(),
            sampling_sd: estimate.sampling_sd,
            privacy_sd: estimate.privacy_sd,
            aggregator_sd: estimate.aggregator_sd,
            few_answers: estimate.few_answers,
            by_bin: estimate.by_bin.iter().map(bin_json).collect(),
            equations: self.equations.as_ref().map(equations_json),
            differences: self.differences.iter().map(combination_json).collect(),
            backward: self.backward.as_ref().map(backward_json),
        }
    }
}

/// The name of a kind of interval, as options take it.
pub fn interval_name(kind: IntervalKind) -> &'static str {
    match kind {
        IntervalKind::Auto => "auto",
        IntervalKind::Exact => "exact",
        IntervalKind::MidP => "mid-p",
        IntervalKind::Score => "score",
    }
}

fn bin_json(bin: &BinEstimate) -> Value {
    json!({
        "answer": answer_name(bin.bin.answer),
        "output": bin.bin.output,
        "estimate": bin.estimate,
        "sd": bin.sd,
        "sigma": bin.sigma,
        "bounds": bin.bounds,
    })
}

fn combination_json(combination: &Combination) -> Value {
    json!({
        "combination": combination.name,
        "value": combination.value,
        "estimate": combination.estimate,
        "sd": combination.sd,
    })
}

fn backward_json(chain: &Backward) -> Value {
    json!({
        "moved_on": combination_json(&chain.moved_on),
        "moved": combination_json(&chain.moved),
        "left": combination_json(&chain.left),
    })
}

const SYSTEM: [&str; 3] =
    ["E[\"Yes\"] ± σ = observed(\"Yes\")", "E[⊥] ± σ = observed(⊥)", "E[\"Yes\"] ± σ + E[⊥] ± σ = owners"];

fn equations_json(system: &SignSystem) -> Value {
    let is_kept = |solution: &&SignSolution| matches!(solution.outcome, SignOutcome::Kept { .. });
    let (kept, dropped): (Vec<&SignSolution>, Vec<_>) = system.solutions.iter().partition(is_kept);
    json!({
        "system": SYSTEM,
        "rank": system.solutions.iter().map(|solution| solution.rank).max(),
        "kept": kept.into_iter().map(sign_solution_json).collect::<Vec<_>>(),
        "dropped": dropped.into_iter().map(sign_solution_json).collect::<Vec<_>>(),
    })
}

fn sign_solution_json(solution: &SignSolution) -> Value {
    let signs = solution.signs.map(|plus| if plus { "+" } else { "-" });
    let (yes, sigma) = match solution.outcome {
        SignOutcome::Kept { yes, sigma } | SignOutcome::Negative { yes, sigma } => (Some(yes), Some(sigma)),
        SignOutcome::Contradictory | SignOutcome::Underdetermined => (None, None),
    };
    let reason = dropped_because(&solution.outcome);
    json!({"signs": signs, "rank": solution.rank, "yes": yes, "sigma": sigma, "reason": reason})
}

fn dropped_because(outcome: &SignOutcome) -> Option<&'static str> {
    match outcome {
        SignOutcome::Kept { .. } => None,
        SignOutcome::Negative { .. } => Some("YES is negative"),
        SignOutcome::Contradictory => Some("the equations contradict each other"),
        SignOutcome::Underdetermined => Some("one equation for two unknowns"),
    }
}

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
