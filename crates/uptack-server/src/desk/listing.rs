//! The open queries as owners see them: pages of names, and the cards. Built when something changes, and shared by all
//! requests.

use axum::{body::Bytes, http::HeaderValue};
use std::collections::BTreeMap;
use uptack_dap::{
    crypto::sha256,
    listing::{LONGEST_PAGE, Page},
    signed::SignedCard,
};

/// The queries that are open, as they are served.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The signed cards as JSON, by name.
    cards: BTreeMap<String, Bytes>,
    pages: Vec<CachedPage>,
    /// The page that is served beyond the last one.
    end: CachedPage,
    /// The beginning of every stream: an event for each query.
    events: Bytes,
}

/// Bytes that are the same for everybody, and their entity tag.
#[derive(Debug, Clone)]
pub(crate) struct CachedPage {
    pub(crate) bytes: Bytes,
    pub(crate) tag: HeaderValue,
    /// The last name on it.
    last: String,
}

impl Default for Listing {
    fn default() -> Self {
        Self::new(BTreeMap::new())
    }
}

impl Listing {
    fn new(cards: BTreeMap<String, Bytes>) -> Self {
        Self { pages: pages(&cards), end: page(&[], false), events: events(cards.keys()), cards }
    }

    /// The listing of these queries: with the cards that are listed here, and the others from `fresh`.
    pub(crate) fn with(&self, names: &[String], fresh: Vec<SignedCard>) -> Self {
        let kept = names.iter().filter_map(|name| Some((name.clone(), self.cards.get(name)?.clone())));
        Self::new(kept.chain(fresh.into_iter().map(served)).collect())
    }

    /// The page that begins after a name.
    pub(crate) fn page(&self, after: Option<&str>) -> &CachedPage {
        let index = self.pages.partition_point(|page| page.last.as_str() <= after.unwrap_or_default());
        self.pages.get(index).unwrap_or(&self.end)
    }

    pub(crate) fn card(&self, name: &str) -> Option<&Bytes> {
        self.cards.get(name)
    }

    pub(crate) fn events(&self) -> &Bytes {
        &self.events
    }

    /// Events for the queries that an earlier listing does not have, if there are any.
    pub(crate) fn news_since(&self, before: &Self) -> Option<Bytes> {
        let news = events(self.cards.keys().filter(|name| !before.cards.contains_key(*name)));
        (!news.is_empty()).then_some(news)
    }

    /// The queries among these that are not listed.
    pub(crate) fn missing(&self, names: &[String]) -> Vec<String> {
        names.iter().filter(|name| !self.cards.contains_key(*name)).cloned().collect()
    }

    /// Whether exactly these queries are listed.
    pub(crate) fn lists(&self, names: &[String]) -> bool {
        self.cards.len() == names.len() && names.iter().all(|name| self.cards.contains_key(name))
    }
}

/// A card by its name, as it is served.
fn served(card: SignedCard) -> (String, Bytes) {
    let text = serde_json::to_string(&card).expect("a signed card is strings");
    (card.query, Bytes::from(text))
}

fn pages(cards: &BTreeMap<String, Bytes>) -> Vec<CachedPage> {
    let names: Vec<&String> = cards.keys().collect();
    let chunks = names.chunks(LONGEST_PAGE);
    let last = chunks.len().saturating_sub(1);
    chunks.enumerate().map(|(index, names)| page(names, index < last)).collect()
}

fn page(names: &[&String], has_next: bool) -> CachedPage {
    let queries: Vec<String> = names.iter().copied().cloned().collect();
    let last = queries.last().cloned().unwrap_or_default();
    let page = Page { queries, next: has_next.then(|| last.clone()) };
    let text = serde_json::to_string(&page).expect("a page is strings");
    CachedPage { tag: tag(&text), bytes: Bytes::from(text), last }
}

/// An entity tag: half of the text's SHA-256.
fn tag(text: &str) -> HeaderValue {
    let digits: String = sha256(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(format!("\"{digits}\"")).expect("hexadecimal digits are allowed in a header")
}

fn events<'a>(names: impl Iterator<Item = &'a String>) -> Bytes {
    Bytes::from(names.map(|name| format!("event: query\ndata: {name}\n\n")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(numbers: std::ops::Range<usize>) -> Listing {
        Listing::new(numbers.map(|number| (format!("{number:05}"), Bytes::from_static(b"{}"))).collect())
    }

    fn read(document: &CachedPage) -> Page {
        serde_json::from_slice(&document.bytes).unwrap()
    }

    #[test]
    fn pages_are_bounded_and_together_have_every_name_once() {
        let listing = listing(0..2 * LONGEST_PAGE + 1);
        let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let document = listing.page(after.as_deref());
            assert!(document.bytes.len() < 64 * 1024);
            let page = read(document);
            seen.extend(page.queries);
            (after, pages) = (page.next, pages + 1);
            if after.is_none() {
                break;
            }
        }
        assert_eq!((pages, seen.len()), (3, 2 * LONGEST_PAGE + 1));
        assert!(seen.is_sorted());
        // A name between two pages, or after all of them, leads to the next page.
        assert!(read(listing.page(Some("01000"))).queries.contains(&"01001".to_owned()));
        assert_eq!(read(listing.page(Some("zzz"))), Page { queries: vec![], next: None });
        assert_eq!(read(Listing::default().page(None)), Page { queries: vec![], next: None });
    }

    #[test]
    fn bytes_are_shared_and_tags_tell_pages_apart() {
        let before = listing(0..3);
        assert_eq!(before.page(None).bytes.as_ptr(), before.page(None).bytes.clone().as_ptr());
        let names: Vec<String> = ["00001", "00002", "new"].map(str::to_owned).to_vec();
        let fresh = SignedCard { query: "new".to_owned(), card: "{}".to_owned(), signature: String::new() };
        let after = before.with(&names, vec![fresh]);
        assert_eq!(after.card("00001").unwrap().as_ptr(), before.card("00001").unwrap().as_ptr());
        assert!(after.lists(&names) && !after.lists(&names[1..]) && !before.lists(&names));
        assert_ne!(before.page(None).tag, after.page(None).tag);
        assert_eq!(after.page(None).tag, after.with(&names, vec![]).page(None).tag);
        assert_eq!(after.news_since(&before).unwrap(), "event: query\ndata: new\n\n");
        assert_eq!(before.news_since(&after), Some(Bytes::from_static(b"event: query\ndata: 00000\n\n")));
        assert_eq!(after.news_since(&after), None);
    }
}
