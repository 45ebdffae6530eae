//! The request to the planner.

use super::asked::Asked;
use crate::channel::Channel;
use crate::contribution::Contributions;
use crate::error::{Error, Result};
use crate::estimate::{Confidence, Estimator, IntervalKind};
use crate::fraction::Fraction;
use crate::numeric::whole_mean;
use crate::privacy::{self, Delta, Epsilon, Guarantee, Target};

/// The expected crowd, the objective, and the constraints.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is asked. If it is not a yes/no question, *yes* means that an owner belongs to one count, and every claim is for
    /// everything that is published together.
    pub asked: Asked,
    /// How many owners will answer; they enter the predicted error.
    pub owners: u64,
    /// Roughly how many of them have the truth *yes*.
    pub yes: Prior,
    /// The guarantee of the published counts.
    pub release: Option<(Epsilon, Delta)>,
    /// The largest local ε of a single answer.
    pub answer_epsilon: Option<f64>,
    /// The largest local ε of all answers of an owner.
    pub linked_epsilon: Option<f64>,
    /// Whether that limit holds only for mechanisms with noise, as the usual one does: without noise, the bound on the release
    /// demands a local channel by itself.
    pub linked_epsilon_for_noise_only: bool,
    /// The largest share of owners who take part.
    pub participation: Option<f64>,
    /// The share of owners who are counted on to follow the mechanism.
    pub honest: Fraction,
    /// The smallest batch that may be released; every claim is made for it.
    pub minimum_batch: u64,
    /// How answers are written.
    pub form: Form,
    /// The objective, which is minimized.
    pub objective: Objective,
    /// Plan only this family, by its name.
    pub family: Option<String>,
    /// Whether the aggregators add noise to the published counts.
    pub noise: Noise,
    /// Whose honesty the release's ε rests on.
    pub trust: Trust,
}

/// Whether the aggregators add noise to the published counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Each of them does.
    Aggregators,
    /// None of them does: only owners' coins hide anybody.
    None,
    /// Whichever has the smaller error.
    Any,
}

/// Whose honesty the release's ε rests on. It is the largest ε of the claim that counts on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// One of the two aggregators adds its noise; no other owner is counted on, and δ is 0.
    OneAggregator,
    /// The claim's owners follow the mechanism, and if the aggregators add noise, one of them does.
    Owners,
}

/// How many owners have the truth *yes*, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
    /// How the errors over that range are summarized.
    pub over: Over,
}

/// How the errors over a range are summarized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The largest.
    Worst,
    /// The mean over all whole numbers of the range.
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

/// The objective, which is minimized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// The standard deviation of the combined estimator.
    Sd,
    /// The paper's Var P("Yes"|Yes) + Var P("Yes"|No), among mechanisms whose standard deviation is at most this.
    ///
    /// Without such a bound its minimum is 0 under any other constraints: owners who never answer attain it.
    Paper {
        /// The largest standard deviation.
        error: f64,
    },
}

/// The linked ε that a plan with noise keeps unless another one is given.
///
/// The policies in the guides allow it. Once aggregators add noise, this limit is the only reason for a local channel,
/// which is all that protects an owner if nobody else is honest.
pub const USUAL_LINKED_EPSILON: f64 = 8.0;

/// The δ of a plan whose request gives none.
pub const USUAL_DELTA: f64 = 1e-8;
/// The smallest ε of the release that is planned for.
const LEAST_EPSILON: f64 = 1e-4;

impl Prior {
    /// One value.
    pub fn at(yes: u64) -> Self {
        Self { low: yes, high: yes, over: Over::Worst }
    }

    /// The standard deviation of an estimate from `owners` owners, as this prior weighs it.
    pub fn predicted_sd(&self, estimator: &Estimator, owners: u64) -> Result<f64> {
        let points = self.points();
        let sds = points.iter().map(|point| estimator.sd(owners, point.yes)).collect::<Result<Vec<_>>>()?;
        Ok(self.summarize(points.iter().zip(sds).map(|(point, sd)| (point.weight, sd))))
    }

