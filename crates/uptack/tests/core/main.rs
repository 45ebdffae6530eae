//! The core as its users see it: one binary, one module for each subject.

mod contribution_claims;
mod contribution_errors;
mod coverage;
mod exact_coverage;
mod family;
mod mechanisms;
mod noisy_coverage;
mod one_aggregator;
mod promises;
mod random_channels;
mod sections;
mod settings;
mod vectors;
