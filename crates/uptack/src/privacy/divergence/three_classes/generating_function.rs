//! The signed law of a histogram from the values of its generating function on two circles (`docs/accounting.md`, "Fourier").
//!
//! With F the crowd's generating function and X the target's weights, both tilted, the coefficients of F·X at the counts
//! (a, b) are a double Fourier sum over the nodes of two circles. F falls off like a Gaussian from (1, 1), so all but some
//! hundred nodes are left out ([`UsedNodes`]), and their contribution is bounded. Signs and tails of one row are sums over one
//! circle.

use std::f64::consts::{PI, TAU};

use super::tilt::{ClassTilt, HighRow, Products};
use crate::certified::fourier::Complex;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{CrowdLaws, Weight};

/// The target's tilted weights for high, row and low: their sum, the parts, and the sum of the parts' sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed {
    pub(super) sum: f64,
    pub(super) high: f64,
    pub(super) row: f64,
    pub(super) magnitude: f64,
}

impl Signed {
    /// The weights of the classes high, row and low under a tilt.
    pub(super) fn new(weights: &[Weight; 3], tilt: ClassTilt) -> Self {
        let factors = tilt.factors();
        let scaled = [0, 1, 2].map(|class: usize| weights[class].value() * factors[class]);
        let magnitude = (0..3).map(|class| weights[class].magnitude() * factors[class]).sum();
        Self { sum: scaled.iter().sum(), high: scaled[0], row: scaled[1], magnitude }
    }
}

/// The transform, with the nodes' values scaled and arranged for Horner's rule.
pub(super) struct Transform {
    nodes: Nodes,
    /// The counts at which the nodes' phases start.
    center: HighRow<i64>,
    /// Values by row node, counted from each column's first, then by high node; the real parts and the imaginary parts.
    real: Vec<f64>,
    imaginary: Vec<f64>,
    used: UsedNodes,
    /// 1/(1 − e^(−tilt − iθ)) for each high node: the sum of a geometric series.
    series: Vec<Complex>,
    errors: TransformErrors,
}

/// How far a term may be off, and a sum beyond a count.
#[derive(Clone, Copy, Default)]
struct TransformErrors {
    term: f64,
    beyond: f64,
}

/// One row's transform over the high circle.
pub(super) struct RowTransform {
    real: Vec<f64>,
    imaginary: Vec<f64>,
}

impl Transform {
    /// The transform of a tilted crowd with the target, without the values below e^`noise`; `tilt` is that of the high count.
    /// None where it would have too many values.
    pub(super) fn new(
        crowd: &CrowdLaws<3>,
        signed: Signed,
        center: HighRow<i64>,
        nodes: Nodes,
        tilt: f64,
        noise: f64,
    ) -> Option<Self> {
        let used = UsedNodes::new(crowd, nodes, -noise)?;
        let (size, count) = (used.size(), used.columns.len() as i64);
        let series = (0..count).map(|node| geometric(tilt, node as f64 * (TAU / nodes.high as f64))).collect();
        let (real, imaginary) = (vec![0.0; size], vec![0.0; size]);
        let mut transform = Self { nodes, center, real, imaginary, used, series, errors: TransformErrors::default() };
        for node in 0..count {
            transform.fill(node, crowd, signed);
        }
        transform.finish_errors(signed, tilt);
        Some(transform)
    }

    /// Computes one column of nodes, and adds how far all its values together may be off.
    fn fill(&mut self, node: i64, crowd: &CrowdLaws<3>, signed: Signed) {
        let share = mirrored(node) / (self.nodes.high as f64 * self.nodes.row as f64);
        let theta = TAU * node as f64 / self.nodes.high as f64;
        let (from, to) = self.used.columns[node as usize];
        let horner = self.horner_error();
        let mut error = 0.0;
        for (place, other) in (from..=to).enumerate() {
            let phi = TAU * other as f64 / self.nodes.row as f64;
            let Polar { size, angle } = generating(crowd, theta, phi, self.center);
            let factor = weight(signed, theta, phi);
            self.set(self.used.starts[place] + node as usize, share * size, factor * turned(angle));
            let roundings = 64.0 + 16.0 * crowd.owners.size() as f64 * (theta.abs() + phi.abs());
            error += node_error(size, factor, ROUNDOFF * roundings + horner, signed.magnitude);
        }
        self.add_error(node, error, signed);
    }

