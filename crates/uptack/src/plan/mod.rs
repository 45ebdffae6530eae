//! Choosing a mechanism, so that nobody has to choose its parameters.
//!
//! Given how many owners there are, roughly how many of them have the truth *yes*, and how private it has to be, [`plan`]
//! searches all families for the mechanism of least error whose certificate keeps the request. [`solve_epsilon`] and
//! [`solve_owners`] answer the inverse questions.
//!
//! Families are ranked by one number: the error of their best *certified* mechanism. Plans, tables, charts, refusals and
//! solutions are all based on it. The search is deterministic. For the families with two parameters it ends with a bound on how
//! much better any other member can be ([`Plan::gap`]).
//!
//! ```
//! use uptack::plan::{Prior, Request, plan};
//! use uptack::privacy::{Delta, Epsilon};
//! let mut request = Request::new(50_000, Prior::at(500));
//! request.release = Some((Epsilon::new(1.0)?, Delta::new(1e-8)?));
//! let plan = plan(&request)?;
//! assert!(plan.best.sd < 7.05, "{}", plan.best.sd);
//! assert!(plan.best.views.release.value().unwrap().upper() <= 1.0);
//! assert!(plan.gap.unwrap() < 0.01);
//! # Ok::<(), uptack::Error>(())
//! ```

mod asked;
mod bit_search;
mod certify;
mod contributions;
mod family;
mod limits;
mod noisy;
mod planner;
mod request;
mod root;
mod search;
mod solve;
mod tuned;
mod usual_linked;
mod words;

pub(crate) use root::smallest;

pub use asked::Asked;
pub use contributions::{
    AnySolved, ContributionPlan, PlannedContributions, SolvedContributions, plan_contributions, solve_any,
};
pub use request::{Form, Noise, Objective, Over, Prior, Request, Trust, USUAL_DELTA, USUAL_LINKED_EPSILON};
pub use solve::{
    Infeasible, Solved, Tradeoff, Unknown, explain, solve, solve_epsilon, solve_epsilon_with, solve_owners,
    solve_owners_with, tradeoff, unattainable,
};
pub use usual_linked::{NEARLY_FREE, linked_words, usual_linked_epsilon};

use std::iter;

use planner::{FeasibleMechanism, Planner, RankedPlan};

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::privacy::{self, Views, WorkLimit};
use crate::progress::Progress;

/// The best mechanism and everything else that was found.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The mechanism that is planned, its claims certified.
    pub best: PlannedMechanism,
    /// Why this one was chosen.
    pub rule: SelectionRule,
    /// The best of each other family, the better ones first.
    ///
    /// All of them satisfy the request by a full certificate. The claim for one of several answers together with the tallies
    /// is only that of all answers of an owner, which may be a much wider bound than needed.
    pub alternatives: Vec<PlannedMechanism>,
    /// The largest share by which any member of the bounded families could have a smaller error. These are
    /// `randomized-response`, `normal-form`, `noisy-sampling`, and `blended` and `spread` in the form in which they are
    /// planned, as far as they were asked for; with noise for which one honest aggregator is enough, all mechanisms of one
    /// answer. `None` if it was not bounded: for objectives other than the error, and for noise among honest owners.
    pub gap: Option<f64>,
    /// Whose honesty the bounded claim depends on.
    pub trust: Trust,
    /// The smallest error at other bounds of the linked ε, if the aggregators add noise; empty otherwise.
    pub tradeoff: Vec<Tradeoff>,
    /// The expected owners.
    pub owners: u64,
    /// The smallest batch that may be released.
    pub minimum_batch: u64,
    /// The owners whom the claims count on.
    pub claim_owners: u64,
    /// The ε of the release at the same δ if only this share of the claim's owners is honest; `None` means no guarantee. Empty
    /// where no owner is counted on.
    pub robustness: Vec<(Fraction, Option<f64>)>,
    /// How often the accounting was called in the search.
    pub calls: u64,
}

/// By which rule a plan was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SelectionRule {
    /// It has the least error.
    Best,
    /// It is the simplest of those that are nearly as good as the best, which is better by this share.
    Simplest(f64),
}

impl SelectionRule {
    /// The rule by which a mechanism of this cost was chosen, given the least cost of all.
    fn of(least: f64, cost: f64) -> Self {
        let behind = 1.0 - least / cost;
        if behind > 0.0 { Self::Simplest(behind) } else { Self::Best }
    }
}

