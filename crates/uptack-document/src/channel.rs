//! Channels: written as JSON, read from it, and those of a program of the privacy algebra.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uptack::algebra::{Program, Solution, to_text};
use uptack::contribution::{AnyMechanism, ContributionLaw};
use uptack::mechanism::{Custom, Noisy};
use uptack::privacy::{LoneOwner, lone_owners};
use uptack::{Cell, Channel, Mechanism, NoiseLaw, Output, Probability, answer_name};

use crate::error::Error;

/// A channel as JSON.
#[derive(Serialize)]
pub struct ChannelDocument<'a> {
    mechanism: String,
    answers: &'a [Vec<Output>],
    cells: Vec<DecimalCell<'a>>,
    exact: Exact<'a>,
    determined: bool,
    noise: Option<&'a NoiseLaw>,
}

#[derive(Serialize)]
struct DecimalCell<'a> {
    outputs: &'a [Output],
    yes: f64,
    no: f64,
}

#[derive(Serialize)]
struct Exact<'a> {
    bits: u32,
    cells: &'a [Cell],
}

impl<'a> ChannelDocument<'a> {
    /// The channel of a mechanism, given by its text.
    pub fn new(mechanism: String, channel: &'a Channel) -> Self {
        Self {
            mechanism,
            answers: channel.answers(),
            cells: channel.cells().iter().map(DecimalCell::new).collect(),
            exact: Exact { bits: Probability::BITS, cells: channel.cells() },
            determined: channel.determined(),
            noise: channel.noise(),
        }
    }
}

impl<'a> DecimalCell<'a> {
    fn new(cell: &'a Cell) -> Self {
        Self { outputs: cell.outputs(), yes: cell.yes().to_f64(), no: cell.no().to_f64() }
    }
}

/// The output of `uptack channel --json`; further fields are ignored.
#[derive(Deserialize)]
struct ChannelFile {
    mechanism: Option<AnyMechanism>,
    answers: Option<Vec<Vec<Output>>>,
    exact: Option<StatedIntegers>,
    noise: Option<NoiseLaw>,
}

#[derive(Deserialize)]
struct StatedIntegers {
    bits: u32,
    cells: Option<Vec<Cell>>,
    /// The law of a contribution.
    #[serde(flatten)]
    law: StatedLaw,
}

/// The integers of a law as a document states them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct StatedLaw {
    told: Option<Probability>,
    other: Option<Probability>,
    silent: Option<Probability>,
}

impl StatedLaw {
    pub(crate) fn of(law: ContributionLaw) -> Self {
        Self { told: Some(law.told()), other: Some(law.other()), silent: Some(law.silent()) }
    }

    pub(crate) fn json(self) -> Value {
        json!({"bits": Probability::BITS, "told": self.told, "other": self.other, "silent": self.silent})
    }

    /// Whether every integer that is stated is that of a law.
    pub(crate) fn agrees_with(self, law: ContributionLaw) -> bool {
        let agrees = |stated: Option<Probability>, meant| stated.is_none_or(|stated| stated == meant);
        agrees(self.told, law.told()) && agrees(self.other, law.other()) && agrees(self.silent, law.silent())
    }
}

/// The hint for a file that contradicts itself.
const CONTRADICTION: Option<&str> = Some("one of the two was changed; remove the one that you do not mean");

/// Reads a mechanism of a yes/no question from the JSON of a channel. If the file has both a mechanism and its integers, they
/// must agree.
pub fn mechanism_from_json(text: &str) -> Result<Mechanism, Error> {
    match any_mechanism_from_json(text)? {
        AnyMechanism::YesNo(mechanism) => Ok(*mechanism),
        AnyMechanism::Contributions(contributions) => {
            Err(Error::new(format!("{contributions} is not a mechanism of a yes/no question"), None))
        }
    }
}

/// Reads any mechanism from the JSON that `uptack channel` writes. If the file has both a mechanism and its integers, they
/// must agree.
pub fn any_mechanism_from_json(text: &str) -> Result<AnyMechanism, Error> {
    let file: ChannelFile = serde_json::from_str(text).map_err(not_a_mechanism)?;
    file.exact.as_ref().map_or(Ok(()), StatedIntegers::check_bits)?;
    match file.mechanism {
        Some(mechanism) => {
            check_agreement(&mechanism, file.exact, file.answers, file.noise.as_ref())?;
            Ok(mechanism)
        }
        None => match file.exact.map(|exact| exact.channel(file.answers)).transpose()?.flatten() {
            Some(stated) => custom(stated, file.noise).map(AnyMechanism::from),
            None => Err(Error::new("neither `mechanism` nor `exact` is in it", None)),
        },
    }
}

fn not_a_mechanism(cause: serde_json::Error) -> Error {
    Error::Document {
        message: "not a mechanism's JSON".to_owned(),
        hint: Some("`uptack channel MECHANISM --json` writes one"),
        cause: Some(cause),
    }
}

