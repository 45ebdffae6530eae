//! The commands for mechanisms with options: one of several, or several contributions among many counts.

mod channel;

pub(super) use channel::run_channel;
