//! Mechanisms that the core's planner finds for a wanted guarantee, for the median station of each population.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use uptack::Mechanism;
use uptack::contribution::Contributions;
use uptack::plan::{Asked, Form, Noise, Prior, Request, Trust, USUAL_DELTA, least_error, plan_contributions};
use uptack::privacy::{Delta, Epsilon};

use crate::error::{Error, Result};
use crate::traffic::Traffic;

/// A guarantee of the release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReleaseTarget {
    /// Its ε.
    pub epsilon: f64,
    /// Its δ.
    pub delta: f64,
}

/// The owners that a mechanism is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// All owners.
    pub owners: u64,
    /// The number of them who would say *yes* where the error is to be least.
    pub yes: u64,
}

impl Crowd {
    /// The traffic's population times `factor`, at the median station.
    pub(crate) fn at_median(traffic: &Traffic, factor: u64) -> Self {
        Self { owners: traffic.total() * factor, yes: traffic.median() }
    }

    fn request(self) -> Request {
        Request::new(self.owners, Prior::at(self.yes))
    }

    fn released(self, wanted: ReleaseTarget) -> Result<Request> {
        let release = (Epsilon::new(wanted.epsilon)?, Delta::new(wanted.delta)?);
        Ok(Request { release: Some(release), ..self.request() })
    }
}

/// A guarantee of everything that is published together, with noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyTarget {
    /// The ε if one aggregator is honest.
    pub epsilon: f64,
    /// The ε of all that an owner writes; none if owners write the truth.
    pub linked: Option<f64>,
}

impl NoisyTarget {
    fn request(self, crowd: Crowd, asked: Asked) -> Result<Request> {
        // The claim with one honest aggregator is pure: the planner requires a δ but does not use it.
        let request = crowd.released(ReleaseTarget { epsilon: self.epsilon, delta: USUAL_DELTA })?;
        let (noise, trust) = (Noise::Aggregators, Trust::OneAggregator);
        Ok(Request { asked, linked_epsilon: self.linked, noise, trust, ..request })
    }
}

fn options(places: u64) -> Result<Asked> {
    let options = u32::try_from(places).map_err(|_| Error::new(format!("{places} places are too many")))?;
    Ok(Asked::Options(options))
}

fn planned_contributions(request: &Request) -> Result<Contributions> {
    Ok(plan_contributions(request)?.best.mechanism)
}

/// A plan, or the place of one that some thread is working on.
type PlanSlot = Arc<Mutex<Option<Mechanism>>>;

/// The planned mechanisms of an evaluation. If several comparisons ask for the same one, it is planned once.
#[derive(Debug, Default)]
pub struct Plans {
    known: Mutex<HashMap<String, PlanSlot>>,
}

impl Plans {
    /// The `normal-form` of least error under the guarantee of the release.
    ///
    /// The planner's other families of one answer are left out: they were better by a tenth of a per cent at most, and in
    /// a crowd of 50 million each takes a minute to account for. A test looks for a better one in a smaller crowd.
    pub fn normal_form(&self, crowd: Crowd, wanted: ReleaseTarget) -> Result<Mechanism> {
        self.of_family(crowd, "normal-form", wanted)
    }

    /// The best member of a family under the guarantee of the release.
    pub fn of_family(&self, crowd: Crowd, family: &str, wanted: ReleaseTarget) -> Result<Mechanism> {
        self.least_error(&Request { family: Some(family.to_owned()), ..crowd.released(wanted)? })
    }

    /// The best member of a family of several answers, none of which gives away more than `answer` by itself.
    ///
    /// The release keeps its guarantee, too: a bound on each of several answers does not bound their tallies at all.
    pub fn several_answers(&self, crowd: Crowd, family: &str, wanted: ReleaseTarget, answer: f64) -> Result<Mechanism> {
        let request = Request { family: Some(family.to_owned()), form: Form::Several, ..crowd.released(wanted)? };
        self.least_error(&Request { answer_epsilon: Some(answer), ..request })
    }

