//! The paper's evaluation, at equal guarantees.
//!
//! For every station of a road network the question is "are you at this station?". The truth is the number of vehicles
//! that a loop detector counted. The population is all vehicles, and it grows by vehicles elsewhere. This crate reads or
//! generates [`traffic`], compares [`method`]s at equal guarantee, and measures them.

pub mod compare;
pub mod curve;
mod error;
pub mod evaluation;
pub mod findings;
pub mod longitudinal;
pub mod measure;
pub mod method;
mod parallel;
pub mod planned;
pub mod report;
pub mod row;
pub mod settings;
mod tasks;
pub mod traffic;
mod uniform;
pub mod watch;

pub use error::{Error, Result};
