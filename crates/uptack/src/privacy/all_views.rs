//! Every view of a channel at once, and the local ones, which need no crowd (`docs/accounting.md`, "What is bounded").

use std::iter;
use std::sync::Arc;

use super::accountant::{Accountant, answer_with_release, check_answer, release};
use super::claim::{Guarantee, Target, View};
use super::classes::local_epsilon;
use super::one_aggregator::one_aggregator;
use super::views::{cells, marginal};
use super::work::WorkLimit;
use crate::certified::rounding::Enclosure;
use crate::channel::{Cell, Channel};
use crate::error::Result;
use crate::parallel::joined;
use crate::progress::Progress;

/// Local guarantee of one answer alone, rounded up; `None` if an output is possible under one truth only.
pub fn answer_epsilon(channel: &Channel, answer: usize) -> Result<Option<f64>> {
    check_answer(channel, answer)?;
    Ok(finite(local_epsilon(&marginal(channel, answer))))
}

/// Local guarantee of an owner's whole cell, rounded up; `None` if a cell is possible under one truth only.
pub fn linked_epsilon(channel: &Channel) -> Option<f64> {
    finite(local_epsilon(&cells(channel)))
}

/// Every view of a channel at once.
///
/// By who is honest: `linked` holds if nobody is, `one_aggregator` if one aggregator is, `release` if one aggregator (where there
/// is noise) and that many owners are, `owners_alone` if the owners are and no aggregator is.
#[derive(Clone, Debug)]
pub struct Views {
    /// Local ε of each answer alone; `None` if there is no guarantee.
    pub answers: Vec<Option<f64>>,
    /// Local ε of the whole cell; `None` if there is no guarantee.
    pub linked: Option<f64>,
    /// ε of the published sum if one aggregator is honest, even if nobody else is; δ is 0. `None` without noise.
    pub one_aggregator: Option<Enclosure>,
    /// The published counts: all tallies, or with noise the sum and one aggregator's noise.
    pub release: Guarantee,
    /// The published sum if no aggregator's noise can be counted on. `None` without noise: then it is the release.
    pub owners_alone: Option<Guarantee>,
    /// Each answer of the target together with the published counts.
    pub answers_with_release: Vec<Guarantee>,
}

impl Views {
    /// All views for `owners` owners who follow the mechanism.
    pub fn of(channel: &Channel, owners: u64, target: Target, limit: WorkLimit) -> Result<Self> {
        Self::of_watched(channel, owners, target, limit, None)
    }

    /// The same, reporting the steps taken to `progress`: all views together take at most about [`Views::work`] steps.
    pub fn of_watched(
        channel: &Channel,
        owners: u64,
        target: Target,
        limit: WorkLimit,
        progress: Option<&Arc<Progress>>,
    ) -> Result<Self> {
        ViewsRequest { channel, owners, target, limit, progress }.views(None)
    }

    /// All views, given the guarantee of the release.
    pub(crate) fn with_release(channel: &Channel, limit: WorkLimit, release: &Guarantee) -> Result<Self> {
        ViewsRequest { channel, owners: release.owners(), target: release.target(), limit, progress: None }
            .views(Some(*release))
    }

    /// The steps that all views of a channel together may take.
    pub fn work(channel: &Channel, owners: u64, limit: WorkLimit) -> u64 {
        let views = channel.answers().len() + 1 + usize::from(channel.noise().is_some());
        limit.for_owners(owners).saturating_mul(views as u64)
    }
}

/// The request for all views.
#[derive(Clone, Copy)]
struct ViewsRequest<'a> {
    channel: &'a Channel,
    owners: u64,
    target: Target,
    limit: WorkLimit,
    progress: Option<&'a Arc<Progress>>,
}

impl ViewsRequest<'_> {
    /// All views; the guarantee of the release may be known already.
    fn views(self, known: Option<Guarantee>) -> Result<Views> {
        let channel = self.channel;
        let accountants = Accountants::new(channel, self.owners)?;
        let certified = self.certified(&accountants, known);
        let answers = 0..channel.answers().len();
        Ok(Views {
            answers: answers.map(|answer| answer_epsilon(channel, answer)).collect::<Result<_>>()?,
            linked: linked_epsilon(channel),
            one_aggregator: one_aggregator(channel),
            release: certified.release,
            owners_alone: certified.owners_alone,
            answers_with_release: accountants.joint.of_all_answers(&certified.different),
        })
    }

    /// The certificates of the views that count on a crowd. They are independent, so each has a thread of its own.
    fn certified(self, accountants: &Accountants, known: Option<Guarantee>) -> CrowdGuarantees {
        std::thread::scope(|scope| {
            let spawned = |accountant| scope.spawn(move || self.guarantee(accountant));
            let threads: Vec<_> = accountants.joint.different.iter().map(spawned).collect();
            let alone = accountants.owners_alone.as_ref().map(spawned);
            CrowdGuarantees {
                release: known.unwrap_or_else(|| self.guarantee(&accountants.release)),
                owners_alone: alone.map(joined),
                different: threads.into_iter().map(joined).collect(),
            }
        })
    }

    fn guarantee(&self, accountant: &Accountant) -> Guarantee {
        accountant.clone().with_limit(self.limit).watched(self.progress).guarantee(self.target)
    }
}

/// An accountant for each view that counts on a crowd.
struct Accountants {
    release: Accountant,
    /// `None` without noise.
    owners_alone: Option<Accountant>,
    joint: JointViews,
}

