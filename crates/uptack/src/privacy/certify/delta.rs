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
    if ends.upper() < NEGLIGIBLE {
        let everywhere = crowds.half_crowd_bound(question).min(crowds.blanket(question));
        return ends.with_upper(everywhere.max(ends.upper()));
    }
    let search = DeltaSearch { crowds, question };
    search.bounded(search.with_samples(ends))
}

/// The search for the δ of one ε.
struct DeltaSearch<'s, 'a> {
    crowds: &'s Crowds<'a>,
    question: Question,
}

impl DeltaSearch<'_, '_> {
    /// The worst of what was found and a few crowds of both truths. They are evaluated roughly; only one that may be the worst is
    /// worth its precise value.
    fn with_samples(&self, best: Found) -> Found {
        let glance = Question { goal: best.lower(), ..self.question }.glance();
        let rough = self.crowds.samples(glance).into_iter().reduce(Found::larger);
        match rough.filter(|rough| rough.upper() > best.lower()) {
            Some(worse) => best.larger(self.crowds.exactly(worse.crowd, self.question)),
            None => best,
        }
    }

    /// The worst crowd found with an upper end that holds for all crowds.
    fn bounded(&self, best: Found) -> Found {
        let (mut upper, attained) = self.certified(best);
        if upper > (1.0 + CLOSED_DELTA) * attained.value {
            upper = upper.min(self.crowds.blanket(self.question).max(attained.value));
        }
        Found { value: Enclosure::new(attained.value, upper.min(1.0)), crowd: attained.crowd }
    }

    /// The smallest bound that a sweep shows, and the largest value found on the way.
    fn certified(&self, best: Found) -> (f64, Attained) {
        let everywhere = self.crowds.half_crowd_bound(self.question);
        let mut attained = Attained::by(best);
        for margin in self.margins(best.value) {
            self.crowds.work.allow(margin.share);
            let mut proposition = self.proposition(best.value, margin, everywhere);
            // Where a small range stays above the limit, a new limit is set.
            let weaken = |proposition: &mut Proposition, failed: f64| proposition.limit = failed * 1.01;
            if self.crowds.sweep(&mut proposition, &mut attained, weaken, |_, found| found.lower()) {
                return (proposition.largest, attained);
            }
        }
        (everywhere, attained)
    }

    /// The margins to try, given how well the largest value found is known.
    fn margins(&self, best: Enclosure) -> impl Iterator<Item = Margin> {
        let apart = best.upper() > (1.0 + CLOSED_DELTA) * best.lower();
        let skipped = if apart { 2 } else { usize::from(!self.crowds.view.is_two_classes()) };
        MARGINS.into_iter().skip(skipped)
    }

    /// The proposition that no crowd's divergence exceeds the largest value found by more than a margin.
    fn proposition(&self, best: Enclosure, Margin { excess, share }: Margin, everywhere: f64) -> Proposition {
        // From the upper end: where the view is only bounded, the lower one is of another view.
        let found = best.upper();
        Proposition {
            question: self.question,
            limit: (found * (1.0 + excess)).min(everywhere),
            largest: found,
            base: best.lower(),
            step: 0.0,
            trivial: f64::INFINITY,
            everywhere,
            may_fail: share < 1.0,
        }
    }
}
