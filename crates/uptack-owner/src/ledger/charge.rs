//! Charges for accepted cards, each once.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use uptack::{
    card::Card,
    privacy::composition::{Charge, Filter},
};

use super::{ChargeDecision, State, execute, select_rows, select_text};
use crate::{
    check::{Accepted, Checker},
    error::{Error, Result},
    policy::BudgetView,
};

/// The reason why a budget does not cover a charge.
type Covered<T> = std::result::Result<T, String>;

/// Charges one owner for one card, unless it has answered it before.
pub(super) fn accept(
    transaction: &Transaction<'_>,
    accepted: &Accepted,
    owner: &str,
    upload: u64,
    checker: &Checker,
    now: u64,
) -> Result<ChargeDecision> {
    let names = &accepted.names;
    let (query, charged) = (names.query.to_string(), names.charge.to_string());
    if let Some(state) = state_of(transaction, owner, &query)? {
        return Ok(ChargeDecision::Known(state));
    }
    let number = i64::try_from(names.number)
        .map_err(|_| Error::Input("the card's number in its series is too large".to_owned()))?;
    let owned = OwnerAccounts { transaction, owner, checker };
    if owned.has_answered(&charged, number)? {
        return Ok(ChargeDecision::Refused(format!(
            "number {number} of this series has been answered on another card"
        )));
    }
    let place = match owned.place_of(&charged)? {
        Some(paid) => paid,
        None => match owned.charge(accepted)? {
            Ok(place) => place,
            Err(reason) => return Ok(ChargeDecision::Refused(reason)),
        },
    };
    let entry = params![owner, query, charged, number, now as i64, upload as i64, place];
    execute(transaction, "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 'due', ?7)", entry)?;
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

/// A budget that an owner keeps: for one view, of all cards or of those of one signer.
struct Account {
    view: BudgetView,
    /// Empty for all cards.
    signer: String,
    epsilon: f64,
    delta: f64,
    /// The limit, as the policy names it.
    limit: String,
}

impl Account {
    /// The accounts that a card of this signer is charged to.
    fn all(checker: &Checker, signer: &str) -> Vec<Self> {
        let lifetime = &checker.policy().lifetime;
        let mut accounts = Vec::new();
        for view in BudgetView::ALL {
            let Some((epsilon, delta)) = lifetime.budget(view) else { continue };
            let name = format!("lifetime.{}", view.word().replace('_', "-"));
            let limit = format!("{name} is {epsilon}");
            accounts.push(Self { view, signer: String::new(), epsilon, delta, limit });
            if let Some(share) = &lifetime.share_per_signer {
                let epsilon = epsilon * share.to_f64();
                let limit = format!("lifetime.share-per-signer leaves {epsilon} of {name} to {signer}");
                accounts.push(Self { view, signer: signer.to_owned(), epsilon, delta, limit });
            }
        }
        accounts
    }

    fn new_budget(&self) -> Result<Filter> {
        Filter::new(self.epsilon, self.delta).map_err(|error| Error::Input(format!("policy: {error}")))
    }

    /// Whether a card is charged to this account.
    fn has(&self, card: &Card) -> bool {
        self.signer.is_empty() || card.signer.as_deref() == Some(&self.signer)
    }

    /// Refuses a stored budget that was begun with other numbers.
    fn check_begun(&self, filter: &Filter) -> Result<()> {
        if (filter.epsilon(), filter.delta()) == (self.epsilon, self.delta) {
            return Ok(());
        }
        Err(Error::Input(format!(
            "the ledger's budget for the view `{}` was begun as ({}, {}) and cannot become ({}, {}): \
             what is spent of the one says nothing about the other",
            self.view.word(),
            filter.epsilon(),
            filter.delta(),
            self.epsilon,
            self.delta
        )))
    }

    fn refusal(&self, why: &str) -> String {
        format!("the policy's {}: {why}", self.limit)
    }
}

/// What one owner has answered and paid for, within a transaction.
///
/// Every charge has a place: the owner's first is 1. A budget notes the place up to which charges are counted in it, because
/// while a view is unlimited nothing is charged to its budget. What it missed is charged before anything else is.
struct OwnerAccounts<'a> {
    transaction: &'a Transaction<'a>,
    owner: &'a str,
    checker: &'a Checker,
}

