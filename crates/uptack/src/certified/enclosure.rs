//! A number that is only known to lie between two others.

/// A certified enclosure of a probability-like number: it is at least `lower` and at most `upper`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    lower: f64,
    upper: f64,
}

impl Bracket {
    /// Zero, exactly.
    pub const ZERO: Self = Self { lower: 0.0, upper: 0.0 };

    pub(crate) fn new(lower: f64, upper: f64) -> Self {
        debug_assert!(lower <= upper, "a bracket's lower end is above its upper end: {lower} > {upper}");
        Self { lower: lower.max(0.0), upper: upper.clamp(0.0, 1.0) }
    }

    /// The computed `value` of a number of which `truncated` may be missing and whose computation may err by `error`.
    pub(crate) fn around(value: f64, error: f64, truncated: f64) -> Self {
        let error = error * (1.0 + 1e-9) + f64::MIN_POSITIVE;
        if value == 0.0 && truncated == 0.0 && error <= f64::MIN_POSITIVE {
            return Self::ZERO;
        }
        Self::new((value - error).max(0.0), value + error + truncated)
    }

    /// The largest number that is certainly not above the truth.
    pub fn lower(&self) -> f64 {
        self.lower
    }

    /// The smallest number that is certainly not below the truth.
    pub fn upper(&self) -> f64 {
        self.upper
    }

    /// The middle of the bracket.
    pub fn middle(&self) -> f64 {
        0.5 * (self.lower + self.upper)
    }

    /// By how much the upper end is above the lower one, relatively.
    pub(crate) fn width(&self) -> f64 {
        if self.upper > self.lower { (self.upper - self.lower) / self.upper } else { 0.0 }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.max(other.upper) }
    }

    /// The same number, also known not to be above `bound`.
    pub(crate) fn at_most(self, bound: f64) -> Self {
        Self { upper: self.upper.min(bound.max(self.lower)), ..self }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self::new((self.lower + other.lower) * (1.0 - 1e-15), (self.upper + other.upper) * (1.0 + 1e-15))
    }
}
