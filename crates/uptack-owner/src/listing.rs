//! What a desk has open.

use reqwest::Client;
use uptack_dap::{
    listing::{self, Bounds},
    signed::SignedCard,
};
use url::Url;

use crate::error::Result;

/// The open queries of a desk. What is asked for depends on the desk's list and on the cards that are known from an
/// earlier visit, and so on no attribute.
pub(crate) async fn fetch(
    http: &Client,
    desk: &Url,
    known: impl Fn(&str) -> Option<SignedCard>,
) -> Result<Vec<SignedCard>> {
    Ok(listing::fetch(http, desk, Bounds::DEFAULT, known).await?.cards)
}
