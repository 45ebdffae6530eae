//! What an owner allows, as a TOML file that the owner writes.

use serde::Deserialize;
use std::{fmt, path::Path};
use uptack::Fraction;
pub use uptack_dap::address::Origin;
use uptack_dap::signed::PublicKey;

use crate::error::{Error, Result};

/// The limits of one owner, or of a fleet that shares them.
///
/// Limits on disclosure have no defaults: whatever an owner allows, the owner has written down. `aggregators` and `desks`
/// restrict further, and may be left out.
///
/// ```toml
/// signers = ["ed25519:…"]           # whose cards are answered
/// attributes = ["station", "speed"] # what predicates may read
/// aggregators = ["https://leader.example", "https://helper.example"] # whom reports may go to; left out: anybody
///
/// [card]                            # what one card may give away, at most
/// answer = 8.0                      # ε of one answer alone
/// linked = 8.0                      # ε of all answers to the card
/// one-aggregator = 1.0              # ε of what is published, if one aggregator is honest and nobody else
/// release = 1.0                     # ε of the same, if the owners that the card counts on are honest besides
/// answer-with-release = 8.0         # ε of an answer seen together with the counts
/// delta = 1e-6                      # δ of the release views
/// honest = 0.9                      # the share of honest owners that claims may count on
/// separate-operators = false        # insist on two operators, on two hosts; this machine counts as one host
/// enrolment = false                 # insist on credentials, so that nobody can invent owners
///
/// [lifetime]                        # what all cards together may give away
/// linked = 100.0
/// one-aggregator = 10.0             # at δ = 0
/// release = 10.0
/// delta = 1e-5
/// share-per-signer = 0.25           # how much of each ε one signer may use up; left out: all of it
///
/// [[desks]]                         # whose cards are looked at; left out: any desk's
/// address = "https://desk.example"
/// signers = ["ed25519:…"]           # whose signatures this desk's cards carry
/// ```
///
/// A limit on ε may also be `"unlimited"`. If `one-aggregator` is left out, it is the limit of `release`: what is published
/// has to be hidden just as well if nobody but one aggregator is honest. If the aggregators add no noise, that takes a linked
/// ε as small. Cards whose claims rest on other owners' coins are answered under `trust = "owners"` in `[card]`, which leaves
/// `one-aggregator` unlimited unless it is given. Addresses are compared by scheme, host and port. If `desks` are named,
/// `signers` may be left out; if both are given, a card's signer has to be in both.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policy {
    /// Whose cards are answered; empty if only `desks` name signers.
    #[serde(default)]
    pub signers: Vec<PublicKey>,
    /// The attributes that predicates may read.
    pub attributes: Vec<String>,
    /// The aggregators that reports may go to; anybody if it is left out.
    pub aggregators: Option<Vec<Origin>>,
    /// The desks whose cards are looked at; any desk's if it is left out.
    pub desks: Option<Vec<PolicyDesk>>,
    /// The limits of one card.
    pub card: CardLimits,
    /// The limits of all cards together.
    pub lifetime: LifetimeLimits,
}

/// A desk and those who sign for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename = "Desk", deny_unknown_fields, rename_all = "kebab-case")]
pub struct PolicyDesk {
    /// Where it is.
    pub address: Origin,
    /// Whose signatures its cards carry.
    pub signers: Vec<PublicKey>,
}

/// What one card may give away at most.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CardLimits {
    /// ε of one answer alone.
    pub answer: Limit,
    /// ε of all answers to everything that the card asks.
    pub linked: Limit,
    /// Whom a card's claims may count on.
    #[serde(default)]
    pub trust: PolicyTrust,
    /// ε of everything that is published, if one aggregator is honest and nobody else; unlimited if `None`.
    pub one_aggregator: Option<Limit>,
    /// ε of everything that is published.
    pub release: Limit,
    /// ε of one answer seen together with the published counts.
    pub answer_with_release: Limit,
    /// δ of the release views.
    pub delta: f64,
    /// The largest share of honest owners that claims may count on.
    #[serde(deserialize_with = "share")]
    pub honest: Fraction,
    /// Refuse cards whose aggregators have the same operator.
    pub separate_operators: bool,
    /// Refuse cards that anybody may answer.
    pub enrolment: bool,
}

/// Whom the claims about what is published may count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename = "Trust", rename_all = "kebab-case")]
pub enum PolicyTrust {
    /// One honest aggregator: whatever other owners do, and even if somebody invents owners.
    #[default]
    OneAggregator,
    /// Other owners: their coins alone may hide an owner.
    Owners,
}

