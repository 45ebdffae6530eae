//! Uptack.
