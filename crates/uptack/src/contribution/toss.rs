//! Contributions that are tossed before any truth is known: how a ballot or a series is answered.
//!
//! Where a contribution goes if it is not told does not depend on the truth. So an owner tosses once for everything that a card
//! asks, and the truths come later, window by window. The i-th count that the owner truly belongs to is the truth of the i-th
//! contribution: if that one is told, its bit is set, and otherwise nothing is. Every other contribution sets the bit of the
//! place that was drawn for it.

use std::fmt;
use std::hint::black_box;

use super::Contributions;
use crate::coins::{Coins, SeededCoins, Unpredictable};
use crate::error::{Error, Result};
use crate::truth::Truth;

/// The coins of one owner for everything that a card asks, tossed once. They are as secret as the truths, and have no readable
/// form.
///
/// ```
/// use uptack::contribution::{Contributions, Toss};
/// use uptack::{OsCoins, Truth};
/// // Two windows with three questions each; an owner adds to at most one of the six counts.
/// let asked: Contributions = "contributions(counts=6,most=1,r=0)".parse()?;
/// let toss = Toss::draw(&asked, &mut OsCoins)?;
/// let mut used = 0;
/// assert_eq!(toss.report(0, &[Truth::No, Truth::Yes, Truth::Yes], &mut used), [false, true, false]);
/// assert_eq!(toss.report(3, &[Truth::Yes, Truth::No, Truth::No], &mut used), [false, false, false]);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone)]
pub struct Toss {
    /// For each contribution, the place to which it goes, or [`TOLD`].
    places: Vec<u32>,
}

/// The place of a contribution that is told. No count has this number.
const TOLD: u32 = u32::MAX;

impl Toss {
    /// Tosses for one owner. It reads eight bytes for each contribution.
    pub fn draw(contributions: &Contributions, coins: &mut impl Unpredictable) -> Result<Self> {
        Self::draw_from(contributions, coins)
    }

    /// As [`Toss::draw`], reproducibly; for tests and simulation only.
    pub fn draw_seeded(contributions: &Contributions, coins: &mut SeededCoins) -> Self {
        Self::draw_from(contributions, coins).expect("seeded coins do not fail")
    }

    fn draw_from(contributions: &Contributions, coins: &mut impl Coins) -> Result<Self> {
        let law = contributions.law();
        let (telling, other) = (law.telling().numerator(), law.other().numerator());
        let mut bytes = vec![0; 8 * contributions.most() as usize];
        coins.fill(&mut bytes)?;
        let place = |coin: &[u8; 8]| {
            place_of(u128::from(u64::from_le_bytes(*coin)), telling, other, contributions.counts() as u32)
        };
        Ok(Self { places: bytes.as_chunks().0.iter().map(place).collect() })
    }

    /// The bits of the counts from number `first` on, one for each of the truths. `used` is how many true counts there were before,
    /// up to the number of contributions; it is as secret as the truths, begins with 0 and goes on from report to report.
    ///
    /// Nothing branches on a truth or on `used`.
    pub fn report(&self, first: usize, truths: &[Truth], used: &mut u32) -> Vec<bool> {
        let bit = |(index, truth): (usize, &Truth)| {
            let count = (first + index) as u32;
            let is_true = truth.mask() & 1;
            let (mut set, mut taken) = (0, 0);
            for (number, &place) in self.places.iter().enumerate() {
                let is_next = is_true & u64::from(black_box(*used) == number as u32);
                set |= (is_next & u64::from(place == TOLD)) | u64::from(place == count);
                taken |= is_next;
            }
            *used += taken as u32;
            black_box(set) == 1
        };
        truths.iter().enumerate().map(bit).collect()
    }

    /// The bytes in which an owner keeps it between the windows of a series.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.places.iter().flat_map(|place| place.to_be_bytes()).collect()
    }

    /// Reads [`Toss::to_bytes`]; refused if the mechanism has another number of contributions.
    pub fn from_bytes(contributions: &Contributions, bytes: &[u8]) -> Result<Self> {
        let (places, rest) = bytes.as_chunks();
        if !rest.is_empty() || places.len() != contributions.most() as usize {
            return Err(Error::syntax("the stored coins are not those of the mechanism"));
        }
        Ok(Self { places: places.iter().map(|place| u32::from_be_bytes(*place)).collect() })
    }
}

