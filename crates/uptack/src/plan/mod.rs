//! Choosing a mechanism: nobody wants to choose π's.
//!
//! Given how many owners there are, roughly how many hold yes, and how private it has to be, [`plan`] searches all
//! families for the mechanism of least error and certifies its claims. [`solve_epsilon`] and [`solve_owners`] answer
//! the inverse questions.
//!
//! Every family comes down to a law over three classes (it speaks for yes, for no, for neither), so the search is over
//! who takes part and who answers the opposite. It is deterministic, and uses the exact accounting at the two extreme
//! crowds; what is returned is certified over every crowd.
//!
//! ```
//! use uptack::plan::{Prior, Request, plan};
//! use uptack::privacy::{Delta, Epsilon};
//! let mut request = Request::new(50_000, Prior::at(500));
//! request.release = Some((Epsilon::new(1.0)?, Delta::new(1e-8)?));
//! let plan = plan(&request)?;
//! assert!(plan.best.sd < 7.05, "{}", plan.best.sd);
//! assert!(plan.best.views.release.value().unwrap().upper() <= 1.0);
//! # Ok::<(), uptack::Error>(())
//! ```

mod family;
mod law;
mod limits;
mod request;
mod search;
mod solve;

pub use request::{Form, Objective, Over, Prior, Request};
pub use solve::{Infeasible, explain, solve_epsilon, solve_owners, unattainable};

use family::Family;
use limits::Limits;
use search::{Effort, Found, Search};

use crate::channel::Channel;
use crate::error::Error;
use crate::estimate::Estimator;
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::numeric::normal;
use crate::privacy::{self, Delta, Target, Views, WorkLimit};

/// The best mechanism, with what else was found.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The mechanism of least error, its claims certified.
    pub best: Choice,
    /// The best of each other family, the better ones first.
    ///
    /// Their guarantees are sound but certified with less work, so that they may be wider than necessary.
    pub alternatives: Vec<Choice>,
    /// The owners who are expected.
    pub owners: u64,
    /// The smallest batch that may be released.
    pub minimum_batch: u64,
    /// The owners whom the claims count on.
    pub claim_owners: u64,
    /// ε of the release at the same δ if only this share of the claim's owners is honest; none is no guarantee.
    pub robustness: Vec<(Fraction, Option<f64>)>,
    /// How often the accounting was called in the search.
    pub calls: u64,
}

/// One mechanism with its error and its guarantees.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Its law.
    pub channel: Channel,
    /// The predicted standard deviation, as the prior weighs it.
    pub sd: f64,
    /// Half the width of a 95 % interval: 1.96 standard deviations.
    pub interval95_halfwidth: f64,
    /// What it gives away, for the claim's owners.
    pub views: Views,
}

/// Why there is no plan for the paper's objective without a bound on the error.
pub fn paper_objective_alone() -> Error {
    Error::request(
        "the paper's objective alone has the minimum 0, which every deterministic law reaches: never answering, but also \
         telling the plain truth",
    )
    .with_hint("give --error: the objective is then minimized among mechanisms that are exact enough")
}

/// δ of a plan that bounds none.
pub const USUAL_DELTA: f64 = 1e-8;
/// The search refines until the parameter that it moves changes by 0.2 %, which near an optimum is far less in the
/// error; with the allowance for the certificate and the rounding of parameters, plans have been within this share of
/// the best known. It is what was measured, not a proof.
pub const SEARCHED_TO: f64 = 0.005;

/// Claims for fewer owners than this are so quickly certified that every family's are.
const SMALL_CROWD: u64 = 1000;
/// An improvement by less than this, the search's own accuracy, is none: the simpler mechanism is kept.
const EQUAL: f64 = 1e-3;
/// Work for a certificate that is shown for comparison only.
const LITTLE_WORK: u64 = 2_000_000;

/// Shares of the release's ε that are searched under, one after the other, until something is certified: a certificate
/// may be wider than what the search goes by, and not every law has room for more flips.
const STRICTER: [f64; 4] = [1.0, 0.998, 0.99, 0.95];

/// The best mechanism for a request.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    let claim_owners = request.claim_owners()?;
    let Settled { best, others, calls } = settle(request)?;
    let best = choose(request, &best, claim_owners, WorkLimit::default())?;
    let limit = if claim_owners < SMALL_CROWD { WorkLimit::default() } else { WorkLimit::steps(LITTLE_WORK) };
    let alternatives =
        others.iter().map(|other| choose(request, other, claim_owners, limit)).collect::<Result<_, _>>()?;
    let robustness = robustness(request, &best.channel, claim_owners);
    let (owners, minimum_batch) = (request.owners, request.minimum_batch);
    Ok(Plan { best, alternatives, owners, minimum_batch, claim_owners, robustness, calls })
}

