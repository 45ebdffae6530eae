//! The paper's own estimators, as it states them.
//!
//! The lemmas on the "Yes", "No" and ⊥ counts are [`BinEstimate`](super::BinEstimate), for every bin of every
//! mechanism. Here are the differences of answers of its *First Attempt* and *Cancelling the Noise*, the backward
//! solution of its *Plausible Deniability*, and its system of equations with signs.

use num_rational::BigRational;
use num_traits::{Signed, Zero};

use crate::channel::{Bin, Cell, Channel, Output};
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::law::Law;
use crate::linear;
use crate::probability::Probability;
use crate::tally::Tally;
use crate::truth::PerTruth;

/// An estimate from a combination of bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// The combination, as in `A1 - B1`.
    pub name: String,
    /// Its value in the tally.
    pub value: f64,
    /// The estimate, or none if the combination does not depend on the truth.
    pub estimate: Option<f64>,
    /// Its standard deviation at the estimate.
    pub sd: Option<f64>,
}

/// The difference estimators: for each two answers and each output, how much more often the first gave it.
///
/// With [`Paired`](crate::mechanism::Paired), A1 − B1 = 2(πY·YES + πN·NO) and A2 − B2 is its opposite. With
/// [`Cancelling`](crate::mechanism::Cancelling), A1 − B1 = s·YES and A2 − B2 = s·NO; the base is gone from both.
///
/// ```
/// use uptack::{Mechanism, Tally, estimate::paper::differences};
/// let channel = "cancelling(b1=0.3, b2=0.3, b3=0.3, s=0.1)".parse::<Mechanism>()?.channel();
/// let tally = Tally::from_cells(&channel, &[30, 30, 30, 6, 4])?;
/// let all = differences(&channel, &tally)?;
/// assert_eq!((all[0].name.as_str(), all[0].value), ("A1 - B1", 6.0));
/// assert!((all[0].estimate.unwrap() - 60.0).abs() < 1e-9);
/// assert!((all[1].estimate.unwrap() - 60.0).abs() < 1e-9);
/// assert_eq!(all[2].estimate, None);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn differences(channel: &Channel, tally: &Tally) -> Result<Vec<Combination>> {
    tally.bin_counts(channel)?;
    let answers = channel.answers().len();
    let pairs = (0..answers).flat_map(|first| (first + 1..answers).map(move |second| (first, second)));
    let all = pairs.flat_map(|(first, second)| Difference::of_answers(channel, first, second));
    Ok(all.map(|difference| difference.estimate(channel, tally)).collect())
}

/// The chain of subtractions by which YES is found from the answers of
/// [`Blended`](crate::mechanism::Blended).
#[derive(Clone, Debug, PartialEq)]
pub struct Backward {
    /// NO_f21 = C2 − B2: those who were moved on from ⊥3 to ⊥2.
    pub moved_on: Combination,
    /// YES_f2 + NO_f2 = B3 − A3: those who were moved to ⊥3 at first.
    pub moved: Combination,
    /// What is left of it, C3 − A3, and the estimate of YES from it.
    pub left: Combination,
}

/// Works backwards from NO_f21 to YES.
///
/// With the residual on both sides, all no-owners except rn of them are moved on, and ry of the yes-owners; so what
/// is left counts f2 − ry of the yes-owners and rn of the no-owners.
///
/// ```
/// use uptack::{Mechanism, Tally, estimate::paper::backward};
/// let channel = "blended(b1=0, b2=0.25, b3=0.25, f1=0, f2=0.5, ry=0, rn=0)".parse::<Mechanism>()?.channel();
/// let tally = Tally::from_cells(&channel, &[0, 250, 250, 0, 20, 480])?;
/// let solution = backward(&channel, &tally)?;
/// assert_eq!(solution.moved_on.value, 480.0);
/// assert_eq!(solution.moved.value, 500.0);
/// assert_eq!(solution.left.value, 20.0);
/// assert!((solution.left.estimate.unwrap() - 40.0).abs() < 1e-9);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn backward(channel: &Channel, tally: &Tally) -> Result<Backward> {
    if !channel.cells().iter().map(Cell::name).eq(["111", "222", "333", "122", "133", "132"]) {
        return Err(Error::request("only a `blended` mechanism is solved backwards"));
    }
    tally.bin_counts(channel)?;
    let difference = |symbol, first, second| {
        let output = Output::new(symbol).expect("digits are outputs");
        Difference { output, first, second }.estimate(channel, tally)
    };
    Ok(Backward { moved_on: difference('2', 2, 1), moved: difference('3', 1, 0), left: difference('3', 2, 0) })
}

