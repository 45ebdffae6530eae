//! The private write.
pub mod clock;
pub mod dap;
pub mod error;
mod janus;
pub mod task;
pub mod token;
mod store;
