//! Exact bounds from counts: Clopper and Pearson's for a probability, and what they say about ε.

use crate::certified::binomial::{Binomial, Coin};
use crate::certified::root::{Middle, bisect};
use crate::numeric::normal;

/// How often an event happened in how many independent trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hits {
    pub(super) hits: u64,
    pub(super) trials: u64,
}

impl Hits {
    fn share(self) -> f64 {
        self.hits as f64 / self.trials as f64
    }
}

/// Bounds are moved outward by this much, which is far more than the rounding of the sums behind them.
const SLACK: f64 = 1e-9;
/// Halvings of an interval of width one; more change nothing in a double.
const HALVINGS: usize = 64;

/// The ε that the counts prove, except with a probability of at most `miss`; 0 if they prove nothing.
///
/// If the law is (ε, δ)-private, P(event) ≤ e^ε·P'(event) + δ. The probability of the event in the first world is
/// bounded from below and that in the second from above, each with half of `miss`, so it does not matter whether the
/// two worlds' samples are independent of each other.
pub(super) fn epsilon(first: Hits, second: Hits, delta: f64, miss: f64) -> f64 {
    let gain = lower(first, miss / 2.0) - delta;
    let loss = upper(second, miss / 2.0);
    if gain > loss { ((gain / loss).ln() * (1.0 - SLACK)).max(0.0) } else { 0.0 }
}

/// Like [`epsilon`], but rough and quick (by Wilson's bounds): good enough to choose an event, not to report one.
pub(super) fn rough_epsilon(first: Hits, second: Hits, delta: f64, z: f64) -> f64 {
    let gain = wilson(first, -z) - delta;
    let loss = wilson(second, z);
    if gain > loss { (gain / loss).ln() } else { 0.0 }
}

/// The normal quantile that [`rough_epsilon`] takes instead of `miss`.
pub(super) fn rough_quantile(miss: f64) -> f64 {
    normal::upper_quantile(miss / 2.0)
}

/// Wilson's bound on a probability: the lower one for a negative quantile, the upper one for a positive.
fn wilson(count: Hits, z: f64) -> f64 {
    if count.trials == 0 {
        return if z < 0.0 { 0.0 } else { 1.0 };
    }
    let n = count.trials as f64;
    let share = count.share();
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((share + z * z / (2.0 * n) + spread) / (1.0 + z * z / n)).clamp(0.0, 1.0)
}

/// The largest probability at which this many hits or more are still no likelier than `miss`.
pub(super) fn lower(count: Hits, miss: f64) -> f64 {
    if count.hits == 0 {
        return 0.0;
    }
    let (low, _) = halved((0.0, count.share()), |p| upper_tail(count, p) <= miss);
    low * (1.0 - SLACK)
}

/// The smallest probability at which this few hits or fewer are no likelier than `miss`.
pub(super) fn upper(count: Hits, miss: f64) -> f64 {
    if count.hits == count.trials {
        return 1.0;
    }
    let (_, high) = halved((count.share(), 1.0), |p| lower_tail(count, p) > miss);
    (high * (1.0 + SLACK)).min(1.0)
}

fn halved(ends: (f64, f64), is_below: impl Fn(f64) -> bool) -> (f64, f64) {
    bisect(ends, Middle::Arithmetic, HALVINGS, |_, _| false, is_below)
}

/// The probability of this many hits or more, if a trial hits with probability `p`.
pub(super) fn upper_tail(count: Hits, p: f64) -> f64 {
    let Hits { hits, trials } = count;
    if hits == 0 {
        return 1.0;
    }
    if hits as f64 > (trials as f64 + 1.0) * p {
        return sum_up(hits, trials, p);
    }
    (1.0 - sum_down(hits - 1, trials, p)).max(0.0)
}

/// The probability of this few hits or fewer, if a trial hits with probability `p`.
pub(super) fn lower_tail(count: Hits, p: f64) -> f64 {
    let Hits { hits, trials } = count;
    if hits >= trials {
        return 1.0;
    }
    if (hits as f64) < (trials as f64 + 1.0) * p {
        return sum_down(hits, trials, p);
    }
    (1.0 - sum_up(hits + 1, trials, p)).max(0.0)
}

/// Terms are added until one is below this share of the sum.
const NEGLIGIBLE: f64 = 1e-18;

fn probability(hits: u64, trials: u64, p: f64) -> f64 {
    Binomial::new(trials, Coin::of(p)).probability(hits).value
}

