//! The progress of a question: its state, the reports so far, the time left.

use maud::{Markup, html};
use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};
use uptack::{
    card::{Card, Timestamp},
    display::grouped,
};

use crate::{
    base::lock,
    desk::{
        pages::Pages,
        queries,
        store::{Query, QueryState},
    },
};

/// How long a count of reports is good enough to be shown again.
const FRESH: Duration = Duration::from_millis(800);

/// The latest counts of reports: many visitors ask the leader no more often than one would.
#[derive(Default)]
pub(in crate::desk::pages) struct ReportCounts(Mutex<HashMap<String, ReportCount>>);

struct ReportCount {
    taken: Instant,
    reports: Option<u64>,
}

impl ReportCounts {
    /// The leader's count of a moment ago, if it was asked.
    fn fresh(&self, query: &str) -> Option<Option<u64>> {
        lock(&self.0).get(query).filter(|count| count.taken.elapsed() < FRESH).map(|count| count.reports)
    }

    fn keep(&self, query: &str, reports: Option<u64>) {
        let mut counts = lock(&self.0);
        counts.retain(|_, count| count.taken.elapsed() < 100 * FRESH);
        counts.insert(query.to_owned(), ReportCount { taken: Instant::now(), reports });
    }
}

/// The progress of a question at a moment.
#[derive(Debug, Clone)]
pub(in crate::desk::pages) struct QuestionProgress {
    pub(super) query: String,
    /// Who asked.
    pub(super) analyst: Option<String>,
    pub(super) state: QueryState,
    pub(super) is_collected: bool,
    reports: Option<u64>,
    minimum: u64,
    expected: u64,
    opens: u64,
    closes: u64,
    now: u64,
}

/// Two moments differ if a page shows them differently; clocks run on their own.
impl PartialEq for QuestionProgress {
    fn eq(&self, other: &Self) -> bool {
        let shown = |one: &Self| (one.state, one.is_collected, one.reports, one.opens > one.now);
        self.query == other.query && shown(self) == shown(other)
    }
}

/// How many reports a card wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchSize {
    minimum: u64,
    expected: u64,
}

impl BatchSize {
    pub(super) fn of(card: &Card) -> Self {
        Self { minimum: card.minimum_batch, expected: card.owners.max(card.minimum_batch) }
    }
}

/// A part of a page that changes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LivePart {
    State,
    Fill,
    Clock,
}

impl LivePart {
    pub(super) const ALL: [Self; 3] = [Self::State, Self::Fill, Self::Clock];

    fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Fill => "fill",
            Self::Clock => "clock",
        }
    }
}

impl Pages {
    pub(super) async fn fill(&self, query: &Query, card: &Card) -> QuestionProgress {
        self.progress(query, BatchSize::of(card)).await
    }

    pub(super) async fn progress(&self, query: &Query, size: BatchSize) -> QuestionProgress {
        let now = self.shared.now();
        QuestionProgress {
            query: query.name().to_owned(),
            analyst: query.analyst.clone(),
            state: query.state_at(now),
            is_collected: query.record.is_some(),
            reports: self.reports(query).await,
            minimum: size.minimum,
            expected: size.expected,
            opens: query.opens,
            closes: query.closes,
            now,
        }
    }

    async fn reports(&self, query: &Query) -> Option<u64> {
        // Once a query is over, the number no longer changes, and the record has it.
        if !matches!(query.state, QueryState::Open | QueryState::Closed) || query.record.is_some() {
            return queries::reports(&self.shared, query).await;
        }
        if let Some(reports) = self.counts.fresh(query.name()) {
            return reports;
        }
        let reports = queries::reports(&self.shared, query).await;
        self.counts.keep(query.name(), reports);
        reports
    }
}

impl QuestionProgress {
    /// The id of the element that holds a part.
    pub(super) fn id(&self, part: LivePart) -> String {
        format!("{}-{}", part.name(), self.query)
    }

    /// A part in its element.
    pub(super) fn holder(&self, part: LivePart) -> Markup {
        html! { span id=(self.id(part)) class=(part.name()) { (self.part(part)) } }
    }

    pub(super) fn part(&self, part: LivePart) -> Markup {
        match part {
            LivePart::State => self.badge(),
            LivePart::Fill => self.bar(),
            LivePart::Clock => self.clock(),
        }
    }

    fn badge(&self) -> Markup {
        let word = match (self.state, self.is_collected) {
            (QueryState::Closed, true) => "ready",
            (QueryState::Closed, false) => "collecting",
            (state, _) => state.name(),
        };
        html! { span class=(format!("badge {word}")) { (word) } }
    }

