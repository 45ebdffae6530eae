//! Charges for accepted cards, each once.

use rusqlite::{Connection, Transaction, params};
use uptack::{
    card::Card,
    privacy::composition::{Charge, Filter},
};

use super::{ChargeDecision, State, execute, select_rows, select_text};
use crate::{
    check::{Accepted, Price, one_aggregator_charge},
    error::{Error, Result},
    policy::{LifetimeLimits, Limit},
};

/// The views that budgets are kept for, as the file names them.
const LINKED: &str = "linked";
const ONE_AGGREGATOR: &str = "one_aggregator";
const RELEASE: &str = "release";

/// Charges one owner for one card, unless it has answered it before.
pub(super) fn accept(
    transaction: &Transaction<'_>,
    accepted: &Accepted,
    owner: &str,
    upload: u64,
    lifetime: &LifetimeLimits,
    now: u64,
) -> Result<ChargeDecision> {
    let names = &accepted.names;
    let (query, charged) = (names.query.to_string(), names.charge.to_string());
    if let Some(state) = state_of(transaction, owner, &query)? {
        return Ok(ChargeDecision::Known(state));
    }
    let number = i64::try_from(names.number)
        .map_err(|_| Error::Input("the card's number in its series is too large".to_owned()))?;
    let account = OwnerAccount { transaction, owner };
    if account.has_answered(&charged, number)? {
        return Ok(ChargeDecision::Refused(format!(
            "number {number} of this series has been answered on another card"
        )));
    }
    if !account.has_paid(&charged)?
        && let Err(reason) = account.charge(&accepted.price, lifetime)?
    {
        return Ok(ChargeDecision::Refused(reason));
    }
    let entry = params![owner, query, charged, number, now as i64, upload as i64];
    execute(transaction, "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 'due')", entry)?;
    Ok(ChargeDecision::Charged)
}

/// Where an owner's entry for a query stands; `None` if there is none.
pub(super) fn state_of(connection: &Connection, owner: &str, query: &str) -> Result<Option<State>> {
    let word = select_text(connection, "SELECT state FROM entries WHERE owner = ?1 AND query = ?2", [owner, query])?;
    Ok(word.map(|word| State::parse(&word)))
}

pub(super) fn read_filter(text: &str) -> Result<Filter> {
    serde_json::from_str(text).map_err(|error| Error::Environment(format!("ledger: {error}")))
}

/// What a card costs in one view, and the lifetime budget for that view.
struct ViewCharge<'a> {
    view: &'static str,
    epsilon: f64,
    delta: f64,
    cost: &'a Charge,
}

impl<'a> ViewCharge<'a> {
    /// The charges for all views that have a budget.
    fn all(price: &'a Price, lifetime: &LifetimeLimits) -> impl Iterator<Item = Self> {
        let one_aggregator = lifetime.one_aggregator.unwrap_or(Limit::Unlimited);
        let views = [
            (LINKED, lifetime.linked, lifetime.delta, &price.linked),
            (ONE_AGGREGATOR, one_aggregator, 0.0, &price.one_aggregator),
            (RELEASE, lifetime.release, lifetime.delta, &price.release),
        ];
        views.into_iter().filter_map(|(view, limit, delta, cost)| match (limit, cost) {
            (Limit::AtMost(epsilon), Some(cost)) => Some(Self { view, epsilon, delta, cost }),
            _ => None,
        })
    }

    fn new_budget(&self) -> Result<Filter> {
        Filter::new(self.epsilon, self.delta).map_err(|error| Error::Input(format!("policy: {error}")))
    }

    fn refusal(&self, why: &str) -> String {
        let (view, epsilon) = (self.view.replace('_', "-"), self.epsilon);
        format!("the policy's lifetime.{view} is {epsilon}: {why}")
    }
}

/// What one owner has answered and paid for, within a transaction.
struct OwnerAccount<'a> {
    transaction: &'a Transaction<'a>,
    owner: &'a str,
}

