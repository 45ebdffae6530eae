//! Guarantees of contributions: of everything that a card publishes together (`docs/contributions.md`).

mod closed_forms;

pub use closed_forms::{linked_epsilon, noise_alone, one_aggregator};
