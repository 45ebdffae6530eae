//! What the commands of the owner's side share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use uptack_dap::credential::OwnerSecret;
use uptack_owner::attributes::Named;
use uptack_owner::check::Checker;
use uptack_owner::client::{Client, Config, Outcome};
use uptack_owner::ledger::Ledger;
use uptack_owner::policy::Policy;
use url::Url;

use crate::arguments::{address, seconds};
use crate::failure::Failure;
use crate::progress::ProgressLine;

/// Where to ask, what to allow, where to keep the ledger
#[derive(Args)]
pub(crate) struct OwnerArguments {
    /// The address of the desk
    #[arg(long, value_name = "URL", value_parser = address)]
    desk: Url,
    /// What the owner allows, as TOML
    #[arg(long)]
    policy: PathBuf,
    /// The folder of the ledger
    #[arg(long)]
    data: PathBuf,
    /// Send within so long after the fixed delay of a few seconds; by default at any moment while the query is open
    #[arg(long, value_parser = seconds)]
    within: Option<u64>,
    /// Go on asking the desk this often, until Ctrl-C
    #[arg(long, value_parser = seconds)]
    every: Option<u64>,
    /// A further root certificate for TLS, as PEM
    #[arg(long)]
    root: Option<PathBuf>,
    /// Log more, too
    #[arg(long)]
    verbose: bool,
}

impl OwnerArguments {
    /// Answers what is open for all owners, and again if asked to; `told` hears of each visit.
    pub(crate) fn answer(
        &self,
        owners: &[Named],
        credentials: HashMap<String, OwnerSecret>,
        told: impl Fn(&[Outcome]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        uptack_server::base::logging::init_verbose(self.verbose);
        let mut desk = self.desk.clone();
        if !desk.path().ends_with('/') {
            let path = format!("{}/", desk.path());
            desk.set_path(&path);
        }
        let config = Config { root: self.root.clone(), within: self.within, credentials, ..Config::new(desk) };
        let client = Client::new(config, Checker::new(Policy::read(&self.policy)?), Ledger::open(&self.data)?)?;
        let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::writing("threads", &error))?;
        runtime.block_on(async {
            loop {
                let line = std::cell::RefCell::new(ProgressLine::new());
                let progress = |sent: usize, all: usize| {
                    line.borrow_mut().show("reports acknowledged", sent as u64, all as u64);
                };
                let outcomes = client.visit(owners, progress).await?;
                drop(line);
                told(&outcomes)?;
                let Some(pause) = self.every else { return Ok(()) };
                tokio::time::sleep(Duration::from_secs(pause)).await;
            }
        })
    }
}
