//! The paper's evaluation, at equal guarantees.
//!
//! For every station of a road network the question is "are you at this station?". The truth is the vehicles that a
//! loop detector counted, the population all vehicles, which grows by vehicles elsewhere. This crate reads or
//! generates [`traffic`], sets [`method`]s side by side at equal guarantee, and measures them.

pub mod compare;
mod error;
pub mod evaluation;
pub mod findings;
mod html;
pub mod longitudinal;
pub mod measure;
pub mod method;
pub mod planned;
pub mod report;
pub mod settings;
pub mod traffic;

pub use error::Error;
