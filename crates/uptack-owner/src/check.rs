//! A card against the owner's policy: every claim is recomputed before any coin is tossed.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};
use uptack::{
    card::{Card, CardSeries, Enrolment, Operators, Timestamp},
    privacy::{self, WorkLimit, composition::Charge},
};
use uptack_dap::{
    card_task::{self, CardNames},
    http_client,
    protocol::TaskId,
    signed::{OpenedCard, SignedCard},
    task::TaskParameters,
};
use url::Url;

use crate::{
    policy::{Desk, Limit, Origin, Policy},
    predicate::Predicate,
};

/// The most questions on one ballot: a device has to evaluate them all.
pub const MOST_QUESTIONS: usize = 4096;
/// Work for recomputing a card's claims: some seconds on a small device.
pub const WORK: u64 = 200_000_000;
/// Beyond so many owners only mechanisms of one answer and three classes are verified.
const LARGE_CROWD: u64 = 1_000_000;
/// Queries that a lifetime is read for: the charge stays sharp as long as so many are composed.
pub const LIFETIME_QUERIES: u64 = 1000;
/// The charge is sharp down to this share of the lifetime's δ, which so many queries divide among themselves.
pub const SHARE_OF_DELTA: f64 = 1e-2;

/// Why a card is refused; nothing was tossed or spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A card that the policy allows, with its price.
#[derive(Debug)]
pub struct Accepted {
    /// The card, under its name.
    pub opened: OpenedCard,
    /// The task that it defines.
    pub parameters: TaskParameters,
    /// When it opens and closes.
    pub window: (u64, u64),
    /// Whom it asks for what.
    pub asked: Asked,
    /// How many of them may be answered with a true yes.
    pub most_yes: usize,
    /// Its names: what it is called, what is charged for it, and which answer of that charge it asks for.
    pub names: CardNames,
    /// What it costs.
    pub price: Price,
}

/// Whom a card asks for the truth.
pub enum Asked {
    /// The device, which evaluates these, in the order of the report.
    Device(Vec<Predicate>),
    /// The person, one question in words.
    Person(String),
}

impl Asked {
    /// How many questions there are.
    pub fn questions(&self) -> usize {
        match self {
            Self::Device(predicates) => predicates.len(),
            Self::Person(_) => 1,
        }
    }
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Asked({} questions)", self.questions())
    }
}

/// What a card costs, per view; nothing where the owner keeps no budget for the view.
#[derive(Debug, Clone)]
pub struct Price {
    /// Of all answers.
    pub linked: Option<Charge>,
    /// Of everything published, if one aggregator is honest and nobody else.
    pub one_aggregator: Option<Charge>,
    /// Of everything published.
    pub release: Option<Charge>,
}

/// Checks cards and remembers what it found, by the hash of the card. Clones share what they found.
#[derive(Clone)]
pub struct Checker {
    policy: Policy,
    desk: Option<Url>,
    work: u64,
    known: Arc<Mutex<Decisions>>,
    prices: Arc<Mutex<Prices>>,
}

/// What was decided about each card.
type Decisions = HashMap<TaskId, Result<Arc<Accepted>, Refusal>>;

/// What was found by the work of verification.
type Prices = HashMap<Basis, Result<Price, Refusal>>;

/// All that a price follows from.
#[derive(PartialEq, Eq, Hash)]
struct Basis {
    card: String,
    has_linked_budget: bool,
    has_one_aggregator_budget: bool,
    has_release_budget: bool,
    delta_bits: u64,
    work: u64,
}

impl Checker {
    /// A checker for a policy.
    pub fn new(policy: Policy) -> Self {
        Self::with_work(policy, WORK)
    }

    /// A checker that gives up, and refuses, after so many steps.
    pub fn with_work(policy: Policy, work: u64) -> Self {
        Self { policy, desk: None, work, known: Arc::default(), prices: Arc::default() }
    }

    /// A checker for the cards of one desk.
    pub fn at(self, desk: &Url) -> Self {
        Self { desk: Some(desk.clone()), ..self }
    }

    /// Shares with another checker, whatever its policy, the claims that either of them has verified.
    pub fn sharing(self, other: &Self) -> Self {
        Self { prices: Arc::clone(&other.prices), ..self }
    }

