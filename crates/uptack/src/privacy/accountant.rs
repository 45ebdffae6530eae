//! Answers questions about one view: the entry to the search over all crowds (`docs/accounting.md`, "All crowds").

use std::sync::Arc;

use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::certify::{CrowdSearch, SearchPrecision, WatchedCrowds};
use super::claim::{CrowdValue, Delta, Epsilon, Guarantee, Target, View};
use super::divergence::many_classes::PairLaw;
use super::likelihood::{Crowd, PerDirection};
use super::views::ReducedView;
use super::work::{WorkBudget, WorkLimit};
use crate::certified::rounding::Enclosure;
use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::progress::Progress;

/// The error bounds are stated for up to this many owners; more are refused.
pub const MOST_OWNERS: u64 = 1_000_000_000;

/// Accounting for the published view of `owners` owners: all tallies, or with noise the sum of the answers `1` and
/// the noise of one honest aggregator.
///
/// ```
/// use uptack::privacy::{self, Delta};
/// let channel = "randomized-response(t=0.999) + laplace(scale=1)".parse::<uptack::Mechanism>()?.channel();
/// let alone = privacy::one_aggregator(&channel).ok_or("noise")?.upper();
/// // The owners' coins hide more than the noise by itself.
/// let crowd = privacy::release(&channel, 50_000)?.epsilon(Delta::new(1e-8)?).value().ok_or("a guarantee")?;
/// assert!(crowd.upper() < 0.9 * alone);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn release(channel: &Channel, owners: u64) -> Result<Accountant> {
    check_owners(owners)?;
    let without_noise = channel.noise().map(|_| ReducedView::owners_alone(channel));
    Ok(Accountant { without_noise, ..Accountant::new(ReducedView::release(channel), owners, View::Release) })
}

/// Accounting for the same view if no aggregator's noise can be counted on. Without noise it is the release.
pub fn owners_alone(channel: &Channel, owners: u64) -> Result<Accountant> {
    check_owners(owners)?;
    Ok(Accountant::new(ReducedView::owners_alone(channel), owners, View::OwnersAlone))
}

/// Accounting for the view of the target's answer number `answer` (0 is A) together with the published counts.
///
/// With noise, the published sum is the target's bit, which the answer reveals, plus terms that do not depend on the target. So
/// only the answer matters, and no other owner hides it: the accountant counts on a single owner.
pub fn answer_with_release(channel: &Channel, answer: usize, owners: u64) -> Result<Accountant> {
    check_owners(owners)?;
    check_answer(channel, answer)?;
    let reduced = ReducedView::answer_with_release(channel, answer);
    let counted_on = if channel.noise().is_some() { 1 } else { owners };
    Ok(Accountant::new(reduced, counted_on, View::AnswerWithRelease(answer)))
}

/// How many of `owners` can be counted on, the target included, when only a fraction is honest: the product, rounded down.
pub fn honest_owners(owners: u64, honest: &Fraction) -> Result<u64> {
    check_owners(owners)?;
    let product = honest.exact() * BigRational::from_integer(owners.into());
    let kept = product.floor().to_integer().to_u64().filter(|kept| (1..=owners).contains(kept));
    kept.ok_or_else(|| {
        Error::request(format!("an honest share of {honest} leaves no honest owner among {owners}"))
            .with_hint("give a larger share: at least the owner who is protected has to be honest")
    })
}

/// Answers questions about one view of one channel with a given number of owners.
#[derive(Clone, Debug)]
pub struct Accountant {
    reduced: ReducedView,
    /// The same view without its noise; `None` if it has none.
    without_noise: Option<ReducedView>,
    owners: u64,
    view: View,
    limit: WorkLimit,
    precision: SearchPrecision,
    progress: Option<Arc<Progress>>,
}

impl Accountant {
    fn new(reduced: ReducedView, owners: u64, view: View) -> Self {
        Self {
            reduced,
            without_noise: None,
            owners,
            view,
            limit: WorkLimit::default(),
            precision: SearchPrecision::Fine,
            progress: None,
        }
    }

