//! How far a question is: its state, the reports so far, the time left.

use maud::{Markup, html};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use uptack::{
    card::{Card, Timestamp},
    display::grouped,
};

use super::Pages;
use crate::desk::{
    overview,
    store::{Query, State},
};

/// How long a count of reports is good enough to be shown again.
const FRESH: Duration = Duration::from_millis(800);

/// Counts that leaders gave a moment ago, so that many who watch ask no more often than one.
#[derive(Default)]
pub(super) struct Counts(Mutex<HashMap<String, (Instant, Option<u64>)>>);

/// How far a question is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fill {
    pub(super) query: String,
    pub(super) state: State,
    pub(super) is_collected: bool,
    reports: Option<u64>,
    minimum: u64,
    expected: u64,
    opens: u64,
    closes: u64,
}

impl Pages {
    pub(super) async fn fill(&self, query: &Query, card: &Card) -> Fill {
        Fill {
            query: query.signed.query.clone(),
            state: query.state_at(self.shared.now()),
            is_collected: query.record.is_some(),
            reports: self.reports(query).await,
            minimum: card.minimum_batch,
            expected: card.owners.max(card.minimum_batch),
            opens: query.opens,
            closes: query.closes,
        }
    }

    async fn reports(&self, query: &Query) -> Option<u64> {
        let name = &query.signed.query;
        let known = || self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What is over does not change, and is in the record.
        if !matches!(query.state, State::Open | State::Closed) || query.record.is_some() {
            return overview::reports(&self.shared, query).await;
        }
        if let Some((_, count)) = known().get(name).filter(|(when, _)| when.elapsed() < FRESH) {
            return *count;
        }
        let count = overview::reports(&self.shared, query).await;
        let mut counts = known();
        counts.retain(|_, (when, _)| when.elapsed() < 100 * FRESH);
        counts.insert(name.clone(), (Instant::now(), count));
        count
    }
}

impl Fill {
    /// The parts that change by themselves, each with the element that holds it.
    pub(super) fn parts(&self, now: u64) -> [(String, Markup); 3] {
        let id = |part: &str| format!("{part}-{}", self.query);
        [(id("state"), self.badge()), (id("fill"), self.bar()), (id("clock"), self.clock(now))]
    }

    /// A part in its element.
    pub(super) fn holder(&self, part: &str, markup: &Markup) -> Markup {
        html! { span id=(format!("{part}-{}", self.query)) class=(part) { (markup) } }
    }

    pub(super) fn badge(&self) -> Markup {
        let word = match (self.state, self.is_collected) {
            (State::Closed, true) => "ready",
            (State::Closed, false) => "collecting",
            (state, _) => state.name(),
        };
        html! { span class=(format!("badge {word}")) { (word) } }
    }

    /// Reports against the minimum batch and those who are expected.
    pub(super) fn bar(&self) -> Markup {
        let share =
            |count: u64| format!("{:.2}", 100.0 * (count.min(self.expected) as f64) / self.expected.max(1) as f64);
        let enough = self.reports.is_some_and(|reports| reports >= self.minimum);
        let words = match self.reports {
            Some(reports) => format!("{} of at least {}", grouped(reports), grouped(self.minimum)),
            None if self.state == State::Cancelled => "nothing is released".to_owned(),
            None if self.state == State::Opening => format!("at least {} are needed", grouped(self.minimum)),
            None => format!("unknown, of at least {}", grouped(self.minimum)),
        };
        html! {
            svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                rect.track width="100" height="6" {}
                rect class=(if enough { "filled enough" } else { "filled" }) height="6"
                    width=(share(self.reports.unwrap_or(0))) {}
                rect.mark x=(share(self.minimum)) width="0.5" height="6" {}
            }
            span.words { (words) @if enough { span.visually-hidden { ", enough" } } }
        }
    }

    /// When it opens or closes; the script counts down from there.
    pub(super) fn clock(&self, now: u64) -> Markup {
        let (word, moment) = match self.state {
            State::Opening | State::Open if self.opens > now => ("opens in", self.opens),
            State::Opening | State::Open if self.closes > now => ("closes in", self.closes),
            State::Cancelled if self.closes > now => ("was to close", self.closes),
            _ => ("closed", self.closes),
        };
        let counts_down = moment > now && self.state != State::Cancelled;
        let written = Timestamp::from_seconds(moment).map(|moment| moment.to_string()).unwrap_or_default();
        html! {
            @if counts_down {
                (word) " " time datetime=(written) data-seconds=(moment - now) { (span(moment - now)) }
            } @else {
                (word) " " time datetime=(written) { (day_and_time(&written)) }
            }
        }
    }
}

/// A span of time as people say it.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        6000..=172_799 => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// `2026-11-15T08:00:00Z` without what machines need.
pub(super) fn day_and_time(written: &str) -> String {
    let short = written.get(..16).unwrap_or(written).replace('T', " ");
    if short.is_empty() { short } else { format!("{short} UTC") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(state: State, reports: Option<u64>) -> Fill {
        let (minimum, expected) = (80, 100);
        let query = "q".to_owned();
        Fill { query, state, is_collected: false, reports, minimum, expected, opens: 1000, closes: 2000 }
    }

    #[test]
    fn fill_and_time_are_told_as_far_as_they_are_known() {
        let bar = |state, reports| fill(state, reports).bar().into_string();
        assert!(bar(State::Open, Some(40)).contains("40 of at least 80"));
        assert!(
            bar(State::Open, Some(40)).contains("width=\"40.00\"") && !bar(State::Open, Some(79)).contains("enough")
        );
        assert!(
            bar(State::Open, Some(80)).contains("enough") && bar(State::Open, Some(500)).contains("width=\"100.00\"")
        );
        assert!(bar(State::Closed, None).contains("unknown"));
        let clock = |state, now| fill(state, None).clock(now).into_string();
        assert!(clock(State::Opening, 900).starts_with("opens in") && clock(State::Open, 1900).contains("1 min 40 s"));
        assert!(clock(State::Open, 1901).contains("data-seconds=\"99\""));
        assert!(
            clock(State::Closed, 2000).starts_with("closed")
                && clock(State::Cancelled, 1500).starts_with("was to close")
        );
        assert_eq!([5, 125, 7260, 200_000].map(span), ["5 s", "2 min 05 s", "2 h 01 min", "2 days"]);
        assert_eq!(day_and_time("2026-11-15T08:00:00Z"), "2026-11-15 08:00 UTC");
    }
}
