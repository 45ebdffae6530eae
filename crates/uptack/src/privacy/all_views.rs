//! Every view of a channel at once, and the local ones, which need no crowd (`docs/accounting.md`, "What is bounded").

use std::sync::Arc;

use super::accountant::{Accountant, answer_with_release, check_answer, release};
use super::claim::{Guarantee, Target, View};
use super::classes::local_epsilon;
use super::effort::WorkLimit;
use super::views::{cells, marginal};
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
        let first_alike = |answer: usize| joint.iter().position(|other| other.is_alike(&joint[answer]));
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

fn finite(epsilon: f64) -> Option<f64> {
    epsilon.is_finite().then_some(epsilon)
}
