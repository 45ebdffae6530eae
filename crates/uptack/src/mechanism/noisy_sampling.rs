use super::{family_of_shares, one_answer, taking_part};
use crate::fraction::Fraction;

/// Both populations say `1`, each with a probability of its own; nobody says `0`.
///
/// **Guarantee.** An answer alone has ε = max |ln(sy/sn)|, |ln((1−sy)/(1−sn))|; with sn = 0 none, and the release
/// shows a lone yes-owner with probability sy.
///
/// **Algorithm.** The paper's section *Sampling and Noise*. Its formula returns the owner's own value, yet its text
/// has a share of the no-population respond "Yes" to make the noise; only the text yields noise, so it is followed.
/// This is also what the paper's system of equations becomes at π1 = π2 = π3 = 1.
///
/// **Utility.** √(yes·sy(1−sy) + no·sn(1−sn)) / |sy−sn|.
///
/// **Cost.** One answer; the output `0` exists and never occurs.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let mechanism: Mechanism = "noisy-sampling(sy=0.05, sn=0.01)".parse()?;
/// let sd = Estimator::new(&mechanism.channel())?.sd(50_000, 500.0)?;
/// let variance: f64 = 500.0 * 0.05 * 0.95 + 49_500.0 * 0.01 * 0.99;
/// assert!((sd - variance.sqrt() / 0.04).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoisySampling {
    yes: Fraction,
    no: Fraction,
}

impl NoisySampling {
    /// Yes-owners say `1` with probability `yes` (sy), no-owners with probability `no` (sn).
    pub fn new(yes: Fraction, no: Fraction) -> Self {
        Self { yes, no }
    }
}

family_of_shares!(NoisySampling, "noisy-sampling", |yes, no| one_answer(taking_part(yes, yes), taking_part(no, no)));
