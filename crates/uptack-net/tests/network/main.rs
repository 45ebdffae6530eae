//! The network as a whole: processes, peers, faults.

mod ballots;
mod cheats;
mod collection;
mod corpus;
mod dishonest_credentials;
mod faults;
mod interop;
mod kills;
mod operation;
mod support;
