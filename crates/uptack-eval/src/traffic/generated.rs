//! Made-up traffic in the shape of a real window.

use uptack::SeededCoins;

use super::{Coordinates, Station, Traffic};
use crate::error::Result;

/// How many stations are made.
pub(super) const STATIONS: usize = 2221;

/// The quantiles of vehicles per station, as measured at the 2 221 stations of Caltrans District 12 (Orange County) in the
/// five minutes from 00:55 on 8 October 2019, rounded; one faulty detector is left out. Many stations (ramps, carpool
/// lanes) are nearly empty, mainline stations form a broad hump, and a few are large.
const QUANTILES: [(f64, f64); 14] = [
    (0.0, -0.5),
    (0.207, 0.5),
    (0.30, 1.4),
    (0.40, 2.5),
    (0.50, 4.0),
    (0.60, 7.4),
    (0.65, 12.0),
    (0.70, 19.0),
    (0.75, 33.0),
    (0.80, 50.0),
    (0.90, 75.0),
    (0.95, 98.0),
    (0.99, 138.0),
    (1.0, 320.0),
];

/// The exponent that bends the tail beyond the last quantile but one, so that few stations are large.
const BEND: f64 = 4.0;
const FREEWAYS: usize = 14;

/// Traffic of one window at 2 221 stations: each station draws its vehicles from the quantiles of a real
/// window, and its place on one of a few straight freeways. The same seed gives the same traffic.
pub fn generate(seed: u64) -> Result<Traffic> {
    let mut coins = SeededCoins::stream(seed, u64::MAX);
    let freeways: Vec<Freeway> = (0..FREEWAYS).map(|_| Freeway::draw(&mut coins)).collect();
    let stations = (0..STATIONS).map(|index| station(index, &freeways[index % FREEWAYS], &mut coins));
    let stations = stations.collect();
    Ok(Traffic { origin: format!("generated traffic, seed {seed}"), stations, silent: 0 })
}

fn station(index: usize, freeway: &Freeway, coins: &mut SeededCoins) -> Station {
    let vehicles = quantile(coins.uniform());
    let place = freeway.place(coins.uniform());
    Station { name: format!("G{index:04}"), vehicles, flags: Vec::new(), place: Some(place) }
}

/// A straight road between two points of the unit square.
struct Freeway {
    from: (f64, f64),
    to: (f64, f64),
}

impl Freeway {
    fn draw(coins: &mut SeededCoins) -> Self {
        let from = (coins.uniform(), coins.uniform());
        let to = (coins.uniform(), coins.uniform());
        Self { from, to }
    }

    /// The place at this share of the way.
    fn place(&self, share: f64) -> Coordinates {
        let between = |from: f64, to: f64| from + share * (to - from);
        let (x, y) = (between(self.from.0, self.to.0), between(self.from.1, self.to.1));
        Coordinates { longitude: -0.4 + 0.8 * x, latitude: 0.5 * y }
    }
}

/// The vehicles of a station at this share of all stations in order of size.
fn quantile(at: f64) -> u64 {
    let last = QUANTILES.len() - 1;
    let above = QUANTILES.iter().position(|(share, _)| *share > at).unwrap_or(last);
    let ((low, from), (high, to)) = (QUANTILES[above - 1], QUANTILES[above]);
    let part = (at - low) / (high - low);
    let part = if above == last { part.powf(BEND) } else { part };
    (from + part * (to - from)).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape that was aimed at: the real window has 20.7 % zeros, quartiles 1 / 4 / 33, a 99th percentile of 138,
    /// and 50 186 vehicles (49 677 without its faulty detector). With 2 221 draws the total has an sd of about 1 700.
    #[test]
    fn the_shape_is_that_of_the_real_window() {
        for seed in [1, 2, 3] {
            let traffic = generate(seed).unwrap();
            let mut vehicles = traffic.vehicles();
            vehicles.sort_unstable();
            let at = |share: f64| vehicles[(share * STATIONS as f64) as usize];
            assert_eq!(vehicles.len(), 2221);
            assert!((400..520).contains(&vehicles.iter().filter(|&&count| count == 0).count()));
            assert!((1..=2).contains(&at(0.25)) && (3..=5).contains(&at(0.5)) && (25..=40).contains(&at(0.75)));
            assert!((125..=155).contains(&at(0.99)) && vehicles[2220] <= 320);
            assert!((44_000..56_000).contains(&traffic.total()), "{}", traffic.total());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_traffic() {
        assert_eq!(generate(7).unwrap(), generate(7).unwrap());
        assert_ne!(generate(7).unwrap(), generate(8).unwrap());
    }
}
