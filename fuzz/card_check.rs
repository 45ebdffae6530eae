//! What must hold for any text that is taken for a card; the fuzz target and the ordinary tests both run it.

use uptack::card::Card;
use uptack::privacy::WorkLimit;

/// Verifying accounts for as many owners and queries as a card says; an hour for one input would find little.
const MOST_OWNERS: u64 = 300;
const MOST_QUERIES: u64 = 8;

/// Reads the text in both forms; whatever is a card has one canonical form, survives both, and is checked or refused.
pub(crate) fn check(text: &str) {
    let read = [Card::from_json(text).ok(), toml::from_str::<Card>(text).ok()];
    for card in read.into_iter().flatten() {
        let canonical = card.canonical();
        let again = Card::from_json(&canonical).unwrap_or_else(|error| panic!("{error}\n{canonical}"));
        assert_eq!(again, card);
        assert_eq!(again.canonical(), canonical);
        let written = toml::to_string(&card).unwrap_or_else(|error| panic!("{error}\n{canonical}"));
        assert_eq!(toml::from_str::<Card>(&written).unwrap_or_else(|error| panic!("{error}\n{written}")), card);
        check_promises(&card);
    }
}

fn check_promises(card: &Card) {
    let _ = (card.window(), card.asked().predicates(), card.trust());
    let _ = (card.claims.worst_answer(), card.claims.whole_linked(), card.claims.whole_release());
    if let Ok(channel) = card.checked_channel() {
        assert_eq!(channel, card.mechanism.count_channel());
    }
    let few = card.claim_owners().is_ok_and(|owners| owners <= MOST_OWNERS);
    if few && card.counted_queries().is_ok_and(|queries| queries <= MOST_QUERIES) {
        // A card that passes with little work passes with more: a claim is only ever found to be better.
        if card.verify(WorkLimit::steps(1000)).is_ok() {
            card.verify(WorkLimit::steps(10_000)).unwrap_or_else(|error| panic!("{error}\n{}", card.canonical()));
        }
    }
}
