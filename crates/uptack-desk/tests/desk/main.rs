//! The desk as analysts, owners and operators meet it.

mod elsewhere;
mod interface;
mod lifecycle;
mod restarts;
mod support;
mod verification;
