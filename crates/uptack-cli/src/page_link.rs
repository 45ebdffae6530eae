//! Links to the page on which people answer.
//!
//! Everything is in the fragment, which browsers do not send: whoever serves the page does not learn which query is
//! answered.

use uptack::card::{Card, Enrolment};
use url::{Url, form_urlencoded};

use crate::failure::Failure;

/// Refuses a page that the desk serves: it could not check the desk.
pub(crate) fn check_place(page: &Url, desk: &Url) -> Result<(), Failure> {
    if page.origin() != desk.origin() {
        return Ok(());
    }
    Err(Failure::request("--page: a page that the desk serves cannot check what the desk says")
        .with_hint("serve the page from another place; `docs/person.md` says how"))
}

/// The link for one query. Where enrolment is required it ends in `&credential=`, after which belongs a person's secret.
pub(crate) fn of(page: &Url, desk: &Url, card: &Card, query: &str) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("desk", desk.as_str());
    pairs.append_pair("key", card.signer.as_deref().unwrap_or_default());
    pairs.append_pair("query", query);
    if card.enrolment == Some(Enrolment::Required) {
        pairs.append_pair("credential", "");
    }
    let mut link = page.clone();
    link.set_fragment(Some(&pairs.finish()));
    link.to_string()
}
