//! What an owner's answers may give away, whether the aggregators add noise and whose honesty ε rests on, as arguments of
//! `plan` and `ask`.

use clap::{Args, ValueEnum};
use uptack::plan::{Noise, Trust};
use uptack_document::{Bound, TrustWanted, Trusted};

/// What may be given; what is left out follows from the rest.
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

impl From<NoiseArgument> for Noise {
    fn from(argument: NoiseArgument) -> Self {
        match argument {
            NoiseArgument::Aggregators => Self::Aggregators,
            NoiseArgument::None => Self::None,
            NoiseArgument::Any => Self::Any,
        }
    }
}

impl From<TrustArgument> for Trust {
    fn from(argument: TrustArgument) -> Self {
        match argument {
            TrustArgument::OneAggregator => Self::OneAggregator,
            TrustArgument::Owners => Self::Owners,
        }
    }
}

impl TrustArguments {
    /// What was asked for.
    pub(crate) fn wanted(&self) -> TrustWanted {
        TrustWanted {
            noise: self.noise.map(Noise::from),
            trust: self.trust.map(Trust::from),
            linked: self.linked_epsilon,
        }
    }

    /// Completes what was asked for; noise and trust are the usual ones if neither was given.
    pub(crate) fn complete(&self, usual: (Noise, Trust)) -> Trusted {
        self.wanted().complete(usual)
    }
}
