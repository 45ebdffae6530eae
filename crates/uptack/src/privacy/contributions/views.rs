//! Every view of contributions at once, by who is honest (`docs/contributions.md`).

use super::closed_forms::{linked_epsilon, one_aggregator};
use super::owners_alone::{OwnersAlone, pure_delta, pure_epsilon};
use crate::certified::rounding::Enclosure;
use crate::contribution::Contributions;
use crate::error::{Error, Result};
use crate::parallel;
use crate::privacy::composition::repeated::{Repeated, cap, composed_upper};
use crate::privacy::composition::{Profile, add_local};
use crate::privacy::one_aggregator::together;
use crate::privacy::{Accountant, Guarantee, Target, View, Views, WorkLimit, release};

/// Every view of contributions, of everything that is published together.
///
/// By who is honest: `linked` holds if nobody is, `one_aggregator` if one aggregator is, `release` if one aggregator (where there
/// is noise) and that many owners are, `owners_alone` if the owners are and no aggregator is. An owner sends one report, so whoever
/// sees it learns what `linked` bounds, with or without the published counts.
///
/// ```
/// use uptack::contribution::Contributions;
/// use uptack::privacy::{Delta, Target, WorkLimit, contributions::ContributionViews};
/// let asked: Contributions = "choice(k=12,r=0.0012) + laplace(scale=2)".parse()?;
/// let target = Target::Delta(Delta::new(1e-8)?);
/// let views = ContributionViews::of(&asked, 50_186, target, WorkLimit::default())?;
/// // The noise guarantees less than 1 by itself, and the owners' coins do so as well.
/// let upper = |claim: Option<uptack::privacy::Enclosure>| claim.map(|ends| ends.upper());
/// assert!(upper(views.one_aggregator).is_some_and(|epsilon| epsilon < 1.0));
/// assert!(upper(views.owners_alone.and_then(|claim| claim.value())).is_some_and(|epsilon| epsilon < 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ContributionViews {
    /// Local ε of all reports of one owner; `None` if there is no guarantee.
    pub linked: Option<f64>,
    /// ε of the published counts if one aggregator is honest, even if nobody else is; δ is 0. `None` without noise.
    pub one_aggregator: Option<Enclosure>,
    /// The published counts: all tallies, or with noise the sums and one aggregator's noise.
    pub release: Guarantee,
    /// The published counts if no aggregator's noise can be counted on. `None` without noise: then it is the release.
    pub owners_alone: Option<Guarantee>,
    contributions: Contributions,
    limit: WorkLimit,
}

impl ContributionViews {
    /// All views for `owners` owners who follow the mechanism.
    pub fn of(contributions: &Contributions, owners: u64, target: Target, limit: WorkLimit) -> Result<Self> {
        let published = Published::of(contributions, owners, limit)?;
        let owners_alone = published.owners_alone(contributions, target);
        Ok(Self {
            linked: linked_epsilon(contributions),
            one_aggregator: one_aggregator(contributions),
            release: published.release(contributions, target, owners_alone)?,
            owners_alone,
            contributions: contributions.clone(),
            limit,
        })
    }

    /// What the views are of.
    pub fn contributions(&self) -> &Contributions {
        &self.contributions
    }

    /// The work that each of them was allowed.
    pub(super) fn limit(&self) -> WorkLimit {
        self.limit
    }

    /// The guarantees if an owner answers such a card `times` times, with fresh coins each time, and the mechanism was fixed
    /// before the first. Pure epsilons add up; the releases are composed by their profile.
    ///
    /// Among three or more possibilities the lower end of the releases together is that of a single one.
    pub fn repeated(&self, times: u64) -> Result<RepeatedContributions> {
        if times == 0 {
            return Err(Error::request("the number of repetitions must be at least 1"));
        }
        let linked = self.linked.map(|once| add_local(once, times)).transpose()?;
        let one_aggregator = self.one_aggregator.map(|once| together(once, times));
        let pure = linked.into_iter().chain(one_aggregator.map(|all| all.upper())).reduce(f64::min);
        let composed = self.published()?.releases_together(self, times)?;
        let release = composed.map(|value| cap(value, self.release.target(), pure));
        Ok(RepeatedContributions { times, linked, one_aggregator, release })
    }

