//! The largest divergence over all crowds, from both sides.
//!
//! [`crowds`] evaluates crowds, [`sweep`] covers all of them by ranges whose [`range_width`] it learns, [`delta`] and [`epsilon`]
//! choose what the sweep is to show, and [`epsilon_root`] finds the ε at which a crowd reaches a δ. `docs/accounting.md` has the
//! arguments under "Adding an owner never hurts" and "From δ to ε".

mod crowds;
mod delta;
mod epsilon;
mod epsilon_root;
mod range_width;
mod sweep;

use std::sync::Arc;

use super::claim::Found;
use super::effort::WorkLimit;
use super::views::ReducedView;
use crate::certified::enclosure::Enclosure;
use crate::simulate::Progress;
use crowds::Crowds;
use epsilon::EpsilonSearch;

/// How far above the largest value found a certificate may be, and which share of the work that is left it may take.
#[derive(Clone, Copy)]
struct Margin {
    excess: f64,
    share: f64,
}

/// Looks for the worst crowd of one view.
pub(crate) struct Search<'a> {
    crowds: Crowds<'a>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(view: &'a ReducedView, owners: u64, limit: WorkLimit) -> Self {
        Self { crowds: Crowds::new(view, owners, limit) }
    }

    /// The same search, watched.
    pub(crate) fn watched(self, progress: Option<Arc<Progress>>) -> Self {
        Self { crowds: self.crowds.watched(progress) }
    }

    /// The same search without evaluating all crowds one by one, however few they are.
    #[cfg(test)]
    pub(crate) fn without_enumeration(self) -> Self {
        Self { crowds: self.crowds.without_enumeration() }
    }

    /// The smallest δ that any ε reaches, with the crowd that shows it.
    pub(crate) fn floor(&self) -> Found {
        self.crowds.floor()
    }

    /// δ at one ε over all crowds.
    pub(crate) fn delta(&self, epsilon: f64) -> Found {
        delta::over_all_crowds(&self.crowds, epsilon)
    }

    /// ε at one δ over all crowds; none where δ is below the floor.
    pub(crate) fn epsilon(&self, delta: f64) -> Option<Found> {
        Some(self.epsilon_search(delta)?.over_all_crowds())
    }

    /// ε at one δ by the privacy blanket alone.
    pub(crate) fn blanket_epsilon(&self, delta: f64) -> Option<f64> {
        Some(self.epsilon_search(delta)?.by_blanket())
    }

    /// ε at one δ for the two crowds of one truth.
    pub(crate) fn epsilon_of_ends(&self, delta: f64) -> Option<Found> {
        Some(self.epsilon_search(delta)?.of_ends())
    }

    /// δ at one ε for the two crowds of one truth.
    pub(crate) fn delta_of_ends(&self, epsilon: f64) -> Found {
        self.crowds.beyond_all_ratios(epsilon).unwrap_or_else(|| self.crowds.ends_at_depth(epsilon).0)
    }

    /// δ at one ε for the two crowds of one truth and for `crowds` besides, where only values near `delta` matter: far below
    /// it, what is left out may be more than what is computed. Once one crowd is above it, the others are skipped.
    pub(crate) fn delta_near(&self, epsilon: f64, delta: f64, crowds: &[u64]) -> Enclosure {
        if let Some(floor) = self.crowds.beyond_all_ratios(epsilon) {
            return floor.value;
        }
        // Without enumeration, which is for the last digits.
        let question = self.crowds.question(epsilon, Crowds::log_cut(delta, 14.0), delta);
        let mut found = self.crowds.ends_by_formula(question);
        for &crowd in crowds.iter().filter(|_| self.crowds.view.is_exact_in_every_crowd()) {
            if found.lower() > delta {
                break;
            }
            found = found.larger(self.crowds.directly(crowd, self.crowds.rough_question(epsilon, delta)));
        }
        found.value
    }

    /// A crowd whose δ at one ε is certainly above `delta`, if one is among a few that lie closer together towards the ends:
    /// the worst of these.
    pub(crate) fn worse_crowd(&self, epsilon: f64, delta: f64) -> Option<u64> {
        if !self.crowds.view.is_exact_in_every_crowd() || self.crowds.beyond_all_ratios(epsilon).is_some() {
            return None;
        }
        let question = self.crowds.rough_question(epsilon, delta);
        let may_be_worse = |crowd: &u64| self.crowds.directly(*crowd, question.glance()).upper() > delta;
        let worse = self.crowds.by_doubling().filter(may_be_worse).map(|crowd| self.crowds.directly(crowd, question));
        let found = worse.reduce(Found::larger)?;
        (found.lower() > delta).then_some(found.crowd)
    }

    /// The search for the ε of one δ; none where δ is below the floor.
    fn epsilon_search(&self, delta: f64) -> Option<EpsilonSearch<'_, 'a>> {
        (delta >= self.floor().upper()).then(|| EpsilonSearch::new(&self.crowds, delta))
    }
}
