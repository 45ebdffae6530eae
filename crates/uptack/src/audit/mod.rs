//! An adversary of our own: it runs the real sampler and tries to prove the claims wrong.
//!
//! For every view it looks for the event that best tells a *yes* from a *no*, and bounds the ε that this event proves from
//! below by Clopper and Pearson's exact intervals. The event is chosen on one half of the samples and tested on the other.
//! All bounds and checks of one audit hold together with the stated confidence, which is shared evenly among them
//! (Bonferroni). `docs/auditing.md` says what an audit can see.
//!
//! ```
//! use uptack::audit::{Audit, AuditCoins, ClaimedEpsilons, Verdict};
//! let channel = "randomized-response(t=0.8)".parse::<uptack::Mechanism>()?.channel();
//! let audit = Audit { samples: 200_000, coins: AuditCoins::Seeded(1), ..Audit::default() };
//! let mut claims = ClaimedEpsilons::of(&channel, audit.owners, 1e-8)?;
//! assert_eq!(audit.run(&channel, &claims)?.verdict, Verdict::Consistent);
//! // A claim that is too good is contradicted.
//! claims.linked = Some(1.3);
//! let report = audit.run(&channel, &claims)?;
//! assert!(report.linked.observed_lower > 1.3 && report.linked.observed_lower < 4f64.ln());
//! assert_eq!(report.verdict, Verdict::Violated);
//! # Ok::<(), uptack::Error>(())
//! ```

mod aggregator;
mod bound;
#[cfg(debug_assertions)]
mod broken;
mod checks;
mod collect;
mod contributions;
mod foreign;
mod local;
mod release;
mod score;
mod subject;

use std::fmt::Display;

use serde::Serialize;

#[cfg(debug_assertions)]
#[doc(hidden)]
pub use broken::BrokenControl;
pub use checks::{Fit, Misfit, Replays};
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use contributions::BrokenContributions;
pub use foreign::{ForeignAudit, ForeignOutputs, ForeignReport};
pub use subject::AuditCoins;

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::estimate::Confidence;
use crate::privacy::{self, Delta, Direction};
use crate::progress::Progress;
use crate::sampler::Sampler;
use bound::Hits;
use collect::{Counts, HALVES};
use subject::Subject;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Audit {
    /// How many calls of the sampler to spend; an owner of a batch counts as one.
    pub samples: u64,
    /// The size of the crowd that is released, the target included.
    pub owners: u64,
    /// How sure all bounds and checks together are.
    pub confidence: Confidence,
    /// Where the coins come from.
    pub coins: AuditCoins,
}

impl Default for Audit {
    /// Ten million calls with the operating system's coins, crowds of twenty, 99.9 % confidence.
    fn default() -> Self {
        let confidence = Confidence::of_miss(1e-3).expect("a miss of 1e-3 is one");
        Self { samples: 10_000_000, owners: 20, confidence, coins: AuditCoins::System }
    }
}

/// Whether a claim withstood the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The samples do not contradict the claim.
    Consistent,
    /// They do.
    Violated,
}

impl Verdict {
    fn violated_if(violated: bool) -> Self {
        if violated { Self::Violated } else { Self::Consistent }
    }
}

/// What was found about one view.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The claimed ε; none if no guarantee is claimed, which nothing can contradict.
    pub claimed: Option<f64>,
    /// The ε that the samples prove.
    pub observed_lower: f64,
    /// The event that proves it; none if no event tells the truths apart.
    pub event: Option<Event>,
    /// Violated if more is proved than is claimed.
    pub verdict: Verdict,
}

impl Finding {
    fn new(claimed: Option<f64>, observed_lower: f64, event: Event) -> Self {
        let verdict = Verdict::violated_if(claimed.is_some_and(|claimed| observed_lower > claimed));
        Self { claimed, observed_lower, event: Some(event), verdict }
    }

    fn nothing(claimed: Option<f64>) -> Self {
        Self { claimed, observed_lower: 0.0, event: None, verdict: Verdict::Consistent }
    }

    /// Whether the claim is contradicted.
    pub fn is_violated(&self) -> bool {
        self.verdict == Verdict::Violated
    }
}

/// What an adversary looks for, and how often it came up on the test half.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// In words.
    pub description: String,
    /// The truth that it speaks for, as a direction.
    #[serde(rename = "speaks_for", serialize_with = "speaks_for")]
    pub direction: Direction,
    /// How often it came up if the truth is *yes*.
    pub yes: Frequency,
    /// How often it came up if the truth is *no*.
    pub no: Frequency,
}

impl Event {
    fn new(description: String, direction: Direction, first: Hits, second: Hits) -> Self {
        let [no, yes] = direction.in_order([first, second]).map(Frequency::from);
        Self { description, direction, yes, no }
    }
}

fn speaks_for<S: serde::Serializer>(direction: &Direction, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match direction {
        Direction::YesOverNo => "yes",
        Direction::NoOverYes => "no",
    })
}