    /// What the policy says of the desk; nothing if it names no desks, a refusal if it names only others.
    fn desk(&self) -> Result<Option<&Desk>, Refusal> {
        let (Some(named), Some(url)) = (&self.policy.desks, &self.desk) else { return Ok(None) };
        let found = named.iter().find(|desk| desk.address.is_of(url));
        found.map(Some).ok_or_else(|| Refusal(format!("the policy's `desks` do not name `{url}`")))
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether the card may be answered now.
    pub fn check(&self, signed: &SignedCard, now: u64) -> Result<Arc<Accepted>, Refusal> {
        let accepted = self.check_card(signed)?;
        if let Some(desk) = self.desk()?
            && !desk.signers.contains(&accepted.opened.signer)
        {
            let (desk, signer) = (&desk.address, accepted.opened.signer);
            return Err(Refusal(format!("the card is signed by {signer}, whom the policy does not name for {desk}")));
        }
        let (opens, closes) = accepted.window;
        if now < opens {
            return Err(Refusal("the query has not opened yet".to_owned()));
        }
        if now >= closes {
            return Err(Refusal("the query has closed".to_owned()));
        }
        Ok(accepted)
    }

    /// Whether the card may be answered while it is open.
    pub fn check_card(&self, signed: &SignedCard) -> Result<Arc<Accepted>, Refusal> {
        // Name and signature first: what is remembered is remembered of a card, not of what somebody calls it.
        let opened = signed.open().map_err(refusal)?;
        if !self.policy.knows(&opened.signer) {
            return Err(Refusal(format!("the card is signed by {}, whom the policy does not name", opened.signer)));
        }
        let id = opened.id;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = known().get(&id) {
            return verdict.clone();
        }
        let verdict = self.judge(opened).map(Arc::new);
        known().insert(id, verdict.clone());
        verdict
    }

    fn judge(&self, opened: OpenedCard) -> Result<Accepted, Refusal> {
        let card = &opened.card;
        let parameters = card_task::parameters(card).map_err(refusal)?;
        let window = card.window().map_err(refusal)?;
        let asked = self.asked(card)?;
        let most_yes = match &card.ballot {
            Some(ballot) => ballot.most_yes.min(asked.questions() as u64) as usize,
            None => 1,
        };
        let names = card_task::names(card).map_err(refusal)?;
        self.trust(card, &parameters)?;
        self.limits(card)?;
        let price = self.verified_price(card)?;
        Ok(Accepted { parameters, window, asked, most_yes, names, price, opened })
    }

    /// Whom the card asks: the person where there is nothing to evaluate.
    fn asked(&self, card: &Card) -> Result<Asked, Refusal> {
        if !card.asks_person() {
            return self.predicates(card).map(Asked::Device);
        }
        match &card.question {
            Some(question) if !question.trim().is_empty() && card.attributes.is_empty() => {
                Ok(Asked::Person(question.clone()))
            }
            _ => Err(Refusal(
                "the card has neither a predicate nor, for a person, a question and nothing else".to_owned(),
            )),
        }
    }

    /// The predicates, if they read what the policy allows and the card says.
    fn predicates(&self, card: &Card) -> Result<Vec<Predicate>, Refusal> {
        let texts = card.predicates();
        if texts.is_empty() || texts.len() > MOST_QUESTIONS {
            return Err(Refusal(format!(
                "the card asks {} questions; 1 to {MOST_QUESTIONS} are answered",
                texts.len()
            )));
        }
        let predicates = texts.into_iter().map(Predicate::parse).collect::<Result<Vec<_>, _>>().map_err(refusal)?;
        let read: BTreeSet<&String> = predicates.iter().flat_map(Predicate::attributes).collect();
        if let Some(name) = read.iter().find(|name| !self.policy.attributes.contains(name)) {
            return Err(Refusal(format!("a predicate reads `{name}`, which the policy's `attributes` do not name")));
        }
        if read != card.attributes.iter().collect() {
            return Err(Refusal("the card's list of attributes is not what its predicates read".to_owned()));
        }
        Ok(predicates)
    }

    fn trust(&self, card: &Card, parameters: &TaskParameters) -> Result<(), Refusal> {
        if self.policy.card.separate_operators {
            check_separate(card, parameters)?;
        }
        if let Some(accepted) = &self.policy.aggregators {
            check_aggregators(accepted, parameters)?;
        }
        if self.policy.card.enrolment && card.enrolment != Some(Enrolment::Required) {
            return Err(Refusal("the card lets anybody answer; the policy's card.enrolment requires enrolled owners, so that nobody can \
                 invent any".to_owned()));
        }
        if card.honest.to_f64() > self.policy.card.honest.to_f64() {
            return Err(Refusal(format!(
                "the claims count on {} of the owners being honest; the policy's card.honest allows at most {}",
                card.honest.to_f64(),
                self.policy.card.honest.to_f64()
            )));
        }
        Ok(())
    }

    /// The card's claims against the policy; whether they are true is checked after this, which is cheaper.
    fn limits(&self, card: &Card) -> Result<(), Refusal> {
        let (claims, limits) = (&card.claims, &self.policy.card);
        let delta = claims.delta.value().value();
        if delta > limits.delta {
            let most = limits.delta;
            return Err(Refusal(format!("the claims are at a delta of {delta}; the policy's card.delta is {most}")));
        }
        let joint = claims.worst_answer_with_release();
        for (view, field, limit, epsilon) in [
            ("one answer alone", "answer", limits.answer, claims.worst_answer()),
            ("all answers", "linked", limits.linked, claims.whole_linked()),
            ("the release", "release", limits.release, claims.whole_release()),
            ("an answer with the release", "answer-with-release", limits.answer_with_release, joint),
        ] {
            if !limit.allows(epsilon) {
                let claimed = epsilon.map_or("no guarantee".to_owned(), |epsilon| format!("an epsilon of {epsilon}"));
                return Err(Refusal(format!(
                    "the card gives {view} {claimed}; the policy's card.{field} allows {limit}"
                )));
            }
        }
        self.one_aggregator_limit(card)
    }

    /// What one honest aggregator hides by itself, against the policy.
    fn one_aggregator_limit(&self, card: &Card) -> Result<(), Refusal> {
        let limit = self.policy.card.one_aggregator.unwrap_or(Limit::Unlimited);
        let epsilon = card.claims.whole_one_aggregator();
        if limit.allows(epsilon) {
            return Ok(());
        }
        let claimed = epsilon.map_or("no guarantee".to_owned(), |epsilon| format!("an epsilon of {epsilon}"));
        Err(Refusal(match card.claims.one_aggregator {
            Some(_) => format!(
                "the card gives the release {claimed} if one aggregator is honest and nobody else; the policy's \
                 card.one-aggregator allows {limit}"
            ),
            None => format!(
                "the card has no claims.one_aggregator: its aggregators add no noise, and one honest aggregator by \
                 itself gives {claimed}; the policy's card.one-aggregator allows {limit}, unless card.trust is `owners`"
            ),
        }))
    }

    /// The price, if the claims are true.
    ///
    /// Only the part of the card that claims follow from is looked at, so that cards that differ in nothing else, such
    /// as those of one series, are verified once.
    fn verified_price(&self, card: &Card) -> Result<Price, Refusal> {
        let card = part_of_claims(card);
        let lifetime = &self.policy.lifetime;
        let basis = Basis {
            card: card.canonical(),
            has_linked_budget: lifetime.linked != Limit::Unlimited,
            has_one_aggregator_budget: lifetime.has_one_aggregator_budget(),
            has_release_budget: lifetime.release != Limit::Unlimited,
            delta_bits: lifetime.delta.to_bits(),
            work: self.work,
        };
        let known = || self.prices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&basis) {
            return found.clone();
        }
        let found = affordable(&card)
            .and_then(|()| card.verify(WorkLimit::steps(self.work)).map_err(refusal))
            .and_then(|_| self.price(&card));
        known().insert(basis, found.clone());
        found
    }

