//! What the commands of the owner's side share.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use uptack_dap::http_client;
use uptack_owner::attributes::Named;
use uptack_owner::check::{Accepted, Checker};
use uptack_owner::client::{Client, Config, Outcome, Status};
use uptack_owner::ledger::Ledger;
use uptack_owner::policy::Policy;
use uptack_server::base::logging;
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
    /// Without being asked to nothing is logged: what became of each query is said at the end.
    fn start_log(&self) -> Result<(), Failure> {
        let Some(place) = &self.log else { return Ok(()) };
        let open = |path: &PathBuf| {
            let file = File::options().create(true).append(true).open(path);
            file.map_err(|error| Failure::writing(path.display(), &error))
        };
        logging::init_text(self.verbose, place.as_ref().map(open).transpose()?);
        Ok(())
    }

    /// Answers what is open for all owners, and again if asked to; `ask` puts questions to people, `told` hears of each visit.
    pub(crate) fn answer(
        &self,
        owners: &[Named],
        adjust: impl FnOnce(Config) -> Config,
        ask: impl Fn(&[Arc<Accepted>]) -> uptack_owner::Result<Vec<Option<bool>>>,
        told: impl Fn(&[Outcome]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.start_log()?;
        let mut desk = self.desk.clone();
        http_client::make_base(&mut desk);
        let config = adjust(Config { root: self.root.clone(), within: self.within, ..Config::new(desk) });
        let client = Client::new(config, Checker::new(Policy::read(&self.policy)?), Ledger::open(&self.data)?)?;
        let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::writing("threads", &error))?;
        runtime.block_on(async {
            loop {
                let line = std::cell::RefCell::new(ProgressLine::new());
                let progress = |sent: usize, all: usize| {
                    line.borrow_mut().show("reports acknowledged", sent as u64, all as u64);
                };
                let outcomes = client.visit_asking(owners, &ask, progress).await?;
                drop(line);
                let concluded = told(&outcomes);
                let Some(pause) = self.every else { return concluded };
                // Whoever stays in touch may answer the next query.
                concluded.or_else(Failure::report_and_go_on)?;
                tokio::time::sleep(Duration::from_secs(pause)).await;
            }
        })
    }
}

/// How a visit went: a failure if nobody answered although there was something to answer.
pub(crate) fn conclude(outcomes: &[Outcome]) -> Result<(), Failure> {
    let with = |status: Status| outcomes.iter().filter(|outcome| outcome.status == status).count();
    let (answered, failed) = (with(Status::Answered) + with(Status::Waiting), with(Status::Failed));
    if failed > 0 && answered == 0 {
        return Err(Failure::environment(format!("no report arrived; {failed} were charged for and lost")));
    }
    if answered == 0 && !outcomes.is_empty() {
        let reason = outcomes.iter().find_map(|outcome| outcome.reason.as_deref()).unwrap_or("no reason given");
        return Err(Failure::request(format!("nobody answered, and nothing was spent: {reason}")));
    }
    Ok(())
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
