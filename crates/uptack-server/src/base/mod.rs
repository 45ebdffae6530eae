//! What both servers stand on.

pub mod backup;
pub mod listener;
pub mod logging;
