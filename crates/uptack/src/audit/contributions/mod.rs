//! The auditor against contributions: one of several options, or up to k of many counts.
//!
//! The target's truth is that of one of two or three worlds, in which every one of its contributions differs. Each pair of worlds is
//! attacked like *yes* against *no*, and an event says which is which. Of each report the adversary looks at a few counts, those
//! that belong to a world; that is enough for the worst case of every claim, and whatever is not looked at can only make
//! the proven bound smaller. Single contributions are tested against their law on all counts.

#[cfg(debug_assertions)]
mod broken;
mod draws;
mod release;
mod subject;
mod worlds;

use std::collections::BTreeSet;

#[cfg(debug_assertions)]
pub use broken::BrokenContributions;

use super::bound::Hits;
use super::checks::{Fit, Fitting, Replays, counts_of, length_depends_on};
use super::collect::{HALVES, Pieces, TEST, TRAINING, on_all_threads};
use super::local::{self, Outcomes, Sample};
use super::subject::Replay;
use super::{Audit, ClaimedEpsilons, CoinFindings, FEWEST_SAMPLES, Finding, Report, Verdict, some_of};
use crate::contribution::{Choice, Choices, ContributionSampler, Contributions};
use crate::error::{Error, Result};
use crate::privacy::contributions as accounting;
use crate::progress::Progress;
use draws::{Bins, Counts, Drawing};
use release::CountsAttack;
use subject::ContributionSubject;
use worlds::Worlds;

impl ClaimedEpsilons {
    /// What the accounting claims for contributions. The release is a function of the reports and, with noise, of what one honest
    /// aggregator publishes, so the smaller of these claims holds for it, with δ = 0.
    pub fn of_contributions(asked: &Contributions) -> Self {
        let linked = accounting::linked_epsilon(asked);
        let one_aggregator = accounting::one_aggregator(asked).map(|epsilon| epsilon.upper());
        let release = linked.into_iter().chain(one_aggregator).reduce(f64::min);
        Self { answers: Vec::new(), linked, one_aggregator, release, delta: 0.0 }
    }
}

impl Audit {
    /// Audits the real sampler of contributions against the claims made for it; [`Report::answers`] is empty.
    ///
    /// ```
    /// use uptack::audit::{Audit, AuditCoins, ClaimedEpsilons, Verdict};
    /// let asked = "choice(k=4,r=0.05)".parse()?;
    /// let audit = Audit { samples: 100_000, coins: AuditCoins::Seeded(1), ..Audit::default() };
    /// let mut claims = ClaimedEpsilons::of_contributions(&asked);
    /// assert_eq!(audit.run_contributions(&asked, &claims)?.verdict, Verdict::Consistent);
    /// claims.linked = Some(2.5);
    /// assert_eq!(audit.run_contributions(&asked, &claims)?.verdict, Verdict::Violated);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn run_contributions(&self, asked: &Contributions, claims: &ClaimedEpsilons) -> Result<Report> {
        self.run_contributions_with(asked, claims, &Progress::default())
    }

    /// Like [`Audit::run_contributions`], counting the contributions that are drawn as progress.
    pub fn run_contributions_with(
        &self,
        asked: &Contributions,
        claims: &ClaimedEpsilons,
        progress: &Progress,
    ) -> Result<Report> {
        self.run_contribution_subject(&ContributionSampler::new(asked), asked, claims, progress)
    }

    /// Audits a sampler that is broken on purpose against the claims made for the sound one.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn run_broken_contributions(
        &self,
        asked: &Contributions,
        claims: &ClaimedEpsilons,
        control: BrokenContributions,
    ) -> Result<Report> {
        let subject = broken::BrokenSampler::new(asked, control)?;
        self.run_contribution_subject(&subject, asked, claims, &Progress::default())
    }

    fn run_contribution_subject(
        &self,
        subject: &impl ContributionSubject,
        asked: &Contributions,
        claims: &ClaimedEpsilons,
        progress: &Progress,
    ) -> Result<Report> {
        self.check_contributions(asked)?;
        let worlds = Worlds::new(asked);
        // Linked, release, law, length, neighbour and independence. With noise two more.
        let checks = if asked.noise().is_some() { 8.0 } else { 6.0 };
        let miss = self.confidence.miss() / checks;
        Run { audit: *self, subject, asked, claims, worlds: &worlds, progress, miss }.report()
    }

    /// Whether the samples are enough for some releases of each world and half.
    fn check_contributions(&self, asked: &Contributions) -> Result<()> {
        if self.owners == 0 {
            return Err(Error::request("there are no owners to hide among")
                .with_hint("a crowd has at least one owner; 20 is usual"));
        }
        let reports = u128::from(self.owners.max(1024)) * u128::from(asked.most());
        let needed = (64 * reports).max(FEWEST_SAMPLES.into());
        if u128::from(self.samples) < needed {
            let message = format!("{} samples are too few for crowds of {}", self.samples, self.owners);
            return Err(Error::request(message).with_hint(format!("take at least {needed} samples")));
        }
        Ok(())
    }
}

