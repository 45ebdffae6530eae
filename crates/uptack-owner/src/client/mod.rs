//! One owner or a whole fleet answering the queries of a desk.

mod asking;
mod considering;
mod making;
mod sending;
mod weighing;

pub use considering::{Outcome, Status};

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use uptack::Truth;
use uptack_dap::{
    client::Client as Writer,
    clock::Clock,
    credential::OwnerSecret,
    http_client,
    listing::{self, ListingBounds},
    protocol::TaskId,
    signed::SignedCard,
};
use url::Url;

use crate::{
    attributes::{Attributes, Named},
    check::{Accepted, Allowed, Checker, Refusal},
    error::{Error, Result},
    ledger::{Due, Ledger, State},
    schedule::FIXED_DELAY,
};

/// How many reports are made and stored, or sent, together.
const GROUP: usize = 256;
/// How often a desk that asks for patience is asked, and the longest pause before it is asked again.
const ATTEMPTS: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How a client answers. [`Config::new`] gives defaults for everything but the desk.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the desk is.
    pub desk: Url,
    /// An additional root certificate for TLS, in a PEM file.
    pub root: Option<PathBuf>,
    /// Reports are sent within this many seconds after the fixed delay; by default at any time in the query's window.
    pub within: Option<u64>,
    /// Answers only this query; by default all that are open.
    pub query: Option<String>,
    /// Answers only questions for people, and refuses those for devices: for a person about whom nothing is known.
    pub people_only: bool,
    /// How many cards' claims one visit recomputes at most. The others are considered at the next visit, before newer ones.
    pub most_weighed: usize,
    /// The secret of each enrolled owner. It signs reports for cards that require enrolment, and no others.
    pub credentials: HashMap<String, OwnerSecret>,
    /// Looks at the attributes of all owners before a card is answered; by default nobody does.
    pub screen: Screen,
    /// The time of day.
    pub clock: Clock,
    /// For tests: is called for everything that happens, in order.
    #[doc(hidden)]
    pub observer: Observer,
}

impl Config {
    /// A client of a desk.
    pub fn new(desk: Url) -> Self {
        Self {
            desk,
            root: None,
            within: None,
            query: None,
            people_only: false,
            most_weighed: weighing::MOST_WEIGHED,
            credentials: HashMap::new(),
            screen: Screen::default(),
            clock: Clock::system(),
            observer: Observer::default(),
        }
    }
}

/// What a client does next with the entries of its ledger.
enum NextStep {
    Prepare,
    Send,
    WaitFor(u64),
    Finish,
}