/// The place to which a coin sends a contribution. What is not counted has the number of counts as its place.
fn place_of(coin: u128, telling: u128, other: u128, counts: u32) -> u32 {
    if coin < telling {
        return TOLD;
    }
    (coin - telling).checked_div(other).map_or(counts, |place| place.min(u128::from(counts)) as u32)
}

impl fmt::Debug for Toss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Toss(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The law of the reports by enumeration of every coin of a law on a coarse grid, against the law of independent choices.
    #[test]
    fn tossing_before_the_truths_are_known_is_choosing_for_each_of_them() {
        let contributions: Contributions = "contributions(counts=3,most=2,r=1/8)".parse().unwrap();
        let law = contributions.law();
        let (telling, other) = (law.telling().numerator(), law.other().numerator());
        let places: Vec<u32> = (0..8).map(|coin: u128| place_of(coin << 61, telling, other, 3)).collect();
        for truths in 0..8_usize {
            let mut reports = [0; 8];
            for (&first, &second) in places.iter().flat_map(|first| places.iter().map(move |second| (first, second))) {
                let (toss, mut used) = (Toss { places: vec![first, second] }, 0);
                let truths = [0, 1, 2].map(|count| Truth::from_bool(truths >> count & 1 == 1));
                // The counts of two windows: two in the first, one in the second.
                let mut bits = toss.report(0, &truths[..2], &mut used);
                bits.extend(toss.report(2, &truths[2..], &mut used));
                reports[bits.iter().enumerate().map(|(count, bit)| usize::from(*bit) << count).sum::<usize>()] += 1;
            }
            assert_eq!(reports, chosen(truths), "{truths:03b}");
        }
    }

    /// How many of the 64 pairs of coins give each report, if each contribution is drawn given its truth.
    fn chosen(truths: usize) -> [u32; 8] {
        let mut reports = [0; 8];
        let mut of = (0..3).filter(|count| truths >> count & 1 == 1).chain([3, 3]);
        let [first, second] = [of.next().unwrap(), of.next().unwrap()];
        // Of eight coins, five go to the truth and one to each other possibility.
        let weight = |truth: usize, place: usize| if truth == place { 5 } else { 1 };
        for (one, other) in (0..4).flat_map(|one| (0..4).map(move |other| (one, other))) {
            let bit = |place: usize| if place < 3 { 1 << place } else { 0 };
            reports[bit(one) | bit(other)] += weight(first, one) * weight(second, other);
        }
        reports
    }

    #[test]
    fn no_owner_adds_to_more_counts_than_are_allowed() {
        let contributions: Contributions = "contributions(counts=40,most=3,r=0.01)".parse().unwrap();
        let mut coins = SeededCoins::new(5);
        for _ in 0..500 {
            let (toss, mut used) = (Toss::draw_seeded(&contributions, &mut coins), 0);
            let windows = (0..8).flat_map(|window| toss.report(5 * window, &[Truth::Yes; 5], &mut used));
            assert!(windows.filter(|bit| *bit).count() <= 3);
            assert_eq!(used, 3);
        }
    }

    #[test]
    fn stored_coins_are_the_same_coins() {
        let contributions: Contributions = "contributions(counts=40,most=3,r=0.02)".parse().unwrap();
        let toss = Toss::draw_seeded(&contributions, &mut SeededCoins::new(9));
        let again = Toss::from_bytes(&contributions, &toss.to_bytes()).unwrap();
        assert_eq!(again.places, toss.places);
        assert!(
            Toss::from_bytes(&contributions, &[0; 13]).is_err() && Toss::from_bytes(&contributions, &[0; 8]).is_err()
        );
        assert_eq!(format!("{toss:?}"), "Toss(…)");
    }
}
