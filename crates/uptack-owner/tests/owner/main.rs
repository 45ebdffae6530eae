//! The owner's client against real aggregators: what it refuses, what it keeps, and that nothing of its truth shows.

mod behaviour;
mod budgets;
mod crashes;
mod dishonest_analyst;
mod dishonest_desk;
mod dishonest_leader;
mod dishonest_listing;
mod dishonest_reader;
mod faults;
mod migration;
mod noise;
mod people;
mod refusals;
mod series;
mod vectors;
mod world;
