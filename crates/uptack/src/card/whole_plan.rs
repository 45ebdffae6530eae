//! The best card whose queries together keep within a guarantee.

use super::Card;
use crate::display::nearest;
use crate::error::{Error, Result};
use crate::plan::{
    AnySolved, Asked, Noise, PROGRESS, Plan, Request, Solved, Trust, Unknown, least_sd, plan_with, solve, solve_any,
};
use crate::privacy::{Delta, Epsilon, WorkLimit};
use crate::progress::Progress;

/// How many plans are tried after the first. Each halves the gap between an ε per query that keeps within the whole's and
/// one that does not.
const STEPS: u32 = 5;

/// The parts of ε that are tried if there is no plan for all of it.
const STRICTER: [f64; 4] = [0.99, 0.97, 0.94, 0.9];

const NO_EPSILON: &str = "a query needs the ε of its release";

/// The end of the progress of [`plan_whole`], for this many queries that can differ for one owner.
pub fn whole_progress(queries: u64) -> u64 {
    PROGRESS * if queries < 2 { 1 } else { 1 + u64::from(STEPS) }
}

/// Plans a card such that everything it asks keeps within the request's guarantees *as a whole*: the release's (ε, δ)
/// and the linked ε. `draft` writes the question onto the card of a plan; `queries` of it can differ for one owner.
///
/// If the request asks for several counts and the aggregators add noise, an owner contributes to at most some of them, and the
/// mechanism is for all of them together. Otherwise the card asks independent questions. If one honest aggregator has to be enough, the epsilons of single queries add up, and so do the linked ones: every query
/// gets its share. Otherwise a ballot or a series of K queries at (ε/K, δ/K) each is always within (ε, δ), because epsilons and
/// deltas add up. The composition is better than that sum. So a larger ε per query is searched for, and the card's own
/// claims decide.
///
/// ```
/// use uptack::card::{Card, plan_whole};
/// use uptack::plan::{Prior, Request};
/// use uptack::privacy::{Delta, Epsilon};
/// use uptack::Progress;
///
/// let mut request = Request::new(500, Prior::at(10));
/// request.release = Some((Epsilon::new(2.0)?, Delta::new(1e-4)?));
/// let card = plan_whole(&request, 1, |card: Card| card, &Progress::default())?;
/// assert!(card.claims.whole_release().is_some_and(|epsilon| epsilon <= 2.0));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn plan_whole(request: &Request, queries: u64, draft: impl Fn(Card) -> Card, progress: &Progress) -> Result<Card> {
    Ok(solve_whole(request, (Unknown::Error, None), queries, draft, progress)?.card)
}

/// The plan of everything that a card asks.
#[derive(Clone, Debug)]
pub struct WholePlan {
    /// The card, with the claims of everything that it asks together and the error of each count.
    pub card: Card,
    /// The plan: of contributions to everything that is asked, or of one of several independent queries, whose request has that
    /// query's share of ε, of δ and of the linked ε.
    pub solved: AnySolved,
    /// How many independent queries can differ for one owner; 1 for contributions.
    pub queries: u64,
}

impl WholePlan {
    /// The ε of everything that is published, for whom the request trusts.
    pub fn epsilon(&self) -> Option<f64> {
        match &self.solved {
            AnySolved::YesNo(one) if one.plan.trust == Trust::Owners => self.card.claims.whole_release(),
            AnySolved::YesNo(_) | AnySolved::Contributions(_) => self.card.claims.whole_one_aggregator(),
        }
    }

    fn of(card: Card, request: Request, plan: Plan, queries: u64) -> Self {
        Self::of_solved(card, Solved { request, plan, unknown: Unknown::Error }, queries)
    }

    fn of_solved(card: Card, one: Solved, queries: u64) -> Self {
        Self { card, solved: AnySolved::YesNo(Box::new(one)), queries }
    }
}

/// Whether a card of this request has contributions to everything that it asks, and not independent questions.
fn contributes(request: &Request) -> bool {
    !request.asked.is_yes_no() && request.noise != Noise::None
}

