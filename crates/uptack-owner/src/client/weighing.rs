//! Which cards are weighed at a visit, in which order, and what goes on meanwhile.
//!
//! To weigh a card is to recompute a stranger's claims, which takes work. An analyst can open many cards that are expensive to
//! weigh, so a visit weighs a limited number of them, each signer's in turn. The others are weighed at the next visit, before
//! any that it finds new. Reports are sent at their moments, whatever is being weighed.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use uptack_dap::signed::SignedCard;

use super::{Client, ClientEvent, Outcome};
use crate::{
    attributes::Attributes,
    check::{Allowed, Asked},
    error::{Error, Result},
    ledger::Seen,
    schedule::{self, FIXED_DELAY},
};

/// How many cards' claims one visit recomputes, unless [`Config::most_weighed`](super::Config) says otherwise: about a minute on
/// a small device. A smaller number makes owners answer a busy desk over several visits; a larger one lets an analyst keep a
/// device busy for longer.
pub(super) const MOST_WEIGHED: usize = 32;

/// After this many seconds of weighing, the cards that were accepted so far are charged and their reports made.
const LONGEST_BATCH: u64 = 10;

/// How long a visit waits for a pause between two reports before it moves those that are due, in seconds.
const LONGEST_WAIT: u64 = 2 * FIXED_DELAY;

/// The cards of one visit that are still to be decided.
pub(super) struct Agenda<'a> {
    /// Those that take no work: known, refused by what they state, or with claims that are known.
    free: Vec<&'a SignedCard>,
    /// Those that have to be weighed, in their order.
    costly: VecDeque<&'a SignedCard>,
    /// How many may still be weighed.
    left: usize,
}

/// A card that has to be weighed, and what its turn depends on.
struct Candidate<'a> {
    signed: &'a SignedCard,
    signer: String,
    closes: u64,
    seen: Seen,
}

impl Candidate<'_> {
    /// Cards that were weighed least come first, then those that have waited longest, then those that close soonest.
    fn turn(&self) -> (u64, u64, u64, &str) {
        (self.seen.weighed, self.seen.first, self.closes, &self.signed.query)
    }
}

