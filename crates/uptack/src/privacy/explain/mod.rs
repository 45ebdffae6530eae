//! What a guarantee means: in words, and as the accuracy of the best guess (`docs/accounting.md`, "What a guesser gains").

mod bayes_accuracy;
mod statement;

pub use bayes_accuracy::BayesAccuracy;
pub use statement::statement;
