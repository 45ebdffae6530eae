//! ε at one δ over all crowds (`docs/accounting.md`, "From δ to ε").

use super::Margin;
use super::crowds::Crowds;
use super::epsilon_root::solve_from_above;
use super::sweep::{Attained, Proposition};
use crate::certified::enclosure::Enclosure;
use crate::privacy::claim::{CLOSED_EPSILON, Found};
use crate::privacy::divergence::{Ends, Question};

/// A certificate of an ε at most this much above the largest value found is looked for, first with the smallest margin.
const MARGINS: [Margin; 5] = [
    Margin { excess: 9.5e-4, share: 0.75 },
    Margin { excess: 4e-3, share: 0.4 },
    Margin { excess: 1e-2, share: 0.4 },
    Margin { excess: 2.5e-2, share: 0.5 },
    Margin { excess: 0.1, share: 1.0 },
];
/// Where the ends are a factor of this apart, only the widest margin is tried: what it adds does not matter then.
const FAR_APART: f64 = 1.2;
/// How often a sweep is repeated from the worst crowd that the last one found.
const MOST_REPEATED: usize = 4;
/// Where not even the crowds of one truth can be bounded by this share of the local ε, the local ε is the claim. The larger share
/// is for views whose ends are close, so that the claim still closes.
const NEARLY_ALL_SHARP: f64 = 0.9995;
const NEARLY_ALL: f64 = 0.99;

/// The search for the ε of one δ, which is not below the floor.
pub(super) struct EpsilonSearch<'s, 'a> {
    crowds: &'s Crowds<'a>,
    delta: f64,
    log_cut: f64,
    /// The largest finite |ln(p/q)|, at which the claim needs no proof.
    largest: f64,
}

impl<'s, 'a> EpsilonSearch<'s, 'a> {
    pub(super) fn new(crowds: &'s Crowds<'a>, delta: f64) -> Self {
        Self { crowds, delta, log_cut: Crowds::log_cut(delta, 30.0), largest: crowds.largest_epsilon() }
    }

    /// The ε over all crowds, and the worst crowd found.
    pub(super) fn over_all_crowds(&self) -> Found {
        let crowds = self.crowds;
        if crowds.work.exhausted() {
            return Found { value: Enclosure::new(0.0, self.largest), crowd: 0 };
        }
        if self.is_nearly_local() {
            let found = crowds.solve_below(self.delta, self.largest, &|epsilon, ends| self.at_ends(epsilon, ends));
            return found.with_upper(self.largest);
        }
        let ends = self.of_ends();
        if crowds.enumerable() {
            return self.enumerated(ends);
        }
        self.bounded(self.with_samples(ends))
    }

    /// The worst crowd found with an upper end that holds for all crowds.
    fn bounded(&self, best: Found) -> Found {
        if self.is_too_costly() {
            return best.with_upper(self.largest);
        }
        let (upper, attained) = self.certified(best);
        let upper = match upper {
            Some(upper) => upper,
            None if self.is_too_costly() => self.largest,
            None => self.by_half_crowds(attained.value),
        };
        let value = Enclosure::new(attained.value, upper.min(self.largest));
        self.at_most_blanket(Found { value, crowd: attained.crowd })
    }

    /// Whether not even a crowd of one truth should be evaluated any more: that is cheap where the formulas are exact, and costly
    /// where scores are summed.
    fn is_too_costly(&self) -> bool {
        !self.crowds.view.is_exact() && self.crowds.work.overdrawn()
    }

    /// Whether no search would bound ε much better than the local one does.
    fn is_nearly_local(&self) -> bool {
        let view = self.crowds.view;
        let nearly_all = if view.is_sharp() { NEARLY_ALL_SHARP } else { NEARLY_ALL } * self.largest;
        let bounded = view.is_exact() || self.crowds.enumerable();
        !bounded && self.at_ends(nearly_all, Ends::Upper).upper() > self.delta
    }

