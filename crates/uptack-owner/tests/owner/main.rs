//! The owner's client against real aggregators: what it refuses, what it keeps, and that nothing of its truth shows.

mod behaviour;
mod crashes;
mod refusals;
mod world;
