use super::{Family, at_most, several_answers};
use crate::channel::Channel;
use crate::error::Result;
use crate::fraction::Fraction;

/// Two answers of two outputs; the second moves as much out of ⊥1 as the first moved in.
///
/// **Guarantee.** An answer alone: max |ln((b+sy)/(b+sn))| and the like, small. The linked cells: max |ln(sy/sn)| and
/// the like. With sn = 0 the release shows a lone yes-owner with probability 2·sy, and there is none.
///
/// **Algorithm.** The paper's *First Attempt Cancelling the Noise*. In its printed text πN and π⊥N are one quantity,
/// YES_A stands for YES, ⊥Y and ⊥N for πY and πN, and the π⊥2 of the expectations is a misprint for π⊥1. The paper
/// gives the law of each answer; they are coupled monotonically: one coin, and the cell 12 holds the owners whom the shift
/// moved.
///
/// **Utility.** From ⊥1A − ⊥1B, which counts the cell 12: √(yes·2sy(1−2sy) + no·2sn(1−2sn)) / (2|sy−sn|). The noise
/// of the no-owners stays in it, which is why it is only a first attempt.
///
/// **Cost.** Two answers of two outputs.
///
/// ```
/// use uptack::{Mechanism, estimate::Estimator};
/// let mechanism: Mechanism = "paired(b=0.5, sy=0.2, sn=0.05)".parse()?;
/// let channel = mechanism.channel();
/// let sd = Estimator::new(&channel)?.sd(50_000, 500.0)?;
/// let variance: f64 = 500.0 * 0.4 * 0.6 + 49_500.0 * 0.1 * 0.9;
/// assert!((sd - variance.sqrt() / 0.3).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paired {
    base: Fraction,
    yes: Fraction,
    no: Fraction,
}

impl Paired {
    /// A `base` (b, π⊥1) that yes-owners shift by `yes` (sy, πY) and no-owners by `no` (sn, πN).
    pub fn new(base: Fraction, yes: Fraction, no: Fraction) -> Result<Self> {
        let room = base.complement();
        for (name, shift) in [("sy", &yes), ("sn", &no)] {
            at_most((name, shift), ("b", &base)).map_err(|error| error.at("cell 11"))?;
            at_most((name, shift), ("1 - b", &room)).map_err(|error| error.at("cell 22"))?;
        }
        Ok(Self { base, yes, no })
    }
}

impl Family for Paired {
    const NAME: &'static str = "paired";
    const KEYS: &'static [&'static str] = &["b", "sy", "sn"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [base, yes, no] = super::exactly(values);
        Self::new(base, yes, no)
    }

    fn values(&self) -> Vec<&Fraction> {
        vec![&self.base, &self.yes, &self.no]
    }

    /// The rest is 22.
    fn channel(&self) -> Channel {
        let (base, yes, no) = (self.base.round(), self.yes.round(), self.no.round());
        let room = base.complement();
        several_answers(
            "12",
            &[
                ("11", base.saturating_sub(yes), base.saturating_sub(no)),
                ("12", yes.doubled(), no.doubled()),
                ("22", room.saturating_sub(yes), room.saturating_sub(no)),
            ],
        )
    }
}
