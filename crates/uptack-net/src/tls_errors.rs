//! Failed calls in words that say what to do. The HTTP client's own message leaves out the cause.

use std::error::Error as _;
use tokio_rustls::rustls::{self, CertificateError};

/// Why a call failed, without the address that it went to.
pub(crate) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(rustls::Error::InvalidCertificate(problem)) = find(inner) {
            return format!("{text}: {}", explain(problem));
        }
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// The TLS library's error; I/O errors carry it inside without calling it their source.
fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let carried = carried.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    carried.or_else(|| error.downcast_ref())
}

fn explain(problem: &CertificateError) -> String {
    match problem {
        CertificateError::UnknownIssuer => {
            "its certificate was issued by nobody who is trusted here; name the root that issued it".to_owned()
        }
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => AUTHORITY.to_owned(),
        problem => format!("its certificate is not valid: {problem}"),
    }
}

const AUTHORITY: &str = "its certificate is that of a certificate authority (CA:TRUE), as `openssl req -x509` makes it, \
    and an authority must not pose as a server (CaUsedAsEndEntity); issue a certificate for the server from it, or make \
    one with -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:NAME";
