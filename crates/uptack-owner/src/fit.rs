//! Whether owners' attributes fit a question.
//!
//! An owner without an attribute that a predicate reads, or with one of another type, says *no* whatever is the case, and
//! the count is lower without any sign of it. Whoever has all the attributes at hand can find such owners: the operator of
//! a fleet that simulates owners before it asks real ones, or a person with one device, for themselves.
//!
//! **On a device, nothing may be sent or left out because of what is found here**: that would tell others something about
//! its attributes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use uptack::mechanism::nearest_name;

use crate::{
    attributes::Attributes,
    predicate::Predicate,
    typing::{Declared, Type},
};

/// Owners whose attributes do not fit a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// How many owners these are.
    pub owners: usize,
    /// How many owners there are.
    pub of: usize,
    /// Why they can only say no.
    pub reason: MisfitReason,
}

/// Why an owner's attributes do not fit a question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MisfitReason {
    /// There is no attribute of this name.
    Missing {
        /// The name that the question reads.
        attribute: String,
        /// The name of an attribute that was probably meant.
        similar: Option<String>,
    },
    /// An attribute has another type than the question needs; the words say which.
    Type(String),
}

impl Misfit {
    /// Whether no owner at all fits, so that the count could only be zero.
    pub fn is_of_all(&self) -> bool {
        self.owners == self.of
    }
}

impl fmt::Display for MisfitReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { attribute, similar: None } => write!(formatter, "there is no `{attribute}`"),
            Self::Missing { attribute, similar: Some(similar) } => {
                write!(formatter, "there is no `{attribute}`, but there is `{similar}`")
            }
            Self::Type(words) => formatter.write_str(words),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owners, of, reason } = self;
        match reason {
            MisfitReason::Missing { attribute, similar: None } => {
                write!(formatter, "{owners} of {of} owners have no `{attribute}`")
            }
            MisfitReason::Missing { attribute, similar: Some(similar) } => {
                write!(formatter, "{owners} of {of} owners have no `{attribute}`, but there is `{similar}`")
            }
            MisfitReason::Type(words) => write!(formatter, "for {owners} of {of} owners, {words}"),
        }
    }
}

/// Finds the owners who can only say *no* to one of the predicates, by reason.
///
/// ```
/// use uptack_owner::{attributes::fleet_from_csv, fit::misfits, predicate::Predicate};
/// let fleet = fleet_from_csv("owner,Station\na,7\nb,8\n", None)?;
/// let known: Vec<_> = fleet.owners.iter().map(|(_, known)| known).collect();
/// let found = misfits(&[Predicate::parse("station == \"7\"")?], &known);
/// assert_eq!(found[0].to_string(), "2 of 2 owners have no `station`, but there is `Station`");
/// # Ok::<(), uptack_owner::Error>(())
/// ```
pub fn misfits(predicates: &[Predicate], owners: &[&Attributes]) -> Vec<Misfit> {
    let mut counts: BTreeMap<MisfitReason, usize> = BTreeMap::new();
    for (shape, owners) in shapes(predicates, owners) {
        for reason in reasons(predicates, &shape) {
            *counts.entry(reason).or_default() += owners;
        }
    }
    let misfits = counts.into_iter().map(|(reason, count)| Misfit { owners: count, of: owners.len(), reason });
    misfits.map(|misfit| misfit.with_similar(owners)).collect()
}

/// The attributes that are read, and their types in one owner.
type Shape<'a> = BTreeMap<&'a str, Option<Type>>;

/// How many owners have each combination of types; there are few, however many owners there are.
fn shapes<'a>(predicates: &'a [Predicate], owners: &[&Attributes]) -> BTreeMap<Shape<'a>, usize> {
    let read: BTreeSet<&str> = predicates.iter().flat_map(Predicate::attributes).map(String::as_str).collect();
    let mut counts = BTreeMap::new();
    for owner in owners {
        let shape: Shape<'_> = read.iter().map(|name| (*name, owner.type_of(name))).collect();
        *counts.entry(shape).or_default() += 1;
    }
    counts
}

/// Why owners of this shape do not fit, each reason once.
fn reasons(predicates: &[Predicate], shape: &Shape<'_>) -> Vec<MisfitReason> {
    let missing = shape.iter().filter(|(_, kind)| kind.is_none()).map(|(name, _)| missing(name));
    let types = shape.iter().map(|(name, kind)| ((*name).to_owned(), kind.unwrap_or(Type::Unknown)));
    let declared = Declared::known(types);
    let wrong = predicates.iter().filter_map(|predicate| predicate.check_types(&declared).err());
    let mut reasons: Vec<_> = missing.chain(wrong.map(|error| MisfitReason::Type(error.to_string()))).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

fn missing(name: &str) -> MisfitReason {
    MisfitReason::Missing { attribute: name.to_owned(), similar: None }
}

impl Misfit {
    /// Adds the name of an attribute that was probably meant.
    fn with_similar(mut self, owners: &[&Attributes]) -> Self {
        if let MisfitReason::Missing { attribute, similar } = &mut self.reason {
            let mut known: Vec<&str> = owners.iter().flat_map(|owner| owner.names()).collect();
            known.sort_unstable();
            known.dedup();
            known.retain(|name| name != attribute);
            *similar = nearest_name(attribute, &known).map(str::to_owned);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::fleet_from_csv;

    fn found(predicates: &[&str], csv: &str) -> Vec<String> {
        let fleet = fleet_from_csv(csv, None).unwrap();
        let known: Vec<&Attributes> = fleet.owners.iter().map(|(_, known)| known).collect();
        let predicates: Vec<Predicate> = predicates.iter().map(|text| Predicate::parse(text).unwrap()).collect();
        misfits(&predicates, &known).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_text_column_compared_with_a_number_is_found_before_it_counts_nobody() {
        assert_eq!(
            found(&["station == 7"], "owner,station\na,7\nb,8\n"),
            [
                "for 2 of 2 owners, the predicate mixes up types: it compares `station` (text) with a whole number, which \
              is never true"
            ]
        );
        assert!(found(&["station == \"7\""], "owner,station\na,7\nb,8\n").is_empty());
        assert!(found(&["station == 7"], "owner,station:int\na,7\nb,8\n").is_empty());
        // Numbers compare by value, whatever their types.
        assert!(found(&["speed > 50"], "owner,speed:double\na,7\nb,8\n").is_empty());
    }

    #[test]
    fn a_missing_attribute_is_found_with_the_name_that_was_probably_meant() {
        assert_eq!(
            found(&["station == \"7\""], "owner,Station\na,7\nb,8\n"),
            ["2 of 2 owners have no `station`, but there is `Station`"]
        );
        assert_eq!(found(&["lane == 3"], "owner,road\na,7\n"), ["1 of 1 owners have no `lane`"]);
        assert_eq!(found(&["a == 3"], "owner,a:int,b\na,,x\nb,1,x\n"), ["1 of 2 owners have no `a`"]);
    }

    #[test]
    fn every_question_of_a_ballot_is_looked_at_and_each_reason_is_said_once() {
        let ballot = ["lane == \"1\"", "lane == \"2\"", "lane == 3"];
        let told = found(&ballot, "owner,lane:int\na,1\nb,\n");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("1 of 2 owners have no `lane`"), "{told:?}");
        assert!(told[1].starts_with("for 1 of 2 owners") && told[1].contains("with text"), "{told:?}");
    }
}