    fn price(&self, card: &Card) -> Result<Price, Refusal> {
        let queries = card.counted_queries().map_err(refusal)?;
        let linked = match self.policy.lifetime.linked {
            Limit::Unlimited => None,
            Limit::AtMost(_) => Some(linked_charge(card, queries)?),
        };
        let release = match self.policy.lifetime.release {
            Limit::Unlimited => None,
            Limit::AtMost(_) => Some(self.release_charge(card, queries).map_err(refusal)?),
        };
        let one_aggregator = match self.policy.lifetime.has_one_aggregator_budget() {
            true => Some(one_aggregator_charge(card)?),
            false => None,
        };
        Ok(Price { linked, one_aggregator, release })
    }

    fn release_charge(&self, card: &Card, queries: u64) -> Result<Charge, uptack::Error> {
        let channel = card.checked_channel()?;
        let accountant = privacy::release(&channel, card.claim_owners()?)?.with_limit(WorkLimit::steps(self.work));
        let smallest = (self.policy.lifetime.delta * SHARE_OF_DELTA).max(1e-30);
        let loss = privacy::release_loss(&accountant, LIFETIME_QUERIES.max(queries), smallest)?;
        Charge::dominated_by(loss).repeated(queries)
    }
}

/// What all answers to a card cost.
fn linked_charge(card: &Card, queries: u64) -> Result<Charge, Refusal> {
    if card.claims.whole_linked().is_none() {
        return Err(Refusal("the card has no guarantee that could be charged to the lifetime budget".to_owned()));
    }
    let channel = card.checked_channel().map_err(refusal)?;
    let one = privacy::linked_epsilon(&channel).ok_or_else(|| Refusal("no linked guarantee".to_owned()))?;
    Charge::pure(one).and_then(|charge| charge.repeated(queries)).map_err(refusal)
}