    /// Whether another accountant's view has the same classes, as it does for answers of equal law.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.reduced == other.reduced
    }

    /// The view as classes.
    #[cfg(test)]
    pub(super) fn reduced_view(&self) -> &ReducedView {
        &self.reduced
    }

    /// The same, spending at most `limit` on the certificate.
    #[must_use]
    pub fn with_limit(mut self, limit: WorkLimit) -> Self {
        self.limit = limit;
        self
    }

    /// The certified δ at one ε from above, for a price: one of several certificates that share the work allowed and need not be
    /// as close. `work` counts the steps of all of them.
    pub(super) fn delta_for_price(&self, epsilon: f64, work: &Arc<Progress>) -> f64 {
        let (limit, progress) = (self.limit.after(work.done()), Some(Arc::clone(work)));
        Self { limit, progress, precision: SearchPrecision::Rough, ..self.clone() }.delta_upper(epsilon)
    }

    /// The same, reporting the steps taken to `progress`.
    #[must_use]
    pub fn watched(mut self, progress: Option<&Arc<Progress>>) -> Self {
        self.progress = progress.map(Arc::clone);
        self
    }

    /// Number of owners, the target included.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The view that is accounted for.
    pub fn view(&self) -> View {
        self.view
    }

    /// The smallest δ that any ε reaches; zero where the linked ε is finite.
    pub fn floor(&self) -> f64 {
        self.search().floor().upper()
    }

    /// The ε at which δ has reached its floor, rounded up.
    pub(super) fn largest_epsilon(&self) -> f64 {
        self.search().largest_epsilon()
    }

    /// The ε that needs no δ, whatever the crowd, rounded up: that of the noise of an honest aggregator, or the linked one. `None`
    /// where one truth alone reaches an outcome.
    pub(super) fn pure_epsilon(&self) -> Option<f64> {
        (self.floor() == 0.0).then(|| self.largest_epsilon())
    }

    /// Whichever of ε and δ the target leaves open.
    pub fn guarantee(&self, target: Target) -> Guarantee {
        match target {
            Target::Epsilon(epsilon) => self.delta(epsilon),
            Target::Delta(delta) => self.epsilon(delta),
        }
    }

    /// The certified δ at `epsilon`, over every crowd and both directions.
    pub fn delta(&self, epsilon: Epsilon) -> Guarantee {
        let accountant = Self { precision: SearchPrecision::AsEpsilon, ..self.clone() };
        self.wrap(Target::Epsilon(epsilon), Some(accountant.certified_delta(epsilon.value())))
    }

    /// The certified ε at `delta`, over every crowd and both directions.
    pub fn epsilon(&self, delta: Delta) -> Guarantee {
        self.wrap(Target::Delta(delta), self.certified_epsilon(delta.value()))
    }

    /// The exact δ at `epsilon` over the two crowds of one truth (all others *no*, all others *yes*) and both directions: a
    /// lower bound on the worst δ over all crowds, and in a large crowd nearly equal to it.
    pub fn delta_of_ends(&self, epsilon: Epsilon) -> Enclosure {
        self.search().delta_of_ends(epsilon.value()).value
    }

    /// [`Accountant::delta_of_ends`] for a caller who only needs to know whether it is above `delta`: precise near it, cheaper,
    /// and over a few more crowds.
    pub(crate) fn delta_near(&self, epsilon: f64, delta: f64, watched: WatchedCrowds<'_>) -> Enclosure {
        self.search().delta_near(epsilon, delta, watched)
    }

    /// A crowd of both truths whose δ at `epsilon` is certainly above `delta`, if a quick search finds one.
    pub(crate) fn worse_crowd(&self, epsilon: f64, delta: f64) -> Option<u64> {
        self.search().worse_crowd(epsilon, delta)
    }

    /// The ε at `delta` over the two crowds of one truth; none below the floor.
    pub fn epsilon_of_ends(&self, delta: Delta) -> Option<Enclosure> {
        self.search().epsilon_of_ends(delta.value()).map(|found| found.value)
    }

    /// The ε that the privacy blanket alone certifies at `delta`, for comparison: it holds for every crowd, and is one of the
    /// bounds of which [`Accountant::epsilon`] takes the smallest. None below the floor.
    pub fn blanket_epsilon(&self, delta: Delta) -> Option<f64> {
        self.search().blanket_epsilon(delta.value())
    }

    /// The certified δ from above, for callers who build on the profile. Takes any nonnegative ε; an infinite one gives the
    /// floor.
    pub fn delta_upper(&self, epsilon: f64) -> f64 {
        self.certified_delta(epsilon.max(0.0)).upper()
    }

    /// [`Accountant::delta_upper`] at many ε, made non-increasing in ε, as the true δ is.
    pub fn profile(&self, epsilons: &[f64]) -> Vec<f64> {
        let mut values = vec![1.0; epsilons.len()];
        let mut smallest = 1.0_f64;
        for index in ascending_order(epsilons) {
            smallest = smallest.min(self.delta_upper(epsilons[index]));
            values[index] = smallest;
        }
        values
    }

    /// The evidence about the target in the crowd with `yes` yes-owners, in both directions, from below. There are several laws
    /// where the tallies are only known to show several coarser views.
    pub(super) fn pair_laws(&self, yes: u64) -> Vec<PerDirection<PairLaw>> {
        self.reduced.pair_laws(Crowd { yes, no: self.owners - 1 - yes }, &WorkBudget::unlimited())
    }

    /// The ε that the noise of an honest aggregator guarantees by itself; `None` without noise.
    pub(super) fn noise_epsilon(&self) -> Option<f64> {
        self.without_noise.as_ref().map(|_| self.reduced.largest_epsilon())
    }

    /// The same owners if no aggregator's noise can be counted on; `None` without noise.
    pub(super) fn owners_alone(&self) -> Option<Self> {
        let reduced = self.without_noise.clone()?;
        Some(Self { reduced, without_noise: None, view: View::OwnersAlone, ..self.clone() })
    }

    fn search(&self) -> CrowdSearch<'_> {
        self.search_in(&self.reduced)
    }

    /// The search in the same view without its noise, if it has any.
    fn search_without_noise(&self) -> Option<CrowdSearch<'_>> {
        self.without_noise.as_ref().map(|view| self.search_in(view))
    }

    fn search_in<'a>(&self, view: &'a ReducedView) -> CrowdSearch<'a> {
        CrowdSearch::new(view, self.owners, self.limit).with_precision(self.precision).watched(self.progress.clone())
    }

    /// δ over all crowds. Noise gives nothing away, so a δ that is certified without it holds as well. It is computed unless one
    /// crowd shows that it is larger.
    fn certified_delta(&self, epsilon: f64) -> CrowdValue {
        let found = self.search().delta(epsilon);
        let Some(search) = self.search_without_noise() else { return found };
        let upper = found.upper();
        if upper == 0.0 || search.delta_near(epsilon, upper, WatchedCrowds::NONE).lower() > upper {
            return found;
        }
        CrowdValue { value: found.value.at_most(search.delta(epsilon).upper()), ..found }
    }

    /// ε over all crowds, likewise; `None` if δ is below the floor.
    fn certified_epsilon(&self, delta: f64) -> Option<CrowdValue> {
        let found = self.search().epsilon(delta)?;
        let Some(search) = self.search_without_noise() else { return Some(found) };
        let upper = found.upper();
        if upper == 0.0 || search.delta_near(upper, delta, WatchedCrowds::NONE).lower() > delta {
            return Some(found);
        }
        let bound = search.epsilon(delta).map_or(upper, |other| other.upper());
        Some(CrowdValue { value: found.value.at_most(bound), ..found })
    }

    fn wrap(&self, target: Target, found: Option<CrowdValue>) -> Guarantee {
        Guarantee::new(self.view, self.owners, target, found, self.search().floor())
    }
}

/// The indices of the numbers in ascending order.
fn ascending_order(numbers: &[f64]) -> Vec<usize> {
    let mut order = Vec::from_iter(0..numbers.len());
    order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
    order
}

pub(super) fn check_owners(owners: u64) -> Result<()> {
    if (1..=MOST_OWNERS).contains(&owners) {
        return Ok(());
    }
    Err(Error::request(format!("{owners} owners cannot be accounted for"))
        .with_hint(format!("the number of owners is from 1 to {MOST_OWNERS}")))
}

pub(super) fn check_answer(channel: &Channel, answer: usize) -> Result<()> {
    let count = channel.answers().len();
    if answer < count {
        return Ok(());
    }
    Err(Error::request(format!("there is no answer number {answer}"))
        .with_hint(format!("the channel has {count} answers")))
}
