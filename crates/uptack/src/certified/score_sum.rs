//! Sums of independent integer scores, by their characteristic function under a tilt.
//!
//! A score stands for a real number on a lattice. The transform's error is absolute; with a tilt that puts the mean of the
//! sum where the question is, it is relative to the answer (`docs/accounting.md`, "Sums of scores").

use std::cell::RefCell;
use std::rc::Rc;

use super::fourier::{Complex, Fourier};
use super::root::{Middle, bisect, bisect_integers};
use super::rounding::ROUNDOFF;

/// Owners who draw their scores independently from one law.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) owners: u64,
    /// Scores with their probabilities.
    pub(crate) atoms: Vec<(i64, f64)>,
}

/// The sum of the scores of several groups of owners.
#[derive(Clone, Debug)]
pub(crate) struct ScoreSum {
    pub(crate) groups: Vec<Draws>,
}

/// Sums that the transform represents, and how little of the tilted law lies outside on either side, as a logarithm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) log_outside: f64,
}

impl Window {
    /// From the lowest to the highest sum.
    pub(crate) fn span(&self) -> i64 {
        self.high - self.low
    }

    /// The nodes of a circle on which no two sums of the window fall together.
    fn length(&self) -> usize {
        ((self.high - self.low + 1) as usize).next_power_of_two().max(2)
    }
}

/// The tilted law of a sum on a window. The probability of a sum j is e^(`log_scale` − tilt·j) times its value here.
#[derive(Clone, Debug)]
pub(crate) struct TiltedLaw {
    pub(crate) first: i64,
    pub(crate) values: Vec<f64>,
    /// How far each value may be off, but for what folds back from outside of the window, which only adds.
    pub(crate) error: f64,
    pub(crate) folded: f64,
    pub(crate) log_scale: f64,
    /// Relative error of e^`log_scale` and of the tilted weights together.
    pub(crate) relative_error: f64,
    pub(crate) tilt: f64,
}

impl TiltedLaw {
    /// The true value behind a computed one, from below.
    #[inline]
    pub(crate) fn lower_bound(&self, value: f64) -> f64 {
        (value - self.error - self.folded).max(0.0)
    }

    /// The same from above.
    #[inline]
    pub(crate) fn upper_bound(&self, value: f64) -> f64 {
        value.max(0.0) + self.error
    }
}

/// Spectral values below e^(−this) are left out and counted as error.
const VANISHING: f64 = 80.0;
/// The longest transform.
pub(crate) const LONGEST: i64 = 1 << 21;

impl ScoreSum {
    /// ln E[e^(tilt·sum)].
    pub(crate) fn cumulant(&self, tilt: f64) -> f64 {
        self.groups.iter().map(|group| group.owners as f64 * group.log_normalizer(tilt)).sum()
    }

    /// Relative error of e^cumulant, the laws' own roundings included.
    pub(crate) fn relative_error(&self, tilt: f64) -> f64 {
        let error = |group: &Draws| group.owners as f64 * (16.0 + 8.0 * tilt.abs() * group.reach() as f64);
        ROUNDOFF * self.groups.iter().map(error).sum::<f64>()
    }

    /// Mean and variance of the tilted sum.
    pub(crate) fn moments(&self, tilt: f64) -> (f64, f64) {
        let add = |(mean, variance): (f64, f64), group: &Draws| {
            let (own_mean, own_variance) = group.moments(tilt);
            (mean + group.owners as f64 * own_mean, variance + group.owners as f64 * own_variance)
        };
        self.groups.iter().fold((0.0, 0.0), add)
    }

    /// The smallest and the largest possible sum.
    pub(crate) fn extremes(&self) -> (i64, i64) {
        let extreme = |pick: fn(&Draws) -> i64| -> i64 {
            self.groups.iter().map(|group| pick(group).saturating_mul(group.owners as i64)).fold(0, i64::saturating_add)
        };
        (extreme(Draws::lowest), extreme(Draws::highest))
    }