    /// Stores `scale` times a value.
    #[inline]
    fn set(&mut self, index: usize, scale: f64, value: Complex) {
        self.real[index] = scale * value.real;
        self.imaginary[index] = scale * value.imaginary;
    }

    /// Adds a bound on the error of one column, including its omitted nodes.
    fn add_error(&mut self, node: i64, error: f64, signed: Signed) {
        let left_out = signed.magnitude * self.used.left_out[node as usize];
        let error = (error + left_out) * mirrored(node);
        let Complex { real, imaginary } = self.series[node as usize];
        self.errors.term += error;
        self.errors.beyond += error * real.hypot(imaginary);
    }

    /// The relative error of Horner's rule over all used nodes.
    fn horner_error(&self) -> f64 {
        16.0 * ROUNDOFF * (self.used.widths.len() as i64 + 3 * self.series.len() as i64 + 16) as f64
    }

    /// Adds a bound on the omitted columns, and takes the mean over all nodes.
    fn finish_errors(&mut self, signed: Signed, tilt: f64) {
        let rest = signed.magnitude * self.used.columns_left_out;
        let scale = 1.0 / (self.nodes.high as f64 * self.nodes.row as f64);
        self.errors.term = (self.errors.term + rest) * scale;
        self.errors.beyond = (self.errors.beyond + rest * geometric(tilt, 0.0).real) * scale;
    }

    /// How far a term may be off.
    pub(super) fn term_error(&self) -> f64 {
        self.errors.term
    }

    /// How far a sum beyond a count may be off.
    pub(super) fn beyond_error(&self) -> f64 {
        self.errors.beyond
    }

    /// How many nodes are used, as a measure of work.
    pub(super) fn size(&self) -> usize {
        self.real.len()
    }

    /// Room for a row.
    pub(super) fn new_row(&self) -> RowTransform {
        RowTransform { real: vec![0.0; self.series.len()], imaginary: vec![0.0; self.series.len()] }
    }

    /// Fills `row` with the transform of the row `count`.
    pub(super) fn fill_row(&self, count: i64, row: &mut RowTransform) {
        let offset = count - self.center.row;
        let turn = turn(-offset, self.nodes.row);
        row.real.fill(0.0);
        row.imaginary.fill(0.0);
        let mut end = self.real.len();
        for width in self.used.widths.iter().rev() {
            let start = end - width;
            row.turn_and_add(turn, &self.real[start..end], &self.imaginary[start..end]);
            end = start;
        }
        self.turn_to_first_nodes(offset, row);
    }

    /// Gives each column of a row the phase of its own first row node.
    fn turn_to_first_nodes(&self, offset: i64, row: &mut RowTransform) {
        let (mut power, mut factor) = (Complex::ONE, Complex::ONE);
        let (mut at, mut moved) = (0, i64::MAX);
        for ((real, imaginary), (first, _)) in row.real.iter_mut().zip(&mut row.imaginary).zip(&self.used.columns) {
            if first - at != moved {
                moved = first - at;
                factor = turn(-(moved * (offset % self.nodes.row)), self.nodes.row);
            }
            at = *first;
            power = power * factor;
            let value = Complex { real: *real, imaginary: *imaginary } * power;
            (*real, *imaginary) = (value.real, value.imaginary);
        }
    }

    /// What turns the phase of one high node into that of the next, for the high count `count`.
    fn turn_to(&self, count: i64) -> Complex {
        turn(self.center.high - count, self.nodes.high)
    }

    /// The tilted term at the high count `count`.
    pub(super) fn term(&self, row: &RowTransform, count: i64) -> f64 {
        let turn = self.turn_to(count);
        row.values().rev().fold(Complex::ZERO, |sum, value| sum * turn + value).real
    }

