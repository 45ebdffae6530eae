//! Listening: connections with limits, TLS, an orderly end.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::error::{Error, Result};

/// How long answers under way may take once the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// How long a request's head, or a handshake, may take.
    pub patience: Duration,
}

/// Reads a certificate chain and its key.
pub fn tls(certificates: &Path, key: &Path) -> Result<TlsAcceptor> {
    let at = |path: &Path, error: &dyn std::fmt::Display| Error::input(format!("{}: {error}", path.display()));
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| at(certificates, &error))?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| at(key, &error))?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key_der))
        .map_err(|error| at(certificates, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Refuses to listen beyond loopback in plaintext unless that is said to be meant.
pub fn check_exposure(listen: SocketAddr, tls: bool, allow_plaintext: bool) -> Result<()> {
    if listen.ip().is_loopback() || tls || allow_plaintext {
        return Ok(());
    }
    Err(Error::input(format!(
        "{listen} is reachable from other machines and there is no certificate: give one, listen on \
         loopback, or say that plaintext is meant because a proxy in front does TLS"
    )))
}

/// Waits until the process is asked to stop: an interrupt or a termination signal.
#[cfg(unix)]
pub async fn stop_signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Waits until the process is asked to stop.
#[cfg(not(unix))]
pub async fn stop_signal() -> Result<()> {
    Ok(tokio::signal::ctrl_c().await?)
}

fn provider() -> Arc<tokio_rustls::rustls::crypto::CryptoProvider> {
    Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider())
}

/// Binds, or says which address could not be bound.
pub async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| Error::environment(format!("cannot listen on {address}: {error}")))
}

/// Serves until told to stop, then lets the answers under way finish.
pub async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    routes: Router,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            } => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let (Ok(place), Ok((stream, _))) = accepted else {
            // Out of file descriptors, most likely; others are closed meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (routes, acceptor, watcher) = (routes.clone(), acceptor.clone(), graceful.watcher());
        tokio::spawn(async move {
            let _place = place;
            converse(stream, acceptor, routes, limits.patience, watcher).await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await;
}

async fn converse(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    routes: Router,
    patience: Duration,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => answer(stream, routes, patience, watcher).await,
        Some(acceptor) => {
            let handshake = tokio::time::timeout(patience, acceptor.accept(stream)).await;
            if let Ok(Ok(stream)) = handshake {
                answer(stream, routes, patience, watcher).await;
            }
        }
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Router,
    patience: Duration,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // A broken connection is the client's affair.
    let _ = watcher.watch(connection).await;
}
