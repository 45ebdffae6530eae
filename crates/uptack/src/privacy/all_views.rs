//! Every view of a channel at once, and the local ones, which need no crowd (`docs/accounting.md`, "What is bounded").

use std::sync::Arc;

use super::accountant::{Accountant, answer_with_release, check_answer, owners_alone, release};
use super::claim::{Guarantee, Target, View};
use super::classes::local_epsilon;
use super::effort::WorkLimit;
use super::one_aggregator::one_aggregator;
use super::views::{cells, marginal};
use crate::certified::enclosure::Enclosure;
use crate::channel::Channel;
use crate::error::Error;
use crate::simulate::Progress;
use crate::threads::joined;

/// Local guarantee of one answer alone, rounded up; none where an output is possible under one truth only.
pub fn answer_epsilon(channel: &Channel, answer: usize) -> Result<Option<f64>, Error> {
    check_answer(channel, answer)?;
    Ok(finite(local_epsilon(&marginal(channel, answer))))
}

/// Local guarantee of an owner's whole cell, rounded up; none where a cell is possible under one truth only.
pub fn linked_epsilon(channel: &Channel) -> Option<f64> {
    finite(local_epsilon(&cells(channel)))
}

/// Every view of a channel at once.
///
/// By who is honest: `linked` holds if nobody is, `one_aggregator` if one aggregator is, `release` if one aggregator (where there
/// is noise) and so many owners are, `owners_alone` if the owners are and no aggregator.
#[derive(Clone, Debug)]
pub struct Views {
    /// Local ε of each answer alone; none where there is no guarantee.
    pub answers: Vec<Option<f64>>,
    /// Local ε of the whole cell; none where there is no guarantee.
    pub linked: Option<f64>,
    /// ε of the published sum if one aggregator is honest, whoever else is not; δ is 0. None without noise.
    pub one_aggregator: Option<Enclosure>,
    /// What is published: all tallies, or with noise the sum and one aggregator's noise.
    pub release: Guarantee,
    /// The published sum if no aggregator's noise can be counted on. None without noise: then it is the release.
    pub owners_alone: Option<Guarantee>,
    /// Each answer of the target together with what is published.
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
        Request { channel, owners, target, limit, progress }.views(None)
    }

    /// All views where the release is known already, by its own accounting.
    pub(crate) fn with_release(channel: &Channel, limit: WorkLimit, release: &Guarantee) -> Result<Self, Error> {
        let (owners, target) = (release.owners(), release.target());
        Request { channel, owners, target, limit, progress: None }.views(Some(*release))
    }

    /// The steps that all views of a channel together may take.
    pub fn work(channel: &Channel, owners: u64, limit: WorkLimit) -> u64 {
        let views = channel.answers().len() + 1 + usize::from(channel.noise().is_some());
        limit.for_owners(owners).saturating_mul(views as u64)
    }
}

/// What all views are asked about.
#[derive(Clone, Copy)]
struct Request<'a> {
    channel: &'a Channel,
    owners: u64,
    target: Target,
    limit: WorkLimit,
    progress: Option<&'a Arc<Progress>>,
}

impl Request<'_> {
    /// All views; that of the release may be known already.
    fn views(self, known: Option<Guarantee>) -> Result<Views, Error> {
        let channel = self.channel;
        let joint = JointViews::new(channel, self.owners)?;
        let alone = channel.noise().map(|_| owners_alone(channel, self.owners)).transpose()?;
        // Each view is a certificate of its own; they are independent of each other.
        let (release, owners_alone, different) = std::thread::scope(|scope| {
            let spawned = |accountant| scope.spawn(move || self.guarantee(accountant));
            let threads: Vec<_> = joint.different().map(|accountant| accountant.map(spawned)).collect();
            let alone = alone.as_ref().map(spawned);
            let release = known.map_or_else(|| release(channel, self.owners).map(|all| self.guarantee(&all)), Ok);
            (release, alone.map(joined), threads.into_iter().map(|thread| thread.map(joined)).collect::<Vec<_>>())
        });
        let answers = 0..channel.answers().len();
        Ok(Views {
            answers: answers.map(|answer| answer_epsilon(channel, answer)).collect::<Result<_, Error>>()?,
            linked: linked_epsilon(channel),
            one_aggregator: one_aggregator(channel),
            release: release?,
            owners_alone,
            answers_with_release: joint.of_all_answers(&different),
        })
    }

    fn guarantee(&self, accountant: &Accountant) -> Guarantee {
        accountant.clone().with_limit(self.limit).watched(self.progress).guarantee(self.target)
    }
}

/// Each answer together with the release. Answers that are alike, as all first answers of pairs are, are accounted for once.
struct JointViews {
    accountants: Vec<Accountant>,
    /// The first answer that is like each.
    first_alike: Vec<usize>,
}

impl JointViews {
    fn new(channel: &Channel, owners: u64) -> Result<Self, Error> {
        let accountant = |answer| answer_with_release(channel, answer, owners);
        let accountants: Vec<Accountant> =
            (0..channel.answers().len()).map(accountant).collect::<Result<_, Error>>()?;
        let first_alike = |(answer, own): (usize, &Accountant)| {
            accountants.iter().position(|other| other.is_alike(own)).unwrap_or(answer)
        };
        Ok(Self { first_alike: accountants.iter().enumerate().map(first_alike).collect(), accountants })
    }

    /// The accountant of each answer; none where an earlier answer is like it.
    fn different(&self) -> impl Iterator<Item = Option<&Accountant>> {
        let answers = self.accountants.iter().zip(&self.first_alike).enumerate();
        answers.map(|(answer, (accountant, first))| (*first == answer).then_some(accountant))
    }

    /// The guarantees of all answers, given those of the different ones.
    fn of_all_answers(&self, different: &[Option<Guarantee>]) -> Vec<Guarantee> {
        let of_answer =
            |(answer, first): (usize, &usize)| Some(different[*first]?.of_view(View::AnswerWithRelease(answer)));
        self.first_alike.iter().enumerate().filter_map(of_answer).collect()
    }
}

fn finite(epsilon: f64) -> Option<f64> {
    epsilon.is_finite().then_some(epsilon)
}
