use super::{Family, at_most, one_answer, taking_part};
use crate::channel::Channel;
use crate::error::Result;
use crate::fraction::Fraction;

/// Take part with probability f, then tell the truth except for a flip of absolute probability r.
///
/// **Guarantee.** An answer alone: ε = ln((f−r)/r). The release hides a target among the r·n owners whose answer is
/// flipped; for a given claim that number tends to a constant as the crowd grows. With r = 0 there is none.
///
/// **Algorithm.** The symmetric case of [`Tuned`](super::Tuned): sy1 = f, sy2 = 0, p1 = 1−r/f, sn = f, p3 = r/f.
/// [`Blended`](super::Blended) with b1 = f1 = 0, f2 = f and ry = rn = r writes the same thing as shifts.
///
/// **Utility.** From the count of `1`: √(yes·(f−r)(1−f+r) + no·r(1−r)) / (f−2r); the combined estimator also uses
/// `0`. It does not grow with the crowd if r·n stays what it is.
///
/// **Cost.** One answer of three outputs (two if f = 1).
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let mechanism: Mechanism = "normal-form(f=0.5, r=1e-4)".parse()?;
/// let bins = Estimator::new(&mechanism.channel())?.bin_sds(50_000, 500.0)?;
/// let (a, b) = (0.4999_f64, 0.0001_f64);
/// let variance = 500.0 * a * (1.0 - a) + 49_500.0 * b * (1.0 - b);
/// assert!((bins[0].unwrap() - variance.sqrt() / (a - b)).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalForm {
    part: Fraction,
    flip: Fraction,
}

impl NormalForm {
    /// Take part with probability `part` (f); of it, the absolute probability `flip` (r) tells the opposite.
    pub fn new(part: Fraction, flip: Fraction) -> Result<Self> {
        at_most(("r", &flip), ("f", &part))?;
        Ok(Self { part, flip })
    }
}

impl Family for NormalForm {
    const NAME: &'static str = "normal-form";
    const KEYS: &'static [&'static str] = &["f", "r"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [part, flip] = super::exactly(values);
        Self::new(part, flip)
    }

    fn values(&self) -> Vec<&Fraction> {
        vec![&self.part, &self.flip]
    }

    /// The rest is ⊥; within taking part, the rest is the truth.
    fn channel(&self) -> Channel {
        let part = self.part.round();
        let flip = self.flip.round().min(part);
        let [truth, flipped, bottom] = taking_part(part, part.saturating_sub(flip));
        one_answer([truth, flipped, bottom], [flipped, truth, bottom])
    }
}