    /// The best mechanism of a form whose whole report gives away at most `linked`.
    pub fn linked(&self, crowd: Crowd, form: Form, linked: f64) -> Result<Mechanism> {
        self.least_error(&Request { form, linked_epsilon: Some(linked), ..crowd.request() })
    }

    /// The best mechanism with noise whose release gives away at most `epsilon` if one aggregator is honest, and `linked`
    /// if nobody is.
    pub fn with_noise(&self, crowd: Crowd, epsilon: f64, linked: f64) -> Result<Mechanism> {
        self.least_error(&NoisyTarget { epsilon, linked: Some(linked) }.request(crowd, Asked::YesNo)?)
    }

    /// One choice among `places`, with noise.
    pub fn choice(&self, crowd: Crowd, places: u64, target: NoisyTarget) -> Result<Contributions> {
        planned_contributions(&target.request(crowd, options(places)?)?)
    }

    /// Up to `most` contributions to `counts` counts, with noise.
    pub fn contributions(&self, crowd: Crowd, counts: u32, most: u32, target: NoisyTarget) -> Result<Contributions> {
        planned_contributions(&target.request(crowd, Asked::Counts { counts, most })?)
    }

    /// One choice among `places` by the owners' coins alone, under the guarantee of the release.
    pub fn choice_by_owners(&self, crowd: Crowd, places: u64, wanted: ReleaseTarget) -> Result<Contributions> {
        planned_contributions(&Request { asked: options(places)?, ..crowd.released(wanted)? })
    }

