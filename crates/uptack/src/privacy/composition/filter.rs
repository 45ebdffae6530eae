//! A filter for budgets that are spent as one goes: queries may be chosen in the light of earlier answers.
//!
//! # Guarantee
//!
//! However the queries are chosen from earlier answers, all answers that the filter permitted are together
//! (ε, δ)-private for its budget. Each [`Charge`] must dominate its query and be fixed **before** that query's coins are
//! tossed; coins are fresh.
//!
//! # Algorithm
//!
//! A Rényi filter at several orders at once, and basic composition as well. With θ an order, λ the logarithm of the
//! moment E\[e^(θ·loss)\] of a charge over its finite losses and c(θ) = θ^θ/(1+θ)^(1+θ), the expectation of
//! Σ_θ c(θ)·e^(Λ(θ) − θ·ε) does not grow when the Λ pay for λ and ε for the loss; at the end one non-negative Λ suffices.
//! Hence a query is permitted while **at least one** order, or the plain sum of losses, is within its budget, and the
//! mass at infinite loss within its own. `docs/composition.md` has the proof. The orders are chosen from
//! the budget alone, when the filter is made.

use serde::{Deserialize, Serialize};

use super::profile::pure_delta;
use super::{LossDistribution, add_local, at_least_one, not_negative, open_probability};
use crate::Result;
use crate::certified::rounding::{ELEMENTARY, ROUNDOFF, add_up, up};

/// The most that one query (or a few equal ones) can cost, known before its coins are tossed.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    cost: Cost,
    times: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Cost {
    Pure(f64),
    Loss(LossDistribution),
}

impl Charge {
    /// A query with a pure guarantee, as in a local view.
    pub fn pure(epsilon: f64) -> Result<Self> {
        Ok(Self { cost: Cost::Pure(not_negative("epsilon", epsilon)?), times: 1 })
    }

    /// A query that this loss distribution dominates.
    pub fn dominated_by(loss: LossDistribution) -> Self {
        Self { cost: Cost::Loss(loss), times: 1 }
    }

    /// The same, `times` times, permitted or refused as a whole.
    pub fn repeated(self, times: u64) -> Result<Self> {
        let times = self.times.saturating_mul(at_least_one("the number of repetitions", times)?);
        Ok(Self { times, ..self })
    }

    /// An upper bound of δ at `epsilon` for one of the queries.
    pub fn delta(&self, epsilon: f64) -> Result<f64> {
        match &self.cost {
            Cost::Pure(own) => Ok(pure_delta(*own, not_negative("epsilon", epsilon)?)),
            Cost::Loss(loss) => loss.delta(epsilon),
        }
    }

    /// The largest finite loss.
    fn largest(&self) -> f64 {
        self.of_all(match &self.cost {
            Cost::Pure(epsilon) => *epsilon,
            Cost::Loss(loss) => loss.largest_finite_loss(),
        })
    }

    /// The mass at infinite loss.
    fn infinite(&self) -> f64 {
        self.of_all(match &self.cost {
            Cost::Pure(_) => 0.0,
            Cost::Loss(loss) => loss.infinite_mass(),
        })
    }

    /// An upper bound of ln E\[e^(order·loss)\], never negative.
    fn log_moment(&self, order: f64) -> f64 {
        let one = match &self.cost {
            Cost::Pure(epsilon) => pure_log_moment(*epsilon, order),
            Cost::Loss(loss) => loss.log_moment(order),
        };
        self.of_all(one.max(0.0))
    }

    /// The sum over all repetitions, each of this much.
    fn of_all(&self, one: f64) -> f64 {
        add_local(one, self.times).unwrap_or(f64::INFINITY)
    }
}

