//! δ at one ε over all crowds (`docs/accounting.md`, "Adding an owner never hurts").

use super::Margin;
use super::crowds::Crowds;
use super::sweep::{Attained, Proposition};
use crate::certified::enclosure::Enclosure;
use crate::privacy::claim::{CLOSED_DELTA, Found};
use crate::privacy::divergence::Question;

/// A certificate of a δ at most this much above the largest value found is looked for. The smallest margin is for two classes
/// alone, where it costs little: what composes many releases reads δ at many ε, and an excess in all of them is an excess in the
/// composed ε.
const MARGINS: [Margin; 5] = [
    Margin { excess: 4e-3, share: 0.3 },
    Margin { excess: 0.045, share: 0.6 },
    Margin { excess: 0.2, share: 0.5 },
    Margin { excess: 0.8, share: 0.5 },
    Margin { excess: 3.0, share: 1.0 },
];
/// Divergences below this are bounded, but not searched for their worst crowd.
const NEGLIGIBLE: f64 = 1e-150;

/// The largest divergence over all crowds, and the worst crowd found.
pub(super) fn over_all_crowds(crowds: &Crowds<'_>, epsilon: f64) -> Found {
    if let Some(floor) = crowds.beyond_all_ratios(epsilon) {
        return floor;
    }
    let (ends, question) = crowds.ends_at_depth(epsilon);
    if crowds.enumerable() {
        return crowds.every_crowd(question);
    }
    if ends.value.upper() < NEGLIGIBLE {
        let everywhere = crowds.half_crowd_bound(question).min(crowds.blanket(question));
        return ends.with_upper(everywhere.max(ends.value.upper()));
    }
    let best = with_samples(crowds, ends, question);
    let everywhere = crowds.half_crowd_bound(question);
    let (mut upper, attained) = certified(crowds, question, best, everywhere);
    if upper > (1.0 + CLOSED_DELTA) * attained.value {
        upper = upper.min(crowds.blanket(question).max(attained.value));
    }
    Found { value: Enclosure::new(attained.value, upper.min(1.0)), crowd: attained.crowd }
}

/// The worst of what was found and a few crowds of both truths. They are looked at roughly; only one that may be the worst is worth
/// its precise value.
fn with_samples(crowds: &Crowds<'_>, best: Found, question: Question) -> Found {
    let glance = Question { goal: best.value.lower(), ..question }.glance();
    let rough = crowds.samples(glance).into_iter().reduce(Found::larger);
    match rough.filter(|rough| rough.value.upper() > best.value.lower()) {
        Some(worse) => best.larger(crowds.exactly(worse.crowd, question)),
        None => best,
    }
}

/// The smallest bound that a sweep shows, and the largest value found on the way.
fn certified(crowds: &Crowds<'_>, question: Question, best: Found, everywhere: f64) -> (f64, Attained) {
    let mut attained = Attained::by(best);
    // From the upper end: where the view is only bounded, the lower one is of another view.
    let (found, base) = (best.value.upper(), attained.value);
    let apart = found > (1.0 + CLOSED_DELTA) * attained.value;
    let skipped = if apart { 2 } else { usize::from(!crowds.view.is_two_classes()) };
    for Margin { excess, share } in MARGINS.into_iter().skip(skipped) {
        crowds.work.allow(share);
        let mut proposition = Proposition {
            question,
            limit: (found * (1.0 + excess)).min(everywhere),
            largest: found,
            base,
            step: 0.0,
            trivial: f64::INFINITY,
            everywhere,
            may_fail: share < 1.0,
        };
        // Where a small range stays above the limit a new limit is set.
        let weaken = |proposition: &mut Proposition, failed: f64| proposition.limit = failed * 1.01;
        if crowds.sweep(&mut proposition, &mut attained, weaken, |_, found| found.value.lower()) {
            return (proposition.largest, attained);
        }
    }
    (everywhere, attained)
}
