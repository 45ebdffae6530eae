//! A request to the planner of which only some parts are given. Defaults are filled in and contradictions found here, for
//! the command line, the desk's pages and Python alike.

use std::str::FromStr;

use uptack::Progress;
use uptack::plan::{
    self, AnySolved, Asked, Form, Noise, Objective, Over, Prior, Request, Solved, Trust, USUAL_LINKED_EPSILON, Unknown,
};
use uptack::privacy::{Delta, Epsilon};
use uptack::quantity::number;
use uptack::{Error, Fraction};

/// A request to the planner. Whichever of error, ε and owners is left out is solved for; with all three the plan is checked.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The purpose of the plan, which decides the defaults.
    pub purpose: Purpose,
    /// What is asked: a yes/no question, options, or contributions to several counts.
    pub asked: Asked,
    /// How many independent queries share the limits. With more than one, their linked ε is the usual one by default.
    pub queries: u64,
    /// How many owners will answer.
    pub owners: Option<u64>,
    /// Roughly how many of them would say yes: at least and at most.
    pub yes: (u64, u64),
    /// Which error over that range counts.
    pub over: Over,
    /// The largest ε of the published counts.
    pub epsilon: Option<f64>,
    /// The δ of the published counts.
    pub delta: f64,
    /// The largest ε of a single answer.
    pub answer_epsilon: Option<f64>,
    /// Noise, trust and the linked ε.
    pub trust: TrustWanted,
    /// The largest share of owners who take part.
    pub participation: Option<Fraction>,
    /// The share of owners who are counted on to toss their coins.
    pub honest: Fraction,
    /// The smallest batch that may be released; by default as many as [`Purpose::usual_batch`] says.
    pub minimum_batch: Option<u64>,
    /// The largest standard deviation of the estimate.
    pub error: Option<f64>,
    /// The quantity to solve for; by default the one that is left out.
    pub solve: Option<Unknown>,
    /// How answers are written.
    pub form: Option<Form>,
    /// Whether the paper's objective is minimized instead of the error.
    pub paper_objective: bool,
    /// Only this family, by its name.
    pub family: Option<String>,
}

/// The purpose of a plan. It decides the defaults of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Comparing mechanisms, as `uptack plan` and Python do. The owners' coins are trusted alone; if one answer's ε is
    /// bounded, answers may be written any way; a bound on answers is enough, without an ε of the release. The smallest batch
    /// is all owners.
    Comparing,
    /// Opening a query at a desk. The aggregators add noise and one honest aggregator is enough; there is one answer, and
    /// always an ε of the release. The smallest batch is 80 % of the owners.
    Asking,
}

impl Purpose {
    /// The smallest batch that is released of this many expected owners, unless another one is given.
    ///
    /// A query with a batch of all owners would release nothing if one of them failed to answer, and all of them would have
    /// paid. Four of five, rounded up, leave room for that; claims are made for the batch, not for all owners.
    ///
    /// ```
    /// use uptack_document::Purpose;
    /// assert_eq!([5000, 7, 4, 1].map(|owners| Purpose::Asking.usual_batch(owners)), [4000, 6, 4, 1]);
    /// assert_eq!(Purpose::Comparing.usual_batch(5000), 5000);
    /// ```
    pub fn usual_batch(self, owners: u64) -> u64 {
        match self {
            Self::Comparing => owners,
            Self::Asking => owners - owners / 5,
        }
    }

    fn noise_and_trust(self) -> (Noise, Trust) {
        match self {
            Self::Comparing => (Noise::None, Trust::Owners),
            Self::Asking => (Noise::Aggregators, Trust::OneAggregator),
        }
    }
}

/// Whether the aggregators add noise, whose honesty ε relies on, and a limit on all answers of an owner. Fields that are
/// left out follow from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrustWanted {
    /// Whether the aggregators add noise to the published count.
    pub noise: Option<Noise>,
    /// Whose honesty the ε of the published count rests on.
    pub trust: Option<Trust>,
    /// The largest ε of all answers of an owner. By default, if the aggregators add noise, that of coins which are nearly free
    /// ([`plan::usual_linked_epsilon`]), else none.
    pub linked: Option<LinkedLimit>,
}

/// A limit on the ε of all answers of an owner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkedLimit {
    /// The largest ε allowed.
    AtMost(f64),
    /// Any ε is allowed.
    None,
}

impl FromStr for LinkedLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            text => number(text).map(Self::AtMost).map_err(|error| format!("{error}; give a number, or none")),
        }
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// Fewer than two of owners, ε and error are known.
    TooLittle,
    /// There is no error to solve the rest for.
    NoError,
    /// The error is not a positive number.
    BadError,
    /// A minimum batch without the owners it is part of.
    BatchWithoutOwners,
    /// The value of a field is out of range.
    OutOfRange {
        /// The field of [`Wanted`].
        field: &'static str,
        /// Why its value is refused.
        error: Error,
    },
    /// The planner refuses.
    Refused(Error),
}

