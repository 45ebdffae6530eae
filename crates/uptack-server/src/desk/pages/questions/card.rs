//! A card in plain words: the question, and the most that each party can learn.

use maud::{Markup, html};
use uptack::{
    card::{Card, CardBallot, CardQuestion, Enrolment, Model, Operators, Timestamp, Trust},
    display::{self, Rounding, grouped},
};

use super::progress::{day_and_time, span};
use crate::desk::pages::frame::{scrolling_table, table_head};

/// A card as an owner sees it, without its integers.
pub(in crate::desk::pages) fn describe(card: &Card) -> Markup {
    html! {
        (claims(card))
        h3 { "What is asked" }
        (facts(card))
    }
}

/// Each claim with who has to be honest for it.
pub(in crate::desk::pages) fn claims(card: &Card) -> Markup {
    html! {
        h3 { "What anybody can learn about one person" }
        (scrolling_table("Claims by who is honest", &claims_table(card)))
        p.help {
            "Without any answer, a guess is right half of the time. The last column is for the best guess of somebody who \
             takes yes and no to be equally likely before seeing anything."
        }
    }
}

fn claims_table(card: &Card) -> Markup {
    html! {
        table.claims {
            (table_head(&["If these are honest", "ε at most", "δ", "A guess is right at most"]))
            tbody { @for claim in &card.trust().unwrap_or_default() { (claim_row(card, claim)) } }
        }
    }
}

fn claim_row(card: &Card, claim: &Trust) -> Markup {
    let delta = if claim.model == Model::OneAggregatorMostClients { card.delta().value() } else { 0.0 };
    html! {
        tr {
            th scope="row" { (who_is_honest(card, claim.model)) span.help { (claim.holds) } }
            td.number { (display::claim(claim.epsilon)) }
            td.number { (claim.epsilon.map_or("–".to_owned(), |_| display::claim(delta))) }
            td.number { (best_guess(claim.epsilon, delta)) }
        }
    }
}

fn who_is_honest(card: &Card, model: Model) -> String {
    match model {
        Model::OneAggregatorOneClient => "one of the two aggregators".to_owned(),
        Model::OneAggregatorMostClients => {
            format!("one aggregator and {} owners", card.claim_owners().map(grouped).unwrap_or_default())
        }
        Model::OneClient => "nobody but the person's own device".to_owned(),
    }
}

/// The accuracy that (ε, δ) leaves to the best guess at even odds: (e^ε + δ)/(1 + e^ε), rounded up.
pub(in crate::desk::pages) fn best_guess(epsilon: Option<f64>, delta: f64) -> String {
    let Some(epsilon) = epsilon else { return "always".to_owned() };
    let accuracy = ((1.0 + delta * (-epsilon).exp()) / (1.0 + (-epsilon).exp())).min(1.0);
    display::percent(accuracy, 2, Rounding::Up)
}

fn facts(card: &Card) -> Markup {
    html! {
        dl.facts {
            (predicates(card))
            @if !card.attributes.is_empty() { dt { "Attributes" } dd { (card.attributes.join(", ")) } }
            dt { "Mechanism" } dd { code { (card.mechanism) } }
            @if let Some(words) = card.contribution_words() { dt { "Counted" } dd { (words) } }
            dt { "Expected error" }
            dd { (display::nearest(card.predicted.sd.value())) " people (standard deviation)" }
            (owners(card))
            (schedule(card))
            (parties(card))
        }
    }
}

fn owners(card: &Card) -> Markup {
    html! {
        dt { "Owners" }
        dd { (grouped(card.owners)) " expected; nothing is released below " (grouped(card.minimum_batch)) ", of whom "
            (display::percent(card.honest.to_f64(), 2, Rounding::Up)) " are assumed to be honest" }
    }
}

fn schedule(card: &Card) -> Markup {
    html! {
        @if let (Some(opens), Some(closes)) = (card.opens, card.closes) {
            dt { "Answers are taken" } dd { (moment(opens)) " to " (moment(closes)) }
        }
        @if let Some(series) = &card.series {
            dt { "Series" }
            dd { @if let Some(number) = series.number { (number) " of " } (series.times) ", one every " (span(series.every)) }
        }
    }
}

fn predicates(card: &Card) -> Markup {
    html! {
        @match card.asked() {
            CardQuestion::Person(_) => { dt { "Who answers" } dd { "People, on a page or in a terminal" } }
            CardQuestion::Predicate(predicate) => { dt { "A yes is" } dd { code { (predicate) } } }
            CardQuestion::Ballot(ballot) => { dt { "Ballot" } dd { (ballot_questions(ballot)) } }
        }
    }
}

fn ballot_questions(CardBallot { most_yes, queries }: &CardBallot) -> Markup {
    html! {
        (queries.len()) " questions, at most " (most_yes) " of them answered with yes"
        details {
            summary { "All questions" }
            ul { @for query in queries { li { (query.name) ": " code { (query.predicate) } } } }
        }
    }
}

fn parties(card: &Card) -> Markup {
    html! {
        @if let Some(aggregators) = &card.aggregators {
            dt { "Aggregators" }
            dd { (aggregators.leader) " and " (aggregators.helper) (operators_words(card.operators)) }
        }
        @if let Some(enrolment) = card.enrolment { dt { "Who may answer" } dd { (who_may_answer(enrolment)) } }
        @if let Some(signer) = &card.signer { dt { "Signed by" } dd { code.long { (signer) } } }
    }
}

fn operators_words(operators: Option<Operators>) -> &'static str {
    match operators {
        Some(Operators::Two) => ", run by two operators",
        Some(Operators::One) | None => ", run by one operator, who can see every answer",
    }
}

fn who_may_answer(enrolment: Enrolment) -> &'static str {
    match enrolment {
        Enrolment::None => "anybody",
        Enrolment::Required => "enrolled owners, once each",
    }
}

fn moment(moment: Timestamp) -> String {
    day_and_time(&moment.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_rounded_up_and_no_guarantee_is_none() {
        assert_eq!(best_guess(Some(0.0), 0.0), "50 %");
        assert!(["75 %", "75.01 %"].contains(&best_guess(Some(3f64.ln()), 0.0).as_str()));
        assert_eq!(best_guess(Some(1.0), 0.0), "73.11 %");
        assert_eq!(best_guess(None, 0.0), "always");
        assert_eq!(best_guess(Some(50.0), 1.0), "100 %");
    }
}
