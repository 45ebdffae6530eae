//! Calls to aggregators and desks: limits, addresses, refusals, and causes of failure in words.

use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use serde_json::Value;
use std::{error::Error as StdError, io, path::Path, time::Duration};

pub use crate::address::{check_address, is_same_host, join, make_base};
use crate::{
    error::{Error, Hint, Result},
    protocol::{Endpoint, ProblemType},
};

/// The largest answer that is read, in bytes.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;
/// The longest pause that a server can ask for; a longer one would let it silence its clients.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// An HTTP client with sensible limits; `root` is an additional root certificate in a PEM file.
pub fn client(root: Option<&Path>) -> Result<reqwest::Client> {
    client_with_patience(root, Duration::from_secs(30))
}

/// Like [`client`], for calls that may take as long as `patience`.
pub fn client_with_patience(root: Option<&Path>, patience: Duration) -> Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .timeout(patience)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("uptack/", env!("CARGO_PKG_VERSION")));
    if let Some(path) = root {
        builder = builder.add_root_certificate(read_root(path)?);
    }
    // Certificates are decoded here, and nothing else can be the caller's fault.
    builder.build().map_err(|error| match root {
        Some(path) => not_a_certificate(path).because(error),
        None => Error::environment(format!("HTTP client: {error}")).because(error),
    })
}

fn read_root(path: &Path) -> Result<reqwest::Certificate> {
    let pem = std::fs::read(path).map_err(|error| Error::named_file(path, error))?;
    let text = String::from_utf8_lossy(&pem);
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(not_a_certificate(path));
    }
    reqwest::Certificate::from_pem(&pem).map_err(|error| not_a_certificate(path).because(error))
}

fn not_a_certificate(path: &Path) -> Error {
    Error::input(format!(
        "{}: no certificate can be read from it; expected is PEM, which begins with -----BEGIN CERTIFICATE-----",
        path.display()
    ))
}

/// A request of the protocol, with its method and media type.
pub fn request(client: &reqwest::Client, endpoint: &Endpoint, url: Url) -> RequestBuilder {
    let method = Method::from_bytes(endpoint.method.as_bytes()).expect("the protocol uses HTTP's own methods");
    let request = client.request(method, url);
    match endpoint.media_type {
        Some(media_type) => request.header(CONTENT_TYPE, media_type),
        None => request,
    }
}

/// Sends a request; an answer that is not a success becomes an error with its reason.
pub(crate) async fn send(whose: &str, request: RequestBuilder) -> Result<Response> {
    let response = request.send().await.map_err(|error| no_answer(whose, error))?;
    check(whose, response).await
}

/// The error for no answer at all.
pub fn no_answer(whose: &str, error: reqwest::Error) -> Error {
    // Only the origin of the address is shown: its path can name a task or a report.
    let place = error.url().map(|url| format!(" at {}", url.origin().ascii_serialization())).unwrap_or_default();
    let error = error.without_url();
    let (cause, hint) = describe(&error);
    Error::unreachable(format!("the {whose}{place} does not answer: {cause}")).with_hint(hint).because(error)
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
    let retry_after = retry_after(response.headers());
    let origin = response.url().origin().ascii_serialization();
    // Every desk has this path. An aggregator that does not know it says so in the same form as a desk.
    let is_listing = whose == "desk" && response.url().path().ends_with("/queries");
    let document = body(whose, response).await.unwrap_or_default();
    let document: Value = serde_json::from_slice(&document).unwrap_or_default();
    let is_unknown = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    if is_unknown && (is_listing || document["title"].is_null() && document["detail"].is_null()) {
        let number = status.as_u16();
        return Err(Error::refused(format!(
            "{origin} does not answer like an Uptack {whose}: it answers with {number}; check the address"
        ))
        .with_status(number)
        .with_retry_after(retry_after));
    }
    Err(problem(whose, status, &document, retry_after))
}

/// The error that a problem document describes.
fn problem(whose: &str, status: StatusCode, document: &Value, retry_after: Option<Duration>) -> Error {
    let title = document["title"].as_str().unwrap_or("no reason given");
    let detail = document["detail"].as_str().map(|detail| format!(" {detail}")).unwrap_or_default();
    let text = format!("the {whose} answers {}: {title}{detail}", status.as_u16());
    match ProblemType::of_document(document) {
        Some(ProblemType::OutdatedConfig) => Error::outdated_key(text),
        Some(ProblemType::InvalidBatchSize) => {
            let reports = document["reports"].as_str().and_then(|reports| reports.parse().ok());
            Error::too_small(text).with_reports(reports)
        }
        _ if is_passing(status) => Error::unreachable(text).with_retry_after(retry_after),
        _ => Error::refused(text),
    }
}