    /// The tilt at which the mean is `wanted`, or the nearest one that is neither negative nor too steep for doubles.
    pub(crate) fn tilt_for(&self, wanted: f64) -> f64 {
        if self.moments(0.0).0 >= wanted {
            return 0.0;
        }
        let reach = self.groups.iter().map(Draws::reach).max().unwrap_or(1).max(1) as f64;
        let (mut low, mut high) = (0.0, 1.0 / reach);
        while self.moments(high).0 < wanted {
            (low, high) = (high, 2.0 * high);
            if high * reach > 500.0 {
                return low;
            }
        }
        let close = |low: f64, high: f64| high - low < 1e-3 * high;
        bisect((low, high), Middle::Arithmetic, 30, close, |tilt| self.moments(tilt).0 < wanted).0
    }

    /// All of the tilted sum but e^`log_cut` on either side (Chernoff).
    pub(crate) fn window(&self, tilt: f64, log_cut: f64) -> Window {
        let base = self.cumulant(tilt);
        let (_, variance) = self.moments(tilt);
        let (lowest, highest) = self.extremes();
        let usual = (-2.0 * log_cut / variance.max(1e-12)).sqrt();
        let (mut low, mut high) = (lowest as f64, highest as f64);
        for quarter in -12..=8 {
            let step = usual * f64::from(quarter).exp2().sqrt();
            let above = (self.cumulant(tilt + step) - base - log_cut) / step;
            let below = -(self.cumulant(tilt - step) - base - log_cut) / step;
            // Slightly wider, which covers the rounding of the cumulants.
            let room = 1.0 + 1e-6 * (above.abs() + below.abs());
            if above.is_finite() {
                high = high.min(above + room);
            }
            if below.is_finite() {
                low = low.max(below - room);
            }
        }
        Window { low: (low.floor() as i64).max(lowest), high: (high.ceil() as i64).min(highest), log_outside: log_cut }
    }

    /// How many nodes of its circle a transform on this window evaluates.
    pub(crate) fn nodes(&self, tilt: f64, window: Window) -> u64 {
        let length = window.length();
        let parts: Vec<Tilted> = self.groups.iter().map(|group| Tilted::new(group, tilt, length)).collect();
        last_node(&parts, length).0 as u64 + 1
    }

    /// Calls `each` with every node of half the circle (the other half is its mirror image), the value of the spectrum there, and
    /// its error times the number of nodes it stands for. Returns a bound on what all nodes that are left out may add.
    fn spectrum(&self, tilt: f64, roots: &Roots, mut each: impl FnMut(usize, Complex, f64)) -> f64 {
        let length = roots.length;
        let parts: Vec<Tilted> = self.groups.iter().map(|group| Tilted::new(group, tilt, length)).collect();
        let total: f64 = parts.iter().map(|part| part.owners).sum();
        let (last, mut left_out) = last_node(&parts, length);
        for node in 0..=last {
            let weight = if node == 0 || 2 * node == length { 1.0 } else { 2.0 };
            let mut log_bound = 0.0;
            let mut relative = 4.0 * ROUNDOFF * (total + 16.0);
            let mut value = Complex::ONE;
            let mut vanished = false;
            for part in &parts {
                let own = part.at(node, roots);
                let magnitude = own.magnitude();
                log_bound += part.owners * (magnitude + part.error).ln();
                if log_bound < -VANISHING {
                    vanished = true;
                    continue;
                }
                relative += (part.owners * part.error / magnitude).min(1.0);
                value = value.times(own.power(part.owners as u64));
            }
            if vanished {
                left_out += weight * log_bound.exp();
            } else {
                let bound = log_bound.exp();
                let error = 1.1 * bound * relative.min(2.0);
                each(node, value, weight * error);
            }
        }
        left_out
    }

