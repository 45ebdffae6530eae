//! The closed forms: what all reports of one owner reveal, and what the published counts reveal if one aggregator is honest
//! and nobody else (`docs/contributions.md`, "What one honest aggregator guarantees").
//!
//! With C counts, a = e^(−1/t), g and r the probabilities of the true and of each other possibility, s that of silence, and
//! u = s, or s + r if a possibility is not counted, the ratio of the two laws of all noisy counts is at most the largest of
//!
//! ```text
//! from one count to another:   (g + (C−1)r·a² + u·a) / (r + (g + (C−2)r)·a² + u·a)
//! from a count to none:        (g + (C−1)r·a² + (r+s)·a) / (r + (C−1)r·a² + (g+s)·a)
//! from none to a count:        (g + s + C·r·a) / (r + s + (g + (C−1)r)·a)
//! ```
//!
//! for one contribution. The epsilons of several contributions of one owner add up.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::certified::exponential::Exponential;
use crate::certified::rounding::Enclosure;
use crate::contribution::Contributions;
use crate::noise::{DiscreteLaplace, NoiseLaw};
use crate::privacy::one_aggregator as yes_no;
use crate::probability::Probability;

/// Local guarantee of all reports of one owner together, rounded up: k·ln(g/r). `None` if a wrong possibility cannot occur, so
/// that there is no guarantee.
///
/// ```
/// use uptack::contribution::Contributions;
/// use uptack::privacy::contributions::linked_epsilon;
/// let asked: Contributions = "contributions(counts=288,most=2,r=0.001)".parse()?;
/// assert!(linked_epsilon(&asked).is_some_and(|epsilon| (epsilon - 2.0 * 712f64.ln()).abs() < 1e-12));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn linked_epsilon(contributions: &Contributions) -> Option<f64> {
    let law = contributions.law();
    let once = yes_no::ratio_epsilon(law.told().numerator(), law.other().numerator());
    let together = once * f64::from(contributions.most());
    let rounded = if contributions.most() == 1 || once == 0.0 { together } else { together.next_up() };
    rounded.is_finite().then_some(rounded)
}

/// ε of everything that is published if one aggregator is honest, even if nobody else is, whatever the crowd; δ is 0. `None`
/// without noise.
///
/// The upper end is the claim, k·ε₁ rounded up to twelve decimal places. For one contribution, and for plain ones, both ends are at
/// most one decimal apart; for several, the lower end is that of a single count by itself.
///
/// ```
/// use uptack::contribution::Contributions;
/// use uptack::privacy::contributions::one_aggregator;
/// // One owner's change moves two counts, so that plain choices cost twice the inverse of the scale.
/// let plain: Contributions = "choice(k=12,r=0) + laplace(scale=4)".parse()?;
/// assert_eq!(one_aggregator(&plain).map(|epsilon| epsilon.upper()), Some(0.5));
/// let asked: Contributions = "choice(k=12,r=0.0003) + laplace(scale=4)".parse()?;
/// assert!(one_aggregator(&asked).is_some_and(|epsilon| epsilon.upper() < 0.5));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn one_aggregator(contributions: &Contributions) -> Option<Enclosure> {
    let NoiseLaw::Laplace(noise) = contributions.noise()?;
    let bound = of_all_contributions(contributions, noise);
    let most = contributions.most() as usize;
    // Plain contributions attain the bound if all of them can move to other counts.
    if most == 1 || (is_plain(contributions) && 2 * most <= contributions.counts()) {
        return Some(bound);
    }
    // The laws of a single count were rounded, by less than what this leaves out of the last digit.
    let lower = yes_no::one_aggregator(&contributions.count_channel()).map_or(0.0, |count| count.lower() - 1e-12);
    Some(Enclosure::new(lower.max(0.0), bound.upper()))
}

/// Whether every contribution is told.
fn is_plain(contributions: &Contributions) -> bool {
    let law = contributions.law();
    law.other() == Probability::ZERO && law.silent() == Probability::ZERO
}

/// k·ε₁, of which the upper end is always a bound.
fn of_all_contributions(contributions: &Contributions, noise: &DiscreteLaplace) -> Enclosure {
    let (law, most) = (contributions.law(), contributions.most());
    if law.told() == law.other() {
        return Enclosure::ZERO;
    }
    if is_plain(contributions) {
        return noise_alone(u64::from(most) * if contributions.counts() == 1 { 1 } else { 2 }, noise);
    }
    let moves = Move::all(contributions);
    let decay = Exponential::of(&-noise.scale().exact().recip());
    let guess = moves.iter().map(|one| one.approximate(noise)).fold(0.0, f64::max);
    yes_no::multiple_in_units(guess, most, |growth| moves.iter().all(|one| one.is_within(growth, &decay)))
}

