//! Open queries as server-sent events: those of now at once, and each later one when it opens.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use std::{collections::HashSet, fmt::Write, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::Instant,
};

use crate::{
    problem::Problem,
    shared::{Listed, Shared},
};

/// How often a stream looks whether a query has opened, where nothing tells it.
const LOOK: Duration = Duration::from_millis(500);
/// A word from time to time, so that no proxy takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream for one owner, as long as there is a place for it.
pub(crate) fn respond(shared: &Arc<Shared>) -> Result<Response, Problem> {
    let Ok(place) = Arc::clone(&shared.streams).try_acquire_owned() else {
        let busy = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "There are too many streams; poll /queries instead.");
        return Err(busy.retry_after(60));
    };
    let follower = Follower {
        listing: shared.listing.subscribe(),
        stopping: shared.stopping.subscribe(),
        shared: Arc::clone(shared),
        sent: HashSet::new(),
        spoke: Instant::now(),
        _place: place,
    };
    let events = stream::unfold(follower, |mut follower| async move {
        follower.next().await.map(|text| (Ok::<_, std::convert::Infallible>(text), follower))
    });
    let mut response = Body::from_stream(events).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

struct Follower {
    shared: Arc<Shared>,
    listing: watch::Receiver<Arc<Vec<Listed>>>,
    stopping: watch::Receiver<bool>,
    sent: HashSet<String>,
    spoke: Instant,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// The next piece of text; nothing when the desk stops.
    async fn next(&mut self) -> Option<String> {
        loop {
            if *self.stopping.borrow() {
                return None;
            }
            if let Some(text) = self.news() {
                self.spoke = Instant::now();
                return Some(text);
            }
            tokio::select! {
                changed = self.listing.changed() => changed.ok()?,
                stopped = self.stopping.changed() => stopped.ok()?,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn news(&mut self) -> Option<String> {
        let listing = Arc::clone(&self.listing.borrow_and_update());
        let now = self.shared.now();
        let mut text = String::new();
        for listed in listing.iter().filter(|listed| listed.is_open(now)) {
            if self.sent.insert(listed.query.clone()) {
                let _ = write!(text, "event: query\ndata: {}\n\n", listed.text);
            }
        }
        // What is over does not come back; a stream of years stays small.
        self.sent.retain(|query| listing.iter().any(|listed| listed.query == *query));
        if text.is_empty() && self.spoke.elapsed() >= KEEP_ALIVE {
            text.push_str(": still here\n\n");
        }
        (!text.is_empty()).then_some(text)
    }
}
