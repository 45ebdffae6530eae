//! The command line of Uptack.
fn main() {}