    /// The profile of the published counts.
    pub(super) fn published(&self) -> Result<Published> {
        Published::of(&self.contributions, self.release.owners(), self.limit)
    }

    /// The same views of a yes/no question.
    fn of_yes_no(&self) -> Views {
        Views {
            answers: Vec::new(),
            linked: self.linked,
            one_aggregator: self.one_aggregator,
            release: self.release,
            owners_alone: self.owners_alone,
            answers_with_release: Vec::new(),
        }
    }
}

/// The guarantees of all reports and of all releases together, if one owner answers the same card many times.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedContributions {
    /// How often the owner answers.
    pub times: u64,
    /// Local ε of all reports of one owner to all of them.
    pub linked: Option<f64>,
    /// ε of everything that is published if one aggregator and nobody else is honest; δ is 0. `None` without noise.
    pub one_aggregator: Option<Enclosure>,
    /// Whichever of ε and δ the target leaves open, of all releases together; `None` if δ is below the floor.
    pub release: Option<Enclosure>,
}

/// Accounting for what is published.
#[derive(Clone, Debug)]
pub(super) enum Published {
    /// A single count is a yes/no question.
    YesNo(Box<Accountant>),
    /// Several counts.
    Counts {
        alone: Box<OwnersAlone>,
        /// ε by the noise of one honest aggregator; `None` without noise.
        noise: Option<f64>,
    },
}

impl Published {
    fn of(contributions: &Contributions, owners: u64, limit: WorkLimit) -> Result<Self> {
        if let Some(mechanism) = contributions.yes_no() {
            let accountant = release(&mechanism.channel(), owners)?;
            return Ok(Self::YesNo(Box::new(accountant.with_limit(limit))));
        }
        let alone = Box::new(OwnersAlone::new(contributions, owners)?.with_limit(limit));
        Ok(Self::Counts { alone, noise: one_aggregator(contributions).map(|claim| claim.upper()) })
    }

    /// The release; with noise, the guarantee of the owners' coins alone is known already.
    fn release(
        &self,
        contributions: &Contributions,
        target: Target,
        owners_alone: Option<Guarantee>,
    ) -> Result<Guarantee> {
        match self {
            Self::YesNo(accountant) => Ok(accountant.guarantee(target)),
            Self::Counts { alone, noise: None } => Ok(alone.guarantee(target)),
            Self::Counts { alone, noise: Some(noise) } => {
                let by_owners = owners_alone.unwrap_or_else(|| alone.guarantee(target));
                let upper = least_upper(&by_owners, *noise, target);
                let lower = lower_end_of_one_count(contributions, alone.owners(), target)?;
                let ends = Enclosure::new(lower.min(upper), upper);
                let floor = Enclosure::ZERO;
                Ok(Guarantee::of_contributions(View::Release, alone.owners(), target, Some(ends), floor))
            }
        }
    }

    fn owners_alone(&self, contributions: &Contributions, target: Target) -> Option<Guarantee> {
        contributions.noise()?;
        match self {
            Self::YesNo(accountant) => accountant.owners_alone().map(|alone| alone.guarantee(target)),
            Self::Counts { alone, .. } => Some(alone.guarantee(target)),
        }
    }

    /// Whichever of ε and δ the target leaves open, for `times` releases.
    fn releases_together(&self, once: &ContributionViews, times: u64) -> Result<Option<Enclosure>> {
        let (target, claim) = (once.release.target(), once.release.value());
        if let Self::YesNo(accountant) = self {
            return Ok(Repeated::of(&once.of_yes_no(), accountant, target, times)?.release);
        }
        let Some(ends) = claim.filter(|_| times > 1) else { return Ok(claim) };
        if matches!(target, Target::Delta(delta) if delta.value() >= 1.0) {
            return Ok(Some(Enclosure::ZERO));
        }
        let upper = composed_upper(self, target, times)?;
        // Everything that is published reveals at least as much as a part of it.
        Ok(upper.map(|upper| Enclosure::new(ends.lower().min(upper), upper)))
    }
}