/// Answers queries for the owners whose attributes it is given.
///
/// A card goes through three steps, kept strictly apart: [`Client::consider`] decides and draws the moment of sending
/// without any attribute, [`Client::prepare`] looks at the truth and sends nothing, and [`Client::send_due`] sends stored
/// bytes at their moment and has no attribute to look at.
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
        http_client::check_address(&config.desk).map_err(|error| Error::Input(format!("desk: {error}")))?;
        let http = http_client::client(config.root.as_deref())?;
        let checker = checker.at(&config.desk);
        Ok(Self { config, checker, ledger, http, writers: Mutex::new(HashMap::new()) })
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The desk's open queries. The requests depend on the desk's list and on the cards that are known from an earlier visit,
    /// and on no attribute.
    pub async fn fetch(&self) -> Result<Vec<SignedCard>> {
        let known = |query: &str| self.ledger.card(query).ok().flatten();
        Ok(listing::fetch(&self.http, &self.config.desk, ListingBounds::DEFAULT, known).await?.cards)
    }

    /// One visit: fetches, decides, makes reports, waits for each one's moment, sends, and says what became of every card.
    ///
    /// Cards are decided in batches. The reports of one are made, and sent at their moments, while the claims of the next are
    /// recomputed.
    ///
    /// `progress` is called with the number of reports acknowledged so far and the number to be sent in all.
    pub async fn visit(&self, owners: &[Named], progress: impl Fn(usize, usize)) -> Result<Vec<Outcome>> {
        self.visit_asking(owners, |questions| Ok(vec![None; questions.len()]), progress).await
    }

    /// Like [`visit`](Self::visit), with a person there to be asked: `ask` is given the questions for people that may be answered,
    /// and returns the person's answer to each, or `None`.
    pub async fn visit_asking(
        &self,
        owners: &[Named],
        ask: impl FnOnce(&[Arc<Accepted>]) -> Result<Vec<Option<Truth>>>,
        progress: impl Fn(usize, usize),
    ) -> Result<Vec<Outcome>> {
        let mut attributes: BTreeMap<String, Attributes> = owners.iter().cloned().collect();
        self.finish_earlier(&attributes).await?;
        self.forget_keys();
        let cards = self.fetch_patiently().await?;
        let mut agenda = self.agenda(&attributes, &cards)?;
        let mut sent = self.weigh_for_people(&mut agenda).await?;
        self.ask_people(&mut attributes, &cards, ask).await?;
        let mut outcomes = Vec::new();
        loop {
            let (batch, meanwhile) = self.next_batch(&mut agenda).await?;
            sent += meanwhile;
            if batch.is_empty() {
                break;
            }
            sent += self.make_room(&batch, attributes.len()).await?;
            outcomes.extend(self.consider_said(&attributes, &batch)?);
            self.prepare(&attributes).await?;
        }
        let total = outcomes.iter().filter(|outcome| outcome.is_waiting()).count();
        outcomes.extend(self.postponed(&agenda, &attributes));
        self.finish(&attributes, None, |more| progress((sent + more).min(total), total)).await?;
        self.update(&mut outcomes)?;
        Ok(outcomes)
    }

    /// Makes the reports of all entries, waits for each one's moment and sends it.
    pub async fn answer(&self, owners: &BTreeMap<String, Attributes>) -> Result<()> {
        self.prepare(owners).await?;
        self.finish(owners, None, |_| {}).await
    }

    /// Brings outcomes up to date with the ledger.
    pub fn update(&self, outcomes: &mut [Outcome]) -> Result<()> {
        let entries = self.ledger.entries()?;
        let states: HashMap<(&str, &str), State> =
            entries.iter().map(|entry| ((entry.owner.as_str(), entry.query.as_str()), entry.state)).collect();
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_waiting()) {
            if let Some(state) = states.get(&(outcome.owner.as_str(), outcome.query.as_str())) {
                outcome.update(*state);
            }
        }
        Ok(())
    }

    /// Fetches the open queries, and tries again if the desk asks to be asked later.
    async fn fetch_patiently(&self) -> Result<Vec<SignedCard>> {
        for _ in 1..ATTEMPTS {
            match self.fetch().await {
                Err(Error::Network(error)) if error.retry_after().is_some() => {
                    tokio::time::sleep(error.retry_after().unwrap_or_default().min(LONGEST_PAUSE)).await;
                }
                fetched => return fetched,
            }
        }
        self.fetch().await
    }

    /// Sends what an earlier run left and is due soon, so that nothing evaluated in this run delays it.
    async fn finish_earlier(&self, owners: &BTreeMap<String, Attributes>) -> Result<()> {
        self.ledger.expire(self.now())?;
        self.finish(owners, Some(self.now() + FIXED_DELAY), |_| {}).await
    }

    /// Sends reports until none is left, or none that is due by `until`.
    ///
    /// Reports whose keys could not be fetched, or that have to be sealed again, are made in pauses: evaluation ends before
    /// the next moment of sending, and so delays nothing.
    async fn finish(
        &self,
        owners: &BTreeMap<String, Attributes>,
        until: Option<u64>,
        progress: impl Fn(usize),
    ) -> Result<()> {
        let mut sent = 0;
        progress(sent);
        loop {
            let now = self.now();
            self.ledger.expire(now)?;
            match self.next_step(now, until)? {
                NextStep::Prepare => self.prepare(owners).await.map(drop)?,
                NextStep::Send => sent += self.send_due().await?,
                NextStep::WaitFor(moment) => self.wait_for(moment).await,
                NextStep::Finish => return Ok(()),
            }
            progress(sent);
        }
    }

    /// What to do now for the reports that are due by `until`.
    fn next_step(&self, now: u64, until: Option<u64>) -> Result<NextStep> {
        let ready = self.ledger.next_due()?.filter(|moment| until.is_none_or(|until| *moment <= until));
        let is_pause = ready.is_none_or(|moment| moment > now + FIXED_DELAY);
        // This looks at every entry, so it is done only when there is time to act on what it finds.
        let unprepared = if is_pause && until.is_none() { self.ledger.next_unprepared()? } else { None };
        Ok(match (ready, unprepared) {
            (_, Some(moment)) if moment <= now => NextStep::Prepare,
            (Some(moment), _) if moment <= now => NextStep::Send,
            (None, None) => NextStep::Finish,
            (ready, unprepared) => {
                let next = ready.into_iter().chain(unprepared).filter(|moment| *moment > now).min();
                NextStep::WaitFor(next.unwrap_or(now + 1))
            }
        })
    }

    /// The time of day, in seconds since the epoch.
    fn now(&self) -> u64 {
        self.config.clock.now()
    }

    /// Waits until the very beginning of a second, so that the time of sending does not depend on when the wait began. It waits
    /// for half a second at most, because the clock may be set and queries may close in the meantime.
    async fn wait_for(&self, moment: u64) {
        tokio::time::sleep(self.config.clock.until(moment).min(Duration::from_millis(500))).await;
    }

    /// The cards of entries, without those that the policy no longer allows. Their claims were recomputed before they were charged.
    fn cards(&self, entries: &[Due]) -> Result<HashMap<String, Arc<Allowed>>> {
        let queries: BTreeSet<&String> = entries.iter().map(|due| &due.query).collect();
        let mut cards = HashMap::new();
        for query in queries {
            let signed = self.ledger.card(query)?;
            let allowed = signed.and_then(|signed| self.checker.allow_card(&signed).ok());
            cards.extend(allowed.map(|allowed| (query.clone(), allowed)));
        }
        Ok(cards)
    }

    /// The client that writes to a task's aggregators, and keeps their keys.
    fn writer(&self, accepted: &Allowed) -> Result<Arc<Writer>> {
        let mut writers = self.lock_writers();
        if let Some(writer) = writers.get(&accepted.opened.id) {
            return Ok(Arc::clone(writer));
        }
        let writer = Arc::new(Writer::with_root(accepted.parameters.clone(), self.config.root.as_deref())?);
        writers.insert(accepted.opened.id, Arc::clone(&writer));
        Ok(writer)
    }

    /// Makes sure that every task's keys are fetched again before its next report is made.
    fn forget_keys(&self) {
        self.lock_writers().clear();
    }

    fn lock_writers(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<Writer>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses cards for all owners of a fleet, with a reason, because of their attributes.
///
/// This is for whoever simulates owners, and would rather not count what is zero by mistake. On a device it would tell
/// others something about its attributes whether a report is sent.
#[derive(Clone, Default)]
pub struct Screen(Option<Arc<ScreenCard>>);

/// Returns why no owner should answer a card, if that is so.
type ScreenCard = dyn Fn(&Allowed, &[&Attributes]) -> Option<String> + Send + Sync;

impl Screen {
    /// Asks a function about every card that would be answered for the first time.
    pub fn new(refuse: impl Fn(&Allowed, &[&Attributes]) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(refuse)))
    }

    fn refusal(&self, accepted: &Allowed, owners: &BTreeMap<String, Attributes>) -> Option<Refusal> {
        let refuse = self.0.as_ref()?;
        refuse(accepted, &owners.values().collect::<Vec<_>>()).map(Refusal)
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Screen(…)")
    }
}

/// One thing that a client did, for tests of the order in which things happen. None of them depends on a truth.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEvent {
    /// The claims of a card were recomputed.
    Weighed,
    /// The moment of a report was drawn.
    Drawn,
    /// Both aggregators' keys are there.
    KeysFetched,
    /// A predicate is evaluated.
    Evaluated,
    /// A coin is tossed.
    Tossed,
    /// A report is sealed.
    Sealed,
    /// A report is sent.
    Sent,
}

/// Hears of every [`ClientEvent`]; by default nobody does.
#[doc(hidden)]
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn Fn(ClientEvent) + Send + Sync>>);

impl Observer {
    /// Calls a function for every event.
    pub fn new(hear: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// Tells of an event.
    pub fn on(&self, event: ClientEvent) {
        if let Some(hear) = &self.0 {
            hear(event);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Observer(…)")
    }
}
