//! What a mechanism gives away.

use serde_json::{Value, json};
use uptack::privacy::{Repeated, Target, Views};

use crate::views::{repeated_json, views_json};

/// Every view of a mechanism, once and repeated, with a statement in words.
#[derive(Clone, Debug)]
pub struct PrivacyCard {
    /// The owners who are counted on.
    pub owners: u64,
    /// Which of ε and δ was given.
    pub target: Target,
    /// All views.
    pub views: Views,
    /// The same for an owner who answers many times.
    pub repeated: Option<Repeated>,
    /// In words.
    pub statement: String,
}

impl PrivacyCard {
    /// One JSON document.
    pub fn json(&self, mechanism: &str) -> Value {
        let mut document = json!({
            "mechanism": mechanism,
            "owners": self.owners,
            "neighbours": "one owner's truth is substituted, the number of owners is public",
            "views": views_json(&self.views),
            "statement": self.statement,
        });
        if let Some(repeated) = &self.repeated {
            document["repeated"] = repeated_json(repeated, self.target);
        }
        document
    }
}