    /// The tilted law on a window.
    pub(crate) fn law(&self, tilt: f64, window: Window) -> TiltedLaw {
        let length = window.length();
        let roots = Roots::of(length);
        let mut full = vec![Complex::ZERO; length];
        let (mut error, mut norm) = (0.0, 0.0);
        let left_out = self.spectrum(tilt, &roots, |node, value, off| {
            error += off;
            norm += value.magnitude().powi(2) * 2.0;
            // The inverse transform is the conjugate of the transform of the conjugate, and the sum is real.
            full[node] = value.conjugate();
            if node > 0 && 2 * node < length {
                full[length - node] = value;
            }
        });
        let fourier = Fourier::new(length);
        fourier.forward(&mut full);
        let scale = 1.0 / length as f64;
        let transform = fourier.relative_error() * norm.sqrt() / (length as f64).sqrt();
        let size = (window.high - window.low + 1) as usize;
        let values = (0..size)
            .map(|index| full[(window.low + index as i64).rem_euclid(length as i64) as usize].real * scale)
            .collect();
        TiltedLaw {
            first: window.low,
            values,
            error: ((error + left_out) * scale + transform) * 1.01 + 1e-290,
            folded: 4.0 * window.log_outside.exp(),
            log_scale: self.cumulant(tilt),
            relative_error: self.relative_error(tilt),
            tilt,
        }
    }

    /// E[(sum)₊] from above, in units of the lattice.
    pub(crate) fn positive_part(&self, log_cut: f64) -> f64 {
        let (lowest, highest) = self.extremes();
        if highest <= 0 {
            return 0.0;
        }
        if lowest >= 0 {
            return self.moments(0.0).0.max(0.0) * (1.0 + 1e-12 + self.relative_error(0.0));
        }
        // With the mean at zero, the terms j·e^(−tilt·j) are largest about where the tilted law is.
        let tilt = self.tilt_for(0.0);
        let window = self.window(tilt, log_cut.max(-VANISHING + 10.0));
        if window.high <= 0 {
            return (self.cumulant(tilt)).exp() * window.log_outside.exp() * largest_term(tilt, highest) * 1.01;
        }
        let span = window.high - window.low + 1;
        if span > LONGEST {
            return f64::INFINITY;
        }
        let roots = Roots::of(window.length());
        let terms = Terms { tilt, last: window.high, roots: &roots };
        let (mut sum, mut error) = (0.0, 0.0);
        let peak = largest_term(tilt, window.high);
        let left_out = self.spectrum(tilt, &roots, |node, value, off| {
            let (term, term_error) = terms.at(node);
            let weight = if node == 0 || 2 * node == roots.length { 1.0 } else { 2.0 };
            sum += weight * (term.real * value.real - term.imaginary * value.imaginary);
            error += off * term.magnitude() + weight * value.magnitude() * term_error;
        });
        // At a node that is left out, the sum over j has at most as many terms as there are positive sums.
        error += left_out * peak * window.high as f64;
        let scale = 1.0 / roots.length as f64;
        let inside = (sum.max(0.0) + error * 1.01) * scale * (1.0 + 1e-12);
        let outside = window.log_outside.exp() * largest_term(tilt, highest);
        (inside + outside) * self.cumulant(tilt).exp() * (1.0 + 2.0 * self.relative_error(tilt) + 1e-12)
    }
}

/// The last node that is evaluated, and a bound on what all nodes beyond it may add: the spectrum certainly vanishes there.
///
/// Two scores of weights w and w′ that differ by one cell give |φ|² ≤ 1 − 2ww′(1 − cos θ), which falls with the angle θ. In a
/// crowd of millions all but some dozens of a million nodes are beyond.
fn last_node(parts: &[Tilted], length: usize) -> (usize, f64) {
    let bound = |node: usize| {
        let half_angle = std::f64::consts::PI * node as f64 / length as f64;
        let part = |part: &Tilted| {
            let squared = -4.0 * part.neighbours * half_angle.sin().powi(2);
            // The weights sum to one but for their error, which counts for little while the square is not near zero.
            part.owners * (0.5 * squared.max(-0.5).ln_1p() + 4.0 * part.error)
        };
        parts.iter().map(part).sum::<f64>()
    };
    let enough = -VANISHING - (length as f64).ln();
    let last = length / 2;
    // The bound falls with the node: if it is too large at the last one, it is so everywhere.
    if bound(last) >= enough {
        return (last, 0.0);
    }
    let is_below = |node: i64| {
        let vanishes = bound(node as usize) < enough;
        !vanishes
    };
    let first = bisect_integers((0, last as i64), is_below).1 as usize;
    (first, (length - 2 * first) as f64 * bound(first).exp())
}

