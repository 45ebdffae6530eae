use super::{Family, at_most, parts_and_rest, several_answers};
use crate::channel::Channel;
use crate::error::Result;
use crate::fraction::Fraction;

/// Three answers of three outputs; a residual on both sides blends the populations that the shifts would isolate.
///
/// **Guarantee.** Answers A and B alone say nothing; C alone is close to randomized response. The release hides a
/// target among the ry·yes + rn·no owners whom the residual moved the other way. With ry = 0 or rn = 0 only one truth can
/// reach some cell, and there is no guarantee for the release.
///
/// **Algorithm.** The paper's *Plausible Deniability* in the notation of its *Privacy Algebra*. As printed,
/// NO_f = πN·NO is larger than NO_N = πf·πN·NO, yet is subtracted from it; read NO_N = πN·NO, NO_f = πf·πN·NO and
/// YES_f = πf·πY·YES. The paper's residual NO_f21 alone leaves one side bare; `ry` and `rn` are both sides of it.
/// One coin decides all three answers. `b1` is the base among those who write 111; the others of them are the
/// paper's YES_Y and NO_N that no f moves on, so that a smaller b1 does not change the channel.
///
/// **Utility.** C3 − A3 = Binomial(yes, f2−ry) + Binomial(no, rn): √(yes·(f2−ry)(1−f2+ry) + no·rn(1−rn)) / (f2−ry−rn),
/// from the cell 133 alone; the combined estimator is a little better. It does not grow with the crowd if rn falls
/// like 1/n.
///
/// **Cost.** Three answers of three outputs.
///
/// ```
/// use uptack::{Mechanism, estimate::{Estimator, paper}, Tally};
/// let mechanism: Mechanism = "blended(b1=0, b2=0.25, b3=0.25, f1=0, f2=0.5, ry=1e-4, rn=1e-4)".parse()?;
/// let sd = Estimator::new(&mechanism.channel())?.sd(50_000, 500.0)?;
/// let (own, other) = (0.4999_f64, 0.0001_f64);
/// let from_133 = (500.0 * own * (1.0 - own) + 49_500.0 * other * (1.0 - other)).sqrt() / (own - other);
/// assert!(sd < from_133 && sd > 0.98 * from_133);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blended {
    values: [Fraction; 7],
}

impl Blended {
    /// Bases `b1`, `b2`, `b3`, shifts `f1` (to ⊥2) and `f2` (to ⊥3), residuals `ry` of yes-owners and `rn` of
    /// no-owners.
    #[allow(clippy::too_many_arguments, reason = "the paper's parameters, in its order")]
    pub fn new(
        b1: Fraction,
        b2: Fraction,
        b3: Fraction,
        f1: Fraction,
        f2: Fraction,
        ry: Fraction,
        rn: Fraction,
    ) -> Result<Self> {
        let moved = b2.plus(&b3).and_then(|sum| sum.plus(&f1)).and_then(|sum| sum.plus(&f2));
        let moved = moved.map_err(|error| error.at("b2 + b3 + f1 + f2"))?;
        at_most(("b1", &b1), ("1 - b2 - b3 - f1 - f2", &moved.complement())).map_err(|error| error.at("cell 111"))?;
        at_most(("ry", &ry), ("f2", &f2)).map_err(|error| error.at("cell 133"))?;
        at_most(("rn", &rn), ("f2", &f2)).map_err(|error| error.at("cell 132"))?;
        Ok(Self { values: [b1, b2, b3, f1, f2, ry, rn] })
    }
}

impl Family for Blended {
    const NAME: &'static str = "blended";
    const KEYS: &'static [&'static str] = &["b1", "b2", "b3", "f1", "f2", "ry", "rn"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [b1, b2, b3, f1, f2, ry, rn] = super::exactly(values);
        Self::new(b1, b2, b3, f1, f2, ry, rn)
    }

    fn values(&self) -> Vec<&Fraction> {
        self.values.iter().collect()
    }

    /// The rest is 111.
    fn channel(&self) -> Channel {
        let [_, b2, b3, f1, f2, ry, rn] = &self.values;
        let parts = parts_and_rest(&[b2, b3, f1, f2]).expect("the sum was checked");
        let [b2, b3, f1, f2, rest] = super::exactly(parts);
        // If a residual is all of f2, rounding may make it larger by one unit.
        let (ry, rn) = (ry.round().min(f2), rn.round().min(f2));
        several_answers(
            "123",
            &[
                ("111", rest, rest),
                ("222", b2, b2),
                ("333", b3, b3),
                ("122", f1, f1),
                ("133", f2.saturating_sub(ry), rn),
                ("132", ry, f2.saturating_sub(rn)),
            ],
        )
    }
}
