//! The network as a whole: processes, peers, faults.

mod cheats;
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
mod operation;
mod support;
