//! Links to the page on which people answer.
//!
//! Everything is in the fragment, which browsers do not send: the server of the page does not learn which query is
//! answered.

use uptack::card::{Card, Enrolment};
use url::{Url, form_urlencoded};

use crate::failure::{Failure, Result};

/// Refuses a page that the desk serves: it could not check the desk.
pub(crate) fn check_place(page: &Url, desk: &Url) -> Result<()> {
    if page.origin() != desk.origin() {
        return Ok(());
    }
    Err(Failure::request("--page: a page that the desk serves cannot check what the desk says")
        .with_hint("serve the page from another place; `docs/person.md` says how"))
}

/// The link for one query. If enrolment is required it ends in `&credential=`, to which a person's secret is appended.
pub(crate) fn of(page: &Url, desk: &Url, card: &Card, query: &str) -> String {
    let mut link = page.clone();
    link.set_fragment(Some(&fragment(desk, card, query)));
    link.to_string()
}

fn fragment(desk: &Url, card: &Card, query: &str) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("desk", desk.as_str());
    pairs.append_pair("key", card.signer.as_deref().unwrap_or_default());
    pairs.append_pair("query", query);
    if card.enrolment == Some(Enrolment::Required) {
        pairs.append_pair("credential", "");
    }
    pairs.finish()
}