/// The largest j·e^(−tilt·j) for j from 1 to `last`.
fn largest_term(tilt: f64, last: i64) -> f64 {
    let last = last.max(1) as f64;
    if tilt * last <= 1.0 { last } else { (1.0 / (std::f64::consts::E * tilt)).max(1.0) }
}

impl Draws {
    fn log_normalizer(&self, tilt: f64) -> f64 {
        let peak = self.atoms.iter().map(|(score, _)| tilt * *score as f64).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.atoms.iter().map(|(score, mass)| mass * (tilt * *score as f64 - peak).exp()).sum();
        if peak.abs() < 1e-3 {
            // Near zero the sum of the probabilities themselves is one, exactly.
            let excess: f64 = self.atoms.iter().map(|(score, mass)| mass * (tilt * *score as f64).exp_m1()).sum();
            return excess.ln_1p();
        }
        peak + sum.ln()
    }

    fn moments(&self, tilt: f64) -> (f64, f64) {
        let normalizer = self.log_normalizer(tilt);
        let weight = |score: i64, mass: f64| mass * (tilt * score as f64 - normalizer).exp();
        let mean: f64 = self.atoms.iter().map(|(score, mass)| weight(*score, *mass) * *score as f64).sum();
        let square = |score: i64, mass: f64| weight(score, mass) * (score as f64 - mean).powi(2);
        (mean, self.atoms.iter().map(|(score, mass)| square(*score, *mass)).sum())
    }

    fn reach(&self) -> i64 {
        self.atoms.iter().map(|(score, _)| score.abs()).max().unwrap_or(0)
    }

    fn lowest(&self) -> i64 {
        self.atoms.iter().map(|(score, _)| *score).min().unwrap_or(0)
    }

    fn highest(&self) -> i64 {
        self.atoms.iter().map(|(score, _)| *score).max().unwrap_or(0)
    }
}

/// A group's tilted weights, by their places on the circle.
struct Tilted {
    owners: f64,
    weights: Vec<(usize, f64)>,
    error: f64,
    /// The largest product of the weights of two scores that differ by one.
    neighbours: f64,
}

impl Tilted {
    fn new(group: &Draws, tilt: f64, length: usize) -> Self {
        let normalizer = group.log_normalizer(tilt);
        let tilted = |score: i64, mass: f64| mass * (tilt * score as f64 - normalizer).exp();
        let weight = |&(score, mass): &(i64, f64)| (score.rem_euclid(length as i64) as usize, tilted(score, mass));
        let exponent = tilt.abs() * group.reach() as f64 + normalizer.abs();
        let error = ROUNDOFF * (32.0 + 2.0 * group.atoms.len() as f64 + 4.0 * exponent);
        let product = |&(score, mass): &(i64, f64)| {
            let above = group.atoms.iter().filter(|(other, _)| *other == score + 1);
            above.map(|(other, own)| tilted(score, mass) * tilted(*other, *own)).fold(0.0, f64::max)
        };
        let neighbours = group.atoms.iter().map(product).fold(0.0, f64::max) * (1.0 - 4.0 * error);
        Self { owners: group.owners as f64, weights: group.atoms.iter().map(weight).collect(), error, neighbours }
    }

