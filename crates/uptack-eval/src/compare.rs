//! Which methods are compared, and at which guarantee.

use std::fmt;

use serde::Serialize;
use uptack::Mechanism;
use uptack::plan::Form;

use crate::error::Result;
use crate::method::{ChangedCounts, Curator, Method, MethodOrigin, Oracle, OracleKind};
use crate::planned::{Crowd, NoisyTarget, Plans, ReleaseTarget};

/// What the methods of a comparison have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Equal ε of the release of all stations at once, each owner being at one of them.
    Choice,
    /// Equal ε of the whole report about all stations at once.
    ChoiceLinked,
    /// Equal ε of the release, by who must be honest.
    Trust,
    /// Equal (ε, δ) of the release.
    Release,
    /// Equal ε of one owner's single answer.
    Answer,
    /// Equal ε of one owner's whole report.
    Linked,
    /// The paper's own settings, whose guarantees differ.
    Paper,
}

impl Comparison {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 7] =
        [Self::Choice, Self::ChoiceLinked, Self::Trust, Self::Release, Self::Answer, Self::Linked, Self::Paper];
}

/// As in JSON.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The guarantees at which methods are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Of the release.
    pub release: ReleaseTarget,
    /// Of a single answer: ε = ln 3, where randomized response tells the truth three times out of four.
    pub answer: f64,
    /// Of the whole report, likewise.
    pub linked: f64,
    /// Of the whole report about all stations: as much as an owner's policy usually allows.
    pub choice_linked: f64,
}

impl Levels {
    /// The ε at which a comparison is made; none if its methods differ in it.
    pub(crate) fn epsilon(&self, comparison: Comparison) -> Option<f64> {
        match comparison {
            Comparison::Choice | Comparison::Trust | Comparison::Release => Some(self.release.epsilon),
            Comparison::ChoiceLinked => Some(self.choice_linked),
            Comparison::Answer => Some(self.answer),
            Comparison::Linked => Some(self.linked),
            Comparison::Paper => None,
        }
    }
}

impl Default for Levels {
    fn default() -> Self {
        let three = 3f64.ln();
        let release = ReleaseTarget { epsilon: 1.0, delta: 1e-8 };
        Self { release, answer: three, linked: three, choice_linked: 8.0 }
    }
}

/// All methods of a comparison for this crowd, in which every owner is at one of so many places.
pub fn methods(
    comparison: Comparison,
    crowd: Crowd,
    places: u64,
    levels: &Levels,
    plans: &Plans,
) -> Result<Vec<Method>> {
    let choice = MethodChoice { crowd, places, levels, plans };
    match comparison {
        Comparison::Choice => choice.by_choice(),
        Comparison::ChoiceLinked => choice.by_choice_linked(),
        Comparison::Trust => choice.by_trust(),
        Comparison::Release => choice.by_release(),
        Comparison::Answer => choice.by_answer(),
        Comparison::Linked => choice.by_linked(),
        Comparison::Paper => fixed_settings(&PAPER),
    }
}

/// The choice of methods for a crowd and its guarantees.
struct MethodChoice<'a> {
    crowd: Crowd,
    places: u64,
    levels: &'a Levels,
    plans: &'a Plans,
}

