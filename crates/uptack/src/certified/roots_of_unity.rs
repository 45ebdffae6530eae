//! The nodes of a circle, shared by the sums over it (`docs/accounting.md`, "Sums of scores").

use std::cell::RefCell;
use std::rc::Rc;

use super::fourier::Complex;

/// Roots of unity on a circle, e^(−2πi·k/length).
pub(super) struct Roots {
    pub(super) length: usize,
    half: Vec<Complex>,
}

thread_local! {
    /// The circles used last: the evaluations of one question share them.
    static CIRCLES: RefCell<Vec<Rc<Roots>>> = const { RefCell::new(Vec::new()) };
}

impl Roots {
    /// The circle of this length, a power of two.
    pub(super) fn of(length: usize) -> Rc<Self> {
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

    /// How many nodes of the whole circle one of half the circle stands for.
    #[inline]
    pub(super) fn weight(&self, node: usize) -> f64 {
        if node == 0 || 2 * node == self.length { 1.0 } else { 2.0 }
    }

    /// The root with this number, modulo the length.
    #[inline]
    pub(super) fn root(&self, number: usize) -> Complex {
        let index = number & (self.length - 1);
        if index < self.half.len() {
            return self.half[index];
        }
        let Complex { real, imaginary } = self.half[index - self.half.len()];
        Complex { real: -real, imaginary: -imaginary }
    }
}
