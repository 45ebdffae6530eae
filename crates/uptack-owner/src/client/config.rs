//! How a client answers.

use std::{collections::HashMap, path::PathBuf};
use uptack_dap::{clock::Clock, credential::OwnerSecret};
use url::Url;

use crate::observer::Observer;

/// How a client answers. [`Config::new`] gives defaults for everything but the desk.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the desk is.
    pub desk: Url,
    /// An additional root certificate for TLS, in a PEM file.
    pub root: Option<PathBuf>,
    /// Reports are sent within this many seconds after the fixed delay; by default at any time in the query's window.
    pub within: Option<u64>,
    /// Answers only this query; by default all that are open.
    pub query: Option<String>,
    /// Answers only questions for people, and refuses those for devices: for a person about whom nothing is known.
    pub people_only: bool,
    /// The secret of each enrolled owner. It signs reports for cards that require enrolment, and no others.
    pub credentials: HashMap<String, OwnerSecret>,
    /// The time of day.
    pub clock: Clock,
    /// For tests: is called for everything that happens, in order.
    #[doc(hidden)]
    pub observer: Observer,
}

impl Config {
    /// A client of a desk.
    pub fn new(desk: Url) -> Self {
        Self {
            desk,
            root: None,
            within: None,
            query: None,
            people_only: false,
            credentials: HashMap::new(),
            clock: Clock::system(),
            observer: Observer::default(),
        }
    }
}
