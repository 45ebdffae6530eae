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
    let known = transaction
        .prepare_cached("SELECT state FROM entries WHERE owner = ?1 AND query = ?2")?
        .query_row([owner, &query], |row| row.get::<_, String>(0))
        .optional()?;
    if let Some(state) = known {
        return Ok(Acceptance::Known(State::parse(&state)));
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
        let refuse = |why: String| format!("the policy's lifetime.{} is {epsilon}: {why}", view.replace('_', "-"));
        let mut filter = match budget(transaction, owner, view, epsilon, delta)? {
            Ok(filter) => filter,
            Err(reason) => return Ok(Err(refuse(reason))),
        };
        if let Err(refusal) = spend(&mut filter, cost) {
            return Ok(Err(refuse(refusal)));
        }
        changed.push((view, filter));
    }
    for (view, filter) in changed {
        let text = serde_json::to_string(&filter).map_err(|error| Error::Environment(error.to_string()))?;
        transaction
            .prepare_cached("INSERT OR REPLACE INTO budgets VALUES (?1, ?2, ?3)")?
            .execute([owner, view, &text])?;
    }
    Ok(Ok(()))
}

fn spend(filter: &mut Filter, cost: &Charge) -> std::result::Result<(), String> {
    // The receipt's permission is the entry, which is written in the same transaction.
    filter.try_spend(cost).map(drop).map_err(|refusal| refusal.to_string())
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
        let mut filter = Filter::new(epsilon, delta).map_err(|error| Error::Input(format!("policy: {error}")))?;
        if view == ONE_AGGREGATOR
            && let Err(refusal) = spend_past(transaction, owner, &mut filter)?
        {
            return Ok(Err(format!("what was answered before this budget was kept is beyond it: {refusal}")));
        }
        return Ok(Ok(filter));
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
fn spend_past(
    transaction: &Transaction<'_>,
    owner: &str,
    filter: &mut Filter,
) -> Result<std::result::Result<(), String>> {
    let mut past = transaction.prepare_cached(
        "SELECT card FROM cards WHERE query IN (SELECT min(query) FROM entries WHERE owner = ?1 GROUP BY charge)",
    )?;
    let cards = past.query_map([owner], |row| row.get::<_, String>(0))?;
    for card in cards {
        let card = Card::from_json(&card?).map_err(|error| Error::Environment(format!("ledger: {error}")))?;
        let cost = match one_aggregator_charge(&card) {
            Ok(cost) => cost,
            Err(refusal) => return Ok(Err(refusal.to_string())),
        };
        if let Err(refusal) = spend(filter, &cost) {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(()))
}

pub(super) fn read_filter(text: &str) -> Result<Filter> {
    serde_json::from_str(text).map_err(|error| Error::Environment(format!("ledger: {error}")))
}
