//! What a release gives away, exactly: guarantees for every view of a channel.
//!
//! A guarantee is always for a *view*, against a *neighbouring relation* (one owner's truth is substituted, the number of
//! owners is public). Local views come straight from the integer laws. The release and the joint views are computed as
//! enclosures over every crowd, with all rounding outward; `docs/accounting.md` derives the formulas and their errors.
//!
//! ```
//! use uptack::privacy::{self, Delta, Epsilon};
//! let channel = "randomized-response(t=0.6)".parse::<uptack::Mechanism>()?.channel();
//! let release = privacy::release(&channel, 3)?;
//! // The worst crowd of three is one of each, not one of the extremes.
//! let claim = release.delta(Epsilon::new(0.0)?);
//! assert_eq!(claim.crowd(), 1);
//! assert!((claim.value().ok_or("a guarantee")?.upper() - 0.104).abs() < 1e-12);
//! // Two friends hide little: ε stays near the local one.
//! let claim = release.epsilon(Delta::new(1e-8)?);
//! assert!(claim.certificate().closed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certify;
mod claim;
mod classes;
pub mod composition;
mod divergence;
mod effort;
mod explain;
mod likelihood;
#[cfg(test)]
mod tests;

pub use crate::certified::enclosure::Bracket;
pub use claim::{Certificate, Certified, Delta, Epsilon, Guarantee, Neighbours, Target, View};
pub use composition::repeated::{ReleaseProfile, Repeated, release_loss};
pub use effort::WorkLimit;
pub use explain::{Guess, statement};
pub use likelihood::Direction;

use std::sync::Arc;

use crate::channel::{Channel, Output};
use crate::error::Error;
use crate::fraction::Fraction;
use crate::simulate::Progress;
use certify::Search;
use classes::{Class, local_epsilon, reduce};
use composition::attained::PairLaw;
use divergence::{Observation, many_classes};
use effort::Work;
use likelihood::Share;

/// More owners than this are not accounted for: the error bounds are stated up to here.
pub const MOST_OWNERS: u64 = 1_000_000_000;

/// Local guarantee of one answer alone, rounded up; none where an output is possible under one truth only.
pub fn answer_epsilon(channel: &Channel, answer: usize) -> Result<Option<f64>, Error> {
    check_answer(channel, answer)?;
    Ok(finite(local_epsilon(&marginal(channel, answer))))
}

/// Local guarantee of an owner's whole cell, rounded up; none where a cell is possible under one truth only.
pub fn linked_epsilon(channel: &Channel) -> Option<f64> {
    finite(local_epsilon(&cells(channel)))
}

/// Accounting for the view of all tallies of `owners` owners.
pub fn release(channel: &Channel, owners: u64) -> Result<Accountant, Error> {
    check_owners(owners)?;
    let garblings: Vec<Vec<Class>> = (0..channel.answers().len()).map(|answer| marginal(channel, answer)).collect();
    // The ratio of a cell histogram depends on its classes' counts alone: showing these is showing all.
    let observation = Observation::new(&[cells(channel)], channel.shows_classes(), &garblings);
    Ok(Accountant { observation, owners, view: View::Release, limit: WorkLimit::default(), progress: None })
}

/// Accounting for the view of the target's answer number `answer` (0 is A) together with all tallies.
pub fn answer_with_release(channel: &Channel, answer: usize, owners: u64) -> Result<Accountant, Error> {
    check_owners(owners)?;
    check_answer(channel, answer)?;
    let groups: Vec<Vec<Class>> = outputs(channel, answer).map(|output| cells_with(channel, answer, output)).collect();
    let mut garblings: Vec<Vec<Class>> = (0..channel.answers().len()).map(|answer| marginal(channel, answer)).collect();
    if channel.shows_classes() {
        garblings.push(cells(channel));
    }
    let observation = Observation::new(&groups, channel.determined(), &garblings);
    Ok(Accountant {
        observation,
        owners,
        view: View::AnswerWithRelease(answer),
        limit: WorkLimit::default(),
        progress: None,
    })
}

/// How many of `owners` may be counted on when only a fraction is honest: the floor of the product, the target among them.
pub fn honest_owners(owners: u64, honest: &Fraction) -> Result<u64, Error> {
    check_owners(owners)?;
    let product = honest.exact() * num_rational::BigRational::from_integer(owners.into());
    let kept: Option<u64> = num_traits::ToPrimitive::to_u64(&product.floor().to_integer());
    match kept {
        Some(kept) if kept >= 1 && kept <= owners => Ok(kept),
        _ => {
            Err(Error::request(format!("a fraction of {owners} owners leaves no honest owner or more than there are"))
                .with_hint("the honest fraction is above 0 and at most 1, and leaves at least the target itself"))
        }
    }
}