/// A budget (ε, δ) and the part of it that is spent.
///
/// A refused charge changes nothing. Its serialized form keeps every bit; a form that could not have come from a
/// filter is refused when read.
///
/// ```
/// use uptack::privacy::composition::{Charge, Filter};
/// let mut filter = Filter::new(1.0, 1e-8)?;
/// let charge = Charge::pure(0.4)?;
/// assert!(filter.try_spend(&charge).is_ok());
/// assert!(filter.try_spend(&charge).is_ok());
/// assert!(filter.try_spend(&charge).is_err());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredFilter", into = "StoredFilter")]
pub struct Filter {
    epsilon: f64,
    delta: f64,
    /// Fixed when the filter is made and stored with it: sums at one order say nothing about another.
    orders: [f64; ORDERS],
    spent: FilterTotals,
}

/// Everything that accumulates; it only ever grows.
#[derive(Debug, Clone, PartialEq)]
struct FilterTotals {
    queries: u64,
    /// The sum of the largest finite losses.
    largest: f64,
    /// The sum of the masses at infinite loss.
    infinite: f64,
    /// The sum of the logarithms of moments, at each order.
    moments: [f64; ORDERS],
}

/// The number of orders; each has an equal share of δ.
const ORDERS: usize = 4;
/// The orders relative to the one that is best for Gaussian losses.
const RELATIVE_ORDERS: [f64; ORDERS] = [0.25, 0.5, 1.0, 2.0];
/// The share of δ set aside for infinite losses.
const INFINITE_SHARE: f64 = 0.25;

/// Permission for the queries of one charge: one toss, so it cannot be cloned.
///
/// Store the filter's new state **before** tossing: a toss whose cost was forgotten is spent twice.
#[derive(Debug, PartialEq)]
#[must_use = "store the filter's new state before any coin is tossed"]
pub struct Receipt {
    number: u64,
    queries: u64,
}

impl Receipt {
    /// The queries permitted by the filter so far, these included.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The queries that this receipt permits.
    pub fn queries(&self) -> u64 {
        self.queries
    }
}

/// Why a charge was refused; nothing was spent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterRefusal {
    /// Neither an order nor the plain sum of losses has room for the charge.
    Losses,
    /// The masses at infinite loss would exceed their share of δ.
    InfiniteLosses,
    /// More queries than can be counted.
    Count,
}

impl std::fmt::Display for FilterRefusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Losses => "the privacy budget does not cover this query; nothing was spent",
            Self::InfiniteLosses => "the query's delta exceeds what is left for it; nothing was spent",
            Self::Count => "the number of queries cannot be counted; nothing was spent",
        })
    }
}

impl std::error::Error for FilterRefusal {}