/// The mechanism of [`plan`] alone, certified to keep the request.
///
/// What else a plan tells (every view, the other families, how it fares with fewer honest owners) takes most of its
/// time in large crowds, above all where there are several answers.
///
/// ```
/// use uptack::plan::{Prior, Request, least_error};
/// let mut request = Request::new(50_000, Prior::at(500));
/// request.linked_epsilon = Some(3f64.ln());
/// // With a yes or no truth nothing is better than randomized response then.
/// assert!(least_error(&request)?.to_string().starts_with("randomized-response(t=0.7"));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn least_error(request: &Request) -> Result<Mechanism, Error> {
    let best = settle(request)?.best;
    best.family.mechanism(&best.law)
}

/// The least error that the search finds, without certifying anything.
pub(crate) fn least_sd(request: &Request) -> Result<f64, Error> {
    request.check()?;
    let limits = Limits::new(request, Effort::FULL.accuracy)?;
    Ok(request.sd(&search_all(request, &limits, Effort::FULL)?[0].law))
}

/// The least error of each family under the constraints, by its name: for charts, to about half a per cent and without
/// certificates. A family that cannot keep them is left out.
pub fn sketch(request: &Request) -> Result<Vec<(&'static str, f64)>, Error> {
    request.check()?;
    let limits = Limits::new(request, Effort::SKETCH.accuracy)?;
    let found = search_all(request, &limits, Effort::SKETCH)?;
    Ok(found.iter().map(|found| (found.family.name(), request.sd(&found.law))).collect())
}

fn search_all(request: &Request, limits: &Limits<'_>, effort: Effort) -> Result<Vec<Found>, Error> {
    let search = Search { request, limits, effort };
    let mut found: Vec<Found> = Vec::new();
    for family in families(request)? {
        // The asymmetric search starts from what was found before it.
        let next = search.family(family, &found);
        found.extend(next);
    }
    // What the asymmetric search started from was perhaps not asked for.
    let wanted = |found: &Found| request.family.as_deref().is_none_or(|name| name == found.family.name());
    let mut found: Vec<Found> = found.into_iter().filter(wanted).map(|found| search.polish(found)).collect();
    // Among equals the simpler, which comes first, is kept.
    found.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let within = |other: &Found| other.cost <= found[0].cost * (1.0 + EQUAL);
    if let Some(simplest) = (0..found.len()).filter(|&at| within(&found[at])).min_by_key(|&at| rank(found[at].family)) {
        let simplest = found.remove(simplest);
        found.insert(0, simplest);
    }
    if found.is_empty() {
        return Err(Error::request("no mechanism of the requested form keeps all constraints")
            .with_hint("allow more participation, another form, or a larger epsilon"));
    }
    let mut named = Vec::new();
    found.retain(|other| {
        let new = !named.contains(&other.family.name());
        named.push(other.family.name());
        new
    });
    Ok(found)
}

fn rank(family: Family) -> usize {
    Family::ALL.iter().position(|&known| known == family).unwrap_or(usize::MAX)
}

fn families(request: &Request) -> Result<Vec<Family>, Error> {
    let formed = |family: &Family| match request.form {
        Form::One => family.is_one_answer(),
        Form::Several => !family.is_one_answer(),
        Form::Any => true,
    };
    let Some(name) = &request.family else {
        return Ok(Family::ALL.into_iter().filter(formed).collect());
    };
    let named: Vec<Family> = Family::ALL.into_iter().filter(|family| family.name() == name).collect();
    // The asymmetric search needs somewhere to start from.
    let starts =
        if name == Family::Tuned.name() { vec![Family::NormalForm, Family::NoisySampling] } else { Vec::new() };
    if named.is_empty() {
        let known: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        return Err(
            Error::request(format!("`{name}` is not planned")).with_hint(format!("known are {}", known.join(", ")))
        );
    }
    Ok(starts.into_iter().chain(named).collect())
}

fn target(request: &Request) -> Result<Target, Error> {
    Ok(Target::Delta(request.release.map_or(Delta::new(USUAL_DELTA)?, |(_, delta)| delta)))
}

fn choose(request: &Request, found: &Found, claim_owners: u64, limit: WorkLimit) -> Result<Choice, Error> {
    let mechanism = found.family.mechanism(&found.law)?;
    let channel = mechanism.channel();
    let sd = request.yes.predicted_sd(&Estimator::new(&channel)?, request.owners)?;
    let views = Views::of(&channel, claim_owners, target(request)?, limit)?;
    Ok(Choice { mechanism, channel, sd, interval95_halfwidth: normal::upper_quantile(0.025) * sd, views })
}

/// What the search found, the best of it certified.
struct Settled {
    best: Found,
    others: Vec<Found>,
    calls: u64,
}

