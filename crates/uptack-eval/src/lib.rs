//! The paper's evaluation, at equal guarantees.
//!
//! Each vehicle of a road network reports its location, as one choice among all stations or for one station at a time ("are you at
//! this station?"). The truth is the number of vehicles that a loop detector counted. The population is all vehicles, and it grows by vehicles elsewhere. This crate reads or
//! generates [`traffic`], compares [`method`]s at equal guarantee, and measures them.

pub mod compare;
mod error;
pub mod evaluation;
pub mod findings;
pub mod measure;
pub mod median_station;
pub mod method;
pub mod planned;
pub mod report;
pub mod series;
pub mod settings;
pub mod traffic;

pub use error::{Error, Result};
