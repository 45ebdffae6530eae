//! Names of open queries as server-sent events: first those that are open now, then each one as it opens.
//!
//! The bytes of an event are made once, and every stream sends the same ones. A stream whose owner does not read is
//! closed by the listener, or when it has missed an event.

use axum::{
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, stream};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::sync::{broadcast, watch};

use crate::{
    base::{
        listener::{ClientAddress, Share},
        problem::{Answer, Problem},
    },
    desk::shared::DeskState,
};

/// How often a comment is sent, so that no proxy takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

/// Tells all streams that the desk is still here, until it stops.
pub(crate) async fn keep_alive(shared: Arc<DeskState>) {
    let mut stopping = shared.stopping.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep(KEEP_ALIVE) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        // An error means that nobody is listening.
        let _ = shared.events.send(STILL_HERE);
    }
}

/// A stream for one owner, if there is a place for it.
pub(crate) fn respond(shared: &Arc<DeskState>, origin: ClientAddress) -> Answer<Response> {
    let Some(place) = shared.streams.take(origin) else {
        return Err(Problem::busy("There are too many streams; poll /queries instead.", 60));
    };
    Ok(event_stream(stream::unfold(QueryStream::new(shared, place), |mut stream| async move {
        stream.next().await.map(|bytes| (bytes, stream))
    })))
}

/// An answer of server-sent events.
pub(crate) fn event_stream(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response()
}

struct QueryStream {
    greeting: Option<Bytes>,
    events: broadcast::Receiver<Bytes>,
    stopping: watch::Receiver<bool>,
    _place: Share,
}

impl QueryStream {
    fn new(shared: &DeskState, place: Share) -> Self {
        // Subscribe before reading the listing: a query that opens in between is named twice rather than not at all.
        let events = shared.events.subscribe();
        let greeting = shared.listing.borrow().events().clone();
        Self { greeting: Some(greeting), events, stopping: shared.stopping.subscribe(), _place: place }
    }

    /// The next bytes; none when the desk stops, or when events were missed.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take().filter(|greeting| !greeting.is_empty()) {
            return Some(greeting);
        }
        tokio::select! {
            event = self.events.recv() => event.ok(),
            _ = self.stopping.wait_for(|stop| *stop) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::listener::Shares;
    use std::net::{IpAddr, Ipv4Addr};

    fn stream(events: &broadcast::Sender<Bytes>, stopping: &watch::Sender<bool>) -> QueryStream {
        let place = Shares::new(1, 1).take(ClientAddress::of(IpAddr::V4(Ipv4Addr::LOCALHOST))).unwrap();
        let greeting = Some(Bytes::from_static(b"those of now"));
        QueryStream { greeting, events: events.subscribe(), stopping: stopping.subscribe(), _place: place }
    }

    #[tokio::test]
    async fn the_bytes_of_an_event_are_made_once_for_all_streams() {
        let (events, stopping) = (broadcast::Sender::new(4), watch::Sender::new(false));
        let mut streams: Vec<QueryStream> = (0..100).map(|_| stream(&events, &stopping)).collect();
        let event = Bytes::from("event: query\ndata: name\n\n".to_owned());
        events.send(event.clone()).unwrap();
        for stream in &mut streams {
            assert_eq!(stream.next().await.unwrap(), "those of now");
            assert_eq!(stream.next().await.unwrap().as_ptr(), event.as_ptr());
        }
        stopping.send_replace(true);
        assert_eq!(streams[0].next().await, None);
    }

    #[tokio::test]
    async fn a_stream_that_has_missed_events_ends() {
        let (events, stopping) = (broadcast::Sender::new(4), watch::Sender::new(false));
        let mut slow = stream(&events, &stopping);
        slow.next().await.unwrap();
        for _ in 0..5 {
            events.send(STILL_HERE).unwrap();
        }
        assert_eq!(slow.next().await, None);
    }
}
