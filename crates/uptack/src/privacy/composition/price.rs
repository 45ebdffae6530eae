//! The price of one release for a budget: its certified profile, read at few ε (`docs/composition.md`, "Prices").
//!
//! A composition wants the profile on a fine grid and takes a certificate for each knot. Whoever decides whether to answer a
//! stranger's card cannot afford that: the price must not cost much more than the check of one claim. So the profile is certified at
//! some two dozen ε, chosen as it falls, and each certificate takes its share of the work allowed. Between two of them the true
//! profile lies below their chord in e^ε, because it is convex there. Where the crowd hides next to nothing, the price is that of
//! the pure guarantee, a closed form.

use std::sync::Arc;

use super::profile::pure_delta;
use super::{Accuracy, Charge, LossDistribution, Profile, at_least_one};
use crate::certified::rounding::{ELEMENTARY, probability_up};
use crate::error::Result;
use crate::privacy::{Accountant, Epsilon};
use crate::progress::Progress;

/// What a budget is charged for one release: a measure on privacy losses that dominates it, sharp for `repetitions` of it down to
/// `smallest_delta`, or its pure guarantee where that is no dearer. A `smallest_delta` of 0 admits the pure guarantee alone.
///
/// In all it takes at most about twice the accountant's limit on work.
pub fn release_charge(accountant: &Accountant, repetitions: u64, smallest_delta: f64) -> Result<Charge> {
    at_least_one("the number of repetitions", repetitions)?;
    let pure = accountant.pure_epsilon();
    match pure.filter(|pure| smallest_delta <= 0.0 || is_nearly_pure(accountant, *pure)) {
        Some(pure) => Charge::pure(pure),
        None => {
            let negligible = smallest_delta * NEGLIGIBLE / repetitions as f64;
            let profile = ChordProfile::of_release(accountant, negligible, &Arc::default());
            let accuracy = Accuracy::for_repetitions(repetitions, smallest_delta);
            Ok(Charge::dominated_by(LossDistribution::from_profile(&profile, accuracy)?))
        }
    }
}

/// Losses whose δ is below this share of the smallest δ of each repetition are called infinite: the repetitions together then use
/// up one part in 2500 of what a filter sets aside for them. A smaller share takes more certificates.
const NEGLIGIBLE: f64 = 0.1;
/// A crowd that leaves this share of the pure guarantee's δ at `NEAR_THE_END` of its ε hides next to nothing.
const NEARLY_PURE: f64 = 0.95;
const NEAR_THE_END: f64 = 0.9;

/// Whether the pure guarantee describes the release well: its profile is a line in e^ε that ends in 0 at the same ε as the true
/// one, which is convex. So where the true one is close to the line near that end, it is as close everywhere before it.
fn is_nearly_pure(accountant: &Accountant, pure: f64) -> bool {
    let near = NEAR_THE_END * pure;
    let shown = Epsilon::new(near).map(|near| accountant.delta_of_ends(near).lower());
    shown.is_ok_and(|shown| shown >= NEARLY_PURE * pure_delta(pure, near))
}

/// A profile that is known at a few ε, and from above between them.
struct ChordProfile {
    /// By rising ε, from 0 on; δ never grows.
    knots: Vec<Knot>,
}

/// A certified value.
#[derive(Clone, Copy)]
struct Knot {
    epsilon: f64,
    delta: f64,
}

/// After this many knots the steps grow, so that there is an end.
const MANY_KNOTS: usize = 40;
/// How far a chord may lie above the profile next to 0, relatively. Twice as much saves three in ten certificates and costs as much
/// of the budget as it adds.
const TOLERANCE: f64 = 0.015;
/// Deep in the tail, where only the dearest queries feel it, a chord may lie this far above.
const TOLERANCE_IN_TAIL: f64 = 0.25;

impl ChordProfile {
    /// The profile of a release, until it is negligible or its last ratio is reached. `work` counts the steps taken.
    fn of_release(accountant: &Accountant, negligible: f64, work: &Arc<Progress>) -> Self {
        let end = accountant.largest_epsilon();
        let mut knots = vec![Knot { epsilon: 0.0, delta: accountant.delta_for_price(0.0, work) }];
        while let [.., last] = knots[..] {
            if last.delta <= negligible || last.epsilon >= end {
                break;
            }
            let epsilon = (last.epsilon + step(&knots)).min(end);
            let delta = accountant.delta_for_price(epsilon, work).min(last.delta);
            knots.push(Knot { epsilon, delta });
        }
        Self { knots }
    }
}

/// How far the next knot may be: where δ falls like e^(−s·ε), a chord of length h lies above it by (s·h)²/8 of it at most. A
/// profile whose logarithm is concave falls faster later on.
fn step(knots: &[Knot]) -> f64 {
    let (first, last) = (knots[0], knots[knots.len() - 1]);
    let depth = (first.delta / last.delta).ln();
    let tolerance = (TOLERANCE * (1.0 + depth)).min(TOLERANCE_IN_TAIL);
    let wait = if knots.len() > MANY_KNOTS { (knots.len() - MANY_KNOTS) as f64 } else { 0.0 };
    (8.0 * tolerance).sqrt() / decline(knots) * wait.exp2()
}