    fn at(&self, node: usize, roots: &Roots) -> Complex {
        let mut sum = Complex::ZERO;
        for (place, weight) in &self.weights {
            let root = roots.root(node * place);
            sum.real += weight * root.real;
            sum.imaginary += weight * root.imaginary;
        }
        sum
    }
}

/// Σ j·z^j for j from 1 to `last` with z = e^(−tilt + iθ), θ the angle of a node: the transform of the positive part.
struct Terms<'a> {
    tilt: f64,
    last: i64,
    roots: &'a Roots,
}

impl Terms<'_> {
    /// The sum at a node, and how far it may be off.
    fn at(&self, node: usize) -> (Complex, f64) {
        let last = self.last as f64;
        // The closed form below cancels where the terms hardly fall.
        if node == 0 && self.tilt * last <= 2.0 {
            let terms = (1..=self.last).map(|j| j as f64 * (-self.tilt * j as f64).exp());
            let sum: f64 = terms.sum();
            return (Complex { real: sum, imaginary: 0.0 }, sum * ROUNDOFF * (last + 16.0 + 4.0 * self.tilt * last));
        }
        let power = |exponent: f64, index: usize| {
            let (size, root) = ((-self.tilt * exponent).exp(), self.roots.root(index).conjugate());
            Complex { real: size * root.real, imaginary: size * root.imaginary }
        };
        let z = power(1.0, node);
        let to_last = power(last, node * self.last as usize);
        // 1 − z without cancellation: 1 − e^(−t)cos θ = (1 − e^(−t)) + e^(−t)·2·sin²(θ/2).
        let half_angle = std::f64::consts::PI * node as f64 / self.roots.length as f64;
        let shrink = (-self.tilt).exp();
        let real = -(-self.tilt).exp_m1() + shrink * 2.0 * half_angle.sin().powi(2);
        let difference = Complex { real, imaginary: -z.imaginary };
        // z·(1 − (L+1)·z^L + L·z^(L+1))/(1 − z)² = z·(1 − z^L − L·z^L·(1 − z))/(1 − z)².
        let scaled = to_last.times(difference);
        let numerator = Complex {
            real: 1.0 - to_last.real - last * scaled.real,
            imaginary: -to_last.imaginary - last * scaled.imaginary,
        };
        let square = difference.times(difference);
        let norm = square.real * square.real + square.imaginary * square.imaginary;
        let inverse = Complex { real: square.real / norm, imaginary: -square.imaginary / norm };
        let value = z.times(numerator).times(inverse);
        let size = (1.0 + to_last.magnitude() * (1.0 + last * difference.magnitude())) / norm.sqrt();
        (value, ROUNDOFF * (64.0 + 4.0 * self.tilt * last) * size)
    }
}

/// Roots of unity on a circle, e^(−2πi·k/length).
struct Roots {
    length: usize,
    half: Vec<Complex>,
}

thread_local! {
    /// The circles used last: the evaluations of one question share them.
    static CIRCLES: RefCell<Vec<Rc<Roots>>> = const { RefCell::new(Vec::new()) };
}

impl Roots {
    fn of(length: usize) -> Rc<Self> {
        CIRCLES.with_borrow_mut(|circles| {
            if let Some(known) = circles.iter().find(|roots| roots.length == length) {
                return Rc::clone(known);
            }
            let step = -2.0 * std::f64::consts::PI / length as f64;
            let root = |index: usize| {
                let (imaginary, real) = (step * index as f64).sin_cos();
                Complex { real, imaginary }
            };
            let roots = Rc::new(Self { length, half: (0..length / 2).map(root).collect() });
            circles.retain(|kept| kept.length <= 1 << 16);
            circles.push(Rc::clone(&roots));
            roots
        })
    }

    /// The root with this number, modulo the length.
    fn root(&self, number: usize) -> Complex {
        let index = number & (self.length - 1);
        if index < self.half.len() {
            return self.half[index];
        }
        let Complex { real, imaginary } = self.half[index - self.half.len()];
        Complex { real: -real, imaginary: -imaginary }
    }
}
