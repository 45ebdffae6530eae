//! Calls a desk for an analyst's program.

use reqwest::StatusCode;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use uptack::card::{Card, Enrolment};
use url::Url;

use crate::{
    error::{Error, Result},
    http_client,
    listing::{self, ListingBounds},
    signed::{PublicKey, SignedCard},
    token::Token,
};

/// How long to wait before each repetition of a request, unless the desk asks for more.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(5)];
/// The longest pause between two attempts, whatever the desk asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The most queries that are listed; a desk with endless pages would otherwise fill the memory.
const MOST_QUERIES: usize = 10_000;

/// When a query runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Once, from now on for this long or a little longer.
    Once {
        /// How long, in seconds.
        seconds: u64,
    },
    /// Again and again, in windows without gaps.
    Series {
        /// How long each window is, in seconds.
        every: u64,
        /// How many windows there are.
        times: u64,
    },
}

impl Schedule {
    /// The body of a request to open a card's queries.
    pub fn opening_request(self, card: &Card) -> String {
        let request = match self {
            Self::Once { seconds } => json!({"card": card, "seconds": seconds}),
            Self::Series { every, times } => json!({"card": card, "every": every, "times": times}),
        };
        request.to_string()
    }
}

/// What a desk answers when a query is opened.
#[derive(Debug, Clone, Deserialize)]
pub struct Opened {
    /// The queries, one for each window.
    pub queries: Vec<OpenedQuery>,
    /// The first card, as it was signed.
    pub card: Card,
}

/// One of the windows that were opened.
#[derive(Debug, Clone, Deserialize)]
pub struct OpenedQuery {
    /// Its name.
    pub query: String,
    /// From when on answers are accepted.
    pub opens: String,
    /// Until when.
    pub closes: String,
}

/// What a desk says about a query.
#[derive(Debug, Clone, Deserialize)]
pub struct QueryStatus {
    /// Its name.
    pub query: String,
    /// Its state.
    pub state: String,
    /// When it closes or closed.
    pub closes: String,
    /// Why it is in that state, if that needs saying.
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
    /// How many reports have arrived so far, if the leader says so.
    pub reports: Option<u64>,
    /// With fewer reports than this, nothing is released.
    pub minimum_batch: Option<u64>,
    /// From when on answers are accepted.
    pub opens: String,
    /// Until when.
    pub closes: String,
    /// Why it is in that state, if that needs saying.
    pub reason: Option<String>,
}

#[derive(Deserialize)]
struct OverviewPage {
    queries: Vec<Overview>,
    next: Option<usize>,
}

/// Calls a desk.
#[derive(Debug, Clone)]
pub struct DeskClient {
    desk: Url,
    token: Option<Token>,
    http: reqwest::Client,
}

impl DeskClient {
    /// A client of the desk at an address; what analysts do needs a token. `root` is an additional root certificate.
    pub fn new(desk: &Url, token: Option<Token>, root: Option<&Path>) -> Result<Self> {
        let mut desk = desk.clone();
        if desk.cannot_be_a_base() {
            return Err(Error::input(format!("`{desk}` is not the address of a desk")));
        }
        http_client::make_base(&mut desk);
        Ok(Self { desk, token, http: http_client::client(root)? })
    }

    /// Opens the queries of a card. If the request fails on the way, it is repeated a few times; the queries are opened only
    /// once.
    pub async fn open(&self, card: &Card, schedule: Schedule) -> Result<Opened> {
        self.open_by_key(card, schedule, &Token::generate()).await
    }

    /// Like [`open`](Self::open), with the caller's own key, for programs that repeat the request after a restart: the same
    /// card, schedule and key open the same queries, and nothing more.
    pub async fn open_by_key(&self, card: &Card, schedule: Schedule, key: &Token) -> Result<Opened> {
        let body = schedule.opening_request(card);
        for pause in PAUSES {
            match self.post_queries(&body, key).await {
                Err(error) if error.is_unreachable() => {
                    let wait = error.retry_after().map_or(pause, |asked| asked.max(pause).min(LONGEST_PAUSE));
                    tokio::time::sleep(wait).await;
                }
                outcome => return self.parse(&outcome?),
            }
        }
        self.parse(&self.post_queries(&body, key).await?)
    }

    async fn post_queries(&self, body: &str, key: &Token) -> Result<Vec<u8>> {
        let request = self.http.post(self.address("queries")?).header("idempotency-key", key.as_str());
        self.send(request.body(body.to_owned())).await
    }

    /// The cards that are open now.
    pub async fn list(&self) -> Result<Vec<SignedCard>> {
        Ok(listing::fetch(&self.http, &self.desk, ListingBounds::DEFAULT, |_| None).await?.cards)
    }

    /// The key that signs the desk's cards, as the desk says. Compare it with a pinned key before relying on it. Asking for it
    /// also shows whether the desk answers at all.
    pub async fn signer(&self) -> Result<PublicKey> {
        #[derive(Deserialize)]
        struct Key {
            signer: PublicKey,
        }
        let key: Key = self.get("key").await?;
        Ok(key.signer)
    }

    /// All queries that the analyst asked, or for an administrator everybody's; the latest first.
    pub async fn own(&self) -> Result<Vec<Overview>> {
        let mut queries: Vec<Overview> = Vec::new();
        let mut from = 0;
        loop {
            let page: OverviewPage = self.get(&format!("queries/own?from={from}")).await?;
            // Queries that were opened meanwhile move the others on to the next page.
            let new = |query: &Overview| queries.iter().all(|known| known.query != query.query);
            let fresh: Vec<Overview> = page.queries.into_iter().filter(new).collect();
            queries.extend(fresh);
            match page.next.filter(|next| *next > from && queries.len() < MOST_QUERIES) {
                Some(next) => from = next,
                None => return Ok(queries),
            }
        }
    }

