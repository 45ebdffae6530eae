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

/// The standard deviation of the solution in a crowd.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// So many owners.
    pub owners: u64,
    /// Of whom so many hold yes.
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
}

impl<'a> AlgebraDocument<'a> {
    /// What is known of a program, whose compiled channel is `channel`.
    pub fn new(program: &Program, channel: &'a Channel, solution: Option<&Solution>, crowd: Option<&Crowd>) -> Self {
        let nested = program.nested();
        Self {
            channel: ChannelDocument::new(program.mechanism().to_string(), channel),
            solution: solution.map(|solution| solution_json(solution, crowd)),
            determined: channel.determined(),
            nested: nested.iter().map(|(term, whole)| json!({"term": term, "in": whole})).collect(),
            algebra: to_text(channel),
        }
    }
}

fn solution_json(solution: &Solution, crowd: Option<&Crowd>) -> Value {
    let bins: Vec<Value> = (solution.bins.iter())
        .map(|(bin, weight)| json!({"answer": answer_name(bin.answer), "output": bin.output, "weight": weight}))
        .collect();
    let chain: Vec<Value> = (solution.chain.iter())
        .map(|step| json!({"combination": step.combination, "holds": step.holds, "weight": step.weight}))
        .collect();
    json!({
        "combination": solution.combination,
        "bins": bins,
        "holds": solution.holds,
        "chain": chain,
        "yes": solution.yes,
        "no": solution.no,
        "scale": solution.scale,
        "variance": {
            "per_yes": solution.variance_per_yes,
            "per_no": solution.variance_per_no,
            "noise": solution.variance_of_noise,
        },
        "noise_from_no": solution.noise_from_no,
        "crowd": crowd.map(|crowd| json!({"owners": crowd.owners, "yes": crowd.yes, "sd": crowd.sd})),
    })
}
