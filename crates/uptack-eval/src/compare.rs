//! What is set side by side, and at which guarantee.

use std::fmt;

use serde::Serialize;
use uptack::Mechanism;
use uptack::plan::Form;

use crate::error::Error;
use crate::method::{Curator, Method, Oracle, OracleKind};
use crate::planned::{Crowd, Plans, Wanted};

/// What the methods of a comparison have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The paper's own settings, whatever they give away.
    Paper,
    /// Equal (ε, δ) of the release.
    Release,
    /// Equal ε of one owner's single answer.
    Answer,
    /// Equal ε of one owner's whole report.
    Linked,
}

impl Comparison {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Paper, Self::Release, Self::Answer, Self::Linked];
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Release => "release",
            Self::Answer => "answer",
            Self::Linked => "linked",
        })
    }
}

/// The guarantees at which methods are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Of the release.
    pub release: Wanted,
    /// Of a single answer: ε = ln 3, where randomized response tells the truth three times out of four.
    pub answer: f64,
    /// Of the whole report, likewise.
    pub linked: f64,
}

impl Default for Levels {
    fn default() -> Self {
        let three = 3f64.ln();
        Self { release: Wanted { epsilon: 1.0, delta: 1e-8 }, answer: three, linked: three }
    }
}

/// All methods of a comparison for this crowd and this many stations.
pub fn methods(
    comparison: Comparison,
    crowd: Crowd,
    stations: u64,
    levels: &Levels,
    plans: &Plans,
) -> Result<Vec<Method>, Error> {
    let (release, answer) = (levels.release, levels.answer);
    let several = |family: &str| -> Result<Method, Error> {
        Ok(Method::family(format!("planned {family}"), plans.several_answers(crowd, family, release, answer)?))
    };
    let mut methods = Vec::new();
    match comparison {
        Comparison::Paper => methods.extend(settings(&PAPER)?),
        Comparison::Release => {
            methods.push(Method::family(NORMAL_FORM, plans.normal_form(crowd, release)?));
            // With the bound on its answers, so that it is the same as in their comparison.
            methods.push(several("blended")?);
            let shuffled = plans.of_family(crowd, "randomized-response", release)?;
            methods.push(Method::baseline("shuffled randomized response", shuffled));
            methods.extend(local(release.epsilon, stations)?);
            methods.push(Method::curator(Curator::gaussian(release.epsilon, release.delta)?));
            methods.push(Method::curator(Curator::laplace(release.epsilon)?));
        }
        Comparison::Answer => {
            methods.extend([several("blended")?, several("spread")?]);
            methods.extend(local(answer, stations)?);
        }
        Comparison::Linked => {
            methods.push(Method::family("planned, one answer", plans.linked(crowd, Form::One, levels.linked)?));
            methods
                .push(Method::family("planned, several answers", plans.linked(crowd, Form::Several, levels.linked)?));
            methods.extend(settings(&LINKED_AT_THREE)?);
            methods.extend(local(levels.linked, stations)?);
        }
    }
    Ok(methods)
}

/// What people call the planned mechanism of one answer.
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

/// Members of the family whose largest ratio over the cells is exactly 3, where a plan would not put them: it makes
/// randomized response of each.
const LINKED_AT_THREE: [(&str, &str); 5] = [
    ("normal form, f = ½", "normal-form(f=0.5,r=0.125)"),
    ("sampling and noise", "noisy-sampling(sy=0.3,sn=0.1)"),
    ("first attempt (paired)", "paired(b=0.5,sy=1/4,sn=1/12)"),
    ("blended, f = ½", "blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.125,rn=0.125)"),
    ("spread, two pairs", "spread(pairs=2,f=1,r=0.25)"),
];

fn settings(list: &[(&str, &str)]) -> Result<Vec<Method>, Error> {
    let method = |(label, text): &(&str, &str)| -> Result<Method, Error> {
        let mechanism: Mechanism = text.parse()?;
        let of = if text.starts_with("randomized") { Method::baseline } else { Method::family };
        Ok(of((*label).to_owned(), mechanism))
    };
    list.iter().map(method).collect()
}

/// Randomized response and the frequency oracles under a local ε.
pub fn local(epsilon: f64, stations: u64) -> Result<Vec<Method>, Error> {
    let mut methods = vec![Method::baseline("randomized response", randomized_response(epsilon)?)];
    for kind in OracleKind::ALL {
        methods.push(Method::oracle(Oracle::new(kind, epsilon, stations)?));
    }
    Ok(methods)
}

/// Randomized response whose ε is at most this, to six digits.
pub fn randomized_response(epsilon: f64) -> Result<Mechanism, Error> {
    let truth = epsilon.exp() / (1.0 + epsilon.exp());
    // A truth of 3/4 comes out as 0.7500000000000001 or so; downwards is towards more privacy.
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

    fn claims(method: &Method) -> crate::method::Claims {
        method.claims(CROWD.owners, 1e-8).unwrap()
    }

    #[test]
    fn everybody_keeps_the_guarantee_of_the_comparison() {
        let levels = Levels::default();
        let within = |value: Option<f64>, most: f64| value.is_some_and(|value| value <= most + 1e-9);
        for method in methods(Comparison::Release, CROWD, STATIONS, &levels, &Plans::default()).unwrap() {
            assert!(within(claims(&method).release(), 1.0), "{}", method.label);
        }
        for method in methods(Comparison::Answer, CROWD, STATIONS, &levels, &Plans::default()).unwrap() {
            assert!(within(claims(&method).answer(), levels.answer), "{}", method.label);
        }
        for method in methods(Comparison::Linked, CROWD, STATIONS, &levels, &Plans::default()).unwrap() {
            assert!(within(claims(&method).linked(), levels.linked), "{}", method.label);
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
        for method in settings(&LINKED_AT_THREE).unwrap() {
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
