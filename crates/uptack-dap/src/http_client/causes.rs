//! Failed calls in words that say what to do. The HTTP client's own message leaves out the cause.

use std::error::Error as _;

/// Why a call failed. Take the address out of the error first, with `without_url`.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    // By its name: the TLS library's error arrives wrapped in ways that differ with the connection.
    match HINTS.iter().find(|(name, _)| text.contains(name)) {
        Some((_, hint)) => format!("{text}; {hint}"),
        None => text,
    }
}

const HINTS: [(&str, &str); 2] = [
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
];
