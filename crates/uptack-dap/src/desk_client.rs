//! The desk as an analyst's program calls it.

use serde::Deserialize;
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use uptack::card::Card;
use url::Url;

use crate::{
    error::{Error, Result},
    http_client,
    listing::{self, Bounds},
    signed::{PublicKey, SignedCard},
    token::Token,
};

/// How long to wait before a request is sent again, each time, unless the desk asks for more.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(5)];
/// Longest wait between two attempts, whatever the desk asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Most queries that are listed; a desk that has no end would otherwise fill the memory.
const MOST_QUERIES: usize = 10_000;

/// When a query runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Once, for so many seconds from now, or a little longer.
    Once {
        /// How long.
        seconds: u64,
    },
    /// Again and again, in windows without gaps.
    Series {
        /// How long each window is, in seconds.
        every: u64,
        /// How many.
        times: u64,
    },
}

/// What a desk answers when a query is opened.
#[derive(Debug, Clone, Deserialize)]
pub struct Opened {
    /// The queries, one for each window.
    pub queries: Vec<OpenedQuery>,
    /// The first card, as it was signed.
    pub card: Card,
}

/// One window of what was opened.
#[derive(Debug, Clone, Deserialize)]
pub struct OpenedQuery {
    /// Its name.
    pub query: String,
    /// When answers are taken from.
    pub opens: String,
    /// Until when.
    pub closes: String,
}

/// What a desk says about a query.
#[derive(Debug, Clone, Deserialize)]
pub struct Status {
    /// Its name.
    pub query: String,
    /// Its state.
    pub state: String,
    /// When it closes or closed.
    pub closes: String,
    /// Why it is in that state, where that needs saying.
    pub reason: Option<String>,
}

/// A query as a desk shows it to the analyst who asked it.
#[derive(Debug, Clone, Deserialize)]
pub struct Overview {
    /// Its name.
    pub query: String,
    /// The question in words.
    pub question: Option<String>,
    /// Its state.
    pub state: String,
    /// How many reports arrived so far, where the leader says so.
    pub reports: Option<u64>,
    /// Below this many reports nothing is released.
    pub minimum_batch: Option<u64>,
    /// When answers are taken from.
    pub opens: String,
    /// Until when.
    pub closes: String,
    /// Why it is in that state, where that needs saying.
    pub reason: Option<String>,
}

#[derive(Deserialize)]
struct OverviewPage {
    queries: Vec<Overview>,
    next: Option<usize>,
}

/// Calls a desk.
#[derive(Debug, Clone)]
pub struct Client {
    desk: Url,
    token: Option<Token>,
    http: reqwest::Client,
}

impl Client {
    /// A client of the desk at an address; what analysts do needs a token. `root` is a further root certificate.
    pub fn new(desk: &Url, token: Option<Token>, root: Option<&Path>) -> Result<Self> {
        let mut desk = desk.clone();
        if desk.cannot_be_a_base() {
            return Err(Error::input(format!("`{desk}` is not the address of a desk")));
        }
        http_client::make_base(&mut desk);
        Ok(Self { desk, token, http: http_client::client(root)? })
    }

    /// Opens the queries of a card. What fails on the way is sent again a few times, and opens them once all the same.
    pub async fn open(&self, card: &Card, schedule: Schedule) -> Result<Opened> {
        self.open_by_key(card, schedule, &Token::generate()).await
    }

    /// The same by a key of the caller's, for programs that repeat the request after a restart: the same card, schedule
    /// and key open the same queries, and nothing more.
    pub async fn open_by_key(&self, card: &Card, schedule: Schedule, key: &Token) -> Result<Opened> {
        let body = match schedule {
            Schedule::Once { seconds } => json!({"card": card, "seconds": seconds}),
            Schedule::Series { every, times } => json!({"card": card, "every": every, "times": times}),
        };
        let body = body.to_string();
        let request = || -> Result<_> {
            let request = self.http.post(self.address("queries")?).header("idempotency-key", key.as_str());
            Ok(request.body(body.clone()))
        };
        for pause in PAUSES {
            match self.send(request()?).await {
                Err(error) if error.is_unreachable() => {
                    let wait = error.retry_after().map_or(pause, |asked| asked.max(pause).min(LONGEST_PAUSE));
                    tokio::time::sleep(wait).await;
                }
                outcome => return parse(&outcome?),
            }
        }
        parse(&self.send(request()?).await?)
    }

