//! Sums of independent integer scores, by their characteristic function under a tilt.
//!
//! A score stands for a real number on a lattice. The transform's error is absolute; with a tilt that puts the mean of the
//! sum where the question is, it is relative to the answer (`docs/accounting.md`, "Sums of scores").

use super::fourier::{Complex, Fourier};
use super::root::{Middle, bisect, bisect_integers};
use super::roots_of_unity::Roots;
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
    /// How far each value may be off, apart from what folds back from outside the window, which only adds.
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
            let (below, above) = self.chernoff(tilt, base, log_cut, usual * f64::from(quarter).exp2().sqrt());
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

    /// Sums below and above which the tilted law, of the cumulant `base`, has at most e^`log_cut`: by a tilt that is one
    /// step further.
    fn chernoff(&self, tilt: f64, base: f64, log_cut: f64, step: f64) -> (f64, f64) {
        let above = (self.cumulant(tilt + step) - base - log_cut) / step;
        let below = -(self.cumulant(tilt - step) - base - log_cut) / step;
        (below, above)
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
        let parts: Vec<Tilted> = self.groups.iter().map(|group| Tilted::new(group, tilt, roots.length)).collect();
        let (last, mut left_out) = last_node(&parts, roots.length);
        for node in 0..=last {
            let weight = roots.weight(node);
            let product = Product::at(node, &parts, roots);
            let bound = product.log_bound.exp();
            if product.vanishes {
                left_out += weight * bound;
            } else {
                let error = 1.1 * bound * product.relative_error.min(2.0);
                each(node, product.value, weight * error);
            }
        }
        left_out
    }

    /// The tilted law on a window.
    pub(crate) fn law(&self, tilt: f64, window: Window) -> TiltedLaw {
        let length = window.length();
        let mut spectrum = self.whole_spectrum(tilt, length);
        let fourier = Fourier::new(length);
        fourier.forward(&mut spectrum.nodes);
        let scale = 1.0 / length as f64;
        let transform = fourier.relative_error() * spectrum.norm.sqrt() / (length as f64).sqrt();
        let value = |sum: i64| spectrum.nodes[sum.rem_euclid(length as i64) as usize].real * scale;
        TiltedLaw {
            first: window.low,
            values: (window.low..=window.high).map(value).collect(),
            error: ((spectrum.error + spectrum.left_out) * scale + transform) * 1.01 + 1e-290,
            folded: 4.0 * window.log_outside.exp(),
            log_scale: self.cumulant(tilt),
            relative_error: self.relative_error(tilt),
            tilt,
        }
    }

    /// The conjugate of the spectrum at all nodes: the inverse transform is the conjugate of the transform of the
    /// conjugate, and the law is real.
    fn whole_spectrum(&self, tilt: f64, length: usize) -> Spectrum {
        let mut nodes = vec![Complex::ZERO; length];
        let (mut error, mut norm) = (0.0, 0.0);
        let left_out = self.spectrum(tilt, &Roots::of(length), |node, value, off| {
            error += off;
            norm += value.magnitude().powi(2) * 2.0;
            nodes[node] = value.conjugate();
            if node > 0 && 2 * node < length {
                nodes[length - node] = value;
            }
        });
        Spectrum { nodes, error, norm, left_out }
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
        if window.high - window.low + 1 > LONGEST {
            return f64::INFINITY;
        }
        let inside = self.tilted_positive_part(tilt, window);
        let outside = window.log_outside.exp() * largest_term(tilt, highest);
        (inside + outside) * self.cumulant(tilt).exp() * (1.0 + 2.0 * self.relative_error(tilt) + 1e-12)
    }

    /// Σ j·e^(−tilt·j) times the tilted law, over the positive sums j of the window, from above.
    fn tilted_positive_part(&self, tilt: f64, window: Window) -> f64 {
        let roots = Roots::of(window.length());
        let terms = Terms { tilt, last: window.high, roots: &roots };
        let (mut sum, mut error) = (0.0, 0.0);
        let left_out = self.spectrum(tilt, &roots, |node, value, off| {
            let (term, term_error) = terms.at(node);
            let weight = roots.weight(node);
            sum += weight * (term.real * value.real - term.imaginary * value.imaginary);
            error += off * term.magnitude() + weight * value.magnitude() * term_error;
        });
        // At a node that is left out, the sum over j has at most as many terms as there are positive sums.
        error += left_out * largest_term(tilt, window.high) * window.high as f64;
        let scale = 1.0 / roots.length as f64;
        (sum.max(0.0) + error * 1.01) * scale * (1.0 + 1e-12)
    }
}

