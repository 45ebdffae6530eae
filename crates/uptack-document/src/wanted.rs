//! What is wanted of a plan; what is left out is filled in.

use std::str::FromStr;

use uptack::plan::{self, Form, Noise, Objective, Over, Prior, Request, Solved, Trust, USUAL_LINKED_EPSILON, Unknown};
use uptack::privacy::{Delta, Epsilon};
use uptack::simulate::Progress;
use uptack::{Error, Fraction};

/// What may be asked of a plan. Whichever of error, ε and owners is left out is solved for; with all three the plan is checked.
#[derive(Clone, Debug)]
pub struct Wanted {
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
    /// The smallest batch that may be released; by default all owners.
    pub minimum_batch: Option<u64>,
    /// The largest standard deviation of the estimate.
    pub error: Option<f64>,
    /// What to solve for; by default what is left out.
    pub solve: Option<Unknown>,
    /// How answers are written; by default any way if one answer's ε is bounded, else one answer.
    pub form: Option<Form>,
    /// Whether the paper's objective is minimized instead of the error.
    pub paper_objective: bool,
    /// Only this family, by its name.
    pub family: Option<String>,
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
    /// The planner refuses.
    Refused(Error),
}

impl From<Error> for PlanError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Wanted {
    /// A plan for this many yes-owners, at least and at most; everything else is left out.
    pub fn new(yes: (u64, u64)) -> Self {
        Self {
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

    /// Plans, counting the progress up to [`plan::PROGRESS`].
    pub fn plan(&self, progress: &Progress) -> Result<Solved, PlanError> {
        let request = self.request()?;
        let unknown = self.unknown()?.unwrap_or(Unknown::Error);
        if unknown != Unknown::Error && self.error.is_none() {
            return Err(PlanError::NoError);
        }
        Ok(plan::solve(&request, unknown, self.error, progress)?)
    }

    fn trusted(&self) -> Trusted {
        self.trust.complete((Noise::None, Trust::Owners))
    }

    /// Whether local bounds are all that is asked for: noise needs the ε of what is published.
    fn bounded_locally(&self) -> bool {
        let Trusted { noise, linked_given, .. } = self.trusted();
        noise == Noise::None && (self.answer_epsilon.is_some() || linked_given)
    }

    /// What is left out; none if all three are given.
    fn unknown(&self) -> Result<Option<Unknown>, PlanError> {
        if let Some(unknown) = self.solve {
            return Ok(Some(unknown));
        }
        Ok(match (self.owners, self.epsilon, self.error) {
            (Some(_), Some(_), None) => Some(Unknown::Error),
            (Some(_), None, None) if self.bounded_locally() => Some(Unknown::Error),
            (Some(_), Some(_), Some(_)) => None,
            (Some(_), None, Some(_)) => Some(Unknown::Epsilon),
            (None, Some(_), Some(_)) => Some(Unknown::Owners),
            _ => return Err(PlanError::TooLittle),
        })
    }

    fn request(&self) -> Result<Request, PlanError> {
        let objective = self.objective()?;
        let Trusted { noise, trust, linked, .. } = self.trusted();
        if self.error.is_some_and(|error| !is_positive(error)) {
            return Err(PlanError::BadError);
        }
        let owners = self.planned_owners()?;
        Ok(Request {
            release: self.release(linked)?,
            answer_epsilon: self.answer_epsilon,
            linked_epsilon: linked,
            noise,
            trust,
            participation: self.participation.as_ref().map(Fraction::to_f64),
            honest: self.honest.clone(),
            minimum_batch: self.minimum_batch.unwrap_or(owners),
            form: self.form.unwrap_or(self.usual_form()),
            objective,
            family: self.family.clone(),
            ..Request::new(owners, self.prior())
        })
    }

    fn prior(&self) -> Prior {
        let (low, high) = self.yes;
        Prior { low, high, over: self.over }
    }

    fn usual_form(&self) -> Form {
        if self.answer_epsilon.is_some() { Form::Any } else { Form::One }
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
            (None, None) => Ok(self.yes.1.max(2)),
            (None, Some(_)) => Err(PlanError::BatchWithoutOwners),
        }
    }

    fn release(&self, linked: Option<f64>) -> Result<Option<(Epsilon, Delta)>, PlanError> {
        let Some(epsilon) = self.epsilon.or(self.usual_epsilon(linked)) else { return Ok(None) };
        Ok(Some((Epsilon::new(epsilon)?, Delta::new(self.delta)?)))
    }

    /// The ε of what is published if none is given; none if local bounds are all that is asked for.
    fn usual_epsilon(&self, linked: Option<f64>) -> Option<f64> {
        // Several answers cancel each other's noise in the tallies: these must not give away more than one answer may.
        let unbounded_tallies = linked.is_none() && self.form != Some(Form::One);
        if unbounded_tallies && self.answer_epsilon.is_some() {
            return self.answer_epsilon;
        }
        let wants_release = matches!(self.unknown(), Ok(Some(Unknown::Epsilon))) || !self.bounded_locally();
        wants_release.then_some(1.0)
    }
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// What may be given; what is left out follows from the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrustWanted {
    /// Whether the aggregators add noise to the published count.
    pub noise: Option<Noise>,
    /// Whose honesty the ε of the published count rests on.
    pub trust: Option<Trust>,
    /// The largest ε of all answers of an owner.
    pub linked: Option<Bound>,
}

/// A bound, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The largest number allowed.
    AtMost(f64),
    /// Anything is allowed.
    None,
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            number => number.parse().map(Self::AtMost).map_err(|_| "give a number, or none".to_owned()),
        }
    }
}

/// What was given, completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trusted {
    /// Whether the aggregators add noise.
    pub noise: Noise,
    /// Whose honesty ε rests on.
    pub trust: Trust,
    /// The bound on the linked ε.
    pub linked: Option<f64>,
    /// Whether that bound was asked for, rather than being the usual one.
    pub linked_given: bool,
}

impl TrustWanted {
    /// Completes what was given; noise and trust are the usual ones if neither was.
    pub fn complete(&self, usual: (Noise, Trust)) -> Trusted {
        let (noise, trust) = self.noise_and_trust(usual);
        let linked = match self.linked {
            Some(Bound::AtMost(most)) => Some(most),
            Some(Bound::None) => None,
            None => (noise != Noise::None).then_some(USUAL_LINKED_EPSILON),
        };
        Trusted { noise, trust, linked, linked_given: matches!(self.linked, Some(Bound::AtMost(_))) }
    }

    fn noise_and_trust(&self, usual: (Noise, Trust)) -> (Noise, Trust) {
        match (self.noise, self.trust) {
            (None, None) => usual,
            (Some(Noise::None), None) => (Noise::None, Trust::Owners),
            (Some(noise), None) => (noise, Trust::OneAggregator),
            (None, Some(Trust::OneAggregator)) => (Noise::Aggregators, Trust::OneAggregator),
            (None, Some(Trust::Owners)) => (usual.0, Trust::Owners),
            (Some(noise), Some(trust)) => (noise, trust),
        }
    }
}
