//! One owner or a whole fleet answering the queries of a desk.

use futures_util::{StreamExt, stream};
use rand::{Rng, rngs::OsRng};
use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use uptack::card::Enrolment;
use uptack_net::{
    client::{Client as Writer, SealedReport},
    clock::Clock,
    credential::{Credential, OwnerSecret},
    dap::TaskId,
    signed::SignedCard,
    web,
};
use url::Url;

use crate::{
    attributes::{Attributes, Named},
    check::{Accepted, Checker, Refusal},
    error::{Error, Result},
    ledger::{Acceptance, Due, Ledger, State, StoredReport},
    listing,
    report::{self, Tosser},
};

/// Reports made, stored and sent together.
const GROUP: usize = 256;
/// Uploads at once.
const AT_ONCE: usize = 32;
/// Between two attempts to reach a leader that is away, in seconds.
const PATIENCE: std::ops::RangeInclusive<u64> = 1..=5;

/// How a client answers. [`Config::new`] gives defaults for everything but the desk.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the desk is.
    pub desk: Url,
    /// A further root certificate for TLS, in a PEM file.
    pub root: Option<PathBuf>,
    /// Reports are sent within so many seconds; by default at any time in the query's window.
    pub within: Option<u64>,
    /// The secret of each enrolled owner. It signs reports for cards that require enrolment, and is used for no others.
    pub credentials: HashMap<String, OwnerSecret>,
    /// The time of day.
    pub clock: Clock,
}

impl Config {
    /// A client of a desk.
    pub fn new(desk: Url) -> Self {
        Self { desk, root: None, within: None, credentials: HashMap::new(), clock: Clock::system() }
    }
}

/// What became of one query for one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whose.
    pub owner: String,
    /// The query.
    pub query: String,
    /// What was done.
    pub status: Status,
    /// Why, where something was refused or failed.
    pub reason: Option<String>,
}

/// What was done about a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The report was acknowledged, now or before.
    Answered,
    /// Accepted and charged; the report is sent at its moment.
    Waiting,
    /// Not answered, and nothing was spent.
    Refused,
    /// Charged, but the report did not arrive.
    Failed,
}

impl Status {
    /// The word in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Answers queries for the owners whose attributes it is given.
pub struct Client {
    config: Config,
    checker: Checker,
    ledger: Ledger,
    http: reqwest::Client,
    writers: Mutex<HashMap<TaskId, Arc<Writer>>>,
}

impl Client {
    /// A client with a policy and a ledger.
    pub fn new(config: Config, checker: Checker, ledger: Ledger) -> Result<Self> {
        let http = web::client(config.root.as_deref())?;
        Ok(Self { config, checker, ledger, http, writers: Mutex::new(HashMap::new()) })
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The desk's open queries. The requests are the same for every owner.
    pub async fn fetch(&self) -> Result<Vec<SignedCard>> {
        listing::fetch(&self.http, &self.config.desk, |query| self.ledger.card(query).ok().flatten()).await
    }

    /// Decides about every card for every owner, and charges those who accept.
    ///
    /// Only names are taken: no attribute has a part in the decision.
    pub fn consider(&self, owners: &[&str], cards: &[SignedCard]) -> Result<Vec<Outcome>> {
        let now = self.config.clock.now();
        self.ledger.expire(now)?;
        let mut outcomes = Vec::new();
        for signed in cards {
            match self.checker.check(signed, now) {
                Ok(accepted) => outcomes.extend(self.charge(owners, signed, &accepted, now)?),
                Err(refusal) => {
                    tracing::info!(query = signed.query, reason = %refusal, "refused");
                    outcomes.extend(owners.iter().map(|owner| refused(owner, &signed.query, &refusal)));
                }
            }
        }
        Ok(outcomes)
    }

    /// Sends every report whose moment has come, and says how many were acknowledged.
    pub async fn upload_due(&self, owners: &BTreeMap<String, Attributes>) -> Result<usize> {
        let mut acknowledged = 0;
        loop {
            let now = self.config.clock.now();
            let due = self.ledger.due(now, GROUP)?;
            if due.is_empty() {
                return Ok(acknowledged);
            }
            acknowledged += self.upload(owners, due, now).await?;
        }
    }

    /// The moment of the next report, if there is one to come.
    pub fn next_due(&self) -> Result<Option<u64>> {
        self.ledger.next_due()
    }

    /// One visit: fetches, decides, waits for each report's moment, sends, and tells what became of all.
    ///
    /// `progress` is told how many reports were acknowledged so far, and how many there will be.
    pub async fn visit(&self, owners: &[Named], progress: impl Fn(usize, usize)) -> Result<Vec<Outcome>> {
        let cards = self.fetch().await?;
        let names: Vec<&str> = owners.iter().map(|(name, _)| name.as_str()).collect();
        let mut outcomes = self.consider(&names, &cards)?;
        let attributes: BTreeMap<String, Attributes> = owners.iter().cloned().collect();
        let (mut sent, total) = (0, outcomes.iter().filter(|outcome| outcome.status == Status::Waiting).count());
        while let Some(moment) = self.ledger.next_due()? {
            progress(sent, total);
            let now = self.config.clock.now();
            if moment > now {
                tokio::time::sleep(Duration::from_secs(moment - now).min(Duration::from_millis(500))).await;
            }
            self.ledger.expire(now)?;
            sent += self.upload_due(&attributes).await?;
        }
        progress(sent, total);
        self.update(&mut outcomes)?;
        Ok(outcomes)
    }

    /// Brings outcomes up to what the ledger says now.
    pub fn update(&self, outcomes: &mut [Outcome]) -> Result<()> {
        let entries = self.ledger.entries()?;
        let states: HashMap<(&str, &str), State> =
            entries.iter().map(|entry| ((entry.owner.as_str(), entry.query.as_str()), entry.state)).collect();
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.status != Status::Refused) {
            if let Some(state) = states.get(&(outcome.owner.as_str(), outcome.query.as_str())) {
                (outcome.status, outcome.reason) = told(*state);
            }
        }
        Ok(())
    }

