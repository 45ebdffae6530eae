//! What the published counts reveal if only the other owners' coins hide the target, whatever the crowd
//! (`docs/accounting.md`, "One of K options by owners' coins alone").

use super::closed_forms::linked_epsilon;
use super::crowd_divergence::{AlikeCrowd, CrowdDivergence, MostSteps};
use crate::certified::root::FalsePosition;
use crate::certified::rounding::Enclosure;
use crate::contribution::Contributions;
use crate::error::Result;
use crate::privacy::composition::{Profile, PureProfile};
use crate::privacy::{Accountant, Delta, Epsilon, Guarantee, Target, View, WorkLimit, accountant};
use crate::probability::Probability;

/// Answers questions about the published counts of contributions, if no aggregator's noise can be counted on.
///
/// **Guarantee.** The upper end holds for every crowd; the lower end is that of a crowd in which all others have one possibility
/// that the target neither leaves nor joins. They come from different laws, and differ by little: by 1 % in ε at a hundred owners,
/// and by less than one in a thousand from a thousand on. For several contributions per owner the upper end is the linked ε, and
/// the lower end is zero.
///
/// ```
/// use uptack::contribution::Contributions;
/// use uptack::privacy::{Delta, contributions::OwnersAlone};
/// let asked: Contributions = "choice(k=12,f=1,r=0.0012)".parse()?;
/// let claim = OwnersAlone::new(&asked, 50_186)?.epsilon(Delta::new(1e-8)?);
/// let epsilon = claim.value().ok_or("a guarantee")?;
/// assert!(epsilon.upper() < 1.0 && epsilon.lower() > 0.999 && claim.certificate().closed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OwnersAlone {
    method: Method,
    owners: u64,
    view: View,
    /// The ε that needs no δ; `None` if there is none.
    linked: Option<f64>,
    /// g, the probability of the true possibility.
    told: Probability,
    limit: WorkLimit,
}

/// How the divergence is computed.
#[derive(Clone, Debug)]
enum Method {
    /// A single count is a yes/no question.
    YesNo(Box<Accountant>),
    /// One contribution among at least three possibilities: the bound for every crowd, and one crowd.
    Move { every_crowd: CrowdDivergence, third_possibility: CrowdDivergence },
    /// What all reports of one owner reveal bounds what is published.
    Linked,
}

impl OwnersAlone {
    /// Accounting for `owners` owners, the target included, who follow the mechanism; its noise is left out.
    pub fn new(contributions: &Contributions, owners: u64) -> Result<Self> {
        accountant::check_owners(owners)?;
        let linked = linked_epsilon(contributions);
        let view = if contributions.noise().is_some() { View::OwnersAlone } else { View::Release };
        let method = Method::of(contributions, owners)?;
        Ok(Self { method, owners, view, linked, told: contributions.law().told(), limit: WorkLimit::default() })
    }

    /// The same, spending at most about `limit` on each answer.
    #[must_use]
    pub fn with_limit(mut self, limit: WorkLimit) -> Self {
        if let Method::YesNo(accountant) = self.method {
            self.method = Method::YesNo(Box::new(accountant.with_limit(limit)));
        }
        Self { limit, ..self }
    }

    /// Number of owners, the target included.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The smallest δ that any ε reaches, rounded up; zero where the linked ε is finite.
    pub fn floor(&self) -> f64 {
        self.floor_ends().upper()
    }

    /// Whichever of ε and δ the target leaves open.
    pub fn guarantee(&self, target: Target) -> Guarantee {
        match (target, &self.method) {
            (_, Method::YesNo(accountant)) => accountant.guarantee(target),
            (Target::Epsilon(epsilon), _) => self.wrap(target, Some(self.delta_ends(epsilon.value()))),
            (Target::Delta(delta), _) => self.wrap(target, self.epsilon_ends(delta.value())),
        }
    }

    /// The certified δ at `epsilon`, over every crowd and every move.
    pub fn delta(&self, epsilon: Epsilon) -> Guarantee {
        self.guarantee(Target::Epsilon(epsilon))
    }

    /// The certified ε at `delta`, over every crowd and every move.
    pub fn epsilon(&self, delta: Delta) -> Guarantee {
        self.guarantee(Target::Delta(delta))
    }

    fn wrap(&self, target: Target, value: Option<Enclosure>) -> Guarantee {
        Guarantee::of_contributions(self.view, self.owners, target, value, self.floor_ends())
    }

    /// Without coins the counts show the target's own possibility whenever it is told: in a crowd without it nobody else is there.
    fn floor_ends(&self) -> Enclosure {
        match (&self.method, self.linked) {
            (Method::YesNo(accountant), _) => Enclosure::new(accountant.floor(), accountant.floor()),
            (_, None) if self.told > Probability::ZERO => {
                let (told, nearest) = (self.told.to_f64(), self.told.numerator() as f64);
                let is_exact = nearest as u128 == self.told.numerator();
                if is_exact { Enclosure::new(told, told) } else { Enclosure::new(told.next_down(), told.next_up()) }
            }
            _ => Enclosure::ZERO,
        }
    }