    /// Half the width of the interval that is to be expected, as this prior weighs it: where the standard deviation is largest, or
    /// the mean over the range. A question whose range is one number has [`Estimator::half_width`] there.
    pub fn predicted_half_width(&self, estimator: &Estimator, owners: u64, confidence: Confidence) -> Result<f64> {
        let half_width = |yes: f64| estimator.half_width(owners, yes, confidence, IntervalKind::Auto);
        let points = self.points();
        match self.over {
            Over::Worst => {
                let sds = points.iter().map(|point| estimator.sd(owners, point.yes)).collect::<Result<Vec<_>>>()?;
                let worst = points.iter().zip(sds).max_by(|(_, one), (_, other)| one.total_cmp(other));
                half_width(worst.map_or(self.low as f64, |(point, _)| point.yes))
            }
            Over::Mean => points.iter().map(|point| Ok(point.weight * half_width(point.yes)?)).sum(),
        }
    }

    /// The numbers of yes-owners at which the error is computed, with their weights in its mean.
    pub(super) fn points(&self) -> Vec<YesPoint> {
        match self.over {
            Over::Mean => whole_mean::points(self.low, self.high).into_iter().map(YesPoint::from).collect(),
            Over::Worst if self.low == self.high => vec![YesPoint { yes: self.low as f64, weight: 1.0 }],
            // The variance is smooth and nearly quadratic: between two of these points it rises by less than half a per cent.
            Over::Worst => {
                let (low, width) = (self.low as f64, (self.high - self.low) as f64);
                (0..=16)
                    .map(|step| YesPoint { yes: low + width * f64::from(step) / 16.0, weight: 1.0 / 17.0 })
                    .collect()
            }
        }
    }

    /// The largest or the mean of errors with their weights.
    pub(super) fn summarize(&self, weighted: impl Iterator<Item = (f64, f64)>) -> f64 {
        match self.over {
            Over::Worst => weighted.map(|(_, error)| error).fold(0.0, f64::max),
            Over::Mean => weighted.map(|(weight, error)| weight * error).sum(),
        }
    }
}

/// A number of yes-owners and its weight in a mean. It need not be whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct YesPoint {
    pub(super) yes: f64,
    pub(super) weight: f64,
}

impl From<(f64, f64)> for YesPoint {
    fn from((yes, weight): (f64, f64)) -> Self {
        Self { yes, weight }
    }
}

impl Request {
    /// A request with nothing bounded, for one answer or several.
    pub fn new(owners: u64, yes: Prior) -> Self {
        Self {
            asked: Asked::YesNo,
            owners,
            yes,
            release: None,
            answer_epsilon: None,
            linked_epsilon: None,
            linked_epsilon_for_noise_only: false,
            participation: None,
            honest: Fraction::one(),
            minimum_batch: owners,
            form: Form::One,
            objective: Objective::Sd,
            family: None,
            noise: Noise::None,
            trust: Trust::Owners,
        }
    }

    /// A request for noise with which one honest aggregator is enough, and with the usual limit on the linked ε, which holds if
    /// nobody is honest.
    ///
    /// ```
    /// use uptack::plan::{Prior, Request, least_error};
    /// use uptack::privacy::{Epsilon, linked_epsilon, one_aggregator};
    /// let request = Request::one_aggregator(50_000, Prior::at(500), Epsilon::new(1.0)?)?;
    /// let channel = least_error(&request)?.channel();
    /// assert!(one_aggregator(&channel).is_some_and(|epsilon| epsilon.upper() <= 1.0));
    /// assert!(linked_epsilon(&channel).is_some_and(|epsilon| epsilon <= 8.0));
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn one_aggregator(owners: u64, yes: Prior, epsilon: Epsilon) -> Result<Self> {
        Ok(Self {
            release: Some((epsilon, Delta::new(USUAL_DELTA)?)),
            linked_epsilon: Some(USUAL_LINKED_EPSILON),
            noise: Noise::Aggregators,
            trust: Trust::OneAggregator,
            ..Self::new(owners, yes)
        })
    }

    /// The owners whom every claim counts on: floor(honest · minimum batch).
    pub fn claim_owners(&self) -> Result<u64> {
        privacy::honest_owners(self.minimum_batch, &self.honest)
    }