/// How much more often the first of two answers gave an output than the second.
struct Difference {
    output: Output,
    first: usize,
    second: usize,
}

impl Difference {
    /// One for each output that both answers may give.
    fn of_answers(channel: &Channel, first: usize, second: usize) -> impl Iterator<Item = Self> {
        let (outputs, others) = (&channel.answers()[first], &channel.answers()[second]);
        let shared = outputs.iter().filter(move |output| others.contains(output));
        shared.map(move |&output| Self { output, first, second })
    }

    fn bins(&self) -> [Bin; 2] {
        [self.first, self.second].map(|answer| Bin { answer, output: self.output })
    }

    /// What an owner who writes a cell adds.
    fn value_of(&self, cell: &Cell) -> i128 {
        let [first, second] = self.bins();
        i128::from(cell.value_in([(first, 1), (second, -1)]))
    }

    fn name(&self) -> String {
        let [first, second] = self.bins();
        format!("{} - {}", first.name(), second.name())
    }

    fn value_in(&self, tally: &Tally) -> f64 {
        tally.count(self.first, self.output) as f64 - tally.count(self.second, self.output) as f64
    }

    /// The value in the tally, and YES solved from its expectation.
    fn estimate(&self, channel: &Channel, tally: &Tally) -> Combination {
        let (value, owners) = (self.value_in(tally), tally.owners() as f64);
        let expectation = Expectation::of(self, channel);
        let estimate = expectation.solve(value, owners);
        let sd = estimate.map(|yes| expectation.sd(yes.clamp(0.0, owners), owners));
        Combination { name: self.name(), value, estimate, sd }
    }
}

/// What one owner adds to a difference, by truth.
struct Expectation(PerTruth<Moments>);

impl Expectation {
    fn of(difference: &Difference, channel: &Channel) -> Self {
        Self(channel.laws().map(|law| Moments::of(channel, difference, &law)))
    }

    /// How much more a yes-owner adds.
    fn slope(&self) -> f64 {
        (self.0.yes.sum - self.0.no.sum) as f64 / GRID
    }

    /// YES solved from the expected value.
    fn solve(&self, value: f64, owners: f64) -> Option<f64> {
        (self.0.yes.sum != self.0.no.sum).then(|| (value - self.0.no.mean() * owners) / self.slope())
    }

    /// The standard deviation of the solution at `yes` of `owners`.
    fn sd(&self, yes: f64, owners: f64) -> f64 {
        (yes * self.0.yes.variance() + (owners - yes) * self.0.no.variance()).max(0.0).sqrt() / self.slope().abs()
    }
}

/// 2⁶⁴, over which probabilities are whole numbers.
const GRID: f64 = (1u128 << Probability::BITS) as f64;

/// What one owner adds to a difference under one law: Σ value·law and Σ value²·law, over 2⁶⁴.
struct Moments {
    sum: i128,
    squares: i128,
}

impl Moments {
    fn of(channel: &Channel, difference: &Difference, law: &Law) -> Self {
        let moment = |power: u32| {
            let values = channel.cells().iter().map(|cell| difference.value_of(cell));
            let masses = law.probabilities().iter().map(|part| part.numerator() as i128);
            values.zip(masses).map(|(value, mass)| value.pow(power) * mass).sum()
        };
        Self { sum: moment(1), squares: moment(2) }
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / GRID
    }

    fn variance(&self) -> f64 {
        self.squares as f64 / GRID - self.mean() * self.mean()
    }
}

/// The paper's system: E\["Yes"\] ± σ = Observed("Yes"), E\[⊥\] ± σ = Observed(⊥), and the two together DO.
///
/// It is linear in YES and σ. The third equation as printed leaves no room for "No" answers: it fits mechanisms that
/// give none, such as [`NoisySampling`](crate::mechanism::NoisySampling), to which the paper's π1 = π2 = π3 = 1 leads,
/// and contradicts the first two elsewhere. (There σ("No") = 0 and σ("Yes") = σ(⊥); the paper has all three equal.) Equal
/// signs force σ = 0; opposite signs leave one equation for two unknowns. Once σ is a function of YES, "E ± σ = observed,
/// solved for YES" becomes the score interval.
#[derive(Clone, Debug, PartialEq)]
pub struct SignSystem {
    /// One for each choice of the two signs.
    pub solutions: Vec<SignSolution>,
}

