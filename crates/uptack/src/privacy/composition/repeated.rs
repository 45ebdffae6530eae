//! One owner who answers the same query many times, with fresh coins each time (`docs/composition.md`, "What is claimed, and when
//! it holds").

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::attained::Attained;
use super::{Accuracy, Composition, FixedInAdvance, LossDistribution, Profile, add_local};
use crate::certified::rounding::Enclosure;
use crate::error::{Error, Result};
use crate::parallel;
use crate::privacy::divergence::many_classes::PairLaw;
use crate::privacy::likelihood::PerDirection;
use crate::privacy::one_aggregator;
use crate::privacy::{Accountant, Delta, Guarantee, Target, Views};

/// The guarantees of all releases together, and of all answers of an owner together.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// How often the owner answers.
    pub times: u64,
    /// Local ε of each answer, all repetitions seen.
    pub answers: Vec<Option<f64>>,
    /// Local ε of all cells.
    pub linked: Option<f64>,
    /// ε of all published sums if one aggregator and nobody else is honest; δ is 0. `None` without noise.
    pub one_aggregator: Option<Enclosure>,
    /// Whichever of ε and δ the target leaves open, of all releases together; `None` if δ is below the floor.
    pub release: Option<Enclosure>,
}

/// Enough that ε is off by less than one part in a thousand; each cell costs a certificate.
const CELLS_PER_DEVIATION: u32 = 8;

impl Repeated {
    /// Composes `times` answers to the query that `views` and `accountant` are about.
    ///
    /// It holds if every answer is drawn with coins of its own, and the mechanism was fixed before the first.
    pub fn of(views: &Views, accountant: &Accountant, target: Target, times: u64) -> Result<Self> {
        Self::with_profile(views, &ReleaseProfile::new(accountant), target, times)
    }

    /// The same from a profile that several compositions share, so that no certificate is computed twice.
    pub fn with_profile(views: &Views, profile: &ReleaseProfile<'_>, target: Target, times: u64) -> Result<Self> {
        if times == 0 {
            return Err(Error::request("the number of repetitions must be at least 1"));
        }
        let add = |epsilon: &Option<f64>| epsilon.map(|epsilon| add_local(epsilon, times)).transpose();
        let answers = views.answers.iter().map(add).collect::<Result<_, _>>()?;
        let linked = add(&views.linked)?;
        let one_aggregator = views.one_aggregator.map(|once| one_aggregator::together(once, times));
        let pure = linked.into_iter().chain(one_aggregator.map(|all| all.upper())).reduce(f64::min);
        let composed = releases_together(&views.release, profile, target, times)?;
        let release = composed.map(|value| cap(value, target, pure));
        Ok(Self { times, answers, linked, one_aggregator, release })
    }
}

/// A measure on privacy losses that dominates one release, sharp for `repetitions` of it down to `smallest_delta`: what
/// compositions are made of, and what a budget is charged with.
pub fn release_loss(accountant: &Accountant, repetitions: u64, smallest_delta: f64) -> Result<LossDistribution> {
    ReleaseProfile::new(accountant).loss(repetitions, smallest_delta)
}

/// The certified profile of a release, from above; it caches its values.
#[derive(Debug)]
pub struct ReleaseProfile<'a> {
    accountant: &'a Accountant,
    known: RefCell<BTreeMap<u64, f64>>,
}

impl<'a> ReleaseProfile<'a> {
    /// The profile of the release that `accountant` is about.
    pub fn new(accountant: &'a Accountant) -> Self {
        Self { accountant, known: RefCell::new(BTreeMap::new()) }
    }

    /// An ε that bounds `times` releases together at `delta`: the upper end that [`Repeated`] has before it is capped by the
    /// linked ε, without the cost of the lower end. `None` if δ is below the floor.
    pub fn epsilon_upper(&self, times: u64, delta: Delta) -> Result<Option<f64>> {
        let composition = composition_of(self, times, delta.value())?;
        let noise = self.accountant.noise_epsilon();
        let pure = noise.map_or(f64::INFINITY, |once| one_aggregator::together_upper(once, times));
        Ok(composition.epsilon(delta.value())?.map(|bounds| bounds.upper().min(pure)))
    }

