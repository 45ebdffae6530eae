//! What is asked of the planner.

use super::law::Law;
use crate::error::Error;
use crate::estimate::Estimator;
use crate::fraction::Fraction;
use crate::privacy::{self, Delta, Epsilon};

/// What is known, what is wanted, and what must not be exceeded.
#[derive(Clone, Debug)]
pub struct Request {
    /// How many owners will answer; they enter the predicted error.
    pub owners: u64,
    /// Roughly how many of them hold yes.
    pub yes: Prior,
    /// The guarantee of the published counts.
    pub release: Option<(Epsilon, Delta)>,
    /// The largest local ε of a single answer.
    pub answer_epsilon: Option<f64>,
    /// The largest local ε of all answers of an owner.
    pub linked_epsilon: Option<f64>,
    /// The largest share of owners who take part.
    pub participation: Option<f64>,
    /// The share of owners who can be counted on to toss their coins.
    pub honest: Fraction,
    /// The smallest batch that may be released; every claim is made for it.
    pub minimum_batch: u64,
    /// How answers are written.
    pub form: Form,
    /// What is minimized.
    pub objective: Objective,
    /// Only this family, by its name.
    pub family: Option<String>,
}

/// How many owners hold yes, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
    /// What of the error over that range counts.
    pub over: Over,
}

/// What of the error over a range of yes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The largest.
    Worst,
    /// The mean.
    Mean,
}

/// How an owner's answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One answer, through secure aggregation.
    One,
    /// Several answers that nobody can link.
    Several,
    /// Either.
    Any,
}

/// What is minimized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// The standard deviation of the combined estimator.
    Sd,
    /// The paper's Var P("Yes"|Yes) + Var P("Yes"|No), among mechanisms whose standard deviation is at most this.
    ///
    /// Without such a bound its minimum is 0 and is reached by never answering, whatever else is asked for.
    Paper {
        /// The largest standard deviation.
        error: f64,
    },
}

/// A smaller ε of the release is not planned for.
const LEAST_EPSILON: f64 = 1e-4;

impl Prior {
    /// One value.
    pub fn at(yes: u64) -> Self {
        Self { low: yes, high: yes, over: Over::Worst }
    }

    /// The standard deviation of an estimate from so many owners, as this prior weighs it.
    pub fn predicted_sd(&self, estimator: &Estimator, owners: u64) -> Result<f64, Error> {
        let sds = self.points().into_iter().map(|yes| estimator.sd(owners, yes)).collect::<Result<Vec<f64>, _>>()?;
        Ok(self.summarize(sds.into_iter()))
    }

    /// The points at which the error is looked at: the variance is smooth and nearly quadratic in yes.
    pub(super) fn points(&self) -> Vec<f64> {
        if self.low == self.high {
            return vec![self.low as f64];
        }
        let (low, width) = (self.low as f64, (self.high - self.low) as f64);
        (0..=16).map(|step| low + width * f64::from(step) / 16.0).collect()
    }

    pub(super) fn summarize(&self, sds: impl Iterator<Item = f64>) -> f64 {
        let sds: Vec<f64> = sds.collect();
        match self.over {
            Over::Worst => sds.iter().copied().fold(0.0, f64::max),
            Over::Mean => sds.iter().sum::<f64>() / sds.len() as f64,
        }
    }
}

impl Request {
    /// A request with nothing bounded, for one answer or several.
    pub fn new(owners: u64, yes: Prior) -> Self {
        Self {
            owners,
            yes,
            release: None,
            answer_epsilon: None,
            linked_epsilon: None,
            participation: None,
            honest: Fraction::one(),
            minimum_batch: owners,
            form: Form::One,
            objective: Objective::Sd,
            family: None,
        }
    }

    /// The owners whom every claim counts on: floor(honest · minimum batch).
    pub fn claim_owners(&self) -> Result<u64, Error> {
        privacy::honest_owners(self.minimum_batch, &self.honest)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |message: String, hint: &str| Err(Error::request(message).with_hint(hint));
        if self.owners == 0 || self.owners > privacy::MOST_OWNERS {
            return refuse(format!("{} owners cannot be planned for", self.owners), "give a number from 1 to 1e9");
        }
        if self.yes.high > self.owners || self.yes.low > self.yes.high {
            return refuse(
                format!("{} to {} of {} owners cannot hold yes", self.yes.low, self.yes.high, self.owners),
                "yes counts some of the owners, the smaller number first",
            );
        }
        if self.minimum_batch > self.owners {
            return refuse(
                format!("a minimum batch of {} is more than the {} owners", self.minimum_batch, self.owners),
                "it is the smallest batch that may be released",
            );
        }
        for (name, bound) in [("answer", self.answer_epsilon), ("linked", self.linked_epsilon)] {
            if bound.is_some_and(|epsilon| !(epsilon.is_finite() && epsilon > 0.0)) {
                return refuse(
                    format!("the {name} epsilon must be a positive number"),
                    "without it, leave the option out",
                );
            }
        }
        if self.release.is_some_and(|(epsilon, _)| epsilon.value() < LEAST_EPSILON) {
            return refuse(
                format!("an epsilon of less than {LEAST_EPSILON} is not planned for: the counts would say nothing"),
                "give a larger epsilon",
            );
        }
        if self.participation.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return refuse("the participation must be above 0 and at most 1".to_owned(), "write 0.5 or 50%");
        }
        if self.release.is_none() && self.answer_epsilon.is_none() && self.linked_epsilon.is_none() {
            return refuse(
                "nothing bounds what may be given away, so telling the plain truth would be best".to_owned(),
                "bound the release with an epsilon and a delta, each answer, or the linked epsilon",
            );
        }
        // What bounds one answer of several does not bound their tallies at all.
        if self.form == Form::Several && self.release.is_none() && self.linked_epsilon.is_none() {
            return refuse(
                "nothing bounds what the tallies of several answers give away: their noise cancels".to_owned(),
                "bound the release with an epsilon, or the linked epsilon",
            );
        }
        self.claim_owners().map(|_| ())
    }

    /// The error of a law, as the prior weighs it.
    pub(super) fn sd(&self, law: &Law) -> f64 {
        let owners = self.owners as f64;
        self.yes.summarize(self.yes.points().into_iter().map(|yes| law.variance(owners, yes).sqrt()))
    }

    /// What the search minimizes; infinite where the law is out of the question.
    pub(super) fn cost(&self, law: &Law) -> f64 {
        let sd = self.sd(law);
        match self.objective {
            Objective::Sd => sd,
            Objective::Paper { error } if sd <= error => {
                let (p, q) = (law.yes()[0], law.no()[0]);
                p * (1.0 - p) + q * (1.0 - q)
            }
            // Leads the search towards laws that are good enough.
            Objective::Paper { error } => 1.0 + sd / error,
        }
    }
}