/// The system under one choice of signs.
#[derive(Clone, Debug, PartialEq)]
pub struct SignSolution {
    /// The signs of σ in the equations for "Yes" and for ⊥; true is plus.
    pub signs: [bool; 2],
    /// The rank of the equations' coefficients: 2 if YES and σ are determined.
    pub rank: usize,
    /// What came of it.
    pub outcome: SignOutcome,
}

/// What came of one choice of signs.
#[derive(Clone, Debug, PartialEq)]
pub enum SignOutcome {
    /// A solution.
    Kept {
        /// YES.
        yes: f64,
        /// σ.
        sigma: f64,
    },
    /// A solution with a negative YES, which the paper eliminates.
    Negative {
        /// YES.
        yes: f64,
        /// σ.
        sigma: f64,
    },
    /// The equations contradict each other.
    Contradictory,
    /// Too few independent equations for two unknowns.
    Underdetermined,
}

impl SignSystem {
    /// Solves the system for a one-answer mechanism with the outputs `1` and ⊥; others have no such system.
    pub fn solve(channel: &Channel, tally: &Tally) -> Result<Option<Self>> {
        tally.bin_counts(channel)?;
        let outputs = [Output::ONE, Output::BOTTOM];
        match channel.answers() {
            [only] if outputs.iter().all(|output| only.contains(output)) => {
                let [ones, bottoms] = outputs.map(|output| Line::new(channel, tally, output));
                Ok(Some(Self::of(&ones, &bottoms, tally.owners())))
            }
            _ => Ok(None),
        }
    }

    fn of(ones: &Line, bottoms: &Line, owners: u64) -> Self {
        let owners = BigRational::from_integer(owners.into());
        let signs = [[true, true], [true, false], [false, true], [false, false]];
        let solve = |signs| Equations::new(ones, bottoms, &owners, signs).solve(signs);
        Self { solutions: signs.map(solve).to_vec() }
    }
}

/// E\[output\] = q·n + YES·(p−q), and what was observed of it.
struct Line {
    slope: BigRational,
    constant: BigRational,
    observed: BigRational,
}

impl Line {
    fn new(channel: &Channel, tally: &Tally, output: Output) -> Self {
        let PerTruth { yes, no } = channel.bin_law(Bin { answer: 0, output });
        let exact = |part: Probability| Fraction::from_probability(part).exact().clone();
        let whole = |count: u64| BigRational::from_integer(count.into());
        Self {
            slope: exact(yes) - exact(no),
            constant: exact(no) * whole(tally.owners()),
            observed: whole(tally.count(0, output)),
        }
    }

    /// slope·YES ± σ = observed − constant.
    fn equation(&self, plus: bool) -> Equation {
        let sign = BigRational::from_integer(if plus { 1 } else { -1 }.into());
        [self.slope.clone(), sign, &self.observed - &self.constant]
    }
}

/// The coefficients of YES and of σ, and the right side.
type Equation = [BigRational; 3];

/// The paper's three equations under one choice of signs.
struct Equations([Equation; 3]);

impl Equations {
    fn new(ones: &Line, bottoms: &Line, owners: &BigRational, signs: [bool; 2]) -> Self {
        let (first, second) = (ones.equation(signs[0]), bottoms.equation(signs[1]));
        let together = owners - &ones.constant - &bottoms.constant;
        let third = [&first[0] + &second[0], &first[1] + &second[1], together];
        Self([first, second, third])
    }

    fn solve(&self, signs: [bool; 2]) -> SignSolution {
        let rank = self.rank(2);
        let outcome = match rank {
            _ if self.rank(3) != rank => SignOutcome::Contradictory,
            2 => self.solution(),
            _ => SignOutcome::Underdetermined,
        };
        SignSolution { signs, rank, outcome }
    }

    /// The rank of the first columns.
    fn rank(&self, columns: usize) -> usize {
        linear::rank(self.0.iter().map(|equation| equation[..columns].to_vec()).collect())
    }

