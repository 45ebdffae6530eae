//! Tasks: what an aggregator is asked to serve, whether its operator admits it, and the keys and secrets that belong to it.

pub(crate) mod admission;
pub(crate) mod definition;
pub(crate) mod enrolment;
pub(crate) mod failures;
pub(crate) mod keys;
pub(crate) mod pair_secret;
