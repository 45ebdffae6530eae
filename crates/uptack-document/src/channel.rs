//! A channel.

use serde::Serialize;
use uptack::{Channel, DiscreteLaplace, Output, Probability};

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
    cells: &'a [uptack::Cell],
}

impl<'a> ChannelDocument<'a> {
    /// The channel of the mechanism that is written so.
    pub fn new(mechanism: String, channel: &'a Channel) -> Self {
        let cell = |cell: &uptack::Cell| (cell.yes().to_f64(), cell.no().to_f64());
        let decimals = channel.cells().iter().map(|each| {
            let (yes, no) = cell(each);
            DecimalCell { outputs: each.outputs(), yes, no }
        });
        Self {
            mechanism,
            answers: channel.answers(),
            cells: decimals.collect(),
            exact: Exact { bits: Probability::BITS, cells: channel.cells() },
            determined: channel.determined(),
            noise: channel.noise(),
        }
    }
}
