//! The characteristic function of a sum of scores under a tilt, at the nodes of a circle, and the law that it gives back
//! (`docs/accounting.md`, "Sums of scores").
//!
//! In a large crowd it vanishes at nearly all nodes. Its value at one node shows how far beyond that node it certainly vanishes,
//! so that most nodes are never evaluated.

use std::f64::consts::PI;

use super::circle::Roots;
use super::fourier::{Complex, Fourier};
use super::root::bisect_integers;
use super::rounding::ROUNDOFF;
use super::score_group::{Atom, ScoreGroup};

/// Spectral values below e^(−this) are left out and counted as error. That is far below the rounding errors of those that are
/// used: to leave out less would cost nodes and make no bound sharper.
pub(super) const VANISHING: f64 = 50.0;

/// A bound on the nodes that were not evaluated or too small to be used, and the cost of the scan.
pub(super) struct Scanned {
    /// A bound on the sum over all omitted nodes.
    pub(super) left_out: f64,
    /// How many nodes were evaluated.
    pub(super) evaluated: u64,
}

/// Calls `each` with the nodes of half the circle (the other half is its mirror image) at which the spectrum does not vanish,
/// from the first on: the node, the value there, and its error times the number of nodes it stands for.
pub(super) fn scan(
    groups: &[ScoreGroup],
    tilt: f64,
    roots: &Roots,
    mut each: impl FnMut(usize, Complex, f64),
) -> Scanned {
    let parts: Vec<TiltedGroup> = groups.iter().map(|group| TiltedGroup::new(group, tilt, roots.length)).collect();
    let (last, mut left_out) = last_node(&parts, roots);
    let stride = Stride::new(&parts, roots.length);
    let (mut node, mut evaluated) = (0, 0);
    while node <= last {
        let product = SpectrumProduct::at(node, &parts, roots);
        let weight = roots.weight(node);
        evaluated += 1;
        if product.vanishes {
            let skipped = stride.beyond(product.missing).min(last - node);
            left_out += weight * product.bound() + stride.skipped_mass(skipped);
            node += skipped;
        } else {
            each(node, product.value, weight * product.error());
        }
        node += 1;
    }
    Scanned { left_out, evaluated }
}

/// The tilted law at all places of the circle, and how far each value may be off.
pub(super) fn law(groups: &[ScoreGroup], tilt: f64, length: usize) -> (Vec<f64>, f64) {
    let roots = Roots::of(length);
    let mut spectrum = FirstNodes::default();
    let scanned = scan(groups, tilt, &roots, |node, value, error| spectrum.push(node, value, error));
    let transform = RealTransform::new(spectrum.nodes.len(), &roots);
    let scale = 1.0 / length as f64;
    let mut values = transform.forward(&spectrum.nodes);
    values.iter_mut().for_each(|value| *value *= scale);
    let error = spectrum.error + scanned.left_out + transform.error() * spectrum.square_norm.sqrt();
    (values, error * scale * 1.01 + 1e-290)
}

/// The conjugate of the spectrum, up to the last node at which it does not vanish. The inverse transform is the conjugate of the
/// transform of the conjugate, and the law is real.
#[derive(Default)]
struct FirstNodes {
    nodes: Vec<Complex>,
    error: f64,
    /// The squared norm, mirror images included.
    square_norm: f64,
}

impl FirstNodes {
    fn push(&mut self, node: usize, value: Complex, error: f64) {
        self.error += error;
        self.square_norm += value.magnitude().powi(2) * 2.0;
        self.nodes.resize(node, Complex::ZERO);
        self.nodes.push(value.conjugate());
    }
}

/// The transform, at all places of a circle, of its first nodes with their mirror images.
///
/// If the nodes cover only a small part of the circle, the places are taken apart by their remainders: those of one remainder are
/// a short transform of the same nodes, each turned by its own angle. All results are real, so that two remainders go through one
/// transform, the second as its imaginary part.
struct RealTransform<'a> {
    roots: &'a Roots,
    fourier: Fourier,
    /// The length of a short transform.
    short: usize,
    /// How many remainders there are, and how far apart the places of one are: 1, or even.
    apart: usize,
}