    fn charge(&self, owners: &[&str], signed: &SignedCard, accepted: &Accepted, now: u64) -> Result<Vec<Outcome>> {
        let uploads: Vec<(&str, u64)> =
            owners.iter().map(|owner| (*owner, moment(now, accepted.window.1, self.config.within))).collect();
        let lifetime = &self.checker.policy().lifetime;
        let decided = self.ledger.accept(signed, accepted, &uploads, lifetime, now)?;
        Ok(owners
            .iter()
            .zip(decided)
            .map(|(owner, acceptance)| match acceptance {
                Acceptance::Refused(reason) => refused(owner, &signed.query, &Refusal(reason)),
                Acceptance::Charged => outcome(owner, &signed.query, State::Due),
                Acceptance::Known(state) => outcome(owner, &signed.query, state),
            })
            .collect())
    }

    /// Makes what is not made yet, stores it, sends all, and notes what became of each.
    async fn upload(&self, owners: &BTreeMap<String, Attributes>, due: Vec<Due>, now: u64) -> Result<usize> {
        let mut ready = Vec::new();
        let mut made = Vec::new();
        let mut ended = Vec::new();
        let mut later = Vec::new();
        for due in due {
            let Some(accepted) = self.accepted(&due)? else {
                ended.push((due, State::Lost));
                continue;
            };
            match self.prepare(owners, &due, &accepted).await {
                Ok((report, is_new)) => {
                    if is_new {
                        made.push((due.clone(), report.clone()));
                    }
                    ready.push((due, accepted, report));
                }
                // Without the aggregators' keys nothing can be made; nothing was tossed either.
                Err(Error::Network(error)) if error.is_unreachable() => later.push((due, retry_at(now))),
                Err(Error::Network(_)) => ended.push((due, State::Lost)),
                Err(error) => return Err(error),
            }
        }
        self.ledger.store(&made)?;
        let sent: Vec<(Due, Result<()>)> = stream::iter(ready)
            .map(|(due, accepted, report)| async move {
                let outcome = self.send(&due, &accepted, report).await;
                (due, outcome)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut acknowledged = 0;
        for (due, outcome) in sent {
            match outcome {
                Ok(()) => {
                    acknowledged += 1;
                    ended.push((due, State::Sent));
                }
                Err(Error::Network(error)) if error.is_refused() => ended.push((due, State::Lost)),
                Err(Error::Network(_)) => later.push((due, retry_at(now))),
                Err(error) => return Err(error),
            }
        }
        self.ledger.settle(&ended)?;
        self.ledger.postpone(&later)?;
        Ok(acknowledged)
    }

    /// The checked card of an entry; nothing if the policy no longer allows it.
    fn accepted(&self, due: &Due) -> Result<Option<Arc<Accepted>>> {
        let card = self.ledger.card(&due.query)?;
        Ok(card.and_then(|signed| self.checker.check_card(&signed).ok()))
    }

    /// The stored report, or a new one.
    async fn prepare(
        &self,
        owners: &BTreeMap<String, Attributes>,
        due: &Due,
        accepted: &Accepted,
    ) -> Result<(StoredReport, bool)> {
        if let Some(report) = self.ledger.report(due)? {
            return Ok((report, false));
        }
        // An owner whose attributes are gone answers as one that has none.
        let unknown = Attributes::default();
        let attributes = owners.get(&due.owner).unwrap_or(&unknown);
        let writer = self.writer(due, accepted)?;
        writer.fetch_keys().await?;
        let measurement = Tosser::new(accepted)?.toss(accepted, attributes)?;
        let sealed = writer.seal(&measurement, accepted.window.0).await?;
        let bytes = sealed.as_bytes().to_vec();
        Ok((StoredReport { measurement: report::to_bytes(&measurement), bytes }, true))
    }

    /// Sends a report once; seals it again under the same id if a key is outdated.
    async fn send(&self, due: &Due, accepted: &Accepted, stored: StoredReport) -> Result<()> {
        let writer = self.writer(due, accepted)?;
        let sealed = SealedReport::from_bytes(stored.bytes)?;
        match writer.send_as(&sealed, self.credential(&due.owner, accepted, &sealed).as_ref()).await {
            Err(error) if error.is_outdated_key() => {
                let Some(measurement) = report::from_bytes(accepted, &stored.measurement) else {
                    return Err(error.into());
                };
                let again = writer.reseal(&measurement, &sealed).await?;
                let bytes = again.as_bytes().to_vec();
                self.ledger.store(&[(due.clone(), StoredReport { measurement: stored.measurement, bytes })])?;
                Ok(writer.send_as(&again, self.credential(&due.owner, accepted, &again).as_ref()).await?)
            }
            outcome => Ok(outcome?),
        }
    }

    /// What an enrolled owner shows with a report; nothing where the card does not ask for it.
    fn credential(&self, owner: &str, accepted: &Accepted, report: &SealedReport) -> Option<Credential> {
        if accepted.opened.card.enrolment != Some(Enrolment::Required) {
            return None;
        }
        Some(self.config.credentials.get(owner)?.credential(&accepted.opened.id, report))
    }

    /// The client of a task; it keeps the aggregators' keys.
    fn writer(&self, due: &Due, accepted: &Accepted) -> Result<Arc<Writer>> {
        debug_assert_eq!(due.query, accepted.opened.id.to_string());
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writers.get(&accepted.opened.id) {
            return Ok(Arc::clone(writer));
        }
        let writer = Arc::new(Writer::with_root(accepted.parameters.clone(), self.config.root.as_deref())?);
        writers.insert(accepted.opened.id, Arc::clone(&writer));
        Ok(writer)
    }
}

/// The moment of an upload, drawn before any truth is looked at: any second of the window that leaves time to retry.
fn moment(now: u64, closes: u64, within: Option<u64>) -> u64 {
    let remaining = closes.saturating_sub(now);
    let spread = remaining - remaining.div_ceil(10).min(remaining);
    now + OsRng.gen_range(0..=within.unwrap_or(spread).min(spread))
}

fn retry_at(now: u64) -> u64 {
    now + OsRng.gen_range(PATIENCE)
}

fn refused(owner: &str, query: &str, refusal: &Refusal) -> Outcome {
    let reason = Some(refusal.to_string());
    Outcome { owner: owner.to_owned(), query: query.to_owned(), status: Status::Refused, reason }
}

fn outcome(owner: &str, query: &str, state: State) -> Outcome {
    let (status, reason) = told(state);
    Outcome { owner: owner.to_owned(), query: query.to_owned(), status, reason }
}

fn told(state: State) -> (Status, Option<String>) {
    match state {
        State::Due => (Status::Waiting, None),
        State::Sent => (Status::Answered, None),
        State::Lost => (Status::Failed, Some("the leader refused the report; the budget stays spent".to_owned())),
        State::Expired => {
            (Status::Failed, Some("the query closed before the report arrived; the budget stays spent".to_owned()))
        }
    }
}