    /// Evaluates the profile at all ε that it was not asked about before.
    fn learn(&self, epsilons: &[f64]) {
        let mut known = self.known.borrow_mut();
        let unknown: Vec<f64> =
            epsilons.iter().copied().filter(|epsilon| !known.contains_key(&epsilon.to_bits())).collect();
        let found =
            parallel::map(parallel::cores(), unknown.len(), |index| self.accountant.delta_upper(unknown[index]));
        known.extend(unknown.iter().map(|epsilon| epsilon.to_bits()).zip(found));
    }

    fn loss(&self, repetitions: u64, smallest_delta: f64) -> Result<LossDistribution> {
        loss_of(self, repetitions, smallest_delta)
    }
}

fn loss_of(profile: &impl Profile, repetitions: u64, smallest_delta: f64) -> Result<LossDistribution> {
    let accuracy = Accuracy::for_repetitions(repetitions, smallest_delta).cells_per_deviation(CELLS_PER_DEVIATION);
    LossDistribution::from_profile(profile, accuracy)
}

fn composition_of(profile: &impl Profile, times: u64, smallest_delta: f64) -> Result<Composition> {
    Ok(Composition::new(FixedInAdvance::repeated(loss_of(profile, times, smallest_delta)?, times)?))
}

impl Profile for ReleaseProfile<'_> {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        let known = self.known.borrow().get(&epsilon.to_bits()).copied();
        known.unwrap_or_else(|| {
            let delta = self.accountant.delta_upper(epsilon);
            self.known.borrow_mut().insert(epsilon.to_bits(), delta);
            delta
        })
    }

    fn deltas_upper(&self, epsilons: &[f64]) -> Vec<f64> {
        self.learn(epsilons);
        let known = self.known.borrow();
        epsilons.iter().map(|epsilon| known[&epsilon.to_bits()]).collect()
    }

    fn floor(&self) -> f64 {
        self.accountant.floor()
    }
}

/// A δ of at least this is 1 up to rounding.
const NEARLY_CERTAIN: f64 = 1.0 - 1e-12;
/// A composed δ at a given ε is sharp down to this.
const SMALLEST_DELTA: f64 = 1e-12;

/// Whichever of ε and δ the target leaves open, for `times` releases that each have the guarantee `once`.
fn releases_together(
    once: &Guarantee,
    profile: &ReleaseProfile<'_>,
    target: Target,
    times: u64,
) -> Result<Option<Enclosure>> {
    // If one release has no guarantee at this δ, several have none.
    let has_none = matches!(target, Target::Delta(_)) && once.value().is_none();
    if times == 1 || has_none {
        return Ok(once.value());
    }
    // If one release gives everything away, so do several.
    if let (Target::Epsilon(_), Some(once)) = (target, once.value())
        && once.upper() >= 1.0
        && once.lower() >= NEARLY_CERTAIN
    {
        return Ok(Some(once));
    }
    if matches!(target, Target::Delta(delta) if delta.value() >= 1.0) {
        return Ok(Some(Enclosure::ZERO));
    }
    let upper = composed_upper(profile, target, times)?;
    Ok(upper.map(|upper| {
        let lower = attained_value(&attained(profile.accountant, once.crowd().unwrap_or(0), times), target, upper);
        Enclosure::new(lower.min(upper), upper)
    }))
}

/// The upper end of a composition; `None` if δ is below the floor.
pub(in crate::privacy) fn composed_upper(profile: &impl Profile, target: Target, times: u64) -> Result<Option<f64>> {
    let smallest = match target {
        Target::Delta(delta) => delta.value(),
        Target::Epsilon(_) => SMALLEST_DELTA,
    };
    let above = composition_of(profile, times, smallest)?;
    let composed = match target {
        Target::Delta(delta) => above.epsilon(delta.value())?,
        Target::Epsilon(epsilon) => Some(above.delta(epsilon.value())?),
    };
    Ok(composed.map(|composed| composed.upper()))
}