    /// The ε of the release, if it is bounded.
    pub fn release_epsilon(&self) -> Option<f64> {
        self.release.map(|(epsilon, _)| epsilon.value())
    }

    /// The request for another number of owners, of whom the minimum batch keeps its share; a number that is not whole is
    /// rounded, and zero is taken for one.
    #[must_use]
    pub fn with_owners(&self, owners: f64) -> Self {
        let share = self.minimum_batch as f64 / self.owners as f64;
        let whole = (owners.round() as u64).max(1);
        let minimum_batch = ((owners * share).ceil() as u64).clamp(1, whole);
        Self { owners: whole, minimum_batch, ..self.clone() }
    }

    /// Refuses numbers that do not fit together or are out of range; the error names the [field](Error::field). Every plan
    /// begins with this.
    ///
    /// ```
    /// use uptack::plan::{Prior, Request};
    /// let refused = Request::new(500, Prior::at(501)).check().unwrap_err();
    /// assert_eq!(refused.field(), Some("yes"));
    /// ```
    pub fn check(&self) -> Result<()> {
        self.check_crowd()?;
        self.check_ranges()?;
        self.check_bounded()?;
        self.check_noise()?;
        self.check_asked()?;
        let field = if self.minimum_batch == 0 { "minimum_batch" } else { "honest" };
        self.claim_owners().map(|_| ()).map_err(|error| error.about(field))
    }

    /// Checks that the numbers of owners, of yes-owners and of the smallest batch are possible together.
    fn check_crowd(&self) -> Result<()> {
        let Self { owners, yes, minimum_batch, .. } = self;
        if *owners == 0 || *owners > privacy::MOST_OWNERS {
            return refuse("owners", format!("{owners} owners cannot be planned for"), "give a number from 1 to 1e9");
        }
        if yes.high > *owners {
            return refuse(
                "yes",
                format!("expected yes ({}) exceeds the owners ({owners})", yes.high),
                "give the number of owners whose answer is yes, or a range of it",
            );
        }
        if yes.low > yes.high {
            return refuse(
                "yes",
                format!("the range of expected yes is empty: {} to {}", yes.low, yes.high),
                "give the smaller number first",
            );
        }
        if minimum_batch > owners {
            return refuse(
                "minimum_batch",
                format!("a minimum batch of {minimum_batch} is more than the {owners} owners"),
                "it is the smallest batch that may be released",
            );
        }
        Ok(())
    }