impl MethodChoice<'_> {
    /// Every owner is at exactly one place, so that two published counts change if it moves: planned choices with the aggregators'
    /// noise or by the owners' coins, the frequency oracles, which are made for this, and a curator.
    fn by_choice(&self) -> Result<Vec<Method>> {
        let release = self.levels.release;
        let mut methods = Vec::new();
        for linked in CHOICE_LINKED {
            methods.push(self.choice(linked)?);
        }
        methods.extend([self.choice_without_coins()?, self.choice_by_owners()?, self.ballot_of_normal_forms()?]);
        methods.extend(oracles(release.epsilon, self.places)?);
        methods.extend(curators(release, ChangedCounts::Two)?.map(Method::in_a_ballot));
        Ok(methods)
    }

    /// The same with the ε of the whole report fixed. Only the first two also bound the release, by noise.
    fn by_choice_linked(&self) -> Result<Vec<Method>> {
        let linked = self.levels.choice_linked;
        let mut methods = vec![self.choice(linked)?, self.ballot_with_noise(linked)?];
        methods.extend(oracles(linked, self.places)?);
        Ok(methods)
    }

    /// One choice among all places with noise, for one honest aggregator.
    fn choice(&self, linked: f64) -> Result<Method> {
        let target = NoisyTarget { epsilon: self.levels.release.epsilon, linked: Some(linked) };
        Ok(Method::contributions(planned_choice(linked), self.plans.choice(self.crowd, self.places, target)?))
    }

    /// The same without a channel: owners write the truth.
    fn choice_without_coins(&self) -> Result<Method> {
        let target = NoisyTarget { epsilon: self.levels.release.epsilon, linked: None };
        let planned = self.plans.choice(self.crowd, self.places, target)?;
        Ok(Method { kind: MethodOrigin::Baseline, ..Method::contributions(NOISE_ALONE, planned) })
    }

    /// One choice among all places without noise.
    fn choice_by_owners(&self) -> Result<Method> {
        let planned = self.plans.choice_by_owners(self.crowd, self.places, self.levels.release)?;
        Ok(Method::contributions(CHOICE_BY_OWNERS, planned))
    }

    /// One question per place: each of the two counts that change has half of what both may give away.
    fn ballot_of_normal_forms(&self) -> Result<Method> {
        let planned = self.plans.normal_form(self.crowd, half(self.levels.release))?;
        Ok(Method::family(BALLOT_OF_NORMAL_FORMS, planned).in_a_ballot())
    }

    /// The same with noise, where the two also share the ε of the whole report.
    fn ballot_with_noise(&self, linked: f64) -> Result<Method> {
        let epsilon = half(self.levels.release).epsilon;
        let planned = self.plans.with_noise(self.crowd, epsilon, linked / 2.0)?;
        Ok(Method::family(BALLOT_WITH_NOISE, planned).in_a_ballot())
    }

    /// From no trust to full trust: randomized response, the owners' coins, the aggregators' noise, a curator.
    fn by_trust(&self) -> Result<Vec<Method>> {
        let epsilon = self.levels.release.epsilon;
        let mut methods = vec![
            Method::baseline(RANDOMIZED_RESPONSE, randomized_response(epsilon)?),
            self.normal_form(self.levels.release)?,
            noise_alone(epsilon)?,
        ];
        for linked in LINKED_WITH_NOISE {
            methods.push(self.with_noise(epsilon, linked)?);
        }
        methods.extend(curators(self.levels.release, ChangedCounts::One)?);
        Ok(methods)
    }

    fn by_release(&self) -> Result<Vec<Method>> {
        let release = self.levels.release;
        let shuffled = self.plans.of_family(self.crowd, "randomized-response", release)?;
        // The blended one keeps the bound on single answers, so that it is the same as in that comparison.
        let mut methods = vec![
            self.normal_form(release)?,
            self.several("blended")?,
            Method::baseline("shuffled randomized response", shuffled),
        ];
        methods.extend(local(release.epsilon, self.places)?);
        methods.extend(curators(release, ChangedCounts::One)?);
        Ok(methods)
    }

    fn by_answer(&self) -> Result<Vec<Method>> {
        let mut methods = vec![self.several("blended")?, self.several("spread")?];
        methods.extend(local(self.levels.answer, self.places)?);
        Ok(methods)
    }

    fn by_linked(&self) -> Result<Vec<Method>> {
        let mut methods = vec![
            self.linked("planned, one answer", Form::One)?,
            self.linked("planned, several answers", Form::Several)?,
        ];
        methods.extend(fixed_settings(&LINKED_AT_THREE)?);
        methods.extend(local(self.levels.linked, self.places)?);
        Ok(methods)
    }

    fn normal_form(&self, wanted: ReleaseTarget) -> Result<Method> {
        Ok(Method::family(NORMAL_FORM, self.plans.normal_form(self.crowd, wanted)?))
    }

    fn linked(&self, label: &str, form: Form) -> Result<Method> {
        Ok(Method::family(label, self.plans.linked(self.crowd, form, self.levels.linked)?))
    }

    fn several(&self, family: &str) -> Result<Method> {
        let mechanism = self.plans.several_answers(self.crowd, family, self.levels.release, self.levels.answer)?;
        Ok(Method::family(format!("planned {family}"), mechanism))
    }

    /// Planned for one honest aggregator.
    fn with_noise(&self, epsilon: f64, linked: f64) -> Result<Method> {
        Ok(Method::family(planned_with_noise(linked), self.plans.with_noise(self.crowd, epsilon, linked)?))
    }
}

/// The bounds on the linked ε of planned choices.
pub(crate) const CHOICE_LINKED: [f64; 3] = [8.0, 9.0, 12.0];

/// The label of a planned choice with noise.
pub fn planned_choice(linked: f64) -> String {
    format!("planned choice with noise, linked ε ≤ {linked}")
}

/// The label of a planned choice without noise.
pub const CHOICE_BY_OWNERS: &str = "planned choice, owners' coins";
/// The label of one question per station in a ballot, without noise.
pub const BALLOT_OF_NORMAL_FORMS: &str = "one normal form per station";
/// The label of one question per station in a ballot, with noise.
pub const BALLOT_WITH_NOISE: &str = "one question per station, with noise";

