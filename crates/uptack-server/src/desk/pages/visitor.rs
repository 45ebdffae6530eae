//! Somebody who is signed in.

use crate::desk::tokens::Caller;

/// The name of the field that proves that a form is ours.
pub(super) const FORM_TOKEN: &str = "form_token";

/// Somebody who is signed in.
pub(super) struct Visitor {
    pub(super) caller: Caller,
    /// The value of that field in this visitor's forms.
    pub(super) form_token: String,
}