fn settle(request: &Request) -> Result<Settled, Error> {
    request.check()?;
    let claim_owners = request.claim_owners()?;
    let mut calls = 0;
    let mut attempt = |share: f64| {
        let stricter = request.with_release_times(share)?;
        let limits = Limits::new(&stricter, Effort::FULL.accuracy)?;
        let found = search_all(&stricter, &limits, Effort::FULL)?;
        calls += limits.calls();
        match claim_owners < SMALL_CROWD {
            true => certify_all(request, &found, claim_owners),
            false => certify_best(request, found, claim_owners),
        }
    };
    let first = attempt(STRICTER[0]);
    let (best, others) = STRICTER[1..].iter().fold(first, |found, &share| found.or_else(|_| attempt(share)))?;
    Ok(Settled { best, others, calls })
}

/// The best of a large crowd, certified, with the others as they are.
fn certify_best(request: &Request, mut found: Vec<Found>, claim_owners: u64) -> Result<(Found, Vec<Found>), Error> {
    let certified = found.iter().enumerate().find_map(|(at, one)| Some((at, certify(request, one, claim_owners)?)));
    let (at, best) = certified.ok_or_else(never_certified)?;
    found.remove(at);
    Ok((best, found))
}

/// In a small crowd the worst case is often a mixed one, by much and differently for each family: all are certified.
fn certify_all(request: &Request, found: &[Found], claim_owners: u64) -> Result<(Found, Vec<Found>), Error> {
    let mut certified: Vec<Found> = found.iter().filter_map(|one| certify(request, one, claim_owners)).collect();
    let least = certified.iter().map(|found| found.cost).fold(f64::INFINITY, f64::min);
    // The first is the simplest among those that were equal before.
    let best = certified.iter().position(|found| found.cost <= least * (1.0 + EQUAL)).ok_or_else(never_certified)?;
    let best = certified.remove(best);
    certified.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    Ok((best, certified))
}

fn never_certified() -> Error {
    Error::request("the certificate of the best mechanism does not close")
        .with_hint("fewer owners, a larger delta or another form may help")
}

/// What was found if its full certificate keeps the request; where that is wider than the search allowed for, with more
/// flips, as few as will do.
fn certify(request: &Request, found: &Found, claim_owners: u64) -> Option<Found> {
    let with_flips_times = |factor: f64| Found { law: found.family.with_flips_times(&found.law, factor), ..*found };
    let kept = |factor: f64| keeps(request, &with_flips_times(factor), claim_owners).unwrap_or(false);
    let most = found.family.largest_factor(&found.law) * (1.0 - 1e-9);
    let (mut failed, mut factor, mut step) = (1.0, 1.0, 1.004);
    while !kept(factor) {
        if factor >= most {
            return None;
        }
        (failed, factor, step) = (factor, f64::min(factor * step, most), step * step);
    }
    while factor > failed * 1.001 {
        let half = (factor * failed).sqrt();
        if kept(half) { factor = half } else { failed = half }
    }
    let law = with_flips_times(factor).law;
    Some(Found { law, cost: request.cost(&law), ..*found })
}

/// Whether what was found, its parameters rounded, keeps the request by the certified accounting.
fn keeps(request: &Request, found: &Found, claim_owners: u64) -> Result<bool, Error> {
    let channel = found.family.mechanism(&found.law)?.channel();
    let within = |epsilon: Option<f64>, most: f64| epsilon.is_some_and(|epsilon| epsilon <= most * (1.0 + 1e-12));
    if request.linked_epsilon.is_some_and(|most| !within(privacy::linked_epsilon(&channel), most)) {
        return Ok(false);
    }
    for answer in 0..channel.answers().len() {
        let epsilon = privacy::answer_epsilon(&channel, answer)?;
        if request.answer_epsilon.is_some_and(|most| !within(epsilon, most)) {
            return Ok(false);
        }
    }
    let Some((epsilon, delta)) = request.release else { return Ok(true) };
    let guarantee = privacy::release(&channel, claim_owners)?.guarantee(Target::Delta(delta));
    Ok(guarantee.value().is_some_and(|value| value.upper() <= epsilon.value()))
}

fn robustness(request: &Request, channel: &Channel, claim_owners: u64) -> Vec<(Fraction, Option<f64>)> {
    let shares = [(9, 10), (3, 4), (1, 2)].map(|(part, whole)| Fraction::new(part, whole));
    let degraded = |share: Fraction| {
        let owners = privacy::honest_owners(claim_owners, &share).ok()?;
        let accountant = privacy::release(channel, owners).ok()?.with_limit(WorkLimit::steps(10 * LITTLE_WORK));
        let guarantee = accountant.guarantee(target(request).ok()?);
        Some((share, guarantee.value().map(|value| value.upper())))
    };
    shares.into_iter().filter_map(|share| degraded(share.ok()?)).collect()
}