/// The request for contributions: the noise of the aggregators is what hides an owner.
fn with_noise(request: &Request) -> Request {
    Request { noise: Noise::Aggregators, ..request.clone() }
}

/// The request for independent questions.
fn independent(request: &Request) -> Request {
    Request { asked: Asked::YesNo, ..request.clone() }
}

/// Plans contributions to everything that a card asks.
fn solve_contributions(
    request: &Request,
    (unknown, error): (Unknown, Option<f64>),
    draft: impl Fn(Card) -> Card,
    progress: &Progress,
) -> Result<WholePlan> {
    if request.release.is_none() && unknown != Unknown::Epsilon {
        return Err(Error::request(NO_EPSILON).about("epsilon"));
    }
    let solved = solve_any(&with_noise(request), unknown, error, progress)?;
    let AnySolved::Contributions(planned) = &solved else { unreachable!("several counts are asked for") };
    let card = draft(Card::of_contributions(&planned.request, &planned.plan)?);
    Ok(WholePlan { card, solved, queries: 1 })
}

/// Plans like [`plan_whole`] a card whose error, ε or owners are left open. `error` is the largest standard deviation of each
/// count, ε is that of everything together.
///
/// If owners are solved for and their coins are counted on, the number is enough, but perhaps not the smallest: it is
/// found with equal shares of ε, which compose to less than the whole.
pub fn solve_whole(
    request: &Request,
    (unknown, error): (Unknown, Option<f64>),
    queries: u64,
    draft: impl Fn(Card) -> Card,
    progress: &Progress,
) -> Result<WholePlan> {
    if !contributes(request) {
        return solve_independent(request, (unknown, error), queries, draft, progress);
    }
    let together = solve_contributions(request, (unknown, error), &draft, progress)?;
    if !may_change_all(request.asked) || unknown != Unknown::Error {
        return Ok(together);
    }
    // If an owner can change every count anyway, independent questions may be better, and no yes is left out.
    let apart = solve_independent(request, (unknown, error), queries, draft, progress);
    let sd = |planned: &WholePlan| planned.card.predicted.sd.value();
    Ok(apart.ok().filter(|apart| sd(apart) < sd(&together)).unwrap_or(together))
}

/// Whether two owners can differ in all counts: contributions of which each moves two counts then say more than there is to tell.
fn may_change_all(asked: Asked) -> bool {
    2 * u64::from(asked.most()) >= u64::from(asked.counts())
}

/// Plans one of several independent questions.
fn solve_independent(
    request: &Request,
    (unknown, error): (Unknown, Option<f64>),
    queries: u64,
    draft: impl Fn(Card) -> Card,
    progress: &Progress,
) -> Result<WholePlan> {
    let request = &independent(request);
    match unknown {
        Unknown::Error if error.is_none() => plan_queries(request, queries, draft, progress),
        Unknown::Error if queries > 1 => {
            let planned = plan_queries(request, queries, draft, progress)?;
            check_error(&planned, error)?;
            Ok(planned)
        }
        Unknown::Owners if queries > 1 && request.trust == Trust::Owners => {
            let one = solve(&equal_share(request, queries)?, unknown, error, progress)?;
            let mut planned = plan_queries(&request.with_owners(one.plan.owners as f64), queries, draft, progress)?;
            if let AnySolved::YesNo(one) = &mut planned.solved {
                one.unknown = unknown;
            }
            Ok(planned)
        }
        _ => {
            let one = solve(&equal_share(request, queries)?, unknown, error, progress)?;
            let mut card = draft(Card::new(&one.request, &one.plan));
            if let Some((_, delta)) = request.release.filter(|_| queries > 1) {
                card.state_claims(delta, WorkLimit::default())?;
            }
            Ok(WholePlan::of_solved(card, one, queries))
        }
    }
}

/// Refuses numbers that no query can be planned for; if only the share of ε is too small, in the words of the whole.
fn check_share(share: &Request, whole: Epsilon, queries: u64) -> Result<()> {
    let checked = share.check();
    if queries < 2 || checked.as_ref().err().and_then(Error::field) != Some("epsilon") {
        return checked;
    }
    let whole = whole.value();
    Err(Error::request(format!(
        "{queries} queries share ε = {whole}: the share of each is too small to carry information"
    ))
    .with_hint("ask for fewer queries, or allow a larger ε")
    .about("epsilon"))
}

