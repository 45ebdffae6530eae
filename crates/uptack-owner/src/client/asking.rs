//! Cards that ask the person: who is asked, when, and who then answers.

use std::{collections::BTreeMap, sync::Arc};
use uptack::Truth;
use uptack_dap::signed::SignedCard;

use super::{Client, Outcome};
use crate::{
    attributes::Attributes,
    check::{Accepted, Allowed, Asked, Refusal},
    error::Result,
};

/// Whether there is a truth to toss coins for: a device always finds one, a person must have answered.
pub(super) fn has_truth(accepted: &Allowed, attributes: Option<&Attributes>) -> bool {
    match accepted.asked {
        Asked::Device(_) => true,
        Asked::Person(_) => {
            attributes.is_some_and(|attributes| attributes.answer(&accepted.names.query.to_string()).is_some())
        }
    }
}

impl Client {
    /// Has the person answer the questions that may be answered and were not answered before.
    ///
    /// Both aggregators' keys are fetched first, so that no request shows how long the person thinks.
    pub(super) async fn ask_people(
        &self,
        attributes: &mut BTreeMap<String, Attributes>,
        cards: &[SignedCard],
        ask: impl FnOnce(&[Arc<Accepted>]) -> Result<Vec<Option<Truth>>>,
    ) -> Result<()> {
        let questions = self.unanswered(attributes, cards)?;
        for question in &questions {
            // An aggregator that is away is tried again when the report is made.
            let _ = self.writer(question)?.fetch_keys().await;
        }
        if questions.is_empty() {
            return Ok(());
        }
        for (question, answer) in questions.iter().zip(ask(&questions)?) {
            let Some(answer) = answer else { continue };
            let query = question.names.query.to_string();
            attributes.values_mut().for_each(|owner| owner.set_answer(&query, answer));
        }
        Ok(())
    }

    /// The questions that may be answered and that some owner has not answered.
    fn unanswered(
        &self,
        attributes: &BTreeMap<String, Attributes>,
        cards: &[SignedCard],
    ) -> Result<Vec<Arc<Accepted>>> {
        let now = self.now();
        let mut questions = Vec::new();
        for signed in cards.iter().filter(|signed| self.wants(signed)) {
            let Ok(allowed) = self.checker.allow(signed, now) else { continue };
            // One that was not weighed is left to the next visit.
            if matches!(allowed.asked, Asked::Device(_)) || !self.checker.is_computed(&allowed.opened.card) {
                continue;
            }
            let Ok(accepted) = self.checker.check(signed, now) else { continue };
            let is_new = self.ledger.entries_of(&signed.query)? == 0;
            if is_new && attributes.values().any(|owner| !has_truth(&accepted, Some(owner))) {
                questions.push(accepted);
            }
        }
        Ok(questions)
    }

    /// Decides about every card for the owners who have a truth for it; the others do not answer.
    pub(super) fn consider_said(
        &self,
        attributes: &BTreeMap<String, Attributes>,
        cards: &[&SignedCard],
    ) -> Result<Vec<Outcome>> {
        let now = self.now();
        let (mut silent, mut considered) = (Vec::new(), Vec::new());
        for signed in cards.iter().copied() {
            let owners = self.answering(attributes, signed, now, &mut silent);
            if !owners.is_empty() {
                considered.push((signed, owners));
            }
        }
        let mut outcomes = self.consider_each(considered)?;
        outcomes.extend(silent);
        Ok(outcomes)
    }

    /// The owners that the card is considered for; the outcomes of the others are added to `silent`.
    fn answering<'a>(
        &self,
        attributes: &'a BTreeMap<String, Attributes>,
        signed: &SignedCard,
        now: u64,
        silent: &mut Vec<Outcome>,
    ) -> Vec<&'a str> {
        let accepted = self.checker.allow(signed, now).ok();
        if let Some(refusal) = accepted.as_ref().and_then(|accepted| self.screened(accepted, attributes)) {
            silent.extend(attributes.keys().map(|name| Outcome::refused(name, &signed.query, &refusal)));
            return Vec::new();
        }
        let mut owners = Vec::new();
        for (name, known) in attributes {
            match accepted.as_ref().and_then(|accepted| self.why_silent(accepted, known)) {
                Some(reason) => silent.push(Outcome::refused(name, &signed.query, &Refusal(reason.to_owned()))),
                None => owners.push(name.as_str()),
            }
        }
        owners
    }

    /// Why a fleet should not answer a card because of its attributes. What has been answered, or begun, stays so.
    fn screened(&self, accepted: &Allowed, attributes: &BTreeMap<String, Attributes>) -> Option<Refusal> {
        if self.is_answered(accepted) {
            return None;
        }
        self.config.screen.refusal(accepted, attributes)
    }

    fn why_silent(&self, accepted: &Allowed, known: &Attributes) -> Option<&'static str> {
        let (is_silent, reason) = match accepted.asked {
            Asked::Device(_) => {
                (self.config.people_only, "the card asks what a device knows, and no attributes are given")
            }
            Asked::Person(_) => (
                !has_truth(accepted, Some(known)) && !self.is_answered(accepted),
                "the card asks the person, who has not answered",
            ),
        };
        is_silent.then_some(reason)
    }

    /// Whether the ledger's owner, or one of its owners, has answered before; then the ledger says what became of it.
    fn is_answered(&self, accepted: &Allowed) -> bool {
        self.ledger.entries_of(&accepted.names.query.to_string()).is_ok_and(|entries| entries > 0)
    }

    pub(super) fn wants(&self, signed: &SignedCard) -> bool {
        self.config.query.as_ref().is_none_or(|query| *query == signed.query)
    }
}
