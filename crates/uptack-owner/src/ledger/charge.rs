//! What an acceptance costs, and that it is paid once.

use rusqlite::{OptionalExtension, Transaction, params};
use uptack::{
    card::Card,
    privacy::composition::{Charge, Filter},
};

use super::{Acceptance, State};
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
) -> Result<Acceptance> {
    let names = &accepted.names;
    let (query, charged) = (names.query.to_string(), names.charge.to_string());
    if let Some(state) = state_of(transaction, owner, &query)? {
        return Ok(Acceptance::Known(state));
    }
    let number = i64::try_from(names.number)
        .map_err(|_| Error::Input("the card's number in its series is too large".to_owned()))?;
    let mut answered =
        transaction.prepare_cached("SELECT 1 FROM entries WHERE owner = ?1 AND charge = ?2 AND number = ?3")?;
    if answered.exists(params![owner, charged, number])? {
        return Ok(Acceptance::Refused(format!("number {number} of this series has been answered on another card")));
    }
    let mut paid = transaction.prepare_cached("SELECT 1 FROM entries WHERE owner = ?1 AND charge = ?2")?;
    if !paid.exists([owner, &charged])?
        && let Err(reason) = charge(transaction, owner, &accepted.price, lifetime)?
    {
        return Ok(Acceptance::Refused(reason));
    }
    transaction.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 'due')")?.execute(params![
        owner,
        query,
        charged,
        number,
        now as i64,
        upload as i64
    ])?;
    Ok(Acceptance::Charged)
}

/// What became of a query that an owner accepted before.
fn state_of(transaction: &Transaction<'_>, owner: &str, query: &str) -> Result<Option<State>> {
    let state = transaction
        .prepare_cached("SELECT state FROM entries WHERE owner = ?1 AND query = ?2")?
        .query_row([owner, query], |row| row.get::<_, String>(0))
        .optional()?;
    Ok(state.map(|state| State::parse(&state)))
}

/// Charges all views or none; the reason if a budget does not cover it.
fn charge(
    transaction: &Transaction<'_>,
    owner: &str,
    price: &Price,
    lifetime: &LifetimeLimits,
) -> Result<std::result::Result<(), String>> {
    let mut changed = Vec::new();
    let one_aggregator = lifetime.one_aggregator.unwrap_or(Limit::Unlimited);
    for (view, limit, delta, cost) in [
        (LINKED, lifetime.linked, lifetime.delta, &price.linked),
        (ONE_AGGREGATOR, one_aggregator, 0.0, &price.one_aggregator),
        (RELEASE, lifetime.release, lifetime.delta, &price.release),
    ] {
        let (Limit::AtMost(epsilon), Some(cost)) = (limit, cost) else { continue };
        let budget = budget(transaction, owner, view, epsilon, delta)?;
        match budget.and_then(|filter| spent(filter, cost)) {
            Ok(filter) => changed.push((view, filter)),
            Err(why) => {
                let view = view.replace('_', "-");
                return Ok(Err(format!("the policy's lifetime.{view} is {epsilon}: {why}")));
            }
        }
    }
    for (view, filter) in changed {
        store_budget(transaction, owner, view, &filter)?;
    }
    Ok(Ok(()))
}

fn store_budget(transaction: &Transaction<'_>, owner: &str, view: &str, filter: &Filter) -> Result<()> {
    let text = serde_json::to_string(filter).map_err(|error| Error::Environment(error.to_string()))?;
    transaction.prepare_cached("INSERT OR REPLACE INTO budgets VALUES (?1, ?2, ?3)")?.execute([owner, view, &text])?;
    Ok(())
}

/// A budget after a charge; the reason if it does not cover it.
fn spent(mut filter: Filter, cost: &Charge) -> std::result::Result<Filter, String> {
    // The receipt's permission is the entry, which is written in the same transaction.
    match filter.try_spend(cost) {
        Ok(_receipt) => Ok(filter),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// The owner's budget for a view, begun if there is none; the reason if what was answered before is beyond it.
fn budget(
    transaction: &Transaction<'_>,
    owner: &str,
    view: &str,
    epsilon: f64,
    delta: f64,
) -> Result<std::result::Result<Filter, String>> {
    let stored = transaction
        .prepare_cached("SELECT filter FROM budgets WHERE owner = ?1 AND view = ?2")?
        .query_row([owner, view], |row| row.get::<_, String>(0))
        .optional()?;
    let Some(text) = stored else {
        let filter = Filter::new(epsilon, delta).map_err(|error| Error::Input(format!("policy: {error}")))?;
        if view != ONE_AGGREGATOR {
            return Ok(Ok(filter));
        }
        let beyond = |refusal| format!("what was answered before this budget was kept is beyond it: {refusal}");
        return Ok(with_past_spent(transaction, owner, filter)?.map_err(beyond));
    };
    let filter = read_filter(&text)?;
    if (filter.epsilon(), filter.delta()) != (epsilon, delta) {
        return Err(Error::Input(format!(
            "the ledger's budget for the view `{view}` was begun as ({}, {}) and cannot become ({epsilon}, {delta}): \
             what is spent of the one says nothing about the other",
            filter.epsilon(),
            filter.delta()
        )));
    }
    Ok(Ok(filter))
}

/// Charges what the owner answered before it kept a budget for one honest aggregator, as ledgers of earlier versions did not.
///
/// The cost follows from the cards, which the ledger keeps; each charge counts once, whatever its numbers.
fn with_past_spent(
    transaction: &Transaction<'_>,
    owner: &str,
    mut filter: Filter,
) -> Result<std::result::Result<Filter, String>> {
    let mut past = transaction.prepare_cached(
        "SELECT card FROM cards WHERE query IN (SELECT min(query) FROM entries WHERE owner = ?1 GROUP BY charge)",
    )?;
    let cards = past.query_map([owner], |row| row.get::<_, String>(0))?;
    for card in cards {
        let card = Card::from_json(&card?).map_err(|error| Error::Environment(format!("ledger: {error}")))?;
        let cost = one_aggregator_charge(&card).map_err(|refusal| refusal.to_string());
        filter = match cost.and_then(|cost| spent(filter, &cost)) {
            Ok(filter) => filter,
            Err(refusal) => return Ok(Err(refusal)),
        };
    }
    Ok(Ok(filter))
}

pub(super) fn read_filter(text: &str) -> Result<Filter> {
    serde_json::from_str(text).map_err(|error| Error::Environment(format!("ledger: {error}")))
}
