//! Guarantees of contributions: of everything that a card publishes together (`docs/contributions.md`).

mod closed_forms;
mod crowd_divergence;
mod explain;
mod owners_alone;
#[cfg(test)]
mod tests;
mod views;

pub use closed_forms::{linked_epsilon, noise_alone, one_aggregator};
pub use explain::statement;
pub use owners_alone::OwnersAlone;
pub use views::{ContributionViews, RepeatedContributions};
