//! The one task that a query card defines.
//!
//! The task's name is the SHA-256 of the card's canonical bytes, and everything else follows from the card. So an
//! owner and each aggregator compute the task for themselves: a desk that showed two owners different cards would send
//! them to different tasks, and nobody could be given a smaller minimum batch than the card's.

use uptack::card::{Card, CardQuestion};
use uptack::contribution::AnyMechanism;

use crate::{
    address, ballot,
    crypto::sha256,
    error::{Error, Result},
    protocol::{TaskId, VdafKind},
    task::{RETENTION, TaskParameters},
};

/// The names that a card stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardNames {
    /// The name of the query and of its task: the hash of the card.
    pub query: TaskId,
    /// What an owner pays for once: the hash of the series, or of the card if it belongs to none.
    pub charge: TaskId,
    /// Which answer of that charge the card asks for, from 1.
    pub number: u64,
}

/// All names of a card. They are derived here and nowhere else, so that charges and answers cannot drift apart.
///
/// `docs/card.md` says what identifies a charge. Two cards have the same `charge` only if they differ in nothing but
/// their number and the window that follows from it; an owner answers each (`charge`, `number`) once.
pub fn names(card: &Card) -> Result<CardNames> {
    let query = task_id(&card.canonical());
    let Some(series) = &card.series else { return Ok(CardNames { query, charge: query, number: 1 }) };
    let number = series.number.ok_or_else(|| Error::input("card: series.number is left open"))?;
    Ok(CardNames { query, charge: task_id(&card.without_number().canonical()), number })
}

/// The name of a card's task, which is also the name of its query.
pub fn task_id(canonical: &str) -> TaskId {
    TaskId::from(sha256(canonical.as_bytes()))
}

/// Reads a card in its canonical form; any other form of the same card is refused, because its hash differs.
pub fn read(canonical: &str) -> Result<Card> {
    let card = Card::from_json(canonical).map_err(Error::input_because)?;
    if card.canonical() != canonical {
        return Err(Error::input("the card is not in its canonical form"));
    }
    Ok(card)
}

/// The task of a card.
pub fn parameters(card: &Card) -> Result<TaskParameters> {
    let (opens, closes) = card.window().map_err(fault)?;
    let precision = closes - opens;
    if opens % precision != 0 {
        return Err(Error::input("card: the window does not begin at a multiple of its length"));
    }
    let Some(aggregators) = &card.aggregators else {
        return Err(Error::input("card: no aggregators are named"));
    };
    let address = |name: &str, text: &str| {
        let refuse = |error: Error| Error::input(format!("card: aggregators.{name}: {error}"));
        let url = address::parse(text).map_err(refuse)?;
        address::check_address(&url).map_err(refuse)?;
        Ok::<_, Error>(url)
    };
    let channel = card.checked_channel().map_err(fault)?;
    if matches!(card.mechanism, AnyMechanism::Contributions(_)) {
        card.check_form().map_err(fault)?;
    }
    let vdaf = match (card.asked(), channel.noise()) {
        (CardQuestion::Person(_) | CardQuestion::Predicate(_), _) => VdafKind::for_channel(&channel),
        (CardQuestion::Ballot(asked), None) => ballot::kind(asked.queries.len()),
        (CardQuestion::Ballot(asked), Some(_)) => ballot::noisy_kind(asked.queries.len()),
    };
    let leader = address("leader", &aggregators.leader)?;
    let helper = address("helper", &aggregators.helper)?;
    let mut parameters = TaskParameters::new(leader, helper, vdaf, precision, card.minimum_batch);
    parameters.task_id = names(card)?.query;
    parameters.task_expiration = Some(closes);
    parameters.report_expiry_age = Some(precision + RETENTION);
    parameters.noise = channel.noise().copied();
    parameters.validate()?;
    Ok(parameters)
}

fn fault(error: uptack::Error) -> Error {
    Error::input(format!("card: {error}")).because(error)
}

/// Whether a task is the card's.
pub(crate) fn check(canonical: &str, stated: &TaskParameters) -> Result<()> {
    if parameters(&read(canonical)?)? == *stated {
        return Ok(());
    }
    Err(Error::input("task: the parameters are not those of the card"))
}

/// The narrowest window that holds `now`, begins at a multiple of its length and ends `lasting` seconds from now or
/// a little later.
///
/// A window of exactly that length and alignment rarely holds both moments; one that is longer by about the square
/// root of twice the length nearly always does.
pub fn window(now: u64, lasting: u64) -> Result<(u64, u64)> {
    let lasting = lasting.max(1);
    let until = now
        .checked_add(lasting)
        .ok_or_else(|| Error::input("the query would close after the largest time that can be represented"))?;
    let fits = |length: &u64| until.div_ceil(*length) * length <= now + length;
    match (lasting..=until).find(fits) {
        Some(length) => {
            let closes = until.div_ceil(length) * length;
            Ok((closes - length, closes))
        }
        None => Err(Error::input("the query would close after the largest time that can be represented")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_now_and_close_little_later_than_asked() {
        for (now, lasting) in [(1_763_246_000, 600), (1_763_246_001, 20), (1_763_999_999, 86_400), (1_700_000_123, 1)] {
            let (opens, closes) = window(now, lasting).unwrap();
            let length = closes - opens;
            assert_eq!(opens % length, 0);
            assert!(opens <= now && closes >= now + lasting, "{opens} {now} {closes}");
            let slack = closes - now - lasting;
            assert!(slack as f64 <= 8.0 * (lasting as f64).sqrt() + 2.0, "{lasting} s close {slack} s late");
        }
        assert!(window(u64::MAX, 1).is_err());
    }
}