impl Filter {
    /// An unspent budget. δ = 0 admits pure charges only, by their plain sum.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self> {
        let epsilon = not_negative("epsilon", epsilon)?;
        let delta = if delta == 0.0 { 0.0 } else { open_probability(delta)? };
        let spent = FilterTotals { queries: 0, largest: 0.0, infinite: 0.0, moments: [0.0; ORDERS] };
        Ok(Self { epsilon, delta, orders: orders_for(epsilon, delta), spent })
    }

    /// Spends the charge if the budget covers it whatever comes later, else changes nothing.
    pub fn try_spend(&mut self, charge: &Charge) -> Result<Receipt, FilterRefusal> {
        self.spent = self.after(charge)?;
        Ok(Receipt { number: self.spent.queries, queries: charge.times })
    }

    /// Whether the charge would be permitted now.
    pub fn covers(&self, charge: &Charge) -> bool {
        self.after(charge).is_ok()
    }

    /// The budget's ε.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The budget's δ.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The number of queries permitted so far.
    pub fn queries(&self) -> u64 {
        self.spent.queries
    }

    /// How much of the least exhausted measure is spent, between 0 and 1.
    pub fn fraction_spent(&self) -> f64 {
        let by_order = self.orders.iter().zip(self.spent.moments).map(|(order, spent)| {
            let room = self.allotment(*order);
            if room > 0.0 { fraction(spent, room) } else { 1.0 }
        });
        let losses = by_order.fold(fraction(self.spent.largest, self.epsilon), f64::min);
        losses.max(fraction(self.spent.infinite, self.infinite_room()))
    }

    /// What will be spent after the charge, if the budget covers it.
    fn after(&self, charge: &Charge) -> Result<FilterTotals, FilterRefusal> {
        let after = self.spent.plus(charge, &self.orders)?;
        self.check(&after)?;
        Ok(after)
    }

    fn check(&self, after: &FilterTotals) -> Result<(), FilterRefusal> {
        if after.infinite > self.infinite_room() {
            return Err(FilterRefusal::InfiniteLosses);
        }
        let mut by_order = self.orders.iter().zip(after.moments);
        let is_within = by_order.any(|(order, moment)| moment <= self.allotment(*order));
        if is_within || after.largest <= self.epsilon { Ok(()) } else { Err(FilterRefusal::Losses) }
    }

    fn infinite_room(&self) -> f64 {
        // A quarter is exact.
        self.delta * INFINITE_SHARE
    }

    /// The largest Λ with c(θ)·e^(Λ − θ·ε) at most this order's share of δ, rounded down.
    fn allotment(&self, order: f64) -> f64 {
        let share = self.delta * (1.0 - INFINITE_SHARE) / ORDERS as f64;
        if share <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let log_conversion = order * order.ln() - (1.0 + order) * order.ln_1p();
        let terms = share.ln().abs() + order * self.epsilon + 2.0 * (1.0 + order) * (order.ln().abs() + order.ln_1p());
        share.ln() - log_conversion + order * self.epsilon - 4.0 * ELEMENTARY * terms
    }
}

impl FilterTotals {
    fn plus(&self, charge: &Charge, orders: &[f64; ORDERS]) -> Result<Self, FilterRefusal> {
        let moment = |index: usize| add_up(self.moments[index], charge.log_moment(orders[index]));
        Ok(Self {
            queries: self.queries.checked_add(charge.times).ok_or(FilterRefusal::Count)?,
            largest: add_up(self.largest, charge.largest()),
            infinite: add_up(self.infinite, charge.infinite()),
            moments: std::array::from_fn(moment),
        })
    }
}

/// The part of some room that is spent.
fn fraction(spent: f64, room: f64) -> f64 {
    if spent <= 0.0 { 0.0 } else { (spent / room).clamp(0.0, 1.0) }
}

/// The orders, from the budget alone: around √(ln(1/δ)/ρ), where ρ is the zero-concentrated budget that (ε, δ) buys.
fn orders_for(epsilon: f64, delta: f64) -> [f64; ORDERS] {
    if delta <= 0.0 || epsilon <= 0.0 {
        return RELATIVE_ORDERS;
    }
    let log = -delta.ln();
    let root = epsilon / ((log + epsilon).sqrt() + log.sqrt());
    let best = (log.sqrt() / root).clamp(1e-6, 1e9);
    RELATIVE_ORDERS.map(|relative| relative * best)
}

/// ln E\[e^(order·loss)\] of randomized response, which dominates every pure guarantee; rounded up.
fn pure_log_moment(epsilon: f64, order: f64) -> f64 {
    let tilt = epsilon * order;
    // Both logarithms lie in [0, ln 2]; their difference is negative.
    let (high, low) = ((-(epsilon + 2.0 * tilt)).exp().ln_1p(), (-epsilon).exp().ln_1p());
    up((tilt + (high - low)).max(0.0), 4.0 * ROUNDOFF) + 4.0 * ELEMENTARY * (high + low) + 8.0 * ROUNDOFF * tilt
}

/// The form in which a filter is stored: numbers as decimal text, which reads back to the same bits in every format.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredFilter {
    version: u32,
    epsilon: String,
    delta: String,
    orders: [String; ORDERS],
    queries: u64,
    largest: String,
    infinite: String,
    moments: [String; ORDERS],
}

/// The version of the stored form. Other shares of δ need another number, because the sums would mean something else.
const VERSION: u32 = 1;