impl OwnerAccount<'_> {
    /// Whether the charge's answer of this number has been given.
    fn has_answered(&self, charged: &str, number: i64) -> Result<bool> {
        let answered = "SELECT 1 FROM entries WHERE owner = ?1 AND charge = ?2 AND number = ?3";
        Ok(self.transaction.prepare_cached(answered)?.exists(params![self.owner, charged, number])?)
    }

    /// Whether any answer of the charge has been given, so that all of them are paid for.
    fn has_paid(&self, charged: &str) -> Result<bool> {
        let paid = "SELECT 1 FROM entries WHERE owner = ?1 AND charge = ?2";
        Ok(self.transaction.prepare_cached(paid)?.exists([self.owner, charged])?)
    }

    /// Charges all views or none; the reason if a budget does not cover it.
    fn charge(&self, price: &Price, lifetime: &LifetimeLimits) -> Result<std::result::Result<(), String>> {
        let mut changed = Vec::new();
        for charge in ViewCharge::all(price, lifetime) {
            match self.budget(&charge)?.and_then(|filter| spent(filter, charge.cost)) {
                Ok(filter) => changed.push((charge.view, filter)),
                Err(why) => return Ok(Err(charge.refusal(&why))),
            }
        }
        for (view, filter) in changed {
            self.store_budget(view, &filter)?;
        }
        Ok(Ok(()))
    }

    /// The budget for a view, begun if there is none; the reason if what was answered before exceeds it.
    fn budget(&self, charge: &ViewCharge<'_>) -> Result<std::result::Result<Filter, String>> {
        let Some(filter) = self.stored_budget(charge.view)? else {
            let filter = charge.new_budget()?;
            return if charge.view == ONE_AGGREGATOR { self.spend_past(filter) } else { Ok(Ok(filter)) };
        };
        let (epsilon, delta) = (charge.epsilon, charge.delta);
        if (filter.epsilon(), filter.delta()) == (epsilon, delta) {
            return Ok(Ok(filter));
        }
        Err(Error::Input(format!(
            "the ledger's budget for the view `{}` was begun as ({}, {}) and cannot become ({epsilon}, {delta}): \
             what is spent of the one says nothing about the other",
            charge.view,
            filter.epsilon(),
            filter.delta()
        )))
    }

    fn stored_budget(&self, view: &str) -> Result<Option<Filter>> {
        let stored = "SELECT filter FROM budgets WHERE owner = ?1 AND view = ?2";
        let text = select_text(self.transaction, stored, [self.owner, view])?;
        text.map(|text| read_filter(&text)).transpose()
    }

    fn store_budget(&self, view: &str, filter: &Filter) -> Result<()> {
        let text = serde_json::to_string(filter).map_err(Error::environment)?;
        execute(self.transaction, "INSERT OR REPLACE INTO budgets VALUES (?1, ?2, ?3)", [self.owner, view, &text])
    }

    /// Charges for what was answered before there was a budget for one honest aggregator; ledgers of earlier versions had none.
    ///
    /// The cost follows from the cards, which the ledger keeps; each charge counts once, however many numbers were answered.
    fn spend_past(&self, mut filter: Filter) -> Result<std::result::Result<Filter, String>> {
        for text in self.past_cards()? {
            let card = Card::from_json(&text).map_err(|error| Error::Environment(format!("ledger: {error}")))?;
            let cost = one_aggregator_charge(&card).map_err(|refusal| refusal.to_string());
            filter = match cost.and_then(|cost| spent(filter, &cost)) {
                Ok(filter) => filter,
                Err(refusal) => {
                    return Ok(Err(format!("what was answered before this budget was kept is beyond it: {refusal}")));
                }
            };
        }
        Ok(Ok(filter))
    }

    /// The text of one card for each charge that was paid.
    fn past_cards(&self) -> Result<Vec<String>> {
        let past =
            "SELECT card FROM cards WHERE query IN (SELECT min(query) FROM entries WHERE owner = ?1 GROUP BY charge)";
        select_rows(self.transaction, past, [self.owner], |row| row.get(0))
    }
}

/// A budget after a charge; the reason if it does not cover it.
fn spent(mut filter: Filter, cost: &Charge) -> std::result::Result<Filter, String> {
    // The receipt's permission is the entry, which is written in the same transaction.
    match filter.try_spend(cost) {
        Ok(_receipt) => Ok(filter),
        Err(refusal) => Err(refusal.to_string()),
    }
}