/// The share of each of two counts.
fn half(release: ReleaseTarget) -> ReleaseTarget {
    ReleaseTarget { epsilon: release.epsilon / 2.0, delta: release.delta / 2.0 }
}

/// The bounds on the linked ε of plans with noise.
const LINKED_WITH_NOISE: [f64; 3] = [12.0, 9.0, 7.0];

/// The label of a plan with noise.
pub fn planned_with_noise(linked: f64) -> String {
    format!("planned with noise, linked ε ≤ {linked}")
}

/// Noise as libprio adds it, and nothing else: owners write the truth.
pub fn noise_alone(epsilon: f64) -> Result<Method> {
    Ok(Method::baseline(NOISE_ALONE, told_with_noise(epsilon)?))
}

/// The mechanism of [`noise_alone`].
pub(crate) fn told_with_noise(epsilon: f64) -> Result<Mechanism> {
    // The scale is a ratio: 1/ε to nine places, rounded up towards more privacy.
    let scale = (1e9 / epsilon).ceil() as u64;
    Ok(format!("randomized-response(t=1) + laplace(scale={scale}/1000000000)").parse()?)
}

/// The label of the aggregators' noise without a channel.
pub const NOISE_ALONE: &str = "Prio with noise, no channel";
/// The label of randomized response under a local ε.
pub const RANDOMIZED_RESPONSE: &str = "randomized response";

/// Trusted curators at this guarantee for all counts that change.
pub fn curators(ReleaseTarget { epsilon, delta }: ReleaseTarget, changes: ChangedCounts) -> Result<[Method; 2]> {
    Ok([Curator::gaussian(epsilon, delta, changes)?, Curator::laplace(epsilon, changes)?].map(Method::curator))
}

/// The label of the planned mechanism of one answer.
pub const NORMAL_FORM: &str = "planned normal form";

/// The paper's settings where it names them (5 % sampled; truth told more than 80 % of the time), and values of the same
/// size where it does not.
const PAPER: [(&str, &str); 8] = [
    ("randomized response, truth 85 %", "randomized-response(t=0.85)"),
    ("sampling", "sampling(sy=0.05,sn=0.05)"),
    ("sampling and noise", "noisy-sampling(sy=0.05,sn=0.01)"),
    ("sampling and deniability", "deniable-sampling(sy=0.05,sn=0.05,p1=0.85,p2=0.3)"),
    ("tuned mechanism", "tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)"),
    ("first attempt (paired)", "paired(b=0.5,sy=0.05,sn=0.01)"),
    ("cancelling the noise", "cancelling(b1=0.3,b2=0.3,b3=0.35,s=0.05)"),
    ("blended", "blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0.0001,rn=0.0001)"),
];

/// Members of the family whose largest likelihood ratio over the cells is exactly 3. A plan would not choose them: it
/// turns each family into randomized response.
const LINKED_AT_THREE: [(&str, &str); 5] = [
    ("normal form, f = ½", "normal-form(f=0.5,r=0.125)"),
    ("sampling and noise", "noisy-sampling(sy=0.3,sn=0.1)"),
    ("first attempt (paired)", "paired(b=0.5,sy=1/4,sn=1/12)"),
    ("blended, f = ½", "blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.125,rn=0.125)"),
    ("spread, two pairs", "spread(pairs=2,f=1,r=0.25)"),
];

fn fixed_settings(list: &[(&str, &str)]) -> Result<Vec<Method>> {
    list.iter().map(|(label, mechanism)| fixed_setting(label, mechanism)).collect()
}

fn fixed_setting(label: &str, text: &str) -> Result<Method> {
    let mechanism: Mechanism = text.parse()?;
    let method = if text.starts_with("randomized") { Method::baseline } else { Method::family };
    Ok(method(label, mechanism))
}

/// Randomized response and the frequency oracles under a local ε.
pub fn local(epsilon: f64, places: u64) -> Result<Vec<Method>> {
    let mut methods = vec![Method::baseline(RANDOMIZED_RESPONSE, randomized_response(epsilon)?)];
    methods.extend(oracles(epsilon, places)?);
    Ok(methods)
}

fn oracles(epsilon: f64, places: u64) -> Result<Vec<Method>> {
    OracleKind::ALL.into_iter().map(|kind| Ok(Method::oracle(Oracle::new(kind, epsilon, places)?))).collect()
}

