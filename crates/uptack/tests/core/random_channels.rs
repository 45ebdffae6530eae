//! Channels that nobody chose, against the promises of intervals.

use std::fmt;

use uptack::estimate::{Confidence, IntervalKind};
use uptack::{Coins, Mechanism, SeededCoins};

use crate::exact_coverage::{Held, exact_coverage};

/// The kinds that promise a least coverage.
pub(crate) const TESTED: [IntervalKind; 2] = [IntervalKind::Auto, IntervalKind::Exact];

/// How often these two hold the truth at least; what rounding leaves out of the sums is left out here.
pub(crate) fn promised(kind: IntervalKind, level: f64) -> f64 {
    let rounding = 1e-9;
    let allowed = if kind == IntervalKind::Auto { ((1.0 - level) / 10.0).min(0.005) } else { 0.0 };
    level - allowed - rounding
}

pub(crate) fn least(held: &[Held]) -> f64 {
    held.iter().map(|held| held.coverage).fold(1.0, f64::min)
}

/// A channel, a crowd and a level.
pub(crate) struct Attack {
    channel: String,
    owners: u64,
    level: f64,
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} owners at {}", self.channel, self.owners, self.level)
    }
}

impl Attack {
    /// With three to five cells; none where both truths turn out to write alike.
    pub(crate) fn draw(coins: &mut SeededCoins) -> Option<Self> {
        let mut below = |most: u64| {
            let mut bytes = [0; 8];
            coins.fill(&mut bytes).unwrap();
            u64::from_le_bytes(bytes) % most
        };
        let cells = 3 + below(3) as usize;
        let owners = 2 + below([58, 20, 9][cells - 3]);
        let level = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999][below(6) as usize];
        // Some cells are rare, some belong to one truth alone.
        let mut weight = || {
            let most = [3, 30, 300][below(3) as usize];
            below(most)
        };
        let mut law = || -> Vec<u64> { (0..cells).map(|_| weight()).collect() };
        let (yes, no) = (law(), law());
        let (yes_sum, no_sum) = (yes.iter().sum::<u64>(), no.iter().sum::<u64>());
        if yes_sum == 0 || no_sum == 0 || (0..cells).all(|cell| yes[cell] * no_sum == no[cell] * yes_sum) {
            return None;
        }
        let cell = |cell: usize| format!("{cell}={}/{yes_sum}:{}/{no_sum}", yes[cell], no[cell]);
        let possible = (0..cells).filter(|&cell| yes[cell] + no[cell] > 0);
        let channel = format!("custom({})", possible.map(cell).collect::<Vec<_>>().join(", "));
        Some(Self { channel, owners, level })
    }

    /// How far the least coverage over every number of yes-owners is above what is promised.
    pub(crate) fn spare_coverage(&self) -> [(IntervalKind, f64); 2] {
        let channel = self.channel.parse::<Mechanism>().unwrap().channel();
        let cases = TESTED.map(|kind| (kind, Confidence::new(self.level).unwrap()));
        let held = exact_coverage(&channel, self.owners, &cases);
        let spare = |index: usize| least(&held[index]) - promised(TESTED[index], self.level);
        [0, 1].map(|index| (TESTED[index], spare(index)))
    }
}
