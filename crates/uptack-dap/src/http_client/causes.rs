//! Describes failed calls in words that say what to do. The HTTP client's own message leaves out the cause.

use std::{error::Error, io};

/// Why a call failed. Take the address out of the error first, with `without_url`.
pub(super) fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        let waited = if error.is_connect() { "no connection" } else { "no answer" };
        return format!("{waited} within the time allowed; the address may be wrong, or a firewall may be in between");
    }
    explain(error)
}

/// What is known about the cause, or the whole chain of causes if nothing is.
fn explain(error: &(dyn Error + 'static)) -> String {
    if io_kinds(error).any(|kind| kind == io::ErrorKind::ConnectionRefused) {
        return "nothing listens at that address (connection refused)".to_owned();
    }
    let text = chain(error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
    // The text is searched because the TLS library's error arrives wrapped in ways that differ with the connection.
    let Some((name, words)) = CAUSES.iter().find(|(name, _)| text.contains(name)) else { return text };
    // What the TLS library says about a certificate names what was expected and what was found.
    match text.find("invalid peer certificate").filter(|_| name != &"dns error") {
        Some(start) => format!("{}; {words}", &text[start..]),
        None => (*words).to_owned(),
    }
}

/// An error, its cause, the cause of that, and so on.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn io_kinds(error: &(dyn Error + 'static)) -> impl Iterator<Item = io::ErrorKind> {
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

    #[derive(Debug)]
    struct Wrapped(&'static str, Option<Box<dyn Error + Send + Sync>>);

    impl fmt::Display for Wrapped {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
        }
    }

    fn wrapped(cause: impl Error + Send + Sync + 'static) -> Wrapped {
        Wrapped("error sending request", Some(Box::new(Wrapped("client error (Connect)", Some(Box::new(cause))))))
    }

    #[test]
    fn the_cause_is_named_however_deep_it_lies() {
        let refused = wrapped(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(explain(&refused), "nothing listens at that address (connection refused)");
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
            let told = explain(&wrapped(Wrapped(text, None)));
            assert!(told.contains(words) && !told.contains("error sending request"), "{told}");
        }
        // What nobody foresaw is shown whole.
        let told = explain(&wrapped(Wrapped("broken in a new way", None)));
        assert_eq!(told, "error sending request: client error (Connect): broken in a new way");
    }
}