/// What all cards together may give away.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LifetimeLimits {
    /// ε of all answers.
    pub linked: Limit,
    /// ε of everything that is published, if one aggregator is honest and nobody else, at δ = 0; unlimited if `None`.
    pub one_aggregator: Option<Limit>,
    /// ε of everything that is published.
    pub release: Limit,
    /// δ of the linked answers and of everything that is published.
    pub delta: f64,
    /// The share of each ε that the cards of one signer may use up; all of it if `None`.
    #[serde(default, deserialize_with = "optional_share")]
    pub share_per_signer: Option<Fraction>,
}

/// A view that a lifetime budget is kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BudgetView {
    /// All answers, if nobody else is honest.
    Linked,
    /// Everything published, if one aggregator is honest and nobody else.
    OneAggregator,
    /// Everything published.
    Release,
}

impl BudgetView {
    /// All of them, the cheapest to compute first.
    pub(crate) const ALL: [Self; 3] = [Self::Linked, Self::OneAggregator, Self::Release];

    /// The word for it in the ledger and in output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Linked => "linked",
            Self::OneAggregator => "one_aggregator",
            Self::Release => "release",
        }
    }
}

impl LifetimeLimits {
    /// The limits of the policy in the guide, as something to compare with. No owner has them unless it wrote them down.
    pub fn of_the_guide() -> Self {
        Self {
            linked: Limit::AtMost(100.0),
            one_aggregator: Some(Limit::AtMost(10.0)),
            release: Limit::AtMost(10.0),
            delta: 1e-5,
            share_per_signer: None,
        }
    }

    /// ε and δ of the budget for a view; `None` if it has no limit.
    pub(crate) fn budget(&self, view: BudgetView) -> Option<(f64, f64)> {
        let (limit, delta) = match view {
            BudgetView::Linked => (self.linked, self.delta),
            BudgetView::OneAggregator => (self.one_aggregator.unwrap_or(Limit::Unlimited), 0.0),
            BudgetView::Release => (self.release, self.delta),
        };
        match limit {
            Limit::AtMost(epsilon) => Some((epsilon, delta)),
            Limit::Unlimited => None,
        }
    }
}

/// The largest ε that is allowed, if there is a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// At most this.
    AtMost(f64),
    /// The owner sets no limit.
    Unlimited,
}

impl Limit {
    /// Whether a claim is within the limit; without a guarantee (`None`), only if there is no limit.
    pub fn allows(self, epsilon: Option<f64>) -> bool {
        match self {
            Self::Unlimited => true,
            Self::AtMost(most) => epsilon.is_some_and(|epsilon| epsilon <= most),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(formatter, "at most {most}"),
            Self::Unlimited => formatter.write_str("any"),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
        }
        match Written::deserialize(from)? {
            Written::Number(most) if most.is_finite() && most >= 0.0 => Ok(Self::AtMost(most)),
            Written::Text(text) if text == "unlimited" => Ok(Self::Unlimited),
            _ => Err(serde::de::Error::custom("a limit is a number that is not negative, or \"unlimited\"")),
        }
    }
}

fn share<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Fraction, D::Error> {
    let value = f64::deserialize(from)?;
    let refuse = || serde::de::Error::custom("a share lies between 0 and 1");
    Fraction::from_f64(value).ok().filter(|_| (0.0..=1.0).contains(&value)).ok_or_else(refuse)
}

fn optional_share<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Option<Fraction>, D::Error> {
    share(from).map(Some)
}