    /// δ at one ε, from both sides.
    fn delta_ends(&self, epsilon: f64) -> Enclosure {
        let Some(linked) = self.linked else { return self.floor_ends() };
        let pure = pure_delta(linked, epsilon);
        match &self.method {
            Method::Move { every_crowd, third_possibility } if pure > 0.0 => {
                let upper = at_depth(|cut| every_crowd.at(epsilon, cut, self.most_steps())).upper().min(pure);
                let lower = at_depth(|cut| third_possibility.at(epsilon, cut, self.most_steps())).lower();
                Enclosure::of_probability(lower.min(upper), upper)
            }
            _ => Enclosure::of_probability(0.0, pure),
        }
    }

    /// ε at one δ, from both sides; `None` if δ is below the floor.
    fn epsilon_ends(&self, delta: f64) -> Option<Enclosure> {
        let Some(linked) = self.linked else {
            return (delta >= self.floor()).then_some(Enclosure::ZERO);
        };
        let Method::Move { every_crowd, third_possibility } = &self.method else {
            return Some(Enclosure::new(0.0, pure_epsilon(linked, delta)));
        };
        let (cut, most) = ((delta.ln() - MARGIN).max(DEEPEST_CUT), self.most_steps());
        let tolerance = if every_crowd.is_exact_at(0.0, cut, most) { 1e-10 } else { 1e-5 };
        let above = |epsilon: f64| every_crowd.at(epsilon, cut, most).upper();
        let below = |epsilon: f64| third_possibility.at(epsilon, cut, most).lower();
        let (_, upper) = crossing(delta, linked, None, tolerance, above);
        let (lower, _) = crossing(delta, upper, Some(upper * (1.0 - 1e-7)), tolerance.max(2e-7), below);
        Some(Enclosure::new(lower, upper))
    }

    /// An evaluation by rows may take this much: an ε takes about twenty.
    fn most_steps(&self) -> MostSteps {
        MostSteps(self.limit.for_owners(self.owners) / 24)
    }
}

/// The certified δ from above at every ε, over every crowd and every move: what compositions are made of.
impl Profile for OwnersAlone {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        match &self.method {
            Method::YesNo(accountant) => accountant.delta_upper(epsilon),
            _ => self.delta_ends(epsilon.max(0.0)).upper(),
        }
    }

    fn floor(&self) -> f64 {
        self.floor_ends().lower()
    }
}

impl Method {
    fn of(contributions: &Contributions, owners: u64) -> Result<Self> {
        if let Some(mechanism) = contributions.clone().with_noise(None).yes_no() {
            let channel = mechanism.channel();
            let accountant =
                if contributions.noise().is_some() { accountant::owners_alone } else { accountant::release };
            return accountant(&channel, owners).map(|accountant| Self::YesNo(Box::new(accountant)));
        }
        let law = contributions.law();
        if contributions.most() > 1 || law.other() == Probability::ZERO || law.told() == law.other() {
            return Ok(Self::Linked);
        }
        Ok(Self::Move {
            every_crowd: CrowdDivergence::new(law, owners, AlikeCrowd::EveryCrowd),
            third_possibility: CrowdDivergence::new(law, owners, AlikeCrowd::ThirdPossibility),
        })
    }
}

/// δ at `epsilon` of whatever has the pure guarantee `own`.
pub(super) fn pure_delta(own: f64, epsilon: f64) -> f64 {
    PureProfile::new(own).map_or(1.0, |profile| profile.delta_upper(epsilon))
}

/// ε at `delta` of whatever has the pure guarantee `own`: no less than that, unless `delta` covers everything.
pub(super) fn pure_epsilon(own: f64, delta: f64) -> f64 {
    if pure_delta(own, 0.0) <= delta { 0.0 } else { own }
}

/// Masses are left out if they are smaller than the value by this much, as a logarithm.
const MARGIN: f64 = 28.0;
/// No window leaves out less than this, as a logarithm: beyond it doubles underflow.
const DEEPEST_CUT: f64 = -600.0;

/// A value that was computed with a cut far below it.
fn at_depth(value: impl Fn(f64) -> Enclosure) -> Enclosure {
    let mut cut = -70.0;
    loop {
        let found = value(cut);
        if found.upper() == 0.0 || found.upper().ln() > cut + MARGIN || cut <= DEEPEST_CUT {
            return found;
        }
        cut = (2.0 * cut).max(DEEPEST_CUT);
    }
}

/// The two neighbouring ε between which a falling function reaches `delta`, to a relative precision: at the first it was seen above
/// `delta`, unless it is zero, and at the second it was not. At `largest` it is known not to be.
fn crossing(delta: f64, largest: f64, near: Option<f64>, tolerance: f64, function: impl Fn(f64) -> f64) -> (f64, f64) {
    let level = |epsilon: f64| (function(epsilon).max(f64::MIN_POSITIVE) / delta).ln();
    let at_zero = level(0.0);
    if at_zero <= 0.0 {
        return (0.0, 0.0);
    }
    let mut root = FalsePosition::new(at_zero, largest);
    let mut guess = near.unwrap_or_else(|| root.guess());
    for round in 1..200 {
        let found = level(guess);
        if found > 0.0 {
            root.raise_low(guess, found)
        } else {
            root.lower_high(guess, found)
        }
        let (low, high) = root.ends();
        if high - low <= tolerance * high {
            break;
        }
        // Where the function is far from straight, halving is faster.
        guess = if round % 4 == 0 { root.middle() } else { root.guess() };
    }
    root.ends()
}
