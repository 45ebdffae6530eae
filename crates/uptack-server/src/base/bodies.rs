//! Reading the bodies of requests within limits: each in size and time, and all that are under way together in bytes.
//!
//! A body is copied as it arrives, so that it takes the memory of its bytes and does not keep the connection's buffers. Those who
//! send a part of a body and then nothing hold what they have sent, until their time is over; all of them together hold no more
//! than the budget.

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Extensions, StatusCode},
};
use http_body_util::BodyExt;
use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    listener::{ClientAddress, ConnectionLimits},
    lock,
    problem::{Answer, Problem},
};

/// Largest body of somebody who has shown no token, except for uploads of reports. A form with the longest token fits.
pub(crate) const LARGEST_OF_STRANGERS: usize = 4 * 1024;
/// Bytes that all strangers' bodies may take together. A larger number lets attackers take more memory; a smaller one refuses
/// uploads of long reports when many arrive at once.
const STRANGERS: usize = 64 * 1024 * 1024;
/// The same for those who have shown a token. The largest aggregation jobs fit four times.
const KNOWN: usize = 256 * 1024 * 1024;

/// Who sends a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// Somebody who has shown no token, from this address.
    Stranger(ClientAddress),
    /// The holder of a token or of a session.
    Known,
}

impl Sender {
    /// A stranger, at the address that the listener noted with the request.
    pub(crate) fn stranger(extensions: &Extensions) -> Self {
        Self::Stranger(extensions.get().copied().unwrap_or(ClientAddress::UNKNOWN))
    }
}

/// The bytes of all bodies that a server is reading or working on.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    /// How long a body may take to arrive.
    patience: Duration,
    strangers: usize,
    /// What one address may take of it.
    per_address: usize,
    known: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    by_address: HashMap<ClientAddress, usize>,
    strangers: usize,
    known: usize,
}

/// A body that was read. Its bytes count until it is dropped.
#[derive(Debug)]
pub(crate) struct ReadBody {
    bytes: Vec<u8>,
    lease: Lease,
}

impl ReadBody {
    /// The bytes, and what keeps them counted: for work that goes on without the body itself.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Lease) {
        (self.bytes, self.lease)
    }
}

impl Deref for ReadBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyBudget {
    /// A budget of which one address gets the share that it gets of the connections.
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let per_address = (STRANGERS / limits.connections).saturating_mul(limits.per_address).min(STRANGERS);
        Arc::new(Self {
            patience: limits.patience,
            strangers: STRANGERS,
            per_address,
            known: KNOWN,
            held: Mutex::default(),
        })
    }

    /// How many bytes are held at this moment.
    pub(crate) fn held(&self) -> usize {
        let held = lock(&self.held);
        held.strangers + held.known
    }

    /// Reads a body of at most `limit` bytes.
    pub(crate) async fn read(self: &Arc<Self>, body: Body, limit: usize, sender: Sender) -> Answer<ReadBody> {
        let mut read = ReadBody { bytes: Vec::new(), lease: Lease { budget: Arc::clone(self), sender, bytes: 0 } };
        match tokio::time::timeout(self.patience, read.fill(body, limit)).await {
            Err(_) => Err(Problem::http(StatusCode::REQUEST_TIMEOUT, "The request's body did not arrive in time.")),
            Ok(outcome) => outcome.map(|()| read),
        }
    }

    fn reserve(&self, sender: Sender, bytes: usize) -> bool {
        let mut held = lock(&self.held);
        match sender {
            Sender::Known if held.known + bytes <= self.known => held.known += bytes,
            Sender::Stranger(address) if held.strangers + bytes <= self.strangers => {
                let own = held.by_address.get(&address).copied().unwrap_or_default() + bytes;
                if own > self.per_address {
                    return false;
                }
                held.by_address.insert(address, own);
                held.strangers += bytes;
            }
            _ => return false,
        }
        true
    }

    fn release(&self, sender: Sender, bytes: usize) {
        let mut held = lock(&self.held);
        match sender {
            Sender::Known => held.known -= bytes,
            Sender::Stranger(address) => {
                held.strangers -= bytes;
                let own = held.by_address.remove(&address).unwrap_or_default() - bytes;
                if own > 0 {
                    held.by_address.insert(address, own);
                }
            }
        }
    }
}

