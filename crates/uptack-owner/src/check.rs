//! Checks cards against the owner's policy: every claim is recomputed before any coin is tossed.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use uptack::{
    card::{Card, CardQuestion, CardSeries, Enrolment, Operators, Timestamp},
    contribution::AnyMechanism,
    privacy::{self, WorkLimit, composition::Charge, contributions},
};
use uptack_dap::{
    card_task::{self, CardNames},
    http_client,
    protocol::TaskId,
    signed::{OpenedCard, PublicKey, SignedCard},
    task::TaskParameters,
};
use url::Url;

use crate::{
    policy::{BudgetView, Limit, Origin, Policy},
    predicate::Predicate,
};

/// The most questions on one ballot, and the most contributions of one owner: a device has to evaluate, toss and keep them all.
pub const MOST_QUESTIONS: usize = 4096;
/// How much work recomputing a card's claims may take: some seconds on a small device.
pub const WORK: u64 = 200_000_000;
/// For more owners than this, only mechanisms of one answer and at most three classes are verified.
const LARGE_CROWD: u64 = 1_000_000;
/// How many queries a lifetime is expected to hold: charges stay sharp as long as no more are composed.
pub const LIFETIME_QUERIES: u64 = 1000;
/// Charges are sharp down to this share of the lifetime's δ, which all those queries divide among themselves.
pub const SHARE_OF_DELTA: f64 = 1e-2;

/// Why a card is refused; nothing was tossed or spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A card that the policy allows, if what it claims is true. Its claims were not recomputed.
#[derive(Debug)]
pub struct Allowed {
    /// The card, under its name.
    pub opened: OpenedCard,
    /// The task that it defines.
    pub parameters: TaskParameters,
    /// When it opens and closes.
    pub window: (u64, u64),
    /// What it asks of whom.
    pub asked: Asked,
    /// How many of its questions may be answered with a true yes, if they are independent.
    pub most_yes: usize,
    /// Its names: what it is called, what is charged for it, and which answer of that charge it asks for.
    pub names: CardNames,
}

/// A card that the policy allows and whose claims are true, with its price.
#[derive(Debug)]
pub struct Accepted {
    /// The card, and what it asks.
    pub allowed: Arc<Allowed>,
    /// What it costs.
    pub price: Price,
}

impl std::ops::Deref for Accepted {
    type Target = Allowed;

    fn deref(&self) -> &Allowed {
        &self.allowed
    }
}

/// Whom a card asks for the truth.
pub enum Asked {
    /// The device, which evaluates these predicates, in the order of the report.
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

/// What a card costs, per view; `None` if the owner keeps no budget for the view.
#[derive(Debug, Clone)]
pub struct Price {
    /// For all answers.
    pub linked: Option<Charge>,
    /// For everything published, if one aggregator is honest and nobody else.
    pub one_aggregator: Option<Charge>,
    /// For everything published.
    pub release: Option<Charge>,
}

impl Price {
    /// The cost for one view.
    pub(crate) fn of(&self, view: BudgetView) -> Option<&Charge> {
        match view {
            BudgetView::Linked => self.linked.as_ref(),
            BudgetView::OneAggregator => self.one_aggregator.as_ref(),
            BudgetView::Release => self.release.as_ref(),
        }
    }
}

/// Checks cards and remembers its decisions, by the hash of the card. Clones share what they remember.
#[derive(Clone)]
pub struct Checker {
    policy: Policy,
    desk: Option<Url>,
    work: u64,
    known: Arc<Mutex<Decisions>>,
    computed: Arc<Computed>,
}

/// What was decided about each card, by its statements alone.
type Decisions = HashMap<TaskId, Result<Arc<Allowed>, Refusal>>;

/// What takes work and depends on no policy's limits. Cards with the same claims share it.
#[derive(Default)]
struct Computed {
    verified: Mutex<HashMap<Basis, Result<(), Refusal>>>,
    charges: Mutex<HashMap<ChargeBasis, Result<Charge, Refusal>>>,
}

/// The part of a card that its claims depend on, and the work allowed for verifying them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Basis {
    card: String,
    work: u64,
}

