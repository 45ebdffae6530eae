//! Owners whom the published counts show by themselves: nobody of the other truth could have written what they wrote
//! (`docs/accounting.md`, "A crowd of one truth").

use std::fmt;

use serde::Serialize;

use crate::channel::{Cell, Channel};
use crate::display::{self, Rounding, separated};
use crate::probability::Probability;

/// A truth whose lone owner, in a crowd of the other truth, shows in the published counts.
///
/// The noise of the paper's mechanisms cancels for everybody who sees the tallies. What is left are cells that owners of one truth
/// alone write, and the first of them is the only one that can have written it: δ is at least their probability, for every ε
/// (`docs/accounting.md`, section 2.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoneOwner {
    /// `yes` or `no`.
    pub truth: &'static str,
    /// The probability with which such an owner shows.
    pub probability: f64,
    /// The cells that owners of this truth alone write.
    pub cells: Vec<String>,
}

/// The truths whose lone owners show: none where a cell of each truth is also written by the other one, and where the aggregators
/// add noise.
///
/// ```
/// use uptack::{Mechanism, privacy::lone_owners};
/// // The paper's "Plausible Deniability", read literally: no yes-owner moves on to output 2.
/// let literal: Mechanism = "blended(0.05,0.25,0.25,0.05,0.4,0,0.0001)".parse()?;
/// let shown = lone_owners(&literal.channel());
/// assert_eq!((shown.len(), shown[0].truth, shown[0].probability), (1, "no", 0.3999));
/// let repaired: Mechanism = "blended(0.05,0.25,0.25,0.05,0.4,0.0001,0.0001)".parse()?;
/// assert_eq!(lone_owners(&repaired.channel()), []);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn lone_owners(channel: &Channel) -> Vec<LoneOwner> {
    // Where tallies do not tell such cells from others, nobody shows for certain.
    if channel.noise().is_some() || !channel.shows_classes() {
        return Vec::new();
    }
    let yes = LoneOwner::of("yes", channel, |cell| (cell.yes(), cell.no()));
    let no = LoneOwner::of("no", channel, |cell| (cell.no(), cell.yes()));
    [yes, no].into_iter().flatten().collect()
}

impl LoneOwner {
    /// `laws` returns a cell's probability under this truth and under the other one.
    fn of(truth: &'static str, channel: &Channel, laws: impl Fn(&Cell) -> (Probability, Probability)) -> Option<Self> {
        let is_own = |cell: &&Cell| {
            let (own, other) = laws(cell);
            own != Probability::ZERO && other == Probability::ZERO
        };
        let own: Vec<&Cell> = channel.cells().iter().filter(is_own).collect();
        let whole: u128 = own.iter().map(|cell| laws(cell).0.numerator()).sum();
        let probability = whole as f64 / Probability::ONE.numerator() as f64;
        let cells: Vec<String> = own.iter().map(|cell| cell.name()).collect();
        (!cells.is_empty()).then_some(Self { truth, probability, cells })
    }
}

impl fmt::Display for LoneOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { truth, probability, cells } = self;
        let other = if *truth == "yes" { "no" } else { "yes" };
        write!(
            f,
            "only {truth}-owners write {}: among {other}-owners, a lone {truth}-owner shows in the counts with probability {}, \
             so there is no guarantee",
            separated(cells, ", "),
            display::rounded(*probability, 5, Rounding::Up)
        )
    }
}
