//! What the commands that call a desk share.

use std::path::{Path, PathBuf};

use clap::Args;
use uptack_dap::desk_client::Client;
use uptack_dap::token::Token;
use url::Url;

use crate::arguments::address;
use crate::failure::{Result, ResultExt};
use crate::input::read_small_file;

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

    pub(crate) fn client(&self) -> Result<Client> {
        Ok(Client::new(&self.desk, Some(read_token(&self.token)?), self.root.as_deref())?)
    }
}

/// Reads a token from its file; an error does not quote it.
pub(crate) fn read_token(path: &Path) -> Result<Token> {
    let text = read_small_file(path)?;
    Token::try_from(text.trim().to_owned()).at(path.display())
}
