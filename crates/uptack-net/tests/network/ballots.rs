//! ballots