/// The largest value of the histories. For an ε they are compared a little below its upper end, and the worst one is solved.
fn attained_value(histories: &[Attained], target: Target, upper: f64) -> f64 {
    match target {
        Target::Epsilon(epsilon) => worst_history(histories, epsilon.value()).map_or(0.0, |(_, delta)| delta),
        Target::Delta(delta) => {
            let worst = worst_history(histories, 0.97 * upper);
            worst.map_or(0.0, |(history, _)| history.epsilon(delta.value(), upper))
        }
    }
}

/// The history with the largest δ at this ε, and that δ.
fn worst_history(histories: &[Attained], epsilon: f64) -> Option<(&Attained, f64)> {
    let deltas = histories.iter().map(|history| (history, history.delta(epsilon)));
    deltas.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Pairs of neighbouring histories: the crowd is the same one in every query, and the target is *yes* in the first and *no* in
/// the second history in all, none or half of the queries. The composition reveals at least as much as any of them.
fn attained(accountant: &Accountant, worst_crowd: u64, times: u64) -> Vec<Attained> {
    let mut crowds = vec![worst_crowd, 0, accountant.owners() - 1];
    crowds.sort_unstable();
    crowds.dedup();
    let pairs = crowds.into_iter().flat_map(|crowd| accountant.pair_laws(crowd));
    pairs.flat_map(|pair| histories(&pair, times)).collect()
}

/// The pairs of histories in one crowd.
fn histories(PerDirection { yes_over_no, no_over_yes }: &PerDirection<PairLaw>, times: u64) -> Vec<Attained> {
    let half = times / 2;
    let pairs = [
        Attained::new(&[(yes_over_no, times)]),
        Attained::new(&[(no_over_yes, times)]),
        Attained::new(&[(yes_over_no, times - half), (no_over_yes, half)]),
    ];
    pairs.into_iter().flatten().collect()
}

/// All releases together say no more than all cells do, and no more than all sums of bits and noise do: ε is never above what
/// these guarantee with a δ of 0.
pub(in crate::privacy) fn cap(value: Enclosure, target: Target, pure: Option<f64>) -> Enclosure {
    match (target, pure) {
        (Target::Delta(_), Some(pure)) if pure < value.upper() => Enclosure::new(value.lower().min(pure), pure),
        (Target::Epsilon(epsilon), Some(pure)) if epsilon.value() >= pure => Enclosure::new(0.0, 0.0),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use crate::privacy::{WorkLimit, release};

    fn repeated(text: &str, owners: u64, times: u64) -> (Views, Repeated) {
        let channel = text.parse::<Mechanism>().unwrap().channel();
        let target = Target::Delta(Delta::new(1e-8).unwrap());
        let views = Views::of(&channel, owners, target, WorkLimit::default()).unwrap();
        let accountant = release(&channel, owners).unwrap();
        let repeated = Repeated::of(&views, &accountant, target, times).unwrap();
        (views, repeated)
    }

    #[test]
    fn grows_like_a_root_in_a_crowd_and_never_beyond_the_sum() {
        let (views, once) = repeated("normal-form(f=1,r=0.001)", 50_000, 1);
        assert_eq!(once.release, views.release.value());
        let (_, often) = repeated("normal-form(f=1,r=0.001)", 50_000, 16);
        let (one, many) = (once.release.unwrap().upper(), often.release.unwrap());
        assert!(many.upper() > 3.0 * one && many.upper() < 6.0 * one, "{many:?}");
        assert!(many.lower() <= many.upper() && many.lower() > 0.98 * many.upper(), "{many:?}");
        assert!((often.linked.unwrap() / once.linked.unwrap() - 16.0).abs() < 1e-9);
    }

    #[test]
    fn where_there_is_no_guarantee_repeating_gives_none() {
        let (_, often) = repeated("sampling(sy=0.05,sn=0.05)", 50_000, 4);
        assert_eq!((often.release, often.linked), (None, None));
    }

    #[test]
    fn two_owners_hide_next_to_nothing() {
        let (_, often) = repeated("randomized-response(t=0.6)", 2, 3);
        let release = often.release.unwrap();
        assert!(release.upper() <= often.linked.unwrap());
    }
}