/// ε of `moved` counts that change by one each, under the noise of one aggregator alone: `moved`/t, rounded up.
pub fn noise_alone(moved: u64, noise: &DiscreteLaplace) -> Enclosure {
    yes_no::whole_units(&(noise.scale().exact().recip() * BigInt::from(moved)))
}

/// A change of one contribution's truth: the largest ratio of the two laws of all noisy counts, both as coefficients of 1, a and a²,
/// in integers over 2⁶⁴.
struct Move {
    from: [BigInt; 3],
    to: [BigInt; 3],
}

impl Move {
    /// Every change that is possible.
    fn all(contributions: &Contributions) -> Vec<Self> {
        let law = contributions.law();
        let [g, r, s] = [law.told(), law.other(), law.silent()].map(|part| BigInt::from(part.numerator()));
        let others = |fewer: usize| &r * BigInt::from(contributions.counts() - fewer);
        let mut moves = Vec::new();
        if contributions.counts() > 1 {
            let uncounted = if contributions.has_uncounted() { &s + &r } else { s.clone() };
            moves.push(Self {
                from: [g.clone(), uncounted.clone(), others(1)],
                to: [r.clone(), uncounted, &g + others(2)],
            });
        }
        if contributions.has_uncounted() {
            moves.push(Self { from: [g.clone(), &r + &s, others(1)], to: [r.clone(), &g + &s, others(1)] });
            moves.push(Self { from: [&g + &s, others(0), BigInt::ZERO], to: [&r + &s, &g + others(1), BigInt::ZERO] });
        }
        moves
    }

    /// ln(from/to) to some units in the last place of a double: the difference is taken before it is rounded.
    fn approximate(&self, noise: &DiscreteLaplace) -> f64 {
        let decay = noise.decay();
        let double = |value: &BigInt| value.to_f64().unwrap_or(0.0);
        let [one, two, three] = self.to.each_ref().map(double);
        let difference = [0, 2].map(|power: usize| double(&(&self.from[power] - &self.to[power])));
        // The coefficients of the difference sum to zero: Σ dᵢaⁱ = (1 − a)·(d₀ − d₂·a).
        let difference = noise.gap() * (difference[0] - difference[1] * decay);
        (difference / (one + decay * (two + decay * three))).ln_1p()
    }

    /// Whether the ratio is certainly at most the lower end of `growth`. Both laws grow with a. In integers, because reducing
    /// fractions takes most of the time otherwise.
    fn is_within(&self, growth: &Exponential, decay: &Exponential) -> bool {
        let at = |[one, two, three]: &[BigInt; 3], decay: &BigInt| {
            let inner = (two << Exponential::BITS) + three * decay;
            (one << (2 * Exponential::BITS)) + inner * decay
        };
        growth.lower_units() * at(&self.to, decay.lower_units())
            >= at(&self.from, decay.upper_units()) << Exponential::BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Contributions {
        text.parse().unwrap()
    }

    fn claim(text: &str) -> f64 {
        one_aggregator(&read(text)).unwrap().upper()
    }

    #[test]
    fn plain_contributions_cost_two_over_the_scale_each() {
        assert_eq!(claim("choice(k=3,r=0) + laplace(scale=2)"), 1.0);
        assert_eq!(claim("contributions(counts=288,most=5,r=0) + laplace(scale=10)"), 1.0);
        assert_eq!(claim("contributions(counts=1,most=1,r=0) + laplace(scale=2)"), 0.5);
        assert_eq!(claim("choice(k=2,r=0) + laplace(scale=3)"), 0.333_333_333_334);
        assert_eq!(claim("choice(k=4,r=1/4) + laplace(scale=3)"), 0.0);
    }

    /// A choice between two options and a single count are accounted for alike by both formulas.
    #[test]
    fn two_options_cost_what_the_yes_no_question_costs() {
        for text in [
            "choice(k=2,f=0.5,r=0.1) + laplace(scale=1)",
            "choice(k=2,f=1,r=0.0003) + laplace(scale=1.3)",
            "contributions(counts=1,most=1,r=0.01) + laplace(scale=0.7)",
        ] {
            let contributions = read(text);
            let channel = contributions.yes_no().unwrap().channel();
            assert_eq!(one_aggregator(&contributions), yes_no::one_aggregator(&channel), "{text}");
            assert_eq!(linked_epsilon(&contributions), crate::privacy::linked_epsilon(&channel), "{text}");
        }
    }
}
