//! The core as its users see it: one binary, a module a subject.

mod family;
mod misses;
mod promises;
mod vectors;
