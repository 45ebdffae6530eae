//! The desk as analysts, owners and operators meet it.

mod dishonest_operator;
mod elsewhere;
mod interface;
mod lifecycle;
mod restarts;
mod support;
