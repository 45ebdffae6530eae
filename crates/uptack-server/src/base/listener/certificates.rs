//! The certificate of a listener, which can be replaced while it listens.

use std::{
    path::{Path, PathBuf},
    result,
    sync::{Arc, RwLock},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::{CryptoProvider, aws_lc_rs},
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject},
        },
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};

use crate::{
    base::{read, write},
    error::{Error, Result},
};

/// A certificate chain and its key, from PEM files that can be read again.
#[derive(Debug)]
pub struct Certificates {
    chain: PathBuf,
    key: PathBuf,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

/// The certificate that the next handshake presents.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&read(&self.0)))
    }
}

impl Certificates {
    /// Reads a certificate chain and its key.
    pub fn read(chain: &Path, key: &Path) -> Result<Arc<Self>> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let current = Arc::new(Current(RwLock::new(Arc::new(certified_key(chain, key, &provider)?))));
        let config = server_config(provider, Arc::clone(&current)).map_err(|error| at(chain, &error))?;
        Ok(Arc::new(Self { chain: chain.to_owned(), key: key.to_owned(), current, config: Arc::new(config) }))
    }

    /// Reads the files again: new connections get the new certificate, open ones keep theirs. Faulty files change
    /// nothing.
    pub fn reload(&self) -> Result<()> {
        let fresh = certified_key(&self.chain, &self.key, self.config.crypto_provider())?;
        *write(&self.current.0) = Arc::new(fresh);
        Ok(())
    }

    /// Reads the files again and logs the result.
    pub fn reload_or_log(&self) {
        match self.reload() {
            Ok(()) => tracing::info!(certificate = %self.chain.display(), "the certificate was read again"),
            Err(error) => tracing::error!(%error, "the certificate was not replaced; the previous one stays in use"),
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

fn server_config(provider: Arc<CryptoProvider>, current: Arc<Current>) -> result::Result<ServerConfig, rustls::Error> {
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_no_client_auth().with_cert_resolver(current))
}

fn certified_key(chain: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey> {
    let (certificates, der) = (read_chain(chain)?, read_key(key)?);
    // Also checks that the key is the certificate's.
    CertifiedKey::from_der(certificates, der, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            at(key, &format!("it is not the key of the certificate in {}", chain.display()))
        }
        error => at(chain, &error),
    })
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = read_bytes(path)?;
    let certificates: result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(at(path, &"no certificate in it; expected PEM that begins with -----BEGIN CERTIFICATE-----"))
        }
        certificates => certificates.map_err(|error| at(path, &error)),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(&read_bytes(path)?).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            at(path, &"no private key in it; expected PEM that begins with -----BEGIN PRIVATE KEY-----")
        }
        error => at(path, &error),
    })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::named_file(path, error))
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::input(format!("{}: {error}", path.display()))
}
