use super::{family_of_shares, one_answer, taking_part};
use crate::fraction::Fraction;
use crate::probability::Probability;

/// Answer the plain truth with the probability of one's truth, else ⊥.
///
/// **Guarantee.** None: an owner who answers `1` has the truth *yes*. An owner who is alone with its truth shows in the
/// release with probability max(sy, sn), so that δ is never below it. It is here because the paper starts from it.
///
/// **Algorithm.** The paper's section *Sampling*.
///
/// **Utility.** From the count of `1` alone, √(yes·sy(1−sy)) / sy.
///
/// **Cost.** One answer of three outputs.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let mechanism: Mechanism = "sampling(sy=5%, sn=5%)".parse()?;
/// let bins = Estimator::new(&mechanism.channel())?.bin_sds(50_000, 500.0)?;
/// assert!((bins[0].unwrap() - (500.0_f64 * 0.05 * 0.95).sqrt() / 0.05).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    yes: Fraction,
    no: Fraction,
}

impl Sampling {
    /// Yes-owners answer with probability `yes` (sy), no-owners with probability `no` (sn).
    pub fn new(yes: Fraction, no: Fraction) -> Self {
        Self { yes, no }
    }
}

family_of_shares!(Sampling, "sampling", |yes, no| one_answer(
    taking_part(yes, yes),
    taking_part(no, Probability::ZERO)
));