impl Policy {
    /// Reads a policy from TOML.
    pub fn from_toml(text: &str) -> Result<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut policy: Self = toml::from_str(text).map_err(|error| Error::Input(format!("not a policy: {error}")))?;
        if policy.card.trust == PolicyTrust::OneAggregator {
            policy.card.one_aggregator.get_or_insert(policy.card.release);
            policy.lifetime.one_aggregator.get_or_insert(policy.lifetime.release);
        }
        match policy.contradiction() {
            Some(reason) => Err(Error::Input(format!("not a policy: {reason}"))),
            None => Ok(policy),
        }
    }

    /// What is wrong with the policy: a field that has an impossible value, or why no card could be answered.
    fn contradiction(&self) -> Option<String> {
        for (name, delta) in [("card.delta", self.card.delta), ("lifetime.delta", self.lifetime.delta)] {
            if !(0.0..1.0).contains(&delta) {
                return Some(format!("{name} must be at least 0 and less than 1"));
            }
        }
        let desks = self.desks.as_deref().unwrap_or_default();
        if self.signers.is_empty() && desks.iter().all(|desk| desk.signers.is_empty()) {
            return Some("there are no `signers`, so that no card could be answered".to_owned());
        }
        let no_aggregators = self.aggregators.as_ref().is_some_and(Vec::is_empty);
        no_aggregators.then(|| "`aggregators` is empty; leave it out to allow any".to_owned())
    }

    /// Whether a signer is named, for all cards or for those of a desk.
    pub(crate) fn knows(&self, signer: &PublicKey) -> bool {
        if self.signers.is_empty() {
            self.desks.iter().flatten().any(|desk| desk.signers.contains(signer))
        } else {
            self.signers.contains(signer)
        }
    }

    /// Reads a policy from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Input(uptack_dap::Error::named_file(path, error).to_string()))?;
        Self::from_toml(&text).map_err(|error| Error::Input(format!("{}: {error}", path.display())))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use uptack_dap::signed::Signer;

    pub(crate) fn text(signer: &PublicKey) -> String {
        format!(
            "signers = [\"{signer}\"]\nattributes = [\"station\"]\n\
             [card]\nanswer = 20.0\nlinked = 20.0\nrelease = 2.0\nanswer-with-release = 20.0\ndelta = 1e-4\n\
             honest = 1.0\nseparate-operators = false\nenrolment = false\n\
             [lifetime]\nlinked = 100.0\nrelease = 5.0\ndelta = 1e-3\n"
        )
    }

    #[test]
    fn the_limits_of_the_guide_are_those_in_the_guide() {
        let guide = include_str!("../../../docs/policy.md");
        let section = guide.split_once("[lifetime]").unwrap().1.split_once('\n').unwrap().1;
        let limits: LifetimeLimits = toml::from_str(section.split("\n\n").next().unwrap()).unwrap();
        assert_eq!(limits, LifetimeLimits::of_the_guide());
    }

    #[test]
    fn a_policy_is_read_and_everything_must_be_said() {
        let good = text(&Signer::generate().public());
        let policy = Policy::from_toml(&good).unwrap();
        assert_eq!(policy.card.release, Limit::AtMost(2.0));
        let free = Policy::from_toml(&good.replace("linked = 20.0", "linked = \"unlimited\"")).unwrap();
        assert!(free.card.linked.allows(None) && !policy.card.linked.allows(None));
        for line in good.lines().filter(|line| line.contains('=')) {
            assert!(Policy::from_toml(&good.replacen(line, "", 1)).is_err(), "without {line}");
        }
        for (from, to) in [
            ("release = 2.0", "release = 2.0\ntrust = \"nobody\""),
            ("release = 2.0", "release = 2.0\none-aggregator = -1"),
            ("release = 2.0", "release = -1"),
            ("release = 2.0", "release = \"none\""),
            ("release = 2.0", "release = nan"),
            ("honest = 1.0", "honest = 1.5"),
            ("delta = 1e-4", "delta = 1"),
            ("enrolment = false", "enrolment = false\nalso = 1"),
            ("ed25519:", "ed448:"),
            ("attributes =", "aggregators = []\nattributes ="),
            ("attributes =", "aggregators = [\"http://leader.example\"]\nattributes ="),
            ("attributes =", "aggregators = [\"https://leader.example/path\"]\nattributes ="),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert!(Policy::from_toml(&bad).is_err(), "{to}");
        }
    }

    #[test]
    fn one_honest_aggregator_is_what_limits_are_for_by_default() {
        let good = text(&Signer::generate().public());
        let limits = |text: &str| {
            let policy = Policy::from_toml(text).unwrap();
            (policy.card.one_aggregator, policy.lifetime.one_aggregator)
        };
        assert_eq!(limits(&good), (Some(Limit::AtMost(2.0)), Some(Limit::AtMost(5.0))));
        let said = good.replace("\nrelease = ", "\none-aggregator = 1.5\nrelease = ");
        assert_eq!(limits(&said), (Some(Limit::AtMost(1.5)), Some(Limit::AtMost(1.5))));
        let owners = good.replace("[card]", "[card]\ntrust = \"owners\"");
        assert_eq!(limits(&owners), (None, None));
        let both = said.replace("[card]", "[card]\ntrust = \"owners\"");
        assert_eq!(limits(&both), limits(&said));
    }

    #[test]
    fn the_documented_policy_is_one() {
        let document = include_str!("../../../docs/policy.md");
        let (_, rest) = document.split_once("```toml\n").unwrap();
        let text = rest.split_once("```").unwrap().0.replace("ed25519:…", &Signer::generate().public().to_string());
        let policy = Policy::from_toml(&text).unwrap();
        assert_eq!(policy.card.one_aggregator, Some(Limit::AtMost(1.0)));
        // Every key of it is explained.
        for key in text.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key) {
            assert!(document.contains(&format!("`{key}`")) || document.contains(&format!(".{key}`")), "{key}");
        }
    }
}
