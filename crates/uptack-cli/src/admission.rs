//! An operator's conditions, as arguments of the commands that serve or prepare tasks.

use std::path::PathBuf;

use clap::Args;
use uptack_dap::signed::PublicKey;
use uptack_server::aggregator::Admission;
use uptack_server::aggregator::PairSecret;

use crate::arguments::count;
use crate::failure::Result;

/// Which tasks an aggregator serves.
#[derive(Args)]
pub(crate) struct AdmissionArguments {
    /// The key of a desk whose cards are served, as `uptack serve` prints it; may be given several times
    #[arg(long, value_name = "KEY", requires = "pair_secret")]
    desk_key: Vec<PublicKey>,
    /// The file with the secret that leader and helper share, as `uptack pair-secret` writes it
    #[arg(long, value_name = "FILE")]
    pair_secret: Option<PathBuf>,
    /// Serve no task that would release batches of fewer reports, whatever its card says
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
