//! One owner or a whole fleet answering the queries of a desk.

mod asking;
mod config;
mod outcome;

pub use config::Config;
pub use outcome::{Outcome, Status};

use futures_util::{StreamExt, stream};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use uptack::card::Enrolment;
use uptack_dap::{
    client::{Client as Writer, SealedReport},
    credential::Credential,
    http_client,
    protocol::{Measurement, TaskId},
    signed::SignedCard,
};

use crate::{
    attributes::{Attributes, Named},
    check::{Accepted, Checker, Refusal},
    error::{Error, Result},
    ledger::{Acceptance, Due, Ledger, State, StoredReport},
    listing,
    observer::Event,
    report::{self, Tosser},
    schedule::{self, FIXED_DELAY},
};

/// Reports made and stored, or sent, together.
const GROUP: usize = 256;
/// Entries that are found at once, and held in memory.
const MOST_FOUND: usize = 100_000;
/// Uploads at once.
const AT_ONCE: usize = 32;
/// How often a desk that asks for patience is asked again, and how long each time at most.
const ATTEMPTS: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What a visit has to do for a card.
#[derive(Clone, Copy)]
struct Work {
    /// Seconds until its reports are made, those of the cards before it included.
    to_make: u64,
    /// How many reports it takes.
    reports: usize,
}

/// The entries of a group that are done with, and those that are tried again at some moment.
#[derive(Default)]
struct Settled {
    ended: Vec<(Due, State)>,
    later: Vec<(Due, u64)>,
}

impl Settled {
    /// Adds an entry that failed: it is tried again if somebody was away, and lost if somebody refused. An error that is not the
    /// network's is handed back.
    fn add_failed(&mut self, due: Due, error: Error, now: u64) -> Result<()> {
        match error {
            Error::Network(error) if error.is_unreachable() => {
                self.later.push((due, schedule::retry_at(now, &error)));
            }
            Error::Network(_) => self.ended.push((due, State::Lost)),
            error => return Err(error),
        }
        Ok(())
    }
}