    /// The ε of the two crowds of one truth.
    pub(super) fn of_ends(&self) -> Found {
        self.crowds.solve(self.delta, self.largest, &|epsilon, ends| self.at_ends(epsilon, ends))
    }

    /// What the privacy blanket alone certifies.
    pub(super) fn by_blanket(&self) -> f64 {
        solve_from_above(self.delta, (0.0, self.largest), |epsilon| self.crowds.blanket(self.at(epsilon)))
    }

    /// The question at one ε.
    fn at(&self, epsilon: f64) -> Question {
        self.crowds.question(epsilon, self.log_cut, self.delta)
    }

    /// The same, as precisely as for a view that is bounded by itself.
    fn precisely_at(&self, epsilon: f64) -> Question {
        Question::new(epsilon, self.log_cut, self.delta)
    }

    fn at_ends(&self, epsilon: f64, ends: Ends) -> Found {
        self.crowds.ends(Question { ends, ..self.at(epsilon) })
    }

    /// The ε of one crowd of both truths.
    fn of_crowd(&self, crowd: u64) -> Found {
        self.crowds.solve(self.delta, self.largest, &|epsilon, _| self.crowds.exactly(crowd, self.at(epsilon)))
    }

    /// Solves at the worst crowd found so far until no other crowd is worse there.
    fn enumerated(&self, ends: Found) -> Found {
        let mut best = ends;
        for _ in 0..64 {
            let worst = self.crowds.every_crowd(self.precisely_at(best.upper()));
            if worst.upper() <= self.delta {
                return best;
            }
            let exactly = |epsilon: f64, _| self.crowds.exactly(worst.crowd, self.precisely_at(epsilon));
            let found = self.crowds.solve(self.delta, self.largest, &exactly);
            best = best.with_upper(best.upper() * (1.0 + 1e-12)).larger(found);
        }
        best.with_upper(self.largest)
    }

    /// The worst of the crowds of one truth and a few crowds of both truths.
    fn with_samples(&self, ends: Found) -> Found {
        let is_worse = |found: &Found| found.lower() > self.delta;
        let samples = self.crowds.samples(self.at(ends.lower()));
        let worse = samples.into_iter().filter(is_worse).map(|found| found.crowd);
        worse.fold(ends, |best, crowd| {
            // An earlier sample may have shown more by now.
            let still_worse = is_worse(&self.crowds.exactly(crowd, self.at(best.lower())));
            if still_worse { worse_of(best, self.of_crowd(crowd)) } else { best }
        })
    }

    /// The smallest ε that a sweep shows, if one shows any, and the largest value found on the way.
    fn certified(&self, best: Found) -> (Option<f64>, Attained) {
        let mut attained = Attained::by(best);
        let everywhere = self.crowds.half_crowd_bound(self.at(best.upper()));
        for margin in margins(best.value) {
            if let Some(shown) = self.swept(best.upper(), margin, everywhere, &mut attained) {
                return (Some(self.sharpened(shown, everywhere, &mut attained)), attained);
            }
        }
        (None, attained)
    }

    /// The ε that a sweep shows if it starts above `found` by a margin; none if it shows nothing.
    fn swept(&self, found: f64, margin: Margin, everywhere: f64, attained: &mut Attained) -> Option<f64> {
        self.crowds.work.allow(margin.share);
        let mut proposition = self.proposition(found, margin, everywhere);
        let learned = |proposition: &Proposition, found: &Found| self.learned(proposition, found);
        let shown = self.crowds.sweep(&mut proposition, attained, |weaker, _| weaken(weaker), learned);
        shown.then(|| proposition.question.growth.ln() * (1.0 + 1e-14))
    }