    /// The signed card of a query; if the query is the analyst's own, also after it is over.
    pub async fn card(&self, query: &str) -> Result<SignedCard> {
        self.get(&format!("{}/card", path(query)?)).await
    }

    /// What became of a query.
    pub async fn status(&self, query: &str) -> Result<QueryStatus> {
        self.get(&path(query)?).await
    }

    /// The release record's text, as the desk keeps it.
    ///
    /// [`Error::refused_with`] is 409 as long as there is no record yet, and 410 if there will be none.
    pub async fn result(&self, query: &str) -> Result<String> {
        let address = self.address(&format!("{}/result", path(query)?))?;
        let bytes = self.send(self.http.post(address).header("content-length", 0)).await?;
        String::from_utf8(bytes).map_err(|_| Error::refused("the desk's answer is not text"))
    }

    /// Takes a query back.
    pub async fn cancel(&self, query: &str) -> Result<()> {
        self.send(self.http.delete(self.address(&path(query)?)?)).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.parse(&self.send(self.http.get(self.address(path)?)).await?)
    }

    fn parse<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T> {
        serde_json::from_slice(bytes).map_err(|error| not_a_desk(&self.desk, "with success").because(error))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token.as_str()),
            None => request,
        };
        let response = request.send().await.map_err(|error| http_client::no_answer("desk", error))?;
        let (status, asked) = (response.status(), http_client::retry_after(response.headers()));
        let path = response.url().path().to_owned();
        let body = http_client::body("desk", response).await?;
        if status.is_success() {
            return Ok(body);
        }
        Err(problem(&self.desk, &path, status, &body).with_retry_after(asked))
    }

    fn address(&self, path: &str) -> Result<Url> {
        self.desk.join(path).map_err(|error| Error::input(format!("{}: {error}", self.desk)))
    }
}

/// The link on which people answer a query on a page. Everything is in its fragment, which browsers send to nobody. If
/// enrolment is required, it ends in `&credential=`, to which a person's secret is appended.
pub fn answer_link(page: &Url, desk: &Url, card: &Card, query: &str) -> Url {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    pairs.append_pair("desk", desk.as_str());
    pairs.append_pair("key", card.signer.as_deref().unwrap_or_default());
    pairs.append_pair("query", query);
    if card.enrolment == Some(Enrolment::Required) {
        pairs.append_pair("credential", "");
    }
    let mut link = page.clone();
    link.set_fragment(Some(&pairs.finish()));
    link
}

/// The error that a desk's answer describes. A desk always gives a reason; whoever gives none is a proxy, or no desk. An
/// aggregator gives a reason, too, but does not know the paths that every desk has.
fn problem(desk: &Url, path: &str, status: StatusCode, body: &[u8]) -> Error {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let number = status.as_u16();
    let is_of_every_desk = ["/key", "/queries", "/queries/own"].iter().any(|known| path.ends_with(known));
    let is_unknown = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    if is_of_every_desk && is_unknown {
        return not_a_desk(desk, &format!("with {number}")).with_status(number);
    }
    let text = match document["detail"].as_str().or(document["title"].as_str()) {
        Some(detail) => format!("the desk answers {number}: {detail}"),
        None if status.is_server_error() => format!("the server at {desk} answers {number} without a reason"),
        None => return not_a_desk(desk, &format!("with {number}")).with_status(number),
    };
    let is_passing = status.is_server_error() && status != StatusCode::BAD_GATEWAY;
    if is_passing { Error::unreachable(text) } else { Error::refused(text).with_status(status.as_u16()) }
}

/// Names of queries are unpadded base64url, and nothing else goes into an address.
fn path(query: &str) -> Result<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if query.is_empty() || !query.bytes().all(allowed) {
        return Err(Error::input(format!("`{query}` is not the name of a query")));
    }
    Ok(format!("queries/{query}"))
}

fn not_a_desk(address: &Url, answer: &str) -> Error {
    Error::refused(format!(
        "{address} does not answer like an Uptack desk: it answers {answer}, but not in a desk's words; check the address"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_no_desk_is_called_so_and_a_desk_is_quoted() {
        let desk: Url = "http://127.0.0.1:8000/".parse().unwrap();
        let told_at = |path: &str, status: u16, body: &str| {
            problem(&desk, path, StatusCode::from_u16(status).unwrap(), body.as_bytes())
        };
        let told = |status: u16, body: &str| told_at("/queries/Q", status, body);
        for body in ["", "<html>404</html>", "{}", "[]"] {
            let error = told(404, body);
            let text = error.to_string();
            assert!(text.contains("http://127.0.0.1:8000/ does not answer like an Uptack desk"), "{text}");
            assert!(text.contains("404") && error.refused_with() == Some(404) && error.is_refused());
        }
        let known = told(404, r#"{"title":"Not Found","detail":"There is no such query."}"#).to_string();
        assert_eq!(known, "the desk answers 404: There is no such query.");
        // An aggregator answers in the same form, but every desk has these paths.
        for path in ["/key", "/queries", "/queries/own", "/below/queries"] {
            let text = told_at(path, 404, r#"{"title":"Not Found","detail":"There is nothing here."}"#).to_string();
            assert!(text.contains("does not answer like an Uptack desk"), "{path}: {text}");
        }
        assert!(told(503, "").is_unreachable());
        let client = DeskClient::new(&desk, None, None).unwrap();
        let other = client.parse::<QueryStatus>(b"<html>").unwrap_err().to_string();
        assert!(other.contains("does not answer like an Uptack desk"), "{other}");
    }
}