/// What a card's releases cost if one aggregator is honest and nobody else, from the card's integers.
///
/// Without noise, whoever knows everybody else's answers learns the owner's: the cost is that of the answers themselves.
pub(crate) fn one_aggregator_charge(card: &Card) -> Result<Charge, Refusal> {
    let channel = card.checked_channel().map_err(refusal)?;
    let noisy = privacy::one_aggregator(&channel).map(|epsilon| epsilon.upper());
    let one = noisy
        .or_else(|| privacy::linked_epsilon(&channel))
        .ok_or_else(|| Refusal("the card has no guarantee that one honest aggregator alone could keep".to_owned()))?;
    let queries = card.counted_queries().map_err(refusal)?;
    Charge::pure(one).and_then(|charge| charge.repeated(queries)).map_err(refusal)
}

/// A card without what its claims and its price do not depend on.
fn part_of_claims(card: &Card) -> Card {
    let series = card.series.as_ref().map(|series| CardSeries {
        times: series.times,
        number: None,
        starts: Timestamp::EPOCH,
        every: 0,
    });
    Card {
        question: None,
        attributes: Vec::new(),
        series,
        opens: None,
        closes: None,
        operators: None,
        enrolment: None,
        signer: None,
        aggregators: None,
        // Beside a ballot a predicate is refused, so that it has to stay there.
        predicate: card.predicate.clone().filter(|_| card.ballot.is_some()),
        ..card.clone()
    }
}

/// Refuses claims whose first sound answer alone is beyond the work of a device: many classes in a large crowd.
fn affordable(card: &Card) -> Result<(), Refusal> {
    let channel = card.checked_channel().map_err(refusal)?;
    let owners = card.claim_owners().map_err(refusal)?;
    if owners > LARGE_CROWD && (channel.answers().len() > 1 || channel.classes().len() > 3) {
        return Err(Refusal(format!("the claims for {owners} owners cannot be verified within the work allowed")));
    }
    Ok(())
}

/// Refuses aggregators that the policy does not name.
fn check_aggregators(accepted: &[Origin], parameters: &TaskParameters) -> Result<(), Refusal> {
    for (name, url) in [("leader", &parameters.leader), ("helper", &parameters.helper)] {
        if !accepted.iter().any(|origin| origin.is_of(url)) {
            return Err(Refusal(format!(
                "aggregators.{name} is `{url}`, which the policy does not name in its `aggregators`"
            )));
        }
    }
    Ok(())
}

/// Refuses aggregators that do not have two separate operators, as far as that can be seen.
fn check_separate(card: &Card, parameters: &TaskParameters) -> Result<(), Refusal> {
    if card.operators != Some(Operators::Two) {
        return Err(Refusal("`operators` is not `two`; the policy's card.separate-operators requires two".to_owned()));
    }
    if http_client::is_same_host(&parameters.leader, &parameters.helper) {
        return Err(Refusal(format!(
            "aggregators.leader and aggregators.helper are both at `{}`; the policy's \
             card.separate-operators requires two separate operators, whose addresses differ in more than the port",
            parameters.leader.host_str().unwrap_or_default()
        )));
    }
    Ok(())
}

fn refusal(error: impl std::fmt::Display) -> Refusal {
    Refusal(error.to_string())
}
