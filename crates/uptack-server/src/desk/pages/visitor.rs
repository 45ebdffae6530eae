//! Somebody who is signed in.

use crate::desk::tokens::Caller;

/// The field of every form that proves that it is ours.
pub(super) const FORM_TOKEN: &str = "form_token";

/// Somebody who is signed in.
pub(super) struct Visitor {
    pub(super) caller: Caller,
    /// What forms carry.
    pub(super) form_token: String,
}