impl Client {
    /// Puts the cards into the order in which they are decided.
    pub(super) fn agenda<'a>(
        &self,
        attributes: &BTreeMap<String, Attributes>,
        cards: &'a [SignedCard],
    ) -> Result<Agenda<'a>> {
        let now = self.now();
        let (mut free, mut costly) = (Vec::new(), Vec::new());
        for signed in cards.iter().filter(|signed| self.wants(signed)) {
            match self.checker.allow(signed, now) {
                Ok(allowed) if self.takes_work(attributes, signed, &allowed)? => costly.push((signed, allowed)),
                _ => free.push(signed),
            }
        }
        let seen = self.ledger.see(costly.iter().map(|(signed, allowed)| (&*signed.query, allowed.window.1)), now)?;
        let candidates = costly.into_iter().zip(seen).map(|((signed, allowed), seen)| Candidate {
            signed,
            signer: allowed.opened.signer.to_string(),
            closes: allowed.window.1,
            seen,
        });
        Ok(Agenda { free, costly: in_turn(candidates), left: self.config.most_weighed })
    }

    /// Whether deciding about a card takes work.
    fn takes_work(
        &self,
        attributes: &BTreeMap<String, Attributes>,
        signed: &SignedCard,
        allowed: &Allowed,
    ) -> Result<bool> {
        if self.checker.is_computed(&allowed.opened.card) || (self.config.people_only && is_for_devices(allowed)) {
            return Ok(false);
        }
        for owner in attributes.keys() {
            if self.ledger.state(owner, &signed.query)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Weighs the questions for people, because a person is asked only what is known to be true; they may take half of the visit's
    /// work. Returns how many reports were acknowledged meanwhile.
    pub(super) async fn weigh_for_people(&self, agenda: &mut Agenda<'_>) -> Result<usize> {
        let (mut sent, mut left) = (0, agenda.left.div_ceil(2));
        let is_for_person =
            |signed: &SignedCard| self.checker.allow_card(signed).is_ok_and(|allowed| !is_for_devices(&allowed));
        for place in 0..agenda.costly.len() {
            let signed = agenda.costly[place];
            if left > 0 && is_for_person(signed) {
                sent += self.weigh(signed, &mut left).await?;
            }
        }
        agenda.left -= agenda.left.div_ceil(2) - left;
        agenda.free.extend(agenda.costly.iter().filter(|signed| self.is_weighed(signed)));
        agenda.costly.retain(|signed| !self.is_weighed(signed));
        Ok(sent)
    }

    /// The next cards to decide: those that take no work, and those that could be weighed within a while. Empty if there is none,
    /// or if the visit's work is done. Returns how many reports were acknowledged meanwhile as well.
    pub(super) async fn next_batch<'a>(&self, agenda: &mut Agenda<'a>) -> Result<(Vec<&'a SignedCard>, usize)> {
        let mut batch = std::mem::take(&mut agenda.free);
        let (mut sent, began) = (0, self.now());
        while let Some(signed) = agenda.costly.front().copied() {
            let is_late = !batch.is_empty() && self.now() >= began + LONGEST_BATCH;
            if !self.is_weighed(signed) && (agenda.left == 0 || is_late) {
                break;
            }
            sent += self.weigh(signed, &mut agenda.left).await?;
            batch.extend(agenda.costly.pop_front());
        }
        Ok((batch, sent))
    }

    /// Whether a card's claims are known, perhaps because another card has the same.
    fn is_weighed(&self, signed: &SignedCard) -> bool {
        let known = |allowed: &Allowed| self.checker.is_computed(&allowed.opened.card);
        self.checker.allow_card(signed).map_or(true, |allowed| known(&allowed))
    }

    /// Recomputes a card's claims on another thread, and sends the reports that are due meanwhile. Returns how many were
    /// acknowledged.
    async fn weigh(&self, signed: &SignedCard, left: &mut usize) -> Result<usize> {
        if self.is_weighed(signed) {
            return Ok(0);
        }
        *left -= 1;
        // Noted before: a device that is switched off meanwhile begins with another card the next time.
        self.ledger.note_weighed(&signed.query)?;
        let (checker, card, mut sent) = (self.checker.clone(), signed.clone(), 0);
        let mut task = tokio::task::spawn_blocking(move || drop(checker.check_card(&card)));
        loop {
            match tokio::time::timeout(self.until_next_report()?, &mut task).await {
                Ok(done) => {
                    self.config.observer.on(ClientEvent::Weighed);
                    return done.map(|()| sent).map_err(Error::environment);
                }
                Err(_) => sent += self.send_due().await?,
            }
        }
    }

    /// The time until a report is due, and half a second at most, because the clock may be set.
    fn until_next_report(&self) -> Result<Duration> {
        let longest = Duration::from_millis(500);
        Ok(self.ledger.next_due()?.map_or(longest, |moment| self.config.clock.until(moment).min(longest)))
    }

    /// Waits for a pause in which the reports of a batch can be made without delaying another; sends what is due until then, and
    /// returns how many were acknowledged.
    ///
    /// If there is no pause, as in a large fleet, the reports of the next seconds are put off before any truth is looked at, so that
    /// what they show does not depend on one.
    pub(super) async fn make_room(&self, batch: &[&SignedCard], owners: usize) -> Result<usize> {
        let pause = FIXED_DELAY + self.time_to_make(batch, owners);
        let (mut sent, began) = (0, self.now());
        loop {
            let now = self.now();
            let next = self.ledger.next_due()?.filter(|moment| *moment <= now + pause);
            match next {
                None => return Ok(sent),
                Some(moment) if moment <= now => sent += self.send_due().await?,
                Some(_) if now > began + LONGEST_WAIT => {
                    self.ledger.realign(now + pause, FIXED_DELAY)?;
                    return Ok(sent);
                }
                Some(moment) => self.wait_for(moment).await,
            }
        }
    }

    /// How many seconds it takes to make the reports of a batch, if all owners accept all cards.
    fn time_to_make(&self, batch: &[&SignedCard], owners: usize) -> u64 {
        let allowed = batch.iter().filter_map(|signed| self.checker.allow_card(signed).ok());
        allowed.map(|allowed| schedule::time_to_make(owners, allowed.asked.questions())).sum()
    }

    /// The outcomes of the cards that this visit does not come to.
    pub(super) fn postponed(&self, agenda: &Agenda<'_>, attributes: &BTreeMap<String, Attributes>) -> Vec<Outcome> {
        let most = self.config.most_weighed;
        let reason = format!(
            "a visit recomputes the claims of at most {most} cards, and others came before this one; it is considered at the next visit"
        );
        let of_all_owners = |signed: &&SignedCard| {
            attributes.keys().map(|owner| Outcome::postponed(owner, &signed.query, &reason)).collect()
        };
        let outcomes: Vec<Vec<Outcome>> = agenda.costly.iter().map(of_all_owners).collect();
        if !outcomes.is_empty() {
            tracing::warn!(cards = outcomes.len(), most, "cards are left to the next visit");
        }
        outcomes.concat()
    }
}

fn is_for_devices(allowed: &Allowed) -> bool {
    matches!(allowed.asked, Asked::Device(_))
}

/// Takes the first card of each signer, then the second of each, and so on: one signer's flood holds up nobody else's cards.
fn in_turn<'a>(candidates: impl Iterator<Item = Candidate<'a>>) -> VecDeque<&'a SignedCard> {
    let mut by_signer: BTreeMap<String, Vec<Candidate<'a>>> = BTreeMap::new();
    for candidate in candidates {
        by_signer.entry(candidate.signer.clone()).or_default().push(candidate);
    }
    let mut turns: Vec<(usize, Candidate<'a>)> = Vec::new();
    for mut cards in by_signer.into_values() {
        cards.sort_by(|one, other| one.turn().cmp(&other.turn()));
        turns.extend(cards.into_iter().enumerate());
    }
    turns.sort_by(|(round, one), (other_round, other)| (round, one.turn()).cmp(&(other_round, other.turn())));
    turns.into_iter().map(|(_, candidate)| candidate.signed).collect()
}
