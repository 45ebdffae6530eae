//! Listening: connections with limits, TLS, an orderly end.
//!
//! A listener defends itself against clients that open connections and then do nothing, or never read the answers:
//!
//! - a request's head must arrive within [`ConnectionLimits::patience`], and so must the next one on a connection that is kept;
//! - a connection that accepts no bytes for that long is closed;
//! - one address (an IPv4 address, or an IPv6 network of 64 bits) holds at most [`ConnectionLimits::per_address`] connections, and
//!   when all seats are taken, the address that holds most of them gives one up for an address that holds fewer.

mod certificates;
mod patient;
mod seats;

use axum::{Router, extract::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub use certificates::Certificates;
pub use seats::{ClientAddress, Share, Shares};

use crate::error::{Error, Result};
use patient::Patient;
use seats::{Seat, Seats};

/// How long the last answers may take when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Bytes that a connection buffers at most, each way. A smaller number makes large bodies slower; a larger one lets an
/// attacker make us hold more for each connection.
const BUFFER: usize = 64 * 1024;

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address.
    pub per_address: usize,
    /// How long a handshake, a request's head, the next request of a kept connection, or the reading of an answer's
    /// next bytes may take.
    pub patience: Duration,
}

impl ConnectionLimits {
    /// Limits the connections; one address gets a quarter of them unless `per_address` is given.
    pub fn new(connections: usize, per_address: Option<usize>, patience: Duration) -> Self {
        let connections = connections.max(1);
        let per_address = per_address.unwrap_or(connections / 4).clamp(1, connections);
        Self { connections, per_address, patience }
    }
}

/// Refuses to listen beyond loopback in plaintext unless that is allowed explicitly.
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

/// Serves until told to stop, then finishes the answers under way.
///
/// Every request carries the [`ClientAddress`] of its connection as an extension.
pub async fn serve(
    listener: TcpListener,
    certificates: Option<Arc<Certificates>>,
    routes: Router,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let service = Service { certificates, routes, patience: limits.patience };
    let seats = Seats::new(limits.connections, limits.per_address);
    let graceful = GracefulShutdown::new();
    while let Some((stream, address)) = next_connection(&listener, &mut stopping).await {
        // Without a seat the connection is closed at once, which is cheaper than a refusal.
        if let Some(seat) = seats.admit(ClientAddress::of(address.ip())) {
            tokio::spawn(service.clone().serve(stream, seat, graceful.watcher()));
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await;
}

/// The next connection; none once the server is to stop.
async fn next_connection(
    listener: &TcpListener,
    stopping: &mut watch::Receiver<bool>,
) -> Option<(TcpStream, SocketAddr)> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return None,
        };
        if let Ok(connection) = accepted {
            return Some(connection);
        }
        // Out of file descriptors, most likely; others are closed meanwhile.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Everything that a connection is served with.
#[derive(Clone)]
struct Service {
    certificates: Option<Arc<Certificates>>,
    routes: Router,
    patience: Duration,
}

impl Service {
    /// Serves a connection until it ends or its seat is needed.
    async fn serve(self, stream: TcpStream, seat: Arc<Seat>, watcher: Watcher) {
        tokio::select! {
            () = self.shake_hands(stream, &seat, watcher) => {}
            () = seat.asked_to_leave() => {}
        }
    }

    /// Serves a connection, after a handshake if there is a certificate.
    async fn shake_hands(self, stream: TcpStream, seat: &Arc<Seat>, watcher: Watcher) {
        let _ = stream.set_nodelay(true);
        let stream = Patient::new(stream, self.patience, Arc::clone(seat));
        let Some(certificates) = &self.certificates else { return self.answer(stream, seat, watcher).await };
        let handshake = tokio::time::timeout(self.patience, certificates.acceptor().accept(stream)).await;
        if let Ok(Ok(stream)) = handshake {
            self.answer(stream, seat, watcher).await;
        }
    }

    /// Answers the requests of a connection.
    async fn answer(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        seat: &Arc<Seat>,
        watcher: Watcher,
    ) {
        let routes = TowerToHyperService::new(self.routes);
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(seat.address());
            let (serving, answer) = (seat.serve(), hyper::service::Service::call(&routes, request));
            async move {
                let response = answer.await;
                drop(serving);
                response
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        // A broken connection is the client's affair.
        let _ = watcher.watch(connection).await;
    }
}

/// The handlers of the signals that a server obeys. Once they are installed, no such signal ends the process at once,
/// so they are installed before the server says that it is ready.
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    hangup: Signal,
}

#[cfg(unix)]
impl Signals {
    /// Installs the handlers.
    pub fn install() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits until the process is asked to stop, by an interrupt or a termination signal. `reload` is called at each
    /// hangup signal before that.
    pub async fn wait(mut self, reload: impl AsyncFn()) -> Result<()> {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Ok(()),
                _ = self.terminate.recv() => return Ok(()),
                _ = self.hangup.recv() => reload().await,
            }
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// There is nothing to install.
    pub fn install() -> Result<Self> {
        Ok(Self {})
    }

    /// Waits until the process is asked to stop.
    pub async fn wait(self, _reload: impl AsyncFn()) -> Result<()> {
        Ok(tokio::signal::ctrl_c().await?)
    }
}
