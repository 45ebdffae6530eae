//! What the commands of the owner's side share.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use uptack_dap::http_client;
use uptack_owner::attributes::{self, Attributes, Named};
use uptack_owner::check::{Accepted, Checker};
use uptack_owner::client::{Client, Config, Outcome, Status};
use uptack_owner::ledger::Ledger;
use uptack_owner::policy::Policy;
use uptack_server::base::logging;
use url::Url;

use crate::arguments::{address, seconds};
use crate::failure::{Failure, IoResultExt, Result, ResultExt};
use crate::input::{read_file, read_small_file};
use crate::progress::ProgressLine;
use crate::runtime::block_on;

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
    /// Send within this long after the fixed delay of a few seconds; by default at any moment while the query is open
    #[arg(long, value_parser = seconds)]
    within: Option<u64>,
    /// Keep asking the desk, this often, until Ctrl-C
    #[arg(long, value_parser = seconds)]
    every: Option<u64>,
    /// A further root certificate for TLS, as PEM
    #[arg(long)]
    root: Option<PathBuf>,
    /// Log to this file, or to stderr with --log alone
    // With a blank in place of the equals sign, the name of the next file would be taken.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    log: Option<Option<PathBuf>>,
    /// Log in more detail
    #[arg(long, requires = "log")]
    verbose: bool,
}

impl OwnerArguments {
    /// Nothing is logged by default: what became of each query is printed at the end.
    fn start_log(&self) -> Result<()> {
        if let Some(place) = &self.log {
            logging::init_text(self.verbose, place.as_deref().map(open_log).transpose()?);
        }
        Ok(())
    }

    /// Answers the open queries for all owners, again and again with `--every`.
    ///
    /// `ask` puts questions to people, and `conclude` receives the outcomes of each visit.
    pub(crate) fn answer(
        &self,
        owners: &[Named],
        adjust: impl FnOnce(Config) -> Config,
        ask: impl Fn(&[Arc<Accepted>]) -> uptack_owner::Result<Vec<Option<bool>>>,
        conclude: impl Fn(&[Outcome]) -> Result<()>,
    ) -> Result<()> {
        self.start_log()?;
        let client = self.client(adjust(self.config()))?;
        block_on(async {
            loop {
                let outcomes = client.visit_asking(owners, &ask, acknowledgements()).await?;
                let concluded = conclude(&outcomes);
                let Some(pause) = self.every else { return concluded };
                // An owner who keeps asking may answer the next query.
                concluded.or_else(Failure::report_and_go_on)?;
                tokio::time::sleep(Duration::from_secs(pause)).await;
            }
        })
    }

    fn config(&self) -> Config {
        let mut desk = self.desk.clone();
        http_client::make_base(&mut desk);
        Config { root: self.root.clone(), within: self.within, ..Config::new(desk) }
    }

    fn client(&self, config: Config) -> Result<Client> {
        let checker = Checker::new(Policy::read(&self.policy)?);
        Ok(Client::new(config, checker, Ledger::open(&self.data)?)?)
    }
}

fn open_log(path: &Path) -> Result<File> {
    File::options().create(true).append(true).open(path).while_writing(path.display())
}

/// Shows how many reports have been acknowledged, until it is dropped.
pub(crate) fn acknowledgements() -> impl Fn(usize, usize) {
    let line = RefCell::new(ProgressLine::new());
    move |sent, all| line.borrow_mut().show("reports acknowledged", sent as u64, all as u64)
}

/// Reads the owners of a fleet. It may be large, but is read whole, because every owner answers every query.
pub(crate) fn read_fleet(path: &Path) -> Result<Vec<Named>> {
    let text = read_file(path)?;
    attributes::fleet_from_csv(&text).at(path.display())
}

/// Reads the attributes of one owner.
pub(crate) fn read_attributes(path: &Path) -> Result<Attributes> {
    Attributes::from_json(&read_small_file(path)?).at(path.display())
}

/// How a visit went: a failure if nobody answered although there was something to answer.
pub(crate) fn conclude(outcomes: &[Outcome]) -> Result<()> {
    let count = |status: Status| outcomes.iter().filter(|outcome| outcome.status == status).count();
    if outcomes.is_empty() || count(Status::Answered) + count(Status::Waiting) > 0 {
        return Ok(());
    }
    let failed = count(Status::Failed);
    if failed > 0 {
        return Err(Failure::environment(format!("no report arrived; {failed} were charged for and lost")));
    }
    let reason = outcomes.iter().find_map(|outcome| outcome.reason.as_deref()).unwrap_or("no reason given");
    Err(Failure::request(format!("nobody answered, and nothing was spent: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(statuses: &[Status]) -> Vec<Outcome> {
        let outcome = |status: &Status| Outcome {
            owner: String::new(),
            query: String::new(),
            status: *status,
            reason: Some("because".to_owned()),
        };
        statuses.iter().map(outcome).collect()
    }

    #[test]
    fn a_visit_without_any_answer_is_a_failure() {
        use Status::{Answered, Failed, Refused};
        for fine in [&[][..], &[Answered], &[Answered, Failed, Refused]] {
            assert!(conclude(&outcomes(fine)).is_ok());
        }
        assert!(format!("{:?}", conclude(&outcomes(&[Failed, Refused])).unwrap_err()).contains("code: 2"));
        let refused = format!("{:?}", conclude(&outcomes(&[Refused, Refused])).unwrap_err());
        assert!(refused.contains("code: 1") && refused.contains("because"), "{refused}");
    }
}