    /// The sum of the terms from the high count `count` on, with the tilt of the first of them.
    pub(super) fn beyond(&self, row: &RowTransform, count: i64) -> f64 {
        let turn = self.turn_to(count);
        let values = row.values().zip(&self.series);
        values.rev().fold(Complex::ZERO, |sum, (value, series)| sum * turn + value * *series).real
    }
}

impl RowTransform {
    /// One step of Horner's rule in as many columns as there are values.
    #[inline]
    fn turn_and_add(&mut self, turn: Complex, real: &[f64], imaginary: &[f64]) {
        let Complex { real: cosine, imaginary: sine } = turn;
        let sums = self.real.iter_mut().zip(&mut self.imaginary);
        for ((sum_real, sum_imaginary), (real, imaginary)) in sums.zip(real.iter().zip(imaginary)) {
            let next = *sum_real * cosine - *sum_imaginary * sine + real;
            *sum_imaginary = *sum_real * sine + *sum_imaginary * cosine + imaginary;
            *sum_real = next;
        }
    }

    fn values(&self) -> impl DoubleEndedIterator<Item = Complex> + ExactSizeIterator {
        self.real.iter().zip(&self.imaginary).map(|(&real, &imaginary)| Complex { real, imaginary })
    }
}

/// How far the value at one node may be off, which is the product of a generating function of this size and the target's weight
/// `factor`; the former is relatively off by `relative`.
fn node_error(size: f64, factor: Complex, relative: f64, magnitude: f64) -> f64 {
    // A factor near zero is off by some roundings of its parts, whatever its size.
    let near_zero = 64.0 * ROUNDOFF * magnitude;
    size * (factor.real.hypot(factor.imaginary) * relative + 32.0 * ROUNDOFF * magnitude) + near_zero
}

/// e^(iθ).
fn turned(theta: f64) -> Complex {
    let (imaginary, real) = theta.sin_cos();
    Complex { real, imaginary }
}

/// e^(iθ) for the angle of `steps` nodes of a circle.
fn turn(steps: i64, nodes: i64) -> Complex {
    let steps = steps.rem_euclid(nodes);
    let near = if steps > nodes / 2 { steps - nodes } else { steps };
    turned(TAU * near as f64 / nodes as f64)
}

/// 1/(1 − e^(−tilt − iθ)).
fn geometric(tilt: f64, theta: f64) -> Complex {
    let shrink = (-tilt).exp();
    // 1 − e^(−tilt)·cos θ without cancellation.
    let real = -(-tilt).exp_m1() + 2.0 * shrink * (0.5 * theta).sin().powi(2);
    let imaginary = shrink * theta.sin();
    let square = real * real + imaginary * imaginary;
    Complex { real: real / square, imaginary: -imaginary / square }
}

/// The crowd's generating function at two angles, without the phase of the center.
fn generating(crowd: &CrowdLaws<3>, theta: f64, phi: f64, center: HighRow<i64>) -> Polar {
    let chords = [theta, phi, theta - phi].map(chord);
    let (mut logarithm, mut angle) = (0.0, -theta * center.high as f64 - phi * center.row as f64);
    for (owners, law) in crowd.each() {
        let value = value_of_one(law, theta, phi);
        let lost = lost_square(law, chords);
        // Near a zero of the value 1 − |…|² says little, but the value itself is accurate.
        let factor = if lost > 0.5 { value.real.hypot(value.imaginary).ln() } else { 0.5 * (-lost).ln_1p() };
        logarithm += owners as f64 * factor;
        angle += owners as f64 * value.imaginary.atan2(value.real);
    }
    Polar { size: logarithm.exp(), angle }
}

/// p₁z + p₂w + p₃ on the circles: the generating function of one owner.
#[inline]
fn value_of_one([high, row, low]: [f64; 3], theta: f64, phi: f64) -> Complex {
    Complex { real: high * theta.cos() + row * phi.cos() + low, imaginary: high * theta.sin() + row * phi.sin() }
}

