//! What a desk releases about a query: the record, what follows from it, and the check of both by anyone.

pub mod record;
pub mod results;
pub mod verification;
