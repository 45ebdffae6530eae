//! What clients share in speaking to aggregators and desks.

use reqwest::{Response, StatusCode};
use std::{path::Path, time::Duration};

use crate::{
    dap::DapProblemType,
    error::{Error, Result},
    tls_errors,
};

/// Largest answer that is read.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

/// An HTTP client with sensible limits; `root` is a further root certificate in a PEM file.
pub fn client(root: Option<&Path>) -> Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(30))
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("uptack/", env!("CARGO_PKG_VERSION")));
    if let Some(path) = root {
        builder = builder.add_root_certificate(crate::aggregator::read_root(path)?);
    }
    builder.build().map_err(|error| Error::environment(format!("HTTP client: {error}")))
}

/// No answer at all.
pub fn no_answer(whose: &str, error: reqwest::Error) -> Error {
    Error::unreachable(format!("the {whose} does not answer: {}", tls_errors::describe(error)))
}

/// The body of an answer, of bounded size.
pub async fn body(whose: &str, response: Response) -> Result<Vec<u8>> {
    body_within(whose, response, LARGEST_ANSWER).await
}

/// The body of an answer of at most `limit` bytes.
pub async fn body_within(whose: &str, mut response: Response, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(whose, error))? {
        if bytes.len() + chunk.len() > limit {
            return Err(Error::refused(format!("the {whose}'s answer is too large")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Turns an answer that is not a success into an error with its reason.
pub async fn check(whose: &str, response: Response) -> Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let document = body(whose, response).await.unwrap_or_default();
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap_or_default();
    let kind = document["type"].as_str().and_then(|uri| uri.parse::<DapProblemType>().ok());
    let title = document["title"].as_str().unwrap_or("no reason given");
    let detail = document["detail"].as_str().map_or(String::new(), |detail| format!(" {detail}"));
    let text = format!("the {whose} answers {}: {title}{detail}", status.as_u16());
    Err(match kind {
        Some(DapProblemType::OutdatedConfig) => Error::outdated_key(text),
        Some(DapProblemType::InvalidBatchSize) => Error::too_small(text),
        _ if is_passing(status) => Error::unreachable(text),
        _ => Error::refused(text),
    })
}

/// How long a server asks to be left alone, in seconds: an hour at most, whatever it says.
pub fn retry_after(response: &Response) -> Option<u64> {
    let text = response.headers().get("retry-after")?.to_str().ok()?;
    text.trim().parse::<u64>().ok().map(|seconds| seconds.min(3600))
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT
}