/// 1 − |p₁z + p₂w + p₃|² on the circles, a sum of positive parts. The chords are those of θ, φ and θ − φ.
#[inline]
fn lost_square([high, row, low]: [f64; 3], [chord_high, chord_row, chord_both]: [f64; 3]) -> f64 {
    2.0 * (high * low * chord_high + row * low * chord_row + high * row * chord_both)
}

/// The target's weight at a node.
fn weight(signed: Signed, theta: f64, phi: f64) -> Complex {
    Complex {
        real: signed.sum - signed.high * chord(theta) - signed.row * chord(phi),
        imaginary: signed.high * theta.sin() + signed.row * phi.sin(),
    }
}

/// Nodes on the circles of both counts; odd, so that every node but the first has a mirror image.
pub(super) type Nodes = HighRow<i64>;

/// The nodes at which the generating function is not negligible: columns of row nodes, one column for each high node.
pub(super) struct UsedNodes {
    /// For each used node of the high circle (without mirror images) the first and the last row node.
    pub(super) columns: Vec<(i64, i64)>,
    /// How many columns have a value at each row node, counted from a column's first. Columns further from the first high node
    /// are shorter; one that is shorter than a later one is filled up with zeros.
    pub(super) widths: Vec<usize>,
    /// Where the values of each row node start if they are stored one row node after the other.
    pub(super) starts: Vec<usize>,
    /// A bound on the omitted nodes of each column, and on all omitted columns.
    pub(super) left_out: Vec<f64>,
    pub(super) columns_left_out: f64,
}

/// More values than this are not computed: they would take a quarter of a gigabyte. With fewer, three classes would stay open
/// in crowds of a hundred million that close today.
const MOST_VALUES: usize = 1 << 24;

impl UsedNodes {
    /// All nodes at which the generating function may be above e^(−`cut`); `None` if they are too many.
    pub(super) fn new(crowd: &CrowdLaws<3>, nodes: Nodes, cut: f64) -> Option<Self> {
        let circles = Circles::new(Decay::of(crowd), nodes, cut);
        let columns: Vec<(i64, i64)> = (0..=nodes.high / 2).map_while(|node| circles.column(node)).collect();
        let widths = widths(&columns)?;
        let used = columns.len() as i64;
        let used_nodes = Self {
            starts: starts(&widths),
            widths,
            left_out: (0..used).map(|node| circles.left_out(node)).collect(),
            columns_left_out: circles.columns_left_out(used),
            columns,
        };
        (used_nodes.size() <= MOST_VALUES).then_some(used_nodes)
    }

    /// How many values there are.
    pub(super) fn size(&self) -> usize {
        self.widths.iter().sum()
    }
}

/// How many of these columns reach each place, up to the last column that does; `None` if they have too many values.
fn widths(columns: &[(i64, i64)]) -> Option<Vec<usize>> {
    let lengths: Vec<usize> = columns.iter().map(|(from, to)| (to - from + 1) as usize).collect();
    if lengths.iter().sum::<usize>() > MOST_VALUES {
        return None;
    }
    let depth = lengths.iter().copied().max().unwrap_or(0);
    let width = |at: usize| lengths.iter().rposition(|length| *length > at).map_or(0, |last| last + 1);
    Some((0..depth).map(width).collect())
}

/// Where each of some consecutive stretches of these widths starts.
fn starts(widths: &[usize]) -> Vec<usize> {
    widths.iter().scan(0, |sum, width| Some(std::mem::replace(sum, *sum + width))).collect()
}

/// A bound on the size of the generating function: it is at most exp(−E) with E = high·(1 − cos θ) + row·(1 − cos φ) +
/// both·(1 − cos(θ − φ)).
struct Decay {
    high: f64,
    row: f64,
    both: f64,
}

impl Decay {
    fn of(crowd: &CrowdLaws<3>) -> Self {
        let Products { high, row, both } = crowd.products();
        // Slightly less, which covers rounding.
        let [high, row, both] = [high, row, both].map(|product| product * (1.0 - 1e-9));
        Self { high, row, both }
    }