/// s, by which the logarithm of δ falls with ε.
fn decline(knots: &[Knot]) -> f64 {
    // A Gaussian loss of deviation σ has δ(0) ≈ 0.4σ and δ′(0) ≈ −1/2.
    let at_zero = 0.5 / knots[0].delta;
    let [.., before, last] = knots else { return at_zero };
    let fallen = (before.delta / last.delta).ln() / (last.epsilon - before.epsilon);
    // A certificate that failed may be as high as the one before it.
    if fallen.is_finite() { fallen.max(0.5 * at_zero) } else { at_zero }
}

impl Profile for ChordProfile {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        let after = self.knots.partition_point(|knot| knot.epsilon <= epsilon);
        let Some([left, right]) = self.knots.get(after.saturating_sub(1)..=after) else {
            return self.knots[self.knots.len() - 1].delta;
        };
        // The share of the left end: (e^right − e^ε)/(e^right − e^left), divided by e^right.
        let share = (epsilon - right.epsilon).exp_m1() / (left.epsilon - right.epsilon).exp_m1();
        probability_up(right.delta + share * (left.delta - right.delta), 4.0 * ELEMENTARY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use crate::privacy::composition::Filter;
    use crate::privacy::{WorkLimit, one_aggregator, release, release_loss};

    fn accountant(text: &str, owners: u64) -> Accountant {
        release(&text.parse::<Mechanism>().unwrap().channel(), owners).unwrap()
    }

    /// How many of the queries a budget permits.
    fn permitted(charge: &Charge) -> u64 {
        let mut filter = Filter::new(8.0, 1e-6).unwrap();
        while filter.try_spend(charge).is_ok() {}
        filter.queries()
    }

    #[test]
    fn a_price_costs_little_more_than_a_claim_and_a_fraction_of_a_composition() {
        let accountant = accountant("normal-form(f=0.626,r=0.000118)", 50_000).with_limit(WorkLimit::steps(50_000_000));
        let (of_price, of_composition) = (Arc::new(Progress::default()), Arc::new(Progress::default()));
        ChordProfile::of_release(&accountant, 1e-12, &of_price);
        let fine = release_loss(&accountant.clone().watched(Some(&of_composition)), 1000, 1e-8).unwrap();
        assert!(2 * of_price.done() < of_composition.done(), "{} {}", of_price.done(), of_composition.done());
        // It buys nearly as many queries.
        let price = release_charge(&accountant, 1000, 1e-8).unwrap();
        let (bought, best) = (permitted(&price), permitted(&Charge::dominated_by(fine)));
        assert!(bought <= best && bought as f64 >= 0.93 * best as f64, "{bought} of {best}");
    }

    #[test]
    fn all_certificates_of_a_price_share_one_limit() {
        let limit = 10_000_000;
        let accountant = accountant("spread(pairs=2,f=0.5,r=0.1)", 20_000).with_limit(WorkLimit::steps(limit));
        let work = Arc::new(Progress::default());
        let profile = ChordProfile::of_release(&accountant, 1e-12, &work);
        assert!(profile.knots.len() > 10, "{}", profile.knots.len());
        // A certificate may overdraw what it is allowed, which is never less than a sixty-fourth.
        assert!(work.done() < 4 * limit, "{}", work.done());
    }

    #[test]
    fn a_price_is_never_below_the_truth_and_close_to_it() {
        for (text, owners) in [
            ("randomized-response(t=0.6)", 3),
            ("randomized-response(t=0.9)", 40),
            ("normal-form(f=0.5,r=0.05)", 12),
            ("tuned(sy1=0.5,sy2=0.2,p1=0.9,p2=0.8,sn=0.4,p3=0.3)", 9),
            ("randomized-response(t=0.9) + laplace(scale=2)", 30),
            ("sampling(sy=0.001,sn=0.001)", 20),
        ] {
            let accountant = accountant(text, owners);
            let charge = release_charge(&accountant, 10, 1e-6).unwrap();
            let end = accountant.largest_epsilon().max(0.1);
            for part in 0..60 {
                let epsilon = end * f64::from(part) / 50.0;
                let truth = accountant.delta(Epsilon::new(epsilon).unwrap()).value().unwrap();
                let priced = charge.delta(epsilon).unwrap();
                assert!(priced >= truth.lower(), "{text} at {epsilon}: {priced} for {truth:?}");
                // In so small crowds the profile has kinks that chords cut off.
                assert!(priced <= 2.0 * truth.upper() + 2e-3, "{text} at {epsilon}: {priced} for {truth:?}");
            }
        }
    }

    #[test]
    fn a_pure_claim_is_charged_by_its_closed_form() {
        let text = "randomized-response(t=1) + laplace(scale=2)";
        let pure = one_aggregator(&text.parse::<Mechanism>().unwrap().channel()).unwrap().upper();
        let charge = release_charge(&accountant(text, 1_000_000), 1000, 1e-8).unwrap();
        assert_eq!(charge, Charge::pure(pure).unwrap());
        // A budget without a delta takes pure charges alone, whatever the crowd hides.
        let local = accountant("randomized-response(t=0.75)", 10_000);
        let charge = release_charge(&local, 1000, 0.0).unwrap();
        assert_eq!(charge, Charge::pure(local.pure_epsilon().unwrap()).unwrap());
        // Where one truth alone reaches an outcome, there is none.
        assert!(release_charge(&accountant("sampling(sy=0.1,sn=0.1)", 50), 1000, 0.0).is_err());
    }
}
