use super::{Family, one_answer, taking_part};
use crate::channel::Channel;
use crate::error::Result;
use crate::fraction::Fraction;

/// Each population has sampling and deniability parameters of its own.
///
/// **Guarantee.** Finite in every view while every output is possible under both truths; with sn·p3 = 0 no-owners
/// never say `1` and there is none.
///
/// **Algorithm.** The paper's section *Mechanism*. Its text names the no-population's deniability parameter π2 where
/// its law uses π3; the law is followed. Its lemma on the "No" count writes E\["Yes"\] and σ("Yes") for what must be
/// E\["No"\] and σ("No"), and is read so.
///
/// **Utility.** From the count of `1`: with a = sy1·p1 + sy2·p2 and b = sn·p3,
/// √(yes·a(1−a) + no·b(1−b)) / |a−b|; likewise for `0` and ⊥; the combined estimator uses all three.
///
/// **Cost.** One answer of three outputs.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let mechanism: Mechanism = "tuned(sy1=0.05, sy2=0.02, p1=0.9, p2=0.8, sn=0.01, p3=0.3)".parse()?;
/// let (a, b) = (0.061_f64, 0.003_f64);
/// let bins = Estimator::new(&mechanism.channel())?.bin_sds(50_000, 500.0)?;
/// let variance = 500.0 * a * (1.0 - a) + 49_500.0 * b * (1.0 - b);
/// assert!((bins[0].unwrap() - variance.sqrt() / (a - b)).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    values: [Fraction; 6],
    yes_part: Fraction,
}

impl Tuned {
    /// Yes-owners take part truthfully with probability `sy1` and forced with `sy2`, saying `1` with probability `p1`
    /// and `p2` respectively; no-owners take part with probability `sn` and say `1` with probability `p3`.
    pub fn new(sy1: Fraction, sy2: Fraction, p1: Fraction, p2: Fraction, sn: Fraction, p3: Fraction) -> Result<Self> {
        let yes_part = sy1.plus(&sy2).map_err(|error| error.at("sy1 + sy2"))?;
        Ok(Self { values: [sy1, sy2, p1, p2, sn, p3], yes_part })
    }
}

impl Family for Tuned {
    const NAME: &'static str = "tuned";
    const KEYS: &'static [&'static str] = &["sy1", "sy2", "p1", "p2", "sn", "p3"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [sy1, sy2, p1, p2, sn, p3] = super::exactly(values);
        Self::new(sy1, sy2, p1, p2, sn, p3)
    }

    fn values(&self) -> Vec<&Fraction> {
        self.values.iter().collect()
    }

    /// The rest is ⊥; within taking part, the rest is `0`.
    fn channel(&self) -> Channel {
        let [sy1, sy2, p1, p2, sn, p3] = &self.values;
        let yes_one = sy1.times(p1).plus(&sy2.times(p2)).expect("at most sy1 + sy2, which was checked");
        one_answer(taking_part(self.yes_part.round(), yes_one.round()), taking_part(sn.round(), sn.times(p3).round()))
    }
}
