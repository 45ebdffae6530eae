//! The certificate of a server, as arguments of the commands that run one.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use uptack_server::base::listener;

use crate::failure::{Result, ResultExt};

#[derive(Args)]
pub(crate) struct TlsArguments {
    /// The certificate chain for TLS, as PEM
    #[arg(long, requires = "key")]
    certificate: Option<PathBuf>,
    /// The key for TLS, as PEM
    #[arg(long, requires = "certificate")]
    key: Option<PathBuf>,
}

impl TlsArguments {
    /// The files of the certificate chain and of its key.
    pub(crate) fn files(&self) -> Option<(PathBuf, PathBuf)> {
        self.certificate.clone().zip(self.key.clone())
    }

    /// Refuses addresses that others can reach without TLS, unless that is intended; checked before anything is started.
    pub(crate) fn check_exposure(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
        allow_plaintext: bool,
    ) -> Result<()> {
        let has_certificate = self.certificate.is_some();
        addresses
            .into_iter()
            .try_for_each(|listen| listener::check_exposure(listen, has_certificate, allow_plaintext))
            .with_hint("--certificate and --key give one; --allow-plaintext is for a proxy in front that does TLS")
    }
}