/// Answers queries for the owners whose attributes it is given.
///
/// A card goes through three steps, and what one of them does no other one can: [`Client::consider`] decides and draws
/// the moment of sending without any attribute, [`Client::prepare`] looks at the truth and sends nothing, and
/// [`Client::send_due`] sends stored bytes at their moment and has no attribute to look at.
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

    /// The desk's open queries. The requests are the same for every owner.
    pub async fn fetch(&self) -> Result<Vec<SignedCard>> {
        listing::fetch(&self.http, &self.config.desk, |query| self.ledger.card(query).ok().flatten()).await
    }

    /// Decides about every card for every owner, draws the moments of their reports and charges those who accept.
    ///
    /// Only names are taken: no attribute has a part in the decision.
    pub fn consider(&self, owners: &[&str], cards: &[SignedCard]) -> Result<Vec<Outcome>> {
        self.consider_each(cards.iter().map(|signed| (signed, owners.to_vec())))
    }

    /// The same for cards that not all owners answer.
    fn consider_each<'a>(
        &self,
        cards: impl IntoIterator<Item = (&'a SignedCard, Vec<&'a str>)>,
    ) -> Result<Vec<Outcome>> {
        let now = self.config.clock.now();
        self.ledger.expire(now)?;
        let mut outcomes = Vec::new();
        let mut to_make = 0;
        for (signed, owners) in cards {
            let reports = owners.len().saturating_sub(self.ledger.entries_of(&signed.query)?);
            let mut in_time = true;
            let decided = self.checker.check(signed, now).and_then(|accepted| {
                let time = to_make + schedule::time_to_make(reports, accepted.asked.questions());
                let moments = self.moments(&owners, &accepted, Work { to_make: time, reports }, now);
                in_time = moments.is_ok();
                let moments = moments?;
                to_make = time;
                Ok((accepted, moments))
            });
            match decided {
                Ok((accepted, moments)) => outcomes.extend(self.charge(signed, &accepted, &moments, now)?),
                Err(refusal) => {
                    tracing::info!(query = signed.query, reason = %refusal, "refused");
                    for owner in owners {
                        // What was answered before stays answered, however little time is left now.
                        let state = if in_time { None } else { self.ledger.state(owner, &signed.query)? };
                        outcomes.push(match state {
                            Some(state) => Outcome::known(owner, &signed.query, state),
                            None => Outcome::refused(owner, &signed.query, &refusal),
                        });
                    }
                }
            }
        }
        Ok(outcomes)
    }

    /// Makes and stores the report of every entry that has none: fetches both keys, then at once evaluates, tosses and
    /// seals. Says how many were made; nothing is sent.
    pub async fn prepare(&self, owners: &BTreeMap<String, Attributes>) -> Result<usize> {
        let mut made = 0;
        loop {
            let now = self.config.clock.now();
            // To find some takes as long as to find all, and is done once for many groups.
            let entries = self.ledger.unprepared(now, MOST_FOUND)?;
            if entries.is_empty() {
                break;
            }
            for group in entries.chunks(GROUP) {
                made += self.prepare_group(owners, group.to_vec(), self.config.clock.now()).await?;
            }
        }
        if made > 0 {
            // A device that was slower than the delay allows for shows a multiple of it and not how slow it was.
            self.ledger.realign(self.config.clock.now(), FIXED_DELAY)?;
        }
        Ok(made)
    }

    /// Sends every stored report whose moment has come, and says how many were acknowledged.
    pub async fn send_due(&self) -> Result<usize> {
        let mut acknowledged = 0;
        loop {
            let now = self.config.clock.now();
            let due = self.ledger.due(now, GROUP)?;
            if due.is_empty() {
                return Ok(acknowledged);
            }
            acknowledged += self.send_group(due, now).await?;
        }
    }

    /// One visit: fetches, decides, makes reports, waits for each one's moment, sends, and tells what became of all.
    ///
    /// `progress` is told how many reports were acknowledged so far, and how many there will be.
    pub async fn visit(&self, owners: &[Named], progress: impl Fn(usize, usize)) -> Result<Vec<Outcome>> {
        self.visit_asking(owners, |questions| Ok(vec![None; questions.len()]), progress).await
    }

    /// The same with somebody there: `ask` is shown the questions for people that may be answered, and says what the person
    /// answers to each, or nothing.
    pub async fn visit_asking(
        &self,
        owners: &[Named],
        ask: impl FnOnce(&[Arc<Accepted>]) -> Result<Vec<Option<bool>>>,
        progress: impl Fn(usize, usize),
    ) -> Result<Vec<Outcome>> {
        let mut attributes: BTreeMap<String, Attributes> = owners.iter().cloned().collect();
        // What an earlier run left comes first, so that nothing that is evaluated now delays it.
        self.ledger.expire(self.config.clock.now())?;
        self.finish(&attributes, Some(self.config.clock.now() + FIXED_DELAY), |_| {}).await?;
        self.forget_keys();
        let cards = self.fetch_patiently().await?;
        self.ask_people(&mut attributes, &cards, ask).await?;
        let mut outcomes = self.consider_said(&attributes, &cards)?;
        let total = outcomes.iter().filter(|outcome| outcome.status == Status::Waiting).count();
        self.prepare(&attributes).await?;
        self.finish(&attributes, None, |sent| progress(sent, total)).await?;
        self.update(&mut outcomes)?;
        Ok(outcomes)
    }

    /// Makes the reports of all entries, waits for each one's moment and sends it.
    pub async fn answer(&self, owners: &BTreeMap<String, Attributes>) -> Result<()> {
        self.prepare(owners).await?;
        self.finish(owners, None, |_| {}).await
    }

    /// Brings outcomes up to what the ledger says now.
    pub fn update(&self, outcomes: &mut [Outcome]) -> Result<()> {
        let entries = self.ledger.entries()?;
        let states: HashMap<(&str, &str), State> =
            entries.iter().map(|entry| ((entry.owner.as_str(), entry.query.as_str()), entry.state)).collect();
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.status == Status::Waiting) {
            if let Some(state) = states.get(&(outcome.owner.as_str(), outcome.query.as_str())) {
                outcome.update(*state);
            }
        }
        Ok(())
    }

    /// Asks again if the desk wants to be asked later.
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

    /// Sends what lies ready until nothing is left, or nothing that is due before `until`.
    ///
    /// Reports whose keys were away, or that have to be sealed again, are made in pauses: evaluation ends before the
    /// next moment comes, and so delays nothing.
    async fn finish(
        &self,
        owners: &BTreeMap<String, Attributes>,
        until: Option<u64>,
        progress: impl Fn(usize),
    ) -> Result<()> {
        let mut sent = 0;
        progress(sent);
        loop {
            let now = self.config.clock.now();
            self.ledger.expire(now)?;
            let is_in_time = |moment: &u64| until.is_none_or(|until| *moment <= until);
            let ready = self.ledger.next_due()?.filter(is_in_time);
            let is_pause = ready.is_none_or(|moment| moment > now + FIXED_DELAY);
            // Looks at every entry, and so only where there is time to do something about it.
            let unprepared = if is_pause && until.is_none() { self.ledger.next_unprepared()? } else { None };
            match (ready, unprepared) {
                (_, Some(moment)) if moment <= now => self.prepare(owners).await.map(drop)?,
                (Some(moment), _) if moment <= now => sent += self.send_due().await?,
                (None, None) => return Ok(()),
                (ready, unprepared) => {
                    let next = ready.into_iter().chain(unprepared).filter(|moment| *moment > now).min();
                    self.wait_for(next.unwrap_or(now + 1)).await;
                }
            }
            progress(sent);
        }
    }

    /// Waits until the very beginning of a second, so that the time of sending does not depend on when the wait began;
    /// at most for a while, because clocks are set and queries close.
    async fn wait_for(&self, moment: u64) {
        tokio::time::sleep(self.config.clock.until(moment).min(Duration::from_millis(500))).await;
    }

    /// When each owner's report will be sent; a refusal if the window is over before that.
    fn moments<'a>(
        &self,
        owners: &[&'a str],
        accepted: &Accepted,
        work: Work,
        now: u64,
    ) -> std::result::Result<Vec<(&'a str, u64)>, Refusal> {
        let closes = accepted.window.1;
        // The last reports of many need their time, too.
        let last = closes.saturating_sub(schedule::time_to_send(work.reports));
        let draw = |owner: &&'a str| {
            self.config.observer.on(Event::Drawn);
            Some((*owner, schedule::moment(now, work.to_make, last, self.config.within)?))
        };
        owners.iter().map(draw).collect::<Option<_>>().ok_or_else(|| {
            let (left, earliest) = (closes.saturating_sub(now), FIXED_DELAY + work.to_make);
            let many = if work.reports > 1 { format!(" the {} reports", work.reports) } else { " a report".to_owned() };
            Refusal(format!(
                "the query closes in {left} seconds, too soon to make and send{many}: sending begins {earliest} seconds \
                 after acceptance, and needs time to be repeated"
            ))
        })
    }

    fn charge(
        &self,
        signed: &SignedCard,
        accepted: &Accepted,
        moments: &[(&str, u64)],
        now: u64,
    ) -> Result<Vec<Outcome>> {
        let lifetime = &self.checker.policy().lifetime;
        let decided = self.ledger.accept(signed, accepted, moments, lifetime, now)?;
        Ok(moments
            .iter()
            .zip(decided)
            .map(|((owner, _), acceptance)| match acceptance {
                Acceptance::Refused(reason) => Outcome::refused(owner, &signed.query, &Refusal(reason)),
                Acceptance::Charged => Outcome::of(owner, &signed.query, State::Due),
                Acceptance::Known(state) => Outcome::known(owner, &signed.query, state),
            })
            .collect())
    }

    async fn prepare_group(&self, owners: &BTreeMap<String, Attributes>, group: Vec<Due>, now: u64) -> Result<usize> {
        let (mut made, mut settled) = (Vec::new(), Settled::default());
        let cards = self.cards(&group)?;
        for due in group {
            // Nobody is made to say what they did not say.
            let accepted = cards.get(&due.query).filter(|card| asking::has_truth(card, owners.get(&due.owner)));
            let Some(accepted) = accepted else {
                settled.ended.push((due, State::Lost));
                continue;
            };
            match self.make(owners, &due, accepted).await {
                Ok(report) => made.push(report),
                // Without the aggregators' keys nothing can be made; nothing was tossed either.
                Err(error) => settled.add_failed(due, error, now)?,
            }
        }
        self.ledger.store(&made)?;
        self.ledger.settle(&settled.ended)?;
        self.ledger.postpone_preparing(&settled.later)?;
        Ok(made.len())
    }

    async fn send_group(&self, group: Vec<Due>, now: u64) -> Result<usize> {
        let cards = &self.cards(&group)?;
        let sent: Vec<(Due, Result<State>)> = stream::iter(group)
            .map(|due| async move {
                let outcome = match cards.get(&due.query) {
                    Some(accepted) => self.send(&due, accepted).await,
                    None => Ok(State::Lost),
                };
                (due, outcome)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let (mut settled, mut outdated) = (Settled::default(), Vec::new());
        for (due, outcome) in sent {
            match outcome {
                Ok(state) => settled.ended.push((due, state)),
                // Sealing again is put off like a first report, by a delay that nothing shortens.
                Err(Error::Network(error)) if error.is_outdated_key() => outdated.push((due, now + FIXED_DELAY)),
                Err(error) => settled.add_failed(due, error, now)?,
            }
        }
        if !outdated.is_empty() {
            self.forget_keys();
        }
        self.ledger.settle(&settled.ended)?;
        self.ledger.postpone(&settled.later)?;
        self.ledger.outdate(&outdated)?;
        Ok(settled.ended.iter().filter(|(_, state)| *state == State::Sent).count())
    }

    /// The checked cards of entries, without those that the policy no longer allows.
    fn cards(&self, entries: &[Due]) -> Result<HashMap<String, Arc<Accepted>>> {
        let queries: BTreeSet<&String> = entries.iter().map(|due| &due.query).collect();
        let mut cards = HashMap::new();
        for query in queries {
            let signed = self.ledger.card(query)?;
            let accepted = signed.and_then(|signed| self.checker.check_card(&signed).ok());
            cards.extend(accepted.map(|accepted| (query.clone(), accepted)));
        }
        Ok(cards)
    }

    /// Makes an entry's report, or seals it again under the same id with the cell that was tossed before.
    async fn make(
        &self,
        owners: &BTreeMap<String, Attributes>,
        due: &Due,
        accepted: &Accepted,
    ) -> Result<(Due, StoredReport)> {
        let writer = self.writer(accepted)?;
        writer.fetch_keys().await?;
        self.config.observer.on(Event::KeysFetched);
        let due = self.with_delay(due, accepted);
        let (measurement, sealed) = match self.ledger.report(&due)? {
            Some(before) => self.reseal(&writer, accepted, before).await?,
            None => {
                // An owner whose attributes are gone answers as one that has none.
                let unknown = Attributes::default();
                let attributes = owners.get(&due.owner).unwrap_or(&unknown);
                let measurement = Tosser::new(accepted)?.toss(accepted, attributes, &self.config.observer)?;
                self.config.observer.on(Event::Sealed);
                let sealed = writer.seal(&measurement, accepted.window.0).await?;
                (measurement, sealed)
            }
        };
        let credential = self.credential(&due.owner, accepted, &sealed).map(|shown| shown.as_str().to_owned());
        let bytes = sealed.as_bytes().to_vec();
        Ok((due, StoredReport { measurement: report::to_bytes(&measurement), bytes, credential }))
    }

    /// Seals what was tossed before, under the same id.
    async fn reseal(
        &self,
        writer: &Writer,
        accepted: &Accepted,
        before: StoredReport,
    ) -> Result<(Measurement, SealedReport)> {
        let measurement = report::from_bytes(accepted, &before.measurement)
            .ok_or_else(|| Error::Environment("ledger: a stored report does not decode".to_owned()))?;
        self.config.observer.on(Event::Sealed);
        let refused = SealedReport::from_bytes(before.bytes)?;
        let sealed = writer.reseal(&measurement, &refused).await?;
        Ok((measurement, sealed))
    }

    /// The entry with a moment that is late enough: drawn anew, before the truth is looked at, where making the report
    /// was put off for so long that the fixed delay no longer fits.
    fn with_delay(&self, due: &Due, accepted: &Accepted) -> Due {
        let now = self.config.clock.now();
        if due.upload >= now + FIXED_DELAY {
            return due.clone();
        }
        self.config.observer.on(Event::Drawn);
        let drawn = schedule::moment(now, 0, accepted.window.1, self.config.within);
        // Where the window has no room left, the report is too late rather than too soon.
        Due { upload: drawn.unwrap_or(now + FIXED_DELAY), ..due.clone() }
    }

    /// Sends stored bytes and does nothing else.
    async fn send(&self, due: &Due, accepted: &Accepted) -> Result<State> {
        let Some(stored) = self.ledger.report(due)? else { return Ok(State::Lost) };
        let writer = self.writer(accepted)?;
        let sealed = SealedReport::from_bytes(stored.bytes)?;
        let credential = stored.credential.map(Credential::from_text);
        self.config.observer.on(Event::Sent);
        writer.send_as(&sealed, credential.as_ref()).await?;
        Ok(State::Sent)
    }

    /// What an enrolled owner shows with a report; nothing where the card does not ask for it.
    fn credential(&self, owner: &str, accepted: &Accepted, report: &SealedReport) -> Option<Credential> {
        if accepted.opened.card.enrolment != Some(Enrolment::Required) {
            return None;
        }
        Some(self.config.credentials.get(owner)?.credential(&accepted.opened.id, report))
    }

    /// The client of a task; it keeps the aggregators' keys.
    fn writer(&self, accepted: &Accepted) -> Result<Arc<Writer>> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writers.get(&accepted.opened.id) {
            return Ok(Arc::clone(writer));
        }
        let writer = Arc::new(Writer::with_root(accepted.parameters.clone(), self.config.root.as_deref())?);
        writers.insert(accepted.opened.id, Arc::clone(&writer));
        Ok(writer)
    }

    /// Has the keys of every task fetched anew before the next report is made.
    fn forget_keys(&self) {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
