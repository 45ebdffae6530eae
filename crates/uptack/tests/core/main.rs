//! The core as its users see it: one binary, one module for each subject.

mod coverage;
mod exact_coverage;
mod family;
mod mechanisms;
mod one_aggregator;
mod promises;
mod random_channels;
mod sections;
mod vectors;