impl From<Filter> for StoredFilter {
    fn from(filter: Filter) -> Self {
        let text = |number: f64| format!("{number:e}");
        Self {
            version: VERSION,
            epsilon: text(filter.epsilon),
            delta: text(filter.delta),
            orders: filter.orders.map(text),
            queries: filter.spent.queries,
            largest: text(filter.spent.largest),
            infinite: text(filter.spent.infinite),
            moments: filter.spent.moments.map(text),
        }
    }
}

impl TryFrom<StoredFilter> for Filter {
    type Error = String;

    fn try_from(stored: StoredFilter) -> Result<Self, String> {
        if stored.version != VERSION {
            return Err(format!("a privacy budget of version {} cannot be read; this is {VERSION}", stored.version));
        }
        let mut filter = Self::new(number("epsilon", &stored.epsilon)?, number("delta", &stored.delta)?)
            .map_err(|error| error.to_string())?;
        filter.spent = stored.spent()?;
        for (order, text) in filter.orders.iter_mut().zip(&stored.orders) {
            *order = order_of(text)?;
        }
        filter.check(&filter.spent).map_err(|_| "the stored privacy budget is overspent".to_owned())?;
        Ok(filter)
    }
}

impl StoredFilter {
    fn spent(&self) -> Result<FilterTotals, String> {
        let mut moments = [0.0; ORDERS];
        let (largest, infinite) = (number("largest", &self.largest)?, number("infinite", &self.infinite)?);
        for (moment, text) in moments.iter_mut().zip(&self.moments) {
            *moment = number("moments", text)?;
        }
        Ok(FilterTotals { queries: self.queries, largest, infinite, moments })
    }
}

/// A stored number, which is not negative.
fn number(name: &str, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err(format!("{name} of a privacy budget must be a number that is not negative")),
    }
}

