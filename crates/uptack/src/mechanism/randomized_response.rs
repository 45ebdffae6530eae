use super::{Family, trusted};
use crate::channel::{Cell, Channel, Output};
use crate::error::Result;
use crate::fraction::Fraction;

/// Plain randomized response: tell the truth with probability t, else the opposite.
///
/// **Guarantee.** Each answer alone has ε = |ln(t / (1−t))|, and so has the linked view; there is nothing else to
/// link. In a crowd the release is far better protected than that.
///
/// **Algorithm.** Warner's survey technique (1965), the paper's baseline.
///
/// **Utility.** The estimate from the count of `1` has standard deviation √(n·t(1−t)) / |2t−1|, whatever the number of
/// yes-owners: it grows with the crowd.
///
/// **Cost.** One answer of two outputs.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let (n, t) = (50_000.0_f64, 0.8_f64);
/// let mechanism: Mechanism = "randomized-response(t=0.8)".parse()?;
/// let sd = Estimator::new(&mechanism.channel())?.sd(50_000, 500.0)?;
/// assert!((sd - (n * t * (1.0 - t)).sqrt() / (2.0 * t - 1.0)).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomizedResponse {
    truthful: Fraction,
}

impl RandomizedResponse {
    /// Tell the truth with probability `truthful` (t).
    pub fn new(truthful: Fraction) -> Self {
        Self { truthful }
    }
}

impl Family for RandomizedResponse {
    const NAME: &'static str = "randomized-response";
    const KEYS: &'static [&'static str] = &["t"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [truthful] = super::exactly(values);
        Ok(Self::new(truthful))
    }

    fn values(&self) -> Vec<&Fraction> {
        vec![&self.truthful]
    }

    /// The rest is the opposite of the truth, in both laws.
    fn channel(&self) -> Channel {
        let truth = self.truthful.round();
        let opposite = truth.complement();
        trusted(vec![Cell::new(vec![Output::ONE], truth, opposite), Cell::new(vec![Output::ZERO], opposite, truth)])
    }
}