/// P(X ≥ hits), for `hits` above the most likely count: every term is smaller than the one before it.
fn sum_up(hits: u64, trials: u64, p: f64) -> f64 {
    let n = trials as f64;
    let odds = p / (1.0 - p);
    let ratios = (hits..trials).map(|k| (n - k as f64) / (k as f64 + 1.0) * odds);
    sum_of_falling_terms(probability(hits, trials, p), ratios)
}

/// P(X ≤ hits), for `hits` below the most likely count.
fn sum_down(hits: u64, trials: u64, p: f64) -> f64 {
    let n = trials as f64;
    let against = (1.0 - p) / p;
    let ratios = (1..=hits).rev().map(|k| k as f64 / (n - k as f64 + 1.0) * against);
    sum_of_falling_terms(probability(hits, trials, p), ratios)
}

/// The sum of a first term and those that follow it, each given by its ratio to the one before.
fn sum_of_falling_terms(first: f64, ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut term, mut sum) = (first, first);
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term <= NEGLIGIBLE * sum {
            break;
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hits: u64, trials: u64) -> Hits {
        Hits { hits, trials }
    }

    /// The defining equations have closed forms at the ends: P(X ≥ n) = pⁿ, P(X ≤ 0) = (1−p)ⁿ.
    #[test]
    fn the_ends_have_closed_forms() {
        for trials in [1u64, 7, 1000, 5_000_000] {
            let n = trials as f64;
            let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-7, "{trials}: {a} {b}");
            close(lower(of(trials, trials), 0.005), (0.005f64.ln() / n).exp());
            close(upper(of(0, trials), 0.005), -(0.005f64.ln() / n).exp_m1());
            assert_eq!(lower(of(0, trials), 0.005), 0.0);
            assert_eq!(upper(of(trials, trials), 0.005), 1.0);
        }
    }

    /// Every bound is on the safe side of its defining equation, and within 1e-7 of it.
    #[test]
    fn bounds_solve_their_equations_from_the_safe_side() {
        for (hits, trials) in [(1, 10), (5, 10), (9, 10), (37, 1000), (2, 5_000_000), (2_500_000, 5_000_000)] {
            for miss in [0.05, 1e-4, 1e-9] {
                let low = lower(of(hits, trials), miss);
                assert!(upper_tail(of(hits, trials), low) <= miss);
                assert!(upper_tail(of(hits, trials), low * (1.0 + 1e-7)) > miss * (1.0 - 1e-3));
                let high = upper(of(hits, trials), miss);
                assert!(lower_tail(of(hits, trials), high) <= miss * (1.0 + 1e-12));
                assert!(low < hits as f64 / trials as f64 && hits as f64 / (trials as f64) < high);
            }
        }
    }

    #[test]
    fn tails_are_those_of_the_whole_sum() {
        let (trials, p) = (23u64, 0.37);
        let masses: Vec<f64> = (0..=trials).map(|k| probability(k, trials, p)).collect();
        for hits in 0..=trials {
            let above: f64 = masses[hits as usize..].iter().sum();
            let below: f64 = masses[..=hits as usize].iter().sum();
            assert!((upper_tail(of(hits, trials), p) - above).abs() < 1e-12);
            assert!((lower_tail(of(hits, trials), p) - below).abs() < 1e-12);
        }
        assert_eq!(upper_tail(of(1, 10), 0.0), 0.0);
        assert_eq!(lower_tail(of(9, 10), 1.0), 0.0);
        assert_eq!(lower_tail(of(0, 10), 0.0), 1.0);
        assert_eq!(upper_tail(of(10, 10), 1.0), 1.0);
    }

    /// How often the bound lies above the truth is computed, not simulated: never more often than it may.
    #[test]
    fn the_bound_on_epsilon_misses_no_more_often_than_it_says() {
        let (trials, p, q, miss) = (60u64, 0.6, 0.2, 0.05);
        let truth = f64::ln(p / q);
        let mut missed = 0.0;
        for first in 0..=trials {
            for second in 0..=trials {
                if epsilon(of(first, trials), of(second, trials), 0.0, miss) > truth {
                    missed += probability(first, trials, p) * probability(second, trials, q);
                }
            }
        }
        assert!(missed <= miss && missed > 0.0, "{missed}");
    }

    #[test]
    fn delta_is_paid_for() {
        let (first, second) = (of(500, 1000), of(10, 1000));
        assert!(epsilon(first, second, 0.1, 0.01) < epsilon(first, second, 0.0, 0.01));
        assert_eq!(epsilon(first, second, 0.6, 0.01), 0.0);
        assert_eq!(epsilon(second, first, 0.0, 0.01), 0.0);
    }
}