    /// Cramer's rule on two independent ones of consistent equations.
    fn solution(&self) -> SignOutcome {
        let (a, b) = self.independent_pair();
        let denominator = determinant(a, b, 0, 1);
        let exact = determinant(a, b, 2, 1) / &denominator;
        let yes = linear::to_f64(&exact);
        let sigma = linear::to_f64(&(determinant(a, b, 0, 2) / &denominator));
        if exact.is_negative() { SignOutcome::Negative { yes, sigma } } else { SignOutcome::Kept { yes, sigma } }
    }

    fn independent_pair(&self) -> (&Equation, &Equation) {
        let [first, second, third] = &self.0;
        let mut pairs = [(first, second), (first, third), (second, third)].into_iter();
        let independent = pairs.find(|(a, b)| !determinant(a, b, 0, 1).is_zero());
        independent.expect("rank 2 means that two equations are independent")
    }
}

/// The determinant of two columns of two equations.
fn determinant(a: &Equation, b: &Equation, first: usize, second: usize) -> BigRational {
    &a[first] * &b[second] - &a[second] * &b[first]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;

    fn channel(text: &str) -> Channel {
        text.parse::<Mechanism>().unwrap().channel()
    }

    fn tally(json: &str) -> Tally {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn first_attempt_differences_are_opposite_and_agree() {
        let channel = channel("paired(b=0.5,sy=0.25,sn=0.125)");
        let tally = Tally::from_cells(&channel, &[30, 40, 30]).unwrap();
        let all = differences(&channel, &tally).unwrap();
        assert_eq!(all.iter().map(|d| d.value).collect::<Vec<_>>(), [40.0, -40.0]);
        // 40 = 2(0.25·YES + 0.125·(100 − YES)), so YES = 60.
        assert!((all[0].estimate.unwrap() - 60.0).abs() < 1e-9);
        assert!((all[1].estimate.unwrap() - 60.0).abs() < 1e-9);
        let sd = (60.0f64 * 0.25 + 40.0 * 0.25 * 0.75).sqrt() / 0.25;
        assert!((all[0].sd.unwrap() - sd).abs() < 1e-9);
    }

    #[test]
    fn without_no_answers_equal_signs_force_sigma_to_zero() {
        let channel = channel("noisy-sampling(sy=0.5,sn=0.25)");
        let system = SignSystem::solve(&channel, &tally(r#"{"answers":[{"1":30,"⊥":70}]}"#)).unwrap().unwrap();
        let outcome = |index: usize| &system.solutions[index];
        assert_eq!((outcome(0).rank, &outcome(0).outcome), (2, &SignOutcome::Kept { yes: 20.0, sigma: 0.0 }));
        assert_eq!(outcome(3).outcome, SignOutcome::Kept { yes: 20.0, sigma: 0.0 });
        assert_eq!((outcome(1).rank, &outcome(1).outcome), (1, &SignOutcome::Underdetermined));
        assert_eq!(outcome(2).outcome, SignOutcome::Underdetermined);
        let fewer = SignSystem::solve(&channel, &tally(r#"{"answers":[{"1":20,"⊥":80}]}"#)).unwrap().unwrap();
        assert_eq!(fewer.solutions[0].outcome, SignOutcome::Negative { yes: -20.0, sigma: 0.0 });
    }

    #[test]
    fn no_answers_contradict_the_printed_system() {
        let channel = channel("deniable-sampling(sy=0.5,sn=0.25,p1=0.5,p2=0.5)");
        let system = SignSystem::solve(&channel, &tally(r#"{"answers":[{"1":30,"0":10,"⊥":60}]}"#)).unwrap().unwrap();
        assert!(system.solutions.iter().any(|solution| solution.outcome == SignOutcome::Contradictory));
        let two = tally(r#"{"answers":[{"1":30,"0":70}]}"#);
        assert_eq!(SignSystem::solve(&self::channel("randomized-response(0.8)"), &two).unwrap(), None);
    }

    #[test]
    fn only_blended_is_solved_backwards() {
        let channel = channel("paired(b=0.5,sy=0.25,sn=0.125)");
        let tally = Tally::from_cells(&channel, &[30, 40, 30]).unwrap();
        assert!(backward(&channel, &tally).unwrap_err().is_request());
    }
}
