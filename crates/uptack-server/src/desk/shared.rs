//! The state that all parts of a running desk share.

use axum::body::Bytes;
use std::{ops::Range, path::PathBuf, sync::Arc};
use tokio::sync::{Mutex, Notify, broadcast, watch};
use uptack_dap::signed::Signer;

use crate::{
    base::{
        bodies::BodyBudget,
        brake::GuessBrake,
        listener::{ConnectionLimits, Shares},
        metrics::{CounterName, Description, Metrics},
    },
    desk::{
        check_queue::CheckQueue,
        config::Config,
        listing::Listing,
        provision::Provisioner,
        store::{QueryTimes, Store},
    },
    error::Result,
};

/// How many events a stream may fall behind before it is closed.
const EVENTS: usize = 256;

pub(crate) struct DeskState {
    pub(crate) config: Config,
    pub(crate) store: Arc<Store>,
    pub(crate) signer: Signer,
    pub(crate) provisioner: Provisioner,
    pub(crate) metrics: Metrics<DeskCounter>,
    /// The checks of cards' claims.
    pub(crate) checks: CheckQueue,
    /// The bodies of requests under way.
    pub(crate) bodies: Arc<BodyBudget>,
    pub(crate) brake: GuessBrake,
    /// Places for streams.
    pub(crate) streams: Arc<Shares>,
    /// The open queries, as owners see them.
    pub(crate) listing: watch::Sender<Arc<Listing>>,
    /// Events for the streams.
    pub(crate) events: broadcast::Sender<Bytes>,
    /// Tells both loops that there may be work.
    pub(crate) wake: Notify,
    /// Becomes true once, when the desk is to stop.
    pub(crate) stopping: watch::Sender<bool>,
    /// The basis of the current listing.
    basis: Mutex<Option<ListingBasis>>,
}

/// The state that a listing was made from: until it changes, the listing is up to date.
struct ListingBasis {
    /// The store's count of changes.
    changes: u64,
    /// The seconds in which no query opens or closes.
    quiet: Range<u64>,
}

impl ListingBasis {
    fn holds(&self, changes: u64, now: u64) -> bool {
        self.changes == changes && self.quiet.contains(&now)
    }
}

impl DeskState {
    pub(crate) fn new(config: Config, store: Arc<Store>, signer: Signer, provisioner: Provisioner) -> Self {
        let ConnectionLimits { connections, per_address, .. } = config.limits();
        let bodies = BodyBudget::new(config.limits());
        Self {
            config,
            store,
            signer,
            provisioner,
            metrics: Metrics::default(),
            checks: CheckQueue::default(),
            bodies,
            brake: GuessBrake::default(),
            // Half of the connections, so that there are always some left for short requests.
            streams: Shares::new((connections / 2).max(1), (per_address / 2).max(1)),
            listing: watch::Sender::new(Arc::default()),
            events: broadcast::Sender::new(EVENTS),
            wake: Notify::new(),
            stopping: watch::Sender::new(false),
            basis: Mutex::new(None),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.config.clock.now()
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.config.data.join("tokens")
    }

    /// Brings the listing up to date with the store and the clock, and tells the streams about new queries. It costs
    /// nothing as long as nothing has changed.
    pub(crate) async fn refresh(&self) -> Result<()> {
        let mut basis = self.basis.lock().await;
        let (now, changes) = (self.now(), self.store.changes());
        if basis.as_ref().is_some_and(|basis| basis.holds(changes, now)) {
            return Ok(());
        }
        let times = self.store.run(|store| store.open_windows()).await?;
        self.list(&open_names(&times, now)).await?;
        *basis = Some(ListingBasis { changes, quiet: now..next_change(&times, now) });
        Ok(())
    }

    /// Shows owners exactly these queries.
    async fn list(&self, names: &[String]) -> Result<()> {
        let known = Arc::clone(&self.listing.borrow());
        if known.lists(names) {
            return Ok(());
        }
        let missing = known.missing(names);
        let fresh = self.store.run(move |store| store.signed_cards(&missing)).await?;
        let listing = known.with(names, fresh);
        let news = listing.news_since(&known);
        self.listing.send_replace(Arc::new(listing));
        if let Some(news) = news {
            // An error means that nobody is listening.
            let _ = self.events.send(news);
        }
        Ok(())
    }
}

/// The counters of a desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeskCounter {
    /// Requests answered, by outcome.
    Requests,
    /// Queries that ended, by outcome.
    Collections,
    /// Calls to the aggregators that failed and are repeated.
    AggregatorFailures,
    /// Comparisons that showed a state to be an older copy, by whose state it is.
    Rollbacks,
}

impl CounterName for DeskCounter {
    fn describe(self) -> Description {
        match self {
            Self::Requests => {
                Description::new("uptack_desk_requests_total", "outcome", "Requests answered, by outcome.")
            }
            Self::Collections => {
                Description::new("uptack_desk_collections_total", "outcome", "Queries that ended, by outcome.")
            }
            Self::AggregatorFailures => Description::new(
                "uptack_desk_aggregator_failures_total",
                "call",
                "Calls to the aggregators that failed and are repeated.",
            ),
            Self::Rollbacks => Description::new(
                "uptack_desk_rollbacks_total",
                "whose",
                "Comparisons that showed a state to be an older copy.",
            ),
        }
    }
}

fn open_names(times: &[QueryTimes], now: u64) -> Vec<String> {
    times.iter().filter(|window| window.is_open(now)).map(|window| window.query.clone()).collect()
}

/// The next moment at which one of these queries opens or closes.
fn next_change(times: &[QueryTimes], now: u64) -> u64 {
    times
        .iter()
        .flat_map(|window| [window.opens, window.closes])
        .filter(|moment| *moment > now)
        .min()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_holds_until_a_query_opens_or_closes() {
        let window = |opens, closes| QueryTimes { query: String::new(), opens, closes };
        let times = [window(10, 20), window(15, 40)];
        assert_eq!([0, 10, 15, 20, 40].map(|now| next_change(&times, now)), [10, 15, 20, 40, u64::MAX]);
    }
}