/// Every view of a channel at once.
#[derive(Clone, Debug)]
pub struct Views {
    /// Local ε of each answer alone; none where there is no guarantee.
    pub answers: Vec<Option<f64>>,
    /// Local ε of the whole cell; none where there is no guarantee.
    pub linked: Option<f64>,
    /// All tallies.
    pub release: Guarantee,
    /// Each answer of the target together with all tallies.
    pub answers_with_release: Vec<Guarantee>,
}

impl Views {
    /// All views for `owners` owners who toss their coins.
    pub fn of(channel: &Channel, owners: u64, target: Target, limit: WorkLimit) -> Result<Self, Error> {
        Self::of_watched(channel, owners, target, limit, None)
    }

    /// The same, telling `progress` the steps taken: all views together take at most about as many as [`Views::work`] says.
    pub fn of_watched(
        channel: &Channel,
        owners: u64,
        target: Target,
        limit: WorkLimit,
        progress: Option<&Arc<Progress>>,
    ) -> Result<Self, Error> {
        Self::computed(channel, owners, target, limit, progress, None)
    }

    /// All views where the release is known already, by its own accounting.
    pub(crate) fn with_release(channel: &Channel, limit: WorkLimit, release: &Guarantee) -> Result<Self, Error> {
        Self::computed(channel, release.owners(), release.target(), limit, None, Some(*release))
    }

    fn computed(
        channel: &Channel,
        owners: u64,
        target: Target,
        limit: WorkLimit,
        progress: Option<&Arc<Progress>>,
        known: Option<Guarantee>,
    ) -> Result<Self, Error> {
        let count = channel.answers().len();
        let joint: Vec<Accountant> =
            (0..count).map(|answer| answer_with_release(channel, answer, owners)).collect::<Result<_, Error>>()?;
        // Answers that are alike, as all first answers of pairs are, are accounted for once.
        let first_alike = |answer: usize| joint.iter().position(|other| other.observation == joint[answer].observation);
        let alike: Vec<usize> = (0..count).map(|answer| first_alike(answer).unwrap_or(answer)).collect();
        // Each view is a certificate of its own; they are independent of each other.
        let (release, different) = std::thread::scope(|scope| {
            let guarantee = |answer: usize| joint[answer].clone().with_limit(limit).watched(progress).guarantee(target);
            let own = |answer: usize| (alike[answer] == answer).then(|| scope.spawn(move || guarantee(answer)));
            let views: Vec<_> = (0..count).map(own).collect();
            let computed = || {
                release(channel, owners)
                    .map(|accountant| accountant.with_limit(limit).watched(progress).guarantee(target))
            };
            let release = known.map_or_else(computed, Ok);
            let joined = |view: std::thread::ScopedJoinHandle<'_, Guarantee>| {
                view.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            (release, views.into_iter().map(|view| view.map(joined)).collect::<Vec<_>>())
        });
        let of_answer = |answer: usize| Some(different[alike[answer]]?.of_view(View::AnswerWithRelease(answer)));
        let joint: Vec<Guarantee> = (0..count).filter_map(of_answer).collect();
        Ok(Self {
            answers: (0..count).map(|answer| answer_epsilon(channel, answer)).collect::<Result<_, Error>>()?,
            linked: linked_epsilon(channel),
            release: release?,
            answers_with_release: joint,
        })
    }

    /// The steps that all views of a channel together may take.
    pub fn work(channel: &Channel, owners: u64, limit: WorkLimit) -> u64 {
        limit.for_owners(owners).saturating_mul(channel.answers().len() as u64 + 1)
    }
}

/// Answers questions about one view of one channel with a given number of owners.
#[derive(Clone, Debug)]
pub struct Accountant {
    observation: Observation,
    owners: u64,
    view: View,
    limit: WorkLimit,
    progress: Option<Arc<Progress>>,
}

impl Accountant {
    /// The same, spending at most `limit` on the certificate.
    #[must_use]
    pub fn with_limit(mut self, limit: WorkLimit) -> Self {
        self.limit = limit;
        self
    }

    /// The same, telling `progress` the steps taken.
    #[must_use]
    pub fn watched(mut self, progress: Option<&Arc<Progress>>) -> Self {
        self.progress = progress.map(Arc::clone);
        self
    }

    /// Number of owners, the target among them.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The view that is accounted for.
    pub fn view(&self) -> View {
        self.view
    }

    /// The δ that no ε gets below; zero where the linked ε is finite.
    pub fn floor(&self) -> f64 {
        self.search().floor().bracket.upper()
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
        let answer = self.search().delta(epsilon.value());
        self.wrap(Target::Epsilon(epsilon), Some(answer))
    }

    /// The certified ε at `delta`, over every crowd and both directions.
    pub fn epsilon(&self, delta: Delta) -> Guarantee {
        let answer = self.search().epsilon(delta.value());
        self.wrap(Target::Delta(delta), answer)
    }