/// Hits among trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Frequency {
    /// How often it came up.
    pub hits: u64,
    /// How often it might have.
    pub trials: u64,
}

impl From<Hits> for Frequency {
    fn from(count: Hits) -> Self {
        Self { hits: count.hits, trials: count.trials }
    }
}

/// How the coins were used.
#[derive(Clone, Debug, Serialize)]
pub struct CoinFindings {
    /// What the number of bytes that a call reads tells about the truth; 0 is claimed.
    pub length: Finding,
    /// Whether the same coins are read to the same length whatever the truth.
    pub replays: Replays,
    /// What another owner's cell tells about the target; no more than the target's own is claimed.
    pub neighbour: Finding,
    /// Whether owners draw independently of each other.
    pub independence: Fit,
}

/// Everything that an audit found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Each answer alone.
    pub answers: Vec<Finding>,
    /// The whole cell.
    pub linked: Finding,
    /// The target's bit and one aggregator's noise; none without noise.
    pub one_aggregator: Option<Finding>,
    /// All that is published; with noise, the sum and one aggregator's noise.
    pub release: Finding,
    /// Whether the law drawn is the law stated.
    pub law: Fit,
    /// Whether the noise that an aggregator draws has the law stated; none without noise.
    pub noise: Option<Fit>,
    /// How the coins were used.
    pub coins: CoinFindings,
    /// The calls of the sampler that were made.
    pub samples: u64,
    /// Violated if anything above is.
    pub verdict: Verdict,
}

impl Report {
    fn overall(&self) -> Verdict {
        let always = [&self.linked, &self.release, &self.coins.length, &self.coins.neighbour];
        let views = self.answers.iter().chain(always).chain(&self.one_aggregator);
        let fits = [&self.law, &self.coins.independence].into_iter().chain(&self.noise);
        let verdicts = views.map(|view| view.verdict).chain(fits.map(|fit| fit.verdict));
        let violated = verdicts.chain([self.coins.replays.verdict]).any(|verdict| verdict == Verdict::Violated);
        Verdict::violated_if(violated)
    }
}

/// Fewer samples are not worth an audit.
const FEWEST_SAMPLES: u64 = 50_000;
/// Fewer releases of a kind prove nothing.
const FEWEST_RELEASES: u64 = 10;

/// The ε claimed for each view; none if there is no guarantee.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedEpsilons {
    /// For each answer alone.
    pub answers: Vec<Option<f64>>,
    /// For the whole cell.
    pub linked: Option<f64>,
    /// For the published sums if one aggregator is honest and nobody else; none without noise.
    pub one_aggregator: Option<f64>,
    /// For all that is published, at `delta`; with noise, if one aggregator and the other owners are honest.
    pub release: Option<f64>,
    /// The δ of the claim for all that is published.
    pub delta: f64,
}

impl ClaimedEpsilons {
    /// What the accounting claims for `owners` owners: the upper ends of its certificates.
    pub fn of(channel: &Channel, owners: u64, delta: f64) -> Result<Self> {
        let answers = (0..channel.answers().len()).map(|answer| privacy::answer_epsilon(channel, answer));
        let release = privacy::release(channel, owners)?.epsilon(Delta::new(delta)?);
        Ok(Self {
            answers: answers.collect::<Result<_>>()?,
            linked: privacy::linked_epsilon(channel),
            one_aggregator: privacy::one_aggregator(channel).map(|epsilon| epsilon.upper()),
            release: release.value().map(|epsilon| epsilon.upper()),
            delta,
        })
    }

    fn check(&self, channel: &Channel) -> Result<()> {
        let (has, wants) = (self.answers.len(), channel.answers().len());
        if has != wants {
            return Err(Error::request(format!("claims for {has} answers, but the mechanism asks for {wants}")));
        }
        if !(0.0..=1.0).contains(&self.delta) {
            return Err(Error::request(format!("delta = {} is not between 0 and 1", self.delta)));
        }
        Ok(())
    }
}

impl Audit {
    /// Audits the real sampler of a channel against the claims made for it.
    pub fn run(&self, channel: &Channel, claims: &ClaimedEpsilons) -> Result<Report> {
        self.run_with(channel, claims, &Progress::default())
    }

    /// Like [`Audit::run`], counting the calls of the sampler as progress.
    pub fn run_with(&self, channel: &Channel, claims: &ClaimedEpsilons, progress: &Progress) -> Result<Report> {
        self.run_subject(&Sampler::new(channel), channel, claims, progress)
    }

