//! What the commands that call a desk share.

use std::future::Future;
use std::path::PathBuf;

use clap::Args;
use uptack_dap::desk_client::Client;
use uptack_dap::token::Token;
use url::Url;

use crate::arguments::address;
use crate::failure::Failure;
use crate::output::read_small_file;

/// Which desk, and who calls it.
#[derive(Args)]
pub(crate) struct DeskArguments {
    /// The desk's address
    #[arg(long, value_name = "URL", value_parser = address)]
    desk: Url,
    /// The file with your token as an analyst
    #[arg(long)]
    token: PathBuf,
    /// A further root certificate for the desk's TLS, as PEM
    #[arg(long)]
    root: Option<PathBuf>,
}

impl DeskArguments {
    pub(crate) fn address(&self) -> &Url {
        &self.desk
    }

    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(&self.desk, Some(read_token(&self.token)?), self.root.as_deref())?)
    }
}

/// Reads a token from its file; an error does not quote it.
pub(crate) fn read_token(path: &std::path::Path) -> Result<Token, Failure> {
    let text = read_small_file(path)?;
    Token::try_from(text.trim().to_owned()).map_err(|error| Failure::from(error).at(path.display()))
}

/// Waits for what a desk answers.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::writing("threads", &error))?;
    runtime.block_on(work)
}
