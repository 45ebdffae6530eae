//! Fetching a desk's open queries: their names page by page, then each card that is not known yet.
//!
//! The desk may be dishonest, and a card may have been asked for by a dishonest analyst. Everything is bounded, and what
//! goes beyond a bound, or cannot be read, is left out without harm to the rest.

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};
use url::Url;

use crate::{
    error::{Error, Result},
    http_client,
    signed::SignedCard,
};

/// Largest card that a desk signs, in bytes of its canonical text.
pub const LARGEST_CARD: usize = 256 * 1024;
/// Names on one page, at most.
pub const LONGEST_PAGE: usize = 1000;
/// Queries that a desk holds open or is to open, at most, unless its operator says another number.
pub const MOST_QUERIES: usize = 10_000;
/// Bytes of the cards of all those, at most.
pub const MOST_CARD_BYTES: u64 = 32 * 1024 * 1024;

/// One page of names, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Names of open queries.
    pub queries: Vec<String>,
    /// Ask for what comes after this name; nothing if this is the last page.
    pub next: Option<String>,
}

/// How much of a listing is read.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
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

impl Bounds {
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

/// What came of fetching.
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
/// It fails only if not even the first page can be had. The requests depend on the desk's names and on what is known,
/// and on nothing else.
pub async fn fetch(
    http: &reqwest::Client,
    desk: &Url,
    bounds: Bounds,
    known: impl Fn(&str) -> Option<SignedCard>,
) -> Result<Fetched> {
    let deadline = tokio::time::Instant::now() + bounds.time;
    let (names, cut_off) = names(http, desk, bounds, deadline).await?;
    let wanted = names.len();
    let mut cards: Vec<SignedCard> = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        match known(&name) {
            Some(card) => cards.push(card),
            None => missing.push(name),
        }
    }
    let mut read = 0;
    let fetches = missing.into_iter().map(|name| fetch_card(http, desk, name, bounds.answer));
    let mut answers = stream::iter(fetches).buffer_unordered(bounds.at_once);
    while let Ok(Some(answer)) = tokio::time::timeout_at(deadline, answers.next()).await {
        // A query that closed meanwhile, a card that is too large, a desk that is away: the others go on.
        let Ok((card, size)) = answer else { continue };
        read += size;
        if read > bounds.bytes {
            break;
        }
        cards.push(card);
    }
    drop(answers);
    cards.sort_unstable_by(|one, other| one.query.cmp(&other.query));
    let left_out = wanted - cards.len();
    if left_out > 0 || cut_off {
        tracing::warn!(left_out, cut_off, "not all of the desk's queries could be read");
    }
    Ok(Fetched { cards, left_out, cut_off })
}

/// The names on all pages within the bounds, each once, and whether there were more.
async fn names(
    http: &reqwest::Client,
    desk: &Url,
    bounds: Bounds,
    deadline: tokio::time::Instant,
) -> Result<(BTreeSet<String>, bool)> {
    let mut names = BTreeSet::new();
    let mut after: Option<String> = None;
    for number in 0..bounds.pages {
        let page = tokio::time::timeout_at(deadline, fetch_page(http, desk, after.as_deref(), bounds.answer)).await;
        let page = match page.unwrap_or_else(|_| Err(Error::unreachable("the desk's answer takes too long"))) {
            Ok(page) => page,
            Err(error) if number == 0 => return Err(error),
            Err(_) => return Ok((names, true)),
        };
        for name in page.queries.into_iter().filter(|name| is_name(name)) {
            if names.len() >= bounds.queries {
                return Ok((names, true));
            }
            names.insert(name);
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

async fn fetch_page(http: &reqwest::Client, desk: &Url, after: Option<&str>, limit: usize) -> Result<Page> {
    let mut url = address(desk, "queries")?;
    if let Some(after) = after {
        url.query_pairs_mut().append_pair("after", after);
    }
    let bytes = get(http, url, limit).await?;
    serde_json::from_slice(&bytes).map_err(|_| Error::refused("the desk's answer is not a list of queries"))
}

async fn fetch_card(http: &reqwest::Client, desk: &Url, name: String, limit: usize) -> Result<(SignedCard, usize)> {
    let bytes = get(http, address(desk, &format!("queries/{name}/card"))?, limit).await?;
    let card: SignedCard =
        serde_json::from_slice(&bytes).map_err(|_| Error::refused("the desk's answer is not a signed card"))?;
    if card.query != name {
        return Err(Error::refused("the desk answers with the card of another query"));
    }
    Ok((card, bytes.len()))
}

async fn get(http: &reqwest::Client, url: Url, limit: usize) -> Result<Vec<u8>> {
    let response = http.get(url).send().await.map_err(|error| http_client::no_answer("desk", error))?;
    http_client::body_within("desk", http_client::check("desk", response).await?, limit).await
}

fn address(desk: &Url, path: &str) -> Result<Url> {
    desk.join(path).map_err(|error| Error::input(format!("desk: {error}")))
}

/// Names are unpadded base64url of 32 bytes; nothing else goes into an address.
fn is_name(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}