/// A stored order of moments.
fn order_of(text: &str) -> Result<f64, String> {
    let order = number("orders", text)?;
    if order.is_normal() {
        Ok(order)
    } else {
        Err("an order of a privacy budget must be positive and finite".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::composition::{Accuracy, ApproximateProfile, Composition, FixedInAdvance, LaplaceProfile};
    use proptest::prelude::*;

    fn spend_all(filter: &mut Filter, charge: &Charge) -> u64 {
        while filter.try_spend(charge).is_ok() {}
        filter.queries()
    }

    #[test]
    fn permits_many_small_queries_beyond_the_plain_sum_but_never_beyond_the_budget() {
        let (budget, delta, each) = (1.0, 1e-8, 0.01);
        let permitted = spend_all(&mut Filter::new(budget, delta).unwrap(), &Charge::pure(each).unwrap());
        assert!(permitted > 200, "basic composition alone permits 100, the filter {permitted}");
        let profile = super::super::PureProfile::new(each).unwrap();
        let accuracy = Accuracy::for_repetitions(permitted, delta);
        let loss = LossDistribution::from_profile(&profile, accuracy).unwrap();
        let composed = Composition::new(FixedInAdvance::repeated(loss, permitted).unwrap());
        let truth = composed.epsilon(delta).unwrap().unwrap();
        assert!(truth.upper() < budget, "{truth:?}");
        assert!(truth.lower() > 0.7 * budget, "the filter wastes too much: {truth:?} after {permitted}");
    }

    #[test]
    fn few_large_queries_add_plainly() {
        let mut filter = Filter::new(1.0, 1e-8).unwrap();
        assert_eq!(spend_all(&mut filter, &Charge::pure(0.25).unwrap()), 4);
        assert_eq!(filter.fraction_spent(), 1.0);
        assert_eq!(spend_all(&mut Filter::new(1.0, 0.0).unwrap(), &Charge::pure(0.25).unwrap()), 4);
    }

    #[test]
    fn a_refusal_spends_nothing_and_smaller_charges_still_pass() {
        let mut filter = Filter::new(1.0, 1e-6).unwrap();
        let before = filter.clone();
        assert_eq!(filter.try_spend(&Charge::pure(5.0).unwrap()), Err(FilterRefusal::Losses));
        assert_eq!(filter, before);
        assert!(filter.covers(&Charge::pure(0.5).unwrap()));
        let receipt = filter.try_spend(&Charge::pure(0.5).unwrap()).unwrap();
        assert_eq!((receipt.number(), receipt.queries()), (1, 1));
    }

    #[test]
    fn infinite_losses_have_a_budget_of_their_own() {
        let loss = |delta: f64| {
            let profile = ApproximateProfile::new(0.01, delta).unwrap();
            LossDistribution::from_profile(&profile, Accuracy::for_repetitions(10, 1e-9)).unwrap()
        };
        let mut filter = Filter::new(1.0, 1e-6).unwrap();
        assert_eq!(spend_all(&mut filter, &Charge::dominated_by(loss(1e-7))), 2);
        assert_eq!(filter.try_spend(&Charge::dominated_by(loss(1e-7))), Err(FilterRefusal::InfiniteLosses));
        let mut none = Filter::new(1.0, 0.0).unwrap();
        assert_eq!(none.try_spend(&Charge::dominated_by(loss(1e-12))), Err(FilterRefusal::InfiniteLosses));
    }

    #[test]
    fn repeated_charges_are_all_or_nothing() {
        let mut filter = Filter::new(1.0, 0.0).unwrap();
        assert!(filter.try_spend(&Charge::pure(0.25).unwrap().repeated(5).unwrap()).is_err());
        assert_eq!(filter.queries(), 0);
        assert!(filter.try_spend(&Charge::pure(0.25).unwrap().repeated(3).unwrap()).is_ok());
        assert_eq!(filter.queries(), 3);
        assert!(Charge::pure(0.1).unwrap().repeated(0).is_err());
    }

    #[test]
    fn the_stored_form_keeps_every_bit_and_refuses_nonsense() {
        let mut filter = Filter::new(0.3, 1e-9).unwrap();
        let profile = LaplaceProfile::new(0.011).unwrap();
        let loss = LossDistribution::from_profile(&profile, Accuracy::for_repetitions(100, 1e-9)).unwrap();
        for _ in 0..7 {
            let _receipt = filter.try_spend(&Charge::dominated_by(loss.clone())).unwrap();
        }
        let text = serde_json::to_string(&filter).unwrap();
        assert_eq!(serde_json::from_str::<Filter>(&text).unwrap(), filter);
        for (from, to) in [
            ("\"version\":1", "\"version\":2"),
            ("\"epsilon\":\"3e-1\"", "\"epsilon\":\"NaN\""),
            ("\"epsilon\":\"3e-1\"", "\"epsilon\":\"-3e-1\""),
            ("\"queries\":7", "\"queries\":-7"),
            ("\"queries\":7", "\"queries\":7,\"refund\":1"),
            ("\"infinite\":\"", "\"infinite\":\"9"),
        ] {
            let bad = text.replace(from, to);
            assert_ne!(bad, text, "{from}");
            assert!(serde_json::from_str::<Filter>(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_pure_moment_is_that_of_randomized_response() {
        for (epsilon, order) in [(0.5_f64, 3.0_f64), (2.0, 0.3), (1e-4, 50.0), (8.0, 10.0)] {
            let yes = 1.0 / (1.0 + (-epsilon).exp());
            let direct = (yes * (order * epsilon).exp() + (1.0 - yes) * (-order * epsilon).exp()).ln();
            let own = pure_log_moment(epsilon, order);
            assert!(
                own >= direct * (1.0 - 1e-15) - 1e-15 && own < direct * (1.0 + 1e-14) + 1e-13,
                "{epsilon} {order}: {own} {direct}"
            );
        }
    }

    /// The best an adversary can do who picks the next query in the light of all earlier answers, by dynamic
    /// programming over how often each query was asked and how its coins fell.
    struct Adversary {
        menu: Vec<f64>,
        known: std::collections::HashMap<Vec<(u32, i32)>, f64>,
    }

    impl Adversary {
        fn best(&mut self, filter: &Filter, asked: &[(u32, i32)]) -> f64 {
            if let Some(delta) = self.known.get(asked) {
                return *delta;
            }
            let loss: f64 = asked.iter().zip(&self.menu).map(|((_, net), each)| f64::from(*net) * each).sum();
            let mut best = -(filter.epsilon() - loss).exp_m1().min(0.0);
            for (query, each) in self.menu.clone().into_iter().enumerate() {
                let mut after = filter.clone();
                if after.try_spend(&Charge::pure(each).unwrap()).is_err() {
                    continue;
                }
                let mut turn = |net: i32| {
                    let mut asked = asked.to_vec();
                    asked[query] = (asked[query].0 + 1, asked[query].1 + net);
                    self.best(&after, &asked)
                };
                let truth = 1.0 / (1.0 + (-each).exp());
                best = best.max(truth * turn(1) + (1.0 - truth) * turn(-1));
            }
            self.known.insert(asked.to_vec(), best);
            best
        }
    }

    #[test]
    fn the_best_adaptive_adversary_stays_within_the_budget() {
        for (epsilon, delta, menu) in [
            (1.0, 1e-2, vec![0.1, 0.3]),
            (2.0, 1e-3, vec![0.1, 0.25]),
            (0.5, 1e-2, vec![0.03, 0.07]),
            (1.0, 1e-2, vec![0.08, 0.2, 0.6]),
        ] {
            let filter = Filter::new(epsilon, delta).unwrap();
            let start = vec![(0, 0); menu.len()];
            let reached = Adversary { menu, known: Default::default() }.best(&filter, &start);
            assert!(reached <= delta, "({epsilon}, {delta}): {reached:e}");
            // The test has teeth: the adversary gets somewhere, beyond what the plain sum of losses allows.
            assert!(reached > 0.05 * delta, "({epsilon}, {delta}): {reached:e}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_spent_only_grows(costs in proptest::collection::vec(0.0_f64..0.3, 1..60)) {
            let mut filter = Filter::new(1.0, 1e-6).unwrap();
            for cost in costs {
                let before = filter.clone();
                match filter.try_spend(&Charge::pure(cost).unwrap()) {
                    Ok(_receipt) => {
                        prop_assert!(filter.spent.largest >= before.spent.largest + cost - 1e-15);
                        prop_assert!(filter.fraction_spent() >= before.fraction_spent());
                        prop_assert!((0..ORDERS).all(|at| filter.spent.moments[at] >= before.spent.moments[at]));
                    }
                    Err(_) => prop_assert_eq!(&filter, &before),
                }
            }
        }

        #[test]
        fn adaptive_mixes_stay_within_the_budget(costs in proptest::collection::vec(1e-3_f64..0.2, 1..200)) {
            // Whatever was permitted, in whatever order, the composition of the permitted list is within the budget.
            let (budget, delta) = (1.0, 1e-6);
            let mut filter = Filter::new(budget, delta).unwrap();
            let steps = [0.002, 0.01, 0.05, 0.2];
            let mut counts = [0_u64; 4];
            for cost in costs {
                let step = steps.iter().position(|step| cost <= *step).unwrap_or(3);
                if filter.try_spend(&Charge::pure(steps[step]).unwrap()).is_ok() {
                    counts[step] += 1;
                }
            }
            let list = steps.iter().zip(counts).filter(|(_, count)| *count > 0).map(|(step, count)| {
                let profile = super::super::PureProfile::new(*step).unwrap();
                let accuracy = Accuracy::for_repetitions(200, delta);
                (LossDistribution::from_profile(&profile, accuracy).unwrap(), count)
            });
            let composed = Composition::new(FixedInAdvance::new(list).unwrap());
            prop_assert!(composed.epsilon(delta).unwrap().unwrap().lower() <= budget);
        }
    }
}
