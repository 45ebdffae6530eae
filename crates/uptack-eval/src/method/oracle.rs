//! Frequency oracles: an owner reports on all stations at once, under one local ε for its whole place.
//!
//! Each is *pure* in the sense of Wang, Blocki, Li and Jha (*Locally Differentially Private Protocols for Frequency
//! Estimation*, USENIX Security 2017): a report supports the owner's own station with probability p* and any other with
//! q*, so that one station's question is a channel of two outputs. Its count is drawn at once, at a cost that does not
//! depend on the number of owners.

use std::fmt;

use uptack::{Channel, Fraction, Output};

use super::index_bytes;
use crate::error::{Error, Result};

/// Which protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OracleKind {
    /// Report the true station, or any other one (*k-ary randomized response*).
    GeneralizedRandomizedResponse,
    /// One bit per station: the owner's own is set by a fair coin, the others with probability 1/(e^ε+1).
    OptimizedUnaryEncoding,
    /// Generalized randomized response over a hash with about e^ε+1 values.
    OptimizedLocalHashing,
    /// A column of a Hadamard matrix that is +1 at the owner's station (Acharya, Sun and Zhang, *Hadamard Response*, 2019), in
    /// its one-block form.
    HadamardResponse,
    /// One bit per station, each flipped with probability 1/(e^(ε/2)+1): the permanent part of RAPPOR without a Bloom filter
    /// (Erlingsson, Pihur and Korolova, *RAPPOR*, 2014).
    BasicRappor,
}

impl OracleKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::GeneralizedRandomizedResponse,
        Self::OptimizedUnaryEncoding,
        Self::OptimizedLocalHashing,
        Self::HadamardResponse,
        Self::BasicRappor,
    ];
}

impl fmt::Display for OracleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GeneralizedRandomizedResponse => "generalized randomized response",
            Self::OptimizedUnaryEncoding => "optimized unary encoding",
            Self::OptimizedLocalHashing => "optimized local hashing",
            Self::HadamardResponse => "Hadamard response",
            Self::BasicRappor => "basic RAPPOR",
        })
    }
}

/// A protocol with its ε and its number of stations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oracle {
    kind: OracleKind,
    epsilon: f64,
    stations: u64,
}

impl Oracle {
    /// The protocol under a local ε for `stations` stations.
    pub fn new(kind: OracleKind, epsilon: f64, stations: u64) -> Result<Self> {
        if !(epsilon > 0.0 && epsilon <= 20.0) {
            return Err(Error::new(format!("an ε of {epsilon} is not between 0 and 20")));
        }
        if stations < 2 {
            return Err(Error::new("there must be at least two stations to choose among"));
        }
        Ok(Self { kind, epsilon, stations })
    }

    /// Which protocol.
    pub fn kind(&self) -> OracleKind {
        self.kind
    }

    /// The local ε of the whole report.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// p* and q*: the probabilities that a report supports the owner's station, and another one.
    pub fn support(&self) -> (f64, f64) {
        let growth = self.epsilon.exp();
        match self.kind {
            OracleKind::GeneralizedRandomizedResponse => {
                let all = growth + self.stations as f64 - 1.0;
                (growth / all, 1.0 / all)
            }
            OracleKind::OptimizedUnaryEncoding => (0.5, 1.0 / (growth + 1.0)),
            OracleKind::OptimizedLocalHashing => {
                let values = self.hash_values() as f64;
                (growth / (growth + values - 1.0), 1.0 / values)
            }
            OracleKind::HadamardResponse => (growth / (growth + 1.0), 0.5),
            OracleKind::BasicRappor => {
                let half = (self.epsilon / 2.0).exp();
                (half / (half + 1.0), 1.0 / (half + 1.0))
            }
        }
    }

