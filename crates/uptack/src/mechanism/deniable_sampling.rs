use super::{Family, one_answer, taking_part};
use crate::channel::Channel;
use crate::error::Result;
use crate::fraction::Fraction;

/// Sampling, then a coin that tells the truth (p1) or else forces `1` with probability p2.
///
/// **Guarantee.** Finite in every view while (1−p1)·p2 > 0 and all three outputs are possible under both truths;
/// with (1−p1)·p2 = 0 no-owners never say `1` and there is none.
///
/// **Algorithm.** The paper's section *Sampling and Plausible Deniability*.
///
/// **Utility.** From the count of `1`: with a = sy(p1 + (1−p1)p2) and b = sn(1−p1)p2,
/// √(yes·a(1−a) + no·b(1−b)) / |a−b|; the combined estimator also uses `0` and ⊥.
///
/// **Cost.** One answer of three outputs.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let mechanism: Mechanism = "deniable-sampling(sy=0.5, sn=0.2, p1=0.5, p2=0.3)".parse()?;
/// let (a, b) = (0.325_f64, 0.03_f64);
/// let bins = Estimator::new(&mechanism.channel())?.bin_sds(50_000, 500.0)?;
/// let variance = 500.0 * a * (1.0 - a) + 49_500.0 * b * (1.0 - b);
/// assert!((bins[0].unwrap() - variance.sqrt() / (a - b)).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniableSampling {
    yes: Fraction,
    no: Fraction,
    truthful: Fraction,
    forced: Fraction,
}

impl DeniableSampling {
    /// Take part with probability `yes` (sy) or `no` (sn); then tell the truth with probability `truthful` (p1), else
    /// say `1` with probability `forced` (p2).
    pub fn new(yes: Fraction, no: Fraction, truthful: Fraction, forced: Fraction) -> Self {
        Self { yes, no, truthful, forced }
    }
}

impl Family for DeniableSampling {
    const NAME: &'static str = "deniable-sampling";
    const KEYS: &'static [&'static str] = &["sy", "sn", "p1", "p2"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [yes, no, truthful, forced] = super::exactly(values);
        Ok(Self::new(yes, no, truthful, forced))
    }

    fn values(&self) -> Vec<&Fraction> {
        vec![&self.yes, &self.no, &self.truthful, &self.forced]
    }

    /// The rest is ⊥; within taking part, the rest is `0`.
    fn channel(&self) -> Channel {
        let forced = self.truthful.complement().times(&self.forced);
        // p1 + (1−p1)·p2 = 1 − (1−p1)(1−p2), which cannot exceed one.
        let says_one = self.truthful.complement().times(&self.forced.complement()).complement();
        let yes = taking_part(self.yes.round(), self.yes.times(&says_one).round());
        let no = taking_part(self.no.round(), self.no.times(&forced).round());
        one_answer(yes, no)
    }
}