/// The certified δ of the release from above at every ε: noise gives nothing away, so that either bound holds.
impl Profile for Published {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        match self {
            Self::YesNo(accountant) => accountant.delta_upper(epsilon),
            Self::Counts { alone, noise } => {
                let by_noise = noise.map_or(1.0, |noise| pure_delta(noise, epsilon));
                if by_noise == 0.0 { 0.0 } else { by_noise.min(alone.delta_upper(epsilon)) }
            }
        }
    }

    fn deltas_upper(&self, epsilons: &[f64]) -> Vec<f64> {
        parallel::map(parallel::cores(), epsilons.len(), |index| self.delta_upper(epsilons[index]))
    }

    fn floor(&self) -> f64 {
        match self {
            Self::YesNo(accountant) => accountant.floor(),
            Self::Counts { alone, noise: None } => Profile::floor(alone.as_ref()),
            Self::Counts { .. } => 0.0,
        }
    }
}

/// The smaller of what the owners' coins and what the noise guarantees.
fn least_upper(alone: &Guarantee, noise: f64, target: Target) -> f64 {
    let by_noise = match target {
        Target::Epsilon(epsilon) => pure_delta(noise, epsilon.value()),
        Target::Delta(delta) => pure_epsilon(noise, delta.value()),
    };
    alone.value().map_or(by_noise, |value| value.upper().min(by_noise))
}

