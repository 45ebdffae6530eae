//! A program of the privacy algebra.

use serde::Serialize;
use serde_json::{Value, json};
use uptack::algebra::{Program, Solution, to_text};
use uptack::{Channel, Error, answer_name};

use crate::channel::ChannelDocument;

/// A program's channel, and how YES is solved for.
#[derive(Serialize)]
pub struct AlgebraDocument<'a> {
    channel: ChannelDocument<'a>,
    solution: Option<Value>,
    determined: bool,
    nested: Vec<Value>,
    algebra: String,
}

/// A crowd, and the standard deviation of the solution in it.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// The number of owners.
    pub owners: u64,
    /// How many of them would say yes.
    pub yes: u64,
    /// The standard deviation.
    pub sd: f64,
}

impl Crowd {
    /// The crowd that was asked about, if both its numbers are known and YES can be solved for.
    pub fn of(solution: Option<&Solution>, owners: Option<u64>, yes: Option<u64>) -> Result<Option<Self>, Error> {
        let (Some(owners), Some(yes), Some(solution)) = (owners, yes, solution) else {
            return Ok(None);
        };
        Ok(Some(Self { owners, yes, sd: solution.sd(owners, yes)? }))
    }

    fn json(&self) -> Value {
        json!({"owners": self.owners, "yes": self.yes, "sd": self.sd})
    }
}

impl<'a> AlgebraDocument<'a> {
    /// What is known about a program; `channel` is its compiled channel.
    pub fn new(program: &Program, channel: &'a Channel, solution: Option<&Solution>, crowd: Option<&Crowd>) -> Self {
        Self {
            channel: ChannelDocument::new(program.mechanism().to_string(), channel),
            solution: solution.map(|solution| solution_json(solution, crowd)),
            determined: channel.determined(),
            nested: nested_json(program),
            algebra: to_text(channel),
        }
    }
}

fn nested_json(program: &Program) -> Vec<Value> {
    program.nested().iter().map(|(term, whole)| json!({"term": term, "in": whole})).collect()
}

fn solution_json(solution: &Solution, crowd: Option<&Crowd>) -> Value {
    json!({
        "combination": solution.combination,
        "bins": bins_json(solution),
        "holds": solution.holds,
        "chain": chain_json(solution),
        "yes": solution.yes,
        "no": solution.no,
        "scale": solution.scale,
        "variance": {
            "per_yes": solution.variance_per_yes,
            "per_no": solution.variance_per_no,
            "noise": solution.variance_of_noise,
        },
        "noise_from_no": solution.noise_from_no,
        "crowd": crowd.map(Crowd::json),
    })
}

fn bins_json(solution: &Solution) -> Value {
    (solution.bins.iter())
        .map(|(bin, weight)| json!({"answer": answer_name(bin.answer), "output": bin.output, "weight": weight}))
        .collect()
}

fn chain_json(solution: &Solution) -> Value {
    (solution.chain.iter())
        .map(|step| json!({"combination": step.combination, "holds": step.holds, "weight": step.weight}))
        .collect()
}
