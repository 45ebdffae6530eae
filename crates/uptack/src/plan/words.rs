//! A plan in sentences, for people.

use std::iter;

use super::request::{Noise, Objective, Trust};
use super::solve::{Solved, Unknown};
use super::{EQUAL, PlannedMechanism, SelectionRule, usual_linked};
use crate::display::{self, Rounding, grouped};
use crate::fraction::Fraction;
use crate::privacy::Target;

impl Solved {
    /// The value that was solved for, or how much better any other mechanism could be.
    pub fn solved_words(&self) -> String {
        let value = self.value();
        match self.unknown {
            Unknown::Epsilon => format!("The least ε for that error: {}.", display::claim(value)),
            Unknown::Owners if self.plan.trust == Trust::OneAggregator => {
                format!("{} owners are enough for that error; more of them only increase it.", grouped(value as u64))
            }
            Unknown::Owners => format!("The fewest owners for that error: {}.", grouped(value as u64)),
            Unknown::Error => self.gap_words(),
        }
    }

    /// How much better any other mechanism could be.
    fn gap_words(&self) -> String {
        let which = match self.plan.trust {
            Trust::OneAggregator => "of one answer",
            Trust::Owners => "of the families below",
        };
        match self.plan.gap {
            Some(gap) => format!(
                "No mechanism {which} can have an error that is smaller by more than {} %.",
                display::claim(100.0 * gap)
            ),
            None if self.request.noise != Noise::None => {
                "How close this is to the smallest error was not bounded: mechanisms with both coins and noise are not ordered.".to_owned()
            }
            None => "The objective is not the error; how close this is to its minimum was not bounded.".to_owned(),
        }
    }

    /// Who has to be honest for the claim, and what is left if they are not: two sentences.
    pub fn trust_words(&self) -> [String; 2] {
        match self.plan.trust {
            Trust::OneAggregator => self.one_aggregator_words(),
            Trust::Owners => self.owners_words(),
        }
    }

    fn one_aggregator_words(&self) -> [String; 2] {
        let nobody = match self.plan.best.views.linked {
            Some(linked) => format!("an owner's answer reveals at most ε = {}", display::claim(linked)),
            None => "nothing protects an owner's answer".to_owned(),
        };
        let batch = grouped(self.plan.minimum_batch);
        [
            format!(
                "If one of the two aggregators is honest, what is published reveals at most ε = {}, δ = 0, \
                 even if nobody else is.",
                display::claim(self.plan.epsilon())
            ),
            format!("If nobody is honest, {nobody}. Batches below {batch} are not released."),
        ]
    }

    fn owners_words(&self) -> [String; 2] {
        let plan = &self.plan;
        let (owners, batch) = (grouped(plan.claim_owners), grouped(plan.minimum_batch));
        let noise = if plan.best.channel.noise().is_some() { " and one honest aggregator" } else { "" };
        let degraded: Vec<String> = plan.robustness.iter().map(robust).collect();
        [
            format!(
                "What is published reveals at most {}, certified for {owners} honest owners{noise}; batches below {batch} are \
                 not released.",
                self.release_words()
            ),
            format!("With fewer honest owners than that, ε of the release is {}.", degraded.join(", ")),
        ]
    }

    /// The guarantee of the published counts.
    fn release_words(&self) -> String {
        let claim = &self.plan.best.views.release;
        let epsilon = claim.value().map(|epsilon| format!("ε = {}", display::claim(epsilon.upper())));
        match (epsilon, claim.target()) {
            (Some(epsilon), Target::Delta(delta)) => format!("{epsilon} at δ = {}", display::claim(delta.value())),
            (Some(epsilon), Target::Epsilon(_)) => epsilon,
            (None, _) => "everything: there is no guarantee".to_owned(),
        }
    }

    /// Which linked ε the plan chose by itself and what its coins cost; `None` if it was given one.
    pub fn linked_words(&self) -> Option<String> {
        self.plan.best.channel.noise()?;
        usual_linked::words(&self.request, &self.plan.tradeoff, self.plan.best.sd)
    }

    /// The rule by which the plan was chosen among the best of each family.
    pub fn rule_words(&self) -> String {
        match self.plan.rule {
            SelectionRule::Best if matches!(self.request.objective, Objective::Paper { .. }) => {
                "The plan is the best of them by the paper's objective, which is not the error.".to_owned()
            }
            SelectionRule::Best => "The plan is the best of them.".to_owned(),
            SelectionRule::Simplest(_) => {
                format!("The plan is the simplest of those within {} % of the best.", 100.0 * EQUAL)
            }
        }
    }

    /// The best of each family, the least error first, each with how far it is above the least.
    pub fn families(&self) -> Vec<(&PlannedMechanism, String)> {
        let mut choices: Vec<&PlannedMechanism> = iter::once(&self.plan.best).chain(&self.plan.alternatives).collect();
        choices.sort_by(|one, other| one.sd.total_cmp(&other.sd));
        let least = choices[0].sd;
        choices.into_iter().map(|choice| (choice, above_least(choice.sd, least))).collect()
    }
}

/// How far an error is above the least of all.
fn above_least(sd: f64, least: f64) -> String {
    match sd / least - 1.0 {
        0.0 => "least".to_owned(),
        more => format!("+{}", display::percent(more, 2, Rounding::Up)),
    }
}

/// The ε that is left if only a share of the owners is honest.
fn robust((honest, epsilon): &(Fraction, Option<f64>)) -> String {
    format!("{} with {} %", display::claim(*epsilon), 100.0 * honest.to_f64())
}
