//! What owners can have spent, as far as a desk can know.

use axum::{extract::State, http::HeaderMap};
use maud::{Markup, html};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};
use uptack::{
    card::Card,
    display::{self, Rounding},
};
use uptack_dap::card_task;
use uptack_owner::policy::{LifetimeLimits, Limit};

use super::{
    Page, Pages,
    frame::{self, Tab},
};
use crate::{
    desk::{
        overview,
        store::{self, Store},
    },
    error::Result,
};

/// Cards that are added up at most; the latest first.
const MOST: usize = 10_000;

/// What everything asked of some owners costs one who answered all of it, per view.
#[derive(Default, Clone)]
struct Spent {
    cards: u64,
    linked: Option<f64>,
    one_aggregator: Option<f64>,
    release: Option<f64>,
    delta: f64,
}

impl Spent {
    fn none() -> Self {
        Self { linked: Some(0.0), one_aggregator: Some(0.0), release: Some(0.0), ..Self::default() }
    }

    /// Epsilons and deltas add up; without a guarantee there is no sum.
    fn add(&mut self, card: &Card) {
        let sum = |spent: Option<f64>, cost: Option<f64>| Some((spent? + cost?).next_up());
        let claims = &card.claims;
        self.cards += 1;
        self.linked = sum(self.linked, claims.whole_linked());
        self.one_aggregator = sum(self.one_aggregator, claims.whole_one_aggregator());
        self.release = sum(self.release, claims.whole_release());
        self.delta += card.delta().value();
    }
}

pub(super) async fn show(State(pages): State<Arc<Pages>>, headers: HeaderMap) -> Page {
    let visitor = pages.visitor(&headers)?;
    let analyst = overview::seen_by(&visitor.caller);
    let whose = if analyst.is_some() { "your" } else { "everybody's" };
    let (all, populations) = pages.shared.store.run(move |store| spent(store, analyst.as_deref())).await?;
    Ok(frame::page("Spending", Tab::Spending, &visitor, page(whose, &all, &populations)))
}

/// All that was asked, and the same by the attributes that the cards read. A series is paid once.
fn spent(store: &Store, analyst: Option<&str>) -> Result<(Spent, BTreeMap<Vec<String>, Spent>)> {
    let (mut all, mut populations, mut paid) = (Spent::none(), BTreeMap::new(), HashSet::new());
    for query in store.asked_by(analyst, 0, MOST)? {
        // Nobody has seen what is still to be opened; what was cancelled may have been answered before.
        if query.state == store::State::Opening {
            continue;
        }
        let card = Card::from_json(&query.signed.card)?;
        if paid.insert(card_task::names(&card)?.charge.to_string()) {
            all.add(&card);
            populations.entry(card.attributes.clone()).or_insert_with(Spent::none).add(&card);
        }
    }
    Ok((all, populations))
}

fn page(whose: &str, all: &Spent, populations: &BTreeMap<Vec<String>, Spent>) -> Markup {
    html! {
        h1 { "Spending" }
        p.lead { "The most that one person can have given away by answering " (whose) " questions, all of them." }
        (spending("Everybody who follows this desk", all))
        @for (attributes, spent) in populations {
            @let who = if attributes.is_empty() { "Questions that read no attribute".to_owned() }
                else { format!("Owners who have {}", attributes.join(", ")) };
            (spending(&who, spent))
        }
        p.help {
            "The desk knows what it asked and not who answered: these are sums of what the cards claim. A person's own ledger \
             composes releases more tightly and stops before its limits. The limits are those of the policy in the guide; \
             every owner writes its own."
        }
    }
}

fn spending(who: &str, spent: &Spent) -> Markup {
    let limits = LifetimeLimits::of_the_guide();
    let views = [
        ("nobody but the person", spent.linked, 0.0, limits.linked),
        ("one aggregator", spent.one_aggregator, 0.0, limits.one_aggregator.unwrap_or(Limit::Unlimited)),
        ("one aggregator and the owners", spent.release, spent.delta, limits.release),
    ];
    html! {
        section.panel {
            h2 { (who) }
            p { (spent.cards) @if spent.cards == 1 { " card" } @else { " cards" } }
            div.scroll tabindex="0" role="group" aria-label=(who) {
                table {
                    thead { tr {
                        th scope="col" { "If these are honest" } th scope="col" { "ε at most" } th scope="col" { "δ" }
                        th scope="col" { "of the guide's limit" }
                    } }
                    tbody { @for (honest, epsilon, delta, limit) in views {
                        tr {
                            th scope="row" { (honest) } td.number { (display::claim(epsilon)) }
                            td.number { (display::claim(delta)) } td.number { (share(epsilon, limit)) }
                        }
                    } }
                }
            }
        }
    }
}

fn share(epsilon: Option<f64>, limit: Limit) -> String {
    match (epsilon, limit) {
        (Some(epsilon), Limit::AtMost(most)) => {
            format!("{} of {}", display::percent(epsilon / most, 1, Rounding::Up), display::nearest(most))
        }
        (None, Limit::AtMost(_)) => "more".to_owned(),
        (_, Limit::Unlimited) => "no limit".to_owned(),
    }
}