    /// The exact δ at `epsilon` over the two crowds of one truth (all others *no*, all others *yes*) and both directions: a
    /// lower bound of the truth, and in a large crowd nearly equal to it.
    pub fn delta_of_ends(&self, epsilon: Epsilon) -> Bracket {
        self.search().delta_of_ends(epsilon.value()).bracket
    }

    /// [`Accountant::delta_of_ends`] for whoever only asks whether it is above `delta`: precise near it, cheaper, and with
    /// a few more crowds.
    pub(crate) fn delta_near(&self, epsilon: f64, delta: f64, crowds: &[u64]) -> Bracket {
        self.search().delta_near(epsilon, delta, crowds)
    }

    /// A crowd of both truths, of a few that are looked at, whose δ at `epsilon` is certainly above `delta`.
    pub(crate) fn worse_crowd(&self, epsilon: f64, delta: f64) -> Option<u64> {
        self.search().worse_crowd(epsilon, delta)
    }

    /// The ε at `delta` over the two crowds of one truth; none below the floor.
    pub fn epsilon_of_ends(&self, delta: Delta) -> Option<(f64, f64)> {
        self.search().epsilon_of_ends(delta.value()).map(|answer| (answer.lower, answer.upper))
    }

    /// What the privacy blanket alone certifies at `delta`, for comparison: it holds for every crowd, and is one of the bounds of
    /// which [`Accountant::epsilon`] takes the smallest. None below the floor.
    pub fn blanket_epsilon(&self, delta: Delta) -> Option<f64> {
        self.search().blanket_epsilon(delta.value())
    }

    /// The certified δ from above, for whoever builds on the profile. Any nonnegative ε; an infinite one gives the floor.
    pub fn delta_upper(&self, epsilon: f64) -> f64 {
        self.search().delta(epsilon.max(0.0)).upper
    }

    /// [`Accountant::delta_upper`] at many ε, made to fall with ε as the truth does.
    pub fn profile(&self, epsilons: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..epsilons.len()).collect();
        order.sort_by(|a, b| epsilons[*a].total_cmp(&epsilons[*b]));
        let mut values = vec![1.0; epsilons.len()];
        let mut smallest = 1.0_f64;
        for index in order {
            smallest = smallest.min(self.delta_upper(epsilons[index]));
            values[index] = smallest;
        }
        values
    }

    /// What the crowd of so many *yes* others shows of the target in both directions, from below; several where the tallies are
    /// only known to show several coarser views.
    fn pair_laws(&self, crowd: u64) -> Vec<[PairLaw; 2]> {
        let work = Work::apart();
        let laws = |shares: &&[Share]| many_classes::pair_laws(shares, crowd, self.owners - 1 - crowd, &work);
        self.observation.shown().iter().filter_map(laws).collect()
    }

    fn search(&self) -> Search<'_> {
        Search::new(&self.observation, self.owners, self.limit).watched(self.progress.clone())
    }

    fn wrap(&self, target: Target, answer: Option<certify::Answer>) -> Guarantee {
        Guarantee::new(self.view, self.owners, target, answer, self.search().floor())
    }
}

fn finite(epsilon: f64) -> Option<f64> {
    epsilon.is_finite().then_some(epsilon)
}

fn check_owners(owners: u64) -> Result<(), Error> {
    if (1..=MOST_OWNERS).contains(&owners) {
        return Ok(());
    }
    Err(Error::request(format!("{owners} owners cannot be accounted for"))
        .with_hint(format!("the number of owners is from 1 to {MOST_OWNERS}")))
}

fn check_answer(channel: &Channel, answer: usize) -> Result<(), Error> {
    let count = channel.answers().len();
    if answer < count {
        return Ok(());
    }
    Err(Error::request(format!("there is no answer number {answer}"))
        .with_hint(format!("the channel has {count} answers")))
}

fn cells(channel: &Channel) -> Vec<Class> {
    channel.cells().iter().filter_map(|cell| Class::new(cell.yes().numerator(), cell.no().numerator())).collect()
}

fn outputs(channel: &Channel, answer: usize) -> impl Iterator<Item = Output> + '_ {
    channel.answers()[answer].iter().copied()
}

fn cells_with(channel: &Channel, answer: usize, output: Output) -> Vec<Class> {
    let matching = channel.cells().iter().filter(|cell| cell.outputs()[answer] == output);
    matching.filter_map(|cell| Class::new(cell.yes().numerator(), cell.no().numerator())).collect()
}

/// The law of one answer: its outputs as classes.
fn marginal(channel: &Channel, answer: usize) -> Vec<Class> {
    let class = |output| classes::total(&cells_with(channel, answer, output));
    reduce(outputs(channel, answer).map(class))
}
