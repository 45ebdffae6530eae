//! The network as a whole: processes, peers, faults.

mod ballots;
mod certificates;
mod cheats;
mod clocks;
mod collection;
mod corpus;
mod dishonest_credentials;
mod dishonest_desk;
mod dishonest_helper;
mod dishonest_leader;
mod faults;
mod interop;
mod kills;
mod noise;
mod noise_kills;
mod operation;
mod support;
