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
        let answers = 0..channel.answers().len();
        let joint = |answer| answer_with_release(channel, answer, owners);
        let joint: Vec<Accountant> = answers.clone().map(joint).collect::<Result<_, Error>>()?;
        // Answers that are alike, as all first answers of pairs are, are accounted for once.
        let first_alike = |answer: usize| joint.iter().position(|other| other.is_alike(&joint[answer]));
        let alike: Vec<usize> = answers.clone().map(|answer| first_alike(answer).unwrap_or(answer)).collect();
        let alone = channel.noise().map(|_| owners_alone(channel, owners)).transpose()?;
        let guarantee =
            |accountant: &Accountant| accountant.clone().with_limit(limit).watched(progress).guarantee(target);
        // Each view is a certificate of its own; they are independent of each other.
        let (release, owners_alone, different) = std::thread::scope(|scope| {
            let different = |answer: usize| (alike[answer] == answer).then_some(&joint[answer]);
            let spawned = |accountant| scope.spawn(move || guarantee(accountant));
            let threads: Vec<_> = answers.clone().map(|answer| different(answer).map(spawned)).collect();
            let alone = alone.as_ref().map(spawned);
            let release = known.map_or_else(|| release(channel, owners).map(|all| guarantee(&all)), Ok);
            (release, alone.map(joined), threads.into_iter().map(|thread| thread.map(joined)).collect::<Vec<_>>())
        });
        let of_answer = |answer: usize| Some(different[alike[answer]]?.of_view(View::AnswerWithRelease(answer)));
        Ok(Self {
            answers: answers.clone().map(|answer| answer_epsilon(channel, answer)).collect::<Result<_, Error>>()?,
            linked: linked_epsilon(channel),
            one_aggregator: one_aggregator(channel),
            release: release?,
            owners_alone,
            answers_with_release: answers.filter_map(of_answer).collect(),
        })
    }

    /// The steps that all views of a channel together may take.
    pub fn work(channel: &Channel, owners: u64, limit: WorkLimit) -> u64 {
        let views = channel.answers().len() + 1 + usize::from(channel.noise().is_some());
        limit.for_owners(owners).saturating_mul(views as u64)
    }
}

fn finite(epsilon: f64) -> Option<f64> {
    epsilon.is_finite().then_some(epsilon)
}

/// What a thread found; its panic goes on here.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
