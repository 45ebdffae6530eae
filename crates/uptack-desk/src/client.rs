//! The desk as an analyst's program calls it.

use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use uptack::card::Card;
use uptack_net::{signed::SignedCard, token::Token, web};
use url::Url;

use crate::error::{Error, Result};

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
    /// Its card's canonical text.
    pub card: String,
    /// The signature over it.
    pub signature: String,
    /// Its state.
    pub state: String,
    /// When it closes or closed.
    pub closes: String,
    /// Why it is in that state, where that needs saying.
    pub reason: Option<String>,
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
        if !desk.path().ends_with('/') {
            let path = format!("{}/", desk.path());
            desk.set_path(&path);
        }
        Ok(Self { desk, token, http: web::client(root)? })
    }

    /// Opens the queries of a card.
    pub async fn open(&self, card: &Card, schedule: Schedule) -> Result<Opened> {
        let body = match schedule {
            Schedule::Once { seconds } => json!({"card": card, "seconds": seconds}),
            Schedule::Series { every, times } => json!({"card": card, "every": every, "times": times}),
        };
        let request = self.http.post(self.address("queries")?).body(body.to_string());
        parse(&self.send(request).await?)
    }

    /// The cards that are open now.
    pub async fn list(&self) -> Result<Vec<SignedCard>> {
        #[derive(Deserialize)]
        struct List {
            queries: Vec<SignedCard>,
        }
        let list: List = parse(&self.send(self.http.get(self.address("queries")?)).await?)?;
        Ok(list.queries)
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
        String::from_utf8(bytes).map_err(|_| Error::refused(200, "the desk's answer is not text"))
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
        let response = request.send().await.map_err(|error| web::no_answer("desk", error))?;
        let status = response.status();
        let body = web::body("desk", response).await?;
        if status.is_success() {
            return Ok(body);
        }
        let document: Value = serde_json::from_slice(&body).unwrap_or_default();
        let detail = document["detail"].as_str().unwrap_or("no reason given");
        let text = format!("the desk answers {}: {detail}", status.as_u16());
        let passing = status.is_server_error() && status.as_u16() != 502;
        Err(if passing { Error::unreachable(text) } else { Error::refused(status.as_u16(), text) })
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
    serde_json::from_slice(bytes)
        .map_err(|error| Error::refused(200, format!("the desk's answer is malformed: {error}")))
}
