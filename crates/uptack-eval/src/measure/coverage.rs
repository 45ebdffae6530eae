//! Which results have intervals that hold a known truth.

use uptack::estimate::many::{Sharing, simultaneous};
use uptack::estimate::{Acceptance, Confidence, Estimator, IntervalKind};

use super::LEVEL;
use crate::error::Result;

/// The two confidences at which intervals are made: each alone, and all stations at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confidences {
    pub(crate) each: Confidence,
    pub(crate) all: Confidence,
}

impl Confidences {
    pub(super) fn of_stations(stations: usize) -> Result<Self> {
        let each = Confidence::new(LEVEL)?;
        Ok(Self { each, all: simultaneous(each, stations, Sharing::Bonferroni)? })
    }
}

/// The results whose intervals hold one known truth, worked out in advance.
pub(crate) struct Coverage {
    /// By the station's own interval.
    pub(crate) each: Acceptance,
    /// By its simultaneous interval.
    pub(crate) all: Acceptance,
}

impl Coverage {
    pub(super) fn new(estimator: &Estimator, owners: u64, yes: u64, by: &Confidences) -> Result<Self> {
        let acceptance = |confidence| estimator.acceptance(owners, yes, confidence, IntervalKind::Auto);
        Ok(Self { each: acceptance(by.each)?, all: acceptance(by.all)? })
    }
}
