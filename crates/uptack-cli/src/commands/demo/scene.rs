//! The scene of a demo: vehicles at stations, a question, and the vehicles' policy.

use std::iter::{repeat, repeat_n};

use uptack::card::Card;
use uptack::estimate::Estimator;
use uptack::plan::{Form, Over, Plan, Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon};
use uptack::{Fraction, Mechanism};
use uptack_owner::attributes::{self, Named};

use crate::failure::Result;

/// Stations are numbered; the first ones are the busiest.
const STATIONS: u64 = 40;
/// The station that is asked about, and the one with few vehicles.
const STATION: u64 = 7;
/// How many vehicles are at a station with few. With many more, those that stay silent would be missed in the count.
const FEW: u64 = 5;
/// ε of the published count, in every scene.
const EPSILON: f64 = 1.0;
const DELTA: f64 = 1e-6;

/// What hides a vehicle in the published count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// Noise of the aggregators, one of them honest.
    Aggregators,
    /// The other vehicles' coins.
    Owners,
    /// The same, and a single answer by itself is mostly noise.
    SeveralAnswers,
}

#[derive(Clone, Copy)]
pub(super) struct Scene {
    vehicles: u64,
    hidden: Hidden,
    /// The station that is asked about.
    station: u64,
    /// How many vehicles are at the station.
    truth: u64,
}

impl Scene {
    /// A busy station, and noise added by the aggregators.
    pub(super) fn station(vehicles: u64) -> Self {
        Self { vehicles, hidden: Hidden::Aggregators, station: STATION, truth: usual_share(STATION, vehicles) }
    }

    /// A station with few vehicles, hidden by the others' coins.
    pub(super) fn rare(vehicles: u64) -> Self {
        Self { vehicles, hidden: Hidden::Owners, station: STATION, truth: FEW }
    }

    /// A limit on each single answer.
    pub(super) fn answers(vehicles: u64) -> Self {
        Self { hidden: Hidden::SeveralAnswers, ..Self::station(vehicles) }
    }

    /// The same about another station, one for each round; with few vehicles, about the same station.
    pub(super) fn again(self, round: u64) -> Self {
        if self.hidden == Hidden::Owners {
            return self;
        }
        // A step that visits all stations before it comes back to one.
        let station = (STATION + 11 * round - 1) % STATIONS + 1;
        Self { station, truth: usual_share(station, self.vehicles), ..self }
    }

    pub(super) fn truth(&self) -> u64 {
        self.truth
    }

    pub(super) fn question(&self) -> String {
        format!("How many vehicles are at station {}?", self.station)
    }

    /// The vehicles; those at no station are on the road and lack the attribute.
    pub(super) fn vehicles(&self) -> Result<Vec<Named>> {
        let places = self.stations().chain(repeat(String::new())).take(self.vehicles as usize);
        let rows = places.enumerate().map(|(index, station)| format!("vehicle-{},{station}\n", index + 1));
        Ok(attributes::fleet_from_csv(&format!("owner,station\n{}", rows.collect::<String>()), None)?.owners)
    }

    /// The station of every vehicle that is at one.
    fn stations(&self) -> impl Iterator<Item = String> {
        (1..=STATIONS).flat_map(|station| repeat_n(station.to_string(), self.at(station) as usize))
    }

    /// How many vehicles are at a station.
    fn at(&self, station: u64) -> u64 {
        if station == self.station { self.truth } else { usual_share(station, self.vehicles) }
    }

    /// The card as the desk is asked to open it, and the error of the obvious alternative.
    pub(super) fn planned(&self) -> Result<(Card, Gain)> {
        let request = self.request()?;
        let plan = plan(&request)?;
        Ok((self.card(&request, &plan), self.gain(&plan)?))
    }

    fn card(&self, request: &Request, plan: &Plan) -> Card {
        Card {
            question: Some(self.question()),
            predicate: Some(format!("station == \"{}\"", self.station)),
            attributes: vec!["station".to_owned()],
            ..Card::new(request, plan)
        }
    }

    /// A vehicle's policy, as TOML.
    pub(super) fn policy(&self, signer: &str) -> String {
        format!("{}[lifetime]\nlinked = 100.0\nrelease = 10.0\ndelta = 1e-4\n", self.limits_of_a_card(signer))
    }

    /// A vehicle's policy in a demo that keeps running: any number of questions.
    pub(super) fn endless_policy(&self, signer: &str) -> String {
        let card = self.limits_of_a_card(signer);
        format!("{card}[lifetime]\nlinked = \"unlimited\"\nrelease = \"unlimited\"\ndelta = 1e-4\n")
    }

