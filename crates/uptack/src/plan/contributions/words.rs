//! A plan of contributions in sentences, for people.

use super::SolvedContributions;
use crate::display::{self, grouped};
use crate::plan::{Trust, Unknown, usual_linked};

impl SolvedContributions {
    /// The value that was solved for; `None` if it is the error.
    pub fn solved_words(&self) -> Option<String> {
        let value = self.value();
        match self.unknown {
            Unknown::Epsilon => Some(format!("The least ε for that error: {}.", display::claim(value))),
            Unknown::Owners if self.plan.trust == Trust::OneAggregator => Some(format!(
                "{} owners are enough for that error; more of them only increase it.",
                grouped(value as u64)
            )),
            Unknown::Owners => Some(format!("The fewest owners for that error: {}.", grouped(value as u64))),
            Unknown::Error => None,
        }
    }

    /// Which linked ε the plan chose by itself and what its coins cost; `None` if it was given one.
    pub fn linked_words(&self) -> Option<String> {
        self.plan.best.mechanism.noise()?;
        usual_linked::words(&self.request, &self.plan.tradeoff, self.plan.best.sd)
    }

    /// A warning about bounds on the linked ε under which the error is large whatever the encoding; `None` where there are none.
    pub fn tradeoff_words(&self) -> Option<String> {
        let asked = self.request.asked;
        let poor = self.plan.tradeoff.iter().filter_map(|one| one.linked).filter(|linked| asked.is_poor_at(*linked));
        let largest =
            poor.fold(None, |largest: Option<f64>, linked| Some(largest.map_or(linked, |one| one.max(linked))))?;
        Some(format!(
            "With a linked ε of {} or less the error is large: {} contributions share it among {} counts. Independent answers to \
             every count would at best halve the error. Allow fewer contributions, or a larger linked ε.",
            display::nearest(largest),
            asked.most(),
            grouped(asked.counts().into()),
        ))
    }
}