/// Everything that the cost for one view depends on.
#[derive(PartialEq, Eq, Hash)]
struct ChargeBasis {
    claims: Basis,
    view: BudgetView,
    delta_bits: u64,
}

impl Checker {
    /// A checker for a policy.
    pub fn new(policy: Policy) -> Self {
        Self::with_work(policy, WORK)
    }

    /// A checker that gives up, and refuses, after `work` steps.
    pub fn with_work(policy: Policy, work: u64) -> Self {
        Self { policy, desk: None, work, known: Arc::default(), computed: Arc::default() }
    }

    /// A checker for the cards of one desk.
    pub fn at(self, desk: &Url) -> Self {
        Self { desk: Some(desk.clone()), ..self }
    }

    /// Shares verified claims with another checker, which may have another policy.
    pub fn sharing(self, other: &Self) -> Self {
        Self { computed: Arc::clone(&other.computed), ..self }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether the card may be answered now. This recomputes its claims, unless they are known.
    pub fn check(&self, signed: &SignedCard, now: u64) -> Result<Arc<Accepted>, Refusal> {
        self.accept(self.allow(signed, now)?)
    }

    /// Whether the card may be answered while it is open. This recomputes its claims, unless they are known.
    pub fn check_card(&self, signed: &SignedCard) -> Result<Arc<Accepted>, Refusal> {
        self.accept(self.allow_card(signed)?)
    }

    fn accept(&self, allowed: Arc<Allowed>) -> Result<Arc<Accepted>, Refusal> {
        let price = self.verified_price(&allowed.opened.card)?;
        Ok(Arc::new(Accepted { allowed, price }))
    }

    /// Whether the card may be answered now, if its claims are true: everything that takes little work.
    pub fn allow(&self, signed: &SignedCard, now: u64) -> Result<Arc<Allowed>, Refusal> {
        let allowed = self.allow_card(signed)?;
        self.check_desk(&allowed.opened.signer)?;
        let (opens, closes) = allowed.window;
        if now < opens {
            return Err(Refusal("the query has not opened yet".to_owned()));
        }
        if now >= closes {
            return Err(Refusal("the query has closed".to_owned()));
        }
        Ok(allowed)
    }

    /// Whether the card may be answered while it is open, if its claims are true.
    pub fn allow_card(&self, signed: &SignedCard) -> Result<Arc<Allowed>, Refusal> {
        // Name and signature come first: decisions are remembered for a card, not for what somebody calls it.
        let opened = signed.open().map_err(refusal)?;
        if !self.policy.knows(&opened.signer) {
            return Err(Refusal(format!("the card is signed by {}, whom the policy does not name", opened.signer)));
        }
        let id = opened.id;
        if let Some(verdict) = lock(&self.known).get(&id) {
            return verdict.clone();
        }
        let verdict = self.judge(opened).map(Arc::new);
        lock(&self.known).insert(id, verdict.clone());
        verdict
    }

    /// Whether a check of the card takes no work any more, because claims like its own are known to be true or false.
    pub(crate) fn is_computed(&self, card: &Card) -> bool {
        let claims = self.basis(&part_of_claims(card));
        let is_priced = |view| lock(&self.computed.charges).contains_key(&self.charge_basis(&claims, view));
        match lock(&self.computed.verified).get(&claims) {
            Some(Ok(())) => self.limited_views().all(is_priced),
            Some(Err(_)) => true,
            None => false,
        }
    }

    /// Refuses a signer whom the policy does not name for this desk, if it names desks.
    fn check_desk(&self, signer: &PublicKey) -> Result<(), Refusal> {
        let (Some(named), Some(url)) = (&self.policy.desks, &self.desk) else { return Ok(()) };
        let found = named.iter().find(|desk| desk.address.is_of(url));
        let desk = found.ok_or_else(|| Refusal(format!("the policy's `desks` do not name `{url}`")))?;
        if desk.signers.contains(signer) {
            return Ok(());
        }
        let desk = &desk.address;
        Err(Refusal(format!("the card is signed by {signer}, whom the policy does not name for {desk}")))
    }

    fn judge(&self, opened: OpenedCard) -> Result<Allowed, Refusal> {
        let card = &opened.card;
        check_contributions(card)?;
        let parameters = card_task::parameters(card).map_err(refusal)?;
        let window = card.window().map_err(refusal)?;
        let asked = self.asked(card)?;
        let most_yes = match (card.asked(), &card.mechanism) {
            (CardQuestion::Ballot(ballot), AnyMechanism::YesNo(_)) => {
                ballot.most_yes.min(asked.questions() as u64) as usize
            }
            // Contributions are limited where they are tossed, over all windows of a series.
            _ => asked.questions(),
        };
        let names = card_task::names(card).map_err(refusal)?;
        self.check_trust(card, &parameters)?;
        self.check_limits(card)?;
        Ok(Allowed { parameters, window, asked, most_yes, names, opened })
    }

    /// Whom the card asks: the person if there is nothing to evaluate.
    fn asked(&self, card: &Card) -> Result<Asked, Refusal> {
        match card.asked() {
            CardQuestion::Predicate(_) | CardQuestion::Ballot(_) => self.predicates(card).map(Asked::Device),
            CardQuestion::Person(Some(question)) if !question.trim().is_empty() && card.attributes.is_empty() => {
                Ok(Asked::Person(question.to_owned()))
            }
            CardQuestion::Person(_) => Err(Refusal(
                "the card has neither a predicate nor, for a person, a question and nothing else".to_owned(),
            )),
        }
    }

    /// The predicates, if they read what the policy allows and the card says.
    fn predicates(&self, card: &Card) -> Result<Vec<Predicate>, Refusal> {
        let texts = card.asked().predicates();
        if texts.is_empty() || texts.len() > MOST_QUESTIONS {
            return Err(Refusal(format!(
                "the card asks {} questions; 1 to {MOST_QUESTIONS} are answered",
                texts.len()
            )));
        }
        let predicates = texts.into_iter().map(Predicate::parse).collect::<Result<Vec<_>, _>>().map_err(refusal)?;
        self.check_attributes(card, &predicates)?;
        Ok(predicates)
    }

    fn check_attributes(&self, card: &Card, predicates: &[Predicate]) -> Result<(), Refusal> {
        let read: BTreeSet<&String> = predicates.iter().flat_map(Predicate::attributes).collect();
        if let Some(name) = read.iter().find(|name| !self.policy.attributes.contains(name)) {
            return Err(Refusal(format!("a predicate reads `{name}`, which the policy's `attributes` do not name")));
        }
        if read != card.attributes.iter().collect() {
            return Err(Refusal("the card's list of attributes is not what its predicates read".to_owned()));
        }
        Ok(())
    }

    /// Refuses a card that counts on people whom the policy does not trust.
    fn check_trust(&self, card: &Card, parameters: &TaskParameters) -> Result<(), Refusal> {
        let limits = &self.policy.card;
        if limits.separate_operators {
            check_separate(card, parameters)?;
        }
        if let Some(accepted) = &self.policy.aggregators {
            check_aggregators(accepted, parameters)?;
        }
        if limits.enrolment && card.enrolment != Some(Enrolment::Required) {
            return Err(Refusal("the card lets anybody answer; the policy's card.enrolment requires enrolled owners, so that nobody can \
                 invent any".to_owned()));
        }
        let (assumed, most) = (card.honest.to_f64(), limits.honest.to_f64());
        if assumed > most {
            return Err(Refusal(format!(
                "the claims count on {assumed} of the owners being honest; the policy's card.honest allows at most {most}"
            )));
        }
        Ok(())
    }

    /// Refuses claims beyond the policy's limits. Whether they are true is checked later, which takes more work.
    fn check_limits(&self, card: &Card) -> Result<(), Refusal> {
        self.check_delta(card)?;
        let (claims, limits) = (&card.claims, &self.policy.card);
        let joint = claims.worst_answer_with_release();
        for (view, field, limit, epsilon) in [
            ("one answer alone", "answer", limits.answer, claims.worst_answer()),
            ("all answers", "linked", limits.linked, claims.whole_linked()),
            ("the release", "release", limits.release, claims.whole_release()),
            ("an answer with the release", "answer-with-release", limits.answer_with_release, joint),
        ] {
            if !limit.allows(epsilon) {
                let claimed = guarantee(epsilon);
                return Err(Refusal(format!(
                    "the card gives {view} {claimed}; the policy's card.{field} allows {limit}"
                )));
            }
        }
        self.check_one_aggregator(card)
    }

    fn check_delta(&self, card: &Card) -> Result<(), Refusal> {
        let (delta, most) = (card.claims.delta.value().value(), self.policy.card.delta);
        if delta > most {
            return Err(Refusal(format!("the claims are at a delta of {delta}; the policy's card.delta is {most}")));
        }
        Ok(())
    }

    /// Refuses a card if one honest aggregator by itself hides less than the policy requires.
    fn check_one_aggregator(&self, card: &Card) -> Result<(), Refusal> {
        let limit = self.policy.card.one_aggregator.unwrap_or(Limit::Unlimited);
        let epsilon = card.claims.whole_one_aggregator();
        if limit.allows(epsilon) {
            return Ok(());
        }
        let claimed = guarantee(epsilon);
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
    /// Only the part of the card that its claims depend on is looked at: cards that agree in it, such as those of one series,
    /// are verified once.
    fn verified_price(&self, card: &Card) -> Result<Price, Refusal> {
        let card = part_of_claims(card);
        self.verify(&card)?;
        let charge = |view| self.policy.lifetime.budget(view).map(|_| self.computed_charge(&card, view)).transpose();
        Ok(Price {
            linked: charge(BudgetView::Linked)?,
            one_aggregator: charge(BudgetView::OneAggregator)?,
            release: charge(BudgetView::Release)?,
        })
    }

    fn verify(&self, card: &Card) -> Result<(), Refusal> {
        remembered(&self.computed.verified, self.basis(card), || {
            affordable(card)?;
            card.verify(WorkLimit::steps(self.work)).map(drop).map_err(refusal)
        })
    }

    /// What a card costs in one view, whether or not there is a budget for it. Its claims are not verified.
    pub(crate) fn charge(&self, card: &Card, view: BudgetView) -> Result<Charge, Refusal> {
        self.computed_charge(&part_of_claims(card), view)
    }

    fn computed_charge(&self, card: &Card, view: BudgetView) -> Result<Charge, Refusal> {
        let basis = self.charge_basis(&self.basis(card), view);
        remembered(&self.computed.charges, basis, || {
            let queries = card.counted_queries().map_err(refusal)?;
            match view {
                BudgetView::Linked => linked_charge(card, queries),
                BudgetView::OneAggregator => one_aggregator_charge(card, queries),
                BudgetView::Release => self.release_charge(card, queries).map_err(refusal),
            }
        })
    }

    fn basis(&self, card: &Card) -> Basis {
        Basis { card: card.canonical(), work: self.work }
    }

    fn charge_basis(&self, claims: &Basis, view: BudgetView) -> ChargeBasis {
        ChargeBasis { claims: claims.clone(), view, delta_bits: self.policy.lifetime.delta.to_bits() }
    }

    /// The views that the owner keeps a budget for.
    fn limited_views(&self) -> impl Iterator<Item = BudgetView> {
        BudgetView::ALL.into_iter().filter(|view| self.policy.lifetime.budget(*view).is_some())
    }

    fn release_charge(&self, card: &Card, queries: u64) -> Result<Charge, uptack::Error> {
        if let AnyMechanism::Contributions(contributions) = &card.mechanism {
            // With noise the guarantee is pure, and needs no crowd.
            let noise = contributions::one_aggregator(contributions).map(|epsilon| epsilon.upper());
            let pure =
                noise.into_iter().chain(contributions::linked_epsilon(contributions)).fold(f64::INFINITY, f64::min);
            return Charge::pure(pure);
        }
        let channel = card.checked_channel()?;
        let accountant = privacy::release(&channel, card.claim_owners()?)?.with_limit(WorkLimit::steps(self.work));
        let smallest = self.policy.lifetime.delta * SHARE_OF_DELTA;
        privacy::release_charge(&accountant, LIFETIME_QUERIES.max(queries), smallest)?.repeated(queries)
    }
}

/// ε in words.
fn guarantee(epsilon: Option<f64>) -> String {
    epsilon.map_or("no guarantee".to_owned(), |epsilon| format!("an epsilon of {epsilon}"))
}

/// What all answers to a card cost.
fn linked_charge(card: &Card, queries: u64) -> Result<Charge, Refusal> {
    if card.claims.whole_linked().is_none() {
        return Err(Refusal("the card has no guarantee that could be charged to the lifetime budget".to_owned()));
    }
    let one = linked_epsilon(card)?.ok_or_else(|| Refusal("no linked guarantee".to_owned()))?;
    Charge::pure(one).and_then(|charge| charge.repeated(queries)).map_err(refusal)
}

/// ε of all answers to one query, or of all contributions.
fn linked_epsilon(card: &Card) -> Result<Option<f64>, Refusal> {
    let channel = card.checked_channel().map_err(refusal)?;
    Ok(match &card.mechanism {
        AnyMechanism::YesNo(_) => privacy::linked_epsilon(&channel),
        AnyMechanism::Contributions(contributions) => contributions::linked_epsilon(contributions),
    })
}

/// What a card's releases cost if one aggregator is honest and nobody else, from the card's integers.
///
/// Without noise, somebody who knows everybody else's answers learns the owner's: the cost is that of the answers themselves.
fn one_aggregator_charge(card: &Card, queries: u64) -> Result<Charge, Refusal> {
    let channel = card.checked_channel().map_err(refusal)?;
    let noisy = match &card.mechanism {
        AnyMechanism::YesNo(_) => privacy::one_aggregator(&channel),
        AnyMechanism::Contributions(contributions) => contributions::one_aggregator(contributions),
    };
    let one = noisy
        .map(|epsilon| epsilon.upper())
        .or(linked_epsilon(card)?)
        .ok_or_else(|| Refusal("the card has no guarantee that one honest aggregator alone could keep".to_owned()))?;
    Charge::pure(one).and_then(|charge| charge.repeated(queries)).map_err(refusal)
}

/// The part of a card that its claims and its price depend on.
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
        // A card with both a ballot and a predicate is refused, so the predicate must stay.
        predicate: card.predicate.clone().filter(|_| card.ballot.is_some()),
        ..card.clone()
    }
}

