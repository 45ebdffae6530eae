//! The families that the planner chooses among: which laws each can have, and how it is written.

use super::law::Law;
use crate::error::Result;
use crate::fraction::Fraction;
use crate::mechanism::{Blended, Mechanism, NoisySampling, NormalForm, RandomizedResponse, Spread, Tuned};

/// One family of mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    RandomizedResponse,
    NormalForm,
    NoisySampling,
    Tuned,
    Blended,
    /// `spread` with this many pairs.
    Spread(usize),
}

impl Family {
    pub(super) const ALL: [Self; 7] = [
        Self::RandomizedResponse,
        Self::NormalForm,
        Self::NoisySampling,
        Self::Tuned,
        Self::Blended,
        Self::Spread(2),
        Self::Spread(3),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RandomizedResponse => "randomized-response",
            Self::NormalForm => "normal-form",
            Self::NoisySampling => "noisy-sampling",
            Self::Tuned => "tuned",
            Self::Blended => "blended",
            Self::Spread(_) => "spread",
        }
    }

    /// Its name if the aggregators add noise.
    pub(super) fn noisy_name(self) -> &'static str {
        match self {
            Self::RandomizedResponse => "randomized-response + laplace",
            Self::NormalForm => "normal-form + laplace",
            Self::NoisySampling => "noisy-sampling + laplace",
            Self::Tuned => "tuned + laplace",
            Self::Blended | Self::Spread(_) => unreachable!("noise is added to one answer"),
        }
    }

    /// Whether the owner gives one answer.
    pub(super) fn is_one_answer(self) -> bool {
        !matches!(self, Self::Blended | Self::Spread(_))
    }

    /// The mechanism of a law. Its parameters have few digits, rounded towards the law that gives away less.
    pub(super) fn mechanism(self, law: &Law) -> Result<Mechanism> {
        let part = fewer(law.part[0]);
        // The flips keep their share of those who take part.
        let flip = up(law.flip[0] * (part / law.part[0]));
        let (part, flip) = (Fraction::from_f64(part), Fraction::from_f64(flip));
        Ok(match self {
            Self::RandomizedResponse => Mechanism::RandomizedResponse(RandomizedResponse::new(flip?.complement())),
            Self::NormalForm => Mechanism::NormalForm(NormalForm::new(part?, flip?)?),
            Self::NoisySampling => Mechanism::NoisySampling(noisy_sampling(law)?),
            Self::Tuned => Mechanism::Tuned(tuned(law)?),
            Self::Blended => Mechanism::Blended(blended(part?, flip?)?),
            Self::Spread(pairs) => Mechanism::Spread(Spread::new(pairs, part?, flip?)?),
        })
    }
}

/// Owners of the truth that speaks more often speak a little less so, and those of the other a little more.
fn noisy_sampling(law: &Law) -> Result<NoisySampling> {
    let [yes, no] = [law.yes()[0], law.no()[0]];
    let sy = if yes < no { up(yes) } else { fewer(yes) };
    let sn = if no < yes { up(no) } else { fewer(no) };
    Ok(NoisySampling::new(Fraction::from_f64(sy)?, Fraction::from_f64(sn)?))
}

/// sy2 = 0; the flips as shares of those who take part.
fn tuned(law: &Law) -> Result<Tuned> {
    let [sy, sn] = law.part.map(|part| digits(part, 7, f64::round));
    // Rounded away from the truth: fewer yes-owners say 1, and more no-owners.
    let truthful = 1.0 - up(law.flip[0] / sy).min(1.0);
    // Where all of them do, the digits of their participation must not make it more than all.
    let forced = up(law.flip[1] / sn).min(1.0);
    let [sy, truthful, sn, forced] = [sy, digits(truthful, 12, f64::floor), sn, forced].map(Fraction::from_f64);
    Tuned::new(sy?, Fraction::zero(), truthful?, Fraction::zero(), sn?, forced?)
}

/// b1 = f1 = 0; who does not take part is shared out evenly between b2 and b3.
fn blended(part: Fraction, flip: Fraction) -> Result<Blended> {
    let base = part.complement().times(&Fraction::new(1, 2)?);
    Blended::new(Fraction::zero(), base.clone(), base, Fraction::zero(), part, flip.clone(), flip)
}

/// A participation with few digits, rounded down; near one, few digits of what is missing.
fn fewer(part: f64) -> f64 {
    if part >= 1.0 {
        return 1.0;
    }
    if part <= 0.5 {
        return digits(part, 7, f64::floor);
    }
    let places = 10f64.powi(5 - (1.0 - part).log10().floor() as i32).min(1e15);
    (part * places).floor() / places
}

/// A probability with few digits, rounded up.
fn up(value: f64) -> f64 {
    digits(value, 6, f64::ceil)
}

/// `value` with this many significant digits.
fn digits(value: f64, count: i32, round: fn(f64) -> f64) -> f64 {
    if value <= 0.0 || value >= 1.0 {
        return value;
    }
    let scale = 10f64.powi(count - 1 - value.log10().floor() as i32);
    round(value * scale) / scale
}

#[cfg(test)]
mod tests {
    use super::super::curve::Curve;
    use super::super::request::{Prior, Request};
    use super::*;
    use crate::privacy::{answer_epsilon, linked_epsilon};

    /// What the curve says of single answers is what the accounting says of the mechanism.
    #[test]
    fn the_least_doubt_keeps_the_local_bounds_and_no_less_does() {
        let mut tested = 0;
        for (answer, linked) in [(Some(0.9), None), (None, Some(2.0)), (Some(1.2), Some(3.0))] {
            let mut request = Request::new(1000, Prior::at(10));
            (request.answer_epsilon, request.linked_epsilon) = (answer, linked);
            for family in Family::ALL.into_iter().filter(|family| *family != Family::Tuned) {
                let curve = Curve::of(family, &request).unwrap();
                let place = if family == Family::RandomizedResponse { 1.0 } else { 0.5 };
                // Not every family can keep every bound at every participation.
                let Some(doubt) = curve.least_doubt(family, &request, place) else { continue };
                tested += 1;
                let worst = |doubt: f64| {
                    let channel = family.mechanism(&curve.law(place, doubt)).unwrap().channel();
                    let answers = (0..channel.answers().len())
                        .map(|k| answer_epsilon(&channel, k).unwrap().unwrap_or(f64::INFINITY));
                    let room = |epsilon: f64, most: Option<f64>| most.map_or(-1.0, |most| epsilon - most);
                    answers
                        .map(|epsilon| room(epsilon, answer))
                        .fold(room(linked_epsilon(&channel).unwrap_or(f64::INFINITY), linked), f64::max)
                };
                assert!(worst(doubt) <= 1e-12, "{family:?}: {}", worst(doubt));
                assert!(doubt == 0.0 || worst(0.999 * doubt) > 0.0, "{family:?}");
            }
        }
        assert!(tested >= 8, "{tested}");
    }

    #[test]
    fn parameters_have_few_digits_rounded_against_ourselves() {
        let text =
            Family::NormalForm.mechanism(&Law::symmetric(0.626_123_456_789, 1.174_200_1e-4)).unwrap().to_string();
        assert_eq!(text, "normal-form(f=0.626123,r=0.00011742)");
    }
}