    /// The cards that are open now.
    pub async fn list(&self) -> Result<Vec<SignedCard>> {
        Ok(listing::fetch(&self.http, &self.desk, Bounds::DEFAULT, |_| None).await?.cards)
    }

    /// The key that signs the desk's cards, as the desk says. Whoever relies on it compares it with one that they pinned;
    /// to ask for it also tells whether the desk answers at all.
    pub async fn signer(&self) -> Result<PublicKey> {
        #[derive(Deserialize)]
        struct Key {
            signer: PublicKey,
        }
        let key: Key = parse(&self.send(self.http.get(self.address("key")?)).await?)?;
        Ok(key.signer)
    }

    /// All queries that the analyst asked, or everybody's for an administrator; the latest first.
    pub async fn own(&self) -> Result<Vec<Overview>> {
        let mut queries: Vec<Overview> = Vec::new();
        let mut from = 0;
        loop {
            let address = self.address(&format!("queries/own?from={from}"))?;
            let page: OverviewPage = parse(&self.send(self.http.get(address)).await?)?;
            // What was asked meanwhile moves the others on to the next page.
            let new = |query: &Overview| queries.iter().all(|known| known.query != query.query);
            let fresh: Vec<Overview> = page.queries.into_iter().filter(new).collect();
            queries.extend(fresh);
            match page.next.filter(|next| *next > from && queries.len() < MOST_QUERIES) {
                Some(next) => from = next,
                None => return Ok(queries),
            }
        }
    }

    /// The signed card of a query, also when it is over if it is the analyst's own.
    pub async fn card(&self, query: &str) -> Result<SignedCard> {
        parse(&self.send(self.http.get(self.address(&format!("{}/card", path(query)?))?)).await?)
    }

    /// What became of a query.
    pub async fn status(&self, query: &str) -> Result<Status> {
        parse(&self.send(self.http.get(self.address(&path(query)?)?)).await?)
    }

    /// The release record's text, as the desk keeps it.
    ///
    /// [`Error::refused_with`] is 409 as long as there is none yet and 410 if there will be none.
    pub async fn result(&self, query: &str) -> Result<String> {
        let address = self.address(&format!("{}/result", path(query)?))?;
        let bytes = self.send(self.http.post(address).header("content-length", 0)).await?;
        String::from_utf8(bytes).map_err(|_| Error::refused("the desk's answer is not text"))
    }

    /// Takes a query back.
    pub async fn cancel(&self, query: &str) -> Result<()> {
        self.send(self.http.delete(self.address(&path(query)?)?)).await.map(drop)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token.as_str()),
            None => request,
        };
        let response = request.send().await.map_err(|error| http_client::no_answer("desk", error))?;
        let (status, asked) = (response.status(), http_client::retry_after(response.headers()));
        let body = http_client::body("desk", response).await?;
        if status.is_success() {
            return Ok(body);
        }
        let document: Value = serde_json::from_slice(&body).unwrap_or_default();
        let detail = document["detail"].as_str().unwrap_or("no reason given");
        let text = format!("the desk answers {}: {detail}", status.as_u16());
        let passing = status.is_server_error() && status.as_u16() != 502;
        let error = if passing { Error::unreachable(text) } else { Error::refused(text).with_status(status.as_u16()) };
        Err(error.with_retry_after(asked))
    }

    fn address(&self, path: &str) -> Result<Url> {
        self.desk.join(path).map_err(|error| Error::input(format!("{}: {error}", self.desk)))
    }
}

/// Names of queries are unpadded base64url, and nothing else goes into an address.
fn path(query: &str) -> Result<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if query.is_empty() || !query.bytes().all(allowed) {
        return Err(Error::input(format!("`{query}` is not the name of a query")));
    }
    Ok(format!("queries/{query}"))
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::refused(format!("the desk's answer is malformed: {error}")))
}