    /// The exponent for a fixed θ.
    fn column(&self, theta: f64) -> ColumnDecay {
        let (real, imaginary) = (self.row + self.both * theta.cos(), self.both * theta.sin());
        let factor = real.hypot(imaginary);
        // row + both − c without cancellation.
        let lost = 2.0 * self.row * self.both * chord(theta) / (self.row + self.both + factor).max(f64::MIN_POSITIVE);
        ColumnDecay { base: self.high * chord(theta) + lost, factor, middle: imaginary.atan2(real) }
    }
}

/// The exponent of the bound for a fixed θ: `base` + c·(1 − cos(φ − φ₀)), where c is `factor` and φ₀ is `middle`.
struct ColumnDecay {
    base: f64,
    factor: f64,
    middle: f64,
}

impl ColumnDecay {
    /// How far from φ₀ the exponent stays below `cut`; `None` if it never is.
    fn reach(&self, cut: f64) -> Option<f64> {
        let left = cut - self.base;
        if left < 0.0 {
            return None;
        }
        Some(if left >= 2.0 * self.factor { PI } else { (1.0 - left / self.factor).acos() })
    }
}

/// The nodes of both circles. Those at which the bound is above e^(−`cut`) are used.
struct Circles {
    decay: Decay,
    nodes: Nodes,
    /// The angle from one node to the next.
    step: HighRow<f64>,
    cut: f64,
}

impl Circles {
    fn new(decay: Decay, nodes: Nodes, cut: f64) -> Self {
        Self { decay, nodes, step: nodes.map(|count| TAU / count as f64), cut }
    }

    fn theta(&self, node: i64) -> f64 {
        node as f64 * self.step.high
    }

    /// The row nodes to be used in the column of a high node; `None` if the whole column is left out.
    fn column(&self, node: i64) -> Option<(i64, i64)> {
        let column = self.decay.column(self.theta(node));
        let reach = column.reach(self.cut)?;
        let from = ((column.middle - reach) / self.step.row).floor() as i64;
        let to = ((column.middle + reach) / self.step.row).ceil() as i64;
        let nodes = self.nodes.row;
        Some(if to - from + 1 >= nodes { (-(nodes / 2), nodes / 2) } else { (from, to) })
    }

    /// A bound on the omitted nodes of a used column.
    fn left_out(&self, node: i64) -> f64 {
        let all = self.column(node).is_none_or(|(from, to)| to - from + 1 >= self.nodes.row);
        let column = self.decay.column(self.theta(node));
        match column.reach(self.cut) {
            Some(reach) if !all => {
                2.0 * falling_sum(reach, self.step.row, |angle| column.base + column.factor * chord(angle))
            }
            _ => 0.0,
        }
    }

    /// What whole columns from the high node `from` on may add.
    fn columns_left_out(&self, from: i64) -> f64 {
        if from > self.nodes.high / 2 {
            return 0.0;
        }
        2.0 * self.nodes.row as f64
            * falling_sum(self.theta(from), self.step.high, |theta| self.decay.column(theta).base)
    }
}

/// How many nodes a node stands for: its mirror image has the conjugate value.
pub(super) fn mirrored(node: i64) -> f64 {
    if node == 0 { 1.0 } else { 2.0 }
}

/// A value of a generating function by its size and its angle.
pub(super) struct Polar {
    pub(super) size: f64,
    pub(super) angle: f64,
}

/// 1 − cos θ without cancellation.
pub(super) fn chord(theta: f64) -> f64 {
    2.0 * (0.5 * theta).sin().powi(2)
}

/// A bound on Σ exp(−exponent(angle)) over angles from `from` to π in equal steps, for a growing exponent: in ever longer blocks,
/// each bounded by its first term.
pub(super) fn falling_sum(from: f64, step: f64, exponent: impl Fn(f64) -> f64) -> f64 {
    let (mut angle, mut count, mut sum) = (from, 1.0, 0.0);
    while angle <= PI + step {
        sum += count * (-exponent(angle.min(PI))).exp();
        angle += count * step;
        count *= 1.25_f64;
        count = count.ceil();
    }
    sum
}

/// The next odd number.
pub(super) fn odd(number: i64) -> i64 {
    number | 1
}