/// A lower end of the release with noise: that of a single count in a crowd of one truth. The laws of a count are exact for one
/// contribution only, so that there is none for several.
fn lower_end_of_one_count(contributions: &Contributions, owners: u64, target: Target) -> Result<f64> {
    if contributions.most() > 1 {
        return Ok(0.0);
    }
    let count = release(&contributions.count_channel(), owners)?;
    Ok(match target {
        Target::Epsilon(epsilon) => count.delta_of_ends(epsilon).lower(),
        Target::Delta(delta) => count.epsilon_of_ends(delta).map_or(0.0, |ends| ends.lower()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Delta, Epsilon};

    fn views(text: &str, owners: u64) -> ContributionViews {
        views_at(text, owners, Target::Delta(Delta::new(1e-8).unwrap()))
    }

    fn views_at(text: &str, owners: u64, target: Target) -> ContributionViews {
        ContributionViews::of(&text.parse().unwrap(), owners, target, WorkLimit::default()).unwrap()
    }

    fn upper(claim: &Guarantee) -> f64 {
        claim.value().unwrap().upper()
    }

    /// Two routes to the same card have the same numbers.
    #[test]
    fn a_single_count_has_the_numbers_of_the_yes_no_question() {
        for text in [
            "choice(k=2,f=1,r=0.001)",
            "choice(k=2,f=1,r=0.01) + laplace(scale=2)",
            "contributions(counts=1,most=1,r=0.01) + laplace(scale=1)",
        ] {
            let contributions: Contributions = text.parse().unwrap();
            let found = views(text, 3000);
            let channel = contributions.yes_no().unwrap().channel();
            let (target, limit) = (found.release.target(), WorkLimit::default());
            let expected = Views::of(&channel, 3000, target, limit).unwrap();
            assert_eq!((found.linked, found.one_aggregator), (expected.linked, expected.one_aggregator), "{text}");
            assert_eq!((found.release, found.owners_alone), (expected.release, expected.owners_alone), "{text}");
            let repeated = Repeated::of(&expected, &release(&channel, 3000).unwrap(), target, 3).unwrap();
            let found = found.repeated(3).unwrap();
            assert_eq!((found.linked, found.release), (repeated.linked, repeated.release), "{text}");
            assert_eq!(found.one_aggregator, repeated.one_aggregator, "{text}");
        }
    }

    #[test]
    fn with_noise_the_release_has_the_smaller_of_both_guarantees() {
        for (text, owners) in [
            ("choice(k=12,r=0.0003) + laplace(scale=2)", 50_186),
            ("choice(k=12,r=0.0003) + laplace(scale=200)", 50_186),
            ("choice(k=3,r=0) + laplace(scale=2)", 100),
            ("contributions(counts=5,most=1,r=0.01) + laplace(scale=1)", 20_000),
            ("contributions(counts=5,most=3,r=0.01) + laplace(scale=10)", 20_000),
        ] {
            let found = views(text, owners);
            let (noise, alone) = (found.one_aggregator.unwrap(), found.owners_alone.unwrap());
            let expected = alone.value().map_or(noise.upper(), |alone| alone.upper().min(noise.upper()));
            assert_eq!(upper(&found.release), expected, "{text}");
            assert!(found.linked.is_none_or(|linked| expected <= linked), "{text}");
            let lower = found.release.value().unwrap().lower();
            assert!(lower <= expected && (found.contributions.most() > 1 || lower > 0.0), "{text}: {lower}");
            assert_eq!((found.release.view(), alone.view()), (View::Release, View::OwnersAlone));
        }
    }

    #[test]
    fn without_coins_or_noise_there_is_no_guarantee() {
        let found = views("choice(k=5,f=0.25,r=0)", 1000);
        assert_eq!((found.linked, found.release.value(), found.release.crowd()), (None, None, None));
        assert!((found.release.floor() - 0.25).abs() < 1e-12 && found.release.floor() >= 0.25);
        assert_eq!(found.repeated(4).unwrap().release, None);
        let allowed = views_at("choice(k=5,f=0.25,r=0)", 1000, Target::Delta(Delta::new(0.3).unwrap()));
        assert_eq!(upper(&allowed.release), 0.0);
        let several = views("contributions(counts=9,most=2,r=0)", 1000);
        assert_eq!((several.release.value(), several.release.floor()), (None, 1.0));
        // Silence alone reveals nothing, and neither do answers that do not depend on the truth.
        assert_eq!(upper(&views("choice(k=5,f=0,r=0)", 10).release), 0.0);
        assert_eq!(upper(&views("choice(k=4,f=1,r=0.25)", 10).release), 0.0);
    }

    #[test]
    fn several_contributions_have_the_linked_guarantee() {
        let found = views("contributions(counts=20,most=3,r=0.01)", 5000);
        assert_eq!(Some(upper(&found.release)), found.linked);
        assert_eq!(found.release.value().unwrap().lower(), 0.0);
        let more =
            views_at("contributions(counts=20,most=3,r=0.01)", 5000, Target::Epsilon(Epsilon::new(40.0).unwrap()));
        assert_eq!(upper(&more.release), 0.0);
    }

    #[test]
    fn repetitions_cost_more_and_never_more_than_the_sum() {
        let found = views("choice(k=12,f=1,r=0.0012)", 50_186);
        let (once, often) = (upper(&found.release), found.repeated(16).unwrap());
        let release = often.release.unwrap();
        assert!(release.upper() > 3.0 * once && release.upper() < 6.0 * once, "{release:?}");
        assert_eq!(release.lower(), found.release.value().unwrap().lower());
        assert_eq!(found.repeated(1).unwrap().release, found.release.value());
        assert!((often.linked.unwrap() / found.linked.unwrap() - 16.0).abs() < 1e-9);
        assert!(found.repeated(0).is_err());
        let noisy = views("choice(k=12,r=0) + laplace(scale=4)", 100).repeated(6).unwrap();
        let release = noisy.release.unwrap().upper();
        assert!(noisy.one_aggregator.unwrap().upper() == 3.0 && (2.99..=3.0).contains(&release), "{noisy:?}");
    }

    #[test]
    fn both_targets_agree() {
        let text = "choice(k=4,f=0.8,r=0.002)";
        let epsilon = upper(&views(text, 20_000).release);
        let found = views_at(text, 20_000, Target::Epsilon(Epsilon::new(epsilon).unwrap()));
        let delta = found.release.value().unwrap();
        assert!(delta.upper() <= 1e-8 * (1.0 + 1e-6) && delta.lower() > 0.99e-8, "{delta:?}");
    }
}