/// One mechanism with its error and its guarantees.
#[derive(Clone, Debug)]
pub struct PlannedMechanism {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Its law.
    pub channel: Channel,
    /// The predicted standard deviation, as the prior weighs it.
    pub sd: f64,
    /// Half the width of the 95 % interval that is to be expected ([`Prior::predicted_half_width`]).
    pub interval95_halfwidth: f64,
    /// Its guarantees, for the claim's owners.
    pub views: Views,
}

impl Plan {
    /// The ε of the claim that the request bounds; `None` means no guarantee.
    pub fn epsilon(&self) -> Option<f64> {
        match self.trust {
            Trust::OneAggregator => privacy::one_aggregator(&self.best.channel).map(|claim| claim.upper()),
            Trust::Owners => self.best.views.release.value().map(|claim| claim.upper()),
        }
    }
}

/// Why there is no plan for the paper's objective without a bound on the error.
pub fn paper_objective_alone() -> Error {
    Error::request(
        "the paper's objective alone has the minimum 0, which every deterministic law reaches: never answering, but also \
         telling the plain truth",
    )
    .with_hint("bound the error: the objective is then minimized among mechanisms that are exact enough")
}

/// A simpler mechanism is preferred to a better one if its error is larger by less than this share.
pub const EQUAL: f64 = 2e-3;
/// A plan's progress counts up to this.
pub const PROGRESS: u64 = 100;

/// Work for the views of an alternative, which is shown for comparison only, in steps of about ten nanoseconds.
const LITTLE_WORK: u64 = 2_000_000;

/// The best mechanism for a request.
pub fn plan(request: &Request) -> Result<Plan> {
    plan_with(request, &Progress::default())
}

/// Like [`plan`], counting its progress up to [`PROGRESS`].
pub fn plan_with(request: &Request, progress: &Progress) -> Result<Plan> {
    check_yes_no(request)?;
    let planner = Planner::new(request)?;
    let RankedPlan { best, rule, others, gap } = planner.settle(progress)?;
    // With the usual limit on the work, so that anybody can recompute it from the card.
    let best = planner.choose(&best, WorkLimit::default())?;
    progress.advance_by(10);
    let alternatives = others.iter().map(|other| planner.choose(other, comparison_work(other)));
    let alternatives = alternatives.collect::<Result<_>>()?;
    let robustness = planner.robustness(&best.channel)?;
    progress.advance_by(PROGRESS.saturating_sub(progress.done()));
    Ok(Plan {
        rule,
        alternatives,
        gap,
        trust: request.trust,
        tradeoff: solve::tradeoff_around(request, best.sd),
        owners: request.owners,
        minimum_batch: request.minimum_batch,
        claim_owners: planner.limits.owners(),
        robustness,
        calls: planner.limits.calls(),
        best,
    })
}

fn check_yes_no(request: &Request) -> Result<()> {
    if request.asked.is_yes_no() {
        return Ok(());
    }
    Err(Error::request("this mechanism would be for a yes/no question").with_hint("plan contributions").about("asked"))
}

/// The work for the views of an alternative. Joint views of several answers take longer than everything else: for them, all
/// answers of an owner together are the bound.
fn comparison_work(alternative: &FeasibleMechanism) -> WorkLimit {
    WorkLimit::steps(if alternative.family.is_one_answer() { LITTLE_WORK } else { 0 })
}

/// The mechanism of [`plan`] alone, certified to keep the request.
///
/// The rest of a plan (every view, its robustness to fewer honest owners) takes most of the time in large crowds, above all for
/// several answers.
///
/// ```
/// use uptack::plan::{Prior, Request, least_error};
/// let mut request = Request::new(50_000, Prior::at(500));
/// request.linked_epsilon = Some(3f64.ln());
/// // Nothing is better than randomized response then.
/// assert!(least_error(&request)?.to_string().starts_with("randomized-response(t=0.7"));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn least_error(request: &Request) -> Result<Mechanism> {
    check_yes_no(request)?;
    Ok(Planner::new(request)?.settle(&Progress::default())?.best.mechanism)
}

/// The error of [`plan`] or [`plan_contributions`] alone.
pub fn least_sd(request: &Request) -> Result<f64> {
    if !request.asked.is_yes_no() {
        return contributions::least_sd(request);
    }
    Ok(Planner::new(request)?.settle(&Progress::default())?.best.sd)
}

/// The least certified error of each family under the constraints, by its name, as [`plan`] ranks them. A family that
/// cannot keep them is left out.
pub fn errors_by_family(request: &Request) -> Result<Vec<(&'static str, f64)>> {
    check_yes_no(request)?;
    let settled = Planner::new(request)?.settle(&Progress::default())?;
    let all = iter::once(&settled.best).chain(&settled.others);
    Ok(all.map(|kept| (kept.name(), kept.sd)).collect())
}