/// Refuses claims for which even a first sound bound takes more work than a device can do: many classes in a large crowd.
fn affordable(card: &Card) -> Result<(), Refusal> {
    let channel = card.checked_channel().map_err(refusal)?;
    let owners = card.claim_owners().map_err(refusal)?;
    if owners > LARGE_CROWD && (channel.answers().len() > 1 || channel.classes().len() > 3) {
        return Err(Refusal(format!("the claims for {owners} owners cannot be verified within the work allowed")));
    }
    Ok(())
}

/// Refuses more contributions than a device can toss for and keep.
fn check_contributions(card: &Card) -> Result<(), Refusal> {
    match &card.mechanism {
        AnyMechanism::Contributions(contributions) if contributions.most() as usize > MOST_QUESTIONS => {
            Err(Refusal(format!(
                "the card asks for {} contributions of one owner; at most {MOST_QUESTIONS} are made",
                contributions.most()
            )))
        }
        _ => Ok(()),
    }
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

/// Refuses aggregators that visibly do not have two separate operators.
fn check_separate(card: &Card, parameters: &TaskParameters) -> Result<(), Refusal> {
    if card.operators != Some(Operators::Two) {
        return Err(Refusal(
            "one operator runs both aggregators and could see every answer, but the policy's card.separate-operators \
             requires two; for a trial, set it to false"
                .to_owned(),
        ));
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

/// What is remembered under a key, or is computed now. The lock is not held while it is computed.
fn remembered<K: Eq + Hash, T: Clone>(memory: &Mutex<HashMap<K, T>>, key: K, compute: impl FnOnce() -> T) -> T {
    if let Some(found) = lock(memory).get(&key) {
        return found.clone();
    }
    let computed = compute();
    lock(memory).insert(key, computed.clone());
    computed
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
