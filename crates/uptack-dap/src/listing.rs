//! Fetches a desk's open queries: their names page by page, then each card that is not known yet.
//!
//! The desk may be dishonest, and a card may come from a dishonest analyst. Everything is bounded, and what exceeds a
//! bound, or cannot be read, is left out without harm to the rest.

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::Instant;
use url::Url;

use crate::{
    error::{Error, Result},
    http_client,
    signed::SignedCard,
};

/// The largest card that a desk signs, in bytes of its canonical text.
pub const LARGEST_CARD: usize = 256 * 1024;
/// The most names on one page.
pub const LONGEST_PAGE: usize = 1000;
/// The most queries that a desk has open or will open, unless its operator sets another number.
pub const MOST_QUERIES: usize = 10_000;
/// The most bytes that the cards of all those queries have.
pub const MOST_CARD_BYTES: u64 = 32 * 1024 * 1024;

/// One page of names, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Names of open queries.
    pub queries: Vec<String>,
    /// The next page holds the names after this one; `None` if this is the last page.
    pub next: Option<String>,
}

/// How much of a listing is read.
#[derive(Debug, Clone, Copy)]
pub struct ListingBounds {
    /// Pages.
    pub pages: usize,
    /// Names on all pages.
    pub queries: usize,
    /// Bytes of one page, or of one signed card in its JSON form.
    pub answer: usize,
    /// Bytes of all cards together, in their JSON form.
    pub bytes: usize,
    /// Time for everything.
    pub time: Duration,
    /// Requests at once.
    pub at_once: usize,
}

impl ListingBounds {
    /// Twice what an honest desk serves, and half an hour.
    pub const DEFAULT: Self = Self {
        pages: 4 * MOST_QUERIES / LONGEST_PAGE,
        queries: 2 * MOST_QUERIES,
        answer: 4 * LARGEST_CARD,
        bytes: 4 * MOST_CARD_BYTES as usize,
        time: Duration::from_secs(1800),
        at_once: 8,
    };
}

/// The result of fetching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The cards that could be read, in the order of their names. Nothing in them was checked.
    pub cards: Vec<SignedCard>,
    /// How many open queries are not among them, as far as the desk named them.
    pub left_out: usize,
    /// Whether the desk's list of names went on beyond the bounds.
    pub cut_off: bool,
}

/// Fetches the cards of a desk's open queries; those that `known` has are not fetched again.
///
/// It fails only if not even the first page can be fetched. The requests depend on the desk's names and on what is known,
/// and on nothing else.
pub async fn fetch(
    http: &reqwest::Client,
    desk: &Url,
    bounds: ListingBounds,
    known: impl Fn(&str) -> Option<SignedCard>,
) -> Result<Fetched> {
    let fetcher = Fetcher { http, desk, bounds, deadline: Instant::now() + bounds.time };
    let (names, cut_off) = fetcher.names().await?;
    let wanted = names.len();
    let mut cards: Vec<SignedCard> = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        match known(&name) {
            Some(card) => cards.push(card),
            None => missing.push(name),
        }
    }
    cards.extend(fetcher.cards(missing).await);
    cards.sort_unstable_by(|one, other| one.query.cmp(&other.query));
    let left_out = wanted - cards.len();
    if left_out > 0 || cut_off {
        tracing::warn!(left_out, cut_off, "not all of the desk's queries could be read");
    }
    Ok(Fetched { cards, left_out, cut_off })
}

/// Asks one desk, within bounds.
struct Fetcher<'a> {
    http: &'a reqwest::Client,
    desk: &'a Url,
    bounds: ListingBounds,
    deadline: Instant,
}

impl Fetcher<'_> {
    /// The names on all pages within the bounds, each once, and whether there were more.
    async fn names(&self) -> Result<(BTreeSet<String>, bool)> {
        let mut names = BTreeSet::new();
        let mut after: Option<String> = None;
        for number in 0..self.bounds.pages {
            let page = match self.page(after.as_deref()).await {
                Ok(page) => page,
                Err(error) if number == 0 => return Err(error),
                Err(_) => return Ok((names, true)),
            };
            if !self.add_names(&mut names, page.queries) {
                return Ok((names, true));
            }
            match page.next {
                None => return Ok((names, false)),
                // Names come in order, so an honest next page is further on.
                Some(next) if is_name(&next) && after.as_ref().is_none_or(|after| next > *after) => after = Some(next),
                Some(_) => return Ok((names, true)),
            }
        }
        Ok((names, true))
    }

    /// Adds the names of a page; false if they are more than the bounds allow.
    fn add_names(&self, names: &mut BTreeSet<String>, page: Vec<String>) -> bool {
        for name in page.into_iter().filter(|name| is_name(name)) {
            if names.len() >= self.bounds.queries {
                return false;
            }
            names.insert(name);
        }
        true
    }

    /// The page after a name, or the first one.
    async fn page(&self, after: Option<&str>) -> Result<Page> {
        let mut url = self.address("queries")?;
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let answer = tokio::time::timeout_at(self.deadline, self.get(url)).await;
        let bytes = answer.unwrap_or_else(|_| Err(Error::unreachable("the desk's answer takes too long")))?;
        serde_json::from_slice(&bytes).map_err(|_| {
            let address = self.desk;
            Error::refused(format!(
                "{address} does not answer like an Uptack desk: its answer is not a list of queries; check the address"
            ))
        })
    }

    /// The cards of these names that arrive within the bounds.
    async fn cards(&self, names: Vec<String>) -> Vec<SignedCard> {
        let mut cards = Vec::new();
        let mut read = 0;
        let mut answers =
            stream::iter(names.into_iter().map(|name| self.card(name))).buffer_unordered(self.bounds.at_once);
        while let Ok(Some(answer)) = tokio::time::timeout_at(self.deadline, answers.next()).await {
            // A query that closed meanwhile, a card that is too large, a desk that is away: the others go on.
            let Ok((card, size)) = answer else { continue };
            read += size;
            if read > self.bounds.bytes {
                break;
            }
            cards.push(card);
        }
        cards
    }

    /// A card, and how many bytes it took.
    async fn card(&self, name: String) -> Result<(SignedCard, usize)> {
        let bytes = self.get(self.address(&format!("queries/{name}/card"))?).await?;
        let card: SignedCard =
            serde_json::from_slice(&bytes).map_err(|_| Error::refused("the desk's answer is not a signed card"))?;
        if card.query != name {
            return Err(Error::refused("the desk answers with the card of another query"));
        }
        Ok((card, bytes.len()))
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>> {
        let response = http_client::send("desk", self.http.get(url)).await?;
        http_client::body_within("desk", response, self.bounds.answer).await
    }

    fn address(&self, path: &str) -> Result<Url> {
        self.desk.join(path).map_err(|error| Error::input(format!("desk: {error}")))
    }
}

/// Names are unpadded base64url of 32 bytes; nothing else goes into an address.
fn is_name(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}