    /// Repeats the sweep from the worst crowd found on the way, while each finds a worse one and what is shown is far above it.
    fn sharpened(&self, mut shown: f64, everywhere: f64, attained: &mut Attained) -> f64 {
        let repetitions = if self.crowds.are_cheap() { MOST_REPEATED } else { 0 };
        for _ in 0..repetitions {
            let worst = attained.value;
            if shown <= worst * (1.0 + CLOSED_EPSILON) {
                break;
            }
            let again = self.swept(worst, MARGINS[0], everywhere, attained);
            shown = again.map_or(shown, |again| again.min(shown));
            if attained.value <= worst {
                break;
            }
        }
        shown
    }

    /// The proposition that δ is enough for all crowds at an ε above `found` by a margin.
    fn proposition(&self, found: f64, Margin { excess, share }: Margin, everywhere: f64) -> Proposition {
        let start = (found * (1.0 + excess)).min(self.largest);
        Proposition {
            base: self.at_ends(start, Ends::Lower).lower(),
            question: self.at(start),
            limit: self.delta,
            largest: 0.0,
            step: excess / 10.0,
            trivial: self.largest.exp(),
            everywhere,
            may_fail: share < 1.0,
        }
    }

    /// The ε that a crowd evaluated on the way is known to need.
    fn learned(&self, proposition: &Proposition, found: &Found) -> f64 {
        let worse = found.lower() > self.delta;
        let known = if worse { proposition.question.growth.ln() * (1.0 - 1e-12) } else { 0.0 };
        // A crowd that is not worse may still be the worst one so far, at a smaller ε.
        if !self.crowds.view.is_two_classes() || found.upper() < 0.98 * self.delta {
            return known;
        }
        self.of_crowd(found.crowd).lower().max(known)
    }

    /// An ε that holds for every crowd, from the two crowds of one truth and half the size.
    fn by_half_crowds(&self, lower: f64) -> f64 {
        let bound = |epsilon: f64| self.crowds.half_crowd_bound(self.precisely_at(epsilon));
        solve_from_above(self.delta, (lower, self.largest), bound)
    }

    /// The smaller of what was found and the bound by the privacy blanket, to a per mille. What is closed is at most that much above
    /// the true ε, so the blanket could not lower it by more.
    fn at_most_blanket(&self, found: Found) -> Found {
        let blanket = |epsilon: f64| self.crowds.blanket(self.at(epsilon));
        let (lower, upper) = (found.lower(), found.upper());
        let closed = upper <= lower * (1.0 + CLOSED_EPSILON);
        if closed || self.crowds.work.overdrawn() || blanket(upper * 0.999) > self.delta {
            return found;
        }
        // It bounds the true ε, so it is not below what was found.
        found.with_upper(solve_from_above(self.delta, (lower, upper), blanket))
    }
}

/// The crowd with the larger lower end. If that is the new one, its upper end covers the best so far, too.
fn worse_of(best: Found, found: Found) -> Found {
    if found.lower() > best.lower() {
        return found.with_upper(found.upper().max(best.upper()));
    }
    best
}

/// Raises the ε of a proposition, each time by a larger step.
fn weaken(proposition: &mut Proposition) {
    proposition.step *= 2.0;
    let weaker = proposition.question.growth.ln() * (1.0 + proposition.step) + 1e-6 * proposition.step;
    proposition.question.growth = weaker.exp().min(proposition.trivial);
}

/// The margins to try, given how well the largest value found is known.
fn margins(best: Enclosure) -> Vec<Margin> {
    let (lower, upper) = (best.lower(), best.upper());
    let apart = upper > (1.0 + CLOSED_EPSILON) * lower;
    let skipped = if upper > FAR_APART * lower { MARGINS.len() - 1 } else { usize::from(apart) };
    let mut margins: Vec<Margin> = MARGINS.into_iter().skip(skipped).collect();
    if skipped == 0 {
        // What is lost at the ends leaves less room for the certificate to close.
        margins[0].excess -= (upper / lower - 1.0).max(0.0);
    }
    margins
}