fn check_agreement(
    mechanism: &AnyMechanism,
    exact: Option<StatedIntegers>,
    answers: Option<Vec<Vec<Output>>>,
    noise: Option<&NoiseLaw>,
) -> Result<(), Error> {
    let agrees = match (mechanism, exact) {
        (_, None) => true,
        (AnyMechanism::Contributions(contributions), Some(exact)) => exact.law.agrees_with(contributions.law()),
        (AnyMechanism::YesNo(mechanism), Some(exact)) => {
            exact.channel(answers)?.is_none_or(|stated| stated.cells() == mechanism.channel().cells())
        }
    };
    if !agrees {
        return Err(Error::new(format!("the integers are not those of {mechanism}"), CONTRADICTION));
    }
    if noise.is_some() && noise != mechanism.noise() {
        return Err(Error::new(format!("the noise is not that of {mechanism}"), CONTRADICTION));
    }
    Ok(())
}

fn custom(channel: Channel, noise: Option<NoiseLaw>) -> Result<Mechanism, Error> {
    let custom = Mechanism::Custom(Custom::new(channel)?);
    Ok(match noise {
        Some(noise) => Mechanism::Noisy(Noisy::new(custom, noise)?),
        None => custom,
    })
}

impl StatedIntegers {
    fn check_bits(&self) -> Result<(), Error> {
        if self.bits == Probability::BITS {
            return Ok(());
        }
        Err(Error::new(format!("integers over 2^{}, not 2^{}", self.bits, Probability::BITS), None))
    }

    /// The channel of the cells, if there are any.
    fn channel(self, answers: Option<Vec<Vec<Output>>>) -> Result<Option<Channel>, Error> {
        let Some(cells) = self.cells else { return Ok(None) };
        Ok(Some(match answers {
            Some(answers) => Channel::new(answers, cells)?,
            None => Channel::from_cells(cells)?,
        }))
    }
}

/// A program's channel, and how YES is solved for.
#[derive(Serialize)]
pub struct AlgebraDocument<'a> {
    channel: ChannelDocument<'a>,
    solution: Option<Value>,
    determined: bool,
    nested: Vec<Value>,
    algebra: String,
    /// The truths whose lone owners show in the published counts.
    lone_owners: Vec<LoneOwner>,
}

/// The standard deviation of the solution in a crowd.
#[derive(Clone, Copy, Debug)]
pub struct PredictedSd {
    /// The number of owners.
    pub owners: u64,
    /// How many of them would say yes.
    pub yes: u64,
    /// The standard deviation.
    pub sd: f64,
}

impl PredictedSd {
    /// The crowd that was asked about, if both its numbers are known and YES can be solved for.
    pub fn of(
        solution: Option<&Solution>,
        owners: Option<u64>,
        yes: Option<u64>,
    ) -> Result<Option<Self>, uptack::Error> {
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
    /// The document of a program; `channel` is its compiled channel.
    pub fn new(
        program: &Program,
        channel: &'a Channel,
        solution: Option<&Solution>,
        crowd: Option<&PredictedSd>,
    ) -> Self {
        Self {
            channel: ChannelDocument::new(program.mechanism().to_string(), channel),
            solution: solution.map(|solution| solution_json(solution, crowd)),
            determined: channel.determined(),
            nested: nested_json(program),
            algebra: to_text(channel),
            lone_owners: lone_owners(channel),
        }
    }
}

fn nested_json(program: &Program) -> Vec<Value> {
    program.nested().iter().map(|(term, whole)| json!({"term": term, "in": whole})).collect()
}

fn solution_json(solution: &Solution, crowd: Option<&PredictedSd>) -> Value {
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
        "crowd": crowd.map(PredictedSd::json),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_integers_were_changed_is_refused() {
        let half = "9223372036854775808";
        let json = format!(
            r#"{{"mechanism":"randomized-response(t=0.5)","exact":{{"bits":64,"cells":[
                {{"outputs":["1"],"yes":"{half}","no":"{half}"}},{{"outputs":["0"],"yes":"{half}","no":"{half}"}}]}}}}"#
        );
        assert!(mechanism_from_json(&json).is_ok());
        let other = json.replace("t=0.5", "t=0.25");
        assert!(mechanism_from_json(&other).is_err());
        let custom = json.replace(r#""mechanism":"randomized-response(t=0.5)","#, "");
        assert_eq!(mechanism_from_json(&custom).unwrap().to_string(), "custom(1=0.5:0.5, 0=0.5:0.5)");
        let noisy = custom.replacen('{', r#"{"noise":{"law":"discrete-laplace","scale":"2"},"#, 1);
        let noisy = mechanism_from_json(&noisy).unwrap().to_string();
        assert_eq!(noisy, "custom(1=0.5:0.5, 0=0.5:0.5) + laplace(scale=2)");
        let contradicting = json.replacen('{', r#"{"noise":{"law":"discrete-laplace","scale":"2"},"#, 1);
        assert!(mechanism_from_json(&contradicting).is_err());
        assert!(mechanism_from_json("{}").is_err() && mechanism_from_json("[").is_err());
        assert!(mechanism_from_json(&json.replace("64", "32")).is_err());
    }

    /// An error gives access to its cause: the library's own error, or the JSON reader's.
    #[test]
    fn causes_are_kept() {
        let cell = r#"{"outputs":["1"],"yes":"1","no":"1"}"#;
        let law = mechanism_from_json(&format!(r#"{{"exact":{{"bits":64,"cells":[{cell}]}}}}"#)).unwrap_err();
        assert!(matches!(&law, Error::Library(error) if error.is_law()), "{law:?}");
        let syntax = mechanism_from_json("[").unwrap_err();
        assert!(std::error::Error::source(&syntax).is_some(), "{syntax:?}");
    }
}