    fn limits_of_a_card(&self, signer: &str) -> String {
        let trust = if self.hidden == Hidden::Aggregators { "one-aggregator" } else { "owners" };
        format!(
            "signers = [\"{signer}\"]\nattributes = [\"station\"]\n\
             [card]\ntrust = \"{trust}\"\nanswer = 16.0\nlinked = 16.0\nrelease = {EPSILON:?}\n\
             answer-with-release = 16.0\ndelta = {DELTA}\nhonest = 0.9\nseparate-operators = false\nenrolment = false\n"
        )
    }

    fn request(&self) -> Result<Request> {
        let epsilon = Epsilon::new(EPSILON)?;
        let private = match self.hidden {
            Hidden::Aggregators => Request::one_aggregator(self.vehicles, self.prior(), epsilon)?,
            Hidden::Owners => Request::new(self.vehicles, self.prior()),
            Hidden::SeveralAnswers => Request {
                answer_epsilon: Some(ANSWER),
                form: Form::Several,
                ..Request::new(self.vehicles, self.prior())
            },
        };
        Ok(Request {
            release: Some((epsilon, Delta::new(DELTA)?)),
            honest: Fraction::new(9, 10)?,
            minimum_batch: self.vehicles - self.vehicles / 20,
            ..private
        })
    }

    fn prior(&self) -> Prior {
        Prior { low: 0, high: self.expected(), over: Over::Worst }
    }

    /// How many vehicles are expected at the station at most.
    fn expected(&self) -> u64 {
        if self.hidden == Hidden::Owners { 2 * FEW } else { self.vehicles / 10 }
    }

    /// The alternative that the plan is compared with.
    fn gain(&self, plan: &Plan) -> Result<Gain> {
        match self.hidden {
            // The noise replaces coins that alone would keep the same ε.
            Hidden::Aggregators => self.randomized_response("with coins alone, trusting nobody", EPSILON),
            Hidden::SeveralAnswers => self.randomized_response("with one answer under the same limit", ANSWER),
            Hidden::Owners => Ok(gain_of_silence(plan)),
        }
    }

    /// The error of randomized response with this ε.
    fn randomized_response(&self, what: &'static str, epsilon: f64) -> Result<Gain> {
        let truthful = epsilon.exp() / (1.0 + epsilon.exp());
        let mechanism: Mechanism = format!("randomized-response(t={truthful})").parse()?;
        let estimator = Estimator::new(&mechanism.channel())?;
        Ok(Gain { what, sd: self.prior().predicted_sd(&estimator, self.vehicles)? })
    }
}

/// The error of the best mechanism that never stays silent.
fn gain_of_silence(plan: &Plan) -> Gain {
    let spoken = plan.alternatives.iter().find(|choice| choice.mechanism.name() == "randomized-response");
    Gain { what: "without ⊥", sd: spoken.map_or(plan.best.sd, |choice| choice.sd) }
}

/// ε of a single answer in the scene about answers: ln 3, odds of three to one.
const ANSWER: f64 = 1.0986;

/// The error of something that could have been used instead.
pub(super) struct Gain {
    pub(super) what: &'static str,
    pub(super) sd: f64,
}

/// How many vehicles are usually at a station; many stations are small, and few are large.
fn usual_share(station: u64, vehicles: u64) -> u64 {
    let weight = |station: u64| 1.0 / (station + 1) as f64;
    let all: f64 = (1..=STATIONS).map(weight).sum();
    (vehicles as f64 * weight(station) / all).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_is_the_number_of_vehicles_at_the_station() {
        for scene in [Scene::station(3000), Scene::rare(3000), Scene::answers(100)] {
            let fleet = scene.vehicles().unwrap();
            assert_eq!(fleet.len() as u64, scene.vehicles);
            assert!(scene.truth > 0 && scene.truth <= scene.expected(), "{}", scene.truth);
        }
    }

    #[test]
    fn rounds_come_by_all_stations() {
        let first = Scene::station(3000);
        let mut asked: Vec<u64> = (0..STATIONS).map(|round| first.again(round).station).collect();
        assert_eq!(asked[0], STATION);
        asked.sort_unstable();
        assert_eq!(asked, (1..=STATIONS).collect::<Vec<u64>>());
        assert_eq!(Scene::rare(3000).again(5).truth, FEW);
    }

    #[test]
    fn silence_reduces_the_error_where_few_say_yes() {
        let (card, gain) = Scene::rare(20_000).planned().unwrap();
        assert_ne!(card.mechanism.name(), "randomized-response");
        assert!(gain.sd > 1.1 * card.predicted.sd.value(), "{}", gain.sd);
    }
}