    /// The planner's answer. A thread that asks for what another one is planning waits for it.
    fn least_error(&self, request: &Request) -> Result<Mechanism> {
        let place = {
            // A place is added or read in one step, so that a panic elsewhere cannot leave the map half changed.
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(format!("{request:?}")).or_default())
        };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mechanism) = &*place {
            return Ok(mechanism.clone());
        }
        Ok(place.insert(least_error(request)?).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::estimate::Estimator;
    use uptack::privacy::{answer_epsilon, linked_epsilon, release};

    const WANTED: ReleaseTarget = ReleaseTarget { epsilon: 1.0, delta: 1e-8 };

    fn sd(mechanism: &Mechanism, crowd: Crowd) -> f64 {
        Estimator::new(&mechanism.channel()).unwrap().sd(crowd.owners, crowd.yes as f64).unwrap()
    }

    /// The reference optima for n = 50 000 and (1, 1e-8): 3.872 at f = 0.626 for yes = 0, 7.007 at f = 1 for 500; with
    /// ε ≤ ln 3 of each answer 22.6 for 500.
    #[test]
    fn the_reference_optima_are_found() {
        let found = |yes: u64, plan: &dyn Fn(Crowd) -> Mechanism| {
            let crowd = Crowd { owners: 50_000, yes };
            sd(&plan(crowd), crowd)
        };
        let plans = Plans::default();
        let one = |crowd: Crowd| plans.normal_form(crowd, WANTED).unwrap();
        let several = |crowd: Crowd| plans.several_answers(crowd, "blended", WANTED, 3f64.ln()).unwrap();
        for (found, expected) in [(found(0, &one), 3.872), (found(500, &one), 7.007), (found(500, &several), 22.6)] {
            assert!((found / expected - 1.0).abs() < 0.005, "{found} where {expected} is known");
        }
    }

    /// Planned among all families of one answer, the error is hardly less, wherever the stations' numbers are.
    #[test]
    fn no_other_family_of_one_answer_is_better_by_much() {
        for yes in [0, 4, 140] {
            let crowd = Crowd { owners: 50_186, yes };
            let any = least_error(&crowd.released(WANTED).unwrap()).unwrap();
            let gain = 1.0 - sd(&any, crowd) / sd(&Plans::default().normal_form(crowd, WANTED).unwrap(), crowd);
            assert!(gain < 0.005, "{any}: {gain}");
        }
    }

    /// The reference errors for n = 50 186 and ε = 1 by one honest aggregator, and by the owners' coins at δ = 1e-8: with all
    /// 2 221 stations, and with twelve.
    #[test]
    fn the_reference_choices_are_found() {
        let (plans, sd) = (Plans::default(), |asked: &Contributions, yes: f64| {
            Estimator::new(&asked.count_channel()).unwrap().sd(50_186, yes).unwrap()
        });
        for (places, linked, expected) in [
            (2221, Some(8.0), 7.33),
            (2221, Some(9.0), 5.16),
            (2221, Some(12.0), 4.02),
            (2221, None, 3.96),
            (12, Some(8.0), 5.71),
            (12, Some(9.0), 4.68),
        ] {
            let crowd = Crowd { owners: 50_186, yes: 0 };
            let planned = plans.choice(crowd, places, NoisyTarget { epsilon: 1.0, linked }).unwrap();
            let found = sd(&planned, 0.0);
            assert!((found / expected - 1.0).abs() < 0.005, "{places} {linked:?}: {found}, not {expected}");
        }
        for (places, yes, expected) in [(12, 0, 6.23), (12, 4182, 10.6), (2221, 22, 8.51)] {
            let planned = plans.choice_by_owners(Crowd { owners: 50_186, yes }, places, WANTED).unwrap();
            let found = sd(&planned, yes as f64);
            assert!(found < 1.005 * expected && found > 0.97 * expected, "{places} {yes}: {found}, not {expected}");
        }
    }

    /// In a huge crowd whose stations have grown with it: the errors of one choice by the owners' coins and of one question per
    /// station, each planned for this station, and their linked ε.
    #[test]
    fn owners_coins_in_a_huge_crowd() {
        let (plans, crowd) = (Plans::default(), Crowd { owners: 50_186_000, yes: 22_596 });
        let choice = plans.choice_by_owners(crowd, 2221, WANTED).unwrap();
        let found = Estimator::new(&choice.count_channel()).unwrap().sd(crowd.owners, crowd.yes as f64).unwrap();
        let linked = uptack::privacy::contributions::linked_epsilon(&choice).unwrap();
        assert!((found - 11.1).abs() < 0.05 && (linked - 13.6).abs() < 0.05, "{found} at {linked}");
        let question = plans.normal_form(crowd, ReleaseTarget { epsilon: 0.5, delta: 0.5e-8 }).unwrap();
        let (found, linked) = (sd(&question, crowd), 2.0 * linked_epsilon(&question.channel()).unwrap());
        assert!((found - 11.9).abs() < 0.05 && (linked - 25.55).abs() < 0.05, "{found} at {linked}");
    }

    #[test]
    fn what_is_planned_keeps_and_nearly_exhausts_its_guarantee() {
        let (crowd, plans) = (Crowd { owners: 2000, yes: 4 }, Plans::default());
        let answer = 3f64.ln();
        let several = ["blended", "spread"].map(|family| plans.several_answers(crowd, family, WANTED, answer).unwrap());
        for mechanism in &several {
            let channel = mechanism.channel();
            let answers = (0..channel.answers().len()).map(|k| answer_epsilon(&channel, k).unwrap().unwrap());
            assert!(answers.fold(0.0, f64::max) <= answer + 1e-9, "{mechanism}");
        }
        let shuffled = plans.of_family(crowd, "randomized-response", WANTED).unwrap();
        for mechanism in several.into_iter().chain([shuffled, plans.normal_form(crowd, WANTED).unwrap()]) {
            let claim = release(&mechanism.channel(), 2000).unwrap().epsilon(Delta::new(1e-8).unwrap());
            let upper = claim.value().unwrap().upper();
            assert!(upper <= 1.0 && upper > 0.98, "{mechanism}: {upper}");
        }
        for form in [Form::One, Form::Several] {
            let epsilon = linked_epsilon(&plans.linked(crowd, form, answer).unwrap().channel()).unwrap();
            assert!(epsilon <= answer + 1e-9 && epsilon > answer - 1e-4, "{epsilon}");
        }
    }
}
