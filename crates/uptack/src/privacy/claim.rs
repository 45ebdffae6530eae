//! Claims: the view, the numbers and the certificate (`docs/accounting.md`, "What is bounded").

use std::fmt;

use serde_json::{Value, json};

use crate::certified::rounding::Enclosure;
use crate::error::{Error, Result};

/// The privacy loss bound: finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Epsilon(f64);

impl Epsilon {
    /// Checks that the number is finite and not negative.
    pub fn new(value: f64) -> Result<Self> {
        if value.is_finite() && value >= 0.0 {
            return Ok(Self(value));
        }
        Err(Error::request(format!("{value} is not a valid epsilon"))
            .with_hint("an epsilon is a finite number of at least 0"))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Epsilon {
    type Error = Error;

    fn try_from(value: f64) -> Result<Self> {
        Self::new(value)
    }
}

/// The probability with which the privacy loss bound may fail: above zero and at most one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Delta(f64);

impl Delta {
    /// Checks that the number is above zero and at most one.
    pub fn new(value: f64) -> Result<Self> {
        if value > 0.0 && value <= 1.0 {
            return Ok(Self(value));
        }
        Err(Error::request(format!("{value} is not a valid delta"))
            .with_hint("a delta is above 0 and at most 1; for delta 0 read the linked epsilon"))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Delta {
    type Error = Error;

    fn try_from(value: f64) -> Result<Self> {
        Self::new(value)
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
    /// The given and the computed number, as every document states them.
    pub fn json(self, found: Option<Enclosure>) -> Value {
        let ends = found.map(|ends| json!({"lower": ends.lower(), "upper": ends.upper()}));
        match self {
            Self::Delta(delta) => json!({"delta": delta.value(), "epsilon": ends}),
            Self::Epsilon(epsilon) => json!({"epsilon": epsilon.value(), "delta": ends}),
        }
    }
}

/// The adversary's view. In every view it also knows the truth of everybody but the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The published counts: all owners' tallies, or a sum with the noise of one honest aggregator.
    Release,
    /// The published sum, with noise that cannot be counted on: only the other owners' coins hide the target.
    OwnersAlone,
    /// All owners' tallies and the target's answer of this number; 0 is A.
    AnswerWithRelease(usize),
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release => f.write_str("release"),
            Self::OwnersAlone => f.write_str("owners alone"),
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
    fn new(target: Target, gap: f64) -> Self {
        let tolerance = match target {
            Target::Epsilon(_) => CLOSED_DELTA,
            Target::Delta(_) => CLOSED_EPSILON,
        };
        Self { gap, closed: gap <= tolerance }
    }

    /// Upper over lower, less one; infinite where the lower end is zero and the upper is not.
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// Whether the gap is at most one per mille in ε, or five per cent in δ.
    pub fn closed(&self) -> bool {
        self.closed
    }

    fn json(self) -> Value {
        json!({"gap": self.gap, "closed": self.closed})
    }
}

/// Ends at most this far apart, relatively, are closed: in ε, and in δ.
pub(crate) const CLOSED_EPSILON: f64 = 1e-3;
pub(crate) const CLOSED_DELTA: f64 = 0.05;

/// A number, and the crowd at which it was found: how many of the others are *yes*.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CrowdValue {
    pub(crate) value: Enclosure,
    pub(crate) crowd: u64,
}

impl CrowdValue {
    /// The number is at least this.
    pub(crate) fn lower(&self) -> f64 {
        self.value.lower()
    }

    /// The number is at most this.
    pub(crate) fn upper(&self) -> f64 {
        self.value.upper()
    }

    /// The larger number of two, and the crowd with the larger lower end.
    pub(crate) fn larger(self, other: Self) -> Self {
        let crowd = if other.lower() > self.lower() { other.crowd } else { self.crowd };
        Self { value: self.value.max(other.value), crowd }
    }

    /// The same with another upper end.
    pub(crate) fn with_upper(self, upper: f64) -> Self {
        Self { value: self.value.with_upper(upper), ..self }
    }
}

/// The (ε, δ) guarantee of one view over every crowd and both directions of the substitution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    view: View,
    owners: u64,
    target: Target,
    value: Option<Enclosure>,
    floor: f64,
    crowd: Option<u64>,
    certificate: Certificate,
}

impl Guarantee {
    pub(crate) fn new(view: View, owners: u64, target: Target, found: Option<CrowdValue>, floor: CrowdValue) -> Self {
        let crowd = Some(found.map_or(floor.crowd, |found| found.crowd));
        Self { crowd, ..Self::of_contributions(view, owners, target, found.map(|found| found.value), floor.value) }
    }

    /// The guarantee of counts of contributions, whose crowds are not described by a number of *yes*.
    pub(crate) fn of_contributions(
        view: View,
        owners: u64,
        target: Target,
        value: Option<Enclosure>,
        floor: Enclosure,
    ) -> Self {
        // Without a value the floor is the claim: it is known, or only bounded from above.
        let floor_gap = if floor.lower() > 0.0 { 0.0 } else { floor.gap() };
        let certificate = Certificate::new(target, value.map_or(floor_gap, |value| value.gap()));
        Self { view, owners, target, value, floor: floor.upper(), crowd: None, certificate }
    }

    /// The same guarantee for another view that is alike.
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

    /// The number of owners it counts on, the target included.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The given number.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The computed number: δ for a given ε, ε for a given δ. `None` exactly if the given δ is below the floor.
    pub fn value(&self) -> Option<Enclosure> {
        self.value
    }

    /// The δ that no ε gets below.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// The worst crowd found: how many of the others are *yes*. `None` for contributions among three or more possibilities: there
    /// the crowd that shows the lower end is one in which all others have the same possibility.
    pub fn crowd(&self) -> Option<u64> {
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
        document["certificate"] = self.certificate.json();
        document
    }
}
