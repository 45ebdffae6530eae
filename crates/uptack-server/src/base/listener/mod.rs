//! Listening: connections with limits, TLS, an orderly end.
//!
//! A listener defends itself against whoever opens connections and then does nothing, or never reads what it asked for:
//!
//! - a request's head has to arrive within [`Limits::patience`], and so has the next one on a connection that is kept;
//! - a connection that takes none of the bytes it is sent for that long is closed;
//! - one origin (an IPv4 address, or an IPv6 network of 64 bits) holds at most [`Limits::per_origin`] connections, and
//!   when all places are taken the origin that holds most of them gives one up for one that holds fewer.

mod certificates;
mod patient;
mod seats;
mod signals;

use axum::{Router, extract::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub use certificates::Certificates;
pub use seats::{Origin, Share, Shares};
pub use signals::Signals;

use crate::error::{Error, Result};
use patient::Patient;
use seats::{Seat, Seats};

/// How long answers under way may take once the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Bytes that a connection buffers at most, each way. A smaller number makes large bodies slower; a larger one is what an
/// attacker can make us hold for each connection.
const BUFFER: usize = 64 * 1024;

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one origin.
    pub per_origin: usize,
    /// How long a handshake, a request's head, the next request of a kept connection, or the reading of an answer's next
    /// bytes may take.
    pub patience: Duration,
}

impl Limits {
    /// So many connections, of which one origin gets a quarter unless another number is given.
    pub fn new(connections: usize, per_origin: Option<usize>, patience: Duration) -> Self {
        let connections = connections.max(1);
        let per_origin = per_origin.unwrap_or(connections / 4).clamp(1, connections);
        Self { connections, per_origin, patience }
    }
}

/// Refuses to listen beyond loopback in plaintext unless that is said to be meant.
pub fn check_exposure(listen: SocketAddr, tls: bool, allow_plaintext: bool) -> Result<()> {
    if listen.ip().is_loopback() || tls || allow_plaintext {
        return Ok(());
    }
    Err(Error::input(format!(
        "{listen} can be reached from other machines, and there is no certificate for TLS; without one, only addresses \
         of this machine such as 127.0.0.1 are listened on unless plaintext is allowed"
    )))
}

/// Binds, or says which address could not be bound.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| Error::environment(format!("cannot listen on {address}: {error}")))
}

/// Serves until told to stop, then lets the answers under way finish.
///
/// Every request carries the [`Origin`] of its connection as an extension.
pub async fn serve(
    listener: TcpListener,
    certificates: Option<Arc<Certificates>>,
    routes: Router,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let seats = Seats::new(limits.connections, limits.per_origin);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, address)) = accepted else {
            // Out of file descriptors, most likely; others are closed meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Without a place the connection is closed at once, which costs us less than saying so.
        let Some(seat) = seats.admit(Origin::of(address.ip())) else { continue };
        let (routes, certificates, watcher) = (routes.clone(), certificates.clone(), graceful.watcher());
        tokio::spawn(async move {
            tokio::select! {
                () = converse(stream, certificates, routes, &seat, limits.patience, watcher) => {}
                () = seat.asked_to_leave() => {}
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await;
}

async fn converse(
    stream: TcpStream,
    certificates: Option<Arc<Certificates>>,
    routes: Router,
    seat: &Arc<Seat>,
    patience: Duration,
    watcher: Watcher,
) {
    let _ = stream.set_nodelay(true);
    let stream = Patient::new(stream, patience, Arc::clone(seat));
    match certificates {
        None => answer(stream, routes, seat, patience, watcher).await,
        Some(certificates) => {
            let handshake = tokio::time::timeout(patience, certificates.acceptor().accept(stream)).await;
            if let Ok(Ok(stream)) = handshake {
                answer(stream, routes, seat, patience, watcher).await;
            }
        }
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Router,
    seat: &Arc<Seat>,
    patience: Duration,
    watcher: Watcher,
) {
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(seat.origin());
        let (serving, answer) = (seat.serve(), hyper::service::Service::call(&routes, request));
        async move {
            let response = answer.await;
            drop(serving);
            response
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    // A broken connection is the client's affair.
    let _ = watcher.watch(connection).await;
}
