//! A channel.

use serde::Serialize;
use uptack::{Cell, Channel, DiscreteLaplace, Output, Probability};

/// A channel as JSON.
#[derive(Serialize)]
pub struct ChannelDocument<'a> {
    mechanism: String,
    answers: &'a [Vec<Output>],
    cells: Vec<DecimalCell<'a>>,
    exact: Exact<'a>,
    determined: bool,
    noise: Option<&'a DiscreteLaplace>,
}

#[derive(Serialize)]
struct DecimalCell<'a> {
    outputs: &'a [Output],
    yes: f64,
    no: f64,
}

#[derive(Serialize)]
struct Exact<'a> {
    bits: u32,
    cells: &'a [Cell],
}

impl<'a> ChannelDocument<'a> {
    /// The channel of a mechanism, given by its text.
    pub fn new(mechanism: String, channel: &'a Channel) -> Self {
        Self {
            mechanism,
            answers: channel.answers(),
            cells: channel.cells().iter().map(DecimalCell::new).collect(),
            exact: Exact { bits: Probability::BITS, cells: channel.cells() },
            determined: channel.determined(),
            noise: channel.noise(),
        }
    }
}

impl<'a> DecimalCell<'a> {
    fn new(cell: &'a Cell) -> Self {
        Self { outputs: cell.outputs(), yes: cell.yes().to_f64(), no: cell.no().to_f64() }
    }
}