impl<'a> RealTransform<'a> {
    /// A transform of this many nodes.
    fn new(nodes: usize, roots: &'a Roots) -> Self {
        let short = (2 * nodes).next_power_of_two().clamp(2, roots.length);
        Self { roots, fourier: Fourier::new(short), short, apart: roots.length / short }
    }

    fn forward(&self, nodes: &[Complex]) -> Vec<f64> {
        let mut values = vec![0.0; self.roots.length];
        let mut pair = vec![Complex::ZERO; self.short];
        for remainder in (0..self.apart).step_by(2) {
            self.turn_nodes(nodes, remainder, &mut pair);
            self.fourier.forward(&mut pair);
            self.scatter(&pair, remainder, &mut values);
        }
        values
    }

    /// The nodes and their mirror images, turned for a remainder and, times i, for the next one.
    fn turn_nodes(&self, nodes: &[Complex], remainder: usize, pair: &mut [Complex]) {
        pair.fill(Complex::ZERO);
        for (node, value) in nodes.iter().enumerate() {
            let turned = |remainder: usize| *value * self.roots.quick(node * remainder);
            let one = turned(remainder);
            let other = if self.apart > 1 { turned(remainder + 1) } else { Complex::ZERO };
            pair[node] = one + other.turned_left();
            if node > 0 && 2 * node < self.short {
                pair[self.short - node] = one.conjugate() + other.conjugate().turned_left();
            }
        }
    }

    /// Puts the results for a remainder and the next one in their places.
    fn scatter(&self, pair: &[Complex], remainder: usize, values: &mut [f64]) {
        for (value, places) in pair.iter().zip(values.chunks_exact_mut(self.apart)) {
            places[remainder] = value.real;
            if self.apart > 1 {
                places[remainder + 1] = value.imaginary;
            }
        }
    }

    /// How far each value may be off, for nodes with a norm of one.
    fn error(&self) -> f64 {
        let turning = self.roots.quick_error() + Complex::PRODUCT_ERROR + ROUNDOFF;
        (self.fourier.relative_error() + 1.01 * turning) * (2.0 * self.short as f64).sqrt()
    }
}

/// The last node that is evaluated, and a bound on the sum over all nodes beyond it: the spectrum certainly vanishes there.
fn last_node(parts: &[TiltedGroup], roots: &Roots) -> (usize, f64) {
    let log_bound = |node: usize| log_bound(parts, node, roots);
    let length = roots.length;
    let enough = log_vanishing(length);
    let last = length / 2;
    // The bound falls with the node: if it is too large at the last one, it is so everywhere.
    if log_bound(last) >= enough {
        return (last, 0.0);
    }
    let vanishes = |node: i64| log_bound(node as usize) < enough;
    let first = bisect_integers((0, last as i64), |node| !vanishes(node)).1 as usize;
    (first, (length - 2 * first) as f64 * log_bound(first).exp())
}

/// A bound on the logarithm of the spectrum at a node.
///
/// Two scores of weights w and w′ that differ by one cell give |φ|² ≤ 1 − 2ww′(1 − cos θ), which falls with the angle θ. In a
/// crowd of millions it is negligible at all but some dozens of a million nodes.
fn log_bound(parts: &[TiltedGroup], node: usize, roots: &Roots) -> f64 {
    parts.iter().map(|part| part.log_bound(roots.half_angle(node))).sum()
}

/// The logarithm of the largest value at a node that is not evaluated: all of them together have less than e^(−[`VANISHING`]).
fn log_vanishing(length: usize) -> f64 {
    -VANISHING - (length as f64).ln()
}

