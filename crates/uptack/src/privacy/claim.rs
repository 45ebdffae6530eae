//! What is claimed, of which view, and how sure it is.

use std::fmt;

use serde_json::{Value, json};

use crate::error::Error;
use crate::privacy::certify::{Answer, Found};

/// The privacy loss bound: finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Epsilon(f64);

impl Epsilon {
    /// Checks that the number is finite and not negative.
    pub fn new(value: f64) -> Result<Self, Error> {
        if value.is_finite() && value >= 0.0 {
            return Ok(Self(value));
        }
        Err(Error::request(format!("{value} is no epsilon")).with_hint("an epsilon is a finite number of at least 0"))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// The probability with which the privacy loss bound may fail: above zero and at most one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Delta(f64);

impl Delta {
    /// Checks that the number is above zero and at most one.
    pub fn new(value: f64) -> Result<Self, Error> {
        if value > 0.0 && value <= 1.0 {
            return Ok(Self(value));
        }
        Err(Error::request(format!("{value} is no delta"))
            .with_hint("a delta is above 0 and at most 1; for delta 0 read the linked epsilon"))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// Which of the two numbers is given; the other one is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// ε is given.
    Epsilon(Epsilon),
    /// δ is given.
    Delta(Delta),
}

impl Target {
    /// What was given and what was found, as every document states it.
    pub fn json(self, found: Option<Certified>) -> Value {
        let ends = found.map(|ends| json!({"lower": ends.lower, "upper": ends.upper}));
        match self {
            Self::Delta(delta) => json!({"delta": delta.value(), "epsilon": ends}),
            Self::Epsilon(epsilon) => json!({"epsilon": epsilon.value(), "delta": ends}),
        }
    }
}

/// What the adversary holds besides the truth of everybody but the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// All owners' tallies.
    Release,
    /// All owners' tallies and the target's answer of this number; 0 is A.
    AnswerWithRelease(usize),
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release => f.write_str("release"),
            Self::AnswerWithRelease(answer) => write!(f, "answer {} + release", crate::answer_name(*answer)),
        }
    }
}

/// Which pairs of worlds a guarantee compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbours {
    /// One owner's truth is the other one; the number of owners is public.
    OneTruthSubstituted,
}

/// How far apart the two ends of a claim are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    gap: f64,
    closed: bool,
}

impl Certificate {
    /// Upper over lower, less one; infinite where the lower end is zero and the upper is not.
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// Whether the gap is at most one per mille in ε, or five per cent in δ.
    pub fn closed(&self) -> bool {
        self.closed
    }
}

/// A number that lies between two ends; what is claimed is the upper one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certified {
    lower: f64,
    upper: f64,
}

impl Certified {
    pub(crate) fn new(lower: f64, upper: f64) -> Self {
        Self { lower, upper }
    }

    /// The truth is at least this.
    pub fn lower(&self) -> f64 {
        self.lower
    }

    /// The truth is at most this.
    pub fn upper(&self) -> f64 {
        self.upper
    }
}

/// The (ε, δ) guarantee of one view over every crowd and both directions of the substitution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    view: View,
    owners: u64,
    target: Target,
    value: Option<Certified>,
    floor: f64,
    crowd: u64,
    certificate: Certificate,
}

impl Guarantee {
    pub(crate) fn new(view: View, owners: u64, target: Target, answer: Option<Answer>, floor: Found) -> Self {
        let tolerance = match target {
            Target::Epsilon(_) => 0.05,
            Target::Delta(_) => 1e-3,
        };
        let gap = answer.map_or(0.0, |answer| gap(answer.lower, answer.upper));
        Self {
            view,
            owners,
            target,
            value: answer.map(|answer| Certified { lower: answer.lower, upper: answer.upper }),
            floor: floor.bracket.upper(),
            crowd: answer.map_or(floor.crowd, |answer| answer.crowd),
            certificate: Certificate { gap, closed: gap <= tolerance },
        }
    }

    /// The same of another view that is alike.
    pub(crate) fn of_view(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// The view it is about.
    pub fn view(&self) -> View {
        self.view
    }

    /// The worlds it compares.
    pub fn neighbours(&self) -> Neighbours {
        Neighbours::OneTruthSubstituted
    }

    /// The owners it counts on, the target among them.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// What was given.
    pub fn target(&self) -> Target {
        self.target
    }

    /// What was computed: δ for a given ε, ε for a given δ. None exactly where the given δ is below the floor.
    pub fn value(&self) -> Option<Certified> {
        self.value
    }

    /// The δ that no ε gets below.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// The worst crowd found: how many of the others are *yes*.
    pub fn crowd(&self) -> u64 {
        self.crowd
    }

    /// How far apart the ends are.
    pub fn certificate(&self) -> Certificate {
        self.certificate
    }

    /// The guarantee as every document states it.
    pub fn json(&self) -> Value {
        let mut document = self.target.json(self.value);
        document["floor"] = json!(self.floor);
        document["crowd"] = json!(self.crowd);
        document["certificate"] = json!({"gap": self.certificate.gap, "closed": self.certificate.closed});
        document
    }
}

fn gap(lower: f64, upper: f64) -> f64 {
    if upper <= lower {
        0.0
    } else if lower > 0.0 {
        upper / lower - 1.0
    } else {
        f64::INFINITY
    }
}