impl PlanError {
    /// The field of [`Wanted`] that has to change; none if it may be any of them.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::TooLittle => Some("owners"),
            Self::NoError | Self::BadError => Some("error"),
            Self::BatchWithoutOwners => Some("minimum_batch"),
            Self::OutOfRange { field, .. } => Some(field),
            Self::Refused(error) => error.field(),
        }
    }

    fn out_of_range(field: &'static str) -> impl Fn(Error) -> Self {
        move |error| Self::OutOfRange { field, error }
    }
}

impl From<Error> for PlanError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// A complete request to the planner, and the quantity to solve for.
#[derive(Clone, Debug)]
pub struct Solvable {
    /// The request; the quantity to solve for has a value at which the search begins.
    pub request: Request,
    /// The quantity to solve for.
    pub unknown: Unknown,
    /// The largest standard deviation that is accepted.
    pub error: Option<f64>,
}

impl Solvable {
    /// Plans, counting the progress up to [`plan::PROGRESS`]. An error that was given and cannot be attained is refused.
    pub fn solve(&self, progress: &Progress) -> Result<Solved, Error> {
        plan::solve(&self.request, self.unknown, self.error, progress)
    }

    /// The request with its unknown filled in. It is planned only if ε or the owners are open, or an error has to be kept.
    pub fn solved_request(&self, progress: &Progress) -> Result<Request, Error> {
        if self.unknown == Unknown::Error && self.error.is_none() {
            return Ok(self.request.clone());
        }
        Ok(self.solve(progress)?.request)
    }
}

impl Wanted {
    /// A request for this many owners who say yes, at least and at most; everything else is left out.
    pub fn new(purpose: Purpose, yes: (u64, u64)) -> Self {
        Self {
            purpose,
            asked: Asked::YesNo,
            queries: 1,
            owners: None,
            yes,
            over: Over::Worst,
            epsilon: None,
            delta: plan::USUAL_DELTA,
            answer_epsilon: None,
            trust: TrustWanted::default(),
            participation: None,
            honest: Fraction::one(),
            minimum_batch: None,
            error: None,
            solve: None,
            form: None,
            paper_objective: false,
            family: None,
        }
    }

    /// Plans a yes/no question, counting the progress up to [`plan::PROGRESS`].
    pub fn plan(&self, progress: &Progress) -> Result<Solved, PlanError> {
        Ok(self.complete()?.solve(progress)?)
    }

    /// Plans whatever is asked.
    pub fn plan_any(&self, progress: &Progress) -> Result<AnySolved, PlanError> {
        let Solvable { request, unknown, error } = self.complete()?;
        Ok(plan::solve_any(&request, unknown, error, progress)?)
    }

    /// Fills in the defaults of everything that is left out.
    pub fn complete(&self) -> Result<Solvable, PlanError> {
        let (request, unknown) = (self.request()?, self.unknown()?);
        if unknown != Unknown::Error && self.error.is_none() {
            return Err(PlanError::NoError);
        }
        Ok(Solvable { request, unknown, error: self.error })
    }

    /// The quantity to solve for: the one that is left out, or the error if none is.
    pub fn unknown(&self) -> Result<Unknown, PlanError> {
        if let Some(unknown) = self.solve {
            return Ok(unknown);
        }
        match (self.owners, self.epsilon, self.error) {
            (Some(_), Some(_), _) => Ok(Unknown::Error),
            (Some(_), None, None) if self.is_bounded_locally() => Ok(Unknown::Error),
            (Some(_), None, Some(_)) => Ok(Unknown::Epsilon),
            (None, Some(_), Some(_)) => Ok(Unknown::Owners),
            _ => Err(PlanError::TooLittle),
        }
    }

    fn request(&self) -> Result<Request, PlanError> {
        let objective = self.objective()?;
        if self.error.is_some_and(|error| !is_positive(error)) {
            return Err(PlanError::BadError);
        }
        let (owners, (noise, trust)) = (self.planned_owners()?, self.noise_and_trust());
        let request = Request {
            asked: self.asked,
            release: self.release()?,
            answer_epsilon: self.answer_epsilon,
            linked_epsilon: self.linked_epsilon(),
            linked_epsilon_for_noise_only: self.trust.linked.is_none(),
            noise,
            trust,
            participation: self.participation.as_ref().map(Fraction::to_f64),
            honest: self.honest.clone(),
            minimum_batch: self.minimum_batch.unwrap_or(self.purpose.usual_batch(owners)),
            form: self.form.unwrap_or(self.usual_form()),
            objective,
            family: self.family.clone(),
            ..Request::new(owners, self.prior())
        };
        Ok(self.with_usual_linked(request))
    }