/// Randomized response with an ε of at most this, to six digits.
pub fn randomized_response(epsilon: f64) -> Result<Mechanism> {
    let truth = epsilon.exp() / (1.0 + epsilon.exp());
    // A truth of 3/4 comes out as 0.7500000000000001 or so; rounding down is towards more privacy.
    let truth = ((truth * 1e6 + 1e-6).floor() / 1e6).max(0.5);
    Ok(format!("randomized-response(t={truth})").parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::estimate::Estimator;
    use uptack::privacy;

    const CROWD: Crowd = Crowd { owners: 5000, yes: 4 };
    const STATIONS: u64 = 50;

    fn claims(method: &Method) -> crate::method::MethodClaims {
        method.claims(CROWD.owners, 1e-8).unwrap()
    }

    #[test]
    fn everybody_keeps_the_guarantee_of_the_comparison() {
        let levels = Levels::default();
        let within = |value: Option<f64>, most: f64| value.is_some_and(|value| value <= most + 1e-9);
        for method in methods(Comparison::Release, CROWD, STATIONS, &levels, &Plans::default()).unwrap() {
            assert!(within(claims(&method).release(), 1.0), "{}", method.label);
        }
        for comparison in [Comparison::Choice, Comparison::Trust] {
            for method in methods(comparison, CROWD, STATIONS, &levels, &Plans::default()).unwrap() {
                let claims = claims(&method);
                assert!(within(claims.release(), 1.0), "{comparison}: {}", method.label);
                assert_eq!(claims.one_aggregator().is_some(), method.is_noisy(), "{}", method.label);
            }
        }
        for method in methods(Comparison::Answer, CROWD, STATIONS, &levels, &Plans::default()).unwrap() {
            assert!(within(claims(&method).answer(), levels.answer), "{}", method.label);
        }
        for method in methods(Comparison::Linked, CROWD, STATIONS, &levels, &Plans::default()).unwrap() {
            assert!(within(claims(&method).linked(), levels.linked), "{}", method.label);
        }
    }

    /// The error with noise, by the closed form: sd 1.919 without a channel, 3.959 at half of ε.
    #[test]
    fn noise_has_the_error_of_its_formula() {
        let sd = |method: &Method, owners: u64| {
            Estimator::new(&method.channel().unwrap().unwrap()).unwrap().sd(owners, 4.0).unwrap()
        };
        for (epsilon, expected) in [(1.0, 1.919), (0.5, 3.959), (2.0, 0.851)] {
            let found = sd(&noise_alone(epsilon).unwrap(), 50_000);
            assert!((found / expected - 1.0).abs() < 1e-3, "{epsilon}: {found}");
        }
        let crowd = Crowd { owners: 50_000, yes: 4 };
        for (linked, expected) in [(12.0, 1.997), (9.0, 3.139), (7.0, 7.025)] {
            let planned = Plans::default().with_noise(crowd, 1.0, linked).unwrap();
            let channel = planned.channel();
            assert!(privacy::one_aggregator(&channel).unwrap().upper() <= 1.0, "{planned}");
            assert!(privacy::linked_epsilon(&channel).unwrap() <= linked + 1e-9, "{planned}");
            let found = sd(&Method::family("", planned), crowd.owners);
            assert!(found < 1.01 * expected && found > 0.9 * expected, "{linked}: {found}");
        }
    }

    /// At equal linked ε nothing has less error than randomized response, whatever the truth.
    #[test]
    fn nothing_beats_randomized_response_at_equal_linked_epsilon() {
        let randomized = Estimator::new(&randomized_response(3f64.ln()).unwrap().channel()).unwrap();
        for method in methods(Comparison::Linked, CROWD, STATIONS, &Levels::default(), &Plans::default()).unwrap() {
            let estimator = Estimator::new(&method.channel().unwrap().unwrap()).unwrap();
            for yes in [0.0, 4.0, 500.0, 2500.0] {
                let (ours, theirs) = (estimator.sd(5000, yes).unwrap(), randomized.sd(5000, yes).unwrap());
                assert!(ours >= theirs * (1.0 - 1e-4), "{} at {yes}: {ours} against {theirs}", method.label);
            }
        }
    }

    #[test]
    fn the_linked_settings_are_at_three_exactly() {
        for method in fixed_settings(&LINKED_AT_THREE).unwrap() {
            let epsilon = privacy::linked_epsilon(&method.channel().unwrap().unwrap()).unwrap();
            assert!((epsilon - 3f64.ln()).abs() < 1e-9, "{}: {epsilon}", method.label);
        }
    }

    #[test]
    fn randomized_response_never_exceeds_its_epsilon() {
        for epsilon in [0.1, 1.0, 3f64.ln(), 4.0] {
            let found = privacy::linked_epsilon(&randomized_response(epsilon).unwrap().channel()).unwrap();
            assert!(found <= epsilon + 1e-12 && found > epsilon - 1e-3, "{epsilon}: {found}");
        }
    }
}
