//! Ballots: many yes/no queries, of which an owner affirms only a few (`docs/composition.md`, "Ballots").

use super::{Composition, FixedInAdvance, LossDistribution, at_least_one};
use crate::{Error, Result};

/// K queries that everybody answers, with at most k *yes* per owner and independent coins for every query.
///
/// Replacing one owner's ballot by another moves at most k truths from yes to no and at most k from no to yes; the
/// answers to all other queries keep their law whatever the truth. So only min(2k, K) queries count. Needs that
/// **everybody answers all K**: an owner who answers only when the truth is yes reveals it.
///
/// ```
/// use uptack::privacy::composition::Ballot;
/// assert_eq!(Ballot::new(1000, 1)?.changing_queries(), 2);
/// assert_eq!(Ballot::new(5, 4)?.changing_queries(), 5);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ballot {
    queries: u64,
    most_yes: u64,
}

impl Ballot {
    /// A ballot of `queries` with at most `most_yes` *yes* per owner.
    pub fn new(queries: u64, most_yes: u64) -> Result<Self> {
        at_least_one("the number of queries of a ballot", queries)?;
        at_least_one("the number of yes a ballot allows", most_yes)?;
        if most_yes > queries {
            return Err(Error::request(format!(
                "at most {most_yes} yes per owner, but the ballot has only {queries} queries"
            )));
        }
        Ok(Self { queries, most_yes })
    }

    /// The largest number of queries in which two ballots of one owner differ.
    pub fn changing_queries(&self) -> u64 {
        self.most_yes.saturating_mul(2).min(self.queries)
    }

    /// The guarantee for one owner's whole ballot, if `loss` dominates each of its queries.
    pub fn guarantee(&self, loss: LossDistribution) -> Result<Composition> {
        Ok(Composition::new(FixedInAdvance::repeated(loss, self.changing_queries())?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Accuracy, LaplaceProfile};
    use super::*;

    #[test]
    fn a_ballot_costs_its_changing_queries() {
        let profile = LaplaceProfile::new(0.5).unwrap();
        let loss = LossDistribution::from_profile(&profile, Accuracy::for_repetitions(6, 1e-6)).unwrap();
        let ballot = Ballot::new(40, 3).unwrap().guarantee(loss.clone()).unwrap();
        let direct = Composition::new(FixedInAdvance::repeated(loss, 6).unwrap());
        assert_eq!(ballot.epsilon(1e-6).unwrap(), direct.epsilon(1e-6).unwrap());
        // At most the pure sum, up to the one cell per query that reading the profile may cost.
        assert!(ballot.epsilon(1e-6).unwrap().unwrap().upper() <= 3.0 + 6.0 / 64.0);
    }

    #[test]
    fn bad_ballots_are_refused() {
        assert!(Ballot::new(0, 1).is_err() && Ballot::new(3, 0).is_err());
        let error = Ballot::new(3, 4).unwrap_err();
        assert!(error.to_string().contains("only 3 queries"));
    }
}
