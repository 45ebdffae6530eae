//! Roots of unity, and the transform of the positive part on them (`docs/accounting.md`, "Sums of scores").

use std::cell::RefCell;
use std::f64::consts::PI;
use std::rc::Rc;

use super::fourier::Complex;
use super::rounding::ROUNDOFF;

/// Σ j·z^j for j from 1 to `last` with z = e^(−tilt + iθ), θ the angle of a node: the transform of the positive part.
pub(super) struct FallingTerms<'a> {
    tilt: f64,
    last: i64,
    roots: &'a Roots,
    /// |z|, 1 − |z| and |z|^last.
    size: f64,
    gap: f64,
    last_size: f64,
}

impl<'a> FallingTerms<'a> {
    pub(super) fn new(tilt: f64, last: i64, roots: &'a Roots) -> Self {
        Self { tilt, last, roots, size: (-tilt).exp(), gap: -(-tilt).exp_m1(), last_size: falling_power(tilt, last) }
    }

    /// The sum at a node, and how far it may be off.
    fn at(&self, node: usize) -> (Complex, f64) {
        // At angle zero the closed form cancels if the terms hardly fall.
        if node == 0 && self.tilt * self.last as f64 <= 2.0 { self.at_angle_zero() } else { self.closed_form(node) }
    }

    /// What a node of the spectrum adds to the sum of the terms times the law, and how far that may be off, given the value at
    /// the node and its error times the number of nodes it stands for.
    pub(super) fn product_with(&self, node: usize, value: Complex, weighted_error: f64) -> (f64, f64) {
        let (term, term_error) = self.at(node);
        let weight = self.roots.weight(node);
        let product = weight * (term.real * value.real - term.imaginary * value.imaginary);
        (product, weighted_error * term.magnitude() + weight * value.magnitude() * term_error)
    }

    fn at_angle_zero(&self) -> (Complex, f64) {
        let last = self.last as f64;
        let sum = falling_sum(self.tilt, self.last);
        (Complex { real: sum, imaginary: 0.0 }, sum * ROUNDOFF * (last + 64.0 + 8.0 * self.tilt * last))
    }

    /// z·(1 − (L+1)·z^L + L·z^(L+1))/(1 − z)² = z·(1 − z^L − L·z^L·(1 − z))/(1 − z)².
    fn closed_form(&self, node: usize) -> (Complex, f64) {
        let last = self.last as f64;
        let Node { root, one_minus_cosine } = self.roots.node(node);
        let z = root.conjugate().scaled(self.size);
        let to_last = self.roots.quick(node * self.last as usize).conjugate().scaled(self.last_size);
        // 1 − e^(−t)cos θ = (1 − e^(−t)) + e^(−t)·(1 − cos θ).
        let difference = Complex { real: self.gap + self.size * one_minus_cosine, imaginary: -z.imaginary };
        let numerator = Complex::ONE - to_last - (to_last * difference).scaled(last);
        let square = difference * difference;
        let value = z * numerator * square.reciprocal();
        let size = (1.0 + to_last.magnitude() * (1.0 + last * difference.magnitude())) / square.magnitude();
        (value, ROUNDOFF * (96.0 + 4.0 * self.tilt * last) * size)
    }
}

/// Σ j·e^(−tilt·j) for j from 1 to `last`, by positive additions: block by block, then what is left after the last whole block.
fn falling_sum(tilt: f64, last: i64) -> f64 {
    let block = ((last as f64).sqrt() as i64).max(1);
    let in_blocks = last / block * block;
    sum_of_blocks(tilt, block, in_blocks) + (in_blocks + 1..=last).map(|j| falling_term(tilt, j)).sum::<f64>()
}

/// The same sum up to a multiple of `block`: each block is a power times the sums of the first.
fn sum_of_blocks(tilt: f64, block: i64, last: i64) -> f64 {
    let powers: f64 = (1..=block).map(|j| falling_power(tilt, j)).sum();
    let terms: f64 = (1..=block).map(|j| falling_term(tilt, j)).sum();
    let starts = (0..last).step_by(block as usize);
    starts.map(|start| falling_power(tilt, start) * (start as f64 * powers + terms)).sum()
}

fn falling_term(tilt: f64, j: i64) -> f64 {
    j as f64 * falling_power(tilt, j)
}

fn falling_power(tilt: f64, j: i64) -> f64 {
    (-tilt * j as f64).exp()
}

/// Roots of unity on a circle, e^(−2πi·k/length), the length a power of two.
pub(super) struct Roots {
    pub(super) length: usize,
    /// The first half of a short circle; every `LONG_STEP`-th of the first half of a long one.
    coarse: Vec<Complex>,
    /// The first roots of a long circle, up to one coarse step.
    fine: Vec<Complex>,
    /// The first nodes, where most of a spectrum is.
    first_nodes: Vec<Node>,
}

/// What a node's angle gives, with small relative errors.
#[derive(Clone, Copy)]
struct Node {
    root: Complex,
    /// 2·sin²(θ/2) = 1 − cos θ at its angle θ, without cancellation.
    one_minus_cosine: f64,
}

/// How many nodes of a circle are kept. Those of a large crowd's spectrum are the first thousand or two.
const KEPT_NODES: usize = 1 << 12;

/// Of longer circles not all roots are kept: the table would not fit into the caches, and making it would take longer than most
/// of what it is used for.
const LONGEST_TABLE: usize = 1 << 16;
/// How far apart the coarse roots of a long circle are.
const LONG_STEP: usize = 1 << 10;

