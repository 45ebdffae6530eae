//! The most that owners can have spent, as far as a desk knows.

use axum::extract::State;
use maud::{Markup, html};
use std::collections::{BTreeMap, HashSet};
use uptack::{
    card::Card,
    display::{self, Rounding},
};
use uptack_dap::card_task;
use uptack_owner::policy::{LifetimeLimits, Limit};

use super::{
    PageResponse, Site,
    frame::{self, Tab, Visitor, scrolling_table, table_head},
};
use crate::{
    desk::{
        queries,
        store::{self, Query, Store},
    },
    error::Result,
};

/// Most cards that are added up, the latest first.
const MOST: usize = 10_000;
/// Cards that are in memory at once.
const AT_ONCE: usize = 100;

/// The most that an owner can have spent by answering every question asked of a group, by view.
#[derive(Default, Clone)]
struct ClaimedCost {
    cards: u64,
    linked: Option<f64>,
    one_aggregator: Option<f64>,
    release: Option<f64>,
    delta: f64,
}

impl ClaimedCost {
    fn none() -> Self {
        Self { linked: Some(0.0), one_aggregator: Some(0.0), release: Some(0.0), ..Self::default() }
    }

    /// Adds the ε and δ of a card; without a guarantee there is no sum.
    fn add(&mut self, card: &Card) {
        let claims = &card.claims;
        self.cards += 1;
        self.linked = sum(self.linked, claims.whole_linked());
        self.one_aggregator = sum(self.one_aggregator, claims.whole_one_aggregator());
        self.release = sum(self.release, claims.whole_release());
        self.delta += card.delta().value();
    }
}

/// The sum, rounded up; none without a guarantee.
fn sum(spent: Option<f64>, cost: Option<f64>) -> Option<f64> {
    Some((spent? + cost?).next_up())
}

/// The cost of everything that was asked, and of the questions about each set of attributes.
struct Spending {
    all: ClaimedCost,
    populations: BTreeMap<Vec<String>, ClaimedCost>,
}

impl Spending {
    /// Adds up the cards of an analyst, or of everybody. A series is paid once.
    fn read(store: &Store, analyst: Option<&str>) -> Result<Self> {
        let mut spending = Self { all: ClaimedCost::none(), populations: BTreeMap::new() };
        let mut paid = HashSet::new();
        // Nobody has answered a query that is not open yet; a cancelled one may have been answered before.
        let seen = |query: &Query| query.state != store::QueryState::Opening;
        for from in (0..MOST).step_by(AT_ONCE) {
            let queries = store.asked_by(analyst, from, AT_ONCE)?;
            let is_last = queries.len() < AT_ONCE;
            for query in queries.into_iter().filter(seen) {
                let card = query.card()?;
                if paid.insert(card_task::names(&card)?.charge.to_string()) {
                    spending.add(&card);
                }
            }
            if is_last {
                break;
            }
        }
        Ok(spending)
    }

    fn add(&mut self, card: &Card) {
        self.all.add(card);
        self.populations.entry(card.attributes.clone()).or_insert_with(ClaimedCost::none).add(card);
    }
}

pub(super) async fn show(State(pages): Site, visitor: Visitor) -> PageResponse {
    let analyst = queries::seen_by(&visitor.caller);
    let whose = if analyst.is_some() { "your" } else { "everybody's" };
    let spending = pages.shared.store.run(move |store| Spending::read(store, analyst.as_deref())).await?;
    Ok(frame::page("Spending", Tab::Spending, &visitor, page(whose, &spending)))
}

fn page(whose: &str, spending: &Spending) -> Markup {
    html! {
        h1 { "Spending" }
        p.lead { "The most that one person can have given away by answering all of " (whose) " questions." }
        (panel("Everybody who follows this desk", &spending.all))
        @for (attributes, spent) in &spending.populations { (panel(&population(attributes), spent)) }
        p.help {
            "The desk knows what it asked and not who answered: these are sums of what the cards claim. A person's own ledger \
             composes releases more tightly and stops before its limits. The limits are those of the policy in the guide; \
             every owner writes its own."
        }
    }
}

/// The owners that questions about these attributes ask.
fn population(attributes: &[String]) -> String {
    if attributes.is_empty() {
        return "Questions that read no attribute".to_owned();
    }
    format!("Owners who have {}", attributes.join(", "))
}

fn panel(who: &str, spent: &ClaimedCost) -> Markup {
    html! {
        section.panel {
            h2 { (who) }
            p { (spent.cards) @if spent.cards == 1 { " card" } @else { " cards" } }
            (scrolling_table(who, &spent.table()))
        }
    }
}

impl ClaimedCost {
    fn table(&self) -> Markup {
        let limits = LifetimeLimits::of_the_guide();
        let one_aggregator = limits.one_aggregator.unwrap_or(Limit::Unlimited);
        html! {
            table {
                (table_head(&["If these are honest", "ε at most", "δ", "of the guide's limit"]))
                tbody {
                    (row("nobody but the person", self.linked, 0.0, limits.linked))
                    (row("one aggregator", self.one_aggregator, 0.0, one_aggregator))
                    (row("one aggregator and the owners", self.release, self.delta, limits.release))
                }
            }
        }
    }
}

fn row(honest: &str, epsilon: Option<f64>, delta: f64, limit: Limit) -> Markup {
    html! {
        tr {
            th scope="row" { (honest) } td.number { (display::claim(epsilon)) }
            td.number { (display::claim(delta)) } td.number { (share(epsilon, limit)) }
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
