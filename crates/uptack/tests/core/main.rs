//! The core as its users see it: one binary, a module a subject.

mod coverage;
mod exact_coverage;
mod family;

mod promises;
mod vectors;