/// How often each outcome came up in one world, on some path.
type OutcomesOfWorld = fn(&Counts, usize) -> Vec<u64>;

/// An audit under way. Each of its bounds and checks may miss with probability `miss`.
struct Run<'a, S> {
    audit: Audit,
    subject: &'a S,
    asked: &'a Contributions,
    claims: &'a ClaimedEpsilons,
    worlds: &'a Worlds,
    progress: &'a Progress,
    miss: f64,
}

impl<S: ContributionSubject> Run<'_, S> {
    /// A quarter of the calls goes to reports of one owner at a time, a quarter to batches, a sixteenth to replays, with noise an
    /// eighth to single reports behind one aggregator's noise, and the rest to releases.
    fn report(&self) -> Result<Report> {
        let Self { subject, asked, claims, worlds, progress, miss, .. } = *self;
        let Audit { samples, owners, coins, .. } = self.audit;
        let bins = Bins::new(worlds, asked);
        let drawing = Drawing { subject, asked, worlds, bins: &bins, coins };
        let (halves, drawn) = drawing.run(samples / 4, progress)?;
        let (replays, replayed) = self.replays(samples / 16)?;
        let attack = CountsAttack { subject, asked, worlds, progress, miss, coins };
        let aggregator = attack.one_aggregator(claims.one_aggregator, samples / 8)?;
        let summed = aggregator.as_ref().map_or(0, |(_, _, calls)| *calls);
        let (one_aggregator, noise) = aggregator.map(|(finding, noise, _)| (finding, noise)).unzip();
        let rest = samples.saturating_sub(drawn + replayed + summed);
        let (release, released) = attack.release(claims.release, owners, rest)?;
        let mut whole = halves[TRAINING].clone();
        whole.merge(&halves[TEST]);
        let report = Report {
            answers: Vec::new(),
            linked: self.linked(&halves),
            one_aggregator,
            release,
            law: self.law(&bins, &whole),
            noise,
            coins: CoinFindings {
                length: self.lengths(&halves),
                replays,
                neighbour: self.neighbour(&halves),
                independence: self.independence(&whole),
            },
            samples: drawn + replayed + summed + released,
            verdict: Verdict::Consistent,
        };
        Ok(Report { verdict: report.overall(), ..report })
    }

    /// The adversary who holds the target's whole report.
    fn linked(&self, halves: &[Counts; HALVES]) -> Finding {
        let paths: [(&str, OutcomesOfWorld); 3] = [
            ("single and batch", |counts, world| {
                counts.single[world].iter().zip(&counts.batch[world]).map(|(single, batch)| single + batch).collect()
            }),
            ("single", |counts, world| counts.single[world].clone()),
            ("batch", |counts, world| counts.batch[world].clone()),
        ];
        let samples: Vec<Sample> =
            paths.iter().flat_map(|(path, outcomes)| self.samples(halves, path, outcomes)).collect();
        local::attack(&samples, self.claims.linked, self.miss, |event| {
            format!("the report is {}", self.worlds.event_name(event))
        })
    }

    /// One sample for each pair of worlds.
    fn samples(
        &self,
        halves: &[Counts; HALVES],
        path: &str,
        outcomes: impl Fn(&Counts, usize) -> Vec<u64>,
    ) -> Vec<Sample> {
        let sample = |pair: [usize; 2]| {
            let [training, test] = [TRAINING, TEST].map(|half| {
                let [yes, no] = pair.map(|world| outcomes(&halves[half], world));
                Outcomes { yes, no }
            });
            Sample { name: format!("{}; {path}", self.worlds.pair_name(pair)), training, test }
        };
        self.worlds.pairs().into_iter().map(sample).collect()
    }

    /// The adversary who holds the target's report and knows whether another owner's contribution, whose truth is known, was told.
    fn neighbour(&self, halves: &[Counts; HALVES]) -> Finding {
        let others = 0..self.worlds.worlds.len();
        let samples: Vec<Sample> = others
            .flat_map(|other| {
                let path = format!("the other has {}", self.worlds.world_name(other));
                self.samples(halves, &path, |counts, world| counts.neighbours[other][world].clone())
            })
            .collect();
        let outcomes = self.worlds.outcomes();
        local::attack(&samples, self.claims.linked, self.miss, |event| {
            let names = event.iter().map(|&outcome| {
                let told = if outcome >= outcomes { "told" } else { "not told" };
                format!("{told}|{}", self.worlds.event_name(&[outcome % outcomes]))
            });
            format!("the other's truth and the target's report are {}", some_of(names.collect::<Vec<_>>().into_iter()))
        })
    }

    /// The adversary who sees how many bytes a call for one owner read.
    fn lengths(&self, halves: &[Counts; HALVES]) -> Finding {
        let seen: BTreeSet<u64> =
            halves.iter().flat_map(|half| &half.lengths).flat_map(|lengths| lengths.keys().copied()).collect();
        let lengths = Vec::from_iter(seen);
        let samples = self.samples(halves, "single", |counts, world| counts_of(&lengths, &counts.lengths[world]));
        local::attack(&samples, Some(0.0), self.miss, |event| {
            format!("{} bytes read", some_of(event.iter().map(|&index| lengths[index])))
        })
    }

    /// Is the law drawn the law stated: of single contributions, and of each watched count of a report?
    fn law(&self, bins: &Bins<'_>, whole: &Counts) -> Fit {
        let mut fitting = Fitting::new();
        for (&truth, counts) in self.worlds.tested_truths(self.asked).iter().zip(&whole.contributions) {
            let stated = bins.stated(self.asked, truth).into_iter();
            fitting.test_law(counts, stated, |bin| format!("{} for truth {} (batch)", bins.name(bin), truth + 1));
        }
        for (path, world, outcomes) in self.reports(whole) {
            let trials = outcomes.iter().sum();
            for (place, &count) in self.worlds.watched.iter().enumerate() {
                let hits = hits_where(outcomes, |outcome| (outcome >> place) & 1 == 1);
                fitting.test(Hits { hits, trials }, 1.0 - self.worlds.avoids(world, &[count]), || {
                    format!("count {} for {} ({path})", count + 1, self.worlds.world_name(world))
                });
            }
        }
        fitting.conclude(self.miss)
    }

    /// Are contributions of one owner, and of two, independent? Pairs are compared with the product of the stated laws.
    fn independence(&self, whole: &Counts) -> Fit {
        let mut fitting = Fitting::new();
        let own = self.own_probabilities();
        for (truths, counts) in whole.consecutive.iter().enumerate() {
            let pair = [own[truths / 2], own[truths % 2]];
            let stated = (0..4).map(|told| {
                let factor = |place: usize, told: bool| if told { pair[place] } else { 1.0 - pair[place] };
                factor(0, told / 2 == 1) * factor(1, told % 2 == 1)
            });
            fitting.test_law(counts, stated, |told| format!("consecutive contributions told: {told:02b} (batch)"));
        }
        for (path, world, outcomes) in self.reports(whole) {
            self.test_pairs_of_counts(&mut fitting, path, world, outcomes);
        }
        fitting.conclude(self.miss)
    }

    /// The probability that a contribution goes where it belongs, if its truth is not counted and if it is.
    fn own_probabilities(&self) -> [f64; 2] {
        let law = self.asked.law();
        [law.told().to_f64() + law.silent().to_f64(), law.told().to_f64()]
    }

    /// Each pair of watched counts of a report: neither is set, or not exactly the first.
    fn test_pairs_of_counts(&self, fitting: &mut Fitting, path: &str, world: usize, outcomes: &[u64]) {
        let watched = &self.worlds.watched;
        let trials = outcomes.iter().sum();
        for second in 1..watched.len() {
            for first in 0..second {
                let neither = self.worlds.avoids(world, &[watched[first], watched[second]]);
                let only_first = self.worlds.avoids(world, &[watched[second]]) - neither;
                let bits = |outcome: usize| [(outcome >> first) & 1, (outcome >> second) & 1];
                for (pattern, stated) in [([0, 0], neither), ([1, 0], only_first)] {
                    let hits = hits_where(outcomes, |outcome| bits(outcome) == pattern);
                    fitting.test(Hits { hits, trials }, stated.clamp(0.0, 1.0), || {
                        let numbers = format!("{} and {}", watched[first] + 1, watched[second] + 1);
                        format!("counts {numbers} are {pattern:?} for {} ({path})", self.worlds.world_name(world))
                    });
                }
            }
        }
    }

    /// The outcomes of both paths, world by world.
    fn reports<'c>(&self, whole: &'c Counts) -> impl Iterator<Item = (&'static str, usize, &'c [u64])> {
        let of_path = |path: &'static str, tables: &'c [Vec<u64>]| {
            tables.iter().enumerate().map(move |(world, outcomes)| (path, world, outcomes.as_slice()))
        };
        of_path("single", &whole.single).chain(of_path("batch", &whole.batch))
    }

    /// The same coins for the truths of other worlds: the bytes read must not change.
    fn replays(&self, calls: u64) -> Result<(Replays, u64)> {
        const OWNERS: usize = 600;
        let choices: Vec<Vec<Choice>> = self.worlds.worlds.iter().map(|world| world.choices()).collect();
        let crowds: Vec<Choices> =
            choices.iter().map(|truths| truths.iter().copied().cycle().take(OWNERS * truths.len()).collect()).collect();
        let each = (OWNERS as u64 + 1) * u64::from(self.asked.most()) * choices.len() as u64;
        let pieces = Pieces { count: (calls / each).max(1), calls: each, progress: self.progress };
        let (replayed, made) = (2 * pieces.count, pieces.count * each);
        let work = |differing: &mut u64, piece: u64| {
            let mut coins = Replay::new(self.audit.coins.of(4, piece));
            let batch = |truths: &Choices, coins: &mut _| self.subject.draw_many(truths, coins).map(drop);
            *differing += u64::from(length_depends_on(&crowds, &mut coins, batch)?);
            let single = |truths: &Vec<Choice>, coins: &mut _| self.subject.draw_report(truths, coins).map(drop);
            *differing += u64::from(length_depends_on(&choices, &mut coins, single)?);
            Ok(())
        };
        let differing = on_all_threads(pieces, || 0, work, |sum, part| *sum += part)?;
        Ok((Replays { replayed, differing, verdict: Verdict::violated_if(differing > 0) }, made))
    }
}

fn hits_where(outcomes: &[u64], is_hit: impl Fn(usize) -> bool) -> u64 {
    outcomes.iter().enumerate().filter(|&(outcome, _)| is_hit(outcome)).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests;
