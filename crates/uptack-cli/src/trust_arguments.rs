//! What an owner's answers may give away, whether the aggregators add noise and whose honesty ε rests on, as `plan` and `ask` are told.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use uptack::plan::{Noise, Trust, USUAL_LINKED_EPSILON};

/// What may be said; what is left out follows from the rest.
#[derive(Args)]
pub(crate) struct TrustArguments {
    /// The largest ε of a single answer
    #[arg(long)]
    pub(crate) answer_epsilon: Option<f64>,
    /// Whether the aggregators add noise to the published count
    #[arg(long, value_enum)]
    noise: Option<NoiseArgument>,
    /// Whose honesty the ε of the published count rests on
    #[arg(long, value_enum)]
    trust: Option<TrustArgument>,
    /// The largest ε of all answers of an owner, or `none`; by default 8 if the aggregators add noise, else none
    #[arg(long, value_name = "X|none")]
    linked_epsilon: Option<Bound>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NoiseArgument {
    /// Each of the two adds discrete Laplace noise
    Aggregators,
    /// Only the owners' coins hide anyone
    None,
    /// Whichever has the smaller error
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TrustArgument {
    /// One honest aggregator is enough, whoever else is not
    OneAggregator,
    /// The honest owners, and one aggregator if noise is added
    Owners,
}

/// A bound, or the word that says that there is none.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    AtMost(f64),
    None,
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            number => number.parse().map(Self::AtMost).map_err(|_| "give a number, or none".to_owned()),
        }
    }
}

/// What was said, completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trusted {
    pub(crate) noise: Noise,
    pub(crate) trust: Trust,
    /// The bound on the linked ε.
    pub(crate) linked: Option<f64>,
    /// Whether the local bounds were asked for, and are not the usual ones.
    pub(crate) linked_given: bool,
}

impl TrustArguments {
    /// Completes what was said; where nothing was, noise and trust are the usual ones.
    pub(crate) fn complete(&self, usual: (Noise, Trust)) -> Trusted {
        let noise = self.noise.map(|noise| match noise {
            NoiseArgument::Aggregators => Noise::Aggregators,
            NoiseArgument::None => Noise::None,
            NoiseArgument::Any => Noise::Any,
        });
        let trust = self.trust.map(|trust| match trust {
            TrustArgument::OneAggregator => Trust::OneAggregator,
            TrustArgument::Owners => Trust::Owners,
        });
        let (noise, trust) = match (noise, trust) {
            (None, None) => usual,
            (Some(Noise::None), None) => (Noise::None, Trust::Owners),
            (Some(noise), None) => (noise, Trust::OneAggregator),
            (None, Some(Trust::OneAggregator)) => (Noise::Aggregators, Trust::OneAggregator),
            (None, Some(Trust::Owners)) => (usual.0, Trust::Owners),
            (Some(noise), Some(trust)) => (noise, trust),
        };
        let linked = match self.linked_epsilon {
            Some(Bound::AtMost(most)) => Some(most),
            Some(Bound::None) => None,
            None => (noise != Noise::None).then_some(USUAL_LINKED_EPSILON),
        };
        Trusted { noise, trust, linked, linked_given: matches!(self.linked_epsilon, Some(Bound::AtMost(_))) }
    }
}