    /// One station's question as a channel.
    pub fn channel(&self) -> Result<Channel> {
        let (own, other) = self.support();
        let (own, other) = (Fraction::from_f64(own)?, Fraction::from_f64(other)?);
        let rest = (vec![Output::ZERO], own.complement(), other.complement());
        Ok(Channel::from_fractions(vec![(vec![Output::ONE], own, other), rest])?)
    }

    /// The number of values of the hash in local hashing: e^ε+1 to the nearest whole number, at least 2.
    fn hash_values(&self) -> u64 {
        ((self.epsilon.exp() + 1.0).round() as u64).max(2)
    }

    pub(super) fn bytes(&self) -> u64 {
        match self.kind {
            OracleKind::GeneralizedRandomizedResponse => index_bytes(self.stations),
            OracleKind::OptimizedUnaryEncoding | OracleKind::BasicRappor => self.stations.div_ceil(8),
            // The seed of the hash, and the value.
            OracleKind::OptimizedLocalHashing => 8 + index_bytes(self.hash_values()),
            OracleKind::HadamardResponse => index_bytes((self.stations + 1).next_power_of_two()),
        }
    }

    pub(super) fn choices(&self) -> u64 {
        match self.kind {
            OracleKind::GeneralizedRandomizedResponse => 1,
            OracleKind::OptimizedUnaryEncoding | OracleKind::BasicRappor => self.stations,
            OracleKind::OptimizedLocalHashing | OracleKind::HadamardResponse => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::estimate::Estimator;

    /// The textbook's variance of the estimated count if the true one is 0.
    fn textbook(kind: OracleKind, epsilon: f64, stations: f64, owners: f64) -> f64 {
        let growth = epsilon.exp();
        match kind {
            OracleKind::GeneralizedRandomizedResponse => owners * (stations - 2.0 + growth) / (growth - 1.0).powi(2),
            OracleKind::OptimizedUnaryEncoding | OracleKind::OptimizedLocalHashing => {
                owners * 4.0 * growth / (growth - 1.0).powi(2)
            }
            OracleKind::HadamardResponse => owners * ((growth + 1.0) / (growth - 1.0)).powi(2),
            OracleKind::BasicRappor => owners * (epsilon / 2.0).exp() / ((epsilon / 2.0).exp() - 1.0).powi(2),
        }
    }

    fn matches_its_textbook(kind: OracleKind) {
        // e^ε = 3 and 7 are whole, so that the hash has exactly e^ε+1 values and the formula holds as printed.
        for (epsilon, stations) in [(3f64.ln(), 2221), (7f64.ln(), 2221), (3f64.ln(), 10)] {
            let owners = 50_000u64;
            let oracle = Oracle::new(kind, epsilon, stations).unwrap();
            let sd = Estimator::new(&oracle.channel().unwrap()).unwrap().sd(owners, 0.0).unwrap();
            let expected = textbook(kind, epsilon, stations as f64, owners as f64);
            assert!((sd * sd / expected - 1.0).abs() < 1e-9, "{kind}: {} against {expected}", sd * sd);
        }
    }

    #[test]
    fn generalized_randomized_response_has_its_textbook_variance() {
        matches_its_textbook(OracleKind::GeneralizedRandomizedResponse);
    }

    #[test]
    fn optimized_unary_encoding_has_its_textbook_variance() {
        matches_its_textbook(OracleKind::OptimizedUnaryEncoding);
    }

    #[test]
    fn optimized_local_hashing_has_its_textbook_variance() {
        matches_its_textbook(OracleKind::OptimizedLocalHashing);
    }

    #[test]
    fn hadamard_response_has_its_textbook_variance() {
        matches_its_textbook(OracleKind::HadamardResponse);
    }

    #[test]
    fn basic_rappor_has_its_textbook_variance() {
        matches_its_textbook(OracleKind::BasicRappor);
    }

    /// n·e^ε/(e^ε−1)² (Warner, 1965), whatever the truth.
    #[test]
    fn randomized_response_has_its_textbook_variance() {
        let mechanism: uptack::Mechanism = "randomized-response(t=3/4)".parse().unwrap();
        let sd = Estimator::new(&mechanism.channel()).unwrap().sd(50_000, 4.0).unwrap();
        assert!((sd * sd - 50_000.0 * 3.0 / 4.0).abs() < 1e-6);
    }

    /// Owner by owner with real reports over five stations, against the channel: α = 1e-4 two-sided for each protocol and law;
    /// with 40 000 reports a difference of 0.01 is seen.
    #[test]
    fn reports_of_owners_support_as_the_channel_says() {
        let mut state = 12345u64;
        let mut unit = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (stations, epsilon, owners) = (5usize, 3f64.ln(), 40_000);
        for kind in OracleKind::ALL {
            let oracle = Oracle::new(kind, epsilon, stations as u64).unwrap();
            let (mut own, mut other) = (0u32, 0u32);
            for _ in 0..owners {
                let supported = report(kind, epsilon, stations, &mut unit);
                own += u32::from(supported[0]);
                other += u32::from(supported[3]);
            }
            let (p, q) = oracle.support();
            for (count, expected) in [(own, p), (other, q)] {
                let z = (f64::from(count) - f64::from(owners) * expected)
                    / (f64::from(owners) * expected * (1.0 - expected)).sqrt();
                assert!(z.abs() < 3.9, "{kind}: z = {z}");
            }
        }
    }

    /// Which stations one report of an owner at station 0 supports, by the protocol itself.
    fn report(kind: OracleKind, epsilon: f64, stations: usize, unit: &mut impl FnMut() -> f64) -> Vec<bool> {
        let growth = epsilon.exp();
        match kind {
            OracleKind::GeneralizedRandomizedResponse => {
                let told = generalized(0, stations, growth, unit);
                (0..stations).map(|station| station == told).collect()
            }
            OracleKind::OptimizedUnaryEncoding => {
                (0..stations).map(|station| unit() < if station == 0 { 0.5 } else { 1.0 / (growth + 1.0) }).collect()
            }
            OracleKind::BasicRappor => {
                let keep = (epsilon / 2.0).exp() / ((epsilon / 2.0).exp() + 1.0);
                (0..stations).map(|station| (unit() < keep) == (station == 0)).collect()
            }
            OracleKind::OptimizedLocalHashing => {
                let values = (growth + 1.0).round() as usize;
                let hash: Vec<usize> = (0..stations).map(|_| (unit() * values as f64) as usize).collect();
                let told = generalized(hash[0], values, growth, unit);
                hash.into_iter().map(|value| value == told).collect()
            }
            OracleKind::HadamardResponse => {
                // Rows 1.. of Sylvester's matrix of order 8; an entry is +1 where the indices share an even number of bits.
                let plus = |station: usize, column: usize| ((station + 1) & column).count_ones().is_multiple_of(2);
                let wanted = unit() < growth / (growth + 1.0);
                let columns: Vec<usize> = (0..8).filter(|&column| plus(0, column) == wanted).collect();
                let column = columns[(unit() * columns.len() as f64) as usize];
                (0..stations).map(|station| plus(station, column)).collect()
            }
        }
    }

    fn generalized(truth: usize, values: usize, growth: f64, unit: &mut impl FnMut() -> f64) -> usize {
        if unit() < growth / (growth + values as f64 - 1.0) {
            return truth;
        }
        let other = (unit() * (values - 1) as f64) as usize;
        if other >= truth { other + 1 } else { other }
    }

    #[test]
    fn impossible_oracles_are_refused() {
        assert!(Oracle::new(OracleKind::BasicRappor, 0.0, 10).is_err());
        assert!(Oracle::new(OracleKind::BasicRappor, f64::NAN, 10).is_err());
        assert!(Oracle::new(OracleKind::BasicRappor, 1.0, 1).is_err());
    }
}