    /// The number of reports against the minimum batch and the expected number.
    fn bar(&self) -> Markup {
        let is_enough = self.reports.is_some_and(|reports| reports >= self.minimum);
        html! {
            svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                rect.track width="100" height="6" {}
                rect class=(if is_enough { "filled enough" } else { "filled" }) height="6"
                    width=(self.percent(self.reports.unwrap_or(0))) {}
                rect.mark x=(self.percent(self.minimum)) width="0.5" height="6" {}
            }
            span.words { (self.reports_words()) @if is_enough { span.visually-hidden { ", enough" } } }
        }
    }

    /// A number of reports in per cent of the expected number.
    fn percent(&self, reports: u64) -> String {
        format!("{:.2}", 100.0 * (reports.min(self.expected) as f64) / self.expected.max(1) as f64)
    }

    fn reports_words(&self) -> String {
        let minimum = grouped(self.minimum);
        match self.reports {
            Some(reports) => format!("{} of at least {minimum}", grouped(reports)),
            // The reason, which is shown beside it, says how many there were, if anybody knows.
            None if matches!(self.state, QueryState::Cancelled | QueryState::Withheld) => {
                "nothing is released".to_owned()
            }
            None if self.state == QueryState::Opening => format!("at least {minimum} are needed"),
            None => format!("unknown, of at least {minimum}"),
        }
    }

    /// When it opens or closes; the script counts down from there.
    fn clock(&self) -> Markup {
        let (word, moment) = self.next_moment();
        let written = Timestamp::from_seconds(moment).map(|moment| moment.to_string()).unwrap_or_default();
        html! {
            @if moment > self.now && self.state != QueryState::Cancelled {
                @let left = moment - self.now;
                (word) " " time datetime=(written) data-seconds=(left) { (span(left)) }
            } @else {
                (word) " " time datetime=(written) { (day_and_time(&written)) }
            }
        }
    }

    /// The moment that matters most now, and what happens then.
    fn next_moment(&self) -> (&'static str, u64) {
        match self.state {
            QueryState::Opening | QueryState::Open if self.opens > self.now => ("opens in", self.opens),
            QueryState::Opening | QueryState::Open if self.closes > self.now => ("closes in", self.closes),
            QueryState::Cancelled if self.closes > self.now => ("was to close", self.closes),
            _ => ("closed", self.closes),
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

/// A timestamp such as `2026-11-15T08:00:00Z` as `2026-11-15 08:00 UTC`.
pub(super) fn day_and_time(written: &str) -> String {
    let short = written.get(..16).unwrap_or(written).replace('T', " ");
    if short.is_empty() { short } else { format!("{short} UTC") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(state: QueryState, reports: Option<u64>) -> QuestionProgress {
        let (minimum, expected) = (80, 100);
        let query = "q".to_owned();
        QuestionProgress {
            query,
            analyst: None,
            state,
            is_collected: false,
            reports,
            minimum,
            expected,
            opens: 1000,
            closes: 2000,
            now: 1500,
        }
    }

    #[test]
    fn fill_and_time_are_told_as_far_as_they_are_known() {
        let bar = |state, reports| fill(state, reports).bar().into_string();
        assert!(bar(QueryState::Open, Some(40)).contains("40 of at least 80"));
        assert!(
            bar(QueryState::Open, Some(40)).contains("width=\"40.00\"")
                && !bar(QueryState::Open, Some(79)).contains("enough")
        );
        assert!(
            bar(QueryState::Open, Some(80)).contains("enough")
                && bar(QueryState::Open, Some(500)).contains("width=\"100.00\"")
        );
        assert!(bar(QueryState::Closed, None).contains("unknown"));
        // Beside it stands why, with the number of answers: it must not be called unknown.
        assert!(bar(QueryState::Withheld, None).contains("nothing is released"));
        let clock = |state, now| QuestionProgress { now, ..fill(state, None) }.clock().into_string();
        assert!(
            clock(QueryState::Opening, 900).starts_with("opens in")
                && clock(QueryState::Open, 1900).contains("1 min 40 s")
        );
        assert!(clock(QueryState::Open, 1901).contains("data-seconds=\"99\""));
        assert!(
            clock(QueryState::Closed, 2000).starts_with("closed")
                && clock(QueryState::Cancelled, 1500).starts_with("was to close")
        );
        assert_eq!([5, 125, 7260, 200_000].map(span), ["5 s", "2 min 05 s", "2 h 01 min", "2 days"]);
        assert_eq!(day_and_time("2026-11-15T08:00:00Z"), "2026-11-15 08:00 UTC");
    }
}