/// The last node that is evaluated, and a bound on what all nodes beyond it may add: the spectrum certainly vanishes there.
///
/// Two scores of weights w and w′ that differ by one cell give |φ|² ≤ 1 − 2ww′(1 − cos θ), which falls with the angle θ. In a
/// crowd of millions all but some dozens of a million nodes are beyond.
fn last_node(parts: &[Tilted], length: usize) -> (usize, f64) {
    let bound = |node: usize| {
        let half_angle = std::f64::consts::PI * node as f64 / length as f64;
        parts.iter().map(|part| part.log_bound(half_angle)).sum::<f64>()
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

/// The values at all nodes of the circle; `error` and `left_out` bound how far a sum over them is off.
struct Spectrum {
    nodes: Vec<Complex>,
    error: f64,
    left_out: f64,
    /// Twice the sum of the squares of the values on half the circle.
    norm: f64,
}

/// The value of the spectrum at one node: the product over all groups and owners.
struct Product {
    value: Complex,
    log_bound: f64,
    relative_error: f64,
    vanishes: bool,
}

impl Product {
    #[inline]
    fn at(node: usize, parts: &[Tilted], roots: &Roots) -> Self {
        let total: f64 = parts.iter().map(|part| part.owners).sum();
        let relative_error = 4.0 * ROUNDOFF * (total + 16.0);
        let mut product = Self { value: Complex::ONE, log_bound: 0.0, relative_error, vanishes: false };
        for part in parts {
            let own = part.at(node, roots);
            let magnitude = own.magnitude();
            product.log_bound += part.owners * (magnitude + part.error).ln();
            if product.log_bound < -VANISHING {
                product.vanishes = true;
                continue;
            }
            product.relative_error += (part.owners * part.error / magnitude).min(1.0);
            product.value = product.value.times(own.power(part.owners as u64));
        }
        product
    }
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
        let weights =
            || self.atoms.iter().map(|&(score, mass)| (score as f64, tilted_mass(score, mass, tilt, normalizer)));
        let mean: f64 = weights().map(|(score, weight)| weight * score).sum();
        (mean, weights().map(|(score, weight)| weight * (score - mean).powi(2)).sum())
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

/// The probability of a score under a tilt, given the logarithm of what all sum to.
#[inline]
fn tilted_mass(score: i64, mass: f64, tilt: f64, normalizer: f64) -> f64 {
    mass * (tilt * score as f64 - normalizer).exp()
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
        let tilted = |&(score, mass): &(i64, f64)| (score, tilted_mass(score, mass, tilt, normalizer));
        let atoms: Vec<(i64, f64)> = group.atoms.iter().map(tilted).collect();
        let exponent = tilt.abs() * group.reach() as f64 + normalizer.abs();
        let error = ROUNDOFF * (32.0 + 2.0 * atoms.len() as f64 + 4.0 * exponent);
        let place = |&(score, weight): &(i64, f64)| (score.rem_euclid(length as i64) as usize, weight);
        Self {
            owners: group.owners as f64,
            weights: atoms.iter().map(place).collect(),
            error,
            neighbours: largest_neighbour_product(&atoms) * (1.0 - 4.0 * error),
        }
    }

    /// A bound on the logarithm of what all owners' factors multiply to at a node of this half angle.
    fn log_bound(&self, half_angle: f64) -> f64 {
        let squared = -4.0 * self.neighbours * half_angle.sin().powi(2);
        // The weights sum to one up to their error, which counts for little while the square is not near zero.
        self.owners * (0.5 * squared.max(-0.5).ln_1p() + 4.0 * self.error)
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

/// The largest product of the weights of two scores that differ by one.
fn largest_neighbour_product(atoms: &[(i64, f64)]) -> f64 {
    let product = |&(score, weight): &(i64, f64)| {
        let above = atoms.iter().filter(|(other, _)| *other == score + 1);
        above.map(|(_, other)| weight * other).fold(0.0, f64::max)
    };
    atoms.iter().map(product).fold(0.0, f64::max)
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
        // The closed form cancels where the terms hardly fall.
        if node == 0 && self.tilt * self.last as f64 <= 2.0 { self.term_by_term() } else { self.closed_form(node) }
    }

    /// The sum at the angle 0.
    fn term_by_term(&self) -> (Complex, f64) {
        let last = self.last as f64;
        let terms = (1..=self.last).map(|j| j as f64 * (-self.tilt * j as f64).exp());
        let sum: f64 = terms.sum();
        (Complex { real: sum, imaginary: 0.0 }, sum * ROUNDOFF * (last + 16.0 + 4.0 * self.tilt * last))
    }

    /// z·(1 − (L+1)·z^L + L·z^(L+1))/(1 − z)² = z·(1 − z^L − L·z^L·(1 − z))/(1 − z)².
    fn closed_form(&self, node: usize) -> (Complex, f64) {
        let last = self.last as f64;
        let z = self.power(1.0, node);
        let to_last = self.power(last, node * self.last as usize);
        let difference = self.one_minus(z, node);
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

    /// z to a power whose angle is that of the root with this number.
    fn power(&self, exponent: f64, number: usize) -> Complex {
        let (size, root) = ((-self.tilt * exponent).exp(), self.roots.root(number).conjugate());
        Complex { real: size * root.real, imaginary: size * root.imaginary }
    }

    /// 1 − z without cancellation: 1 − e^(−t)cos θ = (1 − e^(−t)) + e^(−t)·2·sin²(θ/2).
    fn one_minus(&self, z: Complex, node: usize) -> Complex {
        let half_angle = std::f64::consts::PI * node as f64 / self.roots.length as f64;
        let shrink = (-self.tilt).exp();
        let real = -(-self.tilt).exp_m1() + shrink * 2.0 * half_angle.sin().powi(2);
        Complex { real, imaginary: -z.imaginary }
    }
}