/// Refuses a card with several queries whose error is larger than was wanted.
fn check_error(planned: &WholePlan, wanted: Option<f64>) -> Result<()> {
    let (sd, queries) = (planned.card.predicted.sd.value(), planned.queries);
    let Some(wanted) = wanted.filter(|wanted| sd > *wanted) else { return Ok(()) };
    let sd = nearest(sd);
    Err(Error::request(format!(
        "an error of {wanted} cannot be attained: with {queries} queries that share ε it is {sd}"
    ))
    .with_hint("allow a larger error or a larger ε, or ask for fewer queries")
    .about("error"))
}

/// Plans one of this many queries such that all of them keep within the request.
fn plan_queries(
    request: &Request,
    queries: u64,
    draft: impl Fn(Card) -> Card,
    progress: &Progress,
) -> Result<WholePlan> {
    let Some((epsilon, delta)) = request.release else {
        return Err(Error::request(NO_EPSILON).about("epsilon"));
    };
    if request.trust == Trust::OneAggregator {
        let share = share_of_sum(request, epsilon, delta, queries)?;
        check_share(&share, epsilon, queries)?;
        let plan = plan_with(&share, progress)?;
        let mut card = draft(Card::new(&share, &plan));
        if queries > 1 {
            card.state_claims(delta, WorkLimit::default())?;
        }
        return Ok(WholePlan::of(card, share, plan, queries));
    }
    if queries < 2 {
        // The plan's claims are the card's: one query composes with nothing.
        let plan = nearest_plan(request, progress)?;
        return Ok(WholePlan::of(draft(Card::new(request, &plan)), request.clone(), plan, queries));
    }
    check_share(&equal_share(request, queries)?, epsilon, queries)?;
    WholePlanSearch { request, epsilon, delta, queries, draft, progress }.best()
}

/// The error of [`plan_whole`], without its claims. If the owners' coins are counted on and there are several queries, it is the
/// error with equal shares of ε and δ, where that search begins.
pub(super) fn least_whole_sd(request: &Request, queries: u64) -> Result<f64> {
    if request.release.is_none() {
        return Err(Error::request(NO_EPSILON).about("epsilon"));
    }
    if contributes(request) {
        let together = least_sd(&with_noise(request))?;
        if !may_change_all(request.asked) {
            return Ok(together);
        }
        let apart = least_sd(&equal_share(&independent(request), queries)?);
        return Ok(apart.map_or(together, |apart| apart.min(together)));
    }
    least_sd(&equal_share(&independent(request), queries)?)
}

/// The search for the largest ε per query with which all queries together keep within the whole's ε.
struct WholePlanSearch<'a, D> {
    request: &'a Request,
    epsilon: Epsilon,
    delta: Delta,
    queries: u64,
    draft: D,
    progress: &'a Progress,
}

impl<D: Fn(Card) -> Card> WholePlanSearch<'_, D> {
    fn best(&self) -> Result<WholePlan> {
        let (mut best, mut enough) = self.first()?;
        let mut too_much = self.epsilon.value();
        for _ in 0..STEPS {
            let middle = (enough * too_much).sqrt();
            match self.attempt(middle) {
                Ok(Some(planned)) => (best, enough) = (planned, middle),
                // It is too much, or there is no plan at just this ε; the best so far remains.
                Ok(None) | Err(_) => too_much = middle,
            }
        }
        Ok(best)
    }

    /// A card whose queries have equal shares of the sum, and the ε of one of them. Numerical composition rounds up; if that
    /// exceeds the whole's ε, a little less than the share is enough.
    fn first(&self) -> Result<(WholePlan, f64)> {
        let share = self.epsilon.value() / self.queries as f64;
        for single in [share, share * 0.9] {
            if let Some(planned) = self.attempt(single)? {
                return Ok((planned, single));
            }
        }
        let (queries, epsilon) = (self.queries, self.epsilon.value());
        let message = format!("no mechanism was found for which {queries} queries keep within ε = {epsilon}");
        Err(Error::request(message).with_hint("ask for fewer queries, or allow a larger ε").about("epsilon"))
    }

    /// The card whose queries have this ε each; `None` if all of them together exceed the whole's.
    fn attempt(&self, single: f64) -> Result<Option<WholePlan>> {
        let share = request_for_one(self.request, single, self.delta, self.queries)?;
        let plan = nearest_plan(&share, &Progress::default())?;
        let mut card = (self.draft)(Card::new(&share, &plan));
        card.state_claims(self.delta, WorkLimit::default())?;
        self.progress.advance_by(PROGRESS);
        let within = card.claims.whole_release().is_some_and(|whole| whole <= self.epsilon.value());
        Ok(within.then(|| WholePlan::of(card, share, plan, self.queries)))
    }
}

