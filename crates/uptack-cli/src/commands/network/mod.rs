//! The commands of the private write: servers, analysts and owners. Arguments and connections that they share are here.

pub(super) mod aggregator;
pub(super) mod answer;
pub(super) mod ask;
pub(super) mod fleet;
pub(super) mod queries;
pub(super) mod result;
pub(super) mod serve;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::runtime::Runtime;
use uptack_dap::desk_client::DeskClient;
use uptack_dap::signed::PublicKey;
use uptack_dap::token::Token;
use uptack_server::aggregator::{Admission, PairSecret};
use uptack_server::base::listener;
use url::Url;

use crate::arguments::{address, count};
use crate::failure::{Failure, IoResultExt, Result, ResultExt};
use crate::input::read_small_file;

/// Which desk, and who calls it.
#[derive(Args)]
pub(crate) struct DeskArguments {
    /// The desk's address
    #[arg(long, value_name = "URL", value_parser = address)]
    desk: Url,
    /// The file with your analyst token
    #[arg(long)]
    token: PathBuf,
    /// An additional root certificate for the desk's TLS, as PEM
    #[arg(long)]
    root: Option<PathBuf>,
}

impl DeskArguments {
    pub(crate) fn address(&self) -> &Url {
        &self.desk
    }

    pub(crate) fn client(&self) -> Result<DeskClient> {
        Ok(DeskClient::new(&self.desk, Some(read_token(&self.token)?), self.root.as_deref())?)
    }
}

/// Reads a token from its file; an error does not quote it.
pub(crate) fn read_token(path: &Path) -> Result<Token> {
    if !path.exists() && path.to_str().is_some_and(looks_like_a_token) {
        return Err(Failure::request(
            "--token: this looks like a token; the name of the file that holds it is expected",
        )
        .with_hint("write the token to a file that only you can read: other users may see a command line"));
    }
    let text = read_small_file(path)?;
    let token = Token::try_from(text.trim().to_owned()).at(path.display());
    match token_advice(text.trim()) {
        Some(advice) => token.with_hint(advice),
        None => token,
    }
}

/// Long, and without the signs that names of files have. The analysts' tokens that servers make are of this kind.
fn looks_like_a_token(text: &str) -> bool {
    let text = text.strip_prefix("Bearer ").unwrap_or(text);
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// What was copied along with a token.
fn token_advice(text: &str) -> Option<&'static str> {
    if text.to_ascii_lowercase().contains("bearer") {
        Some("the file holds the token alone; leave out `Bearer` and what comes before it")
    } else if text.contains(['"', '\'', '“', '”']) {
        Some("the file holds the token alone, without quotation marks")
    } else if text.contains(char::is_whitespace) {
        Some("the file holds one token, without blanks or further lines")
    } else {
        None
    }
}

/// Runs asynchronous work to its end.
pub(crate) fn block_on<T, E: Into<Failure>>(work: impl Future<Output = Result<T, E>>) -> Result<T> {
    let runtime = Runtime::new().while_writing("threads")?;
    runtime.block_on(work).map_err(Into::into)
}

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

/// Which tasks an aggregator serves.
#[derive(Args)]
pub(crate) struct AdmissionArguments {
    /// The key of a desk whose cards are served, as `uptack serve` prints it; may be given several times
    #[arg(long, value_name = "KEY", requires = "pair_secret")]
    desk_key: Vec<PublicKey>,
    /// The file with the secret that leader and helper share, as `uptack pair-secret` writes it
    #[arg(long, value_name = "FILE")]
    pair_secret: Option<PathBuf>,
    /// Refuse tasks that would release batches of fewer reports, whatever their cards say
    #[arg(long, value_name = "N", value_parser = count, default_value = "1")]
    smallest_batch: u64,
}

impl AdmissionArguments {
    pub(crate) fn read(&self) -> Result<Admission> {
        Ok(Admission {
            desk_keys: self.desk_key.clone(),
            smallest_batch: self.smallest_batch,
            pair_secret: self.pair_secret.as_deref().map(PairSecret::load).transpose()?,
            allow_tasks_without_card: false,
        })
    }

    pub(crate) fn has_pair_secret(&self) -> bool {
        self.pair_secret.is_some()
    }
}
