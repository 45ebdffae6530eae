//! What an owner's answers may give away, whether the aggregators add noise and whose honesty ε rests on, as `plan` and `ask` are told.

use clap::{Args, ValueEnum};
use uptack::plan::{Noise, Trust};
use uptack_document::{Bound, TrustWanted, Trusted};

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

impl TrustArguments {
    /// What was said.
    pub(crate) fn wanted(&self) -> TrustWanted {
        let noise = self.noise.map(|noise| match noise {
            NoiseArgument::Aggregators => Noise::Aggregators,
            NoiseArgument::None => Noise::None,
            NoiseArgument::Any => Noise::Any,
        });
        let trust = self.trust.map(|trust| match trust {
            TrustArgument::OneAggregator => Trust::OneAggregator,
            TrustArgument::Owners => Trust::Owners,
        });
        TrustWanted { noise, trust, linked: self.linked_epsilon }
    }

    /// Completes what was said; where nothing was, noise and trust are the usual ones.
    pub(crate) fn complete(&self, usual: (Noise, Trust)) -> Trusted {
        self.wanted().complete(usual)
    }
}