thread_local! {
    /// The circles used so far: there are few lengths.
    static CIRCLES: RefCell<Vec<Rc<Roots>>> = const { RefCell::new(Vec::new()) };
}

impl Roots {
    /// The roots on a circle of this length, from those made before if possible.
    pub(super) fn of(length: usize) -> Rc<Self> {
        CIRCLES.with_borrow_mut(|circles| {
            if let Some(known) = circles.iter().find(|roots| roots.length == length) {
                return Rc::clone(known);
            }
            let roots = Rc::new(Self::new(length));
            circles.push(Rc::clone(&roots));
            roots
        })
    }

    fn new(length: usize) -> Self {
        let (step, fine) = if length > LONGEST_TABLE { (LONG_STEP, LONG_STEP) } else { (1, 0) };
        let root = |index: usize| Complex::root_of_unity(index, length);
        let coarse = (0..length / 2).step_by(step).map(root).collect();
        let mut roots = Self { length, coarse, fine: (0..fine).map(root).collect(), first_nodes: Vec::new() };
        roots.first_nodes = (0..KEPT_NODES.min(length / 2)).map(|node| roots.new_node(node)).collect();
        roots
    }

    /// A node of the first half of the circle.
    fn node(&self, node: usize) -> Node {
        self.first_nodes.get(node).copied().unwrap_or_else(|| self.new_node(node))
    }

    fn new_node(&self, node: usize) -> Node {
        Node { root: self.root(node), one_minus_cosine: 2.0 * self.half_angle(node).sin().powi(2) }
    }

    /// Half the angle of a node.
    pub(super) fn half_angle(&self, node: usize) -> f64 {
        PI * node as f64 / self.length as f64
    }

    /// How many nodes of the whole circle a node of its first half stands for.
    pub(super) fn weight(&self, node: usize) -> f64 {
        if node == 0 || 2 * node == self.length { 1.0 } else { 2.0 }
    }

    /// The root with this number, modulo the length. Its sine and its cosine have small relative errors.
    pub(super) fn root(&self, number: usize) -> Complex {
        self.by_halves(number, |index| {
            if self.fine.is_empty() { self.coarse[index] } else { Complex::root_of_unity(index, self.length) }
        })
    }

    /// The same, faster on a long circle, with an error of up to [`Self::quick_error`].
    #[inline]
    pub(super) fn quick(&self, number: usize) -> Complex {
        self.by_halves(number, |index| {
            if self.fine.is_empty() {
                self.coarse[index]
            } else {
                self.coarse[index / LONG_STEP] * self.fine[index % LONG_STEP]
            }
        })
    }

    /// The absolute error of [`Self::quick`] on a circle of this length: that of a root of unity; a product has twice that and
    /// its own.
    pub(super) fn quick_error_on(length: usize) -> f64 {
        if length > LONGEST_TABLE { 25.0 * ROUNDOFF + Complex::PRODUCT_ERROR } else { Complex::ROOT_ERROR }
    }

    pub(super) fn quick_error(&self) -> f64 {
        Self::quick_error_on(self.length)
    }

    /// A root from those of the first half of the circle: the others have the opposite sign. Left to itself, the compiler calls
    /// it once for every class at every node.
    #[inline(always)]
    fn by_halves(&self, number: usize, of_first_half: impl Fn(usize) -> Complex) -> Complex {
        let half = self.length / 2;
        let root = of_first_half(number & (half - 1));
        if number & half == 0 { root } else { -root }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_in_blocks_are_the_terms() {
        for (tilt, last) in [(0.0, 1), (0.1, 7), (2e-4, 10_000), (1e-3, 1999), (0.0, 1_000_003)] {
            let plain: f64 = (1..=last).map(|j| j as f64 * (-tilt * j as f64).exp()).sum();
            let roots = Roots::of(2);
            let (sum, error) = FallingTerms::new(tilt, last, &roots).at(0);
            // The plain sum is off by as much, in the worst case.
            assert!((sum.real - plain).abs() <= 2.0 * error, "{tilt}, {last}: {sum:?}, not {plain}");
            assert!((sum.real / plain - 1.0).abs() < 1e-12, "{tilt}, {last}: {sum:?}, not {plain}");
        }
    }

    /// On a long circle; the last node is not among those that are kept.
    #[test]
    fn terms_at_a_node_are_as_near_as_they_say() {
        let roots = Roots::of(2 * LONGEST_TABLE);
        for (tilt, last) in [(0.0, 60), (1e-3, 5000), (0.02, 70_000)] {
            for node in [1, 7, 1000, KEPT_NODES - 1, 3 * KEPT_NODES] {
                let term = |j: i64| roots.root(node * j as usize).conjugate().scaled(falling_term(tilt, j));
                let plain = (1..=last).fold(Complex::ZERO, |sum, j| sum + term(j));
                let (sum, error) = FallingTerms::new(tilt, last, &roots).at(node);
                let distance = (sum - plain).magnitude();
                assert!(
                    distance <= error + 1e-13 * falling_sum(tilt, last),
                    "{tilt}, {last}, {node}: {distance} for {error}"
                );
            }
        }
    }

    /// On a long circle, where quick ones are products.
    #[test]
    fn quick_roots_are_as_near_as_they_say() {
        let length = 4 * LONGEST_TABLE;
        let roots = Roots::of(length);
        let mut largest = 0.0_f64;
        for number in (0..3 * length).step_by(97) {
            let (exact, quick) = (roots.root(number), roots.quick(number));
            largest = largest.max((exact - quick).magnitude());
        }
        assert!(largest > 0.0 && largest < 2.0 * roots.quick_error(), "{largest}");
    }
}