    /// Checks that every bound is in its range.
    fn check_ranges(&self) -> Result<()> {
        for (field, name, bound) in
            [("answer_epsilon", "answer", self.answer_epsilon), ("linked_epsilon", "linked", self.linked_epsilon)]
        {
            if bound.is_some_and(|epsilon| !(epsilon.is_finite() && epsilon > 0.0)) {
                return refuse(
                    field,
                    format!("the {name} epsilon must be a positive number"),
                    "without it, leave the option out",
                );
            }
        }
        if self.release_epsilon().is_some_and(|epsilon| epsilon < LEAST_EPSILON) {
            return refuse(
                "epsilon",
                format!("the epsilon must be at least {LEAST_EPSILON}: with less, the counts carry no information"),
                "give a larger epsilon",
            );
        }
        if self.participation.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return refuse("participation", "the participation must be above 0 and at most 1", "write 0.5 or 50%");
        }
        Ok(())
    }

    /// Checks that something bounds what may be revealed.
    fn check_bounded(&self) -> Result<()> {
        if self.bounds_tallies() || (self.answer_epsilon.is_some() && self.form != Form::Several) {
            return Ok(());
        }
        if self.answer_epsilon.is_none() {
            return refuse(
                "epsilon",
                "nothing bounds what may be revealed, so telling the plain truth would be best",
                "bound the release with an epsilon and a delta, each answer, or the linked epsilon",
            );
        }
        refuse(
            "epsilon",
            "nothing bounds what the tallies of several answers reveal: their noise cancels",
            "bound the release with an epsilon, or the linked epsilon",
        )
    }

    /// Whether the guarantee of the tallies is bounded. A bound on one answer of several does not bound their tallies.
    pub(super) fn bounds_tallies(&self) -> bool {
        self.release.is_some() || self.linked_epsilon.is_some()
    }

    fn check_noise(&self) -> Result<()> {
        match (self.noise, self.trust) {
            (Noise::None, Trust::Owners) => Ok(()),
            (Noise::None, Trust::OneAggregator) => refuse(
                "trust",
                "an honest aggregator that adds no noise hides nobody: it publishes what the owners wrote",
                "let the aggregators add noise, or count on the owners",
            ),
            (Noise::Aggregators | Noise::Any, _) => self.check_added_noise(),
        }
    }

    /// Checks that noise can be planned for this request.
    fn check_added_noise(&self) -> Result<()> {
        if self.release.is_none() {
            return refuse(
                "epsilon",
                "noise is planned for the epsilon of the release, which is missing",
                "give an epsilon",
            );
        }
        if self.objective != Objective::Sd {
            return refuse(
                "trust",
                "the paper's objective looks at the owners' answers alone, and noise changes nothing of it",
                "minimize the error, or plan without noise",
            );
        }
        if self.form == Form::Several && self.noise == Noise::Aggregators {
            return refuse(
                "trust",
                "noise is added to the number of answers 1, and several answers have no such number",
                "plan one answer, or without noise",
            );
        }
        Ok(())
    }

    /// Checks that what is asked can be planned under everything else.
    fn check_asked(&self) -> Result<()> {
        self.asked.check()?;
        if self.asked.is_yes_no() {
            return Ok(());
        }
        if self.form == Form::Several {
            return refuse("form", "several answers are planned for a yes/no question only", "plan one answer");
        }
        if self.objective != Objective::Sd {
            return refuse("objective", "the paper's objective is for a yes/no question", "minimize the error");
        }
        if self.family.as_deref().is_some_and(|family| !Contributions::NAMES.contains(&family)) {
            let [choice, contributions] = Contributions::NAMES;
            let message = format!("only `{choice}` and `{contributions}` have several counts");
            return refuse("family", message, "leave the family out");
        }
        match self.asked {
            Asked::Counts { most, .. } if most > 1 && self.noise == Noise::None => refuse(
                "noise",
                "several contributions of one owner are planned only with noise",
                "let the aggregators add noise, allow one contribution, or ask independent questions",
            ),
            Asked::Counts { .. } if self.most_participation() < 1.0 => refuse(
                "participation",
                "every owner takes part in contributions to several counts",
                "leave the participation out, or plan options",
            ),
            _ => Ok(()),
        }
    }

    /// The δ at which the release is accounted for.
    pub(super) fn target(&self) -> Result<Target> {
        let delta = self.release.map_or_else(|| Delta::new(USUAL_DELTA), |(_, delta)| Ok(delta));
        delta.map(Target::Delta)
    }

    /// The guarantee of a channel's release, for the claim's owners.
    pub(super) fn release_guarantee(&self, channel: &Channel) -> Result<Guarantee> {
        Ok(privacy::release(channel, self.claim_owners()?)?.guarantee(self.target()?))
    }

    /// The error of a channel, as the prior weighs it.
    pub(super) fn predicted_sd(&self, channel: &Channel) -> Result<f64> {
        self.yes.predicted_sd(&Estimator::new(channel)?, self.owners)
    }

    /// Half the width of the interval that a channel is expected to give, as the prior weighs it.
    pub(super) fn predicted_half_width(&self, channel: &Channel, confidence: Confidence) -> Result<f64> {
        self.yes.predicted_half_width(&Estimator::new(channel)?, self.owners, confidence)
    }

    /// The largest share of owners of either truth who may take part.
    pub(super) fn most_participation(&self) -> f64 {
        self.participation.unwrap_or(1.0)
    }

    /// The smaller of the bounds on an owner's only answer; infinite without any.
    pub(super) fn cell_epsilon(&self) -> f64 {
        [self.linked_epsilon, self.answer_epsilon].into_iter().flatten().fold(f64::INFINITY, f64::min)
    }
}

fn refuse(field: &'static str, message: impl Into<String>, hint: &str) -> Result<()> {
    Err(Error::request(message).with_hint(hint).about(field))
}
