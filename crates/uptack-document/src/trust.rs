//! Whether the aggregators add noise, whose honesty ε rests on and what answers may give away; with defaults.

use std::str::FromStr;

use uptack::plan::{Noise, Trust, USUAL_LINKED_EPSILON};

/// What may be given; what is left out follows from the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrustWanted {
    /// Whether the aggregators add noise to the published count.
    pub noise: Option<Noise>,
    /// Whose honesty the ε of the published count rests on.
    pub trust: Option<Trust>,
    /// The largest ε of all answers of an owner.
    pub linked: Option<Bound>,
}

/// A bound, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The largest number allowed.
    AtMost(f64),
    /// Anything is allowed.
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

/// What was given, completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trusted {
    /// Whether the aggregators add noise.
    pub noise: Noise,
    /// Whose honesty ε rests on.
    pub trust: Trust,
    /// The bound on the linked ε.
    pub linked: Option<f64>,
    /// Whether that bound was asked for, rather than being the usual one.
    pub linked_given: bool,
}

impl TrustWanted {
    /// Completes what was given; noise and trust are the usual ones if neither was.
    pub fn complete(&self, usual: (Noise, Trust)) -> Trusted {
        let (noise, trust) = self.noise_and_trust(usual);
        let linked = match self.linked {
            Some(Bound::AtMost(most)) => Some(most),
            Some(Bound::None) => None,
            None => (noise != Noise::None).then_some(USUAL_LINKED_EPSILON),
        };
        Trusted { noise, trust, linked, linked_given: matches!(self.linked, Some(Bound::AtMost(_))) }
    }

    fn noise_and_trust(&self, usual: (Noise, Trust)) -> (Noise, Trust) {
        match (self.noise, self.trust) {
            (None, None) => usual,
            (Some(Noise::None), None) => (Noise::None, Trust::Owners),
            (Some(noise), None) => (noise, Trust::OneAggregator),
            (None, Some(Trust::OneAggregator)) => (Noise::Aggregators, Trust::OneAggregator),
            (None, Some(Trust::Owners)) => (usual.0, Trust::Owners),
            (Some(noise), Some(trust)) => (noise, trust),
        }
    }
}