/// How many nodes after one at which the spectrum vanishes need not be evaluated.
///
/// With weights w_i of scores s_i, 1 − |φ|² = Σ 2w_iw_j(1 − cos (s_i − s_j)θ) over all pairs. Its root changes by at most the
/// standard deviation of a score for each unit of θ (Cauchy and Schwarz: sin² ≤ 2(1 − cos)), and so S, the root of the sum of
/// 1 − |φ|² over all owners, changes by at most that of the sum; and the spectrum is at most e^(−S²/2).
struct Stride {
    log_most: f64,
    /// How much S may change from one node to the next.
    change: f64,
}

impl Stride {
    fn new(parts: &[TiltedGroup], length: usize) -> Self {
        let variance: f64 = parts.iter().map(|part| part.owners * part.variance).sum();
        let angle = 2.0 * PI / length as f64;
        Self { log_most: log_vanishing(length), change: variance.sqrt() * angle * (1.0 + 1e-9) }
    }

    /// How many nodes to skip after one at which all owners together miss this much of |φ|² = 1.
    fn beyond(&self, missing: f64) -> usize {
        let room = missing.sqrt() - (-2.0 * self.log_most).sqrt();
        if room > 0.0 && self.change > 0.0 { (room / self.change * (1.0 - 1e-9)) as usize } else { 0 }
    }

    /// A bound on what skipped nodes and their mirror images may add.
    fn skipped_mass(&self, nodes: usize) -> f64 {
        2.0 * nodes as f64 * self.log_most.exp()
    }
}

/// The value of the spectrum at one node: the product over all groups and owners.
struct SpectrumProduct {
    value: Complex,
    log_bound: f64,
    relative_error: f64,
    vanishes: bool,
    /// The sum of 1 − |φ|² over all owners, from below.
    missing: f64,
}

impl SpectrumProduct {
    #[inline]
    fn at(node: usize, parts: &[TiltedGroup], roots: &Roots) -> Self {
        let total: f64 = parts.iter().map(|part| part.owners).sum();
        let relative_error = 4.0 * ROUNDOFF * (total + 16.0);
        let mut product = Self { value: Complex::ONE, log_bound: 0.0, relative_error, vanishes: false, missing: 0.0 };
        for part in parts {
            product.multiply(part, part.at(node, roots));
        }
        product
    }

    /// Multiplies by a group's value at the node, once for each owner.
    #[inline]
    fn multiply(&mut self, part: &TiltedGroup, value: Complex) {
        let magnitude = value.magnitude();
        let most = magnitude + part.error;
        self.log_bound += part.owners * most.ln();
        self.missing += part.owners * (1.0 - most * most).max(0.0) * (1.0 - 1e-12);
        if self.log_bound < -VANISHING {
            self.vanishes = true;
            return;
        }
        self.relative_error += (part.owners * part.error / magnitude).min(1.0);
        self.value = self.value * value.power(part.owners as u64);
    }

    /// A bound on the magnitude.
    fn bound(&self) -> f64 {
        self.log_bound.exp()
    }

    /// How far the value may be off.
    fn error(&self) -> f64 {
        1.1 * self.bound() * self.relative_error.min(2.0)
    }
}

/// A group's tilted weights, by their places on the circle.
struct TiltedGroup {
    owners: f64,
    weights: Vec<(usize, f64)>,
    error: f64,
    /// The largest product of the weights of two scores that differ by one.
    neighbours: f64,
    /// The variance of a score, from above.
    variance: f64,
}

impl TiltedGroup {
    fn new(group: &ScoreGroup, tilt: f64, length: usize) -> Self {
        let normalizer = group.log_normalizer(tilt);
        let atoms = group.tilted(tilt, normalizer);
        let exponent = tilt.abs() * group.reach() as f64 + normalizer.abs();
        let error = Roots::quick_error_on(length) + ROUNDOFF * (20.0 + 2.0 * atoms.len() as f64 + 4.0 * exponent);
        let place = |&(score, weight): &Atom| (score.rem_euclid(length as i64) as usize, weight);
        Self {
            owners: group.owners as f64,
            weights: atoms.iter().map(place).collect(),
            error,
            neighbours: largest_neighbour_product(&atoms) * (1.0 - 4.0 * error),
            variance: variance(&atoms) * (1.0 + 8.0 * error),
        }
    }

