//! Uptack.

pub mod privacy;
