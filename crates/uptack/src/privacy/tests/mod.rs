//! The accounting against enumeration, an independent program's values, and a published bound.

mod brute_force;
mod claims;
mod composition;
mod noise;
mod references;

use super::{Accountant, Delta, Epsilon, release};
use crate::{Cell, Channel, Mechanism, NoiseLaw, Output, Probability, Scale};

/// The channel of a mechanism that is known to parse.
pub(super) fn channel(mechanism: &str) -> Channel {
    mechanism.parse::<Mechanism>().expect("a mechanism of the family").channel()
}

/// A generator for cases, the same ones every time.
pub(super) struct Cases(pub(super) u64);

impl Cases {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A probability that is often close to one of its ends, and now and then at one.
    fn probability(&mut self) -> Probability {
        let numerator = match self.below(8) {
            0 => 0,
            1 => u128::from(self.next() >> self.below(40)),
            _ => u128::from(self.next()),
        };
        let probability = Probability::from_numerator(numerator).expect("less than one");
        if self.below(2) == 0 { probability } else { probability.complement() }
    }

    /// A scale from `least` to `most`, in thousandths.
    pub(super) fn scale(&mut self, least: f64, most: f64) -> Scale {
        let value = least * (most / least).powf(self.unit());
        Scale::new(((value * 1000.0) as u64).max(10), 1000).expect("within the limits")
    }

    /// A channel of one bit with noise.
    pub(super) fn noisy_bit(&mut self, scale: Scale) -> Channel {
        bit(self.probability(), self.probability(), scale)
    }
}

/// The channel of one bit with these probabilities of a one.
pub(super) fn bit(yes: Probability, no: Probability, scale: Scale) -> Channel {
    let cell = |output, yes, no| Cell::new(vec![output], yes, no);
    let cells = vec![cell(Output::ONE, yes, no), cell(Output::ZERO, yes.complement(), no.complement())];
    let channel = Channel::from_cells(cells).expect("laws that sum to one");
    channel.with_noise(NoiseLaw::laplace(scale)).expect("one answer that may be 1")
}

fn release_of(mechanism: &str, owners: u64) -> Accountant {
    release(&channel(mechanism), owners).expect("a number of owners within the limits")
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).expect("a finite number of at least zero")
}

fn delta(value: f64) -> Delta {
    Delta::new(value).expect("a number above zero and at most one")
}