    /// A bound on the logarithm of the product of all owners' factors at a node of this half angle.
    fn log_bound(&self, half_angle: f64) -> f64 {
        let squared = -4.0 * self.neighbours * half_angle.sin().powi(2);
        // The weights sum to one up to their error, which counts for little while the square is not near zero.
        self.owners * (0.5 * squared.max(-0.5).ln_1p() + 4.0 * self.error)
    }

    fn at(&self, node: usize, roots: &Roots) -> Complex {
        self.weights.iter().fold(Complex::ZERO, |sum, (place, weight)| sum + roots.quick(node * place).scaled(*weight))
    }
}

/// The largest product of the weights of two scores that differ by one.
fn largest_neighbour_product(atoms: &[Atom]) -> f64 {
    let weight_of = |score: i64| atoms.iter().filter(move |(other, _)| *other == score).map(|(_, weight)| *weight);
    let products = atoms.iter().flat_map(|&(score, weight)| weight_of(score + 1).map(move |above| weight * above));
    products.fold(0.0, f64::max)
}

/// The mean square of the distance from the computed mean: at least the variance, since the true mean makes it least.
fn variance(atoms: &[Atom]) -> f64 {
    let mean: f64 = atoms.iter().map(|(score, weight)| *score as f64 * weight).sum();
    atoms.iter().map(|(score, weight)| (*score as f64 - mean).powi(2) * weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crowd in which rare owners have large scores, so that the spectrum comes back at many nodes far from the first.
    #[test]
    fn skipped_nodes_vanish() {
        let atoms = vec![(0, 1.0 - 4e-5), (1600, 1e-5), (1601, 1.5e-5), (-900, 1.5e-5)];
        let groups = [ScoreGroup { owners: 100_000_000, atoms }];
        let length = 1 << 20;
        let roots = Roots::of(length);
        let mut is_used = vec![false; length / 2 + 1];
        let scanned = scan(&groups, 0.0, &roots, |node, _, _| is_used[node] = true);
        let parts = [TiltedGroup::new(&groups[0], 0.0, length)];
        let mut left_out = 0.0;
        for node in (0..=length / 2).filter(|node| !is_used[*node]) {
            let product = SpectrumProduct::at(node, &parts, &roots);
            assert!(product.vanishes, "node {node} has e^{}", product.log_bound);
            left_out += roots.weight(node) * product.log_bound.exp();
        }
        assert!(left_out <= scanned.left_out * (1.0 + 1e-6), "{left_out} of {}", scanned.left_out);
        let used = is_used.iter().filter(|used| **used).count();
        assert!(used > 100 && is_used[1000..].contains(&true), "{used} nodes are used");
        assert!(scanned.evaluated < 100_000, "{} nodes were evaluated", scanned.evaluated);
    }

    #[test]
    fn places_taken_apart_are_the_whole_transform() {
        let length = 1 << 17;
        let first: Vec<Complex> =
            (0..40).map(|node| Complex { real: 1.0 / f64::from(node + 1), imaginary: f64::from(node).sin() }).collect();
        let first = [&[Complex::ONE], &first[1..]].concat();
        let roots = Roots::of(length);
        let transform = RealTransform::new(first.len(), &roots);
        let (values, error) = (transform.forward(&first), transform.error());
        let mut whole = vec![Complex::ZERO; length];
        for (node, value) in first.iter().enumerate() {
            whole[node] = *value;
            whole[(length - node) % length] = if node == 0 { *value } else { value.conjugate() };
        }
        let norm = whole.iter().map(|value| value.magnitude().powi(2)).sum::<f64>().sqrt();
        Fourier::new(length).forward(&mut whole);
        let largest = whole.iter().zip(&values).map(|(one, other)| (one.real - other).abs()).fold(0.0, f64::max);
        assert!(largest < 2.0 * error * norm && error < 1e-12, "{largest} for {error}");
    }
}