impl ReadBody {
    async fn fill(&mut self, mut body: Body, limit: usize) -> Answer<()> {
        // Nothing is kept of a body that says itself that it is too large. As much as would be allowed is still taken from
        // the connection: if it were closed at once, the sender might not get to see the refusal.
        let (is_too_large, mut dropped) = (body.size_hint().lower() > limit as u64, 0);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Problem::bad_request("The request's body was cut off."))?;
            let Ok(data) = frame.into_data() else { continue };
            if !is_too_large {
                self.append(&data, limit)?;
                continue;
            }
            dropped += data.len();
            if dropped > limit {
                return Err(too_large(limit));
            }
        }
        Ok(())
    }

    fn append(&mut self, data: &Bytes, limit: usize) -> Answer<()> {
        let needed = self.bytes.len() + data.len();
        if needed > limit {
            return Err(too_large(limit));
        }
        if needed > self.bytes.capacity() {
            // Doubled, so that many small pieces are not copied again and again, but never beyond the limit.
            let capacity = (2 * self.bytes.capacity()).min(limit).max(needed);
            self.lease.grow_to(capacity)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::http(StatusCode::PAYLOAD_TOO_LARGE, format!("The body is larger than {limit} bytes."))
}

/// Bytes of the budget, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    budget: Arc<BodyBudget>,
    sender: Sender,
    bytes: usize,
}

impl Lease {
    fn grow_to(&mut self, bytes: usize) -> Answer<()> {
        if !self.budget.reserve(self.sender, bytes - self.bytes) {
            return Err(Problem::busy("Too much is being sent to this server at once. Try again in a moment.", 5));
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.release(self.sender, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};
    use std::{convert::Infallible, net::IpAddr};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn budget(patience: Duration) -> Arc<BodyBudget> {
        BodyBudget::new(ConnectionLimits::new(1024, None, patience))
    }

    fn stranger(last: u8) -> Sender {
        Sender::Stranger(ClientAddress::of(IpAddr::from([192, 0, 2, last])))
    }

    /// A body that sends pieces of this size and then nothing more, and never ends.
    fn stalled(pieces: usize, size: usize) -> Body {
        let sent = stream::iter(0..pieces).map(move |_| Ok::<_, Infallible>(Bytes::from(vec![b'x'; size])));
        Body::from_stream(sent.chain(stream::pending()))
    }

    async fn status(budget: &Arc<BodyBudget>, body: Body, limit: usize, sender: Sender) -> u16 {
        budget.read(body, limit, sender).await.map_or_else(|problem| problem.status().as_u16(), |_| 200)
    }

    #[tokio::test]
    async fn stalled_bodies_hold_what_they_sent_and_all_together_no_more_than_the_budget() {
        let budget = budget(PATIENCE);
        let (size, mut stalling) = (1 << 20, Vec::new());
        for last in 0..8 {
            for _ in 0..40 {
                let budget = Arc::clone(&budget);
                stalling.push(tokio::spawn(async move {
                    budget.read(stalled(16, size / 16), 2 * size, stranger(last)).await
                }));
            }
        }
        while stalling.iter().filter(|task| !task.is_finished()).count() > STRANGERS / size {
            tokio::task::yield_now().await;
        }
        assert_eq!(budget.held(), STRANGERS);
        // Strangers are refused for now; those who have shown a token are not.
        assert_eq!(status(&budget, Body::from("more"), 10, stranger(9)).await, 503);
        assert_eq!(status(&budget, Body::from("more"), 10, Sender::Known).await, 200);
        for task in stalling {
            task.abort();
            let _ = task.await;
        }
        assert_eq!(budget.held(), 0);
        assert!(lock(&budget.held).by_address.is_empty());
    }

    #[tokio::test]
    async fn one_address_takes_a_quarter_and_leaves_the_rest_to_others() {
        let budget = budget(PATIENCE);
        let first = budget.read(Body::from(vec![0; STRANGERS / 4]), STRANGERS, stranger(1)).await.unwrap();
        assert_eq!(status(&budget, Body::from("x"), 10, stranger(1)).await, 503);
        assert_eq!(status(&budget, Body::from("x"), 10, stranger(2)).await, 200);
        assert_eq!((first.len(), budget.held()), (STRANGERS / 4, STRANGERS / 4));
        drop(first);
        assert_eq!(status(&budget, Body::from("x"), 10, stranger(1)).await, 200);
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_or_too_slow_is_refused_and_holds_nothing() {
        let budget = budget(Duration::from_millis(1));
        // By its stated length, without keeping a byte of it; or as soon as too much has come.
        assert_eq!(status(&budget, Body::from(vec![0; 11]), 10, stranger(1)).await, 413);
        assert_eq!(status(&budget, stalled(3, 4), 10, stranger(1)).await, 413);
        assert_eq!(status(&budget, stalled(2, 4), 10, stranger(1)).await, 408);
        assert_eq!(budget.held(), 0);
        let whole = budget.read(Body::from("0123456789"), 10, stranger(1)).await.unwrap();
        assert_eq!(&whole[..], b"0123456789");
    }
}