/// The request for one of this many queries, of this ε.
fn request_for_one(request: &Request, single: f64, delta: Delta, queries: u64) -> Result<Request> {
    Ok(Request {
        release: Some((Epsilon::new(single)?, Delta::new(delta.value() / queries as f64)?)),
        linked_epsilon: request.linked_epsilon.map(|linked| linked / queries as f64),
        ..request.clone()
    })
}

/// The request for one of this many queries that all get the same share of what the whole may reveal.
fn equal_share(request: &Request, queries: u64) -> Result<Request> {
    match request.release {
        Some((epsilon, delta)) if request.trust == Trust::OneAggregator => {
            share_of_sum(request, epsilon, delta, queries)
        }
        Some((epsilon, delta)) if queries > 1 => {
            request_for_one(request, epsilon.value() / queries as f64, delta, queries)
        }
        _ => Ok(request.clone()),
    }
}

/// The request for one of this many queries; the claims of all of them, added up, keep within the request for the whole.
fn share_of_sum(request: &Request, epsilon: Epsilon, delta: Delta, queries: u64) -> Result<Request> {
    let release = Some((Epsilon::new(part_of(epsilon.value(), queries))?, delta));
    let linked_epsilon = request.linked_epsilon.map(|linked| part_of(linked, queries));
    Ok(Request { release, linked_epsilon, ..request.clone() })
}

/// The largest double near `whole / queries` that, multiplied again, does not exceed the whole.
fn part_of(whole: f64, queries: u64) -> f64 {
    let queries = queries as f64;
    let mut part = whole / queries;
    while part * queries > whole {
        part = part.next_down();
    }
    part
}

/// The plan of a request, or of one that asks for a little more privacy if the best mechanism cannot be certified at
/// exactly this ε.
fn nearest_plan(request: &Request, progress: &Progress) -> Result<Plan> {
    let first = match plan_with(request, progress) {
        Ok(plan) => return Ok(plan),
        Err(error) => error,
    };
    let stricter = |part: f64| {
        let (epsilon, delta) = request.release?;
        let release = Some((Epsilon::new(epsilon.value() * part).ok()?, delta));
        plan_with(&Request { release, ..request.clone() }, progress).ok()
    };
    STRICTER.into_iter().find_map(stricter).ok_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Prior, least_error};
    use crate::privacy::{linked_epsilon, one_aggregator};

    /// What each query of a ballot or a series may give away adds up to no more than what all of them may.
    #[test]
    fn shares_for_one_honest_aggregator_add_up() {
        for (queries, epsilon) in [(1, 1.0), (2, 1.0), (3, 0.7), (24, 2.5), (49, 0.1)] {
            let epsilon = Epsilon::new(epsilon).unwrap();
            let whole = Request::one_aggregator(5000, Prior::at(50), epsilon).unwrap();
            let (_, delta) = whole.release.unwrap();
            let share = share_of_sum(&whole, epsilon, delta, queries).unwrap();
            let channel = least_error(&share).unwrap().channel();
            let times = queries as f64;
            assert!(one_aggregator(&channel).unwrap().upper() * times <= epsilon.value(), "{queries}");
            assert!(linked_epsilon(&channel).unwrap() * times <= whole.linked_epsilon.unwrap(), "{queries}");
        }
    }
}