    /// The request with the linked ε that it gets by default: of coins that are nearly free, where the error is all that is
    /// open. Solving for ε or for owners needs a limit that does not depend on them.
    fn with_usual_linked(&self, request: Request) -> Request {
        let is_usual = self.trust.linked.is_none() && request.linked_epsilon.is_some();
        let is_shared = self.asked.is_yes_no() && self.queries > 1;
        if !is_usual || is_shared || !matches!(self.unknown(), Ok(Unknown::Error)) {
            return request;
        }
        Request { linked_epsilon: Some(plan::usual_linked_epsilon(&request, self.error)), ..request }
    }

    fn prior(&self) -> Prior {
        let (low, high) = self.yes;
        Prior { low, high, over: self.over }
    }

    fn noise_and_trust(&self) -> (Noise, Trust) {
        // Several counts are published with noise, whatever the purpose, unless the owners' coins are to be trusted alone.
        let usual = match (self.asked, self.trust.trust) {
            (Asked::YesNo, _) => self.purpose.noise_and_trust(),
            (_, Some(Trust::Owners)) => Purpose::Comparing.noise_and_trust(),
            _ => Purpose::Asking.noise_and_trust(),
        };
        match (self.trust.noise, self.trust.trust) {
            (None, None) => usual,
            (Some(Noise::None), None) => (Noise::None, Trust::Owners),
            (Some(noise), None) => (noise, Trust::OneAggregator),
            (None, Some(Trust::OneAggregator)) => (Noise::Aggregators, Trust::OneAggregator),
            (None, Some(Trust::Owners)) => (usual.0, Trust::Owners),
            (Some(noise), Some(trust)) => (noise, trust),
        }
    }

    fn linked_epsilon(&self) -> Option<f64> {
        match self.trust.linked {
            Some(LinkedLimit::AtMost(most)) => Some(most),
            Some(LinkedLimit::None) => None,
            None => (self.noise_and_trust().0 != Noise::None).then_some(USUAL_LINKED_EPSILON),
        }
    }

    /// Whether bounds on answers are enough. They are not with noise, which needs an ε of the release.
    fn is_bounded_locally(&self) -> bool {
        let is_bounded = self.answer_epsilon.is_some() || matches!(self.trust.linked, Some(LinkedLimit::AtMost(_)));
        self.purpose == Purpose::Comparing && self.noise_and_trust().0 == Noise::None && is_bounded
    }

    fn usual_form(&self) -> Form {
        match (self.purpose, self.answer_epsilon) {
            (Purpose::Comparing, Some(_)) => Form::Any,
            _ => Form::One,
        }
    }

    fn objective(&self) -> Result<Objective, PlanError> {
        match (self.paper_objective, self.error) {
            (false, _) => Ok(Objective::Sd),
            (true, Some(error)) => Ok(Objective::Paper { error }),
            (true, None) => Err(plan::paper_objective_alone().into()),
        }
    }

    /// The owners that the search begins with: all of them, or the fewest possible if they are solved for.
    fn planned_owners(&self) -> Result<u64, PlanError> {
        match (self.owners, self.minimum_batch) {
            (Some(owners), _) => Ok(owners),
            // A multiple of five, of which four fifths are exact: solving keeps the share of the minimum batch.
            (None, None) if self.purpose == Purpose::Asking => Ok(self.yes.1.max(2).next_multiple_of(5)),
            (None, None) => Ok(self.yes.1.max(2)),
            (None, Some(_)) => Err(PlanError::BatchWithoutOwners),
        }
    }

    fn release(&self) -> Result<Option<(Epsilon, Delta)>, PlanError> {
        let Some(epsilon) = self.epsilon.or(self.usual_epsilon()) else { return Ok(None) };
        let epsilon = Epsilon::new(epsilon).map_err(PlanError::out_of_range("epsilon"))?;
        Ok(Some((epsilon, Delta::new(self.delta).map_err(PlanError::out_of_range("delta"))?)))
    }

    /// The ε of the release if none is given; `None` if bounds on answers are enough.
    fn usual_epsilon(&self) -> Option<f64> {
        // With several answers the tallies can reveal more than each answer by itself: bound them by the same ε.
        let may_be_several = self.purpose == Purpose::Comparing && self.form != Some(Form::One);
        if may_be_several && self.linked_epsilon().is_none() && self.answer_epsilon.is_some() {
            return self.answer_epsilon;
        }
        let wants_release = matches!(self.unknown(), Ok(Unknown::Epsilon)) || !self.is_bounded_locally();
        wants_release.then_some(1.0)
    }
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}
