//! Parts of a card that nothing else on it determines: whether they are plausible, and a list of them for readers of a card that
//! nobody signed.

use serde::Serialize;

use super::{Card, Check, Timestamp};

/// A field that a verification did not check, or not completely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotChecked {
    /// Where it is stated, such as `question` or `aggregators.leader`; what is below it was not checked either.
    pub what: String,
    /// Why not, and as far as that goes, what was checked of it.
    pub why: &'static str,
}

impl NotChecked {
    /// A field and the reason.
    pub fn new(what: impl Into<String>, why: &'static str) -> Self {
        Self { what: what.into(), why }
    }
}

/// Nothing can be compared with it.
const UNDETERMINED: &str = "nothing else on the card determines it, and the card is not signed";
/// Nothing can be compared with it, but not every text is one.
const FORM_ONLY: &str = "only its form was checked: nothing else on the card determines it, and the card is not signed";
/// Other numbers are computed from it.
const CHOSEN: &str = "whoever asks chooses it; claims and error were computed from it, but it may be another one than was asked \
                      for, and the card is not signed";

/// Moments on a card are from this year's beginning to the other one's: Uptack is not older, and a later moment is a mistake.
const PLAUSIBLE_YEARS: [&str; 2] = ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"];
/// The longest window, in seconds: ten years.
const LONGEST_WINDOW: u64 = 10 * 366 * 24 * 3600;

impl Card {
    /// The fields that [`Card::recompute`] cannot check. If the card is signed, its signature covers them.
    pub fn not_checked(&self) -> Vec<NotChecked> {
        // Fields with the same reason stand together.
        let optional = [
            ("question", self.question.is_some(), UNDETERMINED),
            ("predicate", self.predicate.is_some(), UNDETERMINED),
            ("ballot", self.ballot.is_some(), UNDETERMINED),
            ("attributes", !self.attributes.is_empty(), UNDETERMINED),
            ("operators", self.operators.is_some(), UNDETERMINED),
            ("enrolment", self.enrolment.is_some(), UNDETERMINED),
            ("opens", self.opens.is_some(), FORM_ONLY),
            ("closes", self.closes.is_some(), FORM_ONLY),
            ("series", self.series.is_some(), FORM_ONLY),
            ("signer", self.signer.is_some(), FORM_ONLY),
            ("aggregators.leader", self.aggregators.is_some(), FORM_ONLY),
            ("aggregators.helper", self.aggregators.is_some(), FORM_ONLY),
        ];
        let stated = optional.into_iter().filter(|(_, is_stated, _)| *is_stated);
        let chosen = ["owners", "minimum_batch", "honest", "claims.delta", "predicted.yes_low", "predicted.yes_high"];
        let chosen = chosen.map(|what| NotChecked::new(what, CHOSEN));
        stated.map(|(what, _, why)| NotChecked::new(what, why)).chain(chosen).collect()
    }

    /// Checks that the moments on the card are plausible, and that no window is longer than anybody asks.
    pub(super) fn moment_checks(&self) -> Vec<Check> {
        let starts = self.series.as_ref().map(|series| series.starts);
        let moments = [("opens", self.opens), ("closes", self.closes), ("series.starts", starts)];
        let mut checks: Vec<Check> =
            moments.into_iter().filter_map(|(what, moment)| Some(moment_check(what, moment?))).collect();
        if let Ok((opens, closes)) = self.window() {
            let (length, rule) = (closes - opens, format!("at most {LONGEST_WINDOW} seconds"));
            checks.push(Check::rule("closes - opens", format!("{length} seconds"), rule, length <= LONGEST_WINDOW));
        }
        checks
    }
}

fn moment_check(what: &str, moment: Timestamp) -> Check {
    let [first, last] = PLAUSIBLE_YEARS;
    let [from, to] = PLAUSIBLE_YEARS.map(|year| year.parse::<Timestamp>().expect("a moment is written as one"));
    Check::rule(what, moment, format!("from {first} to {last}"), (from..to).contains(&moment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Prior, Request, plan};
    use crate::privacy::Epsilon;

    #[test]
    fn moments_of_other_centuries_and_endless_windows_are_found() {
        let request = Request::one_aggregator(100, Prior::at(10), Epsilon::new(1.0).unwrap()).unwrap();
        let card = Card::new(&request, &plan(&request).unwrap());
        assert_eq!(card.moment_checks(), []);
        let failing = |opens: &str, closes: &str| {
            let card =
                Card { opens: Some(opens.parse().unwrap()), closes: Some(closes.parse().unwrap()), ..card.clone() };
            let failed = card.moment_checks().into_iter().filter(|check| !check.holds());
            failed.map(|check| check.what).collect::<Vec<_>>()
        };
        assert_eq!(failing("2026-11-15T08:00:00Z", "2026-11-15T09:00:00Z"), [""; 0]);
        assert_eq!(failing("1976-11-15T08:00:00Z", "1976-11-15T09:00:00Z"), ["opens", "closes"]);
        assert_eq!(failing("2026-11-15T08:00:00Z", "2926-11-15T09:00:00Z"), ["closes", "closes - opens"]);
        assert_eq!(failing("2026-11-15T08:00:00Z", "2056-11-15T09:00:00Z"), ["closes - opens"]);
    }
}