impl Accountants {
    fn new(channel: &Channel, owners: u64) -> Result<Self> {
        let release = release(channel, owners)?;
        Ok(Self { owners_alone: release.owners_alone(), release, joint: JointViews::new(channel, owners)? })
    }
}

/// The guarantees of these views; of the joint ones, one for each different answer.
struct CrowdGuarantees {
    release: Guarantee,
    owners_alone: Option<Guarantee>,
    different: Vec<Guarantee>,
}

/// Each answer together with the release. Answers that are alike, as all first answers of pairs are, are accounted for once.
#[derive(Default)]
struct JointViews {
    /// The accountants of the different answers.
    different: Vec<Accountant>,
    /// For each answer, the index of its accountant.
    of_answer: Vec<usize>,
}

impl JointViews {
    fn new(channel: &Channel, owners: u64) -> Result<Self> {
        let mut joint = Self::default();
        for answer in 0..channel.answers().len() {
            match (0..answer).find(|earlier| are_exchangeable(channel, *earlier, answer)) {
                Some(earlier) => joint.of_answer.push(joint.of_answer[earlier]),
                None => joint.add(answer_with_release(channel, answer, owners)?),
            }
        }
        Ok(joint)
    }

    /// Adds the accountant of the next answer.
    fn add(&mut self, accountant: Accountant) {
        let alike = self.different.iter().position(|other| other.is_alike(&accountant));
        self.of_answer.push(alike.unwrap_or(self.different.len()));
        if alike.is_none() {
            self.different.push(accountant);
        }
    }

    /// The guarantees of all answers, given those of the different ones.
    fn of_all_answers(&self, different: &[Guarantee]) -> Vec<Guarantee> {
        self.of_answer
            .iter()
            .enumerate()
            .map(|(answer, index)| different[*index].of_view(View::AnswerWithRelease(answer)))
            .collect()
    }
}

/// Whether exchanging two answers, or these and two others as well, leaves the channel as it is. Then either of them shows as
/// much together with the release: exchanging the tallies, too, turns one view into the other.
fn are_exchangeable(channel: &Channel, one: usize, other: usize) -> bool {
    let answers = channel.answers().len();
    let rest = (0..answers).filter(|answer| ![one, other].contains(answer));
    let pairs = rest.clone().flat_map(|first| rest.clone().map(move |second| (first, second)));
    // The pair of an answer with itself exchanges nothing more.
    let more = iter::once((one, one)).chain(pairs.filter(|(first, second)| first < second));
    more.into_iter().any(|(first, second)| is_kept_by(channel, &[(one, other), (first, second)]))
}

/// Whether exchanging some pairs of answers leaves the channel as it is.
fn is_kept_by(channel: &Channel, exchanged: &[(usize, usize)]) -> bool {
    let is_kept = |cell: &Cell| {
        let mut outputs = cell.outputs().to_vec();
        exchanged.iter().for_each(|(one, other)| outputs.swap(*one, *other));
        let image = channel.cell_index(&outputs).map(|index| channel.cells()[index].probability());
        image == Some(cell.probability())
    };
    let answers = channel.answers();
    exchanged.iter().all(|(one, other)| answers[*one] == answers[*other]) && channel.cells().iter().all(is_kept)
}

fn finite(epsilon: f64) -> Option<f64> {
    epsilon.is_finite().then_some(epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::claim::Delta;
    use crate::privacy::tests::channel;

    /// The accountant of each answer, by index, where exchangeable answers share one.
    fn sharing(mechanism: &str) -> Vec<usize> {
        JointViews::new(&channel(mechanism), 9).unwrap().of_answer
    }

    /// Each pair of `spread` is like every other, whatever their tallies are called; the three answers of `blended` differ.
    #[test]
    fn exchangeable_answers_are_accounted_for_once() {
        assert_eq!(sharing("spread(pairs=3,f=0.6,r=0.1)"), [0, 1, 0, 1, 0, 1]);
        assert_eq!(sharing("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.01,rn=0.01)"), [0, 1, 2]);
        // Both answers are 1 as often for a yes, but not for a no.
        assert_eq!(sharing("custom(11=5/10:1/10, 10=2/10:2/10, 01=2/10:1/10, 00=1/10:6/10)"), [0, 1]);
        assert_eq!(sharing("custom(11=5/10:1/10, 10=2/10:2/10, 01=2/10:2/10, 00=1/10:5/10)"), [0, 0]);
    }

    /// The claim of an answer that shares an accountant is the one that it has by itself.
    #[test]
    fn a_shared_claim_is_that_of_each_answer() {
        let target = Target::Delta(Delta::new(1e-4).unwrap());
        for mechanism in
            ["spread(pairs=2,f=0.5,r=0.1)", "custom(11=5/10:1/10, 10=2/10:2/10, 01=2/10:2/10, 00=1/10:5/10)"]
        {
            let channel = channel(mechanism);
            let views = Views::of(&channel, 9, target, WorkLimit::default()).unwrap();
            for (answer, shared) in views.answers_with_release.iter().enumerate() {
                let alone = answer_with_release(&channel, answer, 9).unwrap().guarantee(target);
                let (shared, alone) = (shared.value().unwrap().upper(), alone.value().unwrap().upper());
                assert!((shared / alone - 1.0).abs() < 1e-9, "{mechanism}, answer {answer}: {shared} and {alone}");
            }
        }
    }
}
