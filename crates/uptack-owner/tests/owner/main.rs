//! The owner's client against real aggregators: what it refuses, what it keeps, and that nothing of its truth shows.

mod behaviour;
mod crashes;
mod dishonest_listing;
mod refusals;
mod world;