impl OwnerAccounts<'_> {
    /// Whether the charge's answer of this number has been given.
    fn has_answered(&self, charged: &str, number: i64) -> Result<bool> {
        let answered = "SELECT 1 FROM entries WHERE owner = ?1 AND charge = ?2 AND number = ?3";
        Ok(self.transaction.prepare_cached(answered)?.exists(params![self.owner, charged, number])?)
    }

    /// The place of a charge of which any answer has been given, so that all of them are paid for.
    fn place_of(&self, charged: &str) -> Result<Option<i64>> {
        let paid = "SELECT min(place) FROM entries WHERE owner = ?1 AND charge = ?2";
        Ok(self.transaction.prepare_cached(paid)?.query_row([self.owner, charged], |row| row.get(0))?)
    }

    /// Charges all accounts or none, and returns the charge's place; the reason if a budget does not cover it.
    fn charge(&self, accepted: &Accepted) -> Result<Covered<i64>> {
        let mut changed = Vec::new();
        for account in Account::all(self.checker, &accepted.opened.signer.to_string()) {
            let cost = accepted.price.of(account.view).ok_or_else(|| Error::environment("a card without a price"))?;
            match self.budget(&account)?.and_then(|filter| spent(filter, cost)) {
                Ok(filter) => changed.push((account, filter)),
                Err(why) => return Ok(Err(account.refusal(&why))),
            }
        }
        let place = self.last_place()? + 1;
        for (account, filter) in changed {
            self.store_budget(&account, &filter, place)?;
        }
        Ok(Ok(place))
    }

    fn last_place(&self) -> Result<i64> {
        let last = "SELECT ifnull(max(place), 0) FROM entries WHERE owner = ?1";
        Ok(self.transaction.prepare_cached(last)?.query_row([self.owner], |row| row.get(0))?)
    }

    /// An account's budget with everything counted that was answered before; the reason if that exceeds it.
    fn budget(&self, account: &Account) -> Result<Covered<Filter>> {
        let (filter, counted) = match self.stored_budget(account)? {
            Some(stored) => stored,
            None => (account.new_budget()?, 0),
        };
        account.check_begun(&filter)?;
        self.spend_missed(filter, account, counted)
    }

    fn stored_budget(&self, account: &Account) -> Result<Option<(Filter, i64)>> {
        let stored = "SELECT filter, counted FROM budgets WHERE owner = ?1 AND view = ?2 AND signer = ?3";
        let mut statement = self.transaction.prepare_cached(stored)?;
        let found = statement.query_row([self.owner, account.view.word(), &account.signer], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?))
        });
        found.optional()?.map(|(text, counted)| Ok((read_filter(&text)?, counted))).transpose()
    }

    fn store_budget(&self, account: &Account, filter: &Filter, counted: i64) -> Result<()> {
        let text = serde_json::to_string(filter).map_err(Error::environment)?;
        let budget = params![self.owner, account.view.word(), account.signer, text, counted];
        execute(self.transaction, "INSERT OR REPLACE INTO budgets VALUES (?1, ?2, ?3, ?4, ?5)", budget)
    }

    /// Charges for what was answered after a place, while the view had no limit or no budget of this kind was kept.
    ///
    /// The cost follows from the cards, which the ledger keeps; each charge counts once, however many numbers were answered.
    fn spend_missed(&self, mut filter: Filter, account: &Account, counted: i64) -> Result<Covered<Filter>> {
        for text in self.cards_after(counted)? {
            let card = Card::from_json(&text).map_err(|error| Error::Environment(format!("ledger: {error}")))?;
            if !account.has(&card) {
                continue;
            }
            let cost = self.checker.charge(&card, account.view).map_err(|refusal| refusal.to_string());
            filter = match cost.and_then(|cost| spent(filter, &cost)) {
                Ok(filter) => filter,
                Err(refusal) => {
                    return Ok(Err(format!(
                        "what was answered before this budget was kept is beyond it: {refusal}; only a larger budget, or none, \
                         covers what was answered"
                    )));
                }
            };
        }
        Ok(Ok(filter))
    }

    /// The text of one card for each charge after a place.
    fn cards_after(&self, place: i64) -> Result<Vec<String>> {
        let after = "SELECT card FROM cards WHERE query IN
             (SELECT min(query) FROM entries WHERE owner = ?1 AND place > ?2 GROUP BY charge)";
        select_rows(self.transaction, after, params![self.owner, place], |row| row.get(0))
    }
}

/// A budget after a charge; the reason if it does not cover it.
fn spent(mut filter: Filter, cost: &Charge) -> Covered<Filter> {
    // The receipt's permission is the entry, which is written in the same transaction.
    match filter.try_spend(cost) {
        Ok(_receipt) => Ok(filter),
        Err(refusal) => Err(refusal.to_string()),
    }
}