    /// Audits a sampler that is broken on purpose against the claims made for the sound one.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn run_broken(&self, channel: &Channel, claims: &ClaimedEpsilons, control: BrokenControl) -> Result<Report> {
        self.run_subject(&broken::BrokenSampler::new(channel, control)?, channel, claims, &Progress::default())
    }

    fn run_subject(
        &self,
        subject: &impl Subject,
        channel: &Channel,
        claims: &ClaimedEpsilons,
        progress: &Progress,
    ) -> Result<Report> {
        claims.check(channel)?;
        let releases = self.releases(channel)?;
        // The answers, and six more: linked, release, law, length, neighbour, independence. With noise two more.
        let checks = channel.answers().len() + if channel.noise().is_some() { 8 } else { 6 };
        let miss = self.confidence.miss() / checks as f64;
        Run { audit: *self, subject, channel, claims, progress, releases, miss }.report()
    }

    /// How many releases of each kind the samples are enough for.
    fn releases(&self, channel: &Channel) -> Result<u64> {
        if self.owners == 0 {
            return Err(Error::request("there are no owners to hide among")
                .with_hint("a crowd has at least one owner; 20 is usual"));
        }
        let group = u128::from(release::group_size(self.owners));
        let each = u128::from(self.owners) * u128::from(release::KINDS);
        let sixteenths = if channel.noise().is_some() { 5 } else { 7 };
        let releases = u128::from(self.samples) * sixteenths / 16 / each / group * group;
        let fewest = u128::from(FEWEST_RELEASES).next_multiple_of(group);
        if self.samples < FEWEST_SAMPLES || releases < fewest {
            return Err(self.too_few_samples((fewest * each * 16).div_ceil(sixteenths)));
        }
        Ok(u64::try_from(releases).unwrap_or(u64::MAX))
    }

    fn too_few_samples(&self, for_releases: u128) -> Error {
        let needed = for_releases.max(FEWEST_SAMPLES.into());
        Error::request(format!("{} samples are too few for crowds of {}", self.samples, self.owners))
            .with_hint(format!("take at least {needed} samples, or fewer owners"))
    }
}

/// An audit under way. Each of its bounds and checks may miss with probability `miss`.
struct Run<'a, S> {
    audit: Audit,
    subject: &'a S,
    channel: &'a Channel,
    claims: &'a ClaimedEpsilons,
    progress: &'a Progress,
    /// How many releases of each kind are drawn.
    releases: u64,
    miss: f64,
}

impl<S: Subject> Run<'_, S> {
    /// A quarter of the calls goes to single draws, a quarter to batches, a sixteenth to replays, with noise an eighth
    /// to sums of one bit and one aggregator's noise, and the rest to releases.
    fn report(&self) -> Result<Report> {
        let Self { subject, channel, claims, progress, miss, .. } = *self;
        let Audit { samples, owners, coins, .. } = self.audit;
        let (halves, drawn) = collect::collect(subject, channel.cells().len(), samples / 4, coins, progress)?;
        let (replays, replayed) = checks::replays(subject, samples / 16, coins, progress)?;
        let aggregator = self.one_aggregator()?;
        let summed = aggregator.as_ref().map_or(0, |outcome| outcome.calls);
        let (one_aggregator, noise) = aggregator.map(|outcome| (outcome.finding, outcome.noise)).unzip();
        let whole = Counts::whole(&halves);
        let report = Report {
            answers: local::answers(channel, &halves, claims, miss),
            linked: local::linked(channel, &halves, claims, miss),
            one_aggregator,
            release: self.release()?,
            law: checks::stated_law(channel, &whole, miss),
            noise,
            coins: self.coin_findings(&halves, &whole, replays),
            samples: drawn + replayed + summed + self.releases * release::KINDS * owners,
            verdict: Verdict::Consistent,
        };
        Ok(Report { verdict: report.overall(), ..report })
    }

    fn one_aggregator(&self) -> Result<Option<aggregator::AggregatorFinding>> {
        let Some(noise) = self.channel.noise() else { return Ok(None) };
        let attack = aggregator::AggregatorAttack {
            channel: self.channel,
            noise,
            claimed: self.claims.one_aggregator,
            calls: self.audit.samples / 8,
            miss: self.miss,
            coins: self.audit.coins,
        };
        attack.run(self.subject, self.progress).map(Some)
    }

    fn release(&self) -> Result<Finding> {
        let attack = release::ReleaseAttack {
            channel: self.channel,
            owners: self.audit.owners,
            releases: self.releases,
            delta: self.claims.delta,
            miss: self.miss,
            coins: self.audit.coins,
        };
        attack.run(self.subject, self.claims.release, self.progress)
    }

    fn coin_findings(&self, halves: &[Counts; HALVES], whole: &Counts, replays: Replays) -> CoinFindings {
        CoinFindings {
            length: checks::lengths(halves, self.miss),
            replays,
            neighbour: checks::neighbour(self.channel, halves, self.claims.linked, self.miss),
            independence: checks::independence(self.channel, whole, self.miss),
        }
    }
}

/// A list for people; the tail of a long one is counted.
fn some_of(names: impl ExactSizeIterator<Item = impl Display>) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names.take(SHOWN).map(|name| name.to_string()).collect();
    let list = shown.join(" or ");
    if more > 0 { format!("{list} or {more} more") } else { list }
}

#[cfg(test)]
mod tests;