/// The pause that a server asks for in `Retry-After`, in seconds. Dates are not read, and no pause is longer than an hour.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT
}

/// Why a call failed, in words, and what can be done about it. The HTTP client's own message leaves out the cause. Take the
/// address out of the error first, with `without_url`.
fn describe(error: &reqwest::Error) -> (String, Option<Hint>) {
    if error.is_timeout() {
        let waited = if error.is_connect() { "no connection" } else { "no answer" };
        let advice = "the address may be wrong, or a firewall may be in between";
        return (format!("{waited} within the time allowed; {advice}"), None);
    }
    explain(error)
}

/// The cause in our own words, or the whole chain of causes if it is not one of those that we know.
fn explain(error: &(dyn StdError + 'static)) -> (String, Option<Hint>) {
    if io_kinds(error).any(|kind| kind == io::ErrorKind::ConnectionRefused) {
        return ("nothing listens at that address (connection refused)".to_owned(), None);
    }
    let text = chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
    // The text is searched because the TLS library's error arrives wrapped in ways that differ with the connection.
    let Some((name, words)) = CAUSES.iter().find(|(name, _)| text.contains(name)) else { return (text, None) };
    let hint = (*name == "UnknownIssuer").then_some(Hint::NameRootCertificate);
    // The TLS library's words about a certificate name what was expected and what was found.
    let told = match text.find("invalid peer certificate").filter(|_| name != &"dns error") {
        Some(start) => format!("{}; {words}", &text[start..]),
        None => (*words).to_owned(),
    };
    (told, hint)
}

/// An error, its cause, the cause of that, and so on.
fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn io_kinds(error: &(dyn StdError + 'static)) -> impl Iterator<Item = io::ErrorKind> {
    chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

const CAUSES: [(&str, &str); 7] = [
    ("dns error", "its name is not known: no address was found for it"),
    (
        "CaUsedAsEndEntity",
        "its certificate is that of a certificate authority (CA:TRUE), as `openssl req -x509` makes it, and an authority \
         must not pose as a server: issue a certificate for the server from it, or make one with \
         `-addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:NAME`",
    ),
    (
        "UnknownIssuer",
        "its certificate was not issued by an authority that is trusted here: name the root certificate that issued it",
    ),
    ("not valid for name", "call it by a name that is on its certificate"),
    ("certificate expired", "its operator has to renew the certificate, or this machine's clock is wrong"),
    ("certificate not valid yet", "this machine's clock may be wrong"),
    ("InvalidContentType", "it does not speak TLS there: the address may have to begin with http://"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[test]
    fn a_pause_is_read_and_bounded() {
        let asked = |text: &str| retry_after(&[(RETRY_AFTER, text.parse().unwrap())].into_iter().collect());
        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("18446744073709551615"), Some(LONGEST_PAUSE));
        assert_eq!((asked("-1"), asked("Wed, 21 Oct 2026 07:28:00 GMT"), asked("")), (None, None, None));
    }

    #[derive(Debug)]
    struct Wrapped(&'static str, Option<Box<dyn StdError + Send + Sync>>);

    impl fmt::Display for Wrapped {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl StdError for Wrapped {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            self.1.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
        }
    }

    fn wrapped(cause: impl StdError + Send + Sync + 'static) -> Wrapped {
        Wrapped("error sending request", Some(Box::new(Wrapped("client error (Connect)", Some(Box::new(cause))))))
    }

    #[test]
    fn the_cause_is_named_however_deep_it_lies() {
        let refused = wrapped(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(explain(&refused), ("nothing listens at that address (connection refused)".to_owned(), None));
        for (text, words) in [
            ("dns error", "its name is not known"),
            ("invalid peer certificate: UnknownIssuer", "name the root certificate"),
            ("invalid peer certificate: certificate expired: verification time 1", "has to renew"),
            (
                "invalid peer certificate: certificate not valid for name \"a\"; certificate is only valid for b",
                "for b; ",
            ),
            ("received corrupt message of type InvalidContentType", "may have to begin with http://"),
        ] {
            let (told, hint) = explain(&wrapped(Wrapped(text, None)));
            assert_eq!(hint, text.contains("UnknownIssuer").then_some(Hint::NameRootCertificate));
            assert!(told.contains(words) && !told.contains("error sending request"), "{told}");
        }
        // An unforeseen cause is shown whole.
        let (told, _) = explain(&wrapped(Wrapped("broken in a new way", None)));
        assert_eq!(told, "error sending request: client error (Connect): broken in a new way");
    }
}
